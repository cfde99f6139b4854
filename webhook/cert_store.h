// SPDX-License-Identifier: Apache-2.0
/*
 * cert_store - the two API objects behind our TLS: the Secret that all replicas share, and the
 * webhook configuration with the caBundle that the API server trusts. Blocking calls, one thread at
 * a time.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/error.h"
#include "lib/kube/api.h"
#include "webhook/certs.h"

struct cert_store {
    struct kube_client *client;
    const char *ns;
    const char *secret;
    const char *webhook_config;    /* mutating; NULL: we do not manage caBundle */
    const char *validating_config; /* the same of a ValidatingWebhookConfiguration */
};

/* The Secret's content: ca.crt, ca.key, tls.crt, tls.key. Heap strings; NULL if absent. */
struct cert_store_content {
    char *resource_version; /* NULL: there is no Secret yet */
    char *ca_bundle;        /* newest CA first */
    char *ca_key;           /* of the newest */
    struct certs_pair leaf;
};
void cert_store_content_deinit(struct cert_store_content *c);

/* No Secret is not an error: everything is NULL then. */
int cert_store_read(const struct cert_store *v, struct cert_store_content *out, struct error *err);
/* Creates the Secret, or replaces what we read. ERROR_CONFLICT: another replica was faster, read
 * again. */
int cert_store_write(const struct cert_store *v, const struct cert_store_content *c,
                     struct error *err);
/* The CAs that the configuration trusts now, as PEM, of its first webhook; *out NULL: none, or no
 * configuration. Heap. */
int cert_store_published(const struct cert_store *v, char **out, struct error *err);
/* Sets caBundle of every webhook in the configurations. *changed: one of them differed.
 * ERROR_NOT_FOUND: no such configuration; ERROR_CONFLICT: it was changed meanwhile, or, of_secret,
 * the bundle is no longer the Secret's. */
int cert_store_publish(const struct cert_store *v, const char *ca_bundle, bool of_secret,
                       bool *changed, struct error *err);
