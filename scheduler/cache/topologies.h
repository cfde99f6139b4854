// SPDX-License-Identifier: Apache-2.0
/*
 * topologies - for each topology key in use: which domain (value of that label) each place of the table is in. Pure.
 *
 * Shared by all classes. Made anew with the table's generation, and when a Node's label says something else than it did.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/map.h"
#include "lib/model/selector.h"
#include "scheduler/cache/table.h"

struct topology {
    char *key;
    uint64_t generation; /* of the table */
    uint64_t version;    /* changes with every rebuild */
    bool stale;
    bool local;         /* each domain is one node: kubernetes.io/hostname, usually */
    int32_t *domain_of; /* by place; -1: the node has no such label */
    uint32_t domains;
    const char **values; /* by domain */
    struct arena arena;  /* of domain_of and values */
};

struct topologies {
    struct map by_key;
    uint64_t versions;
};

void topologies_init(struct topologies *t);
void topologies_deinit(struct topologies *t);
/* Up to date with the table. The pointer stays good; what it points to is made anew in place. */
struct topology *topologies_get(struct topologies *t, const struct table *table, const char *key);
/* A node's labels changed: topologies in which it moves are stale from now on. */
void topologies_labels_changed(struct topologies *t, const struct labels *old,
                               const struct labels *now);
