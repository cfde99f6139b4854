// SPDX-License-Identifier: Apache-2.0
/*
 * The table of all rules (cases.json) on the pure path, from the bytes of a review to those of the
 * answer. The integration suite runs the same table over HTTPS and through kubectl. Each patch is
 * applied, and the answer to its result must be empty (I6).
 */
#include "webhook/review.h"

#include "test/unit/lib/base/expect.h"

#include "lib/base/file.h"
#include "lib/model/names.h"
#include "test/unit/webhook/webhook_kit.h"
#include "webhook/informer_cache.h"

#define CASES "test/unit/webhook/cases.json"

static const struct rules_crd crds[] = {{.group = "kubeflow.org",
                                         .kind = "TFJob",
                                         .path = {"spec", "tfReplicaSpecs", "*", "template"},
                                         .path_len = 4}};

/* The world of the table is all there is. */
static void enter(void *arg, const char *ns, struct rules_context *out)
{
    informer_cache_enter(arg, ns, out);
    out->groups_known = RULES_ALL;
    out->policies_known = RULES_ALL;
}

/* v as text, with the namespace in the place of {ns} */
static void print_in(json *v, const char *ns, struct strbuf *out)
{
    AUTO_STRBUF raw = {0};
    struct json_writer w;
    json_writer_init(&w, &raw);
    json_put_value(&w, v);
    for (const char *s = strbuf_str(&raw), *mark;; s = mark + 4) {
        mark = strstr(s, "{ns}");
        strbuf_add(out, s, mark ? (size_t)(mark - s) : strlen(s));
        if (!mark)
            return;
        strbuf_adds(out, ns);
    }
}

static void put_object(struct informer_cache *world, json *object, const char *ns, const char *name,
                       json *labels)
{
    AUTO_STRBUF text = {0};
    AUTO_JSON *doc = NULL;
    struct json_writer w;
    json_writer_init(&w, &text);
    json_object_begin(&w);
    json_kv_str(&w, "apiVersion", object ? json_get_str(object, "apiVersion") : "v1");
    json_kv_str(&w, "kind", object ? json_get_str(object, "kind") : "Namespace");
    json_key(&w, "metadata");
    json_object_begin(&w);
    json_kv_str(&w, "name", name);
    json_kv_str(&w, "namespace", str_or_empty(ns));
    json_key(&w, "labels");
    json_put_value(&w, labels);
    json_object_end(&w);
    json_key(&w, "spec");
    json_put_value(&w, json_get(object, "spec"));
    json_object_end(&w);
    assert_int_equal(0, json_parse(&doc, text.ptr, text.len, NULL));
    assert_true(informer_cache_put(world, json_root(doc)));
}

static void fill_world(struct informer_cache *world, json *table)
{
    for (struct json_iter ns = json_iter(json_get(table, "namespaces")); json_next(&ns);) {
        put_object(world, NULL, NULL, ns.key, ns.value);
        for (struct json_iter o = json_iter(json_get(table, "objects")); json_next(&o);)
            put_object(world, o.value, ns.key, json_get_str(json_get(o.value, "metadata"), "name"),
                       NULL);
    }
}

static void print_review(json *c, const char *ns, const char *object, struct strbuf *out)
{
    const char *api = json_get_str(json_get(c, "object"), "apiVersion");
    const char *slash = strchr(api, '/');
    const char *operation = json_get_str(c, "operation");
    AUTO_STRBUF old = {0};
    print_in(json_get(c, "old"), ns, &old);
    strbuf_addf(out,
                "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{"
                "\"uid\":\"u\",\"kind\":{\"group\":\"%.*s\",\"version\":\"%s\",\"kind\":\"%s\"},"
                "\"namespace\":\"%s\",\"operation\":\"%s\",\"subResource\":\"%s\","
                "\"object\":%s,\"oldObject\":%s}}",
                slash ? (int)(slash - api) : 0, api, slash ? slash + 1 : api,
                json_get_str(json_get(c, "object"), "kind"), ns, operation ? operation : "CREATE",
                str_or_empty(json_get_str(c, "subresource")), object, strbuf_str(&old));
}

static void expect_list(const char *row, json *expected, json *got)
{
    expect_int(row, (int64_t)json_len(expected), (int64_t)json_len(got));
    for (size_t i = 0; i < json_len(expected) || i < json_len(got); i++)
        expect_str(row, json_str(json_at(expected, i)), json_str(json_at(got, i)));
}

static void expect_refusal(const char *row, json *expected, json *response)
{
    AUTO_STRBUF all = {0};
    for (struct json_iter it = json_iter(expected); json_next(&it);)
        strbuf_addf(&all, "%s%s", all.len ? "; " : "", json_str(it.value));
    expect_str(row, all.len ? strbuf_str(&all) : NULL,
               json_get_str(json_get(response, "status"), "message"));
    expect_int(row, all.len == 0, json_get_bool(response, "allowed", false));
}

/* What the pod is after the patch; and that nothing is left to be done. */
static void expect_patched(const struct review_config *config, const char *row, json *c,
                           const char *ns, const char *object, const char *reply)
{
    struct error err = ERROR_INIT;
    AUTO_STRBUF patch = {0};
    AUTO_STRBUF after = {0};
    AUTO_JSON *doc = NULL;
    if (webhook_kit_patch_of(reply, &patch, &err) < 0 ||
        webhook_kit_apply(object, strbuf_str(&patch), &after, &err) < 0 ||
        json_parse(&doc, after.ptr, after.len, &err) < 0)
        fail_msg("%s: %s", row, err.text);
    const char *got = json_get_str(json_get(json_root(doc), "spec"), "schedulerName");
    const char *expected = json_get_str(c, "scheduler");
    expect_str(row,
               str_eq(expected, "ours")      ? NAME_SCHEDULER
               : str_eq(expected, "default") ? NULL
                                             : expected,
               got);
    struct arena arena;
    struct review_outcome o;
    AUTO_STRBUF review = {0};
    AUTO_STRBUF second = {0};
    arena_init(&arena, 0);
    print_review(c, ns, strbuf_str(&after), &review);
    webhook_kit_answer(config, review.ptr, &arena, &second, &o);
    expect_str(row, "untouched", review_result_name(o.result));
    arena_deinit(&arena);
}

static void run_case(const struct review_config *config, json *written)
{
    const char *ns = json_get_str(written, "in") ? json_get_str(written, "in") : "plain";
    const char *row = json_get_str(written, "row");
    struct arena arena;
    struct review_outcome o;
    AUTO_STRBUF text = {0};
    AUTO_STRBUF object = {0};
    AUTO_STRBUF review = {0};
    AUTO_STRBUF reply = {0};
    AUTO_JSON *doc = NULL;
    AUTO_JSON *answer = NULL;
    print_in(written, ns, &text);
    assert_int_equal(0, json_parse(&doc, text.ptr, text.len, NULL));
    json *c = json_root(doc);
    print_in(json_get(c, "object"), ns, &object);
    print_review(c, ns, object.ptr, &review);
    arena_init(&arena, 0);
    webhook_kit_answer(config, review.ptr, &arena, &reply, &o);
    assert_int_equal(0, json_parse(&answer, reply.ptr, reply.len, NULL));
    json *response = json_get(json_root(answer), "response");
    expect_int(row, 200, o.status);
    expect_refusal(row, json_get(c, "refused"), response);
    expect_list(row, json_get(c, "warned"), json_get(response, "warnings"));
    if (json_get(c, "scheduler"))
        expect_patched(config, row, c, ns, object.ptr, reply.ptr);
    arena_deinit(&arena);
}

static void every_rule_has_its_sentence(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    AUTO_STRBUF text = {0};
    AUTO_JSON *doc = NULL;
    if (file_read(CASES, 1 << 20, &text, &err) < 0 ||
        json_parse(&doc, text.ptr, text.len, &err) < 0)
        fail_msg("%s", err.text);
    struct informer_cache *world = informer_cache_new();
    fill_world(world, json_root(doc));
    struct review_config config = {
        .rules = {.scheduler = NAME_SCHEDULER, .own_ns = "own", .crds = crds, .crds_len = 1},
        .enter = enter,
        .leave = informer_cache_leave,
        .arg = world};
    json *cases = json_get(json_root(doc), "cases");
    expect_true("at least 150 cases", json_len(cases) >= 150);
    for (struct json_iter it = json_iter(cases); json_next(&it);)
        run_case(&config, it.value);
    informer_cache_stop(world);
    expect_done();
}

/* Before the first list, and when nothing follows from what is not there. */
static void what_is_not_known_is_never_refused(void **state)
{
    (void)state;
    static const char gang[] = "{\"metadata\":{\"labels\":{\"" NAME_LABEL_GANG_BARE
                               "\":\"g\"}},\"spec\":{\"containers\":[]}}";
    static const char burst[] =
        "{\"metadata\":{\"annotations\":{\"" NAME_ANN_BURST "\":\"eci\"}},\"spec\":{}}";
    static const char plain[] = "{\"metadata\":{},\"spec\":{}}";
    static struct label enabled[] = {{.key = NAME_INJECT, .value = "enabled"}};
    static const struct labels labels = {.items = enabled, .len = 1};
    static const struct {
        const char *row, *pod;
        enum rules_known known;
        const char *warning;
        const struct labels *of_namespace;
    } rows[] = {
        {"PodGroups are not listed yet", gang, RULES_NOT_YET,
         "metadata.labels[" NAME_LABEL_GANG_BARE
         "]: whether PodGroup n/g exists could not be checked, they are not listed yet",
         NULL},
        {"all PodGroups are known", gang, RULES_ALL,
         "metadata.labels[" NAME_LABEL_GANG_BARE
         "]: PodGroup n/g does not exist (yet); its pods wait until it does",
         NULL},
        {"some PodGroups are known", gang, RULES_SOME, NULL, NULL},
        {"ResourcePolicies are not listed yet", burst, RULES_NOT_YET,
         "metadata.annotations[" NAME_ANN_BURST
         "]: whether a ResourcePolicy selects this pod too could not be checked, they are not "
         "listed yet",
         NULL},
        {"all ResourcePolicies are known", burst, RULES_ALL, NULL, NULL},
        {"a policy might make it ours", plain, RULES_NOT_YET,
         "spec.schedulerName: whether a ResourcePolicy selects this pod, for " NAME_SCHEDULER
         ", could not be checked, they are not listed yet; create it again if it should",
         &labels},
        {"and does not where the namespace is not enabled", plain, RULES_NOT_YET, NULL, NULL},
        {"nor when all are known", plain, RULES_ALL, NULL, &labels},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct error err = ERROR_INIT;
        struct rules_config config = {.scheduler = NAME_SCHEDULER};
        struct rules_context context = {.ns = "n",
                                        .ns_labels = rows[i].of_namespace,
                                        .groups_known = rows[i].known,
                                        .policies_known = rows[i].known};
        struct rules_verdict v;
        struct arena arena;
        AUTO_JSON *doc = NULL;
        arena_init(&arena, 0);
        assert_int_equal(0, json_parse(&doc, rows[i].pod, strlen(rows[i].pod), &err));
        expect_int(rows[i].row, 0, rules_pod(&config, &context, json_root(doc), &arena, &v, &err));
        expect_int(rows[i].row, 0, (int64_t)v.refusals.len);
        expect_str(rows[i].row, rows[i].warning, v.warnings.len ? v.warnings.items[0] : NULL);
        arena_deinit(&arena);
    }
    expect_done();
}

static void the_option_workloads(void **state)
{
    (void)state;
    static const struct {
        const char *row, *text, *error;
        size_t len;
    } rows[] = {
        {"none", "", NULL, 0},
        {"one", "kubeflow.org/TFJob=spec.tfReplicaSpecs.*.template", NULL, 1},
        {"two", "a/B=template,c/D=spec.template", NULL, 2},
        {"no path", "a/B",
         "'a/B': must be GROUP/KIND=PATH, as kubeflow.org/TFJob=spec.tfReplicaSpecs.*.template", 0},
        {"no kind", "a/=x",
         "'a/=x': must be GROUP/KIND=PATH, as kubeflow.org/TFJob=spec.tfReplicaSpecs.*.template",
         0},
        {"an empty part", "a/B=x..y", "'a/B=x..y': the path must have 1 to 8 parts", 0},
        {"a path too long", "a/B=a.b.c.d.e.f.g.h.i",
         "'a/B=a.b.c.d.e.f.g.h.i': the path must have 1 to 8 parts", 0},
        {"ends with a star", "a/B=x.*", "'a/B=x.*': the path must end with a name", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct error err = ERROR_INIT;
        struct rules_crd *out = NULL;
        size_t len = 0;
        struct arena arena;
        arena_init(&arena, 0);
        int rc = rules_crds_parse(rows[i].text, &arena, &out, &len, &err);
        expect_int(rows[i].row, rows[i].error ? -1 : 0, rc);
        expect_str(rows[i].row, rows[i].error ? rows[i].error : "", err.text);
        if (rc == 0)
            expect_int(rows[i].row, (int64_t)rows[i].len, (int64_t)len);
        arena_deinit(&arena);
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule_has_its_sentence),
        cmocka_unit_test(what_is_not_known_is_never_refused),
        cmocka_unit_test(the_option_workloads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
