// SPDX-License-Identifier: Apache-2.0
/*
 * room - what is free on each card under all claims that are known here, and the cards of a pod that comes without one. Pure.
 *
 * A pod without a claim did not come through cosched's scheduler (another scheduler, spec.nodeName, a static pod), or it did
 * and we have not seen it yet. It is served by the node's placement policy, never on what somebody else was promised.
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
#include "lib/model/claim.h"
#include "lib/model/gpu.h"
#include "lib/model/pod.h"

struct room_card {
    int64_t gib, percent; /* claimed or held */
    bool whole;           /* claimed or held as a whole */
};

struct room {
    const struct gpu_inventory *inventory; /* borrowed */
    enum gpu_placement placement;
    struct room_card used[GPU_CARDS_MAX]; /* by position */
};

void room_init(struct room *r, const struct gpu_inventory *inv, enum gpu_placement placement);
/* What one pod was promised and what it holds, either NULL. On each card the larger of both counts: the two may differ while
 * a claim is being corrected, and a card must never look emptier than it is. */
void room_add(struct room *r, const struct claim *claim, const struct match_listed *held);

/* A claim for a pod that has none: all on one card; if none has room for all, each container on a card of its own choice (as
 * far as no ordinary init container asks); with label aliyun.com/gpu-count M on M cards in equal parts. */
int room_place(const struct room *r, const struct pod *p, struct arena *a, struct claim *out,
               struct error *err);
/* A card (its position) for count ids of r, for a pod of which nothing else is known. */
int room_pick(const struct room *r, enum mode_resource resource, size_t count, size_t *at,
              struct error *err);
/* Is this much free there? */
bool room_has(const struct room *r, size_t at, int64_t gib, int64_t percent);

/* What the pod holds in truth: for every container its ids, and for those that have none yet what the claim says.
 * false: that is the claim, or it is not complete yet. */
bool room_truth(const struct gpu_inventory *inv, const struct pod *p, const struct claim *said,
                const struct match_listed *held, struct arena *a, struct claim *out);
/* Does said have everything that truth has, on the same cards? Then no card looks emptier by it than it is. */
bool room_covers(const struct claim *said, const struct claim *truth);
/* Both at once: every share of either, on each card the larger one. The rest is truth's. */
void room_widen(const struct claim *said, const struct claim *truth, struct arena *a,
                struct claim *out);
