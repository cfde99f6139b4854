// SPDX-License-Identifier: Apache-2.0
/*
 * kinds_pod - what pods have beyond a PodSpec: defaults that templates do not get, what the real
 * server's admission plugins always add (tolerations for unhealthy nodes, the service account's
 * name), their first status, and the rule that a pod's spec is frozen but for a few fields.
 *
 * Left out: the volume with the service account's token. Nothing here would mount it.
 */
#include "test/local/kinds/kinds_amount.h"
#include "test/local/kinds/kinds_fill.h"
#include "test/local/kinds/kinds_row.h"
#include "test/local/kinds/kinds_spec.h"

/* ---- defaults ---- */

/* A limit without a request is the request. */
static void requests_from_limits(struct jsontree *t, struct jsonnode *container)
{
    struct jsonnode *resources = jsonnode_get(container, "resources");
    struct jsonnode *limits = jsonnode_get(resources, "limits");
    if (jsonnode_len(limits) == 0)
        return;
    struct jsonnode *requests = kinds_fill_object(t, resources, "requests");
    for (struct jsonnode_iter it = jsonnode_iter(limits); requests && jsonnode_next(&it);)
        if (it.key && kinds_fill_absent(jsonnode_get(requests, it.key)))
            jsonnode_set(t, requests, it.key, jsonnode_clone(t, it.value));
}

/* On the host's network a port is the host's port. */
static void host_ports(struct jsontree *t, struct jsonnode *container)
{
    for (struct jsonnode_iter it = jsonnode_iter(jsonnode_get(container, "ports"));
         jsonnode_next(&it);) {
        int64_t port;
        if (jsonnode_int(jsonnode_get(it.value, "containerPort"), &port))
            kinds_fill_int(t, it.value, "hostPort", port);
    }
}

/* A pod stays for five minutes on a node that is lost, unless it says otherwise. */
static void tolerate(struct jsontree *t, struct jsonnode *spec, const char *taint)
{
    struct jsonnode *list = jsonnode_get(spec, "tolerations");
    if (!kinds_fill_absent(list) && !jsonnode_is_array(list))
        return;
    for (struct jsonnode_iter it = jsonnode_iter(list); jsonnode_next(&it);) {
        const char *key = str_or_empty(jsonnode_get_str(it.value, "key"));
        const char *effect = str_or_empty(jsonnode_get_str(it.value, "effect"));
        if ((!*key || str_eq(key, taint)) && (!*effect || str_eq(effect, "NoExecute")))
            return;
    }
    if (kinds_fill_absent(list)) {
        list = jsonnode_array(t);
        jsonnode_set(t, spec, "tolerations", list);
    }
    struct jsonnode *toleration = jsonnode_object(t);
    jsonnode_set_str(t, toleration, "key", taint);
    jsonnode_set_str(t, toleration, "operator", "Exists");
    jsonnode_set_str(t, toleration, "effect", "NoExecute");
    jsonnode_set_int(t, toleration, "tolerationSeconds", 300);
    jsonnode_append(list, toleration);
}

/* What the containers ask of cpu and memory, folded together. */
struct asked {
    bool any;     /* some container asks for something */
    bool all_set; /* every container has both limits, equal to its requests */
};

static void ask(struct asked *a, struct jsonnode *containers)
{
    static const char *const both[] = {"cpu", "memory"};
    for (struct jsonnode_iter it = jsonnode_iter(containers); jsonnode_next(&it);) {
        struct jsonnode *resources = jsonnode_get(it.value, "resources");
        for (size_t i = 0; i < 2; i++) {
            struct jsonnode *request = jsonnode_path(resources, "requests", both[i], NULL);
            struct jsonnode *limit = jsonnode_path(resources, "limits", both[i], NULL);
            if (!kinds_amount_is_zero(request) || !kinds_amount_is_zero(limit))
                a->any = true;
            if (kinds_amount_is_zero(limit) ||
                (!kinds_amount_is_zero(request) && kinds_amount_compare(request, limit) != 0))
                a->all_set = false;
        }
    }
}

static const char *quality(struct jsonnode *spec)
{
    struct asked a = {.all_set = true};
    ask(&a, jsonnode_get(spec, "containers"));
    ask(&a, jsonnode_get(spec, "initContainers"));
    return !a.any ? "BestEffort" : a.all_set ? "Guaranteed" : "Burstable";
}

void kinds_pod_defaults(struct jsontree *t, struct jsonnode *object)
{
    static const char *const containers[] = {"containers", "initContainers"};
    struct jsonnode *spec = kinds_fill_object(t, object, "spec");
    if (!spec)
        return;
    kinds_spec_defaults(t, spec);
    bool host = jsonnode_bool(jsonnode_get(spec, "hostNetwork"), false);
    for (size_t i = 0; i < sizeof containers / sizeof *containers; i++)
        for (struct jsonnode_iter it = jsonnode_iter(jsonnode_get(spec, containers[i]));
             jsonnode_next(&it);) {
            requests_from_limits(t, it.value);
            if (host)
                host_ports(t, it.value);
        }
    kinds_fill_bool(t, spec, "enableServiceLinks", true);
    int64_t grace;
    if (jsonnode_int(jsonnode_get(spec, "terminationGracePeriodSeconds"), &grace) && grace < 0)
        jsonnode_set_int(t, spec, "terminationGracePeriodSeconds", 1);
    const char *account = jsonnode_get_str(spec, "serviceAccountName");
    if (!account || !*account)
        account = jsonnode_get_str(spec, "serviceAccount");
    kinds_fill_str(t, spec, "serviceAccountName", account && *account ? account : "default");
    kinds_fill_str(t, spec, "serviceAccount", jsonnode_get_str(spec, "serviceAccountName"));
    /* A priority class sets it. */
    const char *class = jsonnode_get_str(spec, "priorityClassName");
    if (!class || !*class)
        kinds_fill_str(t, spec, "preemptionPolicy", "PreemptLowerPriority");
    tolerate(t, spec, "node.kubernetes.io/not-ready");
    tolerate(t, spec, "node.kubernetes.io/unreachable");
    struct jsonnode *status = kinds_fill_object(t, object, "status");
    if (!status)
        return;
    kinds_fill_str(t, status, "phase", "Pending");
    kinds_fill_str(t, status, "qosClass", quality(spec));
}

void kinds_pod_fill_conditions(struct jsontree *t, struct jsonnode *object)
{
    static const char *const times[] = {"lastProbeTime", "lastTransitionTime"};
    struct jsonnode *list = jsonnode_path(object, "status", "conditions", NULL);
    for (struct jsonnode_iter it = jsonnode_iter(list); jsonnode_next(&it);)
        for (size_t i = 0; jsonnode_is_object(it.value) && i < 2; i++)
            if (!jsonnode_get(it.value, times[i]))
                jsonnode_set(t, it.value, times[i], jsonnode_null(t));
}

/* ---- rules ---- */

int kinds_pod_validate(struct jsonnode *object, struct error *err)
{
    struct kinds_check c = {.count = 0};
    kinds_check_metadata(&c, object, KINDS_NAME_SUBDOMAIN);
    kinds_spec_check(&c, "spec", jsonnode_get(object, "spec"));
    struct jsonnode *gates = jsonnode_path(object, "spec", "schedulingGates", NULL);
    const char *node = jsonnode_str(jsonnode_path(object, "spec", "nodeName", NULL));
    if (jsonnode_len(gates) > 0 && node && *node)
        kinds_check_forbidden(&c, "spec.nodeName",
                              "cannot be set until all schedulingGates have been cleared");
    return kinds_check_done(&c, object, err);
}

static void take_images(struct jsontree *t, struct jsonnode *spec, struct jsonnode *from,
                        const char *list)
{
    struct jsonnode_iter mine = jsonnode_iter(jsonnode_get(spec, list));
    struct jsonnode_iter theirs = jsonnode_iter(jsonnode_get(from, list));
    while (jsonnode_next(&mine) && jsonnode_next(&theirs)) {
        struct jsonnode *image = jsonnode_get(theirs.value, "image");
        if (image && jsonnode_is_object(mine.value))
            jsonnode_set(t, mine.value, "image", jsonnode_clone(t, image));
    }
}

static void take(struct jsontree *t, struct jsonnode *spec, struct jsonnode *from, const char *key)
{
    struct jsonnode *n = jsonnode_get(from, key);
    if (n)
        jsonnode_set(t, spec, key, jsonnode_clone(t, n));
    else
        jsonnode_remove(spec, key);
}

/* Is every element of a in b? */
static bool contained(struct jsonnode *a, struct jsonnode *b)
{
    for (struct jsonnode_iter it = jsonnode_iter(a); jsonnode_next(&it);) {
        bool found = false;
        for (struct jsonnode_iter other = jsonnode_iter(b); !found && jsonnode_next(&other);)
            found = jsonnode_equal(it.value, other.value);
        if (!found)
            return false;
    }
    return true;
}

/* Each toleration that was there is still there; only how long it lasts may have changed. */
static bool tolerations_kept(struct jsontree *t, struct jsonnode *old, struct jsonnode *now)
{
    struct jsonnode *a = jsonnode_clone(t, old), *b = jsonnode_clone(t, now);
    struct jsonnode *lists[] = {a, b};
    for (size_t i = 0; i < 2; i++)
        for (struct jsonnode_iter it = jsonnode_iter(lists[i]); jsonnode_next(&it);)
            if (jsonnode_is_object(it.value))
                jsonnode_remove(it.value, "tolerationSeconds");
    return contained(a, b);
}

static const char frozen[] =
    "pod updates may not change fields other than "
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

/* While a pod is gated its node selector may become narrower, and gates may be taken away. */
static void take_gated(struct kinds_check *c, struct jsontree *t, struct jsonnode *spec,
                       struct jsonnode *from)
{
    struct jsonnode *old_gates = jsonnode_get(from, "schedulingGates");
    struct jsonnode *gates = jsonnode_get(spec, "schedulingGates");
    size_t i = 0;
    for (struct jsonnode_iter gate = jsonnode_iter(gates); jsonnode_next(&gate); i++) {
        const char *name = str_or_empty(jsonnode_get_str(gate.value, "name"));
        bool known = false;
        for (struct jsonnode_iter it = jsonnode_iter(old_gates); jsonnode_next(&it);)
            known = known || str_eq(jsonnode_get_str(it.value, "name"), name);
        if (!known)
            kinds_check_add(c,
                            "spec.schedulingGates[%zu].name: Forbidden: only deletion is allowed, "
                            "but found new scheduling gate '%s'",
                            i, name);
    }
    if (jsonnode_len(old_gates) > 0) {
        struct jsonnode *selector = jsonnode_get(from, "nodeSelector");
        bool kept = true;
        for (struct jsonnode_iter it = jsonnode_iter(selector); jsonnode_next(&it);)
            kept =
                kept && jsonnode_equal(it.value, jsonnode_path(spec, "nodeSelector", it.key, NULL));
        if (!kept)
            kinds_check_invalid_node(
                c, "spec.nodeSelector", jsonnode_get(spec, "nodeSelector"),
                "only additions to spec.nodeSelector are allowed (no mutations "
                "or deletions)");
        take(t, spec, from, "nodeSelector");
        if (kinds_fill_absent(jsonnode_path(from, "affinity", "nodeAffinity", NULL)) &&
            !kinds_fill_absent(jsonnode_path(spec, "affinity", "nodeAffinity", NULL)))
            take(t, spec, from, "affinity");
    }
    take(t, spec, from, "schedulingGates");
}

int kinds_pod_validate_update(struct jsonnode *old, struct jsonnode *updated, struct error *err)
{
    struct kinds_check c = {.count = 0};
    struct jsonnode *before = jsonnode_get(old, "spec");
    struct jsonnode *after = jsonnode_get(updated, "spec");
    if (jsonnode_equal(before, after))
        return kinds_check_done(&c, updated, err);
    AUTO_JSONTREE *t = jsontree_new();
    struct jsonnode *spec = jsonnode_clone(t, after);
    if (!jsonnode_is_object(spec) || !jsonnode_is_object(before)) {
        kinds_check_forbidden(&c, "spec", frozen);
        return kinds_check_done(&c, updated, err);
    }
    if (jsonnode_len(jsonnode_get(before, "containers")) !=
        jsonnode_len(jsonnode_get(after, "containers")))
        kinds_check_forbidden(&c, "spec.containers",
                              "pod updates may not add or remove containers");
    if (jsonnode_len(jsonnode_get(before, "initContainers")) !=
        jsonnode_len(jsonnode_get(after, "initContainers")))
        kinds_check_forbidden(&c, "spec.initContainers",
                              "pod updates may not add or remove containers");
    take_images(t, spec, before, "containers");
    take_images(t, spec, before, "initContainers");
    int64_t was = 0, now = 0;
    bool had = jsonnode_int(jsonnode_get(before, "activeDeadlineSeconds"), &was);
    bool has = jsonnode_int(jsonnode_get(after, "activeDeadlineSeconds"), &now);
    if (had && !has)
        kinds_check_add(&c,
                        "spec.activeDeadlineSeconds: Invalid value: null: must not update from a "
                        "positive integer to nil value");
    else if (had && now > was)
        kinds_check_add(&c,
                        "spec.activeDeadlineSeconds: Invalid value: %lld: must be less than or "
                        "equal to previous value",
                        (long long)now);
    else if (has && (now < 1 || now > INT32_MAX))
        kinds_check_add(&c,
                        "spec.activeDeadlineSeconds: Invalid value: %lld: must be between 1 and "
                        "2147483647, inclusive",
                        (long long)now);
    take(t, spec, before, "activeDeadlineSeconds");
    if (tolerations_kept(t, jsonnode_get(before, "tolerations"),
                         jsonnode_get(after, "tolerations")))
        take(t, spec, before, "tolerations");
    else
        kinds_check_forbidden(
            &c, "spec.tolerations",
            "existing toleration can not be modified except its tolerationSeconds");
    if (jsonnode_int(jsonnode_get(before, "terminationGracePeriodSeconds"), &was) && was < 0 &&
        jsonnode_int(jsonnode_get(after, "terminationGracePeriodSeconds"), &now) && now == 1)
        take(t, spec, before, "terminationGracePeriodSeconds");
    take_gated(&c, t, spec, before);
    if (c.count == 0 && !jsonnode_equal(spec, before))
        kinds_check_forbidden(&c, "spec", frozen);
    return kinds_check_done(&c, updated, err);
}

/* The quality of service follows from the spec. */
int kinds_pod_validate_status(struct jsonnode *old, struct jsonnode *updated, struct error *err)
{
    struct kinds_check c = {.count = 0};
    struct jsonnode *was = jsonnode_path(old, "status", "qosClass", NULL);
    struct jsonnode *now = jsonnode_path(updated, "status", "qosClass", NULL);
    size_t i = 0;
    if (was && !jsonnode_equal(was, now))
        kinds_check_invalid_node(&c, "status.qosClass", now, "field is immutable");
    for (struct jsonnode_iter it =
             jsonnode_iter(jsonnode_path(updated, "status", "conditions", NULL));
         jsonnode_next(&it); i++) {
        char at[64];
        str_format(at, sizeof at, "status.conditions[%zu].Type", i);
        kinds_check_qualified(&c, at, str_or_empty(jsonnode_get_str(it.value, "type")));
    }
    return kinds_check_done(&c, updated, err);
}
