// SPDX-License-Identifier: Apache-2.0
/* GPUs: refuses what lib/model/gpu_request cannot serve. Also checks the form of amounts, other GPU
 * resources beside ours, and nodes that do not offer what the pod requests. */
#include "lib/base/str.h"
#include "lib/model/gpu.h"
#include "lib/model/names.h"
#include "webhook/rules/rules_internal.h"

static const struct {
    const char *unit; /* "a whole number of ..." */
    const char *sample;
    int64_t most; /* no node has more */
} words[GPU_REQUEST_RESOURCES] = {
    [GPU_REQUEST_MEM] = {"GiB", "3", GPU_CARDS_MAX * 1024LL},
    [GPU_REQUEST_CORE] = {"percent", "30", INT64_MAX},
    [GPU_REQUEST_CARDS] = {"cards", "2", GPU_CARDS_MAX},
    [GPU_REQUEST_NVIDIA] = {"cards", "1", GPU_CARDS_MAX},
};

/* ---- one amount ---- */

/* The API server checks amounts only after us, and not at all in custom resources. */
static void refuse_unreadable(struct pod_view *l, const char *path,
                              enum gpu_request_resource resource, json *value, int64_t milli)
{
    const char *unit = words[resource].unit, *sample = words[resource].sample;
    if (pod_view_is_too_large(value))
        pod_view_refuse(l, "%s: %s is more than can be counted in %s; write an integer such as %s",
                        path, pod_view_quote_json(l, value), unit, sample);
    else if (milli < 0 && milli % 1000 == 0)
        pod_view_refuse(l, "%s: %s is not positive; write an integer such as %s, or remove it",
                        path, pod_view_quote_json(l, value), sample);
    else
        pod_view_refuse(l, "%s: %s is not a whole number of %s; write %s", path,
                        pod_view_quote_json(l, value), unit,
                        milli > 1000 && resource != GPU_REQUEST_CORE
                            ? arena_printf(l->arena, "%lld or %lld", (long long)milli / 1000,
                                           (long long)milli / 1000 + 1)
                            : arena_printf(l->arena, "an integer such as %s", sample));
}

static void advise(struct pod_view *l, const char *path, enum gpu_request_resource resource,
                   json *value, int64_t whole)
{
    if (whole == 0)
        pod_view_warn(l, "%s: 0 asks for nothing; remove it, or write an integer such as %s", path,
                      words[resource].sample);
    else if (whole > words[resource].most &&
             (resource != GPU_REQUEST_MEM || whole < GPU_REQUEST_GIB_MAX))
        pod_view_warn(l, "%s: %s is %lld %s, more than any node has; write an integer such as %s",
                      path, pod_view_quote_json(l, value), (long long)whole, words[resource].unit,
                      words[resource].sample);
}

/* Checks limits, then requests that differ. False if one cannot be read. */
static bool check_amounts(struct pod_view *l, const struct pod_view_container *c,
                          enum gpu_request_resource resource)
{
    const char *name = gpu_request_names[resource];
    json *limit = pod_view_amount(c->value, "limits", name);
    bool readable = true;
    for (const char *const *list = pod_view_amount_lists; *list; list++) {
        json *value = pod_view_amount(c->value, *list, name);
        int64_t milli = 0;
        if (!value || (value != limit && limit && json_equal(limit, value)))
            continue;
        const char *path = pod_view_amount_path(l, c, *list, name);
        if (!pod_view_read_milli(value, &milli) || milli < 0 || milli % 1000 != 0) {
            refuse_unreadable(l, path, resource, value, milli);
            readable = false;
        } else if (value == limit || !limit) {
            advise(l, path, resource, value, milli / 1000);
        }
    }
    return readable;
}

/* Errors of gpu_request are reported only if every amount can be read. */
static void check_request(struct pod_view *l)
{
    bool readable = true;
    for (struct pod_view_container c = {0}; pod_view_next_container(l, &c);)
        for (int r = 0; r < GPU_REQUEST_RESOURCES; r++)
            readable = check_amounts(l, &c, (enum gpu_request_resource)r) && readable;
    if (readable)
        pod_view_refuse_all(l, &l->gpu_errors);
}

/* ---- combinations ---- */

/* Partial cards from NVIDIA's plugin and DeviceClasses: the same card could be granted twice. */
static bool is_foreign_gpu(const char *resource)
{
    return str_starts(resource, "nvidia.com/mig-") || str_starts(resource, "nvidia.com/gpu.") ||
           str_starts(resource, NAME_RES_DEVICE_CLASS);
}

/* Resembles our resources, but no node will ever have it. */
static bool is_misspelt(const char *resource)
{
    for (int r = 0; r < GPU_REQUEST_RESOURCES; r++)
        if (str_eq(resource, gpu_request_names[r]))
            return false;
    return str_starts(resource, NAME_RES_GPU) && !str_eq(resource, NAME_RES_GPU_COUNT);
}

bool rules_gpu_asks_ours(const struct pod_view *l)
{
    return l->asks[GPU_REQUEST_MEM] || l->asks[GPU_REQUEST_CORE] || l->asks[GPU_REQUEST_CARDS];
}

static void check_resource(struct pod_view *l, const char *path, json *value, const char *resource)
{
    if (rules_gpu_asks_ours(l) && is_foreign_gpu(resource))
        pod_view_refuse(
            l,
            "%s: %s of it does not go together with the GPU resources of this pod; write "
            "one of them",
            path, pod_view_quote_json(l, value));
    else if (l->ours && str_starts(resource, NAME_RES_DEVICE_CLASS))
        pod_view_refuse(
            l,
            "%s: %s devices of a DeviceClass, which %s cannot place; remove it, or write "
            "another schedulerName",
            path, pod_view_quote_json(l, value), l->config->scheduler);
    else if (is_misspelt(resource))
        pod_view_warn(l,
                      "%s: is a resource that no node has; write " NAME_RES_GPU_MEM
                      ", " NAME_RES_GPU_CORE " or " NAME_RES_GPU,
                      path);
}

static void check_names(struct pod_view *l)
{
    size_t found = 0; /* bounds the searches in limits below */
    for (struct pod_view_container c = {0}; pod_view_next_container(l, &c);)
        for (const char *const *list = pod_view_amount_lists; *list; list++) {
            json *amounts = json_get(json_get(c.value, "resources"), *list);
            for (struct json_iter it = json_iter(amounts); json_next(&it);) {
                if (!it.key || (!is_foreign_gpu(it.key) && !is_misspelt(it.key)))
                    continue;
                if (++found > RULES_SENTENCES_MAX)
                    return;
                if (*list != pod_view_amount_lists[0] && pod_view_amount(c.value, "limits", it.key))
                    continue; /* already reported */
                check_resource(
                    l,
                    pod_view_amount_path(l, &c, *list,
                                         arena_strndup(l->arena, it.key, strnlen(it.key, 80))),
                    it.value, it.key);
            }
        }
}

/* Pod-level resources cover CPU and memory only; the kubelet gives devices to containers. */
static void check_pod_level(struct pod_view *l)
{
    for (const char *const *list = pod_view_amount_lists; *list; list++)
        for (int r = 0; r < GPU_REQUEST_RESOURCES; r++) {
            json *value = pod_view_amount(l->spec, *list, gpu_request_names[r]);
            if (value)
                pod_view_refuse(
                    l,
                    "spec.resources.%s[%s]: %s cannot be given to a pod as a whole; write "
                    "it into resources.limits of a container",
                    *list, gpu_request_names[r], pod_view_quote_json(l, value));
        }
}

/* The scheduler does not place ResourceClaims (DRA): the pod would wait forever. */
static void check_grants(struct pod_view *l)
{
    size_t claims = json_len(json_get(l->spec, "resourceClaims"));
    if (claims == 0)
        return;
    if (l->ours)
        pod_view_refuse(l,
                        "spec.resourceClaims: has %zu, which %s cannot place; ask for GPUs in "
                        "resources.limits and remove it, or write another schedulerName",
                        claims, l->config->scheduler);
    else if (rules_gpu_asks_ours(l))
        pod_view_warn(l,
                      "spec.resourceClaims: has %zu; a GPU that they claim is not seen by cosched, "
                      "which gives this pod cards by its limits; claim other devices only",
                      claims);
}

/* ---- node modes ---- */

static bool offers(enum gpu_mode mode, enum gpu_request_resource resource)
{
    switch (resource) {
    case GPU_REQUEST_MEM:
        return gpu_mode_is_shared(mode);
    case GPU_REQUEST_CORE:
        return mode == GPU_MODE_CORE_MEM;
    case GPU_REQUEST_CARDS:
        return mode == GPU_MODE_TOPOLOGY;
    default:
        return mode == GPU_MODE_DEFAULT;
    }
}

/* A nodeSelector on the mode must name one that exists and offers what the pod requests. */
static void check_selector(struct pod_view *l)
{
    static const char *const fitting[GPU_REQUEST_RESOURCES] = {[GPU_REQUEST_MEM] =
                                                                   "cgpu, core_mem, share or mps",
                                                               [GPU_REQUEST_CORE] = "core_mem",
                                                               [GPU_REQUEST_CARDS] = "topology",
                                                               [GPU_REQUEST_NVIDIA] = "default"};
    const char *text = json_get_str(json_get(l->spec, "nodeSelector"), NAME_LABEL_GPU_MODE);
    enum gpu_mode mode = GPU_MODE_DEFAULT;
    if (!text)
        return;
    if (!gpu_mode_parse(text, &mode)) {
        pod_view_warn(l,
                      "spec.nodeSelector[" NAME_LABEL_GPU_MODE
                      "]: %s is not a mode, so no node has it; write one of %s",
                      pod_view_quote(l, text), gpu_mode_names());
        return;
    }
    for (int r = GPU_REQUEST_RESOURCES - 1; r >= 0; r--)
        if (l->asks[r] && !offers(mode, (enum gpu_request_resource)r)) {
            pod_view_warn(l,
                          "spec.nodeSelector[" NAME_LABEL_GPU_MODE
                          "]: nodes in mode %s do not offer %s; write %s",
                          text, gpu_request_names[r], fitting[r]);
            return;
        }
}

/* ---- settings without effect ---- */

static void check_count(struct pod_view *l)
{
    const char *text = pod_view_label(l, NAME_RES_GPU_COUNT);
    for (int r = 0; r < GPU_REQUEST_RESOURCES; r++)
        if (l->asks[r])
            return;
    if (text)
        pod_view_warn(l,
                      "metadata.labels[" NAME_RES_GPU_COUNT
                      "]: %s means nothing without limits[" NAME_RES_GPU_MEM
                      "]; write those, or remove it",
                      pod_view_quote(l, text));
}

/* Warns if our scheduler will not see the pod, since then nothing chooses a card. */
static void check_scheduler(struct pod_view *l)
{
    const char *node = json_get_str(l->spec, "nodeName");
    if (*str_or_empty(node) != '\0')
        pod_view_warn(l,
                      "spec.nodeName: %s is set, so no scheduler chooses a card for the pod; write "
                      "nodeSelector or node affinity instead",
                      pod_view_quote(l, node));
    else if (l->daemon && !l->ours)
        pod_view_warn(
            l,
            "spec.schedulerName: is not injected into a DaemonSet, and without it no scheduler "
            "chooses a card for its pods; write %s",
            l->config->scheduler);
}

/* The opt-out and another scheduler spare a pod our scheduler, not the limits of its share: the
 * device plugin serves it all the same. */
void rules_gpu_check(struct pod_view *l)
{
    if (!l->judged && !rules_gpu_asks_ours(l))
        return;
    check_request(l);
    check_pod_level(l);
    if (!l->judged)
        return;
    check_names(l);
    check_count(l);
    check_grants(l);
    check_selector(l);
    if (rules_gpu_asks_ours(l))
        check_scheduler(l);
}
