// SPDX-License-Identifier: Apache-2.0
/*
 * On one node: pods that are leaving anyway count as gone. If that is not enough, all pods of lower
 * priority are evicted on trial. If the pod fits then, they are restored one by one as long as it
 * still fits: first those whose eviction would violate a disruption budget; within each group the
 * more important first (higher priority, then longer running). Those that cannot be restored are
 * the victims.
 *
 * Nodes are compared by: no victims needed (pods are leaving already); fewest budget violations;
 * lowest priority of the most important victim; least sum of priorities; fewest victims; the
 * earlier unit of the pod's policy, or real before virtual; the latest start of the most important
 * victims; search order.
 *
 * A gang that would fall below its quorum by losing a victim is useless without it: all of it is
 * evicted, on every node, and counts in the cost. Of equally important pods on a node those of such
 * a gang are restored first.
 *
 * The search starts at a node derived from the pod's uid, so that it does not always disturb the
 * same nodes, and ends after PREEMPT_CANDIDATES suitable nodes.
 *
 * Most pods ask for nothing but amounts. For them the trial is arithmetic (struct trial, plain) and
 * moves no pod, so a decision among thousands of nodes takes microseconds. For all others the pods
 * are evicted in a plan, the plugins are asked, and the plan is rolled back.
 */
#include "scheduler/cycle/preempt.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/pdb.h"
#include "scheduler/cache/virtual_use.h"
#include "scheduler/cycle/node_victims.h"
#include "scheduler/framework/equivalence.h"
#include "scheduler/model/nominations.h"

struct trial {
    const struct pipeline *ask;
    struct plan *plan;
    struct cluster_pod *pod;
    struct cluster_node *node;
    struct arena *arena;
    bool plain;
    uint32_t wakes; /* of the plugins that refuse it without the evicted pods */
    /* Plain, of what the pod asks for: what nominated pods take before it, and the evicted pods'
     * share less that. */
    struct resource_vector claimed, without;
};

struct lower {
    const struct node_victim *entry;
    bool violates; /* its eviction violates a budget */
    bool evicted;
    uint32_t step; /* of the plan */
};

struct cost {
    int64_t violations;
    int64_t highest; /* priority of the most important victim */
    int64_t sum;     /* of priorities, offset by INT32_MIN */
    int64_t victims;
    int32_t rank;       /* of the unit, or real before virtual */
    int64_t started_ns; /* the earliest of the most important victims */
};

struct budget {
    const struct pdb *pdb;
    int64_t left; /* net of evictions already planned */
    int64_t allowed;
};

/* State shared by all nodes. */
struct search {
    struct trial trial;
    bool plain;    /* only amounts decide where the pod fits */
    int32_t below; /* only pods of lower priority may go */
    struct budget *budgets;
    size_t budgets_len;
    struct VEC(struct lower) lowers;
    struct VEC(const struct node_victim *) leaving;
    struct VEC(struct cluster_pod *) broken; /* elsewhere: useless without the victims */
};

bool preempt_awaits(const struct cluster *c, const struct cluster_pod *pod)
{
    const struct cluster_node *on =
        pod->nominated != NULL ? cluster_find_node(c, pod->nominated) : NULL;
    for (size_t i = 0; on != NULL && i < on->pods.len; i++) {
        const struct cluster_pod *other = on->pods.items[i];
        if (node_victims_is_leaving(other) && other->pod->priority < pod->pod->priority)
            return true;
    }
    return false;
}

/* Sums over pods of one node whose own sum did not overflow: see try_node. */
static void add(int64_t *to, int64_t value, int sign)
{
    *to = sign > 0 ? num_add_sat(*to, value) : num_sub_sat(*to, value);
}

static void tally(struct resource_vector *without, const struct node_victim *e, int sign)
{
    add(&without->cpu_milli, e->cpu_milli, sign);
    add(&without->memory_bytes, e->memory_bytes, sign);
    add(&without->ephemeral_bytes, e->ephemeral_bytes, sign);
    without->pods += sign;
    for (uint32_t i = 0; i < without->extra_len; i++) {
        int64_t value = 0;
        (void)resource_vector_get(&e->pod->request, without->extra[i].id, &value);
        add(&without->extra[i].value, value, sign);
    }
}

/* Returns the step of the plan, if not plain. */
static uint32_t evict(struct trial *t, const struct node_victim *e)
{
    if (!t->plain)
        return (uint32_t)plan_evict(t->plan, e->pod);
    tally(&t->without, e, 1);
    return 0;
}

static void clear(struct resource_vector *v)
{
    *v = (struct resource_vector){.extra = v->extra, .extra_len = v->extra_len};
    for (uint32_t i = 0; i < v->extra_len; i++)
        v->extra[i].value = 0;
}

/* Sums what pods nominated to the node take before this one. false: that is no sum. */
static bool claim(struct trial *t)
{
    struct resource_vector *claimed = &t->claimed;
    const struct cluster_pod *other;
    int64_t most = 0;
    clear(claimed);
    for (size_t i = 0; (other = nominations_next(t->pod, t->node, &i)) != NULL;) {
        const struct resource_vector *r = &other->request;
        add(&claimed->cpu_milli, r->cpu_milli, 1);
        add(&claimed->memory_bytes, r->memory_bytes, 1);
        add(&claimed->ephemeral_bytes, r->ephemeral_bytes, 1);
        claimed->pods++;
        for (uint32_t k = 0; k < claimed->extra_len; k++) {
            int64_t value = 0;
            (void)resource_vector_get(r, claimed->extra[k].id, &value);
            add(&claimed->extra[k].value, value, 1);
            most = num_max(most, claimed->extra[k].value);
        }
    }
    most = num_max(num_max(most, claimed->cpu_milli),
                   num_max(claimed->memory_bytes, claimed->ephemeral_bytes));
    return most < INT64_MAX;
}

/* Before the first eviction. */
static void begin_without(struct trial *t)
{
    struct resource_vector *without = &t->without;
    const struct resource_vector *claimed = &t->claimed;
    without->cpu_milli = -claimed->cpu_milli;
    without->memory_bytes = -claimed->memory_bytes;
    without->ephemeral_bytes = -claimed->ephemeral_bytes;
    without->pods = -claimed->pods;
    for (uint32_t i = 0; i < without->extra_len; i++)
        without->extra[i].value = -claimed->extra[i].value;
}

static bool fits(struct trial *t)
{
    if (t->plain)
        return resource_vector_fits(&t->pod->request, &t->node->allocatable, &t->node->used,
                                    &t->without);
    struct plugin_ask ask = pipeline_ask(t->ask, t->pod);
    const struct plugin *no = plugin_refusing(&ask, t->node, t->arena, NULL);
    t->wakes |= no != NULL ? no->wakes : 0;
    return no == NULL;
}

/* A trial in the plan would rebuild the list while we iterate, so that needs a copy. */
static const struct node_victims *list_for(struct search *s)
{
    const struct node_victims *l = node_victims_of(s->trial.ask, s->trial.node);
    if (s->trial.plain)
        return l;
    struct node_victims *copy =
        arena_alloc(s->trial.arena, sizeof *l + l->len * sizeof l->items[0]);
    memcpy(copy, l, sizeof *l + l->len * sizeof l->items[0]);
    return copy;
}

static void gather(struct search *s)
{
    const struct node_victims *l = list_for(s);
    s->lowers.len = s->leaving.len = 0;
    for (size_t i = 0; i < l->len; i++) {
        const struct node_victim *e = &l->items[i];
        if (e->leaving) {
            vec_push(&s->leaving, e);
        } else if (e->priority < s->below) {
            struct lower lower = {.entry = e};
            vec_push(&s->lowers, lower);
        }
    }
}

/* Charges the pod to its budgets; returns whether that violates one. */
static bool draw(struct search *s, const struct pod *p)
{
    bool breaks = false;
    for (size_t i = 0; i < s->budgets_len; i++)
        if (pdb_covers(s->budgets[i].pdb, p->ns, p->name, &p->labels))
            breaks |= --s->budgets[i].allowed < 0;
    return breaks;
}

static void refill(struct search *s)
{
    for (size_t i = 0; i < s->budgets_len; i++)
        s->budgets[i].allowed = s->budgets[i].left;
}

/* Pods are charged in order of importance, so the last ones violate the budget. */
static void judge_budgets(struct search *s)
{
    refill(s);
    for (size_t k = 0; k < s->lowers.len; k++)
        s->lowers.items[k].violates = draw(s, s->lowers.items[k].entry->pod->pod);
}

static bool stands(const struct cluster_pod *cp)
{
    return cp->state == CLUSTER_FINISHED || (cp->on != NULL && !node_victims_is_leaving(cp));
}

/* Members that run or have finished, excluding those that a trial has evicted. */
static int64_t count_standing(const struct gang *g)
{
    int64_t n = 0;
    for (size_t i = 0; i < g->members.len; i++)
        n += stands(g->members.items[i]);
    return n;
}

static const struct gang *gang_of(const struct lower *l)
{
    const struct gang *g = l->entry->pod->gang;
    return g != NULL && g->form != GANG_NONE ? g : NULL;
}

/* Sorts first, among equally important pods, those their gang needs for its quorum. Called while
 * all are evicted. */
static void prefer_whole_gangs(struct search *s)
{
    size_t end = 0;
    for (size_t from = 0; from < s->lowers.len; from = end) {
        size_t to = from;
        for (end = from; end < s->lowers.len; end++) {
            struct lower l = s->lowers.items[end];
            const struct gang *g = gang_of(&l);
            if (l.entry->priority != s->lowers.items[from].entry->priority)
                break;
            if (g == NULL)
                continue;
            int64_t standing = count_standing(g);
            for (size_t i = 0; !s->trial.plain && i < s->lowers.len; i++)
                standing += gang_of(&s->lowers.items[i]) == g;
            if (standing > g->min_available)
                continue;
            memmove(&s->lowers.items[to + 1], &s->lowers.items[to],
                    (end - to) * sizeof s->lowers.items[0]);
            s->lowers.items[to++] = l;
        }
    }
}

/* After the trial. Members that are not less important than the pod stay; cosched does not place
 * such a gang. */
static void add_rest_of(struct search *s, const struct gang *g)
{
    int64_t standing = count_standing(g), lost = 0;
    for (size_t i = 0; i < s->lowers.len; i++)
        lost += s->lowers.items[i].evicted && gang_of(&s->lowers.items[i]) == g;
    if (standing - lost >= g->min_available)
        return;
    for (size_t i = 0; i < g->members.len; i++) {
        struct cluster_pod *cp = g->members.items[i];
        bool chosen = false;
        for (size_t k = 0; k < s->lowers.len && !chosen; k++)
            chosen = s->lowers.items[k].evicted && s->lowers.items[k].entry->pod == cp;
        if (!chosen && !cp->stays && cp->on != NULL && stands(cp) && cp->pod->priority < s->below)
            vec_push(&s->broken, cp);
    }
}

static int by_key(const void *a, const void *b)
{
    struct cluster_pod *const *x = a, *const *y = b;
    return strcmp((*x)->pod->key, (*y)->pod->key);
}

static void find_broken(struct search *s)
{
    s->broken.len = 0;
    for (size_t i = 0; i < s->lowers.len; i++) {
        const struct gang *g = gang_of(&s->lowers.items[i]);
        bool first = g != NULL && s->lowers.items[i].evicted;
        for (size_t k = 0; k < i && first; k++)
            first = !s->lowers.items[k].evicted || gang_of(&s->lowers.items[k]) != g;
        if (first)
            add_rest_of(s, g);
    }
    if (s->broken.len > 1)
        qsort(s->broken.items, s->broken.len, sizeof s->broken.items[0], by_key);
}

static int64_t count_broken_budgets(struct search *s)
{
    int64_t n = 0;
    refill(s);
    for (size_t i = 0; i < s->lowers.len; i++)
        if (s->lowers.items[i].evicted)
            (void)draw(s, s->lowers.items[i].entry->pod->pod);
    for (size_t i = 0; i < s->broken.len; i++)
        n += draw(s, s->broken.items[i]->pod);
    return n;
}

static void add_cost(struct cost *cost, int32_t priority, int64_t started_ns)
{
    cost->victims++;
    cost->sum += (int64_t)priority - INT32_MIN;
    if (priority > cost->highest)
        cost->started_ns = started_ns;
    else if (priority == cost->highest)
        cost->started_ns = num_min(cost->started_ns, started_ns);
    cost->highest = num_max(cost->highest, priority);
}

static struct cost cost_of(struct search *s)
{
    struct cost cost = {.highest = INT64_MIN,
                        .rank = virtual_use_rank(s->trial.pod, s->trial.node),
                        .started_ns = INT64_MAX};
    for (size_t i = 0; i < s->lowers.len; i++) {
        const struct lower *l = &s->lowers.items[i];
        if (!l->evicted)
            continue;
        cost.violations += l->violates;
        add_cost(&cost, l->entry->priority, l->entry->started_ns);
    }
    find_broken(s);
    cost.violations += s->broken.len > 0 ? count_broken_budgets(s) : 0;
    for (size_t i = 0; i < s->broken.len; i++) {
        const struct pod *p = s->broken.items[i]->pod;
        add_cost(&cost, p->priority, node_victims_began_ns(p));
    }
    return cost;
}

static bool is_cheaper(const struct cost *a, const struct cost *b)
{
    if ((a->victims == 0) != (b->victims == 0))
        return a->victims == 0;
    if (a->violations != b->violations)
        return a->violations < b->violations;
    if (a->highest != b->highest)
        return a->highest < b->highest;
    if (a->sum != b->sum)
        return a->sum < b->sum;
    if (a->victims != b->victims)
        return a->victims < b->victims;
    if (a->rank != b->rank)
        return a->rank < b->rank;
    return a->started_ns > b->started_ns;
}

static void bring_back_those(struct search *s, bool violating)
{
    struct trial *t = &s->trial;
    for (size_t i = 0; i < s->lowers.len; i++) {
        struct lower *l = &s->lowers.items[i];
        if (l->violates != violating)
            continue;
        if (t->plain)
            tally(&t->without, l->entry, -1);
        else
            plan_restore(t->plan, l->step);
        l->evicted = !fits(t);
        if (l->evicted)
            l->step = evict(t, l->entry);
    }
}

static void bring_back(struct search *s)
{
    prefer_whole_gangs(s);
    if (s->budgets_len > 0) {
        judge_budgets(s);
        bring_back_those(s, true);
    }
    bring_back_those(s, false);
}

/* Whether the pod fits without the pods marked `evicted`. The trial is over on return. */
static bool try_node(struct search *s, struct cluster_node *node)
{
    struct trial *t = &s->trial;
    size_t mark = plan_mark(t->plan);
    t->node = node;
    t->plain = s->plain && !node->used.saturated && node->rejections == 0 && node->reserved == 0 &&
               claim(t);
    gather(s);
    if (s->lowers.len + s->leaving.len == 0)
        return false;
    begin_without(t);
    for (size_t i = 0; i < s->leaving.len; i++)
        (void)evict(t, s->leaving.items[i]);
    bool ok = s->leaving.len > 0 && fits(t);
    if (!ok) {
        for (size_t i = 0; i < s->lowers.len; i++) {
            s->lowers.items[i].step = evict(t, s->lowers.items[i].entry);
            s->lowers.items[i].evicted = true;
        }
        ok = s->lowers.len > 0 && fits(t);
        if (ok)
            bring_back(s);
    }
    plan_rollback(t->plan, mark);
    return ok;
}

static bool is_plain(const struct pod_class *class)
{
    for (size_t i = 0; class->held[i] != NULL; i++)
        if (class->held[i]->filter != NULL && !class->held[i]->amounts_only)
            return false;
    return class->domains == NULL;
}

static void keep(const struct search *s, const struct cost *cost, struct preempt_choice *out)
{
    out->node = s->trial.node;
    out->violations = cost->violations;
    out->victims_len = 0;
    if (cost->victims == 0)
        return;
    out->victims = arena_new(s->trial.arena, struct cluster_pod *, (size_t)cost->victims);
    for (size_t i = s->lowers.len; i-- > 0;)
        if (s->lowers.items[i].evicted)
            out->victims[out->victims_len++] = s->lowers.items[i].entry->pod;
    for (size_t i = 0; i < s->broken.len; i++)
        out->victims[out->victims_len++] = s->broken.items[i];
}

static void read_budgets(struct search *s, const struct preempt_scope *scope)
{
    const struct map *all = &s->trial.ask->cluster->objects->by_key[API_OBJECTS_BUDGETS];
    const char *key;
    void *value;
    s->budgets = arena_new(s->trial.arena, struct budget, map_count(all));
    for (size_t i = 0; map_next(all, &i, &key, &value);)
        s->budgets[s->budgets_len++].pdb = value;
    for (size_t i = 0; i < s->budgets_len; i++)
        s->budgets[i].allowed = s->budgets[i].pdb->disruptions_allowed;
    for (size_t i = 0; i < scope->plan->steps.len; i++) {
        const struct plan_step *step = &scope->plan->steps.items[i];
        if (step->kind == PLAN_EVICTED && !node_victims_is_leaving(step->pod))
            (void)draw(s, step->pod->pod);
    }
    for (size_t i = 0; i < s->budgets_len; i++)
        s->budgets[i].left = s->budgets[i].allowed;
}

/* For what the pod asks for. */
static void begin_sums(struct resource_vector *v, const struct cluster_pod *pod, struct arena *a)
{
    v->extra_len = pod->request.extra_len;
    v->extra = arena_new(a, struct resource_vector_extra, v->extra_len);
    for (uint32_t i = 0; i < v->extra_len; i++)
        v->extra[i].id = pod->request.extra[i].id;
}

/* Returns the pod's class. */
static struct pod_class *begin(struct search *s, const struct pipeline *ask,
                               struct cluster_pod *pod, const struct preempt_scope *scope,
                               struct arena *a)
{
    struct pod_class *class = equivalence_ask(ask, pod);
    *s = (struct search){.trial = {.ask = ask, .plan = scope->plan, .pod = pod, .arena = a},
                         .plain = is_plain(class),
                         .below = scope->below};
    begin_sums(&s->trial.without, pod, a);
    begin_sums(&s->trial.claimed, pod, a);
    read_budgets(s, scope);
    return class;
}

/* The k-th place of the search, or the first later one that was not tried in vain: returns its k;
 * len: there is no more. */
static uint32_t skip_vain(const struct pod_class *class, uint32_t first, uint32_t k, uint32_t len,
                          uint32_t *place)
{
    uint32_t tail = len - first; /* the search wraps there */
    if (class != NULL && k < tail)
        k = equivalence_next(class, first + k, len) - first;
    if (class != NULL && k >= tail)
        k = tail + equivalence_next(class, k - tail, first);
    *place = k < tail ? first + k : k - tail;
    return k;
}

void preempt_choose_more(const struct pipeline *ask, struct cluster_pod *pod,
                         const struct preempt_scope *scope, struct arena *a,
                         struct preempt_choice *out)
{
    struct search s;
    struct cost best = {0};
    bool skipped = false, in_vain = false;
    *out = (struct preempt_choice){0};
    struct pod_class *class = begin(&s, ask, pod, scope, a);
    uint32_t len = ask->cluster->table->len, candidates = 0, place = 0;
    bool lasting = s.plain && scope->below == pod->pod->priority; /* what was in vain stays so */
    uint32_t first = len > 0 ? (uint32_t)(str_hash(pod->pod->uid, strlen(pod->pod->uid)) % len) : 0;
    for (uint32_t k = 0; candidates < scope->candidates; k++) {
        uint32_t next = skip_vain(lasting ? class : NULL, first, k, len, &place);
        in_vain |= next != k;
        k = next;
        if (k >= len)
            break;
        if (!s.plain)
            class = equivalence_ask(ask, pod); /* a trial may have rebuilt it */
        if (class->fixed_score[place] == SCORE_TREE_NO) {
            skipped = true;
            continue; /* evictions do not change the Node itself */
        }
        if (scope->hopeless != NULL && scope->hopeless[place])
            continue;
        out->tried++;
        if (!try_node(&s, ask->cluster->table->rows[place].node)) {
            if (lasting && s.trial.plain)
                equivalence_note_vain(class, len, place);
            if (scope->hopeless != NULL)
                scope->hopeless[place] = true;
            continue;
        }
        candidates++;
        struct cost cost = cost_of(&s);
        if (out->node == NULL || is_cheaper(&cost, &best)) {
            best = cost;
            keep(&s, &cost, out);
            if (cost.victims == 0)
                break;
        }
    }
    out->wakes = s.trial.wakes | EVENT_POD_LEAVING;
    class = equivalence_ask(ask, pod);
    for (size_t i = 0; skipped && class->fixed[i] != NULL; i++)
        out->wakes |= class->fixed[i]->wakes;
    for (size_t i = 0; in_vain && class->held[i] != NULL; i++)
        out->wakes |= class->held[i]->wakes;
    vec_deinit(&s.lowers);
    vec_deinit(&s.leaving);
    vec_deinit(&s.broken);
}

void preempt_choose(const struct pipeline *ask, struct cluster_pod *pod, struct arena *a,
                    struct preempt_choice *out)
{
    struct plan plan;
    struct preempt_scope alone = {
        .plan = &plan, .below = pod->pod->priority, .candidates = PREEMPT_CANDIDATES};
    plan_begin(&plan, ask->cluster);
    preempt_choose_more(ask, pod, &alone, a, out);
    plan_end(&plan);
}
