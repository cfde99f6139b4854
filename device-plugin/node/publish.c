// SPDX-License-Identifier: Apache-2.0
/*
 * publish - writes the node and pods on one worker thread.
 *
 * The node: each wanted key is compared with what the watch shows, and only differences are sent.
 * So a label that is removed by others comes back, an unchanged inventory costs nothing, and no
 * record of earlier writes can be wrong. Every node heartbeat carries our annotation to every
 * watcher, so there is at most one write in ten seconds.
 *
 * Pods: "assigned" is set when a container is about to start. These writes are not throttled. Each
 * carries the pod's uid, so a new pod of the same name is never changed. A write that the API
 * server refuses (pod gone, other uid) is dropped. One that did not get through is retried a second
 * later, without delaying the others; but not after a newer one of its kind, which it would undo.
 */
#include "device-plugin/node/publish.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/metrics.h"
#include "lib/base/num.h"
#include "lib/kube/api.h"
#include "lib/kube/decode.h"
#include "lib/model/names.h"

enum { RECENT = 64, RECENT_UID = 64 };

enum about { ABOUT_ASSIGNED, ABOUT_GRANT, ABOUT_USE, ABOUT_CPUS, ABOUT_EVICTION };
static const char *const about_done[] = {"pod assigned", "grant recorded", "use published",
                                         "CPUs published", "pod evicted"};
static const char *const about_failed[] = {"pod not marked as assigned", "grant not recorded",
                                           "use not published", "CPUs not published",
                                           "pod not evicted"};

struct assigned {
    struct assigned *next;
    char *ns, *name, *uid;
    enum about about;
    char *patch; /* NULL: sets "assigned" */
    bool old_form;
    int64_t due_ms; /* not before */
    bool told;      /* the retry was logged */
};

struct publish {
    struct kube_client *client;
    char *node_name;
    int64_t interval_ms;
    pthread_t thread;
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t wake;
    bool stop;
    bool wanted;
    struct arena arena; /* holds want */
    struct publish_wanted want;
    char *cpus; /* or NULL */
    struct node *node;
    int64_t next_write_ms;
    struct assigned *first, **last;
    size_t queued;
    char recent[RECENT][RECENT_UID]; /* queued uids: a container's two resources both call */
    size_t recent_at;
    char node_error[ERROR_TEXT_SIZE]; /* worker only; last error logged */
};

static struct metric writes = {.kind = METRIC_COUNTER,
                               .name = "cosched_device_plugin_writes_total",
                               .help = "Writes to the API server, by object and result.",
                               .label = "write"};

/* ---- the patches ---- */

static void put_count(struct json_writer *w, const char *where, const char *count)
{
    json_key(w, where);
    json_object_begin(w);
    json_kv_str(w, NAME_RES_GPU_COUNT, count);
    json_object_end(w);
}

void publish_patches(const struct publish_wanted *want, const struct node *node,
                     struct strbuf *meta, struct strbuf *status)
{
    struct json_writer w;
    json_writer_init(&w, meta);
    bool inventory =
        want->inventory != NULL &&
        !str_eq(labels_get(&node->annotations, NAME_ANN_GPU_INVENTORY), want->inventory);
    bool cpus = want->cpus != NULL &&
                !str_eq(labels_get(&node->annotations, NAME_ANN_CPU_TOPOLOGY), want->cpus);
    bool labels = false;
    for (size_t i = 0; i < want->labels.len; i++)
        labels = labels || !str_eq(labels_get(&node->labels, want->labels.items[i].key),
                                   want->labels.items[i].value);
    if (inventory || cpus || labels) {
        json_object_begin(&w);
        json_key(&w, "metadata");
        json_object_begin(&w);
        if (inventory || cpus) {
            json_key(&w, "annotations");
            json_object_begin(&w);
            if (inventory)
                json_kv_str(&w, NAME_ANN_GPU_INVENTORY, want->inventory);
            if (cpus)
                json_kv_str(&w, NAME_ANN_CPU_TOPOLOGY, want->cpus);
            json_object_end(&w);
        }
        if (labels) {
            json_key(&w, "labels");
            json_object_begin(&w);
            for (size_t i = 0; i < want->labels.len; i++)
                json_kv_str(&w, want->labels.items[i].key, want->labels.items[i].value);
            json_object_end(&w);
        }
        json_object_end(&w);
        json_object_end(&w);
    }

    bool has_capacity = false, has_allocatable = false;
    int64_t capacity = resources_get(&node->capacity, NAME_RES_GPU_COUNT, &has_capacity);
    int64_t allocatable = resources_get(&node->allocatable, NAME_RES_GPU_COUNT, &has_allocatable);
    bool differs = want->gpu_count > 0
                       ? !has_capacity || !has_allocatable || capacity != want->gpu_count ||
                             allocatable != want->gpu_count
                       : capacity != 0 || allocatable != 0;
    if (!differs || want->inventory == NULL)
        return;
    char count[24];
    (void)str_format(count, sizeof count, "%lld", (long long)want->gpu_count);
    json_writer_init(&w, status);
    json_object_begin(&w);
    json_key(&w, "status");
    json_object_begin(&w);
    put_count(&w, "capacity", count);
    put_count(&w, "allocatable", count);
    json_object_end(&w);
    json_object_end(&w);
}

/* Begins a patch of a pod's annotations. The uid is a precondition: no other pod of that name is
 * patched. */
static void pod_begin(struct json_writer *w, const char *uid, struct strbuf *out)
{
    json_writer_init(w, out);
    json_object_begin(w);
    json_key(w, "metadata");
    json_object_begin(w);
    json_kv_str(w, "uid", uid);
    json_key(w, "annotations");
    json_object_begin(w);
}

static void pod_end(struct json_writer *w)
{
    json_object_end(w);
    json_object_end(w);
    json_object_end(w);
}

void publish_assigned_patch(const char *uid, bool old_form, struct strbuf *out)
{
    struct json_writer w;
    pod_begin(&w, uid, out);
    json_kv_str(&w, NAME_ANN_ASSIGNED, "true");
    if (old_form)
        json_kv_str(&w, NAME_ANN_OLD_ASSIGNED, "true");
    pod_end(&w);
}

void publish_grant_patch(const struct pod *pod, const struct grant *grant,
                         const struct gpu_inventory *inv, struct strbuf *out)
{
    /* "assigned" has its own patch, which may have been written first. */
    static const char *const keys[] = {
        NAME_ANN_ALLOCATION, NAME_ANN_CORE,    NAME_ANN_ASSUME_TIME,    NAME_ANN_OLD_IDX,
        NAME_ANN_OLD_DEV,    NAME_ANN_OLD_POD, NAME_ANN_OLD_ASSUME_TIME};
    struct arena a;
    struct labels all;
    struct json_writer w;
    int64_t dev_gib = 0;
    arena_init(&a, 0);
    for (size_t i = 0; grant->shares_len > 0 && i < inv->cards_len; i++)
        if (inv->cards[i].index == grant->shares[0].card)
            dev_gib = gpu_card_gib(&inv->cards[i]);
    grant_encode(grant, pod, dev_gib, &a, &all);
    pod_begin(&w, pod->uid, out);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (labels_get(&all, keys[i]) != NULL)
            json_kv_str(&w, keys[i], labels_get(&all, keys[i]));
    json_kv_str(&w, NAME_ANN_GPU_CONFIRMED, str_or_empty(labels_get(&all, NAME_ANN_ALLOCATION)));
    pod_end(&w);
    arena_deinit(&a);
}

/* ---- the worker ---- */

static void queue_push(struct publish *p, struct assigned *x)
{
    x->next = NULL;
    *p->last = x;
    p->last = &x->next;
    p->queued++;
}

/* The waiting write of this kind for this pod, or NULL. */
static struct assigned *queue_find(const struct publish *p, enum about about, const char *uid)
{
    struct assigned *x = p->first;
    while (x != NULL && (x->about != about || !str_eq(x->uid, uid)))
        x = x->next;
    return x;
}

/* Removes the first due entry, or returns NULL and lowers *wake_ms to the next due time (-1:
 * never). */
static struct assigned *queue_take(struct publish *p, int64_t now_ms, int64_t *wake_ms)
{
    for (struct assigned **at = &p->first, *x; (x = *at) != NULL; at = &x->next) {
        if (x->due_ms > now_ms) {
            *wake_ms = *wake_ms < 0 ? x->due_ms : num_min(*wake_ms, x->due_ms);
            continue;
        }
        *at = x->next;
        if (p->last == &x->next)
            p->last = at;
        p->queued--;
        return x;
    }
    return NULL;
}

static void assigned_free(struct assigned *x)
{
    free(x->ns);
    free(x->name);
    free(x->uid);
    free(x->patch);
    free(x);
}

/* Gets uid and annotations of a pod that was unknown when its container started. 1: nothing to
 * set. */
static int look_up(struct publish *p, struct assigned *x, struct error *err)
{
    AUTO_JSON *doc = NULL;
    struct object_meta meta;
    if (kube_get(p->client, &kube_pods, x->ns, x->name, &doc, err) < 0)
        return -1;
    decode_meta(json_root(doc), &meta);
    json *annotations = json_get(json_get(json_root(doc), "metadata"), "annotations");
    x->old_form = str_eq(json_get_str(annotations, NAME_ANN_OLD_ASSIGNED), "false");
    if (!x->old_form && !str_eq(json_get_str(annotations, NAME_ANN_ASSIGNED), "false"))
        return 1;
    free(x->uid);
    x->uid = mem_strdup(meta.uid);
    return 0;
}

/* Lets the pod's next container try again. */
static void forget(struct publish *p, const char *uid)
{
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < RECENT; i++)
        if (str_eq(p->recent[i], uid))
            p->recent[i][0] = '\0';
    pthread_mutex_unlock(&p->lock);
}

/* true: finished, written or dropped. */
static bool write_assigned(struct publish *p, struct assigned *x)
{
    struct error err = ERROR_INIT;
    AUTO_STRBUF body;
    strbuf_init(&body);
    int result = x->uid[0] == '\0' ? look_up(p, x, &err) : 0;
    if (result == 1)
        return true;
    if (result == 0 && x->about == ABOUT_EVICTION) {
        result = kube_evict(p->client, x->ns, x->name, x->uid, &err);
    } else if (result == 0) {
        if (x->patch != NULL)
            strbuf_adds(&body, x->patch);
        else
            publish_assigned_patch(x->uid, x->old_form, &body);
        result = kube_patch(p->client, &kube_pods, x->ns, x->name, NULL, KUBE_PATCH_MERGE,
                            strbuf_str(&body), body.len, NULL, &err);
    }
    if (x->about == ABOUT_EVICTION)
        metrics_inc(&writes, result == 0 ? "eviction done" : "eviction failed");
    else
        metrics_inc(&writes, result == 0 ? "pod done" : "pod failed");
    if (result == 0) {
        log_info(about_done[x->about], kv("ns", x->ns), kv("pod", x->name));
        return true;
    }
    bool again =
        err.code == ERROR_TIMEOUT || err.code == ERROR_UNAVAILABLE || err.code == ERROR_THROTTLED;
    if (!x->told)
        log_warn(about_failed[x->about], kv("ns", x->ns), kv("pod", x->name), kv("again", again),
                 kv("error", err.text));
    x->told = again;
    if (!again && x->patch == NULL)
        forget(p, x->uid);
    return !again;
}

static void write_node(struct publish *p, const struct strbuf *meta, const struct strbuf *status)
{
    struct error err = ERROR_INIT;
    int result = 0;
    if (meta->len > 0)
        result = kube_patch(p->client, &kube_nodes, NULL, p->node_name, NULL, KUBE_PATCH_MERGE,
                            strbuf_str(meta), meta->len, NULL, &err);
    if (result == 0 && status->len > 0)
        result = kube_patch(p->client, &kube_nodes, NULL, p->node_name, "status", KUBE_PATCH_MERGE,
                            strbuf_str(status), status->len, NULL, &err);
    metrics_inc(&writes, result == 0 ? "node done" : "node failed");
    if (result == 0)
        log_info("node published", kv("node", p->node_name), kv("metadata", meta->len > 0),
                 kv("status", status->len > 0));
    else if (err.code != ERROR_CANCELLED && !str_eq(p->node_error, err.text))
        log_warn("node not published", kv("node", p->node_name), kv("error", err.text));
    (void)str_format(p->node_error, sizeof p->node_error, "%s", err.text);
    pthread_mutex_lock(&p->lock);
    /* The CPUs are known at once; the cards follow within a second and must not wait for the
     * interval. */
    bool only_cpus = result == 0 && !p->wanted;
    int64_t pause_ms = only_cpus ? 0 : result == 0 ? p->interval_ms : PUBLISH_RETRY_MS;
    p->next_write_ms = clock_mono_ms() + pause_ms;
    pthread_mutex_unlock(&p->lock);
}

static void wait_until(struct publish *p, int64_t at_ms)
{
    if (at_ms < 0) {
        pthread_cond_wait(&p->wake, &p->lock);
        return;
    }
    struct timespec until = {.tv_sec = at_ms / 1000, .tv_nsec = (long)(at_ms % 1000) * 1000000L};
    (void)pthread_cond_timedwait(&p->wake, &p->lock, &until);
}

/* Releases the lock while it writes. */
static void work_on_pod(struct publish *p, struct assigned *x)
{
    pthread_mutex_unlock(&p->lock);
    bool done = write_assigned(p, x);
    pthread_mutex_lock(&p->lock);
    if (done || (x->patch != NULL && queue_find(p, x->about, x->uid) != NULL)) {
        assigned_free(x);
        return;
    }
    /* A disruption budget may block an eviction for long. */
    x->due_ms =
        clock_mono_ms() + (x->about == ABOUT_EVICTION ? PUBLISH_EVICTION_MS : PUBLISH_RETRY_MS);
    queue_push(p, x);
}

static void *worker_publish(void *arg)
{
    struct publish *p = arg;
    struct strbuf meta, status;
    strbuf_init(&meta);
    strbuf_init(&status);
    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        /* Alternates between pods and the node, so that neither delays the other for long. */
        int64_t wake_ms = -1;
        struct assigned *x = queue_take(p, clock_mono_ms(), &wake_ms);
        bool wrote = x != NULL;
        if (x != NULL)
            work_on_pod(p, x);
        strbuf_reset(&meta);
        strbuf_reset(&status);
        struct publish_wanted want = p->wanted ? p->want : (struct publish_wanted){0};
        want.cpus = p->cpus;
        if (p->node != NULL && !p->stop)
            publish_patches(&want, p->node, &meta, &status);
        if (meta.len + status.len > 0 && clock_mono_ms() >= p->next_write_ms) {
            pthread_mutex_unlock(&p->lock);
            write_node(p, &meta, &status);
            pthread_mutex_lock(&p->lock);
            wrote = true;
        } else if (meta.len + status.len > 0) {
            wake_ms = wake_ms < 0 ? p->next_write_ms : num_min(wake_ms, p->next_write_ms);
        }
        if (!wrote && !p->stop)
            wait_until(p, wake_ms);
    }
    pthread_mutex_unlock(&p->lock);
    strbuf_deinit(&meta);
    strbuf_deinit(&status);
    return NULL;
}

int publish_start(struct publish **out, struct kube_config *kube, const struct kube_options *o,
                  const char *node, int64_t interval_ms, struct error *err)
{
    struct publish *p = mem_new(struct publish, 1);
    if (kube_client_new(&p->client, kube, o, "cosched-device-plugin", err) < 0) {
        free(p);
        return -1;
    }
    p->node_name = mem_strdup(node);
    p->interval_ms = interval_ms;
    p->last = &p->first;
    arena_init(&p->arena, 0);
    pthread_mutex_init(&p->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&p->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    metrics_register(&writes);
    if (pthread_create(&p->thread, NULL, worker_publish, p) != 0)
        abort();
    *out = p;
    return 0;
}

void publish_stop(struct publish *p)
{
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    kube_client_cancel(p->client);
    pthread_join(p->thread, NULL);
    kube_client_free(p->client);
    int64_t wake_ms = -1;
    for (struct assigned *x; (x = queue_take(p, INT64_MAX, &wake_ms)) != NULL;)
        assigned_free(x);
    node_free(p->node);
    arena_deinit(&p->arena);
    free(p->cpus);
    pthread_cond_destroy(&p->wake);
    pthread_mutex_destroy(&p->lock);
    free(p->node_name);
    free(p);
}

void publish_want(struct publish *p, const struct publish_wanted *w)
{
    pthread_mutex_lock(&p->lock);
    arena_reset(&p->arena);
    p->want = (struct publish_wanted){.inventory = arena_strdup(&p->arena, w->inventory),
                                      .gpu_count = w->gpu_count};
    p->want.labels.items = arena_new(&p->arena, struct label, w->labels.len);
    p->want.labels.len = w->labels.len;
    for (size_t i = 0; i < w->labels.len; i++)
        p->want.labels.items[i] =
            (struct label){.key = arena_strdup(&p->arena, w->labels.items[i].key),
                           .value = w->labels.items[i].value != NULL
                                        ? arena_strdup(&p->arena, w->labels.items[i].value)
                                        : NULL};
    p->wanted = true;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

void publish_cpus(struct publish *p, const char *topology)
{
    pthread_mutex_lock(&p->lock);
    free(p->cpus);
    p->cpus = mem_strdup(topology);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
}

void publish_seen(struct publish *p, struct node *take)
{
    pthread_mutex_lock(&p->lock);
    struct node *old = p->node;
    p->node = take;
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    node_free(old);
}

void publish_assigned(struct publish *p, const char *ns, const char *name, const char *uid,
                      bool old_form)
{
    pthread_mutex_lock(&p->lock);
    bool known = false, full = p->queued >= PUBLISH_ASSIGNED_MAX;
    for (size_t i = 0; i < RECENT && uid[0] != '\0'; i++)
        known = known || str_eq(p->recent[i], uid);
    if (!known && !full) {
        struct assigned *x = mem_new(struct assigned, 1);
        *x = (struct assigned){.ns = mem_strdup(ns),
                               .name = mem_strdup(name),
                               .uid = mem_strdup(uid),
                               .old_form = old_form};
        if (uid[0] != '\0')
            (void)str_format(p->recent[p->recent_at++ % RECENT], RECENT_UID, "%s", uid);
        queue_push(p, x);
        pthread_cond_broadcast(&p->wake);
    }
    pthread_mutex_unlock(&p->lock);
    if (full && !known)
        log_warn("pod not marked as assigned: too many wait for the API server", kv("ns", ns),
                 kv("pod", name));
}

/* Replaces a waiting patch of the same kind for this pod. */
static void push_patch(struct publish *p, const struct pod *pod, enum about about,
                       const struct strbuf *patch)
{
    pthread_mutex_lock(&p->lock);
    struct assigned *x = queue_find(p, about, pod->uid);
    bool full = x == NULL && p->queued >= PUBLISH_ASSIGNED_MAX;
    if (x != NULL) {
        free(x->patch);
        x->patch = mem_strdup(strbuf_str(patch));
    } else if (!full) {
        x = mem_new(struct assigned, 1);
        *x = (struct assigned){.ns = mem_strdup(pod->ns),
                               .name = mem_strdup(pod->name),
                               .uid = mem_strdup(pod->uid),
                               .about = about,
                               .patch = mem_strdup(strbuf_str(patch))};
        queue_push(p, x);
        pthread_cond_broadcast(&p->wake);
    }
    pthread_mutex_unlock(&p->lock);
    if (full)
        log_warn(about_failed[about], kv("ns", pod->ns), kv("pod", pod->name),
                 kv("error", "too many pods wait for the API server"));
}

void publish_grant(struct publish *p, const struct pod *pod, const struct grant *grant,
                   const struct gpu_inventory *inv)
{
    AUTO_STRBUF patch;
    strbuf_init(&patch);
    publish_grant_patch(pod, grant, inv, &patch);
    push_patch(p, pod, ABOUT_GRANT, &patch);
}

static void push_annotation(struct publish *p, const struct pod *pod, enum about about,
                            const char *key, const char *value)
{
    AUTO_STRBUF patch;
    struct json_writer w;
    strbuf_init(&patch);
    pod_begin(&w, pod->uid, &patch);
    json_kv_str(&w, key, value);
    pod_end(&w);
    push_patch(p, pod, about, &patch);
}

void publish_use(struct publish *p, const struct pod *pod, const struct gpuuse *use)
{
    AUTO_STRBUF text;
    strbuf_init(&text);
    gpuuse_print(use, &text);
    push_annotation(p, pod, ABOUT_USE, NAME_ANN_GPU_USED, strbuf_str(&text));
}

void publish_applied(struct publish *p, const struct pod *pod, const char *cpuset)
{
    push_annotation(p, pod, ABOUT_CPUS, NAME_ANN_CPUSET_APPLIED, cpuset);
}

void publish_evict(struct publish *p, const struct pod *pod)
{
    AUTO_STRBUF nothing;
    strbuf_init(&nothing);
    push_patch(p, pod, ABOUT_EVICTION, &nothing);
}
