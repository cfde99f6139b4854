// SPDX-License-Identifier: Apache-2.0
/* ResourcePolicy objects, field by field. */
#include "lib/base/str.h"
#include "lib/model/policy.h"
#include "webhook/rules/rules_internal.h"

/* Nothing else is reported about a map that is too large. */
static bool is_bounded(struct pod_view *l, json *map, const char *path)
{
    if (json_len(map) <= POLICY_LABELS_MAX)
        return true;
    pod_view_refuse(l, "%s: has %zu entries; write at most %d", path, json_len(map),
                    POLICY_LABELS_MAX);
    return false;
}

static void check_labels(struct pod_view *l, json *v, const char *path)
{
    if (!v || json_is_null(v))
        return;
    if (!json_is_object(v)) {
        pod_view_refuse(l, "%s: %s is no map of labels; write key: value below it", path,
                        pod_view_quote_json(l, v));
        return;
    }
    if (!is_bounded(l, v, path))
        return;
    for (struct json_iter it = json_iter(v); json_next(&it);) {
        const char *value = json_str(it.value);
        if (str_eq(it.key, "matchLabels") || str_eq(it.key, "matchExpressions"))
            pod_view_refuse(l, "%s.%s: is not known here; write key: value right below %s", path,
                            it.key, path);
        else if (!selector_key_is_legal(it.key))
            pod_view_refuse(l, "%s[%.80s]: is not a label's key; write [prefix/]name", path,
                            it.key);
        else if (!value || !selector_value_is_legal(value))
            pod_view_refuse(
                l,
                "%s[%.80s]: %s is not a label's value; write up to 63 letters, digits, '-', "
                "'_' or '.', in quotes if it is a number",
                path, it.key, pod_view_quote_json(l, it.value));
    }
}

/* Labels and annotations that a unit adds to pods: no reserved keys, no label of the selector. */
static void check_gifts(struct pod_view *l, json *v, const char *path, bool labels, json *selector)
{
    if (labels)
        check_labels(l, v, path);
    else if (v && !json_is_null(v) && !json_is_object(v))
        pod_view_refuse(l, "%s: %s is no map of annotations; write key: value below it", path,
                        pod_view_quote_json(l, v));
    else
        (void)is_bounded(l, v, path);
    if (json_len(v) > POLICY_LABELS_MAX)
        return; /* already reported */
    for (struct json_iter it = json_iter(v); json_next(&it);) {
        if (!it.key)
            continue;
        if (policy_key_is_reserved(it.key))
            pod_view_refuse(l, "%s[%.80s]: cannot be given by a policy; write a key of your own",
                            path, it.key);
        else if (labels && json_get(selector, it.key))
            pod_view_refuse(l,
                            "%s[%.80s]: the policy selects its pods by this label, which is never "
                            "changed; write another key",
                            path, it.key);
        else if (!labels && !selector_key_is_legal(it.key))
            pod_view_refuse(l, "%s[%.80s]: is not an annotation's key; write [prefix/]name", path,
                            it.key);
        else if (!labels && !json_str(it.value))
            pod_view_refuse(l, "%s[%.80s]: %s is not a string; write it in quotes", path, it.key,
                            pod_view_quote_json(l, it.value));
    }
}

static void check_unit(struct pod_view *l, json *unit, const char *path, json *selector)
{
    static const char *const resources[] = {"ecs", "eci", "elastic", "acs", NULL};
    static const char *const known[] = {"resource",  "nodeSelector",   "max", "maxResources",
                                        "podLabels", "podAnnotations", NULL};
    int64_t max = 0;
    if (!json_is_object(unit)) {
        pod_view_refuse(l, "%s: %s is no unit; write resource: ecs and the like", path,
                        pod_view_quote_json(l, unit));
        return;
    }
    const char *of = arena_printf(l->arena, "%s.resource", path);
    json *resource = json_get(unit, "resource");
    if (!resource || json_is_null(resource))
        pod_view_refuse(l, "%s: is missing; write ecs, eci, elastic or acs", of);
    rules_field_word(l, resource, of, resources, "ecs, eci, elastic or acs");
    check_labels(l, json_get(unit, "nodeSelector"),
                 arena_printf(l->arena, "%s.nodeSelector", path));
    if (rules_field_int(l, json_get(unit, "max"), arena_printf(l->arena, "%s.max", path), 0,
                        INT32_MAX, &max) &&
        max == 0)
        pod_view_warn(l, "%s.max: 0 lets no pod into this unit; remove it for no bound", path);
    rules_field_amounts(l, json_get(unit, "maxResources"),
                        arena_printf(l->arena, "%s.maxResources", path));
    check_gifts(l, json_get(unit, "podLabels"), arena_printf(l->arena, "%s.podLabels", path), true,
                selector);
    check_gifts(l, json_get(unit, "podAnnotations"),
                arena_printf(l->arena, "%s.podAnnotations", path), false, NULL);
    rules_field_known(l, unit, path, known);
}

static void check_units(struct pod_view *l, json *units, json *selector)
{
    size_t n = json_is_array(units) ? json_len(units) : 0;
    size_t i = 0;
    if (n == 0 || n > POLICY_UNITS_MAX) {
        pod_view_refuse(
            l, "spec.units: %s; write a list of 1 to %d units, the first to be filled first",
            !units                 ? "is missing"
            : json_is_array(units) ? arena_printf(l->arena, "has %zu", n)
                                   : pod_view_quote_json(l, units),
            POLICY_UNITS_MAX);
        return;
    }
    for (struct json_iter it = json_iter(units); json_next(&it); i++)
        check_unit(l, it.value, arena_printf(l->arena, "spec.units[%zu]", i), selector);
}

static void check_when(struct pod_view *l, json *when)
{
    static const char *const policies[] = {"LackResourceOrExceedMax", "ExceedMax",
                                           "TimeoutOrExceedMax", "LackResourceAndNoTerminating",
                                           NULL};
    static const char *const known[] = {"policy", "timeout", NULL};
    json *timeout = json_get(when, "timeout");
    int64_t ms = 0;
    if (!when || json_is_null(when))
        return;
    if (!json_is_object(when)) {
        pod_view_refuse(l, "spec.whenTryNextUnits: %s is no object; write policy: below it",
                        pod_view_quote_json(l, when));
        return;
    }
    rules_field_word(l, json_get(when, "policy"), "spec.whenTryNextUnits.policy", policies,
                     "LackResourceOrExceedMax, ExceedMax, TimeoutOrExceedMax or "
                     "LackResourceAndNoTerminating");
    if (timeout && json_is_null(timeout))
        timeout = NULL;
    if (timeout && !policy_parse_duration(json_str(timeout), &ms))
        pod_view_refuse(
            l,
            "spec.whenTryNextUnits.timeout: %s is not a time; write a number with a unit "
            "such as 15m or 90s, at most 8784h",
            pod_view_quote_json(l, timeout));
    else if (timeout && !str_eq(json_get_str(when, "policy"), "TimeoutOrExceedMax"))
        pod_view_warn(l,
                      "spec.whenTryNextUnits.timeout: %s means nothing without policy "
                      "TimeoutOrExceedMax",
                      pod_view_quote_json(l, timeout));
    rules_field_known(l, when, "spec.whenTryNextUnits", known);
}

static void check_label_keys(struct pod_view *l, json *keys)
{
    size_t i = 0;
    if (keys && !json_is_null(keys) && !json_is_array(keys))
        pod_view_refuse(l, "spec.matchLabelKeys: %s is no list; write - pod-template-hash below it",
                        pod_view_quote_json(l, keys));
    if (json_is_array(keys) && json_len(keys) > POLICY_KEYS_MAX)
        pod_view_refuse(l, "spec.matchLabelKeys: has %zu; write at most %d", json_len(keys),
                        POLICY_KEYS_MAX);
    for (struct json_iter it = json_iter(json_is_array(keys) ? keys : NULL); json_next(&it); i++)
        if (!json_str(it.value) || !selector_key_is_legal(json_str(it.value)))
            pod_view_refuse(
                l, "spec.matchLabelKeys[%zu]: %s is not a label's key; write [prefix/]name", i,
                pod_view_quote_json(l, it.value));
}

void rules_policy_check(struct pod_view *own, const struct rules_subject *s)
{
    static const char *const strategies[] = {"prefer", NULL};
    static const char *const preempt[] = {"AfterAllUnits", "BeforeNextUnit", NULL};
    static const char *const known[] = {
        "selector",       "strategy",          "units",
        "preemptPolicy",  "ignorePreviousPod", "ignoreTerminatingPod",
        "matchLabelKeys", "whenTryNextUnits",  NULL};
    json *spec = json_get(s->object, "spec");
    if (s->old && json_equal(spec, json_get(s->old, "spec")))
        return;
    json *selector = json_get(spec, "selector");
    check_labels(own, selector, "spec.selector");
    if (json_len(selector) > POLICY_LABELS_MAX)
        return; /* reported; each label of each unit would be looked up in it */
    rules_field_word(own, json_get(spec, "strategy"), "spec.strategy", strategies, "prefer");
    check_units(own, json_get(spec, "units"), selector);
    rules_field_word(own, json_get(spec, "preemptPolicy"), "spec.preemptPolicy", preempt,
                     "AfterAllUnits or BeforeNextUnit");
    rules_field_bool(own, json_get(spec, "ignorePreviousPod"), "spec.ignorePreviousPod");
    rules_field_bool(own, json_get(spec, "ignoreTerminatingPod"), "spec.ignoreTerminatingPod");
    check_label_keys(own, json_get(spec, "matchLabelKeys"));
    check_when(own, json_get(spec, "whenTryNextUnits"));
    rules_field_known(own, spec, "spec", known);
}
