// SPDX-License-Identifier: Apache-2.0
/*
 * policy - pods that a ResourcePolicy selects go to its units only, in their order (policies.h).
 *
 * Two plugins of one room. The first knows nodes that are in no unit at all, and orders the others: the first open unit that has a node decides about it, and earlier units score above all
 * others together, so the next one is used only where no node of the earlier fits, by the same filters.
 *
 * The second refuses nodes whose units are closed. What closes and opens units is held anywhere; it is in the pod's class (the plugin policy's key), not in what is remembered of a node. It is one of
 * those that ask about what is held all the same: so that whoever makes room knows that a pod's leaving may open a unit.
 */
#include "scheduler/plugins/all.h"
#include "scheduler/cache/policies.h"
#include "scheduler/framework/class_key.h"

static bool applies(const struct cluster_pod *pod)
{
    return pod->seat.group != NULL;
}

/* Units that it is about at all: the others are not looked at in this step. */
static uint64_t possible(const struct cluster_pod *cp)
{
    uint8_t first = cp->seat.view.first;
    return first == 0 || first >= POLICY_UNITS_MAX ? UINT64_MAX : ((uint64_t)1 << first) - 1;
}

static bool refuse(const struct cluster_pod *cp, const struct cluster_node *node, struct arena *a,
                   struct reason *why)
{
    if (why == NULL)
        return false;
    if (cp->seat.lacks != NULL)
        *why = (struct reason){
            .kind = REASON_CLAIM,
            .what = arena_printf(a, "the pod has no label %s, by which ResourcePolicy %s counts",
                                 cp->seat.lacks, policies_of(cp)->object.name)};
    else
        *why = (struct reason){.kind = REASON_UNIT, .what = policies_why_not(cp, node, a)};
    return false;
}

static bool filter(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                   struct reason *why)
{
    const struct cluster_pod *cp = ask->pod;
    return cp->seat.group == NULL ||
           (cp->seat.lacks == NULL && policies_unit_on(cp, possible(cp), node) >= 0) ||
           refuse(cp, node, a, why);
}

static bool filter_open(const struct plugin_ask *ask, const struct cluster_node *node,
                        struct arena *a, struct reason *why)
{
    const struct cluster_pod *cp = ask->pod;
    return cp->seat.group == NULL || policies_unit_on(cp, cp->seat.view.open, node) >= 0 ||
           refuse(cp, node, a, why);
}

static int64_t score(const struct plugin_ask *ask, const struct cluster_node *node)
{
    int32_t unit = policies_unit_on(ask->pod, ask->pod->seat.view.open, node);
    return unit == POLICIES_NO_UNIT ? 0 : POLICY_UNITS_MAX - unit;
}

static void key(const struct plugin_ask *ask, struct strbuf *out)
{
    policies_print_key(ask->pod, out);
}

const struct plugin plugin_policy = {
    .name = "policy",
    .key = key,
    .wakes = EVENT_NODE_LABELS | EVENT_POLICY,
    .depends = PLUGIN_NODE,
    .score_depends = PLUGIN_NODE,
    .applies = applies,
    .filter = filter,
    .score = score,
    .weight = 1 << 18 /* above all others together: virtual.c's is 100 * 1000 */};

const struct plugin plugin_policy_open = {
    .name = "policy-open",
    .wakes = EVENT_NODE_LABELS | EVENT_POD_GONE | EVENT_POLICY | EVENT_UNIT,
    .depends = PLUGIN_HELD,
    .entangles = true, /* a member that fills a unit may open the next one to the others */
    .applies = applies,
    .filter = filter_open};
