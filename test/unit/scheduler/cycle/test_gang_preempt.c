// SPDX-License-Identifier: Apache-2.0
/*
 * Who goes for a whole gang: rows for the rules, and the story of a gang from the first victim to
 * the last member placed.
 */
#include "scheduler/cycle/gang_preempt.h"

#include "scheduler/model/nominations.h"
#include "test/unit/scheduler/model_kit.h"

static struct cycle_result result;

/* As drive does, but nothing is sent. "a@n1 b@- ; a>n2 ; v w": where members are, what they were
 * promised, who goes. */
static const char *try_gang(const char *key)
{
    AUTO_STRBUF b = {0};
    (void)run_gang(key, &result);
    for (size_t i = 0; i < result.nominations_len; i++) {
        const struct cycle_nomination *n = &result.nominations[i];
        strbuf_addf(&b, "%s>%s ", n->pod->pod->name, n->node != NULL ? n->node->name : "-");
        (void)nominations_set(&c, n->pod, n->node != NULL ? n->node->name : NULL);
    }
    strbuf_adds(&b, ";");
    for (size_t i = 0; i < result.victims_len; i++) {
        strbuf_addf(&b, " %s", result.victims[i].pod->pod->name);
        cluster_set_evicting(&c, result.victims[i].pod, true);
    }
    return arena_strdup(&arena, strbuf_str(&b));
}

static void the_rules(void **state)
{
    (void)state;
    const struct row {
        const char *sentence;
        struct fixture_pod placed[6];
        int allowed; /* of the budget for app=guarded; -1: none */
        struct fixture_pod pods[3];
        const char *expected;
    } rows[] = {
        {"a victim for each member",
         {{.name = "u", .node = "n1", .priority = 1, CPU(4000)},
          {.name = "v", .node = "n2", .priority = 1, CPU(4000)},
          {.name = "w", .node = "n3", .priority = 9, CPU(4000)}},
         -1,
         {{.name = "a", .labels = MEMBER("g", "2"), .priority = 5, CPU(4000)},
          {.name = "b", .labels = MEMBER("g", "2"), .priority = 5, CPU(4000)}},
         "a>n1 b>n2 ; u v"},
        {"all or nothing: two are not enough for three",
         {{.name = "u", .node = "n1", .priority = 1, CPU(4000)},
          {.name = "v", .node = "n2", .priority = 1, CPU(4000)},
          {.name = "w", .node = "n3", .priority = 9, CPU(4000)}},
         -1,
         {{.name = "a", .labels = MEMBER("g", "3"), .priority = 5, CPU(4000)},
          {.name = "b", .labels = MEMBER("g", "3"), .priority = 5, CPU(4000)},
          {.name = "c", .labels = MEMBER("g", "3"), .priority = 5, CPU(4000)}},
         ";"},
        {"only the quorum sends others away",
         {{.name = "u", .node = "n1", .priority = 1, CPU(4000)},
          {.name = "v", .node = "n2", .priority = 1, CPU(4000)},
          {.name = "w", .node = "n3", .priority = 1, CPU(4000)}},
         -1,
         {{.name = "a", .labels = MEMBER("g", "2"), .priority = 5, CPU(4000)},
          {.name = "b", .labels = MEMBER("g", "2"), .priority = 5, CPU(4000)},
          {.name = "c", .labels = MEMBER("g", "2"), .priority = 5, CPU(4000)}},
         "a>n3 b>n2 ; w v"},
        {"free room first, and it is promised too",
         {{.name = "u", .node = "n1", .priority = 1, CPU(4000)},
          {.name = "w", .node = "n3", .priority = 9, CPU(4000)}},
         -1,
         {{.name = "a", .labels = MEMBER("g", "2"), .priority = 5, CPU(4000)},
          {.name = "b", .labels = MEMBER("g", "2"), .priority = 5, CPU(4000)}},
         "a>n2 b>n1 ; u"},
        {"what is leaving anyway comes before victims",
         {{.name = "u", .node = "n1", .priority = 1, CPU(4000)},
          {.name = "v", .node = "n2", .priority = 9, .terminating = true, CPU(4000)},
          {.name = "w", .node = "n3", .priority = 1, .terminating = true, CPU(4000)}},
         -1,
         {{.name = "a", .labels = MEMBER("g", "2"), .priority = 5, CPU(4000)},
          {.name = "b", .labels = MEMBER("g", "2"), .priority = 5, CPU(4000)}},
         "a>n2 b>n3 ;"},
        {"a budget that the first victim used up keeps the second one safe",
         {{.name = "u", .node = "n1", .labels = PAIRS("app", "guarded"), .priority = 1, CPU(4000)},
          {.name = "v", .node = "n2", .labels = PAIRS("app", "guarded"), .priority = 1, CPU(4000)},
          {.name = "w", .node = "n3", .priority = 3, CPU(4000)}},
         1,
         {{.name = "a", .labels = MEMBER("g", "2"), .priority = 5, CPU(4000)},
          {.name = "b", .labels = MEMBER("g", "2"), .priority = 5, CPU(4000)}},
         "a>n1 b>n3 ; u w"},
        {"a gang that loses its quorum goes whole, and makes room for the next member",
         {{.name = "u", .node = "n1", .labels = MEMBER("low", "2"), .priority = 1, CPU(4000)},
          {.name = "v", .node = "n2", .labels = MEMBER("low", "2"), .priority = 1, CPU(4000)},
          {.name = "w", .node = "n3", .priority = 2, CPU(4000)}},
         -1,
         {{.name = "a", .labels = MEMBER("g", "2"), .priority = 5, CPU(4000)},
          {.name = "b", .labels = MEMBER("g", "2"), .priority = 5, CPU(4000)}},
         "a>n1 b>n2 ; u v"},
        {"for a lone pod rather another one than a whole gang",
         {{.name = "u", .node = "n1", .labels = MEMBER("low", "2"), .priority = 1, CPU(4000)},
          {.name = "v", .node = "n2", .labels = MEMBER("low", "2"), .priority = 1, CPU(4000)},
          {.name = "w", .node = "n3", .priority = 1, CPU(4000)}},
         -1,
         {{.name = "g", .priority = 5, CPU(4000)}},
         "g>n3 ; w"},
        {"on one node rather the lone pod than the gang's",
         {{.name = "t", .node = "n1", .labels = MEMBER("low", "2"), .priority = 1, CPU(2000)},
          {.name = "u", .node = "n1", .priority = 1, CPU(2000)},
          {.name = "v", .node = "n2", .labels = MEMBER("low", "2"), .priority = 1, CPU(4000)},
          {.name = "w", .node = "n3", .priority = 9, CPU(4000)}},
         -1,
         {{.name = "g", .priority = 5, CPU(2000)}},
         "g>n1 ; u"},
        {"the whole gang where nobody else is, wherever it runs",
         {{.name = "u", .node = "n1", .labels = MEMBER("low", "2"), .priority = 1, CPU(4000)},
          {.name = "v", .node = "n2", .labels = MEMBER("low", "2"), .priority = 1, CPU(1000)},
          {.name = "w", .node = "n2", .priority = 9, CPU(3000)},
          {.name = "x", .node = "n3", .priority = 9, CPU(4000)}},
         -1,
         {{.name = "g", .priority = 5, CPU(4000)}},
         "g>n1 ; u v"},
        {"a gang with more than its quorum loses one and goes on",
         {{.name = "u", .node = "n1", .labels = MEMBER("low", "1"), .priority = 1, CPU(4000)},
          {.name = "v", .node = "n2", .labels = MEMBER("low", "1"), .priority = 1, CPU(4000)},
          {.name = "w", .node = "n3", .priority = 9, CPU(4000)}},
         -1,
         {{.name = "g", .priority = 5, CPU(4000)}},
         "g>n1 ; u"},
        {"not with preemptionPolicy Never, be it one member's",
         {{.name = "u", .node = "n1", .priority = 1, CPU(4000)},
          {.name = "v", .node = "n2", .priority = 1, CPU(4000)},
          {.name = "w", .node = "n3", .priority = 1, CPU(4000)}},
         -1,
         {{.name = "a", .labels = MEMBER("g", "2"), .priority = 5, CPU(4000)},
          {.name = "b",
           .labels = MEMBER("g", "2"),
           .priority = 5,
           CPU(4000),
           .spec = "\"preemptionPolicy\":\"Never\""}},
         ";"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *r = &rows[i];
        fresh();
        for (char name[] = "n1"; name[1] <= '3'; name[1]++)
            (void)cluster_put_node(&c, NODE(.name = name, .cpu_milli = 4000));
        for (size_t k = 0; k < 6 && r->placed[k].name != NULL; k++)
            (void)put(&r->placed[k]);
        for (size_t k = 0; k < 3 && r->pods[k].name != NULL; k++)
            (void)put(&r->pods[k]);
        if (r->allowed >= 0)
            put_budget("b", "guarded", r->allowed);
        expect_str(r->sentence, r->expected,
                   try_gang(r->pods[1].name != NULL ? "gang d/g" : "pod d/g"));
        expect_int(r->sentence, CYCLE_NO_CAPACITY, result.verdict);
        expect_int(r->sentence, result.nominations_len > 0, result.awaits);
    }
    expect_done();
}

static void from_the_first_victim_to_the_last_member(void **state)
{
    (void)state;
    for (char name[] = "n1"; name[1] <= '3'; name[1]++)
        (void)cluster_put_node(&c, NODE(.name = name, .cpu_milli = 4000));
    PUT(.name = "u", .node = "n1", .priority = 1, CPU(4000));
    PUT(.name = "v", .node = "n2", .priority = 1, CPU(4000));
    PUT(.name = "w", .node = "n3", .priority = 1, CPU(4000));
    for (char name[] = "a"; name[0] <= 'c'; name[0]++)
        PUT(.name = name, .labels = MEMBER("g", "3"), .priority = 5, CPU(4000));
    (void)try_gang("gang d/g");
    expect_int("all three have to go", 3, (int64_t)result.victims_len);
    expect_str("says so",
               "gang d/g: room for 0 of 3 pods; pod a: 0/3 nodes fit: 3 have too little cpu "
               "(asked: 4, largest free: 0 on n1); 3 pods of lower priority on n1 and 2 other "
               "nodes must go for it",
               result.sentence);
    expect_str("nobody is sent away twice", ";", try_gang("gang d/g"));
    expect_true("it waits for them", result.awaits);
    expect_str("says so",
               "gang d/g: room for 0 of 3 pods; pod a: 0/3 nodes fit: 3 have too little cpu "
               "(asked: 4, largest free: 0 on n1); pods are leaving n1 and 2 other nodes for it",
               result.sentence);
    (void)cluster_remove_pod(&c, "d/u", NULL, NULL);
    expect_str("the first is gone", ";", try_gang("gang d/g"));
    expect_int("nothing is placed before the last one is", CYCLE_NO_CAPACITY, result.verdict);
    PUT(.name = "x", .priority = 5, CPU(1000));
    expect_str("and nobody else gets the room", ";", try_gang("pod d/x"));
    expect_int("nobody of the same priority", CYCLE_NO_CAPACITY, result.verdict);
    (void)cluster_remove_pod(&c, "d/v", NULL, NULL);
    (void)cluster_remove_pod(&c, "d/w", NULL, NULL);
    expect_str("now all go", ";", try_gang("gang d/g"));
    expect_int("placed", CYCLE_PLACED, result.verdict);
    expect_done();
}

static void promises_are_taken_back(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n1", .cpu_milli = 4000));
    (void)cluster_put_node(&c, NODE(.name = "n2", .cpu_milli = 4000));
    PUT(.name = "u", .node = "n1", .priority = 1, CPU(4000));
    PUT(.name = "v", .node = "n2", .priority = 1, CPU(4000));
    PUT(.name = "a", .labels = MEMBER("g", "2"), .priority = 5, CPU(4000));
    PUT(.name = "b", .labels = MEMBER("g", "2"), .priority = 5, CPU(4000));
    (void)try_gang("gang d/g");
    expect_int("promised", 2, (int64_t)nominations_count(&c));
    (void)cluster_remove_pod(&c, "d/a", NULL, NULL);
    expect_str("a gang that lost a member holds nothing", "b>- ;", try_gang("gang d/g"));
    expect_int("it waits for it", CYCLE_WAITING, result.verdict);
    PUT(.name = "a", .labels = MEMBER("g", "2"), .priority = 5, CPU(4000));
    expect_str("whole again, and they are leaving already", "a>n1 b>n2 ;", try_gang("gang d/g"));
    (void)cluster_remove_pod(&c, "d/u", NULL, NULL);
    (void)cluster_remove_pod(&c, "d/v", NULL, NULL);
    PUT(.name = "x", .node = "n1", .priority = 9, CPU(4000));
    expect_str("somebody more important took it", "a>- b>- ;", try_gang("gang d/g"));
    expect_int("nobody is promised anything", 0, (int64_t)nominations_count(&c));
    expect_true("and nothing is awaited", !result.awaits);
    expect_done();
}

/* With a quorum running each further member is on its own, as a lone pod would be. */
static void a_member_beyond_the_quorum(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n1", .cpu_milli = 4000));
    (void)cluster_put_node(&c, NODE(.name = "n2", .cpu_milli = 4000));
    PUT(.name = "a", .node = "n1", .labels = MEMBER("g", "1"), .priority = 5, CPU(4000));
    PUT(.name = "v", .node = "n2", .priority = 1, CPU(4000));
    PUT(.name = "b", .labels = MEMBER("g", "1"), .priority = 5, CPU(4000));
    PUT(.name = "c", .labels = MEMBER("g", "1"), .priority = 5, CPU(4000));
    expect_str("one of them", "b>n2 ; v", try_gang("gang d/g"));
    expect_done();
}

/* No member of one gang goes for a member of another one with which it is placed. */
static void members_do_not_go_for_each_other(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n1", .cpu_milli = 4000));
    PUT(.name = "v", .node = "n1", .priority = 1, CPU(4000));
    PUT(.name = "a", .labels = MEMBER("g", "1"), .priority = 5, CPU(4000));
    PUT(.name = "x", .labels = MEMBER("h", "1"), .priority = 7, CPU(4000));
    struct gang *both[] = {map_get(&c.gangs, "gang d/g"), map_get(&c.gangs, "gang d/h")};
    struct plan plan;
    struct placing p;
    uint64_t before = cluster_digest(&c);
    plan_begin(&plan, &c);
    placing_init(&p, &pipeline, &plan, &arena, both, 2);
    expect_true("no room", !placing_run(&p, true));
    result = (struct cycle_result){.verdict = CYCLE_NO_CAPACITY, .sentence = "no room"};
    gang_preempt_make(&p, &result);
    expect_int("nobody goes", 0, (int64_t)result.victims_len);
    expect_int("nothing is promised", 0, (int64_t)result.nominations_len);
    placing_deinit(&p);
    plan_end(&plan);
    expect_true("the cluster is as before", cluster_digest(&c) == before);
    expect_done();
}

/* a has to be near a pod that b's place is made of. */
static void nobody_goes_whom_a_member_needs(void **state)
{
    (void)state;
    (void)cluster_put_node(&c,
                           NODE(.name = "n1", .cpu_milli = 4000, .labels = PAIRS("host", "n1")));
    PUT(.name = "v", .node = "n1", .priority = 1, .labels = PAIRS("app", "x"), CPU(4000));
    PUT(.name = "a", .labels = MEMBER("g", "2"), .priority = 5,
        .spec = "\"affinity\":{\"podAffinity\":{"
                "\"requiredDuringSchedulingIgnoredDuringExecution\":[{\"topologyKey\":\"host\","
                "\"labelSelector\":{\"matchLabels\":{\"app\":\"x\"}}}]}}");
    PUT(.name = "b", .labels = MEMBER("g", "2"), .priority = 5, CPU(4000));
    expect_str("it would go in vain", ";", try_gang("gang d/g"));
    expect_true("so nothing is awaited", !result.awaits);
    expect_str("and nothing said of it",
               "gang d/g: room for 1 of 2 pods; pod b: 0/1 nodes fit: 1 has too little cpu (asked: "
               "4, largest free: 0 on n1)",
               result.sentence);
    PUT(.name = "w", .node = "n1", .priority = 9, .labels = PAIRS("app", "x"));
    expect_str("another one like it stays: it may go", "a>n1 b>n1 ; v", try_gang("gang d/g"));
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_rules),
        T(from_the_first_victim_to_the_last_member),
        T(promises_are_taken_back),
        T(a_member_beyond_the_quorum),
        T(members_do_not_go_for_each_other),
        T(nobody_goes_whom_a_member_needs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
