// SPDX-License-Identifier: Apache-2.0
#include "lib/base/jsontree.h"

#include "test/unit/lib/base/expect.h"

static struct jsonnode *copy(struct jsontree *t, const char *text)
{
    AUTO_JSON *doc = NULL;
    assert_int_equal(0, json_parse(&doc, text, strlen(text), NULL));
    return jsonnode_copy(t, json_root(doc));
}

static void expect_view(const char *row, const char *expected, struct jsontree *t,
                        const struct jsonnode *n)
{
    AUTO_STRBUF out = {0};
    struct json_writer w;
    json_writer_init(&w, &out);
    json_put_value(&w, jsonnode_view(t, n));
    expect_str(row, expected, strbuf_str(&out));
}

static void a_copy_is_changed(void **state)
{
    (void)state;
    AUTO_JSONTREE *t = jsontree_new();
    struct jsonnode *o = copy(t, "{\"a\":1,\"b\":2.50,\"metadata\":\"wrong\"}");
    jsonnode_set_str(t, o, "a", "first");
    jsonnode_set_str(t, jsonnode_need_object(t, o, "metadata"), "name", "x");
    jsonnode_set_str(t, jsonnode_need_object(t, o, "metadata"), "namespace", NULL);
    struct jsonnode *list = jsonnode_array(t);
    jsonnode_append(list, jsonnode_object(t));
    jsonnode_append(list, jsonnode_string(t, "a\xc3(b"));
    jsonnode_set(t, o, "list", list);
    jsonnode_set(t, o, "nothing", NULL);
    expect_view("changed",
                "{\"a\":\"first\",\"b\":2.50,\"metadata\":{\"name\":\"x\",\"namespace\":null},"
                "\"list\":[{},\"a\xef\xbf\xbd(b\"]}",
                t, o);
    expect_done();
}

static void a_view_is_of_its_moment(void **state)
{
    (void)state;
    AUTO_JSONTREE *t = jsontree_new();
    struct jsonnode *root = copy(t, "{\"m\":{\"a\":1},\"l\":[[],{}],\"last\":\"x\"}");
    struct jsonnode *m = jsonnode_get(root, "m");
    int64_t n = 0;
    jsonnode_set_str(t, m, "b", "new");
    json *v = jsonnode_view(t, root);
    jsonnode_set_str(t, m, "b", "later");
    expect_str("what was changed before", "new", json_get_str(json_get(v, "m"), "b"));
    expect_true("what was there", json_get_int(json_get(v, "m"), "a", &n) && n == 1);
    expect_str("behind containers", "x", json_get_str(v, "last"));
    v = jsonnode_view(t, m);
    expect_str("a node of its own", "later", json_get_str(v, "b"));
    expect_true("NULL has no view", jsonnode_view(t, NULL) == NULL);
    expect_done();
}

static void readers_accept_nothing_and_the_wrong_kind(void **state)
{
    (void)state;
    AUTO_JSONTREE *t = jsontree_new();
    struct jsonnode *root = copy(t, "{\"s\":\"x\",\"n\":5,\"z\":\"a\\u0000b\",\"l\":[]}");
    expect_true("NULL", !jsonnode_is_object(NULL) && !jsonnode_is_array(NULL));
    expect_true("NULL", jsonnode_str(NULL) == NULL && jsonnode_get(NULL, "a") == NULL);
    expect_true("NULL", jsonnode_copy(t, NULL) == NULL);
    expect_str("a string", "x", jsonnode_get_str(root, "s"));
    expect_str("not a string", NULL, jsonnode_get_str(root, "n"));
    expect_str("a NUL inside", NULL, jsonnode_get_str(root, "z"));
    jsonnode_set_str(t, jsonnode_get(root, "l"), "x", "ignored");
    jsonnode_append(jsonnode_get(root, "s"), jsonnode_null(t));
    expect_view("unchanged", "{\"s\":\"x\",\"n\":5,\"z\":\"a\\u0000b\",\"l\":[]}", t, root);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_is_changed),
        cmocka_unit_test(a_view_is_of_its_moment),
        cmocka_unit_test(readers_accept_nothing_and_the_wrong_kind),
    };
    return cmocka_run_group_tests_name("jsontree", tests, NULL, NULL);
}
