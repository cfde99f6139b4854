// SPDX-License-Identifier: Apache-2.0
/*
 * intake - each row of the table below is one kind of object: where it is watched, how it is
 * decoded, where it is stored. Nodes, pods and PodGroups have functions of their own; all other
 * kinds live in the cluster's api_objects and share three.
 *
 * Nothing is decided before every collection was listed once; until then each page of a list is
 * applied while the next is fetched. `without` marks kinds that a cluster may lack (a CRD, a
 * disabled API): they are empty then, and the log states the consequence once. All others must
 * exist: a scheduler that cannot read claims or namespaces would ignore what users wrote, so it
 * waits, and the reflector logs for what.
 */
#include "scheduler/intake.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "lib/base/str.h"
#include "lib/kube/api.h"
#include "lib/kube/decode.h"
#include "scheduler/binding/loop_time.h"
#include "scheduler/cache/policies.h"
#include "scheduler/model/rejections.h"
#include "scheduler/cache/gangs.h"

enum { INTAKE_MAILBOX = 4096 };

static struct metric unreadable = {
    .kind = METRIC_COUNTER,
    .name = "cosched_scheduler_unreadable_pods_total",
    .help = "Versions of pods that could not be read; the last one that could stays in force."};

static struct metric rejected = {.kind = METRIC_COUNTER,
                                 .name = "cosched_scheduler_kubelet_rejections_total",
                                 .help = "Pods of ours that a kubelet rejected, by its reason.",
                                 .label = "reason"};

static void gang_changed(void *arg, struct gang *g)
{
    struct intake *in = arg;
    queue_touch(in->queue, g, loop_now_ms(in->loop));
}

static void gang_vanishing(void *arg, struct gang *g)
{
    struct intake *in = arg;
    queue_drop(in->queue, g);
}

/* One change, as passed to the functions of the table. */
struct change {
    struct intake *in;
    enum intake_kind kind;
    const struct cluster_hooks *hooks;
};

struct name {
    const char *key, *uid;
};

static struct name name_node(const void *object)
{
    const struct node *n = object;
    return (struct name){n->name, n->uid};
}

static const struct map *all_nodes(const struct change *ch)
{
    return &ch->in->cluster->nodes;
}

static uint32_t put_node(const struct change *ch, void *object)
{
    return cluster_put_node(ch->in->cluster, object);
}

static uint32_t drop_node(const struct change *ch, struct name name)
{
    if (ch->in->node_gone != NULL)
        ch->in->node_gone(ch->in->arg, name.key);
    return cluster_remove_node(ch->in->cluster, name.key);
}

static struct name name_pod(const void *object)
{
    const struct pod *p = object;
    return (struct name){p->key, p->uid};
}

static const struct map *all_pods(const struct change *ch)
{
    return &ch->in->cluster->pods;
}

static uint32_t put_pod(const struct change *ch, void *object)
{
    struct pod *p = object;
    bool waits = p->node == NULL && !pod_is_finished(p);
    AUTO_STRBUF key = {0}; /* put frees a version that is not kept */
    strbuf_adds(&key, waits ? p->key : "");
    uint32_t events = cluster_put_pod(ch->in->cluster, p, ch->hooks);
    struct cluster_pod *cp = waits ? cluster_find_pod(ch->in->cluster, strbuf_str(&key)) : NULL;
    if (cp != NULL)
        pod_trace_see(ch->in->trace, cp, clock_mono_us());
    return events;
}

static uint32_t drop_pod(const struct change *ch, struct name name)
{
    return cluster_remove_pod(ch->in->cluster, name.key, name.uid, ch->hooks);
}

/* Only the names of gang members are kept. */
static const struct map *all_rejected(const struct change *ch)
{
    return &ch->in->failures->pods;
}

static void expire_rejections(void *arg)
{
    struct intake *in = arg;
    int64_t now_ms = loop_now_ms(in->loop), next_ms;
    uint32_t events = rejections_expire(in->cluster, now_ms, &next_ms);
    if (next_ms >= 0)
        loop_timer_set(in->loop, &in->rejections, next_ms - now_ms, expire_rejections, in);
    queue_wake(in->queue, events, now_ms);
    in->changed(in->arg);
}

/* The kubelet sets startTime also on a pod that it rejects. */
static uint32_t put_rejected(const struct change *ch, void *object)
{
    struct pod *p = object;
    int64_t at_ns = p->started_ns > 0 ? p->started_ns : p->created_ns;
    int64_t age_ms = (clock_wall_ns() - at_ns) / 1000000;
    uint32_t events = 0;
    if (rejections_is_one(p) && age_ms < REJECTIONS_MS) {
        log_warn("kubelet rejected a pod", kv("pod", p->key), kv("node", p->node),
                 kv("reason", p->status_reason));
        metrics_inc(&rejected, p->status_reason);
        rejections_note(ch->in->cluster, p, age_ms, loop_now_ms(ch->in->loop));
        events = replacement_hold_void(ch->in->cluster, p->uid);
        loop_timer_set(ch->in->loop, &ch->in->rejections, 0, expire_rejections, ch->in);
    }
    failures_note(ch->in->failures, p);
    pod_free(p);
    return events;
}

static uint32_t drop_rejected(const struct change *ch, struct name name)
{
    failures_drop(ch->in->failures, name.key, name.uid);
    return 0;
}

static struct name name_group(const void *object)
{
    const struct pod_group *g = object;
    return (struct name){g->key, g->uid};
}

static const struct map *all_groups(const struct change *ch)
{
    return &ch->in->cluster->pod_groups;
}

static enum pod_group_api group_api(const struct change *ch)
{
    return ch->kind == INTAKE_POD_GROUPS     ? POD_GROUP_SIGS
           : ch->kind == INTAKE_POD_GROUPS_X ? POD_GROUP_X
                                             : POD_GROUP_NATIVE;
}

static uint32_t put_group(const struct change *ch, void *object)
{
    /* From the watched resource: list items need not repeat the apiVersion. */
    ((struct pod_group *)object)->api = group_api(ch);
    return gangs_put_group(ch->in->cluster, object, ch->hooks);
}

static uint32_t drop_group(const struct change *ch, struct name name)
{
    return gangs_remove_group(ch->in->cluster, name.key, group_api(ch), ch->hooks);
}

static uint32_t put_policy(const struct change *ch, void *object)
{
    return policies_put(ch->in->cluster, object);
}

static uint32_t drop_policy(const struct change *ch, struct name name)
{
    return policies_remove(ch->in->cluster, name.key, name.uid);
}

static struct name name_object(const void *object)
{
    const struct object *o = object;
    return (struct name){o->key, o->uid};
}

static const struct map *all_objects(const struct change *ch);
static uint32_t put_object(const struct change *ch, void *object);
static uint32_t drop_object(const struct change *ch, struct name name);

#define DECODER(function, type)                                       \
    static int any_##function(json *j, void **out, struct error *err) \
    {                                                                 \
        type *object = NULL;                                          \
        int rc = decode_##function(j, &object, err);                  \
        *out = object;                                                \
        return rc;                                                    \
    }
DECODER(node, struct node)
DECODER(pod, struct pod)
DECODER(pod_group, struct pod_group)
DECODER(namespace, struct object)
DECODER(pvc, struct pvc)
DECODER(pv, struct pv)
DECODER(storage_class, struct storage_class)
DECODER(csi_node, struct csi_node)
DECODER(csi_driver, struct csi_driver)
DECODER(csi_capacity, struct csi_capacity)
DECODER(volume_attachment, struct volume_attachment)
DECODER(pdb, struct pdb)
DECODER(device_class, struct device_class)
DECODER(resource_policy, struct policy)
#undef DECODER

static int remains_of_pod(json *j, const struct error *why, void **out, struct error *err)
{
    struct pod *object = NULL;
    metrics_inc(&unreadable, NULL);
    int rc = decode_pod_remains(j, why, &object, err);
    *out = object;
    return rc;
}

static void free_node(void *p)
{
    node_free(p);
}

static void free_pod(void *p)
{
    pod_free(p);
}

static void free_group(void *p)
{
    pod_group_free(p);
}

static void free_object(void *p)
{
    object_free(p);
}

struct verbs {
    struct name (*name)(const void *object);
    const struct map *(*all)(const struct change *ch); /* stored objects, by key */
    uint32_t (*put)(const struct change *ch, void *object);
    uint32_t (*drop)(const struct change *ch, struct name name);
};
static const struct verbs nodes = {name_node, all_nodes, put_node, drop_node};
static const struct verbs pods = {name_pod, all_pods, put_pod, drop_pod};
static const struct verbs rejects = {name_pod, all_rejected, put_rejected, drop_rejected};
static const struct verbs groups = {name_group, all_groups, put_group, drop_group};
static const struct verbs policies = {name_object, all_objects, put_policy, drop_policy};
static const struct verbs objects = {name_object, all_objects, put_object, drop_object};

/* An object in api_objects: its store and decoder. */
#define OBJECT(store_, function) \
    .verbs = &objects, .store = store_, .type = {any_##function, free_object, NULL}

static const struct row {
    const struct kube_kind *kind;
    const struct verbs *verbs;
    struct reflector_type type;
    enum api_objects_kind store; /* api_objects only */
    const char *fields;          /* field selector */
    bool ours;                   /* only pods with our schedulerName */
    const char *without;         /* consequence of its absence; NULL: must exist */
} rows[INTAKE_KINDS] = {
    [INTAKE_NODES] = {.kind = &kube_nodes, .verbs = &nodes, .type = {any_node, free_node, NULL}},
    /* Failed pods hold nothing; the server sends DELETED when a pod becomes one. Succeeded ones
     * still count as members of their gang. */
    [INTAKE_PODS] = {.kind = &kube_pods,
                     .verbs = &pods,
                     .type = {any_pod, free_pod, remains_of_pod},
                     .fields = "status.phase!=Failed"},
    [INTAKE_REJECTED_PODS] = {.kind = &kube_pods,
                              .verbs = &rejects,
                              .type = {any_pod, free_pod, NULL},
                              .fields = "status.phase=Failed",
                              .ours = true},
    [INTAKE_POD_GROUPS] = {.kind = &kube_pod_groups,
                           .verbs = &groups,
                           .type = {any_pod_group, free_group, NULL},
                           .without = "gangs are made by labels only"},
    [INTAKE_POD_GROUPS_X] = {.kind = &kube_pod_groups_x,
                             .verbs = &groups,
                             .type = {any_pod_group, free_group, NULL},
                             .without = "gangs are made by labels only"},
    [INTAKE_POD_GROUPS_NATIVE] = {.kind = &kube_pod_groups_native,
                                  .verbs = &groups,
                                  .type = {any_pod_group, free_group, NULL},
                                  .without =
                                      "a pod with spec.schedulingGroup waits for a PodGroup"},
    [INTAKE_NAMESPACES] = {.kind = &kube_namespaces, OBJECT(API_OBJECTS_NAMESPACES, namespace)},
    [INTAKE_CLAIMS] = {.kind = &kube_claims, OBJECT(API_OBJECTS_CLAIMS, pvc)},
    [INTAKE_VOLUMES] = {.kind = &kube_volumes, OBJECT(API_OBJECTS_VOLUMES, pv)},
    [INTAKE_STORAGE_CLASSES] = {.kind = &kube_storage_classes,
                                OBJECT(API_OBJECTS_STORAGE_CLASSES, storage_class)},
    [INTAKE_CSI_NODES] = {.kind = &kube_csi_nodes, OBJECT(API_OBJECTS_CSI_NODES, csi_node)},
    [INTAKE_BUDGETS] = {.kind = &kube_budgets, OBJECT(API_OBJECTS_BUDGETS, pdb)},
    [INTAKE_CSI_DRIVERS] = {.kind = &kube_csi_drivers,
                            OBJECT(API_OBJECTS_CSI_DRIVERS, csi_driver),
                            .without = "the capacity that storage drivers report is not checked"},
    [INTAKE_CSI_CAPACITIES] = {.kind = &kube_csi_capacities,
                               OBJECT(API_OBJECTS_CSI_CAPACITIES, csi_capacity),
                               .without =
                                   "the capacity that storage drivers report is not checked"},
    [INTAKE_VOLUME_ATTACHMENTS] = {.kind = &kube_volume_attachments,
                                   OBJECT(API_OBJECTS_VOLUME_ATTACHMENTS, volume_attachment),
                                   .without =
                                       "volumes that are still attached after their pod went do "
                                       "not count against a node's limit"},
    [INTAKE_DEVICE_CLASSES] = {.kind = &kube_device_classes,
                               OBJECT(API_OBJECTS_DEVICE_CLASSES, device_class),
                               .without = "an extended resource that only a DeviceClass offers is "
                                          "refused as one that no node has"},
    [INTAKE_POLICIES] = {.kind = &kube_resource_policies,
                         .verbs = &policies,
                         .store = API_OBJECTS_POLICIES,
                         .type = {any_resource_policy, free_object, NULL},
                         .without = "there are no ResourcePolicies"},
};

static const struct map *all_objects(const struct change *ch)
{
    return &ch->in->cluster->objects->by_key[rows[ch->kind].store];
}

static uint32_t put_object(const struct change *ch, void *object)
{
    return api_objects_put(ch->in->cluster->objects, rows[ch->kind].store, object);
}

static uint32_t drop_object(const struct change *ch, struct name name)
{
    return api_objects_remove(ch->in->cluster->objects, rows[ch->kind].store, name.key, name.uid);
}

/* Drops objects that a full list does not contain. */
static uint32_t drop_missing(const struct change *ch, const struct map *listed)
{
    const struct verbs *v = rows[ch->kind].verbs;
    struct VEC(char *) gone = {0};
    struct arena a;
    arena_init(&a, 0);
    const char *key;
    void *value;
    for (size_t i = 0; map_next(v->all(ch), &i, &key, &value);)
        if (map_get(listed, key) == NULL)
            vec_push(&gone, arena_strdup(&a, key));
    uint32_t events = 0;
    for (size_t i = 0; i < gone.len; i++)
        events |= v->drop(ch, (struct name){gone.items[i], NULL});
    vec_deinit(&gone);
    arena_deinit(&a);
    return events;
}

static uint32_t put_all(const struct change *ch, struct reflector_message *message)
{
    uint32_t events = 0;
    for (size_t i = 0; i < message->len; i++) {
        events |= rows[ch->kind].verbs->put(ch, message->objects[i]);
        message->objects[i] = NULL;
    }
    return events;
}

static uint32_t reset(const struct change *ch, struct reflector_message *message)
{
    const struct verbs *v = rows[ch->kind].verbs;
    struct map listed;
    map_init(&listed);
    for (size_t i = 0; i < message->len; i++)
        map_put(&listed, v->name(message->objects[i]).key, message->objects[i]);
    uint32_t events = drop_missing(ch, &listed);
    map_deinit(&listed);
    return events | put_all(ch, message);
}

void intake_message(struct intake *in, struct reflector_message *message)
{
    const struct intake_source *source = message->arg;
    const struct cluster_hooks hooks = {
        .gang_changed = gang_changed, .gang_vanishing = gang_vanishing, .arg = in};
    const struct change ch = {.in = in, .kind = source->kind, .hooks = &hooks};
    const struct verbs *v = rows[source->kind].verbs;
    uint32_t events = 0;
    switch (message->event) {
    case REFLECTOR_RESET:
        events = reset(&ch, message);
        break;
    case REFLECTOR_PART: /* nothing is decided before LISTED */
    case REFLECTOR_LISTED:
        events = put_all(&ch, message);
        break;
    case REFLECTOR_PUT:
        events = v->put(&ch, message->objects[0]);
        message->objects[0] = NULL;
        break;
    case REFLECTOR_DELETE:
        events = v->drop(&ch, v->name(message->objects[0]));
        break;
    }
    if (message->event == REFLECTOR_RESET || message->event == REFLECTOR_LISTED)
        in->listed[source->kind] = true;
    reflector_message_free(message);
    queue_wake(in->queue, events, loop_now_ms(in->loop));
    in->changed(in->arg);
}

static void deliver(void *arg, void *msg)
{
    int64_t began_us = clock_mono_us();
    intake_message(arg, msg);
    loop_time_add(LOOP_TIME_INTAKE, began_us);
}

int intake_init(struct intake *in, struct loop *loop, struct cluster *c, struct queue *q,
                struct pod_trace *trace, struct failures *failures, void (*changed)(void *arg),
                void *arg, struct error *err)
{
    *in = (struct intake){.cluster = c,
                          .queue = q,
                          .trace = trace,
                          .failures = failures,
                          .loop = loop,
                          .changed = changed,
                          .arg = arg};
    return mailbox_new(&in->mailbox, loop, INTAKE_MAILBOX, deliver, reflector_message_free, in,
                       err);
}

static bool post(void *arg, struct reflector_message *message)
{
    const struct intake_source *source = arg;
    return mailbox_post(source->intake->mailbox, message);
}

int intake_start(struct intake *in, struct kube_config *kube, const struct kube_options *o,
                 struct error *err)
{
    metrics_register(&unreadable);
    metrics_register(&rejected);
    for (int k = 0; k < INTAKE_KINDS; k++) {
        in->sources[k] = (struct intake_source){.intake = in, .kind = (enum intake_kind)k};
        AUTO_STRBUF fields = {0};
        strbuf_adds(&fields, str_or_empty(rows[k].fields));
        if (rows[k].ours)
            strbuf_addf(&fields, ",spec.schedulerName=%s", in->cluster->scheduler_name);
        struct reflector_config c = {.kind = rows[k].kind,
                                     .field_selector = fields.len > 0 ? strbuf_str(&fields) : NULL,
                                     .type = rows[k].type,
                                     .deliver = post,
                                     .arg = &in->sources[k],
                                     .from_etcd = true,
                                     .in_parts = true,
                                     .optional = rows[k].without != NULL,
                                     .without = rows[k].without};
        if (reflector_start(&in->reflectors[k], kube, o, &c, err) < 0)
            return error_wrap(err, "watch %s", rows[k].kind->resource);
    }
    return 0;
}

bool intake_is_synced(const struct intake *in)
{
    for (int k = 0; k < INTAKE_KINDS; k++)
        if (!in->listed[k])
            return false;
    return true;
}

void intake_deinit(struct intake *in)
{
    if (in->mailbox == NULL)
        return;
    mailbox_close(in->mailbox);
    loop_timer_cancel(in->loop, &in->rejections);
    for (int k = 0; k < INTAKE_KINDS; k++)
        if (in->reflectors[k] != NULL)
            reflector_stop(in->reflectors[k]);
    mailbox_free(in->mailbox);
}
