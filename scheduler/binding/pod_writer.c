// SPDX-License-Identifier: Apache-2.0
#include "scheduler/binding/pod_writer.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/metrics.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/kube/api.h"
#include "lib/kube/decode.h"
#include "lib/model/names.h"
#include "scheduler/binding/pod_patch.h"
#include "scheduler/binding/workers.h"

enum { STATUS_TRIES = 5, PAUSE_FIRST_MS = 100, BUSY_POLL_MS = 50 };

static struct metric group_writes = {.kind = METRIC_COUNTER,
                                     .name = "cosched_scheduler_podgroup_writes_total",
                                     .help = "Writes of PodGroup statuses by result.",
                                     .label = "result"};
static struct metric policy_writes = {.kind = METRIC_COUNTER,
                                      .name = "cosched_scheduler_resourcepolicy_writes_total",
                                      .help = "Writes of ResourcePolicy statuses by result.",
                                      .label = "result"};
static struct metric writes = {.kind = METRIC_COUNTER,
                               .name = "cosched_scheduler_condition_writes_total",
                               .help = "Writes of PodScheduled conditions by result.",
                               .label = "result"};

/* What a pod was told last. */
struct told {
    uint64_t class;
    uint64_t text;        /* hash of the sentence */
    uint64_t event_class; /* of its last Event */
    int64_t ms;
};

/* A gang's Events of one class. */
struct gang_events {
    uint64_t class;
    size_t sent;
};

struct pod_writer {
    struct workers *workers;
    struct kube_client *client;
    struct events *events;
    const struct lease *lease;
    struct rate_limit rate;
    struct events_limit shared; /* the rate limit, for Events */
    const struct pod_trace *trace;
    struct ids_table told;        /* by pod */
    struct ids_table gang_events; /* by gang */
};

struct status_job;
static void print_condition(struct status_job *job);

/* Properties of a kind of write. */
struct writer {
    const struct kube_kind *kind; /* whose status it patches */
    enum kube_patch how;
    struct metric *metric;
    bool at_once;  /* bypasses the rate limit */
    bool rechecks; /* after a conflict: whether the pod still waits */
    bool once;     /* no retries: its owner checks, and sends again */
    /* Prints the body for every try; NULL: printed once, with the job. */
    void (*print)(struct status_job *job);
};
static const struct writer pod_condition = {.kind = &kube_pods,
                                            .how = KUBE_PATCH_STRATEGIC,
                                            .metric = &writes,
                                            .rechecks = true,
                                            .print = print_condition};
static const struct writer pod_annotation = {
    .kind = &kube_pods, .how = KUBE_PATCH_STRATEGIC, .metric = &writes, .rechecks = true};
static const struct writer pod_nomination = {.kind = &kube_pods,
                                             .how = KUBE_PATCH_STRATEGIC,
                                             .metric = &writes,
                                             .at_once = true,
                                             .rechecks = true};
static const struct writer pod_metadata = {
    .kind = &kube_pods, .how = KUBE_PATCH_MERGE, .metric = &writes};
static const struct writer policy_status = {
    .kind = &kube_resource_policies, .how = KUBE_PATCH_MERGE, .metric = &policy_writes};
#define GROUP(k)                                                                  \
    {                                                                             \
        .kind = k, .how = KUBE_PATCH_MERGE, .metric = &group_writes, .once = true \
    }
static const struct writer group_status[] = {[POD_GROUP_SIGS] = GROUP(&kube_pod_groups),
                                             [POD_GROUP_X] = GROUP(&kube_pod_groups_x),
                                             [POD_GROUP_NATIVE] = GROUP(&kube_pod_groups_native)};
#undef GROUP

/* PodScheduled=False. */
struct condition {
    char *version; /* of the pod that was read last */
    char *reason, *sentence;
    bool turns_false; /* it was not False before */
};

struct status_job {
    const struct writer *writer;
    char *ns, *name, *uid;
    struct condition condition; /* pod_condition only */
    struct strbuf body;         /* the patch */
};

static void job_free(void *p)
{
    struct status_job *job = p;
    free(job->ns);
    free(job->name);
    free(job->uid);
    strbuf_deinit(&job->body);
    free(job->condition.version);
    free(job->condition.reason);
    free(job->condition.sentence);
    free(job);
}

static struct status_job *job_new(const struct writer *w, const char *ns, const char *name,
                                  const char *uid)
{
    struct status_job *job = mem_new(struct status_job, 1);
    job->writer = w;
    job->ns = mem_strdup(ns);
    job->name = mem_strdup(name);
    job->uid = mem_strdup(uid);
    return job;
}

static struct status_job *job_new_pod(const struct writer *w, const struct pod *p)
{
    return job_new(w, p->ns, p->name, p->uid);
}

/* Takes the job. false: the queue is full. */
static bool submit(struct pod_writer *s, struct status_job *job)
{
    struct metric *metric = job->writer->metric;
    bool taken = workers_submit(s->workers, job);
    if (!taken)
        metrics_inc(metric, "dropped");
    return taken;
}

static void print_condition(struct status_job *job)
{
    char now[CLOCK_RFC3339_SIZE];
    clock_rfc3339(clock_wall_ns(), 0, now);
    const struct pod_patch_condition c = {.type = "PodScheduled",
                                          .status = "False",
                                          .reason = job->condition.reason,
                                          .message = job->condition.sentence,
                                          .since = job->condition.turns_false ? now : NULL};
    strbuf_reset(&job->body);
    pod_patch_condition(&job->body, job->uid, job->condition.version, &c);
}

/* After a conflict. 1: it still waits, the job has its version; 0: it does not; -1: unknown. */
static int still_waits(struct pod_writer *s, struct status_job *job, struct error *err)
{
    AUTO_JSON *doc = NULL;
    if (kube_get(s->client, &kube_pods, job->ns, job->name, &doc, err) < 0)
        return err->code == ERROR_NOT_FOUND ? 0 : -1;
    struct object_meta meta;
    decode_meta(json_root(doc), &meta);
    const char *node = json_get_str(json_get(json_root(doc), "spec"), "nodeName");
    if (!str_eq(meta.uid, job->uid) || str_or_empty(node)[0] != '\0')
        return 0;
    free(job->condition.version);
    job->condition.version = mem_strdup(meta.resource_version);
    return 1;
}

static int patch(struct pod_writer *s, struct status_job *job, struct error *err)
{
    if (job->writer->print != NULL)
        job->writer->print(job);
    return kube_patch(s->client, job->writer->kind, job->ns, job->name, "status", job->writer->how,
                      strbuf_str(&job->body), job->body.len, NULL, err);
}

/* Waits for an unreachable server, since this write is not repeated; but not for one that keeps
 * answering with errors for this pod, since other jobs are queued. */
static bool is_worth_waiting(const struct error *err, int attempt)
{
    return error_is_transient(err) && (err->http_status == 0 || attempt + 1 < STATUS_TRIES);
}

/* false: we are stopping. */
static bool wait_for_turn(struct pod_writer *s)
{
    for (;;) {
        bool busy = s->shared.is_busy(s->shared.arg);
        int64_t ms = rate_limit_take(&s->rate, busy, clock_mono_ms());
        if (ms == 0)
            return true;
        if (!kube_http_sleep(kube_client_http(s->client), busy ? num_min(ms, BUSY_POLL_MS) : ms))
            return false;
    }
}

/* Returns the outcome, for the metric. */
static const char *write_job(struct pod_writer *s, struct status_job *job)
{
    const struct writer *w = job->writer;
    struct error err = ERROR_INIT;
    if (!w->at_once && !wait_for_turn(s))
        return "stopping";
    for (int attempt = 0;; attempt++) {
        error_clear(&err);
        if (s->lease != NULL && !lease_may_write(s->lease))
            return "not leading";
        if (patch(s, job, &err) == 0)
            return "written";
        int waits = err.code != ERROR_CONFLICT ? -1 : w->rechecks ? still_waits(s, job, &err) : 0;
        if (waits == 0 || err.code == ERROR_NOT_FOUND)
            return "overtaken";
        if (waits == 1 && attempt + 1 < STATUS_TRIES)
            continue;
        if (w->once || !is_worth_waiting(&err, attempt))
            break;
        if (!kube_client_pause(s->client, PAUSE_FIRST_MS, attempt, &err))
            return "stopping";
    }
    if (err.code != ERROR_CANCELLED)
        log_warn("not written", kv("kind", w->kind->kind), kv("namespace", job->ns),
                 kv("name", job->name), kv("error", err.text));
    return error_code_name(err.code);
}

static void worker_write(void *arg, unsigned thread, void *p)
{
    struct status_job *job = p;
    (void)thread;
    metrics_inc(job->writer->metric, write_job(arg, job));
    job_free(job);
}

int pod_writer_start(struct pod_writer **out, struct kube_config *kube,
                     const struct kube_options *k, const struct pod_writer_config *c,
                     struct error *err)
{
    metrics_register(&writes);
    metrics_register(&group_writes);
    metrics_register(&policy_writes);
    struct pod_writer *s = mem_new(struct pod_writer, 1);
    *s = (struct pod_writer){.lease = c->lease, .trace = c->trace};
    ids_table_init(&s->told, sizeof(struct told), NULL);
    ids_table_init(&s->gang_events, sizeof(struct gang_events), NULL);
    rate_limit_init(&s->rate, c->events.qps, num_min(POD_WRITER_BUSY_QPS, c->events.qps),
                    clock_mono_ms());
    s->shared = (struct events_limit){.rate = &s->rate, .is_busy = c->is_busy, .arg = c->arg};
    struct events_options events = c->events;
    events.shared = &s->shared;
    struct workers_config config = {.threads = 1,
                                    .capacity = POD_WRITER_QUEUE,
                                    .run = worker_write,
                                    .dispose = job_free,
                                    .arg = s};
    if (kube_client_new(&s->client, kube, k, "cosched-scheduler/status", err) < 0 ||
        events_start(&s->events, kube, k, &events, NAME_SCHEDULER, err) < 0 ||
        workers_start(&s->workers, &config, err) < 0) {
        pod_writer_stop(s, 0);
        return error_wrap(err, "status");
    }
    *out = s;
    return 0;
}

static void emit(struct pod_writer *s, const struct pod *p, bool warning, const char *reason,
                 const char *message)
{
    struct events_object o = {
        .api_version = "v1", .kind = "Pod", .ns = p->ns, .name = p->name, .uid = p->uid};
    events_emit(s->events, &o, warning, reason, message);
}

/* When the pod may be told this class; -1: it was. */
static int64_t may_be_told_ms(struct pod_writer *s, const struct cluster_pod *cp, uint64_t class)
{
    if (!cluster_pod_is_schedulable(cp))
        return -1;
    const struct told *t = ids_at(&s->told, cp->id);
    if (t->class == class)
        return -1;
    return t->ms > 0 ? t->ms + POD_WRITER_AGAIN_MS
                     : pod_trace_seen_us(s->trace, cp) / 1000 + POD_WRITER_FIRST_MS;
}

static const char *reason_of(const struct queue_why *why)
{
    return why->for_gang ? "WaitingForGang" : "Unschedulable";
}

/* Behind each sentence: when it was true. */
static void add_time(struct strbuf *b)
{
    char now[CLOCK_RFC3339_SIZE];
    clock_rfc3339(clock_wall_ns(), 0, now);
    strbuf_addf(b, POD_WRITER_SEEN "%s)", now);
}

/* Told by the previous leader, or by us under another class or at another time. */
static bool knows(const struct pod *p, const struct queue_why *why)
{
    const struct pod_condition *c = &p->scheduled;
    size_t len = strlen(why->sentence);
    return str_eq(c->status, "False") && str_eq(c->reason, reason_of(why)) &&
           str_starts(c->message, why->sentence) &&
           (c->message[len] == '\0' || str_starts(c->message + len, POD_WRITER_SEEN));
}

static uint64_t text_of(const struct queue_why *why)
{
    return str_hash(why->sentence, strlen(why->sentence));
}

/* false: not taken, and told again later. */
static bool write_condition(struct pod_writer *s, const struct cluster_pod *cp,
                            const struct queue_why *why, int64_t now_ms)
{
    const struct pod *p = cp->pod;
    struct told *t = ids_at(&s->told, cp->id);
    AUTO_STRBUF message = {0};
    strbuf_adds(&message, why->sentence);
    add_time(&message);
    struct status_job *job = job_new_pod(&pod_condition, p);
    job->condition = (struct condition){.version = mem_strdup(p->resource_version),
                                        .reason = mem_strdup(reason_of(why)),
                                        .sentence = mem_strdup(strbuf_str(&message)),
                                        .turns_false = !str_eq(p->scheduled.status, "False")};
    t->ms = now_ms;
    if (!submit(s, job))
        return false;
    t->class = why->class;
    t->text = text_of(why);
    return true;
}

static void emit_waiting(struct pod_writer *s, const struct cluster_pod *cp,
                         const struct queue_why *why)
{
    struct told *t = ids_at(&s->told, cp->id);
    t->event_class = why->class;
    emit(s, cp->pod, true, "FailedScheduling", why->sentence);
}

static void tell(struct pod_writer *s, const struct gang *g, const struct queue_why *why,
                 const struct cluster_pod *cp, int64_t now_ms)
{
    struct told *t = ids_at(&s->told, cp->id);
    if (knows(cp->pod, why)) {
        t->class = t->event_class = why->class;
        t->text = text_of(why);
        return;
    }
    if (!write_condition(s, cp, why, now_ms))
        return;
    struct gang_events *events = ids_at(&s->gang_events, g->id);
    if (events->class != why->class || g->members.len == 1)
        *events = (struct gang_events){.class = why->class};
    if (events->sent++ < POD_WRITER_MEMBERS)
        emit_waiting(s, cp, why); /* the others': pod_writer_refresh */
}

int64_t pod_writer_report_waiting(struct pod_writer *s, const struct gang *g,
                                  const struct queue_why *why, int64_t now_ms)
{
    int64_t next_ms = -1;
    for (size_t i = 0; i < g->members.len; i++) {
        const struct cluster_pod *cp = g->members.items[i];
        int64_t due_ms = may_be_told_ms(s, cp, why->class);
        if (due_ms >= 0 && due_ms <= now_ms) {
            tell(s, g, why, cp, now_ms);
            due_ms = may_be_told_ms(s, cp, why->class);
        }
        if (due_ms >= 0 && (next_ms < 0 || due_ms < next_ms))
            next_ms = due_ms;
    }
    return next_ms;
}

bool pod_writer_refresh(struct pod_writer *s, const struct gang *g, const struct queue_why *why,
                        int64_t now_ms)
{
    const struct cluster_pod *outdated = NULL, *without_event = NULL;
    int64_t before_ms = now_ms - POD_WRITER_AGAIN_MS + 1; /* when the most outdated was told */
    uint64_t text = text_of(why);
    for (size_t i = 0; i < g->members.len; i++) {
        const struct cluster_pod *cp = g->members.items[i];
        const struct told *t = ids_at(&s->told, cp->id);
        if (!cluster_pod_is_schedulable(cp) || t->class != why->class)
            continue;
        if (t->event_class != why->class)
            without_event = cp;
        if (t->text == text || t->ms >= before_ms)
            continue;
        outdated = cp;
        before_ms = t->ms;
    }
    if (outdated != NULL)
        return write_condition(s, outdated, why, now_ms);
    if (without_event != NULL)
        emit_waiting(s, without_event, why);
    return without_event != NULL;
}

bool pod_writer_is_idle(struct pod_writer *s)
{
    return workers_pending(s->workers) == 0;
}

void pod_writer_report_bound(struct pod_writer *s, const struct pod *p, const char *node)
{
    AUTO_STRBUF b = {0};
    strbuf_adds(&b, "Assigned "); /* once per bound pod: no printf */
    strbuf_adds(&b, p->key);
    strbuf_adds(&b, " to ");
    strbuf_adds(&b, node);
    emit(s, p, false, "Scheduled", strbuf_str(&b));
}

void pod_writer_report_bind_failed(struct pod_writer *s, const struct pod *p, const char *node,
                                   const char *why)
{
    AUTO_STRBUF b = {0};
    strbuf_addf(&b, "Binding to %s failed, trying again: %s", node, why);
    emit(s, p, true, "FailedBinding", strbuf_str(&b));
}

void pod_writer_report_nominated(struct pod_writer *s, const struct pod *p, const char *node)
{
    struct status_job *job = job_new_pod(&pod_nomination, p);
    pod_patch_nominated(&job->body, p->uid, str_or_empty(node));
    (void)submit(s, job);
}

static void write_annotation(struct pod_writer *s, const struct pod *p, const char *key,
                             const char *value)
{
    struct status_job *job = job_new_pod(&pod_annotation, p);
    pod_patch_annotation(&job->body, p->uid, key, value);
    (void)submit(s, job);
}

void pod_writer_record_satisfied(struct pod_writer *s, const struct pod *p, const char *gang)
{
    write_annotation(s, p, NAME_ANN_GANG_SATISFIED, gang);
}

void pod_writer_write_cpuset(struct pod_writer *s, const struct pod *p, const char *text)
{
    write_annotation(s, p, NAME_ANN_CPUSET, text);
}

void pod_writer_report_preempted(struct pod_writer *s, const struct pod *victim,
                                 const struct pod *by, const char *node)
{
    AUTO_STRBUF b = {0};
    strbuf_addf(&b, "Evicted from %s in favour of pod %s of higher priority", node, by->key);
    emit(s, victim, false, "Preempted", strbuf_str(&b));
}

void pod_writer_report_pod(struct pod_writer *s, const struct pod *p, bool warning,
                           const char *reason, const char *message)
{
    emit(s, p, warning, reason, message);
}

bool pod_writer_write_metadata(struct pod_writer *s, const struct pod *p,
                               const struct labels *annotations, const struct labels *labels)
{
    struct status_job *job = job_new_pod(&pod_metadata, p);
    pod_patch_metadata(&job->body, p->uid, annotations, labels);
    return submit(s, job);
}

bool pod_writer_write_policy(struct pod_writer *s, const struct policy *p, const char *patch_text)
{
    struct status_job *job = job_new(&policy_status, p->object.ns, p->object.name, p->object.uid);
    strbuf_adds(&job->body, patch_text);
    return submit(s, job);
}

void pod_writer_report_policy(struct pod_writer *s, const struct policy *p, bool warning,
                              const char *reason, const char *message)
{
    struct events_object o = {.api_version = NAME_API_POLICY,
                              .kind = NAME_KIND_POLICY,
                              .ns = p->object.ns,
                              .name = p->object.name,
                              .uid = p->object.uid};
    events_emit(s->events, &o, warning, reason, message);
}

void pod_writer_report_group(struct pod_writer *s, const struct pod_group *group,
                             const struct progress *now)
{
    struct status_job *job = job_new(&group_status[group->api], group->ns, group->name, group->uid);
    pod_patch_group(&job->body, group, now);
    (void)submit(s, job);
}

static int by_name(const void *a, const void *b)
{
    const struct cluster_pod *const *x = a, *const *y = b;
    return strcmp((*x)->pod->key, (*y)->pod->key);
}

void pod_writer_report_gang(struct pod_writer *s, const struct gang *g,
                            const struct pod_group *group, bool waiting, const char *reason,
                            const char *message)
{
    const struct cluster_pod **members = mem_new(const struct cluster_pod *, g->members.len);
    size_t n = 0;
    for (size_t i = 0; i < g->members.len; i++) {
        const struct cluster_pod *cp = g->members.items[i];
        if (waiting ? cluster_pod_is_schedulable(cp) : cp->on != NULL && !cp->pod->terminating)
            members[n++] = cp;
    }
    qsort(members, n, sizeof *members, by_name);
    for (size_t i = 0; i < n && i < POD_WRITER_MEMBERS; i++)
        emit(s, members[i]->pod, true, reason, message);
    free(members);
    if (group == NULL)
        return;
    AUTO_STRBUF version = {0};
    const struct kube_kind *kind = group_status[group->api].kind;
    strbuf_addf(&version, "%s/%s", kind->group, kind->version);
    struct events_object o = {.api_version = strbuf_str(&version),
                              .kind = kind->kind,
                              .ns = group->ns,
                              .name = group->name,
                              .uid = group->uid};
    events_emit(s->events, &o, true, reason, message);
}

void pod_writer_stop(struct pod_writer *s, int64_t drain_ms)
{
    if (s == NULL)
        return;
    if (s->workers != NULL) {
        int64_t until = clock_mono_ms() + drain_ms;
        while (workers_pending(s->workers) > 0 && clock_mono_ms() < until)
            clock_sleep_ms(5);
        kube_client_cancel(s->client);
        workers_stop(s->workers);
        drain_ms = until - clock_mono_ms();
    }
    if (s->events != NULL)
        events_stop(s->events, drain_ms > 0 ? drain_ms : 0);
    if (s->client != NULL)
        kube_client_free(s->client);
    rate_limit_deinit(&s->rate);
    ids_table_deinit(&s->told);
    ids_table_deinit(&s->gang_events);
    free(s);
}
