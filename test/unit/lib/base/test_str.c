// SPDX-License-Identifier: Apache-2.0
#include "lib/base/str.h"

#include "test/unit/lib/base/expect.h"

static void comparing(void **state)
{
    (void)state;
    expect_true("the same text is equal", str_eq("ab", "ab"));
    expect_int("a longer one is not", false, str_eq("ab", "abc"));
    expect_true("NULL equals NULL", str_eq(NULL, NULL));
    expect_int("NULL is not empty", false, str_eq(NULL, ""));
    expect_int("and empty is not NULL", false, str_eq("", NULL));
    expect_true("starts with itself", str_starts("ab", "ab"));
    expect_true("starts with nothing", str_starts("", ""));
    expect_int("does not start with more than itself", false, str_starts("ab", "abc"));
    expect_int("NULL starts with nothing", false, str_starts(NULL, ""));
    expect_int("nothing starts with NULL", false, str_starts("a", NULL));
    expect_true("ends with itself", str_ends("ab", "ab"));
    expect_true("ends with its end", str_ends("pods/binding", "/binding"));
    expect_int("does not end with its start", false, str_ends("ab", "a"));
    expect_int("does not end with more than itself", false, str_ends("ab", "xab"));
    expect_int("NULL ends with nothing", false, str_ends(NULL, ""));
    expect_int("nothing ends with NULL", false, str_ends("a", NULL));
    expect_str("NULL prints as nothing", "", str_or_empty(NULL));
    expect_str("others print as they are", "x", str_or_empty("x"));
    expect_done();
}

static void the_hash_is_fnv1a_on_every_machine(void **state)
{
    (void)state;
    static const struct {
        const char *in;
        uint64_t hash;
    } rows[] = {
        {"", UINT64_C(0xcbf29ce484222325)},
        {"a", UINT64_C(0xaf63dc4c8601ec8c)},
        {"foobar", UINT64_C(0x85944171f73967e8)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_int(rows[i].in, (int64_t)rows[i].hash,
                   (int64_t)str_hash(rows[i].in, strlen(rows[i].in)));
    expect_int("only n bytes count", (int64_t)str_hash("a", 1), (int64_t)str_hash("ab", 1));
    expect_true("bytes above 127 are unsigned", str_hash("\xff", 1) != str_hash("\x7f", 1));
    expect_done();
}

static void utf8(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        const char *in;
        size_t n;
        size_t len;
    } rows[] = {
        {"nothing", "", 0, 0},
        {"NUL is a character", "\0", 1, 1},
        {"the last of one byte", "\x7f", 1, 1},
        {"a continuation byte", "\x80", 1, 0},
        {"overlong, two bytes, lowest", "\xc0\x80", 2, 0},
        {"overlong, two bytes, highest", "\xc1\xbf", 2, 0},
        {"the first of two bytes", "\xc2\x80", 2, 2},
        {"the last of two bytes", "\xdf\xbf", 2, 2},
        {"two bytes, cut", "\xc2", 1, 0},
        {"two bytes, the second is none", "\xc2\x7f", 2, 0},
        {"overlong, three bytes", "\xe0\x9f\xbf", 3, 0},
        {"the first of three bytes", "\xe0\xa0\x80", 3, 3},
        {"the last before the surrogates", "\xed\x9f\xbf", 3, 3},
        {"the first surrogate", "\xed\xa0\x80", 3, 0},
        {"the last surrogate", "\xed\xbf\xbf", 3, 0},
        {"the first after the surrogates", "\xee\x80\x80", 3, 3},
        {"the last of three bytes", "\xef\xbf\xbf", 3, 3},
        {"three bytes, cut", "\xe2\x82", 2, 0},
        {"three bytes, the second is none", "\xe2\x20\x80", 3, 0},
        {"three bytes, the third is none", "\xe2\x82\x20", 3, 0},
        {"overlong, four bytes", "\xf0\x8f\xbf\xbf", 4, 0},
        {"the first of four bytes", "\xf0\x90\x80\x80", 4, 4},
        {"U+10FFFF", "\xf4\x8f\xbf\xbf", 4, 4},
        {"above it", "\xf4\x90\x80\x80", 4, 0},
        {"far above it", "\xf5\x80\x80\x80", 4, 0},
        {"four bytes, cut", "\xf0\x90\x80", 3, 0},
        {"four bytes, the second is none", "\xf1\x20\x80\x80", 4, 0},
        {"four bytes, the third is none", "\xf1\x80\x20\x80", 4, 0},
        {"four bytes, the fourth is none", "\xf1\x80\x80\x20", 4, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_int(rows[i].row, (int64_t)rows[i].len, (int64_t)str_utf8_len(rows[i].in, rows[i].n));
    expect_done();
}

static void formatting_into_a_fixed_buffer(void **state)
{
    (void)state;
    char buf[4] = "???";
    expect_true("what fits exactly", str_format(buf, sizeof buf, "%d", 123));
    expect_str("is there", "123", buf);
    expect_int("one more does not fit", false, str_format(buf, sizeof buf, "%d", 1234));
    expect_str("and is cut and terminated", "123", buf);
    expect_int("nothing fits into nothing", false, str_format(buf, 0, "%s", ""));
    expect_str("and nothing is touched", "123", buf);
    expect_done();
}

static void a_buffer_grows(void **state)
{
    (void)state;
    AUTO_STRBUF b = {0};
    strbuf_init(&b);
    expect_str("empty is a string too", "", strbuf_str(&b));
    strbuf_add(&b, NULL, 0);
    expect_str("adding nothing", "", strbuf_str(&b));
    strbuf_adds(&b, "ab");
    strbuf_addc(&b, 'c');
    strbuf_add(&b, "d\0e", 3);
    expect_int("NUL is a byte", 6, (int64_t)b.len);
    expect_int("all bytes are there", 0, memcmp(b.ptr, "abcd\0e", 7));
    strbuf_reset(&b);
    expect_str("reset empties it", "", strbuf_str(&b));
    size_t cap = b.cap;
    expect_true("and keeps the memory", cap > 0);
    strbuf_reserve(&b, cap - 1);
    expect_int("what is there needs no growth", (int64_t)cap, (int64_t)b.cap);
    strbuf_reserve(&b, cap);
    expect_true("one more does", b.cap > cap);

    strbuf_reset(&b);
    for (int i = 0; i < 1000; i++)
        strbuf_addf(&b, "%d,", i);
    expect_int("formatted text adds up", 3890, (int64_t)b.len);
    expect_int("the terminator is there", 3890, (int64_t)strlen(strbuf_str(&b)));
    expect_int("its start", 0, strncmp(strbuf_str(&b), "0,1,2,", 6));
    expect_str("its end", "998,999,", strbuf_str(&b) + 3890 - 8);
    strbuf_addf(&b, "%0*d", 5000, 7);
    expect_int("a long piece", 8890, (int64_t)b.len);
    expect_str("ends as it should", "0007", strbuf_str(&b) + 8886);
    expect_done();
}

static void formatting_fills_the_last_byte(void **state)
{
    (void)state;
    for (int n = 0; n < 200; n++) { /* both sides of every growth */
        AUTO_STRBUF b = {0};
        strbuf_addf(&b, "%0*d", n + 1, 7);
        expect_int("length", n + 1, (int64_t)b.len);
        expect_int("terminated", n + 1, (int64_t)strlen(strbuf_str(&b)));
        expect_int("last byte", '7', b.ptr[n]);
    }
    expect_done();
}

static void consuming_and_taking(void **state)
{
    (void)state;
    struct strbuf b = {0};
    strbuf_consume(&b, 3);
    expect_str("nothing can be consumed of nothing", "", strbuf_str(&b));
    char *empty = strbuf_take(&b);
    expect_str("taking nothing gives a string", "", empty);
    free(empty);
    strbuf_adds(&b, "line1\nline2");
    strbuf_consume(&b, 0);
    expect_str("consuming nothing", "line1\nline2", strbuf_str(&b));
    strbuf_consume(&b, 6);
    expect_str("consuming a line", "line2", strbuf_str(&b));
    strbuf_consume(&b, 99);
    expect_str("consuming more than there is", "", strbuf_str(&b));
    expect_int("leaves nothing", 0, (int64_t)b.len);
    strbuf_adds(&b, "x");
    char *taken = strbuf_take(&b);
    expect_str("what is taken", "x", taken);
    expect_true("is gone", b.ptr == NULL && b.len == 0 && b.cap == 0);
    free(taken);
    strbuf_deinit(&b);
    expect_done();
}

static void reserve_too_much(void)
{
    struct strbuf b = {0};
    strbuf_reserve(&b, SIZE_MAX / 2);
}

static void absurd_sizes_abort(void **state)
{
    (void)state;
    expect_abort("a size that would overflow", reserve_too_much);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comparing),
        cmocka_unit_test(the_hash_is_fnv1a_on_every_machine),
        cmocka_unit_test(utf8),
        cmocka_unit_test(formatting_into_a_fixed_buffer),
        cmocka_unit_test(a_buffer_grows),
        cmocka_unit_test(formatting_fills_the_last_byte),
        cmocka_unit_test(consuming_and_taking),
        cmocka_unit_test(absurd_sizes_abort),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
