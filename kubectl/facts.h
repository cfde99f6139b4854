// SPDX-License-Identifier: Apache-2.0
/* facts - fetches what doctor examines. Changes nothing: besides reads it sends
 * SubjectAccessReviews, and a pod with dryRun=All to see whether the API server reaches and trusts
 * the webhook. */
#pragma once

#include "kubectl/load.h"
#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/kube/api.h"

/* Appends the JSON that doctor.h describes. What is forbidden or fails is listed as unasked;
 * returns -1 only if the server does not answer at all. */
int facts_fetch(struct kube_client *client, const struct kube_options *o, const struct load *l,
                struct strbuf *out, struct error *err);
