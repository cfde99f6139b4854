// SPDX-License-Identifier: Apache-2.0
/*
 * card_usage - the free capacity of each card given all grants known here, and the placement of
 * pods without a grant. Pure.
 *
 * A pod without a grant bypassed cosched's scheduler (another scheduler, spec.nodeName, a static
 * pod), or the watch has not delivered its grant yet. The node's placement policy places it, never
 * on capacity granted to another pod.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device-plugin/cards/inventory.h"
#include "device-plugin/grant/match.h"
#include "device-plugin/cards/mode.h"
#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/model/grant.h"
#include "lib/model/gpu.h"
#include "lib/model/pod.h"

struct card_usage_card {
    int64_t gib, percent; /* granted or held */
    bool whole;           /* granted or held as a whole */
};

struct card_usage {
    const struct gpu_inventory *inventory; /* borrowed */
    enum gpu_placement placement;
    struct card_usage_card used[GPU_CARDS_MAX]; /* by position */
};

void card_usage_init(struct card_usage *r, const struct gpu_inventory *inv,
                     enum gpu_placement placement);
/* Adds one pod's grant and what it holds; either may be NULL. Each card counts the larger of both:
 * they may differ while a grant is corrected, and a card must never look emptier than it is. */
void card_usage_add(struct card_usage *r, const struct grant *grant,
                    const struct match_listed *held);

/* Makes a grant for a pod that has none. All containers go on one card; if no card fits them all,
 * each is placed separately (unless an ordinary init container requests a GPU), in order or the
 * largest first. With label aliyun.com/gpu-count M each goes on M cards in equal parts.
 * ERROR_UNSUPPORTED: an invalid request (gpu_request.h). */
int card_usage_place(const struct card_usage *r, const struct pod *p, struct arena *a,
                     struct grant *out, struct error *err);
/* A card (by position) for count ids of an unknown pod. */
int card_usage_pick(const struct card_usage *r, enum mode_resource resource, size_t count,
                    size_t *at, struct error *err);
/* Does this much fit on the card? */
bool card_usage_has(const struct card_usage *r, size_t at, int64_t gib, int64_t percent);

/* What the pod really holds: each container's ids, and the granted shares of containers without
 * ids. false: it equals the grant, or is not complete yet. */
bool card_usage_truth(const struct gpu_inventory *inv, const struct pod *p,
                      const struct grant *said, const struct match_listed *held, struct arena *a,
                      struct grant *out);
/* Does said include all of truth, on the same cards? Then no card looks emptier than it is. */
bool card_usage_covers(const struct grant *said, const struct grant *truth);
/* The union: every share of either, the larger on each card. The other fields are truth's. */
void card_usage_widen(const struct grant *said, const struct grant *truth, struct arena *a,
                      struct grant *out);
