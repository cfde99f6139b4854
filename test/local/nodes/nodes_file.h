// SPDX-License-Identifier: Apache-2.0
/*
 * nodes_file - the file that says which nodes there are. The form is described in nodes_file.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/model/gpu.h"
#include "lib/model/node.h"
#include "lib/model/resources.h"
#include "lib/model/selector.h"

enum {
    NODES_FILE_BYTES_MAX = 16 * 1024 * 1024,
    NODES_FILE_NODES_MAX = 20000,
    NODES_FILE_ARGS_MAX = 64,
};

enum nodes_file_role {
    /* a twin of the kubelet; a device plugin where there are cards or a topology */
    NODES_FILE_KUBELET,
    NODES_FILE_VIRTUAL, /* as virtual-kubelet's nodes: no kubelet, label and taint */
    NODES_FILE_HOLLOW,  /* only an API object; its pods run by themselves */
};

struct nodes_spec {
    const char *name;
    enum nodes_file_role role;
    struct labels labels, annotations; /* the file's, and those every node has */
    struct taint *taints;
    size_t taints_len;
    const char *address; /* InternalIP */
    uint32_t number;     /* from 0, in the order of the file: pods' addresses are made from it */
    struct resources amounts;
    const char *topology; /* a synthetic hwloc description or the path of an XML file; NULL: none */
    bool topology_is_xml;
    unsigned cpus, numa; /* of the topology; without one, of amounts and 1 */
    bool plugin;         /* runs cosched-device-plugin */
    const char *isolation;
    const char **plugin_args; /* further ones, NULL-terminated */
    struct gpu_inventory cards;
    int64_t reorder_ms; /* see nodes_file.c; 0: pods are admitted as they arrive */
};

struct nodes_file {
    struct arena arena; /* everything below */
    struct nodes_spec *items;
    size_t len;
};

/* base_dir resolves names of XML files. Errors name the place: "nodes[2].gpus.mib: must be ...". */
int nodes_file_parse(struct nodes_file *out, const char *text, size_t n, const char *base_dir,
                     struct error *err);
int nodes_file_load(struct nodes_file *out, const char *path, struct error *err);
void nodes_file_deinit(struct nodes_file *f);
/* What cosched-device-plugin --backend=sim reads. */
void nodes_file_print_cards(const struct gpu_inventory *cards, struct strbuf *out);
