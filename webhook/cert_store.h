// SPDX-License-Identifier: Apache-2.0
/* cert_store - the API objects behind our TLS: the Secret that all replicas share, and the webhook
 * configurations whose caBundle the API server trusts. Blocking calls, one thread at a time. */
#pragma once

#include <stdbool.h>

#include "lib/base/error.h"
#include "lib/kube/api.h"
#include "webhook/certs.h"

struct cert_store {
    struct kube_client *client;
    const char *ns;
    const char *secret;
    const char *webhook_config;    /* Mutating...; NULL: caBundle not managed */
    const char *validating_config; /* Validating...; NULL: likewise */
};

/* ca.crt, ca.key, tls.crt and tls.key of the Secret. Heap strings; NULL if absent. */
struct cert_store_content {
    char *resource_version; /* NULL: no Secret yet */
    char *ca_bundle;        /* newest CA first */
    char *ca_key;           /* of the newest CA */
    struct certs_pair leaf;
};
void cert_store_content_deinit(struct cert_store_content *c);

/* A missing Secret is not an error: all members are NULL. */
int cert_store_read(const struct cert_store *v, struct cert_store_content *out, struct error *err);
/* Creates the Secret or replaces what was read. ERROR_CONFLICT: it changed since; read again. */
int cert_store_write(const struct cert_store *v, const struct cert_store_content *c,
                     struct error *err);
/* caBundle of the configuration's first webhook, as heap PEM; *out is NULL if there is none. */
int cert_store_published(const struct cert_store *v, char **out, struct error *err);
/* Sets caBundle of every webhook in the configurations; *changed: one differed. of_secret: the
 * bundle must still be the Secret's. ERROR_NOT_FOUND: no such configuration. ERROR_CONFLICT: a
 * configuration, or with of_secret the Secret, changed concurrently. */
int cert_store_publish(const struct cert_store *v, const char *ca_bundle, bool of_secret,
                       bool *changed, struct error *err);
