// SPDX-License-Identifier: Apache-2.0
/*
 * review - AdmissionReview (admission.k8s.io/v1) in, AdmissionReview out. Pure: bytes to bytes.
 *
 * A malformed request gets an HTTP 400 with a Status object that says why, never `allowed: false`:
 * whether a failed call stops the pod is the choice of failurePolicy.
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

/* One request; everything is borrowed from its document. */
struct review {
    const char *uid;
    const char *operation; /* "CREATE"... */
    const char *group, *version, *kind;
    const char *subresource; /* "" when absent */
    const char *ns;          /* "" for cluster objects */
    const char *name;        /* "" while generateName has not been used */
    bool dry_run;
    json *object; /* NULL on DELETE */
    json *old;    /* NULL on CREATE */
};
/* ERROR_INVALID says which field is missing or wrong, and what was expected. */
int review_parse(json *root, struct review *out, struct error *err);

enum review_result {
    REVIEW_UNTOUCHED, /* allowed as it is */
    REVIEW_PATCHED,
    REVIEW_REFUSED,
    REVIEW_MALFORMED,
    REVIEW_RESULTS,
};
const char *review_result_name(enum review_result result); /* for metrics */

/* The outcome, for metrics and the log. Strings live in the arena, or are static. */
struct review_outcome {
    enum review_result result;
    int status; /* of the HTTP reply: 200 or 400 */
    const char *uid, *kind, *ns, *name;
    const char *trigger; /* set when the scheduler's name was injected */
    size_t removed;      /* annotations */
    const char *message; /* refused, malformed */
};

struct review_config {
    struct rules_config rules;
    /* What is known around an object of this namespace; valid until leave. NULL: nothing is
     * known. */
    void (*enter)(void *arg, const char *ns, struct rules_context *out);
    void (*leave)(void *arg);
    void *arg;
};

/* The rules on one object, with what is known around it. ERROR_INVALID: a part of it has the wrong
 * kind. */
int review_judge(const struct review_config *config, const struct rules_subject *s, const char *ns,
                 struct arena *a, struct rules_verdict *out, struct error *err);

/* The body of a request → the body of the reply, appended to out. Cannot fail: a bad request has a
 * reply too. The body is parsed in place: it is overwritten, and JSON_PADDING bytes behind it are
 * writable. mutate: the reply may have a patch; a validating webhook's must not. */
void review_answer(const struct review_config *config, bool mutate, char *body, size_t n,
                   struct arena *a, struct strbuf *out, struct review_outcome *outcome);
/* A negative metav1.Status, for replies that are not reviews (400, 404, 405, 415). reason:
 * "BadRequest". */
void review_status(struct strbuf *out, int code, const char *reason, const char *message);
