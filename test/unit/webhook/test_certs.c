// SPDX-License-Identifier: Apache-2.0
#include "webhook/certs.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "test/unit/lib/base/expect.h"

enum { NOW = 1800000000, DAY = 86400, YEAR = 365 * DAY };

static const char *const names[] = {"hook.cosched-system.svc", "127.0.0.1", "::1"};
enum { NAMES = 3 };

static void make_ca(struct certs_pair *ca, int64_t now_s, int64_t valid_s)
{
    struct error err = ERROR_INIT;
    if (certs_make_ca("test-ca", now_s, valid_s, ca, &err) < 0)
        fail_msg("%s", err.text);
}

static void make_leaf(const struct certs_pair *ca, struct certs_pair *leaf, int64_t now_s,
                      int64_t valid_s)
{
    struct error err = ERROR_INIT;
    if (certs_make_leaf(ca, names, NAMES, now_s, valid_s, leaf, &err) < 0)
        fail_msg("%s", err.text);
}

static char *text_of(BIO *bio)
{
    char *bytes = NULL;
    long n = BIO_get_mem_data(bio, &bytes);
    struct strbuf text = {0};
    strbuf_add(&text, bytes, (size_t)n);
    BIO_free(bio);
    return strbuf_take(&text);
}

/* Signed by itself, by other hands than ours. san and ca: the extensions' texts, or NULL. */
static void make_unknown_pod(struct certs_pair *out, long version, const char *name,
                             const char *san, const char *ca)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = X509_new();
    const struct {
        int nid;
        const char *value;
    } extensions[] = {{NID_subject_alt_name, san}, {NID_basic_constraints, ca}};
    X509_set_version(x, version);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 7);
    ASN1_TIME_set(X509_getm_notBefore(x), NOW);
    ASN1_TIME_set(X509_getm_notAfter(x), NOW + YEAR);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                               (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(x));
    X509_set_pubkey(x, key);
    for (size_t i = 0; i < 2; i++) {
        X509_EXTENSION *e = extensions[i].value ? X509V3_EXT_conf_nid(NULL, NULL, extensions[i].nid,
                                                                      extensions[i].value)
                                                : NULL;
        if (e)
            X509_add_ext(x, e, -1);
        X509_EXTENSION_free(e);
    }
    BIO *cert = BIO_new(BIO_s_mem()), *secret = BIO_new(BIO_s_mem());
    assert_true(X509_sign(x, key, EVP_sha256()) > 0 && PEM_write_bio_X509(cert, x) == 1 &&
                PEM_write_bio_PrivateKey(secret, key, NULL, NULL, 0, NULL, NULL) == 1);
    *out = (struct certs_pair){.cert_pem = text_of(cert), .key_pem = text_of(secret)};
    X509_free(x);
    EVP_PKEY_free(key);
}

static const char *check(const char *bundle, const struct certs_pair *leaf, const char *name,
                         int64_t now_s)
{
    static struct error err;
    error_clear(&err);
    return certs_check(bundle, leaf, &name, name ? 1 : 0, now_s, &err) == 0 ? "" : err.text;
}

static void a_leaf_is_accepted_under_its_names_and_in_its_time(void **state)
{
    (void)state;
    struct certs_pair ca = {0};
    struct certs_pair other = {0};
    struct certs_pair leaf = {0};
    make_ca(&ca, NOW, 10 * (int64_t)YEAR);
    make_ca(&other, NOW, 10 * (int64_t)YEAR);
    make_leaf(&ca, &leaf, NOW, 90 * DAY);
    struct certs_pair wrong_key = {.cert_pem = leaf.cert_pem, .key_pem = other.key_pem};
    struct certs_pair no_key = {.cert_pem = leaf.cert_pem, .key_pem = ca.cert_pem};
    const struct {
        const char *row, *bundle;
        const struct certs_pair *leaf;
        const char *name;
        int64_t now_s;
        const char *expected;
    } rows[] = {
        {"by its DNS name", ca.cert_pem, &leaf, "hook.cosched-system.svc", NOW, ""},
        {"by its IPv4 address", ca.cert_pem, &leaf, "127.0.0.1", NOW, ""},
        {"by its IPv6 address", ca.cert_pem, &leaf, "::1", NOW, ""},
        {"not by another name", ca.cert_pem, &leaf, "hook.other.svc", NOW,
         "the certificate is not for the name hook.other.svc"},
        {"not by another address", ca.cert_pem, &leaf, "127.0.0.2", NOW,
         "the certificate is not for the name 127.0.0.2"},
        {"a clock that is 5 minutes behind", ca.cert_pem, &leaf, NULL, NOW - 300, ""},
        {"not earlier", ca.cert_pem, &leaf, NULL, NOW - 301,
         "the certificate is not accepted: certificate is not yet valid"},
        {"until its last second", ca.cert_pem, &leaf, NULL, NOW + 90 * DAY - 1, ""},
        {"not later", ca.cert_pem, &leaf, NULL, NOW + 90 * DAY + 1,
         "the certificate is not accepted: certificate has expired"},
        {"not by another CA", other.cert_pem, &leaf, NULL, NOW,
         "the certificate is not accepted: unable to get local issuer certificate"},
        {"not with another key", ca.cert_pem, &wrong_key, NULL, NOW,
         "key: does not belong to the certificate"},
        {"not without a key", ca.cert_pem, &no_key, NULL, NOW,
         "key: holds no PEM private key that can be read"},
        {"not with rubbish for a CA", "rubbish", &leaf, NULL, NOW,
         "CA bundle: holds no PEM certificate that can be read"},
        {"without a bundle the chain does not matter", NULL, &leaf, NULL, NOW, ""},
        {"a CA is no server", ca.cert_pem, &ca, NULL, NOW,
         "the certificate is not accepted: unsuitable certificate purpose"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_str(rows[i].row, rows[i].expected,
                   check(rows[i].bundle, rows[i].leaf, rows[i].name, rows[i].now_s));
    certs_pair_deinit(&ca);
    certs_pair_deinit(&other);
    certs_pair_deinit(&leaf);
    expect_done();
}

static void lives_are_what_was_asked_for(void **state)
{
    (void)state;
    struct certs_pair ca = {0};
    struct certs_pair leaf = {0};
    struct certs_life life;
    struct error err = ERROR_INIT;
    make_ca(&ca, NOW, 10 * DAY);
    assert_int_equal(0, certs_life(ca.cert_pem, &life, &err));
    expect_int("begins 5 minutes early", NOW - 300, life.not_before_s);
    expect_int("ends in time", NOW + 10 * DAY, life.not_after_s);
    expect_int("two thirds", NOW - 300 + (10 * DAY + 300) / 3 * 2, life.renew_s);
    make_leaf(&ca, &leaf, NOW, 90 * DAY);
    assert_int_equal(0, certs_life(leaf.cert_pem, &life, &err));
    expect_int("a leaf does not outlive its CA", NOW + 10 * DAY, life.not_after_s);
    certs_pair_deinit(&leaf);
    make_leaf(&ca, &leaf, NOW, 30);
    assert_int_equal(0, certs_life(leaf.cert_pem, &life, &err));
    expect_int("a short life begins a tenth of it early", NOW - 3, life.not_before_s);
    expect_int("and is renewed before its end", NOW + 19, life.renew_s);
    certs_pair_deinit(&leaf);
    certs_pair_deinit(&ca);
    expect_done();
}

static void a_ca_is_judged(void **state)
{
    (void)state;
    struct certs_pair ca = {0};
    struct certs_pair leaf = {0};
    struct error err = ERROR_INIT;
    make_ca(&ca, NOW, DAY);
    make_leaf(&ca, &leaf, NOW, DAY);
    expect_int("good", 0, certs_check_ca(&ca, NOW, &err));
    expect_int("ended", -1, certs_check_ca(&ca, NOW + DAY, &err));
    expect_str("ended", "CA: is not valid at this time", err.text);
    expect_int("a leaf is none", -1, certs_check_ca(&leaf, NOW, &err));
    expect_str("a leaf is none", "CA: this certificate may not sign others", err.text);
    certs_wipe(ca.key_pem);
    ca.key_pem = strdup(leaf.key_pem);
    expect_int("another's key", -1, certs_check_ca(&ca, NOW, &err));
    expect_str("another's key", "CA key: does not belong to the certificate", err.text);
    struct certs_pair out = {0};
    expect_int("which makes no leaf that anybody accepts", 0,
               certs_make_leaf(&ca, names, 1, NOW, DAY, &out, &err));
    expect_true("nobody", *check(ca.cert_pem, &out, NULL, NOW) != '\0');
    certs_pair_deinit(&out);
    certs_pair_deinit(&ca);
    certs_pair_deinit(&leaf);
    expect_done();
}

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *s = text; (s = strstr(s, what)) != NULL; s++)
        n++;
    return n;
}

static void a_bundle_carries_both_cas_through_a_rotation(void **state)
{
    (void)state;
    struct certs_pair first = {0};
    struct certs_pair second = {0};
    struct certs_pair old_leaf = {0};
    struct certs_pair new_leaf = {0};
    struct error err = ERROR_INIT;
    AUTO_STRBUF bundle;
    AUTO_STRBUF newest;
    AUTO_STRBUF later;
    AUTO_STRBUF same;
    strbuf_init(&bundle);
    strbuf_init(&newest);
    strbuf_init(&later);
    strbuf_init(&same);
    make_ca(&first, NOW, 30 * DAY);
    make_leaf(&first, &old_leaf, NOW, 30 * DAY);
    make_ca(&second, NOW + 20 * DAY, 30 * DAY);
    make_leaf(&second, &new_leaf, NOW + 20 * DAY, 10 * DAY);
    assert_int_equal(0,
                     certs_bundle(second.cert_pem, first.cert_pem, NOW + 20 * DAY, &bundle, &err));
    expect_int("two CAs", 2, (int64_t)count(bundle.ptr, "BEGIN CERTIFICATE"));
    expect_str("a leaf of the old one", "", check(bundle.ptr, &old_leaf, NULL, NOW + 21 * DAY));
    expect_str("a leaf of the new one", "", check(bundle.ptr, &new_leaf, NULL, NOW + 21 * DAY));
    assert_int_equal(0, certs_first(bundle.ptr, &newest, &err));
    expect_str("the newest is first", second.cert_pem, newest.ptr);
    assert_int_equal(0, certs_bundle(second.cert_pem, bundle.ptr, NOW + 20 * DAY, &same, &err));
    expect_str("nobody is in it twice", bundle.ptr, same.ptr);
    assert_int_equal(0, certs_bundle(second.cert_pem, bundle.ptr, NOW + 30 * DAY, &later, &err));
    expect_str("who has ended is left out", second.cert_pem, later.ptr);
    for (int i = 0; i < 2 * CERTS_BUNDLE_MAX; i++) {
        struct certs_pair ca = {0};
        make_ca(&ca, NOW, 30 * DAY);
        strbuf_reset(&later);
        assert_int_equal(0, certs_bundle(ca.cert_pem, bundle.ptr, NOW, &later, &err));
        strbuf_reset(&bundle);
        strbuf_adds(&bundle, later.ptr);
        certs_pair_deinit(&ca);
    }
    expect_int("it does not grow for ever", CERTS_BUNDLE_MAX,
               (int64_t)count(bundle.ptr, "BEGIN CERTIFICATE"));
    certs_pair_deinit(&first);
    certs_pair_deinit(&second);
    certs_pair_deinit(&old_leaf);
    certs_pair_deinit(&new_leaf);
    expect_done();
}

/* What Go's verification takes and what it does not, where OpenSSL's defaults differ. */
static void it_is_judged_as_the_api_server_does(void **state)
{
    (void)state;
    static const struct {
        const char *row, *cn, *san, *name, *expected;
    } rows[] = {
        {"an alternative name counts", "x", "DNS:hook.svc", "hook.svc", ""},
        {"a common name does not", "hook.svc", NULL, "hook.svc",
         "the certificate is not for the name hook.svc"},
        {"a star is a label", "x", "DNS:*.ns.svc", "hook.ns.svc", ""},
        {"one label", "x", "DNS:*.ns.svc", "a.hook.ns.svc",
         "the certificate is not for the name a.hook.ns.svc"},
        {"and not part of one", "x", "DNS:ho*.ns.svc", "hook.ns.svc",
         "the certificate is not for the name hook.ns.svc"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct certs_pair pair;
        make_unknown_pod(&pair, X509_VERSION_3, rows[i].cn, rows[i].san, NULL);
        expect_str(rows[i].row, rows[i].expected, check(NULL, &pair, rows[i].name, NOW));
        certs_pair_deinit(&pair);
    }
    struct certs_pair ca = {0}, leaf = {0};
    make_ca(&ca, NOW, YEAR);
    make_leaf(&ca, &leaf, NOW, 90 * DAY);
    expect_str("what is in the bundle is trusted, without its issuer", "",
               check(leaf.cert_pem, &leaf, names[0], NOW));
    expect_str("but only in its time", "the certificate is not accepted: certificate has expired",
               check(leaf.cert_pem, &leaf, names[0], NOW + 91 * DAY));
    certs_pair_deinit(&ca);
    certs_pair_deinit(&leaf);
    expect_done();
}

static void a_ca_says_that_it_is_one(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        long version;
        const char *ca, *expected;
    } rows[] = {
        {"it does", X509_VERSION_3, "critical,CA:TRUE", ""},
        {"it does not", X509_VERSION_3, "critical,CA:FALSE",
         "CA: this certificate may not sign others"},
        {"of a time that could not say it", X509_VERSION_1, NULL,
         "CA: this certificate may not sign others"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct certs_pair pair;
        struct error err = ERROR_INIT;
        make_unknown_pod(&pair, rows[i].version, "ca", NULL, rows[i].ca);
        expect_int(rows[i].row, rows[i].expected[0] ? -1 : 0, certs_check_ca(&pair, NOW, &err));
        expect_str(rows[i].row, rows[i].expected, err.text);
        certs_pair_deinit(&pair);
    }
    expect_done();
}

/* The API server refuses a caBundle of which a part cannot be read, so does every function here. */
static void a_part_that_cannot_be_read_spoils_the_whole(void **state)
{
    (void)state;
    static const char broken[] =
        "-----BEGIN CERTIFICATE-----\nTm8gY2VydGlmaWNhdGU=\n-----END CERTIFICATE-----\n";
    struct certs_pair ca = {0}, leaf = {0};
    struct error err = ERROR_INIT;
    AUTO_STRBUF bundle = {0};
    AUTO_STRBUF out = {0};
    make_ca(&ca, NOW, YEAR);
    make_leaf(&ca, &leaf, NOW, 90 * DAY);
    strbuf_addf(&bundle, "%s# a comment\n%s", ca.cert_pem, broken);
    struct certs_pair broken_ca = {.cert_pem = bundle.ptr, .key_pem = ca.key_pem};
    expect_true("a bundle to trust",
                str_starts(check(bundle.ptr, &leaf, NULL, NOW), "CA bundle: certificate 2: "));
    expect_int("a bundle to keep", -1, certs_bundle(ca.cert_pem, bundle.ptr, NOW, &out, &err));
    expect_int("nothing is appended then", 0, (int64_t)out.len);
    expect_int("a CA", -1, certs_check_ca(&broken_ca, NOW, &err));
    strbuf_reset(&bundle);
    strbuf_addf(&bundle, "before\n%s%s\nafter", leaf.key_pem, ca.cert_pem);
    expect_str("other text and other PEM are no certificates", "",
               check(bundle.ptr, &leaf, NULL, NOW));
    certs_pair_deinit(&ca);
    certs_pair_deinit(&leaf);
    expect_done();
}

static size_t certificates(const struct strbuf *text)
{
    size_t n = 0;
    for (const char *s = strbuf_str(text); (s = strstr(s, "-----BEGIN CERT")) != NULL; s++)
        n++;
    return n;
}

static void a_bundle_repeats_nothing(void **state)
{
    (void)state;
    struct certs_pair newest = {0}, older = {0};
    struct error err = ERROR_INIT;
    AUTO_STRBUF bundle = {0};
    AUTO_STRBUF out = {0};
    make_ca(&newest, NOW, YEAR);
    make_ca(&older, NOW, YEAR);
    strbuf_addf(&bundle, "%s%s%s%s", older.cert_pem, newest.cert_pem, older.cert_pem,
                older.cert_pem);
    expect_int("it is made", 0, certs_bundle(newest.cert_pem, bundle.ptr, NOW, &out, &err));
    expect_int("each once", 2, (int64_t)certificates(&out));
    expect_true("the newest first", str_starts(out.ptr, newest.cert_pem));
    strbuf_reset(&out);
    expect_int("of the first text only the first counts", 0,
               certs_bundle(bundle.ptr, NULL, NOW, &out, &err));
    expect_str("so it is that", older.cert_pem, strbuf_str(&out));
    certs_pair_deinit(&newest);
    certs_pair_deinit(&older);
    expect_done();
}

static void bad_input_is_an_error(void **state)
{
    (void)state;
    struct certs_pair ca = {0};
    struct certs_pair out = {0};
    struct certs_pair rubbish = {.cert_pem = NULL, .key_pem = NULL};
    struct error err = ERROR_INIT;
    struct certs_life life;
    AUTO_STRBUF text;
    strbuf_init(&text);
    make_ca(&ca, NOW, DAY);
    expect_int("no names", -1, certs_make_leaf(&ca, names, 0, NOW, DAY, &out, &err));
    expect_int("too many names", -1,
               certs_make_leaf(&ca, names, CERTS_NAMES_MAX + 1, NOW, DAY, &out, &err));
    expect_int("no CA", -1, certs_make_leaf(&rubbish, names, 1, NOW, DAY, &out, &err));
    expect_int("a life of nothing", -1, certs_life("", &life, &err));
    expect_int("a life of a key", -1, certs_life(ca.key_pem, &life, &err));
    expect_true("no secret in the message", strstr(err.text, "BEGIN") == NULL);
    expect_int("the first of nothing", -1, certs_first("", &text, &err));
    expect_int("the first of NULL", -1, certs_first(NULL, &text, &err));
    char *long_text = malloc(CERTS_PEM_MAX + 2);
    memset(long_text, 'x', CERTS_PEM_MAX + 1);
    long_text[CERTS_PEM_MAX + 1] = '\0';
    expect_int("a text that is too long", -1, certs_first(long_text, &text, &err));
    expect_str("a text that is too long", "CA bundle: is missing or too long", err.text);
    free(long_text);
    certs_pair_deinit(&ca);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leaf_is_accepted_under_its_names_and_in_its_time),
        cmocka_unit_test(lives_are_what_was_asked_for),
        cmocka_unit_test(a_ca_is_judged),
        cmocka_unit_test(a_bundle_carries_both_cas_through_a_rotation),
        cmocka_unit_test(it_is_judged_as_the_api_server_does),
        cmocka_unit_test(a_ca_says_that_it_is_one),
        cmocka_unit_test(a_part_that_cannot_be_read_spoils_the_whole),
        cmocka_unit_test(a_bundle_repeats_nothing),
        cmocka_unit_test(bad_input_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
