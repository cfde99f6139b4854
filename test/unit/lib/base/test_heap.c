// SPDX-License-Identifier: Apache-2.0
#include "lib/base/heap.h"

#include "test/unit/lib/base/expect.h"

struct item {
    char padding; /* the node is not at the start */
    int64_t due;
    int number; /* breaks ties, so that the order is strict */
    struct heap_node node;
};

static struct item *item_of(struct heap_node *n)
{
    return container_of(n, struct item, node);
}

static bool earlier(const struct heap_node *a, const struct heap_node *b)
{
    const struct item *x =
        (const struct item *)(const void *)((const char *)a - offsetof(struct item, node));
    const struct item *y =
        (const struct item *)(const void *)((const char *)b - offsetof(struct item, node));
    return x->due != y->due ? x->due < y->due : x->number < y->number;
}

static uint64_t seed = 7;

static int64_t roll(int64_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((seed >> 33) % (uint64_t)n);
}

static bool is_sound(const struct heap *h)
{
    for (size_t i = 0; i < h->len; i++)
        if (h->nodes[i]->position != i + 1 ||
            (i > 0 && h->before(h->nodes[i], h->nodes[(i - 1) / 2])))
            return false;
    return true;
}

static void an_empty_heap(void **state)
{
    (void)state;
    struct heap h;
    struct item loose = {0};
    heap_init(&h, earlier);
    expect_true("has no top", heap_top(&h) == NULL);
    expect_true("nothing to pop", heap_pop(&h) == NULL);
    heap_remove(&h, &loose.node);
    expect_int("removing what is not in it does nothing", false, heap_has(&loose.node));
    heap_deinit(&h);
    expect_done();
}

static void what_goes_in_comes_out_sorted(void **state)
{
    (void)state;
    enum { N = 500 };
    static struct item items[N];
    struct heap h;
    heap_init(&h, earlier);
    for (int i = 0; i < N; i++) {
        items[i] = (struct item){.due = roll(50), .number = i};
        heap_push(&h, &items[i].node);
        expect_true("it is in", heap_has(&items[i].node));
    }
    expect_true("sound", is_sound(&h));
    struct item last = {.due = -1};
    for (int i = 0; i < N; i++) {
        struct heap_node *top = heap_top(&h);
        struct heap_node *n = heap_pop(&h);
        assert_non_null(n);
        expect_true("pop gives the top", n == top);
        expect_true("not before the one before", !earlier(n, &last.node));
        expect_int("it is out", false, heap_has(n));
        last = *item_of(n);
    }
    expect_true("all are out", heap_pop(&h) == NULL);
    heap_deinit(&h);
    expect_done();
}

static void any_of_them_can_be_removed_or_moved(void **state)
{
    (void)state;
    enum { N = 64 };
    static struct item items[N];
    struct heap h;
    heap_init(&h, earlier);
    for (int i = 0; i < N; i++)
        items[i] = (struct item){.due = roll(1000), .number = i};
    for (int step = 0; step < 20000; step++) {
        struct item *it = &items[roll(N)];
        if (!heap_has(&it->node)) {
            heap_push(&h, &it->node);
        } else if (roll(2) == 0) {
            heap_remove(&h, &it->node);
            expect_int("it is out", false, heap_has(&it->node));
        } else {
            heap_remove(&h, &it->node);
            it->due = roll(1000);
            heap_push(&h, &it->node);
        }
        if (!is_sound(&h))
            fail_msg("not a heap any more after step %d", step);
        size_t in = 0;
        for (int i = 0; i < N; i++)
            in += heap_has(&items[i].node);
        expect_int("as many as are in", (int64_t)in, (int64_t)h.len);
    }
    heap_deinit(&h);
    expect_done();
}

static void the_nodes_may_go_before_the_heap(void **state)
{
    (void)state;
    struct heap h;
    heap_init(&h, earlier);
    for (int i = 0; i < 3; i++) {
        struct item *it = calloc(1, sizeof *it);
        assert_non_null(it);
        it->due = i;
        heap_push(&h, &it->node);
    }
    for (size_t i = 0; i < h.len; i++)
        free(item_of(h.nodes[i]));
    heap_deinit(&h); /* the sanitizer would see it looking at them */
    expect_true("it is empty", heap_top(&h) == NULL);
    expect_done();
}

static void both_ends_can_be_removed(void **state)
{
    (void)state;
    struct item items[3] = {
        {.due = 1, .number = 0}, {.due = 2, .number = 1}, {.due = 3, .number = 2}};
    struct heap h;
    heap_init(&h, earlier);
    for (int i = 0; i < 3; i++)
        heap_push(&h, &items[i].node);
    heap_remove(&h, &items[2].node);
    expect_true("without the last, the top stays", heap_top(&h) == &items[0].node);
    heap_remove(&h, &items[0].node);
    expect_true("without the top, the next follows", heap_top(&h) == &items[1].node);
    heap_remove(&h, &items[1].node);
    expect_true("without the only one it is empty", heap_top(&h) == NULL);
    heap_deinit(&h);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_heap),
        cmocka_unit_test(what_goes_in_comes_out_sorted),
        cmocka_unit_test(any_of_them_can_be_removed_or_moved),
        cmocka_unit_test(the_nodes_may_go_before_the_heap),
        cmocka_unit_test(both_ends_can_be_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
