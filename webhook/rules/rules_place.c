// SPDX-License-Identifier: Apache-2.0
/* Valid keys of ours where they have no effect: a label that should be an annotation, or metadata
 * of a Deployment instead of its template. Warnings name the right path. */
#include "lib/base/str.h"
#include "lib/model/grant.h"
#include "lib/model/names.h"
#include "webhook/rules/rules_internal.h"

enum { AS_LABEL = 1, AS_ANNOTATION = 2 };

static const struct {
    const char *key;
    unsigned as;
} requests[] = {
    {NAME_ANN_CPUSET_SCHEDULER, AS_ANNOTATION},
    {NAME_ANN_CPU_POLICY, AS_ANNOTATION},
    {NAME_ANN_NUMA_SPEC, AS_ANNOTATION},
    {NAME_ANN_CPUSET_SHARED, AS_ANNOTATION},
    {NAME_ANN_BURST, AS_ANNOTATION},
    {NAME_INJECT, AS_ANNOTATION},
    {NAME_ANN_GANG_KOORD_NAME, AS_ANNOTATION},
    {NAME_ANN_GANG_KOORD_MIN, AS_ANNOTATION},
    {NAME_ANN_GANG_KOORD_MATCH, AS_ANNOTATION},
    {NAME_ANN_GANG_MATCH, AS_ANNOTATION | AS_LABEL},
    {NAME_ANN_GANG_GROUPS, AS_ANNOTATION},
    {NAME_ANN_GANG_KOORD_GROUPS, AS_ANNOTATION},
    {NAME_LABEL_GANG_NAME, AS_LABEL},
    {NAME_LABEL_GANG_MIN, AS_LABEL},
    {NAME_LABEL_GANG_BARE, AS_LABEL},
    {NAME_LABEL_GANG_X, AS_LABEL},
    {NAME_RES_GPU_COUNT, AS_LABEL},
    {NAME_LABEL_TOPOLOGY_JOB, AS_LABEL},
    {NAME_LABEL_TOPOLOGY_REPLICA, AS_LABEL},
    {NAME_LABEL_COMPUTE_CLASS, AS_LABEL},
    {NAME_LABEL_GPU_MODEL_SERIES, AS_LABEL},
    {NAME_LABEL_ECI, AS_LABEL},
};
enum { REQUESTS = sizeof requests / sizeof requests[0] };

/* rules_gang refuses a list of gangs in a label. */
static bool is_reported_elsewhere(const char *key)
{
    return str_eq(key, NAME_ANN_GANG_GROUPS) || str_eq(key, NAME_ANN_GANG_KOORD_GROUPS);
}

void rules_place_check(struct pod_view *l)
{
    if (!l->judged)
        return;
    for (size_t i = 0; i < REQUESTS; i++) {
        const char *key = requests[i].key;
        const char *as_label = pod_view_label(l, key);
        const char *as_annotation = pod_view_annotation(l, key);
        if (requests[i].as == AS_ANNOTATION && as_label && !as_annotation &&
            !is_reported_elsewhere(key))
            pod_view_warn(l,
                          "metadata.labels[%s]: %s means nothing as a label; write it into "
                          "metadata.annotations",
                          key, pod_view_quote(l, as_label));
        if (requests[i].as == AS_LABEL && as_annotation && !as_label)
            pod_view_warn(
                l,
                "metadata.annotations[%s]: %s means nothing as an annotation; write it into "
                "metadata.labels",
                key, pod_view_quote(l, as_annotation));
    }
}

static bool is_in_one(const struct pod_view *templates, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (pod_view_label(&templates[i], key) || pod_view_annotation(&templates[i], key))
            return true;
    return false;
}

static bool is_as_before(json *before, const char *where, const char *key, const char *value)
{
    return str_eq(json_get_str(json_get(before, where), key), value);
}

void rules_place_own(struct pod_view *own, json *before, const struct pod_view *templates, size_t n,
                     const char *kind)
{
    for (size_t i = 0; i < REQUESTS; i++) {
        const char *key = requests[i].key;
        const char *label = pod_view_label(own, key);
        const char *value = label ? label : pod_view_annotation(own, key);
        const char *where = label ? "labels" : "annotations";
        if (!value || is_in_one(templates, n, key) || is_as_before(before, where, key, value))
            continue;
        const char *right = !(requests[i].as & AS_LABEL)        ? "annotations"
                            : !(requests[i].as & AS_ANNOTATION) ? "labels"
                                                                : where;
        pod_view_warn(
            own, "metadata.%s[%s]: %s means nothing on a %s itself; write it into %smetadata.%s",
            where, key, pod_view_quote(own, value), kind, templates[0].at, right);
    }
}
