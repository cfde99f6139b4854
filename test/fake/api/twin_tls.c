// SPDX-License-Identifier: Apache-2.0
/* Certificates for the twin: P-256, valid for a day. */
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "test/fake/api/twin.h"

static void must(bool ok)
{
    if (!ok)
        abort();
}

struct pair {
    EVP_PKEY *key;
    X509 *cert;
};

static void add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    must(e && X509_add_ext(cert, e, -1));
    X509_EXTENSION_free(e);
}

static struct pair issue(const char *name, const char *san, const struct pair *ca, long serial)
{
    struct pair p = {.key = EVP_EC_gen("P-256"), .cert = X509_new()};
    must(p.key && p.cert);
    X509_set_version(p.cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(p.cert), serial);
    X509_gmtime_adj(X509_getm_notBefore(p.cert), -3600);
    X509_gmtime_adj(X509_getm_notAfter(p.cert), 24 * 3600L);
    X509_NAME *subject = X509_get_subject_name(p.cert);
    must(X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1,
                                    -1, 0));
    X509_set_pubkey(p.cert, p.key);
    X509 *issuer = ca ? ca->cert : p.cert;
    X509_set_issuer_name(p.cert, X509_get_subject_name(issuer));
    add_extension(p.cert, issuer, NID_basic_constraints, ca ? "CA:FALSE" : "critical,CA:TRUE");
    add_extension(p.cert, issuer, NID_subject_key_identifier, "hash");
    if (san)
        add_extension(p.cert, issuer, NID_subject_alt_name, san);
    must(X509_sign(p.cert, ca ? ca->key : p.key, EVP_sha256()) > 0);
    return p;
}

static char *to_text(BIO *b)
{
    char *data = NULL;
    long n = BIO_get_mem_data(b, &data);
    char *text = malloc((size_t)n + 1);
    must(text != NULL);
    memcpy(text, data, (size_t)n);
    text[n] = '\0';
    BIO_free(b);
    return text;
}

static char *cert_pem(const struct pair *p)
{
    BIO *b = BIO_new(BIO_s_mem());
    must(PEM_write_bio_X509(b, p->cert));
    return to_text(b);
}

static char *key_pem(const struct pair *p)
{
    BIO *b = BIO_new(BIO_s_mem());
    must(PEM_write_bio_PrivateKey(b, p->key, NULL, NULL, 0, NULL, NULL));
    return to_text(b);
}

static void pair_free(struct pair *p)
{
    EVP_PKEY_free(p->key);
    X509_free(p->cert);
}

struct twin_tls *twin_tls_new(bool with_ip)
{
    struct twin_tls *tls = calloc(1, sizeof *tls);
    must(tls != NULL);
    struct pair ca = issue("twin CA", NULL, NULL, 1), other = issue("another CA", NULL, NULL, 1);
    struct pair server =
        issue("twin", with_ip ? "DNS:twin.test,IP:127.0.0.1" : "DNS:twin.test", &ca, 2);
    struct pair client = issue("client", NULL, &ca, 3);
    tls->ca = cert_pem(&ca);
    tls->other_ca = cert_pem(&other);
    tls->server_cert = cert_pem(&server);
    tls->server_key = key_pem(&server);
    tls->client_cert = cert_pem(&client);
    tls->client_key = key_pem(&client);
    pair_free(&ca);
    pair_free(&other);
    pair_free(&server);
    pair_free(&client);
    return tls;
}

void twin_tls_free(struct twin_tls *tls)
{
    if (!tls)
        return;
    free(tls->ca);
    free(tls->other_ca);
    free(tls->server_cert);
    free(tls->server_key);
    free(tls->client_cert);
    free(tls->client_key);
    free(tls);
}

void twin_tls_add_data(struct strbuf *y, const char *key, const char *pem)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    strbuf_addf(y, "%s: ", key);
    size_t n = strlen(pem);
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = 0;
        for (size_t k = 0; k < 3; k++)
            v = v << 8 | (i + k < n ? (unsigned char)pem[i + k] : 0);
        for (size_t k = 0; k < 4; k++)
            strbuf_addc(y, i + k > n ? '=' : digits[v >> (18 - 6 * k) & 63]);
    }
    strbuf_adds(y, ", ");
}
