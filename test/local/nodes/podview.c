// SPDX-License-Identifier: Apache-2.0
#include "test/local/nodes/podview.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/kube/decode.h"

enum { ARGS_MAX = 4096 };

static const char **read_argv(json *c, struct arena *a)
{
    json *parts[] = {json_get(c, "command"), json_get(c, "args")};
    size_t n = json_len(parts[0]) + json_len(parts[1]), k = 0;
    const char **argv = arena_new(a, const char *, (n < ARGS_MAX ? n : ARGS_MAX) + 1);
    for (size_t p = 0; p < 2; p++)
        for (struct json_iter it = json_iter(parts[p]); json_next(&it) && k < ARGS_MAX;)
            if (json_str(it.value) != NULL)
                argv[k++] = arena_strdup(a, json_str(it.value));
    return argv;
}

static void plan_by_annotation(const struct pod *pod, struct runplan *p)
{
    const char *seconds = labels_get(&pod->annotations, PODVIEW_ANN_RUN_SECONDS);
    const char *code = labels_get(&pod->annotations, PODVIEW_ANN_EXIT_CODE);
    int64_t n = 0;
    if (seconds != NULL && runplan_duration(seconds, strlen(seconds), &n)) {
        p->run_ms = n;
        p->exit_code = 0;
        p->known = true;
    }
    if (code != NULL && num_parse_range(code, 0, 255, &n, NULL) == 0)
        p->exit_code = (int)n;
}

static int64_t read_time(json *j, const char *key)
{
    const char *text = json_get_str(j, key);
    int64_t ns = text != NULL ? clock_parse_rfc3339(text) : 0;
    return ns > 0 ? ns : 0;
}

static const char *read_id(json *j, struct arena *a)
{
    const char *id = json_get_str(j, "containerID"), *scheme = "containerd://";
    return str_starts(id, scheme) ? arena_strdup(a, id + strlen(scheme)) : NULL;
}

static void read_status(json *status, struct podview_container *c, struct arena *a)
{
    json *state = json_get(status, "state");
    json *running = json_get(state, "running"), *ended = json_get(state, "terminated");
    json *last = json_get(json_get(status, "lastState"), "terminated");
    (void)json_get_int(status, "restartCount", &c->restarts);
    c->id = read_id(status, a);
    if (running != NULL) {
        c->seen = PODVIEW_RUNNING;
        c->started_ns = read_time(running, "startedAt");
    } else if (ended != NULL) {
        c->seen = PODVIEW_EXITED;
        c->started_ns = read_time(ended, "startedAt");
        c->finished_ns = read_time(ended, "finishedAt");
        (void)json_get_int(ended, "exitCode", &c->exit_code);
    } else {
        c->seen = PODVIEW_WAITING;
    }
    if (last != NULL) {
        c->has_last = true;
        c->last_started_ns = read_time(last, "startedAt");
        c->last_finished_ns = read_time(last, "finishedAt");
        (void)json_get_int(last, "exitCode", &c->last_exit_code);
        c->last_id = read_id(last, a);
    }
}

static void read_containers(json *spec, json *status, bool init, struct podview *v)
{
    const struct container *models = init ? v->model->init_containers : v->model->containers;
    json *statuses = json_get(status, init ? "initContainerStatuses" : "containerStatuses");
    size_t i = 0;
    for (struct json_iter it = json_iter(json_get(spec, init ? "initContainers" : "containers"));
         json_next(&it); i++) {
        struct podview_container *c = &v->containers[v->containers_len++];
        c->model = &models[i];
        c->init = init;
        runplan_of_command(read_argv(it.value, &v->arena), &c->plan);
        if (!init)
            plan_by_annotation(v->model, &c->plan);
        else if (!c->plan.known &&
                 !models[i].sidecar) /* an init step that never ends would block the pod */
            c->plan = (struct runplan){.known = true};
        for (struct json_iter s = json_iter(statuses); json_next(&s);)
            if (str_eq(json_get_str(s.value, "name"), models[i].name))
                read_status(s.value, c, &v->arena);
    }
}

/* By Kubernetes' rules, of cpu and memory alone; the API server writes the same into status. */
static const char *qos_of(const struct podview *v)
{
    bool any = false, guaranteed = true;
    for (size_t i = 0; i < v->containers_len; i++) {
        const struct resources *r = &v->containers[i].model->requests;
        const struct resources *l = &v->containers[i].model->limits;
        any = any || r->cpu_milli > 0 || r->memory_bytes > 0 || l->cpu_milli > 0 ||
              l->memory_bytes > 0;
        guaranteed = guaranteed && l->cpu_milli > 0 && l->memory_bytes > 0 &&
                     r->cpu_milli == l->cpu_milli && r->memory_bytes == l->memory_bytes;
    }
    return !any ? "BestEffort" : guaranteed ? "Guaranteed" : "Burstable";
}

int podview_decode(json *j, struct podview **out, struct error *err)
{
    struct podview *v = mem_new(struct podview, 1);
    json *spec = json_get(j, "spec"), *status = json_get(j, "status"),
         *meta = json_get(j, "metadata");
    arena_init(&v->arena, 0);
    if (decode_pod(j, &v->model, err) < 0) {
        podview_free(v);
        return -1;
    }
    if (strchr(v->model->uid, '/') != NULL) { /* it becomes a directory's name */
        podview_free(v);
        return error_set(err, ERROR_INVALID, "not a uid");
    }
    const char *restart = json_get_str(spec, "restartPolicy");
    v->restart = str_eq(restart, "Never")       ? PODVIEW_NEVER
                 : str_eq(restart, "OnFailure") ? PODVIEW_ON_FAILURE
                                                : PODVIEW_ALWAYS;
    v->grace_s = 30;
    (void)json_get_int(meta, "deletionGracePeriodSeconds", &v->grace_s);
    v->host_network = json_get_bool(spec, "hostNetwork", false);
    v->started_ns = read_time(status, "startTime");
    if (json_get_str(status, "podIP") != NULL)
        v->ip = arena_strdup(&v->arena, json_get_str(status, "podIP"));
    v->init_len = v->model->init_containers_len;
    v->containers =
        arena_new(&v->arena, struct podview_container, v->init_len + v->model->containers_len);
    read_containers(spec, status, true, v);
    read_containers(spec, status, false, v);
    v->qos = qos_of(v);
    *out = v;
    return 0;
}

void podview_free(struct podview *v)
{
    if (v == NULL)
        return;
    pod_free(v->model);
    arena_deinit(&v->arena);
    free(v);
}
