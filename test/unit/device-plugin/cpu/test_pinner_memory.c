// SPDX-License-Identifier: Apache-2.0
/* What survives a restart, and what somebody writes meanwhile does not count. */
#include "test/unit/device-plugin/pinner_kit.h"

#define ON3 "{\\\"a\\\":{\\\"1\\\":" CPU(ON(3)) "}}"
#define APPLIED(x) ",\"cosched.io/cpuset-applied\":\"" x "\""
#define ANSWER(cpu, numa) "{\"a\":{\"" numa "\":{\"elems\":{\"" cpu "\":{}}}}}"
#define FILE_NAME "cpu-claims.json"

/* The process ends; a new one begins, and this is the list that it gets. */
static void again(const char *annotations, const char *annotations2)
{
    struct pod *pods[2];
    size_t n = 0;
    stop();
    metrics_reset();
    f.events = f.answers = 0;
    f.message[0] = f.answer[0] = '\0';
    start();
    if (annotations != NULL)
        pods[n++] = make("p", UID, annotations, "");
    if (annotations2 != NULL)
        pods[n++] = make("q", UID2, annotations2, "");
    podcache_reset(&f.pods, pods, n);
}

static void groups(void)
{
    box(POD, "0-3\n");
    box(POD "/" ID(1), "0-3\n");
    box(POD2, "0-3\n");
    box(POD2 "/" ID(2), "0-3\n");
}

static void both_annotations_edited(void **state)
{
    (void)state;
    groups();
    start();
    put("p", UID, ASKS GRANT(ONE), "");
    expect_str(
        "written before it was answered",
        "{\"v\":1,\"pool\":false,\"pods\":[{\"uid\":\"" UID
        "\",\"cpuset\":\"{\\\"a\\\":{\\\"0\\\":{\\\"elems\\\":{\\\"1\\\":{}}}}}\",\"released\":false,\"limits\":[0,0,0]}]}\n",
        tree_get(&f.tree, "memory", FILE_NAME));
    again(ASKS GRANT(ON3) APPLIED(ON3), NULL);
    expect_str("it stays where it was", "1", cpus(POD "/" ID(1)));
    expect_str("with an Event", "CpusetRefused", f.reason);
    expect_str("and the answer is put right", ANSWER("1", "0"), f.answer);
    again(GRANT(ON3) APPLIED(ON3), NULL);
    expect_str("also if it does not ask any more", "1", cpus(POD "/" ID(1)));
    again(ASKS GRANT(ONE) APPLIED(ON3), NULL);
    expect_int("only the answer was edited: no Event", 0, f.events);
    expect_str("put right", ANSWER("1", "0"), f.answer);
    expect_done();
}

/* The pods' state file has no word on CPUs: read as the pod itself, it would let go of them. */
static void a_pod_from_the_other_state_file(void **state)
{
    (void)state;
    groups();
    start();
    put("p", UID, ASKS GRANT(ONE), "");
    stop();
    metrics_reset();
    f.events = f.answers = 0;
    start();
    podcache_restore(&f.pods, make("p", UID, "", ""));
    expect_int("says nothing of its CPUs", 0, f.answers + f.events);
    put("p", UID, ASKS GRANT(ON3), "");
    expect_str("which it still has", "1", cpus(POD "/" ID(1)));
    expect_done();
}

static void a_pod_that_was_never_confirmed(void **state)
{
    (void)state;
    groups();
    start();
    put("p", UID, ASKS GRANT(ONE), "");
    again(ASKS GRANT(ONE), ASKS GRANT(ONE) APPLIED(ONE));
    expect_str("who had it has it", "1", cpus(POD "/" ID(1)));
    expect_str("whoever says that he had it too has not", "0-3\n", cpus(POD2 "/" ID(2)));
    expect_str("with an Event", "CpusetRefused", f.reason);
    again(NULL, ASKS GRANT(ONE) APPLIED(ON3));
    expect_str("and what the scheduler says is done, not what was said to be answered", "1",
               cpus(POD2 "/" ID(2)));
    expect_done();
}

static void no_file_or_a_broken_one(void **state)
{
    (void)state;
    static const char *const texts[] = {
        NULL, "", "{", "{\"v\":2,\"pods\":[]}", "{\"v\":1}", "{\"v\":1,\"pods\":{}}", "[]"};
    groups();
    start();
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        tree_remove(&f.tree, "memory");
        tree_dir(&f.tree, "memory");
        if (texts[i] != NULL)
            tree_put(&f.tree, "memory", FILE_NAME, texts[i]);
        again(ASKS GRANT(ON3) APPLIED(ONE), NULL);
        expect_str(texts[i] != NULL ? texts[i] : "no file: the answer counts", "1",
                   cpus(POD "/" ID(1)));
        expect_true("and is remembered from now on",
                    strstr(tree_get(&f.tree, "memory", FILE_NAME), UID) != NULL || f.answers == 0);
    }
    tree_put(&f.tree, "memory", FILE_NAME,
             "{\"v\":1,\"pods\":[1,{},{\"uid\":\"\",\"cpuset\":\"x\"},{\"uid\":\"" UID
             "\"},{\"uid\":\"" UID "\",\"cpuset\":\"x\",\"limits\":[\"x\"]},{\"uid\":\"" UID2
             "\",\"cpuset\":\"{\\\"a\\\":{\\\"0\\\":{\\\"elems\\\":{\\\"1\\\":{}}}}}\"}]}");
    again(NULL, ASKS GRANT(ON3));
    expect_str("entries that cannot be read are left out, the others count", "1",
               cpus(POD2 "/" ID(2)));
    expect_done();
}

static void a_place_that_cannot_be_written(void **state)
{
    (void)state;
    groups();
    tree_put(&f.tree, "", "memory", "a file where the directory should be");
    start();
    put("p", UID, ASKS GRANT(ONE), "");
    expect_str("pinned all the same", "1", cpus(POD "/" ID(1)));
    expect_str("and answered", ANSWER("1", "0"), f.answer);
    expect_done();
}

static void released_pods_and_those_that_are_gone(void **state)
{
    (void)state;
    groups();
    start();
    put("p", UID, ASKS GRANT(ONE), "");
    put("p", UID, ASKS "\"x\":\"y\"", "");
    expect_str("released", "0-3", cpus(POD "/" ID(1)));
    again(ASKS GRANT(ON3), NULL);
    expect_str("other CPUs are not for it, also after a restart", "CpusetRefused", f.reason);
    expect_str("nothing is done", "0-3", cpus(POD "/" ID(1)));
    again(ASKS GRANT(ONE), NULL);
    expect_str("the same again are", "1", cpus(POD "/" ID(1)));
    again(NULL, ASKS GRANT(ON3));
    expect_true("who is gone is forgotten",
                strstr(tree_get(&f.tree, "memory", FILE_NAME), UID) == NULL);
    expect_true("who is there is not",
                strstr(tree_get(&f.tree, "memory", FILE_NAME), UID2) != NULL);
    podcache_remove(&f.pods, "ns/q");
    for (int64_t until = clock_mono_ms() + 10000;
         strstr(tree_get(&f.tree, "memory", FILE_NAME), UID2) != NULL && clock_mono_ms() < until;)
        loop_once(f.loop, 20);
    expect_str("nobody is left", "{\"v\":1,\"pool\":false,\"pods\":[]}\n",
               tree_get(&f.tree, "memory", FILE_NAME));
    expect_done();
}

static void the_shared_pool_is_switched_off(void **state)
{
    (void)state;
    groups();
    f.config.shared_pool = true;
    start();
    again(ASKS GRANT(ONE), "");
    expect_str("the other pod keeps off", "0,2-3", cpus(POD2 "/" ID(2)));
    expect_true("which is remembered before it is done",
                strstr(tree_get(&f.tree, "memory", FILE_NAME), "\"pool\":true") != NULL);
    f.config.shared_pool = false;
    again(ASKS GRANT(ONE), "");
    expect_str("it has all CPUs again", "0-3", cpus(POD2 "/" ID(2)));
    expect_str("the pinned one has its own", "1", cpus(POD "/" ID(1)));
    tree_put(&f.tree, "cpuset/" POD2 "/" ID(2), "cpuset.cpus", "2\n");
    again(ASKS GRANT(ONE), "");
    expect_str("once; who pins it later may", "2\n", cpus(POD2 "/" ID(2)));
    expect_done();
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(both_annotations_edited),         TEST(a_pod_from_the_other_state_file),
        TEST(a_pod_that_was_never_confirmed),  TEST(no_file_or_a_broken_one),
        TEST(a_place_that_cannot_be_written),  TEST(released_pods_and_those_that_are_gone),
        TEST(the_shared_pool_is_switched_off),
    };
    return cmocka_run_group_tests_name("pinner_memory", tests, NULL, NULL);
}
