// SPDX-License-Identifier: Apache-2.0
/*
 * node_table - the nodes in one array, sorted by name, and a log of their changes. Pure.
 *
 * A decision must not visit every node. So verdicts about nodes are cached (equivalence.h), and the
 * log tells which are stale: each entry is the index ("place") of a changed node. A reader keeps
 * the number of the last entry it has read. The log is a ring: a reader that fell too far behind
 * visits all nodes again. It also does so when a node was added or removed, because indexes move
 * and the table gets a new generation.
 *
 * The index is the rank by name, so "ties by name" means "the lower index", whatever the order of
 * arrival (I4). A row is one cache line with the free capacity that nearly every pod checks.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/map.h"

struct cluster_node;

enum {
    NODE_TABLE_LOG = 1 << 16,
    NODE_TABLE_NOWHERE = -1, /* the index of a node that is not in the table */
};
/* Flag in a log entry: the Node object changed, not only its pods. */
#define NODE_TABLE_OBJECT (UINT32_C(1) << 31)
/* Of a row without a log entry. */
#define NODE_TABLE_UNCHANGED UINT64_MAX

struct node_table_row {
    int64_t free_cpu_milli; /* all free amounts are >= 0 */
    int64_t free_memory_bytes;
    int64_t free_ephemeral_bytes;
    int64_t cpu_milli; /* allocatable */
    int64_t memory_bytes;
    struct cluster_node *node;
    uint64_t changed; /* number of the last log entry about this node, or NODE_TABLE_UNCHANGED */
    int32_t free_pods;
    uint32_t pods : 30; /* allocatable */
    uint32_t cards : 1;
    uint32_t closer : 1; /* the row is not enough: check nominations or rejections */
};

struct node_table {
    struct node_table_row *rows;
    uint32_t len, cap;
    bool stale;          /* a node was added or removed */
    uint64_t generation; /* of the indexes; from 1 */
    uint32_t *log;
    uint32_t log_len; /* a power of 2: NODE_TABLE_LOG, in tests also less */
    uint64_t logged;  /* entries so far; entry k is at log[k % log_len] */
};

void node_table_init(struct node_table *t);
void node_table_deinit(struct node_table *t);
/* A node was added or removed. */
void node_table_set_stale(struct node_table *t);
/* Call before reading: brings rows and indexes up to date. */
void node_table_refresh(struct node_table *t, const struct map *nodes);
/* Rebuilds the node's row and logs the change. object: the Node object itself changed. */
void node_table_touch(struct node_table *t, struct cluster_node *cn, bool object);
/* Whether a reader at that generation and entry can catch up from the log. */
static inline bool node_table_can_follow(const struct node_table *t, uint64_t generation,
                                         uint64_t seen)
{
    return generation == t->generation && t->logged - seen <= t->log_len;
}
/* The next entry after *seen; false: no more. Skips entries superseded by a later one of the same
 * node. */
static inline bool node_table_next(const struct node_table *t, uint64_t *seen, uint32_t *place,
                                   bool *object)
{
    while (*seen < t->logged) {
        uint32_t entry = t->log[*seen & (t->log_len - 1)];
        uint64_t number = (*seen)++;
        *object = (entry & NODE_TABLE_OBJECT) != 0;
        *place = entry & ~NODE_TABLE_OBJECT;
        if (*object || t->rows[*place].changed == number)
            return true;
    }
    return false;
}
