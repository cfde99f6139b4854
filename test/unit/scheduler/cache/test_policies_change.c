// SPDX-License-Identifier: Apache-2.0
/*
 * policies_change: policies change in slices while pods come, go and change their labels. Whatever
 * the order, what results is what a model has that was given the same objects at once, compared pod
 * by pod; and who waits is told. Each run has another seed, printed; COSCHED_SEED repeats one.
 */
#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/base/num.h"
#include "scheduler/cache/gangs.h"
#include "scheduler/cache/policies.h"
#include "scheduler/queue/queue.h"
#include "test/unit/scheduler/model_kit.h"

enum { PODS = 40, POLICIES = 6, STEPS = 3000 };

static struct story {
    uint64_t random;
    struct arena specs;
    struct cluster naive;
    struct {
        struct fixture_pod f; /* name NULL: there is none */
        uint64_t serial;      /* of its policy when it was last told, 0: it had none */
        bool touched, deferred;
    } pods[PODS];
    char *policies[2][POLICIES]; /* by namespace; NULL: there is none */
} s;

static uint64_t roll(uint64_t n)
{
    uint64_t z = (s.random += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % n;
}

static const char *const namespaces[] = {"d", "e"};

static struct policy *decode(const char *text)
{
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    struct policy *p = NULL;
    if (json_parse(&doc, text, strlen(text), &err) < 0 ||
        decode_resource_policy(json_root(doc), &p, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    return p;
}

static uint64_t serial_of(const struct cluster_pod *cp)
{
    return cp->membership.group != NULL ? cp->membership.group->of->serial : 0;
}

static void gang_changed(void *arg, struct gang *g)
{
    (void)arg;
    for (size_t i = 0; i < PODS; i++)
        if (s.pods[i].f.name != NULL && str_eq(g->members.items[0]->pod->name, s.pods[i].f.name)) {
            s.pods[i].touched = true;
            s.pods[i].deferred = false;
        }
}

static void gang_vanishing(void *arg, struct gang *g)
{
    (void)arg;
    (void)g;
}

static const struct cluster_hooks told = {.gang_changed = gang_changed,
                                          .gang_vanishing = gang_vanishing};

static struct cluster_pod *pod_at(size_t i)
{
    const struct fixture_pod *f = &s.pods[i].f;
    return f->name != NULL ? cluster_find_pod(&c, arena_printf(&arena, "%s/%s", f->ns, f->name))
                           : NULL;
}

/* One that the scheduler has not told its new policy, although nothing else changes it. */
static void expect_told(size_t i)
{
    struct cluster_pod *cp = pod_at(i);
    if (cp == NULL || policies_is_changing(&c, cp->pod->ns))
        return;
    expect_true("a deferred pod is told when its namespace has changed", !s.pods[i].deferred);
    if (cluster_pod_is_schedulable(cp) && serial_of(cp) != s.pods[i].serial)
        expect_true("a waiting pod is told that its policy changed", s.pods[i].touched);
    s.pods[i].serial = serial_of(cp);
    s.pods[i].touched = false;
}

static void change_pod(void)
{
    static const char *const apps[] = {"a", "b", "c"}, *const tiers[] = {"x", "y"};
    static const char *const nodes[] = {NULL, NULL, "a1", "b1"};
    size_t i = roll(PODS);
    struct fixture_pod *f = &s.pods[i].f;
    struct cluster_pod *cp = pod_at(i);
    if (cp != NULL && roll(3) == 0) {
        (void)cluster_remove_pod(&c, cp->pod->key, NULL, hooks);
        s.pods[i].f.name = NULL;
        s.pods[i].deferred = false;
        return;
    }
    const char *was_on = f->name != NULL ? f->node : NULL;
    *f = (struct fixture_pod){.name = arena_printf(&s.specs, "p%zu", i),
                              .ns = namespaces[i % 2],
                              .created_s = (int)roll(3),
                              .terminating = roll(8) == 0,
                              .node = was_on != NULL ? was_on : nodes[roll(4)]};
    const char **labels = arena_new(&s.specs, const char *, 7);
    size_t n = 0;
    if (roll(4) > 0)
        labels[n++] = "app", labels[n++] = apps[roll(3)];
    if (roll(4) > 0)
        labels[n++] = "tier", labels[n++] = tiers[roll(2)];
    labels[n++] = "name", labels[n++] = f->name;
    f->labels = labels;
    f->c[0].cpu_milli = 1000;
    (void)cluster_put_pod(&c, fixture_make_pod(f), hooks);
    s.pods[i].touched = true; /* by its own change */
    s.pods[i].deferred = false;
}

static char *make_policy(size_t ns, size_t i)
{
    static const char *const selectors[] = {"",
                                            "\"app\":\"a\"",
                                            "\"app\":\"b\"",
                                            "\"tier\":\"x\"",
                                            "\"app\":\"a\",\"tier\":\"x\"",
                                            "\"tier\":\"y\",\"app\":\"b\"",
                                            "\"app\":\"z\""};
    return arena_printf(
        &s.specs,
        "{\"metadata\":{\"namespace\":\"%s\",\"name\":\"w%zu\",\"uid\":\"u%d\","
        "\"creationTimestamp\":\"2026-01-01T00:00:0%dZ\"},\"spec\":{\"selector\":{%s},\"units\":"
        "[{\"resource\":\"%s\",\"nodeSelector\":{\"pool\":\"a\"},\"max\":%d},"
        "{\"resource\":\"ecs\",\"maxResources\":{\"cpu\":\"%d\"}}],"
        "\"ignorePreviousPod\":%s%s}}",
        namespaces[ns], i, (int)roll(2), (int)roll(2), selectors[roll(7)],
        roll(10) == 0 ? "moon" : "ecs", (int)roll(3), 1 + (int)roll(3),
        roll(2) == 0 ? "true" : "false", roll(3) == 0 ? ",\"matchLabelKeys\":[\"app\"]" : "");
}

static void change_policy(void)
{
    size_t ns = roll(2), i = roll(POLICIES);
    char **has = &s.policies[ns][i];
    const char *key = arena_printf(&arena, "%s/w%zu", namespaces[ns], i);
    if (roll(3) == 0) {
        (void)policies_submit_removal(&c, key, "another");
        expect_int("it was there", *has != NULL, policies_submit_removal(&c, key, NULL));
        *has = NULL;
        return;
    }
    if (*has == NULL || roll(5) > 0) /* else the same again: a status */
        *has = make_policy(ns, i);
    (void)policies_submit(&c, decode(*has));
}

static void try_a_gang(void)
{
    size_t i = roll(PODS);
    struct cluster_pod *cp = pod_at(i);
    if (cp == NULL || cp->gang == NULL || !cluster_pod_is_schedulable(cp))
        return;
    bool deferred = policies_defer(&c, cp->gang);
    expect_int("deferred while its namespace changes", policies_is_changing(&c, cp->pod->ns),
               deferred);
    s.pods[i].deferred |= deferred;
}

/* Counts hold at any time. */
static void check_counts(void)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&c.policies->groups, &i, &key, &value);) {
        const struct policies_group *g = value;
        int64_t held[2] = {0};
        size_t pods = 0;
        for (size_t k = 0; k < PODS; k++) {
            const struct cluster_pod *cp = pod_at(k);
            const struct policy_membership *m = cp != NULL ? &cp->membership : NULL;
            pods += m != NULL && m->group == g;
            if (m != NULL && m->group == g && m->held && m->counted)
                held[m->unit]++;
        }
        expect_int("pods of a group", (int64_t)pods, (int64_t)g->pods);
        for (size_t u = 0; u < g->of->policy->units_len; u++)
            expect_int("counted in a unit", held[u],
                       g->counts[u].live.pods + g->counts[u].leaving.pods);
    }
}

static const char *print_pod(const struct cluster_pod *cp)
{
    const struct policy_membership *m = &cp->membership;
    AUTO_STRBUF b = {0};
    strbuf_addf(&b, "%s:", cp->pod->key);
    if (m->group == NULL)
        return arena_printf(&arena, "%s no policy", strbuf_str(&b));
    for (size_t u = 0; u < m->group->of->policy->units_len; u++)
        strbuf_addf(&b, " %lld+%lld/%lld", (long long)m->group->counts[u].live.pods,
                    (long long)m->group->counts[u].leaving.pods,
                    (long long)m->group->counts[u].live.used.cpu_milli);
    return arena_printf(&arena, "%s %s unit %d held %d counted %d others %s", strbuf_str(&b),
                        m->group->key, (int)m->unit, m->held, m->counted,
                        str_or_empty(policies_others(&c, cp, &arena)));
}

/* The naive model tries every policy on every pod. */
static void compare(void)
{
    cluster_init(&s.naive, NAME_SCHEDULER);
    for (int i = 0; i < 2; i++)
        (void)cluster_put_node(&s.naive, NODE(.name = i == 0 ? "a1" : "b1",
                                              .labels = PAIRS("pool", i == 0 ? "a" : "b")));
    for (size_t i = 0; i < PODS; i++) {
        if (s.pods[i].f.name != NULL)
            (void)cluster_put_pod(&s.naive, fixture_make_pod(&s.pods[i].f), NULL);
    }
    for (size_t ns = 0; ns < 2; ns++)
        for (size_t i = 0; i < POLICIES; i++)
            if (s.policies[ns][i] != NULL)
                (void)policies_put(&s.naive, decode(s.policies[ns][i]));
    for (size_t i = 0; i < PODS; i++) {
        const struct cluster_pod *cp = pod_at(i);
        const struct policy *first = NULL;
        const char *key;
        void *at;
        if (cp == NULL)
            continue;
        for (size_t k = 0; map_next(&c.objects->by_key[API_OBJECTS_POLICIES], &k, &key, &at);)
            if (policy_selects(at, cp->pod) && (first == NULL || policy_order(at, first) < 0))
                first = at;
        expect_true("the oldest policy that selects it", policies_of(cp) == first);
        expect_str("as in a fresh model", print_pod(cluster_find_pod(&s.naive, cp->pod->key)),
                   print_pod(cp));
    }
    cluster_deinit(&s.naive);
}

static void step(void)
{
    uint64_t pick = roll(100);
    if (pick < 40)
        change_pod();
    else if (pick < 55)
        change_policy();
    else if (pick < 70)
        try_a_gang();
    else
        (void)policies_work(&c, &told, 1 + roll(12));
}

static void slices_end_as_one_change_would(void **state)
{
    (void)state;
    s = (struct story){.random = (uint64_t)(clock_wall_ns() & INT32_MAX)};
    struct error err = ERROR_INIT;
    const char *seed = getenv("COSCHED_SEED");
    if (seed != NULL && num_parse_range(seed, 0, INT64_MAX, (int64_t *)&s.random, &err) < 0)
        fail_msg("%s", err.text);
    printf("COSCHED_SEED=%llu\n", (unsigned long long)s.random);
    arena_init(&s.specs, 0);
    hooks = &told;
    (void)cluster_put_node(&c, NODE(.name = "a1", .labels = PAIRS("pool", "a")));
    (void)cluster_put_node(&c, NODE(.name = "b1", .labels = PAIRS("pool", "b")));
    for (size_t i = 0; i < STEPS && expect_failures == 0; i++) {
        step();
        check_counts();
        for (size_t k = 0; k < PODS; k++)
            expect_told(k);
        if (i % 20 == 19) {
            policies_settle(&c, &told);
            compare();
        }
        arena_reset(&arena);
    }
    arena_deinit(&s.specs);
    expect_done();
}

/* ---- what the story does not have ---- */

static char text[1024];
static const char *policy(const char *ns, const char *name, int max)
{
    (void)str_format(text, sizeof text,
                     "{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\",\"uid\":\"u\","
                     "\"creationTimestamp\":\"2026-01-01T00:00:00Z\"},\"spec\":{\"units\":"
                     "[{\"resource\":\"ecs\",\"max\":%d}]}}",
                     ns, name, max);
    return text;
}

/* The unit of an assumed pod is nowhere but in the model. */
static void an_assumed_pod_keeps_its_unit_through_a_change(void **state)
{
    (void)state;
    (void)cluster_put_node(&c, NODE(.name = "a1", .cpu_milli = 4000));
    (void)policies_put(&c, decode(policy("d", "w", 2)));
    struct cluster_pod *cp = PUT(.name = "p");
    (void)cluster_assume(&c, cp, cluster_find_node(&c, "a1"), &(struct grant){0});
    (void)policies_submit(&c, decode(policy("d", "w", 1)));
    (void)policies_work(&c, NULL, 2);
    expect_true("it has left", cp->membership.stale);
    cp = PUT(.name = "p", .labels = PAIRS("new", "label"));
    policies_settle(&c, NULL);
    expect_int("its unit", 0, policies_unit_of(cp));
    expect_true("by the policy", !cp->membership.previous);
    expect_int("counted", 1, cp->membership.group->counts[0].live.pods);
    expect_done();
}

/* Edits of one policy that come faster than they are made do not add up. */
static void of_many_edits_the_newest_is_made(void **state)
{
    enum { EDITS = 100, MEMBERS = 50 };
    (void)state;
    for (int i = 0; i < MEMBERS; i++)
        PUT(.name = arena_printf(&arena, "p%d", i));
    (void)policies_put(&c, decode(policy("d", "w", 1)));
    uint64_t before = c.policies->looked;
    for (int i = 0; i < EDITS; i++) {
        (void)policies_submit(&c, decode(policy("d", "w", 2 + i)));
        (void)policies_work(&c, NULL, 1);
    }
    policies_settle(&c, NULL);
    expect_int("the newest is in force", 1 + EDITS,
               policies_of(cluster_find_pod(&c, "d/p7"))->units[0].max);
    expect_true("at the cost of a few", c.policies->looked - before < 8 * MEMBERS);
    expect_done();
}

/* A tenant with many pods does not keep another one's small change waiting. */
static void namespaces_take_turns(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++)
        PUT(.name = arena_printf(&arena, "p%d", i));
    PUT(.name = "q", .ns = "e");
    for (int i = 0; i < 20; i++)
        (void)policies_submit(&c, decode(policy("d", arena_printf(&arena, "w%d", i), 1)));
    (void)policies_submit(&c, decode(policy("e", "small", 1)));
    expect_int("more to do", POLICIES_GO_ON, policies_work(&c, NULL, 50));
    expect_true("both wait", policies_is_changing(&c, "d") && policies_is_changing(&c, "e"));
    (void)policies_work(&c, NULL, 50);
    expect_true("the small one is done", !policies_is_changing(&c, "e"));
    expect_str("it holds", "small", policies_of(cluster_find_pod(&c, "e/q"))->object.name);
    expect_true("the large one goes on", policies_is_changing(&c, "d"));
    expect_done();
}

/* Else a namespace whose policies are edited all the time would never be scheduled. */
static void after_a_long_change_its_namespace_rests(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++)
        PUT(.name = arena_printf(&arena, "p%d", i));
    (void)policies_put(&c, decode(policy("d", "w", 1)));
    const struct gang *g = map_get(&c.gangs, "pod d/p3");
    enum policies_progress now = POLICIES_GO_ON;
    size_t rests = 0, max = 1;
    for (size_t i = 0; i < 100; i++) {
        (void)policies_submit(&c, decode(policy("d", "w", (int)++max)));
        now = policies_work(&c, NULL, 30);
        rests += now == POLICIES_REST && !policies_defer(&c, g);
    }
    expect_true("its gangs are tried between edits", rests > 10);
    policies_settle(&c, NULL);
    expect_int("nothing is left", POLICIES_DONE, policies_work(&c, NULL, 30));
    expect_int("the newest is in force", (int64_t)max,
               policies_of(g->members.items[0])->units[0].max);
    expect_done();
}

/* An edit in each round of the loop, before its gangs are tried: they are, every other time. */
static void gangs_that_were_deferred_are_tried_before_the_next_change(void **state)
{
    enum { ROUNDS = 100 };
    (void)state;
    PUT(.name = "p");
    const struct gang *g = map_get(&c.gangs, "pod d/p");
    int tried = 0;
    for (int i = 0; i < ROUNDS; i++) {
        (void)policies_submit(&c, decode(policy("d", "w", i)));
        tried += !policies_defer(&c, g);
        (void)policies_work(&c, NULL, POLICIES_SLICE);
    }
    expect_true("it is tried", tried >= ROUNDS / 2 - 1);
    expect_int("the newest is in force", ROUNDS - 1,
               policies_of(g->members.items[0])->units[0].max);
    expect_done();
}

/* A bundle is placed as one, also across namespaces. */
static void a_bundle_waits_for_the_namespaces_of_all_its_gangs(void **state)
{
    (void)state;
    static const char *const list = "[\"d/a\",\"e/b\"]";
    PUT(.name = "a", .labels = MEMBER("a", "1"), .annotations = PAIRS(NAME_ANN_GANG_GROUPS, list));
    PUT(.name = "b", .ns = "e", .labels = MEMBER("b", "1"),
        .annotations = PAIRS(NAME_ANN_GANG_GROUPS, list));
    const struct gang *g = gangs_find(&c, "d/a");
    expect_true("nothing changes", !policies_defer(&c, g));
    (void)policies_submit(&c, decode(policy("e", "w", 1)));
    expect_true("the other one's does", policies_defer(&c, g));
    policies_settle(&c, NULL);
    expect_true("no more", !policies_defer(&c, g));
    expect_done();
}

/* Whatever waits is freed with the model. */
static void a_model_may_end_in_the_middle(void **state)
{
    (void)state;
    for (size_t budget = 0; budget < 12; budget++) {
        fresh();
        PUT(.name = "p");
        PUT(.name = "q");
        (void)policies_submit(&c, decode(policy("d", "w", 1)));
        (void)policies_submit(&c, decode(policy("d", "x", 1)));
        if (budget > 0)
            (void)policies_work(&c, NULL, budget);
        (void)policies_submit_removal(&c, "d/w", NULL);
    }
    expect_done();
}

static void a_walk_sees_every_pod(void **state)
{
    (void)state;
    struct policies_walk w = {0};
    size_t seen = 0;
    for (int i = 0; i < 30; i++)
        PUT(.name = arena_printf(&arena, "p%d", i), .ns = namespaces[i % 2]);
    bool stayed[30] = {false};
    for (struct cluster_pod *cp; (cp = policies_walk_next(&c, &w)) != NULL; seen++) {
        int64_t i = 0;
        (void)num_parse(cp->pod->name + 1, strlen(cp->pod->name + 1), &i, NULL);
        stayed[i] = true;
        if (seen < 10) { /* others go, some before it, some behind it */
            (void)cluster_remove_pod(
                &c, arena_printf(&arena, "%s/p%zu", namespaces[seen % 2], seen), NULL, NULL);
        }
    }
    for (size_t i = 10; i < 30; i++)
        expect_true("it was seen", stayed[i]);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(slices_end_as_one_change_would),
        T(an_assumed_pod_keeps_its_unit_through_a_change),
        T(of_many_edits_the_newest_is_made),
        T(namespaces_take_turns),
        T(after_a_long_change_its_namespace_rests),
        T(gangs_that_were_deferred_are_tried_before_the_next_change),
        T(a_bundle_waits_for_the_namespaces_of_all_its_gangs),
        T(a_model_may_end_in_the_middle),
        T(a_walk_sees_every_pod),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
