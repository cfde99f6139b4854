// SPDX-License-Identifier: Apache-2.0
/*
 * gang_bind - holds back the Bindings of one gang until its quorum may go: the claims of that many
 * members are bound, and with --gang-dry-run the API server accepts each. Then all go to the binder
 * at once; a member beyond the quorum whose claims take longer follows alone. See gang_bind.c for
 * the states. The loop's thread.
 *
 * Claims that are not bound within the gang's scheduleTimeoutSeconds end the batch. Until the first
 * Binding is posted nothing is final: a batch that lost its quorum is dissolved, and its members
 * are forgotten as if their Bindings had failed. After it the rest must follow (I2).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/loop.h"
#include "lib/kube/api.h"
#include "scheduler/binding/binder.h"
#include "scheduler/binding/pod_trace.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/binding/bind_dryrun.h"
#include "scheduler/binding/volumes.h"

struct gang_bind;

struct gang_bind_config {
    struct loop *loop;
    struct cluster *cluster;
    const struct pod_trace *trace;
    struct binder *binder;
    struct volumes *volumes;
    struct bind_dryrun *dryrun; /* NULL: none */
    struct mailbox *results;    /* receives a struct binder_result for each member not posted */
};
struct gang_bind *gang_bind_new(const struct gang_bind_config *c);

struct gang_bind_member {
    struct cluster_pod *pod; /* assumed */
    struct kube_binding binding;
    uint64_t ticket;
};
/* Takes the Bindings of one plan, with consecutive tickets. Copies everything. */
void gang_bind_submit(struct gang_bind *b, const struct gang_bind_member *members, size_t n);
/* The claims of the ticket's pod are bound. */
void gang_bind_ready(struct gang_bind *b, const struct kube_binding *binding, uint64_t ticket);
/* The result of a dry run. */
void gang_bind_dryrun_done(struct gang_bind *b, const struct bind_dryrun_result *r);
/* Members may have gone. Cheap when nothing is held back. */
void gang_bind_reconcile(struct gang_bind *b);
size_t gang_bind_pending(const struct gang_bind *b);
/* NULL-safe. */
void gang_bind_free(struct gang_bind *b);
