// SPDX-License-Identifier: Apache-2.0
/*
 * The order: members that fit on the fewest nodes first; of those the one with the largest dominant
 * share (the largest part of the cluster's total of any resource); then by name. Members that fit
 * nowhere at first come last: either nothing helps, or they have affinity to another member.
 *
 * Greedy placement fails for some gangs that would fit, so several ways are tried, and the first
 * that reaches the quorum is taken:
 *
 *     promised     nominated members go to their nominated nodes (after preemption for them)
 *     as one job   a gpu-topology job on the fewest nodes: placing_job.c
 *     as set       the cluster's own packing; the only way that does not stop early, since it
 *                  reports how many members fit
 *     packed       where it leaves least of the scarcest resource: large pieces stay whole
 *     spread       where it leaves most
 *     backwards    the easiest first: a quorum may not need its hardest members
 *     in a domain  all in one zone, or on one host: placing_domains.c
 *
 * A gang whose pods prefer real nodes (virtual_use.h) is tried in all these ways on real nodes
 * alone, then on virtual nodes alone, then on both; with --gang-burst=whole never on both, with
 * =member on both at once. A gang whose members are all on virtual nodes stays there if it can.
 * Members beyond the quorum go wherever they fit, real nodes first.
 *
 * The other ways stop as soon as a gang cannot reach its quorum. If all members ask for the same
 * amounts and nothing else, it does not matter which goes where: the first attempt decides, and one
 * member's refusal holds for all.
 */
#include "scheduler/cycle/placing.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/num.h"
#include "scheduler/framework/equivalence.h"
#include "scheduler/cache/gangs.h"
#include "scheduler/cycle/placing_domains.h"
#include "scheduler/cycle/placing_job.h"
#include "scheduler/cache/virtual_use.h"

enum {
    SHARE_ONE = 1 << 20,
    PASSES = 4,     /* for chains of affinity between members */
    FILL_PASSES = 2 /* the second for affinity to other members */
};

struct way {
    enum cluster_packing packing;
    bool promised;
    bool backwards;
    bool hurried;
    const struct placing_domain *within;
};

/* The pools in the order in which they are tried. */
struct pools {
    enum cluster_pool of[3];
    size_t len;
};

static int64_t share_of(int64_t want, int64_t total)
{
    int64_t scaled;
    if (want <= 0 || total <= 0)
        return 0;
    if (num_mul(want, SHARE_ONE, &scaled))
        return scaled / total;
    return want / num_max(total / SHARE_ONE, 1);
}

static int64_t dominant_share(const struct resource_vector *want,
                              const struct resource_vector *total)
{
    int64_t share = num_max(share_of(want->cpu_milli, total->cpu_milli),
                            share_of(want->memory_bytes, total->memory_bytes));
    share = num_max(share, share_of(want->ephemeral_bytes, total->ephemeral_bytes));
    for (uint32_t i = 0; i < want->extra_len; i++) {
        int64_t all = 0;
        (void)resource_vector_get(total, want->extra[i].id, &all);
        share = num_max(share, share_of(want->extra[i].value, all));
    }
    return share;
}

static int by_name(const void *a, const void *b)
{
    const struct placing_member *x = a, *y = b;
    return strcmp(x->pod->pod->key, y->pod->pod->key);
}

static int by_hardness(const void *a, const void *b)
{
    const struct placing_member *x = a, *y = b;
    if ((x->nodes == 0) != (y->nodes == 0))
        return x->nodes == 0 ? 1 : -1;
    if (x->nodes != y->nodes)
        return x->nodes < y->nodes ? -1 : 1;
    if (x->share != y->share)
        return x->share > y->share ? -1 : 1;
    return by_name(a, b);
}

/* Whether other members' nodes matter only through the capacity they take. */
static bool is_plain(const struct pod_class *k)
{
    return k->domains == NULL && !k->entangled;
}

static void rate_members(struct placing *p)
{
    struct resource_vector total = {0};
    const struct node_table *t = p->cluster->table;
    for (uint32_t i = 0; i < t->len; i++)
        resource_vector_account(&total, &t->rows[i].node->allocatable, 1);
    uint64_t serial = 0;
    uint32_t nodes = 0;
    for (size_t i = 0; i < p->members_len; i++) {
        struct placing_member *m = &p->members[i];
        const struct pod_class *k = equivalence_ask(&p->ask, m->pod);
        if (k->serial != serial) {
            serial = k->serial;
            nodes = equivalence_count(k);
        }
        m->nodes = nodes;
        m->share = dominant_share(&m->pod->request, &total);
    }
    resource_vector_deinit(&total);
}

static void order(struct placing *p)
{
    if (p->members_len > 1)
        qsort(p->members, p->members_len, sizeof p->members[0], by_name);
    uint64_t serial = 0;
    bool equal = true, plain = true;
    for (size_t i = 0; i < p->members_len; i++) {
        const struct pod_class *k = equivalence_ask(&p->ask, p->members[i].pod);
        equal &= serial == 0 || serial == k->serial;
        plain &= is_plain(k);
        serial = k->serial;
    }
    p->exact = p->members_len < 2 || (equal && plain && !p->promised);
    if (equal)
        return;
    rate_members(p);
    qsort(p->members, p->members_len, sizeof p->members[0], by_hardness);
}

void placing_init(struct placing *p, const struct pipeline *ask, struct plan *plan, struct arena *a,
                  struct gang *const *gangs, size_t len)
{
    size_t most = 0;
    *p = (struct placing){
        .cluster = ask->cluster, .ask = *ask, .plan = plan, .arena = a, .gangs_len = len};
    for (size_t i = 0; i < len; i++)
        most += gangs[i]->members.len;
    p->gangs = arena_new(a, struct placing_gang, len);
    p->members = arena_new(a, struct placing_member, most);
    p->choice = arena_new(a, struct pipeline_choice, 1);
    for (size_t i = 0; i < len; i++) {
        p->gangs[i].gang = gangs[i];
        p->gangs[i].missing = gangs_count_missing(gangs[i]);
        for (size_t k = 0; k < gangs[i]->members.len; k++) {
            struct cluster_pod *cp = gangs[i]->members.items[k];
            if (!cluster_pod_is_schedulable(cp))
                continue;
            p->members[p->members_len++] = (struct placing_member){.pod = cp, .gang = &p->gangs[i]};
            p->promised |= cp->nominated != NULL;
        }
    }
    order(p);
}

void placing_deinit(struct placing *p)
{
    vec_deinit(&p->refused);
}

static void reset(struct placing *p)
{
    p->refused.len = 0;
    for (size_t i = 0; i < p->gangs_len; i++)
        p->gangs[i].placed = p->gangs[i].left = 0;
    for (size_t i = 0; i < p->members_len; i++) {
        p->members[i].placed = p->members[i].hopeless = false;
        p->members[i].gang->left++;
    }
}

static bool has_quorum(const struct placing *p)
{
    for (size_t i = 0; i < p->gangs_len; i++)
        if (p->gangs[i].placed < p->gangs[i].missing)
            return false;
    return true;
}

struct cluster_node *placing_choose(struct placing *p, struct cluster_pod *pod)
{
    p->cost++;
    pipeline_choose(&p->ask, pod, p->arena, p->choice);
    return p->choice->node;
}

uint32_t placing_wakes(const struct placing *p)
{
    uint32_t wakes = 0;
    uint64_t serial = 0;
    for (size_t i = 0; i < p->members_len; i++) {
        const struct pod_class *k = equivalence_ask(&p->ask, p->members[i].pod);
        if (k->serial != serial)
            wakes |= pipeline_wakes(&p->ask, p->members[i].pod);
        serial = k->serial;
    }
    return wakes;
}

static void put(struct placing *p, struct placing_member *m)
{
    plan_place(p->plan, m->pod, p->choice->node, &p->choice->grant);
    m->placed = true;
    m->gang->placed++;
}

static bool choose(struct placing *p, const struct way *w, struct cluster_pod *pod)
{
    struct cluster_node *promised = w->promised && pod->nominated != NULL
                                        ? cluster_find_node(p->cluster, pod->nominated)
                                        : NULL;
    if (promised != NULL && pipeline_try(&p->ask, pod, promised, p->arena, p->choice))
        return true;
    if (w->within == NULL)
        return placing_choose(p, pod) != NULL;
    p->cost++;
    return placing_domains_choose(&p->ask, pod, w->within, p->arena, p->choice);
}

/* Whether its class was refused before. That still holds, since members only take capacity. */
static bool is_refused(struct placing *p, struct cluster_pod *pod)
{
    if (p->refused.len == 0)
        return false;
    uint64_t serial = equivalence_ask(&p->ask, pod)->serial;
    for (size_t i = 0; i < p->refused.len; i++)
        if (p->refused.items[i] == serial)
            return true;
    return false;
}

/* With nominations the refusal is not final: an unneeded nomination frees capacity, so later
 * members may fit where earlier ones did not. */
static void refuse(struct placing *p, struct placing_member *m, bool known)
{
    const struct pod_class *k = known ? NULL : equivalence_ask(&p->ask, m->pod);
    if (k != NULL && (!is_plain(k) || p->promised))
        return;
    if (k != NULL)
        vec_push(&p->refused, k->serial);
    m->hopeless = true;
    m->gang->left--;
}

enum pass { PASS_NOTHING, PASS_PLACED, PASS_HOPELESS };

/* Tries every member once: of gangs below their quorum, or (beyond) of those that have it. */
static enum pass pass(struct placing *p, const struct way *w, bool beyond)
{
    enum pass result = PASS_NOTHING;
    for (size_t i = 0; i < p->members_len; i++) {
        struct placing_member *m = &p->members[w->backwards ? p->members_len - 1 - i : i];
        struct placing_gang *g = m->gang;
        if (m->placed || m->hopeless || (g->placed >= g->missing) != beyond)
            continue;
        bool known = is_refused(p, m->pod);
        if (!known && choose(p, w, m->pod)) {
            put(p, m);
            result = PASS_PLACED;
            continue;
        }
        refuse(p, m, known);
        if (w->hurried && g->left < g->missing && !p->patient)
            return PASS_HOPELESS;
    }
    return result;
}

bool placing_fill(struct placing *p, bool (*make)(void *arg, struct cluster_pod *pod), void *arg)
{
    reset(p);
    for (int pass = 1; pass <= FILL_PASSES && !has_quorum(p); pass++)
        for (size_t i = 0; i < p->members_len; i++) {
            struct placing_member *m = &p->members[i];
            struct placing_gang *g = m->gang;
            if (m->placed || g->placed >= g->missing)
                continue;
            if (placing_choose(p, m->pod) != NULL || (make != NULL && make(arg, m->pod))) {
                put(p, m);
                continue;
            }
            g->left -= pass == FILL_PASSES || equivalence_ask(&p->ask, m->pod)->domains == NULL;
            if (g->left < g->missing)
                return false;
        }
    return has_quorum(p);
}

/* Finds the members without a node and what could help them. Asks once per class, at the end. */
static void explain(struct placing *p)
{
    struct pipeline_choice *choice = p->choice;
    p->stuck = NULL;
    p->wakes = 0;
    p->refused.len = 0;
    for (size_t i = 0; i < p->members_len; i++) {
        struct placing_member *m = &p->members[i];
        if (m->placed || is_refused(p, m->pod) ||
            (m->gang->placed >= m->gang->missing && !has_quorum(p)))
            continue;
        bool known = p->members_len == 1;                  /* the last query was for it */
        if (!known && placing_choose(p, m->pod) != NULL) { /* the last placement made it fit */
            put(p, m);
            continue;
        }
        vec_push(&p->refused, equivalence_ask(&p->ask, m->pod)->serial);
        p->wakes |= p->choice->wakes;
        if (p->stuck == NULL) {
            p->stuck = m;
            p->why = &choice->why;
            p->choice = arena_new(p->arena, struct pipeline_choice, 1);
        }
    }
}

/* Beyond the quorum either pool is allowed, so members refused in one are asked for again. */
static void open_pools(struct placing *p)
{
    if (p->ask.pool == CLUSTER_POOL_ANY || p->cluster->gang_pools == CLUSTER_GANG_WHOLE)
        return;
    p->ask.pool = CLUSTER_POOL_ANY;
    p->refused.len = 0;
    for (size_t i = 0; i < p->members_len; i++)
        p->members[i].hopeless = false;
}

static bool attempt(struct placing *p, const struct way *w)
{
    enum cluster_packing packing = p->ask.packing;
    enum cluster_pool pool = p->ask.pool;
    size_t mark = plan_mark(p->plan);
    enum pass last = PASS_PLACED;
    p->ask.packing = w->packing;
    reset(p);
    for (int i = 0; i < PASSES && last == PASS_PLACED && !has_quorum(p); i++)
        last = pass(p, w, false);
    if (has_quorum(p)) {
        last = PASS_PLACED;
        open_pools(p);
        for (int i = 0; i < PASSES && last == PASS_PLACED; i++)
            last = pass(p, w, true);
        explain(p);
    } else if (!w->hurried) {
        explain(p);
        for (size_t i = 0; i < p->gangs_len; i++)
            p->gangs[i].reported = p->gangs[i].placed;
    }
    p->ask.packing = packing;
    p->ask.pool = pool;
    if (has_quorum(p))
        return true;
    plan_rollback(p->plan, mark);
    return false;
}

/* In each domain of d, or in each set of nodes of j. */
static bool attempt_within(struct placing *p, enum cluster_packing packing,
                           struct placing_domains *d, struct placing_job *j)
{
    struct placing_domain within;
    struct way w = {.packing = packing, .hurried = true, .within = &within};
    while (d != NULL ? placing_domains_next(d, &within) : placing_job_next(j, &within))
        if (attempt(p, &w))
            return true;
    return false;
}

/* hurried: the final sentence does not come from this pool. */
static bool try_ways(struct placing *p, bool thorough, bool hurried)
{
    enum cluster_packing set = p->ask.packing;
    struct way w = {.packing = set, .promised = true, .hurried = true};
    struct placing_domains d;
    struct placing_job j;
    if (p->promised && p->members_len > 1 && attempt(p, &w))
        return true;
    placing_job_init(&j, p);
    if (attempt_within(p, set, NULL, &j))
        return true;
    if (attempt(p, &(struct way){.packing = set, .hurried = hurried}))
        return true;
    if (p->exact || !thorough || !placing_domains_could_fit(p))
        return false;
    const struct way others[] = {
        {.packing = CLUSTER_TIGHTEST_FIRST, .hurried = true},
        {.packing = CLUSTER_LOOSEST_FIRST, .hurried = true},
        {.packing = CLUSTER_TIGHTEST_FIRST, .hurried = true, .backwards = true},
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (attempt(p, &others[i]))
            return true;
    placing_domains_init(&d, p);
    return attempt_within(p, CLUSTER_TIGHTEST_FIRST, &d, NULL);
}

/* Whether all placed members that prefer real nodes are on virtual ones. */
static bool is_on_virtual(const struct placing *p)
{
    size_t real = 0, virtual = 0;
    for (size_t i = 0; i < p->gangs_len; i++)
        for (size_t k = 0; k < p->gangs[i].gang->members.len; k++) {
            const struct cluster_pod *cp = p->gangs[i].gang->members.items[k];
            if (cp->on == NULL || virtual_use_of(p->cluster, cp) != VIRTUAL_USE_LAST)
                continue;
            real += !cp->on->is_virtual;
            virtual += cp->on->is_virtual;
        }
    return virtual > 0 && real == 0;
}

/* A lone pod, or a gang that has its quorum, need not stay in one pool. */
static bool stays_together(const struct placing *p)
{
    bool several = false, prefers_real = false;
    if (p->cluster->virtual_nodes == 0 || p->cluster->gang_pools == CLUSTER_GANG_MEMBER)
        return false;
    for (size_t i = 0; i < p->gangs_len; i++)
        several |= p->gangs[i].missing > 0 && !gangs_is_lone(p->gangs[i].gang);
    for (size_t i = 0; several && i < p->members_len && !prefers_real; i++)
        prefers_real = virtual_use_of(p->cluster, p->members[i].pod) == VIRTUAL_USE_LAST;
    return prefers_real;
}

static struct pools pools_of(const struct placing *p)
{
    struct pools s = {.len = 1}; /* both */
    if (!stays_together(p))
        return s;
    s.len = 0;
    if (!is_on_virtual(p))
        s.of[s.len++] = CLUSTER_POOL_REAL;
    s.of[s.len++] = CLUSTER_POOL_VIRTUAL;
    if (p->cluster->gang_pools == CLUSTER_GANG_TOGETHER)
        s.of[s.len++] = CLUSTER_POOL_ANY;
    return s;
}

/* Unites what could help in each pool; the sentence is that of the first pool, which is asked last.
 * true: it fits after all, since asking may place the last member. */
static bool explain_whole(struct placing *p, const struct pools *s)
{
    uint32_t wakes = 0;
    bool found = false;
    for (size_t i = s->len; i-- > 0 && !found;) {
        p->pool = p->ask.pool = s->of[i];
        found = attempt(p, &(struct way){.packing = p->ask.packing});
        wakes |= p->wakes;
    }
    p->wakes = wakes;
    p->ask.pool = CLUSTER_POOL_ANY;
    return found;
}

bool placing_run(struct placing *p, bool thorough)
{
    struct pools s = pools_of(p);
    bool found = false;
    for (size_t i = 0; i < s.len && !found; i++) {
        p->pool = p->ask.pool = s.of[i];
        found = try_ways(p, thorough, s.of[i] != CLUSTER_POOL_ANY);
        p->ask.pool = CLUSTER_POOL_ANY;
    }
    return found || (p->pool != CLUSTER_POOL_ANY && explain_whole(p, &s));
}
