// SPDX-License-Identifier: Apache-2.0
/*
 * binder - posts Bindings with the grant in them, and finds out what became of each.
 *
 * A Binding is sent only while the lease allows it (fencing), with a timeout of at most
 * BINDER_TIMEOUT_MS. Whoever gets a result may rely on it: BOUND is bound, and after LOST or FAILED
 * no POST of that Binding can still be carried out. See binder.c for how that is known. BOUND may
 * be told a few milliseconds late, several at a time, while more are under way.
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
    /* 404, or somebody else was first: what we assumed is void, the watch tells the rest */
    BINDER_LOST,
    BINDER_FAILED, /* not bound, and not known to be impossible: try again after a backoff */
};

struct binder_result {
    enum binder_outcome outcome;
    uint64_t ticket; /* as given */
    char *pod;       /* "ns/name" */
    char *node;
    int64_t ended_us; /* on clock_mono_us: when the outcome was known; 0: now */
    struct error error;
};
void binder_result_free(void *result);

struct binder;

struct binder_config {
    unsigned threads;          /* Bindings under way at a time, each on its own connection */
    const struct lease *lease; /* NULL: no election, always allowed */
    struct mailbox *results;   /* gets each struct binder_result */
    int64_t timeout_ms;        /* 0: BINDER_TIMEOUT_MS */
};
int binder_start(struct binder **out, struct kube_config *kube, const struct kube_options *o,
                 const struct binder_config *c, struct error *err);
/* Copies everything; the binding's own timeout does not count. ticket comes back with the
 * result. */
void binder_submit(struct binder *b, const struct kube_binding *binding, uint64_t ticket);
/* The model has lost this node: a Binding to it that was not sent yet is sent only if the API
 * server still knows the node. On the thread that submits; NULL is fine. */
void binder_node_gone(struct binder *b, const char *node);
/* Bindings that wait or are under way. */
size_t binder_pending(struct binder *b);
/* Those under way are cancelled; NULL is fine. */
void binder_stop(struct binder *b);
