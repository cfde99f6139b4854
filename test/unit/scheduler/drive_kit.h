// SPDX-License-Identifier: Apache-2.0
/*
 * drive_kit - the whole shell of the scheduler on the API server's twin, for tests of what it does together.
 */
#pragma once

#include "scheduler/drive.h"
#include "scheduler/intake.h"
#include "test/fake/api/twin.h"
#include "test/unit/scheduler/fixture.h"
#include "test/unit/scheduler/shell_kit.h"

struct drive_kit {
    struct twin *twin;
    struct kube_config *config;
    struct loop *loop;
    struct drive drive;
    struct intake intake;
    struct binder *binder;
    struct evictor *evictor;
    struct volumes *volumes;
    struct status *status;
};

struct drive_kit_config {
    struct drive_options drive;
    bool no_events;     /* none are sent: every request is one that the test is about */
    bool no_conditions; /* nor is any pod told why it waits */
    void (*adjust_volumes)(struct volumes_config *c); /* or NULL */
};

/* Everything but drive_start; then drive_kit_start. */
void drive_kit_init(struct drive_kit *k, const struct drive_options *o);
void drive_kit_init_with(struct drive_kit *k, const struct drive_kit_config *c);
/* Before drive_kit_start: --gang-dry-run. */
void drive_kit_rehearse(struct drive_kit *k);
void drive_kit_start(struct drive_kit *k);
void drive_kit_deinit(struct drive_kit *k);
/* What can be done now is done. */
void drive_kit_settle(struct drive_kit *k);
/* Runs the loop until n requests begin with `method` and contain `part`; fails the test when they do not come. */
void drive_kit_await(struct drive_kit *k, const char *method, const char *part, int n);
/* Runs the loop for so long; for what should not happen. */
void drive_kit_run(struct drive_kit *k, int64_t ms);
struct cluster_pod *drive_kit_find(struct drive_kit *k, const char *key);
/* As the binder would say it of the pod's Binding. */
void drive_kit_report(struct drive_kit *k, const char *key, enum binder_outcome outcome);
