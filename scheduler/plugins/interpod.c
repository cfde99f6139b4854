// SPDX-License-Identifier: Apache-2.0
/* interpod - affinity and anti-affinity between pods: of this pod, and of placed pods against it.
 * framework/domains counts and scores; this file has the class key and the reasons. */
#include "scheduler/framework/equivalence.h"
#include "scheduler/framework/domains.h"
#include "scheduler/plugins/all.h"

static enum reason_kind reason_of(const struct domains_rule *r, bool has_label)
{
    switch (r->kind) {
    case DOMAINS_AFFINITY:
        return has_label ? REASON_AFFINITY : REASON_AFFINITY_LABEL;
    case DOMAINS_EXISTING_ANTI:
        return REASON_EXISTING_ANTI;
    default:
        return REASON_ANTI;
    }
}

static bool filter(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                   struct reason *why)
{
    const struct domains_rule *no =
        domains_refusing(ask->class->domains, node,
                         1u << DOMAINS_AFFINITY | 1u << DOMAINS_ANTI | 1u << DOMAINS_EXISTING_ANTI);
    if (no == NULL || why == NULL)
        return no == NULL;
    *why = (struct reason){.kind = reason_of(no, no->topology->domain_of[node->place] >= 0),
                           .what = arena_strdup(a, no->key)};
    return false;
}

static int64_t score(const struct plugin_ask *ask, const struct cluster_node *node)
{
    return domains_points(ask->class->domains, node, true) / plugin_interpod.weight;
}

static void key(const struct plugin_ask *ask, struct strbuf *out)
{
    const struct pod *p = ask->pod->pod;
    const struct pod_counters_traits *traits = ask->pod->traits;
    if (p->terms != NULL) {
        strbuf_addc(out, 'N');
        strbuf_addc(out, domains_means_itself(ask->cluster, p) ? '+' : '-');
        pod_counters_print_terms(p->terms, out);
    }
    for (size_t i = 0; traits != NULL && i < traits->against.len; i++)
        strbuf_addf(out, "!%llu", (unsigned long long)traits->against.items[i]->number);
}

static uint64_t key_version(const struct plugin_ask *ask)
{
    return ask->cluster->index->version + ask->cluster->objects->generation[API_OBJECTS_NAMESPACES];
}

const struct plugin plugin_interpod = {.name = "interpod",
                                       .key = key,
                                       .key_version = key_version,
                                       PLUGIN_READS(FACET_COUNTERS | FACET_NAMESPACES),
                                       .score_depends = PLUGIN_DOMAIN,
                                       .filter = filter,
                                       .score = score,
                                       .weight = DOMAINS_PREFER_WEIGHT};
