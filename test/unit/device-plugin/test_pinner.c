// SPDX-License-Identifier: Apache-2.0
/* Pods and groups in, CPUs and answers out: on a directory tree instead of the kernel's. */
#include "device-plugin/pinner.h"

#include "test/unit/device-plugin/tree.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "lib/kube/decode.h"
#include "test/unit/lib/kube/decode_kit.h"

#define UID "11111111-0000-4000-8000-000000000000"
#define UID2 "22222222-0000-4000-8000-000000000000"
#define ID(x) #x "000000000000000000000000000000000000000000000000000000000000000"
#define POD "kubepods/burstable/pod" UID
#define POD2 "kubepods/pod" UID2
#define CPU(n) "{\\\"elems\\\":{" n "}}"
#define ON(x) "\\\"" #x "\\\":{}"
#define ONE "{\\\"a\\\":{\\\"0\\\":" CPU(ON(1)) "}}"
#define TWO "{\\\"a\\\":{\\\"0\\\":" CPU(ON(1)) "},\\\"b\\\":{\\\"1\\\":" CPU(ON(2)) "}}"

struct fixture {
    struct tree tree;
    struct loop *loop;
    struct pinner *pinner;
    struct pinner_config config;
    char state[SCRATCH_PATH + 32];
    int events, answers;
    char reason[64], message[512], answer[512], pod[64];
};

static struct fixture f;

static void on_event(void *arg, const char *ns, const char *name, const char *uid, bool warning,
                     const char *reason, const char *message)
{
    (void)arg, (void)warning;
    f.events++;
    (void)str_format(f.pod, sizeof f.pod, "%s/%s/%.4s", ns, name, uid);
    (void)str_format(f.reason, sizeof f.reason, "%s", reason);
    (void)str_format(f.message, sizeof f.message, "%s", message);
}

static void on_applied(void *arg, const char *ns, const char *name, const char *uid,
                       const struct strbuf *patch)
{
    AUTO_JSON *doc = NULL;
    (void)arg, (void)ns, (void)name;
    f.answers++;
    assert_int_equal(0, json_parse(&doc, strbuf_str(patch), patch->len, NULL));
    json *meta = json_get(json_root(doc), "metadata");
    expect_str("the uid is a precondition", uid, json_get_str(meta, "uid"));
    (void)str_format(f.answer, sizeof f.answer, "%s",
                     json_get_str(json_get(meta, "annotations"), "cosched.io/cpuset-applied"));
}

static void ignore(void *arg, const char *line, size_t n)
{
    (void)arg, (void)line, (void)n;
}

static void start(void)
{
    static const char text[] =
        "{\"v\":1,\"sockets\":[\"0-3\"],\"numa\":[\"0-1\",\"2-3\"],\"l3\":[\"0-3\"],\"cores\":\"smt1:4\"}";
    struct cpu_topology t;
    struct arena a;
    arena_init(&a, 0);
    assert_int_equal(0, pinner_start(&f.pinner, &f.config, NULL));
    assert_int_equal(0, cpu_topology_decode(text, sizeof text - 1, &a, &t, NULL));
    pinner_machine(f.pinner, &t);
    arena_deinit(&a);
}

static int setup(void **state)
{
    (void)state;
    f = (struct fixture){.events = 0};
    log_set_sink(ignore, NULL);
    tree_make(&f.tree);
    tree_group(&f.tree, "cpuset", "0-3\n");
    tree_group(&f.tree, "cpuset/kubepods", "0-3\n");
    tree_group(&f.tree, "cpuset/kubepods/burstable", "0-3\n");
    assert_true(str_format(f.state, sizeof f.state, "%s/state", f.tree.top));
    assert_int_equal(0, loop_new(&f.loop, NULL));
    f.config = (struct pinner_config){.loop = f.loop,
                                      .cgroup_mount = f.tree.top,
                                      .cgroup_root = "",
                                      .cpu_manager_state = f.state,
                                      .pod_event = on_event,
                                      .applied = on_applied};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pinner_stop(f.pinner);
    metrics_reset();
    loop_free(f.loop);
    tree_remove(&f.tree, "");
    log_set_sink(NULL, NULL);
    return 0;
}

static struct pod *make(const char *name, const char *uid, const char *annotations,
                        const char *more)
{
    AUTO_STRBUF text;
    AUTO_JSON *doc = NULL;
    struct pod *p;
    struct error err = ERROR_INIT;
    strbuf_init(&text);
    strbuf_addf(
        &text,
        "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"%s\",\"annotations\":{%s}},\"spec\":{\"nodeName\":\"n\","
        "\"containers\":[{\"name\":\"a\"},{\"name\":\"b\"}],\"initContainers\":[{\"name\":\"i\"}]}%s}",
        name, uid, annotations, more);
    assert_int_equal(0, json_parse(&doc, strbuf_str(&text), text.len, NULL));
    if (decode_pod(json_root(doc), &p, &err) < 0)
        fail_msg("%s", err.text);
    decode_container_ids(json_root(doc), p);
    return p;
}

#define ASKS "\"cpuset-scheduler\":\"true\","
#define CLAIM(x) "\"cpuset\":\"" x "\""
#define STATUS(name, id)                                    \
    ",\"status\":{\"containerStatuses\":[{\"name\":\"" name \
    "\",\"containerID\":\"containerd://" id "\",\"state\":{\"running\":{}}}]}"

static void put(const char *name, const char *uid, const char *annotations, const char *more)
{
    struct pod *p = make(name, uid, annotations, more);
    pinner_pod_put(f.pinner, p);
    pod_free(p);
}

static const char *cpus(const char *group)
{
    char below[512];
    assert_true(str_format(below, sizeof below, "cpuset/%s", group));
    return tree_get(&f.tree, below, "cpuset.cpus");
}

/* Turns the loop until the group has these CPUs; at most limit_ms, or the test fails with what it has. */
static void wait_cpus(const char *row, const char *group, const char *want)
{
    for (int64_t until = clock_mono_ms() + 10000; clock_mono_ms() < until;) {
        if (str_eq(cpus(group), want))
            return;
        loop_once(f.loop, 20);
    }
    expect_str(row, want, cpus(group));
}

static void box(const char *group, const char *has)
{
    char below[512];
    assert_true(str_format(below, sizeof below, "cpuset/%s", group));
    tree_group(&f.tree, below, has);
}

static void a_container_is_pinned_as_it_appears(void **state)
{
    (void)state;
    start();
    put("p", UID, ASKS CLAIM(ONE), "");
    expect_int("answered, though nothing runs yet", 1, f.answers);
    expect_str("in the form of the claim", "{\"a\":{\"0\":{\"elems\":{\"1\":{}}}}}", f.answer);
    box(POD, "0-3\n");
    box(POD "/" ID(1), "\n");
    wait_cpus("heard by inotify, no status needed", POD "/" ID(1), "1");
    box(POD "/" ID(2), "0-3\n");
    wait_cpus("restarted: another id", POD "/" ID(2), "1");
    tree_put(&f.tree, "cpuset/" POD "/" ID(2), "cpuset.cpus", "0-3\n");
    wait_cpus("somebody writes it", POD "/" ID(2), "1");
    expect_int("no Event", 0, f.events);
    expect_int("the answer is not repeated at once", 1, f.answers);
    expect_done();
}

static void each_container_has_its_own(void **state)
{
    (void)state;
    start();
    box(POD, "0-3\n");
    box(POD "/" ID(1), "0-3\n");
    box(POD "/" ID(2), "0-3\n");
    box(POD "/" ID(3), "0-3\n");
    put("p", UID, ASKS CLAIM(TWO), "");
    expect_str("not known yet: those of the pod", "1-2", cpus(POD "/" ID(1)));
    put("p", UID, ASKS CLAIM(TWO), STATUS("b", ID(2)));
    expect_str("b is known", "2", cpus(POD "/" ID(2)));
    expect_str("the other is not", "1-2", cpus(POD "/" ID(1)));
    put("p", UID, ASKS CLAIM(TWO), STATUS("a", ID(1)));
    expect_str("a is known", "1", cpus(POD "/" ID(1)));
    struct pod *p =
        make("p", UID, ASKS CLAIM(TWO),
             ",\"status\":{\"initContainerStatuses\":[{\"name\":\"i\",\"containerID\":\"x://" ID(
                 3) "\",\"state\":{\"running\":{}}}]}");
    pinner_pod_put(f.pinner, p);
    pod_free(p);
    expect_str("an init container that was given none has all", "0-3", cpus(POD "/" ID(3)));
    expect_done();
}

static void loans_and_edits(void **state)
{
    (void)state;
    start();
    box(POD, "0-3\n");
    box(POD "/" ID(1), "0-3\n");
    put("p", UID, ASKS CLAIM("{\\\"a\\\":{\\\"0\\\":" CPU(ON(0) "," ON(1)) "}}"), "");
    expect_str("two CPUs", "0-1", cpus(POD "/" ID(1)));
    put("p", UID, ASKS CLAIM(ONE), "");
    expect_str("one is called back", "1", cpus(POD "/" ID(1)));
    expect_str("and confirmed", "{\"a\":{\"0\":{\"elems\":{\"1\":{}}}}}", f.answer);
    expect_int("no Event", 0, f.events);
    put("p", UID, ASKS CLAIM("{\\\"a\\\":{\\\"0\\\":" CPU(ON(0) "," ON(1)) "}}"), "");
    expect_str("more again is not the scheduler's doing", "1", cpus(POD "/" ID(1)));
    expect_str("reason", "CpusetRefused", f.reason);
    expect_str("pod", "ns/p/1111", f.pod);
    put("p", UID, ASKS CLAIM("{\\\"a\\\":{\\\"1\\\":" CPU(ON(3)) "}}"), "");
    expect_str("nor elsewhere", "1", cpus(POD "/" ID(1)));
    int events = f.events;
    put("p", UID, ASKS CLAIM("{\\\"a\\\":{\\\"1\\\":" CPU(ON(3)) "}}"), "");
    expect_int("said once", events, f.events);
    put("p", UID, ASKS "\"x\":\"y\"", "");
    expect_str("without the annotation: what the pod has", "0-3", cpus(POD "/" ID(1)));
    expect_str("answered", "", f.answer);
    tree_put(&f.tree, "cpuset/" POD "/" ID(1), "cpuset.cpus", "2\n");
    for (int i = 0; i < 5; i++)
        loop_once(f.loop, 20);
    expect_str("whoever pins it now may", "2\n", cpus(POD "/" ID(1)));
    expect_done();
}

static void a_restarted_pinner(void **state)
{
    (void)state;
    struct pod *pods[2];
    box(POD, "0-3\n");
    box(POD "/" ID(1), "0-3\n");
    box(POD2, "0-3\n");
    box(POD2 "/" ID(2), "0-3\n");
    start();
    /* p was edited while nobody looked, onto the CPU of q, which stands behind it in the list. */
    pods[0] = make("p", UID, ASKS CLAIM("{\\\"a\\\":{\\\"1\\\":" CPU(ON(2)) "}}"), "");
    pods[1] = make(
        "q", UID2,
        ASKS CLAIM("{\\\"a\\\":{\\\"1\\\":" CPU(
            ON(2)) "}}") ","
                         "\"cosched.io/cpuset-applied\":\"{\\\"a\\\":{\\\"1\\\":" CPU(ON(2)) "}}\"",
        "");
    pinner_pods_reset(f.pinner, pods, 2);
    expect_str("who had it has it", "2", cpus(POD2 "/" ID(2)));
    expect_str("the other is left alone", "0-3\n", cpus(POD "/" ID(1)));
    expect_str("with a sentence",
               "annotation cpuset is not applied: CPUs 2 are bound to another pod", f.message);
    expect_int("nothing new to answer", 0, f.answers);
    pinner_pod_delete(f.pinner, "ns/q");
    wait_cpus("once the other is gone", POD "/" ID(1), "2");
    pod_free(pods[0]);
    pods[0] = make(
        "p", UID,
        ASKS CLAIM(ONE) ","
                        "\"cosched.io/cpuset-applied\":\"{\\\"a\\\":{\\\"1\\\":" CPU(ON(2)) "}}\"",
        "");
    pinner_pods_reset(f.pinner, pods, 1);
    expect_str("what was confirmed counts", "2", cpus(POD "/" ID(1)));
    expect_str("said", "CpusetRefused", f.reason);
    pod_free(pods[0]);
    pod_free(pods[1]);
    expect_done();
}

static void pods_that_are_left_alone(void **state)
{
    (void)state;
    static const struct {
        const char *row, *annotations, *message;
    } rows[] = {
        {"one that does not ask", CLAIM(ONE), ""},
        {"false means nothing", "\"cpuset-scheduler\":\"false\"," CLAIM(ONE), ""},
        {"one that was given nothing", "\"cpuset-scheduler\":\"true\"", ""},
        {"an empty claim", ASKS CLAIM(""), ""},
        {"a CPU that the node does not have", ASKS CLAIM("{\\\"a\\\":{\\\"0\\\":" CPU(ON(9)) "}}"),
         "annotation cpuset is not applied: the node has no CPU 9"},
        {"a container that the pod does not have",
         ASKS CLAIM("{\\\"z\\\":{\\\"0\\\":" CPU(ON(1)) "}}"), NULL},
        {"no JSON", ASKS CLAIM("1"), NULL},
    };
    start();
    box(POD, "0-3\n");
    box(POD "/" ID(1), "0-3\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        f.events = 0;
        f.message[0] = '\0';
        put("p", UID, rows[i].annotations, "");
        expect_str(rows[i].row, "0-3\n", cpus(POD "/" ID(1)));
        expect_int(rows[i].row, rows[i].message == NULL || rows[i].message[0] != '\0', f.events);
        if (rows[i].message != NULL)
            expect_str(rows[i].row, rows[i].message, f.message);
        expect_int("nothing to answer", 0, f.answers);
        pinner_pod_delete(f.pinner, "ns/p");
    }
    expect_done();
}

static void shared_cpus(void **state)
{
    (void)state;
    start();
    box(POD, "0-3\n");
    box(POD "/" ID(1), "0-3\n");
    box(POD2, "0-3\n");
    box(POD2 "/" ID(2), "0-3\n");
    put("p", UID, ASKS CLAIM(ONE), "");
    put("q", UID2, ASKS CLAIM(ONE), "");
    expect_str("not twice", "0-3\n", cpus(POD2 "/" ID(2)));
    put("q", UID2, ASKS CLAIM(ONE) ",\"cosched.io/cpuset-shared\":\"true\"", "");
    expect_str("unless it is content to share", "1", cpus(POD2 "/" ID(2)));
    expect_done();
}

static void the_static_policy(void **state)
{
    (void)state;
    tree_put(&f.tree, "", "state", "{\"policyName\":\"static\"}");
    box(POD, "0-3\n");
    box(POD "/" ID(1), "0-3\n");
    start();
    put("p", UID, ASKS CLAIM(ONE), "");
    expect_str("nothing is done", "0-3\n", cpus(POD "/" ID(1)));
    expect_str(
        "and it is said why",
        "annotation cpuset is not applied: the kubelet's cpuManagerPolicy is static and would pin as well; it must be none",
        f.message);
    tree_put(&f.tree, "", "state", "{\"policyName\":\"none\"}");
    wait_cpus("until it is another one", POD "/" ID(1), "1");
    expect_done();
}

static void the_first_pod_after_a_rest(void **state)
{
    (void)state;
    box(POD, "0-3\n");
    box(POD "/" ID(1), "0-3\n");
    start();
    put("q", UID2, "", "");
    tree_put(&f.tree, "", "state", "{\"policyName\":\"static\"}");
    put("p", UID, ASKS CLAIM(ONE), "");
    expect_str("what has changed during the rest is seen before", "0-3\n", cpus(POD "/" ID(1)));
    expect_str("and told", "CpusetRefused", f.reason);
    tree_put(&f.tree, "", "state", "{\"policyName\":\"none\"}");
    wait_cpus("then it is looked at every second", POD "/" ID(1), "1");
    expect_done();
}

static void memory_and_the_shared_pool(void **state)
{
    (void)state;
    f.config.memory = f.config.shared_pool = true;
    box(POD, "0-3\n");
    box(POD "/" ID(1), "0-3\n");
    box(POD2, "0-3\n");
    box(POD2 "/" ID(2), "0-3\n");
    start();
    put("q", UID2, "", "");
    expect_str("nobody is pinned: all", "0-3\n", cpus(POD2 "/" ID(2)));
    put("p", UID, ASKS CLAIM("{\\\"a\\\":{\\\"1\\\":" CPU(ON(2) "," ON(3)) "}}"), "");
    expect_str("pinned", "2-3", cpus(POD "/" ID(1)));
    expect_str("with its memory", "1", tree_get(&f.tree, "cpuset/" POD "/" ID(1), "cpuset.mems"));
    wait_cpus("others keep off", POD2 "/" ID(2), "0-1");
    expect_str("memory of others is theirs", "0\n",
               tree_get(&f.tree, "cpuset/" POD2 "/" ID(2), "cpuset.mems"));
    put("p", UID, ASKS CLAIM(TWO), "");
    pinner_pod_delete(f.pinner, "ns/p");
    wait_cpus("once it is gone they have all", POD2 "/" ID(2), "0-3");
    expect_done();
}

static void a_group_that_does_not_obey(void **state)
{
    (void)state;
    tree_remove(&f.tree, "cpuset");
    tree_dir(&f.tree, POD "/" ID(1));
    tree_put(&f.tree, "", "cgroup.controllers", "cpuset\n");
    tree_put(&f.tree, POD "/" ID(1), "cpuset.cpus", "\n");
    tree_put(&f.tree, POD "/" ID(1), "cpuset.cpus.effective", "0\n");
    start();
    put("p", UID, ASKS CLAIM(ONE), "");
    expect_str("an Event", "CpusetFailed", f.reason);
    expect_str("says what the kernel gives",
               "container ?: " POD "/" ID(1) ": the groups above leave it 0", f.message);
    expect_int("no answer: it is not so", 0, f.answers);
    tree_put(&f.tree, POD "/" ID(1), "cpuset.cpus.effective", "1\n");
    for (int64_t until = clock_mono_ms() + 10000; f.answers == 0 && clock_mono_ms() < until;)
        loop_once(f.loop, 20);
    expect_int("an answer once it is so", 1, f.answers);
    expect_done();
}

static void metrics_of_containers(void **state)
{
    (void)state;
    AUTO_STRBUF text;
    strbuf_init(&text);
    box(POD, "0-3\n");
    box(POD "/" ID(1), "0-3\n");
    tree_dir(&f.tree, "cpu/" POD "/" ID(1));
    tree_put(&f.tree, "cpu/" POD "/" ID(1), "cpu.stat", "nr_throttled 3\n");
    tree_dir(&f.tree, "cpuacct/" POD "/" ID(1));
    tree_put(&f.tree, "cpuacct/" POD "/" ID(1), "cpuacct.usage", "9000\n");
    start();
    put("p", UID, ASKS CLAIM(ONE), STATUS("a", ID(1)));
    metrics_render(&text);
    static const char *const lines[] = {
        "cosched_device_plugin_pinned_cpus{namespace=\"ns\",pod=\"p\",container=\"a\"} 1\n",
        "cosched_device_plugin_pinned_repairs_total{namespace=\"ns\",pod=\"p\",container=\"a\"} 0\n",
        "cosched_device_plugin_pinned_throttled_periods_total{namespace=\"ns\",pod=\"p\",container=\"a\"} 3\n",
        "cosched_device_plugin_pinned_cpu_microseconds_total{namespace=\"ns\",pod=\"p\",container=\"a\"} 9\n",
        "cosched_device_plugin_pins_total{result=\"taken\"} 1\n"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        expect_true(lines[i], strstr(strbuf_str(&text), lines[i]) != NULL);
    expect_done();
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_container_is_pinned_as_it_appears),
        TEST(each_container_has_its_own),
        TEST(loans_and_edits),
        TEST(a_restarted_pinner),
        TEST(pods_that_are_left_alone),
        TEST(shared_cpus),
        TEST(the_static_policy),
        TEST(the_first_pod_after_a_rest),
        TEST(memory_and_the_shared_pool),
        TEST(a_group_that_does_not_obey),
        TEST(metrics_of_containers),
    };
    return cmocka_run_group_tests_name("pinner", tests, NULL, NULL);
}
