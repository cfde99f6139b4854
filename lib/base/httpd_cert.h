// SPDX-License-Identifier: Apache-2.0
/* httpd_cert - a certificate chain with its key, and the CAs of clients. Private to httpd.c. A
 * chain is reference-counted, since open connections keep a replaced certificate. The server's lock
 * guards the count. */
#pragma once

#include <gnutls/abstract.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"

enum { HTTPD_CHAIN_MAX = 16 };

struct httpd_cert {
    size_t references;
    gnutls_pcert_st chain[HTTPD_CHAIN_MAX];
    unsigned chain_len;
    gnutls_privkey_t key;
};

/* From PEM, with one reference. NULL on error; err names the faulty part and never shows the
 * key. */
struct httpd_cert *httpd_cert_new(const char *cert_pem, const char *key_pem, struct error *err);
/* NULL is fine. */
void httpd_cert_release(struct httpd_cert *c);

struct httpd_trust;

/* From PEM, one CA or several. NULL on error. */
struct httpd_trust *httpd_cert_new_trust(const char *ca_pem, struct error *err);
void httpd_cert_free_trust(struct httpd_trust *t); /* NULL is fine. */
/* Whether the session's peer showed a certificate of one of these CAs that is valid now and may
 * identify a client. Any thread. */
bool httpd_cert_is_trusted(struct httpd_trust *t, gnutls_session_t session);
