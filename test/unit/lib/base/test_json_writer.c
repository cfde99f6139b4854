// SPDX-License-Identifier: Apache-2.0
#include "lib/base/json.h"

#include "test/unit/lib/base/expect.h"

static void commas_are_its_business(void **state)
{
    (void)state;
    AUTO_STRBUF out = {0};
    struct json_writer w;
    json_writer_init(&w, &out);
    json_object_begin(&w);
    json_kv_str(&w, "s", "x");
    json_kv_str(&w, "none", NULL);
    json_kv_int(&w, "min", INT64_MIN);
    json_kv_int(&w, "max", INT64_MAX);
    json_kv_bool(&w, "t", true);
    json_kv_bool(&w, "f", false);
    json_key(&w, "list");
    json_array_begin(&w);
    json_array_begin(&w);
    json_array_end(&w);
    json_array_begin(&w);
    json_put_int(&w, 1);
    json_put_int(&w, 2);
    json_array_end(&w);
    json_array_begin(&w); /* as deep as the one before, and without its comma */
    json_put_int(&w, 3);
    json_array_end(&w);
    json_object_begin(&w);
    json_object_end(&w);
    json_put_null(&w);
    json_put_int(&w, 0);
    json_put_raw(&w, "{\"r\":1}", 7);
    json_put_value(&w, NULL);
    json_array_end(&w);
    json_key_n(&w, "keyed", 3);
    json_put_str_n(&w, "value", 3);
    json_object_end(&w);
    expect_str(
        "all of it",
        "{\"s\":\"x\",\"none\":null,\"min\":-9223372036854775808,\"max\":9223372036854775807,\"t\":true,\"f\":false,"
        "\"list\":[[],[1,2],[3],{},null,0,{\"r\":1},null],\"key\":\"val\"}",
        strbuf_str(&out));
    struct json_doc *doc = NULL;
    expect_int("is JSON", 0, json_parse(&doc, out.ptr, out.len, NULL));
    json_free(doc);
    expect_int("everything is closed", 0, (int64_t)w.depth);
    expect_done();
}

static void values_at_the_top_follow_one_another(void **state)
{
    (void)state;
    AUTO_STRBUF out = {0};
    struct json_writer w;
    strbuf_adds(&out, "data: ");
    json_writer_init(&w, &out);
    json_put_int(&w, 1);
    strbuf_addc(&out, '\n');
    json_put_bool(&w, false);
    expect_str("no comma, and what was there stays", "data: 1\nfalse", strbuf_str(&out));
    expect_done();
}

static void strings_are_escaped(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        const char *in;
        size_t n;
        const char *out;
    } rows[] = {
        {"empty", "", 0, "\"\""},
        {"plain", "abc", 3, "\"abc\""},
        {"quotes and backslashes", "a\"b\\c", 5, "\"a\\\"b\\\\c\""},
        {"the common ones", "\n\t\r", 3, "\"\\n\\t\\r\""},
        {"other control characters", "\x01\x1f\x08", 3, "\"\\u0001\\u001f\\u0008\""},
        {"a blank is none", " ", 1, "\" \""},
        {"nor is delete, for JSON", "\x7f", 1, "\"\x7f\""},
        {"NUL", "a\0b", 3, "\"a\\u0000b\""},
        {"UTF-8 stays", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9,
         "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {"a bad byte becomes U+FFFD",
         "a\xff"
         "b",
         3,
         "\"a\xef\xbf\xbd"
         "b\""},
        {"each byte of a cut character", "\xe2\x82", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\""},
        {"a surrogate", "\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
        {"a slash stays", "a/b</script>", 12, "\"a/b</script>\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        AUTO_STRBUF out = {0};
        struct json_writer w;
        json_writer_init(&w, &out);
        json_put_str_n(&w, rows[i].in, rows[i].n);
        expect_str(rows[i].row, rows[i].out, strbuf_str(&out));
        struct json_doc *doc = NULL;
        expect_int(rows[i].row, 0, json_parse(&doc, out.ptr, out.len, NULL));
        json_free(doc);
    }
    AUTO_STRBUF all = {0};
    AUTO_STRBUF out = {0};
    for (int c = 0; c < 128; c++)
        strbuf_addc(&all, (char)c);
    json_escape(&out, all.ptr, all.len);
    AUTO_JSON *doc = NULL;
    expect_int("every ASCII character", 0, json_parse(&doc, out.ptr, out.len, NULL));
    AUTO_STRBUF again = {0};
    struct json_writer w;
    json_writer_init(&w, &again);
    json_put_value(&w, json_root(doc));
    expect_str("survives both ways", strbuf_str(&out), strbuf_str(&again));
    expect_done();
}

static void parsed_values_are_written_again(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "{}",
        "[]",
        "0",
        "\"a\\u0000\\\"\"",
        "true",
        "null",
        "[[],{},[{}],[[]]]",
        "{\"a\":{\"b\":[]},\"c\":{}}",
        "[1,2.50,-3e5,123456789012345678901234567890]",
        "{\"a\":[1,{\"b\":\"x\"},[2,[3]],false],\"\":null,\"e\":{\"f\":{\"g\":[{},{}]}}}",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        AUTO_JSON *doc = NULL;
        AUTO_STRBUF out = {0};
        AUTO_STRBUF want = {0};
        struct json_writer w;
        assert_int_equal(0, json_parse(&doc, rows[i], strlen(rows[i]), NULL));
        json_writer_init(&w, &out);
        json_array_begin(&w);
        json_put_value(&w, json_root(doc));
        json_put_value(&w, json_root(doc));
        json_object_begin(&w);
        json_key(&w, "k");
        json_put_value(&w, json_root(doc));
        json_kv_int(&w, "n", 1);
        json_object_end(&w);
        json_array_end(&w);
        strbuf_addf(&want, "[%s,%s,{\"k\":%s,\"n\":1}]", rows[i], rows[i], rows[i]);
        expect_str(rows[i], strbuf_str(&want), strbuf_str(&out));
    }
    /* A part of a document ends where it ends. */
    AUTO_JSON *doc = NULL;
    AUTO_STRBUF out = {0};
    struct json_writer w;
    const char *text = "{\"a\":[1,[2]],\"b\":3}";
    assert_int_equal(0, json_parse(&doc, text, strlen(text), NULL));
    json_writer_init(&w, &out);
    json_put_value(&w, json_get(json_root(doc), "a"));
    expect_str("a part", "[1,[2]]", strbuf_str(&out));
    expect_done();
}

static void nest(unsigned levels)
{
    AUTO_STRBUF out = {0};
    struct json_writer w;
    json_writer_init(&w, &out);
    for (unsigned i = 0; i < levels; i++)
        json_array_begin(&w);
    for (unsigned i = 0; i < levels; i++)
        json_array_end(&w);
}

static void too_deep(void)
{
    nest(JSON_WRITER_DEPTH);
}

static void end_without_begin(void)
{
    AUTO_STRBUF out = {0};
    struct json_writer w;
    json_writer_init(&w, &out);
    json_object_end(&w);
}

static void key_without_value(void)
{
    AUTO_STRBUF out = {0};
    struct json_writer w;
    json_writer_init(&w, &out);
    json_object_begin(&w);
    json_key(&w, "k");
    json_object_end(&w);
}

static void mistakes_of_ours_abort(void **state)
{
    (void)state;
    nest(JSON_WRITER_DEPTH - 1);
    expect_abort("one level too deep", too_deep);
    expect_abort("an end without a begin", end_without_begin);
    expect_abort("a key without a value", key_without_value);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commas_are_its_business),
        cmocka_unit_test(values_at_the_top_follow_one_another),
        cmocka_unit_test(strings_are_escaped),
        cmocka_unit_test(parsed_values_are_written_again),
        cmocka_unit_test(mistakes_of_ours_abort),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
