// SPDX-License-Identifier: Apache-2.0
#include "lib/base/ids.h"

#include <stdlib.h>

#include "lib/base/mem.h"
#include "test/unit/lib/base/expect.h"

static void numbers_are_used_again_and_serials_never(void **state)
{
    (void)state;
    struct ids s = {0};
    struct id a = ids_take(&s), b = ids_take(&s), c = ids_take(&s);
    expect_int("the first number", 0, a.number);
    expect_int("the next", 1, b.number);
    ids_give(&s, b);
    ids_give(&s, a);
    struct id d = ids_take(&s), e = ids_take(&s), f = ids_take(&s);
    expect_true("given back, given again", d.number + e.number == 1 && d.number != e.number);
    expect_int("before a new one", 3, f.number);
    expect_true("under another serial", d.serial > c.serial && e.serial > d.serial);
    expect_true("which is never 0", a.serial > 0);
    ids_deinit(&s);
    expect_done();
}

struct note {
    char *text;
    int64_t number;
    char message;
};

static int cleared;

static void note_clear(void *memory)
{
    struct note *n = memory;
    free(n->text);
    cleared++;
}

static void nobody_sees_what_was_remembered_of_another(void **state)
{
    (void)state;
    struct ids s = {0};
    struct ids_table t;
    struct id old = ids_take(&s);
    cleared = 0;
    ids_table_init(&t, sizeof(struct note), note_clear);
    expect_true("nothing is known at first", ids_find(&t, old) == NULL);
    struct note *n = ids_at(&t, old);
    expect_true("it begins with nothing", n->text == NULL && n->number == 0 && n->message == 0);
    *n = (struct note){.text = mem_strdup("old"), .number = -1, .message = 'x'};
    expect_true("it stays where it is", ids_find(&t, old) == n && ids_at(&t, old) == n);
    ids_give(&s, old);
    struct id now = ids_take(&s);
    expect_int("another one with this number", old.number, now.number);
    expect_true("of which nothing is known", ids_find(&t, now) == NULL);
    expect_int("what was known of the old one stays meanwhile", 0, cleared);
    n = ids_at(&t, now);
    expect_int("and is cleared then", 1, cleared);
    expect_true("it begins with nothing", n->text == NULL && n->number == 0 && n->message == 0);
    expect_true("the old one is not found any more", ids_find(&t, old) == NULL);
    n->text = mem_strdup("now");
    ids_table_deinit(&t);
    expect_int("the rest goes with the table", 2, cleared);
    ids_deinit(&s);
    expect_done();
}

static void slots_do_not_move_or_touch(void **state)
{
    (void)state;
    enum { MANY = 10 * IDS_PAGE, FAR = 1000 * IDS_PAGE };
    static struct note *at[MANY];
    struct ids s = {0};
    struct ids_table t;
    ids_table_init(&t, sizeof(struct note), NULL);
    for (int i = 0; i < MANY; i++) {
        at[i] = ids_at(&t, ids_take(&s));
        at[i]->number = i;
        at[i]->message = (char)i;
    }
    struct id far = {.number = FAR, .serial = FAR};
    expect_true("a page in between that nobody asked for",
                ids_find(&t, (struct id){.number = FAR - IDS_PAGE, .serial = 1}) == NULL);
    struct note *n = ids_at(&t, far);
    n->number = FAR;
    for (int i = 0; i < MANY; i++) {
        const struct id id = {.number = (uint32_t)i, .serial = (uint64_t)i + 1};
        expect_true("where it was", ids_find(&t, id) == at[i]);
        expect_true("as it was", at[i]->number == i && at[i]->message == (char)i);
    }
    ids_table_deinit(&t);
    ids_deinit(&s);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_used_again_and_serials_never),
        cmocka_unit_test(nobody_sees_what_was_remembered_of_another),
        cmocka_unit_test(slots_do_not_move_or_touch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
