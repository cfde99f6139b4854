// SPDX-License-Identifier: Apache-2.0
/*
 * Which pods are a gang, and when it may be tried: how many members it wants and who says so, which
 * of them count, and what the queue is told. What counts once it had its quorum is in
 * test_gangs_match, gangs that go together are in test_gangs_bundle.
 */
#include "test/unit/scheduler/gangs_kit.h"
#include "scheduler/cache/gangs.h"
#include "test/unit/scheduler/oracle.h"

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
    (void)cluster_remove_pod(&c, "d/p", NULL, hooks);
    expect_int("the queue is told of its end", 1, vanished);
    expect_int("none is left", 0, (int64_t)map_count(&c.gangs));
    expect_done();
}

static void a_lone_pod_has_a_gang_until_it_is_bound(void **state)
{
    (void)state;
    (void)PUT(.name = "p");
    struct cluster_pod *p = cluster_find_pod(&c, "d/p");
    (void)cluster_put_node(&c, fixture_make_node(&(struct fixture_node){.name = "n1"}));
    (void)cluster_assume(&c, p, cluster_find_node(&c, "n1"), &(struct grant){0});
    (void)PUT(.name = "p", .annotations = PAIRS("a", "b"));
    expect_true("assumed, it may come back", p->gang != NULL);
    (void)PUT(.name = "p", .node = "n1");
    expect_true("bound, it has none", p->gang == NULL);
    expect_int("the queue is told", 1, vanished);
    expect_int("none is left", 0, (int64_t)map_count(&c.gangs));
    (void)PUT(.name = "p", .node = "n1", .annotations = PAIRS("a", "b"));
    expect_int("nor does a later version bring it", 0, (int64_t)map_count(&c.gangs));
    (void)PUT(.name = "p", .node = "n1", .labels = MEMBER("g", "1"));
    expect_true("that of several is another matter", p->gang != NULL);
    (void)PUT(.name = "p", .node = "n1");
    expect_true("left again", p->gang == NULL);
    expect_int("and empty, so it goes", 0, (int64_t)map_count(&c.gangs));
    (void)PUT(.name = "early", .node = "n1");
    expect_true("one that was bound before we came", cluster_find_pod(&c, "d/early")->gang == NULL);
    (void)PUT(.name = "p", .uid = "another");
    expect_str("one of the same name that waits", "ok", verdict("pod d/p"));
    expect_done();
}

/* They come, are placed and bound, and go, the oldest first. */
static void members_of_one_mind_are_not_read_again(void **state)
{
    (void)state;
    enum { N = 60 };
    struct fixture_pod f = {.labels = MEMBER("g", "20")};
    (void)cluster_put_node(&c, fixture_make_node(&(struct fixture_node){.name = "n1"}));
    for (int i = 0; i < N; i++) {
        f.name = arena_printf(&arena, "m%d", i);
        f.created_s = i;
        (void)put(&f);
    }
    const struct gang *g = map_get(&c.gangs, "gang d/g");
    uint64_t reads = g->reads;
    expect_true("at its first members only", reads <= 2);
    expect_int("all exist", N, gangs_count_existing(g));
    for (int i = 0; i < N; i++) {
        f.name = arena_printf(&arena, "m%d", i);
        f.created_s = i;
        (void)cluster_assume(&c, cluster_find_pod(&c, arena_printf(&arena, "d/m%d", i)),
                             cluster_find_node(&c, "n1"), &(struct grant){0});
        expect_true("what is known is right", oracle_gangs(&c));
        f.node = "n1";
        (void)put(&f);
        f.node = NULL;
        expect_true("the quorum", oracle_gangs(&c) && g->satisfied == (i + 1 >= 20));
    }
    expect_true("none waits", !gangs_has_waiting(g));
    for (int i = 0; i < N - 1; i++) {
        (void)cluster_remove_pod(&c, arena_printf(&arena, "d/m%d", i), NULL, hooks);
        expect_true("of those that are left", oracle_gangs(&c));
    }
    expect_true("nothing was read again", g->reads == reads);
    (void)PUT(.name = "other", .labels = MEMBER("g", "30"), .priority = 3);
    expect_true("but when one says another thing", g->reads > reads && g->min_available == 30);
    expect_true("which is right", oracle_gangs(&c));
    (void)cluster_remove_pod(&c, "d/other", NULL, hooks);
    expect_true("and when it is gone", oracle_gangs(&c) && g->min_available == 20);
    expect_done();
}

static void a_form_that_is_not_legal_waits_with_its_reason(void **state)
{
    (void)state;
    (void)PUT(.name = "p", .labels = MEMBER("g", "0"));
    expect_str("the label is named",
               "label pod-group.scheduling.sigs.k8s.io/min-available: must be between 1 and "
               "100000: '0'",
               verdict("pod d/p"));
    (void)PUT(.name = "p", .labels = MEMBER("g", "1"));
    expect_str("put right it joins", "ok", verdict("gang d/g"));
    expect_str("and is alone no more", "no such gang", verdict("pod d/p"));
    expect_done();
}

static void pods_must_exist(void **state)
{
    (void)state;
    (void)PUT(.name = "a", .labels = MEMBER("g", "3"));
    expect_str("one", "gang d/g: 1 of 3 pods exists", verdict("gang d/g"));
    (void)PUT(.name = "b", .labels = MEMBER("g", "3"));
    expect_str("two", "gang d/g: 2 of 3 pods exist", verdict("gang d/g"));
    (void)PUT(.name = "c", .labels = MEMBER("g", "3"), .gated = true);
    expect_str("a gated one does not count", "gang d/g: 2 of 3 pods exist", verdict("gang d/g"));
    told = 0;
    (void)PUT(.name = "c", .labels = MEMBER("g", "3"));
    expect_str("three", "ok", verdict("gang d/g"));
    expect_int("the queue is told when the gate opens", 1, told);
    (void)PUT(.name = "b", .labels = MEMBER("g", "3"), .terminating = true);
    expect_str("a terminating one does not count", "gang d/g: 2 of 3 pods exist",
               verdict("gang d/g"));
    (void)PUT(.name = "d", .labels = MEMBER("g", "3"), .node = "n1", .phase = "Running");
    expect_str("a running one does", "ok", verdict("gang d/g"));
    (void)PUT(.name = "d", .labels = MEMBER("g", "3"), .node = "n1", .phase = "Failed");
    expect_str("a failed one does not", "gang d/g: 2 of 3 pods exist", verdict("gang d/g"));
    expect_done();
}

static void a_member_that_succeeded_counts_and_holds_nothing(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n1"));
    (void)PUT(.name = "a", .labels = MEMBER("g", "2"), .node = "n1", .c = {{.cpu_milli = 500}});
    expect_true("its room comes free", EVENTS(.name = "a", .labels = MEMBER("g", "2"), .node = "n1",
                                              .phase = "Succeeded", .c = {{.cpu_milli = 500}}) &
                                           EVENT_POD_GONE);
    expect_int("all of it", 0, cluster_find_node(&c, "n1")->used.cpu_milli);
    (void)PUT(.name = "b", .labels = MEMBER("g", "2"));
    expect_str("with another one it is enough", "ok", verdict("gang d/g"));
    expect_int("it counts as placed", 1, gangs_count_placed(map_get(&c.gangs, "gang d/g")));
    (void)PUT(.name = "x", .labels = MEMBER("g", "2"), .node = "n1", .phase = "Succeeded");
    expect_int("also when it is first seen like this", 2,
               gangs_count_placed(map_get(&c.gangs, "gang d/g")));
    (void)cluster_remove_pod(&c, "d/a", NULL, hooks);
    (void)cluster_remove_pod(&c, "d/x", NULL, hooks);
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
               gangs_put_group(&c, fixture_make_group("g", 2, true), hooks));
    expect_int("the queue is told", 1, told);
    struct pod_group *same = fixture_make_group("g", 2, true);
    same->phase = "Pending";
    expect_int("a status, as we write it", 0, gangs_put_group(&c, same, hooks));
    expect_int("is nothing to try again for", 1, told);
    expect_str("its size holds", "gang d/g: 1 of 2 pods exists", verdict("gang d/g"));
    (void)gangs_put_group(&c, fixture_make_group("g", 1, false), hooks);
    expect_str("the sigs group wins", "ok", verdict("gang d/g"));
    (void)gangs_put_group(&c, fixture_make_group("g", 4, true), hooks);
    expect_str("whatever comes to the other", "ok", verdict("gang d/g"));
    expect_int("a group of another name", 0,
               gangs_put_group(&c, fixture_make_group("h", 4, true), hooks));
    (void)gangs_remove_group(&c, "d/g", false, hooks);
    expect_str("when it goes the other holds again", "gang d/g: 1 of 4 pods exists",
               verdict("gang d/g"));
    expect_int("gone twice", 0, gangs_remove_group(&c, "d/g", false, hooks));
    (void)gangs_remove_group(&c, "d/g", true, hooks);
    expect_str("both gone", "PodGroup d/g does not exist", verdict("gang d/g"));
    (void)gangs_put_group(&c, fixture_make_group("g", 0, false), hooks);
    expect_str("a size of 0 is 1", "ok", verdict("gang d/g"));
    expect_done();
}

static void members_must_agree(void **state)
{
    (void)state;
    (void)PUT(.name = "a", .labels = MEMBER("g", "3"));
    (void)PUT(.name = "b", .labels = MEMBER("g", "2"));
    expect_str("they do not",
               "members of gang d/g disagree on its size: 3 (" NAME_LABEL_GANG_MIN
               " of pod a) and 2 (" NAME_LABEL_GANG_MIN " of pod b)",
               verdict("gang d/g"));
    (void)PUT(.name = "a", .labels = MEMBER("g", "3"), .terminating = true);
    expect_str("one that is leaving has no say", "gang d/g: 1 of 2 pods exists",
               verdict("gang d/g"));
    (void)gangs_put_group(&c, fixture_make_group("g", 9, POD_GROUP_SIGS), hooks);
    expect_str("a PodGroup of that name does not matter to them", "gang d/g: 1 of 2 pods exists",
               verdict("gang d/g"));
    expect_done();
}

static void members_of_several_forms_are_one_gang(void **state)
{
    (void)state;
    (void)PUT(.name = "a", .labels = MEMBER("g", "4"));
    (void)PUT(.name = "b",
              .annotations = PAIRS(NAME_ANN_GANG_KOORD_NAME, "g", NAME_ANN_GANG_KOORD_MIN, "4"));
    (void)PUT(.name = "c", .labels = BARE("g"));
    expect_str("a form that names a PodGroup needs none when others say the number",
               "gang d/g: 3 of 4 pods exist", verdict("gang d/g"));
    (void)PUT(.name = "d", .labels = PAIRS(NAME_LABEL_GANG_X, "g"));
    expect_str("all together", "ok", verdict("gang d/g"));
    (void)gangs_put_group(&c, fixture_make_group("g", 4, POD_GROUP_X), hooks);
    expect_str("with a PodGroup that agrees", "ok", verdict("gang d/g"));
    (void)gangs_put_group(&c, fixture_make_group("g", 3, POD_GROUP_SIGS), hooks);
    expect_str("one that does not agree is named",
               "members of gang d/g disagree on its size: 4 (" NAME_LABEL_GANG_MIN
               " of pod a) and 3 (PodGroup d/g)",
               verdict("gang d/g"));
    (void)gangs_remove_group(&c, "d/g", POD_GROUP_SIGS, hooks);
    (void)PUT(.name = "e",
              .annotations = PAIRS(NAME_ANN_GANG_KOORD_NAME, "g", NAME_ANN_GANG_KOORD_MIN, "5"));
    expect_str("the largest and the smallest, each with the first that says so",
               "members of gang d/g disagree on its size: 5 (" NAME_ANN_GANG_KOORD_MIN
               " of pod e) and 4 (PodGroup d/g)",
               verdict("gang d/g"));
    expect_done();
}

static void a_pod_with_two_forms_has_both_numbers(void **state)
{
    (void)state;
    (void)PUT(.name = "a", .labels = PAIRS(NAME_LABEL_GANG_NAME, "g", NAME_LABEL_GANG_MIN, "2",
                                           NAME_LABEL_GANG_BARE, "g"));
    (void)PUT(.name = "b", .labels = MEMBER("g", "2"));
    expect_str("its PodGroup need not exist", "ok", verdict("gang d/g"));
    (void)gangs_put_group(&c, fixture_make_group("g", 1, POD_GROUP_SIGS), hooks);
    expect_str("but must agree where it does",
               "members of gang d/g disagree on its size: 2 (" NAME_LABEL_GANG_MIN
               " of pod a) and 1 (PodGroup d/g)",
               verdict("gang d/g"));
    (void)PUT(.name = "a", .labels = PAIRS(NAME_LABEL_GANG_NAME, "g", NAME_LABEL_GANG_MIN, "2",
                                           NAME_LABEL_GANG_X, "h"));
    expect_str("two names on one pod",
               NAME_LABEL_GANG_NAME " names gang 'g', " NAME_LABEL_GANG_X " names 'h'",
               verdict("pod d/a"));
    expect_done();
}

static void kubernetes_own_form(void **state)
{
    (void)state;
#define NATIVE "\"schedulingGroup\":{\"podGroupName\":\"g\"}"
    (void)PUT(.name = "a", .spec = NATIVE);
    (void)PUT(.name = "b", .spec = NATIVE);
    expect_str("its PodGroup is not there", "PodGroup d/g does not exist", verdict("gang d/g"));
    (void)gangs_put_group(&c, fixture_make_group("g", 1, POD_GROUP_SIGS), hooks);
    expect_str("one of another API group is not it", "PodGroup d/g does not exist",
               verdict("gang d/g"));
    (void)gangs_put_group(&c, fixture_make_group("g", 3, POD_GROUP_NATIVE), hooks);
    expect_str("its own is", "gang d/g: 2 of 3 pods exist", verdict("gang d/g"));
    (void)PUT(.name = "c", .spec = NATIVE);
    expect_str("enough", "ok", verdict("gang d/g"));
    (void)PUT(.name = "d", .labels = BARE("g"));
    expect_str("mixed with another form that says another number",
               "members of gang d/g disagree on its size: 3 (PodGroup d/g) and 1 (PodGroup d/g)",
               verdict("gang d/g"));
    (void)gangs_remove_group(&c, "d/g", POD_GROUP_SIGS, hooks);
    expect_str("or none", "ok", verdict("gang d/g"));
    (void)gangs_remove_group(&c, "d/g", POD_GROUP_NATIVE, hooks);
    expect_str("gone", "PodGroup d/g does not exist", verdict("gang d/g"));
    expect_done();
}

static void members_have_one_priority_and_one_compute_class(void **state)
{
    (void)state;
#define CLASS(class) \
    PAIRS(NAME_LABEL_GANG_NAME, "g", NAME_LABEL_GANG_MIN, "2", NAME_LABEL_COMPUTE_CLASS, class)
    (void)PUT(.name = "b", .labels = MEMBER("g", "2"), .priority = 5);
    (void)PUT(.name = "a", .labels = MEMBER("g", "2"), .priority = 10);
    (void)PUT(.name = "c", .labels = MEMBER("g", "2"), .priority = 5);
    expect_str("priorities",
               "members of gang d/g have different priorities: 10 (pod a) and 5 (pod b)",
               verdict("gang d/g"));
    (void)PUT(.name = "a", .labels = MEMBER("g", "2"), .priority = 10, .terminating = true);
    expect_str("one that is leaving does not matter", "ok", verdict("gang d/g"));
    (void)PUT(.name = "b", .labels = CLASS("gpu"), .priority = 5);
    expect_str("a class on some of them", "ok", verdict("gang d/g"));
    (void)PUT(.name = "c", .labels = CLASS("gpu-hpn"), .priority = 5);
    expect_str("classes",
               "members of gang d/g have different " NAME_LABEL_COMPUTE_CLASS
               ": gpu-hpn (pod c) and gpu (pod b)",
               verdict("gang d/g"));
    (void)PUT(.name = "c", .labels = CLASS("gpu"), .priority = 5);
    expect_str("one class", "ok", verdict("gang d/g"));
    (void)PUT(.name = "c", .labels = CLASS(""), .priority = 5);
    expect_str("an empty one is none", "ok", verdict("gang d/g"));
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
        {"a deadline", {.name = "p", .spec = "\"activeDeadlineSeconds\":60"}, 1},
        {"a priority", {.name = "p", .priority = 5}, 1},
        {"a gate that closes", {.name = "p", .gated = true}, 0},
        {"its end", {.name = "p", .terminating = true}, 0},
        {"a node", {.name = "p", .node = "n1"}, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)PUT(.name = "p");
        told = 0;
        (void)cluster_put_pod(&c, fixture_make_pod(&rows[i].pod), hooks);
        expect_int(rows[i].row, rows[i].told, told);
        (void)cluster_remove_pod(&c, "d/p", NULL, hooks);
    }
    expect_done();
}

static void a_pod_moves_between_gangs_and_schedulers(void **state)
{
    (void)state;
    (void)PUT(.name = "a", .labels = MEMBER("g", "1"));
    (void)PUT(.name = "b", .labels = MEMBER("g", "1"));
    (void)PUT(.name = "a", .labels = MEMBER("h", "1"));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_lone_pod_is_a_gang_of_one),
        T(a_lone_pod_has_a_gang_until_it_is_bound),
        T(members_of_one_mind_are_not_read_again),
        T(a_form_that_is_not_legal_waits_with_its_reason),
        T(pods_must_exist),
        T(a_member_that_succeeded_counts_and_holds_nothing),
        T(the_pod_group_says_the_size),
        T(members_must_agree),
        T(members_of_several_forms_are_one_gang),
        T(a_pod_with_two_forms_has_both_numbers),
        T(kubernetes_own_form),
        T(members_have_one_priority_and_one_compute_class),
        T(what_makes_a_waiting_pod_try_again),
        T(a_pod_moves_between_gangs_and_schedulers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
