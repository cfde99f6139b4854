// SPDX-License-Identifier: Apache-2.0
/* Variables that the device plugin sets. A pod's own environment overrides them, so a pod that sets
 * them could escape its share. The rule ignores the pod's scheduler and opt-out if it requests a
 * resource that only our plugin serves, except in our own namespaces, where the plugin runs. A
 * debug container gets nothing from the plugin, but the container runtime gives it the cards it
 * names. Who asks for nvidia.com/gpu gets only NVIDIA_VISIBLE_DEVICES from the plugin, ours or
 * NVIDIA's, and must not take others' cards by it; admission policy cosched-nvidia-pods
 * (deploy/chart/templates/gpu-pods.yaml) says the same without the webhook. */
#include "lib/base/str.h"
#include "lib/model/names.h"
#include "webhook/rules/rules_internal.h"

/* A cheap filter, since pods have many variables. */
static bool may_matter(const char *name)
{
    return *name == 'N' || *name == 'C' || *name == 'A';
}

const char *const rules_env_names[] = {NAME_ENV_VISIBLE, NULL};
const char *const rules_env_prefixes[] = {"CGPU_", "ALIYUN_COM_GPU_", "CUDA_MPS_", "COSCHED_",
                                          NULL};

static bool is_plugin_env(const char *name)
{
    bool found = false;
    for (size_t i = 0; rules_env_names[i] && !found; i++)
        found = str_eq(name, rules_env_names[i]);
    for (size_t i = 0; rules_env_prefixes[i] && !found; i++)
        found = str_starts(name, rules_env_prefixes[i]);
    return found;
}

/* "void" and "none" give no cards. */
static bool is_harmless(const char *value)
{
    return str_eq(value, "void") || str_eq(value, "none");
}

static const char *value_of(const struct pod_view *l, json *variable)
{
    json *value = json_get(variable, "value");
    return json_get(variable, "valueFrom") ? "valueFrom"
           : value                         ? pod_view_quote_json(l, value)
                                           : "''";
}

/* What is refused of a pod. */
enum scope {
    NOTHING,
    CARDS,  /* NVIDIA_VISIBLE_DEVICES, unless it gives none */
    PLUGIN, /* whatever our plugin sets for its share */
};

static enum scope scope_of(const struct pod_view *l)
{
    if (l->home)
        return NOTHING;
    if (rules_gpu_asks_ours(l) || (l->ours && l->asks[GPU_REQUEST_NVIDIA]))
        return PLUGIN;
    if (l->config->guard_variables)
        return CARDS;
    return l->asks[GPU_REQUEST_NVIDIA] && !l->config->spare_nvidia ? CARDS : NOTHING;
}

static void check_variable(struct pod_view *l, const struct pod_view_container *c, json *variable,
                           enum scope scope)
{
    const char *name = json_get_str(variable, "name");
    if (!name || !may_matter(name))
        return;
    if (scope == PLUGIN && is_plugin_env(name))
        pod_view_refuse(
            l,
            "spec.%s[%zu].env[%.80s]: %s would win over what the device plugin sets for the "
            "pod's share; remove it",
            c->list, c->index, name, value_of(l, variable));
    else if (scope == CARDS && str_eq(name, NAME_ENV_VISIBLE) &&
             !is_harmless(json_get_str(variable, "value")))
        pod_view_refuse(
            l,
            "spec.%s[%zu].env[" NAME_ENV_VISIBLE
            "]: %s takes cards that nobody gave to the pod; remove it, and ask for GPUs in "
            "resources.limits",
            c->list, c->index, value_of(l, variable));
    else if (scope == PLUGIN && str_eq(name, "CUDA_VISIBLE_DEVICES"))
        pod_view_warn(
            l,
            "spec.%s[%zu].env[CUDA_VISIBLE_DEVICES]: %s counts within the cards given to the "
            "pod, from 0 on; it hides cards and adds none",
            c->list, c->index, value_of(l, variable));
}

/* All keys of a ConfigMap or Secret with a prefix; the names are unknown here. */
static void check_source(struct pod_view *l, const struct pod_view_container *c, size_t index,
                         const char *prefix)
{
    if (is_plugin_env(prefix))
        pod_view_refuse(
            l,
            "spec.%s[%zu].envFrom[%zu].prefix: %s begins the names that the device plugin "
            "sets for the pod's share, and would win over them; write another prefix",
            c->list, c->index, index, pod_view_quote(l, prefix));
    else if (*prefix != '\0' && str_starts(NAME_ENV_VISIBLE, prefix))
        pod_view_warn(l,
                      "spec.%s[%zu].envFrom[%zu].prefix: %s must not make " NAME_ENV_VISIBLE
                      " of a key, which would win over the device plugin's; write another prefix",
                      c->list, c->index, index, pod_view_quote(l, prefix));
}

static void check_sources(struct pod_view *l, const struct pod_view_container *c)
{
    json *sources = json_get(c->value, "envFrom");
    size_t i = 0;
    for (struct json_iter it = json_iter(sources); json_next(&it); i++)
        check_source(l, c, i, str_or_empty(json_get_str(it.value, "prefix")));
}

void rules_env_debug(struct pod_view *own, size_t index, json *container)
{
    enum scope scope = scope_of(own);
    if (scope == NOTHING)
        return;
    if (scope == PLUGIN)
        check_sources(own, &(struct pod_view_container){
                               .list = "ephemeralContainers", .index = index, .value = container});
    for (struct json_iter it = json_iter(json_get(container, "env")); json_next(&it);) {
        const char *name = json_get_str(it.value, "name");
        bool guarded =
            scope == PLUGIN ? name && is_plugin_env(name) : str_eq(name, NAME_ENV_VISIBLE);
        if (guarded && !is_harmless(json_get_str(it.value, "value")))
            pod_view_refuse(own,
                            "spec.ephemeralContainers[%zu].env[%.80s]: %s reaches for cards that "
                            "were not given to the pod; remove it",
                            index, name, value_of(own, it.value));
    }
}

void rules_env_check(struct pod_view *l)
{
    enum scope scope = scope_of(l);
    if (scope == NOTHING)
        return;
    for (struct pod_view_container c = {0}; pod_view_next_container(l, &c);) {
        json *env = json_get(c.value, "env");
        for (struct json_iter it = json_iter(env); json_next(&it);)
            check_variable(l, &c, it.value, scope);
        if (scope == PLUGIN)
            check_sources(l, &c);
    }
}
