// SPDX-License-Identifier: Apache-2.0
/*
 * keeper - sees to it that the server has a certificate which the API server accepts, now and after every rotation. One thread.
 *
 * Two sources: our own CA and leaf, kept in a Secret that all replicas share; or files that somebody else (cert-manager) renews. In both cases the CA is
 * written into caBundle of the webhook configuration when one is named.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/options.h"
#include "lib/kube/api.h"
#include "webhook/vault.h"

struct keeper_options { /* rows: keeper_option_rows */
    const char *service;
    const char *ns;  /* --namespace; NULL: the pod's own */
    const char *san; /* more names, separated by commas */
    const char *secret;
    const char *webhook_config, *validating_config;
    const char *cert_file, *key_file, *ca_file;
    int64_t ca_life_ms, leaf_life_ms;
    int64_t check_ms;  /* how often the source is looked at */
    int64_t settle_ms; /* how long a new CA is in caBundle before a certificate of it is served */
};
extern const struct option_row keeper_option_rows[];

/*
 * The rule, without I/O: what is wrong with the contents of the Secret at this time.
 */
enum keeper_need {
    KEEPER_NOTHING,
    KEEPER_ALL, /* no usable CA: make CA and leaf */
    KEEPER_CA, /* two thirds through its life, or lost while the leaf is good: a new CA in front, the leaf stays */
    KEEPER_LEAF, /* not usable, due, or still of an older CA: make a leaf of the newest CA */
};
struct keeper_policy {
    const char *const *names;
    size_t names_len;
    int64_t ca_life_s, leaf_life_s;
};
/* settled: the newest CA has been in caBundle for settle_ms. why: a word for the log, static. */
enum keeper_need keeper_judge(const struct keeper_policy *p, const struct vault_content *c,
                              int64_t now_s, bool settled, const char **why);
/* Makes what is needed, in place; the resource version stays. */
int keeper_renew(const struct keeper_policy *p, enum keeper_need need, struct vault_content *c,
                 int64_t now_s, struct error *err);

struct keeper_callbacks { /* on the keeper's thread */
    int (*install)(void *arg, const char *cert_pem, const char *key_pem, struct error *err);
    /* usable: a certificate is installed and valid at this time; published: caBundle is in, or nobody asked for that. */
    void (*state)(void *arg, bool usable, bool published);
    int64_t (*now_s)(void *arg); /* since the epoch; NULL: the wall clock */
    void *arg;
};

struct keeper;
/* client NULL: only with files and without a webhook configuration. The keeper owns it from here on. ns: namespace in force. */
int keeper_start(struct keeper **out, const struct keeper_options *o, const char *ns,
                 struct kube_client *client, const struct keeper_callbacks *cb, struct error *err);
/* Cancels what runs, joins the thread. NULL is fine. */
void keeper_stop(struct keeper *k);
