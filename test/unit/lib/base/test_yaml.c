// SPDX-License-Identifier: Apache-2.0
#include "lib/base/yaml.h"

#include "test/unit/lib/base/expect.h"

enum { ENOUGH = 1 << 20 };

/* The JSON, or "code: message". */
static void check(const char *row, const char *in, size_t max_bytes, const char *expected)
{
    AUTO_STRBUF out = {0};
    struct error err = ERROR_INIT;
    strbuf_adds(&out, "before|");
    int rc = yaml_to_json(in, strlen(in), max_bytes, &out, &err);
    if (rc < 0) {
        expect_str(row, "before|", strbuf_str(&out));
        char shown[ERROR_TEXT_SIZE + 32];
        (void)str_format(shown, sizeof shown, "%s: %s", error_code_name(err.code), err.text);
        expect_str(row, expected, shown);
        return;
    }
    expect_str(row, expected, strbuf_str(&out) + strlen("before|"));
}

static void good_texts(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        const char *in;
        const char *out;
    } rows[] = {
        {"nothing", "", ""},
        {"a comment is nothing", "# only this\n", ""},
        {"empty documents give no line", "---\n---\n# x\n---\n", ""},
        {"an explicit null is a document", "--- null\n", "null\n"},
        {"a quoted nothing too", "--- ''\n", "\"\"\n"},
        {"a scalar", "5", "5\n"},
        {"block style", "kind: Pod\nspec:\n  num: 3\n  list:\n  - a\n  - b: true\n    c:\n",
         "{\"kind\":\"Pod\",\"spec\":{\"num\":3,\"list\":[\"a\",{\"b\":true,\"c\":null}]}}\n"},
        {"flow style is JSON", "{\"a\": [1, 2.50, \"x\\ny\", null, {}], \"b\": []}",
         "{\"a\":[1,2.50,\"x\\ny\",null,{}],\"b\":[]}\n"},
        {"several documents", "a: 1\n---\n- 2\n---\n---\n3\n...\n", "{\"a\":1}\n[2]\n3\n"},
        {"block scalars", "a: |\n  x\n  y\nb: >-\n  x\n  y\n",
         "{\"a\":\"x\\ny\\n\",\"b\":\"x y\"}\n"},
        {"quotes make strings", "a: '5'\nb: \"yes\"\nc: !!str 7\nd: ! no\n",
         "{\"a\":\"5\",\"b\":\"yes\",\"c\":\"7\",\"d\":\"no\"}\n"},
        {"core tags",
         "a: !!int '5'\nb: !!float 1\nc: !!bool 'on'\nd: !!null ''\ne: !!seq []\nf: !!map {}\ng: ! []\nh: ! {}\n",
         "{\"a\":5,\"b\":1,\"c\":true,\"d\":null,\"e\":[],\"f\":{},\"g\":[],\"h\":{}}\n"},
        {"keys become strings", "1: a\n0x10: b\nyes: c\n2.5: d\n'5': e\noff: f\n",
         "{\"1\":\"a\",\"16\":\"b\",\"true\":\"c\",\"2.5\":\"d\",\"5\":\"e\",\"false\":\"f\"}\n"},
        {"even where it hurts: y and n are words too", "y: 1\nn: 2\n",
         "{\"true\":1,\"false\":2}\n"},
        {"a byte order mark",
         "\xef\xbb\xbf"
         "a: 1\n",
         "{\"a\":1}\n"},
        {"an alias is a copy", "a: &x [1]\nb: *x\nc: {d: *x}\n",
         "{\"a\":[1],\"b\":[1],\"c\":{\"d\":[1]}}\n"},
        {"an anchor can be set again", "- &x 1\n- *x\n- &x 2\n- *x\n", "[1,1,2,2]\n"},
        {"an alias as a key", "a: &x k\n*x : 1\n", "{\"a\":\"k\",\"k\":1}\n"},
        {"a merge key", "a: &x {p: 1, q: 2}\nb: {<<: *x, r: 3}\n",
         "{\"a\":{\"p\":1,\"q\":2},\"b\":{\"r\":3,\"p\":1,\"q\":2}}\n"},
        {"own keys win, before and after", "a: &x {p: 1, q: 2}\nb:\n  q: 9\n  <<: *x\n  p: 8\n",
         "{\"a\":{\"p\":1,\"q\":2},\"b\":{\"q\":9,\"p\":8}}\n"},
        {"of a list the first wins", "- &x {p: 1}\n- &y {p: 2, q: 3}\n- <<: [*x, *y]\n",
         "[{\"p\":1},{\"p\":2,\"q\":3},{\"p\":1,\"q\":3}]\n"},
        {"what is merged may merge", "- &x {p: 1, s: 0}\n- &y {<<: *x, p: 2}\n- {<<: *y}\n",
         "[{\"p\":1,\"s\":0},{\"p\":2,\"s\":0},{\"p\":2,\"s\":0}]\n"},
        {"merging nothing", "- &x {}\n- {<<: *x}\n- {<<: []}\n", "[{},{},{}]\n"},
        {"a quoted << is a key", "'<<': 1\n", "{\"<<\":1}\n"},
        {"so is one with a tag", "!!str <<: 1\n", "{\"<<\":1}\n"},
        {"UTF-8 and escapes", "a: \"\\u00e9\\0\\x01\"\nb: \xe2\x82\xac\n",
         "{\"a\":\"\xc3\xa9\\u0000\\u0001\",\"b\":\"\xe2\x82\xac\"}\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check(rows[i].row, rows[i].in, ENOUGH, rows[i].out);
    expect_done();
}

static void bad_texts_are_refused_in_a_sentence(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        const char *in;
        const char *message;
    } rows[] = {
        {"cut", "a: [1,\n",
         "invalid: line 2, column 1: while parsing a flow node, did not find expected node content"},
        {"indentation", "a: 1\n b: 2\n",
         "invalid: line 2, column 3: mapping values are not allowed in this context"},
        {"a tab", "a:\n\t- 1\n",
         "invalid: line 2, column 1: while scanning for the next token, found character that cannot start any token"},
        {"not UTF-8", "a: 1\nb: \xff\n", "invalid: line 2, column 4: invalid leading UTF-8 octet"},
        {"a control character", "a: 1\n\n\x01",
         "invalid: line 3, column 1: control characters are not allowed"},
        {"an error in the second document", "a: 1\n---\nb: *x\n",
         "invalid: line 3, column 4: the alias 'x' names nothing"},
        {"anchors end with their document", "a: &x 1\n---\nb: *x\n",
         "invalid: line 3, column 4: the alias 'x' names nothing"},
        {"an alias in its own list", "a: &x [1, *x]\n",
         "invalid: line 1, column 11: the alias 'x' is inside what it names"},
        {"an alias in its own mapping", "&x a: 1\nb: &y\n  c: {d: *y}\n",
         "invalid: line 3, column 10: the alias 'y' is inside what it names"},
        {"a foreign tag", "a: !Ref x\n",
         "unsupported: line 1, column 4: the tag '!Ref' is not supported"},
        {"a foreign tag on a list", "a: !!set [x]\n",
         "unsupported: line 1, column 4: the tag 'tag:yaml.org,2002:set' is not supported"},
        {"a foreign tag on a mapping", "a: !x {}\n",
         "unsupported: line 1, column 4: the tag '!x' is not supported"},
        {"!!binary", "a: !!binary eA==\n",
         "unsupported: line 1, column 4: the tag 'tag:yaml.org,2002:binary' is not supported"},
        {"a tag that does not fit", "a: !!map 5\n",
         "invalid: line 1, column 4: the tag 'tag:yaml.org,2002:map' does not fit what it stands before"},
        {"a scalar tag on a list", "a: !!str []\n",
         "invalid: line 1, column 4: the tag 'tag:yaml.org,2002:str' does not fit what it stands before"},
        {"a value that is not what its tag says", "a: !!int x\n",
         "invalid: line 1, column 4: not an integer: 'x'"},
        {"a key that is not what its tag says", "!!int x: a\n",
         "invalid: line 1, column 1: not an integer: 'x'"},
        {"a list as a key", "? [a]\n: b\n",
         "unsupported: line 1, column 3: a key must be a scalar: JSON has no other"},
        {"a mapping as a key by alias", "a: &x {}\n*x : b\n",
         "unsupported: line 1, column 4: a key must be a scalar: JSON has no other"},
        {"null as a key", "~: b\n", "unsupported: line 1, column 1: a key may not be null"},
        {"a NUL in a key", "\"a\\0b\": 1\n",
         "unsupported: line 1, column 1: a key may not contain a NUL"},
        {"a key twice", "a: 1\nb: 2\na: 3\n",
         "invalid: line 3, column 1: the key 'a' is there twice"},
        {"a key twice in two spellings", "yes: 1\non: 2\n",
         "invalid: line 2, column 1: the key 'true' is there twice"},
        {"infinity", "a: .inf\n", "unsupported: line 1, column 4: JSON has no '.inf'"},
        {"more than 64 bits", "a: 0x10000000000000000\n",
         "out of range: line 1, column 4: does not fit in 64 bits: '0x10000000000000000'"},
        {"merging a scalar", "<<: 5\n",
         "invalid: line 1, column 5: a merge key takes a mapping or a list of mappings"},
        {"merging a list of scalars", "<<: [a]\n",
         "invalid: line 1, column 6: a merge key takes a mapping or a list of mappings"},
        {"a bad key in what is merged", "<<: {~: 1}\n",
         "unsupported: line 1, column 6: a key may not be null"},
        {"a bad value in what is merged", "<<: {a: .nan}\n",
         "unsupported: line 1, column 9: JSON has no '.nan'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        check(rows[i].row, rows[i].in, ENOUGH, rows[i].message);
    expect_done();
}

static void output_is_bounded(void **state)
{
    (void)state;
    check("exactly enough", "a: 1\n", strlen("{\"a\":1}\n"), "{\"a\":1}\n");
    check("one byte too few", "a: 1\n", strlen("{\"a\":1}\n") - 1,
          "too large: more than 7 bytes as JSON");
    check("all documents together", "a: 1\n---\na: 1\n", 15,
          "too large: more than 15 bytes as JSON");

    /* Ten levels of ten aliases: 10^10 elements. */
    AUTO_STRBUF laughs = {0};
    strbuf_adds(&laughs, "- &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i < 10; i++) {
        strbuf_addf(&laughs, "- &a%d [", i);
        for (int k = 0; k < 10; k++)
            strbuf_addf(&laughs, "%s*a%d", k > 0 ? ", " : "", i - 1);
        strbuf_adds(&laughs, "]\n");
    }
    check("aliases that multiply", strbuf_str(&laughs), ENOUGH,
          "too large: more than 1048576 bytes as JSON");

    /* The same by merge keys, which find every key there already and write nothing. */
    AUTO_STRBUF merges = {0};
    strbuf_adds(&merges, "- &a0 {k: 1}\n");
    for (int i = 1; i < 10; i++) {
        strbuf_addf(&merges, "- &a%d {<<: [", i);
        for (int k = 0; k < 10; k++)
            strbuf_addf(&merges, "%s*a%d", k > 0 ? ", " : "", i - 1);
        strbuf_adds(&merges, "]}\n");
    }
    check("merges that multiply", strbuf_str(&merges), ENOUGH,
          "too large: more than 1048576 bytes as JSON");
    expect_done();
}

static void nested(struct strbuf *out, int levels, const char *inner)
{
    strbuf_reset(out);
    for (int i = 0; i < levels; i++)
        strbuf_addc(out, '[');
    strbuf_adds(out, inner);
    for (int i = 0; i < levels; i++)
        strbuf_addc(out, ']');
}

static void depth_is_bounded(void **state)
{
    (void)state;
    AUTO_STRBUF in = {0};
    AUTO_STRBUF out = {0};
    nested(&in, 63, "1");
    nested(&out, 63, "1");
    strbuf_addc(&out, '\n');
    check("63 lists around a scalar", strbuf_str(&in), ENOUGH, strbuf_str(&out));
    nested(&in, 64, "1");
    check("64 lists around it", strbuf_str(&in), ENOUGH,
          "too large: line 1, column 65: nested too deeply");
    nested(&in, 900, "1");
    check("far too deep", strbuf_str(&in), ENOUGH,
          "too large: line 1, column 65: nested too deeply");

    /* Each alias is nested one deeper than what it names. */
    AUTO_STRBUF chain = {0};
    strbuf_adds(&chain, "- &a0 x\n");
    for (int i = 1; i < 63; i++)
        strbuf_addf(&chain, "- &a%d [*a%d]\n", i, i - 1);
    AUTO_STRBUF json_text = {0};
    struct error err = ERROR_INIT;
    expect_int("aliases, just deep enough", 0,
               yaml_to_json(chain.ptr, chain.len, ENOUGH, &json_text, &err));
    expect_str("no error", "", err.text);
    strbuf_adds(&chain, "- [*a62]\n");
    check("aliases too deep", strbuf_str(&chain), ENOUGH,
          "too large: line 1, column 3: nested too deeply");

    strbuf_reset(&chain);
    strbuf_adds(&chain, "- &a0 {}\n");
    for (int i = 1; i < 80; i++)
        strbuf_addf(&chain, "- &a%d {<<: *a%d}\n", i, i - 1);
    strbuf_reset(&json_text);
    expect_int("a chain of merges", -1,
               yaml_to_json(chain.ptr, chain.len, ENOUGH, &json_text, &err));
    expect_int("is bounded too", ERROR_TOO_LARGE, err.code);
    expect_done();
}

static void many_keys_take_reasonable_time(void **state)
{
    (void)state;
    AUTO_STRBUF in = {0};
    AUTO_STRBUF out = {0};
    struct error err = ERROR_INIT;
    for (int i = 0; i < 50000; i++)
        strbuf_addf(&in, "key%d: %d\n", i, i);
    if (yaml_to_json(in.ptr, in.len, 16 * ENOUGH, &out, &err) < 0)
        fail_msg("%s", err.text);
    struct json_doc *doc = NULL;
    assert_int_equal(0, json_parse(&doc, out.ptr, out.len, NULL));
    assert_int_equal(50000, json_len(json_root(doc)));
    json_free(doc);
}

static void the_first_document_parsed(void **state)
{
    (void)state;
    struct json_doc *doc = NULL;
    struct error err = ERROR_INIT;
    const char *text = "---\n# empty\n---\ncurrent-context: a\nnum: 0.10\n---\n[broken\n";
    if (yaml_parse(&doc, text, strlen(text), ENOUGH, &err) < 0)
        fail_msg("%s", err.text);
    expect_str("a member", "a", json_get_str(json_root(doc), "current-context"));
    expect_str("numbers keep their text", "0.10",
               json_number_text(json_get(json_root(doc), "num")));
    json_free(doc);
    expect_int("none", -1, yaml_parse(&doc, "# x\n", 4, ENOUGH, &err));
    expect_str("says so", "there is no YAML document", err.text);
    expect_true("and leaves nothing", doc == NULL);
    expect_int("broken", -1, yaml_parse(&doc, "[", 1, ENOUGH, &err));
    expect_int("says so", ERROR_INVALID, err.code);
    expect_int("too big", -1, yaml_parse(&doc, "abc", 3, 3, &err));
    expect_int("says so", ERROR_TOO_LARGE, err.code);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_texts),
        cmocka_unit_test(bad_texts_are_refused_in_a_sentence),
        cmocka_unit_test(output_is_bounded),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(many_keys_take_reasonable_time),
        cmocka_unit_test(the_first_document_parsed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
