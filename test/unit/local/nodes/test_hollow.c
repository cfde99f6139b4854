// SPDX-License-Identifier: Apache-2.0
/* Hollow nodes, straight on a store. */
#include "test/local/nodes/hollow.h"

#include "test/unit/lib/base/expect.h"

#include "lib/base/json.h"

struct site {
    struct loop *loop;
    struct store *store;
    struct hollow *hollow;
};

static void start(struct site *s, const struct hollow_config *c)
{
    struct error err = ERROR_INIT;
    *s = (struct site){.store = store_new(1000)};
    if (loop_new(&s->loop, &err) < 0 || hollow_start(&s->hollow, s->loop, s->store, c, &err) < 0)
        fail_msg("%s", err.text);
}

static void stop(struct site *s)
{
    hollow_stop(s->hollow);
    store_free(s->store);
    loop_free(s->loop);
}

static const char *phase(struct site *s, const char *name)
{
    const struct object *o = store_get(s->store, &kind_pods, "default", name);
    return o ? labels_get(&o->fields, "status.phase") : NULL;
}

static void put_pod(struct site *s, bool create, const char *name, const char *node,
                    const char *phase_text)
{
    char text[500];
    struct error err = ERROR_INIT;
    str_format(
        text, sizeof text,
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\",\"namespace\":"
        "\"default\",\"uid\":\"u-%s\"},\"spec\":{\"nodeName\":\"%s\",\"containers\":[{\"name\":"
        "\"a\",\"image\":\"i\"},{\"name\":\"b\",\"image\":\"j\"}]},\"status\":{\"phase\":\"%s\"}}",
        name, name, node, phase_text);
    int rc = create ? store_create(s->store, &kind_pods, text, strlen(text), NULL, &err)
                    : store_update(s->store, &kind_pods, text, strlen(text), 0, NULL, &err);
    if (rc < 0)
        fail_msg("%s", err.text);
}

static void nodes_are_made(void **state)
{
    (void)state;
    struct site s;
    start(&s,
          &(struct hollow_config){
              .count = 3, .cpu = 8, .memory_bytes = 1 << 30, .pods = 20, .template_text = NULL});
    expect_int("count", 3, (int64_t)store_count(s.store, &kind_nodes));
    const struct object *o = store_get(s.store, &kind_nodes, NULL, "hollow-00002");
    assert_non_null(o);
    AUTO_JSON *doc = NULL;
    assert_int_equal(0, json_parse(&doc, o->text, o->text_len, NULL));
    json *allocatable = json_get(json_get(json_root(doc), "status"), "allocatable");
    expect_str("cpu", "8", json_get_str(allocatable, "cpu"));
    expect_str("memory", "1048576Ki", json_get_str(allocatable, "memory"));
    expect_str("pods", "20", json_get_str(allocatable, "pods"));
    expect_str("label", "hollow-00002", labels_get(&o->labels, "kubernetes.io/hostname"));
    expect_int("uid", 36, (int64_t)strlen(o->uid));
    expect_true("apiVersion and kind come first",
                str_starts(o->text, "{\"apiVersion\":\"v1\",\"kind\":\"Node\","));
    stop(&s);

    start(&s,
          &(struct hollow_config){
              .count = 2,
              .template_text = "{\"metadata\":{\"labels\":{\"zone\":\"z$INDEX\",\"me\":\"$NAME\","
                               "\"cost\":\"5$\"}},\"kind\":\"Node\",\"apiVersion\":\"v1\"}"});
    o = store_get(s.store, &kind_nodes, NULL, "hollow-00001");
    assert_non_null(o);
    expect_str("index", "z1", labels_get(&o->labels, "zone"));
    expect_str("name", "hollow-00001", labels_get(&o->labels, "me"));
    expect_str("any other dollar", "5$", labels_get(&o->labels, "cost"));
    expect_true("it is marked", strstr(o->text, "\"cosched.io/hollow\":\"true\"") != NULL);
    expect_true("apiVersion and kind come first",
                str_starts(o->text, "{\"apiVersion\":\"v1\",\"kind\":\"Node\","));
    struct error err = ERROR_INIT;
    struct hollow *bad;
    expect_int("a template that is no object", -1,
               hollow_start(&bad, s.loop, s.store,
                            &(struct hollow_config){.count = 3, .template_text = "[]"}, &err));
    expect_str("a template that is no object", "template of the hollow nodes: not an object",
               err.text);
    expect_int("a template that is no JSON", -1,
               hollow_start(&bad, s.loop, s.store,
                            &(struct hollow_config){.count = 3, .template_text = "{"}, &err));
    stop(&s);
    expect_done();
}

static void bound_pods_go_running(void **state)
{
    (void)state;
    struct site s;
    start(&s, &(struct hollow_config){.count = 1, .cpu = 1, .memory_bytes = 1, .pods = 1});
    put_pod(&s, true, "waits", "", "Pending");
    put_pod(&s, true, "elsewhere", "n1", "Pending");
    put_pod(&s, true, "done", "hollow-00000", "Succeeded");
    put_pod(&s, true, "born-bound", "hollow-00000", "Pending");
    put_pod(&s, true, "bound", "", "Pending");
    put_pod(&s, false, "bound", "hollow-00000", "Pending");
    put_pod(&s, true, "gone", "hollow-00000", "Pending");
    store_delete(s.store, &kind_pods, "default", "gone", 0, NULL);
    expect_str("not on the spot", "Pending", phase(&s, "bound"));
    for (int i = 0; i < 100 && !str_eq(phase(&s, "bound"), "Running"); i++)
        loop_once(s.loop, 1);
    static const struct {
        const char *name, *phase;
    } rows[] = {{"waits", "Pending"},      {"elsewhere", "Pending"}, {"done", "Succeeded"},
                {"born-bound", "Running"}, {"bound", "Running"},     {"gone", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_str(rows[i].name, rows[i].phase, phase(&s, rows[i].name));
    const struct object *o = store_get(s.store, &kind_pods, "default", "bound");
    expect_true(
        "its containers are ready",
        strstr(o->text, "{\"name\":\"b\",\"image\":\"j\",\"imageID\":\"\",\"ready\":true") != NULL);
    expect_true("it is Ready", strstr(o->text, "{\"type\":\"Ready\",\"status\":\"True\"") != NULL);
    put_pod(&s, true, "left", "hollow-00000", "Pending"); /* waits when all ends */
    stop(&s);
    expect_done();
}

/* A server that ends between a bind and the next round leaves a pod for which no event comes. */
static void pods_of_a_kept_state_go_running(void **state)
{
    (void)state;
    const struct hollow_config c = {.count = 1, .cpu = 1, .memory_bytes = 1, .pods = 1};
    struct site s;
    start(&s, &c);
    put_pod(&s, true, "bound", "hollow-00000", "Pending");
    hollow_stop(s.hollow);
    expect_str("nobody runs it", "Pending", phase(&s, "bound"));
    struct error err = ERROR_INIT;
    if (hollow_start(&s.hollow, s.loop, s.store, &c, &err) < 0)
        fail_msg("%s", err.text);
    for (int i = 0; i < 100 && !str_eq(phase(&s, "bound"), "Running"); i++)
        loop_once(s.loop, 1);
    expect_str("the next one does", "Running", phase(&s, "bound"));
    stop(&s);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_are_made),
        cmocka_unit_test(bound_pods_go_running),
        cmocka_unit_test(pods_of_a_kept_state_go_running),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
