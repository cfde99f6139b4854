// SPDX-License-Identifier: Apache-2.0
#include "test/local/patch/jsonnode.h"

#include "test/unit/lib/base/expect.h"

static struct jsontree *parse(const char *text)
{
    struct jsontree *t = NULL;
    struct error err = ERROR_INIT;
    if (jsontree_parse(&t, text, strlen(text), &err) < 0)
        fail_msg("'%s': %s", text, err.text);
    return t;
}

static void expect_tree(const char *row, const char *expected, struct jsontree *t)
{
    AUTO_STRBUF out;
    strbuf_init(&out);
    jsontree_print(t, &out);
    expect_str(row, expected, strbuf_str(&out));
}

static void what_is_parsed_is_printed_again(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "{}",
        "[]",
        "\"\"",
        "0",
        "null",
        "true",
        "false",
        "[[],{},[{}],[[[]]]]",
        "{\"a\":{\"b\":[1,2,{\"c\":null}],\"d\":\"e\"},\"f\":[]}",
        "[1.50,-0,1e400,123456789012345678901234567890]",
        "{\"k\\n\":\"quotes \\\" and \\\\ and \xc3\xa4\"}",
        "{\"a\":1,\"a\":2}",
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        AUTO_JSONTREE *t = parse(rows[i]);
        expect_tree(rows[i], rows[i], t);
        AUTO_JSONTREE *copy = jsontree_new();
        jsontree_set_root(copy, jsonnode_clone(copy, jsontree_root(t)));
        expect_tree("a clone", rows[i], copy);
        expect_true("a clone is equal", jsonnode_equal(jsontree_root(t), jsontree_root(copy)));
        AUTO_JSON *doc = NULL;
        assert_int_equal(0, json_parse(&doc, rows[i], strlen(rows[i]), NULL));
        jsontree_set_root(copy, jsonnode_copy(copy, json_root(doc)));
        expect_tree("a copy of a document", rows[i], copy);
        AUTO_STRBUF viewed = {0};
        struct json_writer w;
        json_writer_init(&w, &viewed);
        json_put_value(&w, jsonnode_view(t, jsontree_root(t)));
        expect_str("a view", rows[i], strbuf_str(&viewed));
    }
    expect_done();
}

static void what_is_no_json_is_refused(void **state)
{
    (void)state;
    static const char *const rows[] = {"", "{", "[1,]", "{\"a\"}", "nul", "\"\xff\""};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct jsontree *t = NULL;
        struct error err = ERROR_INIT;
        expect_int(rows[i], -1, jsontree_parse(&t, rows[i], strlen(rows[i]), &err));
        expect_int(rows[i], ERROR_INVALID, err.code);
        expect_true(rows[i], t == NULL);
    }
    expect_done();
}

static void members_are_set_in_place_or_at_the_end(void **state)
{
    (void)state;
    AUTO_JSONTREE *t = parse("{\"a\":1,\"b\":2,\"c\":3}");
    struct jsonnode *root = jsontree_root(t);
    jsonnode_set_str(t, root, "a", "first");
    jsonnode_set_int(t, root, "c", -9);
    jsonnode_set(t, root, "d", jsonnode_boolean(t, true));
    jsonnode_set(t, root, "e", jsonnode_null(t));
    jsonnode_set(t, root, "b", jsonnode_get(root, "b"));
    jsonnode_set(t, root, "f", NULL);
    expect_tree("set", "{\"a\":\"first\",\"b\":2,\"c\":-9,\"d\":true,\"e\":null}", t);
    struct jsonnode *b = jsonnode_remove(root, "b");
    struct jsonnode *e = jsonnode_remove(root, "e");
    expect_true("nothing there", jsonnode_remove(root, "x") == NULL);
    expect_tree("removed", "{\"a\":\"first\",\"c\":-9,\"d\":true}", t);
    struct jsonnode *list = jsonnode_array(t);
    jsonnode_append(list, b);
    jsonnode_append(list, e);
    jsonnode_set(t, root, "list", list);
    expect_tree("put in again", "{\"a\":\"first\",\"c\":-9,\"d\":true,\"list\":[2,null]}", t);
    for (const char *const *k = (const char *const[]){"a", "list", "d", "c", NULL}; *k; k++)
        expect_true(*k, jsonnode_remove(root, *k) != NULL);
    expect_tree("emptied", "{}", t);
    jsonnode_set_str(t, root, "again", NULL);
    expect_tree("filled again", "{\"again\":null}", t);
    expect_done();
}

static void paths_are_made_where_they_are_missing(void **state)
{
    (void)state;
    AUTO_JSONTREE *t = parse("{\"metadata\":{\"labels\":\"wrong\"}}");
    struct jsonnode *root = jsontree_root(t);
    jsonnode_set_str(t, jsonnode_need_path(t, root, "metadata", "labels", NULL), "a", "b");
    jsonnode_set_str(t, jsonnode_need_path(t, root, "status", NULL), "phase", "Running");
    expect_tree("made",
                "{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"status\":{\"phase\":\"Running\"}}", t);
    expect_str("found", "b", jsonnode_str(jsonnode_path(root, "metadata", "labels", "a", NULL)));
    expect_true("not found", jsonnode_path(root, "metadata", "x", "a", NULL) == NULL);
    expect_done();
}

static void arrays_grow_and_shrink_anywhere(void **state)
{
    (void)state;
    AUTO_JSONTREE *t = parse("[1,2]");
    struct jsonnode *a = jsontree_root(t);
    expect_true("at the front", jsonnode_insert(a, 0, jsonnode_integer(t, 0)));
    expect_true("at the end", jsonnode_insert(a, 3, jsonnode_integer(t, 4)));
    expect_true("in the middle", jsonnode_insert(a, 3, jsonnode_integer(t, 3)));
    expect_true("one too far", !jsonnode_insert(a, 6, jsonnode_integer(t, 9)));
    expect_tree("inserted", "[0,1,2,3,4]", t);
    expect_true("last replaced", jsonnode_replace_at(a, 4, jsonnode_string(t, "z")));
    expect_true("first replaced", jsonnode_replace_at(a, 0, jsonnode_string(t, "a")));
    expect_true("none there", !jsonnode_replace_at(a, 5, jsonnode_string(t, "x")));
    expect_true("by nothing", !jsonnode_replace_at(a, 0, NULL));
    expect_tree("replaced", "[\"a\",1,2,3,\"z\"]", t);
    expect_str("removed", "z", jsonnode_str(jsonnode_remove_at(a, 4)));
    expect_str("removed", "a", jsonnode_str(jsonnode_remove_at(a, 0)));
    expect_true("none there", jsonnode_remove_at(a, 3) == NULL);
    int64_t n = 0;
    expect_true("in the middle", jsonnode_int(jsonnode_at(a, 1), &n) && n == 2);
    expect_int("length", 3, (int64_t)jsonnode_len(a));
    expect_tree("what is left", "[1,2,3]", t);
    expect_done();
}

static void readers_accept_nothing_and_the_wrong_kind(void **state)
{
    (void)state;
    AUTO_JSONTREE *t =
        parse("{\"s\":\"x\",\"n\":5,\"f\":5.0,\"b\":true,\"z\":\"a\\u0000b\",\"l\":[]}");
    struct jsonnode *root = jsontree_root(t);
    int64_t n = 7;
    expect_true("NULL", !jsonnode_is_object(NULL) && !jsonnode_is_array(NULL) &&
                            !jsonnode_is_string(NULL) && !jsonnode_is_null(NULL) &&
                            !jsonnode_is_number(NULL) && !jsonnode_is_bool(NULL));
    expect_true("NULL", jsonnode_str(NULL) == NULL && !jsonnode_int(NULL, &n) &&
                            jsonnode_bool(NULL, true) && jsonnode_len(NULL) == 0);
    expect_true("NULL", jsonnode_get(NULL, "a") == NULL && jsonnode_at(NULL, 0) == NULL &&
                            jsonnode_clone(t, NULL) == NULL && jsonnode_copy(t, NULL) == NULL);
    expect_true("NULL is equal to NULL only",
                jsonnode_equal(NULL, NULL) && !jsonnode_equal(root, NULL));
    expect_str("a string", "x", jsonnode_get_str(root, "s"));
    expect_str("not a string", NULL, jsonnode_get_str(root, "n"));
    expect_str("a NUL inside", NULL, jsonnode_get_str(root, "z"));
    expect_str("a number's text", "5.0", jsonnode_number_text(jsonnode_get(root, "f")));
    expect_true("an integer", jsonnode_int(jsonnode_get(root, "n"), &n) && n == 5);
    expect_true("not an integer", !jsonnode_int(jsonnode_get(root, "f"), &n));
    expect_true("a boolean", jsonnode_bool(jsonnode_get(root, "b"), false));
    expect_true("a member of a list", jsonnode_get(jsonnode_get(root, "l"), "x") == NULL);
    jsonnode_set_str(t, jsonnode_get(root, "l"), "x", "ignored");
    jsonnode_append(jsonnode_get(root, "s"), jsonnode_null(t));
    struct jsonnode_iter it = jsonnode_iter(jsonnode_get(root, "s"));
    expect_true("nothing to walk", !jsonnode_next(&it));
    AUTO_STRBUF out;
    strbuf_init(&out);
    jsonnode_print(NULL, &out);
    expect_str("NULL prints null", "null", strbuf_str(&out));
    expect_true("NULL has no view", jsonnode_view(t, NULL) == NULL);
    expect_done();
}

static void walking_gives_every_member_in_order(void **state)
{
    (void)state;
    AUTO_JSONTREE *t = parse("{\"o\":{\"a\":1,\"b\":2},\"l\":[1,2]}");
    AUTO_STRBUF seen;
    strbuf_init(&seen);
    struct jsonnode *root = jsontree_root(t);
    for (struct jsonnode_iter it = jsonnode_iter(root); jsonnode_next(&it);)
        for (struct jsonnode_iter in = jsonnode_iter(it.value); jsonnode_next(&in);)
            strbuf_addf(&seen, "%s.%s=%s ", it.key, in.key ? in.key : "-",
                        jsonnode_number_text(in.value));
    expect_str("walk", "o.a=1 o.b=2 l.-=1 l.-=2 ", strbuf_str(&seen));
    expect_done();
}

static void objects_are_equal_in_any_order(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        bool equal;
    } rows[] = {
        {"{\"a\":1,\"b\":[{}]}", "{\"b\":[{}],\"a\":1}", true},
        {"{\"x\":0,\"a\":1,\"b\":2}", "{\"x\":0,\"b\":2,\"a\":1}", true},
        {"{\"a\":1,\"a\":1}", "{\"a\":1,\"b\":1}", false},
        {"{\"a\":1}", "{\"a\":1,\"b\":1}", false},
        {"{\"a\":1,\"b\":1}", "{\"ab\":1,\"b\":1}", false},
        {"{}", "{}", true},
        {"{}", "[]", false},
        {"[1,2]", "[2,1]", false},
        {"[1]", "[1,1]", false},
        {"[1]", "[1.0]", false},
        {"[true]", "[false]", false},
        {"[null]", "[null]", true},
        {"[\"1\"]", "[1]", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        AUTO_JSONTREE *a = parse(rows[i].a);
        AUTO_JSONTREE *b = parse(rows[i].b);
        expect_int(rows[i].a, rows[i].equal, jsonnode_equal(jsontree_root(a), jsontree_root(b)));
        expect_int(rows[i].b, rows[i].equal, jsonnode_equal(jsontree_root(b), jsontree_root(a)));
    }
    expect_done();
}

static void new_strings_are_clean(void **state)
{
    (void)state;
    AUTO_JSONTREE *t = jsontree_new();
    expect_true("a new tree has no root", jsontree_root(t) == NULL);
    struct jsonnode *o = jsonnode_object(t);
    jsontree_set_root(t, o);
    jsonnode_set_str(t, o, "k\xff", "a\xc3(b");
    jsonnode_set_str(t, o, "ok", "\xe2\x82\xac\x01\n");
    jsonnode_set_int(t, o, "min", INT64_MIN);
    expect_tree("cleaned",
                "{\"k\xef\xbf\xbd\":\"a\xef\xbf\xbd(b\",\"ok\":\"\xe2\x82\xac\\u0001\\n\","
                "\"min\":-9223372036854775808}",
                t);
    expect_done();
}

static void depth_costs_no_stack(void **state)
{
    (void)state;
    enum { DEPTH = 200000 };
    AUTO_STRBUF text;
    strbuf_init(&text);
    for (int i = 0; i < DEPTH; i++)
        strbuf_addc(&text, '[');
    for (int i = 0; i < DEPTH; i++)
        strbuf_addc(&text, ']');
    AUTO_JSONTREE *t = parse(strbuf_str(&text));
    AUTO_JSONTREE *u = jsontree_new();
    jsontree_set_root(u, jsonnode_clone(u, jsontree_root(t)));
    expect_true("equal", jsonnode_equal(jsontree_root(t), jsontree_root(u)));
    expect_tree("printed", strbuf_str(&text), u);
    size_t depth = 0;
    for (json *v = jsonnode_view(u, jsontree_root(u)); v; v = json_at(v, 0))
        depth++;
    expect_int("a view", DEPTH, (int64_t)depth);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_parsed_is_printed_again),
        cmocka_unit_test(what_is_no_json_is_refused),
        cmocka_unit_test(members_are_set_in_place_or_at_the_end),
        cmocka_unit_test(paths_are_made_where_they_are_missing),
        cmocka_unit_test(arrays_grow_and_shrink_anywhere),
        cmocka_unit_test(readers_accept_nothing_and_the_wrong_kind),
        cmocka_unit_test(walking_gives_every_member_in_order),
        cmocka_unit_test(objects_are_equal_in_any_order),
        cmocka_unit_test(new_strings_are_clean),
        cmocka_unit_test(depth_costs_no_stack),
    };
    return cmocka_run_group_tests_name("jsonnode", tests, NULL, NULL);
}
