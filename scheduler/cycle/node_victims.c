// SPDX-License-Identifier: Apache-2.0
#include "scheduler/cycle/node_victims.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

bool node_victims_is_leaving(const struct cluster_pod *cp)
{
    return !cp->stays && (cp->pod->terminating || cp->evicting);
}

int64_t node_victims_began_ns(const struct pod *p)
{
    return p->started_ns > 0 ? p->started_ns : INT64_MAX;
}

static int by_importance(const void *a, const void *b)
{
    const struct node_victim *x = a, *y = b;
    if (x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    if (x->started_ns != y->started_ns)
        return x->started_ns < y->started_ns ? -1 : 1;
    return strcmp(x->pod->pod->key, y->pod->pod->key);
}

static struct node_victim victim_of(struct cluster_pod *cp)
{
    return (struct node_victim){.pod = cp,
                                .cpu_milli = cp->request.cpu_milli,
                                .memory_bytes = cp->request.memory_bytes,
                                .ephemeral_bytes = cp->request.ephemeral_bytes,
                                .started_ns = node_victims_began_ns(cp->pod),
                                .priority = cp->pod->priority,
                                .leaving = node_victims_is_leaving(cp)};
}

int node_victims_compare(struct cluster_pod *a, struct cluster_pod *b)
{
    struct node_victim x = victim_of(a), y = victim_of(b);
    return by_importance(&x, &y);
}

static struct node_victims *list_of_size(struct node_victims *old, size_t n)
{
    if (old != NULL && old->cap >= n)
        return old;
    free(old);
    size_t cap = n + n / 2 + 4;
    struct node_victims *l = mem_array_(1, sizeof *l + cap * sizeof l->items[0]);
    l->cap = cap;
    return l;
}

const struct node_victims *node_victims_of(const struct pipeline *ask,
                                           const struct cluster_node *cn)
{
    const struct cluster *c = ask->cluster;
    const struct node_table_row *row = &c->table->rows[cn->place];
    struct node_victims **known = ids_at(ask->node_pods, cn->id), *l = *known;
    if (l != NULL && l->generation == c->table->generation && l->changed == row->changed)
        return l;
    l = *known = list_of_size(l, cn->pods.len);
    l->generation = c->table->generation;
    l->changed = row->changed;
    l->len = 0;
    for (size_t i = 0; i < cn->pods.len; i++) {
        struct cluster_pod *cp = cn->pods.items[i];
        if (!pod_is_mirror(cp->pod) && !cp->stays)
            l->items[l->len++] = victim_of(cp);
    }
    if (l->len > 1)
        qsort(l->items, l->len, sizeof l->items[0], by_importance);
    return l;
}
