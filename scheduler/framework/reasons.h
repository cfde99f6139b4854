// SPDX-License-Identifier: Apache-2.0
/*
 * reasons - why no node fits, in one sentence for the user. Pure.
 *
 * Each filter says its "no" as a struct reason; a tally counts equal ones over the nodes and keeps the most promising amount:
 *
 *     0/4 nodes fit: 3 have no card with 12 GiB free (largest free: 9 GiB on n2/GPU1), 1 is in mode topology
 *
 * The sentence does not depend on the order in which the nodes were met (I4).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/str.h"

enum reason_kind {
    REASON_RESOURCE,      /* what: resource name; want, free in its unit */
    REASON_NOT_OFFERED,   /* what: resource name */
    REASON_DEVICE_CLASS,  /* what: "e.com/gpu only by ... (DeviceClass c)": see fit.c */
    REASON_PODS,          /* free pod places: none */
    REASON_UNSCHEDULABLE, /* cordoned */
    REASON_TAINT,         /* what: "key=value:Effect" */
    REASON_SELECTOR,      /* nodeSelector or required node affinity */
    REASON_NO_INVENTORY,  /* what: the ledger's problem */
    REASON_GPU_MODE,      /* what: mode name */
    REASON_GPU_SWITCHING, /* what: the mode it goes to */
    REASON_GPU_UNPLACED,  /* pods there hold cards that nobody can name */
    REASON_CARD,          /* what: "no card with 12 GiB"; want, free: GiB; also percent and card */
    REASON_CARDS,         /* want, free: whole cards */
    REASON_CARD_SICK,     /* what: "GPU0 unhealthy (XID 79)"; it would have the room */
    REASON_VIRTUAL,       /* a virtual node, and the pod does not burst */
    REASON_NOT_VIRTUAL,   /* a real node, and the pod wants virtual ones only */
    REASON_SIDE_REAL,     /* a virtual node, and the gang is to stay on real ones */
    REASON_SIDE_VIRTUAL,  /* a real node, and the gang is to stay on virtual ones */
    REASON_UNREADABLE,    /* a pod there holds nobody knows how much; detail: which, and why */
    REASON_PORT,          /* what: "8080/TCP" or "10.0.0.1:8080/TCP" */
    REASON_FEATURE,       /* what: name of the feature that the node does not declare */
    REASON_SPREAD,        /* what: topology key; want: max skew */
    REASON_SPREAD_LABEL,  /* what: topology key that the node has not */
    REASON_AFFINITY,      /* what: topology key, of the affinity to other pods */
    REASON_AFFINITY_LABEL,
    REASON_ANTI,             /* what: topology key, of the pod's anti-affinity */
    REASON_EXISTING_ANTI,    /* the same of a placed pod */
    REASON_CLAIM,            /* what: "claim ns/x does not exist": of the pod, not of a node */
    REASON_VOLUME_REACH,     /* what: "volume v of claim ns/x" */
    REASON_VOLUME_ZONE,      /* what: volume */
    REASON_VOLUME_NONE,      /* what: claim that finds no volume, and none is made for it */
    REASON_VOLUME_ELSEWHERE, /* what: "n1, which was chosen for claim ns/x" */
    REASON_VOLUME_TOPOLOGY,  /* what: storage class that makes volumes elsewhere only */
    REASON_VOLUME_ROOM,      /* what: storage class that has no room there */
    REASON_VOLUME_TAKEN,     /* what: disk that another pod there has mounted */
    REASON_VOLUME_DRIVER,    /* what: driver that is missing */
    REASON_VOLUME_LIMIT,     /* what: driver; want, free: volumes */
    REASON_REJECTED,         /* what: a resource that the kubelet lacked a moment ago */
    REASON_COMPUTE,          /* what: "alibabacloud.com/compute-class=gpu", which the node has */
    REASON_UNIT,             /* what: "in units[0] of ResourcePolicy web, which is at its max" */
    REASON_RESERVED,         /* what: "gang ns/x until 2026-11-16T09:30:00Z" */
    REASON_NO_TOPOLOGY,      /* what: why the node's CPUs are not known */
    REASON_CPUS_CLOSED,      /* what: why its node agent pins nobody */
    REASON_CPUS,             /* want, free: CPUs that no other pod is bound to */
    REASON_CPUS_NUMA,        /* the same of one NUMA node */
    REASON_CPUS_SPLIT,       /* want: NUMA nodes allowed; free: those needed, below 0 */
    REASON_CPUS_LENT,        /* want, free: CPUs; others are on loan and can be called back */
    REASON_KINDS,
};

struct reason {
    enum reason_kind kind;
    const char *what; /* borrowed until the tally is printed */
    const char *
        detail; /* REASON_UNREADABLE: "ns/p: not a quantity"; borrowed as well, tells nodes apart but not rows */
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
    int64_t nodes;      /* looked at */
    int64_t others;     /* nodes whose reason found no row */
    const char *of;     /* which nodes these are: "real nodes"; NULL: all */
    bool lacks_virtual; /* it could go to virtual nodes, and there are none */
};

void reasons_init(struct reasons *t);
void reasons_add(struct reasons *t, const struct reason *r, const char *node);
/* The same for all nodes of a row that was counted elsewhere. */
void reasons_add_row(struct reasons *t, const struct reasons_row *add);
/* Whether a node with this reason is nearer to fitting than one with that, of the same kind and name. */
bool reasons_is_better(const struct reason *r, const struct reason *than);
/* A copy of which the texts live in a; names of nodes stay borrowed. */
void reasons_copy(struct reasons *to, const struct reasons *from, struct arena *a);
/* The sentence. */
char *reasons_sentence(const struct reasons *t, struct arena *a);
/* Kinds and names without amounts and counts: changes only when the class of the reason does. */
uint64_t reasons_class(const struct reasons *t);
