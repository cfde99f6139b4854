// SPDX-License-Identifier: Apache-2.0
/*
 * volumes - claims and the volumes behind them: whether a pod's storage is there, can be reached from the node, or can be made for it there (volumes_view.h). What is chosen
 * for claims that waited is promised when the pod is assumed (volumes_held.h), by the same function, so there is nothing to reserve here.
 */
#include "scheduler/plugin.h"
#include "scheduler/volumes_held.h"
#include "scheduler/volumes_view.h"

static bool applies(const struct cluster_pod *pod)
{
    for (size_t i = 0; i < pod->pod->volumes_len; i++)
        if (pod->pod->volumes[i].claim != NULL)
            return true;
    return false;
}

static bool filter(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                   struct reason *why)
{
    return ask->pod->pod->volumes_len == 0 ||
           volumes_view_choose(volumes_view_of(ask), node->node, a, why);
}

/* Forgetting an assumed pod gives a promised volume back, and is an EVENT_VOLUME. */
const struct plugin plugin_volumes = {.name = "volumes",
                                      .wakes = EVENT_VOLUME | EVENT_NODE_LABELS,
                                      .depends = PLUGIN_NODE,
                                      .version = volumes_held_version,
                                      .entangles = true,
                                      .applies = applies,
                                      .filter = filter};
