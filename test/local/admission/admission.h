// SPDX-License-Identifier: Apache-2.0
/*
 * admission - what happens to an object before it is stored, in the real server's order:
 *
 *   1. namespaces must exist and not be terminating             (admission_builtin.c)
 *   2. a pod's service account exists, its PriorityClass becomes priority
 *   3. mutating webhooks over TLS, then validating ones         (admission_webhooks.c, _caller.c)
 *   4. ResourceQuota on object counts                           (admission_quota.c)
 *
 * Worker threads call the webhooks, so the loop is not blocked; validating ones are called in turn,
 * where a real server calls all at once. Left out: validating policies, and CEL: a webhook's
 * matchConditions count as true, so it is called more often (logged once).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/loop.h"
#include "test/local/patch/jsonnode.h"
#include "test/local/store/store.h"

struct admission;
int admission_new(struct admission **out, struct loop *l, struct store *s, struct error *err);
/* Runs under way are answered now, with ERROR_CANCELLED. NULL is fine. */
void admission_free(struct admission *a);
/* Where a webhook's clientConfig.service is: "NAMESPACE/NAME=HOST:PORT", several separated by
 * commas. There is no service network here, so a service that is not in the table fails. */
int admission_add_services(struct admission *a, const char *list, struct error *err);

struct admission_request {
    const struct kind *kind;
    const char *operation; /* "CREATE", "UPDATE", "DELETE" */
    const char *ns, *name; /* ns "" or NULL: a cluster object; name "" or NULL: generateName */
    bool dry_run;
    /* The rest may be left out. */
    const char *sub;          /* "status", "binding", ... */
    const struct object *old; /* UPDATE, DELETE: what is stored now; copied */
    const char *user;         /* NULL: "kubernetes-admin" */
    bool *changed;            /* set when a webhook has changed the object; lives until done */
};
/* done is called exactly once: at once when no webhook matches, otherwise later on the loop. object
 * is changed in place; for DELETE it may be NULL. err NULL: admitted, and done stores the object at
 * once (a quota is checked just before). warnings: NULL-terminated, may be NULL. What r points to
 * is copied; object stays the caller's and lives until done. Errors carry http_status and the
 * whole sentence. */
typedef void (*admission_done)(void *arg, const struct error *err, const char *const *warnings);
void admission_run(struct admission *a, const struct admission_request *r, struct jsontree *object,
                   admission_done done, void *arg);
/* The same without webhooks, at once: for those inside (api_create). */
int admission_check(struct admission *a, const struct admission_request *r, struct jsontree *object,
                    struct error *err);
