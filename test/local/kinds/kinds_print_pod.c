// SPDX-License-Identifier: Apache-2.0
/*
 * kinds_print_pod - READY, STATUS and RESTARTS of a pod. They are read from the same walk over the
 * container statuses, so it is done once per cell into struct summary: a word that says what keeps
 * the pod from running, worst first, and the counts beside it.
 *
 *     status.reason or phase  ->  Init:...  while an init container is not done      (inspect_init)
 *                             ->  a container's waiting or terminated reason (inspect_containers)
 *                             ->  Terminating  when it is being deleted and not over (pod_word)
 */
#include "test/local/kinds/kinds_print.h"

#include "lib/base/clock.h"

struct summary {
    struct strbuf word;
    int64_t ready, total;
    int64_t restarts;
    int64_t restarted_ns; /* when a container ended last; -1: none did */
    bool initializing;
    /* The same two for sidecars alone: ordinary init containers' restarts are forgotten once they
     * are done. */
    int64_t sidecar_restarts;
    int64_t sidecar_restarted_ns;
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

static void count_restarts(json *status, int64_t *count, int64_t *last_ns)
{
    int64_t n = 0;
    if (json_get_int(status, "restartCount", &n))
        *count += n;
    const char *stamp = json_str(kinds_print_at(status, "lastState.terminated.finishedAt"));
    int64_t ended = stamp ? clock_parse_rfc3339(stamp) : -1;
    if (ended > *last_ns)
        *last_ns = ended;
}

static void set_word(struct summary *s, const char *prefix, const char *word)
{
    strbuf_reset(&s->word);
    strbuf_adds(&s->word, prefix);
    strbuf_adds(&s->word, word);
}

/* "Error", or how it ended when it does not say why. */
static void set_ended(struct summary *s, const char *prefix, json *terminated)
{
    const char *reason = json_get_str(terminated, "reason");
    int64_t code = 0, sig = 0;
    if (reason && *reason) {
        set_word(s, prefix, reason);
        return;
    }
    json_get_int(terminated, "exitCode", &code);
    json_get_int(terminated, "signal", &sig);
    strbuf_reset(&s->word);
    strbuf_addf(&s->word, "%s%s:%lld", prefix, sig ? "Signal" : "ExitCode",
                (long long)(sig ? sig : code));
}

static void inspect_init(struct summary *s, json *pod)
{
    size_t i = 0;
    json *statuses = kinds_print_at(pod, "status.initContainerStatuses");
    for (struct json_iter it = json_iter(statuses); json_next(&it); i++) {
        bool sidecar = is_sidecar(pod, json_get_str(it.value, "name"));
        count_restarts(it.value, &s->restarts, &s->restarted_ns);
        if (sidecar)
            count_restarts(it.value, &s->sidecar_restarts, &s->sidecar_restarted_ns);
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
            set_ended(s, "Init:", ended);
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
    s->restarted_ns = s->sidecar_restarted_ns;
    for (size_t i = json_len(statuses); i-- > 0;) {
        json *c = json_at(statuses, i);
        count_restarts(c, &s->restarts, &s->restarted_ns);
        const char *waits = json_get_str(state(c, "waiting"), "reason");
        json *ended = state(c, "terminated");
        if (waits && *waits) {
            set_word(s, "", waits);
        } else if (ended) {
            set_ended(s, "", ended);
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
    *s = (struct summary){.restarted_ns = -1, .sidecar_restarted_ns = -1};
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
    if (!kinds_print_at(pod, "metadata.deletionTimestamp"))
        return;
    if (str_eq(reason, "NodeLost"))
        set_word(s, "", "Unknown");
    else if (!str_eq(phase, "Succeeded") && !str_eq(phase, "Failed"))
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
    struct summary s;
    summarize(&s, o);
    strbuf_reset(&s.word);
    strbuf_addf(&s.word, "%lld", (long long)s.restarts);
    if (s.restarts > 0 && s.restarted_ns >= 0) {
        strbuf_adds(&s.word, " (");
        kinds_print_duration(now_ns - s.restarted_ns, &s.word);
        strbuf_adds(&s.word, " ago)");
    }
    json_put_str(w, strbuf_str(&s.word));
    strbuf_deinit(&s.word);
}

void kinds_print_pod_gates(json *o, int64_t now_ns, struct json_writer *w)
{
    (void)now_ns;
    json *gates = kinds_print_at(o, "spec.readinessGates");
    AUTO_STRBUF b = {0};
    size_t open = 0;
    for (struct json_iter it = json_iter(gates); json_next(&it);)
        open += pod_condition_true(o, json_get_str(it.value, "conditionType"));
    if (json_len(gates) == 0)
        strbuf_adds(&b, "<none>");
    else
        strbuf_addf(&b, "%zu/%zu", open, json_len(gates));
    json_put_str(w, strbuf_str(&b));
}
