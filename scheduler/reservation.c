// SPDX-License-Identifier: Apache-2.0
#include "scheduler/reservation.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "scheduler/classes.h"
#include "scheduler/cycle.h"
#include "scheduler/dump_parts.h"
#include "scheduler/gangs.h"
#include "scheduler/reservation_plan.h"

enum { NS_PER_MS = 1000000, MS_PER_MINUTE = 60000 };

/* Gangs that are placed as one; by key. */
struct together {
    struct gang *const *gangs;
    size_t len;
};

/* false: one of them lacks pods. */
static bool find_together(const struct cluster *c, struct gang *g, struct arena *a,
                          struct together *out)
{
    const char *why;
    if (!gangs_has_quorum(c, g, a, &why))
        return false;
    struct gang **all;
    out->len = gangs_bundle(c, g, a, &all);
    out->gangs = all;
    return true;
}

/* ---- one reservation ---- */

/* How many keep room there, and with it every answer about the node, is another one now. */
static void touch(struct cluster *c, const char *node, int by)
{
    struct cluster_node *cn = cluster_find_node(c, node);
    if (cn == NULL)
        return; /* counted when it comes: cluster_nodes.c */
    cn->reserved = by > 0 ? cn->reserved + 1 : by < 0 ? cn->reserved - 1 : cn->reserved;
    table_touch(&c->table, cn, false);
}

static void touch_nodes(struct cluster *c, const struct reservation *r, int by)
{
    const char *name;
    void *value;
    for (size_t i = 0; map_next(&r->nodes, &i, &name, &value);)
        touch(c, name, by);
}

/* What is kept for them is not kept from them: members are of a class of their own while it is. */
static void set_verdict(struct gang *g, enum reservation_verdict verdict)
{
    for (size_t i = 0; i < g->members.len; i++)
        g->members.items[i]->class_serial = 0;
    g->reservation = verdict;
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
    char until[DUMP_PARTS_TIME_SIZE];
    AUTO_STRBUF b = {0};
    dump_parts_time_text(r->until_ms / 1000 * 1000 * NS_PER_MS, until);
    strbuf_addf(&b, "%s%s until %s", r->gang->key, r->gangs.len > 1 ? " and its group" : "", until);
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

/* By priority, highest first: who says no is the same whatever came first. */
static void put_in(struct reservations *all, struct reservation *r)
{
    size_t i = all->items.len;
    vec_push(&all->items, r);
    for (; i > 0 && all->items.items[i - 1]->priority < r->priority; i--)
        all->items.items[i] = all->items.items[i - 1];
    all->items.items[i] = r;
}

static int32_t least_priority(struct gang *const *gangs, size_t len)
{
    int32_t least = INT32_MAX;
    for (size_t i = 0; i < len; i++)
        least = (int32_t)num_min(least, gangs[i]->priority);
    return least;
}

static void keep(struct cluster *c, struct gang *g, const struct together *t,
                 const struct reservation_plan *plan, int64_t now_ms, int64_t until_ms)
{
    struct reservation *r = mem_new(struct reservation, 1);
    *r = (struct reservation){.gang = g,
                              .priority = least_priority(t->gangs, t->len),
                              .made_ms = now_ms,
                              .start_ms = plan->start_ms,
                              .until_ms = until_ms};
    for (size_t i = 0; i < t->len; i++) {
        vec_push(&r->gangs, t->gangs[i]);
        t->gangs[i]->kept = r;
        set_verdict(t->gangs[i], RESERVATION_KEPT);
    }
    map_init(&r->nodes);
    r->what = words_of(r);
    for (size_t i = 0; i < plan->len; i++)
        add_place(r, &plan->places[i]);
    put_in(&c->reservations, r);
    touch_nodes(c, r, 1);
}

void reservation_restore(struct cluster *c, struct gang *g, struct gang *const *gangs, size_t len,
                         const struct reservation_plan *plan, int64_t made_ms, int64_t until_ms)
{
    keep(c, g, &(struct together){.gangs = gangs, .len = len}, plan, made_ms, until_ms);
}

const struct reservation *reservation_of(const struct cluster *c, const struct gang *g)
{
    (void)c;
    return g->kept;
}

/* Returns the events. */
static uint32_t drop(struct cluster *c, struct reservation *r)
{
    struct reservations *all = &c->reservations;
    size_t i = 0;
    while (all->items.items[i] != r)
        i++;
    for (; i + 1 < all->items.len; i++)
        all->items.items[i] = all->items.items[i + 1];
    all->items.len--;
    for (size_t k = 0; k < r->gangs.len; k++) {
        r->gangs.items[k]->kept = NULL;
        set_verdict(r->gangs.items[k], RESERVATION_NONE);
    }
    touch_nodes(c, r, -1);
    reservation_free(r);
    return EVENT_NODE_ROOM;
}

/* ---- who waits ---- */

static uint32_t stop_aging(struct cluster *c, struct gang *g)
{
    struct reservations *all = &c->reservations;
    for (size_t i = 0; g->aging_since_ms != 0 && i < all->aging.len; i++)
        if (all->aging.items[i] == g) {
            vec_remove_swap(&all->aging, i);
            g->aging_since_ms = 0;
        }
    g->look_again_ms = 0;
    if (g->kept != NULL)
        return drop(c, g->kept);
    if (g->reservation != RESERVATION_NONE)
        set_verdict(g, RESERVATION_NONE);
    return 0;
}

uint32_t reservation_ends(struct cluster *c, struct gang *g)
{
    return stop_aging(c, g);
}

/* Room is what it lacks, not pods, nor anything of its own that no room can mend (then no event is awaited). */
static bool lacks_room(const struct gang *g, const struct cycle_result *r)
{
    return r->verdict == CYCLE_NO_ROOM && r->wakes != 0 && !gangs_is_lone(g) &&
           gangs_count_missing(g) > 0;
}

static void start_aging(struct cluster *c, struct gang *g, int64_t since_ms)
{
    if (g->aging_since_ms == 0)
        vec_push(&c->reservations.aging, g);
    g->aging_since_ms = num_max(since_ms, 1);
}

void reservation_restore_age(struct cluster *c, struct gang *g, int64_t since_ms, int32_t lapses)
{
    g->lapses = lapses;
    if (since_ms > 0)
        start_aging(c, g, since_ms);
}

/* Whether somebody found no room for it before: whoever led then, or this scheduler before the gang was placed in vain. */
static bool was_refused(const struct gang *g)
{
    for (size_t i = 0; i < g->members.len; i++) {
        const struct cluster_pod *cp = g->members.items[i];
        if (cluster_pod_is_schedulable(cp) && str_eq(cp->pod->scheduled.status, "False") &&
            str_eq(cp->pod->scheduled.reason, "Unschedulable"))
            return true;
    }
    return false;
}

/* One that had room kept in vain is the youngest, whatever happens to it meanwhile. */
static int64_t waits_since_ms(const struct gang *g, int64_t now_ms)
{
    int64_t since_ms = g->lapses == 0 && was_refused(g) ? gangs_quorum_since_ns(g) / NS_PER_MS : 0;
    return since_ms > 0 ? num_min(since_ms, now_ms) : now_ms;
}

uint32_t reservation_follow(struct cluster *c, struct gang *g, const struct cycle_result *r,
                            int64_t now_ms)
{
    if (!lacks_room(g, r)) {
        if (r->verdict == CYCLE_PLACED || r->verdict == CYCLE_PARTLY)
            g->lapses = 0;
        return stop_aging(c, g);
    }
    if (g->aging_since_ms == 0 && c->reservations.options.after_ms > 0)
        start_aging(c, g, waits_since_ms(g, now_ms));
    return 0;
}

/* ---- a look ---- */

static void set_clock(struct cluster *c, int64_t now_ms)
{
    struct reservations *all = &c->reservations;
    int64_t end_ms = now_ms - now_ms % RESERVATION_STEP_MS + RESERVATION_STEP_MS;
    if (all->clock_ms == end_ms)
        return;
    all->clock_ms = end_ms;
    for (size_t i = 0; i < all->items.len; i++)
        touch_nodes(c, all->items.items[i], 0);
}

/* They had their time: the others come first now. */
static void lapse(struct cluster *c, struct reservation *r, int64_t now_ms,
                  struct reservation_news *news)
{
    for (size_t i = 0; i < r->gangs.len; i++) {
        struct gang *g = r->gangs.items[i];
        if (g->aging_since_ms != 0)
            g->aging_since_ms = num_max(now_ms, 1);
        g->lapses += g->lapses < INT32_MAX;
    }
    news->events |= drop(c, r);
    news->lapsed++;
}

/* Whether the gangs are still those that are placed as one, all of them with their quorum of pods. */
static bool same_gangs(const struct reservation *r, const struct together *t)
{
    if (t->len != r->gangs.len || least_priority(t->gangs, t->len) != r->priority)
        return false;
    for (size_t i = 0; i < t->len; i++)
        if (t->gangs[i] != r->gangs.items[i])
            return false;
    return true;
}

/* Whether the members and nodes are still those of the plan: all wait, on nodes that take them when they are empty. */
static bool still_holds(struct cluster *c, const struct reservation *r, struct arena *a)
{
    const char *name;
    void *value;
    int32_t members = 0, missing = 0;
    struct together t;
    if (!find_together(c, r->gang, a, &t) || !same_gangs(r, &t))
        return false;
    for (size_t i = 0; map_next(&r->nodes, &i, &name, &value);) {
        const struct reservation_node *at = value;
        for (size_t k = 0; k < at->members.len; k++, members++) {
            struct cluster_pod *cp = cluster_find_pod(c, at->members.items[k]);
            if (cp == NULL || cp->gang == NULL || cp->gang->kept != r ||
                !cluster_pod_is_schedulable(cp))
                return false;
            const struct pod_class *class = classes_ask(c, cp);
            const struct cluster_node *cn = cluster_find_node(c, name);
            if (cn == NULL || cn->place == TABLE_NOWHERE ||
                class->fixed_score[cn->place] == TREE_NO)
                return false;
        }
    }
    for (size_t i = 0; i < r->gangs.len; i++)
        missing += gangs_count_missing(r->gangs.items[i]);
    return members == missing;
}

/* The pods in its way may end sooner than they say, so it is not put off for much longer than room would be kept; nor looked at again and again where everything takes days. */
static int64_t put_off(const struct cluster *c, const struct gang *g, int64_t now_ms,
                       int64_t start_ms)
{
    int64_t for_ms = c->reservations.options.for_ms, age_ms = now_ms - g->aging_since_ms;
    int64_t away_ms = num_min(start_ms - for_ms - now_ms, num_max(for_ms, age_ms / 4));
    return now_ms + num_max(away_ms, RESERVATION_AGAIN_MS);
}

/* What holds for one holds for all that go with it. */
static void set_all(const struct together *t, enum reservation_verdict verdict, int64_t again_ms)
{
    for (size_t i = 0; i < t->len; i++) {
        t->gangs[i]->look_again_ms = again_ms;
        if (t->gangs[i]->reservation != verdict)
            set_verdict(t->gangs[i], verdict);
    }
}

static void try_gang(struct cluster *c, struct gang *g, int64_t now_ms, int64_t until_ms,
                     struct arena *a)
{
    struct together t;
    struct reservation_plan plan;
    int64_t again_ms = now_ms + RESERVATION_AGAIN_MS;
    if (!find_together(c, g, a, &t)) { /* it lacks pods: its next cycle says so */
        g->look_again_ms = again_ms;
        return;
    }
    reservation_plan_make(c, t.gangs, t.len, now_ms, a, &plan);
    if (!plan.fits) {
        set_all(&t, RESERVATION_HOPELESS, again_ms);
    } else if (plan.start_ms > until_ms) {
        set_all(&t, RESERVATION_FAR, put_off(c, g, now_ms, plan.start_ms));
    } else {
        keep(c, g, &t, &plan, now_ms, until_ms);
        set_all(&t, RESERVATION_KEPT, now_ms + RESERVATION_STEP_MS);
    }
}

static void check_kept(struct cluster *c, int64_t now_ms, struct arena *a,
                       struct reservation_news *news)
{
    struct reservations *all = &c->reservations;
    for (size_t i = 0; i < all->items.len;) {
        struct reservation *r = all->items.items[i];
        struct gang *g = r->gang;
        int64_t until_ms = num_min(r->until_ms, now_ms + all->options.for_ms);
        if (until_ms <= now_ms) {
            lapse(c, r, now_ms, news);
            continue; /* another one is at i now */
        }
        if (g->look_again_ms > now_ms || still_holds(c, r, a)) {
            i++;
            continue;
        }
        news->events |= drop(c, r);
        try_gang(c, g, now_ms, until_ms, a);
        return; /* one trial in a look */
    }
}

/* Whether there is one already of the gang's priority, or of the least important of those that go with it. */
static bool has_level(const struct cluster *c, const struct gang *g)
{
    int32_t priority = g->priority;
    for (size_t i = 0; i < g->list.len; i++) {
        const struct gang *other = gangs_find(c, g->list.names[i]);
        priority = other != NULL ? (int32_t)num_min(priority, other->priority) : priority;
    }
    for (size_t i = 0; i < c->reservations.items.len; i++)
        if (c->reservations.items.items[i]->priority == priority)
            return true;
    return false;
}

static bool goes_before(const struct gang *a, const struct gang *b)
{
    if (a->priority != b->priority)
        return a->priority > b->priority;
    if (a->aging_since_ms != b->aging_since_ms)
        return a->aging_since_ms < b->aging_since_ms;
    return strcmp(a->key, b->key) < 0;
}

/* Room that was kept in vain is kept again only after twice the time, and so on. */
static int64_t age_needed(const struct cluster *c, const struct gang *g)
{
    int64_t age_ms = c->reservations.options.after_ms;
    for (int32_t i = 0; i < g->lapses && i < RESERVATION_DOUBLINGS; i++)
        age_ms = num_add_sat(age_ms, age_ms);
    return age_ms;
}

static struct gang *oldest(const struct cluster *c, int64_t now_ms)
{
    const struct reservations *all = &c->reservations;
    struct gang *first = NULL;
    for (size_t i = 0; i < all->aging.len; i++) {
        struct gang *g = all->aging.items[i];
        if (now_ms - g->aging_since_ms >= age_needed(c, g) && g->look_again_ms <= now_ms &&
            !has_level(c, g) && (first == NULL || goes_before(g, first)))
            first = g;
    }
    return first;
}

int64_t reservation_next(const struct cluster *c)
{
    const struct reservations *all = &c->reservations;
    int64_t next_ms = INT64_MAX;
    for (size_t i = 0; i < all->items.len; i++)
        next_ms = num_min(next_ms, num_min(all->items.items[i]->until_ms, all->clock_ms));
    for (size_t i = 0; i < all->aging.len && all->items.len < RESERVATION_MAX; i++) {
        const struct gang *g = all->aging.items[i];
        if (!has_level(c, g))
            next_ms = num_min(next_ms, num_max(g->look_again_ms,
                                               num_add_sat(g->aging_since_ms, age_needed(c, g))));
    }
    return next_ms < INT64_MAX ? next_ms : -1;
}

struct reservation_news reservation_look(struct cluster *c, int64_t now_ms, struct arena *a)
{
    struct reservation_news news = {0};
    set_clock(c, now_ms);
    check_kept(c, now_ms, a, &news);
    struct gang *g = c->reservations.items.len < RESERVATION_MAX ? oldest(c, now_ms) : NULL;
    if (g != NULL) {
        try_gang(c, g, now_ms, num_add_sat(now_ms, c->reservations.options.for_ms), a);
        news.looked = g;
        news.made = g->reservation == RESERVATION_KEPT;
    }
    return news;
}

/* ---- for others ---- */

const char *reservation_words(const struct cluster *c, const struct gang *g, struct arena *a)
{
    const struct reservation *r = g->kept;
    switch (g->reservation) {
    case RESERVATION_NONE:
        break;
    case RESERVATION_KEPT:
        return arena_printf(a, "room is kept for it%s on %zu node%s%s",
                            r->gangs.len > 1 ? " and its group" : "", map_count(&r->nodes),
                            map_count(&r->nodes) == 1 ? "" : "s", strstr(r->what, " until "));
    case RESERVATION_HOPELESS:
        return "it would not fit if the cluster were empty, so no room is kept for it";
    case RESERVATION_FAR:
        return arena_printf(
            a,
            "the pods in its way are not expected to end within %lld minutes, so no room is kept for it",
            (long long)(c->reservations.options.for_ms / MS_PER_MINUTE));
    }
    return NULL;
}

uint32_t reservation_count(const struct cluster *c, const char *node)
{
    uint32_t n = 0;
    for (size_t i = 0; i < c->reservations.items.len; i++)
        n += map_get(&c->reservations.items.items[i]->nodes, node) != NULL;
    return n;
}

void reservation_deinit(struct cluster *c)
{
    for (size_t i = 0; i < c->reservations.items.len; i++)
        reservation_free(c->reservations.items.items[i]);
    vec_deinit(&c->reservations.items);
    vec_deinit(&c->reservations.aging);
}
