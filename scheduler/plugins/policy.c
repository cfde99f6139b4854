// SPDX-License-Identifier: Apache-2.0
/*
 * policy - pods that a ResourcePolicy selects use only its units, in their order (policies.h).
 *
 * There are two plugins. The first refuses nodes in no unit and orders the others: a node belongs
 * to its first open unit, and an earlier unit outweighs all other scores, so a later unit is used
 * only where no node of an earlier one fits. The second refuses nodes whose units are closed. Pods
 * anywhere can close and open units; that is in the pod's class (the plugin policy's key), not in a
 * node's cached verdict. It still counts as PLUGIN_HELD, so that preemption knows that removing a
 * pod may open a unit.
 */
#include "scheduler/plugins/all.h"

#include "lib/base/str.h"
#include "scheduler/cache/policies.h"
#include "scheduler/framework/equivalence.h"

static bool applies(const struct cluster_pod *pod)
{
    return pod->membership.group != NULL;
}

static const struct policies_view *view_of(const struct plugin_ask *ask)
{
    return equivalence_facts(ask, &plugin_policy);
}

/* The units considered in this step. */
static uint64_t possible(const struct plugin_ask *ask)
{
    uint8_t first = view_of(ask)->first;
    return first == 0 || first >= POLICY_UNITS_MAX ? UINT64_MAX : ((uint64_t)1 << first) - 1;
}

static bool refuse(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                   struct reason *why)
{
    const struct cluster_pod *cp = ask->pod;
    if (why == NULL)
        return false;
    if (cp->membership.lacks != NULL)
        *why = (struct reason){
            .kind = REASON_CLAIM,
            .what = arena_printf(a, "the pod has no label %s, by which ResourcePolicy %s counts",
                                 cp->membership.lacks, policies_of(cp)->object.name)};
    else
        *why = (struct reason){.kind = REASON_UNIT,
                               .what = policies_why_not(cp, view_of(ask), node, a)};
    return false;
}

static bool filter(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                   struct reason *why)
{
    const struct cluster_pod *cp = ask->pod;
    return cp->membership.group == NULL ||
           (cp->membership.lacks == NULL && policies_unit_on(cp, possible(ask), node) >= 0) ||
           refuse(ask, node, a, why);
}

static bool filter_open(const struct plugin_ask *ask, const struct cluster_node *node,
                        struct arena *a, struct reason *why)
{
    const struct cluster_pod *cp = ask->pod;
    return cp->membership.group == NULL || policies_unit_on(cp, view_of(ask)->open, node) >= 0 ||
           refuse(ask, node, a, why);
}

static int64_t score(const struct plugin_ask *ask, const struct cluster_node *node)
{
    int32_t unit = policies_unit_on(ask->pod, view_of(ask)->open, node);
    return unit == POLICIES_NO_UNIT ? 0 : POLICY_UNITS_MAX - unit;
}

static void key(const struct plugin_ask *ask, struct strbuf *out)
{
    const struct policy_membership *m = &ask->pod->membership;
    if (m->group == NULL)
        return;
    struct policies_view v = policies_view_of(ask->cluster, ask->pod, ask->units);
    strbuf_addf(out, "O%llx:%llx:%llx:%x:%x:%s", (unsigned long long)m->group->of->serial,
                (unsigned long long)v.open, (unsigned long long)v.at_max, (unsigned)v.stop,
                (unsigned)v.first, str_or_empty(m->lacks));
}

static uint64_t key_version(const struct plugin_ask *ask)
{
    if (ask->pod->membership.group == NULL)
        return 0;
    struct policies_view v = policies_view_of(ask->cluster, ask->pod, ask->units);
    const uint64_t parts[] = {v.open, v.at_max, v.stop, v.first};
    return str_hash((const char *)parts, sizeof parts);
}

static void find_facts(const struct plugin_ask *ask, void *facts)
{
    *(struct policies_view *)facts = policies_view_of(ask->cluster, ask->pod, ask->units);
}

const struct plugin plugin_policy = {
    .name = "policy",
    .key = key,
    .key_version = key_version,
    .facts_size = sizeof(struct policies_view),
    .find_facts = find_facts,
    .facts_reads = FACET_POLICIES, /* the first uses of them only what the policy says */
    PLUGIN_READS(FACET_LABELS | FACET_VIRTUAL | FACET_POLICIES),
    .score_depends = PLUGIN_NODE,
    .applies = applies,
    .filter = filter,
    .score = score,
    .weight = 1 << 18 /* outweighs all others together: virtual.c's is 100 * 1000 */};

const struct plugin plugin_policy_open = {
    .name = "policy-open",
    PLUGIN_READS(FACET_LABELS | FACET_VIRTUAL | FACET_POLICIES | FACET_UNITS),
    .entangles = true, /* a member that fills a unit may open the next for others */
    .applies = applies,
    .filter = filter_open};
