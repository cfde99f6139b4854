// SPDX-License-Identifier: Apache-2.0
/*
 * Attempts in the world, and what must hold of each: I1, I2, I3 and I7; the cached class and the
 * scan agree; a parked gang could not be placed.
 */
#include "test/unit/scheduler/world_internal.h"

#include <string.h>

#include "lib/base/str.h"
#include "scheduler/cache/gangs.h"
#include "scheduler/framework/pipeline.h"
#include "test/unit/scheduler/oracle.h"
#include "scheduler/plugins/all.h"

static void within(const struct world *w, const char *what, int64_t asked, int64_t used,
                   int64_t total)
{
    MUST(w, asked == 0 || used <= total, "%s: %lld used of %lld", what, (long long)used,
         (long long)total);
}

/* CPUs pinned to the pod are pinned to no other, and as many as it requests. */
static void check_cpus(const struct world *w, const struct cluster_pod *p)
{
    const struct cpu_accounts *b = &p->on->cpus;
    if (p->cpu == NULL)
        return;
    MUST(w, b->shape != NULL && b->shape->problem == NULL, "%s", p->pod->key);
    struct cpuset owned, lent, all;
    cpu_accounts_split(b->shape, &p->grant.cpus, p->cpu, &owned, &lent);
    MUST(w, cpuset_count(&owned) == p->cpu->cpus, "%s", p->pod->key);
    MUST(w, p->cpu->burst || cpuset_is_empty(&lent), "%s", p->pod->key);
    for (uint32_t i = 0; i < p->cpu->each_len; i++) {
        cpu_grant_of(&p->grant.cpus, i, &all);
        uint32_t n = cpuset_count(&all);
        MUST(w, n == p->cpu->each[i] || (p->cpu->burst && n > p->cpu->each[i]), "%s", p->pod->key);
        MUST(w, cpuset_is_subset(&all, &b->shape->layout.usable), "%s", p->pod->key);
    }
    bool shared = p->cpu->shared; /* then so does everybody on its CPUs */
    for (int cpu = -1; (cpu = cpuset_next(&owned, cpu)) >= 0;)
        MUST(w, shared ? b->keepers[cpu] == 0 : b->owners[cpu] == 1 && b->borrowers[cpu] == 0,
             "%s: CPU %d", p->pod->key, cpu);
    for (int cpu = -1; !shared && (cpu = cpuset_next(&lent, cpu)) >= 0;)
        MUST(w, b->owners[cpu] == 0 && b->borrowers[cpu] == 1, "%s: CPU %d", p->pod->key, cpu);
    uint32_t nodes = 0;
    for (size_t i = 0; i < b->shape->layout.numa_len; i++) {
        struct cpuset here = owned;
        cpuset_intersect(&here, &b->shape->layout.numa[i]);
        nodes += !cpuset_is_empty(&here);
    }
    MUST(w, p->cpu->numa != CPU_REQUEST_SINGLE || nodes == 1, "%s", p->pod->key);
}

/* I1, for what was just promised. */
static void check_promise(const struct world *w, const struct plan_step *step)
{
    const struct cluster_node *n = step->node;
    const struct cluster_pod *p = step->pod;
    MUST(w, p->on == n && n->node != NULL && p->state == CLUSTER_ASSUMED, "%s", p->pod->key);
    MUST(w, !n->node->unschedulable || p->pod->tolerations_len > 0, "%s", p->pod->key);
    within(w, "cpu", p->request.cpu_milli, n->used.cpu_milli, n->allocatable.cpu_milli);
    within(w, "memory", p->request.memory_bytes, n->used.memory_bytes, n->allocatable.memory_bytes);
    within(w, "pods", 1, n->used.pods, n->allocatable.pods);
    for (uint32_t i = 0; i < p->request.extra_len; i++) {
        int64_t used = 0, total = -1;
        (void)resource_vector_get(&n->used, p->request.extra[i].id, &used);
        (void)resource_vector_get(&n->allocatable, p->request.extra[i].id, &total);
        within(w, p->request.extra[i].name, p->request.extra[i].value, used, total);
    }
    check_cpus(w, p);
    world_check_seat(w, p);
    if (!p->gpu.any)
        return;
    struct error err = ERROR_INIT;
    const struct gpu_accounts *l = &n->gpu_accounts;
    MUST(w, l->known && grant_check(&p->grant, p->pod, &l->inventory, &err) == 0, "%s: %s",
         p->pod->key, err.text);
    for (size_t i = 0; i < l->inventory.cards_len; i++) {
        const struct gpu_card *card = &l->inventory.cards[i];
        int64_t mine = grant_card_gib(&p->grant, card->index);
        for (size_t k = 0; k < p->grant.group_len; k++)
            if (p->grant.group[k] == card->index) {
                MUST(w, card->health == GPU_HEALTH_OK, "card %zu", i);
                MUST(w, l->cards[i].whole_holders == 1 && l->cards[i].used_gib == 0, "card %zu", i);
                MUST(w, l->unplaced_cards == 0 && l->unplaced_gib == 0, "card %zu", i);
            }
        if (mine == 0)
            continue;
        MUST(w, card->health == GPU_HEALTH_OK && l->cards[i].whole_holders == 0, "card %zu", i);
        MUST(w, l->unplaced_cards == 0, "card %zu", i);
        within(w, "card GiB", mine, l->cards[i].used_gib + l->unplaced_gib, gpu_card_gib(card));
        /* What other pods hold beyond a card's size (edited grants) is no fault of a share that
         * asks for none of it. */
        int64_t mine_percent = 0;
        for (size_t k = 0; k < p->grant.shares_len; k++)
            if (p->grant.shares[k].card == card->index)
                mine_percent += p->grant.shares[k].percent;
        within(w, "card percent", mine_percent, l->cards[i].used_percent + l->unplaced_percent,
               100);
    }
}

static void tell(struct world *w, const char *text)
{
    w->story = (w->story ^ str_hash(text, strlen(text))) * UINT64_C(1099511628211);
}

static void decided(void *arg, const struct cycle_result *r)
{
    struct world *w = arg;
    bool placed = r->verdict == CYCLE_PLACED || r->verdict == CYCLE_PARTLY;
    w->result = *r;
    if (!placed) {
        MUST(w, cluster_digest(&w->cluster) == w->before, "I2, I3");
        w->refused++;
    }
    if (r->sentence != NULL)
        tell(w, r->sentence);
    MUST(w, (r->sentence != NULL) == (r->verdict != CYCLE_PLACED && r->verdict != CYCLE_NOTHING),
         "I7");
}

static void bound(void *arg, struct gang *g, const struct plan *plan, const struct cycle_result *r)
{
    struct world *w = arg;
    MUST(w, r->verdict == CYCLE_PLACED || r->verdict == CYCLE_PARTLY, "%s", g->key);
    MUST(w, gangs_count_missing(g) == 0, "I2: %s", g->key);
    for (size_t i = 0; i < r->others_len; i++) /* that go with it */
        MUST(w, gangs_count_missing(r->others[i]) == 0, "I2: %s", r->others[i]->key);
    for (size_t i = 0; i < plan->steps.len; i++) {
        check_promise(w, &plan->steps.items[i]);
        tell(w, plan->steps.items[i].pod->pod->key);
        tell(w, plan->steps.items[i].node->name);
        w->placed++;
    }
}

static void evict_for(void *arg, struct gang *g, const struct cycle_result *r)
{
    world_check_preempt(arg, g, r);
}

struct attempt_hooks world_attempt_hooks(struct world *w)
{
    return (struct attempt_hooks){
        .decided = decided, .bind = bound, .evict_for = evict_for, .arg = w};
}

bool world_try(struct world *w)
{
    struct attempt_result tried;
    int64_t wall_ns = world_now_ns(w);
    struct attempt_time now = {
        .now_ms = w->now_ms, .wall_ms = wall_ns / 1000000, .wall_ns = wall_ns};
    w->said = "gang tried";
    w->before = cluster_digest(&w->cluster);
    if (!attempt_next(&w->attempt, now, &tried))
        return false;
    if (w->tells)
        fprintf(stderr, "      %s: %s\n", tried.gang->key,
                w->result.sentence != NULL ? w->result.sentence : "placed");
    MUST(w, (tried.placed > 0) == (tried.verdict == CYCLE_PLACED || tried.verdict == CYCLE_PARTLY),
         "%s", tried.gang->key);
    world_carry_out(w, tried.gang, &w->result); /* lent CPUs are given back: that wakes it */
    return true;
}

/* What the class remembers and what a scan over all nodes finds are the same, in the refusal's
 * words too. */
static void choose(struct world *w, struct cluster_pod *cp, struct pipeline_choice *out)
{
    struct pipeline_choice scanned;
    pipeline_choose(&w->pipeline, cp, &w->arena, out);
    pipeline_scan(&w->pipeline, cp, &w->arena, &scanned);
    MUST(w, out->node == scanned.node, "%s: the class says %s, a scan %s", cp->pod->key,
         out->node != NULL ? out->node->name : "no node",
         scanned.node != NULL ? scanned.node->name : "no node");
    if (out->node != NULL)
        return;
    MUST(w, out->wakes == scanned.wakes, "%s: %x and %x", cp->pod->key, (unsigned)out->wakes,
         (unsigned)scanned.wakes);
    const char *said = reasons_sentence(&out->why, &w->arena);
    const char *found = reasons_sentence(&scanned.why, &w->arena);
    MUST(w, str_eq(said, found), "%s: the class says '%s', a scan '%s'", cp->pod->key, said, found);
}

/* Whatever the filters allow, reserve gives; and what is tried leaves no trace (I3): placed,
 * evicted, and undone in part or as a whole. */
void world_try_and_undo(struct world *w)
{
    const char *key;
    void *value;
    uint64_t before = cluster_digest(&w->cluster);
    struct plan plan;
    w->said = "trial undone";
    arena_reset(&w->arena);
    plan_begin(&plan, &w->cluster);
    for (size_t i = 0; map_next(&w->cluster.pods, &i, &key, &value);) {
        struct cluster_pod *cp = value;
        size_t mark = plan_mark(&plan);
        uint64_t here = cluster_digest(&w->cluster);
        if (cp->on != NULL && world_chance(w, 20)) {
            (void)plan_evict(&plan, cp);
        } else {
            if (!cluster_pod_is_schedulable(cp) || cp->gpu.illegal != NULL ||
                (cp->cpu != NULL && cp->cpu->illegal != NULL) || !world_chance(w, 50))
                continue;
            struct pipeline_choice choice;
            choose(w, cp, &choice);
            if (choice.node == NULL)
                continue;
            plan_place(&plan, cp, choice.node, &choice.grant);
        }
        MUST(w, cluster_digest(&w->cluster) != here, "%s", key);
        if (world_chance(w, 30)) {
            plan_rollback(&plan, mark);
            MUST(w, cluster_digest(&w->cluster) == here, "%s", key);
        }
    }
    plan_end(&plan);
    MUST(w, cluster_digest(&w->cluster) == before, "I3");
}

void world_filter_means_reserve(struct world *w)
{
    const char *key, *name;
    void *value, *node;
    w->said = "filter and reserve compared";
    arena_reset(&w->arena);
    for (size_t i = 0; map_next(&w->cluster.pods, &i, &key, &value);) {
        struct cluster_pod *cp = value;
        if (!cluster_pod_is_schedulable(cp) || cp->gpu.illegal != NULL ||
            (cp->cpu != NULL && cp->cpu->illegal != NULL) || !world_chance(w, 30))
            continue;
        struct plugin_ask ask = pipeline_ask(&w->pipeline, cp);
        for (size_t k = 0; map_next(&w->cluster.nodes, &k, &name, &node);) {
            const struct cluster_node *cn = node;
            if (cn->node != NULL) {
                MUST(w,
                     oracle_spread(&w->cluster, cp->pod, cn) ==
                         plugin_spread.filter(&ask, cn, &w->arena, NULL),
                     "spread of %s on %s", key, name);
                MUST(w,
                     oracle_interpod(&w->cluster, cp->pod, cn) ==
                         plugin_interpod.filter(&ask, cn, &w->arena, NULL),
                     "affinity of %s on %s", key, name);
            }
            for (const struct plugin *const *p = plugin_table; cn->node != NULL && *p; p++) {
                struct reason why = {0};
                struct grant grant = {0};
                bool yes = (*p)->filter == NULL || (*p)->filter(&ask, cn, &w->arena, &why);
                bool quiet = (*p)->filter == NULL || (*p)->filter(&ask, cn, &w->arena, NULL);
                MUST(w, yes == quiet, "%s: %s on %s", (*p)->name, key, name);
                bool given = (*p)->reserve == NULL || (*p)->reserve(&ask, cn, &w->arena, &grant);
                MUST(w, !yes || given, "I3: %s: %s on %s", (*p)->name, key, name);
                MUST(w,
                     !yes || *p != &plugin_gpu ||
                         grant_adds_up(&grant, cp->pod, &cp->gpu, NULL) == 0,
                     "%s on %s", key, name);
            }
        }
    }
}

/* Gangs that are placed as one need only one of them to be tried. */
static bool is_to_be_tried(const struct world *w, const struct queue_entry *e)
{
    bool soon = queue_parked_is_lucky(e);
    for (size_t i = 0; i < e->gang->list.len && !soon; i++) {
        const struct gang *other = gangs_find(&w->cluster, e->gang->list.names[i]);
        const struct queue_entry *o = other != NULL ? ids_find(&w->queue.entries, other->id) : NULL;
        soon = o != NULL &&
               (o->state == GANG_ACTIVE || o->state == GANG_BACKOFF || queue_parked_is_lucky(o));
    }
    return soon;
}

/* What it would be told now is a sentence, and asking leaves the model as it was. */
static void asking_changes_nothing(struct world *w, struct gang *g)
{
    struct cycle_result r;
    uint64_t digest = cluster_digest(&w->cluster);
    attempt_ask(&w->attempt, g, &r);
    MUST(w, digest == cluster_digest(&w->cluster), "asking about %s left a trace", g->key);
    MUST(w, r.verdict == CYCLE_PLACED || r.verdict == CYCLE_NOTHING || r.sentence != NULL,
         "%s waits for nothing", g->key);
}

/* A gang that sleeps must not be able to go, nor to preempt: else an event was missed. One that may
 * go by luck, in another order, is woken later. */
void world_sleepers_cannot_go(struct world *w)
{
    w->said = "sleeping gangs looked at";
    for (size_t i = 0; i < w->queue.parked.items.len; i++) {
        const struct queue_entry *e = w->queue.parked.items.items[i];
        struct gang *g = e->gang;
        const char *why;
        if (e->why.for_gang && gangs_has_waiting(g))
            MUST(w, !gangs_has_quorum(&w->cluster, g, &w->arena, &why),
                 "%s was not told that it has its quorum", g->key);
        asking_changes_nothing(w, g);
        if (is_to_be_tried(w, e))
            continue;
        struct plan plan;
        struct cycle_result r;
        arena_reset(&w->arena);
        plan_begin(&plan, &w->cluster);
        cycle_run(&w->pipeline, g, &plan, &w->arena, &r);
        MUST(w, !plan.committed, "%s sleeps with wake mask %x and fits", g->key, (unsigned)e->wake);
        /* Where no pod is less important, preemption was not tried. */
        MUST(w,
             r.victims_len == 0 || (e->wake & EVENT_POD_LEAVING) == 0 || (e->wake & EVENT_POD_LEFT),
             "%s sleeps with wake mask %x and may preempt", g->key, (unsigned)e->wake);
        plan_end(&plan);
    }
}
