// SPDX-License-Identifier: Apache-2.0
/*
 * validity reads both forms of time from a certificate of openssl's and rejects everything else:
 * all its prefixes, and all variants with one byte changed, are harmless.
 */
#include "kubectl/validity.h"

#include <string.h>

#include "lib/base/base64.h"
#include "lib/base/str.h"
#include "test/unit/lib/base/expect.h"

#define HEAD "-----BEGIN CERTIFICATE-----\n"
#define TAIL "-----END CERTIFICATE-----\n"

static const char body[] = "MIIBdTCCARugAwIBAgIUD0TnPMu6Y3YCURbCNaz83u8N5yowCgYIKoZIzj0EAwIw\n"
                           "DzENMAsGA1UEAwwEdGVzdDAgFw0yNjExMTcxOTA4NDhaGA8yMTI2MTAyNDE5MDg0\n"
                           "OFowDzENMAsGA1UEAwwEdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABNUH\n"
                           "2M9QSrohrxn1U3jV8g3CfoIJXfSp+iYW1dQd2fqW8wPuE4KPKtGNPghDPmw56rfm\n"
                           "Pb/JsP/Xe393tk6X5nCjUzBRMB0GA1UdDgQWBBQb3hdOQFps20SDIbMN+EL2muHM\n"
                           "njAfBgNVHSMEGDAWgBQb3hdOQFps20SDIbMN+EL2muHMnjAPBgNVHRMBAf8EBTAD\n"
                           "AQH/MAoGCCqGSM49BAMCA0gAMEUCIQDYwhnJbvzdN6alq9KFkk5tYF1sZcM3mKK+\n"
                           "n+xokjXYUAIgbQs4cVXDSloQ188Z/baFx9Ck7Kg0WZtuuRB9nqSQ7fE=\n";

static bool read_pem(const char *text, struct validity *v)
{
    return validity_read(text, strlen(text), v);
}

/* The DER as PEM again. */
static bool read_der(const char *der, size_t n, struct validity *v)
{
    AUTO_STRBUF text = {0};
    strbuf_adds(&text, HEAD);
    base64_encode(der, n, &text);
    strbuf_adds(&text, "\n" TAIL);
    return read_pem(strbuf_str(&text), v);
}

static void both_times_are_read(void **state)
{
    (void)state;
    struct validity v;
    AUTO_STRBUF text = {0};
    strbuf_addf(&text, "some text before\n" HEAD "%s" TAIL "and another:\n" HEAD TAIL, body);
    assert_true(read_pem(strbuf_str(&text), &v));
    assert_string_equal("2026-11-17T19:08:48Z", v.not_before);
    assert_string_equal("2126-10-24T19:08:48Z", v.not_after);
}

static void what_is_no_certificate_is_not_read(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",
                                        "no PEM",
                                        HEAD,
                                        HEAD TAIL,
                                        HEAD "!" TAIL,
                                        HEAD "MIIB" TAIL,
                                        TAIL HEAD,
                                        HEAD "MAA=" TAIL,
                                        HEAD "MIAA" TAIL,
                                        HEAD "MIT/////" TAIL};
    struct validity v;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (read_pem(wrong[i], &v))
            fail_msg("'%s' was read as a certificate", wrong[i]);
}

static void broken_ones_do_no_harm(void **state)
{
    (void)state;
    struct validity v;
    AUTO_STRBUF der = {0};
    assert_true(base64_decode(body, strlen(body), &der));
    for (size_t n = 0; n < der.len; n++)
        assert_false(read_der(der.ptr, n, &v));
    for (size_t i = 0; i < der.len; i++)
        for (int change = 1; change < 256; change <<= 1) {
            der.ptr[i] = (char)(der.ptr[i] ^ change);
            (void)read_der(der.ptr, der.len, &v);
            der.ptr[i] = (char)(der.ptr[i] ^ change);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_times_are_read),
        cmocka_unit_test(what_is_no_certificate_is_not_read),
        cmocka_unit_test(broken_ones_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
