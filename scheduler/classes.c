// SPDX-License-Identifier: Apache-2.0
#include "scheduler/classes.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "scheduler/class_key.h"
#include "scheduler/pipeline.h"

struct classes *classes_new(void)
{
    struct classes *cs = mem_new(struct classes, 1);
    map_init(&cs->by_text);
    arena_init(&cs->scratch, 0);
    strbuf_init(&cs->text);
    cs->budget = CLASSES_BUDGET;
    return cs;
}

/* ---- which classes there are ---- */

static void unlink_class(struct classes *cs, struct class *k)
{
    *(k->newer != NULL ? &k->newer->older : &cs->newest) = k->older;
    *(k->older != NULL ? &k->older->newer : &cs->oldest) = k->newer;
    k->newer = k->older = NULL;
}

static void link_newest(struct classes *cs, struct class *k)
{
    k->older = cs->newest;
    *(cs->newest != NULL ? &cs->newest->newer : &cs->oldest) = k;
    cs->newest = k;
}

static void set_bytes(struct classes *cs, struct class *k, size_t bytes)
{
    cs->bytes += bytes - k->bytes;
    k->bytes = bytes;
}

static void class_free(struct classes *cs, struct class *k)
{
    unlink_class(cs, k);
    map_remove(&cs->by_text, k->text);
    cs->slots.items[k->slot] = NULL;
    set_bytes(cs, k, 0);
    arena_deinit(&k->refused_arena);
    free(k->memory);
    free(k->text);
    free(k);
}

void classes_free(struct classes *cs)
{
    if (cs == NULL)
        return;
    while (cs->newest != NULL)
        class_free(cs, cs->newest);
    map_deinit(&cs->by_text);
    vec_deinit(&cs->slots);
    arena_deinit(&cs->scratch);
    strbuf_deinit(&cs->text);
    free(cs);
}

static void add_plugin(const struct plugin **list, const struct plugin *p)
{
    size_t n = 0;
    while (list[n] != NULL)
        n++;
    assert(n + 1 < CLASSES_PLUGINS_MAX);
    list[n] = p;
}

/* A plugin may filter by what is held and score by the Node alone: it is in both lists then. */
static void choose_plugins(struct class *k, const struct cluster_pod *cp)
{
    for (const struct plugin *const *at = pipeline_plugins; *at != NULL; at++) {
        const struct plugin *p = *at;
        if (p->applies != NULL && !p->applies(cp))
            continue;
        if ((p->filter != NULL && p->depends == PLUGIN_NODE) ||
            (p->score != NULL && p->score_depends == PLUGIN_NODE))
            add_plugin(k->fixed, p);
        if ((p->filter != NULL && p->depends == PLUGIN_HELD) ||
            (p->score != NULL && p->score_depends == PLUGIN_HELD))
            add_plugin(k->held, p);
    }
}

static uint32_t free_slot(struct classes *cs)
{
    for (size_t i = 0; i < cs->slots.len; i++)
        if (cs->slots.items[i] == NULL)
            return (uint32_t)i;
    vec_push(&cs->slots, NULL);
    return (uint32_t)(cs->slots.len - 1);
}

static struct class *class_new(struct classes *cs, const struct cluster_pod *cp)
{
    struct class *k = mem_new(struct class, 1);
    k->text = mem_strdup(strbuf_str(&cs->text));
    k->serial = ++cs->serials;
    k->slot = free_slot(cs);
    cs->slots.items[k->slot] = k;
    arena_init(&k->refused_arena, 0);
    choose_plugins(k, cp);
    map_put(&cs->by_text, k->text, k);
    link_newest(cs, k);
    set_bytes(cs, k, sizeof *k + cs->text.len);
    cs->made++;
    return k;
}

static struct class *find_or_make(struct classes *cs, struct cluster_pod *cp)
{
    if (cp->class_serial != 0) {
        struct class *k = cs->slots.items[cp->class_slot];
        if (k != NULL && k->serial == cp->class_serial)
            return k;
    }
    strbuf_reset(&cs->text);
    class_key_print(cp, &cs->text);
    struct class *k = map_get(&cs->by_text, strbuf_str(&cs->text));
    if (k == NULL)
        k = class_new(cs, cp);
    cp->class_slot = k->slot;
    cp->class_serial = k->serial;
    return k;
}

/* Never the one in use, which is the newest. */
static void keep_budget(struct classes *cs)
{
    while (cs->bytes > cs->budget && cs->oldest != cs->newest)
        class_free(cs, cs->oldest);
}

/* ---- one node ---- */

static int32_t rate_fixed(const struct plugin_ask *ask, const struct cluster_node *node,
                          struct arena *a)
{
    int64_t sum = 0;
    for (const struct plugin *const *p = ask->class->fixed; *p != NULL; p++) {
        if ((*p)->filter != NULL && (*p)->depends == PLUGIN_NODE &&
            !(*p)->filter(ask, node, a, NULL))
            return TREE_NO;
        if ((*p)->score != NULL && (*p)->score_depends == PLUGIN_NODE)
            sum += (*p)->score(ask, node) * (*p)->weight;
    }
    return (int32_t)sum;
}

static int32_t rate(const struct plugin_ask *ask, const struct table_row *row, int32_t fixed,
                    struct arena *a)
{
    if (fixed == TREE_NO)
        return TREE_NO;
    int64_t sum = fixed;
    for (const struct plugin *const *p = ask->class->held; *p != NULL; p++) {
        if ((*p)->rate != NULL) {
            int32_t score = (*p)->rate(ask, row);
            if (score == TREE_NO)
                return TREE_NO;
            sum += score * (*p)->weight;
            continue;
        }
        if ((*p)->filter != NULL && (*p)->depends == PLUGIN_HELD &&
            !(*p)->filter(ask, row->node, a, NULL))
            return TREE_NO;
        if ((*p)->score != NULL && (*p)->score_depends == PLUGIN_HELD)
            sum += (*p)->score(ask, row->node) * (*p)->weight;
    }
    return (int32_t)sum;
}

/* ---- all nodes, and those that changed ---- */

static void resize(struct classes *cs, struct class *k, uint32_t len)
{
    size_t scores = ((size_t)len + TREE_FAN - 1) / TREE_FAN * TREE_FAN;
    size_t bytes = (scores + tree_size(len)) * sizeof *k->memory;
    free(k->memory);
    k->memory = aligned_alloc(64, bytes);
    if (k->memory == NULL)
        abort();
    k->fixed_score = k->memory;
    tree_init(&k->tree, len, k->memory + scores);
    set_bytes(cs, k, sizeof *k + strlen(k->text) + bytes);
}

static void rebuild(struct classes *cs, struct class *k, const struct plugin_ask *ask)
{
    const struct table *t = &ask->cluster->table;
    if (k->memory == NULL || k->tree.len != t->len)
        resize(cs, k, t->len);
    for (uint32_t i = 0; i < t->len; i++) {
        const struct table_row *row = &t->rows[i];
        k->fixed_score[i] = rate_fixed(ask, row->node, &cs->scratch);
        k->tree.level[0][i] = rate(ask, row, k->fixed_score[i], &cs->scratch);
    }
    tree_build(&k->tree);
    k->generation = t->generation;
    k->seen = t->logged;
    cs->rebuilt++;
    cs->asked += t->len;
}

/* Places come in no order: what the next but some will need is asked for now. */
static void fetch_ahead(const struct table *t, const struct class *k)
{
    enum { AHEAD = 6 };
    if (k->seen + AHEAD >= t->logged)
        return;
    uint32_t next = t->log[(k->seen + AHEAD) & (t->log_len - 1)] & ~TABLE_OBJECT;
    __builtin_prefetch(&t->rows[next]);
    __builtin_prefetch(&k->fixed_score[next]);
    __builtin_prefetch(&k->tree.level[0][next], 1);
    __builtin_prefetch(&k->tree.level[1][next / TREE_FAN], 1);
}

static void catch_up(struct classes *cs, struct class *k, const struct plugin_ask *ask)
{
    const struct table *t = &ask->cluster->table;
    uint32_t place;
    bool object;
    while (table_next(t, &k->seen, &place, &object)) {
        const struct table_row *row = &t->rows[place];
        fetch_ahead(t, k);
        if (object)
            k->fixed_score[place] = rate_fixed(ask, row->node, &cs->scratch);
        tree_set(&k->tree, place, rate(ask, row, k->fixed_score[place], &cs->scratch));
        cs->asked++;
    }
}

struct class *classes_ask(struct cluster *c, struct cluster_pod *cp)
{
    struct classes *cs = c->classes;
    struct class *k = find_or_make(cs, cp);
    struct plugin_ask ask = {.cluster = c, .pod = cp, .class = k};
    if (k != cs->newest) {
        unlink_class(cs, k);
        link_newest(cs, k);
    }
    table_refresh(&c->table, &c->nodes);
    if (table_can_follow(&c->table, k->generation, k->seen))
        catch_up(cs, k, &ask);
    else
        rebuild(cs, k, &ask);
    arena_reset(&cs->scratch);
    keep_budget(cs);
    return k;
}

struct cluster_node *classes_best(const struct cluster *c, const struct class *k)
{
    return tree_best(&k->tree) == TREE_NO ? NULL : c->table.rows[tree_winner(&k->tree)].node;
}

/* ---- refusals ---- */

const struct reasons *classes_refusal(const struct cluster *c, const struct class *k,
                                      uint32_t *wakes)
{
    if (k->refused == NULL || k->refused_at != c->table.logged ||
        k->refused_generation != c->table.generation)
        return NULL;
    *wakes = k->refused_wakes;
    return k->refused;
}

void classes_note_refusal(const struct cluster *c, struct class *k, const struct reasons *why,
                          uint32_t wakes)
{
    arena_reset(&k->refused_arena);
    k->refused = arena_new(&k->refused_arena, struct reasons, 1);
    reasons_copy(k->refused, why, &k->refused_arena);
    k->refused_wakes = wakes;
    k->refused_at = c->table.logged;
    k->refused_generation = c->table.generation;
}
