// SPDX-License-Identifier: Apache-2.0
/*
 * model - the types of the cluster and its lookups. cluster.h has the operations on it. Each part
 * (objects, policies, reservations, ...) has its own file, which includes this one and never
 * cluster.h. Pure.
 *
 * Other modules (the queue, the classes, the API writers) keep their state about a pod, gang, node
 * or PodGroup in their own tables, by its id (lib/base/ids.h).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/heap.h"
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
#include "scheduler/model/virtuals.h"

struct pod_counters;
struct pod_counters_traits;
struct api_objects;
struct policies;
struct policies_group;
struct policies_mark;
struct policies_space;
struct reservations;
struct replacement_hold;
struct node_table;
struct nominations_node;
struct topologies;
struct volumes_held;
struct volumes_index;
struct volumes_promises;
struct gpu_prices;

/* Changes that may help a waiting pod. A plugin names those that can turn its "no" into a "yes". */
enum cluster_event {
    EVENT_NODE_ADDED = 1 << 0,
    EVENT_NODE_CAPACITY = 1 << 1, /* allocatable grew */
    EVENT_NODE_LABELS = 1 << 2,
    EVENT_NODE_TAINTS = 1 << 3,    /* or unschedulable */
    EVENT_NODE_GPU = 1 << 4,       /* inventory or placement */
    EVENT_POD_GONE = 1 << 5,       /* a holder of capacity holds less on a node of cluster.freed */
    EVENT_GANG = 1 << 6,           /* a member or the PodGroup was added or changed */
    EVENT_NAMESPACE = 1 << 7,      /* a namespace was added or removed, or its labels changed */
    EVENT_VOLUME = 1 << 8,         /* a claim, volume, storage class or a node's CSI data changed */
    EVENT_BUDGET = 1 << 9,         /* a PodDisruptionBudget changed: other victims may do */
    EVENT_NODE_FEATURES = 1 << 10, /* status.declaredFeatures */
    EVENT_NODE_GONE = 1 << 11,     /* a topology domain may be gone with it */
    EVENT_POD_COUNTED = 1 << 12,   /* a count of affinity or spread changed on some node */
    EVENT_POD_PLACED = 1 << 13,    /* capacity was taken: a gang may be tried in another order */
    EVENT_NODE_CPU = 1 << 14,      /* CPU topology */
    EVENT_POLICY = 1 << 15,        /* a ResourcePolicy was added, changed or removed */
    EVENT_UNIT = 1 << 16, /* a unit has capacity again, or its timeout for the next one is over */
    /* As EVENT_POD_GONE, for those whom it may help on other nodes too. Only awaited, never raised:
     * the queue adds it. */
    EVENT_POD_LEFT = 1 << 17,
    EVENT_POD_LEAVING = 1 << 18, /* a pod is on its way from a node of cluster.freed */
    EVENT_ALL = (1 << 19) - 1,
};

struct cluster_port {
    const struct container_port *port; /* in the owner's arena */
    const struct cluster_pod *owner;
};

struct cluster_node {
    char *name;
    /* NULL: the API server does not have the node, but pods are bound to it */
    struct node *node;
    struct resource_vector allocatable;
    struct resource_vector used;           /* of what it offers */
    struct VEC(struct cluster_pod *) pods; /* assumed and bound */
    struct VEC(struct cluster_port) ports; /* host ports in use, by number */
    int32_t place;                         /* in the table, or NODE_TABLE_NOWHERE */
    bool is_virtual;                       /* virtuals.h */
    struct id id;                          /* in cluster.node_ids, whether or not it has a Node */
    uint32_t rejections;                   /* resources that its kubelet lacked: rejections.h */
    struct nominations_node *nominated;    /* pods that wait for capacity here, or NULL: none */
    uint32_t reserved;                     /* gangs with a reservation here: reservation.h */
    int64_t cards;                         /* number of cards, whoever serves them */
    uint32_t gpu_model;                    /* number of their model in gpu_prices */
    struct gpu_accounts gpu_accounts;
    struct cpu_accounts cpus;
};

enum cluster_state {
    CLUSTER_PENDING,
    CLUSTER_ASSUMED,
    CLUSTER_BOUND,
    /* a Succeeded member of a gang: holds nothing, but still counts as a member */
    CLUSTER_FINISHED,
};

/* What a pod sees of its policy's units: everything that filter, score and reasons depend on
 * besides pod and node. */
struct policies_view {
    uint64_t open;   /* one bit for each unit that it may use; all bits: it has no policy */
    uint64_t at_max; /* units with their max of pods */
    uint8_t stop;    /* units after this one are not checked; UINT8_MAX: all are */
    uint8_t first;   /* only the first so many units are tried; 0: all */
};

/* A pod's membership in its policy. */
struct policy_membership {
    struct policies_group *group; /* NULL: no policy selects it */
    int32_t unit;                 /* where it is placed, or POLICIES_NO_UNIT */
    bool previous;                /* placed, and not by this policy */
    bool held;                    /* in the policy's counts */
    bool counted;                 /* also in the group's counts */
    bool leaving;                 /* counted as terminating */
    uint64_t by;       /* hash of the uid of the policy that assigned the unit; 0: none */
    const char *lacks; /* its group's */
    bool stale;        /* it left its group and is about to join one: policies_work */
    size_t place;      /* in its policy's members, or in its namespace's stale pods */
    struct policies_space *space; /* its namespace */
    size_t space_place;           /* in space->pods */
    struct policies_mark *marks;  /* by label, or NULL: policies_index.h */
    uint32_t marks_len;
};

struct cluster_pod {
    struct pod *pod;
    enum cluster_state state;
    struct cluster_node *on;        /* if assumed or bound */
    size_t on_place;                /* index in on->pods */
    struct resource_vector request; /* extra lies in the pod's arena */
    struct gpu_request gpu;         /* in the pod's arena */
    /* the shares as text for messages (gpu_accounts_shape.h), in the pod's arena */
    const char *gpu_shape;
    const struct cpu_request *cpu; /* in the pod's arena; NULL: no CPUs requested */
    bool has_ports;                /* requests host ports, in containers or sidecars */
    struct arena grant_arena;
    struct grant grant;
    /* adds up to the request; the GPU accounts check whether its cards exist */
    bool grant_trusted;
    /* borrowed CPUs being reclaimed and not confirmed yet (cpu_lending.h), heap; or NULL */
    struct cpuset *giving;
    uint32_t giving_again;            /* how often the reclaim was repeated */
    struct volumes_promises *volumes; /* if assumed with claims that must be bound first; or NULL */
    struct gang *gang;                /* only our schedulerName's pods, without bound lone pods */
    struct gang_ref said;             /* its own gang settings; only for our pods */
    /* how it is counted in gang.said: the digest, or 1 for no list; 0: it is not */
    uint64_t said_counted;
    bool in_quorum;          /* was bound when its gang had its quorum, or its annotation says so */
    size_t gang_place;       /* index in gang->members */
    struct heap_node by_age; /* in gang->ages */
    uint8_t tally;           /* which of gang->counts it is in: a bit each */
    bool recorded;           /* the pod has the annotation, or a write is under way */
    char *nominated;         /* the node whose capacity it waits for (nominations.h), or NULL */
    struct policy_membership membership;
    struct pod_counters_traits *traits;        /* pod_counters.h; NULL: not needed yet */
    struct cluster_pod *same_next, *same_prev; /* pods of the same traits */
    struct id id;                              /* in cluster.pod_ids */
    uint64_t template;                         /* expected_end_template */
    uint32_t version; /* of its object, nomination, policy and reservation together */
    bool evicting;    /* preempted: treated as terminating (cluster_set_evicting) */
    bool stays;       /* it was to go and did not: no victim (cluster_set_staying) */
};

/* How many members, kept up to date by gangs_retally. */
enum gang_count {
    GANG_COUNT_VOICES,   /* their settings count: gangs_settings_counts */
    GANG_COUNT_EXISTING, /* neither gated nor terminating */
    GANG_COUNT_EXISTING_IN_QUORUM,
    GANG_COUNT_BOUND, /* according to the API server */
    GANG_COUNT_BOUND_IN_QUORUM,
    GANG_COUNT_WAITING, /* may be placed now */
    GANG_COUNTS
};

/* A list of gangs, and how many members of a gang name it. */
struct gang_said {
    uint64_t digest;
    size_t members;
};

/* The unit of scheduling: a gang, or a lone pod as a gang of one. */
struct gang {
    char *key;    /* "gang ns/name" or "pod ns/name" */
    struct id id; /* in cluster.gang_ids */
    enum gang_form form;
    int32_t min_available; /* 1 for a lone pod; 0: the PodGroup is unknown */
    int32_t priority;      /* highest of the members */
    int64_t since_ns;      /* creation of the oldest member */
    int32_t min_conflict;  /* a differing number that a member gives; 0: all agree */
    enum gang_match match; /* never UNSAID */
    bool satisfied;        /* a member is in_quorum: gangs.h */
    bool to_record;        /* in cluster.satisfied, at record_place */
    bool recording;        /* a record is being written */
    size_t record_place;
    struct VEC(struct cluster_pod *) members;
    int32_t counts[GANG_COUNTS];
    bool uniform;         /* all members say the same: what one says need not be read again */
    struct heap ages;     /* of the members, unless it is a lone pod: the oldest first */
    uint64_t reads;       /* of all members, for tests */
    size_t several_place; /* index in cluster.several, unless it is a lone pod */
    /* The gangs that it is placed with. */
    struct gang_list {
        char *text;         /* of the PodGroup or a member, as last read, heap; NULL: no list */
        uint64_t digest;    /* gang_list_digest; 0: invalid */
        bool agreed;        /* all that name a list name this one */
        struct arena arena; /* of names */
        const char **names; /* sorted; NULL: none, invalid, or the members disagree */
        size_t len;
        uint32_t *places; /* by name: in the list of those that name it; in the arena */
        uint64_t told;    /* the digest that all gangs that name this one were told; 0: none */
        bool told_ready, told_waits; /* what those of the list were told */
    } list;
    /* What its counting members say of it (gangs_settings_counts): which lists, how many none. */
    struct VEC(struct gang_said) said;
    size_t silent;
};

/* The PodGroups of one name, one per API group, or NULL. scheduling.sigs.k8s.io takes precedence
 * over scheduling.x-k8s.io, which applies again when the other is deleted. */
struct cluster_groups {
    char *key;
    struct id id; /* in cluster.group_ids */
    struct pod_group *of[POD_GROUP_APIS];
};

/* Which node with enough capacity is filled first. Options and dumps use the names in this
 * order. */
enum cluster_packing {
    CLUSTER_AS_SET = -1, /* in a query: the cluster's setting */
    CLUSTER_EMPTIEST_FIRST,
    CLUSTER_FULLEST_FIRST,
    /* By what the pod would leave of the scarcest resource: tried for a gang that does not fit
     * otherwise (placing.c). */
    CLUSTER_TIGHTEST_FIRST,
    CLUSTER_LOOSEST_FIRST
};
#define CLUSTER_EMPTIEST_NAME "least-allocated"
#define CLUSTER_FULLEST_NAME "most-allocated"

/* The nodes for a pod that prefers real nodes (virtual_use.h). A query narrows it to keep a gang
 * together. */
enum cluster_pool { CLUSTER_POOL_ANY, CLUSTER_POOL_REAL, CLUSTER_POOL_VIRTUAL };

/* How gangs use virtual nodes: on one kind of nodes if possible, only so, or each member by itself.
 * The option and dumps use the names in this order. */
enum cluster_gang_pools { CLUSTER_GANG_TOGETHER, CLUSTER_GANG_WHOLE, CLUSTER_GANG_MEMBER };
#define CLUSTER_GANG_TOGETHER_NAME "together"
#define CLUSTER_GANG_WHOLE_NAME "whole"
#define CLUSTER_GANG_MEMBER_NAME "member"

/* A node whose kubelet rejected a pod: rejections.h. */
struct cluster_rejection {
    char *node;
    char *resource;
    bool closed; /* for pods that want the resource; otherwise the node is their last resort */
    int64_t closed_until_ms, until_ms;
};

struct cluster_placed {
    int32_t priority;
    int64_t pods;
};

struct cluster {
    const char *scheduler_name;
    enum cluster_packing packing; /* set once */
    enum cluster_gang_pools gang_pools;
    struct virtuals virtuals;
    size_t virtual_nodes; /* in the API server */
    struct map nodes;     /* name -> struct cluster_node */
    struct map pods;      /* "ns/name" -> struct cluster_pod */
    struct map gangs;     /* key -> struct gang, including lone pods */
    struct ids node_ids, pod_ids, gang_ids, group_ids;
    struct VEC(struct gang *) several;        /* gangs other than lone pods, unordered */
    struct map pod_groups;                    /* "ns/name" -> struct cluster_groups */
    struct map gangs_named;                   /* "ns/name" -> gangs that name it (gangs_bundle.h) */
    uint64_t lists_looked;                    /* members and gangs looked at for it: the work */
    struct VEC(struct gang *) satisfied;      /* gangs to be recorded (gangs.h) */
    struct VEC(struct cluster_placed) placed; /* number of pods per priority */
    struct map nominated;                     /* node -> struct nominations_node */
    struct VEC(struct cluster_pod *) staying; /* cluster_set_staying, unordered */
    struct VEC(struct cluster_rejection) rejections;
    struct replacement_hold *holds; /* of gangs that lost a member */
    struct reservations *reservations;
    struct resource_vector_names names;
    struct api_objects *objects;
    struct policies *policies;
    struct volumes_held *volumes;
    struct volumes_index *volumes_index; /* volumes_attached.h */
    struct cpu_shapes cpu_shapes;
    /* Nodes with EVENT_POD_GONE and EVENT_POD_LEAVING since the queue last looked: in no digest. */
    struct VEC(struct cluster_node *) freed;
    bool freed_anywhere; /* too many to list, or unknown */
    /* Derived data about the nodes and its changes: in no digest. */
    struct pod_counters *index;
    struct node_table *table;
    struct topologies *topologies;
    /* Demand of GPU pods and prices: in the dump, in no digest. */
    struct gpu_prices *gpu_prices;
};

/* The queue's hooks. */
struct cluster_hooks {
    void (*gang_changed)(void *arg, struct gang *g); /* it has a pending, schedulable member */
    void (*gang_vanishing)(void *arg, struct gang *g);
    void *arg;
};

/* Borrowed until the next change. */
struct cluster_node *cluster_find_node(const struct cluster *c, const char *name);
struct cluster_pod *cluster_find_pod(const struct cluster *c, const char *key);

/* A pod left the node, or holds less of it; NULL: any node may have capacity now. Returns
 * EVENT_POD_GONE, which nothing else may raise. */
uint32_t cluster_note_freed(struct cluster *c, struct cluster_node *cn);

bool cluster_labels_equal(const struct labels *a, const struct labels *b);
/* Whether the pod may be placed now: pending, not gated, not terminating. */
bool cluster_pod_is_schedulable(const struct cluster_pod *cp);
