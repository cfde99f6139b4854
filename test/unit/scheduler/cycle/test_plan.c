// SPDX-License-Identifier: Apache-2.0
#include "test/unit/scheduler/model_kit.h"

#include "scheduler/cycle/plan.h"

static const struct grant none;

static void place(struct plan *plan, const char *key, const char *node)
{
    plan_place(plan, cluster_find_pod(&c, key), cluster_find_node(&c, node), &none);
}

/* Two nodes of 4 CPUs: x and y run on n1, z on n2; a and b wait. */
static void two_nodes(void)
{
    (void)cluster_put_node(&c, NODE(.name = "n1", .cpu_milli = 4000));
    (void)cluster_put_node(&c, NODE(.name = "n2", .cpu_milli = 4000));
    PUT(.name = "x", .node = "n1", CPU(2000));
    PUT(.name = "y", .node = "n1", CPU(2000));
    PUT(.name = "z", .node = "n2", CPU(1000));
    PUT(.name = "a", CPU(3000));
    PUT(.name = "b", CPU(1000));
}

static void a_plan_can_be_undone_in_parts(void **state)
{
    (void)state;
    struct plan plan;
    two_nodes();
    const struct cluster_node *n2 = cluster_find_node(&c, "n2");
    uint64_t empty = cluster_digest(&c);
    plan_begin(&plan, &c);
    place(&plan, "d/a", "n2");
    uint64_t one = cluster_digest(&c);
    size_t mark = plan_mark(&plan);
    place(&plan, "d/b", "n2");
    expect_int("both hold room", 5000, n2->used.cpu_milli);
    plan_rollback(&plan, mark);
    expect_true("back to the mark", cluster_digest(&c) == one);
    plan_end(&plan);
    expect_true("an end without commit undoes all", cluster_digest(&c) == empty);
    plan_begin(&plan, &c);
    place(&plan, "d/a", "n2");
    plan_commit(&plan);
    expect_int("a committed plan lists its steps", 1, (int64_t)plan.steps.len);
    plan_end(&plan);
    expect_true("and stays", cluster_digest(&c) == one);
    expect_done();
}

static void an_evicted_pod_makes_room_until_it_is_back(void **state)
{
    (void)state;
    struct plan plan;
    two_nodes();
    struct cluster_pod *a = cluster_find_pod(&c, "d/a"), *x = cluster_find_pod(&c, "d/x");
    const struct cluster_node *n1 = cluster_find_node(&c, "n1");
    uint64_t before = cluster_digest(&c);
    expect_str("there is room on n2 alone", "n2", open_nodes(a));
    plan_begin(&plan, &c);
    (void)plan_evict(&plan, cluster_find_pod(&c, "d/y"));
    size_t mark = plan_mark(&plan);
    uint64_t without_y = cluster_digest(&c);
    size_t step = plan_evict(&plan, x);
    expect_str("on both now", "n1 n2", open_nodes(a));
    expect_true("it is nowhere", x->on == NULL);
    expect_int("and bound as before", CLUSTER_BOUND, x->state);
    place(&plan, "d/b", "n1");
    plan_restore(&plan, step);
    expect_str("b and x leave too little", "n2", open_nodes(a));
    expect_int("all are counted", 3000, n1->used.cpu_milli);
    plan_rollback(&plan, mark);
    expect_true("back to the mark, with x there", cluster_digest(&c) == without_y);
    plan_end(&plan);
    expect_true("as before", cluster_digest(&c) == before);
    expect_int("two are on n1", 2, (int64_t)n1->pods.len);
    expect_done();
}

/* The mark is between the two: the pod was away then. */
static void a_restored_pod_is_away_again_where_only_its_return_is_undone(void **state)
{
    (void)state;
    struct plan plan;
    two_nodes();
    struct cluster_pod *x = cluster_find_pod(&c, "d/x");
    uint64_t before = cluster_digest(&c);
    plan_begin(&plan, &c);
    size_t step = plan_evict(&plan, x), mark = plan_mark(&plan);
    uint64_t without_x = cluster_digest(&c);
    plan_restore(&plan, step);
    expect_true("it is as before", cluster_digest(&c) == before);
    (void)plan_evict(&plan, x);
    plan_rollback(&plan, mark);
    expect_true("it is away", x->on == NULL && cluster_digest(&c) == without_x);
    plan_end(&plan);
    expect_true("it is back", cluster_digest(&c) == before);
    expect_done();
}

/* A pod that the plan placed itself is asked about as if it were not there. */
static void what_was_placed_can_be_evicted(void **state)
{
    (void)state;
    struct plan plan;
    two_nodes();
    struct cluster_pod *a = cluster_find_pod(&c, "d/a");
    plan_begin(&plan, &c);
    place(&plan, "d/a", "n2");
    uint64_t placed = cluster_digest(&c);
    size_t mark = plan_mark(&plan);
    (void)plan_evict(&plan, a);
    expect_str("it is not in its own way", "n2", open_nodes(a));
    plan_rollback(&plan, mark);
    expect_true("it is there again", cluster_digest(&c) == placed);
    plan_commit(&plan);
    plan_end(&plan);
    expect_str("and stays", "n2", a->on->name);
    expect_done();
}

enum { STEPS = 200, NODES = 3, PODS = 12 };

/* Steps in any order; whatever mark is gone back to, the cluster is as it was there (I3). */
static void going_back_to_any_mark_gives_the_state_of_that_mark(void **state)
{
    (void)state;
    uint64_t random = 88172645463325252u, digests[STEPS + 1];
    struct plan plan;
    for (int i = 0; i < NODES; i++)
        (void)cluster_put_node(&c, NODE(.name = arena_printf(&arena, "n%d", i)));
    for (int i = 0; i < PODS; i++)
        PUT(.name = arena_printf(&arena, "p%d", i), CPU(100 << i),
            .node = i % 2 == 0 ? arena_printf(&arena, "n%d", i % NODES) : NULL);
    plan_begin(&plan, &c);
    for (int round = 0; round < 1000; round++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        digests[plan_mark(&plan)] = cluster_digest(&c);
        struct cluster_pod *cp =
            cluster_find_pod(&c, arena_printf(&arena, "d/p%d", (int)(random / 16 % PODS)));
        size_t step = plan.steps.len;
        while (step > 0 && (plan.steps.items[step - 1].pod != cp ||
                            plan.steps.items[step - 1].kind != PLAN_EVICTED))
            step--;
        if (random % 8 == 0 || plan.steps.len == STEPS) {
            size_t mark = random / 1024 % (plan.steps.len + 1);
            plan_rollback(&plan, mark);
            expect_true("as it was", cluster_digest(&c) == digests[mark]);
        } else if (cp->state == CLUSTER_PENDING) {
            place(&plan, cp->pod->key, arena_printf(&arena, "n%d", (int)(random / 1024 % NODES)));
        } else if (cp->on != NULL) {
            (void)plan_evict(&plan, cp);
        } else {
            plan_restore(&plan, step - 1);
        }
    }
    plan_end(&plan);
    expect_true("as at the beginning", cluster_digest(&c) == digests[0]);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_plan_can_be_undone_in_parts),
        T(an_evicted_pod_makes_room_until_it_is_back),
        T(a_restored_pod_is_away_again_where_only_its_return_is_undone),
        T(what_was_placed_can_be_evicted),
        T(going_back_to_any_mark_gives_the_state_of_that_mark),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
