// SPDX-License-Identifier: Apache-2.0
/*
 * rules_gpu - amounts of the four GPU resources, how they go together, and the label gpu-count. A pod has one kind of GPU: shares of cards (gpu-mem with
 * or without gpu-core.percentage), whole cards by topology (aliyun.com/gpu), or whole cards (nvidia.com/gpu); the modes of a node are one at a time as well.
 */
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/gpu.h"
#include "lib/model/names.h"
#include "webhook/rules_inside.h"

static const struct {
    const char *unit; /* "a whole number of ..." */
    const char *sample;
    int64_t most; /* beyond it a suffix was meant otherwise: 5Gi of a resource that counts GiB */
} words[LOOK_GPUS] = {
    [LOOK_MEM] = {"GiB", "3", GPU_CARDS_MAX * 1024LL},
    [LOOK_CORE] = {"percent", "30", 100},
    [LOOK_GPU] = {"cards", "2", GPU_CARDS_MAX},
    [LOOK_NVIDIA] = {"cards", "1", GPU_CARDS_MAX},
};

/* ---- one amount ------------------------------------------------------------------------------ */

static void check_percent(struct look *l, const char *path, int64_t percent)
{
    if (percent >= 5 && percent <= 100 && percent % 5 == 0)
        return;
    int64_t below = num_max(5, num_min(percent, 100) / 5 * 5);
    int64_t above = num_min(100, below + 5);
    if (percent < 5 || percent > 100)
        look_refuse(l, "%s: %lld is not between 5 and 100 percent of a card; write %lld", path,
                    (long long)percent, (long long)below);
    else
        look_refuse(l, "%s: %lld is not a multiple of 5; write %lld or %lld", path,
                    (long long)percent, (long long)below, (long long)above);
}

/* Amounts of memory are written in bytes everywhere else in Kubernetes: 5Gi is told from 5 by its size. */
static void check_most(struct look *l, const char *path, enum look_gpu resource, json *value,
                       int64_t whole)
{
    const int64_t gib = INT64_C(1) << 30;
    if (whole <= words[resource].most)
        return;
    if (resource == LOOK_MEM && whole >= gib / 1024)
        look_refuse(l, "%s: %s is %lld GiB, as the resource counts GiB and not bytes; write %lld",
                    path, look_quote_json(l, value), (long long)whole,
                    (long long)num_max(1, whole / gib + (whole % gib > 0)));
    else
        look_warn(l, "%s: %s is %lld %s, more than any node has; write an integer such as %s", path,
                  look_quote_json(l, value), (long long)whole, words[resource].unit,
                  words[resource].sample);
}

static void check_whole(struct look *l, const char *path, enum look_gpu resource, json *value,
                        int64_t whole)
{
    if (whole == 0 && resource == LOOK_NVIDIA) /* not ours, and often a chart's default */
        look_warn(l, "%s: 0 asks for nothing; remove it, or write an integer such as %s", path,
                  words[resource].sample);
    else if (whole <= 0)
        look_refuse(l, "%s: %s is not positive; write an integer such as %s, or remove it", path,
                    look_quote_json(l, value), words[resource].sample);
    else if (resource == LOOK_CORE)
        check_percent(l, path, whole);
    else
        check_most(l, path, resource, value, whole);
}

static void check_amount(struct look *l, const char *path, enum look_gpu resource, json *value)
{
    const char *unit = words[resource].unit;
    int64_t milli = 0;
    if (look_is_too_large(value))
        look_refuse(l, "%s: %s is more than can be counted in %s; write an integer such as %s",
                    path, look_quote_json(l, value), unit, words[resource].sample);
    else if (!look_read_milli(value, &milli) || milli % 1000 != 0)
        look_refuse(l, "%s: %s is not a whole number of %s; write %s", path,
                    look_quote_json(l, value), unit,
                    milli > 1000 && resource != LOOK_CORE
                        ? arena_printf(l->arena, "%lld or %lld", (long long)milli / 1000,
                                       (long long)milli / 1000 + 1)
                        : arena_printf(l->arena, "an integer such as %s", words[resource].sample));
    else
        check_whole(l, path, resource, value, milli / 1000);
}

static void check_both(struct look *l, const struct look_container *c, enum look_gpu resource)
{
    const char *name = look_gpu_names[resource];
    json *limit = look_amount(c->value, "limits", name);
    json *request = look_amount(c->value, "requests", name);
    int64_t most = 0, least = 0;
    if (limit)
        check_amount(l, look_amount_path(l, c, "limits", name), resource, limit);
    if (!request || (limit && json_equal(limit, request)))
        return;
    if (limit && look_read_milli(limit, &most) && look_read_milli(request, &least)) {
        if (most != least)
            look_refuse(l, "%s: %s differs from the limit %s; write the same, or leave it out",
                        look_amount_path(l, c, "requests", name), look_quote_json(l, request),
                        look_quote_json(l, limit));
        return;
    }
    check_amount(l, look_amount_path(l, c, "requests", name), resource, request);
}

/* limits, or requests where somebody wrote only those */
static json *asked(const struct look_container *c, enum look_gpu resource, const char **list)
{
    json *limit = look_amount(c->value, "limits", look_gpu_names[resource]);
    *list = limit ? "limits" : "requests";
    return limit ? limit : look_amount(c->value, "requests", look_gpu_names[resource]);
}

static void check_container(struct look *l, const struct look_container *c)
{
    const char *list = NULL;
    for (int r = 0; r < LOOK_GPUS; r++)
        check_both(l, c, (enum look_gpu)r);
    json *core = asked(c, LOOK_CORE, &list);
    int64_t percent = 0, gib = 0;
    const char *unused = NULL;
    json *mem = asked(c, LOOK_MEM, &unused);
    if (core && look_read_whole(core, &percent) && percent > 0 &&
        (!mem || (look_read_whole(mem, &gib) && gib == 0)))
        look_refuse(l,
                    "%s: %s percent of a card without memory of it; write " NAME_RES_GPU_MEM
                    " in GiB beside it",
                    look_amount_path(l, c, list, NAME_RES_GPU_CORE), look_quote_json(l, core));
    json *limit = look_amount(c->value, "limits", NAME_RES_GPU_COUNT);
    json *count = limit ? limit : look_amount(c->value, "requests", NAME_RES_GPU_COUNT);
    if (count)
        look_refuse(l,
                    "%s: %s cannot be asked for, it says how many cards a node has; write "
                    "metadata.labels[" NAME_RES_GPU_COUNT "] to spread memory over cards",
                    look_amount_path(l, c, limit ? "limits" : "requests", NAME_RES_GPU_COUNT),
                    look_quote_json(l, count));
}

/* ---- what does not go together --------------------------------------------------------------- */

static const char *first_path(const struct look *l, enum look_gpu resource)
{
    const char *list = NULL;
    for (struct look_container c = {0}; look_next_container(l, &c);)
        if (asked(&c, resource, &list))
            return look_amount_path(l, &c, list, look_gpu_names[resource]);
    return "spec";
}

static void check_kinds(struct look *l)
{
    enum look_gpu kinds[3];
    size_t n = 0;
    if (l->asks[LOOK_MEM] || l->asks[LOOK_CORE])
        kinds[n++] = l->asks[LOOK_MEM] ? LOOK_MEM : LOOK_CORE;
    if (l->asks[LOOK_GPU])
        kinds[n++] = LOOK_GPU;
    if (l->asks[LOOK_NVIDIA])
        kinds[n++] = LOOK_NVIDIA;
    for (size_t i = 1; i < n; i++)
        look_refuse(l,
                    "%s: does not go together with %s in one pod: a node has one kind of GPU at a "
                    "time; write one of them",
                    first_path(l, kinds[i]), look_gpu_names[kinds[0]]);
}

/* Parts of cards as NVIDIA's own plugin and DeviceClasses give them: the same card could be promised twice. */
static bool is_foreign_gpu(const char *resource)
{
    return str_starts(resource, "nvidia.com/mig-") || str_starts(resource, "nvidia.com/gpu.") ||
           str_starts(resource, NAME_RES_DEVICE_CLASS);
}

/* Looks like ours and is none: no node will ever have it. */
static bool is_misspelt(const char *resource)
{
    for (int r = 0; r < LOOK_GPUS; r++)
        if (str_eq(resource, look_gpu_names[r]))
            return false;
    return str_starts(resource, NAME_RES_GPU) && !str_eq(resource, NAME_RES_GPU_COUNT);
}

static bool asks_ours(const struct look *l)
{
    return l->asks[LOOK_MEM] || l->asks[LOOK_CORE] || l->asks[LOOK_GPU];
}

static void check_resource(struct look *l, const char *path, json *value, const char *resource)
{
    if (asks_ours(l) && is_foreign_gpu(resource))
        look_refuse(l,
                    "%s: %s of it does not go together with the GPU resources of this pod; write "
                    "one of them",
                    path, look_quote_json(l, value));
    else if (l->ours && str_starts(resource, NAME_RES_DEVICE_CLASS))
        look_refuse(l,
                    "%s: %s devices of a DeviceClass, which %s cannot place; remove it, or write "
                    "another schedulerName",
                    path, look_quote_json(l, value), l->config->scheduler);
    else if (is_misspelt(resource))
        look_warn(l,
                  "%s: is a resource that no node has; write " NAME_RES_GPU_MEM
                  ", " NAME_RES_GPU_CORE " or " NAME_RES_GPU,
                  path);
}

static void check_names(struct look *l)
{
    size_t found = 0; /* each is looked for in the limits: of thousands no more than are told */
    for (struct look_container c = {0}; look_next_container(l, &c);)
        for (const char *const *list = look_amount_lists; *list; list++) {
            json *amounts = json_get(json_get(c.value, "resources"), *list);
            for (struct json_iter it = json_iter(amounts); json_next(&it);) {
                if (!it.key || (!is_foreign_gpu(it.key) && !is_misspelt(it.key)))
                    continue;
                if (++found > RULES_SENTENCES_MAX)
                    return;
                if (*list != look_amount_lists[0] && look_amount(c.value, "limits", it.key))
                    continue; /* was told */
                check_resource(
                    l,
                    look_amount_path(l, &c, *list,
                                     arena_strndup(l->arena, it.key, strnlen(it.key, 80))),
                    it.value, it.key);
            }
        }
}

/* A pod may ask as a whole for CPU and memory; the kubelet gives devices to containers. */
static void check_pod_level(struct look *l)
{
    for (const char *const *list = look_amount_lists; *list; list++)
        for (int r = 0; r < LOOK_GPUS; r++) {
            json *value = look_amount(l->spec, *list, look_gpu_names[r]);
            if (value)
                look_refuse(l,
                            "spec.resources.%s[%s]: %s cannot be given to a pod as a whole; write "
                            "it into resources.limits of a container",
                            *list, look_gpu_names[r], look_quote_json(l, value));
        }
}

/* The scheduler places no claims (dynamic resource allocation): the pod would wait for ever. */
static void check_claims(struct look *l)
{
    size_t claims = json_len(json_get(l->spec, "resourceClaims"));
    if (claims == 0)
        return;
    if (l->ours)
        look_refuse(l,
                    "spec.resourceClaims: has %zu, which %s cannot place; ask for GPUs in "
                    "resources.limits and remove it, or write another schedulerName",
                    claims, l->config->scheduler);
    else if (asks_ours(l))
        look_warn(l,
                  "spec.resourceClaims: has %zu; a GPU that they claim is not seen by cosched, "
                  "which gives this pod cards by its limits; claim other devices only",
                  claims);
}

/* ---- nodes by their mode ---------------------------------------------------------------------- */

static bool offers(enum gpu_mode mode, enum look_gpu resource)
{
    switch (resource) {
    case LOOK_MEM:
        return gpu_mode_is_shared(mode);
    case LOOK_CORE:
        return mode == GPU_MODE_CORE_MEM;
    case LOOK_GPU:
        return mode == GPU_MODE_TOPOLOGY;
    default:
        return mode == GPU_MODE_DEFAULT;
    }
}

/* A pod that selects nodes by their mode: one that exists, and that offers what the pod asks for. */
static void check_selector(struct look *l)
{
    static const char *const fitting[LOOK_GPUS] = {[LOOK_MEM] = "cgpu, core_mem, share or mps",
                                                   [LOOK_CORE] = "core_mem",
                                                   [LOOK_GPU] = "topology",
                                                   [LOOK_NVIDIA] = "default"};
    const char *text = json_get_str(json_get(l->spec, "nodeSelector"), NAME_LABEL_GPU_MODE);
    enum gpu_mode mode = GPU_MODE_DEFAULT;
    if (!text)
        return;
    if (!gpu_mode_parse(text, &mode)) {
        look_warn(l,
                  "spec.nodeSelector[" NAME_LABEL_GPU_MODE
                  "]: %s is not a mode, so no node has it; write one of %s",
                  look_quote(l, text), gpu_mode_names());
        return;
    }
    for (int r = LOOK_GPUS - 1; r >= 0; r--)
        if (l->asks[r] && !offers(mode, (enum look_gpu)r)) {
            look_warn(l,
                      "spec.nodeSelector[" NAME_LABEL_GPU_MODE
                      "]: nodes in mode %s do not offer %s; write %s",
                      text, look_gpu_names[r], fitting[r]);
            return;
        }
}

/* ---- gpu-count ------------------------------------------------------------------------------- */

static void check_parts(struct look *l, int64_t cards)
{
    for (struct look_container c = {0}; look_next_container(l, &c);) {
        const char *list = NULL;
        json *value = asked(&c, LOOK_MEM, &list);
        int64_t gib = 0;
        if (!value || !look_read_whole(value, &gib) || gib <= 0)
            continue;
        if (gib % cards != 0)
            look_refuse(l,
                        "%s: %lld GiB cannot be spread over the %lld cards of "
                        "label " NAME_RES_GPU_COUNT
                        " in equal whole parts; write a multiple of %lld",
                        look_amount_path(l, &c, list, NAME_RES_GPU_MEM), (long long)gib,
                        (long long)cards, (long long)cards);
        if (cards == 1 || str_eq(c.list, look_container_lists[0]))
            continue;
        /* The scheduler claims one card for a pod with memory in any of them. */
        look_refuse(l,
                    "%s: %lld GiB in %s cannot be spread over %lld cards%s; write it in "
                    "spec.containers, or label " NAME_RES_GPU_COUNT " 1",
                    look_amount_path(l, &c, list, NAME_RES_GPU_MEM), (long long)gib,
                    c.init ? "an init container" : "a sidecar", (long long)cards,
                    c.init ? ", because the kubelet hands them on in any order" : "");
    }
}

static void check_count(struct look *l)
{
    const char *text = look_label(l, NAME_RES_GPU_COUNT);
    int64_t cards = 0;
    if (!text)
        return;
    if (num_parse_range(text, 1, GPU_CARDS_MAX, &cards, NULL) < 0)
        look_refuse(l,
                    "metadata.labels[" NAME_RES_GPU_COUNT
                    "]: %s is not a number of cards; write an integer from 1 to %d",
                    look_quote(l, text), GPU_CARDS_MAX);
    else if (l->asks[LOOK_CORE])
        look_refuse(l,
                    "metadata.labels[" NAME_RES_GPU_COUNT
                    "]: %s spreads memory only; remove it, or " NAME_RES_GPU_CORE,
                    look_quote(l, text));
    else if (!l->asks[LOOK_MEM] && (l->asks[LOOK_GPU] || l->asks[LOOK_NVIDIA]))
        look_refuse(
            l,
            "metadata.labels[" NAME_RES_GPU_COUNT "]: %s spreads " NAME_RES_GPU_MEM
            " over cards, which this pod does not ask for; write the number of cards into %s",
            look_quote(l, text), l->asks[LOOK_GPU] ? NAME_RES_GPU : NAME_RES_NVIDIA_GPU);
    else if (!l->asks[LOOK_MEM])
        look_warn(l,
                  "metadata.labels[" NAME_RES_GPU_COUNT
                  "]: %s means nothing without limits[" NAME_RES_GPU_MEM
                  "]; write those, or remove it",
                  look_quote(l, text));
    else
        check_parts(l, cards);
}

/* A card is chosen by our scheduler, or by nobody. */
static void check_scheduler(struct look *l)
{
    const char *node = json_get_str(l->spec, "nodeName");
    if (*str_or_empty(node) != '\0')
        look_warn(l,
                  "spec.nodeName: %s is set, so no scheduler chooses a card for the pod; write "
                  "nodeSelector or node affinity instead",
                  look_quote(l, node));
    else if (l->daemon && !l->ours)
        look_warn(
            l,
            "spec.schedulerName: is not put in for a DaemonSet, and without it nobody chooses "
            "a card for its pods; write %s",
            l->config->scheduler);
}

void rules_gpu_check(struct look *l)
{
    if (!l->judged)
        return;
    for (struct look_container c = {0}; look_next_container(l, &c);)
        check_container(l, &c);
    check_kinds(l);
    check_names(l);
    check_pod_level(l);
    check_count(l);
    check_claims(l);
    check_selector(l);
    if (asks_ours(l))
        check_scheduler(l);
}
