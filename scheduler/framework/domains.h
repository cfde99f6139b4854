// SPDX-License-Identifier: Apache-2.0
/*
 * domains - the part of a class that looks at more than one node: topology spread and inter-pod affinity, of the pod and against the pod. Pure.
 *
 * A rule sums counters of the index (how many such pods does each node have) over the domains of a topology key. The sums are kept, and follow the table's log: of a node
 * that changed, the difference to what was summed is added.
 *
 * Nodes whose label values agree for all keys of the class are one group: for a rule they are all the same, so a decision asks the rules once for each group and not for
 * each node. A key with which each node is a domain of its own (the hostname) would make as many groups as nodes: rules over such a key are asked node by node, when
 * that node changes, and are part of its score in the class' tree. What such a rule knows of other nodes is one number (the least count of all, for spread; whether there
 * is any pod at all, for affinity); when that changes all nodes are asked again.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/vec.h"
#include "scheduler/cache/index.h"
#include "scheduler/framework/plugin.h"
#include "scheduler/cache/topologies.h"

/* Of the plugins that score by these rules. */
enum { DOMAINS_SPREAD_WEIGHT = 2, DOMAINS_PREFER_WEIGHT = 2 };

enum domains_kind {
    DOMAINS_SPREAD,        /* topologySpreadConstraints, DoNotSchedule */
    DOMAINS_SOFT,          /* ScheduleAnyway */
    DOMAINS_AFFINITY,      /* required affinity: one term; counts pods that match all terms */
    DOMAINS_ANTI,          /* required anti-affinity: all terms of one key */
    DOMAINS_EXISTING_ANTI, /* required anti-affinity of placed pods that means this one */
    DOMAINS_PREFER, /* preferred terms of one key, of this pod and of placed ones, times their weights */
};

struct domains_part {
    struct index_counter *counter;
    int32_t factor;
};

#define DOMAINS_NOT_COUNTED INT32_MIN

struct domains_rule {
    enum domains_kind kind;
    char *key;
    struct VEC(struct domains_part) parts;
    int32_t max_skew, min_domains; /* DOMAINS_SPREAD, DOMAINS_SOFT */
    bool self;                     /* the pod itself adds one where it goes */
    bool honor_affinity, honor_taints;
    /* As of the last rebuild, and followed since: */
    struct topology *topology;
    uint64_t version;
    bool local; /* each domain is one node */
    bool
        summed; /* seen and sums are kept; a local rule mostly needs no more than the node's own count */
    int32_t wide; /* which of domains.wide; -1: local */
    int32_t
        *seen; /* by place: what is in the sums; DOMAINS_NOT_COUNTED: the node counts for nothing */
    int64_t *sums;       /* by domain */
    int32_t *members;    /* by domain: nodes that count */
    int64_t total;       /* of all sums */
    uint32_t present;    /* domains with a member */
    int64_t least, most; /* of the domains with a member */
    bool dirty;          /* least and most are to be found anew */
    uint32_t *histogram; /* local DOMAINS_SPREAD: nodes by their count */
    size_t histogram_len;
};

struct domains {
    struct domains_rule *rules;
    size_t len;
    bool
        affinity_self; /* the pod is meant by all its own required terms: the first of its kind may go anywhere */
    size_t soft;            /* rules DOMAINS_SOFT */
    struct topology **wide; /* those that are not local */
    uint32_t wide_len;
    uint32_t groups;
    uint32_t *group_of;    /* by place */
    int32_t *group_domain; /* [group * wide_len + w] */
    bool begins;           /* affinity_self, and no such pod anywhere */
    size_t bytes;
};

/* NULL: the pod has no such rule, and none is against it. */
struct domains *domains_new(struct cluster *c, struct cluster_pod *cp);
void domains_free(struct domains *d);
/* What makes two pods equal in all this: goes into the class' text. Nothing for most pods. */
void domains_print_key(struct cluster *c, struct cluster_pod *cp, struct strbuf *out);

/* Everything from the table and the index as they are. */
void domains_rebuild(struct domains *d, const struct plugin_ask *ask, struct topologies *all);
/* Whether all nodes are still in the domains in which they were at the last rebuild. */
bool domains_is_current(const struct domains *d);
/* The Node object at that place changed, its domains did not. */
void domains_node_changed(struct domains *d, const struct plugin_ask *ask, uint32_t place);
/* What is held at that place changed. */
void domains_follow(struct domains *d, const struct plugin_ask *ask, uint32_t place);
/* After all changes. true: every node's local answer is to be asked anew. */
bool domains_settle(struct domains *d);

/* The local rules' part of a node's score, or TREE_NO. */
int32_t domains_rate(const struct domains *d, const struct table_row *row, uint32_t place);
/* Whether the nodes of a group are open, and the other rules' part of their score. */
bool domains_rate_group(const struct domains *d, uint32_t group, int32_t *points);
/* One node, all rules of the kinds (a mask of 1 << kind): the first that refuses, or NULL. For reasons; the same answer as the two above. */
const struct domains_rule *domains_refusing(const struct domains *d,
                                            const struct cluster_node *node, unsigned kinds);
/* One node: points of the rules DOMAINS_SOFT (prefer false) or DOMAINS_PREFER, times their weight. */
int32_t domains_points(const struct domains *d, const struct cluster_node *node, bool prefer);
