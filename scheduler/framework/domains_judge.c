// SPDX-License-Identifier: Apache-2.0
/* Judges nodes by the sums. One function decides whether a rule's domain is open, for nodes, groups
 * and reasons alike. A soft spread gives the maximum points to the domain with the fewest pods and
 * 0 to that with the most; by host, where the other hosts' counts are unknown, half for the first
 * pod, a third for the second. Preferred terms add their weight for each pod, with diminishing
 * effect: 100 halves the distance to the end of the scale. */
#include "scheduler/framework/domains.h"

static bool is_open(const struct domains *d, const struct domains_rule *r, int32_t domain,
                    int64_t count)
{
    switch (r->kind) {
    case DOMAINS_SPREAD:
        return domain >= 0 && count + r->self - r->least <= r->max_skew;
    case DOMAINS_AFFINITY:
        return domain >= 0 && (count > 0 || d->begins);
    case DOMAINS_ANTI:
    case DOMAINS_EXISTING_ANTI:
        return domain < 0 || count <= 0;
    case DOMAINS_SOFT:
    case DOMAINS_PREFER:
        break;
    }
    return true;
}

static int64_t count_of(const struct domains_rule *r, int32_t domain, uint32_t place,
                        uint32_t number)
{
    int64_t sum = 0;
    if (domain < 0)
        return 0;
    if (!r->local)
        return r->sums[domain];
    if (r->summed)
        return r->seen[place] == DOMAINS_NOT_COUNTED ? 0 : r->seen[place];
    for (size_t i = 0; i < r->parts.len; i++)
        sum += (int64_t)pod_counters_count(r->parts.items[i].counter, number) *
               r->parts.items[i].factor;
    return sum;
}

struct points {
    int64_t soft;   /* of the rules DOMAINS_SOFT, summed */
    int64_t prefer; /* raw */
};

static void add_points(const struct domains_rule *r, int32_t domain, int64_t count,
                       struct points *p)
{
    if (domain < 0)
        return;
    if (r->kind == DOMAINS_PREFER)
        p->prefer += count;
    if (r->kind != DOMAINS_SOFT)
        return;
    if (r->local)
        p->soft += PLUGIN_SCORE_MAX / (1 + count);
    else if (r->members[domain] > 0)
        p->soft += r->most == r->least
                       ? PLUGIN_SCORE_MAX
                       : PLUGIN_SCORE_MAX * (r->most - count) / (r->most - r->least);
}

static int32_t soft_points(const struct domains *d, const struct points *p)
{
    return d->soft == 0 ? 0 : (int32_t)(p->soft / (int64_t)d->soft * DOMAINS_SPREAD_WEIGHT);
}

static int32_t prefer_points(const struct points *p)
{
    int64_t far = p->prefer < 0 ? -p->prefer : p->prefer;
    return (int32_t)(p->prefer * PLUGIN_SCORE_MAX / (far + PLUGIN_SCORE_MAX) *
                     DOMAINS_PREFER_WEIGHT);
}

int32_t domains_rate(const struct domains *d, const struct node_table_row *row, uint32_t place)
{
    struct points points = {0};
    for (size_t i = 0; i < d->len; i++) {
        const struct domains_rule *r = &d->rules[i];
        if (!r->local)
            continue;
        int32_t domain = r->topology->domain_of[place];
        int64_t count = count_of(r, domain, place, row->node->id.number);
        if (!is_open(d, r, domain, count))
            return SCORE_TREE_NO;
        add_points(r, domain, count, &points);
    }
    return soft_points(d, &points) + prefer_points(&points);
}

bool domains_rate_group(const struct domains *d, uint32_t group, int32_t *out)
{
    struct points points = {0};
    for (size_t i = 0; i < d->len; i++) {
        const struct domains_rule *r = &d->rules[i];
        if (r->local)
            continue;
        int32_t domain = d->group_domain[(size_t)group * d->wide_len + (size_t)r->wide];
        int64_t count = domain < 0 ? 0 : r->sums[domain];
        if (!is_open(d, r, domain, count))
            return false;
        add_points(r, domain, count, &points);
    }
    *out = soft_points(d, &points) + prefer_points(&points);
    return true;
}

const struct domains_rule *domains_refusing(const struct domains *d,
                                            const struct cluster_node *node, unsigned kinds)
{
    facets_guard_read(FACET_COUNTERS);
    for (size_t i = 0; d != NULL && i < d->len; i++) {
        const struct domains_rule *r = &d->rules[i];
        int32_t domain = r->topology->domain_of[node->place];
        if ((kinds & (1u << r->kind)) != 0 &&
            !is_open(d, r, domain, count_of(r, domain, (uint32_t)node->place, node->id.number)))
            return r;
    }
    return NULL;
}

int32_t domains_points(const struct domains *d, const struct cluster_node *node, bool prefer)
{
    struct points near = {0}, wide = {0};
    for (size_t i = 0; d != NULL && i < d->len; i++) {
        const struct domains_rule *r = &d->rules[i];
        int32_t domain = r->topology->domain_of[node->place];
        int64_t count = count_of(r, domain, (uint32_t)node->place, node->id.number);
        add_points(r, domain, count, r->local ? &near : &wide);
    }
    if (d == NULL)
        return 0;
    return prefer ? prefer_points(&near) + prefer_points(&wide)
                  : soft_points(d, &near) + soft_points(d, &wide);
}
