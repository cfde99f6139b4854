// SPDX-License-Identifier: Apache-2.0
#include "scheduler/cycle/cycle.h"

#include "scheduler/cache/gangs.h"
#include "test/unit/scheduler/model_kit.h"

static struct cycle_result result;

static const char *try_gang(const char *key)
{
    return places(run_gang(key, &result));
}

static void a_lone_pod(void **state)
{
    (void)state;
    PUT(.name = "a", .c = {{.cpu_milli = 4000}});
    expect_str("no node", "a@-", try_gang("pod d/a"));
    expect_int("no room", CYCLE_NO_CAPACITY, result.verdict);
    expect_str("says so", "0/0 nodes fit: the cluster has no nodes", result.sentence);
    expect_int("a node may help", EVENT_NODE_ADDED, result.wakes);
    (void)cluster_put_node(&c, NODE(.name = "n2", .cpu_milli = 3999));
    expect_str("one milli short", "a@-", try_gang("pod d/a"));
    expect_str("says so",
               "0/1 nodes fit: 1 has too little cpu (asked: 4, largest free: 3999m on n2)",
               result.sentence);
    expect_true("room may help",
                (result.wakes & EVENT_NODE_CAPACITY) && (result.wakes & EVENT_POD_GONE));
    expect_true("labels may not", !(result.wakes & EVENT_NODE_LABELS));
    (void)cluster_put_node(&c, NODE(.name = "n1", .cpu_milli = 4000));
    expect_str("exactly enough", "a@n1", try_gang("pod d/a"));
    expect_int("placed", CYCLE_PLACED, result.verdict);
    expect_str("nothing to say", NULL, result.sentence);
    expect_str("again", "a@n1", try_gang("pod d/a"));
    expect_int("nothing to do", CYCLE_NOTHING, result.verdict);
    expect_done();
}

static void all_or_nothing(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n1", .cpu_milli = 2000));
    PUT(.name = "a", .labels = MEMBER("g", "3"), .c = {{.cpu_milli = 1000}});
    PUT(.name = "b", .labels = MEMBER("g", "3"), .c = {{.cpu_milli = 1000}});
    expect_str("a pod is missing", "a@- b@-", try_gang("gang d/g"));
    expect_int("waiting", CYCLE_WAITING, result.verdict);
    expect_str("says so", "gang d/g: 2 of 3 pods exist", result.sentence);
    expect_int("only its own change helps, not another gang's", 0, result.wakes);
    uint64_t two = result.class;
    PUT(.name = "c", .labels = MEMBER("g", "3"), .c = {{.cpu_milli = 1000}});
    expect_str("room for two", "a@- b@- c@-", try_gang("gang d/g"));
    expect_int("no room", CYCLE_NO_CAPACITY, result.verdict);
    expect_str("says so",
               "gang d/g: room for 2 of 3 pods; pod c: 0/1 nodes fit: 1 has too little cpu (asked: "
               "1, largest free: 0 on n1)",
               result.sentence);
    expect_true("another class", result.class != two);
    (void)cluster_put_node(&c, NODE(.name = "n2", .cpu_milli = 1000));
    expect_str("room for three", "a@n1 b@n1 c@n2", try_gang("gang d/g"));
    expect_int("placed", CYCLE_PLACED, result.verdict);
    expect_done();
}

static void members_beyond_the_quorum_go_as_they_fit(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n1", .cpu_milli = 2000));
    PUT(.name = "a", .labels = MEMBER("g", "2"), .c = {{.cpu_milli = 1000}});
    PUT(.name = "b", .labels = MEMBER("g", "2"), .c = {{.cpu_milli = 1000}});
    PUT(.name = "c", .labels = MEMBER("g", "2"), .c = {{.cpu_milli = 1000}});
    expect_str("two of three", "a@n1 b@n1 c@-", try_gang("gang d/g"));
    expect_int("partly", CYCLE_PARTLY, result.verdict);
    expect_str("says so",
               "gang d/g: pod c: 0/1 nodes fit: 1 has too little cpu (asked: 1, largest free: 0 on "
               "n1)",
               result.sentence);
    expect_str("the rest waits", "a@n1 b@n1 c@-", try_gang("gang d/g"));
    expect_int("for room", CYCLE_NO_CAPACITY, result.verdict);
    (void)cluster_put_node(&c, NODE(.name = "n2", .cpu_milli = 1000));
    expect_str("room comes", "a@n1 b@n1 c@n2", try_gang("gang d/g"));
    expect_int("placed", CYCLE_PLACED, result.verdict);
    expect_done();
}

static void a_crash_between_two_binds_is_finished(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n1", .cpu_milli = 2000));
    PUT(.name = "a", .labels = MEMBER("g", "2"), .node = "n1", .c = {{.cpu_milli = 1000}});
    PUT(.name = "b", .labels = MEMBER("g", "2"), .c = {{.cpu_milli = 1000}});
    expect_str("the bound one counts", "a@n1 b@n1", try_gang("gang d/g"));
    expect_int("placed", CYCLE_PLACED, result.verdict);
    expect_done();
}

static void terminating_members_do_not_help(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n1", .cpu_milli = 2000));
    PUT(.name = "a", .labels = MEMBER("g", "2"), .node = "n1", .terminating = true,
        .c = {{.cpu_milli = 1000}});
    PUT(.name = "b", .labels = MEMBER("g", "2"), .c = {{.cpu_milli = 1000}});
    expect_str("it waits", "a@n1 b@-", try_gang("gang d/g"));
    expect_str("says so", "gang d/g: 1 of 2 pods exists", result.sentence);
    PUT(.name = "c", .labels = MEMBER("g", "2"), .c = {{.cpu_milli = 1000}});
    expect_str("its room is not free yet", "a@n1 b@- c@-", try_gang("gang d/g"));
    (void)cluster_remove_pod(&c, "d/a", NULL, NULL);
    expect_str("now it is", "b@n1 c@n1", try_gang("gang d/g"));
    expect_done();
}

static void what_no_node_can_help(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n1"));
    PUT(.name = "a", .c = {{.gib = 3, .percent = 7}});
    expect_str("illegal", "a@-", try_gang("pod d/a"));
    expect_str("says so",
               "spec.containers[0].resources.limits[aliyun.com/gpu-core.percentage]: 7 is not a "
               "multiple of 5; write 5 or 10",
               result.sentence);
    expect_int("no event helps", 0, result.wakes);
    PUT(.name = "b", .spec = "\"resourceClaims\":[{\"name\":\"x\"}]");
    expect_str("not supported", "b@-", try_gang("pod d/b"));
    expect_str("says so",
               "spec.resourceClaims (dynamic resource allocation) is not supported by this "
               "scheduler",
               result.sentence);
    PUT(.name = "c", .spec = "\"nodeSelector\":{\"a\":7}");
    expect_str("cannot be read", "c@-", try_gang("pod d/c"));
    expect_str("says so", "spec.nodeSelector: key 'a': must be a string without NUL, not number",
               result.sentence);
    PUT(.name = "x", .labels = MEMBER("g", "2"));
    PUT(.name = "y", .labels = MEMBER("g", "2"), .c = {{.percent = 5}});
    expect_str("one member spoils it", "x@- y@-", try_gang("gang d/g"));
    expect_str("and is named",
               "gang d/g: pod y: spec.containers[0].resources.limits"
               "[aliyun.com/gpu-core.percentage]: 5 percent of a card without memory of it; write "
               "aliyun.com/gpu-mem in GiB beside it",
               result.sentence);
    expect_done();
}

static void a_large_gang_is_not_told_of_every_pod(void **state)
{
    (void)state;
    uint64_t last = 0;
    int changes = 0;
    for (int i = 0; i < 99; i++) {
        char name[8];
        (void)str_format(name, sizeof name, "p%02d", i);
        PUT(.name = name, .labels = MEMBER("g", "100"));
        (void)try_gang("gang d/g");
        changes += result.class != last;
        last = result.class;
    }
    expect_true("more than once", changes > 10);
    expect_true("and not each time", changes <= 33);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_lone_pod),
        T(all_or_nothing),
        T(members_beyond_the_quorum_go_as_they_fit),
        T(a_crash_between_two_binds_is_finished),
        T(terminating_members_do_not_help),
        T(what_no_node_can_help),
        T(a_large_gang_is_not_told_of_every_pod),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
