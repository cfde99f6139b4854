// SPDX-License-Identifier: Apache-2.0
/*
 * domains - rules of a class that involve several nodes: topology spread and inter-pod affinity, of
 * the pod and of placed pods against it. Pure.
 *
 * A rule sums pod counters (how many such pods each node has) over the domains of a topology key.
 * The sums follow the node table's log: when a node changes, the difference is added.
 *
 * Nodes whose label values agree for all keys of the class form a group, and a decision evaluates
 * the rules once per group. A key that makes each node its own domain (the hostname) would make as
 * many groups as nodes, so rules over such a key are local: evaluated per node when it changes, as
 * part of its score in the class' tree. A local rule depends on other nodes only by one number (for
 * spread the least count, for affinity whether there is any pod); when that changes all nodes are
 * evaluated again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/vec.h"
#include "scheduler/model/pod_counters.h"
#include "scheduler/framework/plugin.h"
#include "scheduler/model/topologies.h"

/* Weights of the plugins that score by these rules. */
enum { DOMAINS_SPREAD_WEIGHT = 2, DOMAINS_PREFER_WEIGHT = 2 };

enum domains_kind {
    DOMAINS_SPREAD,        /* topologySpreadConstraints, DoNotSchedule */
    DOMAINS_SOFT,          /* ScheduleAnyway */
    DOMAINS_AFFINITY,      /* required affinity: one term; counts pods that match all terms */
    DOMAINS_ANTI,          /* required anti-affinity: all terms of one key */
    DOMAINS_EXISTING_ANTI, /* required anti-affinity of placed pods that selects this one */
    /* preferred terms of one key, of this pod and of placed ones, times their weights */
    DOMAINS_PREFER,
};

struct domains_part {
    struct pod_counters_counter *counter;
    int32_t factor;
};

#define DOMAINS_NOT_COUNTED INT32_MIN

struct domains_rule {
    enum domains_kind kind;
    char *key;
    struct VEC(struct domains_part) parts;
    int32_t max_skew, min_domains; /* DOMAINS_SPREAD, DOMAINS_SOFT */
    bool self;                     /* the pod itself adds one to its domain */
    bool honor_affinity, honor_taints;
    /* Set by the last rebuild and kept up to date: */
    struct topology *topology;
    uint64_t version;
    bool local; /* each domain is one node */
    /* seen and sums are maintained; most local rules need only the node's own count */
    bool summed;
    int32_t wide; /* index in domains.wide; -1: local */
    /* by node index: its part of the sums; DOMAINS_NOT_COUNTED: none */
    int32_t *seen;
    int64_t *sums;       /* by domain */
    int32_t *members;    /* by domain: nodes that count */
    int64_t total;       /* of all sums */
    uint32_t present;    /* domains with a member */
    int64_t least, most; /* of the domains with a member */
    bool dirty;          /* least and most must be recomputed */
    uint32_t *histogram; /* local DOMAINS_SPREAD: nodes by their count */
    size_t histogram_len;
};

struct domains {
    struct domains_rule *rules;
    size_t len;
    /* the pod matches all its own required terms: the first such pod may go anywhere */
    bool affinity_self;
    size_t soft;                   /* rules DOMAINS_SOFT */
    struct topologies *topologies; /* of the rules; NULL: not built yet */
    struct topology **wide;        /* topologies that are not local */
    uint32_t wide_len;
    uint32_t groups;
    uint32_t *group_of;    /* by node index */
    int32_t *group_domain; /* [group * wide_len + w] */
    bool begins;           /* affinity_self, and there is no such pod yet */
    size_t bytes;
};

/* NULL: no rule of the pod or against it. Call pod_counters_traits_of first. */
struct domains *domains_new(struct cluster *c, const struct cluster_pod *cp);
void domains_free(struct domains *d);
/* Whether the pod matches all its own required terms of affinity. */
bool domains_means_itself(const struct cluster *c, const struct pod *p);

/* Recomputes everything from the node table and the pod counters. */
void domains_rebuild(struct domains *d, const struct plugin_ask *ask, struct topologies *all);
/* Whether all nodes are still in the domains of the last rebuild. */
bool domains_is_current(const struct domains *d);
/* The Node object at that index changed, its domains did not. */
void domains_node_changed(struct domains *d, const struct plugin_ask *ask, uint32_t place);
/* What the node at that index holds changed. */
void domains_follow(struct domains *d, const struct plugin_ask *ask, uint32_t place);
/* After all changes. true: the local rules of every node must be evaluated again. */
bool domains_settle(struct domains *d);

/* The local rules' part of a node's score, or SCORE_TREE_NO. */
int32_t domains_rate(const struct domains *d, const struct node_table_row *row, uint32_t place);
/* Whether the nodes of a group are open, and the other rules' part of their score. */
bool domains_rate_group(const struct domains *d, uint32_t group, int32_t *points);
/* One node, all rules of the kinds (a mask of 1 << kind): the first that refuses, or NULL. For
 * reasons; agrees with the two above. */
const struct domains_rule *domains_refusing(const struct domains *d,
                                            const struct cluster_node *node, unsigned kinds);
/* One node: weighted points of the rules DOMAINS_SOFT (prefer false) or DOMAINS_PREFER. */
int32_t domains_points(const struct domains *d, const struct cluster_node *node, bool prefer);
