// SPDX-License-Identifier: Apache-2.0
/* One list, then one watch with three events, from a server that knows nothing else. */
#include "webhook/informer_cache.h"

#include "test/unit/lib/base/expect.h"

#include <stdatomic.h>

#include "lib/base/clock.h"
#include "lib/base/httpd.h"
#include "lib/base/map.h"
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
static void look(struct informer_cache *w, const char *ns, const char *key, char out[64])
{
    struct rules_context context;
    informer_cache_enter(w, ns, &context);
    const char *value = "(unknown)";
    if (context.ns_labels) {
        value = labels_get(context.ns_labels, key);
        value = value ? value : "(none)";
    }
    assert_true(str_format(out, 64, "%s", value));
    informer_cache_leave(w);
}

struct fixture {
    struct httpd *api;
    struct kube_config *config;
    struct informer_cache *world;
};

static void open_world(struct fixture *f, const struct httpd_config *http, atomic_int *listed)
{
    static const struct kube_options kube = {.max_list_bytes = 1 << 20,
                                             .max_line_bytes = 1 << 20,
                                             .max_reply_bytes = 1 << 20,
                                             .max_objects = 1000,
                                             .page_size = 500,
                                             .request_timeout_ms = 10000,
                                             .watch_timeout_ms = 10000,
                                             .watch_idle_ms = 10000};
    struct error err = ERROR_INIT;
    AUTO_STRBUF text = {0};
    *f = (struct fixture){.api = NULL};
    kube_http_global_init();
    assert_int_equal(0, httpd_start(&f->api, http, &err));
    strbuf_addf(&text,
                "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
                "clusters: [{name: k, cluster: {server: \"http://127.0.0.1:%u\"}}]\n"
                "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
                "users: [{name: u, user: {token: t}}]\n",
                (unsigned)httpd_port(f->api));
    if (kube_config_parse(&f->config, text.ptr, text.len, NULL, "", false, &err) < 0 ||
        informer_cache_start(&f->world, f->config, &kube, listed ? note_listed : NULL, listed,
                             &err) < 0)
        fail_msg("%s", err.text);
}

static void close_world(struct fixture *f)
{
    informer_cache_stop(f->world);
    httpd_stop(f->api);
    kube_config_free(f->config);
    kube_http_global_cleanup();
}

static void labels_follow_the_api_server(void **state)
{
    (void)state;
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
    struct fixture f;
    atomic_int listed = 0;
    struct httpd_config http = {.address = "127.0.0.1", .handler = handle};
    open_world(&f, &http, &listed);
    struct informer_cache *n = f.world;
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
    informer_cache_stop(NULL);
    close_world(&f);
    expect_done();
}

/* ---- two PodGroups of one name, one in each API group ---------------------------------------- */

#define GROUP(name, members)                                                              \
    "{\"apiVersion\":\"x/v1alpha1\",\"kind\":\"PodGroup\",\"metadata\":{\"name\":\"" name \
    "\",\"namespace\":\"default\",\"uid\":\"u-" name                                      \
    "\",\"resourceVersion\":\"11\"},\"spec\":{\"minMember\":" members "}}"
#define EVENT(type, object) "{\"type\":\"" type "\",\"object\":" object "}\n"

static atomic_bool first_is_known, second_is_told;

/* Nothing waits in here: another request may be served by the same thread, and wait with it. A
 * watch that has nothing to tell ends, and is asked again. */
static void handle_twins(void *arg, const struct httpd_request *r, struct httpd_response *reply)
{
    (void)arg;
    bool x = str_starts(r->path, "/apis/scheduling.x-k8s.io/");
    reply->content_type = "application/json";
    if (!x && !str_starts(r->path, "/apis/scheduling.sigs.k8s.io/")) {
        reply->status = 404;
    } else if (!httpd_query(r, "watch")) {
        strbuf_addf(&reply->body, "{\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[%s]}",
                    x ? "" : GROUP("g", "3"));
    } else if (x && atomic_load(&first_is_known) && !atomic_exchange(&second_is_told, true)) {
        strbuf_adds(&reply->body, EVENT("ADDED", GROUP("g", "7")) EVENT("DELETED", GROUP("g", "7"))
                                      EVENT("ADDED", GROUP("last", "1")));
    }
}

static int32_t members_of(struct informer_cache *w, const char *key)
{
    struct rules_context context;
    informer_cache_enter(w, "default", &context);
    const struct rules_group *g = map_get(context.groups, key);
    int32_t n = g ? g->min_member : -1;
    informer_cache_leave(w);
    return n;
}

static void wait_for_group(struct informer_cache *w, const char *key)
{
    for (int64_t end = clock_mono_ms() + 20000; clock_mono_ms() < end && members_of(w, key) < 0;)
        clock_sleep_ms(5);
}

static void of_two_groups_with_one_name_the_other_stays(void **state)
{
    (void)state;
    struct httpd_config http = {.address = "127.0.0.1", .handler = handle_twins};
    struct fixture f;
    open_world(&f, &http, NULL);
    wait_for_group(f.world, "default/g");
    expect_int("the first", 3, members_of(f.world, "default/g"));
    atomic_store(&first_is_known, true);
    wait_for_group(f.world, "default/last");
    expect_int("the second came and went", 3, members_of(f.world, "default/g"));
    close_world(&f);
    expect_done();
}

/* ---- many ResourcePolicies --------------------------------------------------------------------
 * */

static bool put_policy(struct informer_cache *w, const char *ns, int i, size_t labels)
{
    AUTO_STRBUF text = {0};
    struct json_doc *doc = NULL;
    struct error err = ERROR_INIT;
    strbuf_addf(&text,
                "{\"apiVersion\":\"scheduling.alibabacloud.com/v1alpha1\",\"kind\":"
                "\"ResourcePolicy\",\"metadata\":{\"name\":\"p%d\",\"namespace\":\"%s\"},"
                "\"spec\":{\"selector\":{",
                i, ns);
    for (size_t n = 0; n < labels; n++)
        strbuf_addf(&text, "%s\"%0300zu\":\"%060d\"", n == 0 ? "" : ",", n, i);
    strbuf_adds(&text, "}}}");
    if (json_parse(&doc, text.ptr, text.len, &err) < 0)
        fail_msg("%s", err.text);
    bool kept = informer_cache_put(w, json_root(doc));
    json_free(doc);
    return kept;
}

static size_t policies_of(struct informer_cache *w, const char *ns)
{
    struct rules_context context;
    size_t bytes = 0;
    informer_cache_enter(w, ns, &context);
    for (size_t i = 0; i < context.policies_len; i++) {
        const struct rules_policy *p = context.policies[i];
        expect_str("of the namespace", ns, p->ns);
        for (size_t n = 0; n < p->selector.len; n++)
            bytes += strlen(p->selector.items[n].key) + strlen(p->selector.items[n].value);
    }
    expect_true("bounded", bytes <= INFORMER_CACHE_POLICY_BYTES);
    size_t len = context.policies_len;
    informer_cache_leave(w);
    return len;
}

static void each_namespace_has_room_for_its_policies(void **state)
{
    (void)state;
    struct informer_cache *w = informer_cache_new();
    put_policy(w, "few", 0, 2);
    for (int i = 0; i < 100; i++)
        put_policy(w, "many", i, 64);
    size_t many = policies_of(w, "many");
    expect_true("many, but not all", many > 20 && many < 60);
    expect_int("another's", 1, (int64_t)policies_of(w, "few"));
    put_policy(w, "few", 0, 1);
    put_policy(w, "few", 1, 0);
    expect_int("one replaced, one new", 2, (int64_t)policies_of(w, "few"));
    put_policy(w, "many", 0, 1);
    expect_int("replaced by a smaller one", (int64_t)many, (int64_t)policies_of(w, "many"));
    put_policy(w, "many", 100, 64);
    expect_int("which makes room", (int64_t)many + 1, (int64_t)policies_of(w, "many"));
    expect_true("a selector that no scheduler takes", !put_policy(w, "few", 2, 65));
    expect_int("none", 0, (int64_t)policies_of(w, "none"));
    informer_cache_stop(w);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(labels_follow_the_api_server),
        cmocka_unit_test(of_two_groups_with_one_name_the_other_stays),
        cmocka_unit_test(each_namespace_has_room_for_its_policies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
