// SPDX-License-Identifier: Apache-2.0
#include "scheduler/cycle/placing_domains.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/framework/equivalence.h"
#include "scheduler/cycle/placing.h"

static int64_t extra_of(const struct resource_vector *a, uint32_t id)
{
    int64_t value = 0;
    (void)resource_vector_get(a, id, &value);
    return value;
}

static struct resource_vector least_of(const struct placing *p)
{
    const struct resource_vector *first = &p->members[0].pod->request;
    struct resource_vector least = *first;
    least.extra = arena_new(p->arena, struct resource_vector_extra, first->extra_len);
    least.extra_cap = 0;
    for (uint32_t k = 0; k < first->extra_len; k++)
        least.extra[k] = first->extra[k];
    for (size_t i = 1; i < p->members_len; i++) {
        const struct resource_vector *r = &p->members[i].pod->request;
        least.cpu_milli = num_min(least.cpu_milli, r->cpu_milli);
        least.memory_bytes = num_min(least.memory_bytes, r->memory_bytes);
        least.ephemeral_bytes = num_min(least.ephemeral_bytes, r->ephemeral_bytes);
        for (uint32_t k = 0; k < least.extra_len; k++)
            least.extra[k].value = num_min(least.extra[k].value, extra_of(r, least.extra[k].id));
    }
    return least;
}

static int64_t times(int64_t capacity, int64_t free, int64_t want)
{
    return want > 0 ? num_min(capacity, num_max(free, 0) / want) : capacity;
}

static int64_t capacity_of(const struct node_table_row *row, const struct resource_vector *least)
{
    const struct cluster_node *n = row->node;
    int64_t capacity = row->free_pods;
    capacity = times(capacity, row->free_cpu_milli, least->cpu_milli);
    capacity = times(capacity, row->free_memory_bytes, least->memory_bytes);
    capacity = times(capacity, row->free_ephemeral_bytes, least->ephemeral_bytes);
    for (uint32_t i = 0; i < least->extra_len; i++) {
        uint32_t id = least->extra[i].id;
        capacity =
            times(capacity, num_sub_sat(extra_of(&n->allocatable, id), extra_of(&n->used, id)),
                  least->extra[i].value);
    }
    return capacity;
}

static int64_t count_missing(const struct placing *p)
{
    int64_t missing = 0;
    for (size_t i = 0; i < p->gangs_len; i++)
        missing += p->gangs[i].missing;
    return missing;
}

bool placing_domains_could_fit(struct placing *p)
{
    const struct node_table *t = p->cluster->table;
    struct resource_vector least = least_of(p);
    int64_t capacity = 0, missing = num_max(count_missing(p), 1);
    for (uint32_t i = 0; i < t->len && capacity < missing; i++)
        capacity += capacity_of(&t->rows[i], &least);
    return capacity >= missing;
}

static void add_key(struct placing_domains *d, const char *key)
{
    for (size_t i = 0; i < d->keys_len; i++)
        if (str_eq(d->keys[i], key))
            return;
    if (d->keys_len < PLACING_KEYS)
        d->keys[d->keys_len++] = key;
}

void placing_domains_init(struct placing_domains *d, struct placing *p)
{
    bool together = false;
    *d = (struct placing_domains){.placing = p, .missing = count_missing(p)};
    for (size_t i = 0; i < p->members_len; i++) {
        const struct podterms *t = p->members[i].pod->pod->terms;
        together |= p->members[i].pod->gpu.any;
        if (t == NULL || t->affinity_len + t->preferred_len == 0)
            continue;
        together = true;
        for (size_t k = 0; k < t->affinity_len; k++)
            add_key(d, t->affinity[k].topology_key);
    }
    if (!together)
        return;
    add_key(d, NAME_LABEL_ZONE);
    add_key(d, NAME_LABEL_HOSTNAME);
    d->least = least_of(p);
}

static int by_capacity(const void *a, const void *b)
{
    const struct domain_capacity *x = a, *y = b;
    if (x->capacity != y->capacity)
        return x->capacity > y->capacity ? -1 : 1;
    return x->domain < y->domain ? -1 : 1;
}

static struct topology *topology_of(struct placing_domains *d)
{
    struct cluster *c = d->placing->cluster;
    return topologies_get(c->topologies, c->table, d->keys[d->key]);
}

static void list_domains(struct placing_domains *d)
{
    const struct topology *t = topology_of(d);
    const struct node_table *table = d->placing->cluster->table;
    d->order = arena_new(d->placing->arena, struct domain_capacity, t->domains);
    d->order_len = d->at = 0;
    for (uint32_t i = 0; i < t->domains; i++)
        d->order[i].domain = i;
    for (uint32_t i = 0; i < table->len; i++)
        if (t->domain_of[i] >= 0)
            d->order[t->domain_of[i]].capacity += capacity_of(&table->rows[i], &d->least);
    for (uint32_t i = 0; i < t->domains; i++)
        if (d->order[i].capacity >= d->missing)
            d->order[d->order_len++] = d->order[i];
    if (d->order_len > 1)
        qsort(d->order, d->order_len, sizeof d->order[0], by_capacity);
    d->order_len = (size_t)num_min((int64_t)d->order_len, PLACING_DOMAINS);
}

static void list_places(struct placing_domains *d, uint32_t domain, struct placing_domain *out)
{
    const struct topology *t = topology_of(d);
    uint32_t len = d->placing->cluster->table->len;
    out->len = 0;
    out->places = arena_new(d->placing->arena, uint32_t, len);
    for (uint32_t i = 0; i < len; i++)
        if (t->domain_of[i] == (int32_t)domain)
            out->places[out->len++] = i;
}

bool placing_domains_next(struct placing_domains *d, struct placing_domain *out)
{
    for (; d->key < d->keys_len; d->key++, d->order = NULL) {
        if (d->order == NULL)
            list_domains(d);
        if (d->at < d->order_len) {
            list_places(d, d->order[d->at++].domain, out);
            return true;
        }
    }
    return false;
}

bool placing_domains_choose(const struct pipeline *ask, struct cluster_pod *pod,
                            const struct placing_domain *within, struct arena *a,
                            struct pipeline_choice *out)
{
    const struct pod_class *k = equivalence_ask(ask, pod);
    struct cluster_node *best = equivalence_best_of(ask->cluster, k, within->places, within->len);
    return best != NULL && pipeline_try(ask, pod, best, a, out);
}
