// SPDX-License-Identifier: Apache-2.0
/* volumes - binds the claims of an assumed pod before its Binding is posted, and undoes that on
 * failure. See volumes.c for the states. On the loop's thread; own threads wait for the network. */
#pragma once

#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/loop.h"
#include "lib/kube/api.h"
#include "lib/kube/config.h"
#include "lib/kube/lease.h"
#include "scheduler/binding/binder.h"
#include "scheduler/binding/pod_trace.h"
#include "scheduler/cache/cluster.h"

enum {
    VOLUMES_TIMEOUT_MS = 600000, /* kube-scheduler's bindTimeoutSeconds */
    VOLUMES_LONG_MS = 1000,      /* then the pod is nominated */
};

struct volumes;

struct volumes_config {
    struct loop *loop;
    struct cluster *cluster;
    const struct pod_trace *trace;
    struct binder *binder;     /* gets the Binding when all claims are bound */
    struct mailbox *results;   /* gets a struct binder_result when they cannot be */
    const struct lease *lease; /* NULL: no election, always allowed */
    int64_t timeout_ms;        /* 0: VOLUMES_TIMEOUT_MS */
    int64_t long_ms;           /* 0: VOLUMES_LONG_MS */
    /* All claims are bound; NULL: the Binding goes to the binder. */
    void (*ready)(void *arg, const struct kube_binding *binding, uint64_t ticket);
    /* The pod has waited for long_ms. */
    void (*waits_long)(void *arg, struct cluster_pod *cp);
    void *arg;
};
int volumes_start(struct volumes **out, struct kube_config *kube, const struct kube_options *o,
                  const struct volumes_config *c, struct error *err);
/* The pod is assumed on the node, with claims to bind (cp->volumes). Copies everything. The result,
 * the binder's or ours, carries the ticket. */
void volumes_submit(struct volumes *v, const struct cluster_pod *cp,
                    const struct kube_binding *binding, uint64_t ticket);
/* Something changed; cheap unless storage or nodes did. */
void volumes_reconcile(struct volumes *v);
/* Pods whose claims are not bound yet. */
size_t volumes_pending(const struct volumes *v);
/* Those of them that are fully written and wait for the controller. */
size_t volumes_waiting(const struct volumes *v);
/* Keeps what was written; the next leader continues from there. NULL-safe. */
void volumes_stop(struct volumes *v);
