// SPDX-License-Identifier: Apache-2.0
/* Processes that got past the library: the driver's list against the slots of the pod's regions. */
#include "device-plugin/monitor.h"

#include "test/unit/device-plugin/isolation/crew.h"

#include "device-plugin/isolation/shares.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "test/unit/device-plugin/cards.h"

#define CLAIM(x) "\"scheduler.framework.gpushare.allocation\":\"" x "\""

static int events;
static char reason[64], message[512];

static void on_cards(void *arg, const struct gpu_inventory *inv)
{
    (void)arg, (void)inv;
}

static void on_event(void *arg, bool warning, const char *why, const char *text)
{
    (void)arg, (void)warning, (void)why, (void)text;
}

static void on_pod_event(void *arg, const char *ns, const char *name, const char *uid, bool warning,
                         const char *why, const char *text)
{
    (void)arg, (void)ns, (void)name, (void)uid, (void)warning;
    events++;
    (void)str_format(reason, sizeof reason, "%s", why);
    (void)str_format(message, sizeof message, "%s", text);
}

static void on_pod_used(void *arg, const char *ns, const char *name, const char *uid,
                        const struct gpuuse *use)
{
    (void)arg, (void)ns, (void)name, (void)uid, (void)use;
}

static enum gpu_mode on_mode(void *arg)
{
    (void)arg;
    return GPU_MODE_CGPU;
}

static void ignore(void *arg, const char *line, size_t n)
{
    (void)arg, (void)line, (void)n;
}

struct fixture {
    struct arena a;
    struct gpu_inventory cards;
    struct backend_card conditions[GPU_CARDS_MAX];
    struct monitor *monitor;
};

static void looks(struct fixture *f, int times, size_t processes)
{
    struct scan_letter l = {.kind = SCAN_CARDS,
                            .sight = {.inventory = f->cards, .cards = f->conditions},
                            .processes_len = processes};
    l.processes = arena_new(&f->a, struct usage_process, processes);
    for (size_t i = 0; i < processes; i++)
        l.processes[i] = (struct usage_process){
            .card = 1, .pid = 100 + (int64_t)i, .mib = 500, .uid = "uid-trainer"};
    for (int i = 0; i < times; i++)
        monitor_letter(f->monitor, &l);
}

static void loose_processes(void **state)
{
    struct fixture f = {0};
    struct error err = ERROR_INIT;
    struct regionfile one, two;
    struct loop *loop;
    char base[SCRATCH_PATH], library[CREW_PATH], path[CREW_PATH], command[2 * SCRATCH_PATH];
    (void)state;
    scratch_folder(base, "audit");
    log_set_sink(ignore, NULL);
    arena_init(&f.a, 0);
    cards_make(&f.cards, &f.a, (const int64_t[]){16160, 24576, 0});
    for (int i = 0; i < GPU_CARDS_MAX; i++)
        f.conditions[i] = (struct backend_card){.ecc = -1, .processes_known = true};
    assert_int_equal(0, loop_new(&loop, &err));
    struct monitor_config config = {.loop = loop,
                                    .interval_ms = 1000,
                                    .deadline_ms = 5000,
                                    .hooks = {.cards = on_cards,
                                              .event = on_event,
                                              .pod_event = on_pod_event,
                                              .pod_used = on_pod_used,
                                              .mode = on_mode,
                                              .shares = base}};
    f.monitor = monitor_new(&config);
    struct pod *p = cards_pod("trainer", "c0=gpu-mem:3", CLAIM("{\\\"0\\\":{\\\"1\\\":3}}"));
    monitor_pods_reset(f.monitor, &p, 1);
    looks(&f, 5, 2);
    expect_int("a pod without our library is not judged", 0, events);

    struct shares_plan plan = {.base = base,
                               .folder = "uid-trainer.0",
                               .ns = "default",
                               .pod = "trainer",
                               .container = "c0"};
    plan.limits.len = 1;
    plan.limits.cards[0] = (struct limits_card){.bytes = 3072 * MIB, .percent = 100};
    (void)str_format(library, sizeof library, "%s/lib/libcosched-gpu.so", crew_build());
    if (shares_prepare(library, &plan, &err) < 0)
        fail_msg("%s", err.text);
    (void)str_format(path, sizeof path, "%s/uid-trainer.0/region", base);
    assert_int_equal(0, regionfile_attach(&one, path));
    assert_int_equal(0, regionfile_attach(&two, path));
    looks(&f, 5, 2);
    expect_int("each has its slot", 0, events);
    looks(&f, 2, 3);
    expect_int("one more, for a moment", 0, events);
    looks(&f, 1, 2);
    looks(&f, 2, 3);
    expect_int("and once more", 0, events);
    looks(&f, 1, 3);
    expect_int("it stays", 1, events);
    expect_str("what it is", "GpuIsolationBypassed", reason);
    expect_true(
        "how many, and of what",
        strstr(message, "1 of its 3 processes on the GPU are not held to its share of 3072 MiB") !=
            NULL);
    AUTO_STRBUF text;
    strbuf_init(&text);
    metrics_render(&text);
    expect_true("counted",
                strstr(strbuf_str(&text),
                       "pod_loose_processes{namespace=\"default\",pod=\"trainer\"} 1\n") != NULL);
    looks(&f, 5, 3);
    expect_int("said once", 1, events);
    looks(&f, 1, 2);
    looks(&f, 3, 4);
    expect_int("and again after it was well", 2, events);

    regionfile_detach(&one);
    regionfile_detach(&two);
    metrics_reset();
    monitor_free(f.monitor);
    loop_free(loop);
    pod_free(p);
    log_set_sink(NULL, NULL);
    arena_deinit(&f.a);
    (void)str_format(command, sizeof command, "rm -r '%s'", base);
    assert_int_equal(0, system(command));
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(loose_processes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
