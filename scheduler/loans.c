// SPDX-License-Identifier: Apache-2.0
#include "scheduler/loans.h"

#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/pipeline.h"

/* The node agent has bound it to what is in the books. */
static bool is_settled(const struct cluster_pod *cp, struct arena *a)
{
    struct cpuclaim applied;
    return cp->state == CLUSTER_BOUND &&
           cpuclaim_decode(labels_get(&cp->pod->annotations, NAME_ANN_CPUSET_APPLIED), cp->pod, a,
                           &applied, NULL) == 0 &&
           cpuclaim_equal(&applied, &cp->claim.cpus);
}

/* What a pod on the node has on loan and can give back. */
static bool loan_of(const struct cluster_pod *cp, struct arena *a, struct cpuset *out)
{
    struct cpuset owned;
    if (cp->cpu == NULL || !cp->cpu->burst || cp->claim.cpus.len == 0 || !is_settled(cp, a))
        return false;
    cpu_book_split(cp->on->cpus.shape, &cp->claim.cpus, cp->cpu, &owned, out);
    return !cpuset_is_empty(out);
}

/* All that can be called back there. */
static struct cpuset loans_on(const struct cluster_node *cn, struct arena *a)
{
    struct cpuset all, one;
    cpuset_clear(&all);
    for (size_t i = 0; i < cn->pods.len; i++)
        if (loan_of(cn->pods.items[i], a, &one))
            cpuset_union(&all, &one);
    cpuset_intersect(&all, &cn->cpus.lent);
    return all;
}

/* Whether the pod fits if the loans are free, on what CPUs, and how well. */
static bool fits_without(struct placing *p, struct cluster_pod *pod, struct cluster_node *cn,
                         const struct cpuset *loans, struct cpuset *taken, int64_t *score)
{
    struct cpuset lent = cn->cpus.lent;
    struct pipeline_choice choice;
    cpuset_subtract(&cn->cpus.lent, loans);
    bool fits = pipeline_try(p->cluster, pod, cn, p->arena, &choice);
    if (fits) {
        struct plugin_ask ask = pipeline_ask(p->cluster, pod);
        *score = pipeline_score(&ask, cn);
        cpuset_clear(taken);
        for (size_t i = 0; i < choice.claim.cpus.len; i++)
            cpuset_union(taken, &choice.claim.cpus.parts[i].cpus);
        cpuset_intersect(taken, &lent);
    }
    cn->cpus.lent = lent;
    return fits;
}

static struct cluster_node *choose_node(struct placing *p, struct cluster_pod *pod,
                                        struct cpuset *taken)
{
    const struct table *t = &p->cluster->table;
    struct cluster_node *best = NULL;
    int64_t best_score = 0;
    for (uint32_t i = 0; i < t->len; i++) {
        struct cluster_node *cn = t->rows[i].node;
        struct cpuset here;
        int64_t score = 0;
        if (cn->cpus.shape == NULL || cpuset_is_empty(&cn->cpus.lent))
            continue;
        struct cpuset loans = loans_on(cn, p->arena);
        if (cpuset_is_empty(&loans) || !fits_without(p, pod, cn, &loans, &here, &score) ||
            (best != NULL && score <= best_score))
            continue;
        best = cn;
        best_score = score;
        *taken = here;
    }
    return best;
}

bool loans_call(struct placing *p, struct cycle_result *out)
{
    struct cluster_pod *pod = p->stuck->pod;
    struct cpuset taken, loan;
    if (pod->cpu == NULL)
        return false;
    struct cluster_node *cn = choose_node(p, pod, &taken);
    if (cn == NULL)
        return false;
    out->recalls = arena_new(p->arena, struct cycle_recall, cn->pods.len);
    for (size_t i = 0; i < cn->pods.len; i++) {
        if (!loan_of(cn->pods.items[i], p->arena, &loan))
            continue;
        cpuset_intersect(&loan, &taken);
        if (!cpuset_is_empty(&loan))
            out->recalls[out->recalls_len++] =
                (struct cycle_recall){.pod = cn->pods.items[i], .cpus = loan};
    }
    out->nominations[out->nominations_len++] = (struct cycle_nomination){.pod = pod, .node = cn};
    out->sentence = arena_printf(p->arena, "%s; CPUs on loan are called back on %s for it",
                                 out->sentence, cn->name);
    return true;
}

void loans_left(const struct cluster_pod *borrower, struct arena *a, struct cpuclaim *out)
{
    struct cpuclaim written;
    const struct cpuclaim *from = &borrower->claim.cpus;
    /* What was written before and is not confirmed yet is not given back to it. */
    bool ok = cpuclaim_decode(labels_get(&borrower->pod->annotations, NAME_ANN_CPUSET),
                              borrower->pod, a, &written, NULL) == 0;
    if (ok && written.len > 0 && cpuclaim_is_within(&written, from))
        from = &written;
    *out = (struct cpuclaim){.parts = arena_new(a, struct cpuclaim_part, from->len)};
    for (size_t i = 0; i < from->len; i++) {
        struct cpuclaim_part part = from->parts[i];
        if (borrower->giving != NULL)
            cpuset_subtract(&part.cpus, borrower->giving);
        if (!cpuset_is_empty(&part.cpus))
            out->parts[out->len++] = part;
    }
}
