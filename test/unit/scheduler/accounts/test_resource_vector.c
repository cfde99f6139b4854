// SPDX-License-Identifier: Apache-2.0
#include "scheduler/accounts/resource_vector.h"

#include "test/unit/lib/base/expect.h"

struct names_and_arena {
    struct resource_vector_names names;
    struct arena arena;
};

static struct resource_vector made(struct names_and_arena *n, int64_t cpu, const char *name,
                                   int64_t value)
{
    struct resources r = {.cpu_milli = cpu};
    struct resource_vector out;
    if (name != NULL) {
        r.extra = arena_new(&n->arena, struct resource_extra, 1);
        r.extra[0] = (struct resource_extra){name, value};
        r.extra_len = 1;
    }
    resource_vector_of(&out, &r, &n->names, &n->arena);
    return out;
}

static int setup(void **state)
{
    struct names_and_arena *n = calloc(1, sizeof *n);
    resource_vector_names_init(&n->names);
    arena_init(&n->arena, 0);
    *state = n;
    return 0;
}

static int teardown(void **state)
{
    struct names_and_arena *n = *state;
    resource_vector_names_deinit(&n->names);
    arena_deinit(&n->arena);
    free(n);
    return 0;
}

static void a_name_has_one_number(void **state)
{
    struct names_and_arena *n = *state;
    uint32_t a = resource_vector_id(&n->names, "a"), b = resource_vector_id(&n->names, "b");
    expect_true("two names have two numbers", a != b);
    char again[] = "a";
    expect_int("the same name has the same number", a, resource_vector_id(&n->names, again));
    expect_str("the name of a number", "b", resource_vector_name(&n->names, b));
    expect_true("names are kept, not borrowed", resource_vector_name(&n->names, a) != again);
    expect_done();
}

static void pods_names_are_bounded(void **state)
{
    struct names_and_arena *n = *state;
    struct resource_extra extra = {NULL, 1};
    struct resources r = {.extra = &extra, .extra_len = 1};
    struct resource_vector out, of_node;
    for (int i = 0; i < RESOURCE_VECTOR_NAMES_MAX + 10; i++) {
        extra.name = arena_printf(&n->arena, "a.b/%d", i);
        resource_vector_of_pod(&out, &r, &n->names, &n->arena);
    }
    expect_int("names", RESOURCE_VECTOR_NAMES_MAX + 1, (int64_t)n->names.names.len);
    expect_str("the rest is one", "a resource that no node offers", out.extra[0].name);
    resource_vector_of(&of_node, &r, &n->names, &n->arena);
    resource_vector_of_pod(&out, &r, &n->names, &n->arena);
    expect_str("until a node offers it", extra.name, out.extra[0].name);
    expect_int("then it is the node's", of_node.extra[0].id, out.extra[0].id);
    expect_done();
}

static void what_is_added_can_be_taken_off(void **state)
{
    struct names_and_arena *n = *state;
    struct resource_vector used = {0}, x = made(n, 500, "z", 3), y = made(n, 250, "b", 2);
    uint64_t empty = resource_vector_digest(&used);
    resource_vector_account(&used, &x, 1);
    uint64_t one = resource_vector_digest(&used);
    resource_vector_account(&used, &y, 1);
    int64_t value = 0;
    expect_int("CPU adds up", 750, used.cpu_milli);
    expect_int("two names", 2, used.extra_len);
    expect_str("names are in order", "b", used.extra[0].name);
    expect_true("there is an entry",
                resource_vector_get(&used, resource_vector_id(&n->names, "z"), &value));
    expect_int("with its value", 3, value);
    resource_vector_account(&used, &y, -1);
    expect_true("taking off gives the state before", resource_vector_digest(&used) == one);
    expect_int("a name that came to 0 goes", 1, used.extra_len);
    expect_true("and is not found",
                !resource_vector_get(&used, resource_vector_id(&n->names, "b"), &value) &&
                    value == 3);
    resource_vector_account(&used, &x, -1);
    expect_true("back to nothing", resource_vector_digest(&used) == empty);
    resource_vector_deinit(&used);
    expect_done();
}

static void an_overflow_is_seen(void **state)
{
    struct names_and_arena *n = *state;
    struct resource_vector used = {0}, most = made(n, INT64_MAX, "a", INT64_MAX),
                           one = made(n, 1, NULL, 0);
    resource_vector_account(&used, &most, 1);
    expect_true("the largest amount fits", !used.saturated);
    resource_vector_account(&used, &one, 1);
    expect_true("one more does not", used.saturated);
    expect_int("and is held at the end", INT64_MAX, used.cpu_milli);
    resource_vector_deinit(&used);
    expect_true("an empty sum is exact again", !used.saturated);
    expect_done();
}

static void the_numbering_leaves_no_trace(void **state)
{
    struct names_and_arena *n = *state;
    struct resource_vector_names others;
    resource_vector_names_init(&others);
    (void)resource_vector_id(&others, "b"); /* here b comes first */
    struct resource_extra extra[] = {{"a", 1}, {"b", 2}};
    struct resources r = {.extra = extra, .extra_len = 2};
    struct resource_vector x, y;
    resource_vector_of(&x, &r, &n->names, &n->arena);
    resource_vector_of(&y, &r, &others, &n->arena);
    expect_true("the same digest", resource_vector_digest(&x) == resource_vector_digest(&y));
    expect_str("the same order", x.extra[0].name, y.extra[0].name);
    extra[0].value = 2;
    resource_vector_of(&y, &r, &others, &n->arena);
    expect_true("another value, another digest",
                resource_vector_digest(&x) != resource_vector_digest(&y));
    resource_vector_names_deinit(&others);
    expect_done();
}

static void growth_is_seen(void **state)
{
    struct names_and_arena *n = *state;
    static const struct {
        const char *row;
        int64_t cpu;
        const char *name;
        int64_t value;
        bool grew;
    } rows[] = {
        {"the same", 100, "a", 5, false},
        {"less of a name", 100, "a", 4, false},
        {"more of a name", 100, "a", 6, true},
        {"more CPU", 101, "a", 5, true},
        {"less CPU", 99, "a", 5, false},
        {"a name less", 100, NULL, 0, false},
        {"another name, even with 0", 100, "b", 0, true},
    };
    struct resource_vector before = made(n, 100, "a", 5);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct resource_vector after = made(n, rows[i].cpu, rows[i].name, rows[i].value);
        expect_int(rows[i].row, rows[i].grew, resource_vector_grew(&before, &after));
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_name_has_one_number, setup, teardown),
        cmocka_unit_test_setup_teardown(pods_names_are_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_added_can_be_taken_off, setup, teardown),
        cmocka_unit_test_setup_teardown(an_overflow_is_seen, setup, teardown),
        cmocka_unit_test_setup_teardown(the_numbering_leaves_no_trace, setup, teardown),
        cmocka_unit_test_setup_teardown(growth_is_seen, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
