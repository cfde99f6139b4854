// SPDX-License-Identifier: Apache-2.0
/*
 * affinity - nodeSelector and required node affinity; preferred node affinity scores.
 */
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "scheduler/plugin.h"

static bool filter(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                   struct reason *why)
{
    (void)a;
    const struct pod *p = ask->pod->pod;
    bool ok = true;
    for (size_t i = 0; ok && i < p->node_selector.len; i++)
        ok = str_eq(labels_get(&node->node->labels, p->node_selector.items[i].key),
                    p->node_selector.items[i].value);
    if (ok && p->has_required_affinity)
        ok = node_selector_matches(&p->required_affinity, &node->node->labels, node->name);
    if (!ok && why != NULL)
        *why = (struct reason){.kind = REASON_SELECTOR};
    return ok;
}

static int64_t score(const struct plugin_ask *ask, const struct cluster_node *node)
{
    const struct pod *p = ask->pod->pod;
    int64_t sum = 0, most = 0;
    for (size_t i = 0; i < p->preferred_affinity_len; i++) {
        const struct preferred_term *t = &p->preferred_affinity[i];
        most += num_max(t->weight, 0);
        if (node_term_matches(&t->term, &node->node->labels, node->name))
            sum += num_max(t->weight, 0);
    }
    return most > 0 ? sum * PLUGIN_SCORE_MAX / most : 0;
}

static bool applies(const struct cluster_pod *pod)
{
    const struct pod *p = pod->pod;
    return p->node_selector.len > 0 || p->has_required_affinity || p->preferred_affinity_len > 0;
}

const struct plugin plugin_affinity = {.name = "affinity",
                                       .wakes = EVENT_NODE_LABELS,
                                       .depends = PLUGIN_NODE,
                                       .score_depends = PLUGIN_NODE,
                                       .applies = applies,
                                       .filter = filter,
                                       .score = score,
                                       .weight = 2};
