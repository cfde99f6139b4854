// SPDX-License-Identifier: Apache-2.0
/*
 * discovery - the versions, groups and kinds that a client reads first, printed from the table of
 * kinds.
 *
 * There are two forms: one document per group and version, which Debian 12's kubectl reads one by
 * one; and all in one (APIGroupDiscoveryList), which newer clients request in their Accept header.
 *
 * OpenAPI is in discovery_openapi.c.
 */
#include "test/local/kinds/discovery.h"

#include "lib/base/json.h"
#include "test/local/kinds/discovery_internal.h"
#include "test/local/kinds/kinds.h"

static const char *const change_verbs[] = {"get", "patch", "update", NULL};

static void reply(struct call *c, struct strbuf *body)
{
    call_reply(c, 200, "application/json", NULL, body);
}

static void put_words(struct json_writer *w, const char *key, const char *const *words)
{
    if (!words)
        return;
    json_key(w, key);
    json_array_begin(w);
    for (; *words; words++)
        json_put_str(w, *words);
    json_array_end(w);
}

/* Every subresource of a kind, in order of name: fn gets a kind_sub. */
static void each_sub(const struct kind *k,
                     void (*fn)(void *, const struct kind *, const struct kind_sub *), void *arg)
{
    static const struct kind_sub scale = {"scale", "autoscaling", "v1", "Scale", change_verbs};
    const struct kind_sub status = {"status", NULL, NULL, k->kind, change_verbs};
    for (const struct kind_sub *s = k->subs; s && s->name; s++)
        fn(arg, k, s);
    if (k->has_scale)
        fn(arg, k, &scale);
    if (k->has_status)
        fn(arg, k, &status);
}

/* ---- one document per group and version ---- */

static void put_sub_resource(void *arg, const struct kind *k, const struct kind_sub *s)
{
    struct json_writer *w = arg;
    char name[128];
    str_format(name, sizeof name, "%s/%s", k->resource, s->name);
    json_object_begin(w);
    json_kv_str(w, "name", name);
    json_kv_str(w, "singularName", "");
    json_kv_bool(w, "namespaced", k->namespaced);
    if (s->group) {
        json_kv_str(w, "group", s->group);
        json_kv_str(w, "version", s->version);
    }
    json_kv_str(w, "kind", s->kind);
    put_words(w, "verbs", s->verbs);
    json_object_end(w);
}

static void print_resources(size_t first, struct strbuf *out)
{
    const struct kind *version = kinds_all[first];
    struct json_writer w;
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_kv_str(&w, "kind", "APIResourceList");
    json_kv_str(&w, "apiVersion", "v1");
    json_kv_str(&w, "groupVersion", version->api_version);
    json_key(&w, "resources");
    json_array_begin(&w);
    for (size_t i = first; discovery_same_version(version, kinds_all[i]); i++) {
        const struct kind *k = kinds_all[i];
        json_object_begin(&w);
        json_kv_str(&w, "name", k->resource);
        json_kv_str(&w, "singularName", k->singular);
        json_kv_bool(&w, "namespaced", k->namespaced);
        json_kv_str(&w, "kind", k->kind);
        put_words(&w, "verbs", k->verbs ? k->verbs : kinds_verbs);
        put_words(&w, "shortNames", k->short_names);
        put_words(&w, "categories", k->categories);
        json_object_end(&w);
        each_sub(k, put_sub_resource, &w);
    }
    json_array_end(&w);
    json_object_end(&w);
}

static void put_group(struct json_writer *w, const struct kind *k, bool alone)
{
    json_object_begin(w);
    if (alone) {
        json_kv_str(w, "kind", "APIGroup");
        json_kv_str(w, "apiVersion", "v1");
    }
    json_kv_str(w, "name", k->group);
    json_key(w, "versions");
    json_array_begin(w);
    json_object_begin(w);
    json_kv_str(w, "groupVersion", k->api_version);
    json_kv_str(w, "version", k->version);
    json_object_end(w);
    json_array_end(w);
    json_key(w, "preferredVersion");
    json_object_begin(w);
    json_kv_str(w, "groupVersion", k->api_version);
    json_kv_str(w, "version", k->version);
    json_object_end(w);
    json_object_end(w);
}

static void print_groups(struct strbuf *out)
{
    struct json_writer w;
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_kv_str(&w, "kind", "APIGroupList");
    json_kv_str(&w, "apiVersion", "v1");
    json_key(&w, "groups");
    json_array_begin(&w);
    for (size_t i = 0; kinds_all[i]; i++)
        if (discovery_begins_version(i) && *kinds_all[i]->group)
            put_group(&w, kinds_all[i], false);
    json_array_end(&w);
    json_object_end(&w);
}

/* The real server says under which address it is known; a client behind a proxy never needs it. */
static void print_core_versions(struct strbuf *out)
{
    struct json_writer w;
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_kv_str(&w, "kind", "APIVersions");
    json_key(&w, "versions");
    json_array_begin(&w);
    json_put_str(&w, "v1");
    json_array_end(&w);
    json_key(&w, "serverAddressByClientCIDRs");
    json_array_begin(&w);
    json_array_end(&w);
    json_object_end(&w);
}

/* ---- all in one ---- */

static void put_response_kind(struct json_writer *w, const char *group, const char *version,
                              const char *kind)
{
    json_key(w, "responseKind");
    json_object_begin(w);
    json_kv_str(w, "group", str_or_empty(group));
    json_kv_str(w, "version", str_or_empty(version));
    json_kv_str(w, "kind", kind);
    json_object_end(w);
}

static void put_sub_aggregated(void *arg, const struct kind *k, const struct kind_sub *s)
{
    struct json_writer *w = arg;
    (void)k;
    json_object_begin(w);
    json_kv_str(w, "subresource", s->name);
    put_response_kind(w, s->group, s->version, s->kind);
    put_words(w, "verbs", s->verbs);
    json_object_end(w);
}

static void put_aggregated_kind(struct json_writer *w, const struct kind *k)
{
    json_object_begin(w);
    json_kv_str(w, "resource", k->resource);
    put_response_kind(w, "", "", k->kind);
    json_kv_str(w, "scope", k->namespaced ? "Namespaced" : "Cluster");
    json_kv_str(w, "singularResource", k->singular);
    put_words(w, "verbs", k->verbs ? k->verbs : kinds_verbs);
    put_words(w, "shortNames", k->short_names);
    put_words(w, "categories", k->categories);
    if (k->subs || k->has_status || k->has_scale) {
        json_key(w, "subresources");
        json_array_begin(w);
        each_sub(k, put_sub_aggregated, w);
        json_array_end(w);
    }
    json_object_end(w);
}

static void print_aggregated(bool core, struct strbuf *out)
{
    struct json_writer w;
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_kv_str(&w, "kind", "APIGroupDiscoveryList");
    json_kv_str(&w, "apiVersion", "apidiscovery.k8s.io/v2");
    json_key(&w, "metadata");
    json_put_raw(&w, "{}", 2);
    json_key(&w, "items");
    json_array_begin(&w);
    for (size_t first = 0; kinds_all[first]; first++) {
        const struct kind *version = kinds_all[first];
        if (!discovery_begins_version(first) || core != !*version->group)
            continue;
        json_object_begin(&w);
        json_key(&w, "metadata");
        json_object_begin(&w);
        if (!core)
            json_kv_str(&w, "name", version->group);
        json_object_end(&w);
        json_key(&w, "versions");
        json_array_begin(&w);
        json_object_begin(&w);
        json_kv_str(&w, "version", version->version);
        json_key(&w, "resources");
        json_array_begin(&w);
        for (size_t i = first; discovery_same_version(version, kinds_all[i]); i++)
            put_aggregated_kind(&w, kinds_all[i]);
        json_array_end(&w);
        json_kv_str(&w, "freshness", "Current");
        json_object_end(&w);
        json_array_end(&w);
        json_object_end(&w);
    }
    json_array_end(&w);
    json_object_end(&w);
}

static bool wants_aggregated(const struct call *c)
{
    const char *accept = call_header(c, "Accept");
    return accept && strstr(accept, "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
}

static void reply_aggregated(struct call *c, bool core, struct strbuf *body)
{
    print_aggregated(core, body);
    call_reply(c, 200, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
               "Vary: Accept\r\n", body);
}

/* ---- version, health ---- */

#if defined(__x86_64__)
#define MACHINE "amd64"
#elif defined(__aarch64__)
#define MACHINE "arm64"
#else
#define MACHINE "unknown"
#endif

/* The Kubernetes whose behaviour this server follows. */
static const char version_text[] =
    "{\"major\":\"1\",\"minor\":\"36\",\"gitVersion\":\"v1.36.4+cosched-local\",\"gitCommit\":\"\","
    "\"gitTreeState\":\"clean\",\"buildDate\":\"1970-01-01T00:00:00Z\",\"goVersion\":\"none\","
    "\"compiler\":\"c\",\"platform\":\"linux/" MACHINE "\"}";

/* Debian 12's kubectl asks for protobuf, and for nothing else; newer ones do not ask. */
static void reply_open_api_v2(struct call *c, struct strbuf *body)
{
    discovery_openapi_v2(body);
    call_reply(c, 200, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf", NULL, body);
}

/* ---- which path is which ---- */

/* Where the kinds of "api/v1" or "apis/G/V" begin in the table; false: there is no such version. */
static bool find_version(const char *path, size_t *first)
{
    AUTO_STRBUF prefix = {0};
    for (size_t i = 0; kinds_all[i]; i++) {
        if (!discovery_begins_version(i))
            continue;
        strbuf_reset(&prefix);
        discovery_add_prefix(&prefix, kinds_all[i]);
        if (str_eq(path, strbuf_str(&prefix))) {
            *first = i;
            return true;
        }
    }
    return false;
}

static const struct kind *find_group(const char *group)
{
    for (size_t i = 0; kinds_all[i]; i++)
        if (*group && str_eq(kinds_all[i]->group, group))
            return kinds_all[i];
    return NULL;
}

/* false: not a path of ours, and nothing was answered. */
static bool answer(struct call *c, const char *path)
{
    static const char group_prefix[] = "/apis/", open_api_prefix[] = "/openapi/v3/";
    AUTO_STRBUF body = {0};
    size_t first;
    if (str_eq(path, "/version")) {
        strbuf_adds(&body, version_text);
        reply(c, &body);
    } else if (str_eq(path, "/healthz") || str_eq(path, "/livez") || str_eq(path, "/readyz")) {
        strbuf_adds(&body, "ok");
        call_reply(c, 200, "text/plain; charset=utf-8", NULL, &body);
    } else if (str_eq(path, "/api") || str_eq(path, "/apis")) {
        bool core = str_eq(path, "/api");
        if (wants_aggregated(c)) {
            reply_aggregated(c, core, &body);
        } else {
            (core ? print_core_versions : print_groups)(&body);
            reply(c, &body);
        }
    } else if (str_eq(path, "/openapi/v2")) {
        reply_open_api_v2(c, &body);
    } else if (str_eq(path, "/openapi/v3")) {
        discovery_openapi_index(&body);
        reply(c, &body);
    } else if (str_starts(path, open_api_prefix) &&
               find_version(path + sizeof open_api_prefix - 1, &first)) {
        discovery_openapi_version(first, &body);
        reply(c, &body);
    } else if (find_version(path + 1, &first)) {
        print_resources(first, &body);
        reply(c, &body);
    } else if (str_starts(path, group_prefix) && find_group(path + sizeof group_prefix - 1)) {
        struct json_writer w;
        json_writer_init(&w, &body);
        put_group(&w, find_group(path + sizeof group_prefix - 1), true);
        reply(c, &body);
    } else {
        return false;
    }
    return true;
}

bool discovery_handle(struct call *c)
{
    const char *method = call_method(c);
    char path[256];
    /* "/apis/apps/" is "/apis/apps"; longer than any of ours is none of ours. */
    if (!str_format(path, sizeof path, "%s", call_path(c)) || path[0] != '/')
        return false;
    size_t n = strlen(path);
    if (n > 1 && path[n - 1] == '/')
        path[n - 1] = '\0';
    if (!str_eq(method, "GET") && !str_eq(method, "HEAD"))
        return false;
    return answer(c, path);
}
