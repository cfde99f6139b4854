// SPDX-License-Identifier: Apache-2.0
/*
 * volumes_attach - volumes that pods compete for: a node has a limit per CSI driver, some disks may
 * be mounted by one pod of a node, and a ReadWriteOncePod claim by one pod of the cluster.
 *
 * A node's volumes of a driver are those of its pods and the attached ones (a VolumeAttachment
 * outlives the pod for a while); each counts once, by its handle. A claim without a volume counts
 * for the driver that will provision it. As in kube-scheduler 1.36, including
 * CSIDriver.preventPodSchedulingIfMissing, which the API server drops while its feature gate is
 * off.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/base/vec.h"
#include "scheduler/framework/equivalence.h"
#include "scheduler/plugins/all.h"
#include "scheduler/model/volumes_attached.h"
#include "scheduler/model/volumes_held.h"
#include "scheduler/model/volumes_view.h"

static bool no(struct reason *why, enum reason_kind kind, const char *what)
{
    if (why != NULL)
        *why = (struct reason){.kind = kind, .what = what};
    return false;
}

static bool claims_are_free(const struct plugin_ask *ask, const struct volumes_view *view,
                            struct arena *a, struct reason *why)
{
    for (size_t i = 0; i < view->exclusive_len; i++)
        if (volumes_held_is_used(ask->cluster->volumes, view->exclusive[i]))
            return no(why, REASON_CLAIM,
                      why == NULL
                          ? NULL
                          : arena_printf(a,
                                         "claim %s is in use by another pod, and its access mode "
                                         "ReadWriteOncePod allows one",
                                         view->exclusive[i]));
    return true;
}

/* The kinds for which pod_volume_conflicts can be true. */
static bool may_conflict(const struct pod_volume *v)
{
    return v->kind == POD_VOLUME_GCE_PD || v->kind == POD_VOLUME_AWS_EBS ||
           v->kind == POD_VOLUME_ISCSI || v->kind == POD_VOLUME_RBD;
}

static bool is_mounted(const struct pod_volume *v, const struct pod *by)
{
    for (size_t i = 0; i < by->volumes_len; i++)
        if (pod_volume_conflicts(v, &by->volumes[i]))
            return true;
    return false;
}

static bool disks_are_free(const struct pod *p, const struct cluster_node *node, struct arena *a,
                           struct reason *why)
{
    for (size_t i = 0; i < p->volumes_len; i++)
        for (size_t k = 0; may_conflict(&p->volumes[i]) && k < node->pods.len; k++)
            if (is_mounted(&p->volumes[i], node->pods.items[k]->pod))
                return no(why, REASON_VOLUME_TAKEN,
                          why == NULL ? NULL : arena_strdup(a, p->volumes[i].id));
    return true;
}

static bool drivers_are_there(const struct cluster *c, const struct volumes_view *view,
                              const struct csi_node *csi, struct arena *a, struct reason *why)
{
    for (size_t i = 0; i < view->attached_len; i++) {
        const struct volumes_attached *t = &view->attached[i];
        const struct csi_driver *driver = api_objects_find_csi_driver(c->objects, t->driver);
        if ((csi == NULL && t->in_tree) || driver == NULL || !driver->needed_on_node)
            continue;
        if (csi == NULL || csi_node_find(csi, t->driver) == NULL)
            return no(why, REASON_VOLUME_DRIVER, why == NULL ? NULL : arena_strdup(a, t->driver));
    }
    return true;
}

/* Volumes of one driver; unique after unite. */
struct handles {
    const char *driver;
    struct VEC(struct volumes_attached) all;
};

static void add_pods(const struct cluster *c, const struct cluster_node *node, struct handles *h)
{
    for (size_t i = 0; i < node->pods.len; i++) {
        const struct pod *p = node->pods.items[i]->pod;
        for (size_t k = 0; k < p->volumes_len; k++) {
            struct volumes_attached t;
            if (volumes_attached_of(c, p, &p->volumes[k], &t) && str_eq(t.driver, h->driver))
                vec_push(&h->all, t);
        }
    }
}

/* Attachments do not identify in-tree volumes. */
static void add_attachments(const struct cluster *c, const struct cluster_node *node,
                            struct handles *h)
{
    size_t len;
    const struct volume_attachment *const *all = volumes_attached_to(c, node->name, &len);
    for (size_t i = 0; i < len; i++) {
        const struct pv *v = str_eq(all[i]->attacher, h->driver)
                                 ? api_objects_find_pv(c->objects, all[i]->volume)
                                 : NULL;
        if (v == NULL || v->in_tree || v->handle == NULL)
            continue;
        struct volumes_attached t = {.driver = h->driver, .handle = v->handle};
        vec_push(&h->all, t);
    }
}

static void unite(struct handles *h)
{
    size_t n = 0;
    if (h->all.len > 1)
        qsort(h->all.items, h->all.len, sizeof *h->all.items, volumes_attached_compare);
    for (size_t i = 0; i < h->all.len; i++)
        if (n == 0 || volumes_attached_compare(&h->all.items[n - 1], &h->all.items[i]) != 0)
            h->all.items[n++] = h->all.items[i];
    h->all.len = n;
}

/* The driver's volumes that the pod adds: those that no pod there has. One that is only attached
 * counts twice, as in kube-scheduler. */
static int64_t count_new(const struct volumes_view *view, const struct handles *h)
{
    int64_t n = 0;
    for (size_t i = 0; i < view->attached_len; i++)
        n += str_eq(view->attached[i].driver, h->driver) &&
             (h->all.len == 0 || bsearch(&view->attached[i], h->all.items, h->all.len,
                                         sizeof *h->all.items, volumes_attached_compare) == NULL);
    return n;
}

static bool asks_for(const struct volumes_view *view, const char *driver)
{
    for (size_t i = 0; i < view->attached_len; i++)
        if (str_eq(view->attached[i].driver, driver))
            return true;
    return false;
}

static bool has_places(const struct plugin_ask *ask, const struct volumes_view *view,
                       const struct cluster_node *node, const struct csi_driver_on_node *driver,
                       struct arena *a, struct reason *why)
{
    if (driver->limit < 0 || !asks_for(view, driver->name))
        return true;
    struct handles h = {.driver = driver->name};
    add_pods(ask->cluster, node, &h);
    unite(&h);
    int64_t want = count_new(view, &h);
    add_attachments(ask->cluster, node, &h);
    unite(&h);
    int64_t left = driver->limit - (int64_t)h.all.len;
    vec_deinit(&h.all);
    if (want == 0 || want <= left)
        return true;
    if (why != NULL)
        *why = (struct reason){.kind = REASON_VOLUME_LIMIT,
                               .what = arena_strdup(a, driver->name),
                               .want = want,
                               .free = num_max(left, 0)};
    return false;
}

static bool applies(const struct cluster_pod *pod)
{
    for (size_t i = 0; i < pod->pod->volumes_len; i++)
        if (pod->pod->volumes[i].kind != POD_VOLUME_CSI)
            return true;
    return false;
}

static bool filter(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                   struct reason *why)
{
    if (ask->pod->pod->volumes_len == 0)
        return true;
    const struct volumes_view *view =
        volumes_view_of(ask->volumes, ask->cluster, ask->pod->pod, ask->class->serial);
    const struct csi_node *csi = api_objects_find_csi_node(ask->cluster->objects, node->name);
    if (!claims_are_free(ask, view, a, why) || !disks_are_free(ask->pod->pod, node, a, why) ||
        !drivers_are_there(ask->cluster, view, csi, a, why))
        return false;
    for (size_t i = 0; csi != NULL && i < csi->drivers_len; i++)
        if (!has_places(ask, view, node, &csi->drivers[i], a, why))
            return false;
    return true;
}

const struct plugin plugin_volumes_attach = {
    .name = "volumes_attach",
    PLUGIN_READS(FACET_VOLUMES | FACET_CLAIMS_USED | FACET_HELD),
    .version = volumes_held_version,
    .entangles = true,
    .applies = applies,
    .filter = filter};
