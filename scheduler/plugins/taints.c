// SPDX-License-Identifier: Apache-2.0
/* taints - cordoned nodes and NoSchedule/NoExecute taints that the pod does not tolerate;
 * PreferNoSchedule ones cost points. A provider's taint of virtual nodes is a plugin of its own,
 * because whether it keeps a pod away depends on more than taints: on the node's label, and on the
 * labels and policies of the pod's namespace. */
#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/plugins/all.h"
#include "scheduler/framework/class_key.h"

static const char *effect_name(enum taint_effect e)
{
    return e == TAINT_NO_EXECUTE ? "NoExecute" : "NoSchedule";
}

/* The first that is a provider's, or is not. */
static const struct taint *first_against(const struct plugin_ask *ask,
                                         const struct cluster_node *node, bool of_provider)
{
    const struct taint *t;
    for (size_t i = 0; (t = node_untolerated(node->node, ask->pod->pod, &i)) != NULL;)
        if (virtuals_cover(&ask->cluster->virtuals, t) == of_provider)
            return t;
    return NULL;
}

static bool refuse(const struct taint *t, struct arena *a, struct reason *why)
{
    if (why == NULL)
        return false;
    if (str_eq(t->key, "node.kubernetes.io/unschedulable"))
        *why = (struct reason){.kind = REASON_UNSCHEDULABLE};
    else
        *why = (struct reason){
            .kind = REASON_TAINT,
            .what = arena_printf(a, "%s%s%s:%s", t->key, str_or_empty(t->value)[0] ? "=" : "",
                                 str_or_empty(t->value), effect_name(t->effect))};
    return false;
}

static bool filter(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                   struct reason *why)
{
    if (node->node->taints_len == 0 && !node->node->unschedulable)
        return true; /* most nodes */
    const struct taint *t = first_against(ask, node, false);
    return t == NULL || refuse(t, a, why);
}

static bool filter_provider(const struct plugin_ask *ask, const struct cluster_node *node,
                            struct arena *a, struct reason *why)
{
    if (node->node->taints_len == 0)
        return true;
    const struct taint *t = first_against(ask, node, true);
    return t == NULL || plugin_virtual_may_use(ask, node) || refuse(t, a, why);
}

/* The first soft taint costs half, the second a sixth more, and so on. */
static int64_t score(const struct plugin_ask *ask, const struct cluster_node *node)
{
    const struct node *n = node->node;
    int64_t against = 0;
    for (size_t i = 0; i < n->taints_len; i++)
        against += n->taints[i].effect == TAINT_PREFER_NO_SCHEDULE &&
                   !node_taint_is_tolerated(ask->pod->pod, &n->taints[i]);
    return PLUGIN_SCORE_MAX / (1 + against);
}

static void key(const struct plugin_ask *ask, struct strbuf *out)
{
    const struct pod *p = ask->pod->pod;
    for (size_t i = 0; i < p->tolerations_len; i++) {
        const struct toleration *t = &p->tolerations[i];
        strbuf_addc(out, 'T');
        class_key_text(out, t->key);
        class_key_number(out, t->op);
        class_key_text(out, t->value);
        class_key_number(out, t->effect);
    }
}

const struct plugin plugin_taints = {.name = "taints",
                                     .key = key,
                                     PLUGIN_READS(FACET_TAINTS),
                                     .score_depends = PLUGIN_NODE,
                                     .filter = filter,
                                     .score = score,
                                     .weight = 3};

const struct plugin plugin_taints_provider = {
    .name = "burst-taints",
    PLUGIN_READS(FACET_TAINTS | FACET_VIRTUAL | FACET_NAMESPACES | FACET_POLICIES),
    .filter = filter_provider};
