// SPDX-License-Identifier: Apache-2.0
/*
 * The hot path: most of what the API server sends is pods.
 *
 * Each object is walked once, member by member, and an unwanted member costs one step whatever its
 * size (managedFields is half of a pod). The pod is built in scratch, which wastes some space, and
 * then packed (pod_pack): one malloc of exactly its size.
 *
 * A value that cannot be read must neither hide a pod, or its cards would be given away again, nor
 * hurt its neighbours; and the API server accepts much: NULs in annotations, images, claim names
 * and node affinity, cpu: "1e30", ten thousand containers. So such a value is absent, and the pod
 * is read. What only narrows or widens where it may run, and a newer API server may fill with
 * unknown values (a toleration's operator), is read in the narrower sense. If a value that decides
 * about that is missing, no node takes the pod (pod.unplaceable). Only a pod whose structure is
 * broken (spec is a list) is an error: no API server sends that. decode_pod_remains gives its
 * names.
 */
#include "lib/kube/decode.h"

#include <stdalign.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/kube/decode_container.h"
#include "lib/kube/decode_field.h"
#include "lib/kube/decode_terms.h"
#include "lib/kube/decode_volume.h"

enum { SCRATCH = 8192 }; /* on the stack; a larger pod also uses the heap */

/* false: unknown operator or effect. Such a toleration tolerates nothing here. */
static bool toleration_words(const char *op, const char *effect, struct toleration *t)
{
    if (!op[0] || str_eq(op, "Equal"))
        t->op = TOLERATION_EQUAL;
    else if (str_eq(op, "Exists"))
        t->op = TOLERATION_EXISTS;
    else
        return false;
    if (!effect[0])
        t->effect = TAINT_ALL;
    else if (str_eq(effect, "NoSchedule"))
        t->effect = TAINT_NO_SCHEDULE;
    else if (str_eq(effect, "PreferNoSchedule"))
        t->effect = TAINT_PREFER_NO_SCHEDULE;
    else if (str_eq(effect, "NoExecute"))
        t->effect = TAINT_NO_EXECUTE;
    else
        return false;
    return true;
}

/* The elements of a list that are read: -1 if it is none, or longer than that. */
static int bounded(json *j, const char *name, size_t *len, struct error *err)
{
    int rc = decode_field_array(j, name, DECODE_LIST_MAX, len, err);
    *len = *len < DECODE_LIST_MAX ? *len : DECODE_LIST_MAX;
    return rc;
}

static int decode_tolerations(json *j, struct pod *p, struct arena *a, struct error *err)
{
    size_t len;
    int rc = bounded(j, "spec.tolerations", &len, err);
    p->tolerations = arena_new(a, struct toleration, len);
    p->tolerations_len = 0;
    for (struct json_iter at = json_iter(j); p->tolerations_len < len && json_next(&at);) {
        struct toleration t = {.key = "", .value = ""};
        const char *op = "", *effect = "";
        bool bad = !json_is_object(at.value);
        for (struct json_iter it = json_iter(at.value); json_next(&it);) {
            if (FIELD(it, "key"))
                bad |= decode_field_str(it.value, "key", a, &t.key, NULL) < 0;
            else if (FIELD(it, "value"))
                bad |= decode_field_str(it.value, "value", a, &t.value, NULL) < 0;
            else if (FIELD(it, "operator"))
                op = str_or_empty(json_str(it.value));
            else if (FIELD(it, "effect"))
                effect = str_or_empty(json_str(it.value));
        }
        if (!bad && toleration_words(op, effect, &t))
            p->tolerations[p->tolerations_len++] = t;
    }
    return rc;
}

static int decode_preferred(json *j, struct pod *p, struct arena *a, struct error *err)
{
    size_t len;
    int rc = bounded(j, "spec.affinity.nodeAffinity.preferred", &len, err);
    p->preferred_affinity = arena_new(a, struct preferred_term, len);
    p->preferred_affinity_len = 0;
    for (struct json_iter it = json_iter(j); p->preferred_affinity_len < len && json_next(&it);) {
        struct preferred_term *t = &p->preferred_affinity[p->preferred_affinity_len++];
        int64_t weight = 0;
        (void)decode_field_int(json_get(it.value, "weight"), "weight", 0, 100, &weight, NULL);
        node_term_decode(json_get(it.value, "preference"), a, &t->term);
        t->weight = (int32_t)weight;
    }
    return rc;
}

static int decode_affinity(json *j, struct pod *p, struct arena *a, struct error *err)
{
    bool have;
    json *node = json_get(j, "nodeAffinity");
    if (decode_field_object(j, "spec.affinity", &have, err) < 0 ||
        decode_field_object(node, "spec.affinity.nodeAffinity", &have, err) < 0)
        return -1;
    json *required = json_get(node, "requiredDuringSchedulingIgnoredDuringExecution");
    int rc = 0;
    if (required && !json_is_null(required)) {
        p->has_required_affinity = true;
        if (node_selector_decode(required, a, &p->required_affinity, err) < 0)
            rc = error_wrap(err, "spec.affinity.nodeAffinity.required");
    }
    json *preferred = json_get(node, "preferredDuringSchedulingIgnoredDuringExecution");
    if (decode_preferred(preferred, p, a, rc < 0 ? NULL : err) < 0)
        rc = -1;
    return decode_terms_affinity(j, p, a, rc < 0 ? NULL : err) < 0 ? -1 : rc;
}

static struct pod_sizes *sizes_of(struct pod *p, struct arena *a)
{
    if (!p->sizes)
        p->sizes = arena_new(a, struct pod_sizes, 1);
    return p->sizes;
}

/* Members of spec, ordered by how common they are. -1: no node may take the pod. */
static int decode_spec_field(const struct json_iter *at, struct pod *p, struct arena *a,
                             struct error *err)
{
    const struct json_iter it = *at;
    int64_t n = 0;
    if (FIELD(it, "containers"))
        return decode_container_list(it.value, "spec.containers", false, a, &p->containers,
                                     &p->containers_len, &p->features, err);
    if (FIELD(it, "volumes"))
        return decode_volume_list(it.value, p, a, err);
    if (FIELD(it, "nodeName"))
        return decode_field_str(it.value, "spec.nodeName", a, &p->node, err);
    if (FIELD(it, "schedulerName"))
        return decode_field_str(it.value, "spec.schedulerName", a, &p->scheduler, err);
    if (FIELD(it, "tolerations"))
        return decode_tolerations(it.value, p, a, err);
    if (FIELD(it, "priority")) {
        if (decode_field_int(it.value, "spec.priority", INT32_MIN, INT32_MAX, &n, err) < 0)
            return -1;
        p->priority = (int32_t)n;
        return 0;
    }
    if (FIELD(it, "preemptionPolicy")) {
        p->preempt_never = str_eq(json_str(it.value), "Never");
        return 0;
    }
    if (FIELD(it, "initContainers"))
        return decode_container_list(it.value, "spec.initContainers", true, a, &p->init_containers,
                                     &p->init_containers_len, &p->features, err);
    if (FIELD(it, "nodeSelector"))
        return decode_field_labels(it.value, "spec.nodeSelector", a, &p->node_selector, err);
    if (FIELD(it, "affinity"))
        return decode_affinity(it.value, p, a, err);
    if (FIELD(it, "topologySpreadConstraints"))
        return decode_terms_spread(it.value, p, a, err);
    if (FIELD(it, "hostNetwork"))
        return decode_field_bool(it.value, "spec.hostNetwork", &p->host_network, err);
    if (FIELD(it, "activeDeadlineSeconds"))
        return decode_field_int(it.value, "spec.activeDeadlineSeconds", 1, INT32_MAX,
                                &p->active_deadline_s, err);
    if (FIELD(it, "schedulingGates")) {
        p->gated = json_len(it.value) > 0;
        return 0;
    }
    if (FIELD(it, "overhead")) {
        struct resources *overhead = &sizes_of(p, a)->overhead;
        *overhead = (struct resources){0};
        return decode_field_resources(it.value, "spec.overhead", a, QUANTITY_UP, overhead, NULL,
                                      err);
    }
    if (FIELD(it, "resources")) {
        struct pod_sizes *sizes = sizes_of(p, a);
        sizes->requests = (struct resources){0};
        return decode_field_resources(json_get(it.value, "requests"), "spec.resources.requests", a,
                                      QUANTITY_UP, &sizes->requests, &sizes->has_requests, err);
    }
    if (FIELD(it, "resourceClaims")) {
        p->resource_claims = json_len(it.value) > 0;
        return 0;
    }
    if (FIELD(it, "schedulingGroup"))
        return decode_field_str(json_get(it.value, "podGroupName"),
                                "spec.schedulingGroup.podGroupName", a, &p->scheduling_group, err);
    return 0;
}

static void decode_scheduled(json *j, struct pod_condition *c, struct arena *a)
{
    *c = (struct pod_condition){.type = "PodScheduled", .status = "", .reason = "", .message = ""};
    (void)decode_field_str(json_get(j, "status"), "status", a, &c->status, NULL);
    (void)decode_field_str(json_get(j, "reason"), "reason", a, &c->reason, NULL);
    (void)decode_field_str(json_get(j, "message"), "message", a, &c->message, NULL);
}

static void decode_conditions(json *j, struct pod *p, struct arena *a)
{
    for (struct json_iter it = json_iter(j); json_next(&it);) {
        const char *type = json_get_str(it.value, "type");
        if (str_eq(type, "PodScheduled"))
            decode_scheduled(it.value, &p->scheduled, a);
        else if (str_eq(type, "PodResizePending"))
            p->resize_infeasible = str_eq(json_get_str(it.value, "status"), "True") &&
                                   str_eq(json_get_str(it.value, "reason"), "Infeasible");
    }
}

static enum pod_phase phase_of(const char *s)
{
    static const char *const names[] = {"Pending", "Running", "Succeeded", "Failed"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_eq(s, names[i]))
            return (enum pod_phase)i;
    return s && s[0] ? POD_UNKNOWN : POD_PENDING;
}

/* Extended resources that a claim provides: sorted by name, without duplicates. */
static void decode_claimed(json *j, struct pod *p, struct arena *a)
{
    p->claimed_len = 0;
    p->claimed = arena_new(a, const char *, json_len(j));
    for (struct json_iter it = json_iter(j); json_next(&it);) {
        const char *resource = "";
        (void)decode_field_str(json_get(it.value, "resourceName"), "resourceName", a, &resource,
                               NULL);
        p->claimed[p->claimed_len++] = resource;
    }
    decode_field_sort(p->claimed, &p->claimed_len);
}

/* What cannot be read is absent. */
static void decode_status_field(const struct json_iter *at, struct pod *p, struct arena *a)
{
    const struct json_iter it = *at;
    if (FIELD(it, "phase"))
        p->phase = phase_of(json_str(it.value));
    else if (FIELD(it, "conditions"))
        decode_conditions(it.value, p, a);
    else if (FIELD(it, "containerStatuses"))
        decode_container_statuses(it.value, p->containers, p->containers_len, a);
    else if (FIELD(it, "initContainerStatuses"))
        decode_container_statuses(it.value, p->init_containers, p->init_containers_len, a);
    else if (FIELD(it, "reason"))
        (void)decode_field_str(it.value, "reason", a, &p->status_reason, NULL);
    else if (FIELD(it, "nominatedNodeName") && !str_eq(json_str(it.value), ""))
        (void)decode_field_str(it.value, "nominatedNodeName", a, &p->nominated_node, NULL);
    else if (FIELD(it, "startTime"))
        (void)decode_field_time(it.value, "startTime", &p->started_ns, NULL);
    else if (FIELD(it, "allocatedResources") || FIELD(it, "resources"))
        decode_container_resized(&it, &sizes_of(p, a)->status, a);
    else if (FIELD(it, "extendedResourceClaimStatus"))
        decode_claimed(json_get(it.value, "requestMappings"), p, a);
}

static void decode_owner(json *j, struct pod *p, struct arena *a)
{
    for (struct json_iter it = json_iter(j); json_next(&it);) {
        if (!json_get_bool(it.value, "controller", false))
            continue;
        (void)decode_field_str(json_get(it.value, "kind"), "kind", a, &p->owner_kind, NULL);
        (void)decode_field_str(json_get(it.value, "name"), "name", a, &p->owner_name, NULL);
        (void)decode_field_str(json_get(it.value, "uid"), "uid", a, &p->owner_uid, NULL);
        return;
    }
}

static int fill_metadata(json *j, struct pod *p, struct arena *a, struct error *err)
{
    struct decode_metadata m;
    if (decode_field_metadata(j, pod_annotation_bytes, a, &m, err) < 0)
        return -1;
    if (!m.name[0] || !m.ns[0])
        return error_set(err, ERROR_INVALID, "metadata: name or namespace missing");
    p->ns = m.ns;
    p->name = m.name;
    p->uid = m.uid;
    p->resource_version = m.resource_version;
    p->labels = m.labels;
    p->annotations = m.annotations;
    p->created_ns = m.created_ns;
    p->terminating = m.terminating;
    p->leaves_ns = m.leaves_ns;
    size_t ns_len = strlen(m.ns), name_len = strlen(m.name);
    char *key = arena_alloc(a, ns_len + name_len + 2);
    memcpy(key, m.ns, ns_len);
    key[ns_len] = '/';
    memcpy(key + ns_len + 1, m.name, name_len + 1);
    p->key = key;
    decode_owner(m.owners, p, a);
    return 0;
}

static void set_unplaceable(struct pod *p, const struct error *why, struct arena *a)
{
    if (!p->unplaceable)
        p->unplaceable = arena_strdup(a, why->text);
}

static int fill_pod(json *j, struct pod *p, struct arena *a, struct error *err)
{
    json *metadata = NULL, *spec = NULL, *status = NULL;
    struct error why = ERROR_INIT;
    bool have;
    for (struct json_iter it = json_iter(j); json_next(&it);) {
        if (FIELD(it, "metadata"))
            metadata = it.value;
        else if (FIELD(it, "spec"))
            spec = it.value;
        else if (FIELD(it, "status"))
            status = it.value;
    }
    if (fill_metadata(metadata, p, a, err) < 0)
        return -1;
    p->scheduler = "default-scheduler";
    if (decode_field_object(spec, "spec", &have, err) < 0)
        return -1;
    for (struct json_iter it = json_iter(spec); json_next(&it);)
        if (decode_spec_field(&it, p, a, &why) < 0)
            set_unplaceable(p, &why, a);
    if (p->node && !p->node[0])
        p->node = NULL;
    if (p->host_network && !json_get_bool(spec, "hostUsers", true))
        p->features |= POD_FEATURE_HOST_NET_USERNS;
    for (struct json_iter it = json_iter(status); json_next(&it);)
        decode_status_field(&it, p, a);
    if (!pod_effective_request(p, a, &p->request)) {
        (void)error_set(&why, ERROR_TOO_LARGE, "requests more than %d extended resources",
                        RESOURCES_EXTRA_MAX);
        set_unplaceable(p, &why, a);
    }
    return 0;
}

int decode_pod(json *j, struct pod **out, struct error *err)
{
    struct arena a;
    alignas(16) unsigned char memory[SCRATCH];
    if (!json_is_object(j))
        return error_set(err, ERROR_INVALID, "pod: must be an object, not %s", json_kind_name(j));
    arena_init_on(&a, memory, sizeof memory);
    struct pod *p = arena_new(&a, struct pod, 1);
    if (fill_pod(j, p, &a, err) < 0) {
        struct object_meta m;
        decode_meta(j, &m);
        arena_deinit(&a);
        return error_wrap(err, "pod %s/%s", m.ns, m.name);
    }
    *out = pod_pack(p);
    arena_deinit(&a);
    return 0;
}

int decode_pod_remains(json *j, const struct error *why, struct pod **out, struct error *err)
{
    struct arena a;
    alignas(16) unsigned char memory[SCRATCH];
    arena_init_on(&a, memory, sizeof memory);
    struct pod *p = arena_new(&a, struct pod, 1);
    if (fill_metadata(json_get(j, "metadata"), p, &a, err) < 0) {
        arena_deinit(&a);
        return error_wrap(err, "pod");
    }
    p->scheduler = "default-scheduler";
    p->phase = phase_of(json_get_str(json_get(j, "status"), "phase"));
    p->unreadable = arena_strdup(&a, why->text);
    *out = pod_pack(p);
    arena_deinit(&a);
    return 0;
}
