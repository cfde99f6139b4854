// SPDX-License-Identifier: Apache-2.0
#include "lib/model/resources.h"

#include "test/unit/lib/model/build.h"

static const char *text_of(const struct resources *r)
{
    AUTO_STRBUF out;
    strbuf_init(&out);
    resources_print(r, &out);
    return arena_strdup(&arena, strbuf_str(&out));
}

static void each_name_has_its_unit(void **state)
{
    (void)state;
    struct resources r =
        build_resources(&arena, "cpu=1500m,memory=2Gi,ephemeral-storage=1Gi,pods=110,"
                                "nvidia.com/gpu=2,aliyun.com/gpu-mem=3,hugepages-2Mi=4Mi");
    bool present;

    expect_int("cpu in milli", 1500, r.cpu_milli);
    expect_int("memory in bytes", INT64_C(2) << 30, r.memory_bytes);
    expect_int("ephemeral storage in bytes", INT64_C(1) << 30, r.ephemeral_bytes);
    expect_int("pods", 110, r.pods);
    expect_int("all four were there",
               RESOURCES_HAS_CPU | RESOURCES_HAS_MEMORY | RESOURCES_HAS_EPHEMERAL |
                   RESOURCES_HAS_PODS,
               r.has);
    expect_int("three others", 3, r.extra_len);
    expect_str("sorted by name", "aliyun.com/gpu-mem", r.extra[0].name);
    expect_str("sorted by name", "hugepages-2Mi", r.extra[1].name);
    expect_str("sorted by name", "nvidia.com/gpu", r.extra[2].name);
    expect_int("get cpu", 1500, resources_get(&r, "cpu", &present));
    expect_true("cpu is present", present);
    expect_int("get memory", INT64_C(2) << 30, resources_get(&r, "memory", NULL));
    expect_int("get ephemeral-storage", INT64_C(1) << 30,
               resources_get(&r, "ephemeral-storage", NULL));
    expect_int("get pods", 110, resources_get(&r, "pods", NULL));
    expect_int("get nvidia.com/gpu", 2, resources_get(&r, "nvidia.com/gpu", &present));
    expect_true("nvidia.com/gpu is present", present);
    expect_int("a name that begins another", 0, resources_get(&r, "nvidia.com/gp", &present));
    expect_int("is absent", false, present);
    expect_int("a name that goes on", 0, resources_get(&r, "nvidia.com/gpux", &present));
    expect_int("is absent", false, present);
    expect_str(
        "printed",
        "cpu 1500m, memory 2Gi, ephemeral-storage 1Gi, pods 110, aliyun.com/gpu-mem 3, hugepages-2Mi 4Mi, "
        "nvidia.com/gpu 2",
        text_of(&r));
    expect_done();
}

static void zero_is_present_and_absent_is_not(void **state)
{
    (void)state;
    struct resources r = build_resources(&arena, "cpu=0,aliyun.com/gpu=0"), none = {0};
    bool present;

    expect_int("cpu 0", 0, resources_get(&r, "cpu", &present));
    expect_true("cpu 0 is present", present);
    expect_int("gpu 0", 0, resources_get(&r, "aliyun.com/gpu", &present));
    expect_true("gpu 0 is present", present);
    expect_int("memory", 0, resources_get(&r, "memory", &present));
    expect_int("memory is absent", false, present);
    expect_true("and equal to nothing", resources_equal(&r, &none));
    expect_true("in both orders", resources_equal(&none, &r));
    expect_str("and prints nothing", "", text_of(&r));
    expect_done();
}

static void a_name_set_twice_has_the_later_amount(void **state)
{
    (void)state;
    struct resources r = build_resources(&arena, "cpu=1,a/b=1,cpu=2,a/b=3");

    expect_int("cpu", 2000, r.cpu_milli);
    expect_int("a/b", 3, resources_get(&r, "a/b", NULL));
    expect_int("once", 1, r.extra_len);
    expect_done();
}

static void rounding_is_the_callers(void **state)
{
    (void)state;
    struct resources up = {0}, down = {0};

    assert_int_equal(0,
                     resources_set_text(&up, &arena, "memory", 6, "1500m", 5, QUANTITY_UP, NULL));
    assert_int_equal(
        0, resources_set_text(&down, &arena, "memory", 6, "1500m", 5, QUANTITY_DOWN, NULL));
    expect_int("a request of 1.5 bytes", 2, up.memory_bytes);
    expect_int("a capacity of 1.5 bytes", 1, down.memory_bytes);
    expect_done();
}

static void bad_entries_are_refused_with_their_name(void **state)
{
    (void)state;
    static char long_name[400];
    static const struct {
        const char *name, *text;
        enum error_code code;
        const char *message;
    } rows[] = {
        {"memory", "x", ERROR_INVALID, "resource memory: not a quantity: 'x'"},
        {"cpu", "-1", ERROR_INVALID, "resource cpu: must not be negative: '-1'"},
        {"aliyun.com/gpu-mem", "-3", ERROR_INVALID,
         "resource aliyun.com/gpu-mem: must not be negative: '-3'"},
        {"", "1", ERROR_INVALID, "resource name: must have 1 to 317 bytes, none of them NUL"},
        {long_name, "1", ERROR_INVALID,
         "resource name: must have 1 to 317 bytes, none of them NUL"},
    };

    memset(long_name, 'a', sizeof long_name);
    long_name[318] = '\0';
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct resources r = {0};
        struct error err = ERROR_INIT;
        expect_int(rows[i].message, -1,
                   resources_set_text(&r, &arena, rows[i].name, strlen(rows[i].name), rows[i].text,
                                      strlen(rows[i].text), QUANTITY_UP, &err));
        expect_str(rows[i].message, rows[i].message, err.text);
        expect_int(rows[i].message, rows[i].code, err.code);
        expect_true("nothing was set", *text_of(&r) == '\0' && r.has == 0);
    }
    struct resources r = {0};
    long_name[317] = '\0';
    expect_int("317 bytes are fine", 0,
               resources_set_text(&r, &arena, long_name, 317, "1", 1, QUANTITY_UP, NULL));
    expect_int("a NUL in the name", -1,
               resources_set_text(&r, &arena, "a\0b", 3, "1", 1, QUANTITY_UP, NULL));
    expect_done();
}

static void amounts_saturate(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text;
    } rows[] = {
        {"memory", "16Ei"}, {"cpu", "9223372036854775807"}, {"cpu", "1e30"}, {"a/b", "1e30"}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct resources up = {0}, down = {0};
        struct error err = ERROR_INIT;
        const char *name = rows[i].name, *text = rows[i].text;
        expect_int(text, 0,
                   resources_set_text(&up, &arena, name, strlen(name), text, strlen(text),
                                      QUANTITY_UP, &err));
        expect_str(text, "", err.text);
        expect_int("too large for every node", RESOURCES_TOO_LARGE, resources_get(&up, name, NULL));
        expect_int(text, 0,
                   resources_set_text(&down, &arena, name, strlen(name), text, strlen(text),
                                      QUANTITY_DOWN, NULL));
        expect_int("of a node", RESOURCES_TOO_LARGE - 1, resources_get(&down, name, NULL));
    }
    expect_done();
}

static struct resources many(unsigned n, const char *prefix)
{
    struct resources r = {0};

    for (unsigned i = n; i-- > 0;) {
        char name[64];
        (void)str_format(name, sizeof name, "%s%u", prefix, i);
        assert_int_equal(
            0, resources_set_text(&r, &arena, name, strlen(name), "1", 1, QUANTITY_UP, NULL));
    }
    return r;
}

static void there_is_a_bound_on_names(void **state)
{
    (void)state;
    struct resources full = many(RESOURCES_EXTRA_MAX, "a/"), one = build_resources(&arena, "b/0=1"),
                     cards = build_resources(&arena, "aliyun.com/gpu-mem=3,nvidia.com/gpu=3");
    struct error err = ERROR_INIT;

    expect_int("so many names", RESOURCES_EXTRA_MAX, full.extra_len);
    expect_int("one more", -1,
               resources_set_text(&full, &arena, "b/0", 3, "1", 1, QUANTITY_UP, &err));
    expect_str("one more", "resource b/0: more than 512 extended resources", err.text);
    expect_int("one more", ERROR_TOO_LARGE, err.code);
    expect_int("cards are always counted", 0,
               resources_set_text(&full, &arena, "nvidia.com/gpu", 14, "1", 1, QUANTITY_UP, &err));
    expect_true("also in sums", resources_add(&full, &cards, &arena));
    expect_int("cards", 4, resources_get(&full, "nvidia.com/gpu", NULL));
    expect_int("cards", 3, resources_get(&full, "aliyun.com/gpu-mem", NULL));
    expect_int("a name that is there", 0,
               resources_set_text(&full, &arena, "a/7", 3, "5", 1, QUANTITY_UP, &err));
    one.cpu_milli = 7;
    expect_int("adding one more", false, resources_add(&full, &one, &arena));
    expect_int("adds the others", 7, full.cpu_milli);
    expect_int("maximum with one more", false, resources_max(&full, &one, &arena));
    expect_int("without it", 0, resources_get(&full, "b/0", NULL));
    expect_true("adding the same names", resources_add(&full, &full, &arena));
    expect_int("doubles them", 10, resources_get(&full, "a/7", NULL));
    expect_done();
}

static void sums_and_maxima_take_every_name(void **state)
{
    (void)state;
    static const struct {
        const char *row, *a, *b, *sum, *max;
    } rows[] = {
        {"nothing and nothing", "", "", "", ""},
        {"nothing and something", "", "cpu=1,b/b=2", "cpu 1, b/b 2", "cpu 1, b/b 2"},
        {"something and nothing", "cpu=1,b/b=2", "", "cpu 1, b/b 2", "cpu 1, b/b 2"},
        {"the same names", "cpu=1,b/b=2", "cpu=500m,b/b=3", "cpu 1500m, b/b 5", "cpu 1, b/b 3"},
        {"other names in front and behind", "c/c=1,e/e=1", "b/b=2,d/d=2,f/f=2",
         "b/b 2, c/c 1, d/d 2, e/e 1, f/f 2", "b/b 2, c/c 1, d/d 2, e/e 1, f/f 2"},
        {"all fields", "cpu=1,memory=1,ephemeral-storage=5,pods=1",
         "cpu=2,memory=3,ephemeral-storage=1,pods=2",
         "cpu 3, memory 4, ephemeral-storage 6, pods 3",
         "cpu 2, memory 3, ephemeral-storage 5, pods 2"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct resources a = build_resources(&arena, rows[i].a),
                         b = build_resources(&arena, rows[i].b);
        struct resources sum = {0}, max = {0};
        expect_true("into nothing", resources_add(&sum, &a, &arena));
        expect_true("into nothing", resources_max(&max, &a, &arena));
        expect_true(rows[i].row, resources_add(&sum, &b, &arena));
        expect_true(rows[i].row, resources_max(&max, &b, &arena));
        expect_str(rows[i].row, rows[i].sum, text_of(&sum));
        expect_str(rows[i].row, rows[i].max, text_of(&max));
        expect_int(rows[i].row, a.has | b.has, sum.has);
        struct resources again = build_resources(&arena, rows[i].a);
        expect_true("the first list did not change", resources_equal(&a, &again));
    }
    expect_done();
}

static void sums_saturate(void **state)
{
    (void)state;
    static const struct {
        const char *row, *a, *b, *name;
        int64_t sum;
    } rows[] = {
        {"memory up to the end", "memory=9223372036854775805", "memory=1", "memory", INT64_MAX - 1},
        {"memory past the end", "memory=9223372036854775806", "memory=2", "memory", INT64_MAX},
        {"cpu past the end", "cpu=9223372036854775807m", "cpu=1m", "cpu", INT64_MAX},
        {"an extended resource up to the end", "a/b=9223372036854775805", "a/b=1", "a/b",
         INT64_MAX - 1},
        {"an extended resource past the end", "a/b=9223372036854775807", "a/b=1", "a/b", INT64_MAX},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct resources a = build_resources(&arena, rows[i].a),
                         b = build_resources(&arena, rows[i].b);
        expect_true(rows[i].row, resources_add(&a, &b, &arena));
        expect_int(rows[i].row, rows[i].sum, resources_get(&a, rows[i].name, NULL));
    }
    expect_done();
}

static void repeated_sums_of_known_names_need_no_memory(void **state)
{
    (void)state;
    struct resources total = {0}, one = build_resources(&arena, "cpu=1,a/a=1,b/b=1");

    assert_true(resources_add(&total, &one, &arena));
    size_t before = arena_bytes(&arena);
    for (int i = 0; i < 1000; i++)
        assert_true(resources_add(&total, &one, &arena));
    expect_int("a thousand times", (int64_t)before, (int64_t)arena_bytes(&arena));
    expect_int("b/b", 1001, resources_get(&total, "b/b", NULL));
    expect_done();
}

static void lists_differ_when_one_amount_does(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "",      "cpu=2,a/a=1", "cpu=1,a/a=2",       "cpu=1",
        "a/a=1", "cpu=1,b/b=1", "cpu=1,a/a=1,b/b=1", "cpu=1,a/a=1,memory=1"};
    struct resources a = build_resources(&arena, "cpu=1,a/a=1");

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct resources b = build_resources(&arena, rows[i]);
        expect_int(rows[i], false, resources_equal(&a, &b));
        expect_int(rows[i], false, resources_equal(&b, &a));
    }
    expect_done();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(each_name_has_its_unit),
        TEST(zero_is_present_and_absent_is_not),
        TEST(a_name_set_twice_has_the_later_amount),
        TEST(rounding_is_the_callers),
        TEST(bad_entries_are_refused_with_their_name),
        TEST(there_is_a_bound_on_names),
        TEST(sums_and_maxima_take_every_name),
        TEST(sums_saturate),
        TEST(amounts_saturate),
        TEST(repeated_sums_of_known_names_need_no_memory),
        TEST(lists_differ_when_one_amount_does),
    };
    return cmocka_run_group_tests_name("resources", tests, NULL, NULL);
}
