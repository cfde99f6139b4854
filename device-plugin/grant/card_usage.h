// SPDX-License-Identifier: Apache-2.0
/*
 * card_usage - what is free on each card under all grants that are known here, and the cards of a
 * pod that comes without one. Pure.
 *
 * A pod without a grant did not come through cosched's scheduler (another scheduler, spec.nodeName,
 * a static pod), or it did and we have not seen it yet. It is served by the node's placement
 * policy, never on what somebody else was promised.
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
/* What one pod was promised and what it holds, either NULL. On each card the larger of both counts:
 * the two may differ while a grant is being corrected, and a card must never look emptier than it
 * is. */
void card_usage_add(struct card_usage *r, const struct grant *grant,
                    const struct match_listed *held);

/* A grant for a pod that has none: all on one card; if none has room for all, each container on a
 * card of its own (unless an ordinary init container asks), in order or the largest first; with
 * label aliyun.com/gpu-count M each on M cards in equal parts. ERROR_UNSUPPORTED: a request that
 * nobody can serve (gpu_request.h). */
int card_usage_place(const struct card_usage *r, const struct pod *p, struct arena *a,
                     struct grant *out, struct error *err);
/* A card (its position) for count ids of r, for a pod of which nothing else is known. */
int card_usage_pick(const struct card_usage *r, enum mode_resource resource, size_t count,
                    size_t *at, struct error *err);
/* Is this much free there? */
bool card_usage_has(const struct card_usage *r, size_t at, int64_t gib, int64_t percent);

/* What the pod holds in truth: for every container its ids, and for those that have none yet what
 * the grant says. false: that is the grant, or it is not complete yet. */
bool card_usage_truth(const struct gpu_inventory *inv, const struct pod *p,
                      const struct grant *said, const struct match_listed *held, struct arena *a,
                      struct grant *out);
/* Does said have everything that truth has, on the same cards? Then no card looks emptier by it
 * than it is. */
bool card_usage_covers(const struct grant *said, const struct grant *truth);
/* Both at once: every share of either, on each card the larger one. The rest is truth's. */
void card_usage_widen(const struct grant *said, const struct grant *truth, struct arena *a,
                      struct grant *out);
