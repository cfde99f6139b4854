// SPDX-License-Identifier: Apache-2.0
#include "scheduler/cache/replacement_hold.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "scheduler/model/model.h"
#include "scheduler/cache/pods.h"
#include "scheduler/cache/gangs.h"
#include "scheduler/model/nominations.h"
#include "scheduler/cache/progress.h"
#include "scheduler/model/rejections.h"

struct replacement_hold_item {
    char *gang; /* its key */
    char *node;
    struct cluster_pod *ghost; /* the lost member: in no map, and pending */
    int64_t until_ms;          /* 0: not checked yet */
};

void replacement_hold_enable(struct cluster *c, bool enabled)
{
    c->holds->enabled = enabled;
}

bool replacement_hold_wants(const struct cluster *c, const struct cluster_pod *cp)
{
    const struct gang *g = cp->gang;
    if (!c->holds->enabled || g == NULL || gangs_is_lone(g) || cp->on == NULL ||
        cp->on->node == NULL || cp->evicting || rejections_against(c, cp, cp->on) != NULL)
        return false;
    return g->min_available > 0 && gangs_count_placed(g) + cp->pod->terminating >= g->min_available;
}

void replacement_hold_keep(struct cluster *c, struct cluster_pod *cp, const char *gang,
                           const char *node)
{
    struct replacement_hold_item s = {
        .gang = mem_strdup(gang), .node = mem_strdup(node), .ghost = cp};
    cp->state = CLUSTER_PENDING;
    (void)nominations_set(c, cp, node);
    vec_push(&c->holds->items, s);
}

static uint32_t end(struct cluster *c, size_t i)
{
    struct replacement_hold_item s = c->holds->items.items[i];
    uint32_t events = nominations_set(c, s.ghost, NULL);
    pods_free(c, s.ghost);
    free(s.gang);
    free(s.node);
    for (size_t k = i + 1; k < c->holds->items.len; k++) /* keeps the order of creation */
        c->holds->items.items[k - 1] = c->holds->items.items[k];
    c->holds->items.len--;
    return events;
}

/* The first waiting member by name without a nomination, preferably of the lost member's size. */
static struct cluster_pod *taker(const struct gang *g, const struct cluster_pod *ghost)
{
    struct cluster_pod *best = NULL;
    bool best_equal = false;
    for (size_t i = 0; i < g->members.len; i++) {
        struct cluster_pod *cp = g->members.items[i];
        if (!cluster_pod_is_schedulable(cp) || cp->nominated != NULL)
            continue;
        bool equal = resources_equal(&cp->pod->request, &ghost->pod->request);
        if (best == NULL || equal > best_equal ||
            (equal == best_equal && strcmp(cp->pod->key, best->pod->key) < 0)) {
            best = cp;
            best_equal = equal;
        }
    }
    return best;
}

bool replacement_hold_next(const struct cluster *c, const struct gang *g, size_t *i,
                           struct replacement_hold_offer *out)
{
    for (; *i < c->holds->items.len; (*i)++) {
        const struct replacement_hold_item *s = &c->holds->items.items[*i];
        struct cluster_pod *cp = str_eq(s->gang, g->key) ? taker(g, s->ghost) : NULL;
        if (cp == NULL)
            continue;
        *out = (struct replacement_hold_offer){.lost = s->ghost, .member = cp, .node = s->node};
        (*i)++;
        return true;
    }
    return false;
}

uint32_t replacement_hold_end(struct cluster *c, const struct cluster_pod *lost)
{
    size_t i = 0;
    while (c->holds->items.items[i].ghost != lost)
        i++;
    return end(c, i);
}

uint32_t replacement_hold_drop(struct cluster *c, const char *gang)
{
    uint32_t events = 0;
    for (size_t i = 0; i < c->holds->items.len;)
        if (str_eq(c->holds->items.items[i].gang, gang))
            events |= end(c, i);
        else
            i++;
    return events;
}

uint32_t replacement_hold_drop_node(struct cluster *c, const char *node)
{
    uint32_t events = 0;
    for (size_t i = 0; i < c->holds->items.len;)
        if (str_eq(c->holds->items.items[i].node, node))
            events |= end(c, i);
        else
            i++;
    return events;
}

uint32_t replacement_hold_void(struct cluster *c, const char *uid)
{
    for (size_t i = 0; i < c->holds->items.len; i++)
        if (str_eq(c->holds->items.items[i].ghost->pod->uid, uid))
            return end(c, i);
    return 0;
}

uint32_t replacement_hold_expire(struct cluster *c, int64_t now_ms, int64_t *next_ms)
{
    uint32_t events = 0;
    *next_ms = -1;
    for (size_t i = 0; i < c->holds->items.len;) {
        struct replacement_hold_item *s = &c->holds->items.items[i];
        const struct gang *g = map_get(&c->gangs, s->gang);
        if (s->until_ms == 0)
            s->until_ms = now_ms + progress_timeout_ms(g != NULL ? gangs_group_of(c, g) : NULL);
        if (s->until_ms <= now_ms) {
            events |= end(c, i);
            continue;
        }
        *next_ms = *next_ms < 0 || s->until_ms < *next_ms ? s->until_ms : *next_ms;
        i++;
    }
    return events;
}

size_t replacement_hold_count(const struct cluster *c)
{
    return c->holds->items.len;
}

bool replacement_hold_at(const struct cluster *c, size_t i, struct replacement_hold_view *out)
{
    if (i >= c->holds->items.len)
        return false;
    const struct replacement_hold_item *s = &c->holds->items.items[i];
    *out = (struct replacement_hold_view){.gang = s->gang, .node = s->node, .pod = s->ghost->pod};
    return true;
}

void replacement_hold_restore(struct cluster *c, struct pod *p, const char *gang, const char *node)
{
    replacement_hold_keep(c, pods_new(c, p), gang, node);
}

void replacement_hold_deinit(struct cluster *c)
{
    while (c->holds->items.len > 0)
        (void)end(c, c->holds->items.len - 1);
    vec_deinit(&c->holds->items);
}
