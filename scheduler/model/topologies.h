// SPDX-License-Identifier: Apache-2.0
/* topologies - for each topology key in use, the domain (label value) of each node of the table.
 * Pure. Shared by all classes. Rebuilt with the table's generation, and when a Node's label
 * changes. A key that nobody uses is kept for a while: tenants can invent any number of them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/map.h"
#include "lib/model/selector.h"
#include "scheduler/model/node_table.h"

enum { TOPOLOGIES_IDLE_MAX = 64 }; /* without users, before they are freed */

struct topology {
    char *key;
    size_t users;        /* rules of classes */
    uint64_t generation; /* of the table */
    uint64_t version;    /* changes with every rebuild */
    bool stale;
    bool local;         /* each domain is one node: kubernetes.io/hostname, usually */
    int32_t *domain_of; /* by node index; -1: the node has no such label */
    uint32_t domains;
    const char **values; /* by domain */
    struct arena arena;  /* of domain_of and values */
};

struct topologies {
    struct map by_key;
    uint64_t versions;
    size_t idle; /* without users */
};

void topologies_init(struct topologies *t);
void topologies_deinit(struct topologies *t);
/* Current with the table. The content is rebuilt in place; the pointer stays valid until the next
 * call for another key, and for a user until it drops it. */
struct topology *topologies_get(struct topologies *t, const struct node_table *table,
                                const char *key);
void topologies_use(struct topologies *t, struct topology *one);
void topologies_drop(struct topologies *t, struct topology *one);
/* A node's labels changed: marks the topologies in which its domain changes as stale. */
void topologies_labels_changed(struct topologies *t, const struct labels *old,
                               const struct labels *now);
