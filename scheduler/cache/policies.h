// SPDX-License-Identifier: Apache-2.0
/*
 * policies - the ResourcePolicy that applies to a pod, the unit of a placed pod, and the units that
 * a pod may use. Pure.
 *
 * Pods of a policy are counted by group (equal values of matchLabelKeys) and unit as nodes hold and
 * release them. Assumed pods count from the moment of the plan, so a unit's max holds at any time,
 * and rolling back a plan restores the counts. The counts are not stored: after a restart they
 * follow from the pods. The Binding writes a pod's unit into it (cosched.io/resource-unit), because
 * node labels do not determine it: units may overlap, and a pod of the second unit may run on a
 * node that the first one also selects. Pods that no policy placed (older ones) are in the first
 * unit that selects their node and whose podLabels they all have.
 *
 * A unit is named by its index in spec.units, from 0. A pod's written unit applies while the policy
 * of that uid has such a unit and it selects the node; otherwise the pod counts like an older one.
 * So editing a policy moves no pod, and running pods are counted by the new rules.
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
struct cluster_hooks;
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
struct policies_pair;
struct policies_entries VEC(struct policies_entry *);

/* Pods of one policy with equal values of its matchLabelKeys. Freed with its last pod, waiting or
 * placed. */
struct policies_group {
    char *key;   /* "ns/policy" and the values */
    char *lacks; /* a label of matchLabelKeys that its pods lack, or NULL; owned */
    struct policies_entry *of;
    size_t pods;                   /* members, placed or not */
    struct policies_count *counts; /* one for each unit */
};

struct policies_entry {
    char *key;                                /* "ns/policy" */
    const struct policy *policy;              /* a valid one, owned by cluster.objects */
    struct VEC(struct cluster_pod *) members; /* placed or not, unordered */
    /* policies_index.h; space NULL: it selects no pod any more */
    struct policies_space *space;
    struct policies_pair **pairs; /* of its selector */
    size_t pairs_len;
    struct policies_pair *found_by; /* one of them; NULL: it selects all pods */
    /* per unit: the amounts in maxResources */
    struct resource_vector *limits;
    int64_t *placed;  /* pods in each unit, of all groups, counted or not */
    int64_t *leaving; /* the terminating ones of these */
    size_t groups;
    uint64_t serial; /* changes whenever the policy's content does */
};

/* A new version of a policy, or its removal, that is not in force yet. */
struct policies_change {
    char *key;
    struct policy *policy; /* NULL: removed */
};

/* Which pods a change concerns is found, and they are moved, in slices (policies_work):
 *
 *     MARK   the namespace's first valid policy: its pods are entered by label
 *     OUT    the members of the old version leave: they are `stale`
 *     IN     the new version is in force; stale pods join whichever policy selects them, and so do
 *            the pods that the new version selects besides them */
enum policies_stage { POLICIES_MARK, POLICIES_OUT, POLICIES_IN };

/* A namespace with pods or policies. */
struct policies_space {
    char *ns;
    size_t place;                          /* in policies.spaces */
    struct VEC(struct cluster_pod *) pods; /* unordered */
    bool is_indexed;                       /* its pods are in `pairs`, or being entered */
    struct map pairs;                      /* of labels: policies_index.h */
    struct policies_entries every;         /* policies without a selector, oldest first */
    size_t entries;                        /* valid policies */
    /* Changes: those that wait, and the one under way. */
    bool is_busy;                                 /* in policies.busy */
    struct map queued;                            /* key -> struct policies_change */
    struct VEC(struct policies_change *) changes; /* the same in their order, from `done` on */
    size_t done;
    struct policies_change *change; /* NULL: none is under way */
    enum policies_stage stage;
    struct policies_entry *entry;       /* OUT: the old one; IN: the new one; or NULL */
    bool same_pods;                     /* both versions select the same pods */
    const struct policies_pair *walked; /* IN: whose pods are tried, if any; NULL: all pods */
    size_t cursor;                      /* of MARK and IN: so many are left */
    struct VEC(struct cluster_pod *) stale;
    /* Numbers of calls of policies_work. */
    uint64_t began;    /* the change under way */
    uint64_t finished; /* the last change */
    uint64_t rested;   /* no other change begins in that one */
};

struct policies {
    struct map entries; /* key -> struct policies_entry, of valid policies */
    struct map groups;  /* key -> struct policies_group */
    struct VEC(struct policies_space *) spaces; /* unordered */
    struct map spaces_by_name;
    struct VEC(struct policies_space *) busy; /* with changes: the next one first */
    struct map deferred;                      /* keys of gangs: policies_defer */
    bool is_working;                          /* within policies_work */
    uint64_t calls;                           /* of policies_work */
    uint64_t relieved; /* the last one that woke deferred gangs: they go before the next change */
    uint64_t serials;
    uint32_t events; /* EVENT_* caused by counting since the last policies_take_events */
    uint64_t moves;  /* number of changed counts of placed pods */
    uint64_t looked; /* pods and policies that were looked at for others' sake: the work done */
    int64_t now_ns;  /* wall time as last set: the base of timeouts */
};

void policies_init(struct policies *ps);
void policies_deinit(struct policies *ps);

/* Takes the object, valid or not, into cluster.objects (API_OBJECTS_POLICIES). Returns EVENT_*
 * bits, 0 if only its status changed. Waiting pods follow the new rules; placed ones stay and are
 * counted by them. */
uint32_t policies_put(struct cluster *c, struct policy *p);
/* uid NULL: any policy with that key. */
uint32_t policies_remove(struct cluster *c, const char *key, const char *uid);

/*
 * The same in slices, for the loop: a change is submitted, and policies_work makes it. Of several
 * changes of one policy that wait, only the newest is made. Namespaces take turns. While a change
 * waits or is under way its namespace's gangs are not tried (policies_defer), because counts and
 * memberships are incomplete; other namespaces are not concerned. After a change that took several
 * slices, or for which gangs were deferred, the namespace rests until the next call, so that its
 * gangs are tried between edits, however many come.
 *
 * Gangs with waiting pods that a change concerns, and deferred gangs, are passed to
 * hooks->gang_changed (hooks may be NULL): nobody else need be woken. Pods that left the counts of
 * another policy give EVENT_UNIT: see policies_take_events.
 */
enum { POLICIES_SLICE = 1000 /* pods, about a millisecond */ };
enum policies_progress { POLICIES_DONE, POLICIES_GO_ON, POLICIES_REST };

/* Takes the policy. False: only its status changed, which needs no work. */
bool policies_submit(struct cluster *c, struct policy *p);
/* As policies_remove. False: there is no such policy. */
bool policies_submit_removal(struct cluster *c, const char *key, const char *uid);
/* Looks at about `budget` pods. GO_ON: there is more to do; REST: only after a pause. */
enum policies_progress policies_work(struct cluster *c, const struct cluster_hooks *hooks,
                                     size_t budget);
/* All that waits. */
void policies_settle(struct cluster *c, const struct cluster_hooks *hooks);
/* Whether the gang must not be tried now; it is passed to gang_changed when it may be. */
bool policies_defer(struct cluster *c, const struct gang *g);
/* Whether the counts and memberships of that namespace are incomplete. */
bool policies_is_changing(const struct cluster *c, const char *ns);

/* All pods, in slices: each call returns the next one, NULL: no more. What is added, removed or
 * changed between calls does not hide a pod that was there at the beginning; some may come twice.
 * Zero-initialised. */
struct policies_walk {
    bool begun;
    size_t space, pod;
};
struct cluster_pod *policies_walk_next(const struct cluster *c, struct policies_walk *w);

/* ---- of one pod: for writers of labels, costs and events ---- */

/* The policy that applies to the pod, waiting or placed; NULL: none. Borrowed until it changes. */
const struct policy *policies_of(const struct cluster_pod *cp);
/* The unit of a placed pod; POLICIES_NO_UNIT: none, or not placed. */
int32_t policies_unit_of(const struct cluster_pod *cp);
/* The names of the other policies that select the pod, oldest first: "b", "b, c", or eight and "and
 * more"; NULL: none. */
const char *policies_others(const struct cluster *c, const struct cluster_pod *cp, struct arena *a);
/* Whether the pod's policy decides between real and virtual nodes: true for every pod with a
 * policy. Then the unit's kind matters, not the annotation for virtual nodes; their taint is
 * tolerated if one of the units is eci or acs (policies_goes_virtual). */
bool policies_holds(const struct cluster_pod *cp);
bool policies_goes_virtual(const struct cluster_pod *cp);
/* What a Binding writes into an assumed pod besides its grant, in a: its unit, the unit's
 * podAnnotations, and the deletion cost unless the user set one. Without a policy: nothing, or an
 * empty value for a unit annotation that the pod came with. */
struct labels policies_annotations(const struct cluster_pod *cp, struct arena *a);
/* The unit's podLabels that the pod lacks. An existing label is never changed, because the pod's
 * owner may select by it. */
struct labels policies_labels(const struct cluster_pod *cp, struct arena *a);
/* The unit's podLabels that the pod has with another value: "app=web, and not other"; NULL:
 * none. */
const char *policies_labels_kept(const struct cluster_pod *cp, struct arena *a);

enum policies_cost {
    POLICIES_COST_NONE,    /* not ours: in no unit, and no annotation of ours */
    POLICIES_COST_RIGHT,   /* already set */
    POLICIES_COST_WRITE,   /* write *cost, as both annotations */
    POLICIES_COST_REMOVE,  /* remove our annotation */
    POLICIES_COST_CONFLICT /* the user's value stays; *cost is what ours would be */
};
/* The pod-deletion-cost of a placed pod: the first unit has the highest, POLICY_UNITS_MAX, each
 * further one less, so that controllers delete pods of the last unit first. A value that differs
 * from our note beside it (cosched.io/deletion-cost) is the user's. */
enum policies_cost policies_deletion_cost(const struct cluster_pod *cp, int32_t *cost);

/* attempt.c sets the time before each cycle. policies_due_ns: when a refused gang may pass by time
 * alone, in wall nanoseconds, 0: never. Then the loop wakes the gang with EVENT_UNIT. */
void policies_set_now(struct cluster *c, int64_t now_ns);
int64_t policies_due_ns(const struct cluster *c, const struct gang *g);

/* ---- for cluster.c ---- */

void policies_join(struct cluster *c, struct cluster_pod *cp);  /* new, or its object changed */
void policies_leave(struct cluster *c, struct cluster_pod *cp); /* about to be removed */
/* The pod is about to be assumed on that node: puts it into the first open unit that selects it,
 * which is the same for any limit (policies_view_of) that let it in. */
void policies_assume(struct cluster *c, struct cluster_pod *cp, const struct cluster_node *on);
/* The pod is bound there, or still assumed: reads its unit from its annotation or the plan. */
void policies_read(struct cluster_pod *cp, const struct cluster_node *on);
void policies_forget(struct cluster_pod *cp);
/* The pod was assumed in a dump: reads its unit from its annotations. */
void policies_restore(struct cluster *c, struct cluster_pod *cp);
/* The pod is now held on its node, or no longer. */
void policies_hold(struct cluster *c, struct cluster_pod *cp);
void policies_release(struct cluster *c, struct cluster_pod *cp);
/* The node's labels or kind changed, or it was added or removed. */
void policies_node_changed(struct cluster *c, struct cluster_node *cn);
/* `was` is the pod's previous policies_digest (0: none). If it differs now, capacity is free in the
 * unit where the pod was counted. */
void policies_note_moved(struct cluster *c, const struct cluster_pod *cp, uint64_t was);
/* The EVENT_* bits since the last call. */
uint32_t policies_take_events(struct cluster *c);
/* A pod's part of the cluster's digest: its unit, and which policy assigned it. */
uint64_t policies_digest(const struct cluster_pod *cp);

/* ---- for the pipeline ---- */

/* The pod's view now. A pod that preempts before it uses the next unit is limited to the first
 * `units` units; 0: all. */
struct policies_view policies_view_of(const struct cluster *c, const struct cluster_pod *cp,
                                      size_t units);
/* The first open unit that selects the node; POLICIES_NO_UNIT: none. */
int32_t policies_unit_on(const struct cluster_pod *cp, uint64_t open,
                         const struct cluster_node *node);
/* Why the node is in no open unit of that view of the pod, in a: "in units[0] of ResourcePolicy
 * web, which is at its max of 2 pods". The same for all pods of a class. */
const char *policies_why_not(const struct cluster_pod *cp, const struct policies_view *v,
                             const struct cluster_node *node, struct arena *a);
/* Why that unit does not accept the pod now, on any node: "is at its max of 2 pods"; NULL: it is
 * open. */
const char *policies_why_shut(const struct cluster *c, const struct cluster_pod *cp, size_t unit,
                              struct arena *a);
/* In how many steps a gang is tried: the units of members that preempt before they use the next
 * unit; 1: one step. */
size_t policies_steps(struct gang *const *gangs, size_t len);
