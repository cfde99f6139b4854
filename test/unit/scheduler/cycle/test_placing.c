// SPDX-License-Identifier: Apache-2.0
/*
 * In which order the members of a gang are placed, and what is tried before it is said not to fit.
 * Each row of the_ways is a gang for which the ways before do not do.
 */
#include "scheduler/cycle/placing.h"

#include "scheduler/framework/equivalence.h"
#include "scheduler/model/nominations.h"
#include "test/unit/scheduler/model_kit.h"

static struct cycle_result result;

/* CPU and memory, so that evenness has no say. */
#define EVEN(n) .c = {{.cpu_milli = (n)*1000, .memory_bytes = INT64_C(n) << 30}}
#define ZONE(z) .labels = PAIRS("topology.kubernetes.io/zone", z)

static const char *try_gang(const char *key)
{
    (void)run_gang(key, &result);
    return places(NULL);
}

/* "b a c" */
static const char *order_of(const char *key)
{
    struct gang *g = map_get(&c.gangs, key);
    struct plan plan;
    struct placing p;
    AUTO_STRBUF b = {0};
    plan_begin(&plan, &c);
    placing_init(&p, &pipeline, &plan, &arena, &g, 1);
    for (size_t i = 0; i < p.members_len; i++)
        strbuf_addf(&b, "%s%s", i > 0 ? " " : "", p.members[i].pod->pod->name);
    placing_deinit(&p);
    plan_end(&plan);
    return arena_strdup(&arena, strbuf_str(&b));
}

static void the_order(void **state)
{
    (void)state;
    (void)cluster_put_node(&c,
                           NODE(.name = "n1", .cpu_milli = 8000, .labels = PAIRS("disk", "ssd")));
    (void)cluster_put_node(&c, NODE(.name = "n2", .cpu_milli = 8000));
    PUT(.name = "c", .labels = MEMBER("same", "2"), CPU(1000));
    PUT(.name = "a", .labels = MEMBER("same", "2"), CPU(1000));
    PUT(.name = "b", .labels = MEMBER("same", "2"), CPU(1000));
    expect_str("equal ones by name", "a b c", order_of("gang d/same"));
    PUT(.name = "e", .labels = MEMBER("sizes", "2"), CPU(1000));
    PUT(.name = "f", .labels = MEMBER("sizes", "2"), CPU(3000));
    PUT(.name = "g", .labels = MEMBER("sizes", "2"), .c = {{.memory_bytes = INT64_C(12) << 30}});
    expect_str("the largest share of anything first", "g f e", order_of("gang d/sizes"));
    PUT(.name = "p", .labels = MEMBER("nodes", "2"), CPU(7000));
    PUT(.name = "q", .labels = MEMBER("nodes", "2"), CPU(1000),
        .spec = "\"nodeSelector\":{\"disk\":\"ssd\"}");
    PUT(.name = "r", .labels = MEMBER("nodes", "2"), CPU(9000));
    expect_str("fewest nodes before the largest, who fits nowhere last", "q p r",
               order_of("gang d/nodes"));
    expect_done();
}

static void the_ways(void **state)
{
    (void)state;
    const struct row {
        const char *sentence;
        enum cluster_packing packing;
        struct fixture_node nodes[4];
        struct fixture_pod pods[7];
        enum cycle_verdict verdict;
        const char *expected;
    } rows[] = {
        {"the one that fits on one node only goes first, whatever its name",
         CLUSTER_EMPTIEST_FIRST,
         {{.name = "n1", .cpu_milli = 1000, .labels = PAIRS("disk", "ssd")},
          {.name = "n2", .cpu_milli = 1000}},
         {{.name = "a", .labels = MEMBER("g", "2"), CPU(1000)},
          {.name = "b",
           .labels = MEMBER("g", "2"),
           CPU(1000),
           .spec = "\"nodeSelector\":{\"disk\":\"ssd\"}"}},
         CYCLE_PLACED,
         "a@n2 b@n1"},
        {"packed where spreading leaves a hole on every node",
         CLUSTER_EMPTIEST_FIRST,
         {{.name = "n1", .cpu_milli = 6000}, {.name = "n2", .cpu_milli = 6000}},
         {{.name = "a", .labels = MEMBER("g", "5"), CPU(3000)},
          {.name = "b", .labels = MEMBER("g", "5"), CPU(3000)},
          {.name = "c", .labels = MEMBER("g", "5"), CPU(2000)},
          {.name = "d", .labels = MEMBER("g", "5"), CPU(2000)},
          {.name = "e", .labels = MEMBER("g", "5"), CPU(2000)}},
         CYCLE_PLACED,
         "a@n1 b@n1 c@n2 d@n2 e@n2"},
        {"spread where packing does",
         CLUSTER_FULLEST_FIRST,
         {{.name = "n1", .cpu_milli = 10000, .memory_bytes = INT64_C(10) << 30},
          {.name = "n2", .cpu_milli = 10000, .memory_bytes = INT64_C(10) << 30}},
         {{.name = "a", .labels = MEMBER("g", "6"), EVEN(5)},
          {.name = "b", .labels = MEMBER("g", "6"), EVEN(4)},
          {.name = "c", .labels = MEMBER("g", "6"), EVEN(3)},
          {.name = "d", .labels = MEMBER("g", "6"), EVEN(3)},
          {.name = "e", .labels = MEMBER("g", "6"), EVEN(3)},
          {.name = "f", .labels = MEMBER("g", "6"), EVEN(2)}},
         CYCLE_PLACED,
         "a@n1 b@n2 c@n2 d@n1 e@n2 f@n1"},
        {"a quorum that can do without its hardest member does",
         CLUSTER_EMPTIEST_FIRST,
         {{.name = "n1", .cpu_milli = 4000}},
         {{.name = "a", .labels = MEMBER("g", "2"), CPU(4000)},
          {.name = "b", .labels = MEMBER("g", "2"), CPU(2000)},
          {.name = "c", .labels = MEMBER("g", "2"), CPU(2000)}},
         CYCLE_PARTLY,
         "a@- b@n1 c@n1"},
        {"a member that wants to be near another comes after it",
         CLUSTER_EMPTIEST_FIRST,
         {{.name = "n1", .cpu_milli = 4000, ZONE("z1")},
          {.name = "n2", .cpu_milli = 8000, ZONE("z2")}},
         {{.name = "a",
           .labels = MEMBER("g", "2"),
           CPU(4000),
           .spec = "\"affinity\":{\"podAffinity\":{"
                   "\"requiredDuringSchedulingIgnoredDuringExecution\":[{\"topologyKey\":"
                   "\"topology.kubernetes.io/zone\",\"labelSelector\":{\"matchLabels\":"
                   "{\"role\":\"master\"}}}]}}"},
          {.name = "m",
           .labels = PAIRS(NAME_LABEL_GANG_NAME, "g", NAME_LABEL_GANG_MIN, "2", "role", "master"),
           CPU(1000)}},
         CYCLE_PLACED,
         "a@n2 m@n2"},
        {"not enough in any way",
         CLUSTER_EMPTIEST_FIRST,
         {{.name = "n1", .cpu_milli = 6000}, {.name = "n2", .cpu_milli = 6000}},
         {{.name = "a", .labels = MEMBER("g", "3"), CPU(4000)},
          {.name = "b", .labels = MEMBER("g", "3"), CPU(4000)},
          {.name = "c", .labels = MEMBER("g", "3"), CPU(3000)}},
         CYCLE_NO_CAPACITY,
         "a@- b@- c@-"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *r = &rows[i];
        fresh();
        c.packing = r->packing;
        for (size_t k = 0; k < 4 && r->nodes[k].name != NULL; k++)
            (void)cluster_put_node(&c, fixture_make_node(&r->nodes[k]));
        for (size_t k = 0; k < 7 && r->pods[k].name != NULL; k++)
            (void)put(&r->pods[k]);
        expect_str(r->sentence, r->expected, try_gang("gang d/g"));
        expect_int(r->sentence, r->verdict, result.verdict);
    }
    expect_done();
}

#define TOGETHER                                                                                                  \
    "\"affinity\":{\"podAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{"                        \
    "\"topologyKey\":\"topology.kubernetes.io/zone\",\"labelSelector\":{\"matchLabels\":{\"" NAME_LABEL_GANG_NAME \
    "\":\"g\"}}}]}}"

/* z1 has the emptiest node and the fullest one, and room for two; z2 has room for three. */
static void a_whole_zone(void **state)
{
    (void)state;
    (void)cluster_put_node(
        &c, NODE(.name = "n0", .cpu_milli = 3000, .memory_bytes = INT64_C(5) << 30, ZONE("z1")));
    (void)cluster_put_node(&c, NODE(.name = "n1", .cpu_milli = 64000,
                                    .memory_bytes = INT64_C(256) << 30, .pods = 1, ZONE("z1")));
    (void)cluster_put_node(
        &c, NODE(.name = "n2", .cpu_milli = 9000, .memory_bytes = INT64_C(16) << 30, ZONE("z2")));
    for (char name[] = "a"; name[0] <= 'c'; name[0]++)
        PUT(.name = name, .labels = MEMBER("g", "3"), .spec = TOGETHER,
            .c = {{.cpu_milli = 3000, .memory_bytes = INT64_C(5) << 30}});
    expect_str("all in the zone that has the room", "a@n2 b@n2 c@n2", try_gang("gang d/g"));
    expect_int("placed", CYCLE_PLACED, result.verdict);
    expect_done();
}

/* What is beyond one gang's quorum never takes what another one's needs. */
static void several_gangs_as_one(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n1", .cpu_milli = 3000));
    PUT(.name = "a", .labels = MEMBER("g", "1"), CPU(1000));
    PUT(.name = "b", .labels = MEMBER("g", "1"), CPU(1000));
    PUT(.name = "c", .labels = MEMBER("g", "1"), CPU(1000));
    PUT(.name = "x", .labels = MEMBER("h", "2"), CPU(1000));
    PUT(.name = "y", .labels = MEMBER("h", "2"), CPU(1000));
    struct gang *both[] = {map_get(&c.gangs, "gang d/g"), map_get(&c.gangs, "gang d/h")};
    struct plan plan;
    struct placing p;
    plan_begin(&plan, &c);
    placing_init(&p, &pipeline, &plan, &arena, both, 2);
    expect_true("both quorums", placing_run(&p, true));
    expect_str("and nobody beyond", "a@n1 b@- c@- x@n1 y@n1", places(NULL));
    expect_str("the first one that waits", "b", p.stuck->pod->pod->name);
    placing_deinit(&p);
    plan_end(&plan);
    PUT(.name = "z", .node = "n1", CPU(1000));
    plan_begin(&plan, &c);
    placing_init(&p, &pipeline, &plan, &arena, both, 2);
    expect_true("one quorum is not enough", !placing_run(&p, true));
    expect_int("so nothing is placed", 0, (int64_t)plan.steps.len);
    placing_deinit(&p);
    plan_end(&plan);
    expect_done();
}

/* The same as the cycle does it: whichever of them is tried. */
static void gangs_that_name_each_other(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n1", .cpu_milli = 1000));
#define LISTED(name_, gang)                         \
    PUT(.name = name_, .labels = MEMBER(gang, "1"), \
        .annotations = PAIRS(NAME_ANN_GANG_GROUPS, "[\"d/g\",\"d/h\"]"), CPU(1000))
    LISTED("a", "g");
    expect_str("one is not there yet", "a@-", try_gang("gang d/g"));
    expect_int("costs no attempt", CYCLE_WAITING, result.verdict);
    LISTED("x", "h");
    expect_str("room for one of them", "a@- x@-", try_gang("gang d/h"));
    expect_int("so none goes", CYCLE_NO_CAPACITY, result.verdict);
    expect_str("and says who is in the way",
               "gang d/h: room for 0 of 1 pods; pod x: 0/1 nodes fit: 1 has too little cpu (asked: "
               "1, largest free: 0 on n1)",
               result.sentence);
    (void)try_gang("gang d/g");
    expect_str("of the other too",
               "gang d/g waits for the gangs of its group: gang d/h: room for 0 of 1 pods; pod x: "
               "0/1 nodes fit: 1 has too little cpu (asked: 1, largest free: 0 on n1)",
               result.sentence);
    (void)cluster_put_node(&c, NODE(.name = "n2", .cpu_milli = 1000));
    expect_str("room for both", "a@n1 x@n2", try_gang("gang d/h"));
    expect_int("placed", CYCLE_PLACED, result.verdict);
    expect_int("the other one is to be looked at", 1, (int64_t)result.others_len);
    expect_str("which is", "gang d/g", result.others[0]->key);
    expect_done();
}

/* ---- the ways that stop early ---- */

/* All ways for gang g as things are: "m0@n1 m1@n2" or "stuck m3: ..."; nothing is changed. *asked:
 * how many questions that took. */
static const char *all_ways(bool patient, uint64_t *asked)
{
    struct gang *g = map_get(&c.gangs, "gang d/g");
    struct plan plan;
    struct placing p;
    AUTO_STRBUF b = {0};
    uint64_t before = pipeline.classes->asked;
    plan_begin(&plan, &c);
    placing_init(&p, &pipeline, &plan, &arena, &g, 1);
    p.patient = patient;
    bool ok = placing_run(&p, true);
    for (size_t i = 0; i < plan.steps.len; i++)
        strbuf_addf(&b, "%s@%s ", plan.steps.items[i].pod->pod->name,
                    plan.steps.items[i].node->name);
    if (!ok)
        strbuf_addf(&b, "stuck %s: room for %d, wakes %x, %s", p.stuck->pod->pod->name,
                    p.gangs[0].reported, (unsigned)p.wakes, reasons_sentence(p.why, &arena));
    placing_deinit(&p);
    plan_end(&plan);
    *asked += pipeline.classes->asked - before;
    return arena_strdup(&arena, strbuf_str(&b));
}

/* Of 100 members the 50 large ones find 10 nodes. */
static void a_lost_cause_is_given_up_early(void **state)
{
    (void)state;
    uint64_t early = 0, patient = 0;
    for (int i = 0; i < 20; i++)
        (void)cluster_put_node(
            &c, NODE(.name = arena_printf(&arena, "n%02d", i), .cpu_milli = i < 10 ? 4000 : 3000));
    for (int i = 0; i < 100; i++)
        PUT(.name = arena_printf(&arena, "m%02d", i), .labels = MEMBER("g", "100"),
            CPU(i % 2 == 0 ? 4000 : 10 + i));
    const char *same = all_ways(true, &patient);
    expect_str("the same answer", same, all_ways(false, &early));
    expect_true("it does not fit", strncmp(same, "stuck ", 6) == 0);
    if (early * 3 > patient * 2)
        fail_msg("%llu questions are more than two thirds of %llu", (unsigned long long)early,
                 (unsigned long long)patient);
    expect_done();
}

static uint64_t seed;

static int64_t roll(uint64_t below)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((seed >> 33) % below);
}

static void stopping_early_changes_no_answer(void **state)
{
    (void)state;
    uint64_t early = 0, patient = 0;
    int placed = 0, refused = 0;
    seed = 20261116;
    for (int round = 0; round < 300; round++) {
        fresh();
        for (int i = 0; i < 4; i++)
            (void)cluster_put_node(&c, NODE(.name = arena_printf(&arena, "n%d", i),
                                            .cpu_milli = 2000 + roll(5) * 1000,
                                            .labels = PAIRS("disk", roll(2) == 0 ? "ssd" : "hdd")));
        int members = 4 + (int)roll(7);
        const char *min = arena_printf(&arena, "%d", 2 + (int)roll((uint64_t)members - 1));
        for (int i = 0; i < members; i++)
            PUT(.name = arena_printf(&arena, "m%d", i), .labels = MEMBER("g", min),
                .spec = roll(3) == 0 ? "\"nodeSelector\":{\"disk\":\"ssd\"}" : NULL,
                CPU(500 + roll(8) * 500));
        const char *expected = all_ways(true, &patient);
        expect_str("the same answer", expected, all_ways(false, &early));
        bool stuck = strncmp(expected, "stuck ", 6) == 0;
        refused += stuck;
        placed += !stuck;
    }
    if (placed < 30 || refused < 30)
        fail_msg("%d were placed and %d were not: too few of one kind", placed, refused);
    expect_true("with fewer questions", early < patient);
    expect_done();
}

static void what_wakes_it(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n1", .cpu_milli = 6000));
    (void)cluster_put_node(&c, NODE(.name = "n2", .cpu_milli = 6000));
    PUT(.name = "a", .labels = MEMBER("mixed", "3"), CPU(4000));
    PUT(.name = "b", .labels = MEMBER("mixed", "3"), CPU(4000));
    PUT(.name = "c", .labels = MEMBER("mixed", "3"), CPU(3000));
    (void)try_gang("gang d/mixed");
    expect_true("room enough in pieces: whoever takes some may help",
                (result.wakes & EVENT_POD_PLACED) != 0);
    PUT(.name = "e", .labels = MEMBER("equal", "3"), CPU(4000));
    PUT(.name = "f", .labels = MEMBER("equal", "3"), CPU(4000));
    PUT(.name = "g", .labels = MEMBER("equal", "3"), CPU(4000));
    (void)try_gang("gang d/equal");
    expect_true("equal ones: no order helps", (result.wakes & EVENT_POD_PLACED) == 0);
    expect_true("only room does", (result.wakes & EVENT_POD_GONE) != 0);
    PUT(.name = "p", .labels = MEMBER("large", "3"), CPU(6000));
    PUT(.name = "q", .labels = MEMBER("large", "3"), CPU(5000));
    PUT(.name = "r", .labels = MEMBER("large", "3"), CPU(5000));
    (void)try_gang("gang d/large");
    expect_true("not enough altogether", (result.wakes & EVENT_POD_PLACED) == 0);
    PUT(.name = "only", .spec = "\"nodeSelector\":{\"disk\":\"ssd\"}", CPU(1000));
    (void)try_gang("pod d/only");
    expect_true("a lone pod: another one's place is no help",
                (result.wakes & EVENT_POD_PLACED) == 0);
    (void)nominations_set(&c, cluster_find_pod(&c, "d/only"), "n1");
    (void)try_gang("pod d/only");
    expect_true("nor if it was promised one", (result.wakes & EVENT_POD_PLACED) == 0);
    PUT(.name = "z", CPU(1000));
    struct plan plan;
    plan_begin(&plan, &c);
    cycle_run(&pipeline, map_get(&c.gangs, "pod d/z"), &plan, &arena, &result);
    expect_true("a placement is such an event", (plan.events & EVENT_POD_PLACED) != 0);
    plan_end(&plan);
    expect_done();
}

/* n1 is the better node for the first one by name; the promise sends it to n2. */
static void to_where_it_was_promised(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n1", .cpu_milli = 4000));
    (void)cluster_put_node(&c, NODE(.name = "n2", .cpu_milli = 3000));
    struct cluster_pod *x = PUT(.name = "x", .labels = MEMBER("g", "2"), CPU(3000)),
                       *y = PUT(.name = "y", .labels = MEMBER("g", "2"), CPU(3000));
    (void)nominations_set(&c, x, "n2");
    (void)nominations_set(&c, y, "n1");
    expect_str("each to its own", "x@n2 y@n1", try_gang("gang d/g"));
    expect_done();
}

static void promised_room_is_the_gangs(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n1", .cpu_milli = 4000));
    (void)cluster_put_node(&c, NODE(.name = "n2", .cpu_milli = 4000));
    struct cluster_pod *x = PUT(.name = "x", .labels = MEMBER("g", "2"), CPU(4000)),
                       *y = PUT(.name = "y", .labels = MEMBER("g", "2"), CPU(4000));
    (void)nominations_set(&c, x, "n1");
    (void)nominations_set(&c, y, "n2");
    PUT(.name = "a", CPU(1000));
    expect_str("not for others of the same priority", "a@- x@- y@-", try_gang("pod d/a"));
    uint64_t made = pipeline.classes->made;
    expect_str("for all its members", "a@- x@n1 y@n2", try_gang("gang d/g"));
    expect_int("which are of one kind", 1, (int64_t)(pipeline.classes->made - made));
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_order),
        T(the_ways),
        T(a_whole_zone),
        T(several_gangs_as_one),
        T(gangs_that_name_each_other),
        T(a_lost_cause_is_given_up_early),
        T(stopping_early_changes_no_answer),
        T(what_wakes_it),
        T(to_where_it_was_promised),
        T(promised_room_is_the_gangs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
