// SPDX-License-Identifier: Apache-2.0
/* The four patches. Rows marked (tried) were given to a real API server, which answered the
 * same. */
#include "test/local/patch/patch.h"

#include "test/unit/lib/base/expect.h"

struct row {
    const char *name;
    const char *object, *patch;
    const char *expected; /* NULL: refused */
    int status;           /* of a refusal */
};

typedef int (*patch_fn)(struct jsontree *t, json *patch, struct error *err);

static void run(const struct row *rows, size_t n, patch_fn fn)
{
    for (size_t i = 0; i < n; i++) {
        const struct row *r = &rows[i];
        AUTO_JSONTREE *t = NULL;
        AUTO_JSON *doc = NULL;
        AUTO_STRBUF out;
        struct error err = ERROR_INIT;
        strbuf_init(&out);
        assert_int_equal(0, jsontree_parse(&t, r->object, strlen(r->object), NULL));
        if (json_parse(&doc, r->patch, strlen(r->patch), &err) < 0)
            fail_msg("%s: %s", r->name, err.text);
        int rc = fn(t, json_root(doc), &err);
        if (!r->expected) {
            expect_int(r->name, -1, rc);
            expect_int(r->name, r->status, err.http_status);
            expect_true(r->name, err.text[0] != '\0');
            continue;
        }
        if (rc < 0)
            expect_str(r->name, "no error", err.text);
        AUTO_JSONTREE *wanted = NULL;
        assert_int_equal(0, jsontree_parse(&wanted, r->expected, strlen(r->expected), NULL));
        jsontree_print(t, &out);
        if (!jsonnode_equal(jsontree_root(wanted), jsontree_root(t)))
            expect_str(r->name, r->expected, strbuf_str(&out));
    }
    expect_done();
}
#define RUN(rows, fn) run(rows, sizeof rows / sizeof rows[0], fn)

#define O "{\"a\":{\"b\":1,\"l\":[1,2,3]},\"s/t\":\"x\",\"m~n\":\"y\"}"
static void json_patches(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"add a member", "{}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":null}]", "{\"a\":null}",
         0},
        {"add replaces a member", "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":[2]}]",
         "{\"a\":[2]}", 0},
        {"add at the front", "[1]", "[{\"op\":\"add\",\"path\":\"/0\",\"value\":0}]", "[0,1]", 0},
        {"add at the end by number", "[1]", "[{\"op\":\"add\",\"path\":\"/1\",\"value\":2}]",
         "[1,2]", 0},
        {"add behind the end", "[1]", "[{\"op\":\"add\",\"path\":\"/2\",\"value\":2}]", NULL, 422},
        {"add at the end by a dash", "[1]", "[{\"op\":\"add\",\"path\":\"/-\",\"value\":2}]",
         "[1,2]", 0},
        {"the whole document is replaced, not added (tried)", "[1]",
         "[{\"op\":\"replace\",\"path\":\"\",\"value\":{}}]", "{}", 0},
        {"add of the whole document (tried)", "[1]",
         "[{\"op\":\"add\",\"path\":\"\",\"value\":{}}]", NULL, 422},
        {"add without a value adds null (tried)", "{}", "[{\"op\":\"add\",\"path\":\"/a\"}]",
         "{\"a\":null}", 0},
        {"add where no parent is (tried)", O, "[{\"op\":\"add\",\"path\":\"/x/y\",\"value\":1}]",
         NULL, 422},
        {"add inside a number", O, "[{\"op\":\"add\",\"path\":\"/a/b/c\",\"value\":1}]", NULL, 422},
        {"a leading zero counts for nothing (tried)", "[1,2]",
         "[{\"op\":\"remove\",\"path\":\"/01\"}]", "[1]", 0},
        {"an index from the end (tried)", "[1,2,3]", "[{\"op\":\"remove\",\"path\":\"/-1\"}]",
         "[1,2]", 0},
        {"an index from before the beginning", "[1,2]", "[{\"op\":\"remove\",\"path\":\"/-3\"}]",
         NULL, 422},
        {"add at the end, counted from there", "[1,2]",
         "[{\"op\":\"add\",\"path\":\"/-1\",\"value\":3}]", "[1,2,3]", 0},
        {"what stands before the first slash (tried)", "{\"a\":{}}",
         "[{\"op\":\"add\",\"path\":\"a/b\",\"value\":1}]", "{\"a\":{},\"b\":1}", 0},
        {"a path without a slash", "{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"a\"}]", NULL, 422},
        {"escapes", O,
         "[{\"op\":\"remove\",\"path\":\"/s~1t\"},{\"op\":\"remove\",\"path\":\"/m~0n\"}]",
         "{\"a\":{\"b\":1,\"l\":[1,2,3]}}", 0},
        {"a bad escape", O, "[{\"op\":\"remove\",\"path\":\"/m~2n\"}]", NULL, 422},
        {"a tilde at the end", O, "[{\"op\":\"remove\",\"path\":\"/m~\"}]", NULL, 422},
        {"no slash (tried)", O, "[{\"op\":\"add\",\"path\":\"a\",\"value\":1}]", NULL, 422},
        {"remove from a list", "[1,2,3]", "[{\"op\":\"remove\",\"path\":\"/1\"}]", "[1,3]", 0},
        {"remove what is not there (tried)", "{}", "[{\"op\":\"remove\",\"path\":\"/a\"}]", NULL,
         422},
        {"remove behind the end", "[1]", "[{\"op\":\"remove\",\"path\":\"/1\"}]", NULL, 422},
        {"remove everything", "[1]", "[{\"op\":\"remove\",\"path\":\"\"}]", NULL, 422},
        {"replace", "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":2}]", "{\"a\":2}",
         0},
        {"replace adds a member that is not there (tried)", "{}",
         "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":2}]", "{\"a\":2}", 0},
        {"replace in a list", "[1,2]", "[{\"op\":\"replace\",\"path\":\"/1\",\"value\":9}]",
         "[1,9]", 0},
        {"replace behind the end", "[1]", "[{\"op\":\"replace\",\"path\":\"/1\",\"value\":9}]",
         NULL, 422},
        {"move", O, "[{\"op\":\"move\",\"from\":\"/a/l/0\",\"path\":\"/s~1t\"}]",
         "{\"a\":{\"b\":1,\"l\":[2,3]},\"s/t\":1,\"m~n\":\"y\"}", 0},
        {"move within a list", "[1,2,3]", "[{\"op\":\"move\",\"from\":\"/0\",\"path\":\"/2\"}]",
         "[2,3,1]", 0},
        {"move into itself", O, "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a/b\"}]", NULL, 422},
        {"move what is not there (tried)", O, "[{\"op\":\"move\",\"from\":\"/x\",\"path\":\"/y\"}]",
         NULL, 422},
        {"move without from", O, "[{\"op\":\"move\",\"path\":\"/y\"}]", NULL, 422},
        {"copy", "{\"a\":[1]}", "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b\"}]",
         "{\"a\":[1],\"b\":[1]}", 0},
        {"copy into itself", "{\"a\":{\"b\":1}}",
         "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/a/c\"}]",
         "{\"a\":{\"b\":1,\"c\":{\"b\":1}}}", 0},
        {"copy what is not there copies null (tried)", "{}",
         "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b\"}]", "{\"b\":null}", 0},
        {"test passes in any order of members", "{\"a\":{\"b\":1,\"c\":2}}",
         "[{\"op\":\"test\",\"path\":\"/a\",\"value\":{\"c\":2,\"b\":1}}]",
         "{\"a\":{\"b\":1,\"c\":2}}", 0},
        {"test fails (tried)", "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":2}]", NULL,
         422},
        {"test for nothing", "{}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":null}]", "{}", 0},
        {"what comes before a failure is not kept apart", "{\"a\":1}",
         "[{\"op\":\"remove\",\"path\":\"/a\"},{\"op\":\"test\",\"path\":\"/a\",\"value\":1}]",
         NULL, 422},
        {"an unknown op (tried)", O, "[{\"op\":\"bogus\",\"path\":\"/a\",\"value\":1}]", NULL, 422},
        {"no op (tried)", O, "[{\"path\":\"/a\",\"value\":1}]", NULL, 422},
        {"not an operation (tried)", O, "[1]", NULL, 400},
        {"not a list (tried)", O, "{\"a\":1}", NULL, 400},
        {"no operations", O, "[]", O, 0},
    };
    RUN(rows, patch_json);
}

static void a_patch_cannot_blow_up(void **state)
{
    (void)state;
    AUTO_STRBUF patch;
    AUTO_JSONTREE *t = NULL;
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    strbuf_init(&patch);
    for (int i = 0; i < 64; i++)
        strbuf_addf(&patch, "%c{\"op\":\"copy\",\"from\":\"\",\"path\":\"/a%d\"}", i ? ',' : '[',
                    i);
    strbuf_addc(&patch, ']');
    assert_int_equal(0, jsontree_parse(&t, "{\"x\":1}", 7, NULL));
    assert_int_equal(0, json_parse(&doc, patch.ptr, patch.len, NULL));
    expect_int("doubling 64 times", -1, patch_json(t, json_root(doc), &err));
    expect_int("doubling 64 times", 422, err.http_status);
    strbuf_reset(&patch);
    for (int i = 0; i <= 10000; i++)
        strbuf_addf(&patch, "%c{\"op\":\"add\",\"path\":\"/a\",\"value\":1}", i ? ',' : '[');
    strbuf_addc(&patch, ']');
    json_free(doc);
    assert_int_equal(0, json_parse(&doc, patch.ptr, patch.len, NULL));
    expect_int("10001 operations", -1, patch_json(t, json_root(doc), &err));
    expect_int("10001 operations", 413, err.http_status);
    static const patch_fn deep[] = {patch_merge};
    strbuf_reset(&patch);
    for (int i = 0; i < 1000; i++)
        strbuf_adds(&patch, "{\"a\":");
    strbuf_adds(&patch, "1");
    for (int i = 0; i < 1000; i++)
        strbuf_addc(&patch, '}');
    json_free(doc);
    assert_int_equal(0, json_parse(&doc, patch.ptr, patch.len, NULL));
    expect_int("1000 levels", -1, deep[0](t, json_root(doc), &err));
    expect_int("1000 levels, strategic", -1, patch_strategic(t, "Pod", json_root(doc), &err));
    expect_int("1000 levels, apply", -1, patch_apply(t, "Pod", json_root(doc), "m", false, &err));
    expect_int("1000 levels", 400, err.http_status);
    expect_done();
}

static void merge_patches(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"a member is set", "{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}", 0},
        {"a member is added", "{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}", 0},
        {"null removes", "{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}", 0},
        {"null removes nothing", "{}", "{\"a\":null}", "{}", 0},
        {"lists are replaced", "{\"a\":[1,2]}", "{\"a\":[{\"b\":null}]}", "{\"a\":[{\"b\":null}]}",
         0},
        {"objects merge", "{\"a\":{\"b\":1,\"c\":2}}", "{\"a\":{\"b\":9,\"c\":null}}",
         "{\"a\":{\"b\":9}}", 0},
        {"an object takes the place of a value", "{\"a\":1}", "{\"a\":{\"b\":{\"c\":null}}}",
         "{\"a\":{\"b\":{}}}", 0},
        {"not an object (tried)", "{}", "[1]", NULL, 400},
        {"not an object (tried)", "{}", "\"x\"", NULL, 400},
    };
    RUN(rows, patch_merge);
}

static int strategic_pod(struct jsontree *t, json *patch, struct error *err)
{
    return patch_strategic(t, "Pod", patch, err);
}

#define C(list) "{\"spec\":{\"containers\":[" list "]}}"
static void strategic_patches(void **state)
{
    (void)state;
    static const struct row rows[] = {
        {"containers merge by name",
         C("{\"name\":\"a\",\"image\":\"1\"},{\"name\":\"b\",\"image\":\"2\"}"),
         C("{\"name\":\"b\",\"image\":\"9\"}"),
         C("{\"name\":\"a\",\"image\":\"1\"},{\"name\":\"b\",\"image\":\"9\"}"), 0},
        {"a new container comes before those that the patch does not name (tried)",
         C("{\"name\":\"a\"}"), C("{\"name\":\"b\",\"image\":null}"),
         C("{\"name\":\"b\"},{\"name\":\"a\"}"), 0},
        {"$patch delete removes an element", C("{\"name\":\"a\"},{\"name\":\"b\"}"),
         C("{\"name\":\"a\",\"$patch\":\"delete\"}"), C("{\"name\":\"b\"}"), 0},
        {"$patch replace replaces a list", C("{\"name\":\"a\"},{\"name\":\"b\"}"),
         C("{\"name\":\"c\"},{\"$patch\":\"replace\"}"), C("{\"name\":\"c\"}"), 0},
        {"$patch replace replaces an object", "{\"metadata\":{\"labels\":{\"a\":\"1\"}}}",
         "{\"metadata\":{\"labels\":{\"$patch\":\"replace\",\"b\":\"2\"}}}",
         "{\"metadata\":{\"labels\":{\"b\":\"2\"}}}", 0},
        {"$patch delete empties an object", "{\"metadata\":{\"labels\":{\"a\":\"1\"}}}",
         "{\"metadata\":{\"labels\":{\"$patch\":\"delete\"}}}", "{\"metadata\":{\"labels\":{}}}",
         0},
        {"$patch merge is for elements of lists, not for objects (tried)",
         "{\"metadata\":{\"labels\":{\"a\":\"1\"}}}",
         "{\"metadata\":{\"labels\":{\"$patch\":\"merge\",\"b\":\"2\"}}}", NULL, 500},
        {"$patch merge of an element is a merge", C("{\"name\":\"a\",\"image\":\"1\"}"),
         C("{\"name\":\"a\",\"tty\":true,\"$patch\":\"merge\"}"),
         C("{\"name\":\"a\",\"image\":\"1\",\"tty\":true}"), 0},
        {"$patch where nothing was leaves an empty object (tried)", "{\"metadata\":{}}",
         "{\"metadata\":{\"labels\":{\"$patch\":\"replace\",\"b\":\"2\"}}}",
         "{\"metadata\":{\"labels\":{}}}", 0},
        {"an element that is to go is not put into a list where none was", "{}",
         C("{\"name\":\"a\"},{\"name\":\"b\",\"$patch\":\"delete\"}"), C("{\"name\":\"a\"}"), 0},
        {"an unknown $patch (tried)", "{}", "{\"$patch\":\"bogus\"}", NULL, 500},
        {"an element without its key (tried)", C("{\"name\":\"a\"}"), C("{\"image\":\"x\"}"), NULL,
         500},
        {"null removes a member", "{\"metadata\":{\"labels\":{\"a\":\"1\",\"b\":\"2\"}}}",
         "{\"metadata\":{\"labels\":{\"a\":null}}}", "{\"metadata\":{\"labels\":{\"b\":\"2\"}}}",
         0},
        {"conditions merge by type",
         "{\"status\":{\"conditions\":[{\"type\":\"A\",\"status\":\"True\",\"reason\":\"r\"}]}}",
         "{\"status\":{\"conditions\":[{\"type\":\"A\",\"status\":\"False\"},{\"type\":\"B\"}]}}",
         "{\"status\":{\"conditions\":[{\"type\":\"A\",\"status\":\"False\",\"reason\":\"r\"},{\"type\":\"B\"}]}}",
         0},
        {"tolerations are one value", "{\"spec\":{\"tolerations\":[{\"key\":\"a\"}]}}",
         "{\"spec\":{\"tolerations\":[{\"key\":\"b\"}]}}",
         "{\"spec\":{\"tolerations\":[{\"key\":\"b\"}]}}", 0},
        {"finalizers are a set", "{\"metadata\":{\"finalizers\":[\"a\",\"b\"]}}",
         "{\"metadata\":{\"finalizers\":[\"b\",\"c\"]}}",
         "{\"metadata\":{\"finalizers\":[\"a\",\"b\",\"c\"]}}", 0},
        {"values go from a set", "{\"metadata\":{\"finalizers\":[\"a\",\"b\"]}}",
         "{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":[\"a\",\"z\"]}}",
         "{\"metadata\":{\"finalizers\":[\"b\"]}}", 0},
        {"ports of a container",
         C("{\"name\":\"a\",\"ports\":[{\"containerPort\":80,\"name\":\"x\"}]}"),
         C("{\"name\":\"a\",\"ports\":[{\"containerPort\":80,\"name\":\"y\"},{\"containerPort\":81}]}"),
         C("{\"name\":\"a\",\"ports\":[{\"containerPort\":80,\"name\":\"y\"},{\"containerPort\":81}]}"),
         0},
        {"ports of a service", "{\"spec\":{\"ports\":[{\"port\":80,\"targetPort\":1}]}}",
         "{\"spec\":{\"ports\":[{\"port\":80,\"targetPort\":2}]}}",
         "{\"spec\":{\"ports\":[{\"port\":80,\"targetPort\":2}]}}", 0},
        {"the order is set", C("{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"c\"}"),
         "{\"spec\":{\"$setElementOrder/containers\":[{\"name\":\"c\"},{\"name\":\"a\"},{\"name\":\"b\"}]}}",
         C("{\"name\":\"c\"},{\"name\":\"a\"},{\"name\":\"b\"}"), 0},
        {"what the order does not name stays before what it was before",
         C("{\"name\":\"x\"},{\"name\":\"a\"},{\"name\":\"b\"}"),
         "{\"spec\":{\"$setElementOrder/containers\":[{\"name\":\"b\"},{\"name\":\"a\"},{\"name\":\"n\"}],"
         "\"containers\":[{\"name\":\"n\"}]}}",
         C("{\"name\":\"x\"},{\"name\":\"b\"},{\"name\":\"a\"},{\"name\":\"n\"}"), 0},
        {"an order for a list that is not there", "{}",
         "{\"spec\":{\"$setElementOrder/containers\":[{\"name\":\"a\"}],\"containers\":[{\"name\":\"a\"}]}}",
         C("{\"name\":\"a\"}"), 0},
        {"$retainKeys keeps one volume source",
         "{\"spec\":{\"volumes\":[{\"name\":\"v\",\"emptyDir\":{}}]}}",
         "{\"spec\":{\"volumes\":[{\"name\":\"v\",\"$retainKeys\":[\"name\",\"hostPath\"],\"hostPath\":{\"path\":\"/\"}}]}}",
         "{\"spec\":{\"volumes\":[{\"name\":\"v\",\"hostPath\":{\"path\":\"/\"}}]}}", 0},
        {"a value takes the place of an object", "{\"a\":{\"b\":1}}", "{\"a\":2}", "{\"a\":2}", 0},
        {"an object takes the place of a value, without nulls", "{\"a\":2}",
         "{\"a\":{\"b\":1,\"c\":null}}", "{\"a\":{\"b\":1}}", 0},
        {"values of a set that come twice, where none was (tried)", "{\"metadata\":{}}",
         "{\"metadata\":{\"finalizers\":[\"a\",\"a\"]}}",
         "{\"metadata\":{\"finalizers\":[\"a\",\"a\"]}}", 0},
        {"an order that does not name what the patch has (tried)", C("{\"name\":\"a\"}"),
         "{\"spec\":{\"$setElementOrder/containers\":[{\"name\":\"x\"}],"
         "\"containers\":[{\"name\":\"a\"}]}}",
         NULL, 500},
        {"an order other than the patch's own (tried)", "{\"metadata\":{}}",
         "{\"metadata\":{\"$setElementOrder/finalizers\":[\"b\",\"a\"],"
         "\"finalizers\":[\"a\",\"b\"]}}",
         NULL, 500},
        {"an order that is no list (tried)", "{\"metadata\":{}}",
         "{\"metadata\":{\"$setElementOrder/finalizers\":\"x\",\"finalizers\":[\"a\"]}}", NULL,
         500},
        {"a name that the live list has twice goes twice",
         C("{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"a\"}"),
         C("{\"name\":\"a\",\"$patch\":\"delete\"}"), C("{\"name\":\"b\"}"), 0},
        {"not an object (tried)", "{}", "[1]", NULL, 400},
    };
    RUN(rows, strategic_pod);
}

/* One apply after the other on the same object. */
struct apply_row {
    const char *name, *manager;
    bool force;
    const char *patch;
    const char *expected; /* without managedFields; NULL: refused */
    const char *message;
};

static void run_apply(const char *kind, const char *object, const struct apply_row *rows, size_t n)
{
    AUTO_JSONTREE *t = NULL;
    assert_int_equal(0, jsontree_parse(&t, object, strlen(object), NULL));
    for (size_t i = 0; i < n; i++) {
        const struct apply_row *r = &rows[i];
        AUTO_JSON *doc = NULL;
        AUTO_STRBUF out;
        struct error err = ERROR_INIT;
        strbuf_init(&out);
        if (json_parse(&doc, r->patch, strlen(r->patch), &err) < 0)
            fail_msg("%s: %s", r->name, err.text);
        int rc = patch_apply(t, kind, json_root(doc), r->manager, r->force, &err);
        if (!r->expected) {
            expect_int(r->name, -1, rc);
            expect_str(r->name, r->message, err.text);
            continue;
        }
        if (rc < 0)
            expect_str(r->name, "no error", err.text);
        AUTO_JSONTREE *got = jsontree_new();
        jsontree_set_root(got, jsonnode_clone(got, jsontree_root(t)));
        (void)jsonnode_remove(jsonnode_get(jsontree_root(got), "metadata"), "managedFields");
        jsontree_print(got, &out);
        expect_str(r->name, r->expected, strbuf_str(&out));
    }
    expect_done();
}

/* Each element was once compared with each other: 20,000 took hours, on the thread of everyone. */
static void long_lists_are_merged_in_time(void **state)
{
    (void)state;
    enum { MANY = 20000 };
    AUTO_JSONTREE *t = NULL;
    AUTO_JSON *doc = NULL;
    AUTO_STRBUF live = {0}, patch = {0};
    struct error err = ERROR_INIT;
    strbuf_adds(&live, "{\"metadata\":{\"finalizers\":[\"a0\"");
    strbuf_adds(&patch, "{\"metadata\":{\"$deleteFromPrimitiveList/finalizers\":[\"a1\"],"
                        "\"finalizers\":[\"b0\"");
    for (int i = 1; i < MANY; i++) {
        strbuf_addf(&live, ",\"a%d\"", i);
        strbuf_addf(&patch, ",\"b%d\"", i);
    }
    strbuf_adds(&live, "]}}");
    strbuf_adds(&patch, "]}}");
    assert_int_equal(jsontree_parse(&t, strbuf_str(&live), live.len, &err), 0);
    assert_int_equal(json_parse(&doc, strbuf_str(&patch), patch.len, &err), 0);
    assert_int_equal(patch_strategic(t, "Pod", json_root(doc), &err), 0);
    struct jsonnode *list = jsonnode_path(jsontree_root(t), "metadata", "finalizers", NULL);
    assert_int_equal(jsonnode_len(list), 2 * MANY - 1);
    assert_string_equal(jsonnode_str(jsonnode_at(list, 0)), "b0");
    assert_string_equal(jsonnode_str(jsonnode_at(list, MANY + 1)), "a2");
}

static void apply_remembers_who_set_what(void **state)
{
    (void)state;
    static const struct apply_row rows[] = {
        {"the first apply sets (tried)", "a", false,
         "{\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"cm\",\"labels\":{\"x\":\"1\"}},\"data\":{\"a\":\"1\",\"b\":\"2\"}}",
         "{\"metadata\":{\"name\":\"cm\",\"labels\":{\"x\":\"1\"}},\"data\":{\"a\":\"1\",\"b\":\"2\"}}",
         NULL},
        {"the same again", "a", false,
         "{\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"cm\",\"labels\":{\"x\":\"1\"}},\"data\":{\"b\":\"2\",\"a\":\"1\"}}",
         "{\"metadata\":{\"name\":\"cm\",\"labels\":{\"x\":\"1\"}},\"data\":{\"a\":\"1\",\"b\":\"2\"}}",
         NULL},
        {"another manager, another value (tried)", "b", false, "{\"data\":{\"a\":\"9\"}}", NULL,
         "Apply failed with 1 conflict: conflict with \"a\": .data.a"},
        {"two of them", "b", false, "{\"data\":{\"a\":\"9\",\"b\":\"9\"}}", NULL,
         "Apply failed with 2 conflicts: conflict with \"a\": .data.a, conflict with \"a\": .data.b"},
        {"another manager, the same value, shares", "b", false, "{\"data\":{\"b\":\"2\"}}",
         "{\"metadata\":{\"name\":\"cm\",\"labels\":{\"x\":\"1\"}},\"data\":{\"a\":\"1\",\"b\":\"2\"}}",
         NULL},
        {"force takes it (tried)", "b", true, "{\"data\":{\"a\":\"9\",\"b\":\"2\"}}",
         "{\"metadata\":{\"name\":\"cm\",\"labels\":{\"x\":\"1\"}},\"data\":{\"a\":\"9\",\"b\":\"2\"}}",
         NULL},
        {"what is not named again goes, what another has stays (tried)", "a", false,
         "{\"data\":{\"c\":\"3\"}}",
         "{\"metadata\":{\"name\":\"cm\"},\"data\":{\"a\":\"9\",\"b\":\"2\",\"c\":\"3\"}}", NULL},
        {"null is as if it were not named", "a", false, "{\"data\":{\"c\":null}}",
         "{\"metadata\":{\"name\":\"cm\"},\"data\":{\"a\":\"9\",\"b\":\"2\"}}", NULL},
        {"managedFields in the patch (tried)", "a", false, "{\"metadata\":{\"managedFields\":[]}}",
         NULL, "metadata.managedFields must be nil"},
        {"not an object", "a", false, "[1]", NULL,
         "error decoding YAML: the document is not an object"},
    };
    run_apply("ConfigMap", "{\"metadata\":{\"name\":\"cm\"}}", rows, sizeof rows / sizeof rows[0]);
}

static void apply_merges_lists_by_their_keys(void **state)
{
    (void)state;
    static const struct apply_row rows[] = {
        {"a list of objects", "a", false,
         C("{\"name\":\"c\",\"image\":\"1\",\"ports\":[{\"containerPort\":80},{\"containerPort\":80,\"protocol\":\"UDP\"}]},"
           "{\"name\":\"d\",\"image\":\"1\"}"),
         "{\"metadata\":{},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"1\",\"ports\":"
         "[{\"containerPort\":80},{\"containerPort\":80,\"protocol\":\"UDP\"}]},{\"name\":\"d\",\"image\":\"1\"}]}}",
         NULL},
        {"another manager adds to an element and to a set", "b", false,
         "{\"metadata\":{\"finalizers\":[\"x/y\"]},\"spec\":{\"containers\":[{\"name\":\"c\",\"tty\":true}]}}",
         "{\"metadata\":{\"finalizers\":[\"x/y\"]},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"1\",\"ports\":"
         "[{\"containerPort\":80},{\"containerPort\":80,\"protocol\":\"UDP\"}],\"tty\":true},{\"name\":\"d\",\"image\":\"1\"}]}}",
         NULL},
        {"a conflict names the element", "b", false, C("{\"name\":\"c\",\"image\":\"2\"}"), NULL,
         "Apply failed with 1 conflict: conflict with \"a\": .spec.containers[name=\"c\"].image"},
        {"elements not named again go, but not another's", "a", false,
         C("{\"name\":\"e\",\"image\":\"3\"}"),
         "{\"metadata\":{\"finalizers\":[\"x/y\"]},\"spec\":{\"containers\":[{\"name\":\"c\",\"tty\":true},"
         "{\"name\":\"e\",\"image\":\"3\"}]}}",
         NULL},
        {"the other one goes too", "b", false, "{\"metadata\":{\"name\":\"p\"}}",
         "{\"metadata\":{},\"spec\":{\"containers\":[{\"name\":\"e\",\"image\":\"3\"}]}}", NULL},
        {"an element without its key", "a", false, C("{\"image\":\"3\"}"), NULL,
         "containers: element without its key \"name\""},
    };
    run_apply("Pod", "{\"metadata\":{}}", rows, sizeof rows / sizeof rows[0]);
}

static void custom_lists_are_one_value(void **state)
{
    (void)state;
    static const struct apply_row rows[] = {
        {"set", "a", false, C("{\"name\":\"c\"}"),
         "{\"spec\":{\"containers\":[{\"name\":\"c\"}]},\"metadata\":{}}", NULL},
        {"replaced", "a", false, C("{\"name\":\"d\"}"),
         "{\"spec\":{\"containers\":[{\"name\":\"d\"}]},\"metadata\":{}}", NULL},
    };
    run_apply(NULL, "{\"spec\":{}}", rows, sizeof rows / sizeof rows[0]);
}

static void the_memory_has_the_form_of_the_api_server(void **state)
{
    (void)state;
    AUTO_JSONTREE *t = NULL;
    AUTO_JSON *doc = NULL;
    AUTO_STRBUF out;
    static const char patch[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"labels\":{\"x\":\"1\"}},"
        "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"args\":[\"a\"],\"ports\":[{\"containerPort\":80}]}]}}";
    strbuf_init(&out);
    assert_int_equal(0, jsontree_parse(&t, "{}", 2, NULL));
    assert_int_equal(0, json_parse(&doc, patch, strlen(patch), NULL));
    assert_int_equal(0, patch_apply(t, "Pod", json_root(doc), "me", false, NULL));
    jsonnode_print(jsonnode_path(jsontree_root(t), "metadata", "managedFields", NULL), &out);
    expect_str(
        "managedFields (tried)",
        "[{\"manager\":\"me\",\"operation\":\"Apply\",\"apiVersion\":\"v1\",\"fieldsType\":\"FieldsV1\","
        "\"fieldsV1\":{\"f:metadata\":{\"f:labels\":{\"f:x\":{}}},\"f:spec\":{\"f:containers\":"
        "{\"k:{\\\"name\\\":\\\"c\\\"}\":{\".\":{},\"f:name\":{},\"f:image\":{},\"f:args\":{},\"f:ports\":"
        "{\"k:{\\\"containerPort\\\":80,\\\"protocol\\\":\\\"TCP\\\"}\":{\".\":{},\"f:containerPort\":{}}}}}}}}]",
        strbuf_str(&out));
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_patches),
        cmocka_unit_test(a_patch_cannot_blow_up),
        cmocka_unit_test(merge_patches),
        cmocka_unit_test(strategic_patches),
        cmocka_unit_test(long_lists_are_merged_in_time),
        cmocka_unit_test(apply_remembers_who_set_what),
        cmocka_unit_test(apply_merges_lists_by_their_keys),
        cmocka_unit_test(custom_lists_are_one_value),
        cmocka_unit_test(the_memory_has_the_form_of_the_api_server),
    };
    return cmocka_run_group_tests_name("patch", tests, NULL, NULL);
}
