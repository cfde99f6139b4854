// SPDX-License-Identifier: Apache-2.0
/* features - node features that a pod needs (status.declaredFeatures). The kubelet of a node
 * without them would reject the pod. */
#include "scheduler/plugins/all.h"
#include "scheduler/framework/class_key.h"

static bool filter(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                   struct reason *why)
{
    (void)a;
    const char *missing = node_missing_feature(node->node, ask->pod->pod);
    if (missing != NULL && why != NULL)
        *why = (struct reason){.kind = REASON_FEATURE, .what = missing};
    return missing == NULL;
}

static bool applies(const struct cluster_pod *pod)
{
    return pod->pod->features != 0;
}

static void key(const struct plugin_ask *ask, struct strbuf *out)
{
    strbuf_addc(out, 'F');
    class_key_number(out, ask->pod->pod->features);
}

const struct plugin plugin_features = {.name = "features",
                                       .key = key,
                                       PLUGIN_READS(FACET_FEATURES),
                                       .applies = applies,
                                       .filter = filter};
