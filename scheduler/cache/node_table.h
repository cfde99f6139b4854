// SPDX-License-Identifier: Apache-2.0
/*
 * node_table - the nodes in one array, by name, and a log of their changes. Pure.
 *
 * A decision must not visit every node. So verdicts about nodes are cached (equivalence.h), and the
 * log says which are stale: each entry is the index ("place") of a changed node. A reader keeps the
 * number of the last entry seen; the log is a ring, and a reader that fell too far behind visits
 * all nodes again. The same holds when a node comes or goes: indexes move, and the table has a new
 * generation.
 *
 * The index is the rank by name, so "ties by name" is "the lower index", whatever the order of
 * arrival (I4).
 *
 * A row is one cache line with what nearly every pod needs: what is free.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/map.h"

struct cluster_node;

enum {
    NODE_TABLE_LOG = 1 << 16, /* entries of the log */
    NODE_TABLE_NOWHERE = -1,  /* the index of a node that is not in the table */
};
/* In a log entry: the Node object changed, not only what the node holds. */
#define NODE_TABLE_OBJECT (UINT32_C(1) << 31)
/* Of a row without a log entry. */
#define NODE_TABLE_UNCHANGED UINT64_MAX

struct node_table_row {
    int64_t free_cpu_milli; /* none of these is below 0 */
    int64_t free_memory_bytes;
    int64_t free_ephemeral_bytes;
    int64_t cpu_milli; /* allocatable */
    int64_t memory_bytes;
    struct cluster_node *node;
    uint64_t changed;    /* number of the last log entry about this node, or NODE_TABLE_UNCHANGED */
    int32_t free_pods;   /* 0 also with an unreadable pod: the free capacity is unknown */
    uint32_t pods : 30;  /* allocatable */
    uint32_t cards : 1;  /* it has cards */
    uint32_t closer : 1; /* free amounts do not suffice: nominations or rejections apply */
};

struct node_table {
    struct node_table_row *rows;
    uint32_t len, cap;
    bool stale;          /* a node came or went */
    uint64_t generation; /* of the indexes; from 1 */
    uint32_t *log;
    uint32_t log_len; /* a power of 2: NODE_TABLE_LOG, in tests also less */
    uint64_t logged;  /* entries so far; entry k is at log[k % log_len] */
};

void node_table_init(struct node_table *t);
void node_table_deinit(struct node_table *t);
/* A node came or went. */
void node_table_set_stale(struct node_table *t);
/* Call before reading: brings rows and indexes up to date. */
void node_table_refresh(struct node_table *t, const struct map *nodes);
/* Rebuilds the node's row and logs the change. object: the Node object itself changed. */
void node_table_touch(struct node_table *t, struct cluster_node *cn, bool object);
/* Whether a reader of that generation that has seen so many entries can catch up from the log. */
static inline bool node_table_can_follow(const struct node_table *t, uint64_t generation,
                                         uint64_t seen)
{
    return generation == t->generation && t->logged - seen <= t->log_len;
}
/* The next entry for a reader that has seen *seen entries, or false at the end. Skips entries
 * superseded by a later one of the same node. */
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
