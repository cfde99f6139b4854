// SPDX-License-Identifier: Apache-2.0
/*
 * Rules of the API that are easy to get wrong: options of lists and watches, what a deletion
 * changes, which kinds a PUT may create, what a body may hold. Every answer was compared with
 * Kubernetes 1.36; test/integration/suite_api.py runs on both.
 */
#include "test/unit/local/api_world.h"

#define OPTIONS "ListOptions.meta.k8s.io \"\" is invalid: "
#define FORBIDDEN OPTIONS "resourceVersionMatch: Forbidden: "
#define JOBS "/apis/batch/v1/namespaces/default/jobs"
#define LEASES "/apis/coordination.k8s.io/v1/namespaces/default/leases"

static void make_map(struct world *w, const char *name)
{
    char body[128];
    (void)str_format(body, sizeof body, "{\"metadata\":{\"name\":\"%s\"},\"data\":{\"a\":\"1\"}}",
                     name);
    done(w, 201, "POST", MAPS, J, body);
}

static void options_of_lists_and_watches(void **state)
{
    struct world *w = *state;
    static const struct refusal rows[] = {
        {"GET", MAPS "?limit=", NULL, NULL, 400, "strconv.ParseInt: parsing \"\": invalid syntax",
         "BadRequest", NULL},
        {"GET", MAPS "?limit=99999999999999999999", NULL, NULL, 400,
         "strconv.ParseInt: parsing \"99999999999999999999\": value out of range", "BadRequest",
         NULL},
        {"GET", MAPS "?timeoutSeconds=x", NULL, NULL, 400,
         "strconv.ParseInt: parsing \"x\": invalid syntax", "BadRequest", NULL},
        {"GET", MAPS "?sendInitialEvents=true", NULL, NULL, 422,
         OPTIONS "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list", "Invalid",
         "*"},
        {"GET", MAPS "?continue=x&resourceVersionMatch=Exact", NULL, NULL, 422,
         OPTIONS "[resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless "
                 "resourceVersion is provided, resourceVersionMatch: Forbidden: "
                 "resourceVersionMatch is forbidden when continue is provided]",
         "Invalid", "*"},
        {"GET", MAPS "?watch=1&resourceVersionMatch=x", NULL, NULL, 422,
         OPTIONS "[resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch "
                 "unless sendInitialEvents is provided, resourceVersionMatch: Unsupported value: "
                 "\"x\": supported values: \"NotOlderThan\"]",
         "Invalid", "*"},
        {"GET", MAPS "?watch=1&sendInitialEvents=true", NULL, NULL, 422,
         FORBIDDEN "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
         "Invalid", "*"},
        {"GET", MAPS "?watch=1&continue=abc", NULL, NULL, 422,
         FORBIDDEN "resourceVersionMatch is forbidden when continue is provided", "Invalid", "*"},
        {"GET", MAPS "?watch=1&limit=x", NULL, NULL, 400,
         "strconv.ParseInt: parsing \"x\": invalid syntax", "BadRequest", NULL},
        {"POST", "/api/v1/watch/namespaces/default/configmaps", J, "{}", 405,
         "the server does not allow this method on the requested resource", "MethodNotAllowed",
         "{}"},
    };
    REFUSALS(w, rows);
    make_map(w, "m");
    static const char *const no_watches[] = {"watch=false", "watch=False", "watch=0"};
    for (size_t i = 0; i < sizeof no_watches / sizeof *no_watches; i++) {
        char url[128];
        (void)str_format(url, sizeof url, MAPS "?%s", no_watches[i]);
        AUTO_JSONTREE *t = must(w, 200, "GET", url, NULL, NULL);
        expect_at(no_watches[i], t, "kind", "\"ConfigMapList\"");
    }
    expect_done();
}

static void ended(struct call *c)
{
    if (c->on_close)
        c->on_close(c->arg);
    fake_call_free(c);
}

static void where_a_watch_begins(void **state)
{
    struct world *w = *state;
    make_map(w, "a");
    make_map(w, "b");
    static const struct {
        const char *row, *query, *has, *has_not;
    } rows[] = {
        {"by its path, one object", "/api/v1/watch/namespaces/default/configmaps/b",
         "{\"type\":\"ADDED\"", "\"name\":\"a\""},
        {"without initial events, from now",
         MAPS "?watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan", "", "ADDED"},
        {"all there is at a version that is not yet",
         MAPS
         "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&resourceVersion=99",
         "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
         "\"status\":\"Failure\",\"message\":\"Timeout: Too large resource version: 99, current: "
         "2\",\"reason\":\"Timeout\"",
         "ADDED"},
        {"from a version that is not yet, it waits", MAPS "?watch=1&resourceVersion=99", "",
         "\"type\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct call *c = ask(w, "GET", rows[i].query, NULL, NULL);
        expect_int(rows[i].row, 200, c->status);
        expect_true(rows[i].row, strstr(strbuf_str(&c->out), rows[i].has) != NULL);
        expect_true(rows[i].row, strstr(strbuf_str(&c->out), rows[i].has_not) == NULL);
        ended(c);
    }
    static const struct refusal other[] = {
        {"GET", "/api/v1/watch/namespaces/default/configmaps/b?fieldSelector=metadata.name%3Da",
         NULL, NULL, 400, "fieldSelector metadata.name doesn't match requested name", "BadRequest",
         NULL}};
    REFUSALS(w, other);
}

static void a_list_that_was_forgotten_can_be_gone_on_with(void **state)
{
    struct world *w = *state;
    make_map(w, "a");
    make_map(w, "b");
    make_map(w, "c");
    AUTO_JSONTREE *page = must(w, 200, "GET", MAPS "?limit=1", NULL, NULL);
    const char *token =
        jsonnode_str(jsonnode_path(jsontree_root(page), "metadata", "continue", NULL));
    assert_non_null(token);
    done(w, 200, "DELETE", MAPS "/b", NULL, NULL);
    store_compact(w->store);
    char url[512];
    (void)str_format(url, sizeof url, MAPS "?limit=1&continue=%s", token);
    AUTO_JSONTREE *gone = must(w, 410, "GET", url, NULL, NULL);
    expect_at("410", gone, "reason", "\"Expired\"");
    token = jsonnode_str(jsonnode_path(jsontree_root(gone), "metadata", "continue", NULL));
    assert_non_null(token);
    (void)str_format(url, sizeof url, MAPS "?limit=1&continue=%s", token);
    AUTO_JSONTREE *rest = must(w, 200, "GET", url, NULL, NULL);
    expect_at("what there is now", rest, "items.0.metadata.name", "\"c\"");
    (void)str_format(url, sizeof url, "/api/v1/namespaces/other/configmaps?continue=%s", token);
    done(w, 400, "GET", url, NULL, NULL); /* of another namespace */
    expect_done();
}

static void bind(struct world *w, const char *name)
{
    char url[128], body[256];
    (void)str_format(url, sizeof url, PODS "/%s/binding", name);
    (void)str_format(body, sizeof body, BINDING("\"name\":\"%s\"", "\"name\":\"n\""), name);
    done(w, 201, "POST", url, J, body);
}

static void expect_grace(struct world *w, const char *row, const char *url, const char *body,
                         const char *grace)
{
    AUTO_JSONTREE *t = must(w, 200, "DELETE", url, J, body);
    expect_at(row, t, "metadata.deletionGracePeriodSeconds", grace);
}

static void a_pods_grace(void **state)
{
    struct world *w = *state;
    done(w, 201, "POST", PODS, J, POD("\"name\":\"p\"", ""));
    bind(w, "p");
    expect_grace(w, "the first that was asked for", PODS "/p?gracePeriodSeconds=100", NULL, "100");
    expect_grace(w, "one that asks for nothing changes nothing", PODS "/p", NULL, "100");
    expect_grace(w, "nor does one that asks for more", PODS "/p?gracePeriodSeconds=200", NULL,
                 "100");
    expect_grace(w, "a shorter one", PODS "/p?gracePeriodSeconds=50", NULL, "50");
    done(w, 200, "PATCH", PODS "/p/status", MP, "{\"status\":{\"phase\":\"Succeeded\"}}");
    expect_grace(w, "it has ended meanwhile, and is its kubelet's", PODS "/p", NULL, "50");
    done(w, 200, "GET", PODS "/p", NULL, NULL);
    expect_grace(w, "less than nothing is a second", PODS "/p", "{\"gracePeriodSeconds\":-5}", "1");
    done(w, 200, "GET", PODS "/p", NULL, NULL);
    expect_grace(w, "at once", PODS "/p?gracePeriodSeconds=0", NULL, "0");
    done(w, 404, "GET", PODS "/p", NULL, NULL);
    done(w, 201, "POST", PODS, J, POD("\"name\":\"q\"", ""));
    bind(w, "q");
    expect_grace(w, "less than nothing, at first", PODS "/q?gracePeriodSeconds=-5", NULL, "1");
    static const struct refusal rows[] = {
        {"PATCH", PODS "/q", MP, "{\"metadata\":{\"deletionGracePeriodSeconds\":5}}", 422,
         "Pod \"q\" is invalid: metadata.deletionGracePeriodSeconds: Invalid value: 5: field is "
         "immutable",
         "Invalid", "*"},
        {"DELETE", PODS "/q", J, "{\"gracePeriodSeconds\":\"x\"}", 400,
         "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of "
         "type int64",
         "BadRequest", NULL},
    };
    REFUSALS(w, rows);
    done(w, 200, "PATCH", PODS "/q", MP,
         "{\"metadata\":{\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"}}"); /* ignored */
    expect_done();
}

static void a_deletion_that_does_not_say_how(void **state)
{
    struct world *w = *state;
    static const char job[] =
        "{\"metadata\":{\"name\":\"j\"},\"spec\":{\"template\":{\"spec\":{\"restartPolicy\":"
        "\"Never\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}}";
    done(w, 201, "POST", JOBS, J, job);
    struct call *c = ask(w, "DELETE", JOBS "/j", NULL, NULL);
    expect_true("a job leaves its pods", strstr(strbuf_str(&c->out), "[\"orphan\"]") != NULL);
    expect_true("and says so", strstr(c->headers, "Warning: 299 - \"child pods are preserved by "
                                                  "default when jobs are deleted;") != NULL);
    fake_call_free(c);
    done(w, 200, "PATCH", JOBS "/j", MP, "{\"metadata\":{\"finalizers\":null}}");
    done(w, 201, "POST", JOBS, J, job);
    c = ask(w, "DELETE", JOBS "/j?propagationPolicy=Background", NULL, NULL);
    expect_true("unless told", strstr(strbuf_str(&c->out), "\"Success\"") != NULL);
    expect_str("no warning", "", c->headers);
    fake_call_free(c);
    make_map(w, "m");
    AUTO_JSONTREE *t = must(w, 200, "DELETE", MAPS "/m", NULL, NULL);
    expect_at("a config map", t, "status", "\"Success\"");
    expect_done();
}

static void what_a_put_may(void **state)
{
    struct world *w = *state;
    done(w, 201, "PUT", LEASES "/l", J, "{\"metadata\":{\"name\":\"l\"}}");
    done(w, 201, "PUT", "/api/v1/namespaces/default/services/s", J,
         "{\"metadata\":{\"name\":\"s\"},\"spec\":{\"ports\":[{\"port\":80}]}}");
    done(w, 201, "PUT", "/apis/rbac.authorization.k8s.io/v1/clusterroles/r", J,
         "{\"metadata\":{\"name\":\"r\"}}");
    done(w, 201, "POST", "/apis/storage.k8s.io/v1/csinodes", J, "{\"metadata\":{\"name\":\"n\"}}");
    make_map(w, "m");
    done(w, 201, "POST", JOBS, J,
         "{\"metadata\":{\"name\":\"j\"},\"spec\":{\"template\":{\"spec\":{\"restartPolicy\":"
         "\"Never\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}}");
    static const struct refusal rows[] = {
        {"PUT", MAPS "/no", J, "{\"metadata\":{\"name\":\"no\"}}", 404,
         "configmaps \"no\" not found", "NotFound", "*"},
        {"PUT", LEASES "/l", J, "{\"metadata\":{\"name\":\"l\"}}", 422,
         "leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: 0: "
         "must be specified for an update",
         "Invalid", "*"},
        {"PUT", "/apis/storage.k8s.io/v1/csinodes/n", J, "{\"metadata\":{\"name\":\"n\"}}", 422,
         "csinodes.storage.k8s.io \"n\" is invalid: metadata.resourceVersion: Invalid value: 0: "
         "must be specified for an update",
         "Invalid", "*"},
        {"PUT", MAPS "/m", J, "{}", 400,
         "the name of the object (m based on URL) was undeterminable: name must be provided",
         "BadRequest", NULL},
        {"PATCH", MAPS "/m", MP, "{\"metadata\":null}", 400,
         "the name of the object (m based on URL) was undeterminable: name must be provided",
         "BadRequest", NULL},
        {"PUT", JOBS "/j", J,
         "{\"metadata\":{\"name\":\"j\"},\"spec\":{\"template\":{\"spec\":{\"restartPolicy\":"
         "\"Never\",\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}}",
         422,
         "Job.batch \"j\" is invalid: [spec.selector: Required value, "
         "spec.template.metadata.labels: Invalid value: null: `selector` does not match template "
         "`labels`]",
         "Invalid", "*"},
    };
    REFUSALS(w, rows);
}

static void fields_that_a_kind_does_not_have(void **state)
{
    struct world *w = *state;
    static const char body[] = "{\"metadata\":{\"name\":\"m\"},\"data\":{\"a\":\"1\"},\"bogus\":1}";
    struct call *c = ask(w, "POST", MAPS "?dryRun=All", J, body);
    expect_int("by default", 201, c->status);
    expect_str("a warning", "Warning: 299 - \"unknown field \\\"bogus\\\"\"\r\n", c->headers);
    expect_true("it is gone", strstr(strbuf_str(&c->out), "bogus") == NULL);
    fake_call_free(c);
    c = ask(w, "POST", MAPS "?fieldValidation=Ignore", J, body);
    expect_int("ignored", 201, c->status);
    expect_str("no warning", "", c->headers);
    fake_call_free(c);
    static const struct refusal rows[] = {
        {"POST", MAPS "?fieldValidation=Strict", J, body, 400,
         "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: "
         "unknown field \"bogus\"",
         "BadRequest", NULL},
        {"POST", MAPS "?fieldValidation=x", J, body, 422,
         "CreateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"x\": "
         "supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"",
         "Invalid", "*"},
        {"PATCH", MAPS "/m?fieldManager=x", AP,
         "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"m\"},\"bogus\":1}",
         500,
         "failed to create typed patch object (/m; /v1, Kind=ConfigMap): .bogus: field not "
         "declared in schema",
         NULL, NULL},
        {"PATCH", MAPS "/m?fieldManager=x", AP,
         "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"m\","
         "\"resourceVersion\":\"99\"}}",
         409,
         "Operation cannot be fulfilled on configmaps \"m\": the object has been modified; please "
         "apply your changes to the latest version and try again",
         "Conflict", "*"},
        {"PATCH", MAPS "/m?fieldManager=x", AP,
         "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"m\","
         "\"namespace\":\"x\"}}",
         400,
         "the namespace of the provided object does not match the namespace sent on the request",
         "BadRequest", NULL},
        {"PATCH", MAPS "/m?fieldManager=a%0ab", AP, "{}", 422,
         "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Invalid value: \"a\\nb\": "
         "invalid character U+000A (at position 1)",
         "Invalid", "*"},
        {"POST", PODS, J, "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":[1]}}", 400,
         "Pod in version \"v1\" cannot be handled as a Pod: json: cannot unmarshal number into Go "
         "struct field PodSpec.spec.containers of type v1.Container",
         "BadRequest", NULL},
    };
    REFUSALS(w, rows);
}

static void metadata_of_owners_and_finalizers(void **state)
{
    struct world *w = *state;
    static const struct refusal rows[] = {
        {"POST", MAPS, J, "{\"metadata\":{\"name\":\"m\",\"finalizers\":[\"nodomain\"]}}", 422,
         "ConfigMap \"m\" is invalid: metadata.finalizers[0]: Invalid value: \"nodomain\": name is "
         "neither a standard finalizer name nor is it fully qualified",
         "Invalid", "*"},
        {"POST", MAPS, J,
         "{\"metadata\":{\"name\":\"m\",\"finalizers\":[\"orphan\",\"foregroundDeletion\"]}}", 422,
         "ConfigMap \"m\" is invalid: metadata.finalizers: Invalid value: "
         "[\"orphan\",\"foregroundDeletion\"]: finalizer orphan and foregroundDeletion cannot be "
         "both set",
         "Invalid", "*"},
        {"POST", MAPS, J,
         "{\"metadata\":{\"name\":\"m\",\"ownerReferences\":[{\"kind\":\"X\",\"name\":\"x\"}]}}",
         422,
         "ConfigMap \"m\" is invalid: [metadata.ownerReferences.apiVersion: Invalid value: \"\": "
         "version must not be empty, metadata.ownerReferences.uid: Invalid value: \"\": must not "
         "be empty]",
         "Invalid", "*"},
        {"POST", MAPS, J, "{\"metadata\":{\"name\":\"m\"},\"data\":{\"a b\":\"\"}}", 422,
         "ConfigMap \"m\" is invalid: data[a b]: Invalid value: \"a b\": a valid config key must "
         "consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
         "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
         "Invalid", "*"},
    };
    REFUSALS(w, rows);
    done(w, 201, "POST", MAPS, J,
         "{\"metadata\":{\"name\":\"i\"},\"immutable\":true,\"data\":{\"a\":\"1\"}}");
    static const struct refusal frozen[] = {
        {"PATCH", MAPS "/i", MP, "{\"data\":{\"a\":\"2\"}}", 422,
         "ConfigMap \"i\" is invalid: data: Forbidden: field is immutable when `immutable` is set",
         "Invalid", "*"},
        {"PATCH", MAPS "/i", MP, "{\"immutable\":null}", 422,
         "ConfigMap \"i\" is invalid: immutable: Forbidden: field is immutable when `immutable` is "
         "set",
         "Invalid", "*"},
    };
    REFUSALS(w, frozen);
}

static void bodies_have_bounds(void **state)
{
    struct world *w = *state;
    AUTO_STRBUF body = {0};
    strbuf_adds(&body, "{\"metadata\":{\"name\":\"m\"},\"data\":{\"k0\":\",,,,\"");
    for (int i = 1; i < 10000; i++)
        strbuf_addf(&body, ",\"k%d\":\"\"", i);
    strbuf_adds(&body, "}}");
    done(w, 201, "POST", MAPS "?dryRun=All", J, strbuf_str(&body));
    body.len -= 2;
    strbuf_adds(&body, ",\"one\":\"more\"}}");
    static const char *const types[] = {J, MP, SP};
    make_map(w, "m");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const struct refusal row = {i == 0 ? "POST" : "PATCH",
                                    i == 0 ? MAPS : MAPS "/m",
                                    types[i],
                                    strbuf_str(&body),
                                    413,
                                    "Request entity too large: an object or list of more than "
                                    "10000 members",
                                    "RequestEntityTooLarge",
                                    NULL};
        expect_refusals(w, &row, 1);
    }
}

/* As etcd does, which counts what stands for itself, not its escapes. */
static void objects_have_a_bound(void **state)
{
    struct world *w = *state;
    enum { LIMIT = 3 * 512 * 1024 };
    static const char roles[] = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
    static const struct {
        const char *row, *part;
        size_t bytes;
        int status;
    } rows[] = {
        {"nearly as much as there may be", "xxxxxxxx", LIMIT - 1024, 201},
        {"more", "xxxxxxxx", LIMIT, 500},
        {"escapes count once", "\\n\\n\\n\\n", LIMIT - 1024, 201},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AUTO_STRBUF body = {0};
        strbuf_addf(&body, "{\"metadata\":{\"name\":\"r%zu\"},\"rules\":[{\"resources\":[\"", i);
        size_t step = rows[i].part[0] == 'x' ? 8 : 4;
        for (size_t n = 0; n < rows[i].bytes; n += step)
            strbuf_adds(&body, rows[i].part);
        strbuf_adds(&body, "\"]}]}");
        AUTO_JSONTREE *t = must(w, rows[i].status, "POST", roles, J, strbuf_str(&body));
        if (rows[i].status == 500)
            expect_at(rows[i].row, t, "message", "\"etcdserver: request is too large\"");
    }
    AUTO_STRBUF patch = {0};
    strbuf_adds(&patch, "[{\"op\":\"add\",\"path\":\"/rules/-\",\"value\":{\"resources\":[\"");
    for (size_t n = 0; n < 2048; n += 8)
        strbuf_adds(&patch, "yyyyyyyy");
    strbuf_adds(&patch, "\"]}}]");
    char url[128];
    (void)str_format(url, sizeof url, "%s/r0", roles);
    done(w, 500, "PATCH", url, JP, strbuf_str(&patch)); /* nor by and by */
    expect_done();
}

static void a_namespace_is_finalized_by_its_own_path(void **state)
{
    struct world *w = *state;
    done(w, 201, "POST", "/api/v1/namespaces", J, "{\"metadata\":{\"name\":\"x\"}}");
    AUTO_JSONTREE *t = must(w, 200, "PATCH", "/api/v1/namespaces/x", MP,
                            "{\"spec\":{\"finalizers\":[\"a.io/b\"]}}");
    expect_at("elsewhere it changes nothing", t, "spec.finalizers", "[\"kubernetes\"]");
    AUTO_JSONTREE *f = must(w, 200, "PUT", "/api/v1/namespaces/x/finalize", J,
                            "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"finalizers\":"
                            "[\"kubernetes\",\"a.io/b\"]}}");
    expect_at("here it does", f, "spec.finalizers", "[\"kubernetes\",\"a.io/b\"]");
    static const struct refusal rows[] = {
        {"GET", "/api/v1/namespaces/x/finalize", NULL, NULL, 405,
         "the server does not allow this method on the requested resource", "MethodNotAllowed",
         "{}"},
        {"PUT", "/api/v1/namespaces/x/finalize", J,
         "{\"metadata\":{\"name\":\"x\"},\"spec\":{\"finalizers\":[\"nope\"]}}", 422,
         "Namespace \"x\" is invalid: spec.finalizers[0]: Invalid value: \"nope\": name is neither "
         "a standard finalizer name nor is it fully qualified",
         "Invalid", "*"},
        {"PATCH", "/api/v1/namespaces/x/status", MP, "{\"status\":{\"phase\":\"Terminating\"}}",
         422,
         "Namespace \"x\" is invalid: status.Phase: Invalid value: \"Terminating\": may only be "
         "'Active' if `deletionTimestamp` is empty",
         "Invalid", "*"},
    };
    REFUSALS(w, rows);
}

static void statuses_have_types_and_rules(void **state)
{
    struct world *w = *state;
    done(w, 201, "POST", PODS, J, POD("\"name\":\"p\"", ""));
    AUTO_JSONTREE *empty = must(w, 200, "PATCH", PODS "/p/status", MP, "{\"status\":null}");
    expect_at("what follows from the spec stays", empty, "status.qosClass", "\"BestEffort\"");
    done(w, 422, "PATCH", PODS "/p/status", MP, "{\"status\":{\"phase\":5}}");
    done(w, 201, "POST", "/api/v1/nodes", J, "{\"metadata\":{\"name\":\"n\"}}");
    done(w, 422, "PATCH", "/api/v1/nodes/n/status", MP,
         "{\"status\":{\"capacity\":{\"cpu\":\"x\"}}}");
    AUTO_JSONTREE *n = must(w, 200, "PATCH", "/api/v1/nodes/n/status", MP,
                            "{\"status\":{\"capacity\":{\"cpu\":\"0.5\"}}}");
    expect_at("amounts in their usual form", n, "status.capacity", "{\"cpu\":\"500m\"}");
    expect_at("all of it can be given out", n, "status.allocatable", "{\"cpu\":\"500m\"}");
    static const struct refusal rows[] = {
        {"PATCH", PODS "/p/status", MP, "{\"status\":{\"qosClass\":\"Guaranteed\"}}", 422,
         "Pod \"p\" is invalid: status.qosClass: Invalid value: \"Guaranteed\": field is immutable",
         "Invalid", "*"},
        {"PATCH", "/api/v1/nodes/n/status", SP, "{\"status\":{\"allocatable\":{\"a.io/b\":-1}}}",
         422,
         "Node \"n\" is invalid: status.allocatable.a.io/b: Invalid value: \"-1\": must be greater "
         "than or equal to 0",
         "Invalid", "*"},
    };
    REFUSALS(w, rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(options_of_lists_and_watches, setup, teardown),
        cmocka_unit_test_setup_teardown(where_a_watch_begins, setup, teardown),
        cmocka_unit_test_setup_teardown(a_list_that_was_forgotten_can_be_gone_on_with, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_pods_grace, setup, teardown),
        cmocka_unit_test_setup_teardown(a_deletion_that_does_not_say_how, setup, teardown),
        cmocka_unit_test_setup_teardown(what_a_put_may, setup, teardown),
        cmocka_unit_test_setup_teardown(fields_that_a_kind_does_not_have, setup, teardown),
        cmocka_unit_test_setup_teardown(metadata_of_owners_and_finalizers, setup, teardown),
        cmocka_unit_test_setup_teardown(bodies_have_bounds, setup, teardown),
        cmocka_unit_test_setup_teardown(objects_have_a_bound, setup, teardown),
        cmocka_unit_test_setup_teardown(a_namespace_is_finalized_by_its_own_path, setup, teardown),
        cmocka_unit_test_setup_teardown(statuses_have_types_and_rules, setup, teardown),
    };
    return cmocka_run_group_tests_name("api_rules", tests, NULL, NULL);
}
