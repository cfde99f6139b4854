// SPDX-License-Identifier: Apache-2.0
/*
 * pki - a CA of one's own, and a serving certificate made by it. With server_tls.c the only file
 * here that knows OpenSSL.
 */
#pragma once

#include "lib/base/error.h"
#include "lib/base/str.h"

struct pki {
    char *ca_pem, *ca_key_pem; /* certificate and key of the CA */
    char *cert_pem, *key_pem;  /* of the server, signed by it */
};

/* Valid for a year from now (and the hour before). names: DNS names or IP addresses,
 * NULL-terminated, the first one being the subject. P-256. */
int pki_make(struct pki *out, const char *const *names, struct error *err);
void pki_deinit(struct pki *p); /* keys are wiped */
/* 32 random bytes in hex. */
enum { PKI_TOKEN_SIZE = 65 };
int pki_token(char out[PKI_TOKEN_SIZE], struct error *err);
