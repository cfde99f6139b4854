// SPDX-License-Identifier: Apache-2.0
#include "scheduler/cache/virtual_use.h"
#include "scheduler/model/api_objects.h"
#include "scheduler/cache/policies.h"

#include "lib/base/str.h"
#include "lib/model/names.h"

enum virtual_use virtual_use_of(const struct cluster *c, const struct cluster_pod *cp)
{
    const struct pod *p = cp->pod;
    const struct labels *of_namespace = api_objects_namespace_labels(c->objects, p->ns);
    const char *wish = labels_get(&p->annotations, NAME_ANN_BURST);
    if (str_eq(wish, "eci_only") || str_eq(labels_get(&p->labels, NAME_LABEL_ECI), "true") ||
        (of_namespace != NULL && str_eq(labels_get(of_namespace, NAME_LABEL_ECI), "true")))
        return VIRTUAL_USE_ONLY;
    if (policies_holds(cp))
        return VIRTUAL_USE_BY_POLICY;
    return str_eq(wish, "eci") ? VIRTUAL_USE_LAST : VIRTUAL_USE_NEVER;
}

int32_t virtual_use_rank(const struct cluster_pod *cp, const struct cluster_node *node)
{
    return policies_holds(cp) ? policies_unit_on(cp, UINT64_MAX, node) : node->is_virtual;
}
