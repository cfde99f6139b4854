// SPDX-License-Identifier: Apache-2.0
/*
 * gang_bind - the Bindings of one gang, held back until its quorum may go: the claims of so many
 * members are bound, and with --gang-dry-run the API server has said yes to each of them. Then they
 * are handed to the binder at once; a member beyond the quorum whose claims take longer follows
 * alone. See gang_bind.c for the states. The loop's thread.
 *
 * Claims that are not bound within the gang's scheduleTimeoutSeconds end the burst.
 *
 * Until the first Binding is posted nothing has happened to the gang, so whatever goes wrong before
 * that costs nothing: a burst that has lost its quorum is dissolved, and its members are taken back
 * as if their Bindings had failed. After it there is no way back, the rest follows (I2).
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
    struct bind_dryrun *dryrun; /* NULL: without */
    struct mailbox *results;    /* gets a struct binder_result for each member that is not posted */
};
struct gang_bind *gang_bind_new(const struct gang_bind_config *c);

struct gang_bind_member {
    struct cluster_pod *pod; /* assumed */
    struct kube_binding binding;
    uint64_t ticket;
};
/* Takes the Bindings of one plan, whose tickets rise by one. Copies everything. */
void gang_bind_submit(struct gang_bind *b, const struct gang_bind_member *members, size_t n);
/* The claims of the pod of that ticket are bound. */
void gang_bind_ready(struct gang_bind *b, const struct kube_binding *binding, uint64_t ticket);
/* The API server would accept it, or not. */
void gang_bind_rehearsed(struct gang_bind *b, const struct bind_dryrun_result *r);
/* Something changed: members may have gone. Cheap when nothing is held back. */
void gang_bind_look(struct gang_bind *b);
/* Bursts that are held back. */
size_t gang_bind_pending(const struct gang_bind *b);
/* NULL is fine. */
void gang_bind_free(struct gang_bind *b);
