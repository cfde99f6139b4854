// SPDX-License-Identifier: Apache-2.0
/*
 * taints - cordoned nodes and NoSchedule/NoExecute taints that the pod does not tolerate.
 */
#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/plugin.h"
#include "scheduler/plugins/burst.h"

static const char *effect_name(enum taint_effect e)
{
    return e == TAINT_NO_EXECUTE ? "NoExecute" : "NoSchedule";
}

static const struct taint *first_against(const struct node *n, const struct pod *p)
{
    const struct taint *t = node_untolerated(n, p);
    while (t != NULL && burst_tolerates(p, n, t)) { /* on with the taints behind it */
        struct node rest = *n;
        rest.taints_len = n->taints_len - (size_t)(t - n->taints) - 1;
        rest.taints = &n->taints[t - n->taints + 1];
        t = node_untolerated(&rest, p);
    }
    return t;
}

static bool filter(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                   struct reason *why)
{
    const struct taint *t = first_against(node->node, ask->pod->pod);
    if (t == NULL || why == NULL)
        return t == NULL;
    if (str_eq(t->key, "node.kubernetes.io/unschedulable"))
        *why = (struct reason){.kind = REASON_UNSCHEDULABLE};
    else
        *why = (struct reason){
            .kind = REASON_TAINT,
            .what = arena_printf(a, "%s%s%s:%s", t->key, str_or_empty(t->value)[0] ? "=" : "",
                                 str_or_empty(t->value), effect_name(t->effect))};
    return false;
}

const struct plugin plugin_taints = {
    .name = "taints", .wakes = EVENT_NODE_TAINTS, .depends = PLUGIN_NODE, .filter = filter};
