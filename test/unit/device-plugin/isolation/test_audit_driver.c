// SPDX-License-Identifier: Apache-2.0
/*
 * What the driver's figures alone tell: cards that a pod was not given, and device time beyond its
 * percentage. The attacks: an image with NVIDIA_VISIBLE_DEVICES=all in a pod without limits fills
 * the cards; a static binary takes all compute while its region claims slots for it.
 */
#include "test/unit/device-plugin/isolation/audit.h"

#include "device-plugin/isolation/isolation.h"
#include "lib/base/clock.h"
#include "lib/base/num.h"
#include "test/unit/device-plugin/cards.h"

/* A second pod beside the trainer. */
static void beside(struct audit_fixture *f, const char *containers, const char *annotations)
{
    podcache_put(&f->pods, cards_pod("guest", containers, annotations));
}

static struct usage_process guests(int64_t pid, int32_t card, int64_t mib)
{
    return (struct usage_process){.card = card, .pid = pid, .mib = mib, .uid = "uid-guest"};
}

static void cards_not_given(void **state)
{
    static const char group[] = "\"topology.kubernetes.io/gpu-group\":\"1\"";
    static const struct {
        const char *row, *containers, *annotations;
        int32_t card;
        int64_t mib[2]; /* of two processes; 0: there is one */
        int64_t beyond; /* 0: nothing is said */
        const char *text;
    } rows[] = {
        {"no limits at all", "c0=", "", 1, {4000, 0}, 4000, "it asked for no GPU"},
        {"a tool that looks at cards", "c0=", "", 1, {512, 0}, 0, NULL},
        {"one MiB more", "c0=", "", 1, {513, 0}, 513, "it asked for no GPU"},
        {"two of them", "c0=", "", 1, {1000, 24}, 0, NULL},
        {"one MiB more", "c0=", "", 1, {1000, 25}, 1025, "it asked for no GPU"},
        {"a grant that it wrote itself", "c0=", group, 1, {4000, 0}, 4000, "no GPU"},
        {"its own whole card", "c0=gpu:1", group, 1, {15000, 0}, 0, NULL},
        {"another's", "c0=gpu:1", group, 0, {15000, 0}, 15000, "it asked for other cards"},
        {"a card of another plugin", "c0=nvidia.com/gpu:1", "", 1, {15000, 0}, 0, NULL},
        {"a part of one", "c0=nvidia.com/mig-1g.5gb:1", "", 1, {4000, 0}, 0, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct audit_fixture f;
        audit_begin(&f, true);
        monitor_mode(f.monitor, GPU_MODE_SHARE, "none");
        beside(&f, rows[i].containers, rows[i].annotations);
        struct usage_process list[] = {guests(100, rows[i].card, rows[i].mib[0]),
                                       guests(101, rows[i].card, rows[i].mib[1])};
        size_t len = rows[i].mib[1] > 0 ? 2 : 1;
        audit_messages(&f, 2, list, len);
        expect_int(rows[i].row, 0, audit_seen.events);
        audit_messages(&f, 6, list, len);
        expect_int(rows[i].row, rows[i].beyond > 0, audit_seen.events);
        expect_int(rows[i].row, rows[i].beyond > 0 ? 2 : 0, audit_seen.evictions);
        char line[CREW_LINE];
        (void)str_format(line, sizeof line,
                         "pod_over_mib{namespace=\"default\",pod=\"guest\"} %lld\n",
                         (long long)rows[i].beyond);
        if (rows[i].beyond > 0) {
            expect_str(rows[i].row, "GpuIsolationBypassed", audit_seen.reason);
            expect_str(rows[i].row, "default/guest", audit_seen.about);
            expect_str(rows[i].row, "default/guest uid-guest", audit_seen.evicted);
            expect_true(rows[i].row, strstr(audit_seen.message, rows[i].text) != NULL);
            expect_true(rows[i].row, audit_metric(line));
        }
        bool asks = strlen(rows[i].containers) > strlen("c0=");
        (void)str_format(line, sizeof line, "outside_used_mib %lld\n",
                         (long long)(asks ? 0 : rows[i].mib[0] + rows[i].mib[1]));
        expect_true("what pods without a GPU use is nobody's share", audit_metric(line));
        expect_true("and not listed as a GPU pod's",
                    asks == audit_metric("pod_used_mib{namespace=\"default\",pod=\"guest\"}"));
        audit_messages(&f, 1, NULL, 0);
        (void)str_format(line, sizeof line,
                         "pod_over_mib{namespace=\"default\",pod=\"guest\"} %lld\n",
                         (long long)num_max(rows[i].beyond, 1));
        expect_true("it ended", !audit_metric(line));
        audit_end(&f);
    }
}

/* Processes cost nothing, and each may hold what is allowed for it. */
static void many_processes(void **state)
{
    enum { PROCESSES = 20 };
    static const struct {
        const char *row, *uid;
        int64_t total; /* the most that is not told */
    } rows[] = {
        {"the share again", "uid-trainer", 3072 + 3072},
        {"of a pod without a share", "uid-guest", 2048},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct audit_fixture f;
        struct usage_process list[PROCESSES];
        audit_begin(&f, true);
        monitor_mode(f.monitor, GPU_MODE_MPS, ISOLATION_MPS);
        beside(&f, "c0=", "");
        for (int k = 0; k < PROCESSES; k++) {
            list[k] = guests(100 + k, 1, k == 0 ? rows[i].total % PROCESSES : 0);
            list[k].mib += rows[i].total / PROCESSES;
            (void)str_format(list[k].uid, sizeof list[k].uid, "%s", rows[i].uid);
        }
        audit_messages(&f, 5, list, PROCESSES);
        expect_int(rows[i].row, 0, audit_seen.events);
        list[1].mib++;
        audit_messages(&f, 3, list, PROCESSES);
        expect_int(rows[i].row, 1, audit_seen.events);
        audit_end(&f);
    }
}

/* ---- time ---- */

static const uint64_t step_ns = 250 * UINT64_C(1000000);

static void give_trainer(struct audit_fixture *f, const char *resources, const char *grant)
{
    struct pod *pod = cards_pod("trainer", resources, grant);
    podcache_reset(&f->pods, &pod, 1);
    monitor_mode(f->monitor, GPU_MODE_CORE_MEM, ISOLATION_LIBRARY);
    audit_messages(f, 1, NULL, 0); /* the cards are known */
}

/* Measurements in which it uses so many percent of the card; returns when it was last measured. */
static uint64_t runs(struct audit_fixture *f, uint64_t at, int seconds, int percent, int32_t card)
{
    struct scan_busy busy = {audit_process(100, -1, ""), (int64_t)step_ns / 100 * percent};
    busy.process.card = card;
    for (int i = 0; i < 4 * seconds; i++)
        audit_measured(f, &busy, 1, true, at += step_ns);
    return at;
}

/* The slots of its region claim that its one process is held. */
static struct regionfile confined(struct audit_fixture *f)
{
    struct regionfile one;
    audit_give_folder(f, "uid-trainer.0", 30, 0);
    assert_int_equal(0, regionfile_attach(&one, f->region));
    return one;
}

#define MEMORY_OF_CARD_1 AUDIT_GRANT("{\\\"0\\\":{\\\"1\\\":3}}")
#define THIRTY_PERCENT \
    MEMORY_OF_CARD_1   \
    ",\"gpushare.alibabacloud.com/core-percentage\":\"{\\\"0\\\":{\\\"1\\\":30}}\""

static void time_beyond_the_percentage(void **state)
{
    static const char half[] = "c0=gpu-mem:3,gpu-core.percentage:30";
    static const struct {
        const char *row, *containers;
        int percent;
        int32_t card;
        int seconds;
        bool over;
        const char *text;
    } rows[] = {
        {"all of it", half, 80, 1, 31, true,
         "80 percent of card 1's time for a pod that may have 30"},
        {"a little more", half, 32, 1, 31, false, NULL},
        {"what measuring may be wrong by", half, 42, 1, 31, false, NULL},
        {"more than that", half, 44, 1, 31, true, "44 percent"},
        {"a burst", half, 80, 1, 20, false, NULL},
        {"a pod without a percentage", "c0=gpu-mem:3", 100, 1, 31, false, NULL},
        {"a card that it was not given", half, 50, 0, 31, true,
         "50 percent of card 0's time for a pod that may have 0"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct audit_fixture f;
        audit_begin(&f, true);
        bool limited = strstr(rows[i].containers, "percentage") != NULL;
        give_trainer(&f, rows[i].containers, limited ? THIRTY_PERCENT : MEMORY_OF_CARD_1);
        struct regionfile one = confined(&f);
        struct usage_process p = audit_process(100, 500, "uid-trainer.0");
        (void)runs(&f, (uint64_t)clock_mono_us() * 1000, rows[i].seconds, rows[i].percent,
                   rows[i].card);
        audit_messages(&f, 2, &p, 1);
        expect_int("for a moment", 0, audit_seen.events);
        audit_messages(&f, 4, &p, 1);
        expect_int(rows[i].row, rows[i].over, audit_seen.events);
        expect_int(rows[i].row, rows[i].over ? 2 : 0, audit_seen.evictions);
        if (rows[i].over) {
            expect_str(rows[i].row, "GpuIsolationBypassed", audit_seen.reason);
            expect_true(rows[i].row, strstr(audit_seen.message, rows[i].text) != NULL);
        }
        regionfile_detach(&one);
        audit_end(&f);
    }
}

static void time_windows(void **state)
{
    struct audit_fixture f;
    (void)state;
    audit_begin(&f, false);
    give_trainer(&f, "c0=gpu-mem:3,gpu-core.percentage:30", THIRTY_PERCENT);
    struct regionfile one = confined(&f);
    struct usage_process p = audit_process(100, 500, "uid-trainer.0");
    uint64_t at = runs(&f, (uint64_t)clock_mono_us() * 1000, 20, 80, 1);
    at = runs(&f, at + 10000000000, 20, 80, 1);
    audit_messages(&f, 5, &p, 1);
    expect_int("a pause begins a new window", 0, audit_seen.events);
    at = runs(&f, at, 11, 80, 1);
    audit_messages(&f, 3, &p, 1);
    expect_int("which then ends", 1, audit_seen.events);
    at = runs(&f, at, 31, 10, 1);
    audit_messages(&f, 3, &p, 1);
    at = runs(&f, at, 31, 80, 1);
    audit_messages(&f, 3, &p, 1);
    expect_int("again, after it was well", 2, audit_seen.events);
    monitor_mode(f.monitor, GPU_MODE_CGPU, ISOLATION_LIBRARY);
    audit_messages(&f, 1, &p, 1);
    monitor_mode(f.monitor, GPU_MODE_CORE_MEM, ISOLATION_LIBRARY);
    (void)runs(&f, at + 10000000000, 1, 10, 1);
    audit_messages(&f, 5, &p, 1);
    expect_int("another mode measures no time, and the old verdict is gone", 2, audit_seen.events);
    regionfile_detach(&one);
    audit_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cards_not_given), cmocka_unit_test(many_processes),
        cmocka_unit_test(time_beyond_the_percentage), cmocka_unit_test(time_windows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
