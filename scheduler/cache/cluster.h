// SPDX-License-Identifier: Apache-2.0
/*
 * cluster - the scheduler's model of the cluster: nodes, pods, gangs. Owned by the loop thread; no locks, no I/O. Pure.
 *
 * Every pod of the cluster is here, ours or not, unless it is finished: what runs on a node takes its room. See cluster.c for the states of a pod.
 */
#pragma once

#include "scheduler/cache/model.h"
#include "scheduler/cache/index.h"
#include "scheduler/cache/objects.h"
#include "scheduler/cache/policies.h"
#include "scheduler/cache/reservations.h"
#include "scheduler/cache/slots.h"
#include "scheduler/cache/table.h"
#include "scheduler/cache/topologies.h"
#include "scheduler/cache/volumes_held.h"

void cluster_init(struct cluster *c, const char *scheduler_name);
void cluster_deinit(struct cluster *c);

/* Each returns the events that it caused. The put functions take the object. */
uint32_t cluster_put_node(struct cluster *c, struct node *n);
uint32_t cluster_remove_node(struct cluster *c, const char *name);
uint32_t cluster_put_pod(struct cluster *c, struct pod *p, const struct cluster_hooks *hooks);
/* uid NULL: whatever has that key. A DELETE of an older pod of the same name does nothing. */
uint32_t cluster_remove_pod(struct cluster *c, const char *key, const char *uid,
                            const struct cluster_hooks *hooks);

/* Which nodes are virtual: virtuals_set, for those that are there too. */
int cluster_set_virtuals(struct cluster *c, const char *labels, const char *taints,
                         struct error *err);

/* PENDING -> ASSUMED. The claim is copied. Cannot fail. Returns the events: for pods that want to be near, or spread, one more pod may be what they wait for; and
 * where it was nominated to another node, the room there is free. */
uint32_t cluster_assume(struct cluster *c, struct cluster_pod *cp, struct cluster_node *on,
                        const struct claim *claim);
/* ASSUMED -> PENDING; the caller looks at the state first: the watch may have confirmed the pod meanwhile. Room comes free (EVENT_POD_GONE, which is the
 * caller's to spread). Cannot fail. The node may go with it. */
void cluster_forget(struct cluster *c, struct cluster_pod *cp);
/* For a trial: the placed pod leaves its node and comes back, in any order with others, before anything else happens. It keeps its state; `on` is NULL meanwhile. */
void cluster_lift(struct cluster *c, struct cluster_pod *cp);
void cluster_set_down(struct cluster *c, struct cluster_pod *cp, struct cluster_node *on);
/* An assumed pod has these CPUs instead: more of them, on loan. */
void cluster_claim_widen(struct cluster *c, struct cluster_pod *cp, const struct cpuclaim *cpus);
/* CPUs that the pod has on loan are called back, or called back again. The books follow when the node agent has confirmed it. */
void cluster_claim_call_back(struct cluster_pod *cp, const struct cpuset *cpus);
/* The CPUs that a pod's annotations say it is bound to: what the node agent has confirmed, where the annotation has been made smaller since. */
void cluster_claim_cpus(const struct pod *p, struct arena *a, struct cpuclaim *out);
/* A placed pod was told to go for a more important one, or was not after all. */
void cluster_send_away(struct cluster *c, struct cluster_pod *cp, bool away);
/* Whether any placed pod has a lower priority. */
bool cluster_has_placed_below(const struct cluster *c, int32_t priority);

/* Of everything that is accounted: nodes, amounts, cards, placements. Equal states have equal digests whatever the way to them. */
uint64_t cluster_digest(const struct cluster *c);
