// SPDX-License-Identifier: Apache-2.0
/*
 * replay_run - in the running scheduler, what was placed comes back by the watch and may wake others (a pod that wants to be near it). Here nothing comes back; instead
 * everything that waits is tried again, its backoff over, until a whole round places nothing. Then those go that somebody waits for: whom this run sent away, and who was on his way
 * out already, on a node that is promised to a more important pod; and CPUs on loan that were called back are given back, as the node agents would. Their room is taken in the next round. So the result is where the scheduler would come to rest, if no controller made
 * the pods that were sent away again.
 */
#include "scheduler/replay/replay_run.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/kube/decode.h"
#include "lib/model/names.h"
#include "scheduler/dump/dump.h"
#include "scheduler/cycle/loans.h"
#include "scheduler/cache/nominations.h"
#include "scheduler/cycle/plan.h"
#include "scheduler/cycle/reservation.h"

static void gang_changed(void *arg, struct gang *g)
{
    struct replay_run *r = arg;
    queue_touch(&r->queue, g, r->now_ms);
}

static void gang_vanishing(void *arg, struct gang *g)
{
    struct replay_run *r = arg;
    queue_drop(&r->queue, g);
}

void replay_run_init(struct replay_run *r, struct cluster *c)
{
    *r = (struct replay_run){.cluster = c, .preempts = true};
    pipeline_init(&r->pipeline, c);
    queue_init(&r->queue);
    arena_init(&r->arena, 64 * 1024);
    r->hooks = (struct cluster_hooks){
        .gang_changed = gang_changed, .gang_vanishing = gang_vanishing, .arg = r};
}

void replay_run_deinit(struct replay_run *r)
{
    pipeline_deinit(&r->pipeline);
    queue_deinit(&r->queue);
    arena_deinit(&r->arena);
    vec_deinit(&r->placed);
    for (size_t i = 0; i < r->away.len; i++) {
        free(r->away.items[i].pod);
        free(r->away.items[i].uid);
        free(r->away.items[i].node);
        free(r->away.items[i].for_pod);
    }
    vec_deinit(&r->away);
    for (size_t i = 0; i < r->loans.len; i++) {
        free(r->loans.items[i].pod);
        free(r->loans.items[i].uid);
        free(r->loans.items[i].node);
        free(r->loans.items[i].for_pod);
    }
    vec_deinit(&r->loans);
}

/* ---- CPUs on loan ---- */

static void note_recalls(struct replay_run *r, const struct cycle_result *result)
{
    for (size_t i = 0; i < result->recalls_len; i++) {
        struct cluster_pod *cp = result->recalls[i].pod;
        const char *for_pod = result->nominations[0].pod->pod->key;
        for (size_t k = 0; k < result->nominations_len; k++)
            if (result->nominations[k].node == cp->on)
                for_pod = result->nominations[k].pod->pod->key;
        struct replay_run_loan loan = {.pod = mem_strdup(cp->pod->key),
                                       .uid = mem_strdup(str_or_empty(cp->pod->uid)),
                                       .node = mem_strdup(cp->on->name),
                                       .for_pod = mem_strdup(for_pod),
                                       .cpus = result->recalls[i].cpus};
        vec_push(&r->loans, loan);
        cluster_claim_call_back(cp, &result->recalls[i].cpus);
    }
}

/* The pod comes again with both annotations as the scheduler and the node agent would have written them. */
static bool give_back(struct replay_run *r, const struct replay_run_loan *loan)
{
    struct cluster_pod *cp = cluster_find_pod(r->cluster, loan->pod);
    AUTO_STRBUF dumped = {0}, text = {0};
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    struct cpuclaim left;
    struct pod *p = NULL;
    if (cp == NULL || !str_eq(cp->pod->uid, loan->uid))
        return false;
    dump_one_pod(cp, &dumped);
    loans_left(cp, &r->arena, &left);
    cpuclaim_encode(&left, cp->pod, &text);
    if (json_parse(&doc, strbuf_str(&dumped), dumped.len, &err) < 0 ||
        decode_pod(json_root(doc), &p, &err) < 0)
        return false; /* it was read from such a text before */
    for (size_t i = 0; i < p->annotations.len; i++)
        if (str_eq(p->annotations.items[i].key, NAME_ANN_CPUSET) ||
            str_eq(p->annotations.items[i].key, NAME_ANN_CPUSET_APPLIED))
            p->annotations.items[i].value = arena_strdup(&p->arena, strbuf_str(&text));
    (void)cluster_put_pod(r->cluster, p, &r->hooks);
    return true;
}

static bool give_all_back(struct replay_run *r)
{
    bool any = false;
    for (; r->given_back < r->loans.len; r->given_back++)
        any |= give_back(r, &r->loans.items[r->given_back]);
    return any;
}

/* ---- pods that go ---- */

static void note_away(struct replay_run *r, const struct cluster_pod *cp, const char *for_pod)
{
    for (size_t i = 0; i < r->away.len; i++)
        if (str_eq(r->away.items[i].pod, cp->pod->key) &&
            str_eq(r->away.items[i].uid, cp->pod->uid))
            return;
    struct replay_run_away away = {.pod = mem_strdup(cp->pod->key),
                                   .uid = mem_strdup(str_or_empty(cp->pod->uid)),
                                   .node = mem_strdup(cp->on->name),
                                   .for_pod = mem_strdup(for_pod)};
    vec_push(&r->away, away);
}

static void make_room(struct replay_run *r, struct gang *g, const struct cycle_result *result)
{
    note_recalls(r, result);
    if (!r->preempts && result->recalls_len == 0)
        return;
    if (result->nominations_len > 0 && result->awaits && r->makes_room != NULL)
        r->makes_room(r->arg, g, result);
    for (size_t i = 0; i < result->nominations_len; i++) {
        const struct cycle_nomination *n = &result->nominations[i];
        (void)nominations_set(r->cluster, n->pod, n->node != NULL ? n->node->name : NULL);
    }
    for (size_t i = 0; i < result->victims_len; i++) {
        note_away(r, result->victims[i].pod, result->victims[i].for_pod->pod->key);
        cluster_send_away(r->cluster, result->victims[i].pod, true);
    }
}

static int by_away(const void *a, const void *b)
{
    const struct replay_run_away *x = a, *y = b;
    return strcmp(x->pod, y->pod);
}

/* Those that were leaving before anybody asked them to, and for whose room somebody waits. */
static void note_leaving(struct replay_run *r)
{
    const struct cluster *c = r->cluster;
    size_t before = r->away.len;
    for (size_t i = 0; i < c->nominated.len; i++) {
        const struct cluster_pod *cp = c->nominated.items[i];
        const struct cluster_node *on = cluster_find_node(c, cp->nominated);
        for (size_t k = 0; on != NULL && k < on->pods.len; k++) {
            const struct cluster_pod *other = on->pods.items[k];
            if (cp->state == CLUSTER_PENDING && cp->gang != NULL && other->pod->terminating &&
                other->pod->priority < cp->pod->priority)
                note_away(r, other, cp->pod->key);
        }
    }
    if (r->away.len > before) /* a node has its pods in no order */
        qsort(&r->away.items[before], r->away.len - before, sizeof r->away.items[0], by_away);
}

static void forget_placed(struct replay_run *r, const struct cluster_pod *cp)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->placed.len; i++)
        if (r->placed.items[i] != cp)
            r->placed.items[kept++] = r->placed.items[i];
    r->placed.len = kept;
}

/* true: somebody went. */
static bool let_go(struct replay_run *r)
{
    size_t before = r->gone;
    if (r->preempts)
        note_leaving(r);
    for (; r->gone < r->away.len; r->gone++) {
        const struct replay_run_away *away = &r->away.items[r->gone];
        struct cluster_pod *cp = cluster_find_pod(r->cluster, away->pod);
        if (cp == NULL)
            continue;
        forget_placed(r, cp);
        (void)cluster_remove_pod(r->cluster, away->pod, NULL, &r->hooks);
    }
    bool given = give_all_back(r);
    return given || r->gone > before;
}

/* ---- pods that wait ---- */

static void note_why(struct gang *g, const struct cycle_result *result)
{
    free(g->why.sentence);
    g->why = (struct gang_why){.sentence = mem_strdup(result->sentence),
                               .class = result->class,
                               .for_gang = result->verdict == CYCLE_WAITING,
                               .due_ms = -1};
}

/* As the scheduler does it, at the time of the dump. Who is woken by it is tried again anyway. */
static void follow(struct replay_run *r, struct gang *g, struct cycle_result *result)
{
    (void)reservation_follow(r->cluster, g, result, r->cluster->reservations->clock_ms);
    const char *words = reservation_words(r->cluster, g, &r->arena);
    if (words != NULL && result->sentence != NULL)
        result->sentence = arena_printf(&r->arena, "%s; %s", result->sentence, words);
}

/* true: something was placed. */
static bool try_gang(struct replay_run *r, struct gang *g)
{
    struct plan plan;
    struct cycle_result result;
    arena_reset(&r->arena);
    plan_begin(&plan, r->cluster);
    slots_lend(r->cluster, g);
    cycle_run(&r->pipeline, g, &plan, &r->arena, &result);
    slots_settle(r->cluster, g);
    r->cycles++;
    size_t placed = plan.committed ? plan.steps.len : 0;
    for (size_t i = 0; i < placed; i++)
        vec_push(&r->placed, plan.steps.items[i].pod);
    plan_end(&plan);
    follow(r, g, &result);
    switch (result.verdict) {
    case CYCLE_PLACED:
    case CYCLE_NOTHING:
        queue_succeeded(&r->queue, g);
        break;
    case CYCLE_WAITING:
        queue_wait(&r->queue, g, result.wakes);
        note_why(g, &result);
        make_room(r, g, &result);
        break;
    case CYCLE_PARTLY:
    case CYCLE_NO_ROOM:
        queue_park(&r->queue, g, result.wakes, r->now_ms);
        note_why(g, &result);
        make_room(r, g, &result);
        break;
    }
    if (placed > 0 && r->after != NULL)
        r->after(r->arg, g);
    return placed > 0;
}

void replay_run_all(struct replay_run *r)
{
    for (bool any = true; any;) {
        struct gang *g;
        any = false;
        while ((g = queue_pop(&r->queue, r->now_ms)) != NULL)
            any |= try_gang(r, g);
        r->now_ms += QUEUE_BACKOFF_MAX_MS;
        any = any || let_go(r);
        if (any)
            (void)queue_wake(&r->queue, EVENT_ALL, r->now_ms);
    }
}

static int by_key(const void *a, const void *b)
{
    struct cluster_pod *const *x = a, *const *y = b;
    return strcmp((*x)->pod->key, (*y)->pod->key);
}

void replay_run_waiting(const struct replay_run *r, struct replay_run_list *out)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&r->cluster->pods, &i, &key, &value);) {
        struct cluster_pod *cp = value;
        if (cp->state == CLUSTER_PENDING && cp->gang != NULL && !cp->pod->terminating)
            vec_push(out, cp);
    }
    if (out->len > 0)
        qsort(out->items, out->len, sizeof *out->items, by_key);
}

const char *replay_run_why(const struct cluster_pod *cp)
{
    if (cp->pod->gated)
        return "has scheduling gates (spec.schedulingGates)";
    return cp->gang->why.sentence != NULL ? cp->gang->why.sentence : "was not tried";
}
