// SPDX-License-Identifier: Apache-2.0
#include "test/unit/device-plugin/isolation/audit.h"

#include <stdlib.h>

#include "device-plugin/isolation/isolation.h"
#include "device-plugin/isolation/shares.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "test/unit/device-plugin/cards.h"

struct audit_seen audit_seen;

static void on_cards(void *arg, const struct gpu_inventory *inv)
{
    (void)arg, (void)inv;
}

static void on_event(void *arg, bool warning, const char *why, const char *text)
{
    (void)arg, (void)warning, (void)why, (void)text;
}

static void on_pod_event(void *arg, const struct pod *pod, bool warning, const char *why,
                         const char *text)
{
    (void)arg, (void)warning;
    (void)str_format(audit_seen.about, sizeof audit_seen.about, "%s", pod->key);
    audit_seen.events++;
    (void)str_format(audit_seen.reason, sizeof audit_seen.reason, "%s", why);
    (void)str_format(audit_seen.message, sizeof audit_seen.message, "%s", text);
}

static void on_pod_used(void *arg, const struct pod *pod, const struct gpuuse *use)
{
    (void)arg, (void)pod, (void)use;
}

static void on_evict(void *arg, const struct pod *pod)
{
    (void)arg;
    (void)str_format(audit_seen.evicted, sizeof audit_seen.evicted, "%s %s", pod->key, pod->uid);
    audit_seen.evictions++;
}

static void ignore(void *arg, const char *line, size_t n)
{
    (void)arg, (void)line, (void)n;
}

struct pod *audit_trainer(const char *unreadable)
{
    struct pod *p = cards_pod("trainer", "c0=gpu-mem:3", AUDIT_GRANT("{\\\"0\\\":{\\\"1\\\":3}}"));
    p->unreadable = unreadable;
    return p;
}

void audit_begin(struct audit_fixture *f, bool evict)
{
    struct error err = ERROR_INIT;
    *f = (struct audit_fixture){0};
    audit_seen = (struct audit_seen){0};
    scratch_folder(f->base, "audit");
    (void)str_format(f->region, sizeof f->region, "%s/uid-trainer.0/region", f->base);
    log_set_sink(ignore, NULL);
    arena_init(&f->a, 0);
    cards_make(&f->cards, &f->a, (const int64_t[]){16160, 24576, 0});
    f->cards.cards[1].uuid = "GPU-00000000-0000-4000-8000-000000000001";
    for (int i = 0; i < GPU_CARDS_MAX; i++)
        f->conditions[i] = (struct backend_card){.ecc = -1, .processes_known = true};
    assert_int_equal(0, loop_new(&f->loop, &err));
    struct monitor_config config = {.loop = f->loop,
                                    .interval_ms = 1000,
                                    .deadline_ms = 5000,
                                    .hooks = {.cards = on_cards,
                                              .event = on_event,
                                              .pod_event = on_pod_event,
                                              .pod_used = on_pod_used,
                                              .evict = evict ? on_evict : NULL,
                                              .pods = &f->pods,
                                              .shares = f->base}};
    podcache_init(&f->pods);
    assert_int_equal(0, monitor_new(&f->monitor, &config, &err));
    monitor_mode(f->monitor, GPU_MODE_CGPU, ISOLATION_LIBRARY);
    struct pod *pod = audit_trainer(NULL);
    podcache_reset(&f->pods, &pod, 1);
}

void audit_free(struct audit_fixture *f)
{
    char command[2 * SCRATCH_PATH];
    metrics_reset();
    monitor_free(f->monitor);
    loop_free(f->loop);
    podcache_deinit(&f->pods);
    log_set_sink(NULL, NULL);
    arena_deinit(&f->a);
    (void)str_format(command, sizeof command, "rm -r '%s'", f->base);
    assert_int_equal(0, system(command));
}

void audit_give_folder(struct audit_fixture *f, const char *folder, uint32_t percent,
                       uint64_t context_mib)
{
    struct error err = ERROR_INIT;
    char library[CREW_PATH];
    struct shares_plan plan = {
        .base = f->base, .folder = folder, .ns = "default", .pod = "trainer", .container = "c0"};
    plan.limits.len = 1;
    plan.limits.cards[0] = (struct limits_card){.uuid = {0, 0, 0, 0, 0, 0, 0x40, 0, 0x80, [15] = 1},
                                                .bytes = 3072 * MIB,
                                                .percent = percent,
                                                .context_bytes = context_mib * MIB};
    (void)str_format(library, sizeof library, "%s/lib/libcosched-gpu.so", crew_build());
    if (shares_prepare(library, &plan, &err) < 0)
        fail_msg("%s", err.text);
}

struct usage_process audit_process(int64_t pid, int64_t mib, const char *folder)
{
    struct usage_process p = {.card = 1, .pid = pid, .mib = mib, .uid = "uid-trainer"};
    (void)str_format(p.folder, sizeof p.folder, "%s", folder);
    return p;
}

void audit_messages(struct audit_fixture *f, int times, struct usage_process *list, size_t len)
{
    struct scan_message l = {.kind = SCAN_CARDS,
                             .sight = {.inventory = f->cards, .cards = f->conditions},
                             .processes = list,
                             .processes_len = len};
    for (int i = 0; i < times; i++) {
        monitor_message(f->monitor, &l);
        monitor_settle(f->monitor);
        loop_once(f->loop, 0);
    }
}

void audit_looks(struct audit_fixture *f, int times, size_t processes)
{
    struct usage_process list[8];
    for (size_t i = 0; i < processes; i++)
        list[i] = audit_process(100 + (int64_t)i, 500, "");
    audit_messages(f, times, list, processes);
}

bool audit_metric(const char *line)
{
    AUTO_STRBUF text;
    strbuf_init(&text);
    metrics_render(&text);
    return strstr(strbuf_str(&text), line) != NULL;
}

void audit_measured(struct audit_fixture *f, struct scan_busy *busy, size_t len, bool known,
                    uint64_t at)
{
    struct scan_message l = {
        .kind = SCAN_TIME, .busy = busy, .busy_len = len, .at_ns = (int64_t)at};
    l.timed[1] = known;
    monitor_message(f->monitor, &l);
    monitor_settle(f->monitor);
}
