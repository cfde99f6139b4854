// SPDX-License-Identifier: Apache-2.0
/* spread - topologySpreadConstraints. framework/domains counts and scores; this file has the class
 * key and the reasons. */
#include "scheduler/framework/equivalence.h"
#include "scheduler/framework/class_key.h"
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

static void key(const struct plugin_ask *ask, struct strbuf *out)
{
    const struct pod *p = ask->pod->pod;
    if (p->spread_len > 0) {
        strbuf_addc(out, 'W');
        class_key_text(out, p->ns);
    }
    for (size_t i = 0; i < p->spread_len; i++) {
        strbuf_addc(out, spread_selects_self(&p->spread[i], &p->labels) ? '+' : '-');
        spread_print(&p->spread[i], out);
    }
}

static bool applies(const struct cluster_pod *pod)
{
    return pod->pod->spread_len > 0;
}

const struct plugin plugin_spread = {.name = "spread",
                                     PLUGIN_READS(FACET_COUNTERS | FACET_COUNTED_TAINTS),
                                     .score_depends = PLUGIN_DOMAIN,
                                     .applies = applies,
                                     .key = key,
                                     .filter = filter,
                                     .score = score,
                                     .weight = DOMAINS_SPREAD_WEIGHT};
