// SPDX-License-Identifier: Apache-2.0
/* The store, sentence by sentence; random changes are in test_store_random.c. */
#include "test/local/store/store.h"

#include "test/unit/lib/base/expect.h"

static const char *const fields[] = {"spec.nodeName", "status.phase", "spec.replicas",
                                     "spec.unschedulable", NULL};
static const struct kind pods = {.group = "",
                                 .version = "v1",
                                 .api_version = "v1",
                                 .kind = "Pod",
                                 .resource = "pods",
                                 .namespaced = true,
                                 .fields = fields};
static const struct kind widgets = {.group = "apps",
                                    .version = "v1",
                                    .api_version = "apps/v1",
                                    .kind = "Widget",
                                    .resource = "widgets"};

static struct object *must_create(struct store *s, const struct kind *k, const char *text)
{
    struct error err = ERROR_INIT;
    struct object *o = NULL;
    if (store_create(s, k, text, strlen(text), &o, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return o;
}

static int create(struct store *s, const struct kind *k, const char *text, struct error *err)
{
    return store_create(s, k, text, strlen(text), NULL, err);
}

static void version_is_written_in_its_place(void **state)
{
    (void)state;
    static const struct {
        const char *row, *in, *out;
    } rows[] = {
        {"behind the other members", "{\"metadata\":{\"name\":\"a\"},\"x\":1}",
         "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"},\"x\":1}"},
        {"in place of an old one", "{\"metadata\":{\"resourceVersion\":\"99\",\"name\":\"a\"}}",
         "{\"metadata\":{\"resourceVersion\":\"1\",\"name\":\"a\"}}"},
        {"in place of what is no string",
         "{\"metadata\":{\"resourceVersion\":{\"a\":[1]},\"name\":\"a\"}}",
         "{\"metadata\":{\"resourceVersion\":\"1\",\"name\":\"a\"}}"},
        {"a metadata deeper down is not meant",
         "{\"spec\":{\"metadata\":{\"resourceVersion\":\"5\"}},\"metadata\":{\"name\":\"a\"}}",
         "{\"spec\":{\"metadata\":{\"resourceVersion\":\"5\"}},\"metadata\":{\"name\":\"a\","
         "\"resourceVersion\":\"1\"}}"},
        {"nor one inside a string",
         "{\"x\":\"\\\"metadata\\\":{\",\"metadata\":{\"name\":\"a\",\"y\":\"}\\\\\"}}",
         "{\"x\":\"\\\"metadata\\\":{\",\"metadata\":{\"name\":\"a\",\"y\":\"}\\\\\","
         "\"resourceVersion\":\"1\"}}"},
        {"a member with the same beginning is another one",
         "{\"metadataX\":1,\"metadata\":{\"resourceVersions\":1,\"name\":\"a\"}}",
         "{\"metadataX\":1,\"metadata\":{\"resourceVersions\":1,\"name\":\"a\","
         "\"resourceVersion\":\"1\"}}"},
        {"blanks are no trouble", " { \"metadata\" : { \"name\" : \"a\" } } ",
         " { \"metadata\" : { \"name\" : \"a\" ,\"resourceVersion\":\"1\"} } "},
        {"numbers and literals before it",
         "{\"a\":-1.5e3,\"b\":true,\"c\":null,\"d\":[[],{}],\"metadata\":{\"name\":\"a\"}}",
         "{\"a\":-1.5e3,\"b\":true,\"c\":null,\"d\":[[],{}],\"metadata\":{\"name\":\"a\","
         "\"resourceVersion\":\"1\"}}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct store *s = store_new(10);
        struct object *o = must_create(s, &widgets, rows[i].in);
        expect_str(rows[i].row, rows[i].out, o->text);
        expect_int(rows[i].row, (int64_t)strlen(rows[i].out), (int64_t)o->text_len);
        store_free(s);
    }
    expect_done();
}

static void what_is_no_object_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *row, *text, *error;
    } rows[] = {
        {"no JSON", "{", "not JSON: byte 1: unexpected end of data"},
        {"no object", "[]", "metadata.name: Required value"},
        {"no name", "{\"metadata\":{\"namespace\":\"n\"}}", "metadata.name: Required value"},
        {"no namespace", "{\"metadata\":{\"name\":\"a\"}}", "metadata.namespace: Required value"},
        {"an empty namespace", "{\"metadata\":{\"name\":\"a\",\"namespace\":\"\"}}",
         "metadata.namespace: Required value"},
        {"a label that is a number",
         "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"labels\":{\"x\":1}}}",
         "metadata.labels: 'x' is not a string"},
        {"labels in an array",
         "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"labels\":[\"x\"]}}",
         "metadata.labels: '(element)' is not a string"},
        {"metadata under an escaped name",
         "{\"\\u006detadata\":{\"name\":\"a\",\"namespace\":\"n\"}}", "metadata: Required value"},
    };
    struct store *s = store_new(10);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error err = ERROR_INIT;
        expect_int(rows[i].row, -1, create(s, &pods, rows[i].text, &err));
        expect_str(rows[i].row, rows[i].error, err.text);
    }
    expect_int("nothing was stored", 0, (int64_t)store_count(s, &pods));
    expect_int("no version was used", 0, (int64_t)store_version(s));
    store_free(s);
    expect_done();
}

static void labels_and_fields_are_decoded(void **state)
{
    (void)state;
    struct store *s = store_new(10);
    struct object *o = must_create(
        s, &pods,
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"u\",\"labels\":{\"z\":\"1\","
        "\"a\":\"\",\"m/k\":\"x\"}},\"spec\":{\"nodeName\":\"n1\",\"replicas\":3,"
        "\"unschedulable\":true},\"status\":7}");
    expect_str("key", "n/a", o->key);
    expect_str("namespace", "n", o->ns);
    expect_str("name", "a", o->name);
    expect_str("uid", "u", o->uid);
    expect_int("labels", 3, (int64_t)o->labels.len);
    expect_str("labels are sorted", "a", o->labels.items[0].key);
    expect_str("a label", "x", labels_get(&o->labels, "m/k"));
    expect_str("an empty label", "", labels_get(&o->labels, "a"));
    expect_str("metadata.name", "a", labels_get(&o->fields, "metadata.name"));
    expect_str("metadata.namespace", "n", labels_get(&o->fields, "metadata.namespace"));
    expect_str("a string", "n1", labels_get(&o->fields, "spec.nodeName"));
    expect_str("a number", "3", labels_get(&o->fields, "spec.replicas"));
    expect_str("a boolean", "true", labels_get(&o->fields, "spec.unschedulable"));
    expect_str("a path through what is no object", "", labels_get(&o->fields, "status.phase"));
    expect_str("a field the kind does not have", NULL, labels_get(&o->fields, "spec.x"));
    o = must_create(s, &widgets, "{\"metadata\":{\"name\":\"w\",\"labels\":null}}");
    expect_str("key of a cluster object", "w", o->key);
    expect_str("its namespace", "", o->ns);
    expect_str("its uid", "", o->uid);
    expect_str("which is no field", NULL, labels_get(&o->fields, "metadata.namespace"));
    store_free(s);
    expect_done();
}

static void errors_are_the_api_servers(void **state)
{
    (void)state;
    struct store *s = store_new(10);
    struct error err = ERROR_INIT;
    const char *text = "{\"metadata\":{\"name\":\"a\"}}",
               *changed = "{\"metadata\":{\"name\":\"a\"},\"x\":1}";
    must_create(s, &widgets, text);
    expect_int("again", -1, create(s, &widgets, text, &err));
    expect_str("again", "widgets.apps \"a\" already exists", err.text);
    expect_int("again", 409, err.http_status);
    expect_int("again", ERROR_CONFLICT, err.code);
    expect_int("update of another version", -1,
               store_update(s, &widgets, changed, strlen(changed), 7, NULL, &err));
    expect_str("update of another version",
               "Operation cannot be fulfilled on widgets.apps \"a\": the object has been modified; "
               "please apply your changes to the latest version and try again",
               err.text);
    expect_int("delete of another version", -1, store_delete(s, &widgets, NULL, "a", 7, &err));
    expect_int("delete of another version", ERROR_CONFLICT, err.code);
    expect_int("delete of what is not there", -1, store_delete(s, &pods, "n", "a", 0, &err));
    expect_str("delete of what is not there", "pods \"a\" not found", err.text);
    expect_int("delete of what is not there", 404, err.http_status);
    const char *other = "{\"metadata\":{\"name\":\"b\"}}";
    expect_int("update of what is not there", -1,
               store_update(s, &widgets, other, strlen(other), 0, NULL, &err));
    expect_int("update of what is not there", ERROR_NOT_FOUND, err.code);
    expect_int("the right version", 0,
               store_update(s, &widgets, changed, strlen(changed), 1, NULL, &err));
    expect_int("delete of the right version", 0, store_delete(s, &widgets, NULL, "a", 2, &err));
    expect_int("three changes", 3, (int64_t)store_version(s));
    store_free(s);
    expect_done();
}

static void equal_but_for_the_version_changes_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *row, *text;
        bool same;
    } rows[] = {
        {"the same text", "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\"},\"x\":[1,2]}", true},
        {"with an old version",
         "{\"metadata\":{\"resourceVersion\":\"77777\",\"name\":\"a\",\"uid\":\"u\"},\"x\":[1,2]}",
         true},
        {"members in another order", "{\"x\":[1,2],\"metadata\":{\"uid\":\"u\",\"name\":\"a\"}}",
         true},
        {"elements in another order", "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\"},\"x\":[2,1]}",
         false},
        {"another value of the same length",
         "{\"metadata\":{\"name\":\"a\",\"uid\":\"v\"},\"x\":[1,2]}", false},
        {"a member more", "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\"},\"x\":[1,2],\"y\":1}",
         false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct store *s = store_new(10);
        struct object *first = must_create(s, &widgets, rows[0].text), *o = NULL;
        struct error err = ERROR_INIT;
        expect_int(rows[i].row, 0,
                   store_update(s, &widgets, rows[i].text, strlen(rows[i].text), 0, &o, &err));
        expect_int(rows[i].row, rows[i].same, o == first);
        expect_int(rows[i].row, rows[i].same ? 1 : 2, (int64_t)store_version(s));
        expect_true(rows[i].row, store_get(s, &widgets, NULL, "a") == o);
        store_free(s);
    }
    expect_done();
}

struct seen {
    struct strbuf keys;
    size_t limit;
};

static bool see(void *arg, struct object *o)
{
    struct seen *seen = arg;
    strbuf_addf(&seen->keys, "%s%s", seen->keys.len ? " " : "", o->key);
    return --seen->limit > 0;
}

static void lists_come_in_order_of_keys(void **state)
{
    (void)state;
    static const char *const names[] = {"b/x", "a/x", "a-b/x", "a.b/y", "a/w", "aa/x", "a/x0"};
    struct store *s = store_new(10);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[200];
        int ns = (int)strcspn(names[i], "/");
        str_format(text, sizeof text, "{\"metadata\":{\"namespace\":\"%.*s\",\"name\":\"%s\"}}", ns,
                   names[i], names[i] + ns + 1);
        must_create(s, &pods, text);
    }
    static const struct {
        const char *row, *ns, *after;
        size_t limit;
        const char *expected;
    } rows[] = {
        {"all, in order of bytes", NULL, NULL, 99, "a-b/x a.b/y a/w a/x a/x0 aa/x b/x"},
        {"one namespace", "a", NULL, 99, "a/w a/x a/x0"},
        {"a namespace that is not there", "c", NULL, 99, ""},
        {"a page", NULL, NULL, 2, "a-b/x a.b/y"},
        {"the next page", NULL, "a.b/y", 2, "a/w a/x"},
        {"behind a key that is gone", NULL, "a/wa", 2, "a/x a/x0"},
        {"behind the last", NULL, "b/x", 2, ""},
        {"a namespace's next page", "a", "a/w", 1, "a/x"},
        {"behind a key before the namespace", "a", "a-b/x", 1, "a/w"},
        {"behind a key after the namespace", "a", "b/x", 9, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct seen seen = {.limit = rows[i].limit};
        store_each(s, &pods, rows[i].ns, rows[i].after, see, &seen);
        expect_str(rows[i].row, rows[i].expected, strbuf_str(&seen.keys));
        strbuf_deinit(&seen.keys);
    }
    store_free(s);
    expect_done();
}

struct heard {
    struct strbuf text;
    struct store *store;
    struct store_listener listener, *other;
    int chain; /* how many objects to make in answer */
};

static void note(struct heard *h, const struct store_event *e)
{
    strbuf_addf(&h->text, "%s%c%llu:%s", h->text.len ? " " : "", "+~-"[e->change],
                (unsigned long long)e -> version, e -> object -> key);
}

static void hear(void *arg, const struct store_event *e)
{
    note(arg, e);
}

static void hear_and_answer(void *arg, const struct store_event *e)
{
    struct heard *h = arg;
    note(h, e);
    if (h->chain-- > 0) {
        char text[64];
        str_format(text, sizeof text, "{\"metadata\":{\"name\":\"answer%d\"}}", h->chain);
        must_create(h->store, &widgets, text);
    }
}

static void hear_and_leave(void *arg, const struct store_event *e)
{
    struct heard *h = arg;
    note(h, e);
    store_unlisten(h->store, h->other);
    store_unlisten(h->store, &h->listener);
}

static void listeners_hear_every_change_in_order(void **state)
{
    (void)state;
    struct store *s = store_new(10);
    struct heard first = {.store = s, .chain = 2}, second = {.store = s}, all = {.store = s};
    first.listener = (struct store_listener){&widgets, hear_and_answer, &first, NULL, NULL, 0};
    second.listener = (struct store_listener){&widgets, hear, &second, NULL, NULL, 0};
    all.listener = (struct store_listener){NULL, hear, &all, NULL, NULL, 0};
    must_create(s, &widgets, "{\"metadata\":{\"name\":\"early\"}}");
    store_listen(s, &first.listener);
    store_listen(s, &second.listener);
    store_listen(s, &all.listener);
    struct object *o = must_create(s, &widgets, "{\"metadata\":{\"name\":\"a\"}}");
    expect_str("what was created is still in hand", "a", o->name);
    must_create(s, &pods, "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\"}}");
    store_delete(s, &widgets, NULL, "a", 0, NULL);
    const char *expected = "+2:a +3:answer1 +4:answer0 -6:a";
    expect_str("who answers", expected, strbuf_str(&first.text));
    expect_str("who stands behind", expected, strbuf_str(&second.text));
    expect_str("who hears all", "+2:a +3:answer1 +4:answer0 +5:n/p -6:a", strbuf_str(&all.text));
    store_unlisten(s, &first.listener);
    store_unlisten(s, &second.listener);
    store_unlisten(s, &all.listener);

    struct heard leaver = {.store = s}, left = {.store = s}, stays = {.store = s};
    leaver.listener = (struct store_listener){&widgets, hear_and_leave, &leaver, NULL, NULL, 0};
    left.listener = (struct store_listener){&widgets, hear, &left, NULL, NULL, 0};
    stays.listener = (struct store_listener){&widgets, hear, &stays, NULL, NULL, 0};
    leaver.other = &left.listener;
    store_listen(s, &leaver.listener);
    store_listen(s, &left.listener);
    store_listen(s, &stays.listener);
    must_create(s, &widgets, "{\"metadata\":{\"name\":\"x\"}}");
    must_create(s, &widgets, "{\"metadata\":{\"name\":\"y\"}}");
    expect_str("who leaves while being told", "+7:x", strbuf_str(&leaver.text));
    expect_str("who is made to leave", "", strbuf_str(&left.text));
    expect_str("who stays", "+7:x +8:y", strbuf_str(&stays.text));
    store_unlisten(s, &stays.listener);
    struct heard *done[] = {&first, &second, &all, &leaver, &left, &stays};
    for (size_t i = 0; i < sizeof done / sizeof *done; i++)
        strbuf_deinit(&done[i]->text);
    store_free(s);
    expect_done();
}

static void history_is_bounded_by_kind(void **state)
{
    (void)state;
    struct store *s = store_new(3);
    must_create(s, &widgets, "{\"metadata\":{\"name\":\"w\"}}");
    for (int i = 0; i < 5; i++) {
        char text[100];
        str_format(text, sizeof text, "{\"metadata\":{\"namespace\":\"n\",\"name\":\"p%d\"}}", i);
        must_create(s, &pods, text);
    } /* versions 2..6; 4, 5, 6 are kept */
    static const struct {
        const char *row;
        const struct kind *kind;
        uint64_t since;
        bool known;
        const char *expected;
    } rows[] = {
        {"from now", &pods, 6, true, ""},
        {"one back", &pods, 5, true, "+6:n/p4"},
        {"all that is kept", &pods, 3, true, "+4:n/p2 +5:n/p3 +6:n/p4"},
        {"too old by one", &pods, 2, false, ""},
        {"a quiet kind from the start", &widgets, 0, true, "+1:w"},
        {"the future", &pods, 99, true, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct heard h = {0};
        expect_int(rows[i].row, rows[i].known,
                   store_replay(s, rows[i].kind, rows[i].since, hear, &h));
        expect_str(rows[i].row, rows[i].expected, strbuf_str(&h.text));
        strbuf_deinit(&h.text);
    }
    expect_int("the oldest that any kind knows", 3, (int64_t)store_oldest(s));
    store_compact(s);
    struct heard h = {0};
    expect_int("everything before is forgotten", false, store_replay(s, &widgets, 5, hear, &h));
    expect_int("but not the present", true, store_replay(s, &widgets, 6, hear, &h));
    expect_int("of a kind never seen too", false,
               store_replay(s, &(const struct kind){.resource = "x"}, 5, hear, &h));
    expect_int("oldest", 6, (int64_t)store_oldest(s));
    store_free(s);
    expect_done();
}

static void many_objects_stay_in_order(void **state)
{
    (void)state;
    struct store *s = store_new(1);
    enum { MANY = 5000 };
    char text[100], last[32] = "";
    for (size_t i = 0; i < MANY; i++) { /* every number once, in a scattered order */
        str_format(text, sizeof text, "{\"metadata\":{\"name\":\"w%05zu\"}}", i * 2477 % MANY);
        must_create(s, &widgets, text);
    }
    for (size_t i = 0; i < MANY; i += 2) {
        char name[32];
        str_format(name, sizeof name, "w%05zu", i);
        assert_int_equal(0, store_delete(s, &widgets, NULL, name, 0, NULL));
    }
    struct seen seen = {.limit = MANY};
    store_each(s, &widgets, NULL, NULL, see, &seen);
    size_t count = 0;
    for (char *at = seen.keys.ptr, *end; at; at = end, count++) {
        end = strchr(at, ' ');
        if (end)
            *end++ = '\0';
        char expected[32];
        str_format(expected, sizeof expected, "w%05zu", count * 2 + 1);
        assert_string_equal(expected, at);
        assert_true(strcmp(last, at) < 0);
        str_format(last, sizeof last, "%s", at);
    }
    assert_int_equal(MANY / 2, count);
    strbuf_deinit(&seen.keys);
    store_free(s);
}

static void objects_outlive_the_store_by_reference(void **state)
{
    (void)state;
    struct store *s = store_new(1);
    struct object *o = object_ref(must_create(s, &widgets, "{\"metadata\":{\"name\":\"a\"}}"));
    store_delete(s, &widgets, NULL, "a", 0, NULL);
    assert_null(store_get(s, &widgets, NULL, "a"));
    store_free(s);
    assert_string_equal("a", o->name);
    object_unref(o);
}

static void a_dump_can_be_loaded(void **state)
{
    (void)state;
    struct store *s = store_new(10), *copy = store_new(10);
    struct error err = ERROR_INIT;
    must_create(s, &kind_nodes,
                "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"}}");
    must_create(
        s, &kind_pods,
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"namespace\":"
        "\"d\",\"labels\":{\"a\":\"b\"}}}");
    must_create(s, &kind_nodes,
                "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"m\"}}");
    store_delete(s, &kind_nodes, NULL, "m", 0, NULL);
    struct strbuf text = {0}, second = {0};
    store_dump(s, &text);
    if (store_load(copy, strbuf_str(&text), text.len, &err) < 0)
        fail_msg("%s", err.text);
    store_dump(copy, &second);
    expect_str("the same text", strbuf_str(&text), strbuf_str(&second));
    expect_int("the same version", 4, (int64_t)store_version(copy));
    expect_int("no history", 4, (int64_t)store_oldest(copy));
    struct object *o = store_get(copy, &kind_pods, "d", "p");
    expect_true("with its version and labels",
                o && o->version == 2 && str_eq("b", labels_get(&o->labels, "a")));
    must_create(copy, &kind_nodes,
                "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"x\"}}");
    expect_int("and it goes on from there", 5, (int64_t)store_version(copy));
    expect_int("only into an empty one", -1, store_load(copy, strbuf_str(&text), text.len, &err));
    store_free(copy);
    static const struct {
        const char *row, *text, *error;
    } rows[] = {
        {"nothing", "", "the dump is empty"},
        {"no version", "{}\n", "line 1: version: Required value"},
        {"no JSON", "{\"version\":5}\n{", "line 2: not JSON: byte 1: unexpected end of data"},
        {"an unknown kind", "{\"version\":5}\n{\"apiVersion\":\"v1\",\"kind\":\"X\"}\n",
         "line 2: no such kind: v1 X"},
        {"a version from the future",
         "{\"version\":5}\n{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n\","
         "\"resourceVersion\":\"6\"}}\n",
         "line 2: n: a version outside the store's"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        copy = store_new(1);
        expect_int(rows[i].row, -1, store_load(copy, rows[i].text, strlen(rows[i].text), &err));
        expect_str(rows[i].row, rows[i].error, err.text);
        store_free(copy);
    }
    strbuf_deinit(&text);
    strbuf_deinit(&second);
    store_free(s);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version_is_written_in_its_place),
        cmocka_unit_test(what_is_no_object_is_refused),
        cmocka_unit_test(labels_and_fields_are_decoded),
        cmocka_unit_test(errors_are_the_api_servers),
        cmocka_unit_test(equal_but_for_the_version_changes_nothing),
        cmocka_unit_test(lists_come_in_order_of_keys),
        cmocka_unit_test(listeners_hear_every_change_in_order),
        cmocka_unit_test(history_is_bounded_by_kind),
        cmocka_unit_test(many_objects_stay_in_order),
        cmocka_unit_test(objects_outlive_the_store_by_reference),
        cmocka_unit_test(a_dump_can_be_loaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
