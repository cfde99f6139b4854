// SPDX-License-Identifier: Apache-2.0
/*
 * links - which k of a node's free cards are connected best. Pure; used by the scheduler for
 * aliyun.com/gpu and by the device plugin for nvidia.com/gpu.
 *
 * Two choices are compared in this order; the first difference decides:
 *
 *     1  the weakest link between two cards of the choice
 *     2  the sum of its links (topology_link_score: NVLinks count by their number)
 *     3  the islands of cards left free: the best links first, the largest island first
 *     4  cards near the pod's CPUs
 *     5  pairs on one NUMA node
 *     6  what stays free of each NUMA node, the largest rest first
 *     7  the lowest cards
 *
 * An island of a link kind is a set of free cards linked pairwise at least that well. The cards
 * left free are divided into islands greedily: the largest set first, of equal ones that with the
 * lowest cards.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/model/gpu.h"

/* Cards are bits by their position in the inventory. */
struct links_ask {
    uint64_t free;
    uint64_t must; /* part of every choice */
    uint64_t near;
    size_t count;
};

enum {
    LINKS_LEVELS = 16, /* link kinds distinguished, except in sums: the best ones */
    LINKS_EXACT = 16   /* up to this many free cards the answer is optimal */
};

/* The link matrix as numbers. Both directions of a link count as the weaker one; unknown is 0. */
struct links {
    size_t len;
    int32_t score[GPU_CARDS_MAX][GPU_CARDS_MAX];
    int32_t numa[GPU_CARDS_MAX];
};

void links_of(const struct gpu_inventory *inv, struct links *out);
/* The cards, or 0 when fewer than count are free, or must has more than count. Beyond LINKS_EXACT
 * free cards the search stops after a fixed number of steps with the best choice so far,
 * deterministically. */
uint64_t links_choose(const struct links *l, const struct links_ask *ask);
