// SPDX-License-Identifier: Apache-2.0
/* inventory - the node's cards over time: what a scan changed (inventory_equal), and their device
 * ids. The struct and its codec are in lib/model/gpu. Pure. A new field of struct gpu_card must be
 * copied and compared in inventory.c. An id names its card and, for shares, the slice: "GPU-8f1e…"
 * or "GPU-8f1e…-_-12". Ids do not depend on other cards, so they are stable over restarts, lost
 * cards, and on nodes with mixed cards. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device-plugin/cards/mode.h"
#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/model/gpu.h"
#include "lib/model/selector.h"

enum {
    INVENTORY_ID_MAX = 63,   /* the kubelet's limit */
    INVENTORY_UUID_MAX = 48, /* leaves space for "-_-" and the slice */
    INVENTORY_CORES = 100,   /* gpu-core.percentage of one card */
    INVENTORY_CARD_GIB_MAX = 1024,
    INVENTORY_GIB_MAX = 32 * 1024, /* of a node: its ids fit gRPC's 4 MiB message */
    INVENTORY_NONE = -1,
};

struct inventory_ids {
    const char **items;
    size_t len;
};

struct inventory_device {
    const char *id;
    bool healthy;
    int32_t numa; /* -1: the id carries no topology */
};

struct inventory_devices {
    struct inventory_device *items;
    size_t len;
};

/* Picks the servable cards of a scan, with their links; borrows strings. -1: some were left out,
 * and err names the first and the reason. */
int inventory_pick(const struct gpu_inventory *scan, struct arena *a, struct gpu_inventory *out,
                   struct error *err);
/* The cards of the scan, and as sick those of old (or NULL) that vanished: what containers hold on
 * them must not look free. A vanished card whose index was taken is dropped. Copies into a. */
void inventory_merge(const struct gpu_inventory *old, const struct gpu_inventory *scan,
                     struct arena *a, struct gpu_inventory *out);
/* The inventory as the mode offers it, in a. A card divided into MIG instances has no memory of its
 * own to share, so in shared modes it counts as sick. Returns the number of such cards. Borrows
 * strings and links. */
size_t inventory_in_mode(const struct gpu_inventory *inv, enum gpu_mode mode, struct arena *a,
                         struct gpu_inventory *out);
/* Compares cards and links, not mode and isolation. */
bool inventory_equal(const struct gpu_inventory *x, const struct gpu_inventory *y);

/* The list for the kubelet. only NULL: all ids of the cards. Otherwise exactly those, healthy. */
void inventory_devices(const struct gpu_inventory *inv, enum mode_resource r,
                       const struct inventory_ids *only, struct arena *a,
                       struct inventory_devices *out);
/* The number of ids of the resource on one card. */
int64_t inventory_card_size(const struct gpu_card *card, enum mode_resource r);
/* Position of the id's card in inv->cards, or INVENTORY_NONE: not one of our ids. */
int32_t inventory_find(const struct gpu_inventory *inv, enum mode_resource r, const char *id);
/* Position of the card with this index, or INVENTORY_NONE. */
int32_t inventory_card(const struct gpu_inventory *inv, int32_t index);

/* aliyun.accelerator/nvidia_{name,mem,count}; values NULL without cards. */
void inventory_labels(const struct gpu_inventory *inv, struct arena *a, struct labels *out);
