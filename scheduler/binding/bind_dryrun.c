// SPDX-License-Identifier: Apache-2.0
#include "scheduler/binding/bind_dryrun.h"

#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/base/metrics.h"
#include "lib/base/str.h"
#include "scheduler/binding/binder.h"
#include "scheduler/binding/workers.h"

static struct metric dryruns = {
    .kind = METRIC_COUNTER,
    .name = "cosched_scheduler_dry_run_binds_total",
    .help = "Bindings of gangs that were posted with dryRun=All first, by answer.",
    .label = "answer"};

struct bind_dryrun {
    struct bind_dryrun_config config;
    struct workers *workers;
    struct kube_client **clients; /* one per thread */
};

struct dryrun_job {
    struct arena arena;
    struct kube_binding binding;
    uint64_t ticket;
};

static void job_free(void *p)
{
    struct dryrun_job *job = p;
    arena_deinit(&job->arena);
    free(job);
}

void bind_dryrun_result_free(void *p)
{
    free(p);
}

/* Only an explicit refusal counts. An overloaded or unreachable server would fail the real Binding
 * too, which handles that itself. */
static void worker_run(void *arg, unsigned thread, void *p)
{
    struct bind_dryrun *r = arg;
    struct dryrun_job *job = p;
    struct bind_dryrun_result *result = mem_new(struct bind_dryrun_result, 1);
    bool never_sent;
    result->ticket = job->ticket;
    if (kube_bind(r->clients[thread], &job->binding, &never_sent, &result->error) < 0)
        result->refused = result->error.http_status >= 400 && result->error.http_status < 500 &&
                          result->error.code != ERROR_THROTTLED &&
                          result->error.code != ERROR_TIMEOUT;
    metrics_inc(&dryruns, result->refused                    ? "refused"
                          : result->error.code == ERROR_NONE ? "accepted"
                                                             : "none");
    job_free(job);
    (void)mailbox_post(r->config.results, result);
}

int bind_dryrun_start(struct bind_dryrun **out, struct kube_config *kube,
                      const struct kube_options *o, const struct bind_dryrun_config *c,
                      struct error *err)
{
    metrics_register(&dryruns);
    struct bind_dryrun *r = mem_new(struct bind_dryrun, 1);
    r->config = *c;
    r->clients = mem_new(struct kube_client *, c->threads);
    int rc = 0;
    for (unsigned i = 0; i < c->threads && rc == 0; i++) {
        rc = kube_client_new(&r->clients[i], kube, o, "cosched-scheduler/dryrun", err);
        if (rc == 0)
            kube_client_set_timeout(r->clients[i], BINDER_TIMEOUT_MS);
    }
    struct workers_config workers = {
        .threads = c->threads, .run = worker_run, .dispose = job_free, .arg = r};
    if (rc < 0 || workers_start(&r->workers, &workers, err) < 0) {
        bind_dryrun_stop(r);
        return error_wrap(err, "dry run of bindings");
    }
    *out = r;
    return 0;
}

void bind_dryrun_submit(struct bind_dryrun *r, const struct kube_binding *binding, uint64_t ticket)
{
    struct dryrun_job *job = mem_new(struct dryrun_job, 1);
    struct arena *a = &job->arena;
    arena_init(a, 1024);
    job->binding = kube_binding_copy(binding, a);
    job->binding.timeout_ms = BINDER_TIMEOUT_MS;
    job->binding.dry_run = true;
    job->ticket = ticket;
    (void)workers_submit(r->workers, job);
}

void bind_dryrun_stop(struct bind_dryrun *r)
{
    if (r == NULL)
        return;
    for (unsigned i = 0; i < r->config.threads; i++)
        if (r->clients[i] != NULL)
            kube_client_cancel(r->clients[i]);
    workers_stop(r->workers);
    for (unsigned i = 0; i < r->config.threads; i++)
        if (r->clients[i] != NULL)
            kube_client_free(r->clients[i]);
    free(r->clients);
    free(r);
}
