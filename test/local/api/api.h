// SPDX-License-Identifier: Apache-2.0
/*
 * api - the Kubernetes API of cosched-local: a request in, a verb on the store, the reply a real
 * API server gives. Loop thread only; no sockets here.
 *
 *   api.c          path, media types, bodies, replies
 *   api_list.c     get, list: pages and versions
 *   api_watch.c    watch: replay, then live; bookmarks; selectors that begin and end to match
 *   api_write.c    create, update, patch: through admission into the store
 *   api_patch.c    a patch's media type and options
 *   api_delete.c   delete, deletecollection: grace, finalizers, propagation
 *   api_pods.c     binding, eviction, log and exec ("not simulated")
 *   api_scale.c    scale
 *   api_select.c   label and field selectors
 *   api_status.c   Status objects: reason, message, details, code
 *   api_meta.c     generateName, uid, creationTimestamp, generation, deletionTimestamp, finalizers
 *
 * Left out: webhooks for deletions, bindings and evictions; replies in protobuf (clients take JSON
 * as well, or get 406); managedFields of updates.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/loop.h"
#include "test/local/admission/call.h"
#include "test/local/patch/jsonnode.h"
#include "test/local/store/store.h"

struct api;
struct admission;

struct api_config {
    struct loop *loop;
    struct store *store;
    struct admission *admission; /* NULL: none */
    int64_t (*now_ns)(void);
};
struct api *api_new(const struct api_config *c);
/* The admission is freed first (requests may be waiting for it), and the server is still there
 * (watches are ended). */
void api_free(struct api *a);
/* Any path: discovery, health, objects. Answers now or later. */
void api_handle(struct api *a, struct call *c);
/* Watches end (a restart). */
void api_close_watches(struct api *a);

/* The same rules for those inside (controllers, tests): defaults, validation, metadata; no
 * webhooks. Errors carry http_status and the sentence. */
int api_create(struct api *a, const struct kind *k, const char *ns, struct jsontree *object,
               struct object **out, struct error *err);
/* Reads the newest version, lets fn change it, writes it back; sub "status" or NULL. fn returns
 * false: nothing to change. */
int api_modify(struct api *a, const struct kind *k, const char *ns, const char *name,
               const char *sub, bool (*fn)(void *arg, struct jsontree *t, struct jsonnode *object),
               void *arg, struct error *err);
enum api_propagation { API_BACKGROUND, API_FOREGROUND, API_ORPHAN };
/* grace_s -1: the kind's. Pods that are bound become terminating; others go at once. */
int api_delete(struct api *a, const struct kind *k, const char *ns, const char *name,
               const char *uid, int64_t grace_s, enum api_propagation how, struct error *err);
/* A Status object for an error. */
void api_status_print(const struct error *err, const struct kind *k, const char *name,
                      struct strbuf *out);
