// SPDX-License-Identifier: Apache-2.0
/*
 * Not set: never on a virtual node, even if the pod tolerates everything, unless its own nodeSelector asks for one. eci: real nodes score above every
 * virtual one. eci_only (or the label alibabacloud.com/eci): virtual nodes only.
 */
#include "scheduler/plugins/burst.h"

#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/plugin.h"

enum burst_policy burst_policy_of(const struct pod *p)
{
    const char *wish = labels_get(&p->annotations, NAME_ANN_BURST);
    if (str_eq(wish, "eci_only") || str_eq(labels_get(&p->labels, NAME_LABEL_ECI), "true"))
        return BURST_VIRTUAL_ONLY;
    return str_eq(wish, "eci") ? BURST_REAL_FIRST : BURST_REAL_ONLY;
}

bool burst_tolerates(const struct pod *p, const struct node *n, const struct taint *t)
{
    return burst_policy_of(p) != BURST_REAL_ONLY && node_is_virtual(n) &&
           t->effect == TAINT_NO_SCHEDULE && str_eq(t->key, NAME_TAINT_VIRTUAL) &&
           str_eq(t->value, NAME_TAINT_VIRTUAL_VALUE);
}

static bool refuse(struct reason *why, enum reason_kind kind)
{
    if (why != NULL)
        *why = (struct reason){.kind = kind};
    return false;
}

static bool filter(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                   struct reason *why)
{
    (void)a;
    const struct pod *p = ask->pod->pod;
    bool is_virtual = node_is_virtual(node->node);
    enum burst_policy policy = burst_policy_of(p);
    if (!is_virtual && policy == BURST_VIRTUAL_ONLY)
        return refuse(why, REASON_NOT_VIRTUAL);
    bool asked =
        str_eq(labels_get(&p->node_selector, NAME_LABEL_NODE_TYPE), NAME_NODE_TYPE_VIRTUAL);
    return !is_virtual || policy != BURST_REAL_ONLY || asked || refuse(why, REASON_VIRTUAL);
}

static int64_t score(const struct plugin_ask *ask, const struct cluster_node *node)
{
    (void)ask;
    return node_is_virtual(node->node) ? 0 : PLUGIN_SCORE_MAX;
}

const struct plugin plugin_burst = {.name = "burst",
                                    .wakes = EVENT_NODE_LABELS,
                                    .depends = PLUGIN_NODE,
                                    .score_depends = PLUGIN_NODE,
                                    .filter = filter,
                                    .score = score,
                                    .weight = 1000 /* above all others together */};
