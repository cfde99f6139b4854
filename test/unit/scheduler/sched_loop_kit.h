// SPDX-License-Identifier: Apache-2.0
/*
 * sched_loop_kit - the whole shell of the scheduler on the API server's twin, for tests of what it
 * does together.
 */
#pragma once

#include "scheduler/sched_loop.h"
#include "scheduler/intake.h"
#include "test/fake/api/twin.h"
#include "test/unit/scheduler/fixture.h"
#include "test/unit/scheduler/shell_kit.h"

struct sched_loop_kit {
    struct twin *twin;
    struct kube_config *config;
    struct loop *loop;
    struct sched_loop sched;
    struct intake intake;
    struct binder *binder;
    struct evictor *evictor;
    struct volumes *volumes;
    struct pod_writer *pod_writer;
};

struct sched_loop_kit_config {
    struct sched_loop_options sched;
    bool no_events;     /* none are sent: every request is one that the test is about */
    bool no_conditions; /* nor is any pod told why it waits */
    void (*adjust_volumes)(struct volumes_config *c); /* or NULL */
};

/* Everything but sched_loop_start; then sched_loop_kit_start. */
void sched_loop_kit_init(struct sched_loop_kit *k, const struct sched_loop_options *o);
void sched_loop_kit_init_with(struct sched_loop_kit *k, const struct sched_loop_kit_config *c);
/* Before sched_loop_kit_start: --gang-dry-run. */
void sched_loop_kit_dryrun(struct sched_loop_kit *k);
void sched_loop_kit_start(struct sched_loop_kit *k);
void sched_loop_kit_deinit(struct sched_loop_kit *k);
/* What can be done now is done. */
void sched_loop_kit_settle(struct sched_loop_kit *k);
/* Runs the loop until n requests begin with `method` and contain `part`; fails the test when they
 * do not come. */
void sched_loop_kit_await(struct sched_loop_kit *k, const char *method, const char *part, int n);
/* Runs the loop for so long; for what should not happen. */
void sched_loop_kit_run(struct sched_loop_kit *k, int64_t ms);
struct cluster_pod *sched_loop_kit_find(struct sched_loop_kit *k, const char *key);
/* What the queue remembers of the gang. */
struct queue_entry *sched_loop_kit_entry(struct sched_loop_kit *k, const struct gang *g);
/* As the binder would say it of the pod's Binding. */
void sched_loop_kit_report(struct sched_loop_kit *k, const char *key, enum binder_outcome outcome);
