// SPDX-License-Identifier: Apache-2.0
/*
 * service - the methods of the device plugin:
 *
 *   GetPreferredAllocation   identify the waiting container (pod resources) → its grant → ids on
 *                            the granted cards
 *   Allocate                 the same, then check the ids against the grant → environment
 *   PreStartContainer        identify the holder of the ids → its answer was not another's → its
 *                            limits → correct its grant → "assigned"
 *
 * service_identify finds the container; service_reconcile compares grants with the kubelet's
 * allocations. A refusal rejects the pod for good (the kubelet's rule), so its text addresses the
 * pod's owner. Failures are errors, never an environment that means "failed".
 */
#include "device-plugin/kubelet/service_internal.h"

#include <stdlib.h>

#include "device-plugin/grant/match.h"
#include "device-plugin/kubelet/podresources.h"
#include "device-plugin/grant/response.h"
#include "device-plugin/kubelet/wire.h"
#include "lib/base/arena.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/metrics.h"
#include "lib/base/str.h"
#include "lib/model/names.h"

static struct metric calls_total = {.kind = METRIC_COUNTER,
                                    .name = "cosched_device_plugin_calls_total",
                                    .help = "Calls of the kubelet, by method and result.",
                                    .label = "call"};
static struct metric allocate_seconds = {.kind = METRIC_HISTOGRAM,
                                         .name = "cosched_device_plugin_allocate_seconds",
                                         .help = "Time to answer Allocate."};

void service_touched(struct service *s)
{
    s->version++;
    if (s->hooks.changed != NULL)
        s->hooks.changed(s->hooks.arg);
}

void service_owe(struct service *s)
{
    s->owed = true;
    service_touched(s);
}

const struct grant *service_promised(const struct service *s, const struct podcache_pod *p)
{
    const struct grant *here = given_grant(&s->given, p->pod->uid);
    struct error why = ERROR_INIT;
    if (here != NULL)
        return here;
    bool adds_up =
        !grant_is_empty(&p->grant) && grant_check(&p->grant, p->pod, &s->inventory, &why) == 0;
    return adds_up ? &p->grant : NULL;
}

/* ---- the pods: called by the cache, on the loop ---- */

/* Compares a running pod whose grant is not "assigned" (its start was not announced to us, could
 * not be verified, or the write was lost), and one whose annotations do not say its grant kept here
 * (the write was lost, or an older one came through after it). */
static void on_put(void *arg, const struct podcache_pod *p)
{
    struct service *s = arg;
    pthread_mutex_lock(&s->pods->lock);
    const struct grant *here = given_grant(&s->given, p->pod->uid);
    s->owed = s->owed ||
              (p->pod->phase == POD_RUNNING &&
               str_eq(labels_get(&p->pod->annotations, NAME_ANN_ASSIGNED), "false")) ||
              (here != NULL &&
               !(card_usage_covers(&p->grant, here) && card_usage_covers(here, &p->grant)));
    pthread_mutex_unlock(&s->pods->lock);
}

static void on_gone(void *arg, const struct podcache_pod *p)
{
    struct service *s = arg;
    pthread_mutex_lock(&s->pods->lock);
    given_forget(&s->given, p->pod->uid);
    pthread_mutex_unlock(&s->pods->lock);
}

static bool is_there(void *arg, const char *uid)
{
    return podcache_find_uid(arg, uid) != NULL;
}

static void on_told(void *arg, bool all)
{
    struct service *s = arg;
    pthread_mutex_lock(&s->pods->lock);
    if (all) {
        given_sweep(&s->given, is_there, s->pods);
        s->owed = true; /* grants may have diverged before the list */
    }
    service_touched(s);
    pthread_mutex_unlock(&s->pods->lock);
}

/* ---- called on the loop ---- */

int service_new(struct service **out, const char *pod_resources_socket,
                const struct service_hooks *hooks, struct error *err)
{
    struct podresources *p;
    if (podresources_new(&p, pod_resources_socket, err) < 0)
        return -1;
    struct service *s = mem_new(struct service, 1);
    s->hooks = *hooks;
    s->podresources = p;
    s->checkpoint = mem_strdup(hooks->checkpoint);
    s->pods = hooks->pods;
    arena_init(&s->inventory_arena, 0);
    given_init(&s->given);
    for (int r = 0; r < MODE_RESOURCES; r++) {
        s->endpoints[r] = (struct endpoint){.service = s, .resource = (enum mode_resource)r};
        strbuf_init(&s->endpoints[r].list);
        arena_init(&s->endpoints[r].preferred_arena, 0);
    }
    metrics_register(&calls_total);
    metrics_register(&allocate_seconds);
    podcache_subscribe(s->pods, &(struct podcache_subscriber){on_put, on_gone, on_told, s});
    *out = s;
    return 0;
}

void service_free(struct service *s)
{
    if (s == NULL)
        return;
    given_deinit(&s->given);
    for (int r = 0; r < MODE_RESOURCES; r++) {
        strbuf_deinit(&s->endpoints[r].list);
        arena_deinit(&s->endpoints[r].preferred_arena);
    }
    arena_deinit(&s->inventory_arena);
    podresources_free(s->podresources);
    strbuf_deinit(&s->unheld);
    free(s->refusal);
    free(s->checkpoint);
    free(s);
}

void service_set_inventory(struct service *s, const struct gpu_inventory *inv)
{
    struct arena a;
    arena_init(&a, 0);
    struct gpu_inventory copy;
    inventory_merge(NULL, inv, &a, &copy);
    pthread_mutex_lock(&s->pods->lock);
    struct arena old = s->inventory_arena;
    s->inventory_arena = a;
    s->inventory = copy;
    pthread_mutex_unlock(&s->pods->lock);
    arena_deinit(&old);
}

void service_set_mode(struct service *s, enum gpu_mode mode, const char *refusal)
{
    char *fresh = mem_strdup(refusal);
    pthread_mutex_lock(&s->pods->lock);
    char *old = s->refusal;
    s->mode = mode;
    s->refusal = fresh;
    pthread_mutex_unlock(&s->pods->lock);
    free(old);
}

bool service_set_devices(struct service *s, enum mode_resource r, const struct inventory_devices *d)
{
    struct endpoint *e = &s->endpoints[r];
    struct strbuf fresh;
    strbuf_init(&fresh);
    wire_encode_devices(d, &fresh);
    pthread_mutex_lock(&s->pods->lock);
    bool changed = e->generation == 0 || fresh.len != e->list.len ||
                   (fresh.len > 0 && memcmp(fresh.ptr, e->list.ptr, fresh.len) != 0);
    if (changed) {
        struct strbuf old = e->list;
        e->list = fresh;
        fresh = old;
        e->generation++;
    }
    pthread_mutex_unlock(&s->pods->lock);
    strbuf_deinit(&fresh);
    return changed;
}

void service_set_answer(struct service *s, const struct service_answer *answer)
{
    pthread_mutex_lock(&s->pods->lock);
    s->answer = *answer;
    pthread_mutex_unlock(&s->pods->lock);
}

void service_set_placement(struct service *s, enum gpu_placement placement)
{
    pthread_mutex_lock(&s->pods->lock);
    s->placement = placement;
    pthread_mutex_unlock(&s->pods->lock);
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

size_t service_init_holders(const struct service *s, uint32_t resources)
{
    const struct podcache_pod *p;
    size_t n = 0;
    for (size_t i = 0; (p = podcache_next(s->pods, &i)) != NULL;)
        n += !pod_is_finished(p->pod) && match_init_asks(p->pod, resources);
    return n;
}

/* ---- called by the kubelet ---- */

/* Under the lock. pod NULL: not identified. */
static void tell_refused(const struct request *q, const struct pod *pod, const char *why)
{
    if (pod != NULL)
        given_note_refused(&q->service->given, pod);
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
    pthread_mutex_lock(&e->service->pods->lock);
    strbuf_add(message, strbuf_str(&e->list), e->list.len);
    uint64_t generation = e->generation;
    pthread_mutex_unlock(&e->service->pods->lock);
    return generation;
}

static int prefer_known(struct request *q, const struct wire_preference *w,
                        struct inventory_ids *chosen, struct error *err)
{
    if (service_settle_grant(q, err) < 0)
        return -1;
    return match_prefer(&q->service->inventory, q->endpoint->resource, &q->subject, &w->available,
                        &w->must, w->count, &q->arena, chosen, err);
}

static int prefer_unknown_pod(struct request *q, const struct wire_preference *w,
                              struct inventory_ids *chosen, struct error *err)
{
    bool cards[GPU_CARDS_MAX] = {false};
    if (service_unknown_pod_cards(q, w->count, cards, err) < 0)
        return -1;
    return match_prefer_on(&q->service->inventory, q->endpoint->resource, cards, &w->available,
                           &w->must, w->count, &q->arena, chosen, err);
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
    if (service_identify_lock(q, wanted[0].count, err) < 0) {
        tell_refused(q, NULL, err->text);
        return -1;
    }
    int result = q->unknown_pod ? prefer_unknown_pod(q, &wanted[0], &chosen, err)
                                : prefer_known(q, &wanted[0], &chosen, err);
    if (result < 0)
        tell_refused(q, q->subject.pod, err->text);
    else
        service_note_preferred(q, &chosen);
    pthread_mutex_unlock(&q->service->pods->lock);
    if (result == 0)
        wire_encode_preferred(&chosen, 1, reply);
    return result;
}

static int get_preferred(void *arg, const void *bytes, size_t n, struct strbuf *reply,
                         struct error *err)
{
    struct request q;
    service_request_init(&q, arg);
    int result = prefer(&q, bytes, n, reply, err);
    service_request_deinit(&q);
    metrics_inc(&calls_total, result < 0 ? "preferred refused" : "preferred answered");
    return result;
}

static int grant_known(struct request *q, const struct inventory_ids *ids,
                       struct match_grant *grant, struct error *err)
{
    struct service *s = q->service;
    enum mode_resource r = q->endpoint->resource;
    if (service_settle_grant(q, err) < 0 ||
        match_grant(&s->inventory, r, &q->subject, ids, &q->arena, grant, err) < 0)
        return -1;
    given_note(&s->given, &q->subject, r);
    given_answered(&s->given, r, match_digest(ids, &q->arena), &q->subject,
                   match_describe(grant, &q->arena));
    if (service_announce(s, q->subject.pod, &q->arena) != ANNOUNCED)
        service_owe(s);
    return 0;
}

static int grant_unknown_pod(struct request *q, const struct inventory_ids *ids,
                             struct match_grant *grant, struct error *err)
{
    struct service *s = q->service;
    enum mode_resource r = q->endpoint->resource;
    bool cards[GPU_CARDS_MAX] = {false};
    if (match_grant_ids(&s->inventory, r, ids, &q->arena, grant, err) < 0 ||
        service_unknown_pod_cards(q, ids->len, cards, err) < 0)
        return -1;
    for (size_t i = 0; i < ids->len; i++) {
        int32_t at = inventory_find(&s->inventory, r, ids->items[i]);
        if (!cards[at])
            return error_set(
                err, ERROR_CONFLICT,
                "a pod that is not known here: the kubelet took %s on card %d, where it does not "
                "fit beside what others were promised",
                mode_resource_name(r), s->inventory.cards[at].index);
    }
    given_answered(&s->given, r, match_digest(ids, &q->arena), NULL, NULL);
    service_owe(s);
    return 0;
}

static int allocate_one(struct request *q, const void *bytes, size_t n, struct strbuf *reply,
                        struct error *err)
{
    struct inventory_ids *ids;
    size_t len;
    struct match_grant grant;
    struct response response;
    struct service_answer answer = {0};
    if (wire_decode_allocate(bytes, n, &q->arena, &ids, &len, err) < 0)
        return -1;
    if (len != 1)
        return error_set(err, ERROR_UNSUPPORTED,
                         "%zu containers in one call; the kubelet sends one", len);
    if (!service_identify_preferred(q, &ids[0]) && service_identify_lock(q, ids[0].len, err) < 0) {
        tell_refused(q, NULL, err->text);
        return -1;
    }
    const struct gpu_inventory *inv = &q->service->inventory;
    int result = q->unknown_pod ? grant_unknown_pod(q, &ids[0], &grant, err)
                                : grant_known(q, &ids[0], &grant, err);
    if (result < 0) {
        tell_refused(q, q->subject.pod, err->text);
    } else {
        answer = q->service->answer;
        response_build(inv, q->service->mode, answer.list, &grant, &q->arena, &response);
        if (answer.engine != NULL && !grant.whole)
            answer.engine->dress(answer.isolation, inv, &grant, &q->arena, &response);
        wire_encode_allocate(&response, 1, reply);
        log_info("container allocated",
                 kv("pod", q->unknown_pod ? "(not known yet)" : q->subject.pod->key),
                 kv("container", q->unknown_pod ? "" : match_container(&q->subject)->name),
                 kv("resource", mode_resource_name(q->endpoint->resource)), kv("ids", ids[0].len),
                 kv("cards", response.envs[0].value));
    }
    pthread_mutex_unlock(&q->service->pods->lock);
    if (result == 0 && response.share != NULL && answer.engine->prepare != NULL)
        result = answer.engine->prepare(answer.isolation, response.share, err);
    return result;
}

static int allocate(void *arg, const void *bytes, size_t n, struct strbuf *reply, struct error *err)
{
    int64_t began_us = clock_mono_us();
    struct request q;
    service_request_init(&q, arg);
    int result = allocate_one(&q, bytes, n, reply, err);
    service_request_deinit(&q);
    metrics_inc(&calls_total, result < 0 ? "allocate refused" : "allocate answered");
    metrics_observe_us(&allocate_seconds, NULL, clock_mono_us() - began_us);
    return result;
}

static int pre_start_one(struct request *q, const void *bytes, size_t n, struct error *err)
{
    struct inventory_ids ids;
    if (wire_decode_pre_start(bytes, n, &q->arena, &ids, err) < 0)
        return -1;
    return service_verify(q, &ids, err);
}

static int pre_start(void *arg, const void *bytes, size_t n, struct strbuf *reply,
                     struct error *err)
{
    (void)reply; /* PreStartContainerResponse is empty */
    struct request q;
    service_request_init(&q, arg);
    int result = pre_start_one(&q, bytes, n, err);
    service_request_deinit(&q);
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
