// SPDX-License-Identifier: Apache-2.0
/*
 * admission_internal - shared by admission*.c only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/loop.h"
#include "lib/base/map.h"
#include "lib/model/selector.h"
#include "test/local/admission/admission.h"
#include "test/local/store/store.h"

/* Appends `pods "web"` or `deployments.apps "web"`; sets err to `WHAT is forbidden: ...`, 403. */
int admission_forbid(struct error *err, const struct kind *k, const char *name, const char *fmt,
                     ...) __attribute__((format(printf, 4, 5)));
/* metadata.name, otherwise generateName, otherwise "". */
const char *admission_name(const struct admission_request *r, const struct jsonnode *object);

/* ---- admission_builtin.c: namespaces, service accounts, priority ---- */
struct admission_builtin;
struct admission_builtin *admission_builtin_new(struct store *s);
void admission_builtin_free(struct admission_builtin *b);
int admission_builtin_run(struct admission_builtin *b, const struct admission_request *r,
                          struct jsontree *object, struct error *err);

/* ---- admission_quota.c: counts by namespace ---- */
struct admission_quota;
struct admission_quota *admission_quota_new(struct loop *l, struct store *s);
void admission_quota_free(struct admission_quota *q);
int admission_quota_check(struct admission_quota *q, const struct admission_request *r,
                          const struct jsonnode *object, struct error *err);

/* ---- admission_webhooks.c: who is asked ---- */
struct admission_rule {
    json *groups, *versions, *operations, *resources;
    const char *scope; /* NULL: any */
};

struct admission_hook {
    const char *name;
    const char *url;               /* or */
    const char *svc_ns, *svc_name; /* with */
    const char *path;              /* "" or "/mutate" */
    int64_t port;
    const char *ca; /* base64 PEM, or NULL */
    struct admission_rule *rules;
    size_t rules_len;
    struct selector namespaces, objects;
    bool ignore_failure, reinvoke, dry_run_safe, speaks_v1;
    bool validating; /* asked after all others, and may not change the object */
    int64_t timeout_s;
};

/* All webhooks as they were at one time; a run keeps the set it began with. */
struct admission_hooks {
    unsigned refs;
    struct arena arena;
    struct json_doc **docs;
    size_t docs_len;
    struct admission_hook *items;
    size_t len;
};

struct admission_webhooks;
struct admission_webhooks *admission_webhooks_new(struct store *s);
void admission_webhooks_free(struct admission_webhooks *w);
/* One reference for the caller; NULL when there is none at all. */
struct admission_hooks *admission_webhooks_get(struct admission_webhooks *w);
void admission_hooks_unref(struct admission_hooks *h);
/* labels NULL: no object on that side. */
bool admission_hook_matches(const struct admission_hook *h, struct store *s,
                            const struct admission_request *r, const struct labels *object,
                            const struct labels *old);

/* ---- admission_review.c: requests and answers [pure] ---- */
/* Appends the AdmissionReview. object_text NULL: none. */
void admission_review_print(const struct admission_request *r, const char *uid,
                            const char *object_text, const char *old_text, struct strbuf *out);
struct admission_verdict {
    bool allowed;
    int code;            /* of a refusal, at least 400 */
    const char *message; /* of a refusal; may be "" */
    struct json_doc *patch;
    json *warnings; /* of doc */
    struct json_doc *doc;
};
void admission_verdict_deinit(struct admission_verdict *v);
/* -1: this is no answer to that review. */
int admission_review_read(const char *text, size_t n, const char *uid,
                          struct admission_verdict *out, struct error *err);

/* ---- admission_caller.c: worker threads ---- */
struct admission_caller;
struct admission_call {
    char *kubeconfig; /* where, and whom to trust */
    char *server;     /* "https://webhook.system.svc:443", for messages */
    char *path;       /* "/mutate?timeout=5s" */
    int64_t timeout_ms;
    struct strbuf body;  /* the review */
    struct strbuf reply; /* with failed false */
    bool failed;
    struct error error;
    void (*done)(struct admission_call *c); /* on the loop; owns c */
    void *arg;
    struct admission_call *next_;
};
void admission_call_free(struct admission_call *c);
int admission_caller_new(struct admission_caller **out, struct loop *l, struct error *err);
/* Calls under way are cancelled; their done is not called. */
void admission_caller_free(struct admission_caller *c);
void admission_caller_send(struct admission_caller *c, struct admission_call *call);
