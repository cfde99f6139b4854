// SPDX-License-Identifier: Apache-2.0
/*
 * status - tells the user why a pod waits: the condition PodScheduled=False on each pod, and one Event for each gang and class of reason. Threads of its
 * own, so binds never wait for it; and one bucket for conditions and Events together (--event-qps, 50/s), from which only STATUS_BUSY_QPS are taken while
 * Bindings wait: what the user reads must not slow down what the user waits for.
 *
 * A pod that has waited for STATUS_FIRST_MS is told; then again when the class of the reason changes (another resource, another
 * kind of refusal, another number of gang members), at most every STATUS_AGAIN_MS. Amounts alone cause no write. So a pod that is
 * bound at once costs none, and the members of a growing gang cost few. A PodGroup's status takes its turn in the same bucket; when to write it is podgroups.c's business.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/kube/config.h"
#include "lib/kube/events.h"
#include "lib/kube/lease.h"
#include "lib/model/policy.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/cache/progress.h"

enum {
    STATUS_QUEUE = 10000,
    STATUS_FIRST_MS = 1000,
    STATUS_AGAIN_MS = 10000,
    STATUS_BUSY_QPS = 5,
    STATUS_MEMBERS = 16
};

struct status;

struct status_config {
    struct events_options events; /* qps is that of conditions and Events together */
    const struct lease *lease;    /* NULL: no election, always allowed */
    bool (*is_busy)(void *arg);   /* Bindings wait; any thread */
    void *arg;
};
int status_start(struct status **out, struct kube_config *kube, const struct kube_options *k,
                 const struct status_config *c, struct error *err);
/* Tells g->why to the waiting members that may be told now; returns when the next one may be, or -1. */
int64_t status_tell_waiting(struct status *s, struct gang *g, int64_t now_ms);
void status_tell_bound(struct status *s, const struct pod *p, const char *node);
void status_tell_bind_failed(struct status *s, const struct pod *p, const char *node,
                             const char *why);
/* Writes status.nominatedNodeName, ahead of nobody and without waiting for a turn: another leader must know of it. node NULL: takes it back. */
void status_tell_nominated(struct status *s, const struct pod *p, const char *node);
/* Writes NAME_ANN_GANG_SATISFIED into a bound pod, in its turn. */
void status_record_satisfied(struct status *s, const struct pod *p, const char *gang);
/* Writes the annotation cpuset of a bound pod, in its turn: CPUs on loan are called back. */
void status_write_cpuset(struct status *s, const struct pod *p, const char *text);
void status_tell_preempted(struct status *s, const struct pod *victim, const struct pod *by,
                           const char *node);
void status_tell_pod(struct status *s, const struct pod *p, bool warning, const char *reason,
                     const char *message);
/* Writes annotations and labels of a bound pod, in its turn; a value NULL takes the key away, either list may be NULL. false: there is no room for it now. */
bool status_write_metadata(struct status *s, const struct pod *p, const struct labels *annotations,
                           const struct labels *labels);
/* Writes the ResourcePolicy's status: a merge patch with the uid in it. false: no room now. */
bool status_write_policy(struct status *s, const struct policy *p, const char *patch_text);
void status_tell_policy(struct status *s, const struct policy *p, bool warning, const char *reason,
                        const char *message);
/* Writes the PodGroup's status, as long as it is that very object. */
void status_tell_group(struct status *s, const struct pod_group *group, const struct progress *now);
/* One Event for the PodGroup, if there is one, and one for each of the gang's waiting (or else placed) members, at most STATUS_MEMBERS of them, by name. */
void status_tell_gang(struct status *s, const struct gang *g, const struct pod_group *group,
                      bool waiting, const char *reason, const char *message);
/* Sends what waits for at most drain_ms. NULL is fine. */
void status_stop(struct status *s, int64_t drain_ms);
