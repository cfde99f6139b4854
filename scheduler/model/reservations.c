// SPDX-License-Identifier: Apache-2.0
#include "scheduler/model/reservations.h"

#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/rfc3339.h"
#include "lib/base/str.h"
#include "scheduler/model/model.h"
#include "scheduler/model/node_table.h"

enum { NS_PER_MS = 1000000 };

void reservations_init(struct cluster *c)
{
    ids_table_init(&c->reservations->waits, sizeof(struct reservation_wait), NULL);
}

const struct reservation_wait *reservations_of(const struct cluster *c, const struct gang *g)
{
    static const struct reservation_wait none;
    const struct reservation_wait *w = ids_find(&c->reservations->waits, g->id);
    return w != NULL ? w : &none;
}

struct reservation_wait *reservations_at(struct cluster *c, const struct gang *g)
{
    return ids_at(&c->reservations->waits, g->id);
}

/* Changes the node's number of reservations, which makes every cached verdict about it stale. */
static void touch(struct cluster *c, const char *node, int by)
{
    struct cluster_node *cn = cluster_find_node(c, node);
    if (cn == NULL)
        return; /* counted when the node arrives: cluster_nodes.c */
    cn->reserved = by > 0 ? cn->reserved + 1 : by < 0 ? cn->reserved - 1 : cn->reserved;
    node_table_touch(c->table, cn, false);
}

static void count_on_nodes(struct cluster *c, const struct reservation *r, int by)
{
    const char *name;
    void *value;
    for (size_t i = 0; map_next(&r->nodes, &i, &name, &value);)
        touch(c, name, by);
}

void reservations_set_verdict(struct cluster *c, struct gang *g, enum reservation_verdict verdict)
{
    for (size_t i = 0; i < g->members.len; i++)
        g->members.items[i]->version++;
    reservations_at(c, g)->verdict = verdict;
}

void reservations_touch_nodes(struct cluster *c, const struct reservation *r)
{
    count_on_nodes(c, r, 0);
}

static void place_free(struct reservation_node *at)
{
    for (size_t i = 0; i < at->members.len; i++)
        free(at->members.items[i]);
    vec_deinit(&at->members);
    free(at->name);
    free(at);
}

static void reservation_free(struct reservation *r)
{
    const char *name;
    void *value;
    for (size_t i = 0; map_next(&r->nodes, &i, &name, &value);)
        place_free(value);
    map_deinit(&r->nodes);
    vec_deinit(&r->gangs);
    free(r->what);
    free(r);
}

static char *words_of(const struct reservation *r)
{
    char until[RFC3339_SIZE];
    AUTO_STRBUF b = {0};
    rfc3339_text(r->start_ms / 1000 * 1000 * NS_PER_MS, until);
    strbuf_addf(&b, "%s%s until it starts, about %s", r->gang->key,
                r->gangs.len > 1 ? " and its group" : "", until);
    return strbuf_take(&b);
}

static void add_place(struct reservation *r, const struct reservation_place *p)
{
    struct reservation_node *at = map_get(&r->nodes, p->node->name);
    if (at == NULL) {
        at = mem_new(struct reservation_node, 1);
        at->name = mem_strdup(p->node->name);
        map_put(&r->nodes, at->name, at);
    }
    vec_push(&at->members, mem_strdup(p->member->pod->key));
}

/* Sorted by priority, highest first, so which one refuses a pod does not depend on arrival. */
static void put_in(struct reservations *all, struct reservation *r)
{
    size_t i = all->items.len;
    vec_push(&all->items, r);
    for (; i > 0 && all->items.items[i - 1]->priority < r->priority; i--)
        all->items.items[i] = all->items.items[i - 1];
    all->items.items[i] = r;
}

int32_t reservations_priority(struct gang *const *gangs, size_t len)
{
    int32_t least = INT32_MAX;
    for (size_t i = 0; i < len; i++)
        least = (int32_t)num_min(least, gangs[i]->priority);
    return least;
}

void reservations_keep(struct cluster *c, struct gang *g, struct gang *const *gangs, size_t len,
                       const struct reservation_place *places, size_t places_len,
                       const struct reservation_term *term)
{
    struct reservation *r = mem_new(struct reservation, 1);
    *r = (struct reservation){.gang = g,
                              .priority = reservations_priority(gangs, len),
                              .made_ms = term->made_ms,
                              .planned_ms = term->planned_ms,
                              .start_ms = term->start_ms,
                              .until_ms = term->until_ms,
                              .to_go = SIZE_MAX,
                              .departures = c->reservations->departures,
                              .seen = c->table->logged};
    for (size_t i = 0; i < len; i++) {
        vec_push(&r->gangs, gangs[i]);
        reservations_at(c, gangs[i])->kept = r;
        reservations_set_verdict(c, gangs[i], RESERVATION_KEPT);
    }
    map_init(&r->nodes);
    r->what = words_of(r);
    for (size_t i = 0; i < places_len; i++)
        add_place(r, &places[i]);
    put_in(c->reservations, r);
    count_on_nodes(c, r, 1);
}

void reservations_set_now(struct cluster *c, int64_t now_ms)
{
    struct reservations *all = c->reservations;
    int64_t end_ms = now_ms - now_ms % RESERVATIONS_STEP_MS + RESERVATIONS_STEP_MS;
    all->now_ms = now_ms;
    if (all->clock_ms == end_ms)
        return;
    all->clock_ms = end_ms;
    for (size_t i = 0; i < all->items.len; i++)
        reservations_touch_nodes(c, all->items.items[i]);
}

uint32_t reservations_drop(struct cluster *c, struct reservation *r)
{
    struct reservations *all = c->reservations;
    size_t i = 0;
    while (all->items.items[i] != r)
        i++;
    for (; i + 1 < all->items.len; i++)
        all->items.items[i] = all->items.items[i + 1];
    all->items.len--;
    for (size_t k = 0; k < r->gangs.len; k++) {
        reservations_at(c, r->gangs.items[k])->kept = NULL;
        reservations_set_verdict(c, r->gangs.items[k], RESERVATION_NONE);
    }
    count_on_nodes(c, r, -1);
    reservation_free(r);
    return EVENT_NODE_CAPACITY;
}

uint32_t reservations_end(struct cluster *c, struct gang *g)
{
    struct reservations *all = c->reservations;
    struct reservation_wait *w = ids_find(&all->waits, g->id);
    if (w == NULL)
        return 0;
    for (size_t i = 0; w->since_ms != 0 && i < all->aging.len; i++)
        if (all->aging.items[i] == g) {
            vec_remove_swap(&all->aging, i);
            w->since_ms = 0;
        }
    w->look_again_ms = 0;
    if (w->kept != NULL)
        return reservations_drop(c, w->kept);
    if (w->verdict != RESERVATION_NONE)
        reservations_set_verdict(c, g, RESERVATION_NONE);
    return 0;
}

void reservations_start_aging(struct cluster *c, struct gang *g, int64_t since_ms)
{
    struct reservation_wait *w = reservations_at(c, g);
    if (w->since_ms == 0)
        vec_push(&c->reservations->aging, g);
    w->since_ms = num_max(since_ms, 1);
}

uint32_t reservations_count(const struct cluster *c, const char *node)
{
    uint32_t n = 0;
    for (size_t i = 0; i < c->reservations->items.len; i++)
        n += map_get(&c->reservations->items.items[i]->nodes, node) != NULL;
    return n;
}

void reservations_deinit(struct cluster *c)
{
    for (size_t i = 0; i < c->reservations->items.len; i++)
        reservation_free(c->reservations->items.items[i]);
    vec_deinit(&c->reservations->items);
    vec_deinit(&c->reservations->aging);
    ids_table_deinit(&c->reservations->waits);
    run_times_deinit(&c->reservations->run_times);
}
