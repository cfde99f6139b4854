// SPDX-License-Identifier: Apache-2.0
#include "test/unit/scheduler/drive_kit.h"

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/model/names.h"
#include "test/unit/lib/base/expect.h"

static void changed(void *arg)
{
    drive_poke(arg);
}

static bool is_binding(void *arg)
{
    struct drive_kit *k = arg;
    return binder_pending(k->binder) > 0;
}

static bool is_always(void *arg)
{
    (void)arg;
    return true;
}

void drive_kit_init(struct drive_kit *k, const struct drive_options *o)
{
    drive_kit_init_with(k, &(struct drive_kit_config){.drive = *o});
}

void drive_kit_init_with(struct drive_kit *k, const struct drive_kit_config *c)
{
    struct error err = ERROR_INIT;
    struct kube_options options = twin_options();
    *k = (struct drive_kit){.twin = twin_start(NULL, false)};
    k->config = twin_config(k->twin);
    if (loop_new(&k->loop, &err) < 0 || drive_init(&k->drive, k->loop, NAME_SCHEDULER, &err) < 0 ||
        intake_init(&k->intake, k->loop, &k->drive.cluster, &k->drive.queue, changed, &k->drive,
                    &err) < 0)
        fail_msg("%s", err.text);
    k->drive.options = c->drive;
    struct binder_config binder = {
        .threads = 4, .results = k->drive.results, .timeout_ms = (int64_t)2 * SHELL_WAIT_MS};
    struct status_config status = {
        .events = {.queue = c->no_events ? 0 : 1000, .qps = c->no_conditions ? 1 : 1000},
        .is_busy = c->no_conditions ? is_always : is_binding,
        .arg = k};
    struct evictor_config evictor = {.results = k->drive.evictions};
    if (binder_start(&k->binder, k->config, &options, &binder, &err) < 0 ||
        status_start(&k->status, k->config, &options, &status, &err) < 0 ||
        evictor_start(&k->evictor, k->config, &options, &evictor, &err) < 0)
        fail_msg("%s", err.text);
    struct volumes_config volumes = drive_volumes_config(&k->drive, k->binder);
    if (c->adjust_volumes != NULL)
        c->adjust_volumes(&volumes);
    if (volumes_start(&k->volumes, k->config, &options, &volumes, &err) < 0)
        fail_msg("%s", err.text);
}

void drive_kit_rehearse(struct drive_kit *k)
{
    struct error err = ERROR_INIT;
    struct kube_options options = twin_options();
    struct rehearsal_config c = {.threads = 2, .results = k->drive.rehearsed};
    if (rehearsal_start(&k->drive.rehearsal, k->config, &options, &c, &err) < 0)
        fail_msg("%s", err.text);
}

void drive_kit_start(struct drive_kit *k)
{
    drive_start(&k->drive, k->binder, k->status, k->evictor, k->volumes);
}

void drive_kit_deinit(struct drive_kit *k)
{
    mailbox_close(k->drive.results);
    mailbox_close(k->drive.evictions);
    mailbox_close(k->drive.rehearsed);
    intake_deinit(&k->intake);
    status_stop(k->status, 0);
    evictor_stop(k->evictor);
    rehearsal_stop(k->drive.rehearsal);
    volumes_stop(k->volumes);
    binder_stop(k->binder);
    drive_deinit(&k->drive);
    loop_free(k->loop);
    kube_config_free(k->config);
    twin_stop(k->twin);
}

void drive_kit_settle(struct drive_kit *k)
{
    for (int i = 0; i < 5; i++)
        loop_once(k->loop, 0);
}

void drive_kit_await(struct drive_kit *k, const char *method, const char *part, int n)
{
    for (int64_t end = clock_mono_ms() + SHELL_WAIT_MS; shell_count(k->twin, method, part) < n;
         loop_once(k->loop, 5))
        if (clock_mono_ms() >= end)
            fail_msg("%s with '%s': expected %d, got %d", method, str_or_empty(part), n,
                     shell_count(k->twin, method, part));
}

void drive_kit_run(struct drive_kit *k, int64_t ms)
{
    for (int64_t end = clock_mono_ms() + ms; clock_mono_ms() < end;)
        loop_once(k->loop, 5);
}

struct cluster_pod *drive_kit_find(struct drive_kit *k, const char *key)
{
    return cluster_find_pod(&k->drive.cluster, key);
}

void drive_kit_report(struct drive_kit *k, const char *key, enum binder_outcome outcome)
{
    struct cluster_pod *cp = drive_kit_find(k, key);
    struct binder_result *r = mem_new(struct binder_result, 1);
    *r = (struct binder_result){.outcome = outcome,
                                .ticket = cp->bind_ticket,
                                .pod = mem_strdup(key),
                                .node = mem_strdup(cp->on->name)};
    (void)mailbox_post(k->drive.results, r);
    drive_kit_settle(k);
}
