// SPDX-License-Identifier: Apache-2.0
#include "scheduler/binding/status.h"

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
                                     .help = "Statuses of PodGroups by what became of them.",
                                     .label = "result"};
static struct metric policy_writes = {.kind = METRIC_COUNTER,
                                      .name = "cosched_scheduler_resourcepolicy_writes_total",
                                      .help =
                                          "Statuses of ResourcePolicies by what became of them.",
                                      .label = "result"};
static struct metric writes = {.kind = METRIC_COUNTER,
                               .name = "cosched_scheduler_condition_writes_total",
                               .help = "PodScheduled conditions by what became of them.",
                               .label = "result"};

struct status {
    struct workers *workers;
    struct kube_client *client;
    struct events *events;
    const struct lease *lease;
    struct pace pace;
    struct events_pace shared; /* the pace as Events see it */
};

struct status_job {
    char *ns, *name, *uid;
    char *version; /* of the pod that was looked at */
    char *reason, *sentence;
    bool turns_false; /* the condition was not False before */
    char *nominated;  /* not a condition but this node's name; "": none any more */
    char *annotation; /* not a condition but this, of that key */
    const char *key;
    char *object; /* not a condition but this patch, of the status of an object of that kind */
    const struct kube_kind *kind;
    bool persists; /* it is tried again: nobody else looks whether it was written */
};

static void job_free(void *p)
{
    struct status_job *job = p;
    free(job->ns);
    free(job->name);
    free(job->uid);
    free(job->version);
    free(job->reason);
    free(job->sentence);
    free(job->nominated);
    free(job->annotation);
    free(job->object);
    free(job);
}

static void print_condition(const struct status_job *job, struct strbuf *out)
{
    char now[CLOCK_RFC3339_SIZE];
    clock_rfc3339(clock_wall_ns(), 0, now);
    const struct pod_patch_condition c = {.type = "PodScheduled",
                                          .status = "False",
                                          .reason = job->reason,
                                          .message = job->sentence,
                                          .since = job->turns_false ? now : NULL};
    pod_patch_condition(out, job->uid, job->version, &c);
}

/* After a conflict. 1: the pod still waits, the job has its version; 0: it does not; -1: not known. */
static int still_waits(struct status *s, struct status_job *job, struct error *err)
{
    AUTO_JSON *doc = NULL;
    if (kube_get(s->client, &kube_pods, job->ns, job->name, &doc, err) < 0)
        return err->code == ERROR_NOT_FOUND ? 0 : -1;
    struct object_meta meta;
    decode_meta(json_root(doc), &meta);
    const char *node = json_get_str(json_get(json_root(doc), "spec"), "nodeName");
    if (!str_eq(meta.uid, job->uid) || str_or_empty(node)[0] != '\0')
        return 0;
    free(job->version);
    job->version = mem_strdup(meta.resource_version);
    return 1;
}

static int patch(struct status *s, const struct status_job *job, struct error *err)
{
    AUTO_STRBUF body = {0};
    if (job->nominated != NULL)
        pod_patch_nominated(&body, job->uid, job->nominated);
    else if (job->annotation != NULL)
        pod_patch_annotation(&body, job->uid, job->key, job->annotation);
    else
        print_condition(job, &body);
    return kube_patch(s->client, &kube_pods, job->ns, job->name, "status", KUBE_PATCH_STRATEGIC,
                      strbuf_str(&body), body.len, NULL, err);
}

/* A server that is away is waited for, since nobody would say it again; one that answers for this pod only with errors is not, since others wait behind it. */
static bool is_worth_waiting(const struct error *err, int attempt)
{
    if (err->code != ERROR_UNAVAILABLE && err->code != ERROR_TIMEOUT &&
        err->code != ERROR_THROTTLED)
        return false;
    return err->http_status == 0 || attempt + 1 < STATUS_TRIES;
}

/* false: we are stopping. */
static bool wait_for_turn(struct status *s)
{
    for (;;) {
        bool busy = s->shared.is_busy(s->shared.arg);
        int64_t ms = pace_take(&s->pace, busy, clock_mono_ms());
        if (ms == 0)
            return true;
        if (!kube_http_sleep(kube_client_http(s->client), busy ? num_min(ms, BUSY_POLL_MS) : ms))
            return false;
    }
}

/* What became of it, for the metric. */
static const char *write_condition(struct status *s, struct status_job *job)
{
    struct error err = ERROR_INIT;
    if (job->nominated == NULL && !wait_for_turn(s))
        return "stopping";
    for (int attempt = 0;; attempt++) {
        error_clear(&err);
        if (s->lease != NULL && !lease_may_write(s->lease))
            return "not leading";
        if (patch(s, job, &err) == 0)
            return "written";
        int waits = err.code == ERROR_CONFLICT ? still_waits(s, job, &err) : -1;
        if (waits == 0 || err.code == ERROR_NOT_FOUND)
            return "overtaken";
        if (waits == 1 && attempt + 1 < STATUS_TRIES)
            continue;
        if (!is_worth_waiting(&err, attempt))
            break;
        if (!kube_client_pause(s->client, PAUSE_FIRST_MS, attempt, &err))
            return "stopping";
    }
    if (err.code != ERROR_CANCELLED)
        log_warn("condition not written", kv("namespace", job->ns), kv("pod", job->name),
                 kv("error", err.text));
    return error_code_name(err.code);
}

static const struct kube_kind *group_kind(enum pod_group_api api)
{
    return api == POD_GROUP_SIGS ? &kube_pod_groups
           : api == POD_GROUP_X  ? &kube_pod_groups_x
                                 : &kube_pod_groups_native;
}

/* A PodGroup's once: whoever sent it looks at what the watch brings and sends it again when it must. */
static const char *write_object(struct status *s, const struct status_job *job)
{
    struct error err = ERROR_INIT;
    if (!wait_for_turn(s))
        return "stopping";
    for (int attempt = 0;; attempt++) {
        error_clear(&err);
        if (s->lease != NULL && !lease_may_write(s->lease))
            return "not leading";
        if (kube_patch(s->client, job->kind, job->ns, job->name, "status", KUBE_PATCH_MERGE,
                       job->object, strlen(job->object), NULL, &err) == 0)
            return "written";
        if (err.code == ERROR_NOT_FOUND || err.code == ERROR_CONFLICT)
            return "overtaken";
        if (!job->persists || !is_worth_waiting(&err, attempt))
            break;
        if (!kube_client_pause(s->client, PAUSE_FIRST_MS, attempt, &err))
            return "stopping";
    }
    if (err.code != ERROR_CANCELLED)
        log_warn("not written", kv("kind", job->kind->kind), kv("namespace", job->ns),
                 kv("name", job->name), kv("error", err.text));
    return error_code_name(err.code);
}

static void worker_write(void *arg, unsigned thread, void *p)
{
    struct status_job *job = p;
    (void)thread;
    if (job->object != NULL)
        metrics_inc(job->kind == &kube_pods                ? &writes
                    : job->kind == &kube_resource_policies ? &policy_writes
                                                           : &group_writes,
                    write_object(arg, job));
    else
        metrics_inc(&writes, write_condition(arg, job));
    job_free(job);
}

int status_start(struct status **out, struct kube_config *kube, const struct kube_options *k,
                 const struct status_config *c, struct error *err)
{
    metrics_register(&writes);
    metrics_register(&group_writes);
    metrics_register(&policy_writes);
    struct status *s = mem_new(struct status, 1);
    *s = (struct status){.lease = c->lease};
    pace_init(&s->pace, c->events.qps, num_min(STATUS_BUSY_QPS, c->events.qps), clock_mono_ms());
    s->shared = (struct events_pace){.pace = &s->pace, .is_busy = c->is_busy, .arg = c->arg};
    struct events_options events = c->events;
    events.shared = &s->shared;
    struct workers_config config = {
        .threads = 1, .capacity = STATUS_QUEUE, .run = worker_write, .dispose = job_free, .arg = s};
    if (kube_client_new(&s->client, kube, k, "cosched-scheduler/status", err) < 0 ||
        events_start(&s->events, kube, k, &events, NAME_SCHEDULER, err) < 0 ||
        workers_start(&s->workers, &config, err) < 0) {
        status_stop(s, 0);
        return error_wrap(err, "status");
    }
    *out = s;
    return 0;
}

static void emit(struct status *s, const struct pod *p, bool warning, const char *reason,
                 const char *message)
{
    struct events_object o = {
        .api_version = "v1", .kind = "Pod", .ns = p->ns, .name = p->name, .uid = p->uid};
    events_emit(s->events, &o, warning, reason, message);
}

/* When the pod may be told this class; -1: it knows. */
static int64_t may_be_told_ms(const struct cluster_pod *cp, uint64_t class)
{
    if (!cluster_pod_is_schedulable(cp) || cp->told_class == class)
        return -1;
    return cp->told_ms > 0 ? cp->told_ms + STATUS_AGAIN_MS : cp->seen_us / 1000 + STATUS_FIRST_MS;
}

/* Told before by whoever led then, or by us under another class. */
static bool knows(const struct pod *p, const char *reason, const char *sentence)
{
    const struct pod_condition *c = &p->scheduled;
    return str_eq(c->status, "False") && str_eq(c->reason, reason) && str_eq(c->message, sentence);
}

static void tell(struct status *s, struct gang *g, struct cluster_pod *cp, int64_t now_ms)
{
    const struct pod *p = cp->pod;
    const struct gang_why *why = &g->why;
    const char *reason = why->for_gang ? "WaitingForGang" : "Unschedulable";
    if (knows(p, reason, why->sentence)) {
        cp->told_class = why->class;
        return;
    }
    struct status_job *job = mem_new(struct status_job, 1);
    *job = (struct status_job){.ns = mem_strdup(p->ns),
                               .name = mem_strdup(p->name),
                               .uid = mem_strdup(p->uid),
                               .version = mem_strdup(p->resource_version),
                               .reason = mem_strdup(reason),
                               .sentence = mem_strdup(why->sentence),
                               .turns_false = !str_eq(p->scheduled.status, "False")};
    cp->told_ms = now_ms;
    if (!workers_submit(s->workers, job)) {
        metrics_inc(&writes, "dropped");
        return; /* the class is not noted: said again later */
    }
    cp->told_class = why->class;
    if (g->event_class == why->class && g->members.len > 1)
        return; /* another member's Event says it */
    g->event_class = why->class;
    emit(s, p, true, "FailedScheduling", why->sentence);
}

int64_t status_tell_waiting(struct status *s, struct gang *g, int64_t now_ms)
{
    int64_t next_ms = -1;
    for (size_t i = 0; i < g->members.len; i++) {
        struct cluster_pod *cp = g->members.items[i];
        int64_t due_ms = may_be_told_ms(cp, g->why.class);
        if (due_ms >= 0 && due_ms <= now_ms) {
            tell(s, g, cp, now_ms);
            due_ms = may_be_told_ms(cp, g->why.class);
        }
        if (due_ms >= 0 && (next_ms < 0 || due_ms < next_ms))
            next_ms = due_ms;
    }
    return next_ms;
}

void status_tell_bound(struct status *s, const struct pod *p, const char *node)
{
    AUTO_STRBUF b = {0};
    strbuf_adds(&b, "Assigned "); /* once for each pod that is bound: without printf */
    strbuf_adds(&b, p->key);
    strbuf_adds(&b, " to ");
    strbuf_adds(&b, node);
    emit(s, p, false, "Scheduled", strbuf_str(&b));
}

void status_tell_bind_failed(struct status *s, const struct pod *p, const char *node,
                             const char *why)
{
    AUTO_STRBUF b = {0};
    strbuf_addf(&b, "Binding to %s failed, trying again: %s", node, why);
    emit(s, p, true, "FailedBinding", strbuf_str(&b));
}

void status_tell_nominated(struct status *s, const struct pod *p, const char *node)
{
    struct status_job *job = mem_new(struct status_job, 1);
    *job = (struct status_job){.ns = mem_strdup(p->ns),
                               .name = mem_strdup(p->name),
                               .uid = mem_strdup(p->uid),
                               .version = mem_strdup(""),
                               .nominated = mem_strdup(str_or_empty(node))};
    if (!workers_submit(s->workers, job))
        metrics_inc(&writes, "dropped");
}

void status_record_satisfied(struct status *s, const struct pod *p, const char *gang)
{
    struct status_job *job = mem_new(struct status_job, 1);
    *job = (struct status_job){.ns = mem_strdup(p->ns),
                               .name = mem_strdup(p->name),
                               .uid = mem_strdup(p->uid),
                               .version = mem_strdup(""),
                               .annotation = mem_strdup(gang),
                               .key = NAME_ANN_GANG_SATISFIED};
    if (!workers_submit(s->workers, job))
        metrics_inc(&writes, "dropped");
}

void status_write_cpuset(struct status *s, const struct pod *p, const char *text)
{
    struct status_job *job = mem_new(struct status_job, 1);
    *job = (struct status_job){.ns = mem_strdup(p->ns),
                               .name = mem_strdup(p->name),
                               .uid = mem_strdup(p->uid),
                               .version = mem_strdup(""),
                               .annotation = mem_strdup(text),
                               .key = NAME_ANN_CPUSET};
    if (!workers_submit(s->workers, job))
        metrics_inc(&writes, "dropped");
}

void status_tell_preempted(struct status *s, const struct pod *victim, const struct pod *by,
                           const char *node)
{
    AUTO_STRBUF b = {0};
    strbuf_addf(&b, "Sent away from %s to make room for pod %s of higher priority", node, by->key);
    emit(s, victim, false, "Preempted", strbuf_str(&b));
}

void status_tell_pod(struct status *s, const struct pod *p, bool warning, const char *reason,
                     const char *message)
{
    emit(s, p, warning, reason, message);
}

/* ---- policies ---- */

bool status_write_metadata(struct status *s, const struct pod *p, const struct labels *annotations,
                           const struct labels *labels)
{
    AUTO_STRBUF text = {0};
    pod_patch_metadata(&text, p->uid, annotations, labels);
    struct status_job *job = mem_new(struct status_job, 1);
    *job = (struct status_job){.ns = mem_strdup(p->ns),
                               .name = mem_strdup(p->name),
                               .object = mem_strdup(strbuf_str(&text)),
                               .kind = &kube_pods,
                               .persists = true};
    bool taken = workers_submit(s->workers, job);
    if (!taken)
        metrics_inc(&writes, "dropped");
    return taken;
}

bool status_write_policy(struct status *s, const struct policy *p, const char *patch_text)
{
    struct status_job *job = mem_new(struct status_job, 1);
    *job = (struct status_job){.ns = mem_strdup(p->object.ns),
                               .name = mem_strdup(p->object.name),
                               .object = mem_strdup(patch_text),
                               .kind = &kube_resource_policies,
                               .persists = true};
    bool taken = workers_submit(s->workers, job);
    if (!taken)
        metrics_inc(&policy_writes, "dropped");
    return taken;
}

void status_tell_policy(struct status *s, const struct policy *p, bool warning, const char *reason,
                        const char *message)
{
    struct events_object o = {.api_version = NAME_GROUP_POLICY "/v1alpha1",
                              .kind = NAME_KIND_POLICY,
                              .ns = p->object.ns,
                              .name = p->object.name,
                              .uid = p->object.uid};
    events_emit(s->events, &o, warning, reason, message);
}

/* ---- gangs ---- */

static void print_group(const struct pod_group *g, const struct progress *now, struct strbuf *out)
{
    struct json_writer w;
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_key(&w, "metadata");
    json_object_begin(&w);
    json_kv_str(&w, "uid", g->uid);
    json_object_end(&w);
    json_key(&w, "status");
    json_object_begin(&w);
    json_kv_str(&w, "phase", now->phase);
    json_kv_int(&w, "scheduled", now->scheduled);
    json_kv_int(&w, "running", now->running);
    json_kv_int(&w, "succeeded", now->succeeded);
    json_kv_int(&w, "failed", now->failed);
    json_key(&w, "scheduleStartTime");
    if (now->schedule_start_ns > 0) {
        char at[CLOCK_RFC3339_SIZE];
        clock_rfc3339(now->schedule_start_ns, 0, at);
        json_put_str(&w, at);
    } else {
        json_put_null(&w);
    }
    json_object_end(&w);
    json_object_end(&w);
}

void status_tell_group(struct status *s, const struct pod_group *group, const struct progress *now)
{
    struct strbuf body = {0};
    print_group(group, now, &body);
    struct status_job *job = mem_new(struct status_job, 1);
    *job = (struct status_job){.ns = mem_strdup(group->ns),
                               .name = mem_strdup(group->name),
                               .uid = mem_strdup(group->uid),
                               .object = strbuf_take(&body),
                               .kind = group_kind(group->api)};
    if (!workers_submit(s->workers, job))
        metrics_inc(&group_writes, "dropped");
}

static int by_name(const void *a, const void *b)
{
    const struct cluster_pod *const *x = a, *const *y = b;
    return strcmp((*x)->pod->key, (*y)->pod->key);
}

void status_tell_gang(struct status *s, const struct gang *g, const struct pod_group *group,
                      bool waiting, const char *reason, const char *message)
{
    const struct cluster_pod **members = mem_new(const struct cluster_pod *, g->members.len);
    size_t n = 0;
    for (size_t i = 0; i < g->members.len; i++) {
        const struct cluster_pod *cp = g->members.items[i];
        if (waiting ? cluster_pod_is_schedulable(cp) : cp->on != NULL && !cp->pod->terminating)
            members[n++] = cp;
    }
    qsort(members, n, sizeof *members, by_name);
    for (size_t i = 0; i < n && i < STATUS_MEMBERS; i++)
        emit(s, members[i]->pod, true, reason, message);
    free(members);
    if (group == NULL)
        return;
    AUTO_STRBUF version = {0};
    const struct kube_kind *kind = group_kind(group->api);
    strbuf_addf(&version, "%s/%s", kind->group, kind->version);
    struct events_object o = {.api_version = strbuf_str(&version),
                              .kind = kind->kind,
                              .ns = group->ns,
                              .name = group->name,
                              .uid = group->uid};
    events_emit(s->events, &o, true, reason, message);
}

void status_stop(struct status *s, int64_t drain_ms)
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
    pace_deinit(&s->pace);
    free(s);
}
