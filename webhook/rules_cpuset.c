// SPDX-License-Identifier: Apache-2.0
/*
 * rules_cpuset - pinned CPUs: cpuset-scheduler, the annotations that go with it, and whole CPUs in every container.
 */
#include "lib/base/str.h"
#include "lib/model/names.h"
#include "webhook/rules_inside.h"

static bool is_pinned(const char *wish)
{
    return str_eq(wish, "true") || str_eq(wish, "required");
}

enum { CPUS_MOST = 4096 }; /* beyond it a suffix was meant otherwise */

static void check_cpus(struct look *l)
{
    for (struct look_container c = {0}; look_next_container(l, &c);) {
        if (c.init)
            continue;
        json *limit = look_amount(c.value, "limits", "cpu");
        int64_t cpus = 0;
        /* The scheduler does not bind such a sidecar; often it is another webhook's, and the pod's author cannot help it. */
        if (!limit && str_eq(c.list, look_container_lists[1]))
            look_warn(
                l,
                "spec.%s[%zu].resources.limits.cpu: is missing, so this sidecar is not pinned "
                "(" NAME_ANN_CPUSET_SCHEDULER "); write how many CPUs it shall have",
                c.list, c.index);
        else if (!limit)
            look_refuse(l,
                        "spec.%s[%zu].resources.limits.cpu: is missing; " NAME_ANN_CPUSET_SCHEDULER
                        " pins whole CPUs: write how many",
                        c.list, c.index);
        else if (!look_read_whole(limit, &cpus) || cpus < 1)
            look_refuse(l,
                        "spec.%s[%zu].resources.limits.cpu: %s is not a whole number of CPUs, "
                        "which " NAME_ANN_CPUSET_SCHEDULER " needs; write an integer from 1 on",
                        c.list, c.index, look_quote_json(l, limit));
        else if (cpus > CPUS_MOST)
            look_warn(l,
                      "spec.%s[%zu].resources.limits.cpu: %s is %lld CPUs, more than any node has; "
                      "write an integer such as 4",
                      c.list, c.index, look_quote_json(l, limit), (long long)cpus);
    }
}

static void check_policy(struct look *l, const char *wish)
{
    const char *policy = look_annotation(l, NAME_ANN_CPU_POLICY);
    if (!policy || *policy == '\0')
        return;
    if (!str_eq(policy, "static-burst"))
        look_refuse(l,
                    "metadata.annotations[" NAME_ANN_CPU_POLICY
                    "]: %s is not known; write static-burst, or remove it for one to one pinning",
                    look_quote(l, policy));
    else if (!is_pinned(wish))
        look_warn(l,
                  "metadata.annotations[" NAME_ANN_CPU_POLICY
                  "]: '%s' means nothing without annotation " NAME_ANN_CPUSET_SCHEDULER
                  ": \"true\"",
                  policy);
}

static bool is_word(json *v, const char *const *words)
{
    const char *text = json_str(v);
    for (size_t i = 0; text && words[i]; i++)
        if (str_eq(text, words[i]))
            return true;
    return false;
}

#define NUMA "metadata.annotations[" NAME_ANN_NUMA_SPEC "]"

static void check_numa_member(struct look *l, const char *key, json *value)
{
    static const char *const policies[] = {"SingleNUMANode", "Restricted", "BestEffort", NULL};
    static const char *const exclusive[] = {"Required", "Preferred", NULL};
    if (str_eq(key, "numaTopologyPolicy")) {
        if (!is_word(value, policies))
            look_refuse(l,
                        NUMA ": numaTopologyPolicy %s is not known; write SingleNUMANode, "
                             "Restricted or BestEffort",
                        look_quote_json(l, value));
    } else if (str_eq(key, "singleNUMANodeExclusive")) {
        if (!is_word(value, exclusive))
            look_refuse(
                l, NUMA ": singleNUMANodeExclusive %s is not known; write Required or Preferred",
                look_quote_json(l, value));
    } else {
        look_warn(l, NUMA ": %s is not known and means nothing; remove it", look_quote(l, key));
    }
}

static void check_numa(struct look *l, const char *wish)
{
    const char *text = look_annotation(l, NAME_ANN_NUMA_SPEC);
    AUTO_JSON *doc = NULL;
    if (!text || *text == '\0')
        return;
    if (json_parse(&doc, text, strlen(text), NULL) < 0 || !json_is_object(json_root(doc))) {
        look_refuse(l,
                    NUMA ": %s is no JSON object; write "
                         "{\"numaTopologyPolicy\":\"SingleNUMANode\"} or the like",
                    look_quote(l, text));
        return;
    }
    for (struct json_iter it = json_iter(json_root(doc)); json_next(&it);)
        check_numa_member(l, it.key, it.value);
    if (!str_eq(wish, "required"))
        look_warn(l, NUMA ": means nothing without annotation " NAME_ANN_CPUSET_SCHEDULER
                          ": \"required\"");
}

static void check_shared(struct look *l, const char *wish)
{
    const char *shared = look_annotation(l, NAME_ANN_CPUSET_SHARED);
    if (!shared)
        return;
    if (!str_eq(shared, "true") && !str_eq(shared, "false"))
        look_refuse(l,
                    "metadata.annotations[" NAME_ANN_CPUSET_SHARED
                    "]: %s is not known; write \"true\" or \"false\"",
                    look_quote(l, shared));
    else if (!is_pinned(wish))
        look_warn(l, "metadata.annotations[" NAME_ANN_CPUSET_SHARED
                     "]: means nothing without annotation " NAME_ANN_CPUSET_SCHEDULER ": \"true\"");
}

void rules_cpuset_check(struct look *l)
{
    const char *wish = look_annotation(l, NAME_ANN_CPUSET_SCHEDULER);
    if (!l->judged)
        return;
    if (wish && !is_pinned(wish) && !str_eq(wish, "false"))
        look_refuse(l,
                    "metadata.annotations[" NAME_ANN_CPUSET_SCHEDULER
                    "]: %s is not known; write \"true\", \"required\" or \"false\"",
                    look_quote(l, wish));
    check_policy(l, wish);
    check_numa(l, wish);
    check_shared(l, wish);
    if (!is_pinned(wish))
        return;
    check_cpus(l);
    const char *node = json_get_str(l->spec, "nodeName");
    if (*str_or_empty(node) != '\0')
        look_warn(l,
                  "spec.nodeName: %s is set, so no scheduler chooses CPUs for the pod; write "
                  "nodeSelector or node affinity instead",
                  look_quote(l, node));
}

/* ---- resize ---------------------------------------------------------------------------------- */

/* Two lists of containers side by side: the API server lets nobody add, remove or move one. */
static json *same_container(struct json_iter *later, const char *name)
{
    if (!json_next(later) || !str_eq(json_get_str(later->value, "name"), name))
        return NULL;
    return later->value;
}

/* Somebody who removes the request (it is for new pods) leaves the CPUs that the pod has. */
static bool has_cpus(const struct look *own)
{
    return is_pinned(look_annotation(own, NAME_ANN_CPUSET_SCHEDULER)) ||
           *str_or_empty(look_annotation(own, NAME_ANN_CPUSET)) != '\0';
}

void rules_cpuset_resize(struct look *own, json *later)
{
    struct json_iter after_it = {0};
    const char *list = NULL;
    if (!has_cpus(own) || !str_eq(json_get_str(own->spec, "schedulerName"), own->config->scheduler))
        return;
    for (struct look_container c = {0}; look_next_container(own, &c);) {
        const char *name = json_get_str(c.value, "name");
        int64_t was = 0, will = 0;
        if (!str_eq(list, c.list))
            after_it = json_iter(json_get(json_get(later, "spec"), c.list));
        list = c.list;
        json *after = same_container(&after_it, name);
        if (!after || c.init)
            continue;
        json *cpus = look_amount(after, "limits", "cpu");
        bool had = look_read_milli(look_amount(c.value, "limits", "cpu"), &was);
        bool has = look_read_milli(cpus, &will);
        if (had != has || was != will)
            look_refuse(own,
                        "spec.%s[%zu].resources.limits.cpu: %s cannot replace %s in a pod with "
                        "pinned CPUs (" NAME_ANN_CPUSET_SCHEDULER
                        "); delete the pod and create it with the new number",
                        c.list, c.index, look_quote_json(own, cpus),
                        look_quote_json(own, look_amount(c.value, "limits", "cpu")));
    }
}
