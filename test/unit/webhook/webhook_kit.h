// SPDX-License-Identifier: Apache-2.0
/*
 * webhook_kit - what the webhook's tests share: a review around a pod, the answer to it, and a JSON
 * Patch applied as the API server would (written apart from webhook/patch.c, so that a mistake
 * there shows).
 */
#pragma once

#include <stddef.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/base/str.h"
#include "webhook/review.h"

/* Appends an AdmissionReview of a Pod. */
void webhook_kit_review(struct strbuf *out, const char *pod_json, const char *ns,
                        const char *operation);
/* review_answer on a copy of body. */
void webhook_kit_answer(const struct review_config *config, const char *body, struct arena *a,
                        struct strbuf *reply, struct review_outcome *outcome);
/* The patch of a reply, decoded: "" when it has none. Appended. */
int webhook_kit_patch_of(const char *reply, struct strbuf *out, struct error *err);
/* Appends object with the patch (JSON text, "" for none) applied. An operation that the API server
 * would refuse is an error. */
int webhook_kit_apply(const char *object, const char *patch, struct strbuf *out, struct error *err);
