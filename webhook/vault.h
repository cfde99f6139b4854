// SPDX-License-Identifier: Apache-2.0
/*
 * vault - the two API objects behind our TLS: the Secret that all replicas share, and the webhook configuration
 * whose caBundle tells the API server whom to trust. Blocking calls, one thread at a time.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/error.h"
#include "lib/kube/api.h"
#include "webhook/certs.h"

struct vault {
    struct kube_client *client;
    const char *ns;
    const char *secret;
    const char *webhook_config;    /* mutating; NULL: caBundle is somebody else's business */
    const char *validating_config; /* the same of a ValidatingWebhookConfiguration */
};

/* What the Secret holds: ca.crt, ca.key, tls.crt, tls.key. Heap strings; NULL what is absent. */
struct vault_content {
    char *resource_version; /* NULL: there is no Secret yet */
    char *ca_bundle;        /* newest CA first */
    char *ca_key;           /* of the newest */
    struct certs_pair leaf;
};
void vault_content_deinit(struct vault_content *c);

/* No Secret is not an error: everything is NULL then. */
int vault_read(const struct vault *v, struct vault_content *out, struct error *err);
/* Creates the Secret, or replaces what we read. ERROR_CONFLICT: another replica was faster, read again. */
int vault_write(const struct vault *v, const struct vault_content *c, struct error *err);
/* The CAs that the configuration trusts now, as PEM, of its first webhook; *out NULL: none, or there is no configuration. Heap. */
int vault_published(const struct vault *v, char **out, struct error *err);
/* Makes caBundle of every webhook in the configurations this bundle. *changed: one of them was another. ERROR_NOT_FOUND: no such
 * configuration; ERROR_CONFLICT: it was changed meanwhile, or, of_secret, the bundle is not the Secret's any more. */
int vault_publish(const struct vault *v, const char *ca_bundle, bool of_secret, bool *changed,
                  struct error *err);
