// SPDX-License-Identifier: Apache-2.0
/*
 * links - which k of a node's free cards go best together. Pure; the scheduler asks for
 * aliyun.com/gpu, the device plugin for nvidia.com/gpu.
 *
 * The order in which two choices are compared (the first difference decides):
 *
 *     1  the weakest link between two cards of the choice
 *     2  the sum of its links (topology_link_score: NVLinks count by their number)
 *     3  what stays for others: islands of free cards, the best links first, the largest island first
 *     4  cards that are near (the pod's CPUs)
 *     5  pairs on one NUMA node
 *     6  what stays free of each NUMA node, the largest rest first
 *     7  the lowest cards
 *
 * An island of a kind of link is a set of free cards each two of which are linked at least so well. What a choice leaves free is
 * divided into islands: the largest set first, of equal ones the one with the lowest cards, then the same with the
 * rest.
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
    LINKS_LEVELS = 16, /* kinds of links that are told apart, except in sums: the best ones */
    LINKS_EXACT = 16   /* free cards up to which the answer is the best of all choices */
};

/* A matrix in numbers. Both directions of a link count as the weaker one; what is unknown is 0. */
struct links {
    size_t len;
    int32_t score[GPU_CARDS_MAX][GPU_CARDS_MAX];
    int32_t numa[GPU_CARDS_MAX];
};

void links_of(const struct gpu_inventory *inv, struct links *out);
/* The cards, or 0 when there are fewer than count, or must is more than count. Beyond LINKS_EXACT free cards the search
 * is cut off after a fixed number of steps and the best choice until then is taken: the same for the same question. */
uint64_t links_choose(const struct links *l, const struct links_ask *ask);
