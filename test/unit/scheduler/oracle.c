// SPDX-License-Identifier: Apache-2.0
#include "test/unit/scheduler/oracle.h"

#include <stdio.h>

#include "lib/base/str.h"
#include "scheduler/cache/gangs.h"
#include "scheduler/cache/gangs_settings.h"

static const char *value_of(const struct cluster_node *n, const char *key)
{
    return labels_get(&n->node->labels, key);
}

/* ---- spread ---- */

static bool required_affinity(const struct pod *p, const struct cluster_node *n)
{
    for (size_t i = 0; i < p->node_selector.len; i++)
        if (!str_eq(value_of(n, p->node_selector.items[i].key), p->node_selector.items[i].value))
            return false;
    return !p->has_required_affinity ||
           node_selector_matches(&p->required_affinity, &n->node->labels, n->name);
}

static bool tolerates(const struct pod *p, const struct node *n)
{
    for (size_t i = 0; i < n->taints_len; i++) {
        bool covered = n->taints[i].effect == TAINT_PREFER_NO_SCHEDULE;
        for (size_t k = 0; k < p->tolerations_len; k++)
            covered |= toleration_covers(&p->tolerations[k], n->taints[i].key, n->taints[i].value,
                                         n->taints[i].effect);
        if (!covered)
            return false;
    }
    return true;
}

static bool is_domain(const struct pod *p, const struct spread *s, const struct cluster_node *n)
{
    if (n->node == NULL)
        return false;
    for (size_t i = 0; i < p->spread_len; i++)
        if (p->spread[i].hard && value_of(n, p->spread[i].topology_key) == NULL)
            return false;
    return (!s->honor_affinity || required_affinity(p, n)) &&
           (!s->honor_taints || tolerates(p, n->node));
}

static int count_on(const struct pod *p, const struct spread *s, const struct cluster_node *n)
{
    int count = 0;
    for (size_t i = 0; i < n->pods.len; i++) {
        const struct pod *other = n->pods.items[i]->pod;
        count +=
            !other->terminating && str_eq(other->ns, p->ns) && spread_counts(s, &other->labels);
    }
    return count;
}

static int count_in(const struct cluster *c, const struct pod *p, const struct spread *s,
                    const char *value)
{
    void *item;
    int count = 0;
    for (size_t i = 0; map_next(&c->nodes, &i, NULL, &item);)
        if (is_domain(p, s, item) && str_eq(value_of(item, s->topology_key), value))
            count += count_on(p, s, item);
    return count;
}

static int least(const struct cluster *c, const struct pod *p, const struct spread *s)
{
    const char *seen[64];
    void *item;
    int domains = 0, min = 0;
    for (size_t i = 0; map_next(&c->nodes, &i, NULL, &item);) {
        if (!is_domain(p, s, item))
            continue;
        const char *value = value_of(item, s->topology_key);
        int k = 0;
        while (k < domains && !str_eq(seen[k], value))
            k++;
        if (k < domains)
            continue;
        int count = count_in(c, p, s, value);
        min = domains == 0 || count < min ? count : min;
        seen[domains++] = value;
    }
    return domains < s->min_domains ? 0 : min;
}

bool oracle_spread(const struct cluster *c, const struct pod *p, const struct cluster_node *node)
{
    for (size_t i = 0; i < p->spread_len; i++) {
        const struct spread *s = &p->spread[i];
        const char *value = value_of(node, s->topology_key);
        if (!s->hard)
            continue;
        if (value == NULL ||
            count_in(c, p, s, value) + spread_selects_self(s, &p->labels) - least(c, p, s) >
                s->max_skew)
            return false;
    }
    return true;
}

/* ---- affinity ---- */

static bool means(const struct cluster *c, const struct podterm *t, const struct pod *p)
{
    return podterm_matches(t, p->ns, api_objects_namespace_labels(c->objects, p->ns), &p->labels);
}

static bool means_all(const struct cluster *c, const struct podterms *t, const struct pod *p)
{
    for (size_t i = 0; i < t->affinity_len; i++)
        if (!means(c, &t->affinity[i], p))
            return false;
    return t->affinity_len > 0;
}

/* How many pods in the domain of `value` (NULL: in any) does the affinity, or the one anti-affinity
 * term, mean. */
static int near(const struct cluster *c, const struct podterms *all, const struct podterm *t,
                const char *value)
{
    void *item;
    int count = 0;
    for (size_t i = 0; map_next(&c->nodes, &i, NULL, &item);) {
        const struct cluster_node *n = item;
        const char *here = n->node != NULL ? value_of(n, t->topology_key) : NULL;
        if (here == NULL || (value != NULL && !str_eq(here, value)))
            continue;
        for (size_t k = 0; k < n->pods.len; k++)
            count += all != NULL ? means_all(c, all, n->pods.items[k]->pod)
                                 : means(c, t, n->pods.items[k]->pod);
    }
    return count;
}

static bool affinity(const struct cluster *c, const struct pod *p, const struct cluster_node *node)
{
    bool all = true, any = false;
    for (size_t i = 0; i < p->terms->affinity_len; i++) {
        const struct podterm *t = &p->terms->affinity[i];
        const char *value = value_of(node, t->topology_key);
        if (value == NULL)
            return false;
        all &= near(c, p->terms, t, value) > 0;
        any |= near(c, p->terms, t, NULL) > 0;
    }
    return all || (!any && means_all(c, p->terms, p));
}

static bool forbidden_by(const struct cluster *c, const struct pod *other,
                         const struct cluster_node *its, const struct pod *p,
                         const struct cluster_node *node)
{
    for (size_t i = 0; other->terms != NULL && i < other->terms->anti_affinity_len; i++) {
        const struct podterm *t = &other->terms->anti_affinity[i];
        const char *value = value_of(node, t->topology_key);
        if (value != NULL && str_eq(value_of(its, t->topology_key), value) && means(c, t, p))
            return true;
    }
    return false;
}

bool oracle_interpod(const struct cluster *c, const struct pod *p, const struct cluster_node *node)
{
    void *item;
    for (size_t i = 0; map_next(&c->nodes, &i, NULL, &item);) {
        const struct cluster_node *n = item;
        for (size_t k = 0; n->node != NULL && k < n->pods.len; k++)
            if (forbidden_by(c, n->pods.items[k]->pod, n, p, node))
                return false;
    }
    for (size_t i = 0; p->terms != NULL && i < p->terms->anti_affinity_len; i++) {
        const char *value = value_of(node, p->terms->anti_affinity[i].topology_key);
        if (value != NULL && near(c, NULL, &p->terms->anti_affinity[i], value) > 0)
            return false;
    }
    return p->terms == NULL || affinity(c, p, node);
}

/* ---- the index ---- */

static int holds(const struct podterm *terms, size_t len, const struct pod_counters_counter *k)
{
    int count = 0;
    if (len == 0)
        return 0;
    AUTO_STRBUF wanted = {0};
    podterm_print(&k->terms[0], &wanted);
    for (size_t i = 0; i < len; i++) {
        AUTO_STRBUF text = {0};
        if (terms[i].weight != k->terms[0].weight ||
            !str_eq(terms[i].topology_key, k->terms[0].topology_key))
            continue;
        podterm_print(&terms[i], &text);
        count +=
            terms[i].weight == k->terms[0].weight && str_eq(strbuf_str(&text), strbuf_str(&wanted));
    }
    return count;
}

static int counted(const struct cluster *c, const struct pod_counters_counter *k,
                   const struct pod *p)
{
    const struct podterms none = {0}, *t = p->terms != NULL ? p->terms : &none;
    switch (k->role) {
    case POD_COUNTERS_MATCHES:
        for (size_t i = 0; i < k->terms_len; i++)
            if (!means(c, &k->terms[i], p))
                return 0;
        return 1;
    case POD_COUNTERS_SPREADS:
        return !p->terminating && str_eq(p->ns, k->ns) && spread_counts(&k->spread, &p->labels);
    case POD_COUNTERS_HOLDS_ANTI:
        return holds(t->anti_affinity, t->anti_affinity_len, k);
    case POD_COUNTERS_HOLDS_AFFINITY:
        return holds(t->affinity, t->affinity_len, k);
    case POD_COUNTERS_HOLDS_PREFERRED:
        return holds(t->preferred, t->preferred_len, k);
    case POD_COUNTERS_HOLDS_PREFERRED_ANTI:
        return holds(t->preferred_anti, t->preferred_anti_len, k);
    }
    return 0;
}

bool oracle_index(const struct cluster *c)
{
    const char *text;
    void *counter, *item;
    bool same = true;
    for (size_t i = 0; map_next(&c->index->counters, &i, &text, &counter);)
        for (size_t n = 0; map_next(&c->nodes, &n, NULL, &item);) {
            const struct cluster_node *cn = item;
            int expected = 0;
            for (size_t p = 0; p < cn->pods.len; p++)
                expected += counted(c, counter, cn->pods.items[p]->pod);
            int got = pod_counters_count(counter, cn->id.number);
            if (got == expected)
                continue;
            fprintf(stderr, "counter %s on %s: expected %d, got %d\n", text, cn->name, expected,
                    got);
            same = false;
        }
    return same;
}

/* int: its answers are joined by &, so that all are said. */
static int agrees(const struct gang *g, const char *what, int64_t expected, int64_t is)
{
    if (expected != is)
        fprintf(stderr, "%s: %s: expected %lld, got %lld\n", g->key, what, (long long)expected,
                (long long)is);
    return expected == is;
}

static bool is_gang_right(const struct cluster *c, struct gang *g)
{
    struct gang fresh = *g;
    int32_t waiting = 0, existing = 0, bound = 0, in_quorum = 0;
    bool uniform = true;
    gangs_settings_read(c, &fresh);
    for (size_t i = 0; i < g->members.len; i++) {
        const struct cluster_pod *cp = g->members.items[i];
        bool is_bound =
            (cp->state == CLUSTER_BOUND || cp->state == CLUSTER_FINISHED) && !cp->pod->terminating;
        waiting += cluster_pod_is_schedulable(cp);
        existing += !cp->pod->gated && !cp->pod->terminating;
        bound += is_bound;
        in_quorum += is_bound && cp->in_quorum;
        uniform &= gangs_settings_equal(cp, g->members.items[0]);
    }
    return agrees(g, "waiting", waiting, gangs_has_waiting(g) ? g->counts[GANG_COUNT_WAITING] : 0) &
           agrees(g, "existing", existing, gangs_count_existing(g)) &
           agrees(g, "bound", bound, g->counts[GANG_COUNT_BOUND]) &
           agrees(g, "in quorum", in_quorum, g->counts[GANG_COUNT_BOUND_IN_QUORUM]) &
           agrees(g, "size", fresh.min_available, g->min_available) &
           agrees(g, "conflict", fresh.min_conflict, g->min_conflict) &
           agrees(g, "match-policy", (int64_t)fresh.match, (int64_t)g->match) &
           agrees(g, "priority", fresh.priority, g->priority) &
           agrees(g, "age", fresh.since_ns, g->since_ns) &
           (gangs_is_lone(g) || agrees(g, "satisfied", in_quorum > 0, g->satisfied)) &
           (gangs_is_lone(g) || !g->uniform || agrees(g, "uniform", true, uniform));
}

bool oracle_gangs(const struct cluster *c)
{
    void *value;
    bool same = true;
    for (size_t i = 0; map_next(&c->gangs, &i, NULL, &value);)
        same &= is_gang_right(c, value);
    return same;
}
