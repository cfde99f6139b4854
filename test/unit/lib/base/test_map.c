// SPDX-License-Identifier: Apache-2.0
#include "lib/base/map.h"

#include "lib/base/str.h"
#include "test/unit/lib/base/expect.h"

enum { MANY = 3000 };
static char keys[MANY][16];
static int values[MANY];

static int make_keys(void **state)
{
    (void)state;
    for (int i = 0; i < MANY; i++) {
        (void)str_format(keys[i], sizeof keys[i], "ns/pod-%d", i);
        values[i] = i;
    }
    return 0;
}

/* "a b c": the keys in the order of iteration. */
static const char *order(const struct map *m)
{
    static char text[256];
    const char *key;
    void *value;
    size_t n = 0;
    text[0] = '\0';
    for (size_t i = 0; map_next(m, &i, &key, &value);)
        n += str_format(text + n, sizeof text - n, "%s%s", n > 0 ? " " : "", key) ? strlen(text + n)
                                                                                  : 0;
    return text;
}

static void an_empty_map(void **state)
{
    (void)state;
    struct map m;
    map_init(&m);
    size_t i = 0;
    expect_true("has nothing", map_get(&m, "a") == NULL);
    expect_true("not even for NULL", map_get(&m, NULL) == NULL);
    expect_true("nothing to remove", map_remove(&m, "a") == NULL);
    expect_int("count", 0, (int64_t)map_count(&m));
    expect_int("iteration", false, map_next(&m, &i, NULL, NULL));
    map_deinit(&m);
    expect_done();
}

static void putting_getting_removing(void **state)
{
    (void)state;
    struct map m;
    int a = 1;
    int b = 2;
    map_init(&m);
    expect_true("new: nothing was there", map_put(&m, "k", &a) == NULL);
    expect_true("it is there", map_get(&m, "k") == &a);
    expect_true("replaced: the old one comes back", map_put(&m, "k", &b) == &a);
    expect_true("the new one is there", map_get(&m, "k") == &b);
    expect_int("once", 1, (int64_t)map_count(&m));
    expect_true("the empty key is a key", map_put(&m, "", &a) == NULL && map_get(&m, "") == &a);
    expect_true("NULL is none", map_get(&m, NULL) == NULL && map_remove(&m, NULL) == NULL);
    expect_true("removed: it comes back", map_remove(&m, "k") == &b);
    expect_true("it is gone", map_get(&m, "k") == NULL && map_remove(&m, "k") == NULL);
    expect_int("one is left", 1, (int64_t)map_count(&m));
    map_deinit(&m);
    expect_int("none after deinit", 0, (int64_t)map_count(&m));
    expect_done();
}

static void replacing_takes_the_new_key(void **state)
{
    (void)state;
    struct map m;
    int a = 1;
    char old_key[] = "k";
    char new_key[] = "k";
    const char *key = NULL;
    map_init(&m);
    (void)map_put(&m, old_key, &a);
    (void)map_put(&m, "z", &a);
    (void)map_put(&m, new_key, &a);
    memset(old_key, 'x', 1); /* the object that held the old key is gone */
    size_t i = 0;
    expect_true("the first", map_next(&m, &i, &key, NULL));
    expect_true("has the new key, in the old place", key == new_key);
    expect_true("and is found by it", map_get(&m, "k") == &a);
    map_deinit(&m);
    expect_done();
}

static void iteration_goes_in_order_of_insertion(void **state)
{
    (void)state;
    struct map m;
    int v = 0;
    map_init(&m);
    static const char *const names[] = {"zeta", "alpha", "m", "beta", "k9", "k1"};
    for (size_t i = 0; i < 6; i++)
        (void)map_put(&m, names[i], &v);
    expect_str("as inserted", "zeta alpha m beta k9 k1", order(&m));
    (void)map_remove(&m, "alpha");
    expect_str("without the removed one", "zeta m beta k9 k1", order(&m));
    (void)map_put(&m, "alpha", &v);
    expect_str("put again, it is the newest", "zeta m beta k9 k1 alpha", order(&m));
    (void)map_put(&m, "m", &v);
    expect_str("replaced, it keeps its place", "zeta m beta k9 k1 alpha", order(&m));
    for (int i = 0; i < 100; i++) { /* closing the holes again and again */
        (void)map_remove(&m, "m");
        (void)map_put(&m, "m", &v);
    }
    expect_str("holes do not disturb it", "zeta beta k9 k1 alpha m", order(&m));
    expect_true("nor take memory for ever", m.cap <= 32);
    map_deinit(&m);
    expect_done();
}

static void removing_while_iterating(void **state)
{
    (void)state;
    struct map m;
    map_init(&m);
    for (int i = 0; i < MANY; i++)
        (void)map_put(&m, keys[i], &values[i]);
    const char *key;
    void *value;
    int next = 0;
    for (size_t i = 0; map_next(&m, &i, &key, &value);) {
        expect_true("each is met, in order", value == &values[next]);
        next++;
        if (next % 3 != 0)
            expect_true("and can go", map_remove(&m, key) == value);
    }
    expect_int("all were met", MANY, next);
    expect_int("a third is left", MANY / 3, (int64_t)map_count(&m));
    map_deinit(&m);
    expect_done();
}

/* Against a plain array that says which keys are there. */
static void it_agrees_with_a_simple_model(void **state)
{
    (void)state;
    struct map m;
    bool there[MANY] = {false};
    size_t count = 0;
    uint64_t random = 42;
    map_init(&m);
    for (int step = 0; step < 200000; step++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        int k = (int)((random >> 33) % MANY);
        if (random >> 63) {
            void *old = map_put(&m, keys[k], &values[k]);
            expect_true("put tells what was there", old == (there[k] ? &values[k] : NULL));
            count += !there[k];
            there[k] = true;
        } else {
            void *old = map_remove(&m, keys[k]);
            expect_true("remove tells what was there", old == (there[k] ? &values[k] : NULL));
            count -= there[k];
            there[k] = false;
        }
        if (expect_failures > 0)
            break;
        if (step % 20000 != 0)
            continue;
        for (int i = 0; i < MANY; i++)
            expect_true("get agrees", map_get(&m, keys[i]) == (there[i] ? &values[i] : NULL));
    }
    expect_int("count agrees", (int64_t)count, (int64_t)map_count(&m));
    expect_true("the memory is bounded by what is in it", m.cap <= 8192);
    map_deinit(&m);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_map),
        cmocka_unit_test(putting_getting_removing),
        cmocka_unit_test(replacing_takes_the_new_key),
        cmocka_unit_test(iteration_goes_in_order_of_insertion),
        cmocka_unit_test(removing_while_iterating),
        cmocka_unit_test(it_agrees_with_a_simple_model),
    };
    return cmocka_run_group_tests(tests, make_keys, NULL);
}
