// SPDX-License-Identifier: Apache-2.0
/*
 * certs - creates and checks certificates. The only file that knows OpenSSL. PEM text in, PEM text
 * out; no files, no clock: the caller passes the time (seconds since the epoch), so that years of
 * rotation pass in a test.
 *
 * A text with one unreadable certificate is an error as a whole, as for the API server. Keys are
 * P-256. Private keys never appear in an error text, and their memory is wiped when freed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

enum {
    CERTS_PEM_MAX = 256 * 1024, /* limit for a PEM text */
    CERTS_NAMES_MAX = 32,
    CERTS_BUNDLE_MAX = 4, /* CAs kept in a bundle: the current one and its predecessors */
};

/* A certificate (or a chain, leaf first) and its private key. Heap strings, NULL when absent. */
struct certs_pair {
    char *cert_pem;
    char *key_pem;
};
void certs_pair_deinit(struct certs_pair *p);

/* Wipes a secret and frees it. NULL is fine. */
void certs_wipe(char *secret);
/* Wipes a buffer that held a secret (and may hold other things) and frees it. */
void certs_wipe_buf(struct strbuf *b);

/* A new CA, valid from shortly before now_s (clocks differ) to now_s + valid_s. Its name is `name`
 * and a random suffix, which distinguishes two CAs in one bundle. */
int certs_make_ca(const char *name, int64_t now_s, int64_t valid_s, struct certs_pair *out,
                  struct error *err);
/* A new server certificate for the names, DNS names or IP addresses, the first one also being the
 * subject. It never outlives its CA. */
int certs_make_leaf(const struct certs_pair *ca, const char *const *names, size_t names_len,
                    int64_t now_s, int64_t valid_s, struct certs_pair *out, struct error *err);

struct certs_life {
    int64_t not_before_s;
    int64_t not_after_s;
    int64_t renew_s; /* two thirds of its life */
};
/* Of the first certificate in the text. */
int certs_life(const char *cert_pem, struct certs_life *out, struct error *err);

/* 0 if a client that trusts the bundle would accept the certificate at now_s under each of the
 * names (none: names do not matter), and the key belongs to it. Without a bundle (NULL) the chain
 * is not checked. The error says which of these failed. */
int certs_check(const char *ca_bundle_pem, const struct certs_pair *leaf, const char *const *names,
                size_t names_len, int64_t now_s, struct error *err);
/* 0 if this is a valid CA at now_s whose key we have. */
int certs_check_ca(const struct certs_pair *ca, int64_t now_s, struct error *err);

/* Appends the first certificate of a bundle. ERROR_INVALID when there is none. */
int certs_first(const char *bundle_pem, struct strbuf *out, struct error *err);
/* Appends `newest`, then the certificates of `bundle` (NULL: none) that are still valid at now_s,
 * without repeating one, at most CERTS_BUNDLE_MAX. */
int certs_bundle(const char *newest_pem, const char *bundle_pem, int64_t now_s, struct strbuf *out,
                 struct error *err);
