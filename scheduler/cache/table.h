// SPDX-License-Identifier: Apache-2.0
/*
 * table - the nodes in one array, by name, and a log of which of them changed. Pure.
 *
 * A decision must not look at every node. So everything that was found out about nodes (classes.h) is kept, and the log says what has to be found out again: each entry is
 * the place of one node of which something changed. Who reads the log keeps the number of the last entry seen; the log is a ring, and who fell too far behind
 * looks at all nodes again. So it is when a node comes or goes: places move, and the table has a new generation.
 *
 * The place is the rank by name: "ties by name" is "the lower place", whatever the order in which nodes were met (I4).
 *
 * A row is one cache line with what nearly every pod asks for, in the form in which it is asked: what is free.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/map.h"

struct cluster_node;

enum {
    TABLE_LOG = 1 << 16, /* entries of the log */
    TABLE_NOWHERE = -1,  /* the place of a node that is not in the table */
};
/* In a log entry: the Node object changed, not only what is held there. */
#define TABLE_OBJECT (UINT32_C(1) << 31)
/* Of a row about which there is no log entry yet. */
#define TABLE_UNCHANGED UINT64_MAX

struct table_row {
    int64_t free_cpu_milli; /* none of these is below 0 */
    int64_t free_memory_bytes;
    int64_t free_ephemeral_bytes;
    int64_t cpu_milli; /* allocatable */
    int64_t memory_bytes;
    struct cluster_node *node;
    uint64_t changed;    /* number of the last log entry about this node, or TABLE_UNCHANGED */
    int32_t free_pods;   /* 0 also where a pod cannot be read: nobody knows what is free */
    uint32_t pods : 30;  /* allocatable */
    uint32_t cards : 1;  /* it has some */
    uint32_t closer : 1; /* what is free is not all: others wait for it, or the kubelet lacked it */
};

struct table {
    struct table_row *rows;
    uint32_t len, cap;
    bool stale;          /* a node came or went */
    uint64_t generation; /* of the places; from 1 */
    uint32_t *log;
    uint32_t log_len; /* a power of 2: TABLE_LOG, in tests also less */
    uint64_t logged;  /* entries so far; entry k is at log[k % log_len] */
};

void table_init(struct table *t);
void table_deinit(struct table *t);
/* A node came or went. */
void table_set_stale(struct table *t);
/* Before reading: rows and places are right after this. */
void table_refresh(struct table *t, const struct map *nodes);
/* The node's row is made anew and the change logged. object: the Node object itself changed. */
void table_touch(struct table *t, struct cluster_node *cn, bool object);
/* Whether a reader of that generation, that has seen so many entries, finds the rest in the log. */
static inline bool table_can_follow(const struct table *t, uint64_t generation, uint64_t seen)
{
    return generation == t->generation && t->logged - seen <= t->log_len;
}
/* The next entry for a reader that has seen *seen entries, or false at the end. Entries that a later one of the same node makes needless are passed over. */
static inline bool table_next(const struct table *t, uint64_t *seen, uint32_t *place, bool *object)
{
    while (*seen < t->logged) {
        uint32_t entry = t->log[*seen & (t->log_len - 1)];
        uint64_t number = (*seen)++;
        *object = (entry & TABLE_OBJECT) != 0;
        *place = entry & ~TABLE_OBJECT;
        if (*object || t->rows[*place].changed == number)
            return true;
    }
    return false;
}
