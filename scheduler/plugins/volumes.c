// SPDX-License-Identifier: Apache-2.0
/* volumes - claims and the volumes behind them: whether a pod's storage exists, and can be reached
 * from or created for the node (volumes_view.h). Volumes chosen for waiting claims are promised
 * when the pod is assumed (volumes_held.h), by the same function, so reserve has nothing to do. */
#include "scheduler/plugins/all.h"
#include "scheduler/model/volumes_held.h"
#include "scheduler/model/volumes_view.h"
#include "scheduler/framework/class_key.h"
#include "scheduler/framework/equivalence.h"

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
    static const enum reason_kind kinds[] = {
        [VOLUMES_NO_CLAIM] = REASON_CLAIM,
        [VOLUMES_NO_REACH] = REASON_VOLUME_REACH,
        [VOLUMES_NO_ZONE] = REASON_VOLUME_ZONE,
        [VOLUMES_NO_NONE] = REASON_VOLUME_NONE,
        [VOLUMES_NO_TOPOLOGY] = REASON_VOLUME_TOPOLOGY,
        [VOLUMES_NO_CAPACITY] = REASON_VOLUME_CAPACITY,
        [VOLUMES_NO_ELSEWHERE] = REASON_VOLUME_ELSEWHERE,
    };
    const struct pod *p = ask->pod->pod;
    struct volumes_no no;
    if (p->volumes_len == 0 ||
        volumes_view_choose(volumes_view_of(ask->volumes, ask->cluster, p, ask->class->serial),
                            node->node, a, why != NULL ? &no : NULL))
        return true;
    if (why != NULL)
        *why = (struct reason){.kind = kinds[no.kind], .what = no.what};
    return false;
}

/* Names identify volumes shared with other pods; an ephemeral claim belongs to one pod. Inline CSI
 * volumes do not depend on nodes. */
static void key(const struct plugin_ask *ask, struct strbuf *out)
{
    const struct pod *p = ask->pod->pod;
    for (size_t i = 0; i < p->volumes_len; i++) {
        const struct pod_volume *v = &p->volumes[i];
        if (v->kind == POD_VOLUME_CSI)
            continue;
        strbuf_addc(out, 'V');
        class_key_number(out, v->kind);
        class_key_number(out, v->read_only);
        class_key_text(out, v->claim);
        class_key_text(out, v->claim != NULL ? p->ns : NULL);
        class_key_text(out, v->kind == POD_VOLUME_EPHEMERAL ? p->uid : NULL);
        class_key_text(out, v->driver);
        class_key_text(out, v->id);
        for (size_t k = 0; k < v->monitors_len; k++)
            class_key_text(out, v->monitors[k]);
    }
}

/* Forgetting an assumed pod returns a promised volume, which is an EVENT_VOLUME. */
const struct plugin plugin_volumes = {.name = "volumes",
                                      .key = key,
                                      PLUGIN_READS(FACET_VOLUMES | FACET_LABELS),
                                      .version = volumes_held_version,
                                      .entangles = true,
                                      .applies = applies,
                                      .filter = filter};
