// SPDX-License-Identifier: Apache-2.0
/*
 * binder - posts Bindings that carry the grant, and determines the outcome of each.
 *
 * A Binding is sent only while the lease allows it (fencing), with a timeout of at most
 * BINDER_TIMEOUT_MS. Results are final: BOUND is bound, and after LOST or FAILED no POST of that
 * Binding can still be executed (see binder.c). BOUND may be reported a few milliseconds late, in
 * batches.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/loop.h"
#include "lib/kube/api.h"
#include "lib/kube/config.h"
#include "lib/kube/lease.h"

enum { BINDER_TIMEOUT_MS = 4000, BINDER_TRIES = 4 };

enum binder_outcome {
    BINDER_BOUND,
    /* 404, or another writer was first: the assumption is void, the watch shows the rest. */
    BINDER_LOST,
    BINDER_FAILED, /* not bound, may be possible: retry after a backoff */
};

struct binder_result {
    enum binder_outcome outcome;
    uint64_t ticket; /* as given */
    char *pod;       /* "ns/name" */
    char *node;
    int64_t ended_us; /* clock_mono_us of the outcome; 0: now */
    struct error error;
};
void binder_result_free(void *result);

struct binder;

struct binder_config {
    unsigned threads;          /* concurrent Bindings, each on its own connection */
    const struct lease *lease; /* NULL: no election, always allowed */
    struct mailbox *results;   /* receives each struct binder_result */
    int64_t timeout_ms;        /* 0: BINDER_TIMEOUT_MS */
};
int binder_start(struct binder **out, struct kube_config *kube, const struct kube_options *o,
                 const struct binder_config *c, struct error *err);
/* Copies everything; ignores the binding's own timeout. The result carries the ticket. */
void binder_submit(struct binder *b, const struct kube_binding *binding, uint64_t ticket);
/* The node left the model: unsent Bindings to it are sent only if the API server still has it. On
 * the submitting thread; NULL-safe. */
void binder_node_gone(struct binder *b, const char *node);
/* Queued and in-flight Bindings. */
size_t binder_pending(struct binder *b);
/* Cancels Bindings in flight; NULL-safe. */
void binder_stop(struct binder *b);
