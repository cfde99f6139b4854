// SPDX-License-Identifier: Apache-2.0
/*
 * facts - fetches what doctor examines. Read-only, except for two kinds of requests that change
 * nothing: SubjectAccessReviews, and a pod created with dryRun=All, which shows whether the API
 * server reaches and trusts the webhook.
 */
#pragma once

#include "kubectl/load.h"
#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/kube/api.h"

/* Appends the JSON that doctor.h describes to out. What is forbidden or fails is listed as unasked;
 * -1 only when the server does not answer at all. */
int facts_fetch(struct kube_client *client, const struct kube_options *o, const struct load *l,
                struct strbuf *out, struct error *err);
