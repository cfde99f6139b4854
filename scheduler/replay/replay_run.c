// SPDX-License-Identifier: Apache-2.0
/* Runs the scheduler's own attempts (attempt.h) and simulates the rest. All waiting gangs are
 * retried, with their backoff over, until a whole round places nothing. Then pods leave that others
 * wait for: this run's victims, and pods already terminating on the nominated node of a more
 * important pod; and reclaimed CPUs are returned, as by the node agents. The next round uses that
 * capacity. The result is the scheduler's final state if no controller recreates evicted pods. */
#include "scheduler/replay/replay_run.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/dump/dump.h"
#include "scheduler/cycle/cpu_lending.h"
#include "scheduler/model/nominations.h"

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

static void changes_deinit(struct replay_run_changes *list)
{
    for (size_t i = 0; i < list->len; i++) {
        free(list->items[i].pod);
        free(list->items[i].uid);
        free(list->items[i].node);
        free(list->items[i].for_pod);
    }
    vec_deinit(list);
}

static void note(struct replay_run_changes *list, const struct cluster_pod *cp,
                 const struct cpuset *cpus, const char *for_pod)
{
    struct replay_run_change one = {.pod = mem_strdup(cp->pod->key),
                                    .uid = mem_strdup(str_or_empty(cp->pod->uid)),
                                    .node = mem_strdup(cp->on->name),
                                    .for_pod = mem_strdup(for_pod)};
    if (cpus != NULL)
        one.cpus = *cpus;
    vec_push(list, one);
}

void replay_run_deinit(struct replay_run *r)
{
    attempt_deinit(&r->attempt);
    pipeline_deinit(&r->pipeline);
    queue_deinit(&r->queue);
    arena_deinit(&r->arena);
    vec_deinit(&r->placed);
    changes_deinit(&r->away);
    changes_deinit(&r->cpu_lending);
}

static void note_recall(void *arg, const struct cycle_recall *recall,
                        const struct cycle_result *result)
{
    struct replay_run *r = arg;
    const struct cluster_pod *cp = recall->pod;
    const char *for_pod = result->nominations[0].pod->pod->key;
    for (size_t k = 0; k < result->nominations_len; k++)
        if (result->nominations[k].node == cp->on)
            for_pod = result->nominations[k].pod->pod->key;
    note(&r->cpu_lending, cp, &recall->cpus, for_pod);
}

/* Updates the pod with both annotations, as the scheduler and the node agent would write them. */
static bool give_back(struct replay_run *r, const struct replay_run_change *change)
{
    struct cluster_pod *cp = cluster_find_pod(r->cluster, change->pod);
    AUTO_STRBUF text = {0};
    struct cpu_grant left;
    if (cp == NULL || !str_eq(cp->pod->uid, change->uid))
        return false;
    cpu_lending_left(cp, &r->arena, &left);
    cpu_grant_encode(&left, cp->pod, &text);
    struct pod *p = dump_copy_pod(cp);
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
    for (; r->given_back < r->cpu_lending.len; r->given_back++)
        any |= give_back(r, &r->cpu_lending.items[r->given_back]);
    return any;
}

static void note_away(struct replay_run *r, const struct cluster_pod *cp, const char *for_pod)
{
    for (size_t i = 0; i < r->away.len; i++)
        if (str_eq(r->away.items[i].pod, cp->pod->key) &&
            str_eq(r->away.items[i].uid, cp->pod->uid))
            return;
    note(&r->away, cp, NULL, for_pod);
}

static void evict_for(void *arg, struct gang *g, const struct cycle_result *result)
{
    struct replay_run *r = arg;
    if (r->will_evict != NULL)
        r->will_evict(r->arg, g, result);
    for (size_t i = 0; i < result->victims_len; i++)
        note_away(r, result->victims[i].pod, result->victims[i].for_pod->pod->key);
}

static int by_away(const void *a, const void *b)
{
    const struct replay_run_change *x = a, *y = b;
    return strcmp(x->pod, y->pod);
}

static void note_leaving_for(struct replay_run *r, const struct cluster_pod *cp,
                             const struct cluster_node *on)
{
    for (size_t i = 0; i < on->pods.len; i++) {
        const struct cluster_pod *other = on->pods.items[i];
        if (cp->state == CLUSTER_PENDING && cp->gang != NULL && other->pod->terminating &&
            other->pod->priority < cp->pod->priority)
            note_away(r, other, cp->pod->key);
    }
}

/* Pods that were already terminating, and whose capacity another pod waits for. */
static void note_leaving(struct replay_run *r)
{
    const struct cluster *c = r->cluster;
    size_t before = r->away.len;
    void *value;
    for (size_t i = 0; map_next(&c->nominated, &i, NULL, &value);) {
        const struct nominations_node *of = value;
        const struct cluster_node *on = cluster_find_node(c, of->name);
        for (size_t k = 0; on != NULL && k < of->pods.len; k++)
            note_leaving_for(r, of->pods.items[k], on);
    }
    if (r->away.len > before) /* pods are unordered */
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

/* true: at least one pod left. */
static bool let_go(struct replay_run *r)
{
    size_t before = r->gone;
    if (!r->attempt.all_stay)
        note_leaving(r);
    for (; r->gone < r->away.len; r->gone++) {
        const struct replay_run_change *away = &r->away.items[r->gone];
        struct cluster_pod *cp = cluster_find_pod(r->cluster, away->pod);
        if (cp == NULL)
            continue;
        forget_placed(r, cp);
        (void)cluster_remove_pod(r->cluster, away->pod, NULL, &r->hooks);
    }
    bool given = give_all_back(r);
    return given || r->gone > before;
}

static void note_placed(void *arg, struct gang *g, const struct plan *plan,
                        const struct cycle_result *result)
{
    struct replay_run *r = arg;
    (void)g;
    (void)result;
    for (size_t i = 0; i < plan->steps.len; i++)
        vec_push(&r->placed, plan->steps.items[i].pod);
}

void replay_run_init(struct replay_run *r, struct cluster *c)
{
    *r = (struct replay_run){.cluster = c};
    pipeline_init(&r->pipeline, c);
    queue_init(&r->queue, c);
    arena_init(&r->arena, 64 * 1024);
    r->hooks = (struct cluster_hooks){
        .gang_changed = gang_changed, .gang_vanishing = gang_vanishing, .arg = r};
    attempt_init(&r->attempt, &r->pipeline, &r->queue, &r->arena,
                 &(struct attempt_hooks){
                     .bind = note_placed, .evict_for = evict_for, .recall = note_recall, .arg = r});
}

/* At the time of the dump. false: no gang is due. */
static bool try_next(struct replay_run *r, bool *placed)
{
    struct attempt_result tried;
    /* within the dump's step */
    int64_t wall_ms = num_max(r->cluster->reservations->clock_ms - 1, 0);
    struct attempt_time now = {
        .now_ms = r->now_ms, .wall_ms = wall_ms, .wall_ns = r->cluster->policies->now_ns};
    if (!attempt_next(&r->attempt, now, &tried))
        return false;
    r->cycles++;
    *placed |= tried.placed > 0;
    if (tried.placed > 0 && r->after != NULL)
        r->after(r->arg, tried.gang);
    return true;
}

void replay_run_all(struct replay_run *r)
{
    for (bool any = true; any;) {
        any = false;
        while (try_next(r, &any))
            ;
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

const char *replay_run_why(const struct replay_run *r, const struct cluster_pod *cp)
{
    const char *sentence = queue_why(&r->queue, cp->gang)->sentence;
    if (cp->pod->gated)
        return "has scheduling gates (spec.schedulingGates)";
    return sentence != NULL ? sentence : "was not tried";
}
