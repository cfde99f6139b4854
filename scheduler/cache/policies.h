// SPDX-License-Identifier: Apache-2.0
/*
 * policies - the ResourcePolicy that applies to a pod, the unit that a placed pod is in, and the
 * units that a pod may use. Pure.
 *
 * The pods of a policy are counted by group (equal values of matchLabelKeys) and unit, as nodes
 * hold and release them: assumed ones count from the moment of the plan, so a unit's max holds at
 * any time, and a rolled back plan leaves no trace. The counts are not stored: after a restart they
 * follow from the pods. The Binding writes a pod's unit into it (cosched.io/resource-unit), because
 * node labels do not determine it: units may overlap, and a pod of the second unit may run on a
 * node that the first one selects too. Pods that no policy placed (they are older) are in the first
 * unit that selects their node and whose podLabels they all have.
 *
 * A unit is named by its index in spec.units, from 0. A pod's written unit holds as long as the
 * policy of that uid has such a unit and it selects the node; otherwise the pod counts like an
 * older one. So editing a policy moves no pod, and counts running pods by the new rules.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/map.h"
#include "lib/base/str.h"
#include "lib/base/vec.h"
#include "lib/model/policy.h"
#include "scheduler/accounts/resource_vector.h"

struct cluster;
struct cluster_node;
struct cluster_pod;
struct gang;

enum { POLICIES_NO_UNIT = -1 };

/* Pods of one group in one unit. Requests are counted only where the unit limits them. */
struct policies_tally {
    int64_t pods;
    struct resource_vector used;
};

struct policies_count {
    struct policies_tally live;    /* not terminating */
    struct policies_tally leaving; /* terminating */
};

struct policies_entry;

/* Pods of one policy with equal values of its matchLabelKeys. Lives as long as such a pod does,
 * waiting or placed. */
struct policies_group {
    char *key;   /* "ns/policy" and the values */
    char *lacks; /* a label of matchLabelKeys that they lack, or NULL; owned */
    struct policies_entry *of;
    size_t pods;                   /* that belong to it, placed or not */
    struct policies_count *counts; /* one for each unit */
};

/* A valid policy. */
struct policies_entry {
    const struct policy *policy; /* the object store's */
    /* per unit: amounts that maxResources names */
    struct resource_vector *limits;
    int64_t *placed;  /* pods in each unit, of all groups, whether they count or not */
    int64_t *leaving; /* of these those that are terminating */
    size_t groups;
    uint64_t serial; /* changes whenever the policy's content does */
};

struct policies {
    struct VEC(struct policies_entry *) entries; /* valid policies by namespace, age, name */
    struct map groups;                           /* key -> struct policies_group */
    uint64_t serials;
    uint32_t events; /* EVENT_* caused by counting since the last policies_take_events */
    uint64_t moves;  /* how often a placed pod's count changed */
    int64_t now_ns;  /* wall time as last set by the loop: timeouts refer to it */
};

void policies_init(struct policies *ps);
void policies_deinit(struct policies *ps);

/* ---- policies come and go: the watch, a dump ---- */

/* Takes the object, valid or not, into cluster.objects (API_OBJECTS_POLICIES). Returns EVENT_*
 * bits, none if only its status changed. Waiting pods follow the new rules; placed ones stay, and
 * are counted by them. */
uint32_t policies_put(struct cluster *c, struct policy *p);
/* uid NULL: any policy with that key. */
uint32_t policies_remove(struct cluster *c, const char *key, const char *uid);
/* Borrowed until the next change; NULL: there is none, valid or not. */
const struct policy *policies_find(const struct cluster *c, const char *key);

/* ---- of one pod: for writers of labels, costs and events ---- */

/* The policy that applies to the pod, waiting or placed; NULL: none. Borrowed until it changes. */
const struct policy *policies_of(const struct cluster_pod *cp);
/* The unit that a placed pod is in; POLICIES_NO_UNIT: none, or it is not placed. */
int32_t policies_unit_of(const struct cluster_pod *cp);
/* The names of the other policies that select the pod, "b" or "b, c"; NULL: there is none. */
const char *policies_others(const struct cluster *c, const struct cluster_pod *cp, struct arena *a);
/* Whether the pod's policy decides between real and virtual nodes: true for every pod that has one.
 * Then the unit's kind matters, not the annotation for virtual nodes; their taint is tolerated if
 * one of the units is eci or acs (policies_goes_virtual). */
bool policies_holds(const struct cluster_pod *cp);
bool policies_goes_virtual(const struct cluster_pod *cp);
/* What a Binding writes into an assumed pod besides its grant, in a: its unit, the unit's
 * podAnnotations, and the deletion cost unless the user set one. Without a policy: nothing, or what
 * blanks a unit annotation that the pod came with. */
struct labels policies_annotations(const struct cluster_pod *cp, struct arena *a);
/* The unit's podLabels that the pod lacks: an existing label is never changed, because the pod's
 * owner may select by it. */
struct labels policies_labels(const struct cluster_pod *cp, struct arena *a);
/* The unit's podLabels that the pod has with another value: "app=web, and not other"; NULL:
 * none. */
const char *policies_labels_kept(const struct cluster_pod *cp, struct arena *a);

enum policies_cost {
    POLICIES_COST_NONE,    /* not ours: it is in no unit and has no annotation of ours */
    POLICIES_COST_RIGHT,   /* already set */
    POLICIES_COST_WRITE,   /* *cost is to be written, as both annotations */
    POLICIES_COST_REMOVE,  /* has one of ours, and should have none */
    POLICIES_COST_CONFLICT /* the user's value stays; it conflicts: *cost is what ours would be */
};
/* The pod-deletion-cost of a placed pod: the first unit has the highest, POLICY_UNITS_MAX, each
 * further one less, so that controllers delete pods of the last unit first. A value that differs
 * from our note beside it (cosched.io/deletion-cost) is the user's. */
enum policies_cost policies_deletion_cost(const struct cluster_pod *cp, int32_t *cost);

/* ---- time ---- */

/* The loop sets the time before each cycle. When a gang is refused it asks when time alone may
 * help: wall nanoseconds, 0 for never. Then it wakes the gang with EVENT_UNIT. */
void policies_set_now(struct cluster *c, int64_t now_ns);
int64_t policies_due_ns(const struct cluster *c, const struct gang *g);

/* ---- for cluster.c ---- */

void policies_join(struct cluster *c, struct cluster_pod *cp);  /* is new, or its object changed */
void policies_leave(struct cluster *c, struct cluster_pod *cp); /* is about to go */
/* It is about to be assumed on that node: into the first open unit that has it. */
void policies_assume(struct cluster *c, struct cluster_pod *cp, const struct cluster_node *on);
/* The pod is bound there, or still assumed: its unit, by its annotation or the plan. */
void policies_read(struct cluster_pod *cp, const struct cluster_node *on);
void policies_forget(struct cluster_pod *cp);
/* The pod was assumed in a dump: its unit is in its annotations. */
void policies_restore(struct cluster *c, struct cluster_pod *cp);
/* It is held on its node from now on, or not any more. */
void policies_hold(struct cluster *c, struct cluster_pod *cp);
void policies_release(struct cluster *c, struct cluster_pod *cp);
/* Its labels or its kind changed, or it came or went. */
void policies_node_changed(struct cluster *c, struct cluster_node *cn);
/* The pod's part was `was` (policies_digest; 0: none). If it differs now, capacity came free where
 * it counted before. */
void policies_note_moved(struct cluster *c, const struct cluster_pod *cp, uint64_t was);
/* EVENT_* of what was counted since the last question. */
uint32_t policies_take_events(struct cluster *c);
/* A pod's part of the cluster's digest: its unit, and which policy gave it. */
uint64_t policies_digest(const struct cluster_pod *cp);
/* Records what the pod sees of its policy's units now (policies_is_as_seen). */
void policies_see(const struct cluster *c, struct cluster_pod *cp);
/* A text for the policy's version and the open units, as recorded: for the plugin's key. */
void policies_print_key(const struct cluster_pod *cp, struct strbuf *out);

/* ---- for the pipeline ---- */

/* What the pod sees now. */
struct policies_view policies_view_of(const struct cluster *c, const struct cluster_pod *cp);
/* Whether that equals what it saw when its class was found. */
bool policies_is_as_seen(const struct cluster *c, const struct cluster_pod *cp);
/* The first of the open units that has the node; POLICIES_NO_UNIT: none. */
int32_t policies_unit_on(const struct cluster_pod *cp, uint64_t open,
                         const struct cluster_node *node);
/* Why the node is in no open unit of the pod, as last recorded, in a: "in units[0] of
 * ResourcePolicy web, which is at its max of 2 pods". The same for all pods of a class. */
const char *policies_why_not(const struct cluster_pod *cp, const struct cluster_node *node,
                             struct arena *a);
/* Why that unit does not accept the pod now, whatever its nodes: "is at its max of 2 pods"; NULL:
 * it is open. */
const char *policies_why_shut(const struct cluster *c, const struct cluster_pod *cp, size_t unit,
                              struct arena *a);
/* The number of steps in which a gang is tried: units of its members that preempt before they use
 * the next unit; 1: at once. */
size_t policies_steps(struct gang *const *gangs, size_t len);
/* Limits members that preempt before the next unit to the first `units` ones; 0: no limit. */
void policies_narrow(struct gang *const *gangs, size_t len, size_t units);
