// SPDX-License-Identifier: Apache-2.0
#include "test/unit/scheduler/sched_loop_kit.h"

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/model/names.h"
#include "test/unit/lib/base/expect.h"

static void changed(void *arg)
{
    sched_loop_poke(arg);
}

static bool is_binding(void *arg)
{
    struct sched_loop_kit *k = arg;
    return binder_pending(k->binder) > 0;
}

static bool is_always(void *arg)
{
    (void)arg;
    return true;
}

void sched_loop_kit_init(struct sched_loop_kit *k, const struct sched_loop_options *o)
{
    sched_loop_kit_init_with(k, &(struct sched_loop_kit_config){.sched = *o});
}

void sched_loop_kit_init_with(struct sched_loop_kit *k, const struct sched_loop_kit_config *c)
{
    struct error err = ERROR_INIT;
    struct kube_options options = twin_options();
    *k = (struct sched_loop_kit){.twin = twin_start(NULL, false)};
    k->config = twin_config(k->twin);
    if (loop_new(&k->loop, &err) < 0 ||
        sched_loop_init(&k->sched, k->loop, NAME_SCHEDULER, &err) < 0 ||
        intake_init(&k->intake, k->loop, &k->sched.cluster, &k->sched.queue, &k->sched.trace,
                    &k->sched.failures, changed, &k->sched, &err) < 0)
        fail_msg("%s", err.text);
    k->sched.options = c->sched;
    struct binder_config binder = {
        .threads = 4, .results = k->sched.results, .timeout_ms = (int64_t)2 * SHELL_WAIT_MS};
    struct pod_writer_config status = {
        .events = {.queue = c->no_events ? 0 : 1000, .qps = c->no_conditions ? 1 : 1000},
        .trace = &k->sched.trace,
        .is_busy = c->no_conditions ? is_always : is_binding,
        .arg = k};
    struct evictor_config evictor = {.results = k->sched.evictions};
    if (binder_start(&k->binder, k->config, &options, &binder, &err) < 0 ||
        pod_writer_start(&k->pod_writer, k->config, &options, &status, &err) < 0 ||
        evictor_start(&k->evictor, k->config, &options, &evictor, &err) < 0)
        fail_msg("%s", err.text);
    struct volumes_config volumes = sched_loop_volumes_config(&k->sched, k->binder);
    if (c->adjust_volumes != NULL)
        c->adjust_volumes(&volumes);
    if (volumes_start(&k->volumes, k->config, &options, &volumes, &err) < 0)
        fail_msg("%s", err.text);
}

void sched_loop_kit_dryrun(struct sched_loop_kit *k)
{
    struct error err = ERROR_INIT;
    struct kube_options options = twin_options();
    struct bind_dryrun_config c = {.threads = 2, .results = k->sched.dryrun_done};
    if (bind_dryrun_start(&k->sched.dryrun, k->config, &options, &c, &err) < 0)
        fail_msg("%s", err.text);
}

void sched_loop_kit_start(struct sched_loop_kit *k)
{
    sched_loop_start(&k->sched, k->binder, k->pod_writer, k->evictor, k->volumes);
}

void sched_loop_kit_deinit(struct sched_loop_kit *k)
{
    mailbox_close(k->sched.results);
    mailbox_close(k->sched.evictions);
    mailbox_close(k->sched.dryrun_done);
    intake_deinit(&k->intake);
    pod_writer_stop(k->pod_writer, 0);
    evictor_stop(k->evictor);
    bind_dryrun_stop(k->sched.dryrun);
    volumes_stop(k->volumes);
    binder_stop(k->binder);
    sched_loop_deinit(&k->sched);
    loop_free(k->loop);
    kube_config_free(k->config);
    twin_stop(k->twin);
}

void sched_loop_kit_settle(struct sched_loop_kit *k)
{
    for (int i = 0; i < 5; i++)
        loop_once(k->loop, 0);
}

void sched_loop_kit_await(struct sched_loop_kit *k, const char *method, const char *part, int n)
{
    for (int64_t end = clock_mono_ms() + SHELL_WAIT_MS; shell_count(k->twin, method, part) < n;
         loop_once(k->loop, 5))
        if (clock_mono_ms() >= end)
            fail_msg("%s with '%s': expected %d, got %d", method, str_or_empty(part), n,
                     shell_count(k->twin, method, part));
}

void sched_loop_kit_run(struct sched_loop_kit *k, int64_t ms)
{
    for (int64_t end = clock_mono_ms() + ms; clock_mono_ms() < end;)
        loop_once(k->loop, 5);
}

struct cluster_pod *sched_loop_kit_find(struct sched_loop_kit *k, const char *key)
{
    return cluster_find_pod(&k->sched.cluster, key);
}

struct queue_entry *sched_loop_kit_entry(struct sched_loop_kit *k, const struct gang *g)
{
    return ids_find(&k->sched.queue.entries, g->id);
}

void sched_loop_kit_report(struct sched_loop_kit *k, const char *key, enum binder_outcome outcome)
{
    struct cluster_pod *cp = sched_loop_kit_find(k, key);
    struct binder_result *r = mem_new(struct binder_result, 1);
    *r = (struct binder_result){.outcome = outcome,
                                .ticket = pod_trace_ticket(&k->sched.trace, cp),
                                .pod = mem_strdup(key),
                                .node = mem_strdup(cp->on->name)};
    (void)mailbox_post(k->sched.results, r);
    sched_loop_kit_settle(k);
}
