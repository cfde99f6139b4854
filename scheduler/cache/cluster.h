// SPDX-License-Identifier: Apache-2.0
/*
 * cluster - the scheduler's model of the cluster: nodes, pods, gangs. The loop thread owns it; no
 * locks, no I/O. Pure.
 *
 * It holds every unfinished pod of the cluster, of any scheduler, because all of them use capacity.
 * See cluster.c for the states of a pod.
 */
#pragma once

#include "scheduler/model/model.h"
#include "scheduler/model/pod_counters.h"
#include "scheduler/model/api_objects.h"
#include "scheduler/cache/policies.h"
#include "scheduler/model/reservations.h"
#include "scheduler/cache/replacement_hold.h"
#include "scheduler/model/node_table.h"
#include "scheduler/model/topologies.h"
#include "scheduler/model/volumes_held.h"

void cluster_init(struct cluster *c, const char *scheduler_name);
void cluster_deinit(struct cluster *c);

/* Each returns the events it caused. The put functions take the object. */
uint32_t cluster_put_node(struct cluster *c, struct node *n);
uint32_t cluster_remove_node(struct cluster *c, const char *name);
uint32_t cluster_put_pod(struct cluster *c, struct pod *p, const struct cluster_hooks *hooks);
/* uid NULL: any pod with that key. A DELETE of an older pod of the same name is ignored. */
uint32_t cluster_remove_pod(struct cluster *c, const char *key, const char *uid,
                            const struct cluster_hooks *hooks);

/* As virtuals_set, also applied to existing nodes. */
int cluster_set_virtuals(struct cluster *c, const char *labels, const char *taints,
                         struct error *err);

/* PENDING -> ASSUMED. Copies the grant. Cannot fail. Returns the events: pods with affinity or
 * spread may wait for this pod, and a nomination to another node frees capacity there. */
uint32_t cluster_assume(struct cluster *c, struct cluster_pod *cp, struct cluster_node *on,
                        const struct grant *grant);
/* ASSUMED -> PENDING. The caller checks the state first, because the watch may have confirmed the
 * pod, and publishes EVENT_POD_GONE. Cannot fail. May free the node. */
void cluster_forget(struct cluster *c, struct cluster_pod *cp);
/* For trials in plan.c: takes a placed pod off its node and puts it back, in any order with others,
 * before anything else happens. The pod keeps its state; `on` is NULL meanwhile. */
void cluster_lift(struct cluster *c, struct cluster_pod *cp);
void cluster_set_down(struct cluster *c, struct cluster_pod *cp, struct cluster_node *on);
/* For trials in plan.c: these CPUs count as returned by their borrowers, or as lent again. */
void cluster_grant_set_lent(struct cluster *c, struct cluster_node *cn, const struct cpuset *cpus,
                            bool lent);
/* Replaces the CPUs of an assumed pod by a larger set with borrowed ones. */
void cluster_grant_widen(struct cluster *c, struct cluster_pod *cp, const struct cpu_grant *cpus);
/* Reclaims borrowed CPUs; may be repeated. The accounts follow when the node agent confirms. */
void cluster_grant_reclaim(struct cluster_pod *cp, const struct cpuset *cpus);
/* The CPUs that a pod is pinned to by its annotations. If the annotation has shrunk, those that the
 * node agent last confirmed. */
void cluster_grant_cpus(const struct pod *p, struct arena *a, struct cpu_grant *out);
/* Marks a placed pod as preempted, or undoes that. */
void cluster_set_evicting(struct cluster *c, struct cluster_pod *cp, bool away);
/* The pod was to be evicted, or terminates, and does not go: until this is undone it is no victim,
 * and nobody waits for it. Returns the events. */
uint32_t cluster_set_staying(struct cluster *c, struct cluster_pod *cp, bool stays);
/* Whether any placed pod has a lower priority. */
bool cluster_has_placed_below(const struct cluster *c, int32_t priority);

/* Over everything accounted: nodes, amounts, cards, placements. Equal states have equal digests,
 * whatever their history. */
uint64_t cluster_digest(const struct cluster *c);
