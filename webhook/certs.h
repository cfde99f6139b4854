// SPDX-License-Identifier: Apache-2.0
/*
 * certs - creates and checks certificates. Only certs.c uses OpenSSL. PEM text in and out; no files
 * and no clock: the caller passes the time in seconds since the epoch, so tests can run years of
 * rotation.
 *
 * As for the API server, one unreadable certificate invalidates the whole text. Keys are P-256.
 * Private keys never appear in error texts, and their memory is wiped when freed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

enum {
    CERTS_PEM_MAX = 256 * 1024, /* largest PEM text */
    CERTS_NAMES_MAX = 32,
    CERTS_BUNDLE_MAX = 4, /* the current CA and its predecessors */
};

/* A certificate (or a chain, leaf first) and its private key. Heap strings; NULL if absent. */
struct certs_pair {
    char *cert_pem;
    char *key_pem;
};
void certs_pair_deinit(struct certs_pair *p);

/* Wipes and frees a secret. NULL is fine. */
void certs_wipe(char *secret);
/* Wipes and frees a buffer that held a secret. */
void certs_wipe_buf(struct strbuf *b);

/* Makes a CA valid from shortly before now_s (clocks differ) to now_s + valid_s. A random suffix to
 * `name` distinguishes CAs in one bundle. */
int certs_make_ca(const char *name, int64_t now_s, int64_t valid_s, struct certs_pair *out,
                  struct error *err);
/* Makes a server certificate for DNS names or IP addresses. The subject is names[0]. The
 * certificate never outlives its CA. */
int certs_make_leaf(const struct certs_pair *ca, const char *const *names, size_t names_len,
                    int64_t now_s, int64_t valid_s, struct certs_pair *out, struct error *err);

struct certs_life {
    int64_t not_before_s;
    int64_t not_after_s;
    int64_t renew_s; /* at two thirds of the lifetime */
};
/* Of the first certificate in the text. */
int certs_life(const char *cert_pem, struct certs_life *out, struct error *err);

/* 0 if a client that trusts the bundle accepts the certificate at now_s under every name (if any)
 * and the key matches. A NULL bundle skips the chain check. The error says which check failed. */
int certs_check(const char *ca_bundle_pem, const struct certs_pair *leaf, const char *const *names,
                size_t names_len, int64_t now_s, struct error *err);
/* 0 if this is a valid CA at now_s and the key matches. */
int certs_check_ca(const struct certs_pair *ca, int64_t now_s, struct error *err);

/* Appends the first certificate of a bundle. ERROR_INVALID if there is none. */
int certs_first(const char *bundle_pem, struct strbuf *out, struct error *err);
/* Appends `newest`, then the distinct certificates of `bundle` (may be NULL) that are valid at
 * now_s, at most CERTS_BUNDLE_MAX in all. */
int certs_bundle(const char *newest_pem, const char *bundle_pem, int64_t now_s, struct strbuf *out,
                 struct error *err);
