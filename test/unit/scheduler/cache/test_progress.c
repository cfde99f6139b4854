// SPDX-License-Identifier: Apache-2.0
#include "scheduler/model/failures.h"
#include "scheduler/cache/progress.h"

#include <string.h>

#include "lib/model/names.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/cache/gangs.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/fixture.h"

/* A letter for each pod: w waits, a is assumed, b bound, r runs, s has succeeded, f failed, t runs
 * and is terminating, g is gated. */
static void put_pods(struct cluster *c, struct failures *f, const char *pods)
{
    static const char *const names[] = {"p0", "p1", "p2", "p3", "p4", "p5"};
    const char *const *labels = PAIRS(NAME_LABEL_GANG_BARE, "g");
    for (size_t i = 0; pods[i] != '\0'; i++) {
        char is = pods[i];
        const char *phase = strchr("rt", is) != NULL ? "Running"
                            : is == 's'              ? "Succeeded"
                            : is == 'f'              ? "Failed"
                                                     : "Pending";
        struct pod *p = POD(.name = names[i], .labels = labels, .phase = phase,
                            .node = strchr("wag", is) != NULL ? NULL : "n1",
                            .terminating = is == 't', .gated = is == 'g');
        if (is == 'f') {
            failures_note(f, p);
            pod_free(p);
            continue;
        }
        (void)cluster_put_pod(c, p, NULL);
        if (is == 'a')
            (void)cluster_assume(c, cluster_find_pod(c, p->key), cluster_find_node(c, "n1"),
                                 &(struct grant){0});
    }
}

static void the_phase_is_that_of_the_pods(void **state)
{
    (void)state;
    static const struct row {
        const char *sentence, *before, *pods, *phase;
        int32_t scheduled, running, succeeded, failed;
    } rows[] = {
        {"a group without pods", "", "", "Pending", 0, 0, 0, 0},
        {"one is missing", "", "ww", "Pending", 0, 0, 0, 0},
        {"a gated one is not there", "", "wwg", "Pending", 0, 0, 0, 0},
        {"enough exist", "Pending", "www", "PreScheduling", 0, 0, 0, 0},
        {"what we assume is not said", "PreScheduling", "aaa", "PreScheduling", 0, 0, 0, 0},
        {"the first is bound", "PreScheduling", "baa", "Scheduling", 1, 0, 0, 0},
        {"one of three is left", "Scheduling", "bbw", "Scheduling", 2, 0, 0, 0},
        {"the quorum is bound", "Scheduling", "bbb", "Scheduled", 3, 0, 0, 0},
        {"beyond it one waits", "Scheduling", "bbbw", "Scheduled", 3, 0, 0, 0},
        {"two of three run", "Scheduled", "rrb", "Scheduled", 3, 2, 0, 0},
        {"all run", "Scheduled", "rrr", "Running", 3, 3, 0, 0},
        {"one has ended", "Running", "rrs", "Running", 3, 2, 1, 0},
        {"all have ended", "Running", "sss", "Finished", 3, 0, 3, 0},
        {"a fourth goes on", "Running", "sssr", "Running", 4, 1, 3, 0},
        {"a fourth waits", "Running", "sssw", "Running", 3, 0, 3, 0},
        {"one on its way out counts for nothing", "Running", "rrt", "Pending", 2, 2, 0, 0},
        {"one has failed", "Running", "rrf", "Failed", 2, 2, 0, 1},
        {"one has failed and is replaced", "Failed", "rrfw", "Scheduling", 2, 2, 0, 1},
        {"the replacement runs", "Scheduling", "rrfr", "Running", 3, 3, 0, 1},
        {"nothing is left of a finished one", "Finished", "", "Finished", 0, 0, 0, 0},
        {"nothing is left of a failed one", "Failed", "", "Failed", 0, 0, 0, 0},
        {"nothing is left of a running one", "Running", "", "Pending", 0, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *r = &rows[i];
        struct cluster c;
        struct failures f;
        cluster_init(&c, NAME_SCHEDULER);
        failures_init(&f);
        (void)cluster_put_node(&c, NODE(.name = "n1"));
        struct pod_group *group = fixture_make_group("g", 3, false);
        group->phase = r->before;
        put_pods(&c, &f, r->pods);
        struct progress p;
        progress_of(group, gangs_find(&c, "d/g"), failures_count(&f, "d/g"), &p);
        expect_str(r->sentence, r->phase, p.phase);
        expect_int(r->sentence, r->scheduled, p.scheduled);
        expect_int(r->sentence, r->running, p.running);
        expect_int(r->sentence, r->succeeded, p.succeeded);
        expect_int(r->sentence, r->failed, p.failed);
        pod_group_free(group);
        failures_deinit(&f);
        cluster_deinit(&c);
    }
    expect_done();
}

static void when_the_attempt_began(void **state)
{
    (void)state;
    enum { S = 1000000000 };
    static const struct row {
        const char *sentence, *phase;
        bool pods;
        int64_t said_s, since_s, start_s; /* by the PodGroup, by us, and what is to be said */
    } rows[] = {
        {"no pods, no attempt", "Pending", false, 0, 0, 0},
        {"not enough pods", "Pending", true, 0, 0, 0},
        {"not enough any more", "Pending", true, 50, 50, 0},
        {"enough: it begins", "PreScheduling", true, 0, 90, 90},
        {"it goes on", "PreScheduling", true, 90, 90, 90},
        {"the next one", "PreScheduling", true, 30, 90, 90},
        {"by another leader, who had begun", "PreScheduling", true, 50, 0, 50},
        {"the first is bound", "Scheduling", true, 90, 90, 90},
        {"all are bound", "Scheduled", true, 90, 90, 90},
        {"all were bound before anybody looked", "Scheduled", true, 0, 0, 100},
        {"bound, and another leader knows since when", "Scheduled", true, 50, 0, 50},
        {"they run", "Running", true, 90, 90, 90},
        {"they have succeeded", "Finished", true, 90, 90, 90},
        {"they have succeeded and are gone", "Finished", false, 90, 0, 90},
        {"one has failed after all were placed", "Failed", true, 90, 90, 90},
        {"one has failed before all were there", "Failed", true, 0, 0, 0},
        {"they have failed and are gone", "Failed", false, 90, 0, 90},
        {"a replacement waits: the attempt that succeeded", "Scheduling", true, 90, 90, 90},
    };
    struct pod_group *group = fixture_make_group("g", 3, false);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *r = &rows[i];
        group->schedule_start_ns = r->said_s * S;
        expect_int(
            r->sentence, r->start_s * S,
            progress_start_ns(group, r->phase, r->pods, r->since_s * S, (int64_t)100 * S + S / 2));
    }
    pod_group_free(group);
    expect_done();
}

static void what_is_written_need_not_be_written(void **state)
{
    (void)state;
    struct pod_group *group = fixture_make_group("g", 3, false);
    struct progress p = {
        .phase = "Running", .scheduled = 4, .running = 3, .succeeded = 1, .schedule_start_ns = 7};
    expect_true("a new one has nothing", !progress_is_written(&p, group));
    group->phase = "Running";
    group->scheduled = 4;
    group->running = 3;
    group->succeeded = 1;
    group->schedule_start_ns = 7;
    expect_true("a count that is not there", !progress_is_written(&p, group));
    group->failed = 0;
    expect_true("all is there", progress_is_written(&p, group));
    uint64_t digest = progress_digest(&p, group);
    group->phase = "Scheduled";
    expect_true("what is there now does not matter", digest == progress_digest(&p, group));
    p.running = 2;
    expect_true("a count does", digest != progress_digest(&p, group));
    p.running = 3;
    group->uid = "another";
    expect_true("and which object it is", digest != progress_digest(&p, group));
    pod_group_free(group);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_phase_is_that_of_the_pods),
        cmocka_unit_test(when_the_attempt_began),
        cmocka_unit_test(what_is_written_need_not_be_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
