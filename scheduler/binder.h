// SPDX-License-Identifier: Apache-2.0
/*
 * binder - posts Bindings with the claim in them, and finds out what became of each.
 *
 * A reply that leaves doubt (timeout, connection lost, 5xx) is settled by asking for the pod: bound where we wanted is success, bound elsewhere or gone is lost, still
 * unbound is tried again. A Binding is sent only while the lease allows it (fencing), with a timeout of at most BINDER_TIMEOUT_MS.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/loop.h"
#include "lib/kube/config.h"
#include "lib/kube/lease.h"
#include "lib/model/selector.h"

enum { BINDER_TIMEOUT_MS = 4000, BINDER_TRIES = 4 };

enum binder_outcome {
    BINDER_BOUND,
    BINDER_LOST, /* 404, or somebody else was first: what we assumed is void, the watch tells the rest */
    BINDER_FAILED, /* not bound, and not known to be impossible: try again after a backoff */
};

struct binder_result {
    enum binder_outcome outcome;
    char *pod; /* "ns/name" */
    char *uid;
    char *node;
    int64_t seen_us; /* as given */
    struct error error;
};
void binder_result_free(void *result);

struct binder;

/* Results go to `results` (struct binder_result). */
int binder_start(struct binder **out, struct kube_config *kube, const struct kube_options *o,
                 unsigned threads, const struct lease *lease, struct mailbox *results,
                 struct error *err);
/* Copies everything. seen_us comes back with the result. */
void binder_submit(struct binder *b, const char *ns, const char *pod, const char *uid,
                   const char *node, const struct labels *annotations, int64_t seen_us);
/* Bindings that wait or are under way. */
size_t binder_pending(struct binder *b);
/* Those under way are cancelled; NULL is fine. */
void binder_stop(struct binder *b);
