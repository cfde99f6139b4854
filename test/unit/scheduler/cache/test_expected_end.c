// SPDX-License-Identifier: Apache-2.0
/* When pods are expected to be gone: what they say, what earlier ones took, their age. */
#include "scheduler/cache/expected_end.h"

#include "lib/model/names.h"
#include "scheduler/cache/cluster.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/fixture.h"

enum { S = 1000, MINUTE = 60 * S };

/* 2026-11-16T09:00:00Z */
#define NOW_MS INT64_C(1794819600000)

static struct cluster c;

static int setup(void **state)
{
    (void)state;
    cluster_init(&c, NAME_SCHEDULER);
    (void)cluster_put_node(&c, NODE(.name = "n1", .cpu_milli = 8000));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cluster_deinit(&c);
    return 0;
}

static struct cluster_pod *put(const struct fixture_pod *f, int64_t started_ms, int64_t deadline_s)
{
    struct pod *p = fixture_make_pod(f);
    p->started_ns = started_ms * 1000000;
    p->active_deadline_s = deadline_s;
    (void)cluster_put_pod(&c, p, NULL);
    return cluster_find_pod(&c, "d/p");
}

static void gone(void)
{
    (void)cluster_remove_pod(&c, "d/p", NULL, NULL);
}

static void when_pods_end(void **state)
{
    (void)state;
    static const struct row {
        const char *name, *owner;
        int64_t age_ms, deadline_s, left_ms;
        bool terminating;
    } rows[] = {
        {"its deadline says", "Job", 10 * MINUTE, 900, 5 * MINUTE, false},
        {"past its deadline it is being ended", "Job", 20 * MINUTE, 900, 0, false},
        {"of unknown run time as long again", "Job", 4 * MINUTE, 0, 4 * MINUTE, false},
        {"a young one a minute", "Job", S, 0, MINUTE, false},
        {"what has run for hours will run for hours", "Job", 200 * MINUTE, 0, 200 * MINUTE, false},
        {"on its way out", "Job", 200 * MINUTE, 0, 0, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cluster_pod *cp = put(
            &(struct fixture_pod){.name = "p", .node = "n1", .terminating = rows[i].terminating},
            NOW_MS - rows[i].age_ms, rows[i].deadline_s);
        expect_int(rows[i].name, NOW_MS + rows[i].left_ms, expected_end_of(&c, cp, NOW_MS));
        cp->pod->owner_kind = "DaemonSet";
        expect_true("a DaemonSet's never ends", expected_end_of(&c, cp, NOW_MS) == INT64_MAX);
        gone();
    }
    expect_done();
}

/* The owner's earlier pods tell. */
static struct cluster_pod *job_pod(const char *owner, const char *image, int64_t started_ms)
{
    struct pod *p = fixture_make_pod(&(struct fixture_pod){
        .name = "p", .node = "n1", .phase = "Running", .c = {{.cpu_milli = 100}}});
    p->owner_kind = "Job";
    p->owner_name = owner;
    p->containers[0].image = image;
    p->started_ns = started_ms * 1000000;
    (void)cluster_put_pod(&c, p, NULL);
    return cluster_find_pod(&c, "d/p");
}

static void run_times_are_learned(void **state)
{
    (void)state;
    reservations_set_now(&c, NOW_MS);
    struct cluster_pod *cp = job_pod("nightly-29387400", "trainer:v1", NOW_MS - 40 * MINUTE);
    expect_true("nothing is known", expected_end_runtime(&c, cp) == INT64_MAX);
    gone();
    static const struct row {
        const char *name, *owner, *image;
        int64_t run_ms;
    } rows[] = {
        {"the CronJob's next Job", "nightly-29388840", "trainer:v1", 40 * MINUTE},
        {"another image", "nightly-29388840", "trainer:v2", INT64_MAX},
        {"another owner", "weekly-29388840", "trainer:v1", INT64_MAX},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cp = job_pod(rows[i].owner, rows[i].image, NOW_MS - 10 * MINUTE);
        cp->evicting = true; /* what is evicted teaches nothing */
        expect_int(rows[i].name, rows[i].run_ms, expected_end_runtime(&c, cp));
        gone();
    }
    cp = job_pod("nightly-1", "trainer:v1", NOW_MS - 10 * MINUTE);
    expect_int("it ends when the others did", NOW_MS + 30 * MINUTE,
               expected_end_of(&c, cp, NOW_MS));
    expect_int("one that outlives them runs as long again", NOW_MS + 110 * MINUTE,
               expected_end_of(&c, cp, NOW_MS + 50 * MINUTE));
    cp->pod->active_deadline_s = 3600;
    expect_int("its own deadline counts first", NOW_MS + 50 * MINUTE,
               expected_end_of(&c, cp, NOW_MS));
    expect_done();
}

/* Placed by us, and confirmed by the API server before the kubelet has started it. */
static void the_end_does_not_jump_back(void **state)
{
    (void)state;
    struct cluster_pod *cp =
        put(&(struct fixture_pod){.name = "p", .c = {{.cpu_milli = 100}}}, 0, 900);
    struct grant none = {0};
    (void)cluster_assume(&c, cp, cluster_find_node(&c, "n1"), &none);
    cp->grant.assume_time_ns = NOW_MS * 1000000;
    int64_t then_ms = NOW_MS + 10 * MINUTE;
    expect_int("15 minutes from when it was placed", NOW_MS + 15 * MINUTE,
               expected_end_of(&c, cp, then_ms));
    cp = put(&(struct fixture_pod){.name = "p", .node = "n1", .c = {{.cpu_milli = 100}}}, 0, 900);
    expect_int("also when it is confirmed", NOW_MS + 15 * MINUTE, expected_end_of(&c, cp, then_ms));
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(when_pods_end, setup, teardown),
        cmocka_unit_test_setup_teardown(run_times_are_learned, setup, teardown),
        cmocka_unit_test_setup_teardown(the_end_does_not_jump_back, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
