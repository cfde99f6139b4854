// SPDX-License-Identifier: Apache-2.0
/*
 * X.509 with OpenSSL, checked as the API server checks it.
 *
 * The API server is written in Go, which differs from OpenSSL: only subjectAltNames count, never
 * the common name; a wildcard stands for one whole label; every certificate in the bundle is a
 * trust anchor, even an intermediate or the leaf; one unreadable certificate invalidates the
 * caBundle. A certificate that passed here and failed there would block all pod admission, so the
 * flags below follow Go.
 *
 * Scopes free OpenSSL objects (AUTO_OF). The error queue is per thread; fail() takes the reason and
 * clears it. Keys are printed into memory that OpenSSL wipes, copied once, and wiped by certs_wipe.
 */
#include "webhook/certs.h"

#include <stdlib.h>
#include <time.h>

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include "lib/base/num.h"

/* Clocks differ, so a certificate is valid from shortly before its creation. The allowance shrinks
 * for short lifetimes (tests) so that two thirds of the lifetime stays meaningful. */
enum { SKEW_S = 300, SKEW_PART = 10 };

#define FREEP(type, fn)                 \
    static inline void fn##_p(type **p) \
    {                                   \
        fn(*p);                         \
    }
FREEP(X509, X509_free)
FREEP(EVP_PKEY, EVP_PKEY_free)
FREEP(BIO, BIO_free_all)
FREEP(BIGNUM, BN_free)
FREEP(GENERAL_NAMES, GENERAL_NAMES_free)
FREEP(X509_STORE, X509_STORE_free)
FREEP(X509_STORE_CTX, X509_STORE_CTX_free)
#define AUTO_OF(fn) __attribute__((cleanup(fn##_p)))

static void free_stack(STACK_OF(X509) * *stack)
{
    sk_X509_pop_free(*stack, X509_free);
}

/* Sets "<what>: <OpenSSL's reason>" and clears the thread's error queue. */
static int fail(struct error *err, const char *what)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    (void)error_set(err, ERROR_INVALID, "%s: %s", what, reason ? reason : "no reason given");
    ERR_clear_error();
    return -1;
}

void certs_wipe(char *secret)
{
    if (secret)
        OPENSSL_cleanse(secret, strlen(secret));
    free(secret);
}

void certs_wipe_buf(struct strbuf *b)
{
    if (b->ptr)
        OPENSSL_cleanse(b->ptr, b->cap);
    strbuf_deinit(b);
}

void certs_pair_deinit(struct certs_pair *p)
{
    free(p->cert_pem);
    certs_wipe(p->key_pem);
    *p = (struct certs_pair){.cert_pem = NULL};
}

/* ---- PEM ---- */

/* Keeps OpenSSL from prompting on the terminal for an encrypted key. */
static int no_passphrase(char *buf, int size, int writing, void *arg)
{
    (void)buf, (void)size, (void)writing, (void)arg;
    return -1;
}

static BIO *reader(const char *pem)
{
    size_t n = strlen(pem);
    return n > CERTS_PEM_MAX ? NULL : BIO_new_mem_buf(pem, (int)n);
}

/* Reads all certificates, at least one. The caller frees them with free_stack. */
static int read_certs(const char *pem, const char *what, STACK_OF(X509) * *out, struct error *err)
{
    AUTO_OF(BIO_free_all) BIO *bio = pem ? reader(pem) : NULL;
    __attribute__((cleanup(free_stack))) STACK_OF(X509) *certs = sk_X509_new_null();
    if (!bio || !certs)
        return error_set(err, ERROR_INVALID, "%s: is missing or too long", what);
    ERR_clear_error();
    for (X509 *x; (x = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL)) != NULL;)
        if (sk_X509_push(certs, x) <= 0) {
            X509_free(x);
            return fail(err, what);
        }
    /* OpenSSL reports the end of the text as an error too; any other means unreadable data. */
    unsigned long why = ERR_peek_last_error();
    bool ended = ERR_GET_LIB(why) == ERR_LIB_PEM && ERR_GET_REASON(why) == PEM_R_NO_START_LINE;
    if (!ended && sk_X509_num(certs) > 0) {
        fail(err, "cannot be read");
        return error_wrap(err, "%s: certificate %d", what, sk_X509_num(certs) + 1);
    }
    ERR_clear_error();
    if (sk_X509_num(certs) == 0)
        return error_set(err, ERROR_INVALID, "%s: holds no PEM certificate that can be read", what);
    *out = certs;
    certs = NULL;
    return 0;
}

static EVP_PKEY *read_key(const char *pem)
{
    AUTO_OF(BIO_free_all) BIO *bio = pem ? reader(pem) : NULL;
    return bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;
}

static char *take_text(BIO *bio)
{
    char *bytes = NULL;
    long n = BIO_get_mem_data(bio, &bytes);
    struct strbuf text = {0};
    if (n > 0)
        strbuf_add(&text, bytes, (size_t)n);
    return strbuf_take(&text);
}

static int print_cert(X509 *x, char **out, struct error *err)
{
    AUTO_OF(BIO_free_all) BIO *bio = BIO_new(BIO_s_mem());
    if (!bio || !PEM_write_bio_X509(bio, x))
        return fail(err, "write certificate");
    *out = take_text(bio);
    return 0;
}

static int print_key(EVP_PKEY *key, char **out, struct error *err)
{
    /* BIO_s_secmem wipes its memory. */
    AUTO_OF(BIO_free_all) BIO *bio = BIO_new(BIO_s_secmem());
    if (!bio || !PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL))
        return fail(err, "write key");
    *out = take_text(bio);
    return 0;
}

/* ---- creating ---- */

static int set_serial(X509 *x, struct error *err)
{
    AUTO_OF(BN_free) BIGNUM *n = BN_new();
    if (!n || !BN_rand(n, 127, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) ||
        !BN_to_ASN1_INTEGER(n, X509_get_serialNumber(x)))
        return fail(err, "serial number");
    return 0;
}

static int set_life(X509 *x, int64_t now_s, int64_t valid_s, int64_t at_most_s, struct error *err)
{
    int64_t begin = now_s - num_min(SKEW_S, valid_s / SKEW_PART);
    int64_t end = num_min(num_add_sat(now_s, valid_s), at_most_s);
    if (!ASN1_TIME_set(X509_getm_notBefore(x), (time_t)begin) ||
        !ASN1_TIME_set(X509_getm_notAfter(x), (time_t)end))
        return fail(err, "validity");
    return 0;
}

static int add_extension(X509 *x, X509 *issuer, int nid, const char *value, struct error *err)
{
    X509V3_CTX ctx;
    X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
    X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    int ok = ext ? X509_add_ext(x, ext, -1) : 0;
    X509_EXTENSION_free(ext);
    return ok ? 0 : fail(err, OBJ_nid2sn(nid));
}

static int add_name(GENERAL_NAMES *all, const char *name, struct error *err)
{
    GENERAL_NAME *one = GENERAL_NAME_new();
    ASN1_OCTET_STRING *ip = a2i_IPADDRESS(name);
    ERR_clear_error();
    ASN1_IA5STRING *dns = ip ? NULL : ASN1_IA5STRING_new();
    if (one && ip) {
        GENERAL_NAME_set0_value(one, GEN_IPADD, ip);
    } else if (one && dns && ASN1_STRING_set(dns, name, -1)) {
        GENERAL_NAME_set0_value(one, GEN_DNS, dns);
    } else {
        ASN1_IA5STRING_free(dns);
        ASN1_OCTET_STRING_free(ip);
        GENERAL_NAME_free(one);
        return fail(err, name);
    }
    if (sk_GENERAL_NAME_push(all, one) <= 0) {
        GENERAL_NAME_free(one);
        return fail(err, name);
    }
    return 0;
}

static int add_names(X509 *x, const char *const *names, size_t n, struct error *err)
{
    AUTO_OF(GENERAL_NAMES_free) GENERAL_NAMES *all = GENERAL_NAMES_new();
    for (size_t i = 0; all && i < n; i++)
        if (add_name(all, names[i], err) < 0)
            return -1;
    if (!all || X509_add1_ext_i2d(x, NID_subject_alt_name, all, 0, X509V3_ADD_DEFAULT) != 1)
        return fail(err, "subjectAltName");
    return 0;
}

/* Sets version, key, subject and serial number. A common name holds at most 64 bytes. */
static int begin_cert(X509 *x, EVP_PKEY *key, const char *name, struct error *err)
{
    char cn[65];
    (void)str_format(cn, sizeof cn, "%s", name);
    if (!X509_set_version(x, X509_VERSION_3) || !X509_set_pubkey(x, key) ||
        !X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_UTF8,
                                    (const unsigned char *)cn, -1, -1, 0))
        return fail(err, "certificate");
    return set_serial(x, err);
}

static int finish_cert(X509 *x, EVP_PKEY *key, EVP_PKEY *signer, struct certs_pair *out,
                       struct error *err)
{
    struct certs_pair made = {.cert_pem = NULL};
    if (!X509_sign(x, signer, EVP_sha256()))
        return fail(err, "sign");
    if (print_cert(x, &made.cert_pem, err) < 0 || print_key(key, &made.key_pem, err) < 0) {
        certs_pair_deinit(&made);
        return -1;
    }
    *out = made;
    return 0;
}

int certs_make_ca(const char *name, int64_t now_s, int64_t valid_s, struct certs_pair *out,
                  struct error *err)
{
    unsigned char random[4];
    char full[64];
    AUTO_OF(X509_free) X509 *x = X509_new();
    AUTO_OF(EVP_PKEY_free) EVP_PKEY *key = EVP_EC_gen("P-256");
    if (!x || !key || RAND_bytes(random, sizeof random) != 1)
        return fail(err, "new CA");
    (void)str_format(full, sizeof full, "%.48s-%02x%02x%02x%02x", name, random[0], random[1],
                     random[2], random[3]);
    if (begin_cert(x, key, full, err) < 0 || set_life(x, now_s, valid_s, INT64_MAX, err) < 0 ||
        (X509_set_issuer_name(x, X509_get_subject_name(x)) ? 0 : fail(err, "issuer")) < 0 ||
        add_extension(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0", err) < 0 ||
        add_extension(x, x, NID_key_usage, "critical,keyCertSign,cRLSign", err) < 0 ||
        add_extension(x, x, NID_subject_key_identifier, "hash", err) < 0 ||
        finish_cert(x, key, key, out, err) < 0)
        return error_wrap(err, "new CA");
    return 0;
}

static int time_of(const ASN1_TIME *t, int64_t *out, struct error *err)
{
    struct tm tm;
    if (!ASN1_TIME_to_tm(t, &tm))
        return fail(err, "validity");
    *out = (int64_t)timegm(&tm);
    return 0;
}

int certs_make_leaf(const struct certs_pair *ca, const char *const *names, size_t names_len,
                    int64_t now_s, int64_t valid_s, struct certs_pair *out, struct error *err)
{
    if (names_len == 0 || names_len > CERTS_NAMES_MAX)
        return error_set(err, ERROR_INVALID, "a certificate needs 1 to %d names, got %zu",
                         CERTS_NAMES_MAX, names_len);
    __attribute__((cleanup(free_stack))) STACK_OF(X509) *issuers = NULL;
    AUTO_OF(EVP_PKEY_free) EVP_PKEY *signer = read_key(ca->key_pem);
    AUTO_OF(X509_free) X509 *x = X509_new();
    AUTO_OF(EVP_PKEY_free) EVP_PKEY *key = EVP_EC_gen("P-256");
    int64_t ca_end = 0;
    if (!signer)
        return fail(err, "CA key");
    if (!x || !key)
        return fail(err, "new certificate");
    if (read_certs(ca->cert_pem, "CA", &issuers, err) < 0)
        return -1;
    X509 *issuer = sk_X509_value(issuers, 0);
    if (time_of(X509_get0_notAfter(issuer), &ca_end, err) < 0 ||
        begin_cert(x, key, names[0], err) < 0 || set_life(x, now_s, valid_s, ca_end, err) < 0 ||
        (X509_set_issuer_name(x, X509_get_subject_name(issuer)) ? 0 : fail(err, "issuer")) < 0 ||
        add_extension(x, issuer, NID_basic_constraints, "critical,CA:FALSE", err) < 0 ||
        add_extension(x, issuer, NID_key_usage, "critical,digitalSignature", err) < 0 ||
        add_extension(x, issuer, NID_ext_key_usage, "serverAuth", err) < 0 ||
        add_extension(x, issuer, NID_subject_key_identifier, "hash", err) < 0 ||
        add_extension(x, issuer, NID_authority_key_identifier, "keyid:always", err) < 0 ||
        add_names(x, names, names_len, err) < 0 || finish_cert(x, key, signer, out, err) < 0)
        return error_wrap(err, "new certificate");
    return 0;
}

/* ---- checking ---- */

static int life_of(X509 *x, struct certs_life *out, struct error *err)
{
    if (time_of(X509_get0_notBefore(x), &out->not_before_s, err) < 0 ||
        time_of(X509_get0_notAfter(x), &out->not_after_s, err) < 0)
        return -1;
    int64_t span = num_sub_sat(out->not_after_s, out->not_before_s);
    out->renew_s = out->not_before_s + span / 3 * 2;
    return 0;
}

int certs_life(const char *cert_pem, struct certs_life *out, struct error *err)
{
    __attribute__((cleanup(free_stack))) STACK_OF(X509) *certs = NULL;
    if (read_certs(cert_pem, "certificate", &certs, err) < 0)
        return -1;
    return life_of(sk_X509_value(certs, 0), out, err);
}

static int check_key(X509 *x, const char *key_pem, const char *what, struct error *err)
{
    AUTO_OF(EVP_PKEY_free) EVP_PKEY *key = read_key(key_pem);
    if (!key) {
        ERR_clear_error();
        return error_set(err, ERROR_INVALID, "%s: holds no PEM private key that can be read", what);
    }
    if (X509_check_private_key(x, key) != 1) {
        ERR_clear_error();
        return error_set(err, ERROR_INVALID, "%s: does not belong to the certificate", what);
    }
    return 0;
}

static int check_chain(STACK_OF(X509) * trusted, STACK_OF(X509) * chain, int64_t now_s,
                       struct error *err)
{
    AUTO_OF(X509_STORE_free) X509_STORE *store = X509_STORE_new();
    AUTO_OF(X509_STORE_CTX_free) X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    X509 *leaf = sk_X509_value(chain, 0);
    if (!store || !ctx)
        return fail(err, "verify");
    for (int i = 0; i < sk_X509_num(trusted); i++)
        if (!X509_STORE_add_cert(store, sk_X509_value(trusted, i)))
            return fail(err, "CA bundle");
    if (!X509_STORE_CTX_init(ctx, store, leaf, chain) ||
        !X509_STORE_CTX_set_purpose(ctx, X509_PURPOSE_SSL_SERVER))
        return fail(err, "verify");
    X509_VERIFY_PARAM_set_flags(X509_STORE_CTX_get0_param(ctx), X509_V_FLAG_PARTIAL_CHAIN);
    X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(ctx), (time_t)now_s);
    if (X509_verify_cert(ctx) == 1)
        return 0;
    const char *why = X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx));
    ERR_clear_error();
    return error_set(err, ERROR_INVALID, "the certificate is not accepted: %s", why);
}

static bool covers(X509 *x, const char *name)
{
    const unsigned flags =
        X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS;
    return X509_check_ip_asc(x, name, 0) == 1 || X509_check_host(x, name, 0, flags, NULL) == 1;
}

int certs_check(const char *ca_bundle_pem, const struct certs_pair *leaf, const char *const *names,
                size_t names_len, int64_t now_s, struct error *err)
{
    __attribute__((cleanup(free_stack))) STACK_OF(X509) *trusted = NULL;
    __attribute__((cleanup(free_stack))) STACK_OF(X509) *chain = NULL;
    if ((ca_bundle_pem && read_certs(ca_bundle_pem, "CA bundle", &trusted, err) < 0) ||
        read_certs(leaf->cert_pem, "certificate", &chain, err) < 0 ||
        check_key(sk_X509_value(chain, 0), leaf->key_pem, "key", err) < 0 ||
        (trusted && check_chain(trusted, chain, now_s, err) < 0))
        return -1;
    for (size_t i = 0; i < names_len; i++)
        if (!covers(sk_X509_value(chain, 0), names[i])) {
            ERR_clear_error();
            return error_set(err, ERROR_INVALID, "the certificate is not for the name %s",
                             names[i]);
        }
    return 0;
}

int certs_check_ca(const struct certs_pair *ca, int64_t now_s, struct error *err)
{
    __attribute__((cleanup(free_stack))) STACK_OF(X509) *certs = NULL;
    struct certs_life life;
    if (read_certs(ca->cert_pem, "CA", &certs, err) < 0)
        return -1;
    X509 *x = sk_X509_value(certs, 0);
    if (check_key(x, ca->key_pem, "CA key", err) < 0 || life_of(x, &life, err) < 0)
        return -1;
    if (X509_check_ca(x) != 1) /* more than 1: legacy forms that no client accepts */
        return error_set(err, ERROR_INVALID, "CA: this certificate may not sign others");
    if (now_s < life.not_before_s || now_s >= life.not_after_s)
        return error_set(err, ERROR_INVALID, "CA: is not valid at this time");
    return 0;
}

/* ---- bundles ---- */

static int append_cert(X509 *x, struct strbuf *out, struct error *err)
{
    char *text = NULL;
    if (print_cert(x, &text, err) < 0)
        return -1;
    strbuf_adds(out, text);
    free(text);
    return 0;
}

int certs_first(const char *bundle_pem, struct strbuf *out, struct error *err)
{
    __attribute__((cleanup(free_stack))) STACK_OF(X509) *certs = NULL;
    if (read_certs(bundle_pem, "CA bundle", &certs, err) < 0)
        return -1;
    return append_cert(sk_X509_value(certs, 0), out, err);
}

static bool is_among(STACK_OF(X509) * certs, X509 *x)
{
    for (int i = 0; i < sk_X509_num(certs); i++)
        if (X509_cmp(sk_X509_value(certs, i), x) == 0)
            return true;
    return false;
}

int certs_bundle(const char *newest_pem, const char *bundle_pem, int64_t now_s, struct strbuf *out,
                 struct error *err)
{
    __attribute__((cleanup(free_stack))) STACK_OF(X509) *kept = NULL; /* starts with the newest */
    __attribute__((cleanup(free_stack))) STACK_OF(X509) *others = NULL;
    if (read_certs(newest_pem, "CA", &kept, err) < 0 ||
        (bundle_pem && read_certs(bundle_pem, "CA bundle", &others, err) < 0))
        return -1;
    while (sk_X509_num(kept) > 1)
        X509_free(sk_X509_pop(kept));
    for (int i = 0; others && i < sk_X509_num(others) && sk_X509_num(kept) < CERTS_BUNDLE_MAX;
         i++) {
        X509 *x = sk_X509_value(others, i);
        struct certs_life life;
        if (life_of(x, &life, err) < 0)
            return -1;
        if (now_s >= life.not_after_s || is_among(kept, x))
            continue;
        if (!X509_up_ref(x) || sk_X509_push(kept, x) <= 0)
            return fail(err, "CA bundle");
    }
    for (int i = 0; i < sk_X509_num(kept); i++)
        if (append_cert(sk_X509_value(kept, i), out, err) < 0)
            return -1;
    return 0;
}
