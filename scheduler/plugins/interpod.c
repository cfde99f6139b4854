// SPDX-License-Identifier: Apache-2.0
/* interpod - affinity and anti-affinity between pods: of this pod, and of placed pods against it.
 * Counting is in domains.h; this file has the messages. */
#include "scheduler/framework/equivalence.h"
#include "scheduler/framework/domains.h"
#include "scheduler/plugins/all.h"

static enum reason_kind reason_of(const struct domains_rule *r, bool has_label)
{
    switch (r->kind) {
    case DOMAINS_AFFINITY:
        return has_label ? REASON_AFFINITY : REASON_AFFINITY_LABEL;
    case DOMAINS_EXISTING_ANTI:
        return REASON_EXISTING_ANTI;
    default:
        return REASON_ANTI;
    }
}

static bool filter(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                   struct reason *why)
{
    const struct domains_rule *no =
        domains_refusing(ask->class->domains, node,
                         1u << DOMAINS_AFFINITY | 1u << DOMAINS_ANTI | 1u << DOMAINS_EXISTING_ANTI);
    if (no == NULL || why == NULL)
        return no == NULL;
    *why = (struct reason){.kind = reason_of(no, no->topology->domain_of[node->place] >= 0),
                           .what = arena_strdup(a, no->key)};
    return false;
}

static int64_t score(const struct plugin_ask *ask, const struct cluster_node *node)
{
    return domains_points(ask->class->domains, node, true) / plugin_interpod.weight;
}

const struct plugin plugin_interpod = {.name = "interpod",
                                       PLUGIN_READS(FACET_COUNTERS | FACET_NAMESPACES),
                                       .score_depends = PLUGIN_DOMAIN,
                                       .filter = filter,
                                       .score = score,
                                       .weight = DOMAINS_PREFER_WEIGHT};
