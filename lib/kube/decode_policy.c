// SPDX-License-Identifier: Apache-2.0
/*
 * A ResourcePolicy. Checks every field like webhook/rules/rules_policy.c, for clusters where the
 * webhook is not installed or was not called.
 *
 * A policy with an invalid spec is decoded as one that is not in force (policy.invalid): its author
 * must be told, and the previous, valid version must not stay in force because the new one cannot
 * be read.
 */
#include "lib/base/str.h"
#include "lib/kube/decode.h"
#include "lib/kube/decode_field.h"
#include "lib/kube/decode_object.h"
#include "lib/model/names.h"
#include "lib/model/policy.h"

enum { DEFAULT_TIMEOUT_MS = 15 * 60 * 1000 };

/* One of several words; absent leaves *out unchanged. */
static int decode_word(json *v, const char *name, const char *(*word)(int), int words, int *out,
                       struct error *err)
{
    const char *said = json_str(v);
    if (v == NULL || json_is_null(v))
        return 0;
    for (int i = 0; said != NULL && i < words; i++)
        if (str_eq(said, word(i))) {
            *out = i;
            return 0;
        }
    AUTO_STRBUF all = {0};
    for (int i = 0; i < words; i++)
        strbuf_addf(&all, "%s%s", i == 0 ? "" : i + 1 < words ? ", " : " or ", word(i));
    return error_set(err, ERROR_INVALID, "%s: must be %s", name, strbuf_str(&all));
}

static const char *resource_word(int i)
{
    return policy_resource_name((enum policy_resource)i);
}

static const char *when_word(int i)
{
    return policy_when_name((enum policy_when)i);
}

static const char *strategy_word(int i)
{
    return i == 0 ? "prefer" : NULL;
}

static const char *preempt_word(int i)
{
    return i == 0 ? "AfterAllUnits" : "BeforeNextUnit";
}

/* A map of valid label keys and values. */
static int decode_labels(json *v, const char *name, struct arena *a, struct labels *out,
                         struct error *err)
{
    if (json_is_object(v) && json_len(v) > POLICY_LABELS_MAX)
        return error_set(err, ERROR_TOO_LARGE, "%s: more than %d entries", name, POLICY_LABELS_MAX);
    if (decode_field_labels(v, name, a, out, err) < 0)
        return -1;
    for (size_t i = 0; i < out->len; i++) {
        if (!selector_key_is_legal(out->items[i].key))
            return error_set(err, ERROR_INVALID, "%s: '%.80s' is not a label's key", name,
                             out->items[i].key);
        if (!selector_value_is_legal(out->items[i].value))
            return error_set(err, ERROR_INVALID, "%s: '%.80s' is not a label's value", name,
                             out->items[i].value);
    }
    return 0;
}

/* Removes keys that a policy may not set and warns about the first. selected: the labels by which
 * it selects pods, or NULL. */
static void drop_forbidden(struct labels *l, const char *name, const struct labels *selected,
                           struct arena *a, const char **warning)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->len; i++) {
        const char *key = l->items[i].key;
        if (!policy_key_is_reserved(key) &&
            (selected == NULL || labels_get(selected, key) == NULL)) {
            l->items[kept++] = l->items[i];
            continue;
        }
        if (*warning == NULL)
            *warning =
                arena_printf(a, "%s[%s]: cannot be given by a policy, and is left out", name, key);
    }
    l->len = kept;
}

/* An instruction to us, not a label for pods. */
static void take_wait(struct policy_unit *u)
{
    size_t kept = 0;
    for (size_t i = 0; i < u->pod_labels.len; i++)
        if (str_eq(u->pod_labels.items[i].key, NAME_LABEL_WAIT_SCALING))
            u->awaited |= str_eq(u->pod_labels.items[i].value, "true");
        else
            u->pod_labels.items[kept++] = u->pod_labels.items[i];
    u->pod_labels.len = kept;
}

static int decode_gifts(json *j, const char *path, struct policy *p, struct policy_unit *u,
                        struct arena *a, struct error *err)
{
    const char *labels = arena_printf(a, "%s.podLabels", path);
    const char *annotations = arena_printf(a, "%s.podAnnotations", path);
    json *given = json_get(j, "podAnnotations");
    if (decode_labels(json_get(j, "podLabels"), labels, a, &u->pod_labels, err) < 0)
        return -1;
    if (json_is_object(given) && json_len(given) > POLICY_LABELS_MAX)
        return error_set(err, ERROR_TOO_LARGE, "%s: more than %d entries", annotations,
                         POLICY_LABELS_MAX);
    if (decode_field_labels(given, annotations, a, &u->pod_annotations, err) < 0)
        return -1;
    for (size_t i = 0; i < u->pod_annotations.len; i++)
        if (!selector_key_is_legal(u->pod_annotations.items[i].key))
            return error_set(err, ERROR_INVALID, "%s: '%.80s' is not an annotation's key",
                             annotations, u->pod_annotations.items[i].key);
    take_wait(u);
    drop_forbidden(&u->pod_labels, labels, &p->selector, a, &p->warning);
    drop_forbidden(&u->pod_annotations, annotations, NULL, a, &p->warning);
    return 0;
}

static int decode_unit(json *j, const char *path, struct policy *p, struct policy_unit *u,
                       struct arena *a, struct error *err)
{
    int resource = -1;
    const char *name = arena_printf(a, "%s.resource", path);
    *u = (struct policy_unit){.max = -1};
    if (!json_is_object(j))
        return error_set(err, ERROR_INVALID, "%s: must be an object, not %s", path,
                         json_kind_name(j));
    if (decode_word(json_get(j, "resource"), name, resource_word, POLICY_ACS + 1, &resource, err) <
        0)
        return -1;
    if (resource < 0)
        return error_set(err, ERROR_INVALID, "%s: missing", name);
    u->resource = (enum policy_resource)resource;
    u->awaited = u->resource == POLICY_ELASTIC;
    if (decode_labels(json_get(j, "nodeSelector"), arena_printf(a, "%s.nodeSelector", path), a,
                      &u->node_selector, err) < 0 ||
        decode_field_int(json_get(j, "max"), arena_printf(a, "%s.max", path), 0, INT32_MAX, &u->max,
                         err) < 0 ||
        decode_field_resources(json_get(j, "maxResources"),
                               arena_printf(a, "%s.maxResources", path), a, QUANTITY_DOWN,
                               &u->max_resources, &u->has_max_resources, err) < 0)
        return -1;
    u->has_max_resources &= u->max_resources.has != 0 || u->max_resources.extra_len > 0;
    return decode_gifts(j, path, p, u, a, err);
}

static int decode_units(json *j, struct policy *p, struct arena *a, struct error *err)
{
    if (decode_field_array(j, "spec.units", POLICY_UNITS_MAX, &p->units_len, err) < 0)
        return -1;
    if (p->units_len == 0)
        return error_set(err, ERROR_INVALID, "spec.units: must have 1 to %d units",
                         POLICY_UNITS_MAX);
    size_t i = 0;
    p->units = arena_new(a, struct policy_unit, p->units_len);
    for (struct json_iter it = json_iter(j); json_next(&it); i++)
        if (decode_unit(it.value, arena_printf(a, "spec.units[%zu]", i), p, &p->units[i], a, err) <
            0)
            return -1;
    return 0;
}

static int decode_when(json *j, struct policy *p, struct error *err)
{
    json *timeout = json_get(j, "timeout");
    bool have;
    int when = POLICY_LACK_OR_MAX;
    if (decode_field_object(j, "spec.whenTryNextUnits", &have, err) < 0 ||
        decode_word(json_get(j, "policy"), "spec.whenTryNextUnits.policy", when_word,
                    POLICY_LACK_AND_NO_TERMINATING + 1, &when, err) < 0)
        return -1;
    p->when = (enum policy_when)when;
    if (timeout != NULL && !json_is_null(timeout) &&
        !policy_parse_duration(json_str(timeout), &p->timeout_ms))
        return error_set(err, ERROR_INVALID,
                         "spec.whenTryNextUnits.timeout: not a time such as 15m or 90s");
    return 0;
}

static int decode_spec(json *spec, struct policy *p, struct arena *a, struct error *err)
{
    json *keys = json_get(spec, "matchLabelKeys");
    size_t len = 0;
    int preempt = 0, strategy = 0;
    if (!json_is_object(spec))
        return error_set(err, ERROR_INVALID, "spec: must be an object, not %s",
                         json_kind_name(spec));
    if (decode_labels(json_get(spec, "selector"), "spec.selector", a, &p->selector, err) < 0 ||
        decode_word(json_get(spec, "strategy"), "spec.strategy", strategy_word, 1, &strategy, err) <
            0 ||
        decode_word(json_get(spec, "preemptPolicy"), "spec.preemptPolicy", preempt_word, 2,
                    &preempt, err) < 0 ||
        decode_field_bool(json_get(spec, "ignorePreviousPod"), "spec.ignorePreviousPod",
                          &p->ignore_previous, err) < 0 ||
        decode_field_bool(json_get(spec, "ignoreTerminatingPod"), "spec.ignoreTerminatingPod",
                          &p->ignore_terminating, err) < 0 ||
        decode_field_array(keys, "spec.matchLabelKeys", POLICY_KEYS_MAX, &len, err) < 0 ||
        decode_field_set(keys, "spec.matchLabelKeys", a, &p->match_keys, &p->match_keys_len, err) <
            0 ||
        decode_when(json_get(spec, "whenTryNextUnits"), p, err) < 0)
        return -1;
    p->preempt_before_next = preempt == 1;
    for (size_t i = 0; i < p->match_keys_len; i++)
        if (!selector_key_is_legal(p->match_keys[i]))
            return error_set(err, ERROR_INVALID,
                             "spec.matchLabelKeys: '%.80s' is not a label's key", p->match_keys[i]);
    return decode_units(json_get(spec, "units"), p, a, err);
}

static int fill_policy(json *j, struct object *o, struct arena *a, struct error *err)
{
    struct policy *p = (struct policy *)o;
    struct error wrong = ERROR_INIT;
    p->ignore_terminating = true;
    p->timeout_ms = DEFAULT_TIMEOUT_MS;
    if (decode_field_time(json_get(json_get(j, "metadata"), "creationTimestamp"),
                          "metadata.creationTimestamp", &p->created_ns, err) < 0)
        return -1;
    if (decode_spec(json_get(j, "spec"), p, a, &wrong) == 0)
        return 0;
    p->invalid = arena_strdup(a, wrong.text);
    p->units_len = 0;
    return 0;
}

DECODE_KIND(decode_resource_policy, struct policy, "resourcepolicy", true, fill_policy)
