// SPDX-License-Identifier: Apache-2.0
/*
 * Lists are unordered, so that an element is removed at once: the last one takes its place. Who
 * walks a list in slices walks it downwards: whatever is removed or added meanwhile, each element
 * that was there at the beginning is still seen.
 */
#include "scheduler/cache/policies_index.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "scheduler/model/model.h"

struct policies_space *policies_index_find(const struct policies *ps, const char *ns)
{
    return map_get(&ps->spaces_by_name, ns);
}

struct policies_space *policies_index_space(struct policies *ps, const char *ns)
{
    struct policies_space *space = policies_index_find(ps, ns);
    if (space != NULL)
        return space;
    space = mem_new(struct policies_space, 1);
    space->ns = mem_strdup(ns);
    map_init(&space->pairs);
    map_init(&space->queued);
    (void)map_put(&ps->spaces_by_name, space->ns, space);
    space->place = ps->spaces.len;
    vec_push(&ps->spaces, space);
    return space;
}

static void space_free(struct policies_space *space)
{
    vec_deinit(&space->pods);
    vec_deinit(&space->every);
    vec_deinit(&space->stale);
    vec_deinit(&space->changes);
    map_deinit(&space->pairs);
    map_deinit(&space->queued);
    free(space->ns);
    free(space);
}

void policies_index_drop_if_unused(struct policies *ps, struct policies_space *space)
{
    if (space->pods.len > 0 || space->entries > 0 || space->is_busy)
        return;
    (void)map_remove(&ps->spaces_by_name, space->ns);
    vec_remove_swap(&ps->spaces, space->place);
    if (space->place < ps->spaces.len)
        ps->spaces.items[space->place]->place = space->place;
    space_free(space);
}

/* ---- labels ---- */

static struct policies_pair *pair_of(struct policies_space *space, const struct label *l)
{
    AUTO_STRBUF key = {0};
    strbuf_addf(&key, "%s\n%s", l->key, str_or_empty(l->value));
    struct policies_pair *pair = map_get(&space->pairs, strbuf_str(&key));
    if (pair != NULL)
        return pair;
    pair = mem_new(struct policies_pair, 1);
    pair->key = mem_strdup(strbuf_str(&key));
    (void)map_put(&space->pairs, pair->key, pair);
    return pair;
}

static void pair_free(struct policies_pair *pair)
{
    vec_deinit(&pair->pods);
    vec_deinit(&pair->entries);
    free(pair->key);
    free(pair);
}

static void drop_pair_if_unused(struct policies_space *space, struct policies_pair *pair)
{
    if (pair->pods.len > 0 || pair->selectors > 0)
        return;
    (void)map_remove(&space->pairs, pair->key);
    pair_free(pair);
}

static bool is_pair_of(const struct policies_pair *pair, const struct label *l)
{
    size_t n = strlen(l->key);
    return strncmp(pair->key, l->key, n) == 0 && pair->key[n] == '\n' &&
           str_eq(pair->key + n + 1, str_or_empty(l->value));
}

void policies_index_mark(struct policies_space *space, struct cluster_pod *cp)
{
    struct policy_membership *s = &cp->membership;
    const struct labels *labels = &cp->pod->labels;
    if (s->marks != NULL || labels->len == 0)
        return;
    s->marks = mem_new(struct policies_mark, labels->len);
    s->marks_len = (uint32_t)labels->len;
    for (uint32_t i = 0; i < s->marks_len; i++) {
        struct policies_pair *pair = pair_of(space, &labels->items[i]);
        struct policies_posting one = {.pod = cp, .mark = i};
        s->marks[i] = (struct policies_mark){.pair = pair, .place = (uint32_t)pair->pods.len};
        vec_push(&pair->pods, one);
    }
}

static void unmark(struct policies_space *space, struct cluster_pod *cp)
{
    struct policy_membership *s = &cp->membership;
    for (uint32_t i = 0; i < s->marks_len; i++) {
        struct policies_pair *pair = s->marks[i].pair;
        uint32_t place = s->marks[i].place;
        vec_remove_swap(&pair->pods, place);
        if (place < pair->pods.len) {
            const struct policies_posting *moved = &pair->pods.items[place];
            moved->pod->membership.marks[moved->mark].place = place;
        }
        drop_pair_if_unused(space, pair);
    }
    free(s->marks);
    s->marks = NULL;
    s->marks_len = 0;
}

void policies_index_enter(struct policies *ps, struct cluster_pod *cp)
{
    struct policy_membership *s = &cp->membership;
    s->space = policies_index_space(ps, str_or_empty(cp->pod->ns));
    s->space_place = s->space->pods.len;
    vec_push(&s->space->pods, cp);
    if (s->space->is_indexed)
        policies_index_mark(s->space, cp);
}

void policies_index_follow(struct cluster_pod *cp)
{
    struct policy_membership *s = &cp->membership;
    const struct labels *labels = &cp->pod->labels;
    bool same = s->marks_len == labels->len;
    if (!s->space->is_indexed)
        return;
    for (uint32_t i = 0; same && i < s->marks_len; i++)
        same = is_pair_of(s->marks[i].pair, &labels->items[i]);
    if (same)
        return;
    unmark(s->space, cp);
    policies_index_mark(s->space, cp);
}

void policies_index_leave(struct policies *ps, struct cluster_pod *cp)
{
    struct policy_membership *s = &cp->membership;
    struct policies_space *space = s->space;
    unmark(space, cp);
    vec_remove_swap(&space->pods, s->space_place);
    if (s->space_place < space->pods.len)
        space->pods.items[s->space_place]->membership.space_place = s->space_place;
    s->space = NULL;
    policies_index_drop_if_unused(ps, space);
}

/* ---- policies ---- */

/* Where the entry is in the list, or would be inserted. */
static size_t place_of(const struct policies_entries *list, const struct policies_entry *e)
{
    size_t from = 0, to = list->len;
    while (from < to) {
        size_t mid = from + (to - from) / 2;
        if (policy_order(list->items[mid]->policy, e->policy) < 0)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

static void insert(struct policies_entries *list, struct policies_entry *e)
{
    size_t at = place_of(list, e);
    vec_push(list, e);
    memmove(&list->items[at + 1], &list->items[at], (list->len - 1 - at) * sizeof list->items[0]);
    list->items[at] = e;
}

static void take_out(struct policies_entries *list, const struct policies_entry *e)
{
    size_t at = place_of(list, e);
    memmove(&list->items[at], &list->items[at + 1], (--list->len - at) * sizeof list->items[0]);
}

void policies_index_add(struct policies_space *space, struct policies_entry *e)
{
    const struct labels *selector = &e->policy->selector;
    e->space = space;
    space->entries++;
    e->pairs_len = selector->len;
    e->pairs = mem_new(struct policies_pair *, selector->len);
    e->found_by = NULL;
    for (size_t i = 0; i < selector->len; i++) {
        struct policies_pair *pair = pair_of(space, &selector->items[i]);
        pair->selectors++;
        e->pairs[i] = pair;
        if (e->found_by == NULL || pair->entries.len < e->found_by->entries.len)
            e->found_by = pair;
    }
    insert(e->found_by != NULL ? &e->found_by->entries : &space->every, e);
}

void policies_index_withdraw(struct policies_entry *e)
{
    struct policies_space *space = e->space;
    if (space == NULL)
        return;
    take_out(e->found_by != NULL ? &e->found_by->entries : &space->every, e);
    for (size_t i = 0; i < e->pairs_len; i++) {
        e->pairs[i]->selectors--;
        drop_pair_if_unused(space, e->pairs[i]);
    }
    free(e->pairs);
    e->pairs = NULL;
    e->pairs_len = 0;
    e->found_by = NULL;
    e->space = NULL;
    space->entries--;
}

static struct policies_entry *first_in(struct policies *ps, const struct policies_entries *list,
                                       const struct pod *pod, struct policies_entry *best)
{
    for (size_t i = 0; i < list->len; i++) {
        struct policies_entry *e = list->items[i];
        if (best != NULL && policy_order(best->policy, e->policy) <= 0)
            break;
        ps->looked++;
        if (policy_selects(e->policy, pod))
            return e;
    }
    return best;
}

struct policies_entry *policies_index_entry(struct policies *ps, const struct cluster_pod *cp)
{
    const struct policy_membership *s = &cp->membership;
    struct policies_entry *best = first_in(ps, &s->space->every, cp->pod, NULL);
    for (uint32_t i = 0; i < s->marks_len; i++)
        best = first_in(ps, &s->marks[i].pair->entries, cp->pod, best);
    return best;
}

/* Keeps the `most` oldest, sorted. */
static size_t add_oldest(struct policies *ps, const struct policies_entries *list,
                         const struct pod *pod, size_t most, struct policies_entry **out,
                         size_t len)
{
    for (size_t i = 0; i < list->len; i++) {
        struct policies_entry *e = list->items[i];
        size_t at = len;
        if (len == most && policy_order(out[len - 1]->policy, e->policy) <= 0)
            break;
        ps->looked++;
        if (!policy_selects(e->policy, pod))
            continue;
        while (at > 0 && policy_order(e->policy, out[at - 1]->policy) < 0)
            at--;
        if (at < len && out[at] == e) /* by a label that the pod has twice */
            continue;
        len += len < most;
        memmove(&out[at + 1], &out[at], (len - 1 - at) * sizeof(struct policies_entry *));
        out[at] = e;
    }
    return len;
}

size_t policies_index_all(struct policies *ps, const struct cluster_pod *cp, size_t most,
                          struct policies_entry **out)
{
    const struct policy_membership *s = &cp->membership;
    size_t len = s->space == NULL ? 0 : add_oldest(ps, &s->space->every, cp->pod, most, out, 0);
    for (uint32_t i = 0; i < s->marks_len; i++)
        len = add_oldest(ps, &s->marks[i].pair->entries, cp->pod, most, out, len);
    return len;
}

const struct policies_pair *policies_index_rarest(const struct policies_entry *e)
{
    const struct policies_pair *rarest = NULL;
    for (size_t i = 0; i < e->pairs_len; i++)
        if (rarest == NULL || e->pairs[i]->pods.len < rarest->pods.len)
            rarest = e->pairs[i];
    return rarest;
}

/* ---- walks ---- */

struct cluster_pod *policies_walk_next(const struct cluster *c, struct policies_walk *w)
{
    const struct policies *ps = c->policies;
    if (!w->begun)
        *w = (struct policies_walk){.begun = true, .space = ps->spaces.len};
    for (;;) {
        size_t here = w->space < ps->spaces.len ? ps->spaces.items[w->space]->pods.len : 0;
        if (w->pod > here)
            w->pod = here;
        if (w->pod > 0)
            return ps->spaces.items[w->space]->pods.items[--w->pod];
        if (w->space > ps->spaces.len)
            w->space = ps->spaces.len;
        if (w->space == 0)
            return NULL;
        w->pod = ps->spaces.items[--w->space]->pods.len;
    }
}

void policies_index_deinit(struct policies *ps)
{
    const char *key;
    void *value;
    for (size_t i = 0; i < ps->spaces.len; i++) {
        struct policies_space *space = ps->spaces.items[i];
        for (size_t k = 0; map_next(&space->pairs, &k, &key, &value);)
            pair_free(value);
        space_free(space);
    }
    vec_deinit(&ps->spaces);
    map_deinit(&ps->spaces_by_name);
}
