// SPDX-License-Identifier: Apache-2.0
/*
 * model - what the cluster is: its types, and how to find things in it. What happens to it is in
 * cluster.h; each part (objects, policies, reservations, ...) has a file of its own, which knows
 * this one and never cluster.h. Pure.
 *
 * Only what the cluster is lies here. What others remember of a pod, a gang, a node or a PodGroup
 * (the queue, the classes, whoever writes to the API server), each keeps in a table of its own by
 * the id that these have here (lib/base/ids.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/ids.h"
#include "lib/base/map.h"
#include "lib/base/vec.h"
#include "lib/model/grant.h"
#include "lib/model/gang.h"
#include "lib/model/node.h"
#include "lib/model/pod.h"
#include "scheduler/accounts/resource_vector.h"
#include "scheduler/accounts/cpu_accounts.h"
#include "lib/model/cpu_request.h"
#include "scheduler/accounts/cpu_shapes.h"
#include "scheduler/accounts/gpu_accounts.h"
#include "scheduler/cache/failures.h"
#include "scheduler/cache/virtuals.h"

struct pod_counters;
struct pod_counters_traits;
struct api_objects;
struct policies;
struct policies_group;
struct reservations;
struct replacement_hold;
struct node_table;
struct topologies;
struct volumes_cache;
struct volumes_held;
struct volumes_index;
struct volumes_promises;
struct gpu_prices;

/* What happened, as far as a waiting pod may care. A plugin names those that can turn its "no" into
 * a "yes". */
enum cluster_event {
    EVENT_NODE_ADDED = 1 << 0,
    EVENT_NODE_ROOM = 1 << 1, /* allocatable grew */
    EVENT_NODE_LABELS = 1 << 2,
    EVENT_NODE_TAINTS = 1 << 3, /* or unschedulable */
    EVENT_NODE_GPU = 1 << 4,    /* inventory or placement */
    EVENT_POD_GONE = 1 << 5,    /* something that held room holds less */
    EVENT_GANG = 1 << 6,        /* a member came or changed, or the PodGroup did */
    EVENT_NAMESPACE = 1 << 7,   /* a namespace came or went, or its labels changed */
    EVENT_VOLUME = 1 << 8, /* a claim, volume, storage class or what CSI says of a node changed */
    EVENT_BUDGET = 1 << 9, /* a PodDisruptionBudget changed: other victims may do */
    EVENT_NODE_FEATURES = 1 << 10, /* status.declaredFeatures */
    EVENT_NODE_GONE = 1 << 11,     /* with it a domain to spread over may be gone */
    EVENT_POD_COUNTED = 1 << 12,   /* affinity or spread counts another number of pods somewhere */
    EVENT_POD_PLACED = 1 << 13,    /* room was taken: a gang may be tried in another order */
    EVENT_NODE_CPU = 1 << 14,      /* CPU topology */
    EVENT_POLICY = 1 << 15,        /* a ResourcePolicy came, changed or went */
    EVENT_UNIT = 1 << 16,          /* a place in a unit of one, or the time for the next */
    EVENT_ALL = (1 << 17) - 1,
};

struct cluster_port {
    const struct container_port *port; /* in the owner's arena */
    const struct cluster_pod *owner;
};

struct cluster_node {
    char *name;
    /* NULL: the API server has no such node (any more), but pods are bound to it */
    struct node *node;
    struct resource_vector allocatable;
    struct resource_vector used;
    size_t unreadable; /* pods on it of which nobody knows what they hold: no room for others */
    struct VEC(struct cluster_pod *) pods; /* assumed and bound */
    struct VEC(struct cluster_port) ports; /* host ports that they have */
    int32_t place;                         /* in the table, or NODE_TABLE_NOWHERE */
    bool is_virtual;                       /* virtuals.h */
    struct id id;                          /* in cluster.node_ids, whether or not it has a Node */
    uint32_t rejections;                   /* resources that its kubelet lacked: rejections.h */
    uint32_t nominated;                    /* pods that wait for room here: nominations.h */
    uint32_t reserved;                     /* gangs for which room is kept here: reservation.h */
    int64_t cards;                         /* how many, whoever serves them */
    uint32_t gpu_model;                    /* their number in gpu_prices */
    struct gpu_accounts gpu_accounts;
    struct cpu_accounts cpus;
};

enum cluster_state {
    CLUSTER_PENDING,
    CLUSTER_ASSUMED,
    CLUSTER_BOUND,
    /* a Succeeded member of a gang: holds nothing, and still counts as a member */
    CLUSTER_FINISHED,
};

/* What a pod sees of its policy's units: all that filter, score and reasons depend on beside pod
 * and node. */
struct policies_view {
    uint64_t open;   /* one bit for each unit that it may go into; all: it has no policy */
    uint64_t at_max; /* units that have their max of pods */
    uint8_t stop;    /* the units behind this one are not looked at; UINT8_MAX: all are */
    uint8_t first;   /* policies_narrow */
};

/* A pod's part in its policy. */
struct policy_membership {
    struct policies_group *group; /* NULL: no policy selects it */
    int32_t unit;                 /* where it is placed, or POLICIES_NO_UNIT */
    bool previous;                /* placed, and not by this policy */
    bool held;                    /* in the policy's counts */
    bool counted;                 /* in the group's counts, too */
    bool leaving;                 /* as one that is */
    uint64_t by;                  /* hash of the uid of the policy that gave it the unit; 0: none */
    const char *lacks;            /* its group's */
    uint8_t first; /* only so many units from the first on are tried (policies_narrow); 0: all */
    struct policies_view view; /* as it was looked at last (policies_see) */
};

struct cluster_pod {
    struct pod *pod;
    enum cluster_state state;
    struct cluster_node *on;        /* assumed, bound */
    size_t on_place;                /* index in on->pods */
    struct resource_vector request; /* extra in the pod's arena */
    struct gpu_request gpu;         /* in the pod's arena */
    /* of the shares, for messages (gpu_accounts_shape.h); likewise */
    const char *gpu_shape;
    const struct cpu_request *cpu; /* in the pod's arena; NULL: none is asked for */
    bool has_ports;                /* asks for host ports, in containers or sidecars */
    struct arena grant_arena;
    struct grant grant;
    /* adds up to the request; whether its cards exist is for the GPU accounts to check */
    bool grant_trusted;
    /* called back of its loan and not confirmed yet (cpu_lending.h), heap; or NULL */
    struct cpuset *giving;
    uint32_t giving_again;            /* how often it had to be called back again */
    struct volumes_promises *volumes; /* assumed, and has claims that are bound first; or NULL */
    struct gang *gang;                /* ours only (our schedulerName), and not a lone bound one */
    struct gang_ref said;             /* what it says of its gang; of ours only */
    bool in_quorum;  /* was bound when its gang had its quorum, or says so itself */
    bool recorded;   /* the pod carries that, or a write is under way */
    char *nominated; /* node on which it waits for room (nominations.h), or NULL */
    struct policy_membership membership; /* in its ResourcePolicy, if it has one */
    struct pod_counters_traits *traits;  /* pod_counters.h; NULL: nobody asked yet */
    struct id id;                        /* in cluster.pod_ids */
    uint32_t version; /* of its object, nomination, policy and reserved capacity together */
    bool sent_away;   /* for a more important pod: as good as terminating (cluster_send_away) */
};

/* The unit of scheduling: a gang, or a lone pod as a gang of one. */
struct gang {
    char *key;    /* "gang ns/name" or "pod ns/name" */
    struct id id; /* in cluster.gang_ids */
    enum gang_form form;
    int32_t min_available; /* 1 for a lone pod; 0: the PodGroup is not known */
    int32_t priority;      /* of the most important member */
    int64_t since_ns;      /* creation of the oldest member */
    int32_t min_conflict;  /* a member that says another number; 0: all agree */
    enum gang_match match; /* never UNSAID */
    bool satisfied;        /* a member is in_quorum: gangs.h */
    bool to_record;        /* in cluster.satisfied, at record_place */
    bool recording;        /* a record is on its way */
    size_t record_place;
    struct VEC(struct cluster_pod *) members;
    size_t several_place; /* index in cluster.several, unless it is a lone pod */
    /* Which gangs it goes with. */
    struct gang_list {
        char *text;         /* as it was said last, heap; NULL: nothing was */
        struct arena arena; /* of names */
        const char **names; /* sorted; NULL: none, or not legal, or its members disagree */
        size_t len;
        uint64_t told; /* what the gangs that name this one know of it */
    } list;
};

/* The PodGroups of one name, or NULL: each API group may have one. scheduling.sigs.k8s.io wins over
 * scheduling.x-k8s.io, which holds again where the other goes. */
struct cluster_groups {
    char *key;
    struct id id; /* in cluster.group_ids */
    struct pod_group *of[POD_GROUP_APIS];
};

/* Which of the nodes with room is filled first; the names are those of options and dumps, in this
 * order. */
enum cluster_packing {
    CLUSTER_AS_SET = -1, /* of a question: as the cluster is set */
    CLUSTER_EMPTIEST_FIRST,
    CLUSTER_FULLEST_FIRST,
    /* By what the pod would leave of the resource that gets scarcest: ways to try a gang that does
     * not fit otherwise (placing.c). */
    CLUSTER_TIGHTEST_FIRST,
    CLUSTER_LOOSEST_FIRST
};
#define CLUSTER_EMPTIEST_NAME "least-allocated"
#define CLUSTER_FULLEST_NAME "most-allocated"

/* Which nodes a pod may use that has real nodes first (virtual_use.h); a question narrows it where
 * a gang is to stay together. */
enum cluster_pool { CLUSTER_POOL_ANY, CLUSTER_POOL_REAL, CLUSTER_POOL_VIRTUAL };

/* How gangs burst: on one kind of nodes if that is possible, only so, or each member for itself.
 * The names are those of the option and of dumps, in this order. */
enum cluster_gang_burst { CLUSTER_BURST_TOGETHER, CLUSTER_BURST_WHOLE, CLUSTER_BURST_MEMBER };
#define CLUSTER_BURST_TOGETHER_NAME "together"
#define CLUSTER_BURST_WHOLE_NAME "whole"
#define CLUSTER_BURST_MEMBER_NAME "member"

/* A node whose kubelet sent a pod back: rejections.h. */
struct cluster_rejection {
    char *node;
    char *resource;
    bool closed; /* nobody goes there who wants it; otherwise: those who find no other node */
    int64_t closed_until_ms, until_ms;
};

struct cluster_placed {
    int32_t priority;
    int64_t pods;
};

struct cluster {
    const char *scheduler_name;
    enum cluster_packing packing; /* set once */
    enum cluster_gang_burst gang_burst;
    struct virtuals virtuals;
    size_t virtual_nodes; /* that the API server has */
    struct map nodes;     /* name -> struct cluster_node */
    struct map pods;      /* "ns/name" -> struct cluster_pod */
    struct map gangs;     /* key -> struct gang, lone pods among them */
    struct ids node_ids, pod_ids, gang_ids, group_ids;
    struct VEC(struct gang *) several;        /* those that are not of one lone pod, in no order */
    struct map pod_groups;                    /* "ns/name" -> struct cluster_groups */
    struct map gangs_named;                   /* "ns/name" -> who names it (gangs_bundle.h) */
    struct VEC(struct gang *) satisfied;      /* that must be recorded (gangs.h) */
    struct VEC(struct cluster_placed) placed; /* how many pods of each priority */
    struct VEC(struct cluster_pod *) nominated; /* nominations.h */
    struct VEC(struct cluster_rejection) rejections;
    struct failures failures;       /* failed members of gangs */
    struct replacement_hold *slots; /* of gangs that lost a member */
    struct reservations *reservations;
    struct resource_vector_names names;
    struct api_objects *objects; /* namespaces, storage, budgets */
    struct policies *policies;
    struct volumes_held *volumes;
    struct volumes_cache *volumes_cache; /* volumes_view.h */
    struct volumes_index *volumes_index; /* volumes_attached.h */
    struct cpu_shapes cpu_shapes;
    /* What was found out about the nodes, and what has changed since: in no digest. */
    struct pod_counters *index;
    struct node_table *table;
    struct topologies *topologies;
    /* What GPU pods ask for, and what places for them cost: in the dump, in no digest. */
    struct gpu_prices *gpu_prices;
};

/* Gang hooks: the queue is told when a gang changes or is about to vanish. */
struct cluster_hooks {
    void (*gang_changed)(void *arg,
                         struct gang *g); /* has a pending member that may be scheduled */
    void (*gang_vanishing)(void *arg, struct gang *g);
    void *arg;
};

/* Borrowed until the next change. */
struct cluster_node *cluster_find_node(const struct cluster *c, const char *name);
struct cluster_pod *cluster_find_pod(const struct cluster *c, const char *key);
/* The first by name of the node's pods that cannot be read, or NULL. */
const struct cluster_pod *cluster_find_unreadable(const struct cluster_node *cn);

bool cluster_labels_equal(const struct labels *a, const struct labels *b);
/* May the pod be placed now: pending, not gated, not terminating. */
bool cluster_pod_is_schedulable(const struct cluster_pod *cp);
