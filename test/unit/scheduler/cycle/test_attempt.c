// SPDX-License-Identifier: Apache-2.0
/*
 * What is told to whom and in which order, and when the gang is tried again.
 */
#include "test/unit/scheduler/model_kit.h"

#include "scheduler/cache/policies.h"
#include "scheduler/cycle/attempt.h"

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
    queue_wait(&queue, map_get(&c.gangs, "gang d/g1"), 0, now_ms);
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

/* Until somebody is bound, or nobody is due: how many attempts that took. */
static int attempts_until(const char *word)
{
    for (int i = 1; i < 1000; i++) {
        const char *what = next();
        if (strstr(what, word) != NULL)
            return i;
        if (str_eq(what, "nobody's turn"))
            return -1;
    }
    return -1;
}

/* Forty gangs of distinct shapes wait; pods end elsewhere, and each time all of them may be woken.
 * Meanwhile somebody else has a pod that fits at once. */
static void an_old_backlog_starves_nobody(void **state)
{
    (void)state;
    enum { NODES = 4, GANGS = 40 };
    for (int i = 0; i < NODES; i++)
        (void)cluster_put_node(&c, NODE(.name = arena_printf(&arena, "n%d", i), .cpu_milli = 4000));
    for (int i = 0; i < NODES; i++)
        PUT(.name = arena_printf(&arena, "old%d", i), .node = arena_printf(&arena, "n%d", i),
            CPU(2900));
    PUT(.name = "end", .node = "n0", CPU(100));
    for (int i = 0; i < GANGS; i++)
        for (int k = 0; k < 2; k++)
            PUT(.name = arena_printf(&arena, "g%d-%d", i, k), .ns = "flood", .created_s = 1,
                .labels = MEMBER(arena_printf(&arena, "g%d", i), "2"),
                CPU(k == 0 ? 1000 : 3000 + i));
    expect_int("none of them fits", -1, attempts_until("bind"));
    now_ms += 60000;
    go_away("d/end");
    PUT(.name = "small", .ns = "other", .created_s = 50, CPU(50));
    int took = attempts_until("bind small");
    expect_true("the small pod does not wait for them", took >= 1 && took <= 3);
    PUT(.name = "small2", .ns = "flood", .created_s = 51, CPU(50));
    took = attempts_until("bind small2");
    expect_true("nor does one of the same namespace", took >= 1 && took <= 3);
    expect_done();
}

#define FAR_FROM_X                                                                             \
    "\"affinity\":{\"podAntiAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":[{" \
    "\"topologyKey\":\"kubernetes.io/hostname\",\"labelSelector\":{\"matchLabels\":{"          \
    "\"app\":\"x\"}}}]}}"

/* The node lacks CPU: that is why the pod waits. But evicting `low` would not help either, because
 * of x. */
static void what_hinders_preemption_is_awaited_too(void **state)
{
    (void)state;
    (void)cluster_put_node(
        &c, NODE(.name = "n", .cpu_milli = 4000, .labels = PAIRS("kubernetes.io/hostname", "n")));
    PUT(.name = "low", .node = "n", CPU(2000));
    PUT(.name = "x", .node = "n", .priority = 20, .labels = PAIRS("app", "x"), CPU(1000));
    PUT(.name = "p", .priority = 10, .spec = FAR_FROM_X, CPU(3000));
    expect_str("nobody can go for it", NO_ROOM ", refused pod d/p", next());
    now_ms += 60000;
    queue_wake(
        &queue,
        EVENTS(.name = "x", .node = "n", .priority = 20, .labels = PAIRS("app", "y"), CPU(1000)),
        now_ms);
    expect_str("x does not matter any more",
               NO_ROOM ", refused pod d/p, make room low, nominate p@n", next());
    expect_done();
}

static void so_is_a_pod_that_leaves(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n", .cpu_milli = 4000));
    PUT(.name = "low", .node = "n", CPU(2000));
    PUT(.name = "high", .node = "n", .priority = 20, CPU(2000));
    PUT(.name = "p", .priority = 10, CPU(3000));
    expect_str("too little without low", NO_ROOM ", refused pod d/p", next());
    now_ms += 60000;
    queue_wake(&queue,
               EVENTS(.name = "high", .node = "n", .priority = 20, .terminating = true, CPU(2000)),
               now_ms);
    expect_str("low can go while the other one leaves",
               NO_ROOM ", refused pod d/p, make room low, nominate p@n", next());
    expect_done();
}

/* a is on n1 because of the taint; b may only go there. */
static void a_member_that_could_move_wakes_its_gang(void **state)
{
    (void)state;
    static const char taint[] = "[{\"key\":\"k\",\"effect\":\"NoSchedule\"}]";
    (void)cluster_put_node(&c,
                           NODE(.name = "n1", .cpu_milli = 4000, .labels = PAIRS("pool", "one")));
    (void)cluster_put_node(&c, NODE(.name = "n2", .cpu_milli = 4000, .taints = taint));
    PUT(.name = "a", .labels = MEMBER("g", "2"), CPU(4000));
    PUT(.name = "b", .labels = MEMBER("g", "2"), CPU(4000),
        .spec = "\"nodeSelector\":{\"pool\":\"one\"},\"tolerations\":[{\"operator\":\"Exists\"}]");
    while (!str_eq(next(), "nobody's turn"))
        ;
    now_ms += 60000;
    queue_wake(&queue, cluster_put_node(&c, NODE(.name = "n2", .cpu_milli = 4000)), now_ms);
    expect_true("both go", strstr(next(), PLACED ", bind") != NULL);
    expect_str("to their nodes", "a@n2 b@n1", places(NULL));
    expect_done();
}

static void members_beyond_the_quorum_may_preempt(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n", .cpu_milli = 4000));
    PUT(.name = "v", .node = "n", CPU(3000));
    PUT(.name = "a", .labels = MEMBER("g", "1"), .priority = 10, CPU(1000));
    PUT(.name = "b", .labels = MEMBER("g", "1"), .priority = 10, CPU(3000));
    expect_str("the quorum", PARTLY ", bind a@n, refused gang d/g", next());
    now_ms += QUEUE_GANG_MIN_MS;
    expect_str("then the rest", NO_ROOM ", refused gang d/g, make room v, nominate b@n", next());
    expect_done();
}

static const char *affinity(const char *kind, const char *app)
{
    return arena_printf(&arena,
                        "\"affinity\":{\"%s\":{"
                        "\"requiredDuringSchedulingIgnoredDuringExecution\":[{\"topologyKey\":"
                        "\"zone\",\"labelSelector\":{\"matchLabels\":{\"app\":\"%s\"}}}]}}",
                        kind, app);
}

/* Counters go with the classes that read them, of which there is room for so many. */
static void who_waits_for_a_pod_is_not_forgotten(void **state)
{
    (void)state;
    enum { OTHERS = 2500 };
    (void)cluster_put_node(&c, NODE(.name = "n", .labels = PAIRS("zone", "a")));
    PUT(.name = "near", .spec = affinity("podAffinity", "x"));
    expect_str("there is nobody yet", NO_ROOM ", refused pod d/near", next());
    pipeline.classes->budget = 1;
    for (int i = 0; i < OTHERS; i++) {
        struct cluster_pod *p =
            PUT(.name = "p", .uid = arena_printf(&arena, "u%d", i),
                .spec = affinity("podAntiAffinity", arena_printf(&arena, "app-%d", i)));
        (void)best(p);
    }
    go_away("d/p");
    now_ms += 60000;
    queue_wake(&queue, EVENTS(.name = "x", .node = "n", .labels = PAIRS("app", "x")), now_ms);
    expect_str("x came", PLACED ", bind near@n", next());
    expect_done();
}

static void too_little_wakes_nobody(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "n", .cpu_milli = 4000));
    PUT(.name = "v", .node = "n", CPU(1000));
    PUT(.name = "w", .node = "n", CPU(3000));
    PUT(.name = "p", CPU(2000));
    expect_str("no room", NO_ROOM ", refused pod d/p", next());
    now_ms += 60000;
    go_away("d/v");
    expect_str("1 of 2 CPUs", "nobody's turn", next());
    go_away("d/w");
    expect_str("enough", PLACED ", bind p@n", next());
    expect_done();
}

static void what_no_event_woke_is_noticed(void **state)
{
    (void)state;
    struct attempt_result tried;
    queue.flush_ms = QUEUE_FLUSH_MS;
    (void)cluster_put_node(&c, NODE(.name = "n", .cpu_milli = 4000));
    PUT(.name = "v", .node = "n", CPU(4000));
    PUT(.name = "p", CPU(2000));
    expect_str("no room", NO_ROOM ", refused pod d/p", next());
    (void)cluster_remove_pod(&c, "d/v", NULL, hooks); /* and the queue is not told */
    expect_str("it sleeps", "nobody's turn", next());
    now_ms += 2 * (int64_t)QUEUE_FLUSH_MS;
    expect_true("until the slow flush",
                attempt_next(&attempt, (struct attempt_time){.now_ms = now_ms}, &tried));
    expect_true("which counts it", tried.placed == 1 && tried.missed);
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
        A(an_old_backlog_starves_nobody),
        A(what_hinders_preemption_is_awaited_too),
        A(so_is_a_pod_that_leaves),
        A(a_member_that_could_move_wakes_its_gang),
        A(members_beyond_the_quorum_may_preempt),
        A(who_waits_for_a_pod_is_not_forgotten),
        A(too_little_wakes_nobody),
        A(what_no_event_woke_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
