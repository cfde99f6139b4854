// SPDX-License-Identifier: Apache-2.0
/*
 * api_pods - subresources of pods: binding, eviction, and log and exec, which need a kubelet and
 * are refused.
 *
 * A binding must behave exactly as in Kubernetes, because the scheduler's safety depends on it:
 * node, annotations, labels and PodScheduled=True appear in one version, and a pod that is bound,
 * terminating or gated, or has another uid or resourceVersion than given, is refused. A node that
 * does not exist is accepted.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/vec.h"
#include "test/local/api/api_internal.h"

/* ---- binding ---- */

static int bind_conflict(struct error *err, const char *name, const char *fmt, const char *more)
{
    char why[400];
    (void)str_format(why, sizeof why, "pod %s %s%s", name, fmt, more);
    return api_fail(err, 409, "Operation cannot be fulfilled on pods/binding \"%s\": %s", name,
                    why);
}

static int check_namespace(struct jsonnode *body, const char *ns, struct error *err)
{
    const char *own = jsonnode_str(jsonnode_path(body, "metadata", "namespace", NULL));
    if (!own || !*own || str_eq(own, ns))
        return 0;
    return api_fail(err, 400,
                    "the namespace of the provided object does not match the namespace sent on "
                    "the request");
}

/* The body of a subresource that is made: a Binding, an Eviction. */
static int read_body(struct call *c, const struct api_type *type, bool *dry, struct jsontree **out,
                     struct error *err)
{
    struct typed_notes notes = {0};
    bool strict = false;
    int rc = -1;
    if (api_dry_run(c, "CreateOptions", dry, err) == 0 &&
        api_field_validation(c, "CreateOptions", &strict, err) == 0 &&
        api_body(c, type->kind, out, err) == 0 &&
        api_check_kind(jsontree_root(*out), type, err) == 0)
        rc = api_decode(*out, type, strict, &notes, err);
    typed_notes_deinit(&notes);
    return rc;
}

static int check_binding(struct jsonnode *b, const char *ns, const char *name, struct error *err)
{
    const char *target = jsonnode_str(jsonnode_path(b, "target", "kind", NULL));
    const char *node = jsonnode_str(jsonnode_path(b, "target", "name", NULL));
    const char *own_name = jsonnode_str(jsonnode_path(b, "metadata", "name", NULL));
    if (check_namespace(b, ns, err) < 0)
        return -1;
    if (!name)
        return api_fail(err, 400, "Name parameter required.");
    if (!str_eq(str_or_empty(own_name), name))
        return api_fail(err, 400, "name in URL does not match name in Binding object");
    if (target && *target && !str_eq(target, "Node"))
        return api_fail(err, 500,
                        "target.kind: Unsupported value: \"%s\": supported values: \"Node\", "
                        "\"<empty>\"",
                        target);
    if (!node || !*node)
        return api_fail(err, 500, "target.name: Required value");
    return 0;
}

static int check_pod(const struct object *o, struct jsonnode *pod, struct jsonnode *b,
                     struct error *err)
{
    const char *uid = jsonnode_str(jsonnode_path(b, "metadata", "uid", NULL));
    const char *version = jsonnode_str(jsonnode_path(b, "metadata", "resourceVersion", NULL));
    const char *node = jsonnode_str(jsonnode_path(pod, "spec", "nodeName", NULL));
    char is[24];
    (void)str_format(is, sizeof is, "%llu", (unsigned long long)o->version);
    if (uid && *uid && api_check_uid(o, uid, err) < 0)
        return -1;
    if (version && *version && !str_eq(version, is))
        return api_fail(err, 409,
                        "Operation cannot be fulfilled on pods \"%s\": StorageError: invalid "
                        "object, Code: 4, Key: /registry/pods/%s, ResourceVersion: 0, "
                        "AdditionalErrorMsg: Precondition failed: ResourceVersion in "
                        "precondition: %s, ResourceVersion in object meta: %s",
                        o->name, o->key, version, is);
    if (jsonnode_path(pod, "metadata", "deletionTimestamp", NULL))
        return bind_conflict(err, o->name, "is being deleted, cannot be assigned to a host", "");
    if (node && *node) {
        char quoted[300];
        (void)str_format(quoted, sizeof quoted, "\"%s\"", node);
        return bind_conflict(err, o->name, "is already assigned to node ", quoted);
    }
    if (jsonnode_len(jsonnode_path(pod, "spec", "schedulingGates", NULL)) > 0)
        return bind_conflict(err, o->name, "has non-empty .spec.schedulingGates", "");
    return 0;
}

static void merge_texts(struct jsontree *t, struct jsonnode *pod, struct jsonnode *b,
                        const char *which)
{
    struct jsonnode *from = jsonnode_path(b, "metadata", which, NULL);
    if (jsonnode_len(from) == 0)
        return;
    struct jsonnode *to = jsonnode_need_path(t, pod, "metadata", which, NULL);
    for (struct jsonnode_iter it = jsonnode_iter(from); jsonnode_next(&it);)
        if (it.key && jsonnode_is_string(it.value))
            jsonnode_set(t, to, it.key, jsonnode_clone(t, it.value));
}

static int bind(struct api *a, struct object *o, struct jsonnode *b, bool dry, struct error *err)
{
    AUTO_JSONTREE *t = NULL;
    if (jsontree_parse(&t, o->text, o->text_len, err) < 0)
        return -1;
    struct jsonnode *pod = jsontree_root(t);
    if (check_pod(o, pod, b, err) < 0)
        return -1;
    jsonnode_set_str(t, jsonnode_need_object(t, pod, "spec"), "nodeName",
                     jsonnode_str(jsonnode_path(b, "target", "name", NULL)));
    merge_texts(t, pod, b, "annotations");
    merge_texts(t, pod, b, "labels");
    api_set_condition(a, t, pod, "PodScheduled", "True", NULL, NULL);
    (void)jsonnode_remove(jsonnode_get(pod, "status"), "nominatedNodeName");
    return dry ? 0 : api_store_tree(a, &kind_pods, t, false, o->version, NULL, err);
}

static void reply_created(struct call *c)
{
    struct strbuf out;
    strbuf_init(&out);
    strbuf_adds(&out, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
                      "\"status\":\"Success\",\"code\":201}");
    api_reply_text(c, 201, NULL, &out);
}

/* POST pods/NAME/binding, and POST bindings, where the name is in the body. */
void api_pods_bind(struct api *a, struct call *c, const struct api_target *t)
{
    AUTO_JSONTREE *body = NULL;
    struct error err = ERROR_INIT;
    struct object *o = NULL;
    const char *name = t->name;
    bool dry = false;
    static const struct api_type type = {"v1", "Binding", NULL};
    int rc = read_body(c, &type, &dry, &body, &err);
    if (rc == 0 && !name)
        name = jsonnode_str(jsonnode_path(jsontree_root(body), "metadata", "name", NULL));
    if (rc == 0)
        rc = check_binding(jsontree_root(body), t->ns, name, &err);
    if (rc == 0) {
        o = store_get(a->store, &kind_pods, t->ns, name);
        rc = o ? bind(a, o, jsontree_root(body), dry, &err) : api_not_found(&err, &kind_pods, name);
    }
    if (rc == 0)
        reply_created(c);
    else
        api_reply_error(c, &err, NULL, NULL);
}

/* ---- eviction ---- */

struct budgets {
    struct object *pod;
    struct VEC(struct object *) found;
};

static bool find_budget(void *arg, struct object *o)
{
    struct budgets *b = arg;
    AUTO_JSON *doc = NULL;
    struct arena arena;
    struct selector s = {0};
    arena_init(&arena, 0);
    if (json_parse(&doc, o->text, o->text_len, NULL) == 0 &&
        selector_decode(json_get(json_get(json_root(doc), "spec"), "selector"), &arena, &s, NULL) ==
            0 &&
        selector_matches(&s, &b->pod->labels))
        vec_push(&b->found, object_ref(o));
    arena_deinit(&arena);
    return true;
}

static void refuse_eviction(struct call *c, const char *why, bool retry)
{
    struct strbuf out;
    AUTO_STRBUF details;
    struct json_writer w;
    strbuf_init(&out);
    strbuf_init(&details);
    json_writer_init(&w, &details);
    json_object_begin(&w);
    json_key(&w, "causes");
    json_array_begin(&w);
    json_object_begin(&w);
    json_kv_str(&w, "reason", "DisruptionBudget");
    json_kv_str(&w, "message", why);
    json_object_end(&w);
    json_array_end(&w);
    if (retry)
        json_kv_int(&w, "retryAfterSeconds", 10);
    json_object_end(&w);
    api_status_failure(&out, 429, "TooManyRequests",
                       "Cannot evict pod as it would violate the pod's disruption budget.",
                       strbuf_str(&details));
    call_reply(c, 429, "application/json", retry ? "Retry-After: 10\r\n" : NULL, &out);
}

static int64_t number_at(struct jsonnode *root, const char *a, const char *b)
{
    int64_t n = 0;
    (void)jsonnode_int(jsonnode_path(root, a, b, NULL), &n);
    return n;
}

static bool is_ready(struct jsonnode *pod)
{
    for (struct jsonnode_iter it = jsonnode_iter(jsonnode_path(pod, "status", "conditions", NULL));
         jsonnode_next(&it);)
        if (str_eq(jsonnode_get_str(it.value, "type"), "Ready"))
            return str_eq(jsonnode_get_str(it.value, "status"), "True");
    return false;
}

/* Takes one disruption from the budget; false: it was refused and the call answered. */
static bool spend(struct api *a, struct call *c, struct object *budget, struct object *pod,
                  struct jsonnode *pod_root, bool dry)
{
    AUTO_JSONTREE *t = NULL;
    char why[400];
    if (jsontree_parse(&t, budget->text, budget->text_len, NULL) < 0)
        return true;
    struct jsonnode *root = jsontree_root(t);
    int64_t healthy = number_at(root, "status", "currentHealthy");
    int64_t needed = number_at(root, "status", "desiredHealthy");
    int64_t allowed = number_at(root, "status", "disruptionsAllowed");
    bool always =
        str_eq(jsonnode_str(jsonnode_path(root, "spec", "unhealthyPodEvictionPolicy", NULL)),
               "AlwaysAllow");
    if (!is_ready(pod_root) && (always || (healthy >= needed && needed > 0)))
        return true; /* no budget counts it */
    if (number_at(root, "status", "observedGeneration") <
        number_at(root, "metadata", "generation")) {
        (void)str_format(why, sizeof why,
                         "The disruption budget %s is still being processed by the server.",
                         budget->name);
        refuse_eviction(c, why, true);
        return false;
    }
    if (allowed <= 0) {
        (void)str_format(why, sizeof why,
                         "The disruption budget %s needs %lld healthy pods and has %lld currently",
                         budget->name, (long long)needed, (long long)healthy);
        refuse_eviction(c, why, false);
        return false;
    }
    char now[32];
    api_now(a, 0, now);
    struct jsonnode *status = jsonnode_need_object(t, root, "status");
    jsonnode_set_int(t, status, "disruptionsAllowed", allowed - 1);
    jsonnode_set_str(t, jsonnode_need_object(t, status, "disruptedPods"), pod->name, now);
    if (allowed == 1) {
        api_set_condition(a, t, root, "DisruptionAllowed", "False", "InsufficientPods", "");
        for (struct jsonnode_iter it = jsonnode_iter(jsonnode_get(status, "conditions"));
             jsonnode_next(&it);) {
            (void)jsonnode_remove(it.value, "lastProbeTime"); /* a pod's conditions alone have it */
            if (!jsonnode_get(it.value, "observedGeneration"))
                jsonnode_set_int(t, it.value, "observedGeneration",
                                 number_at(root, "status", "observedGeneration"));
        }
    }
    if (!dry)
        (void)api_store_tree(a, &kind_pdbs, t, false, budget->version, NULL, NULL);
    return true;
}

static bool set_disruption_target(void *arg, struct jsontree *t, struct jsonnode *pod)
{
    api_set_condition(arg, t, pod, "DisruptionTarget", "True", "EvictionByEvictionAPI",
                      "Eviction API: evicting");
    return true;
}

static int evict(struct api *a, struct object *pod, struct api_delete_options *d, struct error *err)
{
    AUTO_STRBUF shown;
    strbuf_init(&shown);
    if (!d->dry_run &&
        api_modify(a, &kind_pods, pod->ns, pod->name, "status", set_disruption_target, a, err) < 0)
        return -1;
    struct object *now = store_get(a->store, &kind_pods, pod->ns, pod->name);
    if (!now)
        return api_not_found(err, &kind_pods, pod->name);
    (void)object_ref(now);
    d->version = NULL; /* it was checked before the condition was set */
    int rc = api_delete_object(a, now, d, &shown, err);
    object_unref(now);
    return rc;
}

/* No budget counts pods that are pending, finished or being deleted. */
static bool ignores_budgets(struct jsonnode *pod)
{
    const char *phase = jsonnode_str(jsonnode_path(pod, "status", "phase", NULL));
    return !phase || str_eq(phase, "Pending") || str_eq(phase, "Succeeded") ||
           str_eq(phase, "Failed") || jsonnode_path(pod, "metadata", "deletionTimestamp", NULL);
}

static int check_eviction(struct jsonnode *e, const struct api_target *t, struct object *pod,
                          struct error *err)
{
    const char *name = jsonnode_str(jsonnode_path(e, "metadata", "name", NULL));
    if (check_namespace(e, t->ns, err) < 0)
        return -1;
    if (!str_eq(name, t->name))
        return api_fail(err, 400, "name in URL does not match name in Eviction object");
    return pod ? 0 : api_not_found(err, &kind_pods, t->name);
}

/* Asks the pod's budgets, then deletes it. *answered: a budget refused, and the client knows. */
static int evict_within_budgets(struct api *a, struct call *c, struct object *pod,
                                struct api_delete_options *d, bool *answered, struct error *err)
{
    AUTO_JSONTREE *tree = NULL;
    struct budgets b = {.pod = pod};
    int rc = jsontree_parse(&tree, pod->text, pod->text_len, err);
    if (rc == 0 && !ignores_budgets(jsontree_root(tree)))
        store_each(a->store, &kind_pdbs, pod->ns, NULL, find_budget, &b);
    if (rc == 0 && b.found.len > 1)
        rc = api_fail(err, 500,
                      "This pod has more than one PodDisruptionBudget, which the eviction "
                      "subresource does not support.");
    if (rc == 0 && b.found.len == 1)
        *answered = !spend(a, c, b.found.items[0], pod, jsontree_root(tree), d->dry_run);
    for (size_t i = 0; i < b.found.len; i++)
        object_unref(b.found.items[i]);
    vec_deinit(&b.found);
    if (rc < 0 || *answered)
        return rc;
    /* Asked after the budgets, as in reality. */
    return api_check_preconditions(pod, d, err) < 0 ? -1 : evict(a, pod, d, err);
}

static void eviction(struct api *a, struct call *c, const struct api_target *t)
{
    AUTO_JSONTREE *body = NULL;
    struct error err = ERROR_INIT;
    struct api_delete_options d = {0};
    bool dry = false;
    bool answered = false;
    struct object *pod = store_get(a->store, &kind_pods, t->ns, t->name);
    static const struct api_type type = {"policy/v1", "Eviction", "policy/v1beta1"};
    int rc = read_body(c, &type, &dry, &body, &err);
    if (rc == 0)
        rc = api_delete_options(jsonnode_get(jsontree_root(body), "deleteOptions"), &d, &err);
    if (rc == 0) {
        d.dry_run = d.dry_run || dry;
        rc = check_eviction(jsontree_root(body), t, pod, &err);
    }
    if (rc == 0 && pod) {
        (void)object_ref(pod);
        rc = evict_within_budgets(a, c, pod, &d, &answered, &err);
        object_unref(pod);
    }
    if (rc < 0)
        api_reply_error(c, &err, NULL, NULL);
    else if (!answered)
        reply_created(c);
}

/* ---- the kubelet's streams ---- */

static void not_simulated(struct api *a, struct call *c, const struct api_target *t,
                          const char *what)
{
    struct error err = ERROR_INIT;
    if (!store_get(a->store, t->kind, str_or_empty(t->ns), t->name))
        (void)api_not_found(&err, t->kind, t->name);
    else
        (void)api_fail(&err, 501, "%s not simulated by cosched-local", what);
    api_reply_error(c, &err, NULL, NULL);
}

static void refuse_method(struct call *c)
{
    struct error err = ERROR_INIT;
    (void)api_fail(&err, 405, "the server does not allow this method on the requested resource");
    api_reply_error(c, &err, NULL, NULL);
}

bool api_pods_sub(struct api *a, struct call *c, const struct api_target *t)
{
    const char *m = call_method(c);
    if (t->kind == &kind_service_accounts && str_eq(t->sub, "token")) {
        not_simulated(a, c, t, "tokens of service accounts are");
        return true;
    }
    if (t->kind != &kind_pods)
        return false;
    if (str_eq(t->sub, "binding") || str_eq(t->sub, "eviction")) {
        if (!str_eq(m, "POST"))
            refuse_method(c);
        else if (str_eq(t->sub, "binding"))
            api_pods_bind(a, c, t);
        else
            eviction(a, c, t);
    } else if (str_eq(t->sub, "log")) {
        if (str_eq(m, "GET"))
            not_simulated(a, c, t, "logs are");
        else
            refuse_method(c);
    } else if (str_eq(t->sub, "exec") || str_eq(t->sub, "attach") ||
               str_eq(t->sub, "portforward") || str_eq(t->sub, "proxy")) {
        char what[64];
        (void)str_format(what, sizeof what, "%s is", t->sub);
        not_simulated(a, c, t, what);
    } else {
        return false;
    }
    return true;
}
