// SPDX-License-Identifier: Apache-2.0
/* Checks chain order and key at load time, before a client meets the mistake. */
#include "lib/base/httpd_cert.h"

#include <gnutls/x509.h>
#include <pthread.h>
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

/* ---- clients ---- */

struct httpd_trust {
    pthread_mutex_t lock; /* GnuTLS does not say that a list may be read by several threads */
    gnutls_x509_trust_list_t list;
};

struct httpd_trust *httpd_cert_new_trust(const char *ca_pem, struct error *err)
{
    struct httpd_trust *t = mem_new(struct httpd_trust, 1);
    AUTO_STRBUF copy = {0}; /* gnutls_datum_t is not const */
    strbuf_adds(&copy, ca_pem);
    pthread_mutex_init(&t->lock, NULL);
    int n =
        copy.len > UINT32_MAX ? GNUTLS_E_LARGE_PACKET : gnutls_x509_trust_list_init(&t->list, 0);
    if (n == 0)
        n = gnutls_x509_trust_list_add_trust_mem(
            t->list,
            &(gnutls_datum_t){.data = (unsigned char *)copy.ptr, .size = (unsigned)copy.len}, NULL,
            GNUTLS_X509_FMT_PEM, 0, 0);
    if (n > 0)
        return t;
    error_set(err, ERROR_INVALID, "CA of clients: %s",
              n == 0 ? "there is no certificate in it" : gnutls_strerror(n));
    httpd_cert_free_trust(t);
    return NULL;
}

void httpd_cert_free_trust(struct httpd_trust *t)
{
    if (t == NULL)
        return;
    if (t->list != NULL)
        gnutls_x509_trust_list_deinit(t->list, 1);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

bool httpd_cert_is_trusted(struct httpd_trust *t, gnutls_session_t session)
{
    unsigned n = 0, status = 1;
    const gnutls_datum_t *shown = gnutls_certificate_get_peers(session, &n);
    gnutls_x509_crt_t chain[HTTPD_CHAIN_MAX] = {NULL};
    gnutls_typed_vdata_st purpose = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                     .data = (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT};
    unsigned len = 0;
    bool good = shown != NULL && n > 0 && n <= HTTPD_CHAIN_MAX;
    for (; good && len < n; len++)
        good = gnutls_x509_crt_init(&chain[len]) == 0 &&
               gnutls_x509_crt_import(chain[len], &shown[len], GNUTLS_X509_FMT_DER) == 0;
    if (good) {
        pthread_mutex_lock(&t->lock);
        good = gnutls_x509_trust_list_verify_crt2(t->list, chain, len, &purpose, 1, 0, &status,
                                                  NULL) == 0 &&
               status == 0;
        pthread_mutex_unlock(&t->lock);
    }
    for (unsigned i = 0; i < HTTPD_CHAIN_MAX; i++)
        if (chain[i] != NULL)
            gnutls_x509_crt_deinit(chain[i]);
    return good;
}
