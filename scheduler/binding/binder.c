// SPDX-License-Identifier: Apache-2.0
/*
 * One Binding, from submit to its result. The first POST goes through the post pipeline, which
 * keeps many in flight on one thread; a 201 ends it there (on_posted). Anything else is completed
 * by a worker (worker_bind):
 *
 *      POST ── 201 ────────────────────────────► BOUND
 *       ▲ │── 404 ─────────────────────────────► LOST, unless in doubt
 *       │ │── timeout, connection lost, 5xx: in doubt until the server's own ?timeout= has surely
 *       │ │                                      passed (post)
 *       │ └── in doubt, or 409 (may be our own): GET the pod (read_pod)
 *       │          │── bound to our node ──────► BOUND
 *       │          │── bound elsewhere, gone, another pod of that name ─► LOST
 *       │          │── not bound, and read after the doubt ended: no longer in doubt
 *       │          └── no answer: still in doubt
 *       ├── may help (never sent, no answer, 5xx, 429) and tries are left ── pause
 *       │   else, in doubt: pause until it has ended, GET only
 *       └── otherwise ─────────────────────────► FAILED
 *
 * In doubt the worker keeps asking until the binder stops: the capacity stays assumed as long as
 * the pod may be bound (I1). Posting again is harmless, since the API server binds a pod once, and
 * each POST names the same node and grant.
 */
#include "scheduler/binding/binder.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "lib/base/metrics.h"
#include "lib/base/num.h"
#include "lib/kube/post_pipeline.h"
#include "scheduler/binding/binder_gone.h"
#include "scheduler/binding/workers.h"

enum {
    PAUSE_FIRST_MS = 50,
    NODE_FRESH_MS = 1000, /* a younger placement needs no GET of the node */
    NODE_TOLD_MS = 10000, /* nor does one this young whose node stayed in the model */
    WORKERS = 4           /* for Bindings that go wrong, which mostly wait */
};

static const char user_agent[] = "cosched-scheduler/binder";

static struct metric bind_total = {.kind = METRIC_COUNTER,
                                   .name = "cosched_scheduler_binds_total",
                                   .help = "Bindings by outcome.",
                                   .label = "outcome"};
static struct metric bind_seconds = {.kind = METRIC_HISTOGRAM,
                                     .name = "cosched_scheduler_bind_duration_seconds",
                                     .help =
                                         "Time from a Binding's first POST to its known outcome."};

struct binder {
    struct binder_config config;
    struct post_pipeline *pipeline; /* NULL: requests are rate-limited, by the clients */
    struct workers *workers;
    struct kube_client **clients; /* one per thread */
    unsigned threads;
    _Atomic size_t pending;
    struct binder_gone gone;
};

/* Many may be queued, so each job is one exactly sized block that contains itself. */
struct binder_job {
    struct arena arena;
    struct kube_binding binding;
    uint64_t ticket;
    int64_t node_seen_ms; /* when the node was last known to exist */
    int64_t began_us;     /* of the first POST; 0: none yet */
    /* The outcome of the first POST. */
    bool posted;
    int64_t doubt_until_ms; /* -1: not in doubt */
    struct error *error;    /* NULL: none */
};

static void job_free(void *p)
{
    struct binder_job *job = p;
    struct arena a = job->arena;
    free(job->error);
    arena_deinit(&a);
}

void binder_result_free(void *p)
{
    struct binder_result *r = p;
    free(r->pod);
    free(r->node);
    free(r);
}

enum sight { SIGHT_NONE, SIGHT_BOUND, SIGHT_LOST, SIGHT_UNBOUND };

/* Reads the pod from the API server. NONE: no answer. Sets err except for BOUND and UNBOUND. */
static enum sight read_pod(struct kube_client *client, const struct kube_binding *b,
                           struct error *err)
{
    AUTO_JSON *doc = NULL;
    if (kube_get(client, &kube_pods, b->ns, b->pod, &doc, err) < 0)
        return err->code == ERROR_NOT_FOUND ? SIGHT_LOST : SIGHT_NONE;
    json *pod = json_root(doc);
    const char *node = json_get_str(json_get(pod, "spec"), "nodeName");
    const char *problem = NULL;
    if (!str_eq(json_get_str(json_get(pod, "metadata"), "uid"), b->uid))
        problem = "another one by now";
    else if (node == NULL || node[0] == '\0')
        return SIGHT_UNBOUND;
    else if (str_eq(node, b->node))
        return SIGHT_BOUND;
    else
        problem = "bound elsewhere";
    (void)error_set(err, ERROR_CONFLICT, "the pod is %s", problem);
    return SIGHT_LOST;
}

/* The API server accepts a Binding to a deleted node, so a delayed placement is checked. false only
 * if the node is known to be gone. */
static bool node_exists(struct kube_client *client, struct binder_job *job, struct error *err)
{
    int64_t now_ms = clock_mono_ms();
    if (now_ms - job->node_seen_ms < NODE_FRESH_MS)
        return true;
    struct error why = ERROR_INIT;
    if (kube_get(client, &kube_nodes, NULL, job->binding.node, NULL, &why) == 0)
        job->node_seen_ms = now_ms;
    if (why.code != ERROR_NOT_FOUND)
        return true;
    *err = why;
    return false;
}

/* Whether a failed POST may still be executed: only the server's explicit refusal excludes that. */
static bool is_doubtful(const struct error *err, bool never_sent)
{
    bool refused = err->http_status >= 300 && err->http_status < 500 && err->code != ERROR_TIMEOUT;
    return !never_sent && !refused;
}

static bool may_write(const struct binder *b, struct error *err)
{
    if (b->config.lease == NULL || lease_may_write(b->config.lease))
        return true;
    (void)error_set(err, ERROR_CANCELLED, "the lease does not allow writing");
    return false;
}

/* 0: bound. Moves *doubt_until_ms if this failed POST may still be executed. */
static int post(struct binder *b, struct kube_client *client, struct binder_job *job,
                int64_t *doubt_until_ms, struct error *err)
{
    bool never_sent = false;
    if (!node_exists(client, job, err))
        return -1;
    /* Before the fence check: its answer is that old when the Binding goes out, so a leader that is
     * paused in between sends nothing late. */
    job->binding.began_ms = clock_mono_ms();
    if (!may_write(b, err))
        return -1;
    int64_t until_ms = job->binding.began_ms + job->binding.timeout_ms;
    if (kube_bind(client, &job->binding, &never_sent, err) == 0)
        return 0;
    if (is_doubtful(err, never_sent))
        *doubt_until_ms = num_max(*doubt_until_ms, until_ms);
    return -1;
}

static enum binder_outcome worker_bind(struct binder *b, struct kube_client *client,
                                       struct binder_job *job, struct error *err)
{
    int64_t doubt_until_ms = job->doubt_until_ms;
    bool posting = true;
    for (int attempt = 0;; attempt++) {
        if (attempt == 0 && job->error != NULL) {
            *err = *job->error;
            posting = error_is_transient(err);
        } else if (posting) { /* otherwise err stays the last POST's */
            error_clear(err);
            if (post(b, client, job, &doubt_until_ms, err) == 0)
                return BINDER_BOUND;
            posting = error_is_transient(err) && attempt + 1 < BINDER_TRIES;
        }
        if (doubt_until_ms >= 0 || err->code == ERROR_CONFLICT) {
            struct error seen = ERROR_INIT;
            int64_t asked_ms = clock_mono_ms();
            enum sight sight = read_pod(client, &job->binding, &seen);
            if (sight == SIGHT_BOUND)
                return BINDER_BOUND;
            if (sight == SIGHT_LOST) {
                *err = seen;
                return BINDER_LOST;
            }
            if (sight == SIGHT_UNBOUND && asked_ms >= doubt_until_ms)
                doubt_until_ms = -1;
        }
        if (doubt_until_ms < 0 && !posting)
            return err->code == ERROR_NOT_FOUND ? BINDER_LOST : BINDER_FAILED;
        struct error wish = {.retry_after_ms =
                                 posting ? err->retry_after_ms : doubt_until_ms - clock_mono_ms()};
        if (!kube_client_pause(client, PAUSE_FIRST_MS, attempt, &wish)) {
            (void)error_set(err, ERROR_CANCELLED, "we are stopping");
            return BINDER_FAILED;
        }
    }
}

static const char *outcome_name(enum binder_outcome o)
{
    return o == BINDER_BOUND ? "bound" : o == BINDER_LOST ? "lost" : "failed";
}

static void conclude(struct binder *b, struct binder_job *job, struct binder_result *r)
{
    metrics_inc(&bind_total, outcome_name(r->outcome));
    metrics_observe_us(&bind_seconds, NULL, r->ended_us - job->began_us);

    struct strbuf key = {0};
    strbuf_adds(&key, job->binding.ns);
    strbuf_addc(&key, '/');
    strbuf_adds(&key, job->binding.pod);
    r->pod = strbuf_take(&key);
    r->node = mem_strdup(job->binding.node);
    r->ticket = job->ticket;
    job_free(job);
    (void)mailbox_post(b->config.results, r);
    atomic_fetch_sub(&b->pending, 1);
}

static void worker_run(void *arg, unsigned thread, void *p)
{
    struct binder *b = arg;
    struct binder_job *job = p;
    struct binder_result *r = mem_new(struct binder_result, 1);
    if (job->began_us == 0)
        job->began_us = clock_mono_us();
    r->outcome = worker_bind(b, b->clients[thread], job, &r->error);
    r->ended_us = clock_mono_us();
    conclude(b, job, r);
}

static int compose(void *arg, void *p, struct strbuf *path, struct strbuf *body, struct error *err)
{
    struct binder *b = arg;
    struct binder_job *job = p;
    /* The first POST may have been queued for long, and a GET for each would double the server's
     * load. Until it is sent, binder_node_gone reports deleted nodes. */
    if (clock_mono_ms() - job->node_seen_ms >= NODE_TOLD_MS ||
        binder_gone_since(&b->gone, job->binding.node, job->node_seen_ms)) {
        job->node_seen_ms = -NODE_FRESH_MS;
        return error_set(err, ERROR_UNAVAILABLE, "the node must be read first");
    }
    job->posted = true;
    return may_write(b, err) ? kube_bind_compose(&job->binding, path, body, err) : -1;
}

static void on_posted(void *arg, void *p, const struct post_pipeline_answer *a)
{
    struct binder *b = arg;
    struct binder_job *job = p;
    if (a->error.code == ERROR_NONE) {
        struct binder_result *r = mem_new(struct binder_result, 1);
        r->outcome = BINDER_BOUND;
        r->ended_us = a->ended_us;
        job->began_us = a->began_us;
        conclude(b, job, r);
        return;
    }
    job->posted = job->posted || a->began_us == 0; /* a failed connection is an outcome too */
    if (job->posted) {
        job->began_us = a->began_us;
        job->error = mem_new(struct error, 1);
        *job->error = a->error;
        if (is_doubtful(&a->error, a->never_sent))
            job->doubt_until_ms = a->until_ms;
    }
    (void)workers_submit(b->workers, job);
}

static int start_clients(struct binder *b, struct kube_config *kube, const struct kube_options *o,
                         struct error *err)
{
    b->clients = mem_new(struct kube_client *, b->threads);
    for (unsigned i = 0; i < b->threads; i++) {
        if (kube_client_new(&b->clients[i], kube, o, user_agent, err) < 0)
            return -1;
        kube_client_set_timeout(b->clients[i], b->config.timeout_ms);
    }
    return 0;
}

static int start_pipeline(struct binder *b, struct kube_config *kube, const struct kube_options *o,
                          struct error *err)
{
    struct post_pipeline_config c = {.connections = b->config.threads,
                                     .ahead = true,
                                     .timeout_ms = b->config.timeout_ms,
                                     .user_agent = user_agent,
                                     .compose = compose,
                                     .done = on_posted,
                                     .dispose = job_free,
                                     .arg = b};
    return post_pipeline_start(&b->pipeline, kube, o, &c, err);
}

int binder_start(struct binder **out, struct kube_config *kube, const struct kube_options *o,
                 const struct binder_config *c, struct error *err)
{
    metrics_register(&bind_total);
    metrics_register(&bind_seconds);
    struct binder *b = mem_new(struct binder, 1);
    b->config = *c;
    binder_gone_init(&b->gone);
    if (b->config.timeout_ms == 0)
        b->config.timeout_ms = BINDER_TIMEOUT_MS;
    bool limited = o->qps > 0;
    b->threads = limited || c->threads < WORKERS ? c->threads : WORKERS;
    struct workers_config workers = {
        .threads = b->threads, .run = worker_run, .dispose = job_free, .arg = b};
    if (start_clients(b, kube, o, err) < 0 || workers_start(&b->workers, &workers, err) < 0 ||
        (!limited && start_pipeline(b, kube, o, err) < 0)) {
        binder_stop(b);
        return error_wrap(err, "binder");
    }
    *out = b;
    return 0;
}

static size_t texts_bytes(const struct labels *l)
{
    size_t n = l->len * sizeof(struct label);
    for (size_t i = 0; i < l->len; i++)
        n += strlen(l->items[i].key) + strlen(l->items[i].value) + 2;
    return n;
}

/* The second list of texts may need a little for alignment. */
static size_t job_bytes(const struct kube_binding *b)
{
    return sizeof(struct binder_job) + texts_bytes(&b->annotations) + texts_bytes(&b->labels) +
           strlen(b->ns) + strlen(b->pod) + strlen(b->uid) + strlen(b->node) + 4 +
           (b->labels.len > 0 ? sizeof(struct label) : 0);
}

static struct binder_job *job_new(const struct kube_binding *b)
{
    struct arena a;
    arena_init_exact(&a, job_bytes(b));
    struct binder_job *job = arena_new(&a, struct binder_job, 1);
    job->binding = kube_binding_copy(b, &a);
    job->arena = a;
    return job;
}

void binder_submit(struct binder *b, const struct kube_binding *binding, uint64_t ticket)
{
    struct binder_job *job = job_new(binding);
    job->binding.timeout_ms = b->config.timeout_ms;
    job->ticket = ticket;
    job->node_seen_ms = clock_mono_ms();
    job->doubt_until_ms = -1;
    atomic_fetch_add(&b->pending, 1);
    if (b->pipeline != NULL)
        post_pipeline_submit(b->pipeline, job);
    else
        (void)workers_submit(b->workers, job);
}

void binder_node_gone(struct binder *b, const char *node)
{
    if (b == NULL)
        return;
    if (atomic_load(&b->pending) == 0)
        binder_gone_forget(&b->gone);
    else
        binder_gone_note(&b->gone, node, clock_mono_ms());
}

size_t binder_pending(struct binder *b)
{
    return atomic_load(&b->pending);
}

void binder_stop(struct binder *b)
{
    if (b == NULL)
        return;
    post_pipeline_stop(b->pipeline);
    for (unsigned i = 0; i < b->threads; i++)
        if (b->clients[i] != NULL)
            kube_client_cancel(b->clients[i]);
    workers_stop(b->workers);
    for (unsigned i = 0; i < b->threads; i++)
        if (b->clients[i] != NULL)
            kube_client_free(b->clients[i]);
    free(b->clients);
    binder_gone_deinit(&b->gone);
    free(b);
}
