// SPDX-License-Identifier: Apache-2.0
/* Decides which pods are ours and which rules apply. A new reason to be ours is a row in
 * `triggers`, and a term in the chart's matchConditions, because the API server sends no other pods
 * (cosched.asksForOurs or cosched.hasOurKey in deploy/chart/templates/_helpers.tpl). A new group of
 * rules is a row in `checks` and a file. */
#include "webhook/rules/rules.h"

#include "lib/base/str.h"
#include "lib/model/grant.h"
#include "lib/model/gang.h"
#include "lib/model/cpu_request.h"
#include "lib/model/names.h"
#include "webhook/rules/rules_internal.h"

#define KUBE_SYSTEM "kube-system"
#define KUBE_DEFAULT_SCHEDULER "default-scheduler"
#define SUBRESOURCE_DEBUG "ephemeralcontainers"

/* ---- which pods are ours ---- */

static bool asks_gpu_mem(const struct pod_view *l)
{
    return l->asks[GPU_REQUEST_MEM];
}

static bool asks_gpu_core(const struct pod_view *l)
{
    return l->asks[GPU_REQUEST_CORE];
}

static bool asks_gpu(const struct pod_view *l)
{
    return l->asks[GPU_REQUEST_CARDS];
}

static bool in_gang(const struct pod_view *l)
{
    return gang_is_mentioned(&l->labels, &l->annotations, l->scheduling_group);
}

static bool in_topology_job(const struct pod_view *l)
{
    return *str_or_empty(pod_view_label(l, NAME_LABEL_TOPOLOGY_JOB)) != '\0';
}

static bool asks_cpuset(const struct pod_view *l)
{
    return cpu_request_pins(&l->annotations);
}

static bool asks_virtual(const struct pod_view *l)
{
    return *str_or_empty(pod_view_annotation(l, NAME_ANN_BURST)) != '\0';
}

static bool asks_eci(const struct pod_view *l)
{
    return str_eq(pod_view_label(l, NAME_LABEL_ECI), "true");
}

static bool is_in_eci(const struct pod_view *l)
{
    return str_eq(pod_view_ns_label(l, NAME_LABEL_ECI), "true");
}

static bool is_enabled(const struct pod_view *l)
{
    return str_eq(pod_view_ns_label(l, NAME_INJECT), "enabled");
}

/* Opt-in, since installing cosched must not take over pods that worked before. */
static bool asks_nvidia(const struct pod_view *l)
{
    return l->asks[GPU_REQUEST_NVIDIA] && (l->config->inject_nvidia || is_enabled(l));
}

/* Opt-in too, since a policy may select pods without their authors' consent. */
static bool has_policy(const struct pod_view *l)
{
    return is_enabled(l) && rules_virtual_policy(l) != NULL;
}

/* What asks for our scheduler: the pod, for GPUs or otherwise; or its namespace or a policy,
 * although the pod has no setting of ours. */
enum asker { BY_CARDS, BY_POD, BY_OTHERS };

static const struct trigger {
    const char *name;
    bool (*holds)(const struct pod_view *l);
    enum asker by;
} triggers[] = {
    {"gpu-mem", asks_gpu_mem, BY_CARDS},
    {"gpu-core", asks_gpu_core, BY_CARDS},
    {"gpu", asks_gpu, BY_CARDS},
    {"gang", in_gang, BY_POD},
    {"gpu-topology", in_topology_job, BY_POD},
    {"cpuset", asks_cpuset, BY_POD},
    {"burst", asks_virtual, BY_POD},
    {"eci", asks_eci, BY_POD},
    {"eci", is_in_eci, BY_OTHERS},
    {"nvidia", asks_nvidia, BY_OTHERS},
    {"policy", has_policy, BY_OTHERS},
};

static bool is_daemon(const struct pod_view *l)
{
    json *owners = json_get(l->metadata, "ownerReferences");
    for (struct json_iter it = json_iter(owners); json_next(&it);)
        if (str_eq(json_get_str(it.value, "kind"), "DaemonSet"))
            return true;
    return l->daemon;
}

/* Opted out, or in a namespace (ours, the control plane's) whose pods must start without us. */
static bool is_banned(const struct pod_view *l)
{
    return l->home || str_eq(pod_view_ns_label(l, NAME_INJECT), "disabled") ||
           str_eq(pod_view_annotation(l, NAME_INJECT), "false");
}

/* The DaemonSet controller places its own pods, and a pod with a node needs no scheduler. */
static bool is_placed(const struct pod_view *l)
{
    return is_daemon(l) || *str_or_empty(json_get_str(l->spec, "nodeName")) != '\0';
}

/* Our scheduler cannot place these. A namespace or policy must not take over a pod that worked. */
static bool has_resource_claims(const struct pod_view *l)
{
    return json_len(json_get(l->spec, "resourceClaims")) > 0;
}

static const struct trigger *find_trigger(const struct pod_view *l)
{
    for (size_t i = 0; i < sizeof triggers / sizeof triggers[0]; i++)
        if (triggers[i].holds(l) && !(triggers[i].by == BY_OTHERS && has_resource_claims(l)))
            return &triggers[i];
    return NULL;
}

void rules_decide(struct pod_view *l)
{
    const char *scheduler = str_or_empty(json_get_str(l->spec, "schedulerName"));
    bool is_free = *scheduler == '\0' || str_eq(scheduler, KUBE_DEFAULT_SCHEDULER);
    bool named = str_eq(scheduler, l->config->scheduler);
    const char *ns = l->context->ns;
    l->home = str_eq(ns, KUBE_SYSTEM) || (l->config->own_ns && str_eq(ns, l->config->own_ns));
    bool banned = is_banned(l);
    const struct trigger *t = banned || is_placed(l) ? NULL : find_trigger(l);
    l->trigger = t ? t->name : NULL;
    l->inject = l->trigger && is_free && !named;
    l->ours = l->inject || named;
    l->judged = l->ours || (is_free && !banned);
}

/* ---- rules in this file ---- */

/* Reports a list where a map belongs and the like. The API server has not typed the object yet, and
 * every other rule would read nothing there. */
static void check_shape(struct pod_view *l)
{
    for (const char *const *list = pod_view_container_lists; l->judged && *list; list++) {
        json *v = json_get(l->spec, *list);
        if (v && !json_is_null(v) && !json_is_array(v))
            pod_view_refuse(l, "spec.%s: %s is no list of containers; write - name: below it",
                            *list, pod_view_quote_json(l, v));
    }
    for (struct pod_view_container c = {0}; l->judged && pod_view_next_container(l, &c);)
        for (const char *const *list = pod_view_amount_lists; *list; list++) {
            json *v = json_get(json_get(c.value, "resources"), *list);
            if (v && !json_is_null(v) && !json_is_object(v))
                pod_view_refuse(l,
                                "spec.%s[%zu].resources.%s: %s is no map of resources; write cpu: "
                                "\"4\" and the like below it",
                                c.list, c.index, *list, pod_view_quote_json(l, v));
        }
}

/* Warns if the request needs a scheduler but none will see the pod. The other triggers' rules
 * report this themselves. */
static void check_placed(struct pod_view *l)
{
    const char *node = str_or_empty(json_get_str(l->spec, "nodeName"));
    if (l->ours || !l->judged || !is_placed(l))
        return;
    const struct trigger *t = find_trigger(l);
    if (!t || t->by != BY_POD)
        return;
    if (*node == '\0')
        pod_view_warn(
            l,
            "spec.schedulerName: is not injected into a DaemonSet, and without it no scheduler "
            "honours its %s; write %s",
            t->name, l->config->scheduler);
    else if (!asks_cpuset(l))
        pod_view_warn(l,
                      "spec.nodeName: %s is set, so no scheduler sees to the pod's %s; write "
                      "nodeSelector or node affinity instead",
                      pod_view_quote(l, node), t->name);
}

/* Until ResourcePolicies are listed, the pod keeps its scheduler and the author is warned. */
static void check_unlisted(struct pod_view *l)
{
    if (!l->judged || l->ours || is_placed(l) || !is_enabled(l) ||
        l->context->policies_known != RULES_NOT_YET)
        return;
    pod_view_warn(
        l,
        "spec.schedulerName: whether a ResourcePolicy selects this pod, for %s, could not be "
        "checked, they are not listed yet; create it again if it should",
        l->config->scheduler);
}

static void check_inject(struct pod_view *l)
{
    const char *text = pod_view_annotation(l, NAME_INJECT);
    if (l->judged && text && !str_eq(text, "false") && !str_eq(text, "true"))
        pod_view_warn(
            l,
            "metadata.annotations[" NAME_INJECT
            "]: %s is not known and means nothing; write \"false\" to keep cosched out of "
            "the pod",
            pod_view_quote(l, text));
}

static void (*const checks[])(struct pod_view *l) = {
    check_shape,        check_inject,        check_placed,      check_unlisted,
    rules_gpu_check,    rules_env_check,     rules_mount_check, rules_gang_check,
    rules_cpuset_check, rules_virtual_check, rules_place_check,
};

void rules_check(struct pod_view *l)
{
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        checks[i](l);
}

/* ---- a new pod ---- */

static void remove_result_keys(struct pod_view *l)
{
    json *annotations = json_get(l->metadata, "annotations");
    struct rules_verdict *v = l->verdict;
    v->remove = arena_new(l->arena, const char *, json_len(annotations));
    for (struct json_iter it = json_iter(annotations); json_next(&it);) {
        if (!it.key || strlen(it.key) != it.key_len || !grant_is_result_key(it.key))
            continue;
        v->remove[v->remove_len++] = it.key;
        pod_view_warn(
            l,
            "metadata.annotations[%s]: removed; cosched writes it when it places the pod, "
            "a manifest cannot set it",
            it.key);
    }
}

static void fill_one(struct pod_view *l, const struct pod_view_container *c, const char *resource,
                     const char *there, const char *missing)
{
    struct rules_verdict *v = l->verdict;
    json *resources = json_get(c->value, "resources");
    json *value = pod_view_amount(c->value, there, resource);
    json *around = json_get(resources, missing);
    if (!value || json_get(around, resource) || (around && !json_is_object(around)))
        return;
    bool make = !around;
    /* Entries of one container are adjacent. Searching only those avoids quadratic time on a pod
     * with ten thousand containers, which the API server rejects only after us. */
    for (size_t i = v->fill_len;
         i > 0 && v->fill[i - 1].index == c->index && str_eq(v->fill[i - 1].list, c->list); i--)
        if (str_eq(v->fill[i - 1].missing, missing))
            make = false; /* an earlier entry creates it */
    v->fill[v->fill_len++] = (struct rules_fill){.list = c->list,
                                                 .index = c->index,
                                                 .missing = missing,
                                                 .make = make,
                                                 .resource = resource,
                                                 .value = value};
}

/* Kubernetes requires equal limits and requests for extended resources; users write one of them. */
static void complete(struct pod_view *l)
{
    size_t containers = 0;
    for (struct pod_view_container c = {0}; pod_view_next_container(l, &c);)
        containers++;
    l->verdict->fill = arena_new(l->arena, struct rules_fill, containers * GPU_REQUEST_RESOURCES);
    for (struct pod_view_container c = {0}; pod_view_next_container(l, &c);)
        for (int r = 0; r < GPU_REQUEST_RESOURCES; r++) {
            fill_one(l, &c, gpu_request_names[r], "limits", "requests");
            fill_one(l, &c, gpu_request_names[r], "requests", "limits");
        }
}

int rules_pod(const struct rules_config *config, const struct rules_context *context, json *pod,
              struct arena *a, struct rules_verdict *out, struct error *err)
{
    *out = (struct rules_verdict){.trigger = NULL};
    struct pod_view l = {
        .config = config, .context = context, .arena = a, .verdict = out, .at = ""};
    if (pod_view_init(&l, pod, err) < 0)
        return -1;
    rules_decide(&l);
    out->trigger = l.trigger;
    out->inject = l.inject;
    out->ours = l.ours;
    remove_result_keys(&l);
    rules_check(&l);
    if (out->ours && out->refusals.len == 0)
        complete(&l);
    pod_view_close(&l);
    return 0;
}

/* ---- any object ---- */

/* A container that the pod has already cannot change. It is known by its name: the new ones may be
 * written before it. */
static void check_added(struct pod_view *own, json *later)
{
    struct map known;
    size_t index = 0;
    map_init(&known);
    for (struct json_iter c = json_iter(json_get(own->spec, "ephemeralContainers")); json_next(&c);)
        (void)map_put(&known, str_or_empty(json_get_str(c.value, "name")), own);
    json *list = json_get(json_get(later, "spec"), "ephemeralContainers");
    for (struct json_iter c = json_iter(list); json_next(&c); index++) {
        if (map_get(&known, str_or_empty(json_get_str(c.value, "name"))) != NULL)
            continue;
        rules_env_debug(own, index, c.value);
        rules_mount_debug(own, index, c.value);
    }
    map_deinit(&known);
}

/* An in-place resize (pods/resize, or a plain update on some servers) or a debug container. */
static int change_pod(struct pod_view *l, const struct rules_subject *s, struct error *err)
{
    if (!s->old)
        return 0;
    if (pod_view_init(l, s->old, err) < 0)
        return error_wrap(err, "oldObject");
    rules_decide(l);
    if (str_eq(s->subresource, SUBRESOURCE_DEBUG)) {
        check_added(l, s->object);
    } else {
        rules_cpuset_resize(l, s->object);
    }
    return 0;
}

static bool is_change_of_pod(const struct rules_subject *s)
{
    return *s->subresource == '\0' || str_eq(s->subresource, "resize") ||
           str_eq(s->subresource, SUBRESOURCE_DEBUG);
}

static int check_object(struct pod_view *l, const struct rules_subject *s, struct error *err)
{
    bool group = str_eq(s->kind, "PodGroup") &&
                 (str_eq(s->group, NAME_GROUP_PODGROUP) || str_eq(s->group, NAME_GROUP_PODGROUP_X));
    bool policy = str_eq(s->kind, NAME_KIND_POLICY) && str_eq(s->group, NAME_GROUP_POLICY);
    bool node = str_eq(s->kind, "Node") && *s->group == '\0';
    if (rules_workload_is(l->config, s))
        return rules_workload_check(l, s, err);
    if (!group && !policy && !node)
        return 0;
    if (pod_view_init_metadata(l, s->object, err) < 0)
        return -1;
    if (group)
        rules_group_check(l, s);
    else if (policy)
        rules_policy_check(l, s);
    else
        rules_node_check(l, s);
    return 0;
}

int rules_object(const struct rules_config *config, const struct rules_context *context,
                 const struct rules_subject *s, struct arena *a, struct rules_verdict *out,
                 struct error *err)
{
    *out = (struct rules_verdict){.trigger = NULL};
    bool is_pod = str_eq(s->kind, "Pod") && *s->group == '\0';
    bool create = str_eq(s->operation, "CREATE");
    if ((!create && !str_eq(s->operation, "UPDATE")))
        return 0;
    if (is_pod && create && *s->subresource == '\0')
        return rules_pod(config, context, s->object, a, out, err);
    struct pod_view l = {
        .config = config, .context = context, .arena = a, .verdict = out, .at = ""};
    int rc = 0;
    if (is_pod && !create && is_change_of_pod(s))
        rc = change_pod(&l, s, err);
    else if (!is_pod && *s->subresource == '\0' &&
             !json_get(json_get(s->object, "metadata"), "deletionTimestamp"))
        rc = check_object(&l, s, err);
    pod_view_close(&l);
    return rc;
}
