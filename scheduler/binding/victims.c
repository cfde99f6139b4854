// SPDX-License-Identifier: Apache-2.0
#include "scheduler/binding/victims.h"

#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/metrics.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "scheduler/model/nominations.h"

enum {
    MARGIN_MS = 60000, /* after its deletionTimestamp */
    REMEMBER_MS = 3600000,
    NS_PER_MS = 1000000
};

static struct metric staying = {
    .kind = METRIC_GAUGE,
    .name = "cosched_scheduler_preemption_victims_staying",
    .help = "Pods that could not be evicted or did not go, and are not chosen for a while."};

enum entry_state { LEAVES, STAYS, REMEMBERED };

struct entry {
    struct heap_node node;
    enum entry_state state;
    int64_t due_ms;
    int32_t failures;
    char *pod; /* "ns/name" */
    char uid[];
};

static bool is_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct entry *x = container_of_const(a, struct entry, node),
                       *y = container_of_const(b, struct entry, node);
    return x->due_ms < y->due_ms;
}

void victims_init(struct victims *v, struct loop *loop, struct cluster *c, struct queue *q)
{
    *v = (struct victims){.loop = loop, .cluster = c, .queue = q};
    map_init(&v->by_uid);
    heap_init(&v->due, is_before);
    metrics_register(&staying);
}

static void entry_free(struct entry *e)
{
    free(e->pod);
    free(e);
}

void victims_deinit(struct victims *v)
{
    void *value;
    loop_timer_cancel(v->loop, &v->timer);
    heap_deinit(&v->due);
    for (size_t i = 0; map_next(&v->by_uid, &i, NULL, &value);)
        entry_free(value);
    map_deinit(&v->by_uid);
}

static void fire(void *arg)
{
    struct victims *v = arg;
    victims_follow(v, loop_now_ms(v->loop), clock_wall_ns() / NS_PER_MS);
}

static void set_due(struct victims *v, struct entry *e, enum entry_state state, int64_t due_ms)
{
    heap_remove(&v->due, &e->node);
    e->state = state;
    e->due_ms = due_ms;
    heap_push(&v->due, &e->node);
    const struct entry *first = container_of_const(heap_top(&v->due), struct entry, node);
    loop_timer_set(v->loop, &v->timer, num_max(first->due_ms - loop_now_ms(v->loop), 0), fire, v);
    metrics_set(&staying, NULL, (int64_t)v->cluster->staying.len);
}

static struct entry *entry_of(struct victims *v, const struct pod *p)
{
    struct entry *e = map_get(&v->by_uid, p->uid);
    if (e != NULL)
        return e;
    size_t len = strlen(p->uid) + 1;
    e = mem_array_(1, sizeof *e + len);
    memcpy(e->uid, p->uid, len);
    e->pod = mem_strdup(p->key);
    e->state = REMEMBERED;
    map_put(&v->by_uid, e->uid, e);
    return e;
}

static int64_t grace_ms(const struct pod *p, int64_t wall_ms)
{
    int64_t left_ms = p->leaves_ns > 0 ? num_sub_sat(p->leaves_ns / NS_PER_MS, wall_ms) : 0;
    return num_add_sat(num_max(left_ms, 0), MARGIN_MS);
}

void victims_sent(struct victims *v, const struct cluster_pod *cp)
{
    struct entry *e = entry_of(v, cp->pod);
    if (e->state == REMEMBERED)
        set_due(v, e, LEAVES,
                loop_now_ms(v->loop) + grace_ms(cp->pod, clock_wall_ns() / NS_PER_MS));
}

static bool is_leaving(const struct cluster_pod *cp)
{
    return cp->on != NULL && !cp->stays && (cp->pod->terminating || cp->evicting);
}

void victims_await(struct victims *v, const struct gang *g)
{
    for (size_t i = 0; i < g->members.len; i++) {
        const struct cluster_pod *cp = g->members.items[i];
        const struct cluster_node *on =
            cp->nominated != NULL ? cluster_find_node(v->cluster, cp->nominated) : NULL;
        for (size_t k = 0; on != NULL && k < on->pods.len; k++)
            if (is_leaving(on->pods.items[k]) &&
                on->pods.items[k]->pod->priority < cp->pod->priority)
                victims_sent(v, on->pods.items[k]);
    }
}

static void stay(struct victims *v, struct entry *e, struct cluster_pod *cp, int64_t now_ms)
{
    int64_t delay_ms = VICTIMS_STAY_MS;
    for (int32_t i = 0; i < e->failures && delay_ms < VICTIMS_STAY_MAX_MS; i++)
        delay_ms *= 2;
    e->failures++;
    (void)cluster_set_staying(v->cluster, cp, true);
    set_due(v, e, STAYS, now_ms + num_min(delay_ms, VICTIMS_STAY_MAX_MS));
}

void victims_failed(struct victims *v, struct cluster_pod *cp)
{
    stay(v, entry_of(v, cp->pod), cp, loop_now_ms(v->loop));
}

/* Withdrawing a nomination changes the list. */
static void give_up_on(struct victims *v, const struct cluster_pod *victim)
{
    const struct nominations_node *of = victim->on->nominated;
    size_t n = 0, len = of != NULL ? of->pods.len : 0;
    struct cluster_pod **waiting = mem_new(struct cluster_pod *, len + 1);
    for (size_t i = 0; i < len; i++)
        if (of->pods.items[i]->state == CLUSTER_PENDING && of->pods.items[i]->gang != NULL &&
            of->pods.items[i]->pod->priority > victim->pod->priority)
            waiting[n++] = of->pods.items[i];
    for (size_t i = 0; i < n; i++)
        v->give_up(v->arg, waiting[i]);
    free(waiting);
}

static void forget(struct victims *v, struct entry *e)
{
    map_remove(&v->by_uid, e->uid);
    entry_free(e);
}

static void follow_one(struct victims *v, struct entry *e, int64_t now_ms, int64_t wall_ms)
{
    struct cluster_pod *cp = cluster_find_pod(v->cluster, e->pod);
    bool there = cp != NULL && cp->on != NULL && str_eq(cp->pod->uid, e->uid);
    if (!there || e->state == REMEMBERED) {
        forget(v, e);
    } else if (e->state == STAYS) {
        queue_wake(v->queue, cluster_set_staying(v->cluster, cp, false), now_ms);
        set_due(v, e, REMEMBERED, now_ms + REMEMBER_MS);
        v->changed(v->arg);
    } else if (!is_leaving(cp)) {
        set_due(v, e, REMEMBERED, now_ms + REMEMBER_MS);
    } else if (grace_ms(cp->pod, wall_ms) > MARGIN_MS) {
        set_due(v, e, LEAVES, now_ms + grace_ms(cp->pod, wall_ms));
    } else {
        log_warn("victim does not go", kv("pod", e->pod), kv("node", cp->on->name));
        stay(v, e, cp, now_ms);
        give_up_on(v, cp);
    }
}

void victims_follow(struct victims *v, int64_t now_ms, int64_t wall_ms)
{
    struct heap_node *top;
    while ((top = heap_top(&v->due)) != NULL) {
        struct entry *e = container_of(top, struct entry, node);
        if (e->due_ms > now_ms) {
            loop_timer_set(v->loop, &v->timer, e->due_ms - now_ms, fire, v);
            break;
        }
        (void)heap_pop(&v->due);
        follow_one(v, e, now_ms, wall_ms);
    }
    metrics_set(&staying, NULL, (int64_t)v->cluster->staying.len);
}
