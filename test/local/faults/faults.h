// SPDX-License-Identifier: Apache-2.0
/*
 * faults - trouble on demand, by the admin endpoint /cosched/faults (JSON) and by a script file
 * with times: drop or delay connections, cut watches (in the middle of a line), 410, 409 on every
 * nth bind, 429 with Retry-After, 500, lose the reply of a request that was carried out, partition
 * a node, restart the kubelet, restart the API server with state kept, fail a card, delete and
 * re-create pods. The language is described in faults.c.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/base/loop.h"
#include "test/local/admission/call.h"
#include "test/local/server/server.h"
#include "test/local/store/store.h"

struct faults;

enum faults_node_kind { FAULTS_PARTITION, FAULTS_RESTART_KUBELET, FAULTS_CARD };
struct faults_node {
    enum faults_node_kind kind;
    const char *node;
    int card;
    bool bad; /* cut off, unhealthy; false: healed */
};

/* What is behind the faults. Only loop is required; a fault whose means are NULL is refused. */
struct faults_config {
    struct loop *loop;
    struct server *server;
    struct store *store;
    void (*handle)(void *arg, struct call *c); /* where a request goes in the end */
    void *handle_arg;
    void (*restarting)(void *arg); /* watches end */
    void *restarting_arg;
    int (*node)(void *arg, const struct faults_node *what, struct error *err);
    void *node_arg;
    /* Deletes up to `count` pods (ns, selector NULL: any) at once and makes them again, unbound. */
    int (*recreate)(void *arg, const char *ns, const char *selector, int64_t count, int64_t *done,
                    struct error *err);
    void *recreate_arg;
};

struct faults *faults_new(const struct faults_config *c);
/* Calls that are being delayed are dropped. Before the server stops. NULL is fine. */
void faults_free(struct faults *f);
void faults_set_server(struct faults *f, struct server *server);

/* Every request comes here first: /cosched/faults is answered, anything else is passed on to
 * handle, now or later, or meets its fault. */
void faults_handle(struct faults *f, struct call *c);

/* One fault; *id is its rule's number, or 0 for an immediate fault. */
int faults_add(struct faults *f, json *fault, int64_t *id, struct error *err);
/* A script: lines of a time since now and a fault, `1m30s {"fault":"restart","ms":500}`; '#' begins
 * a comment. Refused as a whole when one line is wrong. */
int faults_script(struct faults *f, const char *text, size_t n, struct error *err);
/* How often a fault of the name was done. */
int64_t faults_count(const struct faults *f, const char *name);
