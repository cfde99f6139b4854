// SPDX-License-Identifier: Apache-2.0
/* spread - topologySpreadConstraints. Counting is in domains.h; this file has the messages. */
#include "scheduler/framework/equivalence.h"
#include "scheduler/framework/domains.h"
#include "scheduler/plugins/all.h"

static bool filter(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                   struct reason *why)
{
    const struct domains_rule *no =
        domains_refusing(ask->class->domains, node, 1u << DOMAINS_SPREAD);
    if (no == NULL || why == NULL)
        return no == NULL;
    bool has_label = no->topology->domain_of[node->place] >= 0;
    *why = (struct reason){.kind = has_label ? REASON_SPREAD : REASON_SPREAD_LABEL,
                           .what = arena_strdup(a, no->key),
                           .want = no->max_skew};
    return false;
}

/* Already weighted: the class adds it to its own score. */
static int64_t score(const struct plugin_ask *ask, const struct cluster_node *node)
{
    return domains_points(ask->class->domains, node, false) / plugin_spread.weight;
}

static bool applies(const struct cluster_pod *pod)
{
    return pod->pod->spread_len > 0;
}

const struct plugin plugin_spread = {.name = "spread",
                                     PLUGIN_READS(FACET_COUNTERS | FACET_COUNTED_TAINTS),
                                     .score_depends = PLUGIN_DOMAIN,
                                     .applies = applies,
                                     .filter = filter,
                                     .score = score,
                                     .weight = DOMAINS_SPREAD_WEIGHT};
