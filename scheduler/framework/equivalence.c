// SPDX-License-Identifier: Apache-2.0
#include "scheduler/framework/equivalence.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "scheduler/framework/class_key.h"
#include "scheduler/framework/plugin.h"

/* The class of a pod, and the versions that this depends on. */
struct found {
    uint64_t serial; /* of the class; 0: none yet */
    uint64_t beside; /* key_version */
    uint32_t slot;
    uint32_t version; /* of the pod */
};

struct equivalence *equivalence_new(void)
{
    struct equivalence *cs = mem_new(struct equivalence, 1);
    map_init(&cs->by_text);
    arena_init(&cs->scratch, 0);
    strbuf_init(&cs->text);
    ids_table_init(&cs->found, sizeof(struct found), NULL);
    cs->budget = EQUIVALENCE_BUDGET;
    while (plugin_table[cs->plugins] != NULL)
        cs->plugins++;
    cs->keyed = mem_new(const struct plugin *, cs->plugins + 1);
    for (size_t i = 0, n = 0; i < cs->plugins; i++)
        if (plugin_table[i]->key_version != NULL)
            cs->keyed[n++] = plugin_table[i];
    return cs;
}

static void unlink_class(struct equivalence *cs, struct pod_class *k)
{
    *(k->newer != NULL ? &k->newer->older : &cs->newest) = k->older;
    *(k->older != NULL ? &k->older->newer : &cs->oldest) = k->newer;
    k->newer = k->older = NULL;
}

static void link_newest(struct equivalence *cs, struct pod_class *k)
{
    k->older = cs->newest;
    *(cs->newest != NULL ? &cs->newest->newer : &cs->oldest) = k;
    cs->newest = k;
}

static void set_bytes(struct equivalence *cs, struct pod_class *k, size_t bytes)
{
    cs->bytes += bytes - k->bytes;
    k->bytes = bytes;
}

static void class_free(struct equivalence *cs, struct pod_class *k)
{
    unlink_class(cs, k);
    map_remove(&cs->by_text, k->text);
    cs->slots.items[k->slot] = NULL;
    vec_push(&cs->free_slots, k->slot);
    set_bytes(cs, k, 0);
    if (k->refusals != NULL)
        refusals_deinit(k->refusals);
    free(k->refusals);
    domains_free(k->domains);
    free(k->groups);
    free(k->rank_of);
    free(k->place_of);
    free(k->memory);
    free(k->vain);
    for (struct class_facts *f = k->facts; f->of != NULL; f++)
        free(f->data);
    free(k->facts);
    free(k->fixed);
    free(k->text);
    free(k);
}

void equivalence_free(struct equivalence *cs)
{
    if (cs == NULL)
        return;
    while (cs->newest != NULL)
        class_free(cs, cs->newest);
    map_deinit(&cs->by_text);
    vec_deinit(&cs->slots);
    vec_deinit(&cs->free_slots);
    ids_table_deinit(&cs->found);
    arena_deinit(&cs->scratch);
    strbuf_deinit(&cs->text);
    free(cs->keyed);
    free(cs);
}

/* A plugin that filters by held resources and scores by the Node alone is in both lists. */
static void choose_plugins(struct equivalence *cs, struct pod_class *k,
                           const struct plugin_ask *ask)
{
    size_t fixed = 0, held = 0, facts = 0;
    k->fixed = mem_new(const struct plugin *, 2 * (cs->plugins + 1));
    k->held = k->fixed + cs->plugins + 1;
    k->facts = mem_new(struct class_facts, cs->plugins + 1);
    for (const struct plugin *const *at = plugin_table; *at != NULL; at++) {
        const struct plugin *p = *at;
        if (p->applies != NULL && !p->applies(ask->pod))
            continue;
        k->versioned |= p->version != NULL;
        k->entangled |= p->entangles;
        if ((p->filter != NULL && p->depends == PLUGIN_NODE) ||
            (p->score != NULL && p->score_depends == PLUGIN_NODE))
            k->fixed[fixed++] = p;
        if ((p->filter != NULL && p->depends == PLUGIN_HELD) ||
            (p->score != NULL && p->score_depends == PLUGIN_HELD))
            k->held[held++] = p;
        if (p->find_facts == NULL)
            continue;
        void *data = mem_new(char, p->facts_size);
        p->find_facts(ask, data);
        k->facts[facts++] = (struct class_facts){.of = p, .data = data};
    }
}

/* Of the class without what resize allocates. */
static size_t own_bytes(const struct equivalence *cs, const struct pod_class *k)
{
    return sizeof *k + strlen(k->text) +
           (cs->plugins + 1) * (2 * sizeof *k->fixed + sizeof *k->facts);
}

static uint32_t free_slot(struct equivalence *cs)
{
    if (cs->free_slots.len > 0)
        return cs->free_slots.items[--cs->free_slots.len];
    vec_push(&cs->slots, NULL);
    return (uint32_t)(cs->slots.len - 1);
}

static struct pod_class *class_new(const struct pipeline *p, struct cluster_pod *cp,
                                   const struct plugin_ask *ask)
{
    struct equivalence *cs = p->classes;
    struct pod_class *k = mem_new(struct pod_class, 1);
    k->text = mem_strdup(strbuf_str(&cs->text));
    k->serial = ++cs->serials;
    k->slot = free_slot(cs);
    cs->slots.items[k->slot] = k;
    choose_plugins(cs, k, ask);
    k->domains = domains_new(p->cluster, cp);
    map_put(&cs->by_text, k->text, k);
    link_newest(cs, k);
    set_bytes(cs, k, own_bytes(cs, k));
    cs->made++;
    return k;
}

/* Of everything besides the pod that decides its class. */
static uint64_t key_version(const struct equivalence *cs, const struct plugin_ask *ask)
{
    const uint64_t odd = 0x9e3779b97f4a7c15; /* spreads each part over all bits */
    uint64_t all = 0;
    for (const struct plugin *const *p = cs->keyed; *p != NULL; p++)
        all = all * odd + (*p)->key_version(ask);
    return all * odd + (uint64_t)ask->packing * 4 + (uint64_t)ask->pool;
}

static struct pod_class *find_or_make(const struct pipeline *p, struct cluster_pod *cp)
{
    struct equivalence *cs = p->classes;
    struct plugin_ask ask = plugin_question(p, cp, NULL);
    struct found *at = ids_at(&cs->found, cp->id);
    if (at->serial != 0 && at->version == cp->version && at->beside == key_version(cs, &ask)) {
        struct pod_class *k = cs->slots.items[at->slot];
        if (k != NULL && k->serial == at->serial)
            return k;
    }
    (void)pod_counters_traits_of(p->cluster, cp); /* keys and rules read cp->traits */
    strbuf_reset(&cs->text);
    class_key_print(&ask, &cs->text);
    struct pod_class *k = map_get(&cs->by_text, strbuf_str(&cs->text));
    if (k == NULL)
        k = class_new(p, cp, &ask);
    *at = (struct found){.serial = k->serial,
                         .beside = key_version(cs, &ask), /* traits may have made counters */
                         .slot = k->slot,
                         .version = cp->version};
    return k;
}

/* Never frees the newest class, which is in use. */
static void keep_budget(struct equivalence *cs)
{
    while (cs->bytes > cs->budget && cs->oldest != cs->newest)
        class_free(cs, cs->oldest);
}

static int32_t rate_fixed(const struct plugin_ask *ask, const struct cluster_node *node,
                          struct arena *a)
{
    int64_t sum = 0;
    for (const struct plugin *const *p = ask->class->fixed; *p != NULL; p++) {
        if ((*p)->filter != NULL && (*p)->depends == PLUGIN_NODE &&
            !plugin_filter(*p, ask, node, a, NULL))
            return SCORE_TREE_NO;
        if ((*p)->score != NULL && (*p)->score_depends == PLUGIN_NODE)
            sum += (*p)->score(ask, node) * (*p)->weight;
    }
    return (int32_t)sum;
}

/* row: of that place. The callers loop over the table, so that it is not looked up here again. */
static int32_t rate(const struct plugin_ask *ask, const struct node_table_row *row, uint32_t place,
                    struct arena *a)
{
    const struct domains *d = ask->class->domains;
    int32_t fixed = ask->class->fixed_score[place];
    int32_t local = fixed == SCORE_TREE_NO || d == NULL ? 0 : domains_rate(d, row, place);
    if (fixed == SCORE_TREE_NO || local == SCORE_TREE_NO)
        return SCORE_TREE_NO;
    int64_t sum = fixed + local;
    for (const struct plugin *const *p = ask->class->held; *p != NULL; p++) {
        if ((*p)->rate != NULL) {
            int32_t score = (*p)->rate(ask, row);
            if (score == SCORE_TREE_NO)
                return SCORE_TREE_NO;
            sum += score * (*p)->weight;
            continue;
        }
        if ((*p)->filter != NULL && (*p)->depends == PLUGIN_HELD &&
            !plugin_filter(*p, ask, row->node, a, NULL))
            return SCORE_TREE_NO;
        if ((*p)->score != NULL && (*p)->score_depends == PLUGIN_HELD)
            sum += (*p)->score(ask, row->node) * (*p)->weight;
    }
    return (int32_t)sum;
}

static uint64_t sum_versions(const struct plugin *const *list, const struct cluster *c)
{
    uint64_t sum = 0;
    for (; *list != NULL; list++)
        sum += (*list)->version != NULL ? (*list)->version(c) : 0;
    return sum;
}

static uint64_t version_of(const struct pod_class *k, const struct cluster *c)
{
    return k->versioned ? sum_versions(k->fixed, c) + sum_versions(k->held, c) : 0;
}

static int32_t *leaf(const struct pod_class *k, uint32_t place)
{
    if (k->domains == NULL)
        return &k->groups[0].tree.level[0][place];
    return &k->groups[k->domains->group_of[place]].tree.level[0][k->rank_of[place]];
}

static void set_leaf(struct pod_class *k, uint32_t place, int32_t score)
{
    if (k->domains == NULL)
        score_tree_set(&k->groups[0].tree, place, score);
    else
        score_tree_set(&k->groups[k->domains->group_of[place]].tree, k->rank_of[place], score);
}

static void rank_places(struct pod_class *k, uint32_t len)
{
    const struct domains *d = k->domains;
    free(k->rank_of);
    free(k->place_of);
    k->rank_of = mem_new(uint32_t, len);
    k->place_of = mem_new(uint32_t, len);
    for (uint32_t i = 0; i < len; i++)
        k->rank_of[i] = k->groups[d->group_of[i]].tree.len++;
    for (uint32_t g = 1; g < k->groups_len; g++)
        k->groups[g].first = k->groups[g - 1].first + k->groups[g - 1].tree.len;
    for (uint32_t i = 0; i < len; i++)
        k->place_of[k->groups[d->group_of[i]].first + k->rank_of[i]] = i;
}

/* Allocates for len nodes, in the current groups of the domains. */
static void resize(struct equivalence *cs, struct pod_class *k, uint32_t len)
{
    size_t scores = ((size_t)len + SCORE_TREE_FAN - 1) / SCORE_TREE_FAN * SCORE_TREE_FAN,
           all = scores;
    free(k->groups);
    free(k->memory);
    k->groups_len = k->domains != NULL ? k->domains->groups : 1;
    k->groups = mem_new(struct class_group, k->groups_len);
    if (k->domains != NULL)
        rank_places(k, len);
    else
        k->groups[0].tree.len = len;
    for (uint32_t g = 0; g < k->groups_len; g++)
        all += score_tree_size(k->groups[g].tree.len);
    all = all > 0 ? all : SCORE_TREE_FAN;
    k->memory = aligned_alloc(64, all * sizeof *k->memory);
    if (k->memory == NULL)
        abort();
    k->fixed_score = k->memory;
    int32_t *at = k->memory + scores;
    for (uint32_t g = 0; g < k->groups_len; g++) {
        score_tree_init(&k->groups[g].tree, k->groups[g].tree.len, at);
        at += score_tree_size(k->groups[g].tree.len);
    }
    size_t domains = k->domains != NULL ? k->domains->bytes + 2 * len * sizeof *k->rank_of : 0;
    set_bytes(cs, k,
              own_bytes(cs, k) + all * sizeof *k->memory + k->groups_len * sizeof *k->groups +
                  domains + (k->refusals != NULL ? refusals_bytes(k->refusals) : 0));
}

static void rate_all(struct equivalence *cs, struct pod_class *k, const struct plugin_ask *ask)
{
    const struct node_table *t = ask->cluster->table;
    for (uint32_t i = 0; i < t->len; i++)
        *leaf(k, i) = rate(ask, &t->rows[i], i, &cs->scratch);
    for (uint32_t g = 0; g < k->groups_len; g++)
        score_tree_build(&k->groups[g].tree);
    cs->asked += t->len;
}

static void rebuild(struct equivalence *cs, struct pod_class *k, const struct plugin_ask *ask)
{
    const struct node_table *t = ask->cluster->table;
    if (k->domains != NULL)
        domains_rebuild(k->domains, ask, ask->cluster->topologies);
    if (k->memory == NULL || k->domains != NULL || k->groups[0].tree.len != t->len)
        resize(cs, k, t->len);
    for (uint32_t i = 0; i < t->len; i++)
        k->fixed_score[i] = rate_fixed(ask, t->rows[i].node, &cs->scratch);
    rate_all(cs, k, ask);
    k->generation = t->generation;
    k->seen = t->logged;
    k->own_place = NODE_TABLE_NOWHERE;
    free(k->vain);
    k->vain = NULL;
    k->version = version_of(k, ask->cluster);
    if (k->refusals != NULL)
        refusals_forget(k->refusals);
    cs->rebuilt++;
}

/* The log visits nodes in random order, so prefetch. */
static void fetch_ahead(const struct node_table *t, const struct pod_class *k)
{
    enum { AHEAD = 6 };
    if (k->seen + AHEAD >= t->logged)
        return;
    uint32_t next = t->log[(k->seen + AHEAD) & (t->log_len - 1)] & ~NODE_TABLE_OBJECT;
    __builtin_prefetch(&t->rows[next]);
    __builtin_prefetch(&k->fixed_score[next]);
    __builtin_prefetch(leaf(k, next), 1);
}

static void forget_vain(struct pod_class *k, uint32_t place)
{
    if (k->vain != NULL)
        k->vain[place / CLASS_VAIN_BITS] &= ~(UINT64_C(1) << place % CLASS_VAIN_BITS);
}

static void catch_up(struct equivalence *cs, struct pod_class *k, const struct plugin_ask *ask)
{
    const struct node_table *t = ask->cluster->table;
    uint32_t place;
    bool object;
    while (node_table_next(t, &k->seen, &place, &object)) {
        fetch_ahead(t, k);
        if (object) {
            k->fixed_score[place] = rate_fixed(ask, t->rows[place].node, &cs->scratch);
            if (k->domains != NULL)
                domains_node_changed(k->domains, ask, place);
        } else if (k->domains != NULL) {
            domains_follow(k->domains, ask, place);
        }
        forget_vain(k, place);
        set_leaf(k, place, rate(ask, &t->rows[place], place, &cs->scratch));
        cs->asked++;
    }
    if (k->domains != NULL && domains_settle(k->domains))
        rate_all(cs, k, ask);
}

static int32_t own_place_of(const struct plugin_ask *ask)
{
    const struct cluster_pod *cp = ask->pod;
    if (cp->nominated == NULL || (cp->gang != NULL && cp->gang->form != GANG_NONE))
        return NODE_TABLE_NOWHERE; /* nominated members of a gang are a class of their own */
    const struct cluster_node *on = cluster_find_node(ask->cluster, cp->nominated);
    return on != NULL ? on->place : NODE_TABLE_NOWHERE;
}

static void rate_own(struct equivalence *cs, struct pod_class *k, const struct plugin_ask *ask)
{
    const struct node_table *t = ask->cluster->table;
    int32_t before = k->own_place;
    k->own_place = own_place_of(ask);
    const int32_t places[] = {before, k->own_place};
    for (size_t i = before == k->own_place; i < 2; i++)
        if (places[i] != NODE_TABLE_NOWHERE) {
            uint32_t place = (uint32_t)places[i];
            forget_vain(k, place);
            set_leaf(k, place, rate(ask, &t->rows[place], place, &cs->scratch));
            cs->asked++;
        }
}

static bool can_follow(const struct pod_class *k, const struct cluster *c)
{
    return node_table_can_follow(c->table, k->generation, k->seen) &&
           k->version == version_of(k, c) && (k->domains == NULL || domains_is_current(k->domains));
}

struct pod_class *equivalence_ask(const struct pipeline *p, struct cluster_pod *cp)
{
    struct equivalence *cs = p->classes;
    struct cluster *c = p->cluster;
    if (pod_counters_refresh(c))
        node_table_set_stale(c->table);
    struct pod_class *k = find_or_make(p, cp);
    struct plugin_ask ask = plugin_question(p, cp, k);
    if (k != cs->newest) {
        unlink_class(cs, k);
        link_newest(cs, k);
    }
    node_table_refresh(c->table, &c->nodes);
    if (can_follow(k, c))
        catch_up(cs, k, &ask);
    else
        rebuild(cs, k, &ask);
    rate_own(cs, k, &ask);
    arena_reset(&cs->scratch);
    keep_budget(cs);
    return k;
}

static bool is_open(const struct pod_class *k, uint32_t group, int32_t *points)
{
    *points = 0;
    return k->domains == NULL || domains_rate_group(k->domains, group, points);
}

struct cluster_node *equivalence_best(const struct cluster *c, const struct pod_class *k)
{
    int64_t best = 0;
    uint32_t at = UINT32_MAX;
    for (uint32_t g = 0; g < k->groups_len; g++) {
        const struct class_group *group = &k->groups[g];
        int32_t points, score = score_tree_best(&group->tree);
        if (score == SCORE_TREE_NO || !is_open(k, g, &points))
            continue;
        int64_t sum = (int64_t)score + points;
        if (at != UINT32_MAX && sum < best)
            continue;
        uint32_t rank = score_tree_winner(&group->tree);
        uint32_t place = k->place_of != NULL ? k->place_of[group->first + rank] : rank;
        if (at == UINT32_MAX || sum > best || place < at) {
            at = place;
            best = sum;
        }
    }
    return at == UINT32_MAX ? NULL : c->table->rows[at].node;
}

struct cluster_node *equivalence_best_of(const struct cluster *c, const struct pod_class *k,
                                         const uint32_t *places, size_t len)
{
    struct cluster_node *node = NULL;
    int64_t best = 0;
    for (size_t i = 0; i < len; i++) {
        int32_t score = *leaf(k, places[i]), points;
        uint32_t group = k->domains != NULL ? k->domains->group_of[places[i]] : 0;
        if (score == SCORE_TREE_NO || !is_open(k, group, &points))
            continue;
        if (node == NULL || (int64_t)score + points > best) {
            node = c->table->rows[places[i]].node;
            best = (int64_t)score + points;
        }
    }
    return node;
}

void equivalence_note_vain(struct pod_class *k, uint32_t nodes, uint32_t place)
{
    if (k->vain == NULL)
        k->vain = mem_new(uint64_t, nodes / CLASS_VAIN_BITS + 1);
    k->vain[place / CLASS_VAIN_BITS] |= UINT64_C(1) << place % CLASS_VAIN_BITS;
}

uint32_t equivalence_next(const struct pod_class *k, uint32_t from, uint32_t to)
{
    while (k->vain != NULL && from < to) {
        uint64_t left = ~k->vain[from / CLASS_VAIN_BITS] >> from % CLASS_VAIN_BITS;
        if (left != 0)
            return (uint32_t)num_min(from + (uint32_t)__builtin_ctzll(left), to);
        from += CLASS_VAIN_BITS - from % CLASS_VAIN_BITS;
    }
    return (uint32_t)num_min(from, to);
}

uint32_t equivalence_count(const struct pod_class *k)
{
    uint32_t n = 0;
    int32_t points;
    for (uint32_t g = 0; g < k->groups_len; g++) {
        const struct score_tree *t = &k->groups[g].tree;
        if (score_tree_best(t) == SCORE_TREE_NO || !is_open(k, g, &points))
            continue;
        for (uint32_t i = 0; i < t->len; i++)
            n += t->level[0][i] != SCORE_TREE_NO;
    }
    return n;
}

void equivalence_disown(struct equivalence *cs, struct pod_class *k)
{
    cs->disagreed++;
    k->generation = 0;
}

bool equivalence_tally(struct equivalence *cs, const struct plugin_ask *ask, struct pod_class *k,
                       struct arena *a, struct reasons *out, uint32_t *wakes)
{
    if (k->domains != NULL)
        return false;
    if (k->refusals == NULL) {
        k->refusals = mem_new(struct refusals, 1);
        refusals_init(k->refusals);
    }
    size_t before = refusals_bytes(k->refusals);
    bool known = refusals_tally(k->refusals, ask, k->own_place, a, out, wakes);
    set_bytes(cs, k, k->bytes + refusals_bytes(k->refusals) - before);
    return known;
}
