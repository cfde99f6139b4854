// SPDX-License-Identifier: Apache-2.0
#include "scheduler/model/nominations.h"
#include "scheduler/model/node_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"

static void count(struct cluster *c, const char *node, bool more)
{
    struct cluster_node *cn = cluster_find_node(c, node);
    if (cn == NULL)
        return; /* counted when the node arrives */
    cn->nominated = more ? cn->nominated + 1 : cn->nominated - 1;
    node_table_touch(c->table, cn, false);
}

/* Sorted by name: which cards are left depends on the order, which must not be that of arrival
 * (I4). */
static size_t index_of(const struct cluster *c, const struct cluster_pod *cp)
{
    size_t i = 0;
    while (i < c->nominated.len && strcmp(c->nominated.items[i]->pod->key, cp->pod->key) < 0)
        i++;
    return i;
}

static void put_in(struct cluster *c, struct cluster_pod *cp)
{
    size_t at = index_of(c, cp);
    vec_push(&c->nominated, NULL);
    struct cluster_pod **p = &c->nominated.items[at];
    memmove(p + 1, p, (c->nominated.len - 1 - at) * sizeof *p);
    *p = cp;
}

static void take_out(struct cluster *c, const struct cluster_pod *cp)
{
    size_t at = index_of(c, cp);
    while (at < c->nominated.len && c->nominated.items[at] != cp)
        at++; /* a replacement hold (replacement_hold.h) may have the same name */
    assert(at < c->nominated.len);
    struct cluster_pod **p = &c->nominated.items[at];
    memmove(p, p + 1, (--c->nominated.len - at) * sizeof *p);
}

/* A node that is not there is an event when it comes. */
static uint32_t note_freed(struct cluster *c, const char *node)
{
    struct cluster_node *cn = cluster_find_node(c, node);
    return cn != NULL ? cluster_note_freed(c, cn) : EVENT_POD_GONE;
}

uint32_t nominations_set(struct cluster *c, struct cluster_pod *cp, const char *node)
{
    uint32_t events = 0;
    if (node != NULL && node[0] == '\0')
        node = NULL;
    if (str_eq(cp->nominated, node))
        return 0;
    cp->version++; /* its own nomination does not block it, so it is a class of its own */
    if (cp->nominated != NULL) {
        take_out(c, cp);
        count(c, cp->nominated, false);
        events = note_freed(c, cp->nominated);
        free(cp->nominated);
        cp->nominated = NULL;
    }
    if (node != NULL) {
        cp->nominated = mem_strdup(node);
        put_in(c, cp);
        count(c, node, true);
        events |= EVENT_POD_PLACED; /* a gang may fit in another order */
    }
    return events;
}

/* The pod stays nominated to the node, but its request there may have changed. */
static uint32_t go_on(struct cluster *c, struct cluster_pod *cp, const struct pod *old,
                      const struct resource_vector *held)
{
    if (cp->nominated == NULL || cp->state != CLUSTER_PENDING)
        return 0;
    nominations_touch(c, cp);
    return resource_vector_grew(&cp->request, held) || cp->pod->priority < old->priority
               ? note_freed(c, cp->nominated)
               : 0;
}

uint32_t nominations_follow(struct cluster *c, struct cluster_pod *cp, const struct pod *old,
                            const struct resource_vector *held)
{
    if (cp->state == CLUSTER_BOUND || cp->state == CLUSTER_FINISHED)
        return nominations_set(c, cp, NULL);
    if (old != NULL && str_eq(old->nominated_node, cp->pod->nominated_node))
        return go_on(c, cp, old, held); /* ours stays until the API server has another */
    return nominations_set(c, cp, cp->pod->nominated_node);
}

void nominations_touch(struct cluster *c, const struct cluster_pod *cp)
{
    struct cluster_node *cn = cp->nominated != NULL ? cluster_find_node(c, cp->nominated) : NULL;
    if (cn != NULL)
        node_table_touch(c->table, cn, false);
}

uint32_t nominations_count(const struct cluster *c, const char *node)
{
    uint32_t n = 0;
    for (size_t i = 0; i < c->nominated.len; i++)
        n += str_eq(c->nominated.items[i]->nominated, node);
    return n;
}

const struct cluster_pod *nominations_next(const struct cluster *c, const struct cluster_pod *pod,
                                           const struct cluster_node *node, size_t *i)
{
    while (node->nominated > 0 && *i < c->nominated.len) {
        const struct cluster_pod *other = c->nominated.items[(*i)++];
        bool own = other == pod ||
                   (pod->nominated != NULL && pod->gang != NULL && pod->gang == other->gang);
        if (!own && other->state == CLUSTER_PENDING && other->pod->priority >= pod->pod->priority &&
            str_eq(other->nominated, node->name))
            return other;
    }
    return NULL;
}

void nominations_deinit(struct cluster *c)
{
    for (size_t i = 0; i < c->nominated.len; i++)
        free(c->nominated.items[i]->nominated);
    vec_deinit(&c->nominated);
}
