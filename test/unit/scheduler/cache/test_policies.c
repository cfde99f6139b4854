// SPDX-License-Identifier: Apache-2.0
/*
 * policies: what the table of scenarios (test_policy_cases.c) cannot see: events and times that
 * wake, costs, sums that overflow, what is left of a plan that was undone, what a policy that says
 * nothing new costs.
 */
#include "scheduler/cache/policies.h"

#include "lib/base/num.h"
#include "scheduler/framework/equivalence.h"
#include "scheduler/dump/dump.h"
#include "scheduler/cycle/plan.h"
#include "scheduler/replay/replay_load.h"
#include "test/unit/scheduler/model_kit.h"

enum { CREATED_S = 1767225600 };

/* ' for ". */
static struct policy *decode_one(const char *name, const char *uid, int created_s, const char *spec)
{
    AUTO_STRBUF text = {0};
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    struct policy *p = NULL;
    strbuf_addf(&text,
                "{'metadata':{'namespace':'d','name':'%s','uid':'%s',"
                "'creationTimestamp':'2026-01-01T00:00:%02dZ'},'spec':%s}",
                name, uid, created_s, spec);
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] == '\'')
            text.ptr[i] = '"';
    if (json_parse(&doc, strbuf_str(&text), text.len, &err) < 0 ||
        decode_resource_policy(json_root(doc), &p, &err) < 0 || p->invalid != NULL)
        fail_msg("%s: %s %s", spec, err.text, p != NULL ? str_or_empty(p->invalid) : "");
    return p;
}

static uint32_t put_policy(const char *spec)
{
    return policies_put(&c, decode_one("web", "u-web", 0, spec));
}

#define A "{'resource':'ecs','nodeSelector':{'pool':'a'}}"
#define B "{'resource':'ecs','nodeSelector':{'pool':'b'}}"
#define A1 "{'resource':'ecs','nodeSelector':{'pool':'a'},'max':1}"
#define A2 "{'resource':'ecs','nodeSelector':{'pool':'a'},'max':2}"
#define WHEN(policy) ",'whenTryNextUnits':{'policy':'" policy "','timeout':'10s'}"

static void two_pools(void)
{
    (void)cluster_put_node(&c, NODE(.name = "a1", .cpu_milli = 4000, .labels = PAIRS("pool", "a")));
    (void)cluster_put_node(&c, NODE(.name = "b1", .cpu_milli = 4000, .labels = PAIRS("pool", "b")));
}

static uint32_t assume(const char *key, const char *node)
{
    return cluster_assume(&c, cluster_find_pod(&c, key), cluster_find_node(&c, node),
                          &(struct grant){0});
}

/* A unit that fills opens the next one to those that wait for just that, and to nobody else. */
static void filling_a_unit_is_an_event_where_somebody_may_wait_for_it(void **state)
{
    (void)state;
    static const struct {
        const char *row, *spec;
        bool event;
    } rows[] = {
        {"ExceedMax", "{'units':[" A2 "," B "]" WHEN("ExceedMax") "}", true},
        {"TimeoutOrExceedMax", "{'units':[" A2 "," B "]" WHEN("TimeoutOrExceedMax") "}", true},
        {"ExceedMax without a limit", "{'units':[" A "," B "]" WHEN("ExceedMax") "}", false},
        {"LackResourceOrExceedMax", "{'units':[" A2 "," B "]}", false},
        {"LackResourceAndNoTerminating",
         "{'units':[" A2 "," B "]" WHEN("LackResourceAndNoTerminating") "}", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fresh();
        two_pools();
        (void)put_policy(rows[i].spec);
        PUT(.name = "p");
        expect_int(rows[i].row, rows[i].event, (assume("d/p", "a1") & EVENT_UNIT) != 0);
    }
    expect_done();
}

/* It may make a place in the count long before it makes room. */
static void beginning_to_leave_is_an_event(void **state)
{
    (void)state;
    two_pools();
    (void)put_policy("{'units':[" A1 "]}");
    PUT(.name = "p", .node = "a1");
    expect_true("a pod of a policy",
                EVENTS(.name = "p", .node = "a1", .terminating = true) & EVENT_UNIT);
    PUT(.name = "q", .ns = "e", .node = "a1");
    expect_true("another one",
                !(EVENTS(.name = "q", .ns = "e", .node = "a1", .terminating = true) & EVENT_UNIT));
    expect_done();
}

/* Whatever takes a pod out of a unit's count makes a place there, and is told. */
static void a_pod_that_counts_elsewhere_is_an_event(void **state)
{
    (void)state;
    static const char *const spec = "{'units':[" A1 "," B "],'matchLabelKeys':['k']}";
    two_pools();
    (void)put_policy(spec);
    PUT(.name = "p", .node = "a1", .labels = PAIRS("k", "1"));
    expect_true(
        "the same again",
        !(EVENTS(.name = "p", .node = "a1", .labels = PAIRS("k", "1", "x", "y")) & EVENT_UNIT));
    expect_true("in another group",
                EVENTS(.name = "p", .node = "a1", .labels = PAIRS("k", "2")) & EVENT_UNIT);
    expect_true("on a node that changes its pool",
                cluster_put_node(&c, NODE(.name = "a1", .labels = PAIRS("pool", "b"))) &
                    EVENT_UNIT);
    expect_true("on a node that goes", cluster_remove_node(&c, "a1") & EVENT_UNIT);
    expect_true("on one without pods of policies", !(cluster_remove_node(&c, "b1") & EVENT_UNIT));
    expect_done();
}

/* The small member fills the unit; only then may the large one, which was refused before it, use
 * the next. */
static void a_member_may_open_a_unit_to_another(void **state)
{
    (void)state;
    struct cycle_result r;
    (void)cluster_put_node(&c, NODE(.name = "a1", .cpu_milli = 1000, .labels = PAIRS("pool", "a")));
    (void)cluster_put_node(&c, NODE(.name = "b1", .cpu_milli = 8000, .labels = PAIRS("pool", "b")));
    (void)put_policy("{'units':[" A1 "," B "]" WHEN("ExceedMax") "}");
    PUT(.name = "a", .labels = MEMBER("g", "2"), CPU(4000));
    PUT(.name = "b", .labels = MEMBER("g", "2"), CPU(1000));
    struct gang *g = run_gang("gang d/g", &r);
    expect_str("both are placed", "a@b1 b@a1", places(g));
    expect_done();
}

static void a_plan_that_is_undone_leaves_no_trace(void **state)
{
    (void)state;
    struct plan plan;
    two_pools();
    (void)put_policy("{'units':[{'resource':'ecs','nodeSelector':{'pool':'a'},'max':1,"
                     "'maxResources':{'cpu':'2'}}," B "]}");
    struct cluster_pod *p = PUT(.name = "p", CPU(1000)), *q = PUT(.name = "q", CPU(1000));
    uint64_t before = cluster_digest(&c);
    expect_str("both may use the first unit", "a1 b1", open_nodes(q));
    plan_begin(&plan, &c);
    plan_place(&plan, p, cluster_find_node(&c, "a1"), &(struct grant){0});
    expect_str("it is full", "b1", open_nodes(q));
    expect_int("p is in it", 0, policies_unit_of(p));
    expect_true("and that counts", cluster_digest(&c) != before);
    plan_end(&plan);
    expect_true("as before", cluster_digest(&c) == before);
    expect_str("open again", "a1 b1", open_nodes(q));
    expect_int("p is in none", POLICIES_NO_UNIT, policies_unit_of(p));
    expect_done();
}

static void a_pod_that_is_evicted_and_back_wakes_nobody(void **state)
{
    (void)state;
    struct plan plan;
    two_pools();
    (void)put_policy("{'units':[" A1 "," B "]" WHEN("ExceedMax") "}");
    struct cluster_pod *p = PUT(.name = "p", CPU(1000)), *q = PUT(.name = "q", CPU(1000));
    expect_true("filling the unit is an event", (assume("d/p", "a1") & EVENT_UNIT) != 0);
    plan_begin(&plan, &c);
    (void)plan_evict(&plan, p);
    expect_str("the unit is open meanwhile", "a1", open_nodes(q));
    plan_end(&plan);
    expect_str("and full again", "b1", open_nodes(q));
    expect_int("that is no news", 0, policies_take_events(&c));
    expect_done();
}

static void when_time_may_help(void **state)
{
    (void)state;
    const int64_t second = 1000000000, created = (CREATED_S + 5) * second;
    two_pools();
    (void)put_policy("{'units':[" A2 "," A1 "," B "]" WHEN("TimeoutOrExceedMax") "}");
    PUT(.name = "p", .created_s = 5);
    const struct gang *g = map_get(&c.gangs, "pod d/p");
    policies_set_now(&c, created);
    expect_int("after the first timeout", created + 10 * second, policies_due_ns(&c, g));
    policies_set_now(&c, created + 10 * second);
    expect_int("then after the second", created + 20 * second, policies_due_ns(&c, g));
    policies_set_now(&c, created + 20 * second);
    expect_int("then never", 0, policies_due_ns(&c, g));
    (void)put_policy("{'units':[" A2 "," B "]" WHEN("ExceedMax") "}");
    policies_set_now(&c, created);
    expect_int("other policies know no time", 0, policies_due_ns(&c, g));
    PUT(.name = "q", .ns = "e");
    expect_int("nor do pods without one", 0, policies_due_ns(&c, map_get(&c.gangs, "pod e/q")));
    expect_done();
}

static void the_cost_that_a_pod_should_carry(void **state)
{
    (void)state;
    static const struct {
        const char *row, *node, *cost, *ours;
        enum policies_cost expected;
        int32_t value;
    } rows[] = {
        {"none yet", "a1", NULL, NULL, POLICIES_COST_WRITE, 64},
        {"the second unit", "b1", NULL, NULL, POLICIES_COST_WRITE, 63},
        {"ours, and right", "b1", "63", "63", POLICIES_COST_RIGHT, 63},
        {"ours, of another unit", "b1", "64", "64", POLICIES_COST_WRITE, 63},
        {"a user's", "a1", "7", NULL, POLICIES_COST_CONFLICT, 64},
        {"a user's, and by chance the same", "a1", "64", NULL, POLICIES_COST_CONFLICT, 64},
        {"ours, changed by a user", "a1", "7", "64", POLICIES_COST_CONFLICT, 64},
        {"ours, taken away by a user", "a1", NULL, "64", POLICIES_COST_WRITE, 64},
        {"on a node of no unit", "z1", NULL, NULL, POLICIES_COST_NONE, 0},
        {"on a node of no unit, with ours", "z1", "64", "64", POLICIES_COST_REMOVE, 0},
        {"on a node of no unit, with a user's", "z1", "7", NULL, POLICIES_COST_NONE, 0},
        {"not placed", NULL, NULL, NULL, POLICIES_COST_NONE, 0},
    };
    two_pools();
    (void)cluster_put_node(&c, NODE(.name = "z1"));
    (void)put_policy("{'units':[" A "," B "]}");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *notes[5] = {NULL};
        size_t n = 0;
        int32_t value = -1;
        if (rows[i].cost != NULL)
            notes[n++] = NAME_ANN_DELETION_COST, notes[n++] = rows[i].cost;
        if (rows[i].ours != NULL)
            notes[n++] = NAME_ANN_DELETION_COST_OURS, notes[n++] = rows[i].ours;
        struct cluster_pod *cp = PUT(.name = "p", .node = rows[i].node, .annotations = notes);
        expect_int(rows[i].row, rows[i].expected, policies_deletion_cost(cp, &value));
        expect_int(rows[i].row, rows[i].value, value);
        (void)cluster_remove_pod(&c, "d/p", NULL, NULL);
    }
    expect_done();
}

static void others_that_select_it_are_named(void **state)
{
    (void)state;
    two_pools();
    (void)policies_put(&c, decode_one("young", "1", 9, "{'units':[" A "]}"));
    (void)policies_put(&c, decode_one("old", "2", 1, "{'units':[" B "]}"));
    (void)policies_put(&c, decode_one("middle", "3", 5, "{'units':[" B "]}"));
    (void)policies_put(&c, decode_one("no", "4", 0, "{'units':[" B "],'selector':{'x':'y'}}"));
    struct cluster_pod *p = PUT(.name = "p"), *q = PUT(.name = "q", .ns = "e");
    expect_str("the oldest holds", "old", policies_of(p)->object.name);
    expect_str("the others", "middle, young", policies_others(&c, p, &arena));
    expect_str("none elsewhere", NULL, policies_others(&c, q, &arena));
    expect_done();
}

/* A status that we write comes back by the watch: it must not cost a recount, nor wake anybody. */
static void a_version_that_says_the_same_is_quiet(void **state)
{
    (void)state;
    const char *spec = "{'units':[{'resource':'ecs','nodeSelector':{'pool':'a'},"
                       "'maxResources':{'cpu':'2','aliyun.com/gpu-mem':4}}," B "]}";
    two_pools();
    expect_int("new", EVENT_POLICY, put_policy(spec));
    struct cluster_pod *p = PUT(.name = "p", CPU(2000));
    (void)best(p);
    uint64_t made = pipeline.classes->made, serial = p->membership.group->of->serial;
    expect_int("the same", 0, put_policy(spec));
    expect_str("holds on", "a1", best(p));
    expect_int("no new class", (int64_t)made, (int64_t)pipeline.classes->made);
    expect_int("no new serial", (int64_t)serial, (int64_t)p->membership.group->of->serial);
    (void)assume("d/p", "a1");
    expect_str("limits are those of the object that is there", "b1",
               open_nodes(PUT(.name = "q", CPU(1000))));
    expect_int("something else", EVENT_POLICY, put_policy("{'units':[" B "]}"));
    expect_int("gone", EVENT_POLICY, policies_remove(&c, "d/web", "u-web"));
    expect_int("gone already", 0, policies_remove(&c, "d/web", NULL));
    (void)put_policy(spec);
    expect_int("another one of that name went", 0, policies_remove(&c, "d/web", "u-other"));
    expect_int("no groups without pods", 1, (int64_t)map_count(&c.policies->groups));
    expect_done();
}

/* The policy's object is freed with each write of its status; what is said of a pod that waits is
 * not of it. */
static void a_label_that_lacks_is_named_whatever_object_it_is(void **state)
{
    (void)state;
    static const char *const spec = "{'units':[" A "],'matchLabelKeys':['k','l']}";
    two_pools();
    (void)put_policy(spec);
    struct cluster_pod *p = PUT(.name = "p", .labels = PAIRS("k", "1"));
    expect_str("nowhere", "", open_nodes(p));
    expect_int("the same", 0, put_policy(spec));
    expect_str("still", "", open_nodes(p));
    expect_str("for want of it", "l", p->membership.lacks);
    PUT(.name = "p", .labels = PAIRS("k", "1", "l", "2"));
    expect_str("it has got it", "a1", open_nodes(p));
    PUT(.name = "p", .labels = PAIRS("l", "2"));
    expect_str("and lost the other", "k", p->membership.lacks);
    expect_int("gone", EVENT_POLICY, policies_remove(&c, "d/web", NULL));
    expect_str("no policy asks for it", NULL, p->membership.lacks);
    expect_done();
}

/* Hostile amounts do not make room. */
static void sums_that_overflow_come_back(void **state)
{
    (void)state;
    two_pools();
    (void)put_policy("{'units':[{'resource':'ecs','nodeSelector':{'pool':'a'},"
                     "'maxResources':{'cpu':'2'}}," B "]}");
    PUT(.name = "h1", .node = "a1", CPU(INT64_MAX - 1));
    PUT(.name = "h2", .node = "a1", CPU(INT64_MAX - 1));
    PUT(.name = "ok", .node = "a1", CPU(1000));
    struct cluster_pod *p = PUT(.name = "p", CPU(1000));
    struct policies_view v = policies_view_of(&c, p, 0);
    expect_int("full", 2, (int64_t)v.open);
    (void)cluster_remove_pod(&c, "d/h1", NULL, NULL);
    (void)cluster_remove_pod(&c, "d/h2", NULL, NULL);
    v = policies_view_of(&c, p, 0);
    expect_int("room for one more", 3, (int64_t)v.open);
    expect_int("what is left", 1000, p->membership.group->counts[0].live.used.cpu_milli);
    expect_done();
}

/* What somebody wrote into the annotation that cannot be. */
static void a_unit_that_cannot_be_read_is_found_by_the_node(void **state)
{
    (void)state;
    static const char *const rows[] = {"",
                                       "web",
                                       "web/1",
                                       "web/x/u-web",
                                       "web/-1/u-web",
                                       "web/64/u-web",
                                       "web/7/u-web",
                                       "//",
                                       "web/9223372036854775808/u-web",
                                       "web/1/u-web"};
    two_pools();
    (void)put_policy("{'units':[" A "," B "]}");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct cluster_pod *cp =
            PUT(.name = "p", .node = "a1", .annotations = PAIRS(NAME_ANN_UNIT, rows[i]));
        expect_int(rows[i], 0, policies_unit_of(cp));
        (void)cluster_remove_pod(&c, "d/p", NULL, NULL);
    }
    expect_done();
}

static void count_warning(void *arg, const char *text)
{
    (void)text;
    ++*(size_t *)arg;
}

/* An assumed pod has no annotation yet; its unit is in the dump all the same, and so is the
 * time. */
static void a_dump_tells_the_units_of_assumed_pods(void **state)
{
    (void)state;
    static struct cluster again;
    struct replay_load l;
    AUTO_STRBUF first = {0};
    AUTO_STRBUF second = {0};
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    size_t warnings = 0;
    (void)cluster_put_node(&c, NODE(.name = "a1", .cpu_milli = 8000, .labels = PAIRS("pool", "a")));
    (void)put_policy("{'units':[" A1 ",{'resource':'ecs'}],'matchLabelKeys':['k']"
                     ",'ignoreTerminatingPod':false" WHEN("TimeoutOrExceedMax") "}");
    policies_set_now(&c, (int64_t)(CREATED_S + 70) * 1000000000 + 5);
    for (char name = 'a'; name <= 'd'; name++) {
        (void)put(
            &(struct fixture_pod){.name = (const char[]){name, '\0'}, .labels = PAIRS("k", "v")});
        (void)assume((const char[]){'d', '/', name, '\0'}, "a1");
    }
    dump_cluster(&c, &first);
    cluster_init(&again, NAME_SCHEDULER);
    replay_load_init(&l, &again, NULL);
    l.warn = count_warning;
    l.arg = &warnings;
    if (json_parse(&doc, strbuf_str(&first), first.len, &err) < 0)
        fail_msg("%s", err.text);
    replay_load_object(&l, json_root(doc), "dump");
    replay_load_finish(&l);
    again.scheduler_name = NAME_SCHEDULER;
    replay_load_deinit(&l);
    dump_cluster(&again, &second);
    expect_int("warnings", 0, (int64_t)warnings);
    expect_str("the same dump", strbuf_str(&first), strbuf_str(&second));
    expect_true("the same digest", cluster_digest(&c) == cluster_digest(&again));
    expect_int("one in the first unit", 0, policies_unit_of(cluster_find_pod(&again, "d/a")));
    expect_int("the others in the second", 1, policies_unit_of(cluster_find_pod(&again, "d/b")));
    cluster_deinit(&again);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(filling_a_unit_is_an_event_where_somebody_may_wait_for_it),
        T(beginning_to_leave_is_an_event),
        T(a_pod_that_counts_elsewhere_is_an_event),
        T(a_member_may_open_a_unit_to_another),
        T(a_plan_that_is_undone_leaves_no_trace),
        T(a_pod_that_is_evicted_and_back_wakes_nobody),
        T(when_time_may_help),
        T(the_cost_that_a_pod_should_carry),
        T(others_that_select_it_are_named),
        T(a_version_that_says_the_same_is_quiet),
        T(a_label_that_lacks_is_named_whatever_object_it_is),
        T(sums_that_overflow_come_back),
        T(a_unit_that_cannot_be_read_is_found_by_the_node),
        T(a_dump_tells_the_units_of_assumed_pods),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
