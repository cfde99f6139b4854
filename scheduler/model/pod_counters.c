// SPDX-License-Identifier: Apache-2.0
#include "scheduler/model/pod_counters.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "scheduler/model/model.h"
#include "scheduler/model/api_objects.h"

enum { POD_COUNTERS_IDLE_MAX = 1024 }; /* unused counters before they are dropped */

void pod_counters_init(struct pod_counters *x)
{
    *x = (struct pod_counters){0};
    map_init(&x->counters);
    map_init(&x->traits);
    map_init(&x->buckets);
    strbuf_init(&x->key);
    x->search_at = POD_COUNTERS_IDLE_MAX;
}

static void counter_free(struct pod_counters_counter *k)
{
    free(k->counts);
    struct arena arena = k->arena; /* the counter itself lies in the arena */
    arena_deinit(&arena);
}

static void traits_free(struct pod_counters_traits *t)
{
    vec_deinit(&t->counted);
    vec_deinit(&t->against);
    vec_deinit(&t->holds);
    struct arena arena = t->arena;
    arena_deinit(&arena);
}

static void bucket_free(struct pod_counters_bucket *b)
{
    vec_deinit(&b->counters);
    vec_deinit(&b->traits);
    free(b);
}

void pod_counters_deinit(struct pod_counters *x)
{
    void *value;
    for (size_t i = 0; map_next(&x->counters, &i, NULL, &value);)
        counter_free(value);
    for (size_t i = 0; map_next(&x->traits, &i, NULL, &value);)
        traits_free(value);
    for (size_t i = 0; map_next(&x->buckets, &i, NULL, &value);)
        bucket_free(value);
    map_deinit(&x->counters);
    map_deinit(&x->traits);
    map_deinit(&x->buckets);
    vec_deinit(&x->everywhere);
    strbuf_deinit(&x->key);
}

static bool is_hold(enum pod_counters_role role)
{
    return role >= POD_COUNTERS_HOLDS_ANTI;
}

/* MATCHES and SPREADS: whether such a pod is counted. HOLDS: whether the term selects it. */
static bool means(const struct cluster *c, const struct pod_counters_counter *k,
                  const struct pod_counters_traits *t)
{
    if (k->role == POD_COUNTERS_SPREADS)
        return !t->terminating && str_eq(k->ns, t->ns) && spread_counts(&k->spread, &t->labels);
    const struct labels *ns_labels = api_objects_namespace_labels(c->objects, t->ns);
    for (size_t i = 0; i < k->terms_len; i++)
        if (!podterm_matches(&k->terms[i], t->ns, ns_labels, &t->labels))
            return false;
    return k->terms_len > 0;
}

static void link_if_meant(struct cluster *c, struct pod_counters_counter *k,
                          struct pod_counters_traits *t)
{
    c->index->looked++;
    if (!means(c, k, t))
        return;
    if (is_hold(k->role))
        vec_push(&t->against, k);
    else
        vec_push(&t->counted, k);
}

/* A label that the selector requires, as "key=value"; NULL: none. */
static const char *bucket_of(const struct selector *s, struct arena *a)
{
    for (size_t i = 0; i < s->len; i++)
        if (s->reqs[i].op == SELECTOR_IN && s->reqs[i].values_len == 1)
            return arena_printf(a, "%s=%s", s->reqs[i].key, s->reqs[i].values[0]);
    return NULL;
}

static struct pod_counters_bucket *bucket_at(struct pod_counters *x, const char *key)
{
    struct pod_counters_bucket *b = map_get(&x->buckets, key);
    if (b == NULL) {
        size_t len = strlen(key) + 1;
        b = mem_array_(1, sizeof *b + len);
        memcpy(b->key, key, len);
        map_put(&x->buckets, b->key, b);
    }
    return b;
}

static void put_in_bucket(struct pod_counters *x, struct pod_counters_counter *k)
{
    if (k->bucket == NULL) {
        vec_push(&x->everywhere, k);
        return;
    }
    vec_push(&bucket_at(x, k->bucket)->counters, k);
}

/* Puts the traits into the bucket of each of their labels. */
static void sit_down(struct pod_counters *x, struct pod_counters_traits *t)
{
    t->places = arena_new(&t->arena, struct pod_counters_place, t->labels.len);
    for (size_t i = 0; i < t->labels.len; i++) {
        strbuf_reset(&x->key);
        strbuf_addf(&x->key, "%s=%s", t->labels.items[i].key, t->labels.items[i].value);
        struct pod_counters_bucket *b = bucket_at(x, strbuf_str(&x->key));
        struct pod_counters_seat seat = {.traits = t, .label = i};
        t->places[i] = (struct pod_counters_place){.bucket = b, .seat = b->traits.len};
        vec_push(&b->traits, seat);
    }
}

static void drop_if_empty(struct pod_counters *x, struct pod_counters_bucket *b)
{
    if (b->counters.len + b->traits.len > 0)
        return;
    map_remove(&x->buckets, b->key);
    bucket_free(b);
}

static void get_up(struct pod_counters *x, struct pod_counters_traits *t)
{
    for (size_t i = 0; i < t->labels.len; i++) {
        struct pod_counters_bucket *b = t->places[i].bucket;
        size_t seat = t->places[i].seat;
        vec_remove_swap(&b->traits, seat);
        if (seat < b->traits.len)
            b->traits.items[seat].traits->places[b->traits.items[seat].label].seat = seat;
        drop_if_empty(x, b);
    }
}

static void link_all(struct cluster *c, struct pod_counters_traits *t)
{
    struct pod_counters *x = c->index;
    for (size_t i = 0; i < x->everywhere.len; i++)
        link_if_meant(c, x->everywhere.items[i], t);
    for (size_t i = 0; i < t->labels.len; i++) {
        struct pod_counters_bucket *b = t->places[i].bucket;
        for (size_t k = 0; k < b->counters.len; k++)
            link_if_meant(c, b->counters.items[k], t);
    }
}

static struct pod_counters_few *find_few(struct pod_counters_counter *k, uint32_t node)
{
    for (size_t i = 0; i < k->few_len; i++)
        if (k->few[i].node == node)
            return &k->few[i];
    if (k->few_len == POD_COUNTERS_FEW)
        return NULL;
    k->few[k->few_len] = (struct pod_counters_few){.node = node};
    return &k->few[k->few_len++];
}

static void add_many(struct pod_counters_counter *k, uint32_t node, int32_t n)
{
    if (node >= k->counts_len) {
        size_t cap = k->counts_len;
        k->counts = vec_grow_(k->counts, &cap, (size_t)node + 1, sizeof *k->counts);
        memset(k->counts + k->counts_len, 0, (cap - k->counts_len) * sizeof *k->counts);
        k->counts_len = cap;
    }
    k->counts[node] += n;
    assert(k->counts[node] >= 0);
}

static void add(struct pod_counters_counter *k, uint32_t node, int32_t n)
{
    struct pod_counters_few *few = k->counts == NULL ? find_few(k, node) : NULL;
    if (few != NULL) {
        few->count += n;
        assert(few->count >= 0);
        if (few->count == 0)
            *few = k->few[--k->few_len];
        return;
    }
    for (size_t i = 0; i < k->few_len; i++)
        add_many(k, k->few[i].node, k->few[i].count);
    k->few_len = 0;
    add_many(k, node, n);
}

/* From now on every placed pod has traits. There is no counter yet, so nothing is counted. */
static void activate(struct cluster *c)
{
    void *value;
    if (c->index->active)
        return;
    c->index->active = true;
    for (size_t i = 0; map_next(&c->nodes, &i, NULL, &value);) {
        const struct cluster_node *cn = value;
        for (size_t k = 0; k < cn->pods.len; k++)
            (void)pod_counters_traits_of(c, cn->pods.items[k]);
    }
}

/* A new counter meets traits that it may count, and counts their placed pods. */
static void meet(struct cluster *c, struct pod_counters_counter *k, struct pod_counters_traits *t)
{
    link_if_meant(c, k, t);
    /* the counter is new, so it can only be the last of the list */
    if (t->counted.len == 0 || t->counted.items[t->counted.len - 1] != k)
        return;
    for (const struct cluster_pod *cp = t->pods; cp != NULL; cp = cp->same_next)
        if (cp->on != NULL)
            add(k, cp->on->id.number, 1);
}

static void meet_all(struct cluster *c, struct pod_counters_counter *k)
{
    const struct pod_counters_bucket *b =
        k->bucket != NULL ? map_get(&c->index->buckets, k->bucket) : NULL;
    void *value;
    for (size_t i = 0; b != NULL && i < b->traits.len; i++)
        meet(c, k, b->traits.items[i].traits);
    for (size_t i = 0; b == NULL && map_next(&c->index->traits, &i, NULL, &value);)
        meet(c, k, value);
}

static void copy_selector(struct selector *to, const struct selector *from, struct arena *a)
{
    *to = *from;
    to->reqs = arena_new(a, struct requirement, from->len);
    for (size_t i = 0; i < from->len; i++) {
        struct requirement *r = &to->reqs[i];
        *r = from->reqs[i];
        r->key = arena_strdup(a, r->key);
        r->values = arena_new(a, const char *, r->values_len);
        for (size_t k = 0; k < r->values_len; k++)
            r->values[k] = arena_strdup(a, from->reqs[i].values[k]);
    }
}

static void copy_term(struct podterm *to, const struct podterm *from, struct arena *a)
{
    *to = *from;
    to->topology_key = arena_strdup(a, from->topology_key);
    to->namespaces = arena_new(a, const char *, from->namespaces_len);
    for (size_t i = 0; i < from->namespaces_len; i++)
        to->namespaces[i] = arena_strdup(a, from->namespaces[i]);
    copy_selector(&to->namespace_selector, &from->namespace_selector, a);
    copy_selector(&to->selector, &from->selector, a);
}

static struct pod_counters_counter *counter_begin(const char *text, enum pod_counters_role role)
{
    struct arena arena;
    arena_init(&arena, 0);
    struct pod_counters_counter *k = arena_new(&arena, struct pod_counters_counter, 1);
    k->role = role;
    k->text = arena_strdup(&arena, text);
    k->arena = arena;
    return k;
}

static void counter_finish(struct cluster *c, struct pod_counters_counter *k)
{
    struct pod_counters *x = c->index;
    activate(c);
    k->number = ++x->numbers;
    map_put(&x->counters, k->text, k);
    put_in_bucket(x, k);
    for (size_t i = 0; i < k->terms_len; i++)
        if (k->terms[i].namespace_selector.len > 0) {
            x->with_selector++;
            break;
        }
    meet_all(c, k);
    if (is_hold(k->role))
        x->version++;
}

static struct pod_counters_counter *want_terms(struct cluster *c, enum pod_counters_role role,
                                               const struct podterm *terms, size_t len)
{
    AUTO_STRBUF text = {0};
    strbuf_addf(&text, "%d", (int)role);
    for (size_t i = 0; i < len; i++) {
        strbuf_addf(&text, "|%d ", (int)terms[i].weight);
        podterm_print(&terms[i], &text);
    }
    struct pod_counters_counter *k = map_get(&c->index->counters, strbuf_str(&text));
    if (k == NULL) {
        k = counter_begin(strbuf_str(&text), role);
        k->terms = arena_new(&k->arena, struct podterm, len);
        k->terms_len = len;
        for (size_t i = 0; i < len; i++)
            copy_term(&k->terms[i], &terms[i], &k->arena);
        k->bucket = len > 0 ? bucket_of(&k->terms[0].selector, &k->arena) : NULL;
        counter_finish(c, k);
    }
    k->users++;
    return k;
}

struct pod_counters_counter *pod_counters_want_matches(struct cluster *c,
                                                       const struct podterm *terms, size_t len)
{
    return want_terms(c, POD_COUNTERS_MATCHES, terms, len);
}

struct pod_counters_counter *pod_counters_want_spread(struct cluster *c, const struct spread *s,
                                                      const char *ns)
{
    AUTO_STRBUF text = {0};
    strbuf_addf(&text, "%d|%s|", (int)POD_COUNTERS_SPREADS, ns);
    selector_print(&s->selector, &text);
    struct pod_counters_counter *k = map_get(&c->index->counters, strbuf_str(&text));
    if (k == NULL) {
        k = counter_begin(strbuf_str(&text), POD_COUNTERS_SPREADS);
        copy_selector(&k->spread.selector, &s->selector, &k->arena);
        k->ns = arena_strdup(&k->arena, ns);
        k->bucket = bucket_of(&k->spread.selector, &k->arena);
        counter_finish(c, k);
    }
    k->users++;
    return k;
}

void pod_counters_use(struct pod_counters_counter *k)
{
    k->users++;
}

void pod_counters_drop(struct pod_counters_counter *k)
{
    assert(k->users > 0);
    k->users--;
}

static void print_terms(const struct podterm *terms, size_t len, char which, struct strbuf *out)
{
    for (size_t i = 0; i < len; i++) {
        strbuf_addf(out, "%c%d ", which, (int)terms[i].weight);
        podterm_print(&terms[i], out);
    }
}

void pod_counters_print_terms(const struct podterms *t, struct strbuf *out)
{
    print_terms(t->affinity, t->affinity_len, 'a', out);
    print_terms(t->anti_affinity, t->anti_affinity_len, 'n', out);
    print_terms(t->preferred, t->preferred_len, 'p', out);
    print_terms(t->preferred_anti, t->preferred_anti_len, 'q', out);
}

static void print_traits(const struct pod *p, struct strbuf *out)
{
    strbuf_adds(out, p->ns);
    strbuf_addc(out, p->terminating ? '-' : '+');
    for (size_t i = 0; i < p->labels.len; i++) {
        strbuf_adds(out, p->labels.items[i].key);
        strbuf_addc(out, '=');
        strbuf_adds(out, p->labels.items[i].value);
        strbuf_addc(out, ','); /* in no label */
    }
    if (p->terms != NULL)
        pod_counters_print_terms(p->terms, out);
}

static void hold_terms(struct cluster *c, struct pod_counters_traits *t,
                       enum pod_counters_role role, const struct podterm *terms, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        struct pod_counters_counter *k = want_terms(c, role, &terms[i], 1);
        vec_push(&t->holds, k);
        vec_push(&t->counted, k);
    }
}

static struct pod_counters_traits *traits_new(struct cluster *c, const struct pod *p,
                                              const char *text)
{
    struct arena arena;
    arena_init(&arena, 0);
    struct pod_counters_traits *t = arena_new(&arena, struct pod_counters_traits, 1);
    t->text = arena_strdup(&arena, text);
    t->ns = arena_strdup(&arena, p->ns);
    t->terminating = p->terminating;
    t->labels.len = p->labels.len;
    t->labels.items = arena_new(&arena, struct label, p->labels.len);
    for (size_t i = 0; i < p->labels.len; i++) {
        t->labels.items[i].key = arena_strdup(&arena, p->labels.items[i].key);
        t->labels.items[i].value = arena_strdup(&arena, p->labels.items[i].value);
    }
    t->arena = arena;
    sit_down(c->index, t);
    link_all(c, t);
    map_put(&c->index->traits, t->text, t);
    if (p->terms != NULL) {
        const struct podterms *own = p->terms;
        hold_terms(c, t, POD_COUNTERS_HOLDS_ANTI, own->anti_affinity, own->anti_affinity_len);
        hold_terms(c, t, POD_COUNTERS_HOLDS_AFFINITY, own->affinity, own->affinity_len);
        hold_terms(c, t, POD_COUNTERS_HOLDS_PREFERRED, own->preferred, own->preferred_len);
        hold_terms(c, t, POD_COUNTERS_HOLDS_PREFERRED_ANTI, own->preferred_anti,
                   own->preferred_anti_len);
    }
    return t;
}

struct pod_counters_traits *pod_counters_traits_of(struct cluster *c, struct cluster_pod *cp)
{
    const struct pod *p = cp->pod;
    if (cp->traits != NULL)
        return cp->traits;
    if (!c->index->active && p->terms == NULL)
        return NULL;
    activate(c);
    AUTO_STRBUF text = {0};
    print_traits(p, &text);
    struct pod_counters_traits *t = map_get(&c->index->traits, strbuf_str(&text));
    if (t == NULL)
        t = traits_new(c, p, strbuf_str(&text));
    cp->traits = t;
    cp->same_prev = NULL;
    cp->same_next = t->pods;
    if (t->pods != NULL)
        t->pods->same_prev = cp;
    t->pods = cp;
    return t;
}

void pod_counters_forget_traits(struct pod_counters *x, struct cluster_pod *cp)
{
    struct pod_counters_traits *t = cp->traits;
    if (t == NULL)
        return;
    *(cp->same_prev != NULL ? &cp->same_prev->same_next : &t->pods) = cp->same_next;
    if (cp->same_next != NULL)
        cp->same_next->same_prev = cp->same_prev;
    cp->traits = NULL;
    cp->same_next = cp->same_prev = NULL;
    if (t->pods != NULL)
        return;
    for (size_t i = 0; i < t->holds.len; i++)
        pod_counters_drop(t->holds.items[i]);
    map_remove(&x->traits, t->text);
    get_up(x, t);
    traits_free(t);
}

static bool account(struct cluster *c, struct cluster_pod *cp, const struct cluster_node *on,
                    int32_t n)
{
    struct pod_counters_traits *t = pod_counters_traits_of(c, cp);
    if (t == NULL)
        return false;
    for (size_t i = 0; i < t->counted.len; i++)
        add(t->counted.items[i], on->id.number, n);
    return t->counted.len > 0;
}

bool pod_counters_hold(struct cluster *c, struct cluster_pod *cp, const struct cluster_node *on)
{
    return account(c, cp, on, 1);
}

bool pod_counters_release(struct cluster *c, struct cluster_pod *cp, const struct cluster_node *on)
{
    return account(c, cp, on, -1);
}

static void relink(struct cluster *c)
{
    struct pod_counters *x = c->index;
    void *value;
    for (size_t i = 0; map_next(&x->traits, &i, NULL, &value);) {
        struct pod_counters_traits *t = value;
        t->counted.len = t->against.len = 0;
        link_all(c, t);
        for (size_t k = 0; k < t->holds.len; k++)
            vec_push(&t->counted, t->holds.items[k]);
    }
}

static void recount(struct cluster *c)
{
    void *value;
    for (size_t i = 0; map_next(&c->index->counters, &i, NULL, &value);) {
        struct pod_counters_counter *k = value;
        k->few_len = 0;
        if (k->counts_len > 0)
            memset(k->counts, 0, k->counts_len * sizeof *k->counts);
    }
    for (size_t i = 0; map_next(&c->nodes, &i, NULL, &value);) {
        const struct cluster_node *cn = value;
        for (size_t p = 0; p < cn->pods.len; p++)
            (void)account(c, cn->pods.items[p], cn, 1);
    }
}

/* As many counters as there are may come until the next search: what it costs for each stays the
 * same, however many there are. */
static void drop_idle(struct cluster *c)
{
    struct pod_counters *x = c->index;
    void *value;
    size_t idle = 0;
    for (size_t i = 0; map_next(&x->counters, &i, NULL, &value);)
        idle += ((const struct pod_counters_counter *)value)->users == 0;
    x->search_at = x->numbers + POD_COUNTERS_IDLE_MAX + map_count(&x->counters) - idle;
    if (idle <= POD_COUNTERS_IDLE_MAX)
        return;
    x->everywhere.len = 0;
    for (size_t i = 0; map_next(&x->buckets, &i, NULL, &value);) {
        struct pod_counters_bucket *b = value;
        b->counters.len = 0;
        drop_if_empty(x, b);
    }
    for (size_t i = 0; map_next(&x->counters, &i, NULL, &value);) {
        struct pod_counters_counter *k = value;
        if (k->users > 0) {
            put_in_bucket(x, k);
            continue;
        }
        for (size_t n = 0; n < k->terms_len; n++)
            if (k->terms[n].namespace_selector.len > 0) {
                x->with_selector--;
                break;
            }
        map_remove(&x->counters, k->text);
        counter_free(k);
        x->forgot = true;
    }
    x->version++;
    relink(c);
}

bool pod_counters_refresh(struct cluster *c)
{
    struct pod_counters *x = c->index;
    uint64_t now = c->objects->generation[API_OBJECTS_NAMESPACES];
    if (x->numbers >= x->search_at)
        drop_idle(c);
    if (now == x->namespaces)
        return false;
    x->namespaces = now;
    if (x->with_selector == 0)
        return false;
    relink(c);
    recount(c);
    x->version++;
    return true;
}
