// SPDX-License-Identifier: Apache-2.0
/*
 * service - what the kubelet may ask.
 *
 *   GetPreferredAllocation   who waits? (pod resources) → its claim → ids on the claimed cards
 *   Allocate                 the same, then: do the ids lie where the claim says? → environment
 *   PreStartContainer        who holds these ids? → still where the claim says? → "assigned"
 *
 * The pod is found among those that the watch has brought. The kubelet may be faster than our watch, so when none of
 * them waits for the resource the API server is asked: first for listed pods that the watch has not brought at all, then
 * for those of which it may have brought a namesake from before. A refusal rejects the pod for good (the kubelet's rule), so it is a sentence for its owner; an
 * environment that means "failed" is never handed out.
 */
#include "device-plugin/service.h"

#include <pthread.h>
#include <stdlib.h>

#include "device-plugin/match.h"
#include "device-plugin/podcache.h"
#include "device-plugin/podresources.h"
#include "device-plugin/response.h"
#include "device-plugin/wire.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "lib/base/str.h"

struct endpoint {
    struct service *service;
    enum mode_resource resource;
    struct strbuf list; /* the encoded ListAndWatch message */
    uint64_t generation;
};

struct service {
    struct service_hooks hooks;
    struct podresources *podresources;
    pthread_mutex_t lock; /* everything below */
    struct arena inventory_arena;
    struct gpu_inventory inventory;
    enum gpu_mode mode;
    char *refusal;
    struct podcache pods;
    struct endpoint endpoints[MODE_RESOURCES];
};

static struct metric calls_total = {.kind = METRIC_COUNTER,
                                    .name = "cosched_device_plugin_calls_total",
                                    .help = "Calls of the kubelet, by method and result.",
                                    .label = "call"};
static struct metric allocate_seconds = {.kind = METRIC_HISTOGRAM,
                                         .name = "cosched_device_plugin_allocate_seconds",
                                         .help = "Time to answer Allocate."};

/* ---- the loop's side ---- */

int service_new(struct service **out, const char *pod_resources_socket,
                const struct service_hooks *hooks, struct error *err)
{
    struct podresources *p;
    if (podresources_new(&p, pod_resources_socket, err) < 0)
        return -1;
    struct service *s = calloc(1, sizeof *s);
    if (s == NULL)
        abort();
    s->hooks = *hooks;
    s->podresources = p;
    pthread_mutex_init(&s->lock, NULL);
    arena_init(&s->inventory_arena, 0);
    podcache_init(&s->pods);
    for (int r = 0; r < MODE_RESOURCES; r++) {
        s->endpoints[r] = (struct endpoint){.service = s, .resource = (enum mode_resource)r};
        strbuf_init(&s->endpoints[r].list);
    }
    metrics_register(&calls_total);
    metrics_register(&allocate_seconds);
    *out = s;
    return 0;
}

void service_free(struct service *s)
{
    if (s == NULL)
        return;
    podcache_deinit(&s->pods);
    for (int r = 0; r < MODE_RESOURCES; r++)
        strbuf_deinit(&s->endpoints[r].list);
    arena_deinit(&s->inventory_arena);
    podresources_free(s->podresources);
    pthread_mutex_destroy(&s->lock);
    free(s->refusal);
    free(s);
}

void service_set_inventory(struct service *s, const struct gpu_inventory *inv)
{
    struct arena a;
    arena_init(&a, 0);
    struct gpu_inventory copy;
    inventory_merge(NULL, inv, &a, &copy);
    pthread_mutex_lock(&s->lock);
    struct arena old = s->inventory_arena;
    s->inventory_arena = a;
    s->inventory = copy;
    pthread_mutex_unlock(&s->lock);
    arena_deinit(&old);
}

void service_set_mode(struct service *s, enum gpu_mode mode, const char *refusal)
{
    struct strbuf text;
    strbuf_init(&text);
    strbuf_adds(&text, str_or_empty(refusal));
    char *fresh = refusal != NULL ? strbuf_take(&text) : NULL;
    strbuf_deinit(&text);
    pthread_mutex_lock(&s->lock);
    char *old = s->refusal;
    s->mode = mode;
    s->refusal = fresh;
    pthread_mutex_unlock(&s->lock);
    free(old);
}

bool service_set_devices(struct service *s, enum mode_resource r, const struct inventory_devices *d)
{
    struct endpoint *e = &s->endpoints[r];
    struct strbuf fresh;
    strbuf_init(&fresh);
    wire_encode_devices(d, &fresh);
    pthread_mutex_lock(&s->lock);
    bool changed = e->generation == 0 || fresh.len != e->list.len ||
                   (fresh.len > 0 && memcmp(fresh.ptr, e->list.ptr, fresh.len) != 0);
    if (changed) {
        struct strbuf old = e->list;
        e->list = fresh;
        fresh = old;
        e->generation++;
    }
    pthread_mutex_unlock(&s->lock);
    strbuf_deinit(&fresh);
    return changed;
}

void service_put_pod(struct service *s, struct pod *take)
{
    pthread_mutex_lock(&s->lock);
    struct pod *old = podcache_put(&s->pods, take);
    pthread_mutex_unlock(&s->lock);
    pod_free(old);
}

void service_delete_pod(struct service *s, const char *key)
{
    pthread_mutex_lock(&s->lock);
    struct pod *old = podcache_remove(&s->pods, key);
    pthread_mutex_unlock(&s->lock);
    pod_free(old);
}

void service_reset_pods(struct service *s, struct pod **pods, size_t len)
{
    pthread_mutex_lock(&s->lock);
    podcache_reset(&s->pods, pods, len);
    pthread_mutex_unlock(&s->lock);
}

int service_held(struct service *s, int64_t timeout_ms, struct arena *a,
                 struct inventory_ids held[MODE_RESOURCES], struct error *err)
{
    struct match_listing l;
    if (podresources_list(s->podresources, timeout_ms, a, &l, err) < 0)
        return -1;
    for (int r = 0; r < MODE_RESOURCES; r++) {
        size_t total = 0;
        for (size_t i = 0; i < l.len; i++)
            for (size_t k = 0; k < l.pods[i].containers_len; k++)
                total += l.pods[i].containers[k].held[r].len;
        held[r] = (struct inventory_ids){.items = arena_new(a, const char *, total)};
        for (size_t i = 0; i < l.len; i++) {
            for (size_t k = 0; k < l.pods[i].containers_len; k++) {
                const struct inventory_ids *ids = &l.pods[i].containers[k].held[r];
                for (size_t n = 0; n < ids->len; n++)
                    held[r].items[held[r].len++] = ids->items[n];
            }
        }
    }
    return 0;
}

size_t service_init_holders(struct service *s, uint32_t resources)
{
    pthread_mutex_lock(&s->lock);
    size_t n = podcache_init_holders(&s->pods, resources);
    pthread_mutex_unlock(&s->lock);
    return n;
}

/* ---- the kubelet's side ---- */

/* What the watch has brought under a listed pod's name. */
enum acquaintance {
    STRANGER,  /* nothing */
    DOUBTFUL,  /* a pod that was admitted long ago, and yet has a container without ids */
    IDENTIFIED /* the pod, or one that asks for nothing */
};

struct request {
    struct endpoint *endpoint;
    struct service *service;
    struct arena arena;
    struct match_listing listing;
    enum acquaintance *acquaintance; /* of each listed pod */
    struct pod *fetched[SERVICE_GETS_MAX];
    size_t fetched_len;
    int64_t gets_end_ms;
    struct match_subject subject; /* borrowed from the cache: only under the lock */
};

static void request_init(struct request *q, void *arg)
{
    *q = (struct request){.endpoint = arg};
    q->service = q->endpoint->service;
    arena_init(&q->arena, 0);
}

static void request_deinit(struct request *q)
{
    for (size_t i = 0; i < q->fetched_len; i++)
        pod_free(q->fetched[i]);
    arena_deinit(&q->arena);
}

static struct pod *fetched(const struct request *q, const char *key)
{
    for (size_t i = 0; i < q->fetched_len; i++)
        if (str_eq(q->fetched[i]->key, key))
            return q->fetched[i];
    return NULL;
}

/* Can the pod be under admission? One that has run, that has ended or that is ending was admitted before. If its name
 * waits all the same, it is a namesake from before, or the kubelet has lost its books. */
static bool is_new(const struct pod *p)
{
    if (p->phase != POD_PENDING || p->terminating)
        return false;
    for (size_t i = 0; i < p->containers_len; i++)
        if (p->containers[i].has_id)
            return false;
    for (size_t i = 0; i < p->init_containers_len; i++)
        if (p->init_containers[i].has_id)
            return false;
    return true;
}

/* Under the lock. What we asked the API server for is newer than what the watch had brought. */
static void attach_pods(struct request *q)
{
    for (size_t i = 0; i < q->listing.len; i++) {
        struct match_listed *l = &q->listing.pods[i];
        const struct pod *seen = podcache_find(&q->service->pods, l->key);
        l->pod = fetched(q, l->key);
        if (l->pod == NULL && seen != NULL && is_new(seen))
            l->pod = seen;
        if (l->pod != NULL)
            seen = l->pod;
        if (seen != NULL)
            podcache_init_given(&q->service->pods, seen, l);
        q->acquaintance[i] = seen == NULL ? STRANGER
                             : l->pod == NULL && match_asks(l, seen, q->endpoint->resource)
                                 ? DOUBTFUL
                                 : IDENTIFIED;
    }
}

/* Without the lock. Asks for the listed pods that we know only so well and that could be the one. */
static int fetch_pods(struct request *q, enum acquaintance whom, struct error *err)
{
    const struct service_hooks *h = &q->service->hooks;
    if (h->get_pod == NULL)
        return 0;
    if (q->gets_end_ms == 0)
        q->gets_end_ms = clock_mono_ms() + SERVICE_GET_MS;
    for (size_t i = 0; i < q->listing.len && q->fetched_len < SERVICE_GETS_MAX; i++) {
        const struct match_listed *l = &q->listing.pods[i];
        struct pod *p = NULL;
        if (q->acquaintance[i] != whom || !match_may_wait(l, q->endpoint->resource))
            continue;
        int64_t left_ms = q->gets_end_ms - clock_mono_ms();
        if (left_ms <= 0)
            return error_set(err, ERROR_TIMEOUT, "pod %s: the API server did not answer in time",
                             l->key);
        struct error why = ERROR_INIT;
        if (h->get_pod(h->arg, l->ns, l->name, left_ms, &p, &why) == 0) {
            q->fetched[q->fetched_len++] = p;
        } else if (why.code != ERROR_NOT_FOUND) {
            *err = why;
            return error_wrap(err, "pod %s is not known here yet", l->key);
        }
    }
    return 0;
}

static int check_served(const struct request *q, struct error *err)
{
    const struct service *s = q->service;
    if (s->refusal != NULL)
        return error_set(err, ERROR_UNSUPPORTED, "%s", s->refusal);
    if (!(mode_resources(s->mode) & 1u << q->endpoint->resource))
        return error_set(err, ERROR_UNSUPPORTED, "this node is in mode %s, which does not offer %s",
                         gpu_mode_name(s->mode), mode_resource_name(q->endpoint->resource));
    return 0;
}

/* Names the container that waits for count ids. 0: the lock is held and q->subject is valid under it. */
static int identify_locked(struct request *q, size_t count, struct error *err)
{
    struct service *s = q->service;
    if (podresources_list(s->podresources, SERVICE_LIST_MS, &q->arena, &q->listing, err) < 0)
        return -1;
    q->acquaintance = arena_new(&q->arena, enum acquaintance, q->listing.len);
    for (enum acquaintance ask = STRANGER;; ask++) {
        pthread_mutex_lock(&s->lock);
        attach_pods(q);
        error_clear(err);
        /* The mode may have changed while the API server was asked. */
        if (check_served(q, err) == 0 &&
            match_waiting(&q->listing, q->endpoint->resource, count, &q->subject, err) == 0)
            return 0;
        pthread_mutex_unlock(&s->lock);
        if (err->code != ERROR_NOT_FOUND || ask == IDENTIFIED || fetch_pods(q, ask, err) < 0)
            return -1;
    }
}

/* Under the lock: the refusal of an identified pod. */
static void tell_refused(const struct request *q, const struct pod *pod, const char *why)
{
    if (q->service->hooks.refused != NULL)
        q->service->hooks.refused(q->service->hooks.arg, pod, why);
}

static int get_options(void *arg, const void *bytes, size_t n, struct strbuf *reply,
                       struct error *err)
{
    (void)arg, (void)bytes, (void)n, (void)err;
    wire_encode_options(reply);
    return 0;
}

static uint64_t newest_list(void *arg, struct strbuf *message)
{
    struct endpoint *e = arg;
    pthread_mutex_lock(&e->service->lock);
    strbuf_add(message, strbuf_str(&e->list), e->list.len);
    uint64_t generation = e->generation;
    pthread_mutex_unlock(&e->service->lock);
    return generation;
}

static int prefer(struct request *q, const void *bytes, size_t n, struct strbuf *reply,
                  struct error *err)
{
    struct wire_preference *wanted;
    size_t len;
    struct inventory_ids chosen = {0};
    if (wire_decode_preferred(bytes, n, &q->arena, &wanted, &len, err) < 0)
        return -1;
    if (len != 1)
        return error_set(err, ERROR_UNSUPPORTED,
                         "%zu containers in one call; the kubelet sends one", len);
    if (identify_locked(q, wanted[0].count, err) < 0) {
        tell_refused(q, NULL, err->text);
        return -1;
    }
    int result = match_prefer(&q->service->inventory, q->endpoint->resource, &q->subject,
                              &wanted[0].available, &wanted[0].must, wanted[0].count, &q->arena,
                              &chosen, err);
    if (result < 0)
        tell_refused(q, q->subject.pod, err->text);
    pthread_mutex_unlock(&q->service->lock);
    if (result == 0)
        wire_encode_preferred(&chosen, 1, reply);
    return result;
}

static int get_preferred(void *arg, const void *bytes, size_t n, struct strbuf *reply,
                         struct error *err)
{
    struct request q;
    request_init(&q, arg);
    int result = prefer(&q, bytes, n, reply, err);
    request_deinit(&q);
    metrics_inc(&calls_total, result < 0 ? "preferred refused" : "preferred answered");
    return result;
}

static int allocate_one(struct request *q, const void *bytes, size_t n, struct strbuf *reply,
                        struct error *err)
{
    struct inventory_ids *ids;
    size_t len;
    struct match_grant grant;
    struct response response;
    if (wire_decode_allocate(bytes, n, &q->arena, &ids, &len, err) < 0)
        return -1;
    if (len != 1)
        return error_set(err, ERROR_UNSUPPORTED,
                         "%zu containers in one call; the kubelet sends one", len);
    if (identify_locked(q, ids[0].len, err) < 0) {
        tell_refused(q, NULL, err->text);
        return -1;
    }
    const struct gpu_inventory *inv = &q->service->inventory;
    int result =
        match_grant(inv, q->endpoint->resource, &q->subject, &ids[0], &q->arena, &grant, err);
    if (result < 0) {
        tell_refused(q, q->subject.pod, err->text);
    } else {
        podcache_note_given(&q->service->pods, &q->subject, q->endpoint->resource);
        response_build(inv, q->service->mode, &grant, &q->arena, &response);
        wire_encode_allocate(&response, 1, reply);
        log_info("container allocated", kv("pod", q->subject.pod->key),
                 kv("container", match_container(&q->subject)->name),
                 kv("resource", mode_resource_name(q->endpoint->resource)), kv("ids", ids[0].len),
                 kv("cards", response.envs[0].value));
    }
    pthread_mutex_unlock(&q->service->lock);
    return result;
}

static int allocate(void *arg, const void *bytes, size_t n, struct strbuf *reply, struct error *err)
{
    int64_t began_us = clock_mono_us();
    struct request q;
    request_init(&q, arg);
    int result = allocate_one(&q, bytes, n, reply, err);
    request_deinit(&q);
    metrics_inc(&calls_total, result < 0 ? "allocate refused" : "allocate answered");
    metrics_observe_us(&allocate_seconds, NULL, clock_mono_us() - began_us);
    return result;
}

/* Allocate has decided already; this is the last look before the container runs. What cannot be looked at (an init
 * container is in no list; a pod that we do not know) is no reason to stop it. */
static int pre_start_one(struct request *q, const void *bytes, size_t n, struct error *err)
{
    struct service *s = q->service;
    struct inventory_ids ids;
    const struct match_listed *holder = NULL;
    const char *container = NULL;
    struct match_subject subject;
    struct match_grant grant;
    struct error why = ERROR_INIT;
    if (wire_decode_pre_start(bytes, n, &q->arena, &ids, err) < 0)
        return -1;
    if (podresources_list(s->podresources, SERVICE_LIST_MS, &q->arena, &q->listing, &why) < 0 ||
        match_holder(&q->listing, q->endpoint->resource, &ids, &holder, &container, &why) < 0) {
        log_warn("container starts unverified",
                 kv("resource", mode_resource_name(q->endpoint->resource)), kv("error", why.text));
        return 0;
    }
    int result = 0;
    pthread_mutex_lock(&s->lock);
    const struct pod *p = podcache_find(&s->pods, holder->key);
    if (p != NULL && (p->terminating || pod_is_finished(p)))
        p = NULL; /* perhaps a namesake of the one that starts */
    if (p != NULL && match_named(p, container, &subject))
        result = match_grant(&s->inventory, q->endpoint->resource, &subject, &ids, &q->arena,
                             &grant, err);
    if (result < 0)
        tell_refused(q, p, err->text);
    else if (s->hooks.starting != NULL)
        s->hooks.starting(s->hooks.arg, holder->ns, holder->name, p);
    pthread_mutex_unlock(&s->lock);
    return result;
}

static int pre_start(void *arg, const void *bytes, size_t n, struct strbuf *reply,
                     struct error *err)
{
    (void)reply; /* PreStartContainerResponse is empty: no bytes */
    struct request q;
    request_init(&q, arg);
    int result = pre_start_one(&q, bytes, n, err);
    request_deinit(&q);
    metrics_inc(&calls_total, result < 0 ? "prestart refused" : "prestart answered");
    return result;
}

const struct rpc_method service_methods[] = {
    {.path = WIRE_OPTIONS, .unary = get_options},
    {.path = WIRE_LIST_AND_WATCH, .newest = newest_list},
    {.path = WIRE_PREFERRED, .unary = get_preferred},
    {.path = WIRE_ALLOCATE, .unary = allocate},
    {.path = WIRE_PRE_START, .unary = pre_start},
};
const size_t service_methods_len = sizeof service_methods / sizeof service_methods[0];

void *service_endpoint(struct service *s, enum mode_resource r)
{
    return &s->endpoints[r];
}
