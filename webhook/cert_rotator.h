// SPDX-License-Identifier: Apache-2.0
/*
 * cert_rotator - keeps the server's certificate acceptable to the API server across rotations. Runs
 * one thread.
 *
 * The certificate comes either from our own CA, stored in a Secret that all replicas share, or from
 * files that another program (cert-manager) renews. In both cases the rotator writes the CA into
 * caBundle of the webhook configurations, if any are named.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/options.h"
#include "lib/kube/api.h"
#include "webhook/cert_store.h"

struct cert_rotator_options { /* rows: cert_rotator_option_rows */
    const char *service;
    const char *ns;  /* NULL: the pod's own */
    const char *san; /* extra names, comma-separated */
    const char *secret;
    const char *webhook_config, *validating_config;
    const char *cert_file, *key_file, *ca_file;
    int64_t ca_life_ms, leaf_life_ms;
    int64_t check_ms;  /* interval between checks of the source */
    int64_t settle_ms; /* how long a new CA is in caBundle before its leaf is served */
};
extern const struct option_row cert_rotator_option_rows[];

/* What the Secret's content needs. Decided without I/O. */
enum cert_rotator_need {
    CERT_ROTATOR_NOTHING,
    CERT_ROTATOR_ALL, /* no usable CA: create CA and leaf */
    /* due, or lost while the leaf is valid: prepend a new CA, keep the leaf */
    CERT_ROTATOR_CA,
    CERT_ROTATOR_LEAF, /* unusable, due, or of an older CA: issue one from the newest CA */
};
struct cert_rotator_policy {
    const char *const *names;
    size_t names_len;
    int64_t ca_life_s, leaf_life_s;
};
/* settled: the newest CA has been in caBundle for settle_ms. *why: a static text for the log. */
enum cert_rotator_need cert_rotator_judge(const struct cert_rotator_policy *p,
                                          const struct cert_store_content *c, int64_t now_s,
                                          bool settled, const char **why);
/* Creates what is needed in place and keeps the resource version. */
int cert_rotator_renew(const struct cert_rotator_policy *p, enum cert_rotator_need need,
                       struct cert_store_content *c, int64_t now_s, struct error *err);

struct cert_rotator_callbacks { /* called on the rotator's thread */
    int (*install)(void *arg, const char *cert_pem, const char *key_pem, struct error *err);
    /* usable: the installed certificate is valid now. published: caBundle is written or
     * unneeded. */
    void (*state)(void *arg, bool usable, bool published);
    int64_t (*now_s)(void *arg); /* since the epoch; NULL: wall clock */
    void *arg;
};

struct cert_rotator;
/* Takes client (NULL only with files and without a webhook configuration). ns: the effective
 * one. */
int cert_rotator_start(struct cert_rotator **out, const struct cert_rotator_options *o,
                       const char *ns, struct kube_client *client,
                       const struct cert_rotator_callbacks *cb, struct error *err);
/* Cancels a running pass and joins the thread. NULL is fine. */
void cert_rotator_stop(struct cert_rotator *k);
