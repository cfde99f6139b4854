// SPDX-License-Identifier: Apache-2.0
/* gpu - a node's GPU inventory: modes, cards, links, and its codec (annotation
 * cosched.io/gpu-inventory, version 1). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/base/str.h"

enum { GPU_CARDS_MAX = 64, GPU_INVENTORY_BYTES_MAX = 64 * 1024 };

enum gpu_mode {
    GPU_MODE_DEFAULT,
    GPU_MODE_CGPU,
    GPU_MODE_CORE_MEM,
    GPU_MODE_SHARE,
    GPU_MODE_MPS,
    GPU_MODE_TOPOLOGY,
    GPU_MODES
};
enum gpu_placement { GPU_BINPACK, GPU_SPREAD };
enum gpu_health { GPU_HEALTH_OK, GPU_HEALTH_SICK };

/* A new field must also be added to the codec in gpu.c and to copy and comparison in
 * cards/inventory.c, and be read from the driver in cards/backend_nvml.c. */
struct gpu_card {
    int32_t index;
    const char *uuid;
    const char *model;
    int64_t mib;
    int32_t numa; /* -1 unknown */
    const char *pci;
    enum gpu_health health;
    /* why it is unhealthy: "XID 79: the card has fallen off the bus"; "" or NULL: unknown, or
     * healthy */
    const char *why;
    bool mig; /* divided into MIG instances. Only in the device plugin: not in the annotation */
};

struct gpu_inventory {
    enum gpu_mode mode;
    bool switching;
    enum gpu_mode switching_to;
    const char *isolation; /* engine in force: "none", "mps", "cgpu", ...; NULL when absent */
    struct gpu_card *cards;
    size_t cards_len;
    /* cards_len * cards_len, row by row: "X", "NV2", "PIX", "PXB", "PHB", "NODE", "SYS"; NULL when
     * absent */
    const char **links;
};

/* GiB that one card offers in the shared modes: floor(MiB / 1024). */
int64_t gpu_card_gib(const struct gpu_card *c);
/* Sum over the cards. */
int64_t gpu_inventory_gib(const struct gpu_inventory *inv);
/* For an unhealthy card: "unhealthy (XID 79)", "unhealthy (the card is lost)", "unhealthy". An
 * error number suffices, so its text is omitted. In a. */
const char *gpu_card_trouble(const struct gpu_card *c, struct arena *a);
bool gpu_mode_is_shared(enum gpu_mode mode); /* cgpu, core_mem, share, mps */
const char *gpu_mode_name(enum gpu_mode mode);
bool gpu_mode_parse(const char *text, enum gpu_mode *out);
/* "default, cgpu, core_mem, share, mps, topology": for messages. */
const char *gpu_mode_names(void);

/* Strict: an unknown version, a duplicate card index, a size that is not positive, a link matrix of
 * the wrong shape are errors that name the field. */
int gpu_inventory_decode(const char *text, size_t n, struct arena *a, struct gpu_inventory *out,
                         struct error *err);
/* The cards and links alone, of a JSON object with these two; everything else is 0. */
int gpu_inventory_read_cards(json *root, struct arena *a, struct gpu_inventory *out,
                             struct error *err);
void gpu_inventory_encode(const struct gpu_inventory *inv, struct strbuf *out);
