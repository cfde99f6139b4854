// SPDX-License-Identifier: Apache-2.0
#include "scheduler/gangs.h"

#include "lib/model/names.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/fixture.h"

static struct cluster c;
static struct arena scratch;
static int told, vanished;

static void gang_changed(void *arg, struct gang *g)
{
    (void)arg;
    (void)g;
    told++;
}

static void gang_vanishing(void *arg, struct gang *g)
{
    (void)arg;
    (void)g;
    vanished++;
}

static const struct cluster_hooks hooks = {gang_changed, gang_vanishing, NULL};

static int setup(void **state)
{
    (void)state;
    cluster_init(&c, NAME_SCHEDULER);
    arena_init(&scratch, 0);
    told = vanished = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cluster_deinit(&c);
    arena_deinit(&scratch);
    return 0;
}

#define PUT(...) cluster_put_pod(&c, fixture_make_pod(&(struct fixture_pod){__VA_ARGS__}), &hooks)
#define BARE(name) PAIRS(NAME_LABEL_GANG_BARE, name)
#define SIZED(name, min) PAIRS(NAME_LABEL_GANG_NAME, name, NAME_LABEL_GANG_MIN, min)

/* "ok", or why the gang cannot be tried. */
static const char *verdict(const char *key)
{
    const struct gang *g = map_get(&c.gangs, key);
    const char *why = "ok";
    if (g == NULL)
        return "no such gang";
    return gangs_has_quorum(&c, g, &scratch, &why) ? "ok" : why;
}

static void a_lone_pod_is_a_gang_of_one(void **state)
{
    (void)state;
    (void)PUT(.name = "p", .priority = 7);
    const struct gang *g = map_get(&c.gangs, "pod d/p");
    assert_non_null(g);
    expect_true("it is alone", gangs_is_lone(g));
    expect_int("and enough", 1, g->min_available);
    expect_int("its priority", 7, g->priority);
    expect_str("it may go", "ok", verdict("pod d/p"));
    expect_int("the queue was told", 1, told);
    (void)PUT(.name = "other", .scheduler = "default-scheduler");
    expect_int("a pod of another scheduler is in no gang", 1, (int64_t)map_count(&c.gangs));
    (void)cluster_remove_pod(&c, "d/p", NULL, &hooks);
    expect_int("the queue is told of its end", 1, vanished);
    expect_int("none is left", 0, (int64_t)map_count(&c.gangs));
    expect_done();
}

static void a_form_that_is_not_legal_waits_with_its_reason(void **state)
{
    (void)state;
    (void)PUT(.name = "p", .labels = SIZED("g", "0"));
    expect_str("the label is named",
               "label pod-group.scheduling.sigs.k8s.io/min-available: must be between 1 and "
               "100000: '0'",
               verdict("pod d/p"));
    (void)PUT(.name = "p", .labels = SIZED("g", "1"));
    expect_str("put right it joins", "ok", verdict("gang d/g"));
    expect_str("and is alone no more", "no such gang", verdict("pod d/p"));
    expect_done();
}

static void pods_must_exist(void **state)
{
    (void)state;
    (void)PUT(.name = "a", .labels = SIZED("g", "3"));
    expect_str("one", "gang d/g: 1 of 3 pods exists", verdict("gang d/g"));
    (void)PUT(.name = "b", .labels = SIZED("g", "3"));
    expect_str("two", "gang d/g: 2 of 3 pods exist", verdict("gang d/g"));
    (void)PUT(.name = "c", .labels = SIZED("g", "3"), .gated = true);
    expect_str("a gated one does not count", "gang d/g: 2 of 3 pods exist", verdict("gang d/g"));
    told = 0;
    (void)PUT(.name = "c", .labels = SIZED("g", "3"));
    expect_str("three", "ok", verdict("gang d/g"));
    expect_int("the queue is told when the gate opens", 1, told);
    (void)PUT(.name = "b", .labels = SIZED("g", "3"), .terminating = true);
    expect_str("a terminating one does not count", "gang d/g: 2 of 3 pods exist",
               verdict("gang d/g"));
    (void)PUT(.name = "d", .labels = SIZED("g", "3"), .node = "n1", .phase = "Running");
    expect_str("a running one does", "ok", verdict("gang d/g"));
    (void)PUT(.name = "d", .labels = SIZED("g", "3"), .node = "n1", .phase = "Failed");
    expect_str("a failed one does not", "gang d/g: 2 of 3 pods exist", verdict("gang d/g"));
    expect_done();
}

static void a_member_that_succeeded_counts_and_holds_nothing(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n1"));
    (void)PUT(.name = "a", .labels = SIZED("g", "2"), .node = "n1", .c = {{.cpu_milli = 500}});
    expect_true("its room comes free", PUT(.name = "a", .labels = SIZED("g", "2"), .node = "n1",
                                           .phase = "Succeeded", .c = {{.cpu_milli = 500}}) &
                                           EVENT_POD_GONE);
    expect_int("all of it", 0, cluster_find_node(&c, "n1")->used.cpu_milli);
    (void)PUT(.name = "b", .labels = SIZED("g", "2"));
    expect_str("with another one it is enough", "ok", verdict("gang d/g"));
    expect_int("it counts as placed", 1, gangs_count_placed(map_get(&c.gangs, "gang d/g")));
    (void)PUT(.name = "x", .labels = SIZED("g", "2"), .node = "n1", .phase = "Succeeded");
    expect_int("also when it is first seen like this", 2,
               gangs_count_placed(map_get(&c.gangs, "gang d/g")));
    (void)cluster_remove_pod(&c, "d/a", NULL, &hooks);
    (void)cluster_remove_pod(&c, "d/x", NULL, &hooks);
    expect_str("deleted it counts no more", "gang d/g: 1 of 2 pods exists", verdict("gang d/g"));
    expect_done();
}

static void the_pod_group_says_the_size(void **state)
{
    (void)state;
    (void)PUT(.name = "a", .labels = BARE("g"));
    expect_str("not there", "PodGroup d/g does not exist", verdict("gang d/g"));
    told = 0;
    expect_int("it comes", EVENT_GANG,
               cluster_put_pod_group(&c, fixture_make_group("g", 2, true), &hooks));
    expect_int("the queue is told", 1, told);
    struct pod_group *same = fixture_make_group("g", 2, true);
    same->phase = "Pending";
    expect_int("a status, as we write it", 0, cluster_put_pod_group(&c, same, &hooks));
    expect_int("is nothing to try again for", 1, told);
    expect_str("its size holds", "gang d/g: 1 of 2 pods exists", verdict("gang d/g"));
    (void)cluster_put_pod_group(&c, fixture_make_group("g", 1, false), &hooks);
    expect_str("the sigs group wins", "ok", verdict("gang d/g"));
    (void)cluster_put_pod_group(&c, fixture_make_group("g", 4, true), &hooks);
    expect_str("whatever comes to the other", "ok", verdict("gang d/g"));
    expect_int("a group of another name", 0,
               cluster_put_pod_group(&c, fixture_make_group("h", 4, true), &hooks));
    (void)cluster_remove_pod_group(&c, "d/g", false, &hooks);
    expect_str("when it goes the other holds again", "gang d/g: 1 of 4 pods exists",
               verdict("gang d/g"));
    expect_int("gone twice", 0, cluster_remove_pod_group(&c, "d/g", false, &hooks));
    (void)cluster_remove_pod_group(&c, "d/g", true, &hooks);
    expect_str("both gone", "PodGroup d/g does not exist", verdict("gang d/g"));
    (void)cluster_put_pod_group(&c, fixture_make_group("g", 0, false), &hooks);
    expect_str("a size of 0 is 1", "ok", verdict("gang d/g"));
    expect_done();
}

static void members_must_agree(void **state)
{
    (void)state;
    (void)PUT(.name = "a", .labels = SIZED("g", "3"));
    (void)PUT(.name = "b", .labels = SIZED("g", "2"));
    expect_str("they do not", "members of gang d/g disagree on its size: 3 and 2",
               verdict("gang d/g"));
    (void)PUT(.name = "a", .labels = SIZED("g", "3"), .terminating = true);
    expect_str("one that is leaving has no say", "gang d/g: 1 of 2 pods exists",
               verdict("gang d/g"));
    (void)cluster_put_pod_group(&c, fixture_make_group("g", 9, false), &hooks);
    expect_str("a PodGroup of that name does not matter to them", "gang d/g: 1 of 2 pods exists",
               verdict("gang d/g"));
    expect_done();
}

static void what_makes_a_waiting_pod_try_again(void **state)
{
    (void)state;
    const struct {
        const char *row;
        struct fixture_pod pod;
        int told;
    } rows[] = {
        {"nothing", {.name = "p"}, 0},
        {"a label", {.name = "p", .labels = PAIRS("a", "b")}, 1},
        {"an annotation", {.name = "p", .annotations = PAIRS(NAME_ANN_BURST, "eci")}, 1},
        {"a toleration", {.name = "p", .spec = "\"tolerations\":[{\"operator\":\"Exists\"}]"}, 1},
        {"a resize", {.name = "p", .c = {{.cpu_milli = 5}}}, 1},
        {"a priority", {.name = "p", .priority = 5}, 1},
        {"a gate that closes", {.name = "p", .gated = true}, 0},
        {"its end", {.name = "p", .terminating = true}, 0},
        {"a node", {.name = "p", .node = "n1"}, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)PUT(.name = "p");
        told = 0;
        (void)cluster_put_pod(&c, fixture_make_pod(&rows[i].pod), &hooks);
        expect_int(rows[i].row, rows[i].told, told);
        (void)cluster_remove_pod(&c, "d/p", NULL, &hooks);
    }
    expect_done();
}

static void a_pod_moves_between_gangs_and_schedulers(void **state)
{
    (void)state;
    (void)PUT(.name = "a", .labels = SIZED("g", "1"));
    (void)PUT(.name = "b", .labels = SIZED("g", "1"));
    (void)PUT(.name = "a", .labels = SIZED("h", "1"));
    expect_str("the new one", "ok", verdict("gang d/h"));
    expect_int("the old one has the rest", 1,
               (int64_t)((struct gang *)map_get(&c.gangs, "gang d/g"))->members.len);
    (void)PUT(.name = "a", .scheduler = "default-scheduler");
    expect_str("not ours any more: its gang goes", "no such gang", verdict("gang d/h"));
    expect_true("the pod stays", cluster_find_pod(&c, "d/a")->gang == NULL);
    (void)PUT(.name = "a");
    expect_str("ours again", "ok", verdict("pod d/a"));
    expect_done();
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_lone_pod_is_a_gang_of_one),
        T(a_form_that_is_not_legal_waits_with_its_reason),
        T(pods_must_exist),
        T(a_member_that_succeeded_counts_and_holds_nothing),
        T(the_pod_group_says_the_size),
        T(members_must_agree),
        T(what_makes_a_waiting_pod_try_again),
        T(a_pod_moves_between_gangs_and_schedulers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
