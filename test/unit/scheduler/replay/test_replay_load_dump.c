// SPDX-License-Identifier: Apache-2.0
/*
 * The waiting gangs and reservations of a dump, read back: the same bytes again, and the same
 * decisions.
 */
#include "scheduler/replay/replay_load_dump.h"

#include "lib/model/names.h"
#include "scheduler/dump/dump.h"
#include "scheduler/framework/pipeline.h"
#include "scheduler/replay/replay_run.h"
#include "scheduler/cycle/reservation.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/fixture.h"

enum { S = 1000, MINUTE = 60 * S };
#define NOW_MS INT64_C(1794819600000) /* 2026-11-16T09:00:00Z */

/* A cluster that a dump was loaded into. */
struct copy {
    struct cluster cluster;
    struct replay_run run;
    struct replay_load load;
    struct strbuf warnings;
};

static void note(void *arg, const char *text)
{
    strbuf_addf(arg, "%s\n", text);
}

static void copy_init(struct copy *y, const char *text)
{
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    *y = (struct copy){0};
    cluster_init(&y->cluster, NAME_SCHEDULER);
    replay_run_init(&y->run, &y->cluster);
    replay_load_init(&y->load, &y->cluster, &y->run.hooks);
    y->load.warn = note;
    y->load.arg = &y->warnings;
    if (json_parse(&doc, text, strlen(text), &err) < 0)
        fail_msg("not JSON: %s: %s", err.text, text);
    replay_load_object(&y->load, json_root(doc), "dump");
    replay_load_finish(&y->load);
}

static void copy_deinit(struct copy *y)
{
    strbuf_deinit(&y->warnings);
    replay_run_deinit(&y->run);
    cluster_deinit(&y->cluster);
    replay_load_deinit(&y->load);
}

static struct cluster_pod *put(struct cluster *c, const struct fixture_pod *f)
{
    struct pod *p = fixture_make_pod(f);
    const char *key = p->key;
    (void)cluster_put_pod(c, p, NULL);
    return cluster_find_pod(c, key);
}
#define PUT(c, ...) put(c, &(struct fixture_pod){__VA_ARGS__})
#define MEMBER(gang, min) .labels = PAIRS(NAME_LABEL_GANG_NAME, gang, NAME_LABEL_GANG_MIN, min)
#define CPU(n) .c = {{.cpu_milli = (n)}}

static void fail_to_place(const struct pipeline *p, struct gang *g, struct arena *a)
{
    struct cluster *c = p->cluster;
    struct plan plan;
    struct cycle_result r;
    plan_begin(&plan, c);
    cycle_run(p, g, &plan, a, &r);
    expect_true("no room", !plan.committed);
    plan_end(&plan);
    (void)reservation_follow(c, g, &r, NOW_MS);
}

/* Gang g on n1 has lost a member, whose capacity is held. Gang big needs all of n2 and n3, where a
 * pod runs for 20 minutes; it has had a reservation since it was five minutes old. The reservation
 * of gang tired has lapsed. A long-running pod requests one CPU, which is free on all nodes. */
static void fill(struct cluster *c, struct arena *a)
{
    replacement_hold_enable(c, true);
    c->reservations->options = (struct reservation_options){.after_ms = 5 * MINUTE};
    run_times_see(&c->reservations->run_times, 7, RUN_TIMES_ONE, 30 * S);
    run_times_see(&c->reservations->run_times, 7, RUN_TIMES_ONE, 20 * S);
    run_times_see(&c->reservations->run_times, UINT64_MAX, RUN_TIMES_ONE / 2, 10 * S);
    (void)cluster_put_node(c, NODE(.name = "n1", .cpu_milli = 2000));
    (void)cluster_put_node(c, NODE(.name = "n2", .cpu_milli = 2000));
    (void)cluster_put_node(c, NODE(.name = "n3", .cpu_milli = 2000));
    PUT(c, .name = "g-a", .node = "n1", .phase = "Running", MEMBER("g", "2"),
        .spec = "\"activeDeadlineSeconds\":36000", CPU(1000));
    PUT(c, .name = "g-b", .node = "n1", .phase = "Running", MEMBER("g", "2"), CPU(1000));
    (void)cluster_remove_pod(c, "d/g-b", NULL, NULL);
    struct cluster_pod *small = PUT(c, .name = "small", .node = "n2", .phase = "Running",
                                    .spec = "\"activeDeadlineSeconds\":1200", CPU(1000));
    small->pod->started_ns = NOW_MS * 1000000;
    PUT(c, .name = "big-0", MEMBER("big", "2"), CPU(2000));
    struct gang *big = PUT(c, .name = "big-1", MEMBER("big", "2"), CPU(2000))->gang;
    PUT(c, .name = "tired-0", .priority = -1, MEMBER("tired", "2"), CPU(2000));
    struct gang *tired =
        PUT(c, .name = "tired-1", .priority = -1, MEMBER("tired", "2"), CPU(2000))->gang;
    struct pipeline pipeline;
    pipeline_init(&pipeline, c);
    fail_to_place(&pipeline, big, a);
    expect_true("room is kept", reservation_reconcile(&pipeline, NOW_MS + 5 * MINUTE, a).made);
    pipeline_deinit(&pipeline);
    reservation_restore_age(c, tired, NOW_MS + 4 * MINUTE + 1, 2);
    PUT(c, .name = "long", .spec = "\"activeDeadlineSeconds\":36000", CPU(1000));
}

static char *printed(const struct cluster *c)
{
    struct strbuf b = {0};
    dump_cluster(c, &b);
    return strbuf_take(&b);
}

static const char *why(const struct copy *y, const char *key)
{
    const struct cluster_pod *cp = cluster_find_pod(&y->cluster, key);
    return cp->on != NULL ? cp->on->name : replay_run_why(&y->run, cp);
}

static void it_comes_back(void **state)
{
    (void)state;
    struct cluster c;
    struct arena a;
    struct copy y;
    cluster_init(&c, NAME_SCHEDULER);
    arena_init(&a, 0);
    fill(&c, &a);
    char *text = printed(&c);
    copy_init(&y, text);
    expect_str("no warnings", "", strbuf_str(&y.warnings));
    char *again = printed(&y.cluster);
    expect_str("the same bytes", text, again);
    expect_int("a hold", 1, (int64_t)replacement_hold_count(&y.cluster));
    struct gang *tired = map_get(&y.cluster.gangs, "gang d/tired");
    expect_int("an age", NOW_MS + 4 * MINUTE + 1, reservations_of(&y.cluster, tired)->since_ms);
    expect_int("that it had its turns", 2, reservations_of(&y.cluster, tired)->lapses);

    replay_run_all(&y.run);
    expect_str(
        "nobody else takes what is kept",
        "0/3 nodes fit: 2 keep room for gang d/big until it starts, about 2026-11-16T09:20:00Z, "
        "1 has too little cpu (asked: 1, largest free: 0 on n1)",
        why(&y, "d/long"));
    expect_true(
        "the gang is told",
        strstr(why(&y, "d/big-0"),
               "; room is kept for it on 2 nodes until it starts, about 2026-11-16T09:20:00Z") !=
            NULL);
    (void)cluster_remove_pod(&y.cluster, "d/small", NULL, &y.run.hooks);
    (void)cluster_put_pod(
        &y.cluster,
        fixture_make_pod(&(struct fixture_pod){.name = "g-c", MEMBER("g", "2"), CPU(1000)}),
        &y.run.hooks);
    (void)queue_wake(&y.run.queue, EVENT_ALL, y.run.now_ms);
    replay_run_all(&y.run);
    expect_str("the new member has the lost one's room", "n1", why(&y, "d/g-c"));
    expect_int("the hold is used", 0, (int64_t)replacement_hold_count(&y.cluster));
    expect_true("the gang goes where room was kept",
                cluster_find_pod(&y.cluster, "d/big-0")->on != NULL);
    expect_int("nothing is kept any more", 0, (int64_t)y.cluster.reservations->items.len);
    copy_deinit(&y);
    free(text);
    free(again);
    arena_deinit(&a);
    cluster_deinit(&c);
    expect_done();
}

#define KEPT(list)                                                                           \
    "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"cosched\":{\"dump\":1," list "},\"items\":[" \
    "{\"kind\":\"Node\",\"metadata\":{\"name\":\"n\"}}]}"

static void what_cannot_be_read_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *row, *text, *warnings;
    } rows[] = {
        {"the age of a gang that is not there",
         KEPT("\"aging\":[{\"gang\":\"gang d/x\",\"since\":\"2026-11-16T09:00:00Z\"}]"),
         "dump: cosched.aging[0]: gang: there is no gang d/x\n"},
        {"an age of nobody", KEPT("\"aging\":[5]"), "dump: cosched.aging[0]: gang: there is no \n"},
        {"room for a gang that is not there", KEPT("\"reservations\":[{\"for\":\"gang d/x\"}]"),
         "dump: cosched.reservations[0]: for: there is no gang d/x\n"},
        {"a hold of a gang that is not there",
         KEPT("\"slots\":[{\"gang\":\"gang d/x\",\"node\":\"n\",\"pod\":{}}]"),
         "dump: cosched.slots[0]: gang: there is no gang d/x\n"},
        {"not even a list", KEPT("\"slots\":\"x\""), ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct copy y;
        copy_init(&y, rows[i].text);
        expect_str(rows[i].row, rows[i].warnings, strbuf_str(&y.warnings));
        expect_int("the rest is taken", 1, (int64_t)map_count(&y.cluster.nodes));
        copy_deinit(&y);
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_comes_back),
        cmocka_unit_test(what_cannot_be_read_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
