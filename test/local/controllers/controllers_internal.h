// SPDX-License-Identifier: Apache-2.0
/*
 * controllers_internal - what the controllers share: the index of owners, the queue of work, and
 * tools. For controllers*.c and controllers/ alone. Loop thread only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/heap.h"
#include "lib/base/json.h"
#include "lib/base/loop.h"
#include "lib/base/map.h"
#include "lib/base/vec.h"
#include "test/local/controllers/controllers.h"
#include "test/local/patch/jsonnode.h"

#define CONTROLLERS_JOB_FINALIZER "batch.kubernetes.io/job-tracking"
#define CONTROLLERS_COST "controller.kubernetes.io/pod-deletion-cost"
#define CONTROLLERS_INDEX "batch.kubernetes.io/job-completion-index"

/* ---- controllers_index.c: owners and dependents ---- */
struct controllers_owner { /* by uid, whether it exists or not */
    char *uid;
    struct controllers_edge *first;
    size_t pending; /* pods being created: a webhook is asked */
    /* Job: backoff after failed pods, not remembered over restarts (nor by the real one) */
    int64_t last_failure_ms;
    int64_t failures_in_row;
};

/* One ownerReference. */
struct controllers_edge {
    struct controllers_child *child;
    struct controllers_owner *owner;
    struct controllers_edge *next, **prev; /* of the owner */
    const struct kind *kind;               /* of the owner; NULL: not known here */
    char *name;                            /* of the owner */
    bool controller, blocks;
};

enum controllers_phase { POD_PENDING, POD_RUNNING, POD_SUCCEEDED, POD_FAILED };

/* An object with owners, and of a pod what its controller wants to know. */
struct controllers_child {
    const struct kind *kind;
    char *ns, *name, *uid;
    struct controllers_edge *edges;
    size_t edges_len;
    bool deleting;
    enum controllers_phase phase;
    bool ready, bound, tracked;
    int64_t created_ns, ready_ns, cost, index, restarts, exit_code;
    bool index_known, exited;
};

struct controllers_index {
    struct map owners, children; /* by uid */
};
void controllers_index_init(struct controllers_index *x);
void controllers_index_deinit(struct controllers_index *x);
/* The object as it is now. Returns its child, or NULL when it has no owners. */
struct controllers_child *controllers_index_put(struct controllers_index *x,
                                                const struct object *o);
void controllers_index_remove(struct controllers_index *x, const char *uid);
/* NULL: no object refers to it. */
struct controllers_owner *controllers_index_owner(const struct controllers_index *x,
                                                  const char *uid);
struct controllers_owner *controllers_index_need(struct controllers_index *x, const char *uid);
/* Removes an owner without dependents and without state. */
void controllers_index_release(struct controllers_index *x, struct controllers_owner *o);

/* ---- controllers.c: the queue ---- */
struct controllers_work;
/* 0: done, again after *again_ms if that is not negative. -1: again later, later each time. */
typedef int (*controllers_sync)(struct controllers *c, const struct controllers_work *w,
                                int64_t *again_ms, struct error *err);
struct controllers_work {
    controllers_sync sync;
    const struct kind *kind;
    char *ns, *name;
    char *key;
    struct heap_node node;
    int64_t due_ms;
    uint64_t seq;
    unsigned failures;
};

struct controllers {
    struct loop *loop;
    struct api *api;
    struct store *store;
    struct admission *admission; /* or NULL */
    struct store_listener listener;
    struct controllers_index index;
    struct map works;
    struct heap queue;
    struct loop_timer timer;
    uint64_t seq;
    struct controllers_work *running; /* whose sync is under way */
    struct map leaving;               /* namespaces that are terminating: name to itself */
    struct map budgets;               /* PDBs: key to struct pdb_budget */
    struct map recorded;              /* events sent lately */
    struct controllers_pending *pending;
    bool stopping;
};
void controllers_add(struct controllers *c, controllers_sync sync, const struct kind *k,
                     const char *ns, const char *name, int64_t delay_ms);
/* As if its sync had failed. */
void controllers_fail(struct controllers *c, controllers_sync sync, const struct kind *k,
                      const char *ns, const char *name);

/* ---- controllers_tools.c ---- */
/* Records an event about o, as `component`. */
void controllers_event(struct controllers *c, const struct object *o, const char *component,
                       bool warning, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));
void controllers_events_deinit(struct controllers *c);

/* Makes `status` the object's status unless it is that already. An object that is gone is fine. */
int controllers_set_status(struct controllers *c, const struct object *o,
                           const struct jsonnode *status, struct error *err);
/* The condition in the list, changed or appended; times as Kubernetes keeps them: the transition's
 * only when status changes. second_time: "lastProbeTime", "lastUpdateTime"; NULL: none. Returns
 * whether anything but a time changed. */
bool controllers_set_condition(struct jsontree *t, struct jsonnode *list, const char *type,
                               bool status, const char *reason, const char *message,
                               const char *second_time);
/* The same, with "Unknown" as well. */
bool controllers_set_condition_text(struct jsontree *t, struct jsonnode *list, const char *type,
                                    const char *text, const char *reason, const char *message,
                                    const char *second_time);
const struct jsonnode *controllers_condition(const struct jsonnode *list, const char *type);
bool controllers_condition_is(const struct jsonnode *list, const char *type, const char *status);
/* "2026-03-01T12:00:00Z", now. */
void controllers_now(char out[32]);

/* A pod of a template {metadata, spec}: labels, annotations, finalizers, spec; owned by o. The
 * caller sets name or generateName. */
struct jsonnode *controllers_pod(struct jsontree *t, const struct object *o,
                                 const struct jsonnode *template);
/* {apiVersion, kind, name, uid, controller, blockOwnerDeletion} in a list of one. */
struct jsonnode *controllers_owned_by(struct jsontree *t, const struct object *o);
/* Creates the pod (a tree of its own, taken), through webhooks if there are any; records
 * SuccessfulCreate or FailedCreate about o. 0: made, or on its way (the owner's pending counts it;
 * sync is called again when it is there). -1: refused. */
int controllers_create_pod(struct controllers *c, struct object *o, const char *component,
                           controllers_sync sync, struct jsontree *take_pod, struct error *err);
void controllers_pending_deinit(struct controllers *c);
/* Deletes it and records SuccessfulDelete about o. Gone already is fine. */
int controllers_delete_pod(struct controllers *c, const struct object *o, const char *component,
                           const char *ns, const char *name, const char *uid, struct error *err);
/* Does the word stand in the object's metadata? A cheap look before it is parsed: it may stand in
 * an annotation's text. */
bool controllers_mentions(const struct object *o, const char *word);
/* Removes one of metadata.finalizers. Gone already is fine. */
int controllers_remove_finalizer(struct controllers *c, const struct kind *k, const char *ns,
                                 const char *name, const char *finalizer, struct error *err);

/* The pods that o controls. Borrowed until the next change of the store. */
struct controllers_pods VEC(struct controllers_child *);
void controllers_pods_of(const struct controllers *c, const char *uid, const struct kind *k,
                         struct controllers_pods *out);
/* In the order in which a controller gives pods up: not bound, Pending, not ready, lower
 * pod-deletion-cost, ready for a shorter time, more restarts, newer. */
void controllers_pods_rank(struct controllers_pods *pods);
/* An IntOrString ("25%" of total, or 3). */
int64_t controllers_scaled(const struct jsonnode *v, int64_t total, bool up, int64_t fallback);
int64_t controllers_int(const struct jsonnode *v, int64_t fallback);

/* ---- controllers/ ---- */
int job_sync(struct controllers *c, const struct controllers_work *w, int64_t *again_ms,
             struct error *err);
int replicaset_sync(struct controllers *c, const struct controllers_work *w, int64_t *again_ms,
                    struct error *err);
int deployment_sync(struct controllers *c, const struct controllers_work *w, int64_t *again_ms,
                    struct error *err);
int tfjob_sync(struct controllers *c, const struct controllers_work *w, int64_t *again_ms,
               struct error *err);
int namespace_sync(struct controllers *c, const struct controllers_work *w, int64_t *again_ms,
                   struct error *err);
/* What a new API server has: namespaces and priority classes. */
int namespace_bootstrap(struct controllers *c, struct error *err);
int gc_sync(struct controllers *c, const struct controllers_work *w, int64_t *again_ms,
            struct error *err);
/* Finds what a change makes garbage. */
void gc_changed(struct controllers *c, const struct store_event *e,
                const struct controllers_child *child);
int podgc_sync(struct controllers *c, const struct controllers_work *w, int64_t *again_ms,
               struct error *err);
int podgc_node_sync(struct controllers *c, const struct controllers_work *w, int64_t *again_ms,
                    struct error *err);
void podgc_changed(struct controllers *c, const struct store_event *e);
int pdb_sync(struct controllers *c, const struct controllers_work *w, int64_t *again_ms,
             struct error *err);
void pdb_changed(struct controllers *c, const struct store_event *e);
void pdb_deinit(struct controllers *c);
