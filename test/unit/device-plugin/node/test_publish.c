// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/node/publish.h"

#include "test/unit/lib/base/expect.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "lib/kube/http.h"
#include "lib/model/names.h"
#include "test/fake/api/twin.h"
#include "test/unit/device-plugin/cards.h"

#define COUNT(n) "\"aliyun.com/gpu-count\":\"" n "\""

static struct label wanted_labels[] = {{"aliyun.accelerator/nvidia_count", "2"},
                                       {"aliyun.accelerator/nvidia_mem", "16160MiB"}};

static struct publish_wanted wanted(const char *inventory, int64_t count)
{
    return (struct publish_wanted){
        .inventory = inventory, .labels = {.items = wanted_labels, .len = 2}, .gpu_count = count};
}

static void only_the_difference(void **state)
{
    (void)state;
    static const struct {
        const char *row, *labels, *allocatable;
        int64_t count;
        const char *meta, *status;
    } rows[] = {
        {"a new node", "", "", 2,
         "{\"metadata\":{\"annotations\":{\"cosched.io/gpu-inventory\":\"{}\"},\"labels\":{\"aliyun.accelerator/nvidia_count\":\"2\","
         "\"aliyun.accelerator/nvidia_mem\":\"16160MiB\"}}}",
         "{\"status\":{\"capacity\":{\"aliyun.com/gpu-count\":\"2\"},\"allocatable\":{\"aliyun.com/gpu-count\":\"2\"}}}"},
        {"the labels are right",
         "\"aliyun.accelerator/nvidia_count\":\"2\",\"aliyun.accelerator/nvidia_mem\":\"16160MiB\"",
         COUNT("2"), 2, "{\"metadata\":{\"annotations\":{\"cosched.io/gpu-inventory\":\"{}\"}}}",
         ""},
        {"a label was changed by somebody",
         "\"aliyun.accelerator/nvidia_count\":\"3\",\"aliyun.accelerator/nvidia_mem\":\"16160MiB\"",
         COUNT("3"), 2,
         "{\"metadata\":{\"annotations\":{\"cosched.io/gpu-inventory\":\"{}\"},\"labels\":{\"aliyun.accelerator/nvidia_count\":\"2\","
         "\"aliyun.accelerator/nvidia_mem\":\"16160MiB\"}}}",
         "{\"status\":{\"capacity\":{\"aliyun.com/gpu-count\":\"2\"},\"allocatable\":{\"aliyun.com/gpu-count\":\"2\"}}}"},
        {"a mode that was left: 0 where it was",
         "\"aliyun.accelerator/nvidia_count\":\"2\",\"aliyun.accelerator/nvidia_mem\":\"16160MiB\"",
         COUNT("2"), 0, "{\"metadata\":{\"annotations\":{\"cosched.io/gpu-inventory\":\"{}\"}}}",
         "{\"status\":{\"capacity\":{\"aliyun.com/gpu-count\":\"0\"},\"allocatable\":{\"aliyun.com/gpu-count\":\"0\"}}}"},
        {"never there: it stays absent",
         "\"aliyun.accelerator/nvidia_count\":\"2\",\"aliyun.accelerator/nvidia_mem\":\"16160MiB\"",
         "", 0, "{\"metadata\":{\"annotations\":{\"cosched.io/gpu-inventory\":\"{}\"}}}", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct node *n = cards_node(rows[i].labels, rows[i].allocatable);
        struct publish_wanted w = wanted("{}", rows[i].count);
        AUTO_STRBUF meta;
        AUTO_STRBUF status;
        strbuf_init(&meta);
        strbuf_init(&status);
        publish_patches(&w, n, &meta, &status);
        expect_str(rows[i].row, rows[i].meta, strbuf_str(&meta));
        expect_str(rows[i].row, rows[i].status, strbuf_str(&status));
        node_free(n);
    }
    struct label gone[] = {{"aliyun.accelerator/nvidia_count", NULL}};
    struct publish_wanted none = {.inventory = "{}", .labels = {.items = gone, .len = 1}};
    struct node *n = cards_node("\"aliyun.accelerator/nvidia_count\":\"2\"", "");
    AUTO_STRBUF patch;
    AUTO_STRBUF status;
    strbuf_init(&patch);
    strbuf_init(&status);
    publish_patches(&none, n, &patch, &status);
    expect_str("a label that the node should not have",
               "{\"metadata\":{\"annotations\":{\"cosched.io/gpu-inventory\":\"{}\"},\"labels\":{"
               "\"aliyun.accelerator/nvidia_count\":null}}}",
               strbuf_str(&patch));
    struct publish_wanted cpus = {.cpus = "{\"v\":1}"};
    strbuf_reset(&patch);
    publish_patches(&cpus, n, &patch, &status);
    expect_str("CPUs alone, and nothing of cards that are not known",
               "{\"metadata\":{\"annotations\":{\"cosched.io/cpu-topology\":\"{\\\"v\\\":1}\"}}}",
               strbuf_str(&patch));
    expect_str("not even their number", "", strbuf_str(&status));
    node_free(n);
    strbuf_reset(&patch);
    publish_assigned_patch("u1", false, &patch);
    expect_str(
        "assigned, with the uid as precondition",
        "{\"metadata\":{\"uid\":\"u1\",\"annotations\":{\"scheduler.framework.gpushare.assigned\":\"true\"}}}",
        strbuf_str(&patch));
    strbuf_reset(&patch);
    publish_assigned_patch("u1", true, &patch);
    expect_str(
        "in the older form too",
        "{\"metadata\":{\"uid\":\"u1\",\"annotations\":{\"scheduler.framework.gpushare.assigned\":\"true\","
        "\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"true\"}}}",
        strbuf_str(&patch));
    expect_done();
}

/* ---- the worker, against the API server's twin ---- */

static void ignore(void *arg, const char *line, size_t n)
{
    (void)arg, (void)line, (void)n;
}

struct fixture {
    struct twin *twin;
    struct kube_config *config;
    struct kube_options options;
    struct publish *publish;
};

static void start(struct fixture *f, int64_t interval_ms)
{
    struct error err = ERROR_INIT;
    log_set_sink(ignore, NULL);
    kube_http_global_init();
    f->twin = twin_start(NULL, false);
    f->config = twin_config(f->twin);
    f->options = twin_options();
    if (publish_start(&f->publish, f->config, &f->options, "n1", interval_ms, &err) < 0)
        fail_msg("%s", err.text);
}

static void stop(struct fixture *f)
{
    publish_stop(f->publish);
    kube_config_free(f->config);
    twin_stop(f->twin);
    kube_http_global_cleanup();
    metrics_reset();
    log_set_sink(NULL, NULL);
}

static void await(struct fixture *f, const char *row, size_t requests)
{
    for (int64_t end = clock_mono_ms() + 10000;
         twin_requests(f->twin, TWIN_OTHER) < requests && clock_mono_ms() < end;)
        clock_sleep_ms(1);
    expect_int(row, (int64_t)requests, (int64_t)twin_requests(f->twin, TWIN_OTHER));
}

static void expect_request(struct fixture *f, const char *row, size_t n, const char *part)
{
    AUTO_STRBUF text;
    strbuf_init(&text);
    bool there = twin_request(f->twin, n, &text) && strstr(strbuf_str(&text), part) != NULL;
    if (!there)
        expect_str(row, part, strbuf_str(&text));
}

static void the_first_write_at_once_and_then_seldom(void **state)
{
    (void)state;
    struct fixture f = {0};
    start(&f, 3600 * 1000);
    for (int i = 0; i < 3; i++)
        twin_script(f.twin, 200, "", "{}");
    struct publish_wanted w = wanted("{\"v\":1}", 2);
    publish_want(f.publish, &w);
    publish_seen(f.publish, cards_node("", ""));
    await(&f, "two patches at once", 2);
    expect_request(&f, "the node", 1, "PATCH /api/v1/nodes/n1");
    expect_request(&f, "its inventory", 1, "cosched.io/gpu-inventory");
    expect_request(&f, "then its status", 0, "PATCH /api/v1/nodes/n1/status");
    w = wanted("{\"v\":1,\"x\":2}", 2);
    publish_want(f.publish, &w);
    publish_assigned(f.publish, "ns", "p", "u1", false);
    await(&f, "a pod does not wait for the node's next turn", 3);
    expect_request(&f, "the pod", 0, "PATCH /api/v1/namespaces/ns/pods/p");
    publish_assigned(f.publish, "ns", "p", "u1", false);
    twin_script(f.twin, 200, "", "{}");
    publish_assigned(f.publish, "ns", "q", "u2", true);
    await(&f, "the same pod is written once", 4);
    expect_request(&f, "then the next", 0, "ALIYUN_COM_GPU_MEM_ASSIGNED");
    stop(&f);
    expect_done();
}

static void what_the_node_has_already_is_not_written(void **state)
{
    (void)state;
    struct fixture f = {0};
    start(&f, 0);
    struct publish_wanted w = {.inventory = NULL, .gpu_count = 2};
    struct node *n = cards_node("", COUNT("2"));
    w.inventory = "";
    struct label has = {"cosched.io/gpu-inventory", ""};
    n->annotations.items = &has;
    n->annotations.len = 1;
    publish_seen(f.publish, n);
    publish_want(f.publish, &w);
    twin_script(f.twin, 200, "", "{}");
    publish_assigned(f.publish, "ns", "p", "u1", false);
    await(&f, "only the pod", 1);
    expect_request(&f, "is written", 0, "/pods/p");
    stop(&f);
    expect_done();
}

static void answers_that_are_no(void **state)
{
    (void)state;
    struct fixture f = {0};
    start(&f, 0);
    twin_script(f.twin, 409, "",
                "{\"kind\":\"Status\",\"reason\":\"Conflict\",\"message\":\"uid\"}");
    publish_assigned(f.publish, "ns", "gone", "u1", false);
    await(&f, "a pod with another uid", 1);
    twin_script(f.twin, 404, "",
                "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"message\":\"no\"}");
    publish_assigned(f.publish, "ns", "gone2", "u2", false);
    await(&f, "a pod that is gone", 2);
    twin_script(
        f.twin, 200, "",
        "{\"metadata\":{\"uid\":\"u9\",\"annotations\":{\"scheduler.framework.gpushare.assigned\":\"false\","
        "\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"false\"}}}");
    twin_script(f.twin, 200, "", "{}");
    publish_assigned(f.publish, "ns", "unknown", "", false);
    await(&f, "an unknown pod is asked for and written", 4);
    expect_request(&f, "with its uid", 0, "\"uid\":\"u9\"");
    expect_request(&f, "and both forms", 0, "ALIYUN_COM_GPU_MEM_ASSIGNED");
    twin_script(f.twin, 200, "", "{\"metadata\":{\"uid\":\"u10\",\"annotations\":{}}}");
    publish_assigned(f.publish, "ns", "plain", "", false);
    await(&f, "a pod without a claim is only asked for", 5);
    twin_script(
        f.twin, 200, "",
        "{\"metadata\":{\"uid\":\"u11\",\"annotations\":{\"ALIYUN_COM_GPU_MEM_ASSIGNED\":\"false\"}}}");
    twin_script(f.twin, 200, "", "{}");
    publish_assigned(f.publish, "ns", "old", "", false);
    await(&f, "a pod with the older form alone is written too", 7);
    expect_request(&f, "in its form", 0, "ALIYUN_COM_GPU_MEM_ASSIGNED");

    twin_script(f.twin, 403, "",
                "{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"message\":\"no\"}");
    publish_assigned(f.publish, "ns", "denied", "u12", false);
    await(&f, "a pod that we may not write", 8);
    twin_script(f.twin, 200, "", "{}");
    for (int64_t end = clock_mono_ms() + 10000;
         twin_requests(f.twin, TWIN_OTHER) < 9 && clock_mono_ms() < end;) {
        publish_assigned(f.publish, "ns", "denied", "u12", false);
        clock_sleep_ms(1);
    }
    await(&f, "may be tried again by its next container", 9);
    stop(&f);
    expect_done();
}

static void a_pod_that_cannot_be_written_is_not_in_the_way(void **state)
{
    (void)state;
    struct fixture f = {0};
    start(&f, 0);
    twin_script(f.twin, 500, "", "{\"kind\":\"Status\",\"message\":\"a webhook is broken\"}");
    publish_assigned(f.publish, "ns", "first", "u1", false);
    await(&f, "it fails", 1);
    twin_script(f.twin, 200, "", "{}");
    twin_script(f.twin, 200, "", "{}");
    publish_assigned(f.publish, "ns", "second", "u2", false);
    await(&f, "both are written", 3);
    expect_request(&f, "the other first", 1, "/pods/second");
    expect_request(&f, "then the one that failed", 0, "/pods/first");
    stop(&f);
    expect_done();
}

static void annotations_of_pods(void **state)
{
    (void)state;
    struct fixture f = {0};
    const struct pod pod = {.ns = "ns", .name = "p", .uid = "u1"};
    start(&f, 0);
    twin_script(f.twin, 200, "", "{}");
    publish_applied(f.publish, &pod, "{\"a\":{}}");
    await(&f, "CPUs", 1);
    expect_request(&f, "of this pod and no namesake", 0,
                   "{\"metadata\":{\"uid\":\"u1\",\"annotations\":{"
                   "\"cosched.io/cpuset-applied\":\"{\\\"a\\\":{}}\"}}}");
    twin_script(f.twin, 200, "", "{}");
    publish_use(f.publish, &pod, &(struct gpuuse){.mib = 5, .processes = 2});
    await(&f, "use", 2);
    expect_request(&f, "what it uses", 0,
                   "{\"metadata\":{\"uid\":\"u1\",\"annotations\":{\"" NAME_ANN_GPU_USED "\":");
    stop(&f);
    expect_done();
}

/* An older write that fails while a newer one waits must not come after it. Another pod's write,
 * which fails later and is tried again, shows that the older one would have been. */
static void the_newest_is_written_last(void **state)
{
    (void)state;
    struct fixture f = {0};
    struct arena a;
    struct gpu_inventory inv;
    struct pod *pod = cards_pod("p", "c0=gpu-mem:3", "");
    struct grant_share older = {.card = 0, .gib = 3}, newer = {.card = 1, .gib = 3};
    arena_init(&a, 0);
    cards_make(&inv, &a, (const int64_t[]){16160, 16160, 0});
    for (int cpus = 0; cpus < 2; cpus++) {
        start(&f, 0);
        twin_fault(f.twin, TWIN_OTHER, TWIN_HANG);
        if (cpus)
            publish_applied(f.publish, pod, "older");
        else
            publish_grant(f.publish, pod, &(struct grant){.shares = &older, .shares_len = 1}, &inv);
        await(&f, "the older one is under way", 1);
        twin_script_for(f.twin, "/pods/p", 200, "", "{}");
        twin_script_for(f.twin, "/pods/p", 200, "", "{}");
        twin_script_for(f.twin, "/pods/other", 500, "", "{\"kind\":\"Status\"}");
        twin_script_for(f.twin, "/pods/other", 200, "", "{}");
        if (cpus)
            publish_applied(f.publish, pod, "newer");
        else
            publish_grant(f.publish, pod, &(struct grant){.shares = &newer, .shares_len = 1}, &inv);
        publish_assigned(f.publish, "default", "other", "u2", false);
        await(&f, "it fails, the newer one does not", 4);
        expect_request(&f, "the newer one", 2, cpus ? "newer" : "{\\\"0\\\":{\\\"1\\\":3}}");
        expect_request(&f, "the other pod", 1, "/pods/other");
        expect_request(&f, "nothing of the first in between", 0, "/pods/other");
        stop(&f);
    }
    pod_free(pod);
    arena_deinit(&a);
    expect_done();
}

static void evictions(void **state)
{
    (void)state;
    struct fixture f = {0};
    start(&f, 0);
    twin_script(f.twin, 429, "",
                "{\"kind\":\"Status\",\"reason\":\"TooManyRequests\",\"message\":\"a budget\"}");
    const struct pod loose = {.ns = "ns", .name = "loose", .uid = "u1"};
    const struct pod other = {.ns = "ns", .name = "other", .uid = "u2"};
    const struct pod third = {.ns = "ns", .name = "third", .uid = "u3"};
    publish_evict(f.publish, &loose);
    await(&f, "it is asked for", 1);
    expect_request(&f, "by the eviction API", 0, "POST /api/v1/namespaces/ns/pods/loose/eviction");
    expect_request(&f, "of this pod and no namesake", 0, "\"uid\":\"u1\"");
    twin_script(f.twin, 201, "", "{}");
    publish_evict(f.publish, &other);
    await(&f, "one that waits is not in the way", 2); /* and waits by now */
    expect_request(&f, "another", 0, "/pods/other/eviction");
    twin_script(f.twin, 201, "", "{}");
    publish_evict(f.publish, &loose);
    publish_evict(f.publish, &third);
    await(&f, "nor asked for twice", 3);
    expect_request(&f, "the third", 0, "/pods/third/eviction");
    stop(&f);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_difference),
        cmocka_unit_test(the_first_write_at_once_and_then_seldom),
        cmocka_unit_test(what_the_node_has_already_is_not_written),
        cmocka_unit_test(answers_that_are_no),
        cmocka_unit_test(a_pod_that_cannot_be_written_is_not_in_the_way),
        cmocka_unit_test(annotations_of_pods),
        cmocka_unit_test(the_newest_is_written_last),
        cmocka_unit_test(evictions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
