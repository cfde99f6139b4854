// SPDX-License-Identifier: Apache-2.0
#include "scheduler/cycle/cycle.h"

#include "scheduler/cache/gangs.h"
#include "test/unit/scheduler/model_kit.h"

static struct cycle_result result;

static const char *try_gang(const char *key)
{
    return places(run_gang(key, &result));
}

/* A card of 40 GiB that nobody has, then a node with one that is taken, then one more. */
static void a_request_that_no_node_could_ever_hold_reads_otherwise_than_a_full_cluster(void **state)
{
    (void)state;
    const char *small = fixture_inventory(&arena, "cgpu", "24,24");
    const char *large = fixture_inventory(&arena, "cgpu", "48");
    (void)cluster_put_node(&c, NODE(.name = "n1", .gib = 48, .inventory = small));
    PUT(.name = "u", .node = "n1", .c = {{.gib = 20}});
    PUT(.name = "p", .c = {{.gib = 40}});
    expect_str("none", "p@-", try_gang("pod d/p"));
    expect_str("although n1 offers 48 GiB in all, of which 28 are free",
               "0/1 nodes fit: 1 has no card with 40 GiB even when empty (largest: 24 GiB on "
               "n1/GPU0); no node could ever take it",
               result.sentence);
    uint64_t class = result.class;
    expect_true("a node that comes may", result.wakes & EVENT_NODE_ADDED);
    PUT(.name = "v", .node = "n2", .c = {{.gib = 10}});
    expect_true("it wakes",
                (cluster_put_node(&c, NODE(.name = "n2", .gib = 48, .inventory = large)) &
                 result.wakes) != 0);
    expect_str("it is full", "p@-", try_gang("pod d/p"));
    expect_str("one could hold it",
               "0/2 nodes fit: 1 has too little aliyun.com/gpu-mem (asked: 40, largest free: 38 on "
               "n2), 1 has no card with 40 GiB even when empty (largest: 24 GiB on n1/GPU0)",
               result.sentence);
    expect_true("another class: it is told at once", result.class != class);
    (void)cluster_remove_pod(&c, "d/v", NULL, hooks);
    expect_str("and does", "p@n2", try_gang("pod d/p"));
    expect_done();
}

/* What the empty node lacks comes before what pods hold of it. */
static void the_size_of_a_node_comes_before_what_is_free(void **state)
{
    (void)state;
    const struct {
        const char *sentence;
        struct fixture_container ask;
        const char *says;
    } rows[] = {
        {"cpu is taken, and memory never enough",
         {.cpu_milli = 2000, .memory_bytes = 4096},
         "has too little memory even when empty (asked: 4Ki, largest: 2Ki on n)"},
        {"cpu is taken, and the resource not there",
         {.cpu_milli = 2000, .other = "a.b/c", .other_amount = 1},
         "does not offer a.b/c"},
        {"cpu is taken, and no card large enough",
         {.cpu_milli = 2000, .gib = 25},
         "has no card with 25 GiB even when empty (largest: 24 GiB on n/GPU0)"},
        {"cpu is taken, and a card is",
         {.cpu_milli = 2000, .gib = 24},
         "has too little cpu (asked: 2, largest free: 1 on n)"},
        {"exactly the empty node",
         {.cpu_milli = 4000, .memory_bytes = 2048},
         "has too little cpu (asked: 4, largest free: 1 on n)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        fresh();
        (void)cluster_put_node(&c,
                               NODE(.name = "n", .cpu_milli = 4000, .memory_bytes = 2048, .gib = 24,
                                    .inventory = fixture_inventory(&arena, "cgpu", "24")));
        PUT(.name = "u", .node = "n", .c = {{.cpu_milli = 3000}});
        PUT(.name = "p", .c = {rows[i].ask});
        (void)try_gang("pod d/p");
        const char *says = strstr(result.sentence, rows[i].says);
        expect_str(rows[i].sentence, rows[i].says, says != NULL ? rows[i].says : result.sentence);
    }
    expect_done();
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
    expect_str(
        "says so",
        "0/1 nodes fit: 1 has too little cpu even when empty (asked: 4, largest: 3999m on n2); no "
        "node could ever take it",
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
        T(a_request_that_no_node_could_ever_hold_reads_otherwise_than_a_full_cluster),
        T(the_size_of_a_node_comes_before_what_is_free),
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
