// SPDX-License-Identifier: Apache-2.0
#include "test/local/server/pki.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"

enum { BEFORE_S = 3600, YEAR_S = 365 * 24 * 3600 };

static int fail(struct error *err, const char *what)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    error_set(err, ERROR_INTERNAL, "%s: %s", what, reason ? reason : "no reason given");
    ERR_clear_error();
    return -1;
}

static char *text_of(BIO *bio)
{
    char *bytes = NULL;
    long n = BIO_get_mem_data(bio, &bytes);
    char *text = mem_new(char, (size_t)n + 1);
    memcpy(text, bytes, (size_t)n);
    return text;
}

static char *cert_text(X509 *cert)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *text = bio && PEM_write_bio_X509(bio, cert) ? text_of(bio) : NULL;
    BIO_free(bio);
    return text;
}

static char *key_text(EVP_PKEY *key)
{
    BIO *bio = BIO_new(BIO_s_secmem());
    char *text = bio && PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL)
                     ? text_of(bio)
                     : NULL;
    BIO_free(bio);
    return text;
}

static bool add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;
    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool ok = e && X509_add_ext(cert, e, -1) == 1;
    X509_EXTENSION_free(e);
    return ok;
}

static bool set_serial(X509 *cert)
{
    unsigned char bytes[16];
    if (RAND_bytes(bytes, sizeof bytes) != 1)
        return false;
    bytes[0] &= 0x7f;
    BIGNUM *n = BN_bin2bn(bytes, sizeof bytes, NULL);
    bool ok = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert));
    BN_free(n);
    return ok;
}

/* A certificate for the key, not signed yet. issuer NULL: its own. */
static X509 *draft(EVP_PKEY *key, const char *common_name, X509 *issuer)
{
    X509 *cert = X509_new();
    X509_NAME *name = cert ? X509_get_subject_name(cert) : NULL;
    bool ok = name && X509_set_version(cert, 2) == 1 && set_serial(cert) &&
              X509_gmtime_adj(X509_getm_notBefore(cert), -BEFORE_S) &&
              X509_gmtime_adj(X509_getm_notAfter(cert), YEAR_S) &&
              X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                         (const unsigned char *)common_name, -1, -1, 0) == 1 &&
              X509_set_issuer_name(cert, issuer ? X509_get_subject_name(issuer) : name) == 1 &&
              X509_set_pubkey(cert, key) == 1;
    if (!ok) {
        X509_free(cert);
        return NULL;
    }
    return cert;
}

static bool is_address(const char *name)
{
    unsigned char address[16];
    return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

static X509 *make_ca(EVP_PKEY *key)
{
    X509 *ca = draft(key, "cosched-local CA", NULL);
    if (ca && add_extension(ca, ca, NID_basic_constraints, "critical,CA:TRUE") &&
        add_extension(ca, ca, NID_key_usage, "critical,keyCertSign,cRLSign") &&
        add_extension(ca, ca, NID_subject_key_identifier, "hash") &&
        X509_sign(ca, key, EVP_sha256()) > 0)
        return ca;
    X509_free(ca);
    return NULL;
}

static X509 *make_leaf(EVP_PKEY *key, X509 *ca, EVP_PKEY *ca_key, const char *const *names)
{
    X509 *leaf = draft(key, names[0], ca);
    struct strbuf alt = {0};
    for (size_t i = 0; names[i]; i++)
        strbuf_addf(&alt, "%s%s:%s", i ? "," : "", is_address(names[i]) ? "IP" : "DNS", names[i]);
    bool ok = leaf && add_extension(leaf, ca, NID_basic_constraints, "critical,CA:FALSE") &&
              add_extension(leaf, ca, NID_key_usage, "critical,digitalSignature") &&
              add_extension(leaf, ca, NID_ext_key_usage, "serverAuth") &&
              add_extension(leaf, ca, NID_subject_alt_name, strbuf_str(&alt)) &&
              add_extension(leaf, ca, NID_authority_key_identifier, "keyid") &&
              X509_sign(leaf, ca_key, EVP_sha256()) > 0;
    strbuf_deinit(&alt);
    if (ok)
        return leaf;
    X509_free(leaf);
    return NULL;
}

int pki_make(struct pki *out, const char *const *names, struct error *err)
{
    *out = (struct pki){0};
    EVP_PKEY *ca_key = EVP_EC_gen("P-256"), *key = EVP_EC_gen("P-256");
    X509 *ca = ca_key && key ? make_ca(ca_key) : NULL;
    X509 *leaf = ca ? make_leaf(key, ca, ca_key, names) : NULL;
    if (leaf) {
        out->ca_pem = cert_text(ca);
        out->ca_key_pem = key_text(ca_key);
        out->cert_pem = cert_text(leaf);
        out->key_pem = key_text(key);
    }
    X509_free(leaf);
    X509_free(ca);
    EVP_PKEY_free(key);
    EVP_PKEY_free(ca_key);
    if (out->ca_pem && out->ca_key_pem && out->cert_pem && out->key_pem)
        return 0;
    pki_deinit(out);
    return fail(err, "certificates");
}

static void wipe(char *secret)
{
    if (secret)
        OPENSSL_cleanse(secret, strlen(secret));
    free(secret);
}

void pki_deinit(struct pki *p)
{
    free(p->ca_pem);
    free(p->cert_pem);
    wipe(p->ca_key_pem);
    wipe(p->key_pem);
    *p = (struct pki){0};
}

int pki_token(char out[PKI_TOKEN_SIZE], struct error *err)
{
    unsigned char bytes[(PKI_TOKEN_SIZE - 1) / 2];
    if (RAND_bytes(bytes, sizeof bytes) != 1)
        return fail(err, "random bytes");
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < sizeof bytes; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[PKI_TOKEN_SIZE - 1] = '\0';
    return 0;
}
