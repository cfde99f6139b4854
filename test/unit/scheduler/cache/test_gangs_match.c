// SPDX-License-Identifier: Apache-2.0
/*
 * The match policy of a gang: which members count towards its quorum once it was complete, and
 * which pod is to say on the API server that it was, so that the next scheduler knows.
 */
#include "test/unit/scheduler/gangs_kit.h"
#include "scheduler/cache/gangs.h"

static int32_t missing(const char *key)
{
    const struct gang *g = map_get(&c.gangs, key);
    return g != NULL ? gangs_count_missing(g) : -1;
}

#define MATCH(policy) PAIRS(NAME_ANN_GANG_MATCH, policy)
#define MATCHING(name_, policy, ...) \
    PUT(.name = name_, .labels = MEMBER("g", "2"), .annotations = MATCH(policy), __VA_ARGS__)

static void once_satisfied_needs_no_quorum_again(void **state)
{
    (void)state;
    (void)PUT(.name = "a", .labels = MEMBER("g", "2"), .node = "n1");
    (void)PUT(.name = "b", .labels = MEMBER("g", "2"));
    expect_int("one is bound, as after a crash: the other is still missing", 1,
               missing("gang d/g"));
    expect_true("and nothing is recorded", gangs_take_unrecorded(&c) == NULL);
    (void)PUT(.name = "b", .labels = MEMBER("g", "2"), .node = "n1");
    struct cluster_pod *cp = gangs_take_unrecorded(&c);
    assert_non_null(cp);
    expect_str("both are bound: one is to say so", "a", cp->pod->name);
    expect_str("with the name", "g", cp->said.name);
    expect_true("one is enough", gangs_take_unrecorded(&c) == NULL);
    (void)cluster_remove_pod(&c, "d/b", NULL, hooks);
    (void)PUT(.name = "b2", .labels = MEMBER("g", "2"));
    (void)PUT(.name = "c", .labels = MEMBER("g", "2"));
    expect_int("what comes later goes alone", 0, missing("gang d/g"));
    expect_str("its Binding says so", "g", gangs_record_of(cluster_find_pod(&c, "d/b2")));
    (void)PUT(.name = "a", .labels = MEMBER("g", "2"), .node = "n1", .phase = "Succeeded");
    (void)cluster_remove_pod(&c, "d/c", NULL, hooks);
    expect_str("also when one has succeeded", "ok", verdict("gang d/g"));
    (void)PUT(.name = "a", .labels = MEMBER("g", "2"), .node = "n1", .terminating = true);
    expect_str("a gang made again while the old one goes finds its own quorum",
               "gang d/g: 1 of 2 pods exists", verdict("gang d/g"));
    expect_int("together", 2, missing("gang d/g"));
    expect_str("nothing to be said in the Binding", NULL,
               gangs_record_of(cluster_find_pod(&c, "d/b2")));
    expect_done();
}

/* At that time, with again_ms 10: when to look again; 0 for "take it again". */
static int64_t follow(int64_t now_ms)
{
    static int64_t since_ms;
    bool again = false;
    int64_t due_ms =
        gangs_follow_record(&c, map_get(&c.gangs, "gang d/g"), &since_ms, now_ms, 10, &again);
    return again ? 0 : due_ms;
}

static void a_record_that_got_lost_is_written_again(void **state)
{
    (void)state;
    (void)PUT(.name = "a", .labels = MEMBER("g", "2"), .node = "n1");
    (void)PUT(.name = "b", .labels = MEMBER("g", "2"), .node = "n1");
    expect_int("nothing is on its way", -1, follow(1));
    expect_str("a is to say it", "a", gangs_take_unrecorded(&c)->pod->name);
    expect_int("seen on its way", 12, follow(2));
    expect_int("it has time", 12, follow(11));
    expect_true("until then it counts as written", gangs_take_unrecorded(&c) == NULL);
    expect_int("the time is over", 0, follow(12));
    struct cluster_pod *cp = gangs_take_unrecorded(&c);
    expect_true("so it is written again", cp != NULL && strcmp(cp->pod->name, "a") == 0);
    expect_int("with the same time", 30, follow(20));
    (void)PUT(.name = "a", .labels = MEMBER("g", "2"), .node = "n1",
              .annotations = PAIRS(NAME_ANN_GANG_SATISFIED, "g"));
    expect_int("the watch shows it", -1, follow(30));
    expect_int("and that is that", -1, follow(1000));
    expect_true("for good", gangs_take_unrecorded(&c) == NULL);
    expect_done();
}

static void nobody_waits_for_the_record_of_a_pod_that_goes(void **state)
{
    (void)state;
    (void)PUT(.name = "a", .labels = MEMBER("g", "2"), .node = "n1");
    (void)PUT(.name = "b", .labels = MEMBER("g", "2"), .node = "n1");
    (void)gangs_take_unrecorded(&c);
    expect_int("seen on its way", 11, follow(1));
    (void)PUT(.name = "a", .labels = MEMBER("g", "2"), .node = "n1", .terminating = true);
    expect_int("nobody waits for it any more", -1, follow(11));
    expect_done();
}

static void satisfied_is_known_after_a_restart(void **state)
{
    (void)state;
    const char *const *says = PAIRS(NAME_ANN_GANG_SATISFIED, "g");
    (void)PUT(.name = "b", .labels = MEMBER("g", "3"));
    (void)PUT(.name = "a", .labels = MEMBER("g", "3"), .annotations = says);
    expect_str("a pod without a node says nothing: result keys are never input",
               "gang d/g: 2 of 3 pods exist", verdict("gang d/g"));
    (void)PUT(.name = "a", .labels = MEMBER("g", "3"), .node = "n1",
              .annotations = PAIRS(NAME_ANN_GANG_SATISFIED, "h"));
    expect_int("nor one that was in another gang", 2, missing("gang d/g"));
    (void)PUT(.name = "a", .labels = MEMBER("g", "3"), .node = "n1", .annotations = says);
    expect_str("a bound one says it", "ok", verdict("gang d/g"));
    expect_int("one by one", 0, missing("gang d/g"));
    expect_true("nothing more is to be written", gangs_take_unrecorded(&c) == NULL);
    (void)PUT(.name = "b", .labels = MEMBER("h", "1"));
    (void)PUT(.name = "a", .labels = MEMBER("h", "3"), .node = "n1", .annotations = says);
    expect_true("in another gang it does not",
                !((struct gang *)map_get(&c.gangs, "gang d/h"))->satisfied);
    expect_done();
}

static void waiting_and_running_always_needs_its_quorum(void **state)
{
    (void)state;
    (void)MATCHING("a", "waiting-and-running", .node = "n1");
    (void)MATCHING("b", "waiting-and-running", .node = "n1");
    expect_int("it has it", 0, missing("gang d/g"));
    expect_true("nothing is recorded", gangs_take_unrecorded(&c) == NULL);
    (void)cluster_remove_pod(&c, "d/a", NULL, hooks);
    (void)cluster_remove_pod(&c, "d/b", NULL, hooks);
    (void)MATCHING("c", "waiting-and-running", .node = "n1");
    (void)MATCHING("d", "waiting-and-running", .node = NULL);
    expect_int("those that wait and those that are placed count", 1, missing("gang d/g"));
    expect_str("together they are enough", "ok", verdict("gang d/g"));
    (void)cluster_remove_pod(&c, "d/c", NULL, hooks);
    expect_str("alone it is not", "gang d/g: 1 of 2 pods exists", verdict("gang d/g"));
    expect_done();
}

static void only_waiting_counts_each_burst_for_itself(void **state)
{
    (void)state;
    (void)MATCHING("a", "only-waiting", .node = "n1");
    (void)MATCHING("b", "only-waiting", .node = NULL);
    expect_int("a burst that was cut is finished", 1, missing("gang d/g"));
    expect_str("it may go", "ok", verdict("gang d/g"));
    (void)MATCHING("b", "only-waiting", .node = "n1");
    int written = 0;
    while (gangs_take_unrecorded(&c) != NULL)
        written++;
    expect_int("each member is to say so", 2, written);
    (void)MATCHING("c", "only-waiting", .node = NULL);
    expect_str("those that run do not count",
               "gang d/g: 1 of 2 pods exists beside those that had their quorum (match-policy "
               "only-waiting)",
               verdict("gang d/g"));
    (void)MATCHING("d", "only-waiting", .node = NULL);
    expect_str("another quorum", "ok", verdict("gang d/g"));
    expect_int("together", 2, missing("gang d/g"));
    expect_str("nothing in the Binding: the burst is not complete", NULL,
               gangs_record_of(cluster_find_pod(&c, "d/d")));
    expect_done();
}

static void members_agree_on_match_policy(void **state)
{
    (void)state;
    (void)MATCHING("a", "only-waiting", .node = NULL);
    (void)PUT(.name = "b", .labels = MEMBER("g", "2"));
    expect_str("one that says nothing agrees", "ok", verdict("gang d/g"));
    (void)MATCHING("c", "once-satisfied", .node = NULL);
    expect_str("they do not",
               "members of gang d/g disagree on match-policy: only-waiting (pod a) and "
               "once-satisfied (pod c)",
               verdict("gang d/g"));
    (void)cluster_remove_pod(&c, "d/c", NULL, hooks);
    (void)gangs_put_group(
        &c, fixture_make_group_with("g", 2, POD_GROUP_SIGS, MATCH("waiting-and-running")), hooks);
    expect_str("nor does the PodGroup",
               "members of gang d/g disagree on match-policy: only-waiting (pod a) and "
               "waiting-and-running (PodGroup d/g)",
               verdict("gang d/g"));
    (void)gangs_put_group(&c, fixture_make_group_with("g", 2, POD_GROUP_SIGS, MATCH("sometimes")),
                          hooks);
    expect_str("which cannot be read",
               "PodGroup d/g: annotation " NAME_ANN_GANG_MATCH
               ": must be once-satisfied, waiting-and-running or only-waiting: 'sometimes'",
               verdict("gang d/g"));
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(once_satisfied_needs_no_quorum_again),
        T(a_record_that_got_lost_is_written_again),
        T(nobody_waits_for_the_record_of_a_pod_that_goes),
        T(satisfied_is_known_after_a_restart),
        T(waiting_and_running_always_needs_its_quorum),
        T(only_waiting_counts_each_burst_for_itself),
        T(members_agree_on_match_policy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
