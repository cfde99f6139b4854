// SPDX-License-Identifier: Apache-2.0
/*
 * reasons - why no node fits, in one sentence for the user. Pure.
 *
 * A filter returns its "no" as a struct reason; a tally counts equal ones over the nodes and keeps
 * the most promising amount:
 *
 *     0/4 nodes fit: 3 have no card with 12 GiB free (largest free: 9 GiB on n2/GPU1), 1 is in mode
 *     topology
 *
 * A node that has too little even when empty has a kind of its own (..._SIZE), so that a request
 * that waits for pods to end reads otherwise than one that waits in vain:
 *
 *     0/4 nodes fit: 3 have no card with 40 GiB even when empty (largest: 24 GiB on n2/GPU1), 1 has
 *     the taint a=b:NoSchedule that the pod does not tolerate; no node could ever take it
 *
 * The sentence does not depend on the order of the nodes (I4). Others extend it: cycle.c with what
 * the gang lacks; gang_preempt, cpu_lending and attempt with what it waits for. Members that do not
 * exist yet are a sentence of cache/gangs. binding/pod_writer adds the condition's reason word and
 * decides when to write it into the condition and the Event.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/str.h"

enum reason_kind {
    REASON_RESOURCE,      /* what: resource name; want, free in its unit */
    REASON_RESOURCE_SIZE, /* the same; free: of the empty node */
    REASON_NOT_OFFERED,   /* what: resource name */
    REASON_DEVICE_CLASS,  /* what: "e.com/gpu only by ... (DeviceClass c)" */
    REASON_PODS,          /* no free pod slot */
    REASON_UNSCHEDULABLE, /* cordoned */
    REASON_TAINT,         /* what: "key=value:Effect" */
    REASON_SELECTOR,      /* nodeSelector or required node affinity */
    REASON_NO_INVENTORY,  /* what: the problem of the GPU accounts */
    REASON_GPU_MODE,      /* what: mode name */
    REASON_GPU_SWITCHING, /* what: the mode it goes to */
    REASON_GPU_UNPLACED,  /* pods there hold cards that cannot be identified */
    REASON_CARD,          /* what: "no card with 12 GiB"; want, free: GiB; also percent and card */
    REASON_CARD_SIZE,     /* the same; free: the size of the largest card */
    REASON_CARDS,         /* want, free: whole cards */
    REASON_CARDS_SIZE,    /* the same; free: all of the node's */
    REASON_CARD_SICK,     /* what: "GPU0 unhealthy (XID 79)"; it would have the capacity */
    REASON_VIRTUAL,       /* a virtual node, and the pod may not use one */
    REASON_NOT_VIRTUAL,   /* a real node, and the pod wants virtual ones only */
    REASON_POOL_REAL,     /* a virtual node, and the gang must stay on real ones */
    REASON_POOL_VIRTUAL,  /* a real node, and the gang must stay on virtual ones */
    REASON_PORT,          /* what: "8080/TCP" or "10.0.0.1:8080/TCP" */
    REASON_FEATURE,       /* what: name of the feature that the node does not declare */
    REASON_SPREAD,        /* what: topology key; want: max skew */
    REASON_SPREAD_LABEL,  /* what: topology key that the node lacks */
    REASON_AFFINITY,      /* what: topology key, of the affinity to other pods */
    REASON_AFFINITY_LABEL,
    REASON_ANTI,             /* what: topology key, of the pod's anti-affinity */
    REASON_EXISTING_ANTI,    /* the same of a placed pod */
    REASON_CLAIM,            /* what: "claim ns/x does not exist": about the pod, not a node */
    REASON_VOLUME_REACH,     /* what: "volume v of claim ns/x" */
    REASON_VOLUME_ZONE,      /* what: volume */
    REASON_VOLUME_NONE,      /* what: claim without a volume, and none will be made */
    REASON_VOLUME_ELSEWHERE, /* what: "n1, which was chosen for claim ns/x" */
    REASON_VOLUME_TOPOLOGY,  /* what: storage class that makes volumes only elsewhere */
    REASON_VOLUME_CAPACITY,  /* what: storage class without capacity there */
    REASON_VOLUME_TAKEN,     /* what: disk mounted by another pod there */
    REASON_VOLUME_DRIVER,    /* what: driver that is missing */
    REASON_VOLUME_LIMIT,     /* what: driver; want, free: volumes */
    REASON_REJECTED,         /* what: a resource that the kubelet recently lacked */
    REASON_COMPUTE,          /* what: "alibabacloud.com/compute-class=gpu", which the node has */
    REASON_UNIT,             /* what: "in units[0] of ResourcePolicy web, which is at its max" */
    REASON_RESERVED,         /* what: "gang ns/x until 2026-11-16T09:30:00Z" */
    REASON_NO_TOPOLOGY,      /* what: why the node's CPUs are not known */
    REASON_CPUS_CLOSED,      /* what: why its node agent pins no pod */
    REASON_CPUS,             /* want, free: CPUs that no other pod is bound to */
    REASON_CPUS_NUMA,        /* the same of one NUMA node */
    REASON_CPUS_SPLIT,       /* want: NUMA nodes allowed; free: those needed, below 0 */
    REASON_CPUS_LENT,        /* want, free: CPUs; others are lent and can be reclaimed */
    REASON_KINDS,
};

struct reason {
    enum reason_kind kind;
    const char *what; /* borrowed until the tally is printed */
    int64_t want;
    int64_t free;
    int64_t want_percent; /* REASON_CARD; 0: not asked */
    int64_t free_percent;
    int32_t card; /* REASON_CARD: the most promising one; -1: none */
};

enum { REASONS_MAX = 24 }; /* different ones in a tally; the rest is counted as "others" */

struct reasons_row {
    struct reason reason;
    int64_t nodes;
    const char *best_node; /* the most promising one; of equal ones the first by name */
};

struct reasons {
    struct reasons_row rows[REASONS_MAX];
    size_t len;
    int64_t nodes;      /* examined */
    int64_t others;     /* nodes whose reason found no row */
    const char *of;     /* which nodes: "real nodes"; NULL: all of the cluster */
    bool lacks_virtual; /* it may use virtual nodes, and there are none */
};

void reasons_init(struct reasons *t);
void reasons_add(struct reasons *t, const struct reason *r, const char *node);
/* The same for all nodes of a row counted elsewhere. */
void reasons_add_row(struct reasons *t, const struct reasons_row *add);
/* Whether a node with r is nearer to fitting than one with `than`, of the same kind and name. */
bool reasons_is_better(const struct reason *r, const struct reason *than);
/* A copy with its texts in a; names of nodes stay borrowed. */
void reasons_copy(struct reasons *to, const struct reasons *from, struct arena *a);
char *reasons_sentence(const struct reasons *t, struct arena *a);
/* Hash of kinds and names without amounts and counts: changes only with the kind of reason. */
uint64_t reasons_class(const struct reasons *t);
