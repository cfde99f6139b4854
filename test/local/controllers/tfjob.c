// SPDX-License-Identifier: Apache-2.0
/*
 * tfjob - kubeflow.org/v1 TFJob, as the training operator expands it: one pod for each replica of
 * each type, named JOB-TYPE-INDEX, with the operator's labels and TF_CONFIG.
 *
 *   Created ──► Running ──► Succeeded   the Chief (Master) is done; without one, worker 0 or, with
 *                  │                    successPolicy AllWorkers, all workers
 *                  └──────► Failed      a pod failed that is not to be restarted
 *
 * A replica's restartPolicy wins over its template's (ExitCode: a pod that ended with 128 or more
 * is made anew); without either it is Never. cleanPodPolicy Running (the default here), All, None.
 * Left out: the Services that the operator makes for each pod, runPolicy's backoffLimit, deadline
 * and suspend, dynamic workers.
 */
#include "test/local/controllers/controllers_internal.h"

#include <ctype.h>
#include <string.h>

#include "lib/base/num.h"

static const char COMPONENT[] = "tfjob-controller";
static const char *const TYPES[] = {"Chief", "Master", "PS", "Worker", "Evaluator"};
enum { TYPES_LEN = sizeof TYPES / sizeof *TYPES, REPLICAS_MAX = 10000, RETRYABLE = 128 };

struct counts {
    int64_t replicas, active, running, succeeded, failed;
    bool first_done; /* index 0 succeeded */
    bool given;
};

struct tfjob {
    struct controllers *c;
    struct object *o;
    struct jsontree *t;
    struct jsonnode *root, *specs, *status, *conditions;
    struct counts counts[TYPES_LEN];
    struct controllers_pods pods;
};

static void lower(const char *type, char out[16])
{
    size_t n = 0;
    for (; type[n] && n < 15; n++)
        out[n] = (char)tolower((unsigned char)type[n]);
    out[n] = '\0';
}

static struct jsonnode *spec_of(const struct tfjob *j, size_t type)
{
    return jsonnode_get(j->specs, TYPES[type]);
}

static const char *restart_policy(const struct tfjob *j, size_t type)
{
    const char *own = jsonnode_get_str(spec_of(j, type), "restartPolicy");
    if (own && *own)
        return own;
    const char *template =
        jsonnode_str(jsonnode_path(spec_of(j, type), "template", "spec", "restartPolicy", NULL));
    return template && *template ? template : "Never";
}

static bool has_chief(const struct tfjob *j)
{
    return j->counts[0].given || j->counts[1].given;
}

static bool is(const struct tfjob *j, const char *condition)
{
    return controllers_condition_is(j->conditions, condition, "True");
}

static void set(struct tfjob *j, const char *type, bool status, const char *reason,
                const char *message)
{
    controllers_set_condition(j->t, j->conditions, type, status, reason, message, "lastUpdateTime");
}

/* ---- pods ---- */

static int64_t port_of(const struct tfjob *j, size_t type)
{
    struct jsonnode *containers =
        jsonnode_path(spec_of(j, type), "template", "spec", "containers", NULL);
    for (size_t i = 0; i < jsonnode_len(containers); i++) {
        const struct jsonnode *ports = jsonnode_get(jsonnode_at(containers, i), "ports");
        for (size_t k = 0; k < jsonnode_len(ports); k++)
            if (str_eq(jsonnode_get_str(jsonnode_at(ports, k), "name"), "tfjob-port"))
                return controllers_int(jsonnode_get(jsonnode_at(ports, k), "containerPort"), 2222);
    }
    return 2222;
}

/* {"cluster":{"worker":["JOB-worker-0.NS.svc:2222"]},"task":{"type":"worker","index":0},...} */
static void print_config(const struct tfjob *j, size_t type, int64_t index, struct strbuf *out)
{
    struct json_writer w;
    char low[16];
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_key(&w, "cluster");
    json_object_begin(&w);
    for (size_t i = 0; i < TYPES_LEN; i++) {
        if (!j->counts[i].given)
            continue;
        lower(TYPES[i], low);
        json_key(&w, low);
        json_array_begin(&w);
        for (int64_t k = 0; k < j->counts[i].replicas; k++) {
            char host[700];
            str_format(host, sizeof host, "%s-%s-%lld.%s.svc:%lld", j->o->name, low, (long long)k,
                       j->o->ns, (long long)port_of(j, i));
            json_put_str(&w, host);
        }
        json_array_end(&w);
    }
    json_object_end(&w);
    json_key(&w, "task");
    json_object_begin(&w);
    lower(TYPES[type], low);
    json_kv_str(&w, "type", low);
    json_kv_int(&w, "index", index);
    json_object_end(&w);
    json_kv_str(&w, "environment", "cloud");
    json_object_end(&w);
}

static void add_config(const struct tfjob *j, struct jsontree *t, struct jsonnode *pod, size_t type,
                       int64_t index)
{
    int64_t all = 0;
    for (size_t i = 0; i < TYPES_LEN; i++)
        all += j->counts[i].replicas;
    struct jsonnode *containers = jsonnode_path(pod, "spec", "containers", NULL);
    for (size_t i = 0; all > 1 && i < jsonnode_len(containers); i++) {
        struct jsonnode *one = jsonnode_at(containers, i), *env = jsonnode_get(one, "env");
        if (!str_eq(jsonnode_get_str(one, "name"), "tensorflow"))
            continue;
        if (!jsonnode_is_array(env)) {
            env = jsonnode_array(t);
            jsonnode_set(t, one, "env", env);
        }
        AUTO_STRBUF text = {0};
        print_config(j, type, index, &text);
        struct jsonnode *var = jsonnode_object(t);
        jsonnode_set_str(t, var, "name", "TF_CONFIG");
        jsonnode_set_str(t, var, "value", strbuf_str(&text));
        jsonnode_append(env, var);
    }
}

static int create_pod(struct tfjob *j, size_t type, int64_t index, const char *name,
                      struct error *err)
{
    struct jsontree *t = jsontree_new();
    struct jsonnode *pod = controllers_pod(t, j->o, jsonnode_get(spec_of(j, type), "template"));
    struct jsonnode *labels = jsonnode_need_path(t, pod, "metadata", "labels", NULL);
    char low[16], number[24];
    lower(TYPES[type], low);
    str_format(number, sizeof number, "%lld", (long long)index);
    jsonnode_set_str(t, jsonnode_get(pod, "metadata"), "name", name);
    jsonnode_set_str(t, labels, "training.kubeflow.org/job-name", j->o->name);
    jsonnode_set_str(t, labels, "training.kubeflow.org/operator-name", COMPONENT);
    jsonnode_set_str(t, labels, "training.kubeflow.org/replica-index", number);
    jsonnode_set_str(t, labels, "training.kubeflow.org/replica-type", low);
    if (type <= 1 || (!has_chief(j) && type == 3 && index == 0))
        jsonnode_set_str(t, labels, "training.kubeflow.org/job-role", "master");
    const char *policy = restart_policy(j, type);
    jsonnode_set_str(t, jsonnode_need_object(t, pod, "spec"), "restartPolicy",
                     str_eq(policy, "ExitCode") ? "Never" : policy);
    add_config(j, t, pod, type, index);
    return controllers_create_pod(j->c, j->o, COMPONENT, tfjob_sync, t, err);
}

static struct controllers_child *find_pod(const struct tfjob *j, const char *name)
{
    for (size_t i = 0; i < j->pods.len; i++)
        if (str_eq(j->pods.items[i]->name, name))
            return j->pods.items[i];
    return NULL;
}

static void pod_name(const struct tfjob *j, size_t type, int64_t index, char out[300])
{
    char low[16];
    lower(TYPES[type], low);
    str_format(out, 300, "%s-%s-%lld", j->o->name, low, (long long)index);
}

static void look(struct tfjob *j)
{
    j->pods.len = 0;
    controllers_pods_of(j->c, j->o->uid, &kind_pods, &j->pods);
    for (size_t type = 0; type < TYPES_LEN; type++) {
        struct counts *n = &j->counts[type];
        *n = (struct counts){.given = spec_of(j, type) != NULL};
        if (!n->given)
            continue;
        n->replicas =
            num_min(REPLICAS_MAX, controllers_int(jsonnode_get(spec_of(j, type), "replicas"), 1));
        for (int64_t i = 0; i < n->replicas; i++) {
            char name[300];
            pod_name(j, type, i, name);
            const struct controllers_child *pod = find_pod(j, name);
            if (!pod)
                continue;
            n->active += pod->phase == POD_RUNNING || pod->phase == POD_PENDING;
            n->running += pod->phase == POD_RUNNING;
            n->succeeded += pod->phase == POD_SUCCEEDED;
            n->failed += pod->phase == POD_FAILED;
            n->first_done |= i == 0 && pod->phase == POD_SUCCEEDED;
        }
    }
}

/* Pods that are missing are made; failed ones whose exit code says so are taken away, to be made
 * anew. */
static int manage(struct tfjob *j, struct error *err)
{
    const struct controllers_owner *owner = controllers_index_owner(&j->c->index, j->o->uid);
    if (owner && owner->pending > 0)
        return 0; /* which ones are on their way is not known here */
    for (size_t type = 0; type < TYPES_LEN; type++) {
        for (int64_t i = 0; i < j->counts[type].replicas; i++) {
            char name[300];
            pod_name(j, type, i, name);
            struct controllers_child *pod = find_pod(j, name);
            bool again = pod && pod->phase == POD_FAILED && pod->exited &&
                         pod->exit_code >= RETRYABLE && str_eq(restart_policy(j, type), "ExitCode");
            if (!pod ? create_pod(j, type, i, name, err) < 0
                     : again && !pod->deleting &&
                           controllers_delete_pod(j->c, j->o, COMPONENT, j->o->ns, name, NULL,
                                                  err) < 0)
                return -1;
            if (pod && !again)
                continue;
            /* What was found may be gone after a change. */
            j->pods.len = 0;
            controllers_pods_of(j->c, j->o->uid, &kind_pods, &j->pods);
        }
    }
    return 0;
}

/* ---- the end ---- */

static bool has_failed(const struct tfjob *j, size_t *type)
{
    for (size_t i = 0; i < TYPES_LEN; i++) {
        if (j->counts[i].failed == 0)
            continue;
        *type = i;
        if (!str_eq(restart_policy(j, i), "ExitCode"))
            return true;
        for (size_t k = 0; k < j->pods.len; k++)
            if (j->pods.items[k]->phase == POD_FAILED && j->pods.items[k]->exited &&
                j->pods.items[k]->exit_code < RETRYABLE)
                return true;
    }
    return false;
}

static bool has_succeeded(const struct tfjob *j)
{
    if (has_chief(j))
        return j->counts[0].first_done || j->counts[1].first_done;
    const struct counts *w = &j->counts[3];
    bool all = w->given && w->replicas > 0 && w->succeeded == w->replicas;
    if (str_eq(jsonnode_str(jsonnode_path(j->root, "spec", "successPolicy", NULL)), "AllWorkers"))
        return all;
    return all || w->first_done;
}

static int clean(struct tfjob *j, struct error *err)
{
    const char *policy =
        jsonnode_str(jsonnode_path(j->root, "spec", "runPolicy", "cleanPodPolicy", NULL));
    if (!policy)
        policy = jsonnode_str(jsonnode_path(j->root, "spec", "cleanPodPolicy", NULL));
    if (str_eq(policy, "None"))
        return 0;
    struct arena names;
    arena_init(&names, 0);
    const char **list = arena_new(&names, const char *, j->pods.len);
    size_t n = 0;
    for (size_t i = 0; i < j->pods.len; i++) {
        const struct controllers_child *pod = j->pods.items[i];
        bool ended = pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED;
        if (!pod->deleting && (!ended || str_eq(policy, "All")))
            list[n++] = arena_strdup(&names, pod->name);
    }
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = controllers_delete_pod(j->c, j->o, COMPONENT, j->o->ns, list[i], NULL, err);
    arena_deinit(&names);
    return rc;
}

static void judge(struct tfjob *j)
{
    char text[700], now[32];
    controllers_now(now);
    size_t type = 0;
    int64_t running = 0;
    for (size_t i = 0; i < TYPES_LEN; i++)
        running += j->counts[i].running;
    if (!controllers_condition(j->conditions, "Created")) {
        str_format(text, sizeof text, "TFJob %s is created.", j->o->name);
        set(j, "Created", true, "TFJobCreated", text);
    }
    if (!jsonnode_get_str(j->status, "startTime"))
        jsonnode_set_str(j->t, j->status, "startTime", now);
    bool done = has_succeeded(j), broken = !done && has_failed(j, &type);
    if (done || broken) {
        const char *word = done ? "Succeeded" : "Failed",
                   *reason = done ? "TFJobSucceeded" : "TFJobFailed";
        if (done)
            str_format(text, sizeof text, "TFJob %s/%s successfully completed.", j->o->ns,
                       j->o->name);
        else
            str_format(text, sizeof text,
                       "TFJob %s/%s has failed because %lld %s replica(s) failed.", j->o->ns,
                       j->o->name, (long long)j->counts[type].failed, TYPES[type]);
        if (is(j, "Running")) {
            char was[400];
            str_format(was, sizeof was, "%s",
                       str_or_empty(jsonnode_get_str(
                           controllers_condition(j->conditions, "Running"), "message")));
            set(j, "Running", false, "TFJobRunning", was);
        }
        set(j, word, true, reason, text);
        jsonnode_set_str(j->t, j->status, "completionTime", now);
        controllers_event(j->c, j->o, COMPONENT, broken, reason, "%s", text);
    } else if (running > 0 && !is(j, "Running")) {
        str_format(text, sizeof text, "TFJob %s/%s is running.", j->o->ns, j->o->name);
        set(j, "Running", true, "TFJobRunning", text);
    }
}

static int write_status(struct tfjob *j, struct error *err)
{
    struct jsontree *t = j->t;
    struct jsonnode *all = jsonnode_object(t);
    for (size_t i = 0; i < TYPES_LEN; i++) {
        const struct counts *n = &j->counts[i];
        if (!n->given)
            continue;
        struct jsonnode *one = jsonnode_need_object(t, all, TYPES[i]);
        if (n->active > 0)
            jsonnode_set_int(t, one, "active", n->active);
        if (n->succeeded > 0)
            jsonnode_set_int(t, one, "succeeded", n->succeeded);
        if (n->failed > 0)
            jsonnode_set_int(t, one, "failed", n->failed);
    }
    jsonnode_set(t, j->status, "replicaStatuses", all);
    jsonnode_set(t, j->status, "conditions", j->conditions);
    return controllers_set_status(j->c, j->o, j->status, err);
}

int tfjob_sync(struct controllers *c, const struct controllers_work *w, int64_t *again_ms,
               struct error *err)
{
    (void)again_ms;
    struct tfjob j = {.c = c};
    j.o = store_get(c->store, w->kind, w->ns, w->name);
    if (!j.o)
        return 0;
    if (jsontree_parse(&j.t, j.o->text, j.o->text_len, err) < 0)
        return -1;
    object_ref(j.o);
    j.root = jsontree_root(j.t);
    j.specs = jsonnode_path(j.root, "spec", "tfReplicaSpecs", NULL);
    j.status = jsonnode_need_object(j.t, j.root, "status");
    j.conditions = jsonnode_remove(j.status, "conditions");
    if (!jsonnode_is_array(j.conditions))
        j.conditions = jsonnode_array(j.t);
    int rc = 0;
    look(&j);
    if (!jsonnode_path(j.root, "metadata", "deletionTimestamp", NULL)) {
        bool ended = is(&j, "Succeeded") || is(&j, "Failed");
        if (!ended)
            judge(&j);
        ended = is(&j, "Succeeded") || is(&j, "Failed");
        rc = ended ? clean(&j, err) : manage(&j, err);
        look(&j);
        struct error ignored = ERROR_INIT;
        if (write_status(&j, rc < 0 ? &ignored : err) < 0)
            rc = -1;
    }
    vec_deinit(&j.pods);
    jsontree_free(j.t);
    object_unref(j.o);
    return rc;
}
