// SPDX-License-Identifier: Apache-2.0
/* refusals - why no node fits a class, node by node, so that the next refusal asks only about
 * changed nodes. Pure. A full cluster refuses more often than it places, and changes all the time.
 * Each node's reason is kept in a few bytes, and each row knows its most promising node, so that a
 * tally passes over the nodes only when that one got worse. Only for classes
 * without rules over domains (one pod elsewhere can change every node's answer), and while the
 * reasons fit into a tally's rows; else all nodes are scanned. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "scheduler/framework/plugin.h"
#include "scheduler/framework/reasons.h"

struct refusals_node {
    int64_t free;
    int64_t free_percent;
    int32_t card;
    int32_t row; /* of rows */
};

struct refusals_row {
    struct reason reason; /* what: in the arena */
    uint32_t wakes;
    int64_t nodes; /* that have it */
    uint32_t best; /* index of the most promising one; of equal ones the first */
    bool stale;    /* best must be found again */
};

struct refusals {
    uint64_t generation, seen;   /* of the table */
    struct refusals_node *nodes; /* by node index */
    uint32_t len;
    struct refusals_row rows[REASONS_MAX];
    int32_t rows_len;
    int32_t own_place; /* pod_class.own_place of the last tally */
    struct arena arena;
};

void refusals_init(struct refusals *r);
void refusals_deinit(struct refusals *r);
size_t refusals_bytes(const struct refusals *r);
void refusals_forget(struct refusals *r);
/* The tally of all nodes, none of which fits. false: it cannot be cached, or a node fits after all,
 * and the caller scans. Adds to wakes. own_place: pod_class.own_place. */
bool refusals_tally(struct refusals *r, const struct plugin_ask *ask, int32_t own_place,
                    struct arena *a, struct reasons *out, uint32_t *wakes);
