// SPDX-License-Identifier: Apache-2.0
/* Reflector threads write and server threads read under one read-write lock. Readers hold it while
 * the rules run (microseconds) and copy nothing. Writers are rare and do no I/O under it. */
#include "webhook/informer_cache.h"

#include <pthread.h>
#include <stdlib.h>

#include "lib/base/json.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/kube/api.h"
#include "lib/kube/decode.h"
#include "lib/kube/reflector.h"
#include "lib/model/names.h"

enum collection { NAMESPACES, GROUPS, GROUPS_X, POLICIES, COLLECTIONS };

/* The part of an object that the rules need. */
struct fact {
    struct arena arena; /* owns everything, including this struct */
    enum collection of;
    const char *key; /* "name" of a namespace, otherwise "namespace/name" */
    struct labels labels;
    struct rules_group group;
    struct rules_policy policy;
};

struct shelf { /* one collection */
    struct informer_cache *cache;
    enum collection of;
    struct reflector *reflector;
    bool listed;
    struct map facts; /* key -> struct fact */
};

struct informer_cache {
    pthread_rwlock_t lock;
    struct shelf shelves[COLLECTIONS];
    /* The rules' indexes; values are inside the facts. If both API groups have a PodGroup of one
     * name, the last one written counts. */
    struct map groups, policies;
    bool some; /* for --check: never complete */
    void (*listed)(void *arg);
    void *arg;
};

static void free_fact(void *object)
{
    struct fact *f = object;
    if (!f)
        return;
    struct arena a = f->arena; /* the struct is inside it */
    arena_deinit(&a);
}

static int fill_fact(struct fact *f, struct arena *a, json *j, struct error *err)
{
    struct object_meta meta;
    json *spec = json_get(j, "spec");
    int64_t n = 0;
    decode_meta(j, &meta);
    f->key = f->of == NAMESPACES ? arena_strdup(a, meta.name)
                                 : arena_printf(a, "%s/%s", meta.ns, meta.name);
    switch (f->of) {
    case NAMESPACES:
        return labels_decode(json_get(json_get(j, "metadata"), "labels"), a, &f->labels, err);
    case POLICIES:
        f->policy.ns = arena_strdup(a, meta.ns);
        f->policy.name = arena_strdup(a, meta.name);
        return labels_decode(json_get(spec, "selector"), a, &f->policy.selector, err);
    default:
        if (!json_get_int(spec, "minMember", &n) || n < 0 || n > INT32_MAX)
            n = 0; /* unknown */
        f->group.min_member = (int32_t)n;
        return 0;
    }
}

static int decode_as(enum collection of, json *j, void **out, struct error *err)
{
    struct arena a;
    arena_init(&a, 0);
    struct fact *f = arena_new(&a, struct fact, 1);
    f->of = of;
    if (fill_fact(f, &a, j, err) < 0) {
        int rc = error_wrap(err, "%s", str_or_empty(f->key));
        arena_deinit(&a);
        return rc;
    }
    f->arena = a;
    *out = f;
    return 0;
}

static int decode_namespace_fact(json *j, void **out, struct error *err)
{
    return decode_as(NAMESPACES, j, out, err);
}

static int decode_group(json *j, void **out, struct error *err)
{
    return decode_as(GROUPS, j, out, err);
}

static int decode_policy(json *j, void **out, struct error *err)
{
    return decode_as(POLICIES, j, out, err);
}

/* ---- caller holds the lock ---- */

static void *value_of(struct fact *f)
{
    return f->of == POLICIES ? (void *)&f->policy : (void *)&f->group;
}

static struct map *index_of(struct informer_cache *w, enum collection of)
{
    return of == NAMESPACES ? NULL : of == POLICIES ? &w->policies : &w->groups;
}

/* The PodGroup of the same name in the other API group, or NULL. */
static struct fact *twin_of(const struct shelf *s, const struct fact *f)
{
    enum collection other = s->of == GROUPS ? GROUPS_X : GROUPS;
    return s->of == POLICIES ? NULL : map_get(&s->cache->shelves[other].facts, f->key);
}

/* Frees f and, if the index refers to it, falls back to its twin. */
static void forget(struct shelf *s, struct fact *f)
{
    struct map *index = index_of(s->cache, s->of);
    if (f && index && map_get(index, f->key) == value_of(f)) {
        struct fact *twin = twin_of(s, f);
        map_remove(index, f->key);
        if (twin)
            map_put(index, twin->key, value_of(twin));
    }
    free_fact(f);
}

static void put(struct shelf *s, struct fact *f)
{
    struct map *index = index_of(s->cache, s->of);
    struct fact *old = map_put(&s->facts, f->key, f);
    if (index)
        map_put(index, f->key, value_of(f));
    forget(s, old);
}

static void clear(struct shelf *s)
{
    const char *key = NULL;
    void *value = NULL;
    for (size_t i = 0; map_next(&s->facts, &i, &key, &value);) {
        map_remove(&s->facts, key);
        forget(s, value);
    }
}

/* Moves the objects out of the message. */
static void apply(struct shelf *s, struct reflector_message *message)
{
    if (message->event == REFLECTOR_RESET)
        clear(s);
    for (size_t i = 0; i < message->len; i++) {
        struct fact *f = message->objects[i];
        if (message->event == REFLECTOR_DELETE) {
            forget(s, map_remove(&s->facts, f->key));
            continue; /* the message frees its copy */
        }
        message->objects[i] = NULL;
        put(s, f);
    }
    s->listed = s->listed || message->event == REFLECTOR_RESET;
}

static bool deliver(void *arg, struct reflector_message *message)
{
    struct shelf *s = arg;
    struct informer_cache *w = s->cache;
    bool full = message->event == REFLECTOR_RESET;
    pthread_rwlock_wrlock(&w->lock);
    apply(s, message);
    pthread_rwlock_unlock(&w->lock);
    reflector_message_free(message);
    if (full && s->of == NAMESPACES && w->listed)
        w->listed(w->arg);
    return true;
}

static struct informer_cache *make(void)
{
    struct informer_cache *w = mem_new(struct informer_cache, 1);
    pthread_rwlock_init(&w->lock, NULL);
    map_init(&w->groups);
    map_init(&w->policies);
    for (int i = 0; i < COLLECTIONS; i++) {
        w->shelves[i] = (struct shelf){.cache = w, .of = (enum collection)i};
        map_init(&w->shelves[i].facts);
    }
    return w;
}

struct informer_cache *informer_cache_new(void)
{
    struct informer_cache *w = make();
    w->some = true;
    return w;
}

int informer_cache_start(struct informer_cache **out, struct kube_config *kube,
                         const struct kube_options *o, void (*listed)(void *arg), void *arg,
                         struct error *err)
{
    static const struct {
        const struct kube_kind *kind;
        int (*decode)(json *j, void **out, struct error *err);
        const char *without;
    } rows[COLLECTIONS] = {
        [NAMESPACES] = {&kube_namespaces, decode_namespace_fact, NULL},
        [GROUPS] = {&kube_pod_groups, decode_group, "minMember is not compared with workloads"},
        [GROUPS_X] = {&kube_pod_groups_x, decode_group, "minMember is not compared with workloads"},
        [POLICIES] = {&kube_resource_policies, decode_policy,
                      "pods are not compared with policies"},
    };
    struct informer_cache *w = make();
    w->listed = listed;
    w->arg = arg;
    for (int i = 0; i < COLLECTIONS; i++) {
        struct reflector_config config = {.kind = rows[i].kind,
                                          .type = {.decode = rows[i].decode, .free = free_fact},
                                          .deliver = deliver,
                                          .arg = &w->shelves[i],
                                          .optional = rows[i].without != NULL,
                                          .without = rows[i].without};
        if (reflector_start(&w->shelves[i].reflector, kube, o, &config, err) < 0) {
            informer_cache_stop(w);
            return error_wrap(err, "watch %s", rows[i].kind->resource);
        }
    }
    *out = w;
    return 0;
}

void informer_cache_stop(struct informer_cache *w)
{
    if (!w)
        return;
    for (int i = 0; i < COLLECTIONS; i++)
        if (w->shelves[i].reflector)
            reflector_stop(w->shelves[i].reflector);
    for (int i = 0; i < COLLECTIONS; i++)
        clear(&w->shelves[i]);
    for (int i = 0; i < COLLECTIONS; i++)
        map_deinit(&w->shelves[i].facts);
    map_deinit(&w->groups);
    map_deinit(&w->policies);
    pthread_rwlock_destroy(&w->lock);
    free(w);
}

bool informer_cache_put(struct informer_cache *w, json *object)
{
    const char *api = str_or_empty(json_get_str(object, "apiVersion"));
    const char *kind = json_get_str(object, "kind");
    enum collection of;
    void *fact = NULL;
    if (str_eq(kind, "Namespace") && str_eq(api, "v1"))
        of = NAMESPACES;
    else if (str_eq(kind, "PodGroup") && str_starts(api, NAME_GROUP_PODGROUP_X "/"))
        of = GROUPS_X;
    else if (str_eq(kind, "PodGroup") && str_starts(api, NAME_GROUP_PODGROUP "/"))
        of = GROUPS;
    else if (str_eq(kind, NAME_KIND_POLICY) && str_starts(api, NAME_GROUP_POLICY "/"))
        of = POLICIES;
    else
        return false;
    if (decode_as(of, object, &fact, NULL) < 0 || !fact)
        return false;
    pthread_rwlock_wrlock(&w->lock);
    put(&w->shelves[of], fact);
    pthread_rwlock_unlock(&w->lock);
    return true;
}

static enum rules_known known(const struct informer_cache *w, bool listed)
{
    return w->some ? RULES_SOME : listed ? RULES_ALL : RULES_NOT_YET;
}

void informer_cache_enter(void *arg, const char *ns, struct rules_context *out)
{
    struct informer_cache *w = arg;
    pthread_rwlock_rdlock(&w->lock);
    const struct fact *f = map_get(&w->shelves[NAMESPACES].facts, ns);
    *out = (struct rules_context){
        .ns = ns,
        .ns_labels = f ? &f->labels : NULL,
        .groups_known = known(w, w->shelves[GROUPS].listed && w->shelves[GROUPS_X].listed),
        .groups = &w->groups,
        .policies_known = known(w, w->shelves[POLICIES].listed),
        .policies = &w->policies};
}

void informer_cache_leave(void *arg)
{
    struct informer_cache *w = arg;
    pthread_rwlock_unlock(&w->lock);
}
