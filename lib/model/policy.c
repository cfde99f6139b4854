// SPDX-License-Identifier: Apache-2.0
#include "lib/model/policy.h"

#include <string.h>

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/grant.h"
#include "lib/model/names.h"

static bool has_all(const struct labels *have, const struct labels *want)
{
    for (size_t i = 0; i < want->len; i++)
        if (!str_eq(labels_get(have, want->items[i].key), want->items[i].value))
            return false;
    return true;
}

bool policy_selects(const struct policy *p, const struct pod *pod)
{
    return p->invalid == NULL && str_eq(p->object.ns, pod->ns) &&
           has_all(&pod->labels, &p->selector);
}

static bool is_of_virtual_nodes(enum policy_resource r)
{
    return r == POLICY_ECI || r == POLICY_ACS;
}

bool policy_unit_has_node(const struct policy_unit *u, const struct labels *node_labels,
                          bool is_virtual)
{
    return is_of_virtual_nodes(u->resource) == is_virtual &&
           has_all(node_labels, &u->node_selector);
}

bool policy_unit_is_on(const struct policy_unit *u, const struct pod *pod)
{
    return has_all(&pod->labels, &u->pod_labels);
}

int policy_order(const struct policy *a, const struct policy *b)
{
    if (a->created_ns != b->created_ns)
        return a->created_ns < b->created_ns ? -1 : 1;
    return strcmp(a->object.name, b->object.name);
}

static bool labels_equal(const struct labels *a, const struct labels *b)
{
    return a->len == b->len && has_all(a, b);
}

static bool units_equal(const struct policy_unit *a, const struct policy_unit *b)
{
    return a->resource == b->resource && a->max == b->max && a->awaited == b->awaited &&
           a->has_max_resources == b->has_max_resources &&
           a->max_resources.has == b->max_resources.has &&
           a->max_resources.extra_len == b->max_resources.extra_len &&
           resources_equal(&a->max_resources, &b->max_resources) &&
           labels_equal(&a->node_selector, &b->node_selector) &&
           labels_equal(&a->pod_labels, &b->pod_labels) &&
           labels_equal(&a->pod_annotations, &b->pod_annotations);
}

static bool keys_equal(const struct policy *a, const struct policy *b)
{
    if (a->match_keys_len != b->match_keys_len)
        return false;
    for (size_t i = 0; i < a->match_keys_len; i++)
        if (!str_eq(a->match_keys[i], b->match_keys[i]))
            return false;
    return true;
}

bool policy_selects_like(const struct policy *a, const struct policy *b)
{
    return a->created_ns == b->created_ns && labels_equal(&a->selector, &b->selector);
}

bool policy_equal(const struct policy *a, const struct policy *b)
{
    if (!str_eq(a->object.uid, b->object.uid) || a->created_ns != b->created_ns ||
        (a->invalid == NULL) != (b->invalid == NULL) || !labels_equal(&a->selector, &b->selector) ||
        a->units_len != b->units_len || a->preempt_before_next != b->preempt_before_next ||
        a->ignore_previous != b->ignore_previous ||
        a->ignore_terminating != b->ignore_terminating || !keys_equal(a, b) || a->when != b->when ||
        a->timeout_ms != b->timeout_ms)
        return false;
    for (size_t i = 0; i < a->units_len; i++)
        if (!units_equal(&a->units[i], &b->units[i]))
            return false;
    return true;
}

/* Whether the key's domain is this one or below it: "app.kubernetes.io/name" is of
 * kubernetes.io. */
static bool is_of_domain(const char *key, const char *domain)
{
    const char *slash = strchr(key, '/');
    size_t n = slash != NULL ? (size_t)(slash - key) : 0, d = strlen(domain);
    return n >= d && n > 0 && memcmp(key + n - d, domain, d) == 0 &&
           (n == d || key[n - d - 1] == '.');
}

bool policy_key_is_reserved(const char *key)
{
    static const char *const ours[] = {
        NAME_ANN_CPUSET_SCHEDULER,
        NAME_ANN_CPU_POLICY,
        NAME_ANN_NUMA_SPEC,
        NAME_ANN_BURST,
        NAME_ANN_GANG_KOORD_NAME,
        NAME_ANN_GANG_KOORD_MIN,
        NAME_ANN_GANG_KOORD_MATCH,
        NAME_ANN_GANG_KOORD_GROUPS,
        NAME_LABEL_GANG_BARE,
        NAME_LABEL_GANG_X,
        NAME_RES_GPU_COUNT,
        NAME_LABEL_TOPOLOGY_JOB,
        NAME_LABEL_TOPOLOGY_REPLICA,
        NAME_LABEL_COMPUTE_CLASS,
        NAME_LABEL_GPU_MODEL_SERIES,
        NAME_LABEL_ECI,
        /* Node labels and resources: misleading on a pod. */
        NAME_LABEL_GPU_MODE,
        NAME_LABEL_GPU_PLACEMENT,
        NAME_LABEL_ACCEL_NAME,
        NAME_LABEL_ACCEL_MEM,
        NAME_LABEL_ACCEL_COUNT,
        NAME_TAINT_VIRTUAL,
        NAME_RES_GPU_MEM,
        NAME_RES_GPU_CORE,
        NAME_RES_GPU,
        NAME_RES_NVIDIA_GPU,
    };
    static const char *const domains[] = {"kubernetes.io", "k8s.io", "cosched.io"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (str_eq(ours[i], key))
            return true;
    for (size_t i = 0; i < sizeof domains / sizeof *domains; i++)
        if (is_of_domain(key, domains[i]))
            return true;
    return grant_is_result_key(key);
}

static const char *unit_of_time(const char *s, int64_t *ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (str_starts(s, units[i].name)) {
            *ms = units[i].ms;
            return s + strlen(units[i].name);
        }
    return NULL;
}

bool policy_parse_duration(const char *text, int64_t *ms)
{
    enum { LONGEST = 20 };
    const int64_t most = (int64_t)366 * 24 * 3600 * 1000;
    int64_t sum = 0;
    if (text == NULL || *text == '\0' || strlen(text) > LONGEST)
        return false;
    while (*text != '\0') {
        int64_t number = 0, unit = 0, part = 0;
        size_t digits = strspn(text, "0123456789");
        struct error err = ERROR_INIT;
        if (digits == 0 || num_parse(text, digits, &number, &err) < 0)
            return false;
        text = unit_of_time(text + digits, &unit);
        if (text == NULL || !num_mul(number, unit, &part) || !num_add(sum, part, &sum))
            return false;
    }
    if (sum <= 0 || sum > most)
        return false;
    *ms = sum;
    return true;
}

const char *policy_resource_name(enum policy_resource r)
{
    static const char *const names[] = {[POLICY_ECS] = "ecs",
                                        [POLICY_ECI] = "eci",
                                        [POLICY_ELASTIC] = "elastic",
                                        [POLICY_ACS] = "acs"};
    return names[r];
}

const char *policy_when_name(enum policy_when w)
{
    static const char *const names[] = {[POLICY_LACK_OR_MAX] = "LackResourceOrExceedMax",
                                        [POLICY_MAX] = "ExceedMax",
                                        [POLICY_TIMEOUT_OR_MAX] = "TimeoutOrExceedMax",
                                        [POLICY_LACK_AND_NO_TERMINATING] =
                                            "LackResourceAndNoTerminating"};
    return names[w];
}
