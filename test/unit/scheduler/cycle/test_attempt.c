// SPDX-License-Identifier: Apache-2.0
/*
 * What is told to whom and in which order, and when the gang is tried again.
 */
#include "test/unit/scheduler/model_kit.h"

#include "scheduler/cache/policies.h"
#include "scheduler/cycle/attempt.h"
#include "scheduler/model/gpu_prices.h"

static struct queue queue;
static struct arena attempts; /* one attempt's */
static struct strbuf said;    /* by the hooks, since the last attempt */
static struct attempt attempt;
static int64_t now_ms, wall_ns;

/* ---- hooks that write down that they were called ---- */

static void decided(void *arg, const struct cycle_result *r)
{
    (void)arg;
    strbuf_addf(&said, "decided %d", (int)r->verdict);
}

static void bind(void *arg, struct gang *g, const struct plan *plan, const struct cycle_result *r)
{
    (void)arg;
    (void)g;
    (void)r;
    for (size_t i = 0; i < plan->steps.len; i++)
        strbuf_addf(&said, ", bind %s@%s", plan->steps.items[i].pod->pod->name,
                    plan->steps.items[i].node->name);
}

static void await_time(void *arg, int64_t due_ns)
{
    (void)arg;
    strbuf_addf(&said, ", await %lld", (long long)(due_ns / 1000000000));
}

static void refused(void *arg, struct gang *g, const struct cycle_result *r)
{
    (void)arg;
    (void)r;
    strbuf_addf(&said, ", refused %s", g->key);
}

static void evict_for(void *arg, struct gang *g, const struct cycle_result *r)
{
    (void)arg;
    (void)g;
    strbuf_adds(&said, ", make room");
    for (size_t i = 0; i < r->victims_len; i++)
        strbuf_addf(&said, " %s", r->victims[i].pod->pod->name);
}

static void nominate(void *arg, struct cluster_pod *cp, const char *node)
{
    (void)arg;
    strbuf_addf(&said, ", nominate %s@%s", cp->pod->name, node != NULL ? node : "-");
}

static void recall(void *arg, const struct cycle_recall *one, const struct cycle_result *r)
{
    (void)arg;
    (void)r;
    strbuf_addf(&said, ", recall %s ", one->pod->pod->name);
    cpuset_print(&one->cpus, &said);
}

static void gang_changed(void *arg, struct gang *g)
{
    (void)arg;
    queue_touch(&queue, g, now_ms);
}

static void gang_vanishing(void *arg, struct gang *g)
{
    (void)arg;
    queue_drop(&queue, g);
}

static int begin(void **state)
{
    static const struct cluster_hooks told = {.gang_changed = gang_changed,
                                              .gang_vanishing = gang_vanishing};
    (void)setup(state);
    hooks = &told;
    queue_init(&queue, &c);
    arena_init(&attempts, 0);
    now_ms = 1000000;
    attempt_init(&attempt, &pipeline, &queue, &attempts,
                 &(struct attempt_hooks){.decided = decided,
                                         .bind = bind,
                                         .await_time = await_time,
                                         .refused = refused,
                                         .evict_for = evict_for,
                                         .nominate = nominate,
                                         .recall = recall});
    return 0;
}

static int end(void **state)
{
    attempt_deinit(&attempt);
    queue_deinit(&queue);
    arena_deinit(&attempts);
    strbuf_deinit(&said);
    return teardown(state);
}

/* What one attempt said; "nobody's turn". */
static const char *next(void)
{
    struct attempt_result tried;
    strbuf_reset(&said);
    if (!attempt_next(&attempt, (struct attempt_time){.now_ms = now_ms, .wall_ns = wall_ns},
                      &tried))
        return "nobody's turn";
    return strbuf_str(&said);
}

static void go_away(const char *key)
{
    queue_wake(&queue, cluster_remove_pod(&c, key, NULL, hooks), now_ms);
}

#define PLACED "decided 0"
#define PARTLY "decided 1"
#define NO_ROOM "decided 3"

static void a_pod_that_is_placed_is_bound_and_wakes_who_wants_to_be_near(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n", .labels = PAIRS("zone", "a")));
    PUT(.name = "near", .created_s = 1,
        .spec =
            "\"affinity\":{\"podAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":"
            "[{\"topologyKey\":\"zone\",\"labelSelector\":{\"matchLabels\":{\"app\":\"x\"}}}]}}");
    expect_str("there is nobody yet", NO_ROOM ", refused pod d/near", next());
    expect_str("it is parked", "nobody's turn", next());
    PUT(.name = "x", .labels = PAIRS("app", "x"), .created_s = 2);
    expect_str("x goes", PLACED ", bind x@n", next());
    now_ms += QUEUE_BACKOFF_MAX_MS;
    expect_str("which woke the other", PLACED ", bind near@n", next());
    expect_str("that is all", "nobody's turn", next());
    expect_done();
}

static void
pods_are_evicted_after_the_reason_is_told_and_the_gang_goes_without_backoff(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n", .cpu_milli = 4000));
    struct cluster_pod *v = PUT(.name = "v", .node = "n", CPU(4000));
    struct cluster_pod *p = PUT(.name = "p", .priority = 10, CPU(4000));
    expect_str("in this order", NO_ROOM ", refused pod d/p, make room v, nominate p@n", next());
    expect_true("v was told to go", v->evicting);
    expect_str("p has a right to the room", "n", p->nominated);
    expect_str("nothing is done twice", "nobody's turn", next());
    go_away("d/v");
    expect_str("at the same moment", PLACED ", bind p@n", next());
    expect_done();
}

static void where_all_stay_nobody_is_evicted_or_nominated(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n", .cpu_milli = 4000));
    struct cluster_pod *v = PUT(.name = "v", .node = "n", CPU(4000));
    struct cluster_pod *p = PUT(.name = "p", .priority = 10, CPU(4000));
    attempt.all_stay = true;
    expect_str("told only", NO_ROOM ", refused pod d/p", next());
    expect_true("v stays", !v->evicting && p->nominated == NULL);
    go_away("d/v");
    expect_str("it has a backoff, as who waits for nobody", "nobody's turn", next());
    now_ms += QUEUE_BACKOFF_MIN_MS;
    expect_str("and goes then", PLACED ", bind p@n", next());
    expect_done();
}

/* The victim was not deleted after all, and nobody else can go: the promise is worth nothing. */
static void a_promise_that_cannot_be_kept_is_taken_back(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n", .cpu_milli = 4000));
    PUT(.name = "v", .node = "n", .priority = 20, CPU(4000));
    PUT(.name = "p", .priority = 10, .nominated = "n", CPU(4000));
    expect_str("it is", NO_ROOM ", refused pod d/p, nominate p@-", next());
    expect_done();
}

/* g2's attempt places a member of g1 as well. g1 is parked and awaits no event; what its other
 * member lacks is another thing now. */
static void gangs_that_are_placed_together_are_looked_at_again(void **state)
{
    (void)state;
#define OF(gang) \
    .labels = MEMBER(gang, "1"), .annotations = PAIRS(NAME_ANN_GANG_GROUPS, "[\"d/g1\",\"d/g2\"]")
    (void)cluster_put_node(&c, NODE(.name = "n", .cpu_milli = 4000));
    PUT(.name = "a", OF("g1"), CPU(1000));
    PUT(.name = "b", OF("g1"), CPU(4000));
    PUT(.name = "x", OF("g2"), CPU(1000));
    queue_wait(&queue, map_get(&c.gangs, "gang d/g1"), 0);
    expect_str("both are placed", PLACED ", bind x@n, bind a@n", next());
    expect_str("b is told", NO_ROOM ", refused gang d/g1", next());
    expect_str("that is all", "nobody's turn", next());
    expect_done();
}

static void time_that_may_help_is_awaited(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    AUTO_JSON *doc = NULL;
    struct policy *policy = NULL;
    const char *text =
        "{\"metadata\":{\"namespace\":\"d\",\"name\":\"web\",\"uid\":\"u\"},\"spec\":{\"units\":["
        "{\"resource\":\"ecs\",\"nodeSelector\":{\"pool\":\"a\"},\"max\":2},"
        "{\"resource\":\"ecs\",\"nodeSelector\":{\"pool\":\"b\"}}],"
        "\"whenTryNextUnits\":{\"policy\":\"TimeoutOrExceedMax\",\"timeout\":\"10s\"}}}";
    assert_int_equal(0, json_parse(&doc, text, strlen(text), &err));
    assert_int_equal(0, decode_resource_policy(json_root(doc), &policy, &err));
    (void)policies_put(&c, policy);
    (void)cluster_put_node(&c, NODE(.name = "n", .labels = PAIRS("pool", "b")));
    struct cluster_pod *p = PUT(.name = "p", .created_s = 1);
    int64_t due_s = p->pod->created_ns / 1000000000 + 10;
    wall_ns = p->pod->created_ns;
    expect_str("until then",
               arena_printf(&arena, NO_ROOM ", await %lld, refused pod d/p", (long long)due_s),
               next());
    wall_ns = due_s * 1000000000;
    now_ms += 10000;
    queue_wake(&queue, EVENT_UNIT, now_ms);
    expect_str("then the next unit is open", PLACED ", bind p@n", next());
    expect_done();
}

#define WHOLE "{\"c0\":{\"0\":{\"elems\":{\"0\":{},\"1\":{},\"2\":{},\"3\":{}}}}}"

static void cpus_are_called_back_again_after_a_while_and_not_before(void **state)
{
    (void)state;
    (void)cluster_put_node(
        &c, NODE(.name = "n", .topology = fixture_topology(&arena, 1, 1, 4, 1, NULL)));
    struct cluster_pod *b =
        PUT(.name = "b", .node = "n", CPU(2000),
            .annotations = PAIRS("cpuset-scheduler", "true", "cpu-policy", "static-burst",
                                 NAME_ANN_CPUSET, WHOLE, NAME_ANN_CPUSET_APPLIED, WHOLE));
    PUT(.name = "p", .annotations = PAIRS("cpuset-scheduler", "true"), CPU(2000));
    attempt.all_stay = true; /* nobody leaves for that */
    expect_str("the loan", NO_ROOM ", refused pod d/p, make room, nominate p@n, recall b 2-3",
               next());
    queue_wake(&queue, EVENT_POD_GONE, now_ms);
    expect_str("not at once", NO_ROOM ", refused pod d/p, make room", next());
    expect_int("nor counted", 0, b->giving_again);
    now_ms += ATTEMPT_RECALL_MS;
    queue_wake(&queue, EVENT_POD_GONE, now_ms);
    expect_str("again", NO_ROOM ", refused pod d/p, make room, recall b 2-3", next());
    expect_int("and counted", 1, b->giving_again);
    expect_done();
}

/* What is said of the gang now; "fits" and "nothing": the verdict. Nothing may change by asking. */
static const char *asked(const char *key)
{
    struct cycle_result r;
    struct gang *g = map_get(&c.gangs, key);
    struct queue_entry before = *(struct queue_entry *)ids_find(&queue.entries, g->id);
    uint64_t digest = cluster_digest(&c), changes = c.gpu_prices->changes;
    strbuf_reset(&said);
    attempt_ask(&attempt, g, &r);
    const struct queue_entry *after = ids_find(&queue.entries, g->id);
    expect_str("no hook is called", "", strbuf_str(&said));
    expect_true("the model is as before", digest == cluster_digest(&c));
    expect_true("also what its prices follow", changes == c.gpu_prices->changes);
    expect_true("the queue too", before.state == after->state && before.wake == after->wake &&
                                     before.ready_ms == after->ready_ms &&
                                     before.attempts == after->attempts);
    return r.verdict == CYCLE_PLACED    ? "fits"
           : r.verdict == CYCLE_NOTHING ? "nothing"
                                        : arena_strdup(&arena, r.sentence);
}

static void what_an_attempt_would_say_is_asked_without_one(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n", .cpu_milli = 9000));
    PUT(.name = "v", .node = "n", CPU(4000));
    PUT(.name = "w", .node = "n", CPU(1000));
    PUT(.name = "p", CPU(6000));
    PUT(.name = "a", .labels = MEMBER("g", "2"), CPU(5000), .created_s = 1);
    PUT(.name = "b", .labels = MEMBER("g", "2"), CPU(5000), .created_s = 1);
    PUT(.name = "l", .labels = MEMBER("lacking", "2"), CPU(5000), .created_s = 1);
    while (strcmp(next(), "nobody's turn") != 0)
        ;
    expect_str("a pod", "0/1 nodes fit: 1 has too little cpu (asked: 6, largest free: 4 on n)",
               asked("pod d/p"));
    expect_str("as the queue knows", queue_why(&queue, map_get(&c.gangs, "pod d/p"))->sentence,
               asked("pod d/p"));
    (void)cluster_remove_pod(&c, "d/w", NULL, hooks);
    expect_str("new amounts",
               "0/1 nodes fit: 1 has too little cpu (asked: 6, largest free: 5 on n)",
               asked("pod d/p"));
    expect_str("of a gang",
               "gang d/g: room for 1 of 2 pods; pod b: 0/1 nodes fit: 1 has too little cpu (asked: "
               "5, largest free: 0 on n)",
               asked("gang d/g"));
    expect_str("pods that do not exist yet",
               queue_why(&queue, map_get(&c.gangs, "gang d/lacking"))->sentence,
               asked("gang d/lacking"));
    (void)cluster_remove_pod(&c, "d/v", NULL, hooks);
    expect_str("it could go", "fits", asked("pod d/p"));
    expect_str("and was not woken by the question", "nobody's turn", next());
    expect_done();
}

static void victims_are_not_looked_for_and_those_that_leave_are_named(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n", .cpu_milli = 4000));
    (void)PUT(.name = "v", .node = "n", CPU(4000));
    struct cluster_pod *p = PUT(.name = "p", .priority = 10, CPU(4000));
    attempt.all_stay = true;
    (void)next();
    expect_str("v could go", "0/1 nodes fit: 1 has too little cpu (asked: 4, largest free: 0 on n)",
               asked("pod d/p"));
    attempt.all_stay = false;
    queue_touch(&queue, p->gang, now_ms += QUEUE_BACKOFF_MAX_MS);
    (void)next();
    expect_str("v goes",
               "0/1 nodes fit: 1 has too little cpu (asked: 4, largest free: 0 on n); pods are "
               "leaving n for it",
               asked("pod d/p"));
    expect_done();
}

static void cpus_that_may_be_called_back_are_left_to_the_attempt(void **state)
{
    (void)state;
    (void)cluster_put_node(
        &c, NODE(.name = "n", .topology = fixture_topology(&arena, 1, 1, 4, 1, NULL)));
    PUT(.name = "b", .node = "n", CPU(2000),
        .annotations = PAIRS("cpuset-scheduler", "true", "cpu-policy", "static-burst",
                             NAME_ANN_CPUSET, WHOLE, NAME_ANN_CPUSET_APPLIED, WHOLE));
    PUT(.name = "p", .annotations = PAIRS("cpuset-scheduler", "true"), CPU(2000));
    (void)next();
    expect_str("it knows from whom", "nothing", asked("pod d/p"));
    expect_done();
}

int main(void)
{
#define A(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        A(a_pod_that_is_placed_is_bound_and_wakes_who_wants_to_be_near),
        A(pods_are_evicted_after_the_reason_is_told_and_the_gang_goes_without_backoff),
        A(where_all_stay_nobody_is_evicted_or_nominated),
        A(a_promise_that_cannot_be_kept_is_taken_back),
        A(gangs_that_are_placed_together_are_looked_at_again),
        A(time_that_may_help_is_awaited),
        A(cpus_are_called_back_again_after_a_while_and_not_before),
        A(what_an_attempt_would_say_is_asked_without_one),
        A(victims_are_not_looked_for_and_those_that_leave_are_named),
        A(cpus_that_may_be_called_back_are_left_to_the_attempt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
