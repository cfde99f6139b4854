// SPDX-License-Identifier: Apache-2.0
/*
 * Nodes, PodGroups, and the names of any object. decode_pod.c has pods, which are most of the work.
 *
 * Nodes and pods are built in scratch and packed. Every other decoder builds the object in the
 * object's own arena and moves the arena into it at the end, so that one free releases all of it,
 * even half-built.
 */
#include "lib/kube/decode.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/kube/decode_field.h"
#include "lib/model/names.h"

enum { NODE_SCRATCH = 8192 }; /* on the stack; a larger node also uses the heap */

void decode_meta(json *j, struct object_meta *out)
{
    json *m = json_get(j, "metadata");
    *out =
        (struct object_meta){.ns = str_or_empty(json_get_str(m, "namespace")),
                             .name = str_or_empty(json_get_str(m, "name")),
                             .uid = str_or_empty(json_get_str(m, "uid")),
                             .resource_version = str_or_empty(json_get_str(m, "resourceVersion"))};
}

/* An effect that we do not know keeps pods away. */
static enum taint_effect taint_effect_of(const char *s)
{
    if (str_eq(s, "PreferNoSchedule"))
        return TAINT_PREFER_NO_SCHEDULE;
    return str_eq(s, "NoExecute") ? TAINT_NO_EXECUTE : TAINT_NO_SCHEDULE;
}

static void decode_taint(json *j, struct arena *a, struct taint *t)
{
    *t = (struct taint){.key = "", .value = "", .effect = TAINT_NO_SCHEDULE};
    for (struct json_iter it = json_iter(j); json_next(&it);) {
        if (FIELD(it, "key"))
            (void)decode_field_str(it.value, "key", a, &t->key, NULL);
        else if (FIELD(it, "value"))
            (void)decode_field_str(it.value, "value", a, &t->value, NULL);
        else if (FIELD(it, "effect"))
            t->effect = taint_effect_of(json_str(it.value));
    }
}

static int decode_node_spec(json *j, struct node *n, struct arena *a, struct error *err)
{
    bool have;
    if (decode_field_object(j, "spec", &have, err) < 0 ||
        decode_field_bool(json_get(j, "unschedulable"), "spec.unschedulable", &n->unschedulable,
                          err) < 0)
        return -1;
    json *taints = json_get(j, "taints");
    if (decode_field_array(taints, "spec.taints", DECODE_LIST_MAX, &n->taints_len, err) < 0)
        return -1;
    n->taints = arena_new(a, struct taint, n->taints_len);
    size_t i = 0;
    for (struct json_iter it = json_iter(taints); json_next(&it); i++)
        decode_taint(it.value, a, &n->taints[i]);
    return 0;
}

static int by_hash(const void *a, const void *b)
{
    const struct node_image *x = a, *y = b;
    return x->hash < y->hash ? -1 : x->hash > y->hash;
}

/* Each image under each of its names. A kubelet reports 50 images by default; names beyond
 * DECODE_LIST_MAX give no points. */
static void decode_images(json *j, struct node *n, struct arena *a)
{
    size_t room = 0, kept = 0;
    n->images_len = 0;
    for (struct json_iter it = json_iter(j); json_next(&it);)
        room += json_len(json_get(it.value, "names"));
    room = room < DECODE_LIST_MAX ? room : DECODE_LIST_MAX;
    struct node_image *list = arena_new(a, struct node_image, room);
    for (struct json_iter it = json_iter(j); json_next(&it);) {
        json *names = json_get(it.value, "names");
        int64_t bytes = 0;
        (void)decode_field_int(json_get(it.value, "sizeBytes"), "sizeBytes", 0, INT64_MAX, &bytes,
                               NULL);
        for (struct json_iter at = json_iter(names); n->images_len < room && json_next(&at);)
            if (json_str(at.value))
                list[n->images_len++] =
                    (struct node_image){node_image_hash(json_str(at.value)), bytes};
    }
    if (n->images_len > 1)
        qsort(list, n->images_len, sizeof *list, by_hash);
    for (size_t k = 0; k < n->images_len; k++)
        if (kept == 0 || list[kept - 1].hash != list[k].hash)
            list[kept++] = list[k];
    n->images = list;
    n->images_len = kept;
}

static void decode_features(json *j, struct node *n)
{
    n->features = 0;
    for (struct json_iter it = json_iter(j); json_next(&it);)
        n->features = (uint8_t)(n->features | pod_feature_of(json_str(it.value)));
}

/* What cannot be read is absent: an amount (so nobody gets it), an address, a condition. */
static int decode_node_status(json *j, struct node *n, struct arena *a, struct error *err)
{
    bool have;
    if (decode_field_object(j, "status", &have, err) < 0)
        return -1;
    for (struct json_iter it = json_iter(j); json_next(&it);) {
        if (FIELD(it, "capacity")) {
            n->capacity = (struct resources){0};
            (void)decode_field_resources(it.value, "status.capacity", a, QUANTITY_DOWN,
                                         &n->capacity, NULL, NULL);
        } else if (FIELD(it, "allocatable")) {
            n->allocatable = (struct resources){0};
            (void)decode_field_resources(it.value, "status.allocatable", a, QUANTITY_DOWN,
                                         &n->allocatable, NULL, NULL);
        } else if (FIELD(it, "addresses")) {
            for (struct json_iter at = json_iter(it.value); json_next(&at);)
                if (!n->internal_ip && str_eq(json_get_str(at.value, "type"), "InternalIP"))
                    (void)decode_field_str(json_get(at.value, "address"), "address", a,
                                           &n->internal_ip, NULL);
        } else if (FIELD(it, "conditions")) {
            for (struct json_iter at = json_iter(it.value); json_next(&at);)
                if (str_eq(json_get_str(at.value, "type"), "Ready"))
                    n->ready = str_eq(json_get_str(at.value, "status"), "True");
        } else if (FIELD(it, "images")) {
            decode_images(it.value, n, a);
        } else if (FIELD(it, "declaredFeatures")) {
            decode_features(it.value, n);
        }
    }
    return 0;
}

static int fill_node(json *j, struct node *n, struct arena *a, struct error *err)
{
    struct decode_metadata m;
    if (decode_field_metadata(json_get(j, "metadata"), NULL, a, &m, err) < 0)
        return -1;
    n->name = m.name;
    n->uid = m.uid;
    n->resource_version = m.resource_version;
    n->labels = m.labels;
    n->annotations = m.annotations;
    n->terminating = m.terminating;
    if (!n->name[0])
        return error_set(err, ERROR_INVALID, "metadata.name: missing");
    if (decode_node_spec(json_get(j, "spec"), n, a, err) < 0)
        return -1;
    return decode_node_status(json_get(j, "status"), n, a, err);
}

int decode_node(json *j, struct node **out, struct error *err)
{
    struct arena a;
    alignas(16) unsigned char memory[NODE_SCRATCH];
    if (!json_is_object(j))
        return error_set(err, ERROR_INVALID, "node: must be an object, not %s", json_kind_name(j));
    arena_init_on(&a, memory, sizeof memory);
    struct node *n = arena_new(&a, struct node, 1);
    if (fill_node(j, n, &a, err) < 0) {
        struct object_meta m;
        decode_meta(j, &m);
        arena_deinit(&a);
        return error_wrap(err, "node %s", m.name);
    }
    *out = node_pack(n);
    arena_deinit(&a);
    return 0;
}

/* We write the status ourselves: an unreadable one is overwritten and no reason to refuse the
 * object. */
static int32_t count_in_status(json *status, const char *name)
{
    struct error ignored = ERROR_INIT;
    int64_t n = -1;
    return decode_field_int(json_get(status, name), name, 0, INT32_MAX, &n, &ignored) < 0
               ? -1
               : (int32_t)n;
}

static void fill_counts(json *status, struct pod_group *g)
{
    struct error ignored = ERROR_INIT;
    g->scheduled = count_in_status(status, "scheduled");
    g->running = count_in_status(status, "running");
    g->succeeded = count_in_status(status, "succeeded");
    g->failed = count_in_status(status, "failed");
    if (decode_field_time(json_get(status, "scheduleStartTime"), "scheduleStartTime",
                          &g->schedule_start_ns, &ignored) < 0)
        g->schedule_start_ns = 0;
}

static const char *either(const struct labels *in, const char *key, const char *koord)
{
    const char *text = labels_get(in, key);
    return text ? text : labels_get(in, koord);
}

/* The native form: {"basic":{}} or {"gang":{"minCount":3}}. */
static int decode_policy(json *policy, int64_t *min, struct error *err)
{
    bool have;
    json *gang = json_get(policy, "gang");
    if (decode_field_object(policy, "spec.schedulingPolicy", &have, err) < 0)
        return -1;
    if (have)
        *min = 1;
    if (decode_field_object(gang, "spec.schedulingPolicy.gang", &have, err) < 0)
        return -1;
    return decode_field_int(json_get(gang, "minCount"), "spec.schedulingPolicy.gang.minCount", 0,
                            INT32_MAX, min, err);
}

static int fill_pod_group(json *j, struct pod_group *g, struct arena *a, struct error *err)
{
    struct decode_metadata m;
    bool have;
    int64_t min = 0;
    if (decode_field_metadata(json_get(j, "metadata"), NULL, a, &m, err) < 0)
        return -1;
    if (!m.name[0] || !m.ns[0])
        return error_set(err, ERROR_INVALID, "metadata: name or namespace missing");
    g->ns = m.ns;
    g->name = m.name;
    g->key = arena_printf(a, "%s/%s", m.ns, m.name);
    g->uid = m.uid;
    g->resource_version = m.resource_version;
    const char *api = json_get_str(j, "apiVersion");
    g->api = str_starts(api, NAME_GROUP_PODGROUP_X "/")        ? POD_GROUP_X
             : str_starts(api, NAME_GROUP_PODGROUP_NATIVE "/") ? POD_GROUP_NATIVE
                                                               : POD_GROUP_SIGS;
    g->schedule_timeout_s = 60;
    g->phase = "";
    g->list = either(&m.annotations, NAME_ANN_GANG_GROUPS, NAME_ANN_GANG_KOORD_GROUPS);
    g->match = either(&m.annotations, NAME_ANN_GANG_MATCH, NAME_ANN_GANG_KOORD_MATCH);
    json *spec = json_get(j, "spec"), *status = json_get(j, "status");
    if (decode_field_object(spec, "spec", &have, err) < 0 ||
        decode_field_object(status, "status", &have, err) < 0 ||
        decode_field_int(json_get(spec, "minMember"), "spec.minMember", 0, INT32_MAX, &min, err) <
            0 ||
        decode_field_int(json_get(spec, "scheduleTimeoutSeconds"), "spec.scheduleTimeoutSeconds", 0,
                         INT32_MAX, &g->schedule_timeout_s, err) < 0 ||
        decode_field_resources(json_get(spec, "minResources"), "spec.minResources", a, QUANTITY_UP,
                               &g->min_resources, NULL, err) < 0 ||
        decode_policy(json_get(spec, "schedulingPolicy"), &min, err) < 0)
        return -1;
    g->min_member = (int32_t)min;
    fill_counts(status, g);
    return decode_field_str(json_get(status, "phase"), "status.phase", a, &g->phase, err);
}

int decode_pod_group(json *j, struct pod_group **out, struct error *err)
{
    struct arena a;
    if (!json_is_object(j))
        return error_set(err, ERROR_INVALID, "podgroup: must be an object, not %s",
                         json_kind_name(j));
    arena_init(&a, 1024);
    struct pod_group *g = arena_new(&a, struct pod_group, 1);
    if (fill_pod_group(j, g, &a, err) < 0) {
        struct object_meta m;
        decode_meta(j, &m);
        arena_deinit(&a);
        return error_wrap(err, "podgroup %s/%s", m.ns, m.name);
    }
    g->arena = a;
    *out = g;
    return 0;
}
