// SPDX-License-Identifier: Apache-2.0
/*
 * pod_writer - tells the user why a pod waits: the condition PodScheduled=False and an Event on
 * each pod. Has its own threads, so binds never wait for it. Conditions and Events share one rate
 * limit (--event-qps, 50/s), reduced to POD_WRITER_BUSY_QPS while Bindings are pending, so that
 * reports do not slow down placement.
 *
 * A pod is told after waiting for POD_WRITER_FIRST_MS, and again when the class of the reason
 * changes (another resource, another kind of refusal, another number of gang members), at most
 * every POD_WRITER_AGAIN_MS. So a pod that is bound at once costs no write, and the members of a
 * growing gang cost few. Changed amounts alone are written by pod_writer_refresh, which refresher.c
 * calls at a slow rate, and so are the Events of a large gang beyond its first POD_WRITER_MEMBERS.
 * A condition ends with the time at which it was true, an Event has a time of its own. PodGroup
 * statuses, which podgroups.c triggers, share the limit.
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

/* Ends each condition's message, with an RFC 3339 time and ")" behind it. */
#define POD_WRITER_SEEN " (as of "

struct pod_writer;

struct pod_writer_config {
    struct events_options events; /* qps: conditions and Events together */
    const struct lease *lease;    /* NULL: no election, always allowed */
    const struct pod_trace *trace;
    bool (*is_busy)(void *arg); /* Bindings are pending; any thread */
    void *arg;
};
int pod_writer_start(struct pod_writer **out, struct kube_config *kube,
                     const struct kube_options *k, const struct pod_writer_config *c,
                     struct error *err);
/* Tells the members that are due why they wait; returns when the next one is due, or -1. */
int64_t pod_writer_report_waiting(struct pod_writer *s, const struct gang *g,
                                  const struct queue_why *why, int64_t now_ms);
/* One write at most, to the member that most needs it: the condition of one that was told the class
 * but reads other amounts, else the Event of one that has none. false: all know. */
bool pod_writer_refresh(struct pod_writer *s, const struct gang *g, const struct queue_why *why,
                        int64_t now_ms);
/* No write waits for its turn. */
bool pod_writer_is_idle(struct pod_writer *s);
void pod_writer_report_bound(struct pod_writer *s, const struct pod *p, const char *node);
void pod_writer_report_bind_failed(struct pod_writer *s, const struct pod *p, const char *node,
                                   const char *why);
/* Writes status.nominatedNodeName without rate limit, since the next leader needs it, but in queue
 * order. node NULL: removes it. */
void pod_writer_report_nominated(struct pod_writer *s, const struct pod *p, const char *node);
/* Writes NAME_ANN_GANG_SATISFIED into a bound pod, rate-limited. */
void pod_writer_record_satisfied(struct pod_writer *s, const struct pod *p, const char *gang);
/* Writes the cpuset annotation of a bound pod to reclaim lent CPUs, rate-limited. */
void pod_writer_write_cpuset(struct pod_writer *s, const struct pod *p, const char *text);
void pod_writer_report_preempted(struct pod_writer *s, const struct pod *victim,
                                 const struct pod *by, const char *node);
void pod_writer_report_pod(struct pod_writer *s, const struct pod *p, bool warning,
                           const char *reason, const char *message);
/* Writes annotations and labels of a bound pod, rate-limited; a NULL value removes the key, either
 * list may be NULL. false: the queue is full. */
bool pod_writer_write_metadata(struct pod_writer *s, const struct pod *p,
                               const struct labels *annotations, const struct labels *labels);
/* Writes the ResourcePolicy's status: a merge patch with the uid. false: the queue is full. */
bool pod_writer_write_policy(struct pod_writer *s, const struct policy *p, const char *patch_text);
void pod_writer_report_policy(struct pod_writer *s, const struct policy *p, bool warning,
                              const char *reason, const char *message);
/* Writes the PodGroup's status, unless the object was replaced. */
void pod_writer_report_group(struct pod_writer *s, const struct pod_group *group,
                             const struct progress *now);
/* One Event for the PodGroup, if any, and one for each of the gang's waiting (or else placed)
 * members, at most POD_WRITER_MEMBERS, by name. */
void pod_writer_report_gang(struct pod_writer *s, const struct gang *g,
                            const struct pod_group *group, bool waiting, const char *reason,
                            const char *message);
/* Sends queued writes for at most drain_ms. NULL-safe. */
void pod_writer_stop(struct pod_writer *s, int64_t drain_ms);
