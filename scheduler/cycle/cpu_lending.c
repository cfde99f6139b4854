// SPDX-License-Identifier: Apache-2.0
#include "scheduler/cycle/cpu_lending.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/cache/gangs.h"
#include "scheduler/framework/pipeline.h"

/* Whether the node agent has applied the grant that is in the accounts. */
static bool is_settled(const struct cluster_pod *cp, struct arena *a)
{
    struct cpu_grant applied;
    return cp->state == CLUSTER_BOUND &&
           cpu_grant_decode(labels_get(&cp->pod->annotations, NAME_ANN_CPUSET_APPLIED), cp->pod, a,
                            &applied, NULL) == 0 &&
           cpu_grant_equal(&applied, &cp->grant.cpus);
}

struct reclaim {
    struct placing *placing;
    bool late;    /* also ask borrowers that do not answer */
    bool refused; /* on some node the pod would not fit, whatever is given back */
};

/* The borrowed CPUs that the pod can return. */
static bool lent_to(const struct reclaim *c, const struct cluster_pod *cp, struct cpuset *out)
{
    struct cpuset owned;
    if (cp->cpu == NULL || !cp->cpu->burst || cp->grant.cpus.len == 0 ||
        !is_settled(cp, c->placing->arena))
        return false;
    if (!c->late && cp->giving_again >= CPU_LENDING_PATIENCE) {
        c->placing->passed_over = true;
        return false;
    }
    cpu_accounts_split(cp->on->cpus.shape, &cp->grant.cpus, cp->cpu, &owned, out);
    return !cpuset_is_empty(out);
}

static struct cpuset lent_on(const struct reclaim *c, const struct cluster_node *cn)
{
    struct cpuset all, one;
    cpuset_clear(&all);
    for (size_t i = 0; i < cn->pods.len; i++)
        if (lent_to(c, cn->pods.items[i], &one))
            cpuset_union(&all, &one);
    cpuset_intersect(&all, &cn->cpus.lent);
    return all;
}

/* Whether the pod fits once the lent CPUs are returned, and its score. */
static bool fits_without(struct placing *p, struct cluster_pod *pod, struct cluster_node *cn,
                         const struct cpuset *lent, struct pipeline_choice *choice, int64_t *score)
{
    size_t mark = plan_mark(p->plan);
    plan_reclaim(p->plan, cn, lent);
    bool fits = pipeline_try(&p->ask, pod, cn, p->arena, choice);
    if (fits) {
        struct plugin_ask ask = pipeline_ask(&p->ask, pod);
        *score = pipeline_score(&ask, cn);
    }
    plan_rollback(p->plan, mark);
    return fits;
}

/* Puts the best node for a pod that fits nowhere without reclaiming into placing.choice. */
static bool make_place(void *arg, struct cluster_pod *pod)
{
    struct reclaim *c = arg;
    struct placing *p = c->placing;
    const struct node_table *t = p->cluster->table;
    struct pipeline_choice best = {0};
    int64_t best_score = 0;
    for (uint32_t i = 0; pod->cpu != NULL && i < t->len; i++) {
        struct cluster_node *cn = t->rows[i].node;
        struct pipeline_choice choice;
        int64_t score = 0;
        if (cn->cpus.shape == NULL || cpuset_is_empty(&cn->cpus.lent))
            continue;
        struct cpuset lent = lent_on(c, cn);
        if (cpuset_is_empty(&lent))
            continue;
        bool fits = fits_without(p, pod, cn, &lent, &choice, &score);
        c->refused |= !fits;
        if (!fits || (best.node != NULL && score <= best_score))
            continue;
        best = choice;
        best_score = score;
    }
    if (best.node != NULL)
        *p->choice = best;
    return best.node != NULL;
}

/* Plans all members that the quorum needs, or the single one beyond it. */
static bool place(struct reclaim *c)
{
    struct placing *p = c->placing;
    struct cluster_pod *pod = p->stuck->pod;
    if (p->members_len > 1 && p->stuck->gang->missing > 0)
        return placing_fill(p, make_place, c);
    if (!make_place(c, pod))
        return false;
    plan_place(p->plan, pod, p->choice->node, &p->choice->grant);
    return true;
}

/* The exclusive CPUs of the pods in the plan. */
struct taken {
    struct cluster_node *node;
    struct cpuset cpus;
};

static size_t note_taken(struct placing *p, size_t mark, struct taken *out,
                         struct cycle_result *result)
{
    size_t n = p->plan->steps.len - mark;
    for (size_t i = 0; i < n; i++) {
        const struct plan_step *step = &p->plan->steps.items[mark + i];
        const struct cluster_pod *cp = step->pod;
        struct cpuset lent;
        out[i] = (struct taken){.node = step->node};
        if (cp->cpu != NULL)
            cpu_accounts_split(step->node->cpus.shape, &cp->grant.cpus, cp->cpu, &out[i].cpus,
                               &lent);
        result->nominations[result->nominations_len++] =
            (struct cycle_nomination){.pod = step->pod, .node = step->node};
    }
    return n;
}

/* The plan is already undone. */
static void reclaim(const struct reclaim *c, const struct taken *taken, struct cycle_result *out)
{
    const struct cluster_node *cn = taken->node;
    struct cpuset lent;
    for (size_t i = 0; i < cn->pods.len; i++) {
        struct cycle_recall *r = NULL;
        if (!lent_to(c, cn->pods.items[i], &lent))
            continue;
        cpuset_intersect(&lent, &taken->cpus);
        if (cpuset_is_empty(&lent))
            continue;
        for (size_t k = 0; k < out->recalls_len && r == NULL; k++)
            if (out->recalls[k].pod == cn->pods.items[i])
                r = &out->recalls[k];
        if (r == NULL) {
            r = &out->recalls[out->recalls_len++];
            *r = (struct cycle_recall){.pod = cn->pods.items[i]};
        }
        cpuset_union(&r->cpus, &lent);
    }
}

static int by_key(const void *a, const void *b)
{
    const struct cycle_recall *x = a, *y = b;
    return strcmp(x->pod->pod->key, y->pod->pod->key);
}

/* Names the borrower, so that users see which pod does not return its CPUs. */
static void say(const struct placing *p, struct cycle_result *out)
{
    AUTO_STRBUF b = {0};
    struct cpuset cpus;
    const struct cycle_recall *first = &out->recalls[0];
    bool one_node = true;
    uint32_t count = 0;
    cpuset_clear(&cpus);
    for (size_t i = 0; i < out->recalls_len; i++) {
        one_node = one_node && out->recalls[i].pod->on == first->pod->on;
        cpuset_union(&cpus, &out->recalls[i].cpus);
        count += cpuset_count(&out->recalls[i].cpus);
    }
    strbuf_addf(&b, "%s; waits for pod %s", out->sentence, first->pod->pod->key);
    if (out->recalls_len > 1)
        strbuf_addf(&b, " and %zu more", out->recalls_len - 1);
    strbuf_adds(&b, " to give back ");
    if (one_node) {
        strbuf_adds(&b, "CPUs ");
        cpuset_print(&cpus, &b);
        strbuf_addf(&b, " on %s", first->pod->on->name);
    } else {
        strbuf_addf(&b, "%lu CPUs on several nodes", (unsigned long)count);
    }
    out->sentence = arena_strdup(p->arena, strbuf_str(&b));
    /* Differs from the class of the sentence without a reclaim, so that it is reported. */
    const char *key = first->pod->pod->key;
    out->class = out->class * 31 + str_hash(key, strlen(key));
}

bool cpu_lending_reclaim(struct placing *p, bool late, struct cycle_result *out)
{
    struct reclaim c = {.placing = p, .late = late};
    size_t mark = plan_mark(p->plan), len = 0, most = 0;
    struct taken *taken = arena_new(p->arena, struct taken, p->members_len);
    bool any = false;
    for (size_t i = 0; i < p->members_len; i++)
        any = any || p->members[i].pod->cpu != NULL;
    if (!any)
        return false;
    if (place(&c))
        len = note_taken(p, mark, taken, out);
    plan_rollback(p->plan, mark);
    for (size_t i = 0; i < len; i++)
        most += taken[i].node->pods.len;
    out->recalls = arena_new(p->arena, struct cycle_recall, most);
    for (size_t i = 0; i < len; i++)
        reclaim(&c, &taken[i], out);
    if (out->recalls_len == 0) {
        out->nominations_len = 0;
        out->wakes |= c.refused ? placing_wakes(p) : 0;
        return false;
    }
    qsort(out->recalls, out->recalls_len, sizeof *out->recalls, by_key); /* pods are unordered */
    say(p, out);
    return true;
}

void cpu_lending_lend(const struct pipeline *p, struct plan *plan, struct arena *a)
{
    for (size_t i = 0; i < plan->steps.len; i++) {
        struct cluster_pod *cp = plan->steps.items[i].pod;
        if (cp->cpu == NULL || !cp->cpu->burst || cp->gang == NULL || gangs_is_lone(cp->gang))
            continue;
        struct plugin_ask ask = pipeline_ask(p, cp);
        struct cpu_grant more;
        cpu_grant_copy(&more, &cp->grant.cpus, a);
        for (const struct plugin *const *plugin = plugin_table; *plugin != NULL; plugin++)
            if ((*plugin)->lend != NULL)
                (*plugin)->lend(&ask, cp->on, a, &more);
        cluster_grant_widen(plan->cluster, cp, &more);
    }
}

void cpu_lending_left(const struct cluster_pod *borrower, struct arena *a, struct cpu_grant *out)
{
    struct cpu_grant written;
    const struct cpu_grant *from = &borrower->grant.cpus;
    /* CPUs that were reclaimed before, though not yet confirmed, stay reclaimed. */
    bool ok = cpu_grant_decode(labels_get(&borrower->pod->annotations, NAME_ANN_CPUSET),
                               borrower->pod, a, &written, NULL) == 0;
    if (ok && written.len > 0 && cpu_grant_is_within(&written, from))
        from = &written;
    *out = (struct cpu_grant){.parts = arena_new(a, struct cpu_grant_part, from->len)};
    for (size_t i = 0; i < from->len; i++) {
        struct cpu_grant_part part = from->parts[i];
        if (borrower->giving != NULL)
            cpuset_subtract(&part.cpus, borrower->giving);
        if (!cpuset_is_empty(&part.cpus))
            out->parts[out->len++] = part;
    }
}
