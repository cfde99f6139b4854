// SPDX-License-Identifier: Apache-2.0
/* The rotator's rule in artificial time, and its options; its thread is in test_cert_rotator.c. */
#include "webhook/cert_rotator.h"

#include "test/unit/lib/base/expect.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/metrics.h"

enum { DAY = 86400 };
static const char *const names[] = {"hook.ns.svc"};
static const struct cert_rotator_policy policy = {.names = names,
                                                  .names_len = 1,
                                                  .ca_life_s = 300 * (int64_t)DAY,
                                                  .leaf_life_s = 30 * (int64_t)DAY};

static void two_years_pass_and_both_sides_agree_every_fifth_day(void **state)
{
    (void)state;
    struct cert_store_content c = {0};
    struct error err = ERROR_INIT;
    const char *why = "";
    int made[4] = {0};
    AUTO_STRBUF trusted; /* by an API server that is five days behind */
    strbuf_init(&trusted);
    int64_t begin = 1800000000;
    bool settled = true;
    for (int64_t now = begin; now < begin + 730 * (int64_t)DAY; now += 5 * DAY) {
        AUTO_STRBUF before;
        strbuf_init(&before);
        strbuf_adds(&before, str_or_empty(c.ca_bundle));
        enum cert_rotator_need need = cert_rotator_judge(&policy, &c, now, settled, &why);
        made[need]++;
        if (cert_rotator_renew(&policy, need, &c, now, &err) < 0)
            fail_msg("day %lld: %s", (long long)((now - begin) / DAY), err.text);
        if (now > begin && certs_check(trusted.ptr, &c.leaf, names, 1, now, &err) < 0)
            fail_msg("day %lld: %s", (long long)((now - begin) / DAY), err.text);
        settled = str_eq(strbuf_str(&before), c.ca_bundle);
        strbuf_reset(&trusted);
        strbuf_adds(&trusted, c.ca_bundle);
    }
    expect_int("one beginning", 1, made[CERT_ROTATOR_ALL]);
    expect_int("a CA after each 200 days", 3, made[CERT_ROTATOR_CA]);
    expect_true("a leaf after each 20 days, and with each CA",
                made[CERT_ROTATOR_LEAF] >= 33 && made[CERT_ROTATOR_LEAF] <= 40);
    cert_store_content_deinit(&c);
    expect_done();
}

static void what_is_needed_and_why(void **state)
{
    (void)state;
    enum { ABSENT, GOOD, OTHER, RUBBISH, NEXT };
    static const int64_t begin = 1800000000;
    static const struct {
        const char *row;
        int ca, ca_key, cert, key;
        int64_t after_s;
        bool settled;
        enum cert_rotator_need need;
        const char *why;
    } rows[] = {
        {"nothing there", ABSENT, ABSENT, ABSENT, ABSENT, 0, true, CERT_ROTATOR_ALL,
         "there is no CA yet"},
        {"no CA key, but a certificate that is trusted", GOOD, ABSENT, GOOD, GOOD, 0, true,
         CERT_ROTATOR_CA, "there is no CA yet"},
        {"no CA key, and a certificate of another", GOOD, ABSENT, OTHER, OTHER, 0, true,
         CERT_ROTATOR_ALL, "there is no CA yet"},
        {"all is well", GOOD, GOOD, GOOD, GOOD, 0, true, CERT_ROTATOR_NOTHING, ""},
        {"a CA that cannot be read", RUBBISH, GOOD, GOOD, GOOD, 0, true, CERT_ROTATOR_ALL,
         "the CA cannot be used"},
        {"another CA's key, but a certificate that is trusted", GOOD, OTHER, GOOD, GOOD, 0, true,
         CERT_ROTATOR_CA, "the CA cannot be used"},
        {"no certificate", GOOD, GOOD, ABSENT, GOOD, 0, true, CERT_ROTATOR_LEAF,
         "the certificate cannot be used"},
        {"no key", GOOD, GOOD, GOOD, ABSENT, 0, true, CERT_ROTATOR_LEAF,
         "the certificate cannot be used"},
        {"another's certificate", GOOD, GOOD, OTHER, OTHER, 0, true, CERT_ROTATOR_LEAF,
         "the certificate cannot be used"},
        {"another's key", GOOD, GOOD, GOOD, OTHER, 0, true, CERT_ROTATOR_LEAF,
         "the certificate cannot be used"},
        {"before two thirds", GOOD, GOOD, GOOD, GOOD, 19 * DAY, true, CERT_ROTATOR_NOTHING, ""},
        {"after two thirds", GOOD, GOOD, GOOD, GOOD, 20 * DAY, true, CERT_ROTATOR_LEAF,
         "the certificate is near its end"},
        {"of the same CA at any time", GOOD, GOOD, GOOD, GOOD, 20 * DAY, false, CERT_ROTATOR_LEAF,
         "the certificate is near its end"},
        {"not while the next CA settles", NEXT, NEXT, GOOD, GOOD, 20 * DAY, false,
         CERT_ROTATOR_NOTHING, ""},
        {"and then of that one", NEXT, NEXT, GOOD, GOOD, 1 * DAY, true, CERT_ROTATOR_LEAF,
         "the certificate is of an older CA"},
        {"but when it has ended", GOOD, GOOD, GOOD, GOOD, 31 * DAY, false, CERT_ROTATOR_LEAF,
         "the certificate cannot be used"},
        {"the CA has ended", GOOD, GOOD, GOOD, GOOD, 301 * DAY, true, CERT_ROTATOR_ALL,
         "the CA cannot be used"},
    };
    struct error err = ERROR_INIT;
    struct cert_store_content good = {0};
    struct cert_store_content other = {0};
    assert_int_equal(0, cert_rotator_renew(&policy, CERT_ROTATOR_ALL, &good, begin, &err));
    assert_int_equal(0, cert_rotator_renew(&policy, CERT_ROTATOR_ALL, &other, begin, &err));
    struct cert_store_content next = {.ca_bundle = strdup(good.ca_bundle)};
    assert_int_equal(0, cert_rotator_renew(&policy, CERT_ROTATOR_CA, &next, begin, &err));
    char rubbish[] = "rubbish";
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *why = NULL;
        char *const ca[] = {NULL, good.ca_bundle, other.ca_bundle, rubbish, next.ca_bundle};
        char *const ca_key[] = {NULL, good.ca_key, other.ca_key, rubbish, next.ca_key};
        char *const cert[] = {NULL, good.leaf.cert_pem, other.leaf.cert_pem, rubbish};
        char *const key[] = {NULL, good.leaf.key_pem, other.leaf.key_pem, rubbish};
        struct cert_store_content c = {.ca_bundle = ca[rows[i].ca],
                                       .ca_key = ca_key[rows[i].ca_key],
                                       .leaf = {cert[rows[i].cert], key[rows[i].key]}};
        expect_int(rows[i].row, (int64_t)rows[i].need,
                   (int64_t)cert_rotator_judge(&policy, &c, begin + rows[i].after_s,
                                               rows[i].settled, &why));
        expect_str(rows[i].row, rows[i].why, why);
    }
    cert_store_content_deinit(&good);
    cert_store_content_deinit(&other);
    cert_store_content_deinit(&next);
    expect_done();
}

static void options_that_do_not_go_together(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        struct cert_rotator_options o;
        const char *error;
    } rows[] = {
        {"a certificate without a key",
         {.service = "s", .cert_file = "a"},
         "--cert-file and --key-file go together"},
        {"a CA alone",
         {.service = "s", .ca_file = "a", .ca_life_ms = 1, .leaf_life_ms = 1},
         "--ca-file goes with --cert-file and --key-file"},
        {"files and a configuration without a CA",
         {.service = "s", .cert_file = "a", .key_file = "b", .webhook_config = "w"},
         "--webhook-config with --cert-file needs --ca-file: what should caBundle be?"},
        {"a leaf longer than its CA",
         {.service = "s", .ca_life_ms = 1, .leaf_life_ms = 2},
         "--cert-lifetime is longer than --ca-lifetime"},
        {"a leaf that ends while a CA settles",
         {.service = "s", .ca_life_ms = 9000, .leaf_life_ms = 9000, .settle_ms = 3001},
         "--ca-settle is longer than a third of --cert-lifetime: the certificate could end while a new "
         "CA settles"},
        {"too many names",
         {.service = "s",
          .san = "a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a",
          .ca_life_ms = 9000,
          .leaf_life_ms = 9000},
         "--san: at most 28 names"},
    };
    struct cert_rotator_callbacks cb = {.install = NULL};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cert_rotator *k = NULL;
        struct error err = ERROR_INIT;
        expect_int(rows[i].row, -1, cert_rotator_start(&k, &rows[i].o, "ns", NULL, &cb, &err));
        expect_str(rows[i].row, rows[i].error, err.text);
    }
    expect_done();
}

static int tear_down(void **state)
{
    (void)state;
    metrics_reset();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_years_pass_and_both_sides_agree_every_fifth_day),
        cmocka_unit_test(what_is_needed_and_why),
        cmocka_unit_test(options_that_do_not_go_together),
    };
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
