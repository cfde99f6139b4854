// SPDX-License-Identifier: Apache-2.0
/* placing_domains - the topology domains (zones, hosts) that could hold a whole gang, one after the
 * other. Pure. The first member of a gang with affinity goes where it fits best, and the others
 * must follow, into a zone that may be too small. So the zones are tried one by one, the one with
 * most free capacity first. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "scheduler/accounts/resource_vector.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/framework/pipeline.h"

struct placing;

enum { PLACING_KEYS = 4, PLACING_DOMAINS = 16 /* per key */ };

/* The node_table indices of its nodes, in order. */
struct placing_domain {
    uint32_t *places;
    size_t len;
};

struct placing_domains {
    struct placing *placing;
    struct resource_vector least; /* the minimum over all members */
    int64_t missing;
    const char *keys[PLACING_KEYS];
    size_t keys_len, key;
    struct domain_capacity {
        int64_t capacity; /* upper bound, in members */
        uint32_t domain;
    } * order; /* the key's domains that are worth a try */
    size_t order_len, at;
};

/* No domain at all unless the members have affinity to each other, or use GPUs. */
void placing_domains_init(struct placing_domains *d, struct placing *p);
bool placing_domains_next(struct placing_domains *d, struct placing_domain *out);
/* The best node of the domain; false: none fits, and no reasons are given. */
bool placing_domains_choose(const struct pipeline *ask, struct cluster_pod *pod,
                            const struct placing_domain *within, struct arena *a,
                            struct pipeline_choice *out);
/* Whether the free capacity of all nodes together would do for the quorum, if each could be used to
 * the full; false: no way of placing helps. */
bool placing_domains_could_fit(struct placing *p);
