// SPDX-License-Identifier: Apache-2.0
/*
 * The hot path: most of what the API server sends is pods.
 *
 * Each object is walked once, member by member, and an unwanted member costs one step whatever its
 * size (managedFields is half of a pod). The pod is built in scratch, which wastes some space, and
 * then packed (pod_pack): one malloc of exactly its size.
 *
 * A decoding error must not hide a pod, or its cards would be given away again. So fields that only
 * narrow or widen where a pod may run, and that a newer API server may fill with unknown values (a
 * toleration's operator), are read in the narrower sense instead of refused. For the remaining
 * errors (the API server accepts cpu: "1e30") decode_pod_remains returns the pod's name and node.
 */
#include "lib/kube/decode.h"

#include <stdalign.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/kube/decode_field.h"
#include "lib/kube/decode_terms.h"
#include "lib/kube/decode_volume.h"

enum { SCRATCH = 8192 }; /* on the stack; a larger pod also uses the heap */

static int decode_ports(json *j, struct container *c, struct arena *a, struct error *err)
{
    size_t len, kept = 0;
    c->ports = NULL; /* a repeated member of the same name may be longer */
    c->ports_len = 0;
    if (decode_field_array(j, "ports", DECODE_LIST_MAX, &len, err) < 0)
        return -1;
    size_t i = 0;
    for (struct json_iter it = json_iter(j); json_next(&it); i++) {
        int64_t port = 0;
        if (decode_field_int(json_get(it.value, "hostPort"), "hostPort", 0, 65535, &port, err) < 0)
            return error_wrap(err, "ports[%zu]", i);
        if (port == 0)
            continue;
        if (!c->ports)
            c->ports = arena_new(a, struct container_port, len);
        struct container_port *p = &c->ports[kept++];
        *p = (struct container_port){.host_port = (uint16_t)port, .host_ip = "", .protocol = "TCP"};
        if (decode_field_str(json_get(it.value, "hostIP"), "hostIP", a, &p->host_ip, err) < 0 ||
            decode_field_str(json_get(it.value, "protocol"), "protocol", a, &p->protocol, err) < 0)
            return error_wrap(err, "ports[%zu]", i);
    }
    c->ports_len = kept;
    return 0;
}

static int decode_container(json *j, bool init, struct container *c, uint8_t *features,
                            struct arena *a, struct error *err)
{
    bool have;
    c->name = c->image = "";
    if (!json_is_object(j))
        return error_set(err, ERROR_INVALID, "must be an object, not %s", json_kind_name(j));
    for (struct json_iter it = json_iter(j); json_next(&it);) {
        int rc = 0;
        if (FIELD(it, "name")) {
            rc = decode_field_str(it.value, "name", a, &c->name, err);
        } else if (FIELD(it, "image")) {
            rc = decode_field_str(it.value, "image", a, &c->image, err);
        } else if (FIELD(it, "resources")) {
            c->requests = c->limits = (struct resources){0};
            rc = decode_field_object(it.value, "resources", &have, err);
            for (struct json_iter r = json_iter(it.value); rc == 0 && have && json_next(&r);) {
                if (FIELD(r, "requests"))
                    rc = decode_field_resources(r.value, "resources.requests", a, QUANTITY_UP,
                                                &c->requests, NULL, err);
                else if (FIELD(r, "limits"))
                    rc = decode_field_resources(r.value, "resources.limits", a, QUANTITY_UP,
                                                &c->limits, NULL, err);
            }
        } else if (FIELD(it, "ports")) {
            rc = decode_ports(it.value, c, a, err);
        } else if (FIELD(it, "restartPolicy")) {
            c->sidecar = init && str_eq(json_str(it.value), "Always");
        } else if (FIELD(it, "restartPolicyRules")) {
            for (struct json_iter r = json_iter(it.value); json_next(&r);)
                if (str_eq(json_get_str(r.value, "action"), "RestartAllContainers"))
                    *features |= POD_FEATURE_RESTART_ALL;
        }
        if (rc < 0)
            return -1;
    }
    return 0;
}

static int decode_containers(json *j, const char *name, bool init, struct arena *a,
                             struct container **out, size_t *len, uint8_t *features,
                             struct error *err)
{
    if (decode_field_array(j, name, DECODE_CONTAINERS_MAX, len, err) < 0)
        return -1;
    *out = arena_new(a, struct container, *len);
    size_t i = 0;
    for (struct json_iter it = json_iter(j); json_next(&it); i++)
        if (decode_container(it.value, init, &(*out)[i], features, a, err) < 0)
            return error_wrap(err, "%s[%zu]", name, i);
    return 0;
}

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

static int decode_tolerations(json *j, struct pod *p, struct arena *a, struct error *err)
{
    size_t len;
    if (decode_field_array(j, "spec.tolerations", DECODE_LIST_MAX, &len, err) < 0)
        return -1;
    p->tolerations = arena_new(a, struct toleration, len);
    p->tolerations_len = 0;
    size_t i = 0;
    for (struct json_iter at = json_iter(j); json_next(&at); i++) {
        struct toleration t = {.key = "", .value = ""};
        const char *op = "", *effect = "";
        bool have;
        int rc = decode_field_object(at.value, "toleration", &have, err);
        for (struct json_iter it = json_iter(at.value); rc == 0 && json_next(&it);) {
            if (FIELD(it, "key"))
                rc = decode_field_str(it.value, "key", a, &t.key, err);
            else if (FIELD(it, "value"))
                rc = decode_field_str(it.value, "value", a, &t.value, err);
            else if (FIELD(it, "operator"))
                op = str_or_empty(json_str(it.value));
            else if (FIELD(it, "effect"))
                effect = str_or_empty(json_str(it.value));
        }
        if (rc < 0)
            return error_wrap(err, "spec.tolerations[%zu]", i);
        if (toleration_words(op, effect, &t))
            p->tolerations[p->tolerations_len++] = t;
    }
    return 0;
}

static int decode_preferred(json *j, struct pod *p, struct arena *a, struct error *err)
{
    if (decode_field_array(j, "preferred", DECODE_LIST_MAX, &p->preferred_affinity_len, err) < 0)
        return -1;
    p->preferred_affinity = arena_new(a, struct preferred_term, p->preferred_affinity_len);
    size_t i = 0;
    for (struct json_iter it = json_iter(j); json_next(&it); i++) {
        struct preferred_term *t = &p->preferred_affinity[i];
        int64_t weight = 0;
        if (decode_field_int(json_get(it.value, "weight"), "weight", 0, 100, &weight, err) < 0 ||
            node_term_decode(json_get(it.value, "preference"), a, &t->term, err) < 0)
            return error_wrap(err, "preferred[%zu]", i);
        t->weight = (int32_t)weight;
    }
    return 0;
}

static int decode_affinity(json *j, struct pod *p, struct arena *a, struct error *err)
{
    bool have;
    json *node = json_get(j, "nodeAffinity");
    if (decode_field_object(j, "spec.affinity", &have, err) < 0 ||
        decode_field_object(node, "spec.affinity.nodeAffinity", &have, err) < 0)
        return -1;
    json *required = json_get(node, "requiredDuringSchedulingIgnoredDuringExecution");
    if (required && !json_is_null(required)) {
        if (node_selector_decode(required, a, &p->required_affinity, err) < 0)
            return error_wrap(err, "spec.affinity.nodeAffinity.required");
        p->has_required_affinity = true;
    }
    json *preferred = json_get(node, "preferredDuringSchedulingIgnoredDuringExecution");
    if (decode_preferred(preferred, p, a, err) < 0)
        return error_wrap(err, "spec.affinity.nodeAffinity");
    return decode_terms_affinity(j, p, a, err);
}

static struct pod_sizes *sizes_of(struct pod *p, struct arena *a)
{
    if (!p->sizes)
        p->sizes = arena_new(a, struct pod_sizes, 1);
    return p->sizes;
}

/* Members of spec, ordered by how common they are. */
static int decode_spec_field(const struct json_iter *at, struct pod *p, struct arena *a,
                             struct error *err)
{
    const struct json_iter it = *at;
    int64_t n = 0;
    size_t len = 0;
    bool have;
    if (FIELD(it, "containers"))
        return decode_containers(it.value, "spec.containers", false, a, &p->containers,
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
        return decode_containers(it.value, "spec.initContainers", true, a, &p->init_containers,
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
        if (decode_field_array(it.value, "spec.schedulingGates", DECODE_LIST_MAX, &len, err) < 0)
            return -1;
        p->gated = len > 0;
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
        if (decode_field_object(it.value, "spec.resources", &have, err) < 0)
            return -1;
        return decode_field_resources(json_get(it.value, "requests"), "spec.resources.requests", a,
                                      QUANTITY_UP, &sizes->requests, &sizes->has_requests, err);
    }
    if (FIELD(it, "resourceClaims")) {
        if (decode_field_array(it.value, "spec.resourceClaims", DECODE_LIST_MAX, &len, err) < 0)
            return -1;
        p->resource_claims = len > 0;
        return 0;
    }
    if (FIELD(it, "schedulingGroup"))
        return decode_field_str(json_get(it.value, "podGroupName"),
                                "spec.schedulingGroup.podGroupName", a, &p->scheduling_group, err);
    return 0;
}

/* Usually in the spec's order, but the kubelet does not guarantee it. */
static struct container *container_named(struct container *list, size_t len, size_t guess,
                                         const char *name)
{
    if (guess < len && str_eq(list[guess].name, name))
        return &list[guess];
    for (size_t i = 0; i < len; i++)
        if (str_eq(list[i].name, name))
            return &list[i];
    return NULL;
}

static bool same_sizes(const struct resources *a, const struct resources *b)
{
    if (a->cpu_milli != b->cpu_milli || a->memory_bytes != b->memory_bytes ||
        a->ephemeral_bytes != b->ephemeral_bytes || a->pods != b->pods || a->has != b->has ||
        a->extra_len != b->extra_len)
        return false;
    for (uint32_t i = 0; i < a->extra_len; i++)
        if (a->extra[i].value != b->extra[i].value || !str_eq(a->extra[i].name, b->extra[i].name))
            return false;
    return true;
}

/* A kubelet repeats the spec's sizes in every status. Only different ones change the effective
 * request (pod_effective_request), and only with `actual` among them. */
static bool says_other_sizes(const struct resized *r, const struct resources *spec)
{
    return r->has_actual && (!same_sizes(&r->actual, spec) ||
                             (r->has_allocated && !same_sizes(&r->allocated, spec)));
}

/* allocatedResources or resources. */
static int decode_resized(const struct json_iter *at, bool of_pod, struct resized *r,
                          struct arena *a, struct error *err)
{
    static const char allocated[] = "status.allocatedResources", actual[] = "status.resources",
                      requests[] = "status.resources.requests";
    const struct json_iter it = *at;
    size_t skip =
        of_pod ? 0
               : strlen("status."); /* messages about a container's status name only the field */
    bool have;
    if (FIELD(it, "allocatedResources")) {
        r->allocated = (struct resources){0};
        return decode_field_resources(it.value, allocated + skip, a, QUANTITY_UP, &r->allocated,
                                      &r->has_allocated, err);
    }
    r->actual = (struct resources){0};
    if (decode_field_object(it.value, actual + skip, &r->has_actual, err) < 0)
        return -1;
    return decode_field_resources(json_get(it.value, "requests"), requests + skip, a, QUANTITY_UP,
                                  &r->actual, &have, err);
}

static int decode_container_status(json *j, struct container *c, struct arena *a, struct error *err)
{
    struct resized r = {0};
    c->resized = NULL;
    for (struct json_iter it = json_iter(j); json_next(&it);) {
        if (FIELD(it, "containerID")) {
            const char *id = "";
            if (decode_field_str(it.value, "containerID", a, &id, err) < 0)
                return -1;
            c->has_id = id[0] != '\0';
        } else if (FIELD(it, "allocatedResources") || FIELD(it, "resources")) {
            if (decode_resized(&it, false, &r, a, err) < 0)
                return -1;
        }
    }
    if (says_other_sizes(&r, &c->requests)) {
        c->resized = arena_new(a, struct resized, 1);
        *c->resized = r;
    }
    return 0;
}

static int decode_container_statuses(json *j, const char *name, struct container *list, size_t len,
                                     struct arena *a, struct error *err)
{
    size_t n, i = 0;
    if (decode_field_array(j, name, DECODE_CONTAINERS_MAX, &n, err) < 0)
        return -1;
    for (struct json_iter it = json_iter(j); json_next(&it); i++) {
        struct container *c = container_named(list, len, i, json_get_str(it.value, "name"));
        if (c && decode_container_status(it.value, c, a, err) < 0)
            return error_wrap(err, "%s[%zu]", name, i);
    }
    return 0;
}

static int decode_scheduled(json *j, struct pod_condition *c, struct arena *a, struct error *err)
{
    *c = (struct pod_condition){.type = "PodScheduled", .status = "", .reason = "", .message = ""};
    if (decode_field_str(json_get(j, "status"), "status", a, &c->status, err) < 0 ||
        decode_field_str(json_get(j, "reason"), "reason", a, &c->reason, err) < 0)
        return -1;
    return decode_field_str(json_get(j, "message"), "message", a, &c->message, err);
}

static int decode_conditions(json *j, struct pod *p, struct arena *a, struct error *err)
{
    size_t len, i = 0;
    if (decode_field_array(j, "status.conditions", DECODE_LIST_MAX, &len, err) < 0)
        return -1;
    for (struct json_iter it = json_iter(j); json_next(&it); i++) {
        const char *type = json_get_str(it.value, "type");
        if (str_eq(type, "PodScheduled")) {
            if (decode_scheduled(it.value, &p->scheduled, a, err) < 0)
                return error_wrap(err, "status.conditions[%zu]", i);
        } else if (str_eq(type, "PodResizePending")) {
            p->resize_infeasible = str_eq(json_get_str(it.value, "status"), "True") &&
                                   str_eq(json_get_str(it.value, "reason"), "Infeasible");
        }
    }
    return 0;
}

static enum pod_phase phase_of(const char *s)
{
    static const char *const names[] = {"Pending", "Running", "Succeeded", "Failed"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_eq(s, names[i]))
            return (enum pod_phase)i;
    return s && s[0] ? POD_UNKNOWN : POD_PENDING;
}

/* Extended resources that a grant provides: sorted by name, without duplicates. */
static int decode_claimed(json *j, struct pod *p, struct arena *a, struct error *err)
{
    static const char name[] = "status.extendedResourceClaimStatus.requestMappings";
    size_t len, i = 0;
    p->claimed_len = 0;
    if (decode_field_array(j, name, DECODE_LIST_MAX, &len, err) < 0)
        return -1;
    p->claimed = arena_new(a, const char *, len);
    for (struct json_iter it = json_iter(j); json_next(&it); i++) {
        const char *resource = "";
        if (decode_field_str(json_get(it.value, "resourceName"), "resourceName", a, &resource,
                             err) < 0)
            return error_wrap(err, "%s[%zu]", name, i);
        p->claimed[p->claimed_len++] = resource;
    }
    decode_field_sort(p->claimed, &p->claimed_len);
    return 0;
}

static int decode_status_field(const struct json_iter *at, struct pod *p, struct arena *a,
                               struct error *err)
{
    const struct json_iter it = *at;
    if (FIELD(it, "phase")) {
        p->phase = phase_of(json_str(it.value));
        return 0;
    }
    if (FIELD(it, "conditions"))
        return decode_conditions(it.value, p, a, err);
    if (FIELD(it, "containerStatuses"))
        return decode_container_statuses(it.value, "status.containerStatuses", p->containers,
                                         p->containers_len, a, err);
    if (FIELD(it, "initContainerStatuses"))
        return decode_container_statuses(it.value, "status.initContainerStatuses",
                                         p->init_containers, p->init_containers_len, a, err);
    if (FIELD(it, "reason"))
        return decode_field_str(it.value, "status.reason", a, &p->status_reason, err);
    if (FIELD(it, "nominatedNodeName"))
        return str_eq(json_str(it.value), "")
                   ? 0
                   : decode_field_str(it.value, "status.nominatedNodeName", a, &p->nominated_node,
                                      err);
    if (FIELD(it, "startTime"))
        return decode_field_time(it.value, "status.startTime", &p->started_ns, err);
    if (FIELD(it, "allocatedResources") || FIELD(it, "resources"))
        return decode_resized(&it, true, &sizes_of(p, a)->status, a, err);
    if (FIELD(it, "extendedResourceClaimStatus"))
        return decode_claimed(json_get(it.value, "requestMappings"), p, a, err);
    return 0;
}

static int decode_owner(json *j, struct pod *p, struct arena *a, struct error *err)
{
    size_t len;
    if (decode_field_array(j, "metadata.ownerReferences", DECODE_LIST_MAX, &len, err) < 0)
        return -1;
    for (struct json_iter it = json_iter(j); json_next(&it);) {
        if (!json_get_bool(it.value, "controller", false))
            continue;
        if (decode_field_str(json_get(it.value, "kind"), "metadata.ownerReferences[].kind", a,
                             &p->owner_kind, err) < 0 ||
            decode_field_str(json_get(it.value, "name"), "metadata.ownerReferences[].name", a,
                             &p->owner_name, err) < 0)
            return -1;
        return decode_field_str(json_get(it.value, "uid"), "metadata.ownerReferences[].uid", a,
                                &p->owner_uid, err);
    }
    return 0;
}

static int fill_metadata(json *j, struct pod *p, struct arena *a, struct error *err)
{
    struct decode_metadata m;
    if (decode_field_metadata(j, a, &m, err) < 0)
        return -1;
    if (!m.name[0] || !m.ns[0])
        return error_set(err, ERROR_INVALID, "metadata: name or namespace missing");
    p->ns = m.ns;
    p->name = m.name;
    p->uid = m.uid;
    p->resource_version = m.resource_version;
    p->labels = m.labels;
    for (size_t i = 0; i < m.annotations.len; i++) /* in place: the kept ones stay sorted */
        if (pod_annotation_is_read(m.annotations.items[i].key))
            m.annotations.items[p->annotations.len++] = m.annotations.items[i];
    p->annotations.items = m.annotations.items;
    p->created_ns = m.created_ns;
    p->terminating = m.terminating;
    size_t ns_len = strlen(m.ns), name_len = strlen(m.name);
    char *key = arena_alloc(a, ns_len + name_len + 2);
    memcpy(key, m.ns, ns_len);
    key[ns_len] = '/';
    memcpy(key + ns_len + 1, m.name, name_len + 1);
    p->key = key;
    return decode_owner(m.owners, p, a, err);
}

static int fill_pod(json *j, struct pod *p, struct arena *a, struct error *err)
{
    json *metadata = NULL, *spec = NULL, *status = NULL;
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
        if (decode_spec_field(&it, p, a, err) < 0)
            return -1;
    if (p->node && !p->node[0])
        p->node = NULL;
    if (p->host_network && !json_get_bool(spec, "hostUsers", true))
        p->features |= POD_FEATURE_HOST_NET_USERNS;
    if (decode_field_object(status, "status", &have, err) < 0)
        return -1;
    for (struct json_iter it = json_iter(status); json_next(&it);)
        if (decode_status_field(&it, p, a, err) < 0)
            return -1;
    if (!pod_effective_request(p, a, &p->request))
        return error_set(err, ERROR_RANGE, "the sum of its requests is too large");
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

/* The member if it is a non-empty string, else `otherwise`. */
static const char *text_or(json *object, const char *name, const char *otherwise, struct arena *a)
{
    const char *s = json_get_str(object, name);
    return s && s[0] ? arena_strdup(a, s) : otherwise;
}

int decode_pod_remains(json *j, const struct error *why, struct pod **out, struct error *err)
{
    struct arena a;
    alignas(16) unsigned char memory[SCRATCH];
    struct error ignored = ERROR_INIT;
    struct object_meta m;
    json *metadata = json_get(j, "metadata"), *spec = json_get(j, "spec");
    decode_meta(j, &m);
    if (!m.name[0] || !m.ns[0])
        return error_set(err, ERROR_INVALID, "pod: metadata: name or namespace missing");
    arena_init_on(&a, memory, sizeof memory);
    struct pod *p = arena_new(&a, struct pod, 1);
    if (fill_metadata(metadata, p, &a, &ignored) < 0) {
        *p = (struct pod){.ns = arena_strdup(&a, m.ns),
                          .name = arena_strdup(&a, m.name),
                          .key = arena_printf(&a, "%s/%s", m.ns, m.name),
                          .uid = arena_strdup(&a, m.uid),
                          .resource_version = arena_strdup(&a, m.resource_version)};
        json *deletion = json_get(metadata, "deletionTimestamp");
        p->terminating = deletion && !json_is_null(deletion);
    }
    p->node = text_or(spec, "nodeName", NULL, &a);
    p->scheduler = text_or(spec, "schedulerName", "default-scheduler", &a);
    p->phase = phase_of(json_get_str(json_get(j, "status"), "phase"));
    p->gated = json_len(json_get(spec, "schedulingGates")) > 0;
    p->unreadable = arena_strdup(&a, why->text);
    *out = pod_pack(p);
    arena_deinit(&a);
    return 0;
}
