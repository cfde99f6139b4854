// SPDX-License-Identifier: Apache-2.0
#include "scheduler/model/nominations.h"
#include "scheduler/model/node_table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"

/* If the node is not there, it is told of its nominations when it comes. */
static void tell(struct cluster *c, const char *node, struct nominations_node *of)
{
    struct cluster_node *cn = cluster_find_node(c, node);
    if (cn == NULL)
        return;
    cn->nominated = of;
    node_table_touch(c->table, cn, false);
}

static size_t index_of(const struct nominations_node *of, const struct cluster_pod *cp)
{
    size_t i = 0;
    while (i < of->pods.len && strcmp(of->pods.items[i]->pod->key, cp->pod->key) < 0)
        i++;
    return i;
}

static void put_in(struct cluster *c, struct cluster_pod *cp)
{
    struct nominations_node *of = map_get(&c->nominated, cp->nominated);
    if (of == NULL) {
        size_t len = strlen(cp->nominated) + 1;
        of = mem_array_(1, sizeof *of + len);
        memcpy(of->name, cp->nominated, len);
        map_put(&c->nominated, of->name, of);
    }
    size_t at = index_of(of, cp);
    vec_push(&of->pods, NULL);
    struct cluster_pod **p = &of->pods.items[at];
    memmove(p + 1, p, (of->pods.len - 1 - at) * sizeof *p);
    *p = cp;
    tell(c, of->name, of);
}

static void free_node(struct nominations_node *of)
{
    vec_deinit(&of->pods);
    free(of);
}

static void take_out(struct cluster *c, const struct cluster_pod *cp)
{
    struct nominations_node *of = map_get(&c->nominated, cp->nominated);
    size_t at = index_of(of, cp);
    while (at < of->pods.len && of->pods.items[at] != cp)
        at++; /* a replacement hold (replacement_hold.h) may have the same name */
    assert(at < of->pods.len);
    struct cluster_pod **p = &of->pods.items[at];
    memmove(p, p + 1, (--of->pods.len - at) * sizeof *p);
    tell(c, of->name, of->pods.len > 0 ? of : NULL);
    if (of->pods.len > 0)
        return;
    map_remove(&c->nominated, of->name);
    free_node(of);
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
    cp->version++; /* a gang with nominations is a class of its own */
    if (cp->nominated != NULL) {
        take_out(c, cp);
        events = note_freed(c, cp->nominated);
        free(cp->nominated);
        cp->nominated = NULL;
    }
    if (node != NULL) {
        cp->nominated = mem_strdup(node);
        put_in(c, cp);
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

struct nominations_node *nominations_of(const struct cluster *c, const char *node)
{
    return map_get(&c->nominated, node);
}

size_t nominations_count(const struct cluster *c)
{
    size_t n = 0;
    void *value;
    for (size_t i = 0; map_next(&c->nominated, &i, NULL, &value);)
        n += ((const struct nominations_node *)value)->pods.len;
    return n;
}

const struct cluster_pod *nominations_next(const struct cluster_pod *pod,
                                           const struct cluster_node *node, size_t *i)
{
    const struct nominations_node *of = node->nominated;
    while (of != NULL && *i < of->pods.len) {
        const struct cluster_pod *other = of->pods.items[(*i)++];
        bool own = other == pod ||
                   (pod->nominated != NULL && pod->gang != NULL && pod->gang == other->gang);
        if (!own && other->state == CLUSTER_PENDING && other->pod->priority >= pod->pod->priority)
            return other;
    }
    return NULL;
}

void nominations_deinit(struct cluster *c)
{
    void *value;
    for (size_t i = 0; map_next(&c->nominated, &i, NULL, &value);) {
        struct nominations_node *of = value;
        for (size_t k = 0; k < of->pods.len; k++)
            free(of->pods.items[k]->nominated);
        free_node(of);
    }
    map_deinit(&c->nominated);
}
