// SPDX-License-Identifier: Apache-2.0
/*
 * kinds_print_pod - READY, STATUS and RESTARTS of a pod, from one walk over the container statuses.
 * It covers the states that the simulated kubelet writes, which always gives a reason.
 *
 *     status.reason or phase  ->  Init:...  while an init container is not done      (inspect_init)
 *                             ->  a container's waiting or terminated reason (inspect_containers)
 *                             ->  Terminating  when it is being deleted and not over  (summarize)
 */
#include "test/local/kinds/kinds_print.h"

struct summary {
    struct strbuf word;
    int64_t ready, total;
    int64_t restarts;
    int64_t sidecar_restarts; /* those of other init containers are forgotten once they are done */
    bool initializing;
};

static json *state(json *status, const char *which)
{
    return json_get(json_get(status, "state"), which);
}

static bool is_sidecar(json *pod, const char *name)
{
    for (struct json_iter it = json_iter(kinds_print_at(pod, "spec.initContainers"));
         json_next(&it);)
        if (str_eq(json_get_str(it.value, "name"), name))
            return str_eq(json_get_str(it.value, "restartPolicy"), "Always");
    return false;
}

static bool pod_condition_true(json *pod, const char *type)
{
    for (struct json_iter it = json_iter(kinds_print_at(pod, "status.conditions")); json_next(&it);)
        if (str_eq(json_get_str(it.value, "type"), type))
            return str_eq(json_get_str(it.value, "status"), "True");
    return false;
}

static int64_t restarts_of(json *status)
{
    int64_t n = 0;
    (void)json_get_int(status, "restartCount", &n);
    return n;
}

static void set_word(struct summary *s, const char *prefix, const char *word)
{
    strbuf_reset(&s->word);
    strbuf_adds(&s->word, prefix);
    strbuf_adds(&s->word, word);
}

static void inspect_init(struct summary *s, json *pod)
{
    size_t i = 0;
    json *statuses = kinds_print_at(pod, "status.initContainerStatuses");
    for (struct json_iter it = json_iter(statuses); json_next(&it); i++) {
        bool sidecar = is_sidecar(pod, json_get_str(it.value, "name"));
        s->restarts += restarts_of(it.value);
        s->sidecar_restarts += sidecar ? restarts_of(it.value) : 0;
        json *ended = state(it.value, "terminated");
        int64_t code = 0;
        const char *waits = json_get_str(state(it.value, "waiting"), "reason");
        if (ended && (!json_get_int(ended, "exitCode", &code) || code == 0))
            continue;
        if (sidecar && json_get_bool(it.value, "started", false)) {
            s->ready += json_get_bool(it.value, "ready", false);
            continue;
        }
        if (ended) {
            set_word(s, "Init:", str_or_empty(json_get_str(ended, "reason")));
        } else if (waits && *waits && !str_eq(waits, "PodInitializing")) {
            set_word(s, "Init:", waits);
        } else {
            strbuf_reset(&s->word);
            strbuf_addf(&s->word, "Init:%zu/%zu", i,
                        json_len(kinds_print_at(pod, "spec.initContainers")));
        }
        s->initializing = true;
        return;
    }
}

/* The first container's reason wins: each one overwrites those behind it. */
static void inspect_containers(struct summary *s, json *pod)
{
    json *statuses = kinds_print_at(pod, "status.containerStatuses");
    bool running = false;
    s->restarts = s->sidecar_restarts;
    for (size_t i = json_len(statuses); i-- > 0;) {
        json *c = json_at(statuses, i);
        s->restarts += restarts_of(c);
        const char *waits = json_get_str(state(c, "waiting"), "reason");
        json *ended = state(c, "terminated");
        if (waits && *waits) {
            set_word(s, "", waits);
        } else if (ended) {
            set_word(s, "", str_or_empty(json_get_str(ended, "reason")));
        } else if (json_get_bool(c, "ready", false) && state(c, "running")) {
            running = true;
            s->ready++;
        }
    }
    if (running && str_eq(strbuf_str(&s->word), "Completed"))
        set_word(s, "", pod_condition_true(pod, "Ready") ? "Running" : "NotReady");
}

static void summarize(struct summary *s, json *pod)
{
    *s = (struct summary){0};
    const char *phase = json_str(kinds_print_at(pod, "status.phase"));
    const char *reason = json_str(kinds_print_at(pod, "status.reason"));
    set_word(s, "", reason && *reason ? reason : str_or_empty(phase));
    s->total = (int64_t)json_len(kinds_print_at(pod, "spec.containers"));
    for (struct json_iter it = json_iter(kinds_print_at(pod, "spec.initContainers"));
         json_next(&it);)
        s->total += str_eq(json_get_str(it.value, "restartPolicy"), "Always");
    for (struct json_iter it = json_iter(kinds_print_at(pod, "status.conditions")); json_next(&it);)
        if (str_eq(json_get_str(it.value, "type"), "PodScheduled") &&
            str_eq(json_get_str(it.value, "reason"), "SchedulingGated"))
            set_word(s, "", "SchedulingGated");
    inspect_init(s, pod);
    if (!s->initializing || pod_condition_true(pod, "Initialized"))
        inspect_containers(s, pod);
    if (kinds_print_at(pod, "metadata.deletionTimestamp") && !str_eq(phase, "Succeeded") &&
        !str_eq(phase, "Failed"))
        set_word(s, "", "Terminating");
}

void kinds_print_pod_ready(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    struct summary s;
    summarize(&s, o);
    strbuf_reset(&s.word);
    strbuf_addf(&s.word, "%lld/%lld", (long long)s.ready, (long long)s.total);
    json_put_str(w, strbuf_str(&s.word));
    strbuf_deinit(&s.word);
}

void kinds_print_pod_status(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    struct summary s;
    summarize(&s, o);
    json_put_str(w, strbuf_str(&s.word));
    strbuf_deinit(&s.word);
}

void kinds_print_pod_restarts(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    struct summary s;
    summarize(&s, o);
    strbuf_reset(&s.word);
    strbuf_addf(&s.word, "%lld", (long long)s.restarts);
    json_put_str(w, strbuf_str(&s.word));
    strbuf_deinit(&s.word);
}
