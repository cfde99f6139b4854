// SPDX-License-Identifier: Apache-2.0
/* Checks chain order and key at load time, before a client meets the mistake. */
#include "lib/base/httpd_cert.h"

#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

enum { KEY_ID_MAX = 64 };

static void destroy(struct httpd_cert *c)
{
    for (unsigned i = 0; i < c->chain_len; i++)
        gnutls_pcert_deinit(&c->chain[i]);
    if (c->key != NULL)
        gnutls_privkey_deinit(c->key);
    free(c);
}

void httpd_cert_release(struct httpd_cert *c)
{
    if (c != NULL && --c->references == 0)
        destroy(c);
}

static int check_key(struct httpd_cert *c, gnutls_x509_crt_t leaf, struct error *err)
{
    unsigned char of_leaf[KEY_ID_MAX], of_key[KEY_ID_MAX];
    size_t leaf_len = sizeof of_leaf, key_len = sizeof of_key;
    gnutls_pubkey_t public_key;
    int rc = gnutls_pubkey_init(&public_key);
    if (rc < 0)
        return error_set(err, ERROR_INTERNAL, "private key: %s", gnutls_strerror(rc));
    rc = gnutls_pubkey_import_privkey(public_key, c->key, 0, 0);
    if (rc >= 0)
        rc = gnutls_pubkey_get_key_id(public_key, 0, of_key, &key_len);
    if (rc >= 0)
        rc = gnutls_x509_crt_get_key_id(leaf, 0, of_leaf, &leaf_len);
    gnutls_pubkey_deinit(public_key);
    if (rc < 0)
        return error_set(err, ERROR_INVALID, "private key: %s", gnutls_strerror(rc));
    if (leaf_len != key_len || memcmp(of_leaf, of_key, key_len) != 0)
        return error_set(err, ERROR_INVALID, "private key: does not belong to the certificate");
    return 0;
}

static int load(struct httpd_cert *c, const char *cert_pem, const char *key_pem, struct error *err)
{
    size_t cert_len = strlen(cert_pem), key_len = strlen(key_pem);
    if (cert_len > UINT32_MAX || key_len > UINT32_MAX)
        return error_set(err, ERROR_TOO_LARGE, "certificate: too large");
    /* gnutls_datum_t is not const. */
    AUTO_STRBUF cert_copy = {0}, key_copy = {0};
    strbuf_adds(&cert_copy, cert_pem);
    strbuf_reserve(&key_copy,
                   /* reserve at once: growing would leave parts of the key in freed memory */
                   key_len);
    strbuf_adds(&key_copy, key_pem);
    gnutls_datum_t cert = {.data = (unsigned char *)cert_copy.ptr, .size = (unsigned)cert_len};
    gnutls_datum_t key = {.data = (unsigned char *)key_copy.ptr, .size = (unsigned)key_len};

    int rc = gnutls_privkey_init(&c->key);
    if (rc >= 0)
        rc = gnutls_privkey_import_x509_raw(c->key, &key, GNUTLS_X509_FMT_PEM, NULL, 0);
    if (key_len > 0)
        mem_wipe(key_copy.ptr, key_len);
    if (rc < 0)
        return error_set(err, ERROR_INVALID, "private key: %s", gnutls_strerror(rc));

    gnutls_x509_crt_t *list = NULL;
    unsigned n = 0;
    rc = gnutls_x509_crt_list_import2(&list, &n, &cert, GNUTLS_X509_FMT_PEM,
                                      GNUTLS_X509_CRT_LIST_FAIL_IF_UNSORTED);
    if (rc < 0)
        return error_set(err, ERROR_INVALID, "certificate: %s", gnutls_strerror(rc));
    int result = 0;
    if (n == 0 || n > HTTPD_CHAIN_MAX)
        result =
            error_set(err, ERROR_INVALID, "certificate: a chain of %u, must be between 1 and %d", n,
                      (int)HTTPD_CHAIN_MAX);
    else
        result = check_key(c, list[0], err);
    for (unsigned i = 0; i < n && result == 0; i++) {
        rc = gnutls_pcert_import_x509(&c->chain[i], list[i], 0);
        if (rc < 0)
            result = error_set(err, ERROR_INVALID, "certificate: %s", gnutls_strerror(rc));
        else
            c->chain_len++;
    }
    for (unsigned i = 0; i < n; i++)
        gnutls_x509_crt_deinit(list[i]);
    gnutls_free(list);
    return result;
}

struct httpd_cert *httpd_cert_new(const char *cert_pem, const char *key_pem, struct error *err)
{
    struct httpd_cert *c = mem_new(struct httpd_cert, 1);
    c->references = 1;
    if (load(c, cert_pem, key_pem, err) == 0)
        return c;
    destroy(c);
    return NULL;
}
