// SPDX-License-Identifier: Apache-2.0
/*
 * policies_index: what a policy costs is about the pods that it selects. Work is counted, not
 * timed: struct policies counts each pod and each policy that is looked at for another's sake.
 */
#include "lib/base/num.h"
#include "scheduler/cache/policies.h"
#include "test/unit/scheduler/model_kit.h"

enum { APPS = 50, PODS_OF_AN_APP = 10, PODS = APPS * PODS_OF_AN_APP };

/* ' for ". */
static struct policy *policy(const char *name, const char *selector, int max)
{
    AUTO_STRBUF text = {0};
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    struct policy *p = NULL;
    strbuf_addf(&text,
                "{'metadata':{'namespace':'d','name':'%s','uid':'u-%s','creationTimestamp':"
                "'2026-01-01T00:00:00Z'},'spec':{'units':[{'resource':'ecs','max':%d}],"
                "'selector':{%s}}}",
                name, name, max, selector);
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] == '\'')
            text.ptr[i] = '"';
    if (json_parse(&doc, strbuf_str(&text), text.len, &err) < 0 ||
        decode_resource_policy(json_root(doc), &p, &err) < 0 || p->invalid != NULL)
        fail_msg("%s: %s", selector, err.text);
    return p;
}

static const char *number(const char *before, int i)
{
    return arena_printf(&arena, "%s%d", before, i);
}

static const char *app_is(int i)
{
    return arena_printf(&arena, "'tier':'web','app':'a%d'", i);
}

static void put_pods(const char *ns)
{
    for (int i = 0; i < PODS; i++)
        PUT(.name = number("p", i), .ns = ns,
            .labels = PAIRS("tier", "web", "app", number("a", i % APPS), "pod", number("", i)));
}

static int64_t looks_since(uint64_t *before)
{
    int64_t n = (int64_t)(c.policies->looked - *before);
    *before = c.policies->looked;
    return n;
}

static void expect_at_most(const char *what, int64_t most, int64_t n)
{
    if (n > most)
        fail_msg("%s: %lld looks, at most %lld expected", what, (long long)n, (long long)most);
}

static void a_policy_costs_the_pods_that_it_selects(void **state)
{
    (void)state;
    uint64_t before = c.policies->looked;
    put_pods("d");
    put_pods("e");
    (void)policies_put(&c, policy("first", "'nobody':'x'", 1));
    expect_at_most("the first of a namespace", PODS + 10, looks_since(&before));
    for (int i = 0; i < APPS; i++) {
        (void)policies_put(&c, policy(number("w", i), app_is(i), 1));
        expect_at_most("made", 4 * PODS_OF_AN_APP, looks_since(&before));
    }
    expect_str("it holds", "w7", policies_of(cluster_find_pod(&c, "d/p57"))->object.name);
    expect_true("not elsewhere", policies_of(cluster_find_pod(&c, "e/p57")) == NULL);
    for (int i = 0; i < APPS; i++) {
        (void)policies_put(&c, policy(number("w", i), app_is(i), 2));
        expect_at_most("edited", 4 * PODS_OF_AN_APP, looks_since(&before));
    }
    (void)policies_put(&c, policy("w7", app_is(8), 2));
    expect_at_most("with another selector", 6 * PODS_OF_AN_APP, looks_since(&before));
    expect_true("it let them go", policies_of(cluster_find_pod(&c, "d/p57")) == NULL);
    expect_str("and took others", "w7", policies_of(cluster_find_pod(&c, "d/p58"))->object.name);
    for (int i = 0; i < APPS; i++) {
        (void)policies_remove(&c, arena_printf(&arena, "d/w%d", i), NULL);
        expect_at_most("removed", 4 * PODS_OF_AN_APP, looks_since(&before));
    }
    expect_true("none is left", policies_of(cluster_find_pod(&c, "d/p58")) == NULL);
    expect_done();
}

static void a_pod_costs_the_policies_that_may_select_it(void **state)
{
    (void)state;
    for (int i = 0; i < APPS; i++)
        (void)policies_put(&c, policy(number("w", i), app_is(i), 1));
    uint64_t before = c.policies->looked;
    put_pods("d");
    expect_at_most("made", 3 * PODS, looks_since(&before));
    for (int i = 0; i < PODS; i++)
        PUT(.name = number("p", i),
            .labels = PAIRS("tier", "web", "app", number("a", (i + 1) % APPS)));
    expect_at_most("relabelled", 3 * PODS, looks_since(&before));
    expect_str("it holds", "w8", policies_of(cluster_find_pod(&c, "d/p57"))->object.name);
    for (int i = 0; i < PODS; i++)
        (void)cluster_remove_pod(&c, arena_printf(&arena, "d/p%d", i), NULL, NULL);
    expect_at_most("removed", PODS, looks_since(&before));
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_policy_costs_the_pods_that_it_selects),
        T(a_pod_costs_the_policies_that_may_select_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
