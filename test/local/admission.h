// SPDX-License-Identifier: Apache-2.0
/*
 * admission - what happens to an object before it is stored: namespaces must exist and not be terminating, PriorityClass becomes priority, ResourceQuota on pod count, and mutating
 * webhooks over TLS with failurePolicy, timeoutSeconds, namespaceSelector, objectSelector, matchConditions left out (refused clearly), reinvocationPolicy. Webhooks are asked by worker
 * threads, so the loop goes on.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/error.h"
#include "lib/base/jsontree.h"
#include "lib/base/loop.h"
#include "test/local/store.h"

struct admission;
int admission_new(struct admission **out, struct loop *l, struct store *s, struct error *err);
void admission_free(struct admission *a);

struct admission_request {
    const struct kind *kind;
    const char *operation; /* "CREATE", "UPDATE", "DELETE" */
    const char *ns, *name;
    bool dry_run;
};
/* done is called exactly once: at once when no webhook matches, otherwise later on the loop. object is changed in place. err NULL: admitted. warnings: NULL-terminated, may be NULL. */
typedef void (*admission_done)(void *arg, const struct error *err, const char *const *warnings);
void admission_run(struct admission *a, const struct admission_request *r, struct jsontree *object,
                   admission_done done, void *arg);
