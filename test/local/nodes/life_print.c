// SPDX-License-Identifier: Apache-2.0
/*
 * life_print - a pod's life as its status. A strategic merge patch: lists of containers replace the
 * old ones, conditions are merged by their type (PodScheduled is not ours and stays), and null
 * removes fields that a condition no longer has.
 */
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "test/local/nodes/life.h"

static void put_time(struct json_writer *w, const char *key, int64_t ns)
{
    char text[CLOCK_RFC3339_SIZE];
    if (ns <= 0)
        return;
    clock_rfc3339(ns, 0, text);
    json_kv_str(w, key, text);
}

static void put_id(struct json_writer *w, const char *id)
{
    AUTO_STRBUF text;
    strbuf_init(&text);
    if (id[0] == '\0')
        return;
    strbuf_addf(&text, "containerd://%s", id);
    json_kv_str(w, "containerID", strbuf_str(&text));
}

static void put_exit(struct json_writer *w, int code, int64_t from_ns, int64_t to_ns,
                     const char *id)
{
    json_key(w, "terminated");
    json_object_begin(w);
    json_kv_int(w, "exitCode", code);
    json_kv_str(w, "reason", code == 0 ? "Completed" : "Error");
    put_time(w, "startedAt", from_ns);
    put_time(w, "finishedAt", to_ns);
    put_id(w, id);
    json_object_end(w);
}

static void put_state(struct json_writer *w, const struct life_container *c)
{
    json_key(w, "state");
    json_object_begin(w);
    if (c->state == LIFE_RUNNING) {
        json_key(w, "running");
        json_object_begin(w);
        put_time(w, "startedAt", c->started_ns);
        json_object_end(w);
    } else if (c->state == LIFE_EXITED) {
        put_exit(w, c->exit_code, c->started_ns, c->finished_ns, c->id);
    } else {
        json_key(w, "waiting");
        json_object_begin(w);
        json_kv_str(w, "reason", c->why);
        if (c->message[0] != '\0')
            json_kv_str(w, "message", c->message);
        json_object_end(w);
    }
    json_object_end(w);
    json_key(w, "lastState");
    json_object_begin(w);
    if (c->has_last)
        put_exit(w, c->last_exit, c->last_started_ns, c->last_finished_ns, c->last_id);
    json_object_end(w);
}

static bool is_ready(const struct life_container *c)
{
    if (c->view->init && !c->view->model->sidecar)
        return c->state == LIFE_EXITED && c->exit_code == 0;
    return c->state == LIFE_RUNNING;
}

static void put_containers(struct json_writer *w, const struct life *l, bool init)
{
    json_key(w, init ? "initContainerStatuses" : "containerStatuses");
    json_array_begin(w);
    for (size_t i = 0; i < l->view->containers_len; i++) {
        const struct life_container *c = &l->containers[i];
        if (c->view->init != init)
            continue;
        json_object_begin(w);
        json_kv_str(w, "name", c->view->model->name);
        json_kv_str(w, "image", str_or_empty(c->view->model->image));
        json_kv_str(w, "imageID", c->id[0] != '\0' ? str_or_empty(c->view->model->image) : "");
        json_kv_int(w, "restartCount", c->restarts);
        json_kv_bool(w, "ready", is_ready(c));
        json_kv_bool(w, "started", c->state == LIFE_RUNNING);
        put_id(w, c->id);
        put_state(w, c);
        json_object_end(w);
    }
    json_array_end(w);
}

/* "containers with unready status: [a b]" */
static void unready(const struct life *l, bool init, struct strbuf *out)
{
    strbuf_addf(out, "containers with %s status: [", init ? "incomplete" : "unready");
    bool first = true;
    for (size_t i = 0; i < l->view->containers_len; i++) {
        const struct life_container *c = &l->containers[i];
        if (c->view->init != init || is_ready(c))
            continue;
        strbuf_addf(out, "%s%s", first ? "" : " ", c->view->model->name);
        first = false;
    }
    strbuf_addc(out, ']');
}

static void put_condition(struct json_writer *w, struct life *l, size_t slot, const char *type,
                          bool yes, const char *reason, const char *message, int64_t now_ns)
{
    const char *status = yes ? "True" : "False";
    if (!str_eq(l->conditions[slot].status, status)) {
        l->conditions[slot].status = status;
        l->conditions[slot].since_ns = now_ns;
    }
    json_object_begin(w);
    json_kv_str(w, "type", type);
    json_kv_str(w, "status", status);
    json_key(w, "lastProbeTime");
    json_put_null(w);
    put_time(w, "lastTransitionTime", l->conditions[slot].since_ns);
    json_kv_str(w, "reason", yes ? NULL : reason);
    json_kv_str(w, "message", yes ? NULL : message);
    json_object_end(w);
}

static void put_conditions(struct json_writer *w, struct life *l, int64_t now_ns)
{
    AUTO_STRBUF why;
    AUTO_STRBUF why_init;
    strbuf_init(&why);
    strbuf_init(&why_init);
    bool initialized = true, ready = true, over = life_is_over(l);
    for (size_t i = 0; i < l->view->containers_len; i++) {
        const struct life_container *c = &l->containers[i];
        bool *which = c->view->init && !c->view->model->sidecar ? &initialized : &ready;
        *which = *which && is_ready(c);
    }
    unready(l, false, &why);
    unready(l, true, &why_init);
    bool succeeded = life_phase(l) == POD_SUCCEEDED, failed = over && !succeeded;
    const char *reason = succeeded ? "PodCompleted" : failed ? "PodFailed" : "ContainersNotReady";
    const char *message = over ? NULL : strbuf_str(&why);
    json_key(w, "conditions");
    json_array_begin(w);
    put_condition(w, l, 0, "PodReadyToStartContainers", !over && now_ns >= l->ready_ns, NULL, NULL,
                  now_ns);
    put_condition(w, l, 1, "Initialized", initialized, "ContainersNotInitialized",
                  strbuf_str(&why_init), now_ns);
    put_condition(w, l, 2, "Ready", ready && !over, reason, message, now_ns);
    put_condition(w, l, 3, "ContainersReady", ready && !over, reason, message, now_ns);
    json_array_end(w);
}

static void put_ip(struct json_writer *w, const char *one, const char *list, const char *ip)
{
    json_kv_str(w, one, ip);
    json_key(w, list);
    json_array_begin(w);
    json_object_begin(w);
    json_kv_str(w, "ip", ip);
    json_object_end(w);
    json_array_end(w);
}

void life_print(struct life *l, const struct life_host *h, int64_t now_ns, struct strbuf *out)
{
    static const char *const phases[] = {"Pending", "Running", "Succeeded", "Failed", "Unknown"};
    struct json_writer w;
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_key(&w, "metadata");
    json_object_begin(&w);
    json_kv_str(&w, "uid", l->view->model->uid);
    json_object_end(&w);
    json_key(&w, "status");
    json_object_begin(&w);
    json_kv_str(&w, "phase", phases[life_phase(l)]);
    put_time(&w, "startTime", l->admitted_ns);
    if (l->rejected) {
        json_kv_str(&w, "reason", l->reason);
        json_kv_str(&w, "message", l->message);
    } else {
        put_ip(&w, "hostIP", "hostIPs", h->host_ip);
        if (now_ns >= l->ready_ns)
            put_ip(&w, "podIP", "podIPs", l->view->host_network ? h->host_ip : h->pod_ip);
        put_conditions(&w, l, now_ns);
        if (l->view->init_len > 0)
            put_containers(&w, l, true);
        put_containers(&w, l, false);
    }
    json_object_end(&w);
    json_object_end(&w);
}
