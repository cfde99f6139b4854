// SPDX-License-Identifier: Apache-2.0
/*
 * Discovery, asked as kubectl asks. struct call is the server's; here it is a question and the
 * place for its answer.
 */
#include "test/local/kinds/discovery.h"

#include "lib/base/json.h"
#include "test/local/kinds/kinds.h"
#include "test/local/kinds/protobody_wire.h"
#include "test/unit/lib/base/expect.h"

struct call {
    const char *method, *path, *accept, *query;
    int replies, status;
    char type[128];
    struct strbuf body;
};

const char *call_method(const struct call *c)
{
    return c->method;
}

const char *call_path(const struct call *c)
{
    return c->path;
}

const char *call_query(const struct call *c, const char *name)
{
    return str_eq(name, c->query) ? "" : NULL;
}

const char *call_header(const struct call *c, const char *name)
{
    return str_eq(name, "Accept") ? c->accept : NULL;
}

void call_reply(struct call *c, int status, const char *content_type, const char *extra_headers,
                struct strbuf *body)
{
    (void)extra_headers;
    c->replies++;
    c->status = status;
    str_format(c->type, sizeof c->type, "%s", content_type);
    strbuf_add(&c->body, strbuf_str(body), body->len);
    strbuf_deinit(body);
}

/* Asks, checks that there was one answer in good form, and gives the document. */
static struct json_doc *ask(struct call *c, const char *path, const char *accept)
{
    *c = (struct call){.method = "GET", .path = path, .accept = accept};
    struct json_doc *doc = NULL;
    struct error err = ERROR_INIT;
    expect_true(path, discovery_handle(c));
    expect_int(path, 1, c->replies);
    expect_int(path, 200, c->status);
    if (json_parse(&doc, strbuf_str(&c->body), c->body.len, &err) < 0)
        fail_msg("%s: not JSON: %s", path, err.text);
    strbuf_deinit(&c->body);
    return doc;
}

static json *named(json *list, const char *key, const char *name)
{
    for (struct json_iter it = json_iter(list); json_next(&it);)
        if (str_eq(json_get_str(it.value, key), name))
            return it.value;
    return NULL;
}

static void every_kind_is_found_by_the_way_of_old_clients(void **state)
{
    (void)state;
    struct call c;
    AUTO_JSON *core = ask(&c, "/api", "application/json, */*");
    expect_str("/api", "APIVersions", json_get_str(json_root(core), "kind"));
    expect_str("the core's version", "v1",
               json_str(json_at(json_get(json_root(core), "versions"), 0)));
    expect_str("plain JSON", "application/json", c.type);
    AUTO_JSON *groups = ask(&c, "/apis", NULL);
    for (size_t i = 0; kinds_all[i]; i++) {
        const struct kind *k = kinds_all[i];
        char path[128];
        if (*k->group) {
            json *group = named(json_get(json_root(groups), "groups"), "name", k->group);
            json *preferred = json_get(group, "preferredVersion");
            expect_str(k->group, k->api_version, json_get_str(preferred, "groupVersion"));
            str_format(path, sizeof path, "/apis/%s", k->group);
            AUTO_JSON *alone = ask(&c, path, NULL);
            expect_str(path, "APIGroup", json_get_str(json_root(alone), "kind"));
        }
        str_format(path, sizeof path, "/%s/%s", *k->group ? "apis" : "api", k->api_version);
        AUTO_JSON *doc = ask(&c, path, NULL);
        json *resources = json_get(json_root(doc), "resources");
        json *r = named(resources, "name", k->resource);
        expect_str(path, k->api_version, json_get_str(json_root(doc), "groupVersion"));
        expect_str(k->resource, k->kind, json_get_str(r, "kind"));
        expect_str(k->resource, k->singular, json_get_str(r, "singularName"));
        expect_int(k->resource, k->namespaced, json_get_bool(r, "namespaced", !k->namespaced));
        expect_true(k->resource, json_len(json_get(r, "verbs")) > 0);
        char sub[128];
        str_format(sub, sizeof sub, "%s/status", k->resource);
        expect_int(sub, k->has_status, named(resources, "name", sub) != NULL);
        str_format(sub, sizeof sub, "%s/scale", k->resource);
        expect_int(sub, k->has_scale, named(resources, "name", sub) != NULL);
    }
    expect_done();
}

static void pods_have_their_subresources(void **state)
{
    (void)state;
    struct call c;
    AUTO_JSON *doc = ask(&c, "/api/v1/", NULL);
    json *resources = json_get(json_root(doc), "resources");
    json *eviction = named(resources, "name", "pods/eviction");
    expect_str("an eviction is of another group", "policy", json_get_str(eviction, "group"));
    expect_str("and kind", "Eviction", json_get_str(eviction, "kind"));
    json *binding = named(resources, "name", "pods/binding");
    expect_str("a binding", "Binding", json_get_str(binding, "kind"));
    expect_true("of the same group", !json_get(binding, "group"));
    expect_int("is only created", 1, (int64_t)json_len(json_get(binding, "verbs")));
    json *pods = named(resources, "name", "pods");
    expect_str("short name", "po", json_str(json_at(json_get(pods, "shortNames"), 0)));
    expect_str("category", "all", json_str(json_at(json_get(pods, "categories"), 0)));
    expect_done();
}

#define AGGREGATED                                                          \
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," \
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"

static void new_clients_get_all_in_one(void **state)
{
    (void)state;
    struct call c;
    AUTO_JSON *core = ask(&c, "/api", AGGREGATED);
    expect_str("its type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
               c.type);
    AUTO_JSON *groups = ask(&c, "/apis", AGGREGATED);
    for (size_t i = 0; kinds_all[i]; i++) {
        const struct kind *k = kinds_all[i];
        json *items = json_get(json_root(*k->group ? groups : core), "items");
        json *group = NULL;
        for (struct json_iter it = json_iter(items); json_next(&it);)
            if (str_eq(str_or_empty(json_get_str(json_get(it.value, "metadata"), "name")),
                       k->group))
                group = it.value;
        json *version = named(json_get(group, "versions"), "version", k->version);
        json *r = named(json_get(version, "resources"), "resource", k->resource);
        expect_str(k->resource, k->kind, json_get_str(json_get(r, "responseKind"), "kind"));
        expect_str(k->resource, k->namespaced ? "Namespaced" : "Cluster", json_get_str(r, "scope"));
        json *status = named(json_get(r, "subresources"), "subresource", "status");
        expect_int(k->resource, k->has_status, status != NULL);
    }
    expect_int("one core group", 1, (int64_t)json_len(json_get(json_root(core), "items")));
    AUTO_JSON *beta = ask(&c, "/apis",
                          "application/json;g=apidiscovery.k8s.io;v=v2beta1;as="
                          "APIGroupDiscoveryList,application/json");
    expect_str("who knows only the beta gets the plain form", "APIGroupList",
               json_get_str(json_root(beta), "kind"));
    expect_done();
}

static void open_api_says_that_the_server_validates(void **state)
{
    (void)state;
    struct call c;
    AUTO_JSON *index = ask(&c, "/openapi/v3", NULL);
    json *paths = json_get(json_root(index), "paths");
    expect_str("where to look", "/openapi/v3/apis/apps/v1",
               json_get_str(json_get(paths, "apis/apps/v1"), "serverRelativeURL"));
    for (struct json_iter it = json_iter(paths); json_next(&it);) {
        AUTO_JSON *doc = ask(&c, json_get_str(it.value, "serverRelativeURL"), NULL);
        expect_true(it.key, json_len(json_get(json_root(doc), "paths")) > 0);
    }
    AUTO_JSON *apps = ask(&c, "/openapi/v3/apis/apps/v1", NULL);
    json *path = json_get(json_get(json_root(apps), "paths"),
                          "/apis/apps/v1/namespaces/{namespace}/deployments/{name}");
    json *patch = json_get(path, "patch");
    expect_true("PATCH takes fieldValidation",
                named(json_get(patch, "parameters"), "name", "fieldValidation") != NULL);
    expect_true("and dryRun", named(json_get(patch, "parameters"), "name", "dryRun") != NULL);
    expect_str("of the kind", "Deployment",
               json_get_str(json_get(patch, "x-kubernetes-group-version-kind"), "kind"));
    expect_done();
}

/* The next field with that number, from *at on; false: there is none. */
static bool next_field(struct protobody_span *at, uint32_t number, struct protobody_span *out)
{
    struct error err = ERROR_INIT;
    while (at->n > 0) {
        struct protobody_piece p = {0};
        if (protobody_wire_piece(at, &p, &err) < 0)
            fail_msg("not protobuf: %s", err.text);
        if (p.number == number) {
            *out = p.bytes;
            return true;
        }
    }
    return false;
}

/* The field at the end of a way of numbers, the first one at each; empty where there is none. */
static struct protobody_span field_at(struct protobody_span m, const unsigned char *way)
{
    for (; *way; way++) {
        struct protobody_span inside = {"", 0};
        (void)next_field(&m, *way, &inside);
        m = inside;
    }
    return m;
}

static bool span_is(struct protobody_span s, const char *text)
{
    return s.n == strlen(text) && memcmp(s.at, text, s.n) == 0;
}

/* What kubectl 1.20 to 1.26 do before --dry-run=server, with the numbers of gnostic's openapi.v2:
 * the path whose PATCH has an extension that names the kind, and in it the parameter. 1: it is
 * there; 0: not in that path; -1: no such path. */
static int old_kubectl_finds(struct protobody_span document, const struct kind *k,
                             const char *parameter)
{
    struct protobody_span paths = field_at(document, (const unsigned char[]){8, 0}), path;
    while (next_field(&paths, 2, &path)) {
        struct protobody_span patch = field_at(path, (const unsigned char[]){2, 8, 0});
        struct protobody_span extension = field_at(patch, (const unsigned char[]){13, 0});
        struct protobody_span yaml = field_at(extension, (const unsigned char[]){2, 2, 0});
        struct error err = ERROR_INIT;
        AUTO_JSON *name = NULL;
        if (!span_is(field_at(extension, (const unsigned char[]){1, 0}),
                     "x-kubernetes-group-version-kind") ||
            json_parse(&name, yaml.at, yaml.n, &err) < 0)
            continue;
        if (!str_eq(json_get_str(json_root(name), "group"), k->group) ||
            !str_eq(json_get_str(json_root(name), "version"), k->version) ||
            !str_eq(json_get_str(json_root(name), "kind"), k->kind))
            continue;
        struct protobody_span item;
        while (next_field(&patch, 8, &item))
            if (span_is(field_at(item, (const unsigned char[]){1, 2, 3, 4, 0}), parameter))
                return 1;
        return 0;
    }
    return -1;
}

static void open_api_says_to_old_clients_that_a_trial_is_possible(void **state)
{
    (void)state;
    struct call c = {.method = "GET",
                     .path = "/openapi/v2",
                     .accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"};
    expect_true("v2 as protobuf", discovery_handle(&c));
    expect_str("its type", "application/com.github.proto-openapi.spec.v2.v1.0+protobuf", c.type);
    struct protobody_span document = {strbuf_str(&c.body), c.body.len};
    expect_true("its version", span_is(field_at(document, (const unsigned char[]){1, 0}), "2.0"));
    expect_true("its title",
                span_is(field_at(document, (const unsigned char[]){2, 1, 0}), "cosched-local"));
    expect_int("nothing to check a manifest against", 0,
               (int64_t)field_at(document, (const unsigned char[]){9, 0}).n);
    for (size_t i = 0; kinds_all[i]; i++) {
        const struct kind *k = kinds_all[i];
        /* What cannot be patched has no such path, and old clients say so: a Binding. */
        int there = kinds_has_verb(k, "patch") ? 1 : -1;
        expect_int(k->resource, there, old_kubectl_finds(document, k, "dryRun"));
        expect_int(k->resource, there, old_kubectl_finds(document, k, "fieldValidation"));
    }
    expect_int("another parameter is none", 0, old_kubectl_finds(document, &kind_pods, "dry"));
    expect_int("a Binding is not patched", -1,
               old_kubectl_finds(document, &kind_bindings, "dryRun"));
    strbuf_deinit(&c.body);
    expect_done();
}

static void health_and_version(void **state)
{
    (void)state;
    struct call c;
    AUTO_JSON *version = ask(&c, "/version", NULL);
    expect_str("major", "1", json_get_str(json_root(version), "major"));
    expect_true("git version", str_starts(json_get_str(json_root(version), "gitVersion"), "v1."));
    static const char *const paths[] = {"/healthz", "/livez", "/readyz"};
    for (size_t i = 0; i < 3; i++) {
        struct call plain = {.method = "GET", .path = paths[i]};
        expect_true(paths[i], discovery_handle(&plain));
        expect_str(paths[i], "ok", strbuf_str(&plain.body));
        strbuf_deinit(&plain.body);
    }
    expect_done();
}

static void other_paths_are_left_to_others(void **state)
{
    (void)state;
    static const struct call rows[] = {
        {.method = "GET", .path = "/api/v1/pods"},
        {.method = "GET", .path = "/api/v2"},
        {.method = "GET", .path = "/apis/nope"},
        {.method = "GET", .path = "/apis/apps/v2"},
        {.method = "GET",
         .path = "/apis/"
                 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
        {.method = "GET", .path = "/openapi/v3/apis/nope/v1"},
        {.method = "GET", .path = "/openapi/v3/"},
        {.method = "GET", .path = "/nope"},
        {.method = "GET", .path = ""},
        {.method = "GET", .path = "api"},
        {.method = "POST", .path = "/version"},
        {.method = "DELETE", .path = "/apis"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct call c = rows[i];
        /* "/openapi/v3/" is the index, written with a slash at its end. */
        bool ours = str_eq(c.path, "/openapi/v3/");
        expect_int(c.path, ours, discovery_handle(&c));
        expect_int(c.path, ours, c.replies);
        strbuf_deinit(&c.body);
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_found_by_the_way_of_old_clients),
        cmocka_unit_test(pods_have_their_subresources),
        cmocka_unit_test(new_clients_get_all_in_one),
        cmocka_unit_test(open_api_says_that_the_server_validates),
        cmocka_unit_test(open_api_says_to_old_clients_that_a_trial_is_possible),
        cmocka_unit_test(health_and_version),
        cmocka_unit_test(other_paths_are_left_to_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
