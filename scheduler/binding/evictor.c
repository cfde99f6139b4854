// SPDX-License-Identifier: Apache-2.0
#include "scheduler/binding/evictor.h"

#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/metrics.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/kube/api.h"
#include "scheduler/binding/pod_patch.h"
#include "scheduler/binding/workers.h"

enum { THREADS = 2, TRIES = 5, PAUSE_FIRST_MS = 100 };

static struct metric victims_total = {.kind = METRIC_COUNTER,
                                      .name = "cosched_scheduler_preemption_victims_total",
                                      .help = "Pods preempted for more important ones, by result.",
                                      .label = "result"};

struct evictor {
    struct evictor_config config;
    struct workers *workers;
    struct kube_client *clients[THREADS];
};

struct evictor_job {
    char *ns, *name, *uid;
    char *pod, *pod_uid; /* the preemptor; "" */
    char *why;           /* the reason without a preemptor; or NULL */
};

static void job_free(void *p)
{
    struct evictor_job *job = p;
    free(job->ns);
    free(job->name);
    free(job->uid);
    free(job->pod);
    free(job->pod_uid);
    free(job->why);
    free(job);
}

void evictor_result_free(void *p)
{
    struct evictor_result *r = p;
    free(r->victim);
    free(r->victim_uid);
    free(r->pod);
    free(r->pod_uid);
    free(r);
}

/* away false: it stays after all. */
static void print_condition(const struct evictor_job *job, bool away, struct strbuf *out)
{
    char now[CLOCK_RFC3339_SIZE];
    AUTO_STRBUF message = {0};
    clock_rfc3339(clock_wall_ns(), 0, now);
    if (!away)
        strbuf_adds(&message, "it could not be deleted and stays for now");
    else if (job->why != NULL)
        strbuf_adds(&message, job->why);
    else
        strbuf_addf(&message, "evicted in favour of pod %s of higher priority", job->pod);
    const struct pod_patch_condition c = {.type = "DisruptionTarget",
                                          .status = away ? "True" : "False",
                                          .reason = !away              ? "EvictionFailed"
                                                    : job->why != NULL ? "StaleGang"
                                                                       : "PreemptionByScheduler",
                                          .message = strbuf_str(&message),
                                          .since = now};
    pod_patch_condition(out, job->uid, NULL, &c);
}

static int write_condition(struct kube_client *client, const struct evictor_job *job, bool away,
                           struct error *err)
{
    AUTO_STRBUF body = {0};
    print_condition(job, away, &body);
    return kube_patch(client, &kube_pods, job->ns, job->name, "status", KUBE_PATCH_STRATEGIC,
                      strbuf_str(&body), body.len, NULL, err);
}

static int start_eviction(struct kube_client *client, const struct evictor_job *job, bool *told,
                          struct error *err)
{
    if (write_condition(client, job, true, err) < 0)
        return err->code == ERROR_NOT_FOUND ? 0 : -1;
    *told = true;
    if (kube_delete(client, &kube_pods, job->ns, job->name, job->uid, -1, err) < 0)
        return err->code == ERROR_NOT_FOUND ? 0 : -1;
    return 0;
}

/* A conflict may be transient; if it persists, the name belongs to another pod by now. */
static bool may_help(const struct error *err)
{
    return err->code == ERROR_CONFLICT || error_is_transient(err);
}

static int worker_evict(struct evictor *e, struct kube_client *client,
                        const struct evictor_job *job, bool *told, struct error *err)
{
    for (int attempt = 0;; attempt++) {
        error_clear(err);
        if (e->config.lease != NULL && !lease_may_write(e->config.lease))
            return error_set(err, ERROR_CANCELLED, "the lease does not allow writing");
        if (start_eviction(client, job, told, err) == 0)
            return 0;
        if (!may_help(err) || attempt + 1 == TRIES)
            return -1;
        if (!kube_client_pause(client, PAUSE_FIRST_MS, attempt, err))
            return -1;
    }
}

/* Controllers count a pod with the condition as one that goes. Once: the next eviction writes it
 * anyway, and what keeps this from being written has made the eviction fail. */
static void take_back_condition(struct evictor *e, struct kube_client *client,
                                const struct evictor_job *job)
{
    struct error err = ERROR_INIT;
    if (e->config.lease != NULL && !lease_may_write(e->config.lease))
        return;
    if (write_condition(client, job, false, &err) < 0 && err.code != ERROR_NOT_FOUND)
        log_warn("condition DisruptionTarget not taken back", kv("ns", job->ns),
                 kv("pod", job->name), kv("error", err.text));
}

static void worker_run(void *arg, unsigned thread, void *p)
{
    struct evictor *e = arg;
    struct evictor_job *job = p;
    struct evictor_result *r = mem_new(struct evictor_result, 1);
    bool told = false;
    r->gone = worker_evict(e, e->clients[thread], job, &told, &r->error) == 0;
    if (!r->gone && told)
        take_back_condition(e, e->clients[thread], job);
    metrics_inc(&victims_total, r->gone ? "sent away" : error_code_name(r->error.code));
    AUTO_STRBUF key = {0};
    strbuf_addf(&key, "%s/%s", job->ns, job->name);
    r->victim = mem_strdup(strbuf_str(&key));
    r->victim_uid = mem_strdup(job->uid);
    r->pod = mem_strdup(job->pod);
    r->pod_uid = mem_strdup(job->pod_uid);
    job_free(job);
    (void)mailbox_post(e->config.results, r);
}

int evictor_start(struct evictor **out, struct kube_config *kube, const struct kube_options *o,
                  const struct evictor_config *c, struct error *err)
{
    metrics_register(&victims_total);
    struct evictor *e = mem_new(struct evictor, 1);
    e->config = *c;
    int rc = 0;
    for (unsigned i = 0; i < THREADS && rc == 0; i++)
        rc = kube_client_new(&e->clients[i], kube, o, "cosched-scheduler/evictor", err);
    struct workers_config workers = {
        .threads = THREADS, .run = worker_run, .dispose = job_free, .arg = e};
    if (rc < 0 || workers_start(&e->workers, &workers, err) < 0) {
        evictor_stop(e);
        return error_wrap(err, "evictor");
    }
    *out = e;
    return 0;
}

void evictor_submit(struct evictor *e, const struct pod *victim, const struct pod *for_pod)
{
    struct evictor_job *job = mem_new(struct evictor_job, 1);
    *job = (struct evictor_job){.ns = mem_strdup(victim->ns),
                                .name = mem_strdup(victim->name),
                                .uid = mem_strdup(victim->uid),
                                .pod = mem_strdup(for_pod->key),
                                .pod_uid = mem_strdup(for_pod->uid)};
    (void)workers_submit(e->workers, job);
}

void evictor_submit_stale(struct evictor *e, const struct pod *victim, const char *why)
{
    struct evictor_job *job = mem_new(struct evictor_job, 1);
    *job = (struct evictor_job){.ns = mem_strdup(victim->ns),
                                .name = mem_strdup(victim->name),
                                .uid = mem_strdup(victim->uid),
                                .pod = mem_strdup(""),
                                .pod_uid = mem_strdup(""),
                                .why = mem_strdup(why)};
    (void)workers_submit(e->workers, job);
}

void evictor_stop(struct evictor *e)
{
    if (e == NULL)
        return;
    for (unsigned i = 0; i < THREADS; i++)
        if (e->clients[i] != NULL)
            kube_client_cancel(e->clients[i]);
    workers_stop(e->workers);
    for (unsigned i = 0; i < THREADS; i++)
        if (e->clients[i] != NULL)
            kube_client_free(e->clients[i]);
    free(e);
}
