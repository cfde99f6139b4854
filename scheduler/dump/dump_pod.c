// SPDX-License-Identifier: Apache-2.0
/*
 * Prints exactly what decode reads and a filter, a score or the accounting uses. Kubernetes'
 * defaults are left out, amounts are exact, lists are in the model's order: the same pod always
 * gives the same bytes, which decode to the same pod. Where the model keeps only that something
 * exists (gates, resource claims, a rule that restarts all containers), a stand-in is printed that
 * decodes to the same.
 *
 * For a new field of struct pod add a line here, and to the pod with everything in test_dump.c.
 */
#include "scheduler/dump/dump_pod.h"

#include <string.h>

#include "lib/base/str.h"
#include "lib/model/podterm.h"
#include "lib/model/spread.h"
#include "lib/model/volume.h"
#include "scheduler/dump/dump_parts.h"

static void put_node_affinity(struct json_writer *w, const struct pod *p)
{
    dump_parts_object(w, "nodeAffinity");
    if (p->has_required_affinity)
        dump_parts_node_selector(w, "requiredDuringSchedulingIgnoredDuringExecution",
                                 &p->required_affinity);
    if (p->preferred_affinity_len > 0) {
        dump_parts_array(w, "preferredDuringSchedulingIgnoredDuringExecution");
        for (size_t i = 0; i < p->preferred_affinity_len; i++) {
            json_object_begin(w);
            json_kv_int(w, "weight", p->preferred_affinity[i].weight);
            json_key(w, "preference");
            dump_parts_node_term(w, &p->preferred_affinity[i].term);
            json_object_end(w);
        }
        json_array_end(w);
    }
    json_object_end(w);
}

/* The model has the effective term, with namespaces and matchLabelKeys applied. */
static void put_podterm(struct json_writer *w, const struct podterm *t)
{
    json_object_begin(w);
    dump_parts_selector(w, "labelSelector", &t->selector);
    dump_parts_strings(w, "namespaces", t->namespaces, t->namespaces_len);
    dump_parts_selector(w, "namespaceSelector", &t->namespace_selector);
    json_kv_str(w, "topologyKey", t->topology_key);
    json_object_end(w);
}

static void put_required_terms(struct json_writer *w, const struct podterm *terms, size_t len)
{
    if (len == 0)
        return;
    dump_parts_array(w, "requiredDuringSchedulingIgnoredDuringExecution");
    for (size_t i = 0; i < len; i++)
        put_podterm(w, &terms[i]);
    json_array_end(w);
}

static void put_preferred_terms(struct json_writer *w, const struct podterm *terms, size_t len)
{
    if (len == 0)
        return;
    dump_parts_array(w, "preferredDuringSchedulingIgnoredDuringExecution");
    for (size_t i = 0; i < len; i++) {
        json_object_begin(w);
        json_kv_int(w, "weight", terms[i].weight);
        json_key(w, "podAffinityTerm");
        put_podterm(w, &terms[i]);
        json_object_end(w);
    }
    json_array_end(w);
}

static void put_pod_affinity(struct json_writer *w, const char *key, const struct podterm *required,
                             size_t required_len, const struct podterm *preferred,
                             size_t preferred_len)
{
    if (required_len + preferred_len == 0)
        return;
    dump_parts_object(w, key);
    put_required_terms(w, required, required_len);
    put_preferred_terms(w, preferred, preferred_len);
    json_object_end(w);
}

static void put_affinity(struct json_writer *w, const struct pod *p)
{
    const struct podterms *t = p->terms;
    bool to_nodes = p->has_required_affinity || p->preferred_affinity_len > 0;
    if (!to_nodes && t == NULL)
        return;
    dump_parts_object(w, "affinity");
    if (to_nodes)
        put_node_affinity(w, p);
    if (t != NULL) {
        put_pod_affinity(w, "podAffinity", t->affinity, t->affinity_len, t->preferred,
                         t->preferred_len);
        put_pod_affinity(w, "podAntiAffinity", t->anti_affinity, t->anti_affinity_len,
                         t->preferred_anti, t->preferred_anti_len);
    }
    json_object_end(w);
}

static void put_spread(struct json_writer *w, const struct pod *p)
{
    if (p->spread_len == 0)
        return;
    dump_parts_array(w, "topologySpreadConstraints");
    for (size_t i = 0; i < p->spread_len; i++) {
        const struct spread *s = &p->spread[i];
        json_object_begin(w);
        json_kv_str(w, "topologyKey", s->topology_key);
        json_kv_int(w, "maxSkew", s->max_skew);
        if (s->min_domains != 1)
            json_kv_int(w, "minDomains", s->min_domains);
        json_kv_str(w, "whenUnsatisfiable", s->hard ? "DoNotSchedule" : "ScheduleAnyway");
        if (!s->honor_affinity)
            json_kv_str(w, "nodeAffinityPolicy", "Ignore");
        if (s->honor_taints)
            json_kv_str(w, "nodeTaintsPolicy", "Honor");
        dump_parts_selector(w, "labelSelector", &s->selector);
        json_object_end(w);
    }
    json_array_end(w);
}

/* The id of an RBD image is "pool/image". */
static void put_rbd(struct json_writer *w, const struct pod_volume *v)
{
    const char *id = str_or_empty(v->id), *slash = strchr(id, '/');
    dump_parts_strings(w, "monitors", v->monitors, v->monitors_len);
    if (slash != NULL) {
        json_key(w, "pool");
        json_put_str_n(w, id, (size_t)(slash - id));
    }
    json_kv_str(w, "image", slash != NULL ? slash + 1 : id);
}

static void put_volume(struct json_writer *w, const struct pod_volume *v)
{
    static const struct {
        const char *field, *id;
    } kinds[] = {
        [POD_VOLUME_CLAIM] = {"persistentVolumeClaim", NULL},
        [POD_VOLUME_EPHEMERAL] = {"ephemeral", NULL},
        [POD_VOLUME_CSI] = {"csi", NULL},
        [POD_VOLUME_GCE_PD] = {"gcePersistentDisk", "pdName"},
        [POD_VOLUME_AWS_EBS] = {"awsElasticBlockStore", "volumeID"},
        [POD_VOLUME_AZURE_DISK] = {"azureDisk", "diskURI"},
        [POD_VOLUME_CINDER] = {"cinder", "volumeID"},
        [POD_VOLUME_PORTWORX] = {"portworxVolume", "volumeID"},
        [POD_VOLUME_ISCSI] = {"iscsi", "iqn"},
        [POD_VOLUME_RBD] = {"rbd", NULL},
    };
    json_object_begin(w);
    dump_parts_text(w, "name", v->name);
    dump_parts_object(w, kinds[v->kind].field);
    if (kinds[v->kind].id != NULL)
        dump_parts_text(w, kinds[v->kind].id, v->id);
    else if (v->kind == POD_VOLUME_CLAIM)
        dump_parts_text(w, "claimName", v->claim);
    else if (v->kind == POD_VOLUME_CSI)
        dump_parts_text(w, "driver", v->driver);
    else if (v->kind == POD_VOLUME_RBD)
        put_rbd(w, v);
    dump_parts_true(w, "readOnly", v->read_only);
    json_object_end(w);
    json_object_end(w);
}

static void put_volumes(struct json_writer *w, const struct pod *p)
{
    if (p->volumes_len + p->image_volumes_len == 0)
        return;
    dump_parts_array(w, "volumes");
    for (size_t i = 0; i < p->volumes_len; i++)
        put_volume(w, &p->volumes[i]);
    for (size_t i = 0; i < p->image_volumes_len; i++) {
        json_object_begin(w);
        dump_parts_object(w, "image");
        json_kv_str(w, "reference", p->image_volumes[i]);
        json_object_end(w);
        json_object_end(w);
    }
    json_array_end(w);
}

static void put_tolerations(struct json_writer *w, const struct pod *p)
{
    if (p->tolerations_len == 0)
        return;
    dump_parts_array(w, "tolerations");
    for (size_t i = 0; i < p->tolerations_len; i++) {
        const struct toleration *t = &p->tolerations[i];
        json_object_begin(w);
        dump_parts_text(w, "key", t->key);
        json_kv_str(w, "operator", t->op == TOLERATION_EXISTS ? "Exists" : "Equal");
        dump_parts_text(w, "value", t->value);
        dump_parts_text(w, "effect", dump_parts_effect(t->effect));
        json_object_end(w);
    }
    json_array_end(w);
}

static void put_container(struct json_writer *w, const struct container *c, bool restart_all)
{
    json_object_begin(w);
    json_kv_str(w, "name", c->name);
    dump_parts_text(w, "image", c->image);
    if (c->sidecar)
        json_kv_str(w, "restartPolicy", "Always");
    if (restart_all) {
        dump_parts_array(w, "restartPolicyRules");
        json_object_begin(w);
        json_kv_str(w, "action", "RestartAllContainers");
        json_object_end(w);
        json_array_end(w);
    }
    if (!dump_parts_is_none(&c->requests) || !dump_parts_is_none(&c->limits)) {
        dump_parts_object(w, "resources");
        dump_parts_resources(w, "limits", &c->limits);
        dump_parts_resources(w, "requests", &c->requests);
        json_object_end(w);
    }
    if (c->ports_len > 0) {
        dump_parts_array(w, "ports");
        for (size_t i = 0; i < c->ports_len; i++) {
            json_object_begin(w);
            json_kv_int(w, "hostPort", c->ports[i].host_port);
            dump_parts_text(w, "hostIP", c->ports[i].host_ip);
            json_kv_str(w, "protocol", c->ports[i].protocol);
            json_object_end(w);
        }
        json_array_end(w);
    }
    json_object_end(w);
}

static void put_containers(struct json_writer *w, const char *key, const struct container *list,
                           size_t len, bool restart_all)
{
    if (len == 0)
        return;
    dump_parts_array(w, key);
    for (size_t i = 0; i < len; i++)
        put_container(w, &list[i], restart_all && i == 0);
    json_array_end(w);
}

static void put_actual(struct json_writer *w, const struct resources *actual)
{
    dump_parts_object(w, "resources");
    dump_parts_resources(w, "requests", actual);
    json_object_end(w);
}

static void put_resized(struct json_writer *w, const struct resized *r)
{
    if (r->has_allocated)
        dump_parts_resources_even_none(w, "allocatedResources", &r->allocated);
    if (r->has_actual)
        put_actual(w, &r->actual);
}

static void put_container_statuses(struct json_writer *w, const char *key,
                                   const struct container *list, size_t len)
{
    bool any = false;
    for (size_t i = 0; i < len; i++)
        any |= list[i].resized != NULL;
    if (!any)
        return;
    dump_parts_array(w, key);
    for (size_t i = 0; i < len; i++) {
        json_object_begin(w);
        json_kv_str(w, "name", list[i].name);
        if (list[i].resized != NULL)
            put_resized(w, list[i].resized);
        json_object_end(w);
    }
    json_array_end(w);
}

static void put_owner(struct json_writer *w, const struct pod *p)
{
    if (p->owner_kind == NULL && p->owner_name == NULL && p->owner_uid == NULL)
        return;
    dump_parts_array(w, "ownerReferences");
    json_object_begin(w);
    dump_parts_text(w, "kind", p->owner_kind);
    dump_parts_text(w, "name", p->owner_name);
    dump_parts_text(w, "uid", p->owner_uid);
    json_kv_bool(w, "controller", true);
    json_object_end(w);
    json_array_end(w);
}

static void put_pod_metadata(struct json_writer *w, const struct pod *p)
{
    dump_parts_object(w, "metadata");
    json_kv_str(w, "namespace", p->ns);
    json_kv_str(w, "name", p->name);
    dump_parts_text(w, "uid", p->uid);
    dump_parts_text(w, "resourceVersion", p->resource_version);
    if (p->created_ns > 0)
        dump_parts_time(w, "creationTimestamp", p->created_ns);
    dump_parts_terminating(w, p->terminating);
    dump_parts_labels(w, "labels", &p->labels);
    dump_parts_annotations(w, &p->annotations);
    put_owner(w, p);
    json_object_end(w);
}

static void put_named(struct json_writer *w, const char *key, const char *name)
{
    dump_parts_array(w, key);
    json_object_begin(w);
    json_kv_str(w, "name", name);
    json_object_end(w);
    json_array_end(w);
}

static void put_pod_spec(struct json_writer *w, const struct pod *p)
{
    dump_parts_object(w, "spec");
    dump_parts_text(w, "nodeName", p->node);
    json_kv_str(w, "schedulerName", p->scheduler);
    if (p->priority != 0)
        json_kv_int(w, "priority", p->priority);
    if (p->preempt_never)
        json_kv_str(w, "preemptionPolicy", "Never");
    if (p->active_deadline_s > 0)
        json_kv_int(w, "activeDeadlineSeconds", p->active_deadline_s);
    if (p->gated) /* the model does not have the gates' names */
        put_named(w, "schedulingGates", "gate");
    if (p->resource_claims)
        put_named(w, "resourceClaims", "claim");
    if (p->scheduling_group != NULL) {
        dump_parts_object(w, "schedulingGroup");
        json_kv_str(w, "podGroupName", p->scheduling_group);
        json_object_end(w);
    }
    dump_parts_labels(w, "nodeSelector", &p->node_selector);
    put_affinity(w, p);
    put_tolerations(w, p);
    put_spread(w, p);
    put_volumes(w, p);
    dump_parts_true(w, "hostNetwork", p->host_network);
    if (p->features & POD_FEATURE_HOST_NET_USERNS)
        json_kv_bool(w, "hostUsers", false);
    if (p->sizes != NULL)
        dump_parts_resources(w, "overhead", &p->sizes->overhead);
    if (p->sizes != NULL && p->sizes->has_requests) {
        dump_parts_object(w, "resources");
        dump_parts_resources_even_none(w, "requests", &p->sizes->requests);
        json_object_end(w);
    }
    put_containers(w, "initContainers", p->init_containers, p->init_containers_len, false);
    put_containers(w, "containers", p->containers, p->containers_len,
                   p->features & POD_FEATURE_RESTART_ALL);
    json_object_end(w);
}

static void put_conditions(struct json_writer *w, const struct pod *p)
{
    if (p->scheduled.type == NULL && !p->resize_infeasible)
        return;
    dump_parts_array(w, "conditions");
    if (p->scheduled.type != NULL) {
        json_object_begin(w);
        json_kv_str(w, "type", p->scheduled.type);
        json_kv_str(w, "status", p->scheduled.status);
        dump_parts_text(w, "reason", p->scheduled.reason);
        dump_parts_text(w, "message", p->scheduled.message);
        json_object_end(w);
    }
    if (p->resize_infeasible) {
        json_object_begin(w);
        json_kv_str(w, "type", "PodResizePending");
        json_kv_str(w, "status", "True");
        json_kv_str(w, "reason", "Infeasible");
        json_object_end(w);
    }
    json_array_end(w);
}

/* Extended resources that dynamic resource allocation provides. */
static void put_claimed(struct json_writer *w, const struct pod *p)
{
    if (p->claimed_len == 0)
        return;
    dump_parts_object(w, "extendedResourceClaimStatus");
    dump_parts_array(w, "requestMappings");
    for (size_t i = 0; i < p->claimed_len; i++) {
        json_object_begin(w);
        json_kv_str(w, "resourceName", p->claimed[i]);
        json_object_end(w);
    }
    json_array_end(w);
    json_object_end(w);
}

static void put_pod_status(struct json_writer *w, const struct pod *p)
{
    static const char *const phases[] = {[POD_PENDING] = "Pending",
                                         [POD_RUNNING] = "Running",
                                         [POD_SUCCEEDED] = "Succeeded",
                                         [POD_FAILED] = "Failed",
                                         [POD_UNKNOWN] = "Unknown"};
    dump_parts_object(w, "status");
    json_kv_str(w, "phase", phases[p->phase]);
    if (p->started_ns > 0)
        dump_parts_time(w, "startTime", p->started_ns);
    dump_parts_text(w, "nominatedNodeName", p->nominated_node);
    put_claimed(w, p);
    put_conditions(w, p);
    if (p->sizes != NULL)
        put_resized(w, &p->sizes->status);
    put_container_statuses(w, "initContainerStatuses", p->init_containers, p->init_containers_len);
    put_container_statuses(w, "containerStatuses", p->containers, p->containers_len);
    json_object_end(w);
}

void dump_pod_print(const struct pod *p, bool assumed, struct json_writer *w)
{
    json_object_begin(w);
    json_kv_str(w, "apiVersion", "v1");
    json_kv_str(w, "kind", "Pod");
    put_pod_metadata(w, p);
    put_pod_spec(w, p);
    put_pod_status(w, p);
    if (assumed || p->unplaceable != NULL) {
        dump_parts_object(w, "cosched");
        dump_parts_true(w, "assumed", assumed);
        dump_parts_text(w, "unplaceable", p->unplaceable);
        json_object_end(w);
    }
    json_object_end(w);
}
