// SPDX-License-Identifier: Apache-2.0
/* One list, then one watch with three events, from a server that knows nothing else. */
#include "webhook/world.h"

#include "test/unit/lib/base/expect.h"

#include <stdatomic.h>

#include "lib/base/clock.h"
#include "lib/base/httpd.h"
#include "lib/base/str.h"
#include "lib/kube/http.h"

#define NS(name, version, labels)                                                  \
    "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"" name \
    "\",\"uid\":\"u-" name "\",\"resourceVersion\":\"" version "\",\"labels\":" labels "}}"

static atomic_int watches;

static void handle(void *arg, const struct httpd_request *r, struct httpd_response *reply)
{
    (void)arg;
    reply->content_type = "application/json";
    if (!str_eq(r->path, "/api/v1/namespaces")) {
        reply->status = 404;
    } else if (!httpd_query(r, "watch")) {
        strbuf_adds(
            &reply->body,
            "{\"kind\":\"NamespaceList\",\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[" NS("stays", "1", "{\"cosched.io/inject\":\"enabled\",\"a\":\"b\"}") "," NS(
                "changes", "2",
                "{\"cosched.io/inject\":\"enabled\"}") "," NS("goes", "3",
                                                              "{}") "," NS("spoiled", "4",
                                                                           "{\"a\":1}") "]}");
    } else if (atomic_fetch_add(&watches, 1) == 0) {
        strbuf_adds(
            &reply->body,
            "{\"type\":\"MODIFIED\",\"object\":" NS(
                "changes", "11",
                "{\"cosched.io/inject\":\"disabled\"}") "}\n"
                                                        "{\"type\":\"DELETED\",\"object\":" NS(
                                                            "goes", "12",
                                                            "{}") "}\n"
                                                                  "{\"type\":\"ADDED\",\"object\":" NS(
                                                                      "comes", "13",
                                                                      "{\"x\":\"y\"}") "}\n");
    }
}

static void note_listed(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
}

/* The value, "(none)" without the label, "(unknown)" without the namespace. */
static void look(struct world *w, const char *ns, const char *key, char out[64])
{
    struct rules_context context;
    world_enter(w, ns, &context);
    const char *value = "(unknown)";
    if (context.ns_labels) {
        value = labels_get(context.ns_labels, key);
        value = value ? value : "(none)";
    }
    assert_true(str_format(out, 64, "%s", value));
    world_leave(w);
}

static void labels_follow_the_api_server(void **state)
{
    (void)state;
    static const struct kube_options kube = {.max_list_bytes = 1 << 20,
                                             .max_line_bytes = 1 << 20,
                                             .max_reply_bytes = 1 << 20,
                                             .max_objects = 1000,
                                             .page_size = 500,
                                             .request_timeout_ms = 10000,
                                             .watch_timeout_ms = 10000,
                                             .watch_idle_ms = 10000};
    static const struct {
        const char *row, *ns, *key, *expected;
    } rows[] = {
        {"as listed", "stays", "cosched.io/inject", "enabled"},
        {"every label", "stays", "a", "b"},
        {"a label that is not there", "stays", "c", "(none)"},
        {"changed by the watch", "changes", "cosched.io/inject", "disabled"},
        {"deleted by the watch", "goes", "a", "(unknown)"},
        {"added by the watch", "comes", "x", "y"},
        {"what cannot be decoded is not known", "spoiled", "a", "(unknown)"},
        {"never heard of", "other", "a", "(unknown)"},
    };
    struct error err = ERROR_INIT;
    struct httpd *api = NULL;
    struct kube_config *config = NULL;
    struct world *n = NULL;
    atomic_int listed = 0;
    AUTO_STRBUF text;
    strbuf_init(&text);
    kube_http_global_init();
    struct httpd_config http = {.address = "127.0.0.1", .handler = handle};
    assert_int_equal(0, httpd_start(&api, &http, &err));
    strbuf_addf(&text,
                "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                "clusters: [{name: k, cluster: {server: \"http://127.0.0.1:%u\"}}]\n"
                "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
                "users: [{name: u, user: {token: t}}]\n",
                (unsigned)httpd_port(api));
    if (kube_config_parse(&config, text.ptr, text.len, NULL, "", false, &err) < 0 ||
        world_start(&n, config, &kube, note_listed, &listed, &err) < 0)
        fail_msg("%s", err.text);
    char got[64] = "";
    for (int64_t end = clock_mono_ms() + 20000; clock_mono_ms() < end && !str_eq(got, "y");) {
        clock_sleep_ms(5);
        look(n, "comes", "x", got); /* the last event */
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        look(n, rows[i].ns, rows[i].key, got);
        expect_str(rows[i].row, rows[i].expected, got);
    }
    expect_true("listed", atomic_load(&listed) > 0);
    world_stop(n);
    world_stop(NULL);
    httpd_stop(api);
    kube_config_free(config);
    kube_http_global_cleanup();
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(labels_follow_the_api_server)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
