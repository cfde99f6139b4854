// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/grant/given.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"

struct given_pod {
    size_t inits[MODE_RESOURCES];
    uint64_t answered[MODE_RESOURCES]; /* bits, by container */
    bool has_grant;
    struct grant grant;
    struct arena arena; /* of the grant */
    char *uid;
};

void given_init(struct given *g)
{
    map_init(&g->pods);
}

void given_forget(struct given *g, const char *uid)
{
    struct given_pod *p = map_remove(&g->pods, uid);
    if (p == NULL)
        return;
    arena_deinit(&p->arena);
    free(p->uid);
    free(p);
}

void given_sweep(struct given *g, bool (*is_there)(void *arg, const char *uid), void *arg)
{
    const char *uid;
    void *p;
    for (size_t i = 0; map_next(&g->pods, &i, &uid, &p);)
        if (!is_there(arg, uid))
            given_forget(g, uid);
}

static bool none(void *arg, const char *uid)
{
    (void)arg, (void)uid;
    return false;
}

static void drop_answer(struct given *g, size_t at)
{
    struct given_answer *x = &g->answers.items[at];
    free(x->ids);
    free(x->uid);
    free(x->key);
    free(x->said);
    memmove(x, x + 1, (--g->answers.len - at) * sizeof *x);
}

void given_deinit(struct given *g)
{
    given_sweep(g, none, NULL);
    map_deinit(&g->pods);
    while (g->answers.len > 0)
        drop_answer(g, g->answers.len - 1);
    vec_deinit(&g->answers);
}

const struct given_answer *given_answer(const struct given *g, enum mode_resource r,
                                        const char *ids)
{
    for (size_t i = 0; i < g->answers.len; i++)
        if (g->answers.items[i].resource == r && str_eq(g->answers.items[i].ids, ids))
            return &g->answers.items[i];
    return NULL;
}

void given_started(struct given *g, enum mode_resource r, const char *ids)
{
    const struct given_answer *x = given_answer(g, r, ids);
    if (x != NULL)
        drop_answer(g, (size_t)(x - g->answers.items));
}

void given_answered(struct given *g, enum mode_resource r, const char *ids,
                    const struct match_subject *s, const char *said)
{
    given_started(g, r, ids);
    if (s == NULL)
        return;
    if (g->answers.len == GIVEN_ANSWERS_MAX)
        drop_answer(g, 0);
    struct given_answer x = {.resource = r,
                             .ids = mem_strdup(ids),
                             .uid = mem_strdup(s->pod->uid),
                             .key = mem_strdup(s->pod->key),
                             .container = s->container,
                             .said = mem_strdup(said)};
    vec_push(&g->answers, x);
}

static struct given_pod *pod_of(struct given *g, const char *uid)
{
    struct given_pod *p = map_get(&g->pods, uid);
    if (p == NULL) {
        p = mem_new(struct given_pod, 1);
        p->uid = mem_strdup(uid);
        arena_init(&p->arena, 256);
        (void)map_put(&g->pods, p->uid, p);
    }
    return p;
}

void given_note(struct given *g, const struct match_subject *s, enum mode_resource r)
{
    size_t inits = match_init_rank(s, r);
    struct given_pod *p = pod_of(g, s->pod->uid);
    if (s->container < 64)
        p->answered[r] |= UINT64_C(1) << s->container;
    if (p->inits[r] < inits)
        p->inits[r] = inits;
}

void given_note_refused(struct given *g, const struct pod *p)
{
    for (int r = 0; r < MODE_RESOURCES; r++)
        pod_of(g, p->uid)->answered[r] = UINT64_MAX;
}

void given_fill(const struct given *g, const char *uid, struct match_listed *l)
{
    static const struct given_pod nothing;
    const struct given_pod *p = map_get(&g->pods, uid);
    memcpy(l->init_given, p != NULL ? p->inits : nothing.inits, sizeof l->init_given);
    memcpy(l->answered, p != NULL ? p->answered : nothing.answered, sizeof l->answered);
}

const struct grant *given_grant(const struct given *g, const char *uid)
{
    const struct given_pod *p = map_get(&g->pods, uid);
    return p != NULL && p->has_grant ? &p->grant : NULL;
}

static void *copy_of(struct arena *a, const void *from, size_t bytes)
{
    return bytes > 0 ? memcpy(arena_alloc(a, bytes), from, bytes) : NULL;
}

const struct grant *given_keep_grant(struct given *g, const char *uid, const struct grant *grant)
{
    struct given_pod *p = pod_of(g, uid);
    struct arena old = p->arena; /* grant may point to the one kept already */
    arena_init(&p->arena, 256);
    struct grant kept = *grant;
    kept.shares = copy_of(&p->arena, grant->shares, grant->shares_len * sizeof *grant->shares);
    kept.group = copy_of(&p->arena, grant->group, grant->group_len * sizeof *grant->group);
    kept.visible = copy_of(&p->arena, grant->visible, grant->visible_len * sizeof *grant->visible);
    p->grant = kept;
    p->has_grant = true;
    arena_deinit(&old);
    return &p->grant;
}
