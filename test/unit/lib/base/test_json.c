// SPDX-License-Identifier: Apache-2.0
/* Reading; test_json_writer.c has the other half. */
#include "lib/base/json.h"

#include "test/unit/lib/base/expect.h"

static struct json_doc *parse(const char *text)
{
    struct json_doc *doc = NULL;
    struct error err = ERROR_INIT;
    if (json_parse(&doc, text, strlen(text), &err) < 0)
        fail_msg("'%s': %s", text, err.text);
    return doc;
}

static void documents_may_share_memory_one_after_the_other(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct json_memory m = {.keep = 4096};
    static const size_t lengths[] = {3, 500, 20, 9000, 7};
    char big[9000 + JSON_PADDING], small[] = "[7]\0\0\0\0";
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct json_doc *doc = NULL, *other = NULL;
        memset(big, ' ', sizeof big);
        big[0] = '[';
        for (size_t k = 1; k + 2 < lengths[i]; k += 2)
            memcpy(big + k, "1,", 2);
        memcpy(big + lengths[i] - 2, "1]", 2);
        memcpy(small, "[7]", 3);
        expect_int("one", 0, json_parse_within(&doc, big, lengths[i], &m, &err));
        expect_int("a second while it lives", 0, json_parse_within(&other, small, 3, &m, &err));
        expect_int("the first is whole", (int64_t)(lengths[i] - 1) / 2,
                   (int64_t)json_len(json_root(doc)));
        expect_int("so is the second", 1, (int64_t)json_len(json_root(other)));
        json_free(doc);
        json_free(other);
        expect_true("not more is kept than allowed", m.size <= m.keep);
    }
    char bad[] = "[1\0\0\0\0";
    struct json_doc *none = NULL;
    expect_int("no document", -1, json_parse_within(&none, bad, 2, &m, &err));
    expect_true("lends nothing", !m.lent);
    json_memory_deinit(&m);
    expect_done();
}

static void good_texts_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *kind;
    } rows[] = {
        {"{}", "object"}, {"[]", "array"},    {"\"\"", "string"},        {"0", "number"},
        {"-1", "number"}, {"1e5", "number"},  {"true", "boolean"},       {"false", "boolean"},
        {"null", "null"}, {" [ ] ", "array"}, {"\"\\u0000\"", "string"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        AUTO_JSON *doc = parse(rows[i].text);
        json *v = json_root(doc);
        const char *kind = rows[i].kind;
        expect_str(rows[i].text, kind, json_kind_name(v));
        expect_int(rows[i].text, strcmp(kind, "object") == 0, json_is_object(v));
        expect_int(rows[i].text, strcmp(kind, "array") == 0, json_is_array(v));
        expect_int(rows[i].text, strcmp(kind, "string") == 0, json_is_string(v));
        expect_int(rows[i].text, strcmp(kind, "number") == 0, json_is_number(v));
        expect_int(rows[i].text, strcmp(kind, "boolean") == 0, json_is_bool(v));
        expect_int(rows[i].text, strcmp(kind, "null") == 0, json_is_null(v));
    }
    expect_done();
}

static void bad_texts_are_refused_with_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        const char *text;
        const char *start; /* of the message */
    } rows[] = {
        {"nothing", "", "not JSON: it is empty"},
        {"blanks only", "  ", "not JSON: it is empty"},
        {"cut", "{\"a\":", "not JSON: byte 5: "},
        {"something behind", "{} x", "not JSON: byte 3: "},
        {"a comma too many", "[1,]", "not JSON: byte 2: "},
        {"a leading zero", "[01]", "not JSON: byte 1: "},
        {"a plus", "[+1]", "not JSON: byte 1: "},
        {"not a number", "NaN", "not JSON: byte 0: "},
        {"a comment", "[/* */]", "not JSON: byte 1: "},
        {"single quotes", "{'a':1}", "not JSON: byte 1: "},
        {"a line feed in a string", "\"a\nb\"", "not JSON: byte 2: "},
        {"half a surrogate", "\"\\ud800\"", "not JSON: byte 7: "},
        {"a byte order mark", "\xef\xbb\xbf{}", "not JSON: byte 0: "},
        {"not UTF-8", "\"\xff\"", "not JSON: byte 1: "},
        {"a key without a value", "{\"a\"}", "not JSON: byte 4: "},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct error err = ERROR_INIT;
        struct json_doc *doc = (struct json_doc *)&err; /* anything but NULL */
        expect_int(rows[i].row, -1, json_parse(&doc, rows[i].text, strlen(rows[i].text), &err));
        expect_true(rows[i].row, doc == NULL);
        expect_int(rows[i].row, ERROR_INVALID, err.code);
        if (strncmp(err.text, rows[i].start, strlen(rows[i].start)) != 0)
            expect_str(rows[i].row, rows[i].start, err.text);
    }
    struct json_doc *doc = NULL;
    expect_int("nobody needs to care", -1, json_parse(&doc, "x", 1, NULL));
    json_free(NULL);
    expect_done();
}

static void numbers_keep_their_text(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool is_int;
        int64_t value;
    } rows[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"9223372036854775807", true, INT64_MAX},
        {"9223372036854775808", false, 0},
        {"-9223372036854775808", true, INT64_MIN},
        {"-9223372036854775809", false, 0},
        {"123456789012345678901234567890", false, 0},
        {"0.1", false, 0},
        {"1.0", false, 0},
        {"1e3", false, 0},
        {"2.50", false, 0},
        {"-3E-5", false, 0},
        {"1e999", false, 0},
    };
    enum { N = sizeof rows / sizeof rows[0] };
    AUTO_STRBUF list = {0};
    for (size_t i = 0; i < N; i++)
        strbuf_addf(&list, "%s%s", i == 0 ? "[" : ",", rows[i].text);
    strbuf_addc(&list, ']');
    AUTO_JSON *doc = parse(strbuf_str(&list));
    for (size_t i = 0; i < N; i++) {
        /* Alone, the NUL behind it stands at the very end; in a list, where a comma was. */
        AUTO_JSON *alone = parse(rows[i].text);
        json *v[] = {json_root(alone), json_at(json_root(doc), i)};
        for (size_t k = 0; k < 2; k++) {
            int64_t out = 4711;
            expect_str(rows[i].text, rows[i].text, json_number_text(v[k]));
            expect_int(rows[i].text, rows[i].is_int, json_int(v[k], &out));
            expect_int(rows[i].text, rows[i].is_int ? rows[i].value : 4711, out);
        }
    }
    expect_done();
}

static void strings(void **state)
{
    (void)state;
    AUTO_JSON *doc =
        parse("[\"plain\", \"\", \"q\\\"\\n\\u00e9\\ud83d\\ude00\", \"a\\u0000b\", 5]");
    json *r = json_root(doc);
    expect_str("plain", "plain", json_str(json_at(r, 0)));
    expect_int("its length", 5, (int64_t)json_str_len(json_at(r, 0)));
    expect_str("empty", "", json_str(json_at(r, 1)));
    expect_str("escapes are resolved", "q\"\n\xc3\xa9\xf0\x9f\x98\x80", json_str(json_at(r, 2)));
    expect_int("their length", 9, (int64_t)json_str_len(json_at(r, 2)));
    expect_str("a NUL inside: not one for us", NULL, json_str(json_at(r, 3)));
    expect_int("nor has it a length", 0, (int64_t)json_str_len(json_at(r, 3)));
    expect_true("though it is a string", json_is_string(json_at(r, 3)));
    expect_str("a number is no string", NULL, json_str(json_at(r, 4)));
    expect_str("and a string no number", NULL, json_number_text(json_at(r, 0)));
    expect_done();
}

static void paths_need_no_checks(void **state)
{
    (void)state;
    AUTO_JSON *doc = parse(
        "{\"spec\":{\"containers\":[{\"name\":\"c\",\"n\":5,\"t\":true}],\"none\":null},\"dup\":1,\"dup\":2}");
    json *r = json_root(doc);
    json *spec = json_get(r, "spec");
    json *c = json_at(json_get(spec, "containers"), 0);
    int64_t n = 0;
    expect_str("a member", "c", json_get_str(c, "name"));
    expect_true("an integer", json_get_int(c, "n", &n) && n == 5);
    expect_true("a boolean", json_get_bool(c, "t", false));
    expect_true("absent: the fallback", json_get_bool(c, "x", true));
    expect_int("absent: the other fallback", false, json_get_bool(c, "x", false));
    expect_true("not a boolean: the fallback", json_get_bool(c, "n", true));
    expect_true("the same by path",
                json_path(r, (const char *const[]){"spec", "containers", NULL}) ==
                    json_get(spec, "containers"));
    expect_true("an empty path is the value", json_path(r, (const char *const[]){NULL}) == r);
    expect_true("a path through nothing",
                json_path(r, (const char *const[]){"no", "such", "thing", NULL}) == NULL);
    expect_true("a path through a list",
                json_path(spec, (const char *const[]){"containers", "name", NULL}) == NULL);
    expect_true("a key that only starts the same",
                json_get(r, "spe") == NULL && json_get(r, "specs") == NULL);
    expect_true("null is there", json_is_null(json_get(spec, "none")));
    expect_int("absent is not null", false, json_is_null(json_get(spec, "nothing")));
    expect_true("of two the first", json_get_int(r, "dup", &n) && n == 1);
    expect_true("behind the end", json_at(json_get(spec, "containers"), 1) == NULL);
    expect_true("an object has no elements", json_at(r, 0) == NULL);
    expect_true("a list has no members", json_get(json_get(spec, "containers"), "name") == NULL);
    expect_int("members", 3, (int64_t)json_len(r));
    expect_int("elements", 1, (int64_t)json_len(json_get(spec, "containers")));
    expect_int("a string has none", 0, (int64_t)json_len(json_get(c, "name")));

    expect_str("NULL is nothing", "nothing", json_kind_name(NULL));
    expect_true("NULL has no members", json_get(NULL, "a") == NULL && json_at(NULL, 0) == NULL);
    expect_true("NULL is no value",
                json_str(NULL) == NULL && json_number_text(NULL) == NULL && !json_int(NULL, &n));
    expect_true("NULL is of no kind", !json_is_object(NULL) && !json_is_array(NULL) &&
                                          !json_is_string(NULL) && !json_is_number(NULL) &&
                                          !json_is_bool(NULL) && !json_is_null(NULL));
    expect_true("NULL has no size", json_len(NULL) == 0 && json_str_len(NULL) == 0);
    expect_true("no document, no root", json_root(NULL) == NULL);
    expect_done();
}

static void iterating(void **state)
{
    (void)state;
    AUTO_JSON *doc = parse("{\"a\":{\"deep\":[1,[2,{}]]},\"\":[],\"c\\u0000d\":3}");
    AUTO_STRBUF seen = {0};
    for (struct json_iter it = json_iter(json_root(doc)); json_next(&it);)
        strbuf_addf(&seen, "%s/%zu=%s ", it.key, it.key_len, json_kind_name(it.value));
    expect_str("an object, in order", "a/1=object /0=array c/3=number ", strbuf_str(&seen));

    AUTO_JSON *list = parse("[[1,2],{\"x\":1},\"s\",[]]");
    strbuf_reset(&seen);
    for (struct json_iter it = json_iter(json_root(list)); json_next(&it);)
        strbuf_addf(&seen, "%s%s ", json_kind_name(it.value), it.key ? "!" : "");
    expect_str("a list, without keys", "array object string array ", strbuf_str(&seen));

    static const char *const others[] = {"{}", "[]", "\"s\"", "5", "null"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        AUTO_JSON *other = parse(others[i]);
        struct json_iter it = json_iter(json_root(other));
        expect_int(others[i], false, json_next(&it));
        expect_int(others[i], false, json_next(&it));
    }
    struct json_iter it = json_iter(NULL);
    expect_int("NULL", false, json_next(&it));
    expect_done();
}

static void in_place(void **state)
{
    (void)state;
    static const char *const texts[] = {"{\"a\":\"x\\ny\",\"n\":12.50}", "17", "[1,2,3]", "\"s\""};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        size_t n = strlen(texts[i]);
        char *buf =
            malloc(n + JSON_PADDING); /* exactly, so that the sanitizer sees a byte too much */
        assert_non_null(buf);
        memcpy(buf, texts[i], n);
        memset(buf + n, '9', JSON_PADDING); /* left over from something longer */
        struct json_doc *doc = NULL;
        struct error err = ERROR_INIT;
        if (json_parse_insitu(&doc, buf, n, &err) < 0)
            fail_msg("%s: %s", texts[i], err.text);
        AUTO_JSON *copy = parse(texts[i]);
        expect_true(texts[i], json_equal(json_root(doc), json_root(copy)));
        if (json_is_number(json_root(doc)))
            expect_str("a number at the very end is terminated", "17",
                       json_number_text(json_root(doc)));
        json_free(doc);
        free(buf);
    }
    char bad[8 + JSON_PADDING] = "{\"a\":1]";
    struct json_doc *doc = NULL;
    struct error err = ERROR_INIT;
    expect_int("a bad one", -1, json_parse_insitu(&doc, bad, 7, &err));
    expect_int("says so", ERROR_INVALID, err.code);
    expect_done();
}

static void equality(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        const char *a;
        const char *b;
        bool equal;
    } rows[] = {
        {"the same", "{\"a\":[1,{\"b\":null}]}", "{ \"a\" : [1, {\"b\":null}] }", true},
        {"another order", "{\"a\":1,\"b\":2,\"c\":3}", "{\"c\":3,\"a\":1,\"b\":2}", true},
        {"another order behind the same start", "{\"a\":1,\"b\":2,\"c\":3}",
         "{\"a\":1,\"c\":3,\"b\":2}", true},
        {"another order, another value", "{\"a\":1,\"b\":2}", "{\"b\":1,\"a\":2}", false},
        {"deep inside", "[[[{\"a\":[1,2]}]]]", "[[[{\"a\":[1,3]}]]]", false},
        {"another key", "{\"a\":1,\"b\":2}", "{\"a\":1,\"c\":2}", false},
        {"a longer key", "{\"a\":1}", "{\"ab\":1}", false},
        {"a key less", "{\"a\":1}", "{}", false},
        {"lists have an order", "[1,2]", "[2,1]", false},
        {"a longer list", "[1]", "[1,1]", false},
        {"numbers by their text", "1", "1.0", false},
        {"a number is no string", "1", "\"1\"", false},
        {"true is not false", "true", "false", false},
        {"true is true", "true", "true", true},
        {"null is null", "null", "null", true},
        {"null is not false", "null", "false", false},
        {"an escape is not seen", "\"\\u0061\"", "\"a\"", true},
        {"strings to the end", "\"a\\u0000b\"", "\"a\\u0000c\"", false},
        {"a list is no object", "[]", "{}", false},
        {"the same key twice", "{\"a\":1,\"b\":0,\"a\":2}", "{\"b\":0,\"a\":1,\"a\":2}", true},
        {"the same key twice, swapped", "{\"a\":1,\"b\":0,\"a\":2}", "{\"b\":0,\"a\":2,\"a\":1}",
         false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        AUTO_JSON *a = parse(rows[i].a);
        AUTO_JSON *b = parse(rows[i].b);
        expect_int(rows[i].row, rows[i].equal, json_equal(json_root(a), json_root(b)));
        expect_int(rows[i].row, rows[i].equal, json_equal(json_root(b), json_root(a)));
        expect_true("itself", json_equal(json_root(a), json_root(a)));
        expect_int("NULL", false, json_equal(json_root(a), NULL));
        expect_int("NULL", false, json_equal(NULL, json_root(a)));
    }
    expect_true("NULL equals NULL", json_equal(NULL, NULL));
    expect_done();
}

/* Reversed: comparing each key with each would be 10^10 steps. */
static void many_keys_are_compared_in_reasonable_time(void **state)
{
    (void)state;
    enum { N = 100000 };
    AUTO_STRBUF up = {0};
    AUTO_STRBUF down = {0};
    for (int i = 0; i < N; i++) {
        strbuf_addf(&up, "%c\"k%d\":%d", i == 0 ? '{' : ',', i, i);
        strbuf_addf(&down, "%c\"k%d\":%d", i == 0 ? '{' : ',', N - 1 - i, N - 1 - i);
    }
    strbuf_addc(&up, '}');
    strbuf_addc(&down, '}');
    AUTO_JSON *a = parse(strbuf_str(&up));
    AUTO_JSON *b = parse(strbuf_str(&down));
    assert_true(json_equal(json_root(a), json_root(b)));
}

/* Recursion would need far more stack than there is. */
static void depth_is_no_danger(void **state)
{
    (void)state;
    enum { DEPTH = 500000 };
    AUTO_STRBUF text = {0};
    for (int i = 0; i < DEPTH; i++)
        strbuf_adds(&text, i % 2 ? "[" : "{\"a\":");
    strbuf_adds(&text, "1");
    for (int i = DEPTH - 1; i >= 0; i--)
        strbuf_adds(&text, i % 2 ? "]" : "}");
    AUTO_JSON *a = parse(strbuf_str(&text));
    AUTO_JSON *b = parse(strbuf_str(&text));
    expect_true("equal", json_equal(json_root(a), json_root(b)));
    AUTO_STRBUF out = {0};
    struct json_writer w;
    json_writer_init(&w, &out);
    json_put_value(&w, json_root(a));
    expect_true("written again, the same",
                out.len == text.len && memcmp(out.ptr, text.ptr, out.len) == 0);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_may_share_memory_one_after_the_other),
        cmocka_unit_test(good_texts_parse),
        cmocka_unit_test(bad_texts_are_refused_with_their_place),
        cmocka_unit_test(numbers_keep_their_text),
        cmocka_unit_test(strings),
        cmocka_unit_test(paths_need_no_checks),
        cmocka_unit_test(iterating),
        cmocka_unit_test(in_place),
        cmocka_unit_test(equality),
        cmocka_unit_test(many_keys_are_compared_in_reasonable_time),
        cmocka_unit_test(depth_is_no_danger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
