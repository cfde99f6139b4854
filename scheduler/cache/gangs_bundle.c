// SPDX-License-Identifier: Apache-2.0
/*
 * A list is valid only if every gang in it names the same list, in any order: users cannot tie
 * other users' gangs to their own. A gang's list is the one that all its members name, or its
 * PodGroup's, which also applies to members without one.
 *
 * A gang may wait for another gang that has no reference back, so cluster.gangs_named holds the
 * reverse references. A gang is notified when a gang that it names is added or removed or changes
 * its list, and, if that is the same list, when it gets or loses its quorum. It is not notified for
 * each pod: n gangs of m pods would cost n * n * m attempts.
 *
 * A list is read once for each version of a pod and compared by its digest. What a gang's members
 * say is counted, so that a member's change costs neither their texts nor a look at all of them.
 */
#include "scheduler/cache/gangs_bundle.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/cache/gangs.h"
#include "scheduler/cache/gangs_settings.h"

/* A gang, and which name of its list this is. */
struct naming {
    struct gang *gang;
    uint32_t name;
};

struct named {
    char *key;
    struct VEC(struct naming) by;
};

static void enter(struct cluster *c, struct gang *g)
{
    g->list.places = arena_new(&g->list.arena, uint32_t, g->list.len);
    for (uint32_t i = 0; i < g->list.len; i++) {
        struct named *n = map_get(&c->gangs_named, g->list.names[i]);
        struct naming one = {.gang = g, .name = i};
        if (n == NULL) {
            n = mem_new(struct named, 1);
            n->key = mem_strdup(g->list.names[i]);
            map_put(&c->gangs_named, n->key, n);
            struct gang *other = gangs_find(c, n->key);
            if (other != NULL && other != g)
                other->list.told = 0; /* not tracked before */
        }
        g->list.places[i] = (uint32_t)n->by.len;
        vec_push(&n->by, one);
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
        uint32_t place = g->list.places[i];
        vec_remove_swap(&n->by, place);
        if (place < n->by.len)
            n->by.items[place].gang->list.places[n->by.items[place].name] = place;
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

static void tell(struct cluster *c, const struct gang *g, struct gang *other,
                 const struct cluster_hooks *hooks)
{
    c->lists_looked++;
    if (other != NULL && other != g && hooks != NULL && gangs_has_waiting(other))
        hooks->gang_changed(hooks->arg, other);
}

static void tell_all(struct cluster *c, const struct gang *g, const struct cluster_hooks *hooks)
{
    const struct named *n = map_get(&c->gangs_named, gangs_name(g));
    for (size_t i = 0; n != NULL && i < n->by.len; i++)
        tell(c, g, n->by.items[i].gang, hooks);
}

void gangs_bundle_tell(struct cluster *c, struct gang *g, bool ready,
                       const struct cluster_hooks *hooks)
{
    struct gang_list *l = &g->list;
    bool waits = gangs_has_waiting(g);
    uint64_t now = l->names != NULL ? l->digest : l->text != NULL ? 2 : 1; /* 0: not told yet */
    if (now != l->told)
        tell_all(c, g, hooks);
    /* Whoever else names it waits for its list to change, ready or not. Without a waiting member it
     * is not tried itself, so the others must be: the last one may have been what hindered them. */
    else if (ready != l->told_ready || waits != l->told_waits)
        for (size_t i = 0; l->names != NULL && i < l->len; i++)
            tell(c, g, gangs_find(c, l->names[i]), hooks);
    l->told = now;
    l->told_ready = ready;
    l->told_waits = waits;
}

static void clear(struct cluster *c, struct gang *g)
{
    if (g->list.text == NULL)
        return;
    withdraw(c, g);
    free(g->list.text);
    arena_deinit(&g->list.arena);
    g->list = (struct gang_list){
        .told = g->list.told, .told_ready = g->list.told_ready, .told_waits = g->list.told_waits};
}

static bool same_lists(const char *const *a, size_t a_len, const char *const *b, size_t b_len)
{
    for (size_t i = 0; i < a_len && a_len == b_len; i++)
        if (!str_eq(a[i], b[i]))
            return false;
    return a_len == b_len;
}

/* The first counting member, by name, whose list matches `such`; NULL: none. */
enum such { SUCH_ANY, SUCH_NONE, SUCH_OTHER };
static const struct cluster_pod *first_with(const struct gang *g, enum such such, uint64_t digest)
{
    const struct cluster_pod *first = NULL;
    for (size_t i = 0; i < g->members.len; i++) {
        const struct cluster_pod *cp = g->members.items[i];
        uint64_t said = cp->said.list_digest;
        if (!gangs_settings_counts(cp) ||
            (such == SUCH_NONE ? said != 0 : said == 0 || (such == SUCH_OTHER && said == digest)) ||
            (first != NULL && strcmp(cp->pod->name, first->pod->name) > 0))
            continue;
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
    const struct cluster_pod *cp = first_with(g, SUCH_ANY, 0);
    return cp != NULL ? cp->said.list : NULL;
}

enum { SAID_NOTHING = 1 };

static void count(struct gang *g, uint64_t said, int sign)
{
    size_t i = 0;
    if (said == 0)
        return;
    if (said == SAID_NOTHING) {
        g->silent = sign > 0 ? g->silent + 1 : g->silent - 1;
        return;
    }
    while (i < g->said.len && g->said.items[i].digest != said)
        i++;
    if (i == g->said.len) {
        struct gang_said none = {.digest = said};
        vec_push(&g->said, none);
    }
    struct gang_said *at = &g->said.items[i];
    at->members = sign > 0 ? at->members + 1 : at->members - 1;
    if (at->members == 0)
        vec_remove_swap(&g->said, i);
    if (g->said.len == 0)
        vec_deinit(&g->said);
}

static void count_as(struct cluster_pod *cp, uint64_t said)
{
    if (said == cp->said_counted)
        return;
    count(cp->gang, cp->said_counted, -1);
    count(cp->gang, said, 1);
    cp->said_counted = said;
}

void gangs_bundle_count(struct cluster_pod *cp)
{
    uint64_t said = cp->said.list_digest != 0 ? cp->said.list_digest : SAID_NOTHING;
    count_as(cp, gangs_settings_counts(cp) ? said : 0);
}

void gangs_bundle_discount(struct cluster_pod *cp)
{
    count_as(cp, 0);
}

static uint64_t digest_of(const char *text)
{
    const char **names;
    size_t len;
    struct arena scratch;
    arena_init(&scratch, 0);
    bool valid = gang_read_list(text, NULL, &scratch, &names, &len, NULL) == 0;
    uint64_t digest = valid ? gang_list_digest(names, len) : 0;
    arena_deinit(&scratch);
    return digest;
}

static const char *text_with(const struct gang *g, uint64_t digest)
{
    size_t i = 0;
    while (g->members.items[i]->said_counted != digest)
        i++;
    return g->members.items[i]->said.list;
}

void gangs_bundle_read(struct cluster *c, struct gang *g)
{
    const struct pod_group *group = gangs_group_of(c, g);
    const char *text = group != NULL ? group->list : NULL;
    bool by_group = text != NULL;
    if (!by_group && g->said.len == 0) {
        clear(c, g);
        return;
    }
    bool read = by_group && str_eq(text, g->list.text);
    uint64_t digest = read ? g->list.digest : by_group ? digest_of(text) : g->said.items[0].digest;
    bool agreed = by_group
                      ? g->said.len == 0 || (g->said.len == 1 && g->said.items[0].digest == digest)
                      : g->said.len == 1 && g->silent == 0;
    if (g->list.text != NULL && (read || !by_group) && digest == g->list.digest &&
        agreed == g->list.agreed)
        return;
    clear(c, g);
    if (!by_group)
        text = text_with(g, digest);
    c->lists_looked++;
    g->list.text = mem_strdup(text);
    g->list.digest = digest;
    g->list.agreed = agreed;
    arena_init(&g->list.arena, 0);
    if (!agreed || gang_read_list(text, gangs_name(g), &g->list.arena, &g->list.names, &g->list.len,
                                  NULL) < 0) {
        g->list.names = NULL;
        g->list.len = 0;
    }
    enter(c, g);
}

static void gang_deinit(struct cluster *c, struct gang *g)
{
    clear(c, g);
    vec_deinit(&g->said);
}

void gangs_bundle_leave(struct cluster *c, struct gang *g, const struct cluster_hooks *hooks)
{
    gang_deinit(c, g);
    if (gangs_bundle_is_named(c, g))
        tell_all(c, g, hooks);
}

void gangs_bundle_deinit(struct cluster *c)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&c->gangs, &i, &key, &value);)
        gang_deinit(c, value);
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
    const struct cluster_pod *says = first_with(g, SUCH_ANY, 0);
    const struct cluster_pod *other =
        first_with(g, SUCH_OTHER, by_group ? g->list.digest : says->said.list_digest);
    const struct cluster_pod *none = first_with(g, SUCH_NONE, 0);
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
    bool by_group;
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
                text_of(c, g, &by_group), name, LIST_SHOWN, text_of(c, other, &by_group),
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
