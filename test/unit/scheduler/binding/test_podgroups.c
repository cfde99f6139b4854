// SPDX-License-Identifier: Apache-2.0
/*
 * The status of PodGroups, when an attempt ends, and gangs that have fallen below their minimum.
 * The test moves time by setting back the start of an attempt.
 */
#include "scheduler/binding/podgroups.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/kube/http.h"
#include "lib/model/names.h"
#include "scheduler/cache/gangs.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/sched_loop_kit.h"

static struct sched_loop_kit k;

static int setup_keep(void **state)
{
    (void)state;
    sched_loop_kit_init(&k, &(struct sched_loop_options){0});
    return 0;
}

static int setup_evict(void **state)
{
    (void)state;
    sched_loop_kit_init(&k, &(struct sched_loop_options){.evict_stale = true});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sched_loop_kit_deinit(&k);
    return 0;
}

#define BARE PAIRS(NAME_LABEL_GANG_BARE, "g")
#define PUT(...) SEND(&k.intake, INTAKE_PODS, REFLECTOR_PUT, POD(__VA_ARGS__))

static struct pod_group *group_with(const char *phase, int32_t scheduled, int32_t running)
{
    struct pod_group *g = fixture_make_group("g", 2, false);
    g->uid = "u-g";
    g->phase = phase;
    g->scheduled = scheduled;
    g->running = running;
    g->succeeded = g->failed = 0;
    return g;
}

static void the_status_follows_the_pods(void **state)
{
    (void)state;
    RESET(&k.intake, INTAKE_NODES, NODE(.name = "n1"));
    RESET(&k.intake, INTAKE_POD_GROUPS, group_with("", -1, -1));
    sched_loop_kit_start(&k);
    sched_loop_kit_await(&k, "PATCH", "/podgroups/g/status", 1);
    expect_int("empty, it is pending", 1,
               shell_count(k.twin, "PATCH",
                           "{\"metadata\":{\"uid\":\"u-g\"},\"status\":{\"phase\":\"Pending\","
                           "\"scheduled\":0,\"running\":0,\"succeeded\":0,\"failed\":0,"
                           "\"scheduleStartTime\":null}}"));
    SEND(&k.intake, INTAKE_POD_GROUPS, REFLECTOR_PUT, group_with("Pending", 0, 0));
    PUT(.name = "a", .labels = BARE);
    sched_loop_kit_run(&k, 3 * PODGROUPS_DELAY_MS);
    expect_int("one pod changes nothing", 1, shell_count(k.twin, "PATCH", "/podgroups/"));
    PUT(.name = "b", .labels = BARE);
    sched_loop_kit_await(&k, "POST", "/binding", 2);
    PUT(.name = "a", .labels = BARE, .node = "n1");
    PUT(.name = "b", .labels = BARE, .node = "n1");
    sched_loop_kit_await(&k, "PATCH", "\"phase\":\"Scheduled\",\"scheduled\":2,\"running\":0", 1);
    PUT(.name = "a", .labels = BARE, .node = "n1", .phase = "Running");
    PUT(.name = "b", .labels = BARE, .node = "n1", .phase = "Running");
    sched_loop_kit_await(&k, "PATCH", "\"phase\":\"Running\",\"scheduled\":2,\"running\":2", 1);
    int written = shell_count(k.twin, "PATCH", "/podgroups/");
    sched_loop_poke(&k.sched);
    sched_loop_kit_run(&k, 3 * PODGROUPS_DELAY_MS);
    expect_int("sent once, until the watch shows it", written,
               shell_count(k.twin, "PATCH", "/podgroups/"));
    const struct cluster_groups *both = map_get(&k.sched.cluster.pod_groups, "d/g");
    podgroups_sent(k.sched.podgroups, both)->ms -= PODGROUPS_AGAIN_MS; /* it never did */
    sched_loop_poke(&k.sched);
    sched_loop_kit_await(&k, "PATCH", "/podgroups/", written + 1);
    expect_done();
}

static void failed_members_are_counted_until_they_are_deleted(void **state)
{
    (void)state;
    RESET(&k.intake, INTAKE_NODES, NODE(.name = "n1"));
    RESET(&k.intake, INTAKE_POD_GROUPS, group_with("Pending", 0, 0));
    sched_loop_kit_start(&k);
    SEND(&k.intake, INTAKE_REJECTED_PODS, REFLECTOR_PUT,
         POD(.name = "x", .labels = BARE, .node = "n1", .phase = "Failed"));
    sched_loop_kit_await(&k, "PATCH", "\"phase\":\"Failed\"", 1);
    expect_int("one", 1, shell_count(k.twin, "PATCH", "\"failed\":1"));
    SEND(&k.intake, INTAKE_REJECTED_PODS, REFLECTOR_DELETE,
         POD(.name = "x", .labels = BARE, .node = "n1", .phase = "Failed"));
    expect_int("deleted", 0, failures_count(&k.sched.failures, "d/g"));
    expect_done();
}

/* Two members of 3 CPUs that want a node of 4. */
static struct gang *put_too_large(void)
{
    RESET(&k.intake, INTAKE_NODES, NODE(.name = "n1", .cpu_milli = 4000));
    RESET(&k.intake, INTAKE_POD_GROUPS, group_with("Pending", 0, 0));
    sched_loop_kit_start(&k);
    PUT(.name = "a", .labels = BARE, .c = {{.cpu_milli = 3000}});
    PUT(.name = "b", .labels = BARE, .c = {{.cpu_milli = 3000}});
    sched_loop_kit_await(&k, "PATCH", "\"phase\":\"PreScheduling\"", 1);
    return gangs_find(&k.sched.cluster, "d/g");
}

static void an_attempt_ends_when_its_time_is_over(void **state)
{
    (void)state;
    struct gang *g = put_too_large();
    expect_int("the start is written", 1,
               shell_count(k.twin, "PATCH", "\"scheduleStartTime\":\"20"));
    expect_int("parked", GANG_PARKED, queue_state(&k.sched.queue, g));
    podgroups_trial(k.sched.podgroups, g)->since_ms -= 60000 - 1000;
    sched_loop_poke(&k.sched);
    sched_loop_kit_run(&k, 3 * PODGROUPS_DELAY_MS);
    expect_int("not yet", GANG_PARKED, queue_state(&k.sched.queue, g));
    podgroups_trial(k.sched.podgroups, g)->since_ms -= 1000;
    podgroups_trial(k.sched.podgroups, g)->since_ns -= (int64_t)60 * 1000000000;
    int64_t began = podgroups_trial(k.sched.podgroups, g)->since_ns;
    sched_loop_poke(&k.sched);
    sched_loop_kit_await(&k, "POST", "ScheduleTimeout", 3);
    expect_int("on the PodGroup", 1, shell_count(k.twin, "POST", "\"kind\":\"PodGroup\""));
    expect_int(
        "and on each pod, with the reason", 3,
        shell_count(
            k.twin, "POST",
            "gang d/g was not placed within 60 s, trying again: gang d/g: room for 1 of 2 pods"));
    expect_true("it is tried again", sched_loop_kit_entry(&k, g)->state == GANG_BACKOFF ||
                                         sched_loop_kit_entry(&k, g)->attempts > 1);
    expect_true("with a new start", podgroups_trial(k.sched.podgroups, g)->since_ns > began);
    expect_done();
}

static void a_quorum_that_goes_ends_the_attempt_without_a_word(void **state)
{
    (void)state;
    struct gang *g = put_too_large();
    podgroups_trial(k.sched.podgroups, g)->since_ms -= 60000;
    SEND(&k.intake, INTAKE_PODS, REFLECTOR_DELETE, POD(.name = "b", .labels = BARE));
    sched_loop_poke(&k.sched);
    sched_loop_kit_run(&k, 3 * PODGROUPS_DELAY_MS);
    expect_int("no attempt", 0, podgroups_trial(k.sched.podgroups, g)->since_ms);
    expect_int("no Event", 0, shell_count(k.twin, "POST", "ScheduleTimeout"));
    expect_done();
}

static void the_next_leader_goes_on_with_the_clock_of_the_last(void **state)
{
    (void)state;
    struct pod_group *group = group_with("PreScheduling", 0, 0);
    int64_t began_ns = (clock_wall_ns() / 1000000000 - 30) * 1000000000;
    group->schedule_start_ns = began_ns;
    RESET(&k.intake, INTAKE_NODES, NODE(.name = "n1", .cpu_milli = 4000));
    RESET(&k.intake, INTAKE_POD_GROUPS, group);
    RESET(&k.intake, INTAKE_PODS, POD(.name = "a", .labels = BARE, .c = {{.cpu_milli = 3000}}),
          POD(.name = "b", .labels = BARE, .c = {{.cpu_milli = 3000}}));
    sched_loop_kit_start(&k);
    sched_loop_kit_run(&k, 3 * PODGROUPS_DELAY_MS);
    struct gang *g = gangs_find(&k.sched.cluster, "d/g");
    expect_int("the start is that of the API server", began_ns,
               podgroups_trial(k.sched.podgroups, g)->since_ns);
    int64_t age_ms = clock_mono_ms() - podgroups_trial(k.sched.podgroups, g)->since_ms;
    expect_true("half of the time is over", age_ms >= 29000 && age_ms < 60000);
    expect_int("so nothing is written", 0, shell_count(k.twin, "PATCH", "/podgroups/"));
    expect_done();
}

/* One member runs; the other does not fit, or is a pod of the test's. */
static struct gang *put_broken_with(struct pod *other)
{
    RESET(&k.intake, INTAKE_NODES, NODE(.name = "n1", .cpu_milli = 4000));
    RESET(&k.intake, INTAKE_POD_GROUPS, group_with("Scheduling", 1, 0));
    SEND(&k.intake, INTAKE_PODS, REFLECTOR_PUT,
         POD(.name = "a", .labels = BARE, .node = "n1", .c = {{.cpu_milli = 3000}}));
    if (other != NULL)
        SEND(&k.intake, INTAKE_PODS, REFLECTOR_PUT, other);
    sched_loop_kit_start(&k);
    sched_loop_kit_run(&k, 3 * PODGROUPS_DELAY_MS);
    struct gang *g = gangs_find(&k.sched.cluster, "d/g");
    expect_true("it is seen", podgroups_trial(k.sched.podgroups, g)->broken_ms > 0);
    podgroups_trial(k.sched.podgroups, g)->broken_ms -= 60000;
    sched_loop_poke(&k.sched);
    return g;
}

static struct gang *put_broken(void)
{
    return put_broken_with(POD(.name = "b", .labels = BARE, .c = {{.cpu_milli = 3000}}));
}

static void a_stale_gang_is_kept(void **state)
{
    (void)state;
    struct gang *g = put_broken();
    sched_loop_kit_await(&k, "POST", "\"reason\":\"StaleGang\"", 2);
    expect_int(
        "it says so", 2,
        shell_count(
            k.twin, "POST",
            "gang d/g has 1 of 2 pods on nodes, too few for 60 s: no place for 1; those on nodes "
            "stay (--stale-gang=keep)"));
    expect_true("once", podgroups_trial(k.sched.podgroups, g)->told_broken);
    expect_int("nobody is sent away", 0, shell_count(k.twin, "DELETE", NULL));
    expect_done();
}

static void a_stale_gang_whose_other_pods_do_not_exist_says_so(void **state)
{
    const struct {
        const char *sentence;
        struct pod *other;
        const char *says;
    } rows[] = {
        {"scaled in", NULL, "for 60 s: 1 does not exist; those on nodes stay"},
        {"gated", POD(.name = "b", .labels = BARE, .gated = true),
         "for 60 s: 1 has scheduling gates;"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (i > 0) {
            (void)teardown(state);
            (void)setup_keep(state);
        }
        (void)put_broken_with(rows[i].other);
        sched_loop_kit_await(&k, "POST", "\"reason\":\"StaleGang\"", 2);
        expect_int(rows[i].sentence, 2, shell_count(k.twin, "POST", rows[i].says));
        expect_int("not that there is no room", 0, shell_count(k.twin, "POST", "no place for"));
    }
    expect_done();
}

static void a_stale_gang_is_sent_away_when_asked_for(void **state)
{
    (void)state;
    (void)put_broken();
    sched_loop_kit_await(&k, "DELETE", "/namespaces/d/pods/a", 1);
    expect_int("only that very pod", 1, shell_count(k.twin, "DELETE", "\"uid\":\"u-a\""));
    expect_int("which is told why", 1, shell_count(k.twin, "PATCH", "\"reason\":\"StaleGang\""));
    expect_int("the one that waits stays", 0, shell_count(k.twin, "DELETE", "/pods/b"));
    expect_done();
}

static void a_gang_that_is_about_to_end_is_not_stale(void **state)
{
    (void)state;
    RESET(&k.intake, INTAKE_NODES, NODE(.name = "n1"));
    RESET(&k.intake, INTAKE_POD_GROUPS, group_with("Running", 2, 2));
    RESET(&k.intake, INTAKE_PODS,
          POD(.name = "a", .labels = BARE, .node = "n1", .phase = "Succeeded"),
          POD(.name = "b", .labels = BARE, .node = "n1", .phase = "Running"));
    sched_loop_kit_start(&k);
    sched_loop_kit_run(&k, 2 * PODGROUPS_DELAY_MS);
    SEND(&k.intake, INTAKE_PODS, REFLECTOR_DELETE, POD(.name = "a", .labels = BARE));
    sched_loop_kit_run(&k, 3 * PODGROUPS_DELAY_MS);
    expect_int("it is below its quorum, and that is fine", 0,
               podgroups_trial(k.sched.podgroups, gangs_find(&k.sched.cluster, "d/g"))->broken_ms);
    expect_done();
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    kube_http_global_init();
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup_keep, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_status_follows_the_pods),
        TEST(failed_members_are_counted_until_they_are_deleted),
        TEST(an_attempt_ends_when_its_time_is_over),
        TEST(a_quorum_that_goes_ends_the_attempt_without_a_word),
        TEST(the_next_leader_goes_on_with_the_clock_of_the_last),
        TEST(a_stale_gang_is_kept),
        TEST(a_stale_gang_whose_other_pods_do_not_exist_says_so),
        cmocka_unit_test_setup_teardown(a_stale_gang_is_sent_away_when_asked_for, setup_evict,
                                        teardown),
        TEST(a_gang_that_is_about_to_end_is_not_stale),
    };
#undef TEST
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kube_http_global_cleanup();
    return failed;
}
