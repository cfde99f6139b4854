// SPDX-License-Identifier: Apache-2.0
/* Pods and groups in, CPUs and answers out: on a directory tree instead of the kernel's. */
#include "test/unit/device-plugin/pinner_kit.h"

static void a_container_is_pinned_as_it_appears(void **state)
{
    (void)state;
    start();
    put("p", UID, ASKS GRANT(ONE), "");
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
    put("p", UID, ASKS GRANT(TWO), "");
    expect_str("not known yet: those of the pod", "1-2", cpus(POD "/" ID(1)));
    put("p", UID, ASKS GRANT(TWO), STATUS("b", ID(2)));
    expect_str("b is known", "2", cpus(POD "/" ID(2)));
    expect_str("the other is not", "1-2", cpus(POD "/" ID(1)));
    put("p", UID, ASKS GRANT(TWO), STATUS("a", ID(1)));
    expect_str("a is known", "1", cpus(POD "/" ID(1)));
    struct pod *p =
        make("p", UID, ASKS GRANT(TWO),
             ",\"status\":{\"initContainerStatuses\":[{\"name\":\"i\",\"containerID\":\"x://" ID(
                 3) "\",\"state\":{\"running\":{}}}]}");
    podcache_put(&f.pods, p);
    expect_str("an init container that was given none has all", "0-3", cpus(POD "/" ID(3)));
    expect_done();
}

static void loans_and_edits(void **state)
{
    (void)state;
    start();
    box(POD, "0-3\n");
    box(POD "/" ID(1), "0-3\n");
    put("p", UID, ASKS GRANT("{\\\"a\\\":{\\\"0\\\":" CPU(ON(0) "," ON(1)) "}}"), "");
    expect_str("two CPUs", "0-1", cpus(POD "/" ID(1)));
    put("p", UID, ASKS GRANT(ONE), "");
    expect_str("one is called back", "1", cpus(POD "/" ID(1)));
    expect_str("and confirmed", "{\"a\":{\"0\":{\"elems\":{\"1\":{}}}}}", f.answer);
    expect_int("no Event", 0, f.events);
    put("p", UID, ASKS GRANT("{\\\"a\\\":{\\\"0\\\":" CPU(ON(0) "," ON(1)) "}}"), "");
    expect_str("more again is not the scheduler's doing", "1", cpus(POD "/" ID(1)));
    expect_str("reason", "CpusetRefused", f.reason);
    expect_str("pod", "ns/p/1111", f.pod);
    put("p", UID, ASKS GRANT("{\\\"a\\\":{\\\"1\\\":" CPU(ON(3)) "}}"), "");
    expect_str("nor elsewhere", "1", cpus(POD "/" ID(1)));
    int events = f.events;
    put("p", UID, ASKS GRANT("{\\\"a\\\":{\\\"1\\\":" CPU(ON(3)) "}}"), "");
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
    pods[0] = make("p", UID, ASKS GRANT("{\\\"a\\\":{\\\"1\\\":" CPU(ON(2)) "}}"), "");
    pods[1] = make(
        "q", UID2,
        ASKS GRANT("{\\\"a\\\":{\\\"1\\\":" CPU(
            ON(2)) "}}") ","
                         "\"cosched.io/cpuset-applied\":\"{\\\"a\\\":{\\\"1\\\":" CPU(ON(2)) "}}\"",
        "");
    podcache_reset(&f.pods, pods, 2);
    expect_str("who had it has it", "2", cpus(POD2 "/" ID(2)));
    expect_str("the other is left alone", "0-3\n", cpus(POD "/" ID(1)));
    expect_str("with a sentence",
               "annotation cpuset is not applied: CPUs 2 are bound to another pod", f.message);
    expect_int("nothing new to answer", 0, f.answers);
    podcache_remove(&f.pods, "ns/q");
    wait_cpus("once the other is gone", POD "/" ID(1), "2");
    pods[0] = make(
        "p", UID,
        ASKS GRANT(ONE) ","
                        "\"cosched.io/cpuset-applied\":\"{\\\"a\\\":{\\\"1\\\":" CPU(ON(2)) "}}\"",
        "");
    podcache_reset(&f.pods, pods, 1);
    expect_str("what was confirmed counts", "2", cpus(POD "/" ID(1)));
    expect_str("said", "CpusetRefused", f.reason);
    expect_done();
}

static void pods_that_are_left_alone(void **state)
{
    (void)state;
    static const struct {
        const char *row, *annotations, *message;
    } rows[] = {
        {"one that does not ask", GRANT(ONE), ""},
        {"false means nothing", "\"cpuset-scheduler\":\"false\"," GRANT(ONE), ""},
        {"one that was given nothing", "\"cpuset-scheduler\":\"true\"", ""},
        {"an empty claim", ASKS GRANT(""), ""},
        {"a CPU that the node does not have", ASKS GRANT("{\\\"a\\\":{\\\"0\\\":" CPU(ON(9)) "}}"),
         "annotation cpuset is not applied: the node has no CPU 9"},
        {"a container that the pod does not have",
         ASKS GRANT("{\\\"z\\\":{\\\"0\\\":" CPU(ON(1)) "}}"), NULL},
        {"no JSON", ASKS GRANT("1"), NULL},
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
        podcache_remove(&f.pods, "ns/p");
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
    put("p", UID, ASKS GRANT(ONE), "");
    put("q", UID2, ASKS GRANT(ONE), "");
    expect_str("not twice", "0-3\n", cpus(POD2 "/" ID(2)));
    put("q", UID2, ASKS GRANT(ONE) ",\"cosched.io/cpuset-shared\":\"true\"", "");
    expect_str("not because it would share itself", "0-3\n", cpus(POD2 "/" ID(2)));
    put("p", UID, ASKS GRANT(ONE) ",\"cosched.io/cpuset-shared\":\"true\"", "");
    put("q", UID2, ASKS GRANT(ONE) ",\"cosched.io/cpuset-shared\":\"true\",\"x\":\"y\"", "");
    expect_str("unless both are content to share", "1", cpus(POD2 "/" ID(2)));
    expect_done();
}

static void the_static_policy(void **state)
{
    (void)state;
    tree_put(&f.tree, "", "state", "{\"policyName\":\"static\"}");
    box(POD, "0-3\n");
    box(POD "/" ID(1), "0-3\n");
    start();
    put("p", UID, ASKS GRANT(ONE), "");
    expect_str("nothing is done", "0-3\n", cpus(POD "/" ID(1)));
    expect_str("no more are sent here", "the kubelet's cpuManagerPolicy is static",
               pinner_closed(f.pinner));
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
    put("p", UID, ASKS GRANT(ONE), "");
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
    put("p", UID, ASKS GRANT("{\\\"a\\\":{\\\"1\\\":" CPU(ON(2) "," ON(3)) "}}"), "");
    expect_str("pinned", "2-3", cpus(POD "/" ID(1)));
    expect_str("with its memory", "1", tree_get(&f.tree, "cpuset/" POD "/" ID(1), "cpuset.mems"));
    wait_cpus("others keep off", POD2 "/" ID(2), "0-1");
    expect_str("memory of others is theirs", "0\n",
               tree_get(&f.tree, "cpuset/" POD2 "/" ID(2), "cpuset.mems"));
    put("p", UID, ASKS GRANT(TWO), "");
    podcache_remove(&f.pods, "ns/p");
    wait_cpus("once it is gone they have all", POD2 "/" ID(2), "0-3");
    expect_done();
}

/* The machine has changed. */
static void machine(const char *numa, const char *offline)
{
    AUTO_STRBUF text;
    struct cpu_topology t;
    struct arena a;
    strbuf_init(&text);
    strbuf_addf(
        &text,
        "{\"v\":1,\"sockets\":[\"%s\"],\"numa\":[\"%s\"],\"l3\":[\"%s\"],\"cores\":\"smt1:4\","
        "\"offline\":\"%s\"}",
        numa, numa, numa, offline);
    arena_init(&a, 0);
    assert_int_equal(0, cpu_topology_decode(strbuf_str(&text), text.len, &a, &t, NULL));
    pinner_machine(f.pinner, &t);
    arena_deinit(&a);
}

static void cpus_go_offline_and_come_back(void **state)
{
    (void)state;
    static const char both[] = "{\\\"a\\\":{\\\"0\\\":" CPU(ON(1) "," ON(2)) "}}";
    box(POD, "0-3\n");
    box(POD "/" ID(1), "0-3\n");
    start();
    machine("0-3", "");
    char grant[256];
    assert_true(str_format(grant, sizeof grant, ASKS "\"cpuset\":\"%s\"", both));
    put("p", UID, grant, "");
    expect_str("both", "1-2", cpus(POD "/" ID(1)));
    machine("0-1,3", "2");
    expect_str("one is offline", "1", cpus(POD "/" ID(1)));
    expect_int("that is no failure", 0, f.events);
    box(POD, "0-1,3\n"); /* on v1 the kernel takes it from every group, for good */
    machine("0-3", "");
    expect_str("and back, also where the pod's own group lacked it", "1-2", cpus(POD "/" ID(1)));
    machine("0,3", "1-2");
    expect_str("none is left: that is told", "container ?: all of its CPUs are offline", f.message);
    machine("0-3", "");
    expect_str("both again", "1-2", cpus(POD "/" ID(1)));
    expect_done();
}

#define HASH "0123456789abcdef0123456789abcdef"
#define MIRROR(hash) "\"kubernetes.io/config.mirror\":\"" hash "\""

static void static_pods_are_in_the_shared_pool(void **state)
{
    (void)state;
    f.config.shared_pool = true;
    box("kubepods/pod" HASH, "0-3\n");
    box("kubepods/pod" HASH "/" ID(3), "0-3\n");
    box(POD, "0-3\n");
    box(POD "/" ID(1), "0-3\n");
    start();
    put("p", UID, ASKS GRANT(ONE), "");
    put("proxy", UID2, MIRROR(HASH), "");
    wait_cpus("under the hash of its file", "kubepods/pod" HASH "/" ID(3), "0,2-3");
    put("liar", "33333333-0000-4000-8000-000000000000", MIRROR(UID), "");
    put("thief", "44444444-0000-4000-8000-000000000000", ASKS GRANT(ONE) "," MIRROR(HASH), "");
    loop_once(f.loop, 200);
    expect_str("nobody else's group is his who says so", "1", cpus(POD "/" ID(1)));
    expect_str("nor for being pinned", "0,2-3", cpus("kubepods/pod" HASH "/" ID(3)));
    expect_done();
}

static void a_node_without_cgroups(void **state)
{
    (void)state;
    char path[SCRATCH_PATH + 32], why[SCRATCH_PATH + 128];
    assert_true(str_format(path, sizeof path, "%s/nothing", f.tree.top));
    assert_true(str_format(why, sizeof why,
                           "%s: neither cgroup.controllers (v2) nor cpuset (v1) is there", path));
    f.config.cgroup_mount = path;
    start();
    put("p", UID, ASKS GRANT(ONE), "");
    expect_str("the pod is told", "CpusetFailed", f.reason);
    expect_str("why", why, f.message);
    expect_str("and the scheduler can be", why, pinner_closed(f.pinner));
    expect_int("nothing is answered", 0, f.answers);
    tree_dir(&f.tree, "nothing/cpuset");
    for (int i = 0; i < 100 && pinner_closed(f.pinner) != NULL; i++)
        loop_once(f.loop, 100);
    expect_str("until they are there", NULL, pinner_closed(f.pinner));
    expect_done();
}

#define MOUNT(uid, name)                                           \
    "174 159 254:0 /var/lib/kubelet/pods/" uid "/containers/" name \
    "/a02e12c6 /dev/termination-log rw - ext4 /dev/vda rw\n"

/* A process with these mounts in the group. */
static void process(const char *group, const char *pid, const char *mounts)
{
    char below[512];
    assert_true(str_format(below, sizeof below, "proc/%.2s", pid));
    tree_dir(&f.tree, below);
    tree_put(&f.tree, below, "mountinfo", mounts);
    assert_true(str_format(below, sizeof below, "cpuset/%s", group));
    tree_put(&f.tree, below, "cgroup.procs", pid);
}

static void mounts_tell_which_container_it_is(void **state)
{
    (void)state;
    start();
    box(POD, "0-3\n");
    box(POD "/" ID(1), "0-3\n");
    box(POD "/" ID(2), "0-3\n");
    box(POD "/" ID(3), "0-3\n");
    box(POD "/" ID(4), "0-3\n");
    process(POD "/" ID(1), "11\n12\n", MOUNT(UID, "a"));
    process(POD "/" ID(3), "13\n", "157 1 0:61 / / rw - overlay overlay rw\n");
    process(POD "/" ID(4), "14\n", MOUNT(UID, "i"));
    put("p", UID, ASKS GRANT(TWO), "");
    expect_str("no status is needed", "1", cpus(POD "/" ID(1)));
    expect_str("no process yet: those of the pod", "1-2", cpus(POD "/" ID(2)));
    expect_str("the sandbox too", "1-2", cpus(POD "/" ID(3)));
    expect_str("an init container that was given none", "0-3\n", cpus(POD "/" ID(4)));
    process(POD "/" ID(2), "15\n", MOUNT(UID, "b"));
    wait_cpus("soon after its process is there", POD "/" ID(2), "2");
    put("p", UID, ASKS GRANT(TWO), STATUS("a", ID(2)));
    expect_str("where they differ the status counts", "1", cpus(POD "/" ID(2)));
    expect_int("no Event", 0, f.events);
    expect_done();
}

static void a_list_without_pods_that_were_there(void **state)
{
    (void)state;
    struct pod *next = make("next", "33333333-0000-4000-8000-000000000000", ASKS GRANT(TWO), "");
    f.config.shared_pool = true; /* each that is gone is a reason to look at all others again */
    start();
    put("p", UID, ASKS GRANT(ONE), "");
    put("q", UID2, ASKS GRANT("{\\\"b\\\":{\\\"1\\\":" CPU(ON(2)) "}}"), "");
    f.answers = 0;
    podcache_reset(&f.pods, &next, 1);
    expect_int("all of them are gone", 0, f.events);
    expect_int("the next has their CPUs", 1, f.answers);
    expect_done();
}

static void a_container_without_cpus_of_its_own(void **state)
{
    (void)state;
    f.config.shared_pool = true;
    start();
    box(POD, "0-3\n");
    box(POD "/" ID(1), "0-3\n");
    box(POD "/" ID(2), "0-3\n");
    put("p", UID, ASKS GRANT(ONE), STATUS("b", ID(2)));
    expect_str("keeps off the CPUs of its own pod as well", "0,2-3", cpus(POD "/" ID(2)));
    AUTO_STRBUF text;
    strbuf_init(&text);
    metrics_render(&text);
    expect_true("and is no pinned container",
                strstr(strbuf_str(&text),
                       "pinned_cpus{namespace=\"ns\",pod=\"p\",container=\"b\"}") == NULL);
    expect_done();
}

/* A pod whose container a has this limit. */
static struct pod *sized(int cpu)
{
    AUTO_STRBUF text;
    AUTO_JSON *doc = NULL;
    struct pod *p;
    strbuf_init(&text);
    strbuf_addf(
        &text,
        "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"" UID
        "\",\"annotations\":{" ASKS GRANT(
            ONE) "}},\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":\"a\",\"resources\":{\"limits\":{\"cpu\":\"%d\"}}}]}}",
        cpu);
    assert_int_equal(0, json_parse(&doc, strbuf_str(&text), text.len, NULL));
    assert_int_equal(0, decode_pod(json_root(doc), &p, NULL));
    return p;
}

static void wait_remembered(int cpu)
{
    char text[64];
    (void)str_format(text, sizeof text, "\"limits\":[%d000]", cpu);
    for (int64_t until = clock_mono_ms() + 10000;
         strstr(tree_get(&f.tree, "memory", "cpu-claims.json"), text) == NULL &&
         clock_mono_ms() < until;)
        loop_once(f.loop, 20);
}

static void a_resize_that_happened_anyway(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        bool restarted;
        int cpu, events;
    } rows[] = {
        {"as it was made", false, 1, 0},
        {"resized", false, 2, 1},
        {"said once", false, 2, 1},
        {"also over a restart", true, 2, 1},
        {"resized while nobody looked", true, 3, 2},
        {"said once", false, 3, 2},
        {"also over a restart", true, 3, 2},
    };
    start();
    box(POD, "0-3\n");
    box(POD "/" ID(1), "0-3\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pod *p = sized(rows[i].cpu);
        if (rows[i].restarted) {
            wait_remembered(rows[i - 1].cpu);
            stop();
            metrics_reset();
            start();
            podcache_reset(&f.pods, &p, 1);
        } else {
            podcache_reset(&f.pods, &p, 1);
            podcache_put(&f.pods, sized(rows[i].cpu));
        }
        expect_str(rows[i].row, "1", cpus(POD "/" ID(1)));
        expect_int(rows[i].row, rows[i].events, f.events);
    }
    expect_str("the reason", "CpusetResized", f.reason);
    expect_str("the sentence",
               "limits.cpu of container a was changed; it keeps the CPUs that it has", f.message);
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
    put("p", UID, ASKS GRANT(ONE), "");
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
    put("p", UID, ASKS GRANT(ONE), STATUS("a", ID(1)));
    metrics_render(&text);
    static const char *const lines[] = {
        "cosched_device_plugin_pinned_cpus{namespace=\"ns\",pod=\"p\",container=\"a\"} 1\n",
        "cosched_device_plugin_pinned_repairs_total{namespace=\"ns\",pod=\"p\",container=\"a\"} 0\n",
        "cosched_device_plugin_pinned_throttled_periods_total{namespace=\"ns\",pod=\"p\",container=\"a\"} 3\n",
        "cosched_device_plugin_pinned_cpu_microseconds_total{namespace=\"ns\",pod=\"p\",container=\"a\"} 9\n",
        "cosched_device_plugin_pins_total{result=\"taken\"} 1\n"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        expect_true(lines[i], strstr(strbuf_str(&text), lines[i]) != NULL);
    /* Restarted: the new group is there, the old one not gone yet. */
    box(POD "/" ID(2), "0-3\n");
    process(POD "/" ID(2), "11\n", MOUNT(UID, "a"));
    wait_cpus("the new one is pinned", POD "/" ID(2), "1");
    strbuf_reset(&text);
    metrics_render(&text);
    const char *first = strstr(strbuf_str(&text), lines[0]);
    expect_true("a container has one line, not two",
                first != NULL && strstr(first + 1, lines[0]) == NULL);
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
        TEST(static_pods_are_in_the_shared_pool),
        TEST(cpus_go_offline_and_come_back),
        TEST(a_node_without_cgroups),
        TEST(mounts_tell_which_container_it_is),
        TEST(a_list_without_pods_that_were_there),
        TEST(a_container_without_cpus_of_its_own),
        TEST(a_resize_that_happened_anyway),
        TEST(a_group_that_does_not_obey),
        TEST(metrics_of_containers),
    };
    return cmocka_run_group_tests_name("pinner", tests, NULL, NULL);
}
