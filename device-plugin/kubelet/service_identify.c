// SPDX-License-Identifier: Apache-2.0
/*
 * service_identify - finds the pod, container and grant behind a call that carries only ids. It
 * collects the candidates; grant/match chooses among them. The pod is
 *
 *   known, with a grant          it gets the granted cards
 *   known, without a grant       (another scheduler, spec.nodeName): it is granted cards here, by
 *                                the placement policy, and the annotation is written later
 *   unknown                      (API server down, or a static pod, which the API server learns of
 *                                later): it gets a card that has capacity beside all known grants,
 *                                or is refused; its annotation is corrected once the pod is known
 *
 * The webhook and the scheduler may not have seen the pod, so its request is judged here: what the
 * contract forbids is refused, with or without a grant. Compute without memory, for one, would have
 * a card and nothing that limits it. Of an unknown pod only the ids tell; service_verify judges it
 * again when it holds all of them.
 *
 * The kubelet does nothing between a container's GetPreferredAllocation and its Allocate, and gives
 * the preferred ids to no other container. So an Allocate with exactly those ids right afterwards
 * is for the same container, and the rate-limited pod resources list is needed once, not twice.
 *
 * The candidates are the cached pods. The kubelet may be ahead of our watch, so if none of them
 * waits for the resource, the API server is asked: first for listed pods that are not cached, then
 * for those whose cached pod may be an older one of the same name.
 */
#include "device-plugin/kubelet/service_internal.h"

#include "lib/base/clock.h"
#include "lib/model/gpu_request.h"
#include "lib/model/names.h"

void service_request_init(struct request *q, void *endpoint)
{
    *q = (struct request){.endpoint = endpoint};
    q->service = q->endpoint->service;
    arena_init(&q->arena, 0);
}

void service_request_deinit(struct request *q)
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

/* Can the pod be under admission? A pod that has run, ended or is terminating was admitted earlier.
 * If its name still waits, it is an older pod of that name, or the kubelet lost its checkpoint. */
static bool is_new(const struct pod *p)
{
    if (p->phase != POD_PENDING || p->terminating)
        return false;
    for (size_t i = 0; i < pod_container_count(p); i++)
        if (pod_container(p, i)->has_id)
            return false;
    return true;
}

/* Under the lock. A fetched pod is newer than the cached one. */
static void attach_pods(struct request *q)
{
    for (size_t i = 0; i < q->listing.len; i++) {
        struct match_listed *l = &q->listing.pods[i];
        const struct podcache_pod *cached = podcache_find(q->service->pods, l->key);
        const struct pod *seen = cached != NULL ? cached->pod : NULL;
        l->pod = fetched(q, l->key);
        if (l->pod == NULL && seen != NULL && is_new(seen))
            l->pod = seen;
        if (l->pod != NULL)
            seen = l->pod;
        if (seen != NULL)
            given_fill(&q->service->given, seen->uid, l);
        /* A fetched namesake is not in the cache yet. */
        bool arrived = cached != NULL && seen != NULL && str_eq(cached->pod->uid, seen->uid);
        l->arrival = arrived ? cached->arrival : 0;
        q->match_confidence[i] = seen == NULL ? UNKNOWN_POD
                                 : l->pod == NULL && match_asks(l, seen, q->endpoint->resource)
                                     ? DOUBTFUL
                                     : IDENTIFIED;
    }
}

/* Without the lock. Fetches the listed pods of this confidence that may be the subject. */
static int fetch_pods(struct request *q, enum match_confidence whom, struct error *err)
{
    const struct service_hooks *h = &q->service->hooks;
    if (h->get_pod == NULL)
        return 0;
    if (q->gets_end_ms == 0)
        q->gets_end_ms = clock_mono_ms() + SERVICE_GET_MS;
    for (size_t i = 0; i < q->listing.len && q->fetched_len < SERVICE_GETS_MAX; i++) {
        const struct match_listed *l = &q->listing.pods[i];
        struct pod *p = NULL;
        if (q->match_confidence[i] != whom || !match_may_wait(l, q->endpoint->resource))
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

static bool has_unknown_pod(const struct request *q)
{
    for (size_t i = 0; i < q->listing.len; i++)
        if (q->match_confidence[i] == UNKNOWN_POD &&
            match_may_wait(&q->listing.pods[i], q->endpoint->resource))
            return true;
    return false;
}

int service_identify_lock(struct request *q, size_t count, struct error *err)
{
    struct service *s = q->service;
    struct error away = ERROR_INIT;
    if (podresources_list(s->podresources, SERVICE_LIST_MS, &q->arena, &q->listing, err) < 0)
        return -1;
    q->match_confidence = arena_new(&q->arena, enum match_confidence, q->listing.len);
    for (enum match_confidence ask = UNKNOWN_POD;; ask++) {
        bool last = ask == IDENTIFIED || away.code != ERROR_NONE;
        pthread_mutex_lock(&s->pods->lock);
        attach_pods(q);
        error_clear(err);
        /* The mode may have changed during the call to the API server. */
        if (check_served(q, err) == 0 &&
            match_waiting(&q->listing, q->endpoint->resource, count, &q->subject, err) == 0)
            return 0;
        q->unknown_pod = last && err->code == ERROR_NOT_FOUND && has_unknown_pod(q);
        if (q->unknown_pod)
            return 0;
        pthread_mutex_unlock(&s->pods->lock);
        if (err->code == ERROR_NOT_FOUND && away.code != ERROR_NONE)
            *err = away;
        if (err->code != ERROR_NOT_FOUND || last)
            return -1;
        (void)fetch_pods(q, ask, &away);
    }
}

void service_note_preferred(struct request *q, const struct inventory_ids *ids)
{
    struct endpoint *e = q->endpoint;
    arena_reset(&e->preferred_arena);
    e->preferred_uid = NULL;
    if (q->unknown_pod)
        return;
    e->preferred =
        (struct inventory_ids){arena_new(&e->preferred_arena, const char *, ids->len), 0};
    for (size_t i = 0; i < ids->len; i++)
        e->preferred.items[e->preferred.len++] = arena_strdup(&e->preferred_arena, ids->items[i]);
    e->preferred_uid = arena_strdup(&e->preferred_arena, q->subject.pod->uid);
    e->preferred_container = q->subject.container;
    e->preferred_ms = clock_mono_ms();
}

bool service_identify_preferred(struct request *q, const struct inventory_ids *ids)
{
    struct service *s = q->service;
    struct endpoint *e = q->endpoint;
    struct error why = ERROR_INIT;
    const struct podcache_pod *p = NULL;
    pthread_mutex_lock(&s->pods->lock);
    if (e->preferred_uid != NULL && clock_mono_ms() - e->preferred_ms < SERVICE_PREFERRED_MS &&
        match_same_ids(&e->preferred, ids) && check_served(q, &why) == 0)
        p = podcache_find_uid(s->pods, e->preferred_uid);
    e->preferred_uid = NULL; /* valid for one call only */
    /* A pod without a grant needs the full identification. */
    if (p != NULL && is_new(p->pod) &&
        (mode_resource_is_whole(e->resource) || service_promised(s, p) != NULL)) {
        q->subject = (struct match_subject){.pod = p->pod, .container = e->preferred_container};
        return true;
    }
    pthread_mutex_unlock(&s->pods->lock);
    return false;
}

/* ---- a known pod without a grant ---- */

static const struct match_listed *listed(const struct request *q, const char *key)
{
    for (size_t i = 0; i < q->listing.len; i++)
        if (str_eq(q->listing.pods[i].key, key))
            return &q->listing.pods[i];
    return NULL;
}

/* Counts the grants of all pods but this one (may be NULL). */
static void count_capacity(struct request *q, const struct pod *but, struct card_usage *out)
{
    const struct service *s = q->service;
    const struct podcache_pod *p;
    card_usage_init(out, &s->inventory, s->placement);
    for (size_t i = 0; (p = podcache_next(s->pods, &i)) != NULL;)
        if (!pod_is_finished(p->pod) && (but == NULL || !str_eq(p->pod->uid, but->uid)))
            card_usage_add(out, service_promised(s, p), listed(q, p->pod->key));
    for (size_t i = 0; i < q->listing.len; i++) {
        const char *key = q->listing.pods[i].key;
        if (podcache_find(s->pods, key) == NULL && (but == NULL || !str_eq(key, but->key)))
            card_usage_add(out, NULL, &q->listing.pods[i]);
    }
}

int service_settle_grant(struct request *q, struct error *err)
{
    struct service *s = q->service;
    const struct pod *p = q->subject.pod;
    struct grant said, made;
    struct gpu_request asked;
    struct card_usage usage;
    if (mode_resource_is_whole(q->endpoint->resource))
        return 0;
    gpu_request_read(p, &q->arena, &asked, NULL);
    if (asked.illegal != NULL)
        return error_set(err, ERROR_UNSUPPORTED, "pod %s: %s", p->key, asked.illegal);
    q->subject.grant = given_grant(&s->given, p->uid);
    if (q->subject.grant != NULL)
        return 0;
    if (grant_decode(p, &q->arena, &said, err) < 0)
        return error_wrap(err, "pod %s: grant", p->key);
    if (!grant_is_empty(&said))
        return 0;
    count_capacity(q, p, &usage);
    if (card_usage_place(&usage, p, &q->arena, &made, err) < 0)
        return -1;
    made.assume_time_ns = clock_wall_ns();
    q->subject.grant = given_keep_grant(&s->given, p->uid, &made);
    service_touched(s);
    return 0;
}

/* ---- an unknown pod ---- */

/* A container's two resources must be on one card. Finds the cards where containers of unknown pods
 * hold the other resource but not yet this one. */
static size_t partners(const struct request *q, bool cards[GPU_CARDS_MAX])
{
    enum mode_resource r = q->endpoint->resource,
                       other = r == MODE_GPU_MEM ? MODE_GPU_CORE : MODE_GPU_MEM;
    size_t n = 0;
    for (size_t i = 0; i < q->listing.len; i++) {
        const struct match_listed *l = &q->listing.pods[i];
        for (size_t k = 0; q->match_confidence[i] == UNKNOWN_POD && k < l->containers_len; k++) {
            const struct inventory_ids *has = &l->containers[k].held[other];
            if (has->len == 0 || l->containers[k].held[r].len > 0)
                continue;
            int32_t at = inventory_find(&q->service->inventory, other, has->items[0]);
            if (at >= 0 && !cards[at]) {
                cards[at] = true;
                n++;
            }
        }
    }
    return n;
}

int service_unknown_pod_cards(struct request *q, size_t count, bool cards[GPU_CARDS_MAX],
                              struct error *err)
{
    enum mode_resource r = q->endpoint->resource;
    const struct gpu_inventory *inv = &q->service->inventory;
    struct card_usage usage;
    size_t at = 0;
    if (r == MODE_GPU_CORE && count % GPU_REQUEST_PERCENT_STEP != 0)
        return error_set(err, ERROR_UNSUPPORTED,
                         "a pod that is not known here: %s: %zu is not a multiple of %d",
                         NAME_RES_GPU_CORE, count, GPU_REQUEST_PERCENT_STEP);
    count_capacity(q, NULL, &usage);
    if (mode_resource_is_whole(r)) {
        for (size_t i = 0; i < inv->cards_len; i++)
            cards[i] = !usage.used[i].whole;
        return 0;
    }
    size_t n = q->service->mode == GPU_MODE_CORE_MEM ? partners(q, cards) : 0;
    if (n > 1)
        return error_set(
            err, ERROR_CONFLICT,
            "%zu ids of %s are asked for by a pod that is not known here, and its card is "
            "unknown",
            count, mode_resource_name(r));
    if (n == 1)
        return 0; /* the kubelet's ids are the limit there */
    if (card_usage_pick(&usage, r, count, &at, err) < 0)
        return -1;
    cards[at] = true;
    return 0;
}
