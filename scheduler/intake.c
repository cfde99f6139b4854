// SPDX-License-Identifier: Apache-2.0
#include "scheduler/intake.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "lib/kube/api.h"
#include "lib/kube/decode.h"

enum { INTAKE_MAILBOX = 4096 };

static struct metric unreadable = {
    .kind = METRIC_COUNTER,
    .name = "cosched_scheduler_unreadable_pods_total",
    .help = "Versions of pods that could not be read; while a pod is so, its node may be closed."};

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

/* ---- one object ---- */

static uint32_t put(struct intake *in, enum intake_kind kind, void *object,
                    const struct cluster_hooks *hooks)
{
    switch (kind) {
    case INTAKE_NODES:
        return cluster_put_node(in->cluster, object);
    case INTAKE_PODS: {
        struct pod *p = object;
        bool finished = pod_is_finished(p);
        const char *key = p->key;
        uint32_t events = cluster_put_pod(in->cluster, p, hooks);
        struct cluster_pod *cp = finished ? NULL : cluster_find_pod(in->cluster, key);
        if (cp != NULL && cp->seen_us == 0)
            cp->seen_us = clock_mono_us();
        return events;
    }
    case INTAKE_POD_GROUPS:
    case INTAKE_POD_GROUPS_X:
        /* By where it was read: a list need not repeat the apiVersion in each item. */
        ((struct pod_group *)object)->x_group = kind == INTAKE_POD_GROUPS_X;
        return cluster_put_pod_group(in->cluster, object, hooks);
    case INTAKE_KINDS:
        break;
    }
    return 0;
}

static uint32_t drop(struct intake *in, enum intake_kind kind, const void *object,
                     const struct cluster_hooks *hooks)
{
    switch (kind) {
    case INTAKE_NODES:
        return cluster_remove_node(in->cluster, ((const struct node *)object)->name);
    case INTAKE_PODS:
        return cluster_remove_pod(in->cluster, ((const struct pod *)object)->key,
                                  ((const struct pod *)object)->uid, hooks);
    case INTAKE_POD_GROUPS:
    case INTAKE_POD_GROUPS_X:
        return cluster_remove_pod_group(in->cluster, ((const struct pod_group *)object)->key,
                                        kind == INTAKE_POD_GROUPS_X, hooks);
    case INTAKE_KINDS:
        break;
    }
    return 0;
}

/* ---- a full list: what is not in it is gone ---- */

static const char *key_of(enum intake_kind kind, const void *object)
{
    if (kind == INTAKE_NODES)
        return ((const struct node *)object)->name;
    return kind == INTAKE_PODS ? ((const struct pod *)object)->key
                               : ((const struct pod_group *)object)->key;
}

static uint32_t drop_missing(struct intake *in, enum intake_kind kind, const struct map *listed,
                             const struct cluster_hooks *hooks)
{
    const struct map *all = kind == INTAKE_NODES  ? &in->cluster->nodes
                            : kind == INTAKE_PODS ? &in->cluster->pods
                                                  : &in->cluster->pod_groups;
    struct VEC(char *) gone = {0};
    struct arena a;
    arena_init(&a, 0);
    const char *key;
    void *value;
    for (size_t i = 0; map_next(all, &i, &key, &value);)
        if (map_get(listed, key) == NULL)
            vec_push(&gone, arena_strdup(&a, key));
    uint32_t events = 0;
    for (size_t i = 0; i < gone.len; i++)
        switch (kind) {
        case INTAKE_NODES:
            events |= cluster_remove_node(in->cluster, gone.items[i]);
            break;
        case INTAKE_PODS:
            events |= cluster_remove_pod(in->cluster, gone.items[i], NULL, hooks);
            break;
        default:
            events |= cluster_remove_pod_group(in->cluster, gone.items[i],
                                               kind == INTAKE_POD_GROUPS_X, hooks);
        }
    vec_deinit(&gone);
    arena_deinit(&a);
    return events;
}

static uint32_t reset(struct intake *in, enum intake_kind kind, struct reflector_letter *letter,
                      const struct cluster_hooks *hooks)
{
    struct map listed;
    map_init(&listed);
    for (size_t i = 0; i < letter->len; i++)
        map_put(&listed, key_of(kind, letter->objects[i]), letter->objects[i]);
    uint32_t events = drop_missing(in, kind, &listed, hooks);
    map_deinit(&listed);
    for (size_t i = 0; i < letter->len; i++) {
        events |= put(in, kind, letter->objects[i], hooks);
        letter->objects[i] = NULL;
    }
    in->listed[kind] = true;
    return events;
}

void intake_letter(struct intake *in, struct reflector_letter *letter)
{
    const struct intake_source *source = letter->arg;
    struct cluster_hooks hooks = {
        .gang_changed = gang_changed, .gang_vanishing = gang_vanishing, .arg = in};
    uint32_t events = 0;
    switch (letter->event) {
    case REFLECTOR_RESET:
        events = reset(in, source->kind, letter, &hooks);
        break;
    case REFLECTOR_PUT:
        events = put(in, source->kind, letter->objects[0], &hooks);
        letter->objects[0] = NULL;
        break;
    case REFLECTOR_DELETE:
        events = drop(in, source->kind, letter->objects[0], &hooks);
        break;
    }
    reflector_letter_free(letter);
    queue_wake(in->queue, events, loop_now_ms(in->loop));
    in->changed(in->arg);
}

/* ---- wiring ---- */

static void deliver(void *arg, void *msg)
{
    intake_letter(arg, msg);
}

int intake_init(struct intake *in, struct loop *loop, struct cluster *c, struct queue *q,
                void (*changed)(void *arg), void *arg, struct error *err)
{
    *in = (struct intake){.cluster = c, .queue = q, .loop = loop, .changed = changed, .arg = arg};
    return mailbox_new(&in->mailbox, loop, INTAKE_MAILBOX, deliver, reflector_letter_free, in, err);
}

static bool post(void *arg, struct reflector_letter *letter)
{
    const struct intake_source *source = arg;
    return mailbox_post(source->intake->mailbox, letter);
}

static int decode_any_node(json *j, void **out, struct error *err)
{
    struct node *object = NULL;
    int rc = decode_node(j, &object, err);
    *out = object;
    return rc;
}

static int decode_any_pod(json *j, void **out, struct error *err)
{
    struct pod *object = NULL;
    int rc = decode_pod(j, &object, err);
    *out = object;
    return rc;
}

static int remains_of_pod(json *j, const struct error *why, void **out, struct error *err)
{
    struct pod *object = NULL;
    metrics_inc(&unreadable, NULL);
    int rc = decode_pod_remains(j, why, &object, err);
    *out = object;
    return rc;
}

static int decode_any_pod_group(json *j, void **out, struct error *err)
{
    struct pod_group *object = NULL;
    int rc = decode_pod_group(j, &object, err);
    *out = object;
    return rc;
}

static void free_any_node(void *p)
{
    node_free(p);
}

static void free_any_pod(void *p)
{
    pod_free(p);
}

static void free_any_pod_group(void *p)
{
    pod_group_free(p);
}

int intake_start(struct intake *in, struct kube_config *kube, const struct kube_options *o,
                 struct error *err)
{
    metrics_register(&unreadable);
    const struct {
        const struct kube_kind *kind;
        const char *fields;
        struct reflector_type type;
        bool optional;
    } rows[INTAKE_KINDS] = {
        [INTAKE_NODES] = {&kube_nodes, NULL, {decode_any_node, free_any_node, NULL}, false},
        /* Failed pods hold nothing and count for nothing; the server says DELETED when a pod becomes one. Succeeded ones still count as members of their gang. */
        [INTAKE_PODS] = {&kube_pods,
                         "status.phase!=Failed",
                         {decode_any_pod, free_any_pod, remains_of_pod},
                         false},
        [INTAKE_POD_GROUPS] = {&kube_pod_groups,
                               NULL,
                               {decode_any_pod_group, free_any_pod_group, NULL},
                               true},
        [INTAKE_POD_GROUPS_X] = {&kube_pod_groups_x,
                                 NULL,
                                 {decode_any_pod_group, free_any_pod_group, NULL},
                                 true},
    };
    for (int k = 0; k < INTAKE_KINDS; k++) {
        in->sources[k] = (struct intake_source){.intake = in, .kind = (enum intake_kind)k};
        struct reflector_config c = {.kind = rows[k].kind,
                                     .field_selector = rows[k].fields,
                                     .type = rows[k].type,
                                     .deliver = post,
                                     .arg = &in->sources[k],
                                     .from_etcd = true,
                                     .optional = rows[k].optional};
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
    for (int k = 0; k < INTAKE_KINDS; k++)
        if (in->reflectors[k] != NULL)
            reflector_stop(in->reflectors[k]);
    mailbox_free(in->mailbox);
}
