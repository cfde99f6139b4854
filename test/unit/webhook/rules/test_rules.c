// SPDX-License-Identifier: Apache-2.0
/* Pods are written as parts of JSON: META goes into metadata, SPEC into spec. */
#include "webhook/rules/rules.h"

#include "test/unit/lib/base/expect.h"

#include <time.h>

#include "lib/base/str.h"
#include "lib/model/names.h"

#define BOX(resources) "\"containers\":[{\"name\":\"a\",\"resources\":{" resources "}}]"
#define LIMIT(name, n) BOX("\"limits\":{\"" name "\":" n "}")
#define LABEL(key, value) "\"labels\":{\"" key "\":\"" value "\"}"
#define ANN(key, value) "\"annotations\":{\"" key "\":\"" value "\"}"
#define PLAIN BOX("\"limits\":{\"cpu\":\"1\"}")

/* What the rules say about one pod, in one line. */
struct answer {
    struct arena arena;
    struct json_doc *doc;
    struct rules_verdict verdict;
};

static void ask(struct answer *a, const struct rules_config *config, const char *ns,
                const char *ns_labels, const char *meta, const char *spec)
{
    struct error err = ERROR_INIT;
    AUTO_STRBUF text;
    strbuf_init(&text);
    arena_init(&a->arena, 0);
    strbuf_addf(&text, "{\"metadata\":{%s},\"spec\":{%s}}", meta, spec);
    if (json_parse(&a->doc, text.ptr, text.len, &err) < 0)
        fail_msg("%s: %s", text.ptr, err.text);
    struct labels labels = {0};
    if (ns_labels) {
        AUTO_JSON *doc = NULL;
        assert_int_equal(0, json_parse(&doc, ns_labels, strlen(ns_labels), &err));
        assert_int_equal(0, labels_decode(json_root(doc), &a->arena, &labels, &err));
    }
    struct rules_context context = {.ns = ns,
                                    .ns_labels = ns_labels ? &labels : NULL,
                                    .groups_known = RULES_SOME,
                                    .policies_known = RULES_SOME};
    if (rules_pod(config, &context, json_root(a->doc), &a->arena, &a->verdict, &err) < 0)
        fail_msg("%s: %s", text.ptr, err.text);
}

static void done(struct answer *a)
{
    json_free(a->doc);
    arena_deinit(&a->arena);
}

static const struct rules_config usual = {.scheduler = NAME_SCHEDULER, .own_ns = "cosched-system"};
static const struct rules_config nvidia = {
    .scheduler = NAME_SCHEDULER, .own_ns = "cosched-system", .inject_nvidia = true};

static void which_pods_get_our_scheduler(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        const char *meta, *spec;
        const char *trigger; /* NULL: left alone */
        const char *ns;      /* NULL: "default" */
        const char *ns_labels;
        const struct rules_config *config; /* NULL: usual */
    } rows[] = {
        {"a pod that asks for nothing is left alone", "", PLAIN, NULL, 0, 0, 0},
        {"a pod without containers is left alone", "", "\"containers\":[]", NULL, 0, 0, 0},
        {"GPU memory in limits", "", LIMIT("aliyun.com/gpu-mem", "\"3\""), "gpu-mem", 0, 0, 0},
        {"GPU memory as a number", "", LIMIT("aliyun.com/gpu-mem", "3"), "gpu-mem", 0, 0, 0},
        {"GPU memory in requests only", "", BOX("\"requests\":{\"aliyun.com/gpu-mem\":\"3\"}"),
         "gpu-mem", 0, 0, 0},
        {"GPU memory of 0 asks for nothing", "", LIMIT("aliyun.com/gpu-mem", "\"0\""), NULL, 0, 0,
         0},
        {"GPU memory in an init container", "",
         PLAIN ",\"initContainers\":[{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"1\"}}}]",
         "gpu-mem", 0, 0, 0},
        {"GPU memory in the second container", "",
         "\"containers\":[{\"name\":\"a\"},{\"resources\":{\"limits\":{\"aliyun.com/gpu-mem\":\"1\"}}}]",
         "gpu-mem", 0, 0, 0},
        {"GPU compute", "", LIMIT("aliyun.com/gpu-core.percentage", "\"30\""), "gpu-core", 0, 0, 0},
        {"whole cards by topology", "", LIMIT("aliyun.com/gpu", "\"2\""), "gpu", 0, 0, 0},
        {"another vendor's resource is not ours", "", LIMIT("amd.com/gpu", "\"2\""), NULL, 0, 0, 0},
        {"a gpu-count label alone asks for nothing", LABEL("aliyun.com/gpu-count", "2"), PLAIN,
         NULL, 0, 0, 0},
        {"gpu-count with GPU memory", LABEL("aliyun.com/gpu-count", "2"),
         LIMIT("aliyun.com/gpu-mem", "4"), "gpu-mem", 0, 0, 0},
        {"gang form 1: name and min-available labels",
         "\"labels\":{\"pod-group.scheduling.sigs.k8s.io/name\":\"g\","
         "\"pod-group.scheduling.sigs.k8s.io/min-available\":\"2\"}",
         PLAIN, "gang", 0, 0, 0},
        {"gang form 2: the bare label", LABEL("pod-group.scheduling.sigs.k8s.io", "g"), PLAIN,
         "gang", 0, 0, 0},
        {"gang form 2 with nvidia.com/gpu", LABEL("pod-group.scheduling.sigs.k8s.io", "g"),
         LIMIT("nvidia.com/gpu", "1"), "gang", 0, 0, 0},
        {"gang form 3: scheduling.x-k8s.io", LABEL("scheduling.x-k8s.io/pod-group", "g"), PLAIN,
         "gang", 0, 0, 0},
        {"gang form 4: annotations",
         "\"annotations\":{\"gang.scheduling.koordinator.sh/name\":\"g\","
         "\"gang.scheduling.koordinator.sh/min-available\":\"2\"}",
         PLAIN, "gang", 0, 0, 0},
        {"gang form 5: spec.schedulingGroup", "",
         PLAIN ",\"schedulingGroup\":{\"podGroupName\":\"g\"}", "gang", 0, 0, 0},
        {"a GPU topology job", LABEL("gpu-topology", "job"), PLAIN, "gpu-topology", 0, 0, 0},
        {"cpuset-scheduler true", ANN("cpuset-scheduler", "true"), PLAIN, "cpuset", 0, 0, 0},
        {"cpuset-scheduler required", ANN("cpuset-scheduler", "required"), PLAIN, "cpuset", 0, 0,
         0},
        {"cpuset-scheduler false means nothing", ANN("cpuset-scheduler", "false"), PLAIN, NULL, 0,
         0, 0},
        {"cpuset-scheduler as a label means nothing", LABEL("cpuset-scheduler", "true"), PLAIN,
         NULL, 0, 0, 0},
        {"burst eci", ANN("alibabacloud.com/burst-resource", "eci"), PLAIN, "burst", 0, 0, 0},
        {"burst eci_only", ANN("alibabacloud.com/burst-resource", "eci_only"), PLAIN, "burst", 0, 0,
         0},
        {"an empty burst means not set", ANN("alibabacloud.com/burst-resource", ""), PLAIN, NULL, 0,
         0, 0},
        {"label eci", LABEL("alibabacloud.com/eci", "true"), PLAIN, "eci", 0, 0, 0},
        {"label eci false", LABEL("alibabacloud.com/eci", "false"), PLAIN, NULL, 0, 0, 0},
        {"namespace label eci", "", PLAIN, "eci", "ns", "{\"alibabacloud.com/eci\":\"true\"}", 0},
        {"default-scheduler is replaced", "",
         LIMIT("aliyun.com/gpu-mem", "3") ",\"schedulerName\":\"default-scheduler\"", "gpu-mem", 0,
         0, 0},

        {"plain nvidia.com/gpu is left alone", "", LIMIT("nvidia.com/gpu", "1"), NULL, 0, 0, 0},
        {"unless the option says so", "", LIMIT("nvidia.com/gpu", "1"), "nvidia", 0, 0, &nvidia},
        {"or the namespace", "", LIMIT("nvidia.com/gpu", "1"), "nvidia", "ns",
         "{\"cosched.io/inject\":\"enabled\"}", 0},
        {"another value of the namespace's label is none", "", LIMIT("nvidia.com/gpu", "1"), NULL,
         "ns", "{\"cosched.io/inject\":\"yes\"}", 0},
        {"an enabled namespace leaves plain pods alone", "", PLAIN, NULL, "ns",
         "{\"cosched.io/inject\":\"enabled\"}", 0},

        {"a disabled namespace", "", LIMIT("aliyun.com/gpu-mem", "3"), NULL, "ns",
         "{\"cosched.io/inject\":\"disabled\"}", 0},
        {"a pod that opts out", ANN("cosched.io/inject", "false"), LIMIT("aliyun.com/gpu-mem", "3"),
         NULL, 0, 0, 0},
        {"opting out with another word is not opting out", ANN("cosched.io/inject", "no"),
         LIMIT("aliyun.com/gpu-mem", "3"), "gpu-mem", 0, 0, 0},
        {"kube-system", "", LIMIT("aliyun.com/gpu-mem", "3"), NULL, "kube-system", 0, 0},
        {"our own namespace", "", LIMIT("aliyun.com/gpu-mem", "3"), NULL, "cosched-system", 0, 0},
        {"a DaemonSet's pod",
         "\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"DaemonSet\",\"name\":\"d\"}]",
         LIMIT("aliyun.com/gpu-mem", "3"), NULL, 0, 0, 0},
        {"a Job's pod",
         "\"ownerReferences\":[{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"name\":\"d\"}]",
         LIMIT("aliyun.com/gpu-mem", "3"), "gpu-mem", 0, 0, 0},
        {"a pod that has its node", "", LIMIT("aliyun.com/gpu-mem", "3") ",\"nodeName\":\"n1\"",
         NULL, 0, 0, 0},
        {"an empty nodeName is none", "", LIMIT("aliyun.com/gpu-mem", "3") ",\"nodeName\":\"\"",
         "gpu-mem", 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct answer a;
        ask(&a, rows[i].config ? rows[i].config : &usual, rows[i].ns ? rows[i].ns : "default",
            rows[i].ns_labels, rows[i].meta, rows[i].spec);
        expect_str(rows[i].row, rows[i].trigger, a.verdict.trigger);
        expect_int(rows[i].row, rows[i].trigger != NULL, a.verdict.inject);
        expect_int(rows[i].row, rows[i].trigger != NULL, a.verdict.ours);
        done(&a);
    }
    expect_done();
}

static void a_scheduler_that_was_named_stays(void **state)
{
    (void)state;
    struct answer a;
    ask(&a, &usual, "default", NULL, "",
        LIMIT("aliyun.com/gpu-mem", "\"5500m\"") ",\"schedulerName\":\"other\"");
    expect_true("another scheduler: no injection", !a.verdict.inject);
    expect_true("not ours", !a.verdict.ours);
    expect_int("its amount is judged all the same", 1, (int64_t)a.verdict.refusals.len);
    done(&a);
    ask(&a, &usual, "default", NULL, "",
        LIMIT("aliyun.com/gpu-mem", "3") ",\"schedulerName\":\"" NAME_SCHEDULER "\"");
    expect_true("ours already: no injection", !a.verdict.inject);
    expect_true("ours", a.verdict.ours);
    done(&a);
    struct rules_config renamed = {.scheduler = "default-scheduler"};
    ask(&a, &renamed, "default", NULL, "",
        LIMIT("aliyun.com/gpu-mem", "3") ",\"schedulerName\":\"default-scheduler\"");
    expect_true("we are the default scheduler: nothing to change", !a.verdict.inject);
    expect_true("ours", a.verdict.ours);
    done(&a);
    expect_done();
}

static void result_keys_are_removed_from_every_pod(void **state)
{
    (void)state;
    static const struct {
        const char *row, *annotations;
        size_t removed;
    } rows[] = {
        {"none", "\"a\":\"b\"", 0},
        {"the allocation", "\"scheduler.framework.gpushare.allocation\":\"{}\"", 1},
        {"its two companions",
         "\"scheduler.framework.gpushare.assume-time\":\"1\",\"scheduler.framework.gpushare.assigned\":"
         "\"true\"",
         2},
        {"compute", "\"gpushare.alibabacloud.com/core-percentage\":\"{}\"", 1},
        {"the older form",
         "\"ALIYUN_COM_GPU_MEM_IDX\":\"0\",\"ALIYUN_COM_GPU_MEM_DEV\":\"15\","
         "\"ALIYUN_COM_GPU_MEM_POD\":\"3\",\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"true\","
         "\"ALIYUN_COM_GPU_MEM_ASSUME_TIME\":\"1\"",
         5},
        {"cards",
         "\"topology.kubernetes.io/gpu-group\":\"0\",\"topology.kubernetes.io/gpu-visible\":\"0\"",
         2},
        {"CPUs", "\"cpuset\":\"{}\"", 1},
        {"our own prefix", "\"cosched.io/cpuset-applied\":\"x\",\"cosched.io/anything\":\"x\"", 2},
        {"an empty value too", "\"cpuset\":\"\"", 1},
        {"requests under our prefix stay",
         "\"cosched.io/inject\":\"true\",\"cosched.io/cpuset-shared\":\"true\"", 0},
        {"other keys that look alike stay", "\"cpusets\":\"x\",\"example.com/cpuset\":\"x\"", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct answer a;
        AUTO_STRBUF meta;
        strbuf_init(&meta);
        strbuf_addf(&meta, "\"annotations\":{%s}", rows[i].annotations);
        ask(&a, &usual, "kube-system", NULL, meta.ptr, PLAIN);
        expect_int(rows[i].row, (int64_t)rows[i].removed, (int64_t)a.verdict.remove_len);
        expect_int(rows[i].row, (int64_t)rows[i].removed, (int64_t)a.verdict.warnings.len);
        done(&a);
    }
    expect_done();
}

static void a_gpu_class_without_a_series_is_warned_of(void **state)
{
    (void)state;
    static const struct {
        const char *row, *meta;
        bool warned;
    } rows[] = {
        {"gpu", LABEL("alibabacloud.com/compute-class", "gpu"), true},
        {"gpu-hpn", LABEL("alibabacloud.com/compute-class", "gpu-hpn"), true},
        {"another class", LABEL("alibabacloud.com/compute-class", "general-purpose"), false},
        {"with a series",
         "\"labels\":{\"alibabacloud.com/compute-class\":\"gpu\",\"alibabacloud.com/gpu-model-series\":\"A\"}",
         false},
        {"no class", "", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct answer a;
        ask(&a, &usual, "default", NULL, rows[i].meta, LIMIT("aliyun.com/gpu-mem", "3"));
        expect_int(rows[i].row, rows[i].warned, (int64_t)a.verdict.warnings.len);
        if (i == 0)
            expect_str(
                "where, what, and what follows",
                "metadata.labels[alibabacloud.com/gpu-model-series]: is missing while "
                "alibabacloud.com/compute-class is gpu; write it, or any series of GPU may be given",
                a.verdict.warnings.items[0]);
        expect_int(rows[i].row, 0, (int64_t)a.verdict.refusals.len);
        done(&a);
    }
    expect_done();
}

static void warnings_are_bounded_and_removals_are_not(void **state)
{
    (void)state;
    for (size_t n = RULES_SENTENCES_MAX - 1; n <= RULES_SENTENCES_MAX + 2; n++) {
        AUTO_STRBUF meta;
        strbuf_init(&meta);
        strbuf_adds(&meta, "\"annotations\":{");
        for (size_t i = 0; i < n; i++)
            strbuf_addf(&meta, "%s\"cosched.io/%zu%0300d\":\"\"", i ? "," : "", i, 0);
        strbuf_adds(&meta, "}");
        struct answer a;
        ask(&a, &usual, "default", NULL, meta.ptr, PLAIN);
        expect_int("all are removed", (int64_t)n, (int64_t)a.verdict.remove_len);
        size_t shown = n < RULES_SENTENCES_MAX ? n : RULES_SENTENCES_MAX;
        expect_int("warnings", (int64_t)shown, (int64_t)a.verdict.warnings.len);
        for (size_t i = 0; i < a.verdict.warnings.len; i++)
            expect_true("each is short",
                        strlen(a.verdict.warnings.items[i]) <= RULES_WARNING_BYTES);
        if (n == RULES_SENTENCES_MAX + 2)
            expect_str("the last one counts the rest", "and 3 more.",
                       a.verdict.warnings.items[RULES_SENTENCES_MAX - 1]);
        done(&a);
    }
    expect_done();
}

#define GANG(min)                                                  \
    "\"labels\":{\"pod-group.scheduling.sigs.k8s.io/name\":\"g\"," \
    "\"pod-group.scheduling.sigs.k8s.io/min-available\":\"" min "\"}"
#define GANG_MIN "metadata.labels[pod-group.scheduling.sigs.k8s.io/min-available]: "
#define NO_PODS " is not a number of pods; write an integer from 1 to 100000"

static void variables_are_guarded_in_every_pod_by_option(void **state)
{
    (void)state;
    static const struct {
        const char *row, *ns, *value;
        bool guard, refused;
    } rows[] = {
        {"without the option", "default", "all", false, false},
        {"with it", "default", "all", true, true},
        {"void gives no card", "default", "void", true, false},
        {"none gives no card", "default", "none", true, false},
        {"the device plugin itself", "cosched-system", "all", true, false},
        {"kube-system", "kube-system", "all", true, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rules_config config = usual;
        struct answer a;
        AUTO_STRBUF spec = {0};
        config.guard_variables = rows[i].guard;
        strbuf_addf(
            &spec,
            "\"containers\":[{\"env\":[{\"name\":\"NVIDIA_VISIBLE_DEVICES\",\"value\":\"%s\"}]}]",
            rows[i].value);
        ask(&a, &config, rows[i].ns, NULL, "", spec.ptr);
        expect_int(rows[i].row, rows[i].refused, (int64_t)a.verdict.refusals.len);
        if (rows[i].refused)
            expect_str(rows[i].row,
                       "spec.containers[0].env[NVIDIA_VISIBLE_DEVICES]: 'all' takes cards that "
                       "nobody gave to the pod; remove it, and ask for GPUs in resources.limits",
                       a.verdict.refusals.items[0]);
        done(&a);
    }
    expect_done();
}

static void whole_cards_are_spared_by_option(void **state)
{
    (void)state;
    static const char spec[] =
        "\"containers\":[{\"env\":[{\"name\":\"NVIDIA_VISIBLE_DEVICES\",\"value\":\"all\"}],"
        "\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"1\"}}}]";
    static const struct {
        const char *row, *ns;
        bool spare, guard, refused;
    } rows[] = {
        {"as shipped", "default", false, false, true},
        {"NVIDIA's own plugin", "default", true, false, false},
        {"every pod", "default", true, true, true},
        {"kube-system", "kube-system", false, false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rules_config config = usual;
        struct answer a;
        config.inject_nvidia = false;
        config.spare_nvidia = rows[i].spare;
        config.guard_variables = rows[i].guard;
        ask(&a, &config, rows[i].ns, NULL, "", spec);
        expect_int(rows[i].row, rows[i].refused, (int64_t)a.verdict.refusals.len);
        done(&a);
    }
    expect_done();
}

static void a_users_value_cannot_forge_a_line(void **state)
{
    (void)state;
    struct answer a;
    ask(&a, &usual, "default", NULL, GANG("\\n\\u007fERROR"), PLAIN);
    expect_str("control characters", GANG_MIN "'??ERROR'" NO_PODS, a.verdict.refusals.items[0]);
    done(&a);
    AUTO_STRBUF meta;
    strbuf_init(&meta);
    strbuf_adds(&meta, "\"labels\":{\"pod-group.scheduling.sigs.k8s.io/min-available\":\"");
    for (int i = 0; i < 1000; i++)
        strbuf_adds(&meta, "\xc3\xa9");
    strbuf_adds(&meta, "\"}");
    ask(&a, &usual, "default", NULL, meta.ptr, PLAIN);
    const char *got = a.verdict.refusals.items[0];
    expect_true("a long value is cut", strlen(got) < 256 && strstr(got, "...'") != NULL);
    for (const char *s = got; *s != '\0';) {
        size_t n = str_utf8_len(s, strlen(s));
        expect_true("between characters", n > 0);
        s += n ? n : 1;
    }
    done(&a);
    expect_done();
}

static void what_is_no_pod_is_an_error(void **state)
{
    (void)state;
    static const struct {
        const char *row, *pod, *error;
    } rows[] = {
        {"nothing", "null", "spec: must be an object, not nothing"},
        {"no spec", "{\"metadata\":{}}", "spec: must be an object, not nothing"},
        {"spec is a list", "{\"metadata\":{},\"spec\":[]}", "spec: must be an object, not array"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        AUTO_JSON *doc = NULL;
        struct error err = ERROR_INIT;
        struct arena arena;
        struct rules_verdict v;
        struct rules_context context = {.ns = "default"};
        arena_init(&arena, 0);
        assert_int_equal(0, json_parse(&doc, rows[i].pod, strlen(rows[i].pod), &err));
        expect_int(rows[i].row, -1, rules_pod(&usual, &context, json_root(doc), &arena, &v, &err));
        expect_str(rows[i].row, rows[i].error, err.text);
        arena_deinit(&arena);
    }
    expect_done();
}

/* A pod of n containers. */
static void put_containers(struct strbuf *out, size_t n)
{
    strbuf_adds(out, "{\"metadata\":{},\"spec\":{\"containers\":[");
    for (size_t i = 0; i < n; i++)
        strbuf_addf(out,
                    "%s{\"name\":\"a\",\"resources\":{\"limits\":{\"" NAME_RES_GPU_MEM "\":1}}}",
                    i ? "," : "");
    strbuf_adds(out, "]}}");
}

/* {"PREFIX0":"1",...} */
static void put_many(struct strbuf *out, const char *prefix, size_t n)
{
    strbuf_addc(out, '{');
    for (size_t i = 0; i < n; i++)
        strbuf_addf(out, "%s\"%s%zu\":\"1\"", i ? "," : "", prefix, i);
    strbuf_addc(out, '}');
}

/* One container with n limits and n requests that look like ours. */
static void put_amounts(struct strbuf *out, size_t n)
{
    strbuf_adds(out, "{\"metadata\":{},\"spec\":{\"containers\":[{\"resources\":{\"limits\":");
    put_many(out, NAME_RES_GPU "-l", n);
    strbuf_adds(out, ",\"requests\":");
    put_many(out, NAME_RES_GPU "-r", n);
    strbuf_adds(out, "}}]}}");
}

/* A policy that selects by n labels and gives n. */
static void put_policy(struct strbuf *out, size_t n)
{
    strbuf_adds(out, "{\"metadata\":{},\"spec\":{\"selector\":");
    put_many(out, "s", n);
    strbuf_adds(out, ",\"units\":[{\"resource\":\"ecs\",\"podLabels\":");
    put_many(out, "g", n);
    strbuf_adds(out, "}]}}");
}

/* CPU time that the rules spend on it. */
static int64_t cost_ns(const char *group, const char *kind, const struct strbuf *object)
{
    struct timespec before, after;
    struct arena arena;
    struct rules_verdict v;
    struct error err = ERROR_INIT;
    struct rules_context context = {.ns = "default"};
    AUTO_JSON *doc = NULL;
    assert_int_equal(0, json_parse(&doc, object->ptr, object->len, NULL));
    struct rules_subject s = {.group = group,
                              .kind = kind,
                              .subresource = "",
                              .operation = "CREATE",
                              .object = json_root(doc)};
    arena_init(&arena, 0);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    expect_int(kind, 0, rules_object(&usual, &context, &s, &arena, &v, &err));
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    arena_deinit(&arena);
    return (after.tv_sec - before.tv_sec) * INT64_C(1000000000) + after.tv_nsec - before.tv_nsec;
}

/* The API server refuses such objects after it has asked us. Twenty times as many parts cost twenty
 * times as much, not four hundred times. */
static void a_hostile_object_costs_no_more_than_its_size(void **state)
{
    (void)state;
    static const struct {
        const char *row, *group, *kind;
        void (*put)(struct strbuf *out, size_t n);
    } rows[] = {
        {"containers", "", "Pod", put_containers},
        {"amounts", "", "Pod", put_amounts},
        {"labels of a policy", NAME_GROUP_POLICY, NAME_KIND_POLICY, put_policy},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        AUTO_STRBUF some = {0};
        AUTO_STRBUF many = {0};
        rows[i].put(&some, 1000);
        rows[i].put(&many, 20000);
        int64_t small = cost_ns(rows[i].group, rows[i].kind, &some);
        int64_t large = cost_ns(rows[i].group, rows[i].kind, &many);
        /* What is over in a moment is not worth measuring. */
        bool linear = large < 70 * small || large < 20 * INT64_C(1000000);
        if (!linear)
            print_error("1000: %lld us, 20000: %lld us\n", (long long)small / 1000,
                        (long long)large / 1000);
        expect_true(rows[i].row, linear);
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(which_pods_get_our_scheduler),
        cmocka_unit_test(a_scheduler_that_was_named_stays),
        cmocka_unit_test(result_keys_are_removed_from_every_pod),
        cmocka_unit_test(a_gpu_class_without_a_series_is_warned_of),
        cmocka_unit_test(warnings_are_bounded_and_removals_are_not),
        cmocka_unit_test(variables_are_guarded_in_every_pod_by_option),
        cmocka_unit_test(whole_cards_are_spared_by_option),
        cmocka_unit_test(a_users_value_cannot_forge_a_line),
        cmocka_unit_test(what_is_no_pod_is_an_error),
        cmocka_unit_test(a_hostile_object_costs_no_more_than_its_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
