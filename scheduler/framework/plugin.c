// SPDX-License-Identifier: Apache-2.0
#include "scheduler/framework/plugin.h"

struct plugin_ask plugin_question(const struct pipeline *p, struct cluster_pod *pod,
                                  const struct pod_class *class)
{
    return (struct plugin_ask){.cluster = p->cluster,
                               .pod = pod,
                               .class = class,
                               .pool = p->pool,
                               .units = p->units,
                               .volumes = p->volumes,
                               .packing =
                                   p->packing == CLUSTER_AS_SET ? p->cluster->packing : p->packing};
}

const char *plugin_own_problem(const struct cluster_pod *pod)
{
    const char *why = pod->pod->unplaceable;
    for (const struct plugin *const *p = plugin_table; why == NULL && *p != NULL; p++)
        if ((*p)->illegal != NULL)
            why = (*p)->illegal(pod);
    if (why == NULL && pod->pod->resource_claims)
        why =
            "spec.resourceClaims (dynamic resource allocation) is not supported by this scheduler";
    return why;
}

const struct plugin *plugin_refusing(const struct plugin_ask *ask, const struct cluster_node *node,
                                     struct arena *a, struct reason *why)
{
    for (const struct plugin *const *p = plugin_table; *p != NULL; p++)
        if ((*p)->filter != NULL && !plugin_filter(*p, ask, node, a, why))
            return *p;
    return NULL;
}
