// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "lib/base/str.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/cache/cluster_internal.h"

static uint64_t mix(uint64_t h, uint64_t v)
{
    return (h ^ v) * 1099511628211u;
}

uint64_t cluster_digest_grant(const struct cluster_pod *cp)
{
    uint64_t h = cp->grant_trusted;
    for (size_t i = 0; i < cp->grant.shares_len; i++) {
        const struct grant_share *s = &cp->grant.shares[i];
        int64_t row[4] = {s->container, s->card, s->gib, s->percent};
        h = (h ^ str_hash((const char *)row, sizeof row)) * 1099511628211u;
    }
    for (size_t i = 0; i < cp->grant.group_len; i++)
        h = (h ^ (uint64_t)(uint32_t)cp->grant.group[i]) * 1099511628211u;
    for (size_t i = 0; i < cp->grant.cpus.len; i++) {
        const struct cpu_grant_part *part = &cp->grant.cpus.parts[i];
        h = mix(mix(h, part->container), (uint64_t)part->numa);
        h = mix(h, str_hash((const char *)part->cpus.words, sizeof part->cpus.words));
    }
    return h;
}

/* Sums of per-object hashes, so the order in maps and lists does not matter. */
uint64_t cluster_digest(const struct cluster *c)
{
    const char *key;
    void *value;
    uint64_t sum = volumes_held_digest(c->volumes);
    for (size_t i = 0; map_next(&c->nodes, &i, &key, &value);) {
        const struct cluster_node *cn = value;
        uint64_t h = str_hash(key, strlen(key));
        h = mix(h, resource_vector_digest(&cn->used));
        h = mix(h, gpu_accounts_digest(&cn->gpu_accounts));
        h = mix(h, cpu_accounts_digest(&cn->cpus));
        sum += mix(h, cn->pods.len);
    }
    for (size_t i = 0; map_next(&c->pods, &i, &key, &value);) {
        const struct cluster_pod *cp = value;
        uint64_t h = mix(str_hash(key, strlen(key)), (uint64_t)cp->state);
        h = mix(h, cluster_digest_grant(cp));
        h = mix(h, policies_digest(cp));
        if (cp->nominated != NULL)
            h = mix(h, str_hash(cp->nominated, strlen(cp->nominated)));
        sum += cp->on != NULL ? mix(h, str_hash(cp->on->name, strlen(cp->on->name))) : h;
    }
    return sum;
}
