// SPDX-License-Identifier: Apache-2.0
/*
 * podcache - the sequence of a change:
 *
 *   put, remove, reset ─► maps change, under the lock ─► subscribers: gone, put, told
 *                      ─► old pods are freed
 */
#include "device-plugin/node/podcache.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/base/vec.h"
#include "lib/kube/decode.h"

/* Pods that left the maps and are not freed yet. */
struct leaving VEC(struct podcache_pod *);

void podcache_init(struct podcache *c)
{
    *c = (struct podcache){0};
    pthread_mutex_init(&c->lock, NULL);
    map_init(&c->by_key);
    map_init(&c->by_uid);
}

void podcache_deinit(struct podcache *c)
{
    const char *key;
    void *p;
    for (size_t i = 0; map_next(&c->by_key, &i, &key, &p);) {
        map_remove(&c->by_key, key);
        pod_free(((struct podcache_pod *)p)->pod);
    }
    map_deinit(&c->by_key);
    map_deinit(&c->by_uid);
    pthread_mutex_destroy(&c->lock);
}

void podcache_subscribe(struct podcache *c, const struct podcache_subscriber *s)
{
    if (c->subscribers_len == PODCACHE_SUBSCRIBERS_MAX)
        abort();
    c->subscribers[c->subscribers_len++] = *s;
}

const struct podcache_pod *podcache_find(const struct podcache *c, const char *key)
{
    return map_get(&c->by_key, key);
}

const struct podcache_pod *podcache_find_uid(const struct podcache *c, const char *uid)
{
    return map_get(&c->by_uid, uid);
}

const struct podcache_pod *podcache_next(const struct podcache *c, size_t *i)
{
    const char *key;
    void *p;
    return map_next(&c->by_key, i, &key, &p) ? p : NULL;
}

/* ---- the maps: under the lock ---- */

static struct podcache_pod *wrap(struct pod *take)
{
    struct podcache_pod *p = arena_new(&take->arena, struct podcache_pod, 1);
    struct error ignored = ERROR_INIT;
    p->pod = take;
    if (grant_decode(take, &take->arena, &p->grant, &ignored) < 0)
        p->grant = (struct grant){0}; /* the scheduler reports it */
    return p;
}

static void leave(struct podcache *c, struct podcache_pod *p, struct leaving *out)
{
    if (map_get(&c->by_uid, p->pod->uid) == p)
        map_remove(&c->by_uid, p->pod->uid);
    vec_push(out, p);
}

/* Returns the new entry; NULL: no change, and take is freed. */
static struct podcache_pod *enter(struct podcache *c, struct pod *take, struct leaving *out)
{
    struct podcache_pod *old = map_get(&c->by_key, take->key);
    bool same = old != NULL && str_eq(old->pod->uid, take->uid);
    if (take->unreadable != NULL) {
        if (same && pod_is_finished(take)) {
            (void)map_remove(&c->by_key, take->key);
            leave(c, old, out);
        } else if (same) {
            old->list = c->lists;
        }
        pod_free(take);
        return NULL;
    }
    struct podcache_pod *p = wrap(take);
    p->arrival = same ? old->arrival : ++c->arrivals;
    p->list = c->lists;
    (void)map_put(&c->by_key, take->key,
                  p); /* replaces the keys too: the old ones are freed with old */
    (void)map_put(&c->by_uid, take->uid, p);
    if (old != NULL)
        leave(c, old, out);
    return p;
}

/* ---- subscribers ---- */

static void tell_put(const struct podcache *c, const struct podcache_pod *p)
{
    for (size_t i = 0; i < c->subscribers_len; i++)
        if (c->subscribers[i].put != NULL)
            c->subscribers[i].put(c->subscribers[i].arg, p);
}

/* Pods that are gone, not replaced by a newer version. */
static void tell_gone(const struct podcache *c, const struct leaving *out)
{
    for (size_t k = 0; k < out->len; k++) {
        const struct podcache_pod *now = podcache_find(c, out->items[k]->pod->key);
        if (now != NULL && str_eq(now->pod->uid, out->items[k]->pod->uid))
            continue;
        for (size_t i = 0; i < c->subscribers_len; i++)
            if (c->subscribers[i].gone != NULL)
                c->subscribers[i].gone(c->subscribers[i].arg, out->items[k]);
    }
}

static void tell_end(const struct podcache *c, bool all, struct leaving *out)
{
    for (size_t i = 0; i < c->subscribers_len; i++)
        if (c->subscribers[i].told != NULL)
            c->subscribers[i].told(c->subscribers[i].arg, all);
    for (size_t k = 0; k < out->len; k++)
        pod_free(out->items[k]->pod);
    vec_deinit(out);
}

static void put(struct podcache *c, struct pod *take, bool remembered)
{
    struct leaving out = {0};
    pthread_mutex_lock(&c->lock);
    struct podcache_pod *p = enter(c, take, &out);
    if (p != NULL)
        p->remembered = remembered;
    pthread_mutex_unlock(&c->lock);
    if (p == NULL && out.len == 0)
        return;
    tell_gone(c, &out);
    if (p != NULL)
        tell_put(c, p);
    tell_end(c, false, &out);
}

void podcache_put(struct podcache *c, struct pod *take)
{
    put(c, take, false);
}

void podcache_restore(struct podcache *c, struct pod *take)
{
    if (podcache_find(c, take->key) != NULL)
        pod_free(take);
    else
        put(c, take, true);
}

void podcache_remove(struct podcache *c, const char *key)
{
    struct leaving out = {0};
    pthread_mutex_lock(&c->lock);
    struct podcache_pod *old = map_remove(&c->by_key, key);
    if (old != NULL)
        leave(c, old, &out);
    pthread_mutex_unlock(&c->lock);
    tell_gone(c, &out);
    tell_end(c, false, &out);
}

static int by_creation(const void *a, const void *b)
{
    const struct pod *x = *(struct pod *const *)a, *y = *(struct pod *const *)b;
    return x->created_ns != y->created_ns ? (x->created_ns < y->created_ns ? -1 : 1)
                                          : strcmp(x->key, y->key);
}

void podcache_reset(struct podcache *c, struct pod **pods, size_t len)
{
    struct leaving out = {0};
    const char *key;
    void *old;
    if (len > 0) /* the kubelet's order for pods it finds together */
        qsort(pods, len, sizeof(struct pod *), by_creation);
    pthread_mutex_lock(&c->lock);
    c->lists++;
    for (size_t i = 0; i < len; i++)
        (void)enter(c, pods[i], &out);
    for (size_t i = 0; map_next(&c->by_key, &i, &key, &old);)
        if (((struct podcache_pod *)old)->list != c->lists) {
            map_remove(&c->by_key, key);
            leave(c, old, &out);
        }
    pthread_mutex_unlock(&c->lock);
    tell_gone(c, &out);
    const struct podcache_pod *p;
    for (size_t i = 0; (p = podcache_next(c, &i)) != NULL;)
        tell_put(c, p);
    tell_end(c, true, &out);
}

/* ---- the watch ---- */

/* A finished pod stays until it is collected, and anyone can have thousands of them: pods that name
 * a node fail there one after the other. The kubelet may still list it, so it is not left out, but
 * nobody reads its labels and annotations. */
static struct pod *reduced(struct pod *p)
{
    p->labels = p->annotations = (struct labels){0};
    struct pod *out = pod_pack(p);
    pod_free(p);
    return out;
}

static int decode(json *j, void **out, struct error *err)
{
    struct pod *p;
    if (decode_pod(j, &p, err) < 0)
        return -1;
    if (pod_is_finished(p))
        p = reduced(p);
    decode_container_ids(j, p);
    *out = p;
    return 0;
}

static int remains(json *j, const struct error *why, void **out, struct error *err)
{
    struct pod *p;
    if (decode_pod_remains(j, why, &p, err) < 0)
        return -1;
    *out = p;
    return 0;
}

static void free_pod(void *p)
{
    pod_free(p);
}

const struct reflector_type podcache_type = {
    .decode = decode, .free = free_pod, .remains = remains};

void podcache_message(void *cache, void *message)
{
    struct podcache *c = cache;
    struct reflector_message *l = message;
    struct pod **pods = (struct pod **)l->objects;
    if (l->event == REFLECTOR_DELETE) {
        podcache_remove(c, pods[0]->key);
    } else {
        if (l->event == REFLECTOR_RESET)
            podcache_reset(c, pods, l->len);
        else
            podcache_put(c, pods[0]);
        l->len = 0; /* owned by the cache now */
    }
    reflector_message_free(l);
}
