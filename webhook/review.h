// SPDX-License-Identifier: Apache-2.0
/*
 * review - answers an AdmissionReview (admission.k8s.io/v1). Pure.
 *
 * A malformed request gets HTTP 400 with a Status that says why, never `allowed: false`:
 * failurePolicy decides whether a failed call blocks the pod.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/base/str.h"
#include "lib/model/selector.h"
#include "webhook/rules/rules.h"

enum { REVIEW_UID_MAX = 256 };

/* One request. All pointers are borrowed from its document. */
struct review {
    const char *uid;
    const char *operation; /* "CREATE" etc. */
    const char *group, *version, *kind;
    const char *subresource; /* "" when absent */
    const char *ns;          /* "" for cluster-scoped objects */
    const char *name;        /* "" before generateName is applied */
    bool dry_run;
    json *object; /* NULL on DELETE */
    json *old;    /* NULL on CREATE */
};
/* ERROR_INVALID says which field is missing or wrong and what was expected. */
int review_parse(json *root, struct review *out, struct error *err);

enum review_result {
    REVIEW_UNTOUCHED, /* allowed unchanged */
    REVIEW_PATCHED,
    REVIEW_REFUSED,
    REVIEW_MALFORMED,
    REVIEW_RESULTS,
};
const char *review_result_name(enum review_result result); /* for metrics */

/* For metrics and the log. Strings are static or live in the arena. */
struct review_outcome {
    enum review_result result;
    int status; /* HTTP status: 200 or 400 */
    const char *uid, *kind, *ns, *name;
    const char *trigger; /* set if schedulerName was injected */
    size_t removed;      /* number of annotations */
    const char *message; /* if refused or malformed */
};

struct review_config {
    struct rules_config rules;
    /* Fills the cluster context for this namespace, valid until leave. NULL: none. */
    void (*enter)(void *arg, const char *ns, struct rules_context *out);
    void (*leave)(void *arg);
    void *arg;
};

/* Applies the rules to one object. ERROR_INVALID: a part of it has the wrong type. */
int review_judge(const struct review_config *config, const struct rules_subject *s, const char *ns,
                 struct arena *a, struct rules_verdict *out, struct error *err);

/* Appends the reply to the request in body. Cannot fail: a bad request gets a reply too. Parses in
 * place: body is overwritten and needs JSON_PADDING writable bytes after n. mutate: the reply may
 * have a patch, which a validating webhook's must not. */
void review_answer(const struct review_config *config, bool mutate, char *body, size_t n,
                   struct arena *a, struct strbuf *out, struct review_outcome *outcome);
/* A failed metav1.Status for replies that are no reviews (400, 404, 405, 415). */
void review_status(struct strbuf *out, int code, const char *reason, const char *message);
