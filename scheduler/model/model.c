// SPDX-License-Identifier: Apache-2.0
#include "scheduler/model/model.h"

#include <string.h>

#include "lib/base/str.h"

struct cluster_node *cluster_find_node(const struct cluster *c, const char *name)
{
    return map_get(&c->nodes, name);
}

struct cluster_pod *cluster_find_pod(const struct cluster *c, const char *key)
{
    return map_get(&c->pods, key);
}

enum { FREED_MAX = 64 };

uint32_t cluster_note_freed(struct cluster *c, struct cluster_node *cn)
{
    for (size_t i = 0; cn != NULL && i < c->freed.len; i++)
        if (c->freed.items[i] == cn)
            return EVENT_POD_GONE;
    if (cn == NULL || c->freed.len == FREED_MAX)
        c->freed_anywhere = true;
    else
        vec_push(&c->freed, cn);
    return EVENT_POD_GONE;
}

bool cluster_labels_equal(const struct labels *a, const struct labels *b)
{
    if (a->len != b->len)
        return false;
    for (size_t i = 0; i < a->len; i++)
        if (!str_eq(a->items[i].key, b->items[i].key) ||
            !str_eq(a->items[i].value, b->items[i].value))
            return false;
    return true;
}

bool cluster_pod_is_schedulable(const struct cluster_pod *cp)
{
    return cp->state == CLUSTER_PENDING && !cp->pod->gated && !cp->pod->terminating;
}
