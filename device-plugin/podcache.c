// SPDX-License-Identifier: Apache-2.0
/*
 * podcache - see the header.
 *
 * The pod that the kubelet admits may not be here yet (its API server's watch may be faster than ours): what it has been
 * given is kept by uid, apart from the pods.
 */
#include "device-plugin/podcache.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"

struct given {
    size_t inits[MODE_RESOURCES];
    char uid[];
};

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

static bool has_uid(const struct podcache *c, const char *uid)
{
    const char *key;
    void *pod;
    for (size_t i = 0; map_next(&c->pods, &i, &key, &pod);)
        if (str_eq(((const struct pod *)pod)->uid, uid))
            return true;
    return false;
}

/* What belongs to no pod any more. */
static void sweep_given(struct podcache *c)
{
    const char *uid;
    void *given;
    for (size_t i = 0; map_next(&c->given, &i, &uid, &given);) {
        if (has_uid(c, uid))
            continue;
        map_remove(&c->given, uid);
        free(given);
    }
}

void podcache_deinit(struct podcache *c)
{
    clear_pods(c);
    sweep_given(c);
    map_deinit(&c->pods);
    map_deinit(&c->given);
}

struct pod *podcache_put(struct podcache *c, struct pod *take)
{
    struct pod *old = map_put(&c->pods, take->key, take);
    if (old != NULL && !str_eq(old->uid, take->uid))
        free(map_remove(&c->given, old->uid));
    return old;
}

struct pod *podcache_remove(struct podcache *c, const char *key)
{
    struct pod *old = map_remove(&c->pods, key);
    if (old != NULL)
        free(map_remove(&c->given, old->uid));
    return old;
}

void podcache_reset(struct podcache *c, struct pod **pods, size_t len)
{
    clear_pods(c);
    for (size_t i = 0; i < len; i++)
        pod_free(map_put(&c->pods, pods[i]->key, pods[i]));
    sweep_given(c);
}

const struct pod *podcache_find(const struct podcache *c, const char *key)
{
    return map_get(&c->pods, key);
}

void podcache_note_given(struct podcache *c, const struct match_subject *s, enum mode_resource r)
{
    const char *uid = s->pod->uid;
    size_t inits = match_init_rank(s, r), n = strlen(uid) + 1;
    if (inits == 0)
        return;
    struct given *g = map_get(&c->given, uid);
    if (g == NULL) {
        g = calloc(1, sizeof *g + n);
        if (g == NULL)
            abort();
        memcpy(g->uid, uid, n);
        (void)map_put(&c->given, g->uid, g);
    }
    g->inits[r] = inits;
}

void podcache_init_given(const struct podcache *c, const struct pod *p, struct match_listed *l)
{
    const struct given *g = map_get(&c->given, p->uid);
    for (int r = 0; r < MODE_RESOURCES; r++)
        l->init_given[r] = g != NULL ? g->inits[r] : 0;
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
