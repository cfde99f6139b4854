// SPDX-License-Identifier: Apache-2.0
/*
 * podcache - see the header.
 *
 * The pod that the kubelet admits may not be here yet (its API server's watch may be faster than ours): what it has been
 * given is kept by uid, apart from the pods.
 */
#include "device-plugin/node/podcache.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"

struct given {
    size_t inits[MODE_RESOURCES];
    uint64_t answered[MODE_RESOURCES]; /* bits of containers */
    uint64_t arrival;
    bool has_claim;
    struct claim claim;
    struct arena arena; /* of the claim */
    char uid[];
};

static void given_free(struct given *g)
{
    if (g == NULL)
        return;
    arena_deinit(&g->arena);
    free(g);
}

void podcache_init(struct podcache *c)
{
    map_init(&c->pods);
    map_init(&c->given);
}

static void clear_pods(struct podcache *c)
{
    const char *key;
    void *pod;
    for (size_t i = 0; map_next(&c->pods, &i, &key, &pod);) {
        map_remove(&c->pods, key);
        pod_free(pod);
    }
}

const struct pod *podcache_next(const struct podcache *c, size_t *i)
{
    const char *key;
    void *pod;
    return map_next(&c->pods, i, &key, &pod) ? pod : NULL;
}

const struct pod *podcache_find_uid(const struct podcache *c, const char *uid)
{
    const struct pod *p;
    for (size_t i = 0; (p = podcache_next(c, &i)) != NULL;)
        if (str_eq(p->uid, uid))
            return p;
    return NULL;
}

/* What belongs to no pod any more. */
static void sweep_given(struct podcache *c)
{
    const char *uid;
    void *given;
    for (size_t i = 0; map_next(&c->given, &i, &uid, &given);) {
        if (podcache_find_uid(c, uid) != NULL)
            continue;
        map_remove(&c->given, uid);
        given_free(given);
    }
}

void podcache_deinit(struct podcache *c)
{
    clear_pods(c);
    sweep_given(c);
    map_deinit(&c->pods);
    map_deinit(&c->given);
}

static struct given *given_of(struct podcache *c, const char *uid)
{
    size_t n = strlen(uid) + 1;
    struct given *g = map_get(&c->given, uid);
    if (g == NULL) {
        g = calloc(1, sizeof *g + n);
        if (g == NULL)
            abort();
        memcpy(g->uid, uid, n);
        arena_init(&g->arena, 256);
        (void)map_put(&c->given, g->uid, g);
    }
    return g;
}

/* The watch brings pods in the order in which they were bound, to the kubelet as to us. */
static void note_arrival(struct podcache *c, const struct pod *p)
{
    struct given *g = given_of(c, p->uid);
    if (g->arrival == 0)
        g->arrival = ++c->arrivals;
}

struct pod *podcache_put(struct podcache *c, struct pod *take)
{
    struct pod *old = map_put(&c->pods, take->key, take);
    note_arrival(c, take);
    if (old != NULL && !str_eq(old->uid, take->uid))
        given_free(map_remove(&c->given, old->uid));
    return old;
}

struct pod *podcache_remove(struct podcache *c, const char *key)
{
    struct pod *old = map_remove(&c->pods, key);
    if (old != NULL)
        given_free(map_remove(&c->given, old->uid));
    return old;
}

static int by_creation(const void *a, const void *b)
{
    const struct pod *x = *(struct pod *const *)a, *y = *(struct pod *const *)b;
    return x->created_ns != y->created_ns ? (x->created_ns < y->created_ns ? -1 : 1)
                                          : strcmp(x->key, y->key);
}

void podcache_reset(struct podcache *c, struct pod **pods, size_t len)
{
    clear_pods(c);
    if (len > 0) /* as the kubelet takes those that it finds together */
        qsort(pods, len, sizeof(struct pod *), by_creation);
    for (size_t i = 0; i < len; i++) {
        note_arrival(c, pods[i]);
        pod_free(map_put(&c->pods, pods[i]->key, pods[i]));
    }
    sweep_given(c);
}

const struct pod *podcache_find(const struct podcache *c, const char *key)
{
    return map_get(&c->pods, key);
}

void podcache_note_given(struct podcache *c, const struct match_subject *s, enum mode_resource r)
{
    size_t inits = match_init_rank(s, r);
    struct given *g = given_of(c, s->pod->uid);
    if (s->container < 64)
        g->answered[r] |= UINT64_C(1) << s->container;
    if (g->inits[r] < inits)
        g->inits[r] = inits;
}

void podcache_note_refused(struct podcache *c, const struct pod *p)
{
    struct given *g = given_of(c, p->uid);
    for (int r = 0; r < MODE_RESOURCES; r++)
        g->answered[r] = UINT64_MAX;
}

const struct claim *podcache_claim(const struct podcache *c, const char *uid)
{
    const struct given *g = map_get(&c->given, uid);
    return g != NULL && g->has_claim ? &g->claim : NULL;
}

static void *copy_of(struct arena *a, const void *from, size_t bytes)
{
    return bytes > 0 ? memcpy(arena_alloc(a, bytes), from, bytes) : NULL;
}

const struct claim *podcache_keep_claim(struct podcache *c, const char *uid,
                                        const struct claim *claim)
{
    struct given *g = given_of(c, uid);
    struct arena old = g->arena; /* the claim may be the one that is kept already */
    arena_init(&g->arena, 256);
    struct claim kept = *claim;
    kept.shares = copy_of(&g->arena, claim->shares, claim->shares_len * sizeof *claim->shares);
    kept.group = copy_of(&g->arena, claim->group, claim->group_len * sizeof *claim->group);
    kept.visible = copy_of(&g->arena, claim->visible, claim->visible_len * sizeof *claim->visible);
    g->claim = kept;
    g->has_claim = true;
    arena_deinit(&old);
    return &g->claim;
}

const struct claim *podcache_promised(const struct podcache *c, const struct pod *p,
                                      const struct gpu_inventory *inv, struct arena *a)
{
    const struct claim *here = podcache_claim(c, p->uid);
    struct error why = ERROR_INIT;
    if (here != NULL)
        return here;
    struct claim *said = arena_new(a, struct claim, 1);
    if (claim_decode(p, a, said, &why) < 0 || claim_is_empty(said) ||
        claim_check(said, p, inv, &why) < 0)
        return NULL;
    return said;
}

void podcache_init_given(const struct podcache *c, const struct pod *p, struct match_listed *l)
{
    const struct given *g = map_get(&c->given, p->uid);
    l->arrival = g != NULL ? g->arrival : 0;
    for (int r = 0; r < MODE_RESOURCES; r++) {
        l->init_given[r] = g != NULL ? g->inits[r] : 0;
        l->answered[r] = g != NULL ? g->answered[r] : 0;
    }
}

size_t podcache_init_holders(const struct podcache *c, uint32_t resources)
{
    size_t n = 0;
    const char *key;
    void *pod;
    for (size_t i = 0; map_next(&c->pods, &i, &key, &pod);)
        n += !pod_is_finished(pod) && match_init_asks(pod, resources);
    return n;
}
