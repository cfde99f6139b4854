// SPDX-License-Identifier: Apache-2.0
/*
 * A list is valid only if every gang in it names the same list, in any order: users cannot tie
 * other users' gangs to their own. A gang's list is the one that all its members name, or its
 * PodGroup's, which also applies to members without one.
 *
 * A gang may wait for another gang that has no reference back, so cluster.gangs_named holds the
 * reverse references. A gang is notified when a gang that it names is added or removed, gets or
 * loses its quorum, or changes its list. It is not notified for each pod: n gangs of m pods would
 * cost n * n * m attempts.
 */
#include "scheduler/cache/gangs_bundle.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/cache/gangs.h"
#include "scheduler/cache/gangs_settings.h"

struct named {
    char *key;
    struct VEC(struct gang *) by;
};

static void enter(struct cluster *c, struct gang *g)
{
    for (size_t i = 0; i < g->list.len; i++) {
        struct named *n = map_get(&c->gangs_named, g->list.names[i]);
        if (n == NULL) {
            n = mem_new(struct named, 1);
            n->key = mem_strdup(g->list.names[i]);
            map_put(&c->gangs_named, n->key, n);
        }
        vec_push(&n->by, g);
        struct gang *other = gangs_find(c, n->key);
        if (other != NULL && other != g)
            other->list.told = 0; /* not tracked before */
    }
}

static void named_free(struct named *n)
{
    vec_deinit(&n->by);
    free(n->key);
    free(n);
}

static void withdraw(struct cluster *c, const struct gang *g)
{
    for (size_t i = 0; i < g->list.len; i++) {
        struct named *n = map_get(&c->gangs_named, g->list.names[i]);
        size_t k = 0;
        while (n->by.items[k] != g)
            k++;
        vec_remove_swap(&n->by, k);
        if (n->by.len == 0) {
            map_remove(&c->gangs_named, n->key);
            named_free(n);
        }
    }
}

bool gangs_bundle_is_named(const struct cluster *c, const struct gang *g)
{
    return !gangs_is_lone(g) && map_get(&c->gangs_named, gangs_name(g)) != NULL;
}

static void tell_all(const struct cluster *c, const struct gang *g,
                     const struct cluster_hooks *hooks)
{
    const struct named *n = map_get(&c->gangs_named, gangs_name(g));
    for (size_t i = 0; n != NULL && hooks != NULL && i < n->by.len; i++)
        if (n->by.items[i] != g && gangs_has_waiting(n->by.items[i]))
            hooks->gang_changed(hooks->arg, n->by.items[i]);
}

void gangs_bundle_tell(struct cluster *c, struct gang *g, bool ready,
                       const struct cluster_hooks *hooks)
{
    /* 0 means not reported yet. Without a waiting member it is not tried itself, so the others must
     * be: the last one may have been what hindered them. */
    uint64_t now = 2 + (uint64_t)ready + 2 * (uint64_t)gangs_has_waiting(g);
    for (size_t i = 0; i < g->list.len; i++)
        now = now * UINT64_C(1099511628211) ^ str_hash(g->list.names[i], strlen(g->list.names[i]));
    if (now == g->list.told)
        return;
    g->list.told = now;
    tell_all(c, g, hooks);
}

static void clear(struct cluster *c, struct gang *g)
{
    if (g->list.text == NULL)
        return;
    withdraw(c, g);
    free(g->list.text);
    arena_deinit(&g->list.arena);
    g->list = (struct gang_list){.told = g->list.told};
}

static bool same_lists(const char *const *a, size_t a_len, const char *const *b, size_t b_len)
{
    for (size_t i = 0; i < a_len && a_len == b_len; i++)
        if (!str_eq(a[i], b[i]))
            return false;
    return a_len == b_len;
}

/* Members' texts are valid. */
static bool means_the_same(const char *a, const char *b)
{
    const char **x = NULL, **y = NULL;
    size_t x_len = 0, y_len = 0;
    struct arena scratch;
    arena_init(&scratch, 0);
    bool same = gang_read_list(a, NULL, &scratch, &x, &x_len, NULL) == 0 &&
                gang_read_list(b, NULL, &scratch, &y, &y_len, NULL) == 0 &&
                same_lists(x, x_len, y, y_len);
    arena_deinit(&scratch);
    return same;
}

/* The first counting member, by name, whose list matches `such`; NULL: none. */
enum such { SUCH_ANY, SUCH_NONE, SUCH_OTHER };
static const struct cluster_pod *first_with(const struct gang *g, enum such such, const char *text)
{
    const struct cluster_pod *first = NULL;
    for (size_t i = 0; i < g->members.len; i++) {
        const struct cluster_pod *cp = g->members.items[i];
        const char *list = cp->said.list;
        if (!gangs_settings_counts(cp) ||
            (first != NULL && strcmp(cp->pod->name, first->pod->name) > 0))
            continue;
        if (such == SUCH_NONE ? list == NULL
                              : list != NULL && (such == SUCH_ANY || (!str_eq(list, text) &&
                                                                      !means_the_same(list, text))))
            first = cp;
    }
    return first;
}

/* The text of the gang's list, and whether its PodGroup has it. */
static const char *text_of(const struct cluster *c, const struct gang *g, bool *by_group)
{
    const struct pod_group *group = gangs_group_of(c, g);
    *by_group = group != NULL && group->list != NULL;
    if (*by_group)
        return group->list;
    const struct cluster_pod *cp = first_with(g, SUCH_ANY, NULL);
    return cp != NULL ? cp->said.list : NULL;
}

void gangs_bundle_read(struct cluster *c, struct gang *g)
{
    bool by_group;
    const char *text = gangs_is_lone(g) ? NULL : text_of(c, g, &by_group);
    if (text == NULL) {
        clear(c, g);
        return;
    }
    bool agreed = first_with(g, SUCH_OTHER, text) == NULL &&
                  (by_group || first_with(g, SUCH_NONE, NULL) == NULL);
    if (str_eq(text, g->list.text) && agreed == (g->list.names != NULL))
        return;
    clear(c, g);
    g->list.text = mem_strdup(text);
    arena_init(&g->list.arena, 0);
    if (!agreed || gang_read_list(text, gangs_name(g), &g->list.arena, &g->list.names, &g->list.len,
                                  NULL) < 0) {
        g->list.names = NULL;
        g->list.len = 0;
    }
    enter(c, g);
}

void gangs_bundle_leave(struct cluster *c, struct gang *g, const struct cluster_hooks *hooks)
{
    clear(c, g);
    if (gangs_bundle_is_named(c, g))
        tell_all(c, g, hooks);
}

void gangs_bundle_deinit(struct cluster *c)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&c->gangs, &i, &key, &value);)
        clear(c, value);
    map_deinit(&c->gangs_named);
}

enum { LIST_SHOWN = 128 };

const char *gangs_bundle_conflict(const struct cluster *c, const struct gang *g, struct arena *a)
{
    bool by_group;
    if (g->list.text == NULL || g->list.names != NULL)
        return NULL;
    const char *text = text_of(c, g, &by_group), *name = gangs_name(g);
    const char **names;
    size_t len;
    struct error err = ERROR_INIT;
    if (gang_read_list(text, name, a, &names, &len, &err) < 0)
        return arena_printf(a, "PodGroup %s: annotation " NAME_ANN_GANG_GROUPS ": %s", name,
                            err.text);
    const struct cluster_pod *says = first_with(g, SUCH_ANY, NULL);
    const struct cluster_pod *other = first_with(g, SUCH_OTHER, text);
    const struct cluster_pod *none = first_with(g, SUCH_NONE, NULL);
    const char *who = by_group ? "its PodGroup" : arena_printf(a, "pod %s", says->pod->name);
    if (other != NULL)
        return arena_printf(
            a, "members of gang %s name different lists of gangs: %.*s (%s) and %.*s (pod %s)",
            name, LIST_SHOWN, text, who, LIST_SHOWN, other->said.list, other->pod->name);
    return arena_printf(a,
                        "members of gang %s name different lists of gangs: %.*s (%s) and none "
                        "(pod %s)",
                        name, LIST_SHOWN, text, who, none->pod->name);
}

static const char *not_yet(const struct gang *g, const char *other, const char *why,
                           struct arena *a)
{
    return arena_printf(a, "gang %s goes only together with gang %s, which %s", gangs_name(g),
                        other, why);
}

const char *gangs_bundle_waits(const struct cluster *c, const struct gang *g,
                               bool (*is_ready)(const struct cluster *c, const struct gang *g),
                               struct arena *a)
{
    for (size_t i = 0; i < g->list.len && gangs_count_missing(g) > 0; i++) {
        const char *name = g->list.names[i];
        const struct gang *other = gangs_find(c, name);
        if (other == g)
            continue;
        if (other == NULL)
            return not_yet(g, name, "does not exist yet", a);
        if (other->list.text == NULL)
            return not_yet(g, name, "names no list of gangs", a);
        if (!same_lists(g->list.names, g->list.len, other->list.names, other->list.len))
            return arena_printf(
                a, "gang %s names the gangs %.*s, gang %s names %.*s%s", gangs_name(g), LIST_SHOWN,
                g->list.text, name, LIST_SHOWN, other->list.text,
                other->list.names == NULL ? ", on which its members do not agree" : "");
        if (!is_ready(c, other))
            return not_yet(g, name, "is not ready itself", a);
    }
    return NULL;
}

size_t gangs_bundle(const struct cluster *c, struct gang *g, struct arena *a, struct gang ***out)
{
    size_t n = 0;
    *out = arena_new(a, struct gang *, g->list.len + 1);
    for (size_t i = 0; i < g->list.len && gangs_count_missing(g) > 0; i++) {
        struct gang *other = gangs_find(c, g->list.names[i]); /* names are sorted like keys */
        if (other != NULL)
            (*out)[n++] = other;
    }
    if (n == 0)
        (*out)[n++] = g;
    return n;
}
