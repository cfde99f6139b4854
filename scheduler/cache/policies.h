// SPDX-License-Identifier: Apache-2.0
/*
 * policies - which ResourcePolicy holds for a pod, in which of its units a placed pod is, and into which units one more may go. Pure.
 *
 * The pods of a policy are counted by group (those that agree in the values of matchLabelKeys) and unit, as they are held on nodes and released: assumed ones count from the moment
 * of the plan, so a unit's max is kept whatever is under way, and a rolled back plan leaves no trace. Nothing is written anywhere for the counts: they come back after a restart from
 * the pods themselves. Which unit a pod is in is written into it by its Binding (cosched.io/resource-unit), because node labels alone cannot tell: units may overlap, and a
 * pod of the second unit may run on a node that the first one selects as well. Pods that no policy placed (they were there before it) are in the first unit that
 * selects their node and gives nothing to its pods that they do not have.
 *
 * A unit is named by its number in spec.units, from 0. What a pod was given holds as long as the policy of that uid has such a unit and it selects the node; otherwise the pod counts like one that was there
 * before. So a policy that is edited moves no pod, and counts what runs by the new rules.
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
#include "scheduler/accounts/amounts.h"

struct cluster;
struct cluster_node;
struct cluster_pod;
struct gang;

enum { POLICIES_NO_UNIT = -1 };

/* Pods of one group in one unit. What they ask for is counted only where the unit limits it. */
struct policies_tally {
    int64_t pods;
    struct amounts used;
};

struct policies_count {
    struct policies_tally live;    /* not terminating */
    struct policies_tally leaving; /* terminating */
};

struct policies_entry;

/* Pods of one policy that agree in the values of its matchLabelKeys. Lives as long as such a pod does, waiting or placed. */
struct policies_group {
    char *key;   /* "ns/policy" and the values */
    char *lacks; /* a label of matchLabelKeys that they have not, or NULL; its own */
    struct policies_entry *of;
    size_t pods;                   /* that belong to it, placed or not */
    struct policies_count *counts; /* one for each unit */
};

/* A policy in force. */
struct policies_entry {
    const struct policy *policy; /* the object store's */
    struct amounts *limits;      /* of each unit; amounts of those that maxResources names */
    int64_t *placed;             /* pods in each unit, of all groups, whether they count or not */
    int64_t *leaving;            /* of these those that are terminating */
    size_t groups;
    uint64_t serial; /* another one whenever the policy says something new */
};

struct policies {
    struct VEC(struct policies_entry *) entries; /* in force: by namespace, age, name */
    struct map groups;                           /* key -> struct policies_group */
    uint64_t serials;
    uint32_t events; /* EVENT_* that counting has caused since somebody asked */
    uint64_t moves;  /* times that a placed pod came to count otherwise than before */
    int64_t now_ns;  /* the wall's time as the shell last said it: timeouts are judged by it */
};

void policies_init(struct policies *ps);
void policies_deinit(struct policies *ps);

/* ---- policies come and go: the watch, a dump ---- */

/* Takes the object, valid or not, into cluster.objects (OBJECTS_POLICIES). Returns EVENT_* bits: none where it says the same as before, but for its status. Pods that wait follow the new
 * rules; those that are placed stay, and are counted by them. */
uint32_t policies_put(struct cluster *c, struct policy *p);
/* uid NULL: whatever has that key. */
uint32_t policies_remove(struct cluster *c, const char *key, const char *uid);
/* Borrowed until the next change; NULL: there is none, valid or not. */
const struct policy *policies_find(const struct cluster *c, const char *key);

/* ---- of one pod: for whoever writes labels, costs and events ---- */

/* The policy that holds for the pod, waiting or placed; NULL: none. Borrowed until the next change of it. */
const struct policy *policies_of(const struct cluster_pod *cp);
/* The unit that a placed pod is in; POLICIES_NO_UNIT: none, or it is not placed. */
int32_t policies_unit_of(const struct cluster_pod *cp);
/* The names of the other policies that select the pod, "b" or "b, c"; NULL: there is none. */
const char *policies_others(const struct cluster *c, const struct cluster_pod *cp, struct arena *a);
/* Whether the pod's policy decides if it goes to real or to virtual nodes: true for every pod that has one. The unit's kind is then what matters, not the annotation of bursting pods; the
 * virtual nodes' own taint is tolerated where one of the units is of eci or acs (policies_goes_virtual). */
bool policies_holds(const struct cluster_pod *cp);
bool policies_goes_virtual(const struct cluster_pod *cp);
/* What a Binding writes into the pod beside its claim, in a: which unit it is in, the unit's podAnnotations, and the deletion cost where the user has set none. Of a pod that is
 * assumed. A pod without a policy: nothing, or what blanks a unit that it brought along. */
struct labels policies_annotations(const struct cluster_pod *cp, struct arena *a);
/* The unit's podLabels that the pod does not have: a label that it has is never changed, whatever its value, because its owner may select by it. */
struct labels policies_labels(const struct cluster_pod *cp, struct arena *a);
/* Those of them that the pod has with another value: "app=web, and not other"; NULL: none. */
const char *policies_labels_kept(const struct cluster_pod *cp, struct arena *a);

enum policies_cost {
    POLICIES_COST_NONE,    /* not ours to write: it is in no unit and carries nothing of ours */
    POLICIES_COST_RIGHT,   /* carries it already */
    POLICIES_COST_WRITE,   /* *cost is to be written, as both annotations */
    POLICIES_COST_REMOVE,  /* carries one of ours, and should carry none */
    POLICIES_COST_CONFLICT /* the user's own stays; the two conflict: *cost is what ours would be */
};
/* What pod-deletion-cost a placed pod should carry: the first unit has the highest, POLICY_UNITS_MAX, each further one less, so that controllers take pods of the last unit away first. A value that differs
 * from the one that we noted beside it (cosched.io/deletion-cost) is the user's. */
enum policies_cost policies_deletion_cost(const struct cluster_pod *cp, int32_t *cost);

/* ---- time ---- */

/* The shell says what time it is before each cycle, and when a gang of several or one is refused asks when time alone may help it: nanoseconds on the wall, 0 for never. It is then to be woken
 * with EVENT_UNIT. */
void policies_set_now(struct cluster *c, int64_t now_ns);
int64_t policies_due_ns(const struct cluster *c, const struct gang *g);

/* ---- the model's: cluster.c calls these ---- */

void policies_join(struct cluster *c, struct cluster_pod *cp);  /* is new, or its object changed */
void policies_leave(struct cluster *c, struct cluster_pod *cp); /* is about to go */
/* It is about to be assumed on that node: into the first open unit that has it. */
void policies_assume(struct cluster *c, struct cluster_pod *cp, const struct cluster_node *on);
/* It is bound there, or still assumed: its unit, as its annotation says, or the plan did. */
void policies_read(struct cluster_pod *cp, const struct cluster_node *on);
void policies_forget(struct cluster_pod *cp);
/* It was assumed by whoever made a dump: its unit is in its annotations all the same. */
void policies_restore(struct cluster *c, struct cluster_pod *cp);
/* It is held on its node from now on, or not any more. */
void policies_hold(struct cluster *c, struct cluster_pod *cp);
void policies_release(struct cluster *c, struct cluster_pod *cp);
/* Its labels or its kind changed, or it came or went. */
void policies_node_changed(struct cluster *c, struct cluster_node *cn);
/* Its part was that (policies_digest; 0: it had none), and is what it is now: if it is another one, a place came free in the count where it was. */
void policies_note_moved(struct cluster *c, const struct cluster_pod *cp, uint64_t was);
/* EVENT_* of what was counted since the last question. */
uint32_t policies_take_events(struct cluster *c);
/* What a pod adds to the cluster's digest: its unit, and by whom it was given. */
uint64_t policies_digest(const struct cluster_pod *cp);
/* Notes in the seat what the pod sees of its policy's units now (policies_is_as_seen). */
void policies_see(const struct cluster *c, struct cluster_pod *cp);
/* A text that names the policy as it is and the open units, as noted: for the plugin's key. */
void policies_print_key(const struct cluster_pod *cp, struct strbuf *out);

/* ---- the pipeline's ---- */

/* What the pod sees now. */
struct policies_view policies_look(const struct cluster *c, const struct cluster_pod *cp);
/* Whether that is what it saw when its class was found. */
bool policies_is_as_seen(const struct cluster *c, const struct cluster_pod *cp);
/* The first of the open units that has the node; POLICIES_NO_UNIT: none. */
int32_t policies_unit_on(const struct cluster_pod *cp, uint64_t open,
                         const struct cluster_node *node);
/* Why the node is in no open unit of the pod's, as it was seen last, in a: "in units[0] of ResourcePolicy web, which is at its max of 2 pods". The same for all pods of a class. */
const char *policies_why_not(const struct cluster_pod *cp, const struct cluster_node *node,
                             struct arena *a);
/* Why that unit does not take the pod now, whatever its nodes say: "is at its max of 2 pods"; NULL: it is open. */
const char *policies_why_shut(const struct cluster *c, const struct cluster_pod *cp, size_t unit,
                              struct arena *a);
/* How many steps a gang is tried in: units of its members that preempt before they look at the next unit; 1: at once. */
size_t policies_steps(struct gang *const *gangs, size_t len);
/* Members that preempt before the next unit look at the first `units` ones only; 0: at all again. */
void policies_narrow(struct gang *const *gangs, size_t len, size_t units);
