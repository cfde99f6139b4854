// SPDX-License-Identifier: Apache-2.0
#include "scheduler/binder.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "lib/base/mem.h"
#include "lib/kube/api.h"
#include "scheduler/workers.h"

static struct metric bind_total = {.kind = METRIC_COUNTER,
                                   .name = "cosched_scheduler_binds_total",
                                   .help = "Bindings by outcome.",
                                   .label = "outcome"};
static struct metric bind_seconds = {.kind = METRIC_HISTOGRAM,
                                     .name = "cosched_scheduler_bind_duration_seconds",
                                     .help =
                                         "Time from a Binding's first POST to its known outcome."};

struct binder {
    struct workers *workers;
    struct kube_client **clients; /* one for each thread */
    unsigned threads;
    const struct lease *lease;
    struct mailbox *results;
};

struct binder_job {
    struct arena arena;
    struct kube_binding binding;
    int64_t seen_us;
};

static void job_free(void *p)
{
    struct binder_job *job = p;
    arena_deinit(&job->arena);
    free(job);
}

void binder_result_free(void *p)
{
    struct binder_result *r = p;
    free(r->pod);
    free(r->uid);
    free(r->node);
    free(r);
}

/* What the API server knows of the pod now. true: settled, *outcome is set. */
static bool settled(struct kube_client *client, const struct kube_binding *b,
                    enum binder_outcome *outcome, struct error *err)
{
    struct json_doc *doc = NULL;
    if (kube_get(client, &kube_pods, b->ns, b->pod, &doc, err) < 0) {
        *outcome = err->code == ERROR_NOT_FOUND ? BINDER_LOST : BINDER_FAILED;
        return err->code == ERROR_NOT_FOUND;
    }
    json *pod = json_root(doc);
    const char *uid = json_get_str(json_get(pod, "metadata"), "uid");
    const char *node = json_get_str(json_get(pod, "spec"), "nodeName");
    bool same = str_eq(uid, b->uid);
    bool bound = node != NULL && node[0] != '\0';
    if (same && bound && str_eq(node, b->node))
        *outcome = BINDER_BOUND;
    else
        *outcome = !same || bound ? BINDER_LOST : BINDER_FAILED;
    if (*outcome == BINDER_LOST)
        (void)error_set(err, ERROR_CONFLICT, "the pod is %s",
                        !same ? "another one by now" : "bound elsewhere");
    json_free(doc);
    return *outcome != BINDER_FAILED;
}

static enum binder_outcome worker_bind(struct binder *b, struct kube_client *client,
                                       const struct kube_binding *binding, struct error *err)
{
    for (int attempt = 0;; attempt++) {
        if (b->lease != NULL && !lease_may_write(b->lease)) {
            (void)error_set(err, ERROR_CANCELLED, "the lease does not allow writing");
            return BINDER_FAILED;
        }
        bool never_sent = false;
        enum binder_outcome outcome = BINDER_FAILED;
        error_clear(err);
        if (kube_bind(client, binding, &never_sent, err) == 0)
            return BINDER_BOUND;
        if (err->code == ERROR_NOT_FOUND)
            return BINDER_LOST;
        /* A conflict may be our own earlier Binding whose reply was lost, so it is looked up as well. */
        bool doubtful = err->code == ERROR_CONFLICT || err->code == ERROR_TIMEOUT ||
                        err->code == ERROR_UNAVAILABLE;
        if (doubtful && !never_sent) {
            struct error look = ERROR_INIT;
            if (settled(client, binding, &outcome, &look)) {
                if (outcome == BINDER_LOST)
                    *err = look;
                return outcome;
            }
        }
        if (!doubtful || err->code == ERROR_CONFLICT || attempt + 1 == BINDER_TRIES)
            return BINDER_FAILED; /* a conflict on an unbound pod: deleting or gated */
        clock_sleep_ms(50 + clock_jitter(100 << attempt));
    }
}

static const char *outcome_name(enum binder_outcome o)
{
    return o == BINDER_BOUND ? "bound" : o == BINDER_LOST ? "lost" : "failed";
}

static void worker_run(void *arg, unsigned thread, void *p)
{
    struct binder *b = arg;
    struct binder_job *job = p;
    const struct kube_binding *binding = &job->binding;
    struct binder_result *r = mem_new(struct binder_result, 1);
    *r = (struct binder_result){.seen_us = job->seen_us};

    int64_t began_us = clock_mono_us();
    r->outcome = worker_bind(b, b->clients[thread], binding, &r->error);
    metrics_inc(&bind_total, outcome_name(r->outcome));
    metrics_observe_us(&bind_seconds, NULL, clock_mono_us() - began_us);

    struct strbuf key = {0};
    strbuf_addf(&key, "%s/%s", binding->ns, binding->pod);
    r->pod = strbuf_take(&key);
    r->uid = mem_strdup(binding->uid);
    r->node = mem_strdup(binding->node);
    job_free(job);
    (void)mailbox_post(b->results, r);
}

int binder_start(struct binder **out, struct kube_config *kube, const struct kube_options *o,
                 unsigned threads, const struct lease *lease, struct mailbox *results,
                 struct error *err)
{
    metrics_register(&bind_total);
    metrics_register(&bind_seconds);
    struct binder *b = mem_new(struct binder, 1);
    *b = (struct binder){.threads = threads, .lease = lease, .results = results};
    b->clients = mem_new(struct kube_client *, threads);
    for (unsigned i = 0; i < threads; i++)
        if (kube_client_new(&b->clients[i], kube, o, "cosched-scheduler/binder", err) < 0) {
            binder_stop(b);
            return error_wrap(err, "binder");
        }
    struct workers_config config = {
        .threads = threads, .run = worker_run, .dispose = job_free, .arg = b};
    if (workers_start(&b->workers, &config, err) < 0) {
        binder_stop(b);
        return error_wrap(err, "binder");
    }
    *out = b;
    return 0;
}

void binder_submit(struct binder *b, const char *ns, const char *pod, const char *uid,
                   const char *node, const struct labels *annotations, int64_t seen_us)
{
    struct binder_job *job = mem_new(struct binder_job, 1);
    *job = (struct binder_job){.seen_us = seen_us};
    struct arena *a = &job->arena;
    arena_init(a, 1024);
    struct kube_binding *binding = &job->binding;
    binding->ns = arena_strdup(a, ns);
    binding->pod = arena_strdup(a, pod);
    binding->uid = arena_strdup(a, uid);
    binding->node = arena_strdup(a, node);
    binding->timeout_ms = BINDER_TIMEOUT_MS;
    binding->annotations.items = arena_new(a, struct label, annotations->len);
    binding->annotations.len = annotations->len;
    for (size_t i = 0; i < annotations->len; i++)
        binding->annotations.items[i] =
            (struct label){.key = arena_strdup(a, annotations->items[i].key),
                           .value = arena_strdup(a, annotations->items[i].value)};
    (void)workers_submit(b->workers, job);
}

size_t binder_pending(struct binder *b)
{
    return workers_pending(b->workers);
}

void binder_stop(struct binder *b)
{
    if (b == NULL)
        return;
    for (unsigned i = 0; i < b->threads; i++)
        if (b->clients[i] != NULL)
            kube_client_cancel(b->clients[i]);
    workers_stop(b->workers);
    for (unsigned i = 0; i < b->threads; i++)
        if (b->clients[i] != NULL)
            kube_client_free(b->clients[i]);
    free(b->clients);
    free(b);
}
