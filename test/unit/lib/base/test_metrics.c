// SPDX-License-Identifier: Apache-2.0
#include "lib/base/metrics.h"

#include <pthread.h>
#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/base/num.h"
#include "test/unit/lib/base/expect.h"

static int end(void **state)
{
    (void)state;
    metrics_reset();
    return 0;
}

/* What metrics_render says about our own metrics. */
static void render_own(struct strbuf *out)
{
    metrics_render(out);
    char *process = strstr(out->ptr, "# HELP process_");
    assert_non_null(process);
    *process = '\0';
    out->len = (size_t)(process - out->ptr);
}

static void counters_and_gauges(void **state)
{
    (void)state;
    static struct metric plain = {.kind = METRIC_COUNTER, .name = "c_total", .help = "Things."};
    static struct metric labelled = {.kind = METRIC_COUNTER,
                                     .name = "l_total",
                                     .help = "a \\ and\na line \"q\"",
                                     .label = "result"};
    static struct metric gauge = {.kind = METRIC_GAUGE, .name = "g", .help = "Now."};
    static struct metric time = {
        .kind = METRIC_COUNTER, .name = "t_seconds_total", .help = "Time.", .seconds = true};
    metrics_register(&plain);
    metrics_register(&labelled);
    metrics_register(&gauge);
    metrics_register(&time);
    metrics_register(&plain); /* again: nothing */
    metrics_inc(&labelled, "bound");
    metrics_inc(&labelled, "bound");
    metrics_add(&labelled, "failed", 40);
    metrics_add(&labelled, "failed", -1);
    metrics_add(&time, NULL, 1250000);
    metrics_set(&gauge, NULL, 7);
    metrics_add(&gauge, NULL, -10);
    metrics_observe_us(&gauge, NULL, 5); /* not a histogram: nothing */
    AUTO_STRBUF out = {0};
    render_own(&out);
    expect_str("the text",
               "# HELP c_total Things.\n# TYPE c_total counter\nc_total 0\n"
               "# HELP l_total a \\\\ and\\na line \"q\"\n# TYPE l_total counter\n"
               "l_total{result=\"bound\"} 2\nl_total{result=\"failed\"} 40\n"
               "# HELP g Now.\n# TYPE g gauge\ng -3\n"
               "# HELP t_seconds_total Time.\n# TYPE t_seconds_total counter\n"
               "t_seconds_total 1.25\n",
               strbuf_str(&out));
    expect_int("value of a label", 40, metrics_value(&labelled, "failed"));
    expect_int("value never used", 0, metrics_value(&labelled, "never"));
    expect_int("value without a label", -3, metrics_value(&gauge, NULL));
    expect_done();
}

static int64_t answer(void *arg)
{
    return *(int64_t *)arg;
}

static void a_gauge_can_be_asked(void **state)
{
    (void)state;
    static int64_t n = 41;
    static struct metric gauge = {.kind = METRIC_GAUGE, .name = "asked", .read = answer, .arg = &n};
    metrics_register(&gauge);
    n++;
    AUTO_STRBUF out = {0};
    render_own(&out);
    expect_str("the text", "# HELP asked \n# TYPE asked gauge\nasked 42\n", strbuf_str(&out));
    expect_int("value", 42, metrics_value(&gauge, NULL));
    expect_done();
}

static void collect_two(void *arg, struct metric_samples *out)
{
    const int *pods = arg;
    for (int i = 0; i < *pods; i++)
        metrics_sample(
            out, (const struct metric_label[]){{"ns", "a"}, {"pod", i == 0 ? "\"x\"\n" : "y"}}, 2,
            10 + i);
    metrics_sample(out, NULL, 0, -1);
}

static void series_that_come_and_go_are_collected(void **state)
{
    (void)state;
    static int pods = 2;
    static struct metric m = {
        .kind = METRIC_GAUGE, .name = "used", .help = "Now.", .collect = collect_two, .arg = &pods};
    metrics_register(&m);
    AUTO_STRBUF out = {0};
    render_own(&out);
    expect_str("all labels of each series, as text",
               "# HELP used Now.\n# TYPE used gauge\n"
               "used{ns=\"a\",pod=\"\\\"x\\\"?\"} 10\nused{ns=\"a\",pod=\"y\"} 11\nused -1\n",
               strbuf_str(&out));
    pods = 0;
    strbuf_reset(&out);
    render_own(&out);
    expect_str("those that are gone are not shown",
               "# HELP used Now.\n# TYPE used gauge\nused -1\n", strbuf_str(&out));
    expect_done();
}

static void histograms_are_cumulative(void **state)
{
    (void)state;
    static const int64_t bounds[] = {1, 1500, 2000000, 0};
    static struct metric h = {.kind = METRIC_HISTOGRAM,
                              .name = "h_seconds",
                              .help = "H.",
                              .bounds_us = bounds,
                              .label = "verb"};
    metrics_register(&h);
    static const int64_t observed[] = {-5, 0, 1, 2, 1500, 1501, 2000000, 2000001, 10000000};
    for (size_t i = 0; i < sizeof observed / sizeof *observed; i++)
        metrics_observe_us(&h, "get", observed[i]);
    metrics_inc(&h, "get");     /* nothing */
    metrics_set(&h, "get", 99); /* nothing */
    AUTO_STRBUF out = {0};
    render_own(&out);
    expect_str("the text, a bound belongs to its bucket",
               "# HELP h_seconds H.\n# TYPE h_seconds histogram\n"
               "h_seconds_bucket{verb=\"get\",le=\"0.000001\"} 3\n"
               "h_seconds_bucket{verb=\"get\",le=\"0.0015\"} 5\n"
               "h_seconds_bucket{verb=\"get\",le=\"2\"} 7\n"
               "h_seconds_bucket{verb=\"get\",le=\"+Inf\"} 9\n"
               "h_seconds_sum{verb=\"get\"} 14.003005\n"
               "h_seconds_count{verb=\"get\"} 9\n",
               strbuf_str(&out));
    expect_int("value is the number of observations", 9, metrics_value(&h, "get"));
    expect_done();
}

static void the_default_buckets_go_from_100_us_to_30_s(void **state)
{
    (void)state;
    static struct metric h = {.kind = METRIC_HISTOGRAM, .name = "d", .help = "D."};
    metrics_register(&h);
    metrics_observe_us(&h, NULL, 100);
    metrics_observe_us(&h, NULL, 30000000);
    metrics_observe_us(&h, NULL, 30000001);
    AUTO_STRBUF out = {0};
    render_own(&out);
    static const char *const lines[] = {
        "\nd_bucket{le=\"0.0001\"} 1\n", "\nd_bucket{le=\"0.0025\"} 1\n",
        "\nd_bucket{le=\"30\"} 2\n",     "\nd_bucket{le=\"+Inf\"} 3\n",
        "\nd_sum 60.000101\n",           "\nd_count 3\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (strstr(out.ptr, lines[i]) == NULL)
            expect_str("has the line", lines[i], out.ptr);
    expect_done();
}

static void label_values_are_made_printable(void **state)
{
    (void)state;
    char long63[METRIC_LABEL_SIZE], long64[METRIC_LABEL_SIZE + 1],
        cut_umlaut[METRIC_LABEL_SIZE + 8] = "";
    memset(long63, 'x', sizeof long63 - 1);
    long63[sizeof long63 - 1] = '\0';
    memset(long64, 'x', sizeof long64 - 1);
    long64[sizeof long64 - 1] = '\0';
    memset(cut_umlaut, 'y', METRIC_LABEL_SIZE - 2);
    memcpy(cut_umlaut + METRIC_LABEL_SIZE - 2, "\xc3\xbc", 3);
    char ys[METRIC_LABEL_SIZE];
    str_format(ys, sizeof ys, "%.*s", METRIC_LABEL_SIZE - 2, cut_umlaut);
    const struct {
        const char *row, *value, *stored;
    } rows[] = {
        {"plain", "ok", "ok"},
        {"quote, backslash", "a\"b\\c", "a\\\"b\\\\c"},
        {"a newline and a bell", "a\nb\a", "a?b?"},
        {"delete", "\x7f", "?"},
        {"UTF-8", "\xc3\xbc", "\xc3\xbc"},
        {"no UTF-8", "a\xff\xc3", "a??"},
        {"nothing", "", ""},
        {"no string", NULL, ""},
        {"the longest", long63, long63},
        {"one byte more is cut", long64, long63},
        {"a character is not cut in half", cut_umlaut, ys},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct metric m = {.kind = METRIC_COUNTER, .name = "m", .label = "l"};
        metrics_register(&m);
        metrics_inc(&m, rows[i].value);
        metrics_inc(&m, rows[i].value);
        AUTO_STRBUF out = {0}, expected = {0};
        render_own(&out);
        strbuf_addf(&expected, "# HELP m \n# TYPE m counter\nm{l=\"%s\"} 2\n", rows[i].stored);
        expect_str(rows[i].row, strbuf_str(&expected), strbuf_str(&out));
        expect_int(rows[i].row, 2, metrics_value(&m, rows[i].value));
        metrics_reset();
    }
    expect_done();
}

static void the_labels_after_the_last_are_counted_as_other(void **state)
{
    (void)state;
    static struct metric m = {.kind = METRIC_COUNTER, .name = "m", .label = "l"};
    metrics_register(&m);
    for (int i = 0; i < METRIC_SERIES + 10; i++) {
        char value[16];
        str_format(value, sizeof value, "v%d", i);
        metrics_inc(&m, value);
        metrics_inc(&m, value);
    }
    expect_int("the first has its own", 2, metrics_value(&m, "v0"));
    expect_int("so has the last that fits", 2, metrics_value(&m, "v63"));
    expect_int("the next has none", 0, metrics_value(&m, "v64"));
    expect_int("they are together", 20, metrics_value(&m, "other"));
    expect_done();
}

static void other_may_be_a_value_of_its_own(void **state)
{
    (void)state;
    static struct metric m = {.kind = METRIC_COUNTER, .name = "m", .label = "l"};
    metrics_register(&m);
    metrics_inc(&m, "other");
    for (int i = 0; i < METRIC_SERIES + 10; i++) {
        char value[16];
        str_format(value, sizeof value, "v%d", i);
        metrics_inc(&m, value);
    }
    expect_int("counted with those that have no room", 12, metrics_value(&m, "other"));
    AUTO_STRBUF out = {0};
    render_own(&out);
    const char *first = strstr(out.ptr, "{l=\"other\"}");
    expect_true("it is there", first != NULL);
    expect_true("once: a scrape with the same series twice is refused",
                first != NULL && strstr(first + 1, "{l=\"other\"}") == NULL);
    expect_done();
}

static void the_process_is_described(void **state)
{
    (void)state;
    AUTO_STRBUF out = {0};
    metrics_render(&out);
    static const char *const names[] = {"process_cpu_seconds_total", "process_virtual_memory_bytes",
                                        "process_resident_memory_bytes", "process_open_fds",
                                        "process_max_fds"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        AUTO_STRBUF line = {0};
        strbuf_addf(&line, "\n%s ", names[i]);
        const char *at = strstr(out.ptr, strbuf_str(&line));
        if (at == NULL) {
            expect_str(names[i], "a line", NULL);
            continue;
        }
        at += line.len;
        int64_t value = -1;
        expect_int(names[i], 0, num_parse(at, strspn(at, "0123456789"), &value, NULL));
        expect_true(names[i], value >= (i == 0 ? 0 : 3));
    }
    const char *start = strstr(out.ptr, "\nprocess_start_time_seconds ");
    assert_non_null(start);
    start += strlen("\nprocess_start_time_seconds ");
    int64_t seconds = 0;
    expect_int("start time", 0, num_parse(start, strspn(start, "0123456789"), &seconds, NULL));
    int64_t age = clock_wall_ns() / 1000000000 - seconds;
    expect_true("it began not long ago", age >= -1 && age < 3600);
    AUTO_STRBUF again = {0};
    metrics_render(&again);
    const char *second = strstr(again.ptr, "\nprocess_start_time_seconds ");
    assert_non_null(second);
    expect_true("the same in each scrape",
                strcmp(second, start - strlen("\nprocess_start_time_seconds ")) == 0);
    expect_done();
}

enum { THREADS = 4, ROUNDS = 20000 };
static struct metric shared = {.kind = METRIC_COUNTER, .name = "shared_total", .label = "l"};
static struct metric shared_h = {.kind = METRIC_HISTOGRAM, .name = "shared_seconds", .label = "l"};

static void *count(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        char value[8];
        str_format(value, sizeof value, "%d", i % 100); /* more than fit */
        metrics_inc(&shared, value);
        metrics_observe_us(&shared_h, value, i);
    }
    return NULL;
}

static void threads_lose_no_count(void **state)
{
    (void)state;
    metrics_register(&shared);
    metrics_register(&shared_h);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(0, pthread_create(&threads[i], NULL, count, NULL));
    for (int i = 0; i < 20; i++) { /* scrapes at the same time */
        AUTO_STRBUF out = {0};
        metrics_render(&out);
        expect_true("a scrape", out.len > 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    int64_t counted = metrics_value(&shared, "other"), observed = metrics_value(&shared_h, "other");
    for (int i = 0; i < 100; i++) {
        char value[8];
        str_format(value, sizeof value, "%d", i);
        counted += metrics_value(&shared, value);
        observed += metrics_value(&shared_h, value);
    }
    expect_int("counter", THREADS * ROUNDS, counted);
    expect_int("histogram", THREADS * ROUNDS, observed);
    expect_done();
}

static struct metric twin = {.kind = METRIC_COUNTER, .name = "twin"};
static struct metric other_twin = {.kind = METRIC_COUNTER, .name = "twin"};

static void register_twins(void)
{
    metrics_register(&twin);
    if (freopen("/dev/null", "w", stderr) == NULL)
        return;
    metrics_register(&other_twin);
}

static void two_metrics_of_one_name_are_a_mistake(void **state)
{
    (void)state;
    expect_abort("the same name twice", register_twins);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(counters_and_gauges, end),
        cmocka_unit_test_teardown(a_gauge_can_be_asked, end),
        cmocka_unit_test_teardown(series_that_come_and_go_are_collected, end),
        cmocka_unit_test_teardown(histograms_are_cumulative, end),
        cmocka_unit_test_teardown(the_default_buckets_go_from_100_us_to_30_s, end),
        cmocka_unit_test_teardown(label_values_are_made_printable, end),
        cmocka_unit_test_teardown(the_labels_after_the_last_are_counted_as_other, end),
        cmocka_unit_test_teardown(other_may_be_a_value_of_its_own, end),
        cmocka_unit_test_teardown(the_process_is_described, end),
        cmocka_unit_test_teardown(threads_lose_no_count, end),
        cmocka_unit_test_teardown(two_metrics_of_one_name_are_a_mistake, end),
    };
    return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
