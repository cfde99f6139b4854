// SPDX-License-Identifier: Apache-2.0
/* Reflector threads write and server threads read under one read-write lock. Readers hold it while
 * the rules run (microseconds) and copy nothing. Writers are rare and do no I/O under it. */
#include "webhook/informer_cache.h"

#include <pthread.h>
#include <stdlib.h>

#include "lib/base/json.h"
#include "lib/base/log.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/base/vec.h"
#include "lib/kube/api.h"
#include "lib/kube/decode.h"
#include "lib/kube/reflector.h"
#include "lib/model/names.h"
#include "lib/model/policy.h"

enum { FACT_BYTES = 256 }; /* of most */

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

/* The policies of a namespace. */
struct policies {
    char *ns;
    struct VEC(const struct rules_policy *) items;
    size_t bytes;
    bool full; /* some are left out */
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
    /* The rules' indexes; what they lead to is inside the facts. If both API groups have a PodGroup
     * of one name, the last one written counts. */
    struct map groups;   /* key -> struct rules_group */
    struct map policies; /* namespace -> struct policies */
    bool some;           /* for --check: never complete */
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
        if (json_len(json_get(spec, "selector")) > POLICY_LABELS_MAX)
            return error_set(err, ERROR_INVALID, "spec.selector: has more than %d entries",
                             POLICY_LABELS_MAX);
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
    arena_init(&a, FACT_BYTES);
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

/* The PodGroup of the same name in the other API group, or NULL. */
static struct fact *twin_of(const struct shelf *s, const struct fact *f)
{
    enum collection other = s->of == GROUPS ? GROUPS_X : GROUPS;
    return map_get(&s->cache->shelves[other].facts, f->key);
}

/* If the index refers to f it falls back to its twin. */
static void unlist_group(struct shelf *s, struct fact *f)
{
    struct map *index = &s->cache->groups;
    if (map_get(index, f->key) != &f->group)
        return;
    struct fact *twin = twin_of(s, f);
    map_remove(index, f->key);
    if (twin)
        map_put(index, twin->key, &twin->group);
}

static void free_policies(struct policies *p)
{
    vec_deinit(&p->items);
    free(p->ns);
    free(p);
}

/* False: the namespace has no room for it. */
static bool list_policy(struct informer_cache *w, struct fact *f)
{
    struct policies *p = map_get(&w->policies, f->policy.ns);
    if (!p) {
        p = mem_new(struct policies, 1);
        p->ns = mem_strdup(f->policy.ns);
        map_put(&w->policies, p->ns, p);
    }
    size_t bytes = arena_bytes(&f->arena);
    if (p->bytes + bytes > INFORMER_CACHE_POLICY_BYTES) {
        if (!p->full)
            log_warn("too many ResourcePolicies in a namespace", kv("namespace", f->policy.ns),
                     kv("bytes", INFORMER_CACHE_POLICY_BYTES), kv("name", f->policy.name));
        p->full = true;
        return false;
    }
    p->bytes += bytes;
    vec_push(&p->items, &f->policy);
    return true;
}

static void unlist_policy(struct informer_cache *w, const struct fact *f)
{
    struct policies *p = map_get(&w->policies, f->policy.ns);
    size_t i = 0;
    while (p->items.items[i] != &f->policy)
        i++;
    vec_remove_swap(&p->items, i);
    p->bytes -= arena_bytes(&f->arena);
    if (p->items.len > 0)
        return;
    map_remove(&w->policies, f->policy.ns);
    free_policies(p);
}

/* Frees f, which is no longer in the shelf. NULL is fine. */
static void forget(struct shelf *s, struct fact *f)
{
    if (f && s->of == POLICIES)
        unlist_policy(s->cache, f);
    else if (f && s->of != NAMESPACES)
        unlist_group(s, f);
    free_fact(f);
}

static void put(struct shelf *s, struct fact *f)
{
    if (s->of == POLICIES) {
        forget(s, map_remove(&s->facts, f->key));
        if (!list_policy(s->cache, f)) {
            free_fact(f);
            return;
        }
    }
    struct fact *old = map_put(&s->facts, f->key, f);
    if (s->of == GROUPS || s->of == GROUPS_X)
        map_put(&s->cache->groups, f->key, &f->group);
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
    const struct policies *p = map_get(&w->policies, ns);
    *out = (struct rules_context){
        .ns = ns,
        .ns_labels = f ? &f->labels : NULL,
        .groups_known = known(w, w->shelves[GROUPS].listed && w->shelves[GROUPS_X].listed),
        .groups = &w->groups,
        .policies_known = known(w, w->shelves[POLICIES].listed),
        .policies = p ? p->items.items : NULL,
        .policies_len = p ? p->items.len : 0};
}

void informer_cache_leave(void *arg)
{
    struct informer_cache *w = arg;
    pthread_rwlock_unlock(&w->lock);
}
