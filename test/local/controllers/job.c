// SPDX-License-Identifier: Apache-2.0
/*
 * job - batch/v1 Job: parallelism, completions (Indexed too), backoffLimit, activeDeadlineSeconds,
 * suspend, ttlSecondsAfterFinished.
 *
 * A pod carries the finalizer batch.kubernetes.io/job-tracking until it is counted in the Job's
 * status, so that a pod that someone deletes after it finished is not run again:
 *
 *   created ──► active ──► finished or being deleted ──► count_ended: counted, finalizer removed
 *
 *   running ──► SuccessCriteriaMet ──► no pod is left ──► Complete     (judge, conclude)
 *          └──► FailureTarget      ──► no pod is left ──► Failed
 *
 * Left out: podFailurePolicy, successPolicy, backoffLimitPerIndex, podReplacementPolicy Failed
 * (all replaced as TerminatingOrFailed).
 */
#include "test/local/controllers/controllers_internal.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "test/local/controllers/job_index.h"

enum {
    BURST = 100,                  /* pods in one sync, about 10 ms; the rest in the next round */
    POD_BACKOFF_FIRST_MS = 10000, /* after the first failed pod; doubled by each */
    POD_BACKOFF_MAX_MS = 600000,
};
static const char COMPONENT[] = "job-controller";

struct job {
    struct controllers *c;
    struct object *o;
    struct jsontree *t; /* of the job; its status is changed here and written at the end */
    struct jsonnode *root, *spec, *status, *conditions;
    struct controllers_pods active; /* neither finished nor being deleted */
    struct job_index indexes;       /* completed */
    bool indexed, suspended, has_completions, deleting;
    int64_t parallelism, completions;
    int64_t succeeded, failed, terminating, ready, pending;
    int64_t restarts; /* of pods that are not finished */
    int64_t *again_ms;
};

static void again(struct job *j, int64_t ms)
{
    ms = num_max(ms, 0);
    if (*j->again_ms < 0 || ms < *j->again_ms)
        *j->again_ms = ms;
}

static bool is(const struct job *j, const char *condition)
{
    return controllers_condition_is(j->conditions, condition, "True");
}

static bool set(struct job *j, const char *type, bool status, const char *reason,
                const char *message)
{
    return controllers_set_condition(j->t, j->conditions, type, status, reason, message,
                                     "lastProbeTime");
}

/* ---- reading ---- */

static int job_read(struct job *j, struct error *err)
{
    if (jsontree_parse(&j->t, j->o->text, j->o->text_len, err) < 0)
        return -1;
    j->root = jsontree_root(j->t);
    j->spec = jsonnode_get(j->root, "spec");
    j->status = jsonnode_need_object(j->t, j->root, "status");
    j->conditions = jsonnode_get(j->status, "conditions");
    if (!jsonnode_is_array(j->conditions))
        j->conditions = jsonnode_array(j->t);
    else
        jsonnode_remove(j->status, "conditions");
    j->parallelism = num_max(0, controllers_int(jsonnode_get(j->spec, "parallelism"), 1));
    j->has_completions = jsonnode_int(jsonnode_get(j->spec, "completions"), &j->completions);
    j->indexed = str_eq(jsonnode_get_str(j->spec, "completionMode"), "Indexed");
    j->suspended = jsonnode_bool(jsonnode_get(j->spec, "suspend"), false);
    j->deleting = jsonnode_path(j->root, "metadata", "deletionTimestamp", NULL) != NULL;
    j->succeeded = controllers_int(jsonnode_get(j->status, "succeeded"), 0);
    j->failed = controllers_int(jsonnode_get(j->status, "failed"), 0);
    if (j->indexed)
        job_index_init(&j->indexes, j->completions,
                       jsonnode_get_str(j->status, "completedIndexes"));
    return 0;
}

static void inspect_pods(struct job *j)
{
    struct controllers_pods all = {0};
    controllers_pods_of(j->c, j->o->uid, &kind_pods, &all);
    j->active.len = 0;
    j->terminating = j->ready = j->restarts = 0;
    for (size_t i = 0; i < all.len; i++) {
        struct controllers_child *pod = all.items[i];
        if (pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED)
            continue;
        j->restarts += pod->restarts;
        if (pod->deleting) {
            j->terminating++;
            continue;
        }
        j->ready += pod->ready;
        vec_push(&j->active, pod);
    }
    const struct controllers_owner *owner = controllers_index_owner(&j->c->index, j->o->uid);
    j->pending = owner ? (int64_t)owner->pending : 0;
    vec_deinit(&all);
}

/* ---- counting ---- */

static void count_one(struct job *j, const struct controllers_child *pod)
{
    struct controllers_owner *owner = controllers_index_need(&j->c->index, j->o->uid);
    if (pod->phase == POD_SUCCEEDED) {
        owner->failures_in_row = 0;
        if (!j->indexed || (pod->index_known && job_index_add(&j->indexes, pod->index)))
            j->succeeded++;
    } else if (pod->phase == POD_FAILED || !j->suspended) {
        /* A pod that was taken away counts as failed; one that a suspension took away does not. */
        j->failed++;
        if (pod->phase == POD_FAILED) {
            owner->failures_in_row++;
            owner->last_failure_ms = clock_mono_ms();
        }
    }
}

/* Collects the pods whose finalizers go as soon as the new numbers are written. */
static void count_ended(struct job *j, struct arena *names, const char ***out, size_t *out_len)
{
    struct controllers_pods all = {0};
    controllers_pods_of(j->c, j->o->uid, &kind_pods, &all);
    const char **list = arena_new(names, const char *, all.len);
    size_t n = 0;
    for (size_t i = 0; i < all.len; i++) {
        const struct controllers_child *pod = all.items[i];
        bool ended = pod->deleting || pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED;
        if (!pod->tracked || !ended)
            continue;
        if (!is(j, "Complete") && !is(j, "Failed"))
            count_one(j, pod);
        list[n++] = arena_strdup(names, pod->name);
    }
    vec_deinit(&all);
    *out = list;
    *out_len = n;
}

static int write_status(struct job *j, struct error *err)
{
    struct jsontree *t = j->t;
    struct jsonnode *s = j->status;
    const struct {
        const char *key;
        int64_t value;
    } numbers[] = {
        {"active", (int64_t)j->active.len}, {"succeeded", j->succeeded}, {"failed", j->failed}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i].value > 0)
            jsonnode_set_int(t, s, numbers[i].key, numbers[i].value);
        else
            jsonnode_remove(s, numbers[i].key);
    }
    jsonnode_set_int(t, s, "ready", j->ready);
    jsonnode_set_int(t, s, "terminating", j->terminating);
    jsonnode_set(t, s, "uncountedTerminatedPods", jsonnode_object(t));
    if (j->indexed && j->succeeded > 0) {
        struct strbuf text = {0};
        job_index_print(&j->indexes, &text);
        jsonnode_set_str(t, s, "completedIndexes", strbuf_str(&text));
        strbuf_deinit(&text);
    }
    if (jsonnode_len(j->conditions) > 0)
        jsonnode_set(t, s, "conditions", jsonnode_clone(t, j->conditions));
    return controllers_set_status(j->c, j->o, s, err);
}

/* ---- deciding ---- */

static int64_t started_ns(const struct job *j)
{
    const char *text = jsonnode_get_str(j->status, "startTime");
    return text ? clock_parse_rfc3339(text) : -1;
}

static bool past_backoff_limit(const struct job *j)
{
    int64_t limit = controllers_int(jsonnode_get(j->spec, "backoffLimit"), 6);
    if (j->failed > limit)
        return true;
    const char *policy =
        jsonnode_str(jsonnode_path(j->spec, "template", "spec", "restartPolicy", NULL));
    if (!str_eq(policy, "OnFailure"))
        return false;
    return limit == 0 ? j->restarts > 0 : j->restarts >= limit;
}

static bool past_deadline(struct job *j)
{
    int64_t deadline_s, start = started_ns(j);
    if (!jsonnode_int(jsonnode_get(j->spec, "activeDeadlineSeconds"), &deadline_s) || start < 0 ||
        j->suspended)
        return false;
    int64_t left_ms = (start - clock_wall_ns()) / 1000000 + deadline_s * 1000;
    if (left_ms <= 0)
        return true;
    again(j, left_ms);
    return false;
}

static bool has_succeeded(const struct job *j)
{
    if (j->has_completions)
        return j->succeeded >= j->completions;
    return j->succeeded > 0 && j->active.len == 0 && j->pending == 0;
}

/* Is the job to end, and how? */
static void judge(struct job *j)
{
    static const char deadline[] = "Job was active longer than specified deadline",
                      limit[] = "Job has reached the specified backoff limit",
                      reached[] = "Reached expected number of succeeded pods";
    if (is(j, "FailureTarget") || is(j, "SuccessCriteriaMet"))
        return;
    if (past_backoff_limit(j))
        set(j, "FailureTarget", true, "BackoffLimitExceeded", limit);
    else if (past_deadline(j))
        set(j, "FailureTarget", true, "DeadlineExceeded", deadline);
    else if (has_succeeded(j) && (!j->suspended || j->has_completions))
        set(j, "SuccessCriteriaMet", true, "CompletionsReached", reached);
}

/* No pod is left: the last word. */
static void conclude(struct job *j)
{
    const struct jsonnode *why = controllers_condition(j->conditions, "FailureTarget");
    bool failed = is(j, "FailureTarget");
    char now[32];
    controllers_now(now);
    if (failed) {
        AUTO_STRBUF reason = {0};
        AUTO_STRBUF message = {0};
        strbuf_adds(&reason, str_or_empty(jsonnode_get_str(why, "reason")));
        strbuf_adds(&message, str_or_empty(jsonnode_get_str(why, "message")));
        set(j, "Failed", true, strbuf_str(&reason), strbuf_str(&message));
        controllers_event(j->c, j->o, COMPONENT, true, strbuf_str(&reason), "%s",
                          strbuf_str(&message));
    } else {
        set(j, "Complete", true, "CompletionsReached", "Reached expected number of succeeded pods");
        jsonnode_set_str(j->t, j->status, "completionTime", now);
        controllers_event(j->c, j->o, COMPONENT, false, "Completed", "Job completed");
    }
}

static void suspend_or_resume(struct job *j)
{
    if (j->suspended) {
        if (set(j, "Suspended", true, "JobSuspended", "Job suspended")) {
            jsonnode_remove(j->status, "startTime");
            controllers_event(j->c, j->o, COMPONENT, false, "Suspended", "Job suspended");
        }
        return;
    }
    if (is(j, "Suspended")) {
        set(j, "Suspended", false, "JobResumed", "Job resumed");
        controllers_event(j->c, j->o, COMPONENT, false, "Resumed", "Job resumed");
    }
    if (!jsonnode_get_str(j->status, "startTime")) {
        char now[32];
        controllers_now(now);
        jsonnode_set_str(j->t, j->status, "startTime", now);
    }
}

/* ---- pods ---- */

static int delete_pods(struct job *j, int64_t n, struct error *err)
{
    controllers_pods_rank(&j->active);
    struct arena names;
    arena_init(&names, 0);
    size_t len = (size_t)num_min(n, (int64_t)j->active.len);
    const char **list = arena_new(&names, const char *, len * 2);
    for (size_t i = 0; i < len; i++) {
        list[i * 2] = arena_strdup(&names, j->active.items[i]->name);
        list[i * 2 + 1] = arena_strdup(&names, j->active.items[i]->uid);
    }
    int rc = 0;
    for (size_t i = 0; i < len && rc == 0; i++)
        rc = controllers_delete_pod(j->c, j->o, COMPONENT, j->o->ns, list[i * 2], list[i * 2 + 1],
                                    err);
    arena_deinit(&names);
    again(j, 0); /* to count them */
    return rc;
}

static int create_pod(struct job *j, int64_t index, struct error *err)
{
    struct jsontree *t = jsontree_new();
    struct jsonnode *pod = controllers_pod(t, j->o, jsonnode_get(j->spec, "template"));
    struct jsonnode *meta = jsonnode_get(pod, "metadata");
    struct jsonnode *finalizers = jsonnode_get(meta, "finalizers");
    if (!jsonnode_is_array(finalizers)) {
        finalizers = jsonnode_array(t);
        jsonnode_set(t, meta, "finalizers", finalizers);
    }
    jsonnode_append(finalizers, jsonnode_string(t, CONTROLLERS_JOB_FINALIZER));
    char base[280];
    if (j->indexed) {
        str_format(base, sizeof base, "%s-%lld-", j->o->name, (long long)index);
        job_index_mark(t, pod, j->o->name, index);
    } else
        str_format(base, sizeof base, "%s-", j->o->name);
    jsonnode_set_str(t, meta, "generateName", base);
    return controllers_create_pod(j->c, j->o, COMPONENT, job_sync, t, err);
}

/* After failed pods new ones come later and later. */
static bool must_wait(struct job *j)
{
    const struct controllers_owner *owner = controllers_index_owner(&j->c->index, j->o->uid);
    if (!owner || owner->failures_in_row == 0)
        return false;
    int64_t ms = POD_BACKOFF_FIRST_MS;
    for (int64_t i = 1; i < owner->failures_in_row && ms < POD_BACKOFF_MAX_MS; i++)
        ms *= 2;
    int64_t left = owner->last_failure_ms + num_min(ms, POD_BACKOFF_MAX_MS) - clock_mono_ms();
    if (left <= 0)
        return false;
    again(j, left);
    return true;
}

static int create_pods(struct job *j, int64_t n, struct error *err)
{
    for (size_t i = 0; j->indexed && i < j->active.len; i++)
        if (j->active.items[i]->index_known)
            job_index_take(&j->indexes, j->active.items[i]->index);
    for (int64_t i = 0; i < n; i++) {
        int64_t index = 0;
        if (i >= BURST) {
            again(j, 0);
            break;
        }
        if (j->indexed && (index = job_index_free(&j->indexes)) < 0)
            break;
        if (create_pod(j, index, err) < 0)
            return -1;
    }
    return 0;
}

/* As many active pods as there should be. */
static int manage(struct job *j, struct error *err)
{
    int64_t active = (int64_t)j->active.len + j->pending, want = j->parallelism;
    if (j->suspended)
        want = 0;
    else if (j->has_completions)
        want = num_min(want, num_max(0, j->completions - j->succeeded));
    else if (j->succeeded > 0)
        want = num_min(want, active); /* a work queue that has begun to drain */
    if (active > want)
        return delete_pods(j, active - want, err);
    if (active == want || must_wait(j))
        return 0;
    if (j->indexed && j->pending > 0)
        return 0; /* which indexes those have is not known yet */
    return create_pods(j, want - active, err);
}

/* ---- the whole ---- */

static int expire(struct job *j, struct error *err)
{
    int64_t ttl_s;
    if (!jsonnode_int(jsonnode_get(j->spec, "ttlSecondsAfterFinished"), &ttl_s) || j->deleting)
        return 0;
    const struct jsonnode *end = controllers_condition(j->conditions, "Complete");
    if (!end)
        end = controllers_condition(j->conditions, "Failed");
    const char *text = jsonnode_get_str(end, "lastTransitionTime");
    int64_t at = text ? clock_parse_rfc3339(text) : -1;
    int64_t left_ms = at < 0 ? 0 : (at - clock_wall_ns()) / 1000000 + ttl_s * 1000;
    if (left_ms > 0) {
        again(j, left_ms);
        return 0;
    }
    struct error e = ERROR_INIT;
    if (api_delete(j->c->api, &kind_jobs, j->o->ns, j->o->name, j->o->uid, -1, API_BACKGROUND,
                   &e) == 0 ||
        e.code == ERROR_NOT_FOUND)
        return 0;
    *err = e;
    return -1;
}

static int drive(struct job *j, struct error *err)
{
    if (j->deleting)
        return 0;
    if (is(j, "Complete") || is(j, "Failed"))
        return expire(j, err);
    suspend_or_resume(j);
    judge(j);
    if (!is(j, "FailureTarget") && !is(j, "SuccessCriteriaMet"))
        return manage(j, err);
    if (j->active.len > 0)
        return delete_pods(j, (int64_t)j->active.len, err);
    if (j->terminating == 0 && j->pending == 0)
        conclude(j);
    return 0;
}

int job_sync(struct controllers *c, const struct controllers_work *w, int64_t *again_ms,
             struct error *err)
{
    struct job j = {.c = c, .again_ms = again_ms};
    j.o = store_get(c->store, w->kind, w->ns, w->name);
    if (!j.o)
        return 0;
    object_ref(j.o);
    struct arena names;
    arena_init(&names, 0);
    const char **ended = NULL;
    size_t ended_len = 0;
    int rc = job_read(&j, err);
    if (rc == 0) {
        inspect_pods(&j);
        count_ended(&j, &names, &ended, &ended_len);
        int driven = drive(&j, err);
        inspect_pods(&j);
        struct error ignored = ERROR_INIT;
        rc = write_status(&j, driven < 0 ? &ignored : err);
        for (size_t i = 0; rc == 0 && i < ended_len; i++)
            rc = controllers_remove_finalizer(c, &kind_pods, j.o->ns, ended[i],
                                              CONTROLLERS_JOB_FINALIZER,
                                              driven < 0 ? &ignored : err);
        if (driven < 0)
            rc = -1;
    }
    arena_deinit(&names);
    vec_deinit(&j.active);
    if (j.indexed)
        job_index_deinit(&j.indexes);
    jsontree_free(j.t);
    object_unref(j.o);
    return rc;
}
