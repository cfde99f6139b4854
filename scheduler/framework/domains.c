// SPDX-License-Identifier: Apache-2.0
#include "scheduler/framework/domains.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/str.h"

struct builder {
    struct cluster *cluster;
    const struct pod *pod;
    struct VEC(struct domains_rule) rules;
};

static struct domains_rule *rule_add(struct builder *b, enum domains_kind kind, const char *key)
{
    struct domains_rule rule = {.kind = kind, .key = mem_strdup(key)};
    vec_push(&b->rules, rule);
    return &b->rules.items[b->rules.len - 1];
}

/* Finds or creates the rule: terms that differ only in the pods they select are one rule. */
static struct domains_rule *rule_for(struct builder *b, enum domains_kind kind, const char *key)
{
    for (size_t i = 0; i < b->rules.len; i++)
        if (b->rules.items[i].kind == kind && str_eq(b->rules.items[i].key, key))
            return &b->rules.items[i];
    return rule_add(b, kind, key);
}

static void part_add(struct domains_rule *r, struct pod_counters_counter *counter, int32_t factor)
{
    struct domains_part part = {.counter = counter, .factor = factor};
    vec_push(&r->parts, part);
}

static void add_spread(struct builder *b)
{
    for (size_t i = 0; i < b->pod->spread_len; i++) {
        const struct spread *s = &b->pod->spread[i];
        struct domains_rule *r =
            rule_add(b, s->hard ? DOMAINS_SPREAD : DOMAINS_SOFT, s->topology_key);
        r->max_skew = s->max_skew;
        r->min_domains = s->min_domains;
        r->self = spread_selects_self(s, &b->pod->labels);
        r->honor_affinity = s->honor_affinity;
        r->honor_taints = s->honor_taints;
        part_add(r, pod_counters_want_spread(b->cluster, s, b->pod->ns), 1);
    }
}

static void add_own_terms(struct builder *b)
{
    const struct podterms *t = b->pod->terms;
    if (t == NULL)
        return;
    for (size_t i = 0; i < t->affinity_len; i++)
        part_add(rule_add(b, DOMAINS_AFFINITY, t->affinity[i].topology_key),
                 pod_counters_want_matches(b->cluster, t->affinity, t->affinity_len), 1);
    for (size_t i = 0; i < t->anti_affinity_len; i++)
        part_add(rule_for(b, DOMAINS_ANTI, t->anti_affinity[i].topology_key),
                 pod_counters_want_matches(b->cluster, &t->anti_affinity[i], 1), 1);
    for (size_t i = 0; i < t->preferred_len; i++)
        part_add(rule_for(b, DOMAINS_PREFER, t->preferred[i].topology_key),
                 pod_counters_want_matches(b->cluster, &t->preferred[i], 1),
                 t->preferred[i].weight);
    for (size_t i = 0; i < t->preferred_anti_len; i++)
        part_add(rule_for(b, DOMAINS_PREFER, t->preferred_anti[i].topology_key),
                 pod_counters_want_matches(b->cluster, &t->preferred_anti[i], 1),
                 -t->preferred_anti[i].weight);
}

/* Placed pods' terms that select this pod. Required affinity counts 1, as in kube-scheduler. */
static void add_others_terms(struct builder *b, const struct pod_counters_traits *t)
{
    for (size_t i = 0; t != NULL && i < t->against.len; i++) {
        struct pod_counters_counter *k = t->against.items[i];
        bool anti = k->role == POD_COUNTERS_HOLDS_ANTI;
        int32_t factor = k->role == POD_COUNTERS_HOLDS_PREFERRED        ? k->terms[0].weight
                         : k->role == POD_COUNTERS_HOLDS_PREFERRED_ANTI ? -k->terms[0].weight
                                                                        : 1;
        pod_counters_use(k);
        part_add(
            rule_for(b, anti ? DOMAINS_EXISTING_ANTI : DOMAINS_PREFER, k->terms[0].topology_key), k,
            factor);
    }
}

bool domains_means_itself(const struct cluster *c, const struct pod *p)
{
    const struct labels *ns_labels = api_objects_namespace_labels(c->objects, p->ns);
    for (size_t i = 0; p->terms != NULL && i < p->terms->affinity_len; i++)
        if (!podterm_matches(&p->terms->affinity[i], p->ns, ns_labels, &p->labels))
            return false;
    return p->terms != NULL && p->terms->affinity_len > 0;
}

struct domains *domains_new(struct cluster *c, const struct cluster_pod *cp)
{
    struct builder b = {.cluster = c, .pod = cp->pod};
    add_spread(&b);
    add_own_terms(&b);
    add_others_terms(&b, cp->traits);
    if (b.rules.len == 0)
        return NULL;
    struct domains *d = mem_new(struct domains, 1);
    d->rules = b.rules.items;
    d->len = b.rules.len;
    d->wide = mem_new(struct topology *, d->len);
    d->affinity_self = domains_means_itself(c, cp->pod);
    for (size_t i = 0; i < d->len; i++)
        d->soft += d->rules[i].kind == DOMAINS_SOFT;
    return d;
}

static void rule_clear(struct domains_rule *r)
{
    free(r->seen);
    free(r->sums);
    free(r->members);
    free(r->histogram);
    r->seen = NULL;
    r->sums = NULL;
    r->members = NULL;
    r->histogram = NULL;
    r->histogram_len = 0;
}

void domains_free(struct domains *d)
{
    if (d == NULL)
        return;
    for (size_t i = 0; i < d->len; i++) {
        struct domains_rule *r = &d->rules[i];
        for (size_t k = 0; k < r->parts.len; k++)
            pod_counters_drop(r->parts.items[k].counter);
        vec_deinit(&r->parts);
        rule_clear(r);
        if (r->topology != NULL)
            topologies_drop(d->topologies, r->topology);
        free(r->key);
    }
    vec_free_(d->rules);
    free(d->wide);
    free(d->group_of);
    free(d->group_domain);
    free(d);
}

static bool tolerates_all(const struct pod *p, const struct node *n)
{
    for (size_t i = 0; i < n->taints_len; i++) {
        const struct taint *t = &n->taints[i];
        bool covered = t->effect == TAINT_PREFER_NO_SCHEDULE;
        for (size_t k = 0; !covered && k < p->tolerations_len; k++)
            covered = toleration_covers(&p->tolerations[k], t->key, t->value, t->effect);
        if (!covered)
            return false;
    }
    return true;
}

/* Whether the node's pods count, and for spread whether the node is part of a domain: it has all
 * keys of such constraints, and the policies include it. */
static bool is_counted(const struct domains *d, const struct domains_rule *r,
                       const struct plugin_ask *ask, uint32_t place)
{
    const struct cluster_node *node = ask->cluster->table->rows[place].node;
    if (r->topology->domain_of[place] < 0)
        return false;
    if (r->kind != DOMAINS_SPREAD && r->kind != DOMAINS_SOFT)
        return true;
    for (size_t i = 0; i < d->len; i++)
        if (d->rules[i].kind == r->kind && d->rules[i].topology->domain_of[place] < 0)
            return false;
    return (!r->honor_affinity ||
            pod_may_use_node(ask->pod->pod, &node->node->labels, node->name)) &&
           (!r->honor_taints || tolerates_all(ask->pod->pod, node->node));
}

static int32_t count_at(const struct domains_rule *r, uint32_t number)
{
    int64_t sum = 0;
    for (size_t i = 0; i < r->parts.len; i++)
        sum += (int64_t)pod_counters_count(r->parts.items[i].counter, number) *
               r->parts.items[i].factor;
    return (int32_t)(sum > INT32_MAX ? INT32_MAX : sum < -INT32_MAX ? -INT32_MAX : sum);
}

static void histogram_move(struct domains_rule *r, int32_t count, int by)
{
    size_t at = (size_t)count;
    if (at >= r->histogram_len) {
        size_t cap = r->histogram_len;
        r->histogram = vec_grow_(r->histogram, &cap, at + 1, sizeof *r->histogram);
        memset(r->histogram + r->histogram_len, 0, (cap - r->histogram_len) * sizeof *r->histogram);
        r->histogram_len = cap;
    }
    assert(r->histogram != NULL);
    r->histogram[at] += (uint32_t)by;
}

static void take_out(struct domains_rule *r, uint32_t place)
{
    int32_t was = r->seen[place], domain = r->topology->domain_of[place];
    if (was == DOMAINS_NOT_COUNTED)
        return;
    if (r->kind == DOMAINS_SPREAD && r->local)
        histogram_move(r, was, -1);
    r->sums[domain] -= was;
    r->total -= was;
    if (--r->members[domain] == 0)
        r->present--;
    r->seen[place] = DOMAINS_NOT_COUNTED;
    r->dirty = true;
}

static void put_in(struct domains_rule *r, uint32_t place, int32_t now)
{
    int32_t domain = r->topology->domain_of[place];
    if (r->kind == DOMAINS_SPREAD && r->local)
        histogram_move(r, now, 1);
    r->sums[domain] += now;
    r->total += now;
    if (r->members[domain]++ == 0)
        r->present++;
    r->seen[place] = now;
    r->dirty = true;
}

void domains_follow(struct domains *d, const struct plugin_ask *ask, uint32_t place)
{
    uint32_t number = ask->cluster->table->rows[place].node->id.number;
    for (size_t i = 0; i < d->len; i++) {
        struct domains_rule *r = &d->rules[i];
        if (!r->summed || r->seen[place] == DOMAINS_NOT_COUNTED)
            continue;
        int32_t now = count_at(r, number);
        if (now == r->seen[place])
            continue;
        take_out(r, place);
        put_in(r, place, now);
    }
}

bool domains_is_current(const struct domains *d)
{
    for (size_t i = 0; i < d->len; i++)
        if (d->rules[i].topology == NULL || d->rules[i].topology->stale ||
            d->rules[i].topology->version != d->rules[i].version)
            return false;
    return true;
}

void domains_node_changed(struct domains *d, const struct plugin_ask *ask, uint32_t place)
{
    for (size_t i = 0; i < d->len; i++) {
        struct domains_rule *r = &d->rules[i];
        if (!r->summed)
            continue;
        take_out(r, place);
        if (is_counted(d, r, ask, place))
            put_in(r, place, count_at(r, ask->cluster->table->rows[place].node->id.number));
    }
}

static bool begins(const struct domains *d)
{
    for (size_t i = 0; d->affinity_self && i < d->len; i++)
        if (d->rules[i].kind == DOMAINS_AFFINITY && d->rules[i].total > 0)
            return false;
    return d->affinity_self;
}

static void find_least(struct domains_rule *r)
{
    r->least = r->most = 0;
    r->dirty = false;
    if (r->kind == DOMAINS_SPREAD && r->local) {
        size_t at = 0;
        while (at < r->histogram_len && r->histogram[at] == 0)
            at++;
        r->least = at < r->histogram_len ? (int64_t)at : 0;
        return;
    }
    bool first = true;
    for (uint32_t i = 0; i < r->topology->domains; i++) {
        if (r->members[i] == 0)
            continue;
        r->least = first || r->sums[i] < r->least ? r->sums[i] : r->least;
        r->most = first || r->sums[i] > r->most ? r->sums[i] : r->most;
        first = false;
    }
}

bool domains_settle(struct domains *d)
{
    bool again = false, now = begins(d);
    for (size_t i = 0; i < d->len; i++) {
        struct domains_rule *r = &d->rules[i];
        bool spreads = r->kind == DOMAINS_SPREAD || r->kind == DOMAINS_SOFT;
        int64_t was = r->least;
        again |= r->kind == DOMAINS_AFFINITY && r->local && now != d->begins;
        if (!r->summed || !spreads || !r->dirty)
            continue;
        find_least(r);
        if (r->kind == DOMAINS_SPREAD && r->present < (uint32_t)r->min_domains)
            r->least = 0;
        again |= r->kind == DOMAINS_SPREAD && r->local && r->least != was;
    }
    d->begins = now;
    return again;
}

static void rule_rebuild(struct domains *d, struct domains_rule *r, const struct plugin_ask *ask)
{
    const struct node_table *table = ask->cluster->table;
    rule_clear(r);
    r->total = r->least = r->most = 0;
    r->present = 0;
    r->dirty = true;
    if (!r->summed)
        return;
    r->seen = mem_new(int32_t, table->len);
    r->sums = mem_new(int64_t, r->topology->domains);
    r->members = mem_new(int32_t, r->topology->domains);
    d->bytes += table->len * sizeof *r->seen +
                r->topology->domains * (sizeof *r->sums + sizeof *r->members);
    for (uint32_t i = 0; i < table->len; i++) {
        r->seen[i] = DOMAINS_NOT_COUNTED;
        if (is_counted(d, r, ask, i))
            put_in(r, i, count_at(r, table->rows[i].node->id.number));
    }
}

static int32_t wide_of(struct domains *d, struct topology *t)
{
    for (uint32_t i = 0; i < d->wide_len; i++)
        if (d->wide[i] == t)
            return (int32_t)i;
    d->wide[d->wide_len] = t;
    return (int32_t)d->wide_len++;
}

/* Groups are numbered in node order. */
static void make_groups(struct domains *d, const struct node_table *table)
{
    struct map seen; /* domains of all wide keys, as text -> group + 1 */
    struct arena a;
    struct strbuf key = {0};
    map_init(&seen);
    arena_init(&a, 0);
    free(d->group_of);
    free(d->group_domain);
    d->groups = 0;
    d->group_of = mem_new(uint32_t, table->len);
    d->group_domain = mem_new(int32_t, (size_t)table->len * d->wide_len);
    d->bytes += table->len * (sizeof *d->group_of + d->wide_len * sizeof *d->group_domain);
    for (uint32_t i = 0; i < table->len; i++) {
        strbuf_reset(&key);
        for (uint32_t w = 0; w < d->wide_len; w++)
            strbuf_addf(&key, "%x,", (unsigned)d->wide[w]->domain_of[i]);
        void *number = map_get(&seen, strbuf_str(&key));
        if (number == NULL) {
            number = (void *)(uintptr_t)(d->groups + 1);
            map_put(&seen, arena_strdup(&a, strbuf_str(&key)), number);
            for (uint32_t w = 0; w < d->wide_len; w++)
                d->group_domain[(size_t)d->groups * d->wide_len + w] = d->wide[w]->domain_of[i];
            d->groups++;
        }
        d->group_of[i] = (uint32_t)((uintptr_t)number - 1);
    }
    strbuf_deinit(&key);
    map_deinit(&seen);
    arena_deinit(&a);
}

/* Uses the new one before it drops the old one, which may be the same. */
static void take_topology(struct domains_rule *r, struct topologies *all, struct topology *t)
{
    topologies_use(all, t);
    if (r->topology != NULL)
        topologies_drop(all, r->topology);
    r->topology = t;
}

void domains_rebuild(struct domains *d, const struct plugin_ask *ask, struct topologies *all)
{
    const struct node_table *table = ask->cluster->table;
    d->topologies = all;
    d->wide_len = 0;
    d->bytes = sizeof *d + d->len * sizeof *d->rules;
    for (size_t i = 0; i < d->len; i++) {
        struct domains_rule *r = &d->rules[i];
        take_topology(r, all, topologies_get(all, table, r->key));
        d->bytes += r->topology->users == 1 ? arena_bytes(&r->topology->arena) : 0;
        r->version = r->topology->version;
        r->local = r->topology->local;
        r->wide = r->local ? -1 : wide_of(d, r->topology);
        r->summed = !r->local || r->kind == DOMAINS_SPREAD || r->kind == DOMAINS_AFFINITY;
    }
    for (size_t i = 0; i < d->len; i++)
        rule_rebuild(d, &d->rules[i], ask);
    make_groups(d, table);
    (void)domains_settle(d);
}
