// SPDX-License-Identifier: Apache-2.0
/* Pinned CPUs: refuses what lib/model/cpu_request cannot serve and advises on the rest. */
#include "lib/base/str.h"
#include "lib/model/cpu_request.h"
#include "lib/model/names.h"
#include "webhook/rules/rules_internal.h"

enum { CPUS_MOST = 4096 }; /* more suggests a wrong suffix */

/* Refuses unreadable limits and advises on the others. False if one cannot be read. */
static bool check_limits(struct pod_view *l)
{
    bool readable = true;
    for (struct pod_view_container c = {0}; pod_view_next_container(l, &c);) {
        json *limit = pod_view_amount(c.value, "limits", "cpu");
        int64_t milli = 0;
        if (c.init)
            continue;
        /* Only warn: another webhook may have injected the sidecar. */
        if (!limit && str_eq(c.list, pod_view_container_lists[1]))
            pod_view_warn(
                l,
                "spec.%s[%zu].resources.limits.cpu: is missing, so this sidecar is not pinned "
                "(" NAME_ANN_CPUSET_SCHEDULER "); write how many CPUs it shall have",
                c.list, c.index);
        if (limit && (!pod_view_read_milli(limit, &milli) || milli < 0)) {
            pod_view_refuse(l,
                            "spec.%s[%zu].resources.limits.cpu: %s is not a whole number of CPUs, "
                            "which " NAME_ANN_CPUSET_SCHEDULER " needs; write an integer from 1 on",
                            c.list, c.index, pod_view_quote_json(l, limit));
            readable = false;
        }
        if (milli / 1000 > CPUS_MOST)
            pod_view_warn(
                l,
                "spec.%s[%zu].resources.limits.cpu: %s is %lld CPUs, more than any node has; "
                "write an integer such as 4",
                c.list, c.index, pod_view_quote_json(l, limit), (long long)milli / 1000);
    }
    return readable;
}

#define NUMA "metadata.annotations[" NAME_ANN_NUMA_SPEC "]"

static void check_numa(struct pod_view *l)
{
    const char *text = pod_view_annotation(l, NAME_ANN_NUMA_SPEC);
    AUTO_JSON *doc = NULL;
    if (!text || *text == '\0')
        return;
    if (strlen(text) <= CPU_REQUEST_NUMA_SPEC_MAX &&
        json_parse(&doc, text, strlen(text), NULL) == 0)
        for (struct json_iter it = json_iter(json_root(doc)); json_next(&it);)
            if (it.key && !str_eq(it.key, "numaTopologyPolicy") &&
                !str_eq(it.key, "singleNUMANodeExclusive"))
                pod_view_warn(l, NUMA ": %s is not known and means nothing; remove it",
                              pod_view_quote(l, it.key));
    if (!str_eq(pod_view_annotation(l, NAME_ANN_CPUSET_SCHEDULER), "required"))
        pod_view_warn(l, NUMA ": means nothing without annotation " NAME_ANN_CPUSET_SCHEDULER
                              ": \"required\"");
}

/* For pods that are not pinned. */
static void check_means_nothing(struct pod_view *l)
{
    const char *policy = pod_view_annotation(l, NAME_ANN_CPU_POLICY);
    if (policy && *policy != '\0')
        pod_view_warn(l,
                      "metadata.annotations[" NAME_ANN_CPU_POLICY
                      "]: %s means nothing without annotation " NAME_ANN_CPUSET_SCHEDULER
                      ": \"true\"",
                      pod_view_quote(l, policy));
    if (pod_view_annotation(l, NAME_ANN_CPUSET_SHARED))
        pod_view_warn(l, "metadata.annotations[" NAME_ANN_CPUSET_SHARED
                         "]: means nothing without annotation " NAME_ANN_CPUSET_SCHEDULER
                         ": \"true\"");
}

void rules_cpuset_check(struct pod_view *l)
{
    bool pins = cpu_request_pins(&l->annotations);
    struct request_errors errors;
    if (!l->judged)
        return;
    (void)cpu_request_read(&l->pod, l->arena, &errors);
    if (!pins || check_limits(l))
        pod_view_refuse_all(l, &errors);
    check_numa(l);
    if (!pins) {
        check_means_nothing(l);
        return;
    }
    const char *node = json_get_str(l->spec, "nodeName");
    if (*str_or_empty(node) != '\0')
        pod_view_warn(l,
                      "spec.nodeName: %s is set, so no scheduler chooses CPUs for the pod; write "
                      "nodeSelector or node affinity instead",
                      pod_view_quote(l, node));
}

/* ---- resize ---- */

/* Walks two lists in step: the API server forbids adding, removing or moving containers. */
static json *same_container(struct json_iter *later, const char *name)
{
    if (!json_next(later) || !str_eq(json_get_str(later->value, "name"), name))
        return NULL;
    return later->value;
}

/* Removing the request affects only new pods; this pod keeps its CPUs. */
static bool has_cpus(const struct pod_view *own)
{
    return cpu_request_pins(&own->annotations) ||
           *str_or_empty(pod_view_annotation(own, NAME_ANN_CPUSET)) != '\0';
}

void rules_cpuset_resize(struct pod_view *own, json *later)
{
    struct json_iter after_it = {0};
    const char *list = NULL;
    if (!has_cpus(own) || !str_eq(json_get_str(own->spec, "schedulerName"), own->config->scheduler))
        return;
    for (struct pod_view_container c = {0}; pod_view_next_container(own, &c);) {
        const char *name = json_get_str(c.value, "name");
        int64_t was = 0, will = 0;
        if (!str_eq(list, c.list))
            after_it = json_iter(json_get(json_get(later, "spec"), c.list));
        list = c.list;
        json *after = same_container(&after_it, name);
        if (!after || c.init)
            continue;
        json *cpus = pod_view_amount(after, "limits", "cpu");
        bool had = pod_view_read_milli(pod_view_amount(c.value, "limits", "cpu"), &was);
        bool has = pod_view_read_milli(cpus, &will);
        if (had != has || was != will)
            pod_view_refuse(own,
                            "spec.%s[%zu].resources.limits.cpu: %s cannot replace %s in a pod with "
                            "pinned CPUs (" NAME_ANN_CPUSET_SCHEDULER
                            "); delete the pod and create it with the new number",
                            c.list, c.index, pod_view_quote_json(own, cpus),
                            pod_view_quote_json(own, pod_view_amount(c.value, "limits", "cpu")));
    }
}
