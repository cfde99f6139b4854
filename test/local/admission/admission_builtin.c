// SPDX-License-Identifier: Apache-2.0
/*
 * admission_builtin - what kube-apiserver does to objects by itself: NamespaceLifecycle,
 * ServiceAccount (that it exists; there are no tokens to mount) and Priority. What needs only the
 * pod (its account's name, tolerations for unhealthy nodes) is among its defaults, kinds_pod.c. All
 * of it is idempotent.
 *
 * A missing service account is refused, as by the real server, except "default": here a pod may be
 * created directly after its namespace, where a real client would have to wait for the controller.
 */
#include "test/local/admission/admission_internal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/vec.h"

enum { PRIORITY_CLUSTER_CRITICAL = 2000000000, PRIORITY_NODE_CRITICAL = 2000001000 };

struct class
{
    const char *name;
    int64_t value;
    const char *policy;
    bool global;
};

struct admission_builtin {
    struct store *store;
    struct store_listener listener;
    bool stale;
    struct arena arena; /* of the classes */
    struct map classes;
    struct class *fallback; /* globalDefault, or NULL */
};

int admission_forbid(struct error *err, const struct kind *k, const char *name, const char *fmt,
                     ...)
{
    struct strbuf b = {0};
    va_list ap;
    va_start(ap, fmt);
    strbuf_vaddf(&b, fmt, ap);
    va_end(ap);
    error_set(err, ERROR_DENIED, "%s%s%s \"%s\" is forbidden: %s", k->resource,
              *k->group ? "." : "", k->group, name, strbuf_str(&b));
    if (err)
        err->http_status = 403;
    strbuf_deinit(&b);
    return -1;
}

const char *admission_name(const struct admission_request *r, const struct jsonnode *object)
{
    const struct jsonnode *meta = jsonnode_get(object, "metadata");
    const char *name = r->name;
    if (!name || !*name)
        name = jsonnode_get_str(meta, "name");
    if (!name || !*name)
        name = jsonnode_get_str(meta, "generateName");
    return str_or_empty(name);
}

/* ---- namespaces ---- */

static bool is_terminating(const struct object *ns)
{
    if (!strstr(ns->text, "\"deletionTimestamp\""))
        return false;
    AUTO_JSON *doc = NULL;
    if (json_parse(&doc, ns->text, ns->text_len, NULL) < 0)
        return false;
    return json_get_str(json_get(json_root(doc), "metadata"), "deletionTimestamp") != NULL;
}

static int check_namespace(struct admission_builtin *b, const struct admission_request *r,
                           const struct jsonnode *object, struct error *err)
{
    if (r->kind == &kind_namespaces) {
        static const char *const kept[] = {"default", "kube-system", "kube-public"};
        for (size_t i = 0; str_eq(r->operation, "DELETE") && i < sizeof kept / sizeof *kept; i++)
            if (str_eq(r->name, kept[i]))
                return admission_forbid(err, r->kind, r->name, "this namespace may not be deleted");
        return 0;
    }
    if (!r->kind->namespaced || !str_eq(r->operation, "CREATE"))
        return 0;
    const char *ns = str_or_empty(r->ns);
    const struct object *found = store_get(b->store, &kind_namespaces, NULL, ns);
    if (!found) {
        error_set(err, ERROR_NOT_FOUND, "namespaces \"%s\" not found", ns);
        if (err)
            err->http_status = 404;
        return -1;
    }
    if (is_terminating(found))
        return admission_forbid(err, r->kind, admission_name(r, object),
                                "unable to create new content in namespace %s because it is "
                                "being terminated",
                                ns);
    return 0;
}

/* ---- pods ---- */

static int check_service_account(struct admission_builtin *b, const struct admission_request *r,
                                 const struct jsonnode *pod, const struct jsonnode *spec,
                                 struct error *err)
{
    const char *name = jsonnode_get_str(spec, "serviceAccountName");
    if (!name || !*name || str_eq(name, "default") ||
        store_get(b->store, &kind_service_accounts, r->ns, name))
        return 0;
    return admission_forbid(err, r->kind, admission_name(r, pod),
                            "error looking up service account %s/%s: serviceaccount \"%s\" not "
                            "found",
                            str_or_empty(r->ns), name, name);
}

/* ---- priority ---- */

static bool read_class(void *arg, struct object *o)
{
    struct admission_builtin *b = arg;
    AUTO_JSON *doc = NULL;
    if (json_parse(&doc, o->text, o->text_len, NULL) < 0)
        return true;
    json *root = json_root(doc);
    struct class *c = arena_new(&b->arena, struct class, 1);
    c->name = arena_strdup(&b->arena, o->name);
    json_get_int(root, "value", &c->value);
    const char *policy = json_get_str(root, "preemptionPolicy");
    c->policy = arena_strdup(&b->arena, policy ? policy : "PreemptLowerPriority");
    c->global = json_get_bool(root, "globalDefault", false);
    map_put(&b->classes, c->name, c);
    /* Of several, which only a race can make, the lowest counts. */
    if (c->global && (!b->fallback || c->value < b->fallback->value))
        b->fallback = c;
    return true;
}

static void read_classes(struct admission_builtin *b)
{
    if (!b->stale)
        return;
    b->stale = false;
    map_deinit(&b->classes);
    map_init(&b->classes);
    arena_reset(&b->arena);
    b->fallback = NULL;
    store_each(b->store, &kind_priority_classes, NULL, NULL, read_class, b);
}

static const struct class *find_class(struct admission_builtin *b, const char *name)
{
    static const struct class system[] = {
        {"system-cluster-critical", PRIORITY_CLUSTER_CRITICAL, "PreemptLowerPriority", false},
        {"system-node-critical", PRIORITY_NODE_CRITICAL, "PreemptLowerPriority", false},
    };
    read_classes(b);
    const struct class *found = map_get(&b->classes, name);
    for (size_t i = 0; !found && i < sizeof system / sizeof *system; i++)
        if (str_eq(name, system[i].name))
            found = &system[i];
    return found;
}

static int set_priority(struct admission_builtin *b, const struct admission_request *r,
                        struct jsontree *t, struct jsonnode *spec, struct error *err)
{
    static const struct class none = {"", 0, "PreemptLowerPriority", false};
    const char *pod = admission_name(r, jsontree_root(t));
    const char *name = jsonnode_get_str(spec, "priorityClassName");
    read_classes(b);
    const struct class *c = &none;
    if (name && *name) {
        c = find_class(b, name);
        if (!c)
            return admission_forbid(err, r->kind, pod, "no PriorityClass with name %s was found",
                                    name);
    } else if (b->fallback) {
        c = b->fallback;
        jsonnode_set_str(t, spec, "priorityClassName", c->name);
    }
    const struct jsonnode *given = jsonnode_get(spec, "priority");
    int64_t value = 0;
    if (given && !jsonnode_is_null(given)) {
        jsonnode_int(given, &value);
        if (value != c->value)
            return admission_forbid(err, r->kind, pod,
                                    "the integer value of priority (%lld) must not be provided in "
                                    "pod spec; priority admission controller computed %lld from "
                                    "the given PriorityClass name",
                                    (long long)value, (long long)c->value);
    } else
        jsonnode_set_int(t, spec, "priority", c->value);
    const char *policy = jsonnode_get_str(spec, "preemptionPolicy");
    if (!policy || !*policy)
        jsonnode_set_str(t, spec, "preemptionPolicy", c->policy);
    else if (!str_eq(policy, c->policy))
        return admission_forbid(err, r->kind, pod,
                                "the string value of PreemptionPolicy (%s) must not be provided "
                                "in pod spec; priority admission controller computed %s from the "
                                "given PriorityClass name",
                                policy, c->policy);
    return 0;
}

/* There can be only one globalDefault. */
static int check_class(struct admission_builtin *b, const struct admission_request *r,
                       const struct jsonnode *object, struct error *err)
{
    if (!jsonnode_bool(jsonnode_get(object, "globalDefault"), false) ||
        str_eq(r->operation, "DELETE"))
        return 0;
    const char *name = admission_name(r, object);
    read_classes(b);
    if (b->fallback && !str_eq(b->fallback->name, name))
        return admission_forbid(err, r->kind, name,
                                "PriorityClass %s is already marked as default. Only one default "
                                "can exist",
                                b->fallback->name);
    return 0;
}

int admission_builtin_run(struct admission_builtin *b, const struct admission_request *r,
                          struct jsontree *object, struct error *err)
{
    struct jsonnode *root = object ? jsontree_root(object) : NULL;
    if (check_namespace(b, r, root, err) < 0)
        return -1;
    if (r->sub || !root)
        return 0;
    if (r->kind == &kind_priority_classes)
        return check_class(b, r, root, err);
    struct jsonnode *spec = jsonnode_get(root, "spec");
    if (r->kind != &kind_pods || !str_eq(r->operation, "CREATE") || !jsonnode_is_object(spec))
        return 0;
    if (check_service_account(b, r, root, spec, err) < 0)
        return -1;
    return set_priority(b, r, object, spec, err);
}

static void class_changed(void *arg, const struct store_event *e)
{
    (void)e;
    struct admission_builtin *b = arg;
    b->stale = true;
}

struct admission_builtin *admission_builtin_new(struct store *s)
{
    struct admission_builtin *b = mem_new(struct admission_builtin, 1);
    b->store = s;
    b->stale = true;
    arena_init(&b->arena, 0);
    map_init(&b->classes);
    b->listener =
        (struct store_listener){.kind = &kind_priority_classes, .fn = class_changed, .arg = b};
    store_listen(s, &b->listener);
    return b;
}

void admission_builtin_free(struct admission_builtin *b)
{
    if (!b)
        return;
    store_unlisten(b->store, &b->listener);
    map_deinit(&b->classes);
    arena_deinit(&b->arena);
    free(b);
}
