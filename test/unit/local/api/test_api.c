// SPDX-License-Identifier: Apache-2.0
/*
 * The API's verbs over the real store and kinds. Every sentence here was asked of a real API server
 * of version 1.36 with the same request.
 */
#include "test/unit/local/api_world.h"

static void bad_requests_get_the_real_answers(void **state)
{
    struct world *w = *state;
    static const char modified[] =
        "Operation cannot be fulfilled on pods \"p1\": the object has been modified; please apply "
        "your changes to the latest version and try again";
    static const char not_allowed[] =
        "the server does not allow this method on the requested resource";
    static const char no_resource[] = "the server could not find the requested resource";
    static const char other_ns[] = "the namespace of the provided object does not match the "
                                   "namespace sent on the request";
    static const char rejected[] = "the server rejected our request due to an error in our request";
    static const struct refusal rows[] = {
        {"GET", PODS "/none", NULL, NULL, 404, "pods \"none\" not found", "NotFound",
         "{\"name\":\"none\",\"kind\":\"pods\"}"},
        {"GET", "/apis/apps/v1/namespaces/default/deployments/none", NULL, NULL, 404,
         "deployments.apps \"none\" not found", "NotFound",
         "{\"name\":\"none\",\"group\":\"apps\",\"kind\":\"deployments\"}"},
        {"GET", "/api/v1/nopes", NULL, NULL, 404, no_resource, "NotFound", "{}"},
        {"GET", "/api/v1/namespaces/default/nopes/x", NULL, NULL, 404, no_resource, "NotFound",
         "{}"},
        {"GET", PODS "/p1/nosub", NULL, NULL, 404, no_resource, "NotFound", "{}"},
        {"PUT", PODS, J, POD("\"name\":\"x\"", ""), 405, not_allowed, "MethodNotAllowed", "{}"},
        {"POST", PODS "/p1", J, POD("\"name\":\"x\"", ""), 405, not_allowed, "MethodNotAllowed",
         "{}"},
        {"DELETE", "/api/v1/pods", NULL, NULL, 405, not_allowed, "MethodNotAllowed", "{}"},
        {"POST", "/api/v1/pods", J, POD("\"name\":\"x\"", ""), 405, not_allowed, "MethodNotAllowed",
         "{}"},
        {"POST", PODS "/p1/status", J, POD("\"name\":\"p1\"", ""), 405, not_allowed,
         "MethodNotAllowed", "{}"},
        {"GET", "/api/v1/namespaces/default/bindings", NULL, NULL, 405, not_allowed,
         "MethodNotAllowed", "{}"},
        {"GET", PODS "/p1/binding", NULL, NULL, 405, not_allowed, "MethodNotAllowed", "{}"},
        {"POST", PODS, J, POD("\"name\":\"p1\"", ""), 409, "pods \"p1\" already exists",
         "AlreadyExists", "{\"name\":\"p1\",\"kind\":\"pods\"}"},
        {"POST", PODS, J, POD("\"name\":\"x\",\"namespace\":\"other\"", ""), 400, other_ns,
         "BadRequest", NULL},
        {"POST", PODS, J, "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"x\"}}",
         400,
         "Node in version \"v1\" cannot be handled as a Pod: converting (v1.Node) to (core.Pod): "
         "unknown conversion",
         "BadRequest", NULL},
        {"POST", PODS, J,
         "{\"apiVersion\":\"apps/v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"x\"}}", 400,
         "Pod in version \"v1\" cannot be handled as a Pod: no kind \"Pod\" is registered for "
         "version \"apps/v1\" in scheme \"pkg/runtime/scheme.go:111\"",
         "BadRequest", NULL},
        {"POST", PODS, J, "{\"metadata\":{\"name\":\"x\"}}", 422,
         "Pod \"x\" is invalid: spec.containers: Required value", "Invalid",
         "{\"name\":\"x\",\"kind\":\"Pod\",\"causes\":[{\"reason\":\"FieldValueRequired\",\"message\":"
         "\"Required value\",\"field\":\"spec.containers\"}]}"},
        {"POST", PODS, "application/yaml", "metadata: {name: yy}", 422,
         "Pod \"yy\" is invalid: spec.containers: Required value", "Invalid", "*"},
        {"POST", PODS, J, "null", 422,
         "Pod \"\" is invalid: [metadata.name: Required value: name or generateName is required, "
         "spec.containers: Required value]",
         "Invalid",
         "{\"kind\":\"Pod\",\"causes\":[{\"reason\":\"FieldValueRequired\",\"message\":\"Required value: "
         "name or generateName is required\",\"field\":\"metadata.name\"},{\"reason\":"
         "\"FieldValueRequired\",\"message\":\"Required value\",\"field\":\"spec.containers\"}]}"},
        {"POST", PODS, J, POD("", ""), 422,
         "Pod \"\" is invalid: metadata.name: Required value: name or generateName is required",
         "Invalid", "*"},
        {"POST", PODS, J, POD("\"name\":5", ""), 400,
         "Pod in version \"v1\" cannot be handled as a Pod: json: cannot unmarshal number into Go "
         "struct field ObjectMeta.metadata.name of type string",
         "BadRequest", NULL},
        {"POST", PODS, J, POD("\"name\":\"x\",\"labels\":{\"a\":1}", ""), 400,
         "Pod in version \"v1\" cannot be handled as a Pod: json: cannot unmarshal number into Go "
         "struct field ObjectMeta.metadata.labels of type string",
         "BadRequest", NULL},
        {"POST", PODS, J, POD("\"name\":\"x\",\"labels\":\"a\"", ""), 400,
         "Pod in version \"v1\" cannot be handled as a Pod: json: cannot unmarshal string into Go "
         "struct field ObjectMeta.metadata.labels of type map[string]string",
         "BadRequest", NULL},
        {"POST", PODS, J, POD("\"name\":\"x\",\"resourceVersion\":\"5\"", ""), 500,
         "resourceVersion should not be set on objects to be created", NULL, NULL},
        {"POST", PODS "?dryRun=Some", J, POD("\"name\":\"x\"", ""), 422,
         "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: supported "
         "values: \"All\"",
         "Invalid",
         "{\"group\":\"meta.k8s.io\",\"kind\":\"CreateOptions\",\"causes\":[{\"reason\":"
         "\"FieldValueNotSupported\",\"message\":\"Unsupported value: [\\\"Some\\\"]: supported values: "
         "\\\"All\\\"\",\"field\":\"dryRun\"}]}"},
        {"PUT", PODS "/p1", J, POD("\"name\":\"p2\"", ""), 400,
         "the name of the object (p2) does not match the name on the URL (p1)", "BadRequest", NULL},
        {"PUT", PODS "/p1", J, POD("\"name\":\"p1\",\"namespace\":\"other\"", ""), 400, other_ns,
         "BadRequest", NULL},
        {"PUT", PODS "/p1", J, POD("\"name\":\"p1\",\"resourceVersion\":\"999\"", ""), 409,
         modified, "Conflict", "{\"name\":\"p1\",\"kind\":\"pods\"}"},
        {"PUT", PODS "/p1", J, POD("\"name\":\"p1\",\"resourceVersion\":\"abc\"", ""), 500,
         "strconv.ParseUint: parsing \"abc\": invalid syntax", NULL, NULL},
        {"PUT", PODS "/nope", J, POD("\"name\":\"nope\"", ""), 404, "pods \"nope\" not found",
         "NotFound", "{\"name\":\"nope\",\"kind\":\"pods\"}"},
        {"PATCH", PODS "/nope", MP, "{}", 404, "pods \"nope\" not found", "NotFound", "*"},
        {"PATCH", PODS "/p1", MP, "{\"metadata\":{\"resourceVersion\":\"999\"}}", 409, modified,
         "Conflict", "*"},
        {"PATCH", PODS "/p1", MP, "{\"metadata\":{\"name\":\"zz\"}}", 400,
         "the name of the object (zz) does not match the name on the URL (p1)", "BadRequest", NULL},
        {"PATCH", PODS "/p1", MP, "{\"metadata\":{\"namespace\":\"zz\"}}", 400, other_ns,
         "BadRequest", NULL},
        {"PATCH", PODS "/p1", MP, "{\"metadata\":{\"uid\":\"1\"}}", 422,
         "Pod \"p1\" is invalid: metadata.uid: Invalid value: \"1\": field is immutable", "Invalid",
         "*"},
        {"PATCH", PODS "/p1", MP, "{\"metadata\":{\"deletionTimestamp\":\"2020-01-01T00:00:00Z\"}}",
         422,
         "Pod \"p1\" is invalid: metadata.deletionTimestamp: Invalid value: \"2020-01-01T00:00:00Z\": "
         "field is immutable",
         "Invalid", "*"},
        {"PATCH", PODS "/p1", "text/plain", "{}", 415, "415: Unsupported Media Type",
         "UnsupportedMediaType", "{}"},
        {"PATCH", PODS "/p1", J, "{}", 415, "415: Unsupported Media Type", "UnsupportedMediaType",
         "{}"},
        {"PATCH", PODS "/p1", JP, "[{\"op\":\"test\",\"path\":\"/kind\",\"value\":\"x\"}]", 422,
         rejected, "Invalid", "{}"},
        {"PATCH", PODS "/p1", JP, "{}", 400,
         "error decoding patch: json: cannot unmarshal object into Go value of type "
         "[]handlers.jsonPatchOp",
         "BadRequest", NULL},
        {"PATCH", PODS "/p1", MP, "[1]", 400,
         "error decoding patch: json: cannot unmarshal array into Go value of type "
         "map[string]interface {}",
         "BadRequest", NULL},
        {"PATCH", PODS "/p1?force=true", MP, "{}", 422,
         "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for "
         "non-apply patch",
         "Invalid", "*"},
        {"PATCH", PODS "/p1", AP, "{}", 422,
         "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for "
         "apply patch",
         "Invalid",
         "{\"group\":\"meta.k8s.io\",\"kind\":\"PatchOptions\",\"causes\":[{\"reason\":"
         "\"FieldValueRequired\",\"message\":\"Required value: is required for apply patch\",\"field\":"
         "\"fieldManager\"}]}"},
        {"PATCH", MAPS "/cm?fieldManager=a", AP,
         "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"cm\"}}", 400,
         "invalid object type: /, Kind=ConfigMap", "BadRequest", NULL},
        {"PATCH", MAPS "/cm?fieldManager=a", AP,
         "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"cm\"}}", 400,
         "invalid object type: /v1, Kind=Pod", "BadRequest", NULL},
        {"PATCH", MAPS "/cm?fieldManager=a", AP,
         "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"cx\"}}", 400,
         "the name of the object (cx) does not match the name on the URL (cm)", "BadRequest", NULL},
        {"DELETE", PODS "/nope", NULL, NULL, 404, "pods \"nope\" not found", "NotFound", "*"},
        {"DELETE", PODS "/p1?propagationPolicy=Bogus", NULL, NULL, 422,
         "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"Bogus\": "
         "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"",
         "Invalid", "*"},
        {"DELETE", PODS "/p1?gracePeriodSeconds=x", NULL, NULL, 400,
         "strconv.ParseInt: parsing \"x\": invalid syntax", "BadRequest", NULL},
        {"DELETE", PODS "/p1", J, "{\"propagationPolicy\":\"Orphan\",\"orphanDependents\":true}",
         422,
         "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid value: \"Orphan\": "
         "orphanDependents and deletionPropagation cannot be both set",
         "Invalid", "*"},
        {"DELETE", PODS "/p1", J, "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}", 400,
         "no kind \"Pod\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:111\"",
         "BadRequest", NULL},
        {"DELETE", PODS "/p1", J, "{\"preconditions\":{\"resourceVersion\":\"99\"}}", 409,
         "Operation cannot be fulfilled on Pod \"p1\": the ResourceVersion in the precondition (99) "
         "does not match the ResourceVersion in record (1). The object might have been modified",
         "Conflict", "{\"name\":\"p1\",\"kind\":\"Pod\"}"},
        {"GET", MAPS "?limit=x", NULL, NULL, 400, "strconv.ParseInt: parsing \"x\": invalid syntax",
         "BadRequest", NULL},
        {"GET", MAPS "?resourceVersion=5&resourceVersionMatch=Bogus", NULL, NULL, 422,
         "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Unsupported value: \"Bogus\": "
         "supported values: \"Exact\", \"NotOlderThan\", \"\"",
         "Invalid", "*"},
        {"GET", MAPS "?resourceVersionMatch=Exact", NULL, NULL, 422,
         "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: "
         "resourceVersionMatch is forbidden unless resourceVersion is provided",
         "Invalid", "*"},
        {"GET", MAPS "?resourceVersion=0&resourceVersionMatch=Exact", NULL, NULL, 422,
         "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: "
         "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
         "Invalid", "*"},
        {"GET", MAPS "?resourceVersion=abc", NULL, NULL, 400,
         "invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: "
         "parsing \"abc\": invalid syntax",
         "BadRequest", NULL},
        {"GET", MAPS "?resourceVersion=99999999", NULL, NULL, 504,
         "Timeout: Too large resource version: 99999999, current: 1", "Timeout",
         "{\"causes\":[{\"reason\":\"ResourceVersionTooLarge\",\"message\":\"Too large resource "
         "version\"}],\"retryAfterSeconds\":1}"},
        {"GET", PODS "/p1?resourceVersion=99999999", NULL, NULL, 504,
         "Timeout: Too large resource version: 99999999, current: 1", "Timeout", "*"},
        {"GET", MAPS "?fieldSelector=spec.x%3D1", NULL, NULL, 400,
         "\"spec.x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
         "BadRequest", NULL},
        {"GET", MAPS "?fieldSelector=bad", NULL, NULL, 400,
         "invalid selector: 'bad'; can't understand 'bad'", "BadRequest", NULL},
        {"GET", "/api/v1/pods?fieldSelector=spec.bogus%3Dx", NULL, NULL, 400,
         "field label not supported: spec.bogus", "BadRequest", NULL},
        {"GET", MAPS "?watch=true&resourceVersion=abc", NULL, NULL, 500,
         "resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax",
         NULL, NULL},
        {"GET", MAPS "?watch=true&timeoutSeconds=x", NULL, NULL, 400,
         "strconv.ParseInt: parsing \"x\": invalid syntax", "BadRequest", NULL},
        {"GET", MAPS "?watch=true&sendInitialEvents=true", NULL, NULL, 422,
         "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents "
         "requires setting resourceVersionMatch to NotOlderThan",
         "Invalid", "*"},
        {"PUT", "/apis/coordination.k8s.io/v1/namespaces/default/leases/new?dryRun=x", J,
         "{\"metadata\":{\"name\":\"new\"}}", 422,
         "UpdateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"x\"]: supported "
         "values: \"All\"",
         "Invalid", "*"},
    };
    done(w, 201, "POST", PODS, J, POD("\"name\":\"p1\",\"labels\":{\"a\":\"b\"}", ""));
    REFUSALS(w, rows);
}

static void what_is_no_path_of_the_api(void **state)
{
    struct world *w = *state;
    struct call *c = ask(w, "GET", "/nothing", NULL, NULL);
    expect_int("plain 404", 404, c->status);
    expect_str("plain 404", "404 page not found\n", strbuf_str(&c->out));
    fake_call_free(c);
    c = fake_call("GET", PODS, NULL, NULL);
    c->anonymous = true;
    api_handle(w->api, c);
    expect_int("no token", 401, c->status);
    expect_str("no token",
               "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\","
               "\"message\":\"Unauthorized\",\"reason\":\"Unauthorized\",\"code\":401}",
               strbuf_str(&c->out));
    fake_call_free(c);
    c = fake_call("GET", PODS, NULL, NULL);
    c->accept = "text/html";
    api_handle(w->api, c);
    expect_int("a form that we do not have", 406, c->status);
    fake_call_free(c);
    expect_done();
}

static void create_fills_in_what_is_the_servers(void **state)
{
    struct world *w = *state;
    AUTO_JSONTREE *t = must(w, 201, "POST", PODS, J,
                            POD("\"generateName\":\"gen-\",\"uid\":\"mine\",\"generation\":7,"
                                "\"deletionTimestamp\":\"2020-01-01T00:00:00Z\",\"labels\":null",
                                ""));
    struct jsonnode *meta = jsonnode_get(jsontree_root(t), "metadata");
    const char *name = jsonnode_get_str(meta, "name");
    const char *uid = jsonnode_get_str(meta, "uid");
    assert_non_null(name);
    assert_non_null(uid);
    expect_int("five letters", 9, (int64_t)strlen(name));
    expect_int("of the alphabet", 5, (int64_t)strspn(name + 4, "bcdfghjklmnpqrstvwxz2456789"));
    expect_int("a uid", 36, (int64_t)strlen(uid));
    expect_true("of version 4", uid[14] == '4' && strchr("89ab", uid[19]) != NULL);
    expect_at("pod", t, "metadata.generation", "1");
    expect_at("pod", t, "metadata.deletionTimestamp", NULL);
    expect_at("pod", t, "metadata.namespace", "\"default\"");
    expect_at("pod", t, "metadata.labels", NULL);
    expect_at("pod", t, "status.phase", "\"Pending\"");
    expect_true("created now",
                clock_parse_rfc3339(jsonnode_get_str(meta, "creationTimestamp")) > 0);
    AUTO_JSONTREE *dry = must(w, 201, "POST", PODS "?dryRun=All", J, POD("\"name\":\"dry\"", ""));
    expect_at("dry run", dry, "metadata.resourceVersion", NULL);
    done(w, 404, "GET", PODS "/dry", NULL, NULL);
    done(w, 201, "POST", PODS, J, POD("\"name\":\"dry\"", ""));
    done(w, 409, "POST", PODS "?dryRun=All", J, POD("\"name\":\"dry\"", ""));
    expect_done();
}

static void updates_keep_what_clients_cannot_change(void **state)
{
    struct world *w = *state;
    done(w, 201, "POST", PODS, J, POD("\"name\":\"p\",\"labels\":{\"a\":\"1\"}", ""));
    AUTO_JSONTREE *same = must(w, 200, "PATCH", PODS "/p", MP, "{}");
    expect_at("nothing changes", same, "metadata.resourceVersion", "\"1\"");
    AUTO_JSONTREE *sp =
        must(w, 200, "PATCH", PODS "/p", SP,
             "{\"metadata\":{\"generation\":9,\"creationTimestamp\":null,\"labels\":{\"b\":\"2\"}},"
             "\"status\":{\"phase\":\"Running\"}}");
    expect_at("patched", sp, "metadata.resourceVersion", "\"2\"");
    expect_at("patched", sp, "metadata.generation", "1");
    expect_at("patched", sp, "metadata.labels", "{\"a\":\"1\",\"b\":\"2\"}");
    expect_at("the status is another resource", sp, "status.phase", "\"Pending\"");
    AUTO_JSONTREE *st =
        must(w, 200, "PATCH", PODS "/p/status", MP,
             "{\"metadata\":{\"labels\":{\"x\":\"y\"}},\"status\":{\"phase\":\"Running\"},"
             "\"spec\":{\"nodeName\":\"zz\"}}");
    expect_at("of a pod's status", st, "status.phase", "\"Running\"");
    expect_at("of a pod's status", st, "metadata.labels.x", "\"y\"");
    expect_at("of a pod's status", st, "spec.nodeName", NULL);
    AUTO_JSONTREE *jp =
        must(w, 200, "PATCH", PODS "/p", JP,
             "[{\"op\":\"replace\",\"path\":\"/spec/containers/0/image\",\"value\":\"j\"}]");
    expect_at("a change of spec counts", jp, "metadata.generation", "2");
    AUTO_JSONTREE *dry = must(w, 200, "PATCH", PODS "/p?dryRun=All", MP,
                              "{\"metadata\":{\"labels\":{\"dry\":\"1\"}}}");
    expect_at("dry run", dry, "metadata.labels.dry", "\"1\"");
    AUTO_JSONTREE *got = must(w, 200, "GET", PODS "/p", NULL, NULL);
    expect_at("not stored", got, "metadata.labels.dry", NULL);
    expect_at("not stored", got, "metadata.resourceVersion", "\"4\"");
    static const char lease[] = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l";
    AUTO_JSONTREE *l = must(w, 201, "PUT", lease, J,
                            "{\"metadata\":{\"name\":\"l\"},\"spec\":{\"holderIdentity\":\"a\"}}");
    expect_at("a lease is created by PUT", l, "spec.holderIdentity", "\"a\"");
    static const struct refusal rows[] = {
        {"PUT", "/apis/coordination.k8s.io/v1/namespaces/default/leases/l", J,
         "{\"metadata\":{\"name\":\"l\"},\"spec\":{\"holderIdentity\":\"b\"}}", 422,
         "leases.coordination.k8s.io \"l\" is invalid: metadata.resourceVersion: Invalid value: 0: "
         "must be specified for an update",
         "Invalid",
         "{\"name\":\"l\",\"group\":\"coordination.k8s.io\",\"kind\":\"leases\",\"causes\":[{\"reason\":"
         "\"FieldValueInvalid\",\"message\":\"Invalid value: 0: must be specified for an update\","
         "\"field\":\"metadata.resourceVersion\"}]}"}};
    REFUSALS(w, rows);
}

static void bindings(void **state)
{
    struct world *w = *state;
    static const struct refusal rows[] = {
        {"POST", PODS "/b1/binding", J, BINDING("\"name\":\"b1\"", "\"name\":\"\""), 500,
         "target.name: Required value", NULL, NULL},
        {"POST", PODS "/b1/binding", J,
         BINDING("\"name\":\"b1\"", "\"kind\":\"Pod\",\"name\":\"n\""), 500,
         "target.kind: Unsupported value: \"Pod\": supported values: \"Node\", \"<empty>\"", NULL,
         NULL},
        {"POST", PODS "/b1/binding", J, BINDING("\"name\":\"zz\"", "\"name\":\"n1\""), 400,
         "name in URL does not match name in Binding object", "BadRequest", NULL},
        {"POST", PODS "/b1/binding", J,
         BINDING("\"name\":\"b1\",\"namespace\":\"other\"", "\"name\":\"n1\""), 400,
         "the namespace of the provided object does not match the namespace sent on the request",
         "BadRequest", NULL},
        {"POST", PODS "/b1/binding", J,
         BINDING("\"name\":\"b1\",\"resourceVersion\":\"77\"", "\"name\":\"n1\""), 409,
         "Operation cannot be fulfilled on pods \"b1\": StorageError: invalid object, Code: 4, Key: "
         "/registry/pods/default/b1, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
         "ResourceVersion in precondition: 77, ResourceVersion in object meta: 1",
         "Conflict", "{\"name\":\"b1\",\"kind\":\"pods\"}"},
        {"POST", PODS "/nope/binding", J, BINDING("\"name\":\"nope\"", "\"name\":\"n1\""), 404,
         "pods \"nope\" not found", "NotFound", "{\"name\":\"nope\",\"kind\":\"pods\"}"},
        {"POST", PODS "/b3/binding", J, BINDING("\"name\":\"b3\"", "\"name\":\"n1\""), 409,
         "Operation cannot be fulfilled on pods/binding \"b3\": pod b3 has non-empty "
         ".spec.schedulingGates",
         "Conflict", "{\"name\":\"b3\",\"kind\":\"pods/binding\"}"},
        {"POST", "/api/v1/namespaces/default/bindings", J, BINDING("", "\"name\":\"n1\""), 400,
         "Name parameter required.", "BadRequest", NULL},
    };
    static const struct refusal later[] = {
        {"POST", PODS "/b1/binding", J, BINDING("\"name\":\"b1\"", "\"name\":\"n1\""), 409,
         "Operation cannot be fulfilled on pods/binding \"b1\": pod b1 is already assigned to node "
         "\"n1\"",
         "Conflict", "{\"name\":\"b1\",\"kind\":\"pods/binding\"}"},
        {"POST", PODS "/b2/binding", J, BINDING("\"name\":\"b2\"", "\"name\":\"n1\""), 409,
         "Operation cannot be fulfilled on pods/binding \"b2\": pod b2 is being deleted, cannot be "
         "assigned to a host",
         "Conflict", "*"},
    };
    done(w, 201, "POST", PODS, J, POD("\"name\":\"b1\",\"labels\":{\"l\":\"1\"}", ""));
    done(w, 201, "POST", PODS, J, POD("\"name\":\"b2\"", ""));
    done(w, 201, "POST", PODS, J,
         POD("\"name\":\"b3\"", ",\"schedulingGates\":[{\"name\":\"g\"}]"));
    expect_refusals(w, rows, sizeof rows / sizeof rows[0]);
    done(w, 201, "POST", PODS "/b1/binding?dryRun=All", J,
         BINDING("\"name\":\"b1\"", "\"name\":\"n1\""));
    done(
        w, 200, "PATCH", PODS "/b1/status", SP,
        "{\"status\":{\"nominatedNodeName\":\"n3\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":"
        "\"False\",\"reason\":\"Unschedulable\",\"message\":\"m\"}]}}");
    uint64_t before = store_version(w->store);
    AUTO_JSONTREE *ok = must(
        w, 201, "POST", PODS "/b1/binding", J,
        BINDING(
            "\"name\":\"b1\",\"annotations\":{\"x/y\":\"1\"},\"labels\":{\"n\":\"2\",\"l\":\"3\"}",
            "\"kind\":\"Node\",\"name\":\"n1\""));
    expect_at("bound", ok, "status", "\"Success\"");
    expect_at("bound", ok, "code", "201");
    expect_int("in one version", (int64_t)before + 1, (int64_t)store_version(w->store));
    AUTO_JSONTREE *b1 = must(w, 200, "GET", PODS "/b1", NULL, NULL);
    expect_at("bound", b1, "spec.nodeName", "\"n1\"");
    expect_at("bound", b1, "metadata.labels", "{\"l\":\"3\",\"n\":\"2\"}");
    expect_at("bound", b1, "metadata.annotations", "{\"x/y\":\"1\"}");
    expect_at("bound", b1, "metadata.generation", "1");
    expect_at("bound", b1, "status.conditions.0.status", "\"True\"");
    expect_at("bound", b1, "status.conditions.0.reason", NULL);
    expect_at("bound", b1, "status.conditions.0.lastProbeTime", "null");
    expect_at("bound", b1, "status.conditions.1", NULL);
    expect_at("bound", b1, "status.nominatedNodeName", NULL);
    done(w, 201, "POST", "/api/v1/namespaces/default/bindings", J,
         BINDING("\"name\":\"b2\"", "\"name\":\"n1\""));
    AUTO_JSONTREE *b2 = must(w, 200, "DELETE", PODS "/b2", NULL, NULL);
    expect_at("a bound pod ends slowly", b2, "metadata.deletionGracePeriodSeconds", "30");
    expect_at("a bound pod ends slowly", b2, "metadata.generation", "2");
    REFUSALS(w, later);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bad_requests_get_the_real_answers, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_no_path_of_the_api, setup, teardown),
        cmocka_unit_test_setup_teardown(create_fills_in_what_is_the_servers, setup, teardown),
        cmocka_unit_test_setup_teardown(updates_keep_what_clients_cannot_change, setup, teardown),
        cmocka_unit_test_setup_teardown(bindings, setup, teardown),
    };
    return cmocka_run_group_tests_name("api", tests, NULL, NULL);
}
