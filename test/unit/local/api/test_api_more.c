// SPDX-License-Identifier: Apache-2.0
/* Lists, watches, deletions, evictions, scale and apply: stories rather than single answers. The
 * events and states were seen on a real API server. */
#include "test/unit/local/api_world.h"

/* ---- lists ---- */

/* Names of a list, "a b c", and how many are left. */
static void names_of(struct jsontree *t, struct strbuf *out)
{
    strbuf_reset(out);
    for (struct jsonnode_iter it = jsonnode_iter(jsonnode_get(jsontree_root(t), "items"));
         jsonnode_next(&it);)
        strbuf_addf(out, "%s%s", out->len > 0 ? " " : "",
                    str_or_empty(jsonnode_str(jsonnode_path(it.value, "metadata", "name", NULL))));
}

static void expect_list(struct world *w, const char *url, const char *names)
{
    AUTO_JSONTREE *t = must(w, 200, "GET", url, NULL, NULL);
    AUTO_STRBUF got;
    strbuf_init(&got);
    names_of(t, &got);
    expect_str(url, names, strbuf_str(&got));
}

static void make_maps(struct world *w)
{
    done(w, 201, "POST", MAPS, J, "{\"metadata\":{\"name\":\"c1\",\"labels\":{\"k\":\"1\"}}}");
    done(w, 201, "POST", MAPS, J, "{\"metadata\":{\"name\":\"c2\",\"labels\":{\"k\":\"2\"}}}");
    done(w, 201, "POST", MAPS, J, "{\"metadata\":{\"name\":\"c3\",\"labels\":{\"k\":\"2\"}}}");
    done(w, 201, "POST", "/api/v1/namespaces/other/configmaps", J,
         "{\"metadata\":{\"name\":\"c4\"}}");
}

static void lists_select(void **state)
{
    struct world *w = *state;
    make_maps(w);
    static const struct {
        const char *url, *names;
    } rows[] = {
        {MAPS, "c1 c2 c3"},
        {"/api/v1/configmaps", "c1 c2 c3 c4"},
        {MAPS "?labelSelector=k", "c1 c2 c3"},
        {MAPS "?labelSelector=k%3D2", "c2 c3"},
        {MAPS "?labelSelector=k!%3D2", "c1"},
        {MAPS "?labelSelector=!k", ""},
        {MAPS "?labelSelector=k%20in%20(1,2),k%20notin%20(2)", "c1"},
        {MAPS "?fieldSelector=metadata.name%3Dc1", "c1"},
        {MAPS "?fieldSelector=metadata.name!%3Dc1", "c2 c3"},
        {MAPS "?fieldSelector=metadata.name%3D%3Dc2,metadata.namespace%3Ddefault", "c2"},
        {"/api/v1/configmaps?fieldSelector=metadata.namespace%3Dother", "c4"},
        {MAPS "?resourceVersion=0", "c1 c2 c3"},
        {MAPS "?resourceVersion=1", "c1 c2 c3"},
        {MAPS "?resourceVersion=1&resourceVersionMatch=NotOlderThan", "c1 c2 c3"},
        {MAPS "?resourceVersion=1&resourceVersionMatch=Exact", "c1"},
        {MAPS "?resourceVersion=2&resourceVersionMatch=Exact", "c1 c2"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect_list(w, rows[i].url, rows[i].names);
    AUTO_JSONTREE *t = must(w, 200, "GET", MAPS, NULL, NULL);
    expect_at("list", t, "kind", "\"ConfigMapList\"");
    expect_at("list", t, "metadata.resourceVersion", "\"4\"");
    expect_at("items of built-in kinds say no kind", t, "items.0.kind", NULL);
    expect_at("items of built-in kinds say no kind", t, "items.0.metadata.name", "\"c1\"");
    expect_done();
}

/* The next page of a list. */
static struct jsontree *page(struct world *w, const char *url, struct jsontree *last, int status)
{
    char next[600];
    const char *token =
        last ? jsonnode_str(jsonnode_path(jsontree_root(last), "metadata", "continue", NULL))
             : NULL;
    (void)str_format(next, sizeof next, "%s%s%s", url, token ? "&continue=" : "",
                     str_or_empty(token));
    return must(w, status, "GET", next, NULL, NULL);
}

static void pages_are_of_one_version(void **state)
{
    struct world *w = *state;
    AUTO_STRBUF got;
    strbuf_init(&got);
    make_maps(w);
    AUTO_JSONTREE *one = page(w, MAPS "?limit=1", NULL, 200);
    names_of(one, &got);
    expect_str("first page", "c1", strbuf_str(&got));
    expect_at("first page", one, "metadata.remainingItemCount", "2");
    /* All of what is left changes; the pages do not. */
    done(w, 200, "DELETE", MAPS "/c2", NULL, NULL);
    done(w, 200, "PATCH", MAPS "/c3", MP, "{\"data\":{\"new\":\"1\"}}");
    done(w, 201, "POST", MAPS, J, "{\"metadata\":{\"name\":\"c25\"}}");
    AUTO_JSONTREE *two = page(w, MAPS "?limit=1", one, 200);
    names_of(two, &got);
    expect_str("second page", "c2", strbuf_str(&got));
    expect_at("second page", two, "metadata.resourceVersion", "\"4\"");
    AUTO_JSONTREE *three = page(w, MAPS "?limit=1", two, 200);
    names_of(three, &got);
    expect_str("third page", "c3", strbuf_str(&got));
    expect_at("third page", three, "items.0.data", NULL);
    expect_at("third page is the last", three, "metadata.continue", NULL);
    expect_list(w, MAPS, "c1 c25 c3");
    AUTO_JSONTREE *with = page(w, MAPS "?limit=1&labelSelector=k", NULL, 200);
    expect_at("with a selector nobody counts", with, "metadata.remainingItemCount", NULL);
    store_compact(w->store);
    AUTO_JSONTREE *old = page(w, MAPS "?limit=1", one, 410);
    expect_at("forgotten", old, "reason", "\"Expired\"");
    AUTO_JSONTREE *exact =
        must(w, 410, "GET", MAPS "?resourceVersion=2&resourceVersionMatch=Exact", NULL, NULL);
    expect_at("forgotten", exact, "message",
              "\"The resourceVersion for the provided list is too old.\"");
    done(w, 400, "GET", MAPS "?continue=abc", NULL, NULL);
    expect_done();
}

static void forms(void **state)
{
    struct world *w = *state;
    static const struct {
        const char *accept, *url, *kind;
    } rows[] = {
        {"application/json;as=Table;v=v1;g=meta.k8s.io,application/json", MAPS, "Table"},
        {"application/json;as=Table;v=v1;g=meta.k8s.io", MAPS "/c1", "Table"},
        {"application/json;as=Table;v=v1beta1;g=meta.k8s.io, application/json", MAPS,
         "ConfigMapList"},
        {"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", MAPS,
         "PartialObjectMetadataList"},
        {"application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", MAPS "/c1",
         "PartialObjectMetadata"},
        {"application/vnd.kubernetes.protobuf, application/json", MAPS, "ConfigMapList"},
        {"application/vnd.kubernetes.protobuf,*/*", MAPS "/c1", "ConfigMap"},
        {"application/json;as=Nothing;v=v1;g=meta.k8s.io", MAPS, "Status"},
        {"application/vnd.kubernetes.protobuf", MAPS, "Status"},
    };
    make_maps(w);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct call *c = fake_call("GET", rows[i].url, NULL, NULL);
        AUTO_JSONTREE *t = NULL;
        c->accept = rows[i].accept;
        api_handle(w->api, c);
        assert_int_equal(0, jsontree_parse(&t, strbuf_str(&c->out), c->out.len, NULL));
        expect_str(rows[i].accept, rows[i].kind, jsonnode_get_str(jsontree_root(t), "kind"));
        fake_call_free(c);
    }
    expect_done();
}

/* ---- watches ---- */

/* "ADDED c1@1 MODIFIED c1@2": and forgets them. */
static void expect_events(const char *row, struct call *c, const char *expected)
{
    AUTO_STRBUF got;
    strbuf_init(&got);
    for (const char *at = strbuf_str(&c->out); *at != '\0';) {
        AUTO_JSON *doc = NULL;
        size_t n = strcspn(at, "\n");
        if (json_parse(&doc, at, n, NULL) < 0)
            fail_msg("%s: not a line: %.*s", row, (int)n, at);
        json *object = json_get(json_root(doc), "object");
        json *meta = json_get(object, "metadata");
        strbuf_addf(&got, "%s%s", got.len > 0 ? " " : "",
                    str_or_empty(json_get_str(json_root(doc), "type")));
        if (json_get_str(meta, "name"))
            strbuf_addf(&got, " %s", json_get_str(meta, "name"));
        if (json_get_str(meta, "resourceVersion"))
            strbuf_addf(&got, "@%s", json_get_str(meta, "resourceVersion"));
        if (json_get_str(object, "message"))
            strbuf_addf(&got, " %s", json_get_str(object, "message"));
        at += n + 1;
    }
    expect_str(row, expected, strbuf_str(&got));
    strbuf_reset(&c->out);
}

static void gone(struct call *c)
{
    c->on_close(c->arg);
    fake_call_free(c);
}

static void watches_see_changes_as_their_selectors_do(void **state)
{
    struct world *w = *state;
    make_maps(w);
    struct call *all = ask(w, "GET", MAPS "?watch=true", NULL, NULL);
    struct call *two = ask(w, "GET", MAPS "?watch=1&labelSelector=k%3D2", NULL, NULL);
    struct call *since = ask(w, "GET", MAPS "?watch=true&resourceVersion=2", NULL, NULL);
    struct call *now = ask(w, "GET", "/api/v1/configmaps?watch=true&resourceVersion=4", NULL, NULL);
    struct call *old_form =
        ask(w, "GET", "/api/v1/watch/namespaces/default/configmaps?resourceVersion=0", NULL, NULL);
    struct call *future = ask(w, "GET", MAPS "?watch=true&resourceVersion=6", NULL, NULL);
    expect_events("all: what is there", all, "ADDED c1@1 ADDED c2@2 ADDED c3@3");
    expect_events("k=2: what is there", two, "ADDED c2@2 ADDED c3@3");
    expect_events("since 2: what happened after", since, "ADDED c3@3");
    expect_events("since now: nothing", now, "");
    expect_events("the old form of the path", old_form, "ADDED c1@1 ADDED c2@2 ADDED c3@3");
    done(w, 200, "PATCH", MAPS "/c1", MP, "{\"metadata\":{\"labels\":{\"k\":\"2\"}}}");
    done(w, 200, "PATCH", MAPS "/c2", MP,
         "{\"metadata\":{\"labels\":{\"k\":\"1\"}},\"data\":{\"x\":\"y\"}}");
    expect_true("what leaves is shown as it was",
                strstr(strbuf_str(&two->out), "\"x\":\"y\"") == NULL);
    done(w, 200, "PATCH", MAPS "/c3", MP, "{\"data\":{\"x\":\"y\"}}");
    done(w, 200, "PATCH", MAPS "/c3", MP, "{\"data\":{\"x\":\"y\"}}");
    done(w, 200, "DELETE", MAPS "/c1", NULL, NULL);
    done(w, 200, "DELETE", MAPS "/c2", NULL, NULL);
    expect_events("all", all,
                  "MODIFIED c1@5 MODIFIED c2@6 MODIFIED c3@7 DELETED c1@8 DELETED c2@9");
    expect_events("k=2", two, "ADDED c1@5 DELETED c2@6 MODIFIED c3@7 DELETED c1@8");
    expect_events("all namespaces", now,
                  "MODIFIED c1@5 MODIFIED c2@6 MODIFIED c3@7 DELETED c1@8 DELETED c2@9");
    expect_events("from a version to come", future, "MODIFIED c3@7 DELETED c1@8 DELETED c2@9");
    gone(two);
    done(w, 200, "PATCH", MAPS "/c3", MP, "{\"data\":{\"x\":\"z\"}}");
    expect_events("others go on", all, "MODIFIED c3@10");
    api_close_watches(w->api);
    expect_true("ended", all->ended && since->ended && now->ended && old_form->ended);
    fake_call_free(all);
    fake_call_free(since);
    fake_call_free(now);
    fake_call_free(old_form);
    fake_call_free(future);
    expect_done();
}

static void watches_of_the_past(void **state)
{
    struct world *w = *state;
    make_maps(w);
    done(w, 200, "DELETE", MAPS "/c1", NULL, NULL);
    struct call *replayed =
        ask(w, "GET", MAPS "?watch=true&resourceVersion=1&labelSelector=k%3D1", NULL, NULL);
    expect_events("replayed through the selector", replayed, "DELETED c1@5");
    gone(replayed);
    store_compact(w->store);
    struct call *old = ask(w, "GET", MAPS "?watch=true&resourceVersion=1", NULL, NULL);
    expect_int("410 under 200", 200, old->status);
    expect_str(
        "410 under 200",
        "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
        "\"status\":\"Failure\",\"message\":\"too old resource version: 1 (5)\",\"reason\":"
        "\"Expired\",\"code\":410}}\n",
        strbuf_str(&old->out));
    expect_true("and it is over", old->done);
    fake_call_free(old);
    struct call *first =
        ask(w, "GET",
            MAPS "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
                 "&allowWatchBookmarks=true",
            NULL, NULL);
    expect_true(
        "the end of the beginning",
        strstr(strbuf_str(&first->out),
               "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\","
               "\"metadata\":{\"resourceVersion\":\"5\",\"annotations\":"
               "{\"k8s.io/initial-events-end\":\"true\"}}}}\n") != NULL);
    expect_events("a list by watch", first, "ADDED c2@2 ADDED c3@3 BOOKMARK@5");
    gone(first);
    expect_done();
}

static void watches_end_with_a_bookmark(void **state)
{
    struct world *w = *state;
    make_maps(w);
    int64_t begun = clock_mono_ms();
    struct call *c = ask(
        w, "GET", MAPS "?watch=true&resourceVersion=4&timeoutSeconds=3&allowWatchBookmarks=true",
        NULL, NULL);
    struct call *brief = ask(
        w, "GET", MAPS "?watch=true&resourceVersion=4&timeoutSeconds=1&allowWatchBookmarks=true",
        NULL, NULL);
    while (!c->ended && clock_mono_ms() - begun < 20000)
        loop_once(w->loop, 100);
    expect_true("ended by itself", c->ended && brief->ended);
    expect_true("not before its time", clock_mono_ms() - begun >= 3000);
    expect_events("with a bookmark two seconds before", c, "BOOKMARK@4");
    expect_events("too short for a bookmark", brief, "");
    fake_call_free(c);
    fake_call_free(brief);
    expect_done();
}

static void tables_are_watched_with_columns_once(void **state)
{
    struct world *w = *state;
    struct call *c = fake_call("GET", MAPS "?watch=true", NULL, NULL);
    c->accept = "application/json;as=Table;v=v1;g=meta.k8s.io";
    api_handle(w->api, c);
    make_maps(w);
    AUTO_JSON *doc = NULL;
    const char *line = strbuf_str(&c->out);
    size_t n = strcspn(line, "\n");
    assert_int_equal(0, json_parse(&doc, line, n, NULL));
    json *object = json_get(json_root(doc), "object");
    expect_str("a table", "Table", json_get_str(object, "kind"));
    expect_true("with columns", json_len(json_get(object, "columnDefinitions")) > 0);
    AUTO_JSON *second = NULL;
    assert_int_equal(0, json_parse(&second, line + n + 1, strcspn(line + n + 1, "\n"), NULL));
    expect_int(
        "without", 0,
        (int64_t)json_len(json_get(json_get(json_root(second), "object"), "columnDefinitions")));
    gone(c);
    expect_done();
}

/* ---- deletions ---- */

static void pods_go_as_on_a_real_server(void **state)
{
    struct world *w = *state;
    struct call *c = ask(w, "GET", PODS "?watch=true", NULL, NULL);
    done(w, 201, "POST", PODS, J, POD("\"name\":\"w1\"", ""));
    AUTO_JSONTREE *now = must(w, 200, "DELETE", PODS "/w1", NULL, NULL);
    expect_at("an unbound pod goes at once", now, "metadata.deletionGracePeriodSeconds", "0");
    expect_at("an unbound pod goes at once", now, "metadata.generation", "2");
    expect_events("in two steps", c, "ADDED w1@1 MODIFIED w1@2 DELETED w1@3");
    done(w, 201, "POST", PODS, J, POD("\"name\":\"w2\"", ",\"nodeName\":\"n1\""));
    AUTO_JSONTREE *slow = must(w, 200, "DELETE", PODS "/w2", NULL, NULL);
    expect_at("a bound pod has time", slow, "metadata.deletionGracePeriodSeconds", "30");
    AUTO_JSONTREE *again = must(w, 200, "DELETE", PODS "/w2", NULL, NULL);
    expect_at("asked twice", again, "metadata.resourceVersion", "\"5\"");
    AUTO_JSONTREE *sooner = must(w, 200, "DELETE", PODS "/w2?gracePeriodSeconds=5", NULL, NULL);
    expect_at("sooner", sooner, "metadata.deletionGracePeriodSeconds", "5");
    expect_at("sooner", sooner, "metadata.generation", "2");
    done(w, 200, "DELETE", PODS "/w2", J,
         "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"gracePeriodSeconds\":0}");
    expect_events("until the kubelet says so", c,
                  "ADDED w2@4 MODIFIED w2@5 MODIFIED w2@6 MODIFIED w2@7 DELETED w2@8");
    done(w, 201, "POST", PODS, J, POD("\"name\":\"f1\",\"finalizers\":[\"x.io/y\"]", ""));
    AUTO_JSONTREE *held = must(w, 200, "DELETE", PODS "/f1", NULL, NULL);
    expect_at("held by a finalizer", held, "metadata.finalizers", "[\"x.io/y\"]");
    static const struct refusal rows[] = {
        {"PATCH", PODS "/f1", MP, "{\"metadata\":{\"finalizers\":[\"a.io/b\"]}}", 422,
         "Pod \"f1\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the "
         "object is being deleted, found new finalizers []string{\"a.io/b\"}",
         "Invalid", "*"}};
    expect_refusals(w, rows, 1);
    done(w, 200, "PATCH", PODS "/f1", MP, "{\"metadata\":{\"finalizers\":null}}");
    done(w, 404, "GET", PODS "/f1", NULL, NULL);
    expect_events("gone with its last finalizer", c, "ADDED f1@9 MODIFIED f1@10 DELETED f1@11");
    gone(c);
    expect_done();
}

static void other_kinds_go(void **state)
{
    struct world *w = *state;
    make_maps(w);
    AUTO_JSONTREE *ok = must(w, 200, "DELETE", MAPS "/c1", NULL, NULL);
    expect_at("at once", ok, "status", "\"Success\"");
    expect_at("at once", ok, "details.name", "\"c1\"");
    expect_at("at once", ok, "details.kind", "\"configmaps\"");
    AUTO_JSONTREE *dry = must(w, 200, "DELETE", MAPS "/c2?dryRun=All", NULL, NULL);
    expect_at("dry run", dry, "status", "\"Success\"");
    AUTO_JSONTREE *fg = must(w, 200, "DELETE", MAPS "/c2?propagationPolicy=Foreground", NULL, NULL);
    expect_at("foreground", fg, "metadata.finalizers", "[\"foregroundDeletion\"]");
    AUTO_JSONTREE *orphan = must(w, 200, "DELETE", MAPS "/c2?propagationPolicy=Orphan", NULL, NULL);
    expect_at("orphan", orphan, "metadata.finalizers", "[\"orphan\"]");
    done(w, 200, "DELETE", MAPS "/c2?propagationPolicy=Background", NULL, NULL);
    done(w, 404, "GET", MAPS "/c2", NULL, NULL);
    expect_done();
}

static void many_go(void **state)
{
    struct world *w = *state;
    AUTO_STRBUF got;
    strbuf_init(&got);
    make_maps(w);
    AUTO_JSONTREE *dry = must(w, 200, "DELETE", MAPS "?labelSelector=k&dryRun=All", NULL, NULL);
    names_of(dry, &got);
    expect_str("dry run", "c1 c2 c3", strbuf_str(&got));
    AUTO_JSONTREE *t = must(w, 200, "DELETE", MAPS "?labelSelector=k%3D2", NULL, NULL);
    names_of(t, &got);
    expect_str("what went", "c2 c3", strbuf_str(&got));
    expect_list(w, "/api/v1/configmaps", "c1 c4");
    done(w, 405, "DELETE", "/api/v1/namespaces", NULL, NULL);
    expect_done();
}

static void namespaces_end_when_they_are_empty(void **state)
{
    struct world *w = *state;
    done(w, 201, "POST", "/api/v1/namespaces", J, "{\"metadata\":{\"name\":\"nn\"}}");
    AUTO_JSONTREE *t = must(w, 200, "DELETE", "/api/v1/namespaces/nn", NULL, NULL);
    expect_at("terminating", t, "status.phase", "\"Terminating\"");
    expect_at("terminating", t, "spec.finalizers", "[\"kubernetes\"]");
    expect_at("terminating", t, "metadata.deletionGracePeriodSeconds", NULL);
    done(w, 200, "PUT", "/api/v1/namespaces/nn/finalize", J,
         "{\"metadata\":{\"name\":\"nn\"},\"spec\":{\"finalizers\":[]}}");
    done(w, 404, "GET", "/api/v1/namespaces/nn", NULL, NULL);
    expect_done();
}

/* ---- eviction, scale, apply, the kubelet's streams ---- */

#define PDB "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
#define EVICTION \
    "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"name\":\"b1\"}}"
static void evictions_ask_the_budget(void **state)
{
    struct world *w = *state;
    static const struct refusal processing[] = {
        {"POST", PODS "/b1/eviction", J, EVICTION, 429,
         "Cannot evict pod as it would violate the pod's disruption budget.", "TooManyRequests",
         "{\"causes\":[{\"reason\":\"DisruptionBudget\",\"message\":\"The disruption budget pdb is still "
         "being processed by the server.\"}],\"retryAfterSeconds\":10}"},
        {"POST", PODS "/b1/eviction", J, "{\"metadata\":{\"name\":\"zz\"}}", 400,
         "name in URL does not match name in Eviction object", "BadRequest", NULL},
        {"POST", PODS "/nope/eviction", J, "{\"metadata\":{\"name\":\"nope\"}}", 404,
         "pods \"nope\" not found", "NotFound", "*"}};
    static const struct refusal none[] = {
        {"POST", PODS "/b1/eviction", J, EVICTION, 429,
         "Cannot evict pod as it would violate the pod's disruption budget.", "TooManyRequests",
         "{\"causes\":[{\"reason\":\"DisruptionBudget\",\"message\":\"The disruption budget pdb needs 1 "
         "healthy pods and has 1 currently\"}]}"}};
    done(w, 201, "POST", PODS, J,
         POD("\"name\":\"b1\",\"labels\":{\"n\":\"2\"}", ",\"nodeName\":\"n1\""));
    done(
        w, 200, "PATCH", PODS "/b1/status", MP,
        "{\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}");
    done(
        w, 201, "POST", PDB, J,
        "{\"metadata\":{\"name\":\"pdb\"},\"spec\":{\"minAvailable\":1,\"selector\":{\"matchLabels\":{\"n\":\"2\"}}}}");
    expect_refusals(w, processing, sizeof processing / sizeof processing[0]);
    done(
        w, 200, "PATCH", PDB "/pdb/status", MP,
        "{\"status\":{\"disruptionsAllowed\":0,\"currentHealthy\":1,\"desiredHealthy\":1,\"expectedPods\":1,"
        "\"observedGeneration\":1}}");
    expect_refusals(w, none, 1);
    done(w, 200, "PATCH", PDB "/pdb/status", MP, "{\"status\":{\"disruptionsAllowed\":1}}");
    done(w, 201, "POST", PODS "/b1/eviction?dryRun=All", J, EVICTION);
    AUTO_JSONTREE *before = must(w, 200, "GET", PODS "/b1", NULL, NULL);
    expect_at("dry run", before, "metadata.deletionTimestamp", NULL);
    done(w, 201, "POST", PODS "/b1/eviction", J, EVICTION);
    AUTO_JSONTREE *pod = must(w, 200, "GET", PODS "/b1", NULL, NULL);
    expect_at("evicted", pod, "metadata.deletionGracePeriodSeconds", "30");
    expect_at("evicted", pod, "status.conditions.1.type", "\"DisruptionTarget\"");
    expect_at("evicted", pod, "status.conditions.1.reason", "\"EvictionByEvictionAPI\"");
    AUTO_JSONTREE *pdb = must(w, 200, "GET", PDB "/pdb", NULL, NULL);
    expect_at("one is spent", pdb, "status.disruptionsAllowed", "0");
    expect_at("one is spent", pdb, "status.conditions.0.reason", "\"InsufficientPods\"");
    expect_done();
}

#define DEPLOYMENT "/apis/apps/v1/namespaces/default/deployments"
static void scale(void **state)
{
    struct world *w = *state;
    done(
        w, 201, "POST", DEPLOYMENT, J,
        "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":2,\"selector\":{\"matchLabels\":{\"c\":\"d\","
        "\"a\":\"b\"},\"matchExpressions\":[{\"key\":\"b\",\"operator\":\"In\",\"values\":[\"x\",\"y\"]}]},"
        "\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\",\"c\":\"d\",\"b\":\"x\"}},\"spec\":{\"containers\":"
        "[{\"name\":\"c\",\"image\":\"i\"}]}}}}");
    AUTO_JSONTREE *t = must(w, 200, "GET", DEPLOYMENT "/d/scale", NULL, NULL);
    expect_at("scale", t, "kind", "\"Scale\"");
    expect_at("scale", t, "spec.replicas", "2");
    expect_at("scale", t, "status", "{\"replicas\":0,\"selector\":\"a=b,b in (x,y),c=d\"}");
    done(
        w, 200, "PUT", DEPLOYMENT "/d/scale", J,
        "{\"apiVersion\":\"autoscaling/v1\",\"kind\":\"Scale\",\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":5}}");
    AUTO_JSONTREE *patched =
        must(w, 200, "PATCH", DEPLOYMENT "/d/scale", MP, "{\"spec\":{\"replicas\":3}}");
    expect_at("patched", patched, "spec.replicas", "3");
    AUTO_JSONTREE *d = must(w, 200, "GET", DEPLOYMENT "/d", NULL, NULL);
    expect_at("the object", d, "spec.replicas", "3");
    expect_at("the object", d, "metadata.generation", "3");
    AUTO_JSONTREE *st =
        must(w, 200, "PATCH", DEPLOYMENT "/d/status", MP,
             "{\"status\":{\"replicas\":7},\"metadata\":{\"labels\":{\"via\":\"status\"}}}");
    expect_at("a status of apps changes no labels", st, "metadata.labels", NULL);
    expect_at("a status", st, "status.replicas", "7");
    static const struct refusal rows[] = {
        {"PATCH", DEPLOYMENT "/d/scale", MP, "{\"spec\":{\"replicas\":-3}}", 422,
         "Scale.autoscaling \"d\" is invalid: spec.replicas: Invalid value: -3: must be greater than or "
         "equal to 0",
         "Invalid",
         "{\"name\":\"d\",\"group\":\"autoscaling\",\"kind\":\"Scale\",\"causes\":[{\"reason\":"
         "\"FieldValueInvalid\",\"message\":\"Invalid value: -3: must be greater than or equal to 0\","
         "\"field\":\"spec.replicas\"}]}"},
        {"PUT", DEPLOYMENT "/d/scale", J,
         "{\"metadata\":{\"name\":\"d\",\"resourceVersion\":\"9999\"},\"spec\":{\"replicas\":5}}",
         409,
         "Operation cannot be fulfilled on deployments.apps \"d\": the object has been modified; please "
         "apply your changes to the latest version and try again",
         "Conflict", "{\"name\":\"d\",\"group\":\"apps\",\"kind\":\"deployments\"}"},
        {"GET", DEPLOYMENT "/none/scale", NULL, NULL, 404, "deployments.apps \"none\" not found",
         "NotFound", "*"},
    };
    REFUSALS(w, rows);
}

static void apply(void **state)
{
    struct world *w = *state;
    static const char cm[] =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\ndata: {a: '1'}\n";
    AUTO_JSONTREE *t = must(w, 201, "PATCH", MAPS "/cm?fieldManager=a", AP, cm);
    expect_at("created", t, "data", "{\"a\":\"1\"}");
    expect_at("created", t, "metadata.managedFields.0.manager", "\"a\"");
    expect_at("created", t, "metadata.managedFields.0.fieldsV1", "{\"f:data\":{\"f:a\":{}}}");
    AUTO_JSONTREE *same = must(w, 200, "PATCH", MAPS "/cm?fieldManager=a", AP, cm);
    expect_at("the same again changes nothing", same, "metadata.resourceVersion", "\"1\"");
    static const struct refusal rows[] = {
        {"PATCH", MAPS "/cm?fieldManager=b", AP,
         "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"cm\"},\"data\":{\"a\":\"9\"}}",
         409, "Apply failed with 1 conflict: conflict with \"a\": .data.a", "Conflict",
         "{\"causes\":[{\"reason\":\"FieldManagerConflict\",\"message\":\"conflict with \\\"a\\\"\","
         "\"field\":\".data.a\"}]}"},
        {"PATCH", MAPS "/cm?fieldManager=b", AP, "a: [1", 400, NULL, "BadRequest", NULL}};
    expect_refusals(w, rows, 1);
    done(w, 400, "PATCH", rows[1].url, AP, rows[1].body);
    AUTO_JSONTREE *forced =
        must(w, 200, "PATCH", MAPS "/cm?fieldManager=b&force=true", AP, rows[0].body);
    expect_at("forced", forced, "data.a", "\"9\"");
    static const char group[] = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/default/podgroups/g";
    done(w, 415, "PATCH", group, SP, "{}");
    expect_done();
}

static void there_is_no_kubelet(void **state)
{
    struct world *w = *state;
    done(w, 201, "POST", PODS, J, POD("\"name\":\"p\"", ""));
    static const struct refusal rows[] = {
        {"GET", PODS "/p/log", NULL, NULL, 501, "logs are not simulated by cosched-local", NULL,
         NULL},
        {"POST", PODS "/p/exec?command=ls", NULL, NULL, 501,
         "exec is not simulated by cosched-local", NULL, NULL},
        {"GET", PODS "/none/log", NULL, NULL, 404, "pods \"none\" not found", "NotFound", "*"},
    };
    REFUSALS(w, rows);
}

static void those_inside_follow_the_same_rules(void **state)
{
    struct world *w = *state;
    AUTO_JSONTREE *t = NULL;
    struct object *o = NULL;
    struct error err = ERROR_INIT;
    static const char text[] = POD("\"generateName\":\"in-\"", "");
    assert_int_equal(0, jsontree_parse(&t, text, strlen(text), NULL));
    expect_int("created", 0, api_create(w->api, &kind_pods, "default", t, &o, &err));
    char name[64];
    (void)str_format(name, sizeof name, "%s", o->name);
    expect_int("another uid", -1,
               api_delete(w->api, &kind_pods, "default", name, "other", -1, API_BACKGROUND, &err));
    expect_int("another uid", 409, err.http_status);
    expect_int("foreground", 0,
               api_delete(w->api, &kind_pods, "default", name, NULL, 0, API_FOREGROUND, &err));
    expect_true("stays", store_get(w->store, &kind_pods, "default", name) != NULL);
    expect_int("not there", -1,
               api_delete(w->api, &kind_pods, "default", "x", NULL, 0, API_BACKGROUND, &err));
    expect_int("not there", ERROR_NOT_FOUND, err.code);
    AUTO_JSONTREE *bad = NULL;
    assert_int_equal(0, jsontree_parse(&bad, "{\"metadata\":{\"name\":\"b\"}}", 25, NULL));
    expect_int("invalid", -1, api_create(w->api, &kind_pods, "default", bad, NULL, &err));
    expect_done();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lists_select),
        TEST(pages_are_of_one_version),
        TEST(forms),
        TEST(watches_see_changes_as_their_selectors_do),
        TEST(watches_of_the_past),
        TEST(watches_end_with_a_bookmark),
        TEST(tables_are_watched_with_columns_once),
        TEST(pods_go_as_on_a_real_server),
        TEST(other_kinds_go),
        TEST(many_go),
        TEST(namespaces_end_when_they_are_empty),
        TEST(evictions_ask_the_budget),
        TEST(scale),
        TEST(apply),
        TEST(there_is_no_kubelet),
        TEST(those_inside_follow_the_same_rules),
    };
    return cmocka_run_group_tests_name("api, more", tests, NULL, NULL);
}
