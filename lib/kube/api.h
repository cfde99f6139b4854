// SPDX-License-Identifier: Apache-2.0
/*
 * api - verbs of the Kubernetes API; HTTP status and Status objects → error codes; rate limit and
 * 429.
 *
 * A client is one connection plus the process-wide rate limiter. Reads are retried here (429 with
 * Retry-After, connection lost before any answer); writes are retried only on 429 and when the
 * request was never sent: the caller must find out whether an ambiguous write was done.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/base/str.h"
#include "lib/kube/config.h"
#include "lib/kube/http.h"
#include "lib/model/selector.h"

struct kube_kind {
    const char *group; /* "" for core */
    const char *version;
    const char *resource; /* "pods" */
    const char *kind;     /* "Pod" */
    bool namespaced;
};
extern const struct kube_kind kube_pods, kube_nodes, kube_events, kube_leases, kube_namespaces,
    kube_configmaps, kube_secrets, kube_mutating_webhooks, kube_pod_groups, kube_pod_groups_x,
    kube_resource_policies, kube_pod_groups_native, kube_claims, kube_volumes, kube_storage_classes,
    kube_csi_nodes, kube_csi_drivers, kube_csi_capacities, kube_volume_attachments, kube_budgets,
    kube_device_classes;

struct kube_client;

int kube_client_new(struct kube_client **out, struct kube_config *config,
                    const struct kube_options *o, const char *user_agent, struct error *err);
void kube_client_free(struct kube_client *c);
void kube_client_cancel(struct kube_client *c); /* any thread; see kube_http_cancel */
struct kube_http *kube_client_http(struct kube_client *c);
/* Pauses before retrying what failed with err: about first_ms, doubled for each attempt (from 0) up
 * to 2 s, or the server's Retry-After up to 10 s if longer. false: cancelled. */
bool kube_client_pause(struct kube_client *c, int64_t first_ms, int attempt,
                       const struct error *err);
/* The timeout of the next verbs, instead of the options' request timeout. */
void kube_client_set_timeout(struct kube_client *c, int64_t ms);

/* "/api/v1/namespaces/NS/pods/NAME/SUB", parts escaped; ns NULL: cluster-wide; name, sub NULL:
 * omitted. */
void kube_api_path(struct strbuf *out, const struct kube_kind *k, const char *ns, const char *name,
                   const char *sub);

/* *out is the reply's document (free with json_free); out may be NULL. query: "fieldSelector=..."
 * or NULL, escaped. */
int kube_get(struct kube_client *c, const struct kube_kind *k, const char *ns, const char *name,
             struct json_doc **out, struct error *err);
int kube_create(struct kube_client *c, const struct kube_kind *k, const char *ns, const char *body,
                size_t n, struct json_doc **out, struct error *err);
int kube_update(struct kube_client *c, const struct kube_kind *k, const char *ns, const char *name,
                const char *sub, const char *body, size_t n, struct json_doc **out,
                struct error *err);
enum kube_patch { KUBE_PATCH_MERGE, KUBE_PATCH_STRATEGIC, KUBE_PATCH_JSON };
int kube_patch(struct kube_client *c, const struct kube_kind *k, const char *ns, const char *name,
               const char *sub, enum kube_patch how, const char *body, size_t n,
               struct json_doc **out, struct error *err);
/* grace_s -1: the object's own. uid NULL: no precondition. */
int kube_delete(struct kube_client *c, const struct kube_kind *k, const char *ns, const char *name,
                const char *uid, int64_t grace_s, struct error *err);
int kube_evict(struct kube_client *c, const char *ns, const char *pod, const char *uid,
               struct error *err);

struct kube_binding {
    const char *ns, *pod, *uid, *node;
    struct labels annotations; /* merged into the pod in the same transaction */
    struct labels labels;      /* likewise, from server version 1.35; older ones ignore them */
    int64_t timeout_ms;        /* also sent as ?timeout= */
    /* on clock_mono_ms: the timeout runs from here, so a check made in between (a fence) still
     * holds when it is sent; 0: now */
    int64_t began_ms;
    bool dry_run; /* the server validates and stores nothing */
};
/* A deep copy in a. */
struct kube_binding kube_binding_copy(const struct kube_binding *from, struct arena *a);
/* 0: 201. ERROR_CONFLICT: bound, deleting or gated. ERROR_NOT_FOUND. ERROR_TIMEOUT and
 * ERROR_UNAVAILABLE are ambiguous unless *never_sent. */
int kube_bind(struct kube_client *c, const struct kube_binding *b, bool *never_sent,
              struct error *err);
/* The same request for the post pipeline: appended to path (without a query) and body. */
int kube_bind_compose(const struct kube_binding *b, struct strbuf *path, struct strbuf *body,
                      struct error *err);
