// SPDX-License-Identifier: Apache-2.0
/*
 * Works on the pod's JSON, not on struct pod: decode refuses what it cannot read, and the webhook's
 * task is to say which field it was and what to write there. Numbers may be JSON strings (as the API
 * server sends quantities) or JSON numbers (as people write them in YAML).
 *
 * To add a reason to be ours: one row in `triggers`. To add a refusal: one row in `checks`.
 */
#include "webhook/rules.h"

#include <stdarg.h>
#include <stdint.h>

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/claim.h"
#include "lib/model/gang.h"
#include "lib/model/gpu.h"
#include "lib/model/names.h"
#include "lib/model/pod.h"
#include "lib/model/quantity.h"

#define KUBE_SYSTEM "kube-system"
#define KUBE_DEFAULT_SCHEDULER "default-scheduler"

enum gpu_resource { RES_MEM, RES_CORE, RES_GPU, RES_NVIDIA, GPU_RESOURCES };

static const struct {
    const char *name;
    const char *unit; /* "a whole number of ..." */
} gpu_resources[GPU_RESOURCES] = {
    [RES_MEM] = {NAME_RES_GPU_MEM, "GiB"},
    [RES_CORE] = {NAME_RES_GPU_CORE, "percent"},
    [RES_GPU] = {NAME_RES_GPU, "cards"},
    [RES_NVIDIA] = {NAME_RES_NVIDIA_GPU, "cards"},
};

/* One pod under the eyes of the rules. */
struct look {
    const struct rules_config *config;
    const struct rules_context *context;
    struct arena *arena;
    json *spec;
    json *metadata;
    struct labels labels;
    struct labels annotations;
    const char *scheduling_group;
    bool asks[GPU_RESOURCES];
    struct rules_verdict *verdict;
};

static const char *label(const struct look *l, const char *key)
{
    return labels_get(&l->labels, key);
}

static const char *annotation(const struct look *l, const char *key)
{
    return labels_get(&l->annotations, key);
}

static const char *ns_label(const struct look *l, const char *key)
{
    return l->context->ns_labels ? labels_get(l->context->ns_labels, key) : NULL;
}

/* ---- containers and amounts ----------------------------------------------------------------- */

static const char *const container_lists[] = {"containers", "initContainers"};
static const char *const amount_lists[] = {"limits", "requests"};
enum { CONTAINER_LISTS = 2, AMOUNT_LISTS = 2 };

/* for (struct container_iter it = {0}; next_container(l, &it);): containers, then init containers */
struct container_iter {
    json *value;
    const char *list; /* "containers" */
    size_t index;
    size_t lists_begun_;
    struct json_iter it_;
};

static bool next_container(const struct look *l, struct container_iter *it)
{
    for (;;) {
        if (it->list && json_next(&it->it_)) {
            it->index = it->value ? it->index + 1 : 0;
            it->value = it->it_.value;
            return true;
        }
        if (it->lists_begun_ == CONTAINER_LISTS)
            return false;
        it->list = container_lists[it->lists_begun_++];
        it->it_ = json_iter(json_get(l->spec, it->list));
        it->value = NULL;
    }
}

static json *amount_of(json *container, const char *list, const char *resource)
{
    return json_get(json_get(json_get(container, "resources"), list), resource);
}

/* In thousandths, rounded up: false when it is no quantity, or too large for us to count. */
static bool read_milli(json *v, int64_t *milli)
{
    const char *text = json_str(v) ? json_str(v) : json_number_text(v);
    return text &&
           quantity_parse(text, strlen(text), QUANTITY_MILLI, QUANTITY_UP, milli, NULL) == 0;
}

static bool read_whole(json *v, int64_t *whole)
{
    int64_t milli = 0;
    if (!read_milli(v, &milli) || milli % 1000 != 0)
        return false;
    *whole = milli / 1000;
    return true;
}

/* An amount of 0 asks for nothing; one that cannot be read asks (and is refused later). */
static bool is_asked(json *v)
{
    int64_t milli = 0;
    return v && (!read_milli(v, &milli) || milli != 0);
}

static void find_asked(struct look *l)
{
    for (struct container_iter c = {0}; next_container(l, &c);)
        for (size_t i = 0; i < AMOUNT_LISTS; i++)
            for (int r = 0; r < GPU_RESOURCES; r++)
                if (is_asked(amount_of(c.value, amount_lists[i], gpu_resources[r].name)))
                    l->asks[r] = true;
}

/* ---- sentences ------------------------------------------------------------------------------ */

/* Cut at max bytes, between characters; what could forge a line or a header becomes '?'. */
static const char *tidy(char *s, size_t max)
{
    size_t len = strlen(s);
    if (len > max) {
        size_t end = 0;
        for (size_t n; (n = str_utf8_len(s + end, len - end)) > 0 && end + n <= max - 3;)
            end += n;
        for (size_t i = 0; i < 3; i++)
            s[end++] = '.';
        s[end] = '\0';
    }
    for (char *c = s; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    return s;
}

static void __attribute__((format(printf, 4, 0)))
say_to(struct look *l, struct rules_sentences *to, size_t max, const char *fmt, va_list ap)
{
    if (to->len == RULES_SENTENCES_MAX) {
        to->left_out++;
        return;
    }
    to->items[to->len++] = tidy(arena_vprintf(l->arena, fmt, ap), max);
}

static void __attribute__((format(printf, 2, 3))) warn(struct look *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say_to(l, &l->verdict->warnings, RULES_WARNING_BYTES, fmt, ap);
    va_end(ap);
}

static void __attribute__((format(printf, 2, 3))) refuse(struct look *l, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    say_to(l, &l->verdict->refusals, RULES_REFUSAL_BYTES, fmt, ap);
    va_end(ap);
}

/* The last place tells how many did not find one. */
static void close_sentences(struct look *l, struct rules_sentences *s)
{
    if (s->left_out == 0)
        return;
    s->left_out++;
    s->items[RULES_SENTENCES_MAX - 1] = arena_printf(l->arena, "and %zu more.", s->left_out);
}

/* A value of the user's in a message, at most 64 bytes of it. */
static const char *quote(struct look *l, const char *value)
{
    char *copy = arena_strndup(l->arena, value, strnlen(value, 128));
    return arena_printf(l->arena, "'%s'", tidy(copy, 64));
}

static const char *quote_json(struct look *l, json *v)
{
    if (json_str(v))
        return quote(l, json_str(v));
    return json_number_text(v) ? quote(l, json_number_text(v)) : json_kind_name(v);
}

/* ---- is it ours? ---------------------------------------------------------------------------- */

static bool asks_gpu_mem(const struct look *l)
{
    return l->asks[RES_MEM];
}

static bool asks_gpu_core(const struct look *l)
{
    return l->asks[RES_CORE];
}

static bool asks_gpu(const struct look *l)
{
    return l->asks[RES_GPU];
}

static bool in_gang(const struct look *l)
{
    return gang_is_mentioned(&l->labels, &l->annotations, l->scheduling_group);
}

static bool in_topology_job(const struct look *l)
{
    return *str_or_empty(label(l, NAME_LABEL_TOPOLOGY_JOB)) != '\0';
}

static bool asks_cpuset(const struct look *l)
{
    const char *value = annotation(l, NAME_ANN_CPUSET_SCHEDULER);
    return str_eq(value, "true") || str_eq(value, "required");
}

static bool asks_burst(const struct look *l)
{
    return *str_or_empty(annotation(l, NAME_ANN_BURST)) != '\0';
}

static bool asks_eci(const struct look *l)
{
    return str_eq(label(l, NAME_LABEL_ECI), "true") || str_eq(ns_label(l, NAME_LABEL_ECI), "true");
}

/* An installation must not take over pods that were fine: only where somebody asked for it. */
static bool asks_nvidia(const struct look *l)
{
    return l->asks[RES_NVIDIA] &&
           (l->config->inject_nvidia || str_eq(ns_label(l, NAME_INJECT), "enabled"));
}

static const struct {
    const char *name;
    bool (*holds)(const struct look *l);
} triggers[] = {
    {"gpu-mem", asks_gpu_mem},
    {"gpu-core", asks_gpu_core},
    {"gpu", asks_gpu},
    {"gang", in_gang},
    {"gpu-topology", in_topology_job},
    {"cpuset", asks_cpuset},
    {"burst", asks_burst},
    {"eci", asks_eci},
    {"nvidia", asks_nvidia},
};

static bool is_daemon(const struct look *l)
{
    json *owners = json_get(l->metadata, "ownerReferences");
    for (struct json_iter it = json_iter(owners); json_next(&it);)
        if (str_eq(json_get_str(it.value, "kind"), "DaemonSet"))
            return true;
    return false;
}

/* The DaemonSet controller places its pods itself; a pod with a node needs no scheduler; our own pods
 * and the control plane's must start when we are not there. */
static bool is_exempt(const struct look *l)
{
    const char *ns = l->context->ns;
    return str_eq(ns, KUBE_SYSTEM) || (l->config->own_ns && str_eq(ns, l->config->own_ns)) ||
           str_eq(ns_label(l, NAME_INJECT), "disabled") ||
           str_eq(annotation(l, NAME_INJECT), "false") || is_daemon(l) ||
           *str_or_empty(json_get_str(l->spec, "nodeName")) != '\0';
}

static const char *find_trigger(const struct look *l)
{
    if (is_exempt(l))
        return NULL;
    for (size_t i = 0; i < sizeof triggers / sizeof triggers[0]; i++)
        if (triggers[i].holds(l))
            return triggers[i].name;
    return NULL;
}

static void decide_scheduler(struct look *l)
{
    const char *scheduler = str_or_empty(json_get_str(l->spec, "schedulerName"));
    bool free_to_take = *scheduler == '\0' || str_eq(scheduler, KUBE_DEFAULT_SCHEDULER);
    l->verdict->trigger = find_trigger(l);
    l->verdict->inject =
        l->verdict->trigger && free_to_take && !str_eq(scheduler, l->config->scheduler);
    l->verdict->ours = l->verdict->inject || str_eq(scheduler, l->config->scheduler);
}

/* ---- result keys ---------------------------------------------------------------------------- */

static void remove_result_keys(struct look *l)
{
    json *annotations = json_get(l->metadata, "annotations");
    struct rules_verdict *v = l->verdict;
    v->remove = arena_new(l->arena, const char *, json_len(annotations));
    for (struct json_iter it = json_iter(annotations); json_next(&it);) {
        if (strlen(it.key) != it.key_len || !claim_is_result_key(it.key))
            continue;
        v->remove[v->remove_len++] = it.key;
        warn(l,
             "metadata.annotations[%s]: removed; cosched writes it when it places the pod, "
             "a manifest cannot set it",
             it.key);
    }
}

/* ---- what cannot be -------------------------------------------------------------------------- */

static void check_percent(struct look *l, const char *path, int64_t percent)
{
    if (percent >= 5 && percent <= 100 && percent % 5 == 0)
        return;
    int64_t below = num_max(5, num_min(percent, 100) / 5 * 5);
    int64_t above = num_min(100, below + 5);
    if (percent < 5 || percent > 100)
        refuse(l, "%s: %lld is not between 5 and 100 percent of a card; write %lld", path,
               (long long)percent, (long long)below);
    else
        refuse(l, "%s: %lld is not a multiple of 5; write %lld or %lld", path, (long long)percent,
               (long long)below, (long long)above);
}

static void check_amount(struct look *l, const char *path, enum gpu_resource resource, json *value)
{
    int64_t whole = 0;
    if (!read_whole(value, &whole) || whole < 0)
        refuse(l, "%s: %s is not a whole number of %s; write an integer such as %s", path,
               quote_json(l, value), gpu_resources[resource].unit,
               resource == RES_CORE ? "30" : "3");
    else if (resource == RES_CORE && whole != 0)
        check_percent(l, path, whole);
}

static void check_gpu_amounts(struct look *l)
{
    for (struct container_iter c = {0}; next_container(l, &c);)
        for (int r = 0; r < GPU_RESOURCES; r++) {
            json *limit = amount_of(c.value, "limits", gpu_resources[r].name);
            json *request = amount_of(c.value, "requests", gpu_resources[r].name);
            bool same = limit && request && json_equal(limit, request);
            if (limit)
                check_amount(l,
                             arena_printf(l->arena, "spec.%s[%zu].resources.limits[%s]", c.list,
                                          c.index, gpu_resources[r].name),
                             (enum gpu_resource)r, limit);
            if (request && !same)
                check_amount(l,
                             arena_printf(l->arena, "spec.%s[%zu].resources.requests[%s]", c.list,
                                          c.index, gpu_resources[r].name),
                             (enum gpu_resource)r, request);
        }
}

static void check_gpu_count(struct look *l)
{
    const char *text = label(l, NAME_RES_GPU_COUNT);
    if (!text || !l->asks[RES_MEM])
        return;
    int64_t cards = 0;
    if (num_parse_range(text, 1, GPU_CARDS_MAX, &cards, NULL) < 0) {
        refuse(l,
               "metadata.labels[" NAME_RES_GPU_COUNT
               "]: %s is not a number of cards; write an integer from 1 to %d",
               quote(l, text), GPU_CARDS_MAX);
        return;
    }
    for (struct container_iter c = {0}; next_container(l, &c);) {
        json *value = amount_of(c.value, "limits", NAME_RES_GPU_MEM);
        if (!value)
            value = amount_of(c.value, "requests", NAME_RES_GPU_MEM);
        int64_t gib = 0;
        if (value && read_whole(value, &gib) && gib % cards != 0)
            refuse(l,
                   "spec.%s[%zu].resources.limits[" NAME_RES_GPU_MEM
                   "]: %lld GiB cannot be spread over the %lld cards of label " NAME_RES_GPU_COUNT
                   " in equal whole parts; write a multiple of %lld",
                   c.list, c.index, (long long)gib, (long long)cards, (long long)cards);
    }
}

/* A pod's own environment wins over the device plugin's: these would be a way out of the share. */
static bool is_plugin_env(const char *name)
{
    return str_eq(name, NAME_ENV_VISIBLE) || str_starts(name, "CGPU_") ||
           str_starts(name, "ALIYUN_COM_GPU_") || str_starts(name, "CUDA_MPS_") ||
           str_starts(name, "COSCHED_");
}

static void check_env(struct look *l)
{
    bool gpu = false;
    for (int r = 0; r < GPU_RESOURCES; r++)
        gpu = gpu || l->asks[r];
    if (!gpu)
        return;
    for (struct container_iter c = {0}; next_container(l, &c);) {
        json *env = json_get(c.value, "env");
        for (struct json_iter it = json_iter(env); json_next(&it);) {
            const char *name = json_get_str(it.value, "name");
            if (name && is_plugin_env(name))
                refuse(l,
                       "spec.%s[%zu].env[%s]: remove it; the device plugin sets it to what the "
                       "pod was given, and the pod's own value would win",
                       c.list, c.index, name);
        }
    }
}

static void check_min(struct look *l, const char *where, const char *name_key, const char *name,
                      const char *min_key, const char *min)
{
    int64_t n = 0;
    if (name && !min)
        refuse(
            l,
            "metadata.%s[%s]: is missing while %s is set; write how many pods must start together",
            where, min_key, name_key);
    else if (min && num_parse_range(min, 1, INT32_MAX, &n, NULL) < 0)
        refuse(l, "metadata.%s[%s]: %s is not a number of pods; write an integer from 1 on", where,
               min_key, quote(l, min));
}

static void check_gang(struct look *l)
{
    size_t before = l->verdict->refusals.len;
    check_min(l, "labels", NAME_LABEL_GANG_NAME, label(l, NAME_LABEL_GANG_NAME),
              NAME_LABEL_GANG_MIN, label(l, NAME_LABEL_GANG_MIN));
    check_min(l, "annotations", NAME_ANN_GANG_KOORD_NAME, annotation(l, NAME_ANN_GANG_KOORD_NAME),
              NAME_ANN_GANG_KOORD_MIN, annotation(l, NAME_ANN_GANG_KOORD_MIN));
    const char *const lists[] = {NAME_ANN_GANG_GROUPS, NAME_ANN_GANG_KOORD_GROUPS};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (label(l, lists[i]))
            refuse(l,
                   "metadata.labels[%s]: a label cannot hold a JSON list; write the list into "
                   "metadata.annotations[%s]",
                   lists[i], lists[i]);
    if (l->verdict->refusals.len > before)
        return;
    /* Whatever else the scheduler will not understand must be said here too, in its words. */
    struct pod pod = {.ns = l->context->ns,
                      .labels = l->labels,
                      .annotations = l->annotations,
                      .scheduling_group = l->scheduling_group};
    struct gang_ref gang;
    struct error err = ERROR_INIT;
    if (gang_of_pod(&pod, &gang, &err) < 0)
        refuse(l, "metadata: %s", err.text);
}

static void check_compute(struct look *l)
{
    const char *class = label(l, NAME_LABEL_COMPUTE_CLASS);
    if ((str_eq(class, "gpu") || str_eq(class, "gpu-hpn")) &&
        *str_or_empty(label(l, NAME_LABEL_GPU_MODEL_SERIES)) == '\0')
        warn(l,
             "metadata.labels[" NAME_LABEL_GPU_MODEL_SERIES
             "]: is missing while " NAME_LABEL_COMPUTE_CLASS
             " is %s; any series of GPU may be given",
             class);
}

static void check_cpuset(struct look *l)
{
    const char *wish = annotation(l, NAME_ANN_CPUSET_SCHEDULER);
    if (!wish || str_eq(wish, "false"))
        return;
    if (!asks_cpuset(l)) {
        refuse(l,
               "metadata.annotations[" NAME_ANN_CPUSET_SCHEDULER
               "]: %s is not known; write \"true\", \"required\" or \"false\"",
               quote(l, wish));
        return;
    }
    for (struct container_iter c = {0}; next_container(l, &c);) {
        if (!str_eq(c.list, "containers"))
            continue;
        json *limit = amount_of(c.value, "limits", "cpu");
        int64_t cpus = 0;
        if (!limit)
            refuse(
                l,
                "spec.containers[%zu].resources.limits.cpu: is missing; " NAME_ANN_CPUSET_SCHEDULER
                " pins whole CPUs: write how many",
                c.index);
        else if (!read_whole(limit, &cpus) || cpus < 1)
            refuse(l,
                   "spec.containers[%zu].resources.limits.cpu: %s is not a whole number of CPUs, "
                   "which " NAME_ANN_CPUSET_SCHEDULER " needs; write an integer from 1 on",
                   c.index, quote_json(l, limit));
    }
}

static void check_burst(struct look *l)
{
    const char *wish = annotation(l, NAME_ANN_BURST);
    if (asks_burst(l) && !str_eq(wish, "eci") && !str_eq(wish, "eci_only"))
        refuse(l,
               "metadata.annotations[" NAME_ANN_BURST
               "]: %s is not known; write eci (real nodes first) or eci_only",
               quote(l, wish));
}

static void (*const checks[])(struct look *l) = {
    check_gpu_amounts, check_gpu_count, check_env,   check_gang,
    check_compute,     check_cpuset,    check_burst,
};

int rules_pod(const struct rules_config *config, const struct rules_context *context, json *pod,
              struct arena *a, struct rules_verdict *out, struct error *err)
{
    *out = (struct rules_verdict){.trigger = NULL};
    struct look l = {.config = config,
                     .context = context,
                     .arena = a,
                     .spec = json_get(pod, "spec"),
                     .metadata = json_get(pod, "metadata"),
                     .verdict = out};
    if (!json_is_object(l.spec) || !json_is_object(l.metadata))
        return error_set(err, ERROR_INVALID,
                         "a pod has metadata and spec, both objects; got %s and %s",
                         json_kind_name(l.metadata), json_kind_name(l.spec));
    if (labels_decode(json_get(l.metadata, "labels"), a, &l.labels, err) < 0)
        return error_wrap(err, "metadata.labels");
    if (labels_decode(json_get(l.metadata, "annotations"), a, &l.annotations, err) < 0)
        return error_wrap(err, "metadata.annotations");
    l.scheduling_group = json_get_str(json_get(l.spec, "schedulingGroup"), "podGroupName");
    find_asked(&l);
    decide_scheduler(&l);
    remove_result_keys(&l);
    if (out->ours)
        for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
            checks[i](&l);
    close_sentences(&l, &out->warnings);
    close_sentences(&l, &out->refusals);
    return 0;
}
