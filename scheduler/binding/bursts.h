// SPDX-License-Identifier: Apache-2.0
/*
 * bursts - the Bindings of one gang, held back until its quorum may go: the claims of so many members are bound, and with --gang-dry-run the API server has said yes to
 * each of them. Then they are handed to the binder at once; a member beyond the quorum whose claims take longer follows alone. See bursts.c for the states. The loop's thread.
 *
 * Claims that are not bound within the gang's scheduleTimeoutSeconds end the burst.
 *
 * Until the first Binding is posted nothing has happened to the gang, so whatever goes wrong before that costs nothing: a burst that has lost its quorum is
 * dissolved, and its members are taken back as if their Bindings had failed. After it there is no way back, the rest follows (I2).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/loop.h"
#include "lib/kube/api.h"
#include "scheduler/binding/binder.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/binding/rehearsal.h"
#include "scheduler/binding/volumes.h"

struct bursts;

struct bursts_config {
    struct loop *loop;
    struct cluster *cluster;
    struct binder *binder;
    struct volumes *volumes;
    struct rehearsal *rehearsal; /* NULL: without */
    struct mailbox *results; /* gets a struct binder_result for each member that is not posted */
};
struct bursts *bursts_new(const struct bursts_config *c);

struct bursts_member {
    struct cluster_pod *pod; /* assumed */
    struct kube_binding binding;
    uint64_t ticket;
};
/* Takes the Bindings of one plan, whose tickets rise by one. Copies everything. */
void bursts_submit(struct bursts *b, const struct bursts_member *members, size_t n);
/* The claims of the pod of that ticket are bound. */
void bursts_ready(struct bursts *b, const struct kube_binding *binding, uint64_t ticket);
/* The API server would accept it, or not. */
void bursts_rehearsed(struct bursts *b, const struct rehearsal_result *r);
/* Something changed: members may have gone. Cheap when nothing is held back. */
void bursts_look(struct bursts *b);
/* Bursts that are held back. */
size_t bursts_pending(const struct bursts *b);
/* NULL is fine. */
void bursts_free(struct bursts *b);
