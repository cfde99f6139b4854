// SPDX-License-Identifier: Apache-2.0
/*
 * cert_rotator - keeps the server's certificate acceptable to the API server, across rotations. One
 * thread.
 *
 * Two sources: our own CA and leaf, kept in a Secret that all replicas share; or files that another
 * program (cert-manager) renews. In both cases the CA is written into caBundle of the webhook
 * configuration, if one is named.
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
    const char *ns;  /* --namespace; NULL: the pod's own */
    const char *san; /* more names, separated by commas */
    const char *secret;
    const char *webhook_config, *validating_config;
    const char *cert_file, *key_file, *ca_file;
    int64_t ca_life_ms, leaf_life_ms;
    int64_t check_ms;  /* how often the source is checked */
    int64_t settle_ms; /* how long a new CA is in caBundle before a certificate of it is served */
};
extern const struct option_row cert_rotator_option_rows[];

/*
 * The rule, without I/O: what is wrong with the Secret's content at this time.
 */
enum cert_rotator_need {
    CERT_ROTATOR_NOTHING,
    CERT_ROTATOR_ALL, /* no usable CA: create CA and leaf */
    /* two thirds through its life, or lost while the leaf is good: a new CA in front, the leaf
     * stays */
    CERT_ROTATOR_CA,
    CERT_ROTATOR_LEAF, /* unusable, due, or of an older CA: create a leaf of the newest CA */
};
struct cert_rotator_policy {
    const char *const *names;
    size_t names_len;
    int64_t ca_life_s, leaf_life_s;
};
/* settled: the newest CA has been in caBundle for settle_ms. why: a static word for the log. */
enum cert_rotator_need cert_rotator_judge(const struct cert_rotator_policy *p,
                                          const struct cert_store_content *c, int64_t now_s,
                                          bool settled, const char **why);
/* Creates what is needed, in place; the resource version stays. */
int cert_rotator_renew(const struct cert_rotator_policy *p, enum cert_rotator_need need,
                       struct cert_store_content *c, int64_t now_s, struct error *err);

struct cert_rotator_callbacks { /* on the rotator's thread */
    int (*install)(void *arg, const char *cert_pem, const char *key_pem, struct error *err);
    /* usable: a certificate is installed and currently valid; published: caBundle is written, or
     * not required. */
    void (*state)(void *arg, bool usable, bool published);
    int64_t (*now_s)(void *arg); /* since the epoch; NULL: the wall clock */
    void *arg;
};

struct cert_rotator;
/* client NULL: only with files and without a webhook configuration. The rotator takes it. ns: the
 * effective namespace. */
int cert_rotator_start(struct cert_rotator **out, const struct cert_rotator_options *o,
                       const char *ns, struct kube_client *client,
                       const struct cert_rotator_callbacks *cb, struct error *err);
/* Cancels a running pass, joins the thread. NULL is fine. */
void cert_rotator_stop(struct cert_rotator *k);
