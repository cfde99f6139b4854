// SPDX-License-Identifier: Apache-2.0
/*
 * pod_writer - tells the user why a pod waits: the condition PodScheduled=False on each pod, and
 * one Event for each gang and class of reason. Threads of its own, so binds never wait for it; and
 * one bucket for conditions and Events together (--event-qps, 50/s), from which only
 * POD_WRITER_BUSY_QPS are taken while Bindings wait: what the user reads must not slow down what
 * the user waits for.
 *
 * A pod that has waited for POD_WRITER_FIRST_MS is told; then again when the class of the reason
 * changes (another resource, another kind of refusal, another number of gang members), at most
 * every POD_WRITER_AGAIN_MS. Amounts alone cause no write. So a pod that is bound at once costs
 * none, and the members of a growing gang cost few. A PodGroup's status takes its turn in the same
 * bucket; when to write it is podgroups.c's business.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/kube/config.h"
#include "lib/kube/events.h"
#include "lib/kube/lease.h"
#include "lib/model/policy.h"
#include "scheduler/binding/pod_trace.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/cache/progress.h"
#include "scheduler/queue/queue.h"

enum {
    POD_WRITER_QUEUE = 10000,
    POD_WRITER_FIRST_MS = 1000,
    POD_WRITER_AGAIN_MS = 10000,
    POD_WRITER_BUSY_QPS = 5,
    POD_WRITER_MEMBERS = 16
};

struct pod_writer;

struct pod_writer_config {
    struct events_options events; /* qps is that of conditions and Events together */
    const struct lease *lease;    /* NULL: no election, always allowed */
    const struct pod_trace *trace;
    bool (*is_busy)(void *arg); /* Bindings wait; any thread */
    void *arg;
};
int pod_writer_start(struct pod_writer **out, struct kube_config *kube,
                     const struct kube_options *k, const struct pod_writer_config *c,
                     struct error *err);
/* Tells the members that may be told now why they wait; returns when the next one may be, or -1. */
int64_t pod_writer_tell_waiting(struct pod_writer *s, const struct gang *g,
                                const struct queue_why *why, int64_t now_ms);
void pod_writer_tell_bound(struct pod_writer *s, const struct pod *p, const char *node);
void pod_writer_tell_bind_failed(struct pod_writer *s, const struct pod *p, const char *node,
                                 const char *why);
/* Writes status.nominatedNodeName, ahead of nobody and without waiting for a turn: another leader
 * must know of it. node NULL: takes it back. */
void pod_writer_tell_nominated(struct pod_writer *s, const struct pod *p, const char *node);
/* Writes NAME_ANN_GANG_SATISFIED into a bound pod, in its turn. */
void pod_writer_record_satisfied(struct pod_writer *s, const struct pod *p, const char *gang);
/* Writes the annotation cpuset of a bound pod, in its turn: CPUs on loan are called back. */
void pod_writer_write_cpuset(struct pod_writer *s, const struct pod *p, const char *text);
void pod_writer_tell_preempted(struct pod_writer *s, const struct pod *victim, const struct pod *by,
                               const char *node);
void pod_writer_tell_pod(struct pod_writer *s, const struct pod *p, bool warning,
                         const char *reason, const char *message);
/* Writes annotations and labels of a bound pod, in its turn; a value NULL takes the key away,
 * either list may be NULL. false: there is no room for it now. */
bool pod_writer_write_metadata(struct pod_writer *s, const struct pod *p,
                               const struct labels *annotations, const struct labels *labels);
/* Writes the ResourcePolicy's status: a merge patch with the uid in it. false: no room now. */
bool pod_writer_write_policy(struct pod_writer *s, const struct policy *p, const char *patch_text);
void pod_writer_tell_policy(struct pod_writer *s, const struct policy *p, bool warning,
                            const char *reason, const char *message);
/* Writes the PodGroup's status, as long as it is that very object. */
void pod_writer_tell_group(struct pod_writer *s, const struct pod_group *group,
                           const struct progress *now);
/* One Event for the PodGroup, if there is one, and one for each of the gang's waiting (or else
 * placed) members, at most POD_WRITER_MEMBERS of them, by name. */
void pod_writer_tell_gang(struct pod_writer *s, const struct gang *g, const struct pod_group *group,
                          bool waiting, const char *reason, const char *message);
/* Sends what waits for at most drain_ms. NULL is fine. */
void pod_writer_stop(struct pod_writer *s, int64_t drain_ms);
