// SPDX-License-Identifier: Apache-2.0
/* node - a decoded node; same rules as pod. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/model/pod.h"
#include "lib/model/resources.h"
#include "lib/model/selector.h"

struct taint {
    const char *key;
    const char *value;
    enum taint_effect effect;
};

/* An image on the node, by the hash of its name: 50 images with two names each would be the largest
 * part of a node, and they only affect scores. */
struct node_image {
    uint64_t hash; /* node_image_hash */
    int64_t bytes;
};

struct node {
    struct arena arena; /* owns everything below, and the struct itself */
    const char *name;
    const char *uid;
    const char *resource_version;
    struct labels labels;
    struct labels annotations;
    bool unschedulable;
    bool terminating;
    struct taint *taints;
    size_t taints_len;
    struct resources capacity;
    struct resources allocatable;
    const char *internal_ip;   /* or NULL */
    bool ready;                /* condition Ready is True */
    uint8_t features;          /* declared features that a pod can need: POD_FEATURE_* */
    struct node_image *images; /* by hash, each once */
    size_t images_len;
};

void node_free(struct node *n);
/* As pod_pack. */
struct node *node_pack(struct node *n);
bool node_taint_is_tolerated(const struct pod *p, const struct taint *t);
/* for (size_t i = 0; (t = node_untolerated(n, p, &i)) != NULL;): the NoSchedule and NoExecute
 * taints that the pod does not tolerate. spec.unschedulable counts as the taint
 * node.kubernetes.io/unschedulable:NoSchedule that the node controller adds. */
const struct taint *node_untolerated(const struct node *n, const struct pod *p, size_t *i);
/* The name of the first feature that the pod needs and the node does not declare, or NULL. */
const char *node_missing_feature(const struct node *n, const struct pod *p);
/* The hash of the name, with ":latest" if it has neither tag nor digest. "#0123456789abcdef" is
 * that hash itself, so that a dump can name an image by its hash. */
uint64_t node_image_hash(const char *name);
/* Size of the image on the node; 0: absent. */
int64_t node_image_bytes(const struct node *n, uint64_t hash);
