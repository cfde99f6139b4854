// SPDX-License-Identifier: Apache-2.0
/*
 * api_delete - delete and deletecollection.
 *
 * What happens to an object (api_delete_object):
 *
 *   finalizers, or foregroundDeletion or orphan by propagation   deletionTimestamp is set; it goes
 *                                                                when an update takes the last
 *                                                                finalizer off (api_write.c)
 *   a namespace                                                   Terminating; it goes when its
 *                                                                 spec.finalizers are empty
 *                                                                 (/finalize)
 *   a pod that is bound and not finished, with a grace period     deletionTimestamp in the future;
 *                                                                 its kubelet deletes it again with
 *                                                                 grace 0
 *   a pod that has such a grace already                           stays as it is; only a shorter
 *                                                                 grace that is asked for brings
 *                                                                 the end nearer
 *   any other pod                                                 deletionTimestamp is set and it
 *                                                                 goes: watches see MODIFIED, then
 *                                                                 DELETED (tried)
 *   anything else                                                 it goes
 *
 * The garbage collector (controllers.h) handles dependents and the finalizers foregroundDeletion
 * and orphan.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "test/local/api/api_internal.h"

static const char FOREGROUND[] = "foregroundDeletion";
static const char ORPHAN[] = "orphan";

/* ---- options ---- */

static int read_policy(const char *policy, const char *orphan, struct api_delete_options *d,
                       struct error *err)
{
    if (policy && *policy && orphan)
        return api_fail(
            err, 422,
            "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid "
            "value: \"%s\": orphanDependents and deletionPropagation cannot be both set",
            policy);
    d->how_given = (policy && *policy) || orphan;
    if (orphan)
        d->how = api_query_bool(orphan) ? API_ORPHAN : API_BACKGROUND;
    else if (!policy || !*policy || str_eq(policy, "Background"))
        d->how = API_BACKGROUND;
    else if (str_eq(policy, "Foreground"))
        d->how = API_FOREGROUND;
    else if (str_eq(policy, "Orphan"))
        d->how = API_ORPHAN;
    else
        return api_fail(err, 422,
                        "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported "
                        "value: \"%s\": supported values: \"Foreground\", \"Background\", "
                        "\"Orphan\", \"nil\"",
                        policy);
    return 0;
}

int api_delete_options(struct jsonnode *o, struct api_delete_options *d, struct error *err)
{
    *d = (struct api_delete_options){0};
    d->grace_given = jsonnode_int(jsonnode_get(o, "gracePeriodSeconds"), &d->grace_s);
    for (struct jsonnode_iter it = jsonnode_iter(jsonnode_get(o, "dryRun")); jsonnode_next(&it);) {
        if (!str_eq(jsonnode_str(it.value), "All"))
            return api_fail(err, 422,
                            "DeleteOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: "
                            "[\"%s\"]: supported values: \"All\"",
                            str_or_empty(jsonnode_str(it.value)));
        d->dry_run = true;
    }
    struct jsonnode *orphan = jsonnode_get(o, "orphanDependents");
    d->uid = jsonnode_str(jsonnode_path(o, "preconditions", "uid", NULL));
    d->version = jsonnode_str(jsonnode_path(o, "preconditions", "resourceVersion", NULL));
    return read_policy(
        jsonnode_get_str(o, "propagationPolicy"),
        jsonnode_is_bool(orphan) ? jsonnode_bool(orphan, false) ? "true" : "false" : NULL, d, err);
}

/* A body replaces the query, as in the API server. The strings belong to the tree or the call. */
static int read_options(struct call *c, struct api_delete_options *d, struct jsontree **body,
                        struct error *err)
{
    size_t n = 0;
    struct error why = ERROR_INIT;
    (void)call_body(c, &n);
    *body = NULL;
    *d = (struct api_delete_options){.grace_given = call_query(c, "gracePeriodSeconds") != NULL};
    if (n == 0)
        return api_dry_run(c, "DeleteOptions", &d->dry_run, err) < 0 ||
                       api_query_int(c, "gracePeriodSeconds", 0, &d->grace_s, err) < 0 ||
                       read_policy(call_query(c, "propagationPolicy"),
                                   call_query(c, "orphanDependents"), d, err) < 0
                   ? -1
                   : 0;
    if (api_body(c, NULL, body, err) < 0)
        return -1;
    struct jsonnode *o = jsontree_root(*body);
    const char *kind = jsonnode_get_str(o, "kind");
    if (kind && *kind && !str_eq(kind, "DeleteOptions"))
        return api_fail(err, 400,
                        "no kind \"%s\" is registered for version \"%s\" in scheme "
                        "\"pkg/runtime/scheme.go:111\"",
                        kind, str_or_empty(jsonnode_get_str(o, "apiVersion")));
    if (typed_decode(*body, NULL, "DeleteOptions", NULL, &why) < 0)
        return api_fail(err, 400, "%s", why.text);
    return api_delete_options(o, d, err);
}

/* ---- one object ---- */

int api_check_preconditions(const struct object *o, const struct api_delete_options *d,
                            struct error *err)
{
    char version[24];
    const struct kind *k = o->kind;
    (void)str_format(version, sizeof version, "%llu", (unsigned long long)o->version);
    if (d->uid && !str_eq(d->uid, o->uid) && k == &kind_namespaces)
        return api_fail(err, 409,
                        "Operation cannot be fulfilled on namespaces \"%s\": Precondition failed: "
                        "UID in precondition: %s, UID in object meta: %s",
                        o->name, d->uid, o->uid);
    if (d->uid && !str_eq(d->uid, o->uid))
        return api_fail(err, 409,
                        "Operation cannot be fulfilled on %s%s%s \"%s\": the UID in the "
                        "precondition (%s) does not match the UID in record (%s). The object might "
                        "have been deleted and then recreated",
                        k->kind, *k->group ? "." : "", k->group, o->name, d->uid, o->uid);
    if (d->version && !str_eq(d->version, version))
        return api_fail(err, 409,
                        "Operation cannot be fulfilled on %s%s%s \"%s\": the ResourceVersion in "
                        "the precondition (%s) does not match the ResourceVersion in record (%s). "
                        "The object might have been modified",
                        k->kind, *k->group ? "." : "", k->group, o->name, d->version, version);
    return 0;
}

static void set_finalizer(struct jsontree *t, struct jsonnode *meta, const char *name, bool wanted)
{
    struct jsonnode *list = jsonnode_get(meta, "finalizers");
    for (size_t i = 0; i < jsonnode_len(list); i++) {
        if (!str_eq(jsonnode_str(jsonnode_at(list, i)), name))
            continue;
        if (!wanted)
            (void)jsonnode_remove_at(list, i);
        return;
    }
    if (!wanted)
        return;
    if (!jsonnode_is_array(list)) {
        list = jsonnode_array(t);
        jsonnode_set(t, meta, "finalizers", list);
    }
    jsonnode_append(list, jsonnode_string(t, name));
}

/* How long a pod may take to end. */
static int64_t grace_of(struct jsonnode *root, const struct kind *k,
                        const struct api_delete_options *d)
{
    int64_t grace = 0; /* a pod that does not say it goes at once */
    const char *node = jsonnode_str(jsonnode_path(root, "spec", "nodeName", NULL));
    const char *phase = jsonnode_str(jsonnode_path(root, "status", "phase", NULL));
    if (!k->has_grace || !node || !*node || str_eq(phase, "Succeeded") || str_eq(phase, "Failed"))
        return 0;
    (void)jsonnode_int(jsonnode_path(root, "spec", "terminationGracePeriodSeconds", NULL), &grace);
    if (d->grace_given)
        grace = d->grace_s;
    return grace < 0 ? 1 : grace;
}

static void mark(struct api *a, struct jsontree *t, const struct kind *k, int64_t grace)
{
    struct jsonnode *meta = jsonnode_get(jsontree_root(t), "metadata");
    int64_t generation = 0;
    char when[32];
    api_now(a, grace, when);
    jsonnode_set_str(t, meta, "deletionTimestamp", when);
    if (k != &kind_namespaces)
        jsonnode_set_int(t, meta, "deletionGracePeriodSeconds", grace);
    if (jsonnode_int(jsonnode_get(meta, "generation"), &generation) && generation > 0)
        jsonnode_set_int(t, meta, "generation", generation + 1);
}

/*
 * A pod that is being deleted, and has been given a grace: only a shorter one that is asked for
 * changes anything. It is counted from when the first was; what would be over already is over now,
 * and yet left to the kubelet unless 0 was asked for. false: nothing changes.
 */
static bool hurry(struct api *a, struct jsontree *t, const struct api_delete_options *d,
                  int64_t had, int64_t *grace)
{
    struct jsonnode *meta = jsonnode_get(jsontree_root(t), "metadata");
    char when[32];
    int64_t now = a->config.now_ns();
    int64_t at = clock_parse_rfc3339(str_or_empty(jsonnode_get_str(meta, "deletionTimestamp")));
    *grace = d->grace_s < 0 ? 1 : d->grace_s;
    if (!d->grace_given || *grace >= had)
        return false;
    at -= (had - *grace) * 1000000000;
    if (at < now && *grace != 0)
        *grace = 1;
    clock_rfc3339(at < now ? now : at, 0, when);
    jsonnode_set_str(t, meta, "deletionTimestamp", when);
    jsonnode_set_int(t, meta, "deletionGracePeriodSeconds", *grace);
    return true;
}

/* The finalizers for the garbage collector, as the request or else the kind says. */
static void set_propagation(struct jsontree *t, const struct kind *k,
                            const struct api_delete_options *d)
{
    struct jsonnode *root = jsontree_root(t);
    struct jsonnode *meta = jsonnode_get(root, "metadata");
    bool said = api_has_finalizer(root, FOREGROUND) || api_has_finalizer(root, ORPHAN);
    if (d->how_given) {
        set_finalizer(t, meta, FOREGROUND, d->how == API_FOREGROUND);
        set_finalizer(t, meta, ORPHAN, d->how == API_ORPHAN);
    } else if (d->by_request && k->orphans && !said) {
        set_finalizer(t, meta, ORPHAN, true);
    }
    if (jsonnode_get(meta, "finalizers") && jsonnode_len(jsonnode_get(meta, "finalizers")) == 0)
        (void)jsonnode_remove(meta, "finalizers");
}

/* Stores the marked object; `shown` gets the object of the reply. */
static int keep(struct api *a, struct object *o, struct jsontree *t, bool dry, struct strbuf *shown,
                struct error *err)
{
    struct object *now = NULL;
    if (dry) {
        jsontree_print(t, shown);
        return 0;
    }
    if (api_store_tree(a, o->kind, t, false, o->version, &now, err) < 0)
        return -1;
    strbuf_add(shown, now->text, now->text_len);
    return 0;
}

int api_delete_object(struct api *a, struct object *o, const struct api_delete_options *d,
                      struct strbuf *shown, struct error *err)
{
    const struct kind *k = o->kind;
    AUTO_JSONTREE *t = NULL;
    if (api_check_preconditions(o, d, err) < 0 || jsontree_parse(&t, o->text, o->text_len, err) < 0)
        return -1;
    struct jsonnode *root = jsontree_root(t);
    int64_t grace = 0, had = 0;
    (void)jsonnode_int(jsonnode_path(root, "metadata", "deletionGracePeriodSeconds", NULL), &had);
    if (k->has_grace && had > 0 && !hurry(a, t, d, had, &grace)) {
        strbuf_add(shown, o->text, o->text_len);
        return 0;
    }
    set_propagation(t, k, d);
    if (!jsonnode_path(root, "metadata", "deletionTimestamp", NULL)) {
        grace = grace_of(root, k, d);
        mark(a, t, k, grace);
    }
    bool held = jsonnode_len(jsonnode_path(root, "metadata", "finalizers", NULL)) > 0;
    if (k == &kind_namespaces &&
        jsonnode_len(jsonnode_path(root, "spec", "finalizers", NULL)) > 0) {
        jsonnode_set_str(t, jsonnode_need_object(t, root, "status"), "phase", "Terminating");
        held = true;
    }
    if (held || grace > 0)
        return keep(a, o, t, d->dry_run, shown, err);
    char ns[256];
    char name[256];
    (void)str_format(ns, sizeof ns, "%s", o->ns);
    (void)str_format(name, sizeof name, "%s", o->name);
    if (k->has_grace && keep(a, o, t, d->dry_run, shown, err) < 0)
        return -1;
    if (d->dry_run)
        return 0;
    /* A listener may have deleted it when it saw deletionTimestamp. */
    return store_get(a->store, k, ns, name) ? store_delete(a->store, k, ns, name, 0, err) : 0;
}

int api_delete(struct api *a, const struct kind *k, const char *ns, const char *name,
               const char *uid, int64_t grace_s, enum api_propagation how, struct error *err)
{
    struct api_delete_options d = {.grace_given = grace_s >= 0,
                                   .grace_s = grace_s,
                                   .uid = uid,
                                   .how = how,
                                   .how_given = how != API_BACKGROUND};
    AUTO_STRBUF shown;
    strbuf_init(&shown);
    struct object *o = store_get(a->store, k, str_or_empty(ns), name);
    if (!o)
        return api_not_found(err, k, name);
    (void)object_ref(o);
    int rc = api_delete_object(a, o, &d, &shown, err);
    object_unref(o);
    return rc;
}

/* ---- verbs ---- */

void api_delete_one(struct api *a, struct call *c, const struct api_target *t)
{
    struct api_delete_options d;
    struct jsontree *body = NULL;
    struct error err = ERROR_INIT;
    struct strbuf shown;
    strbuf_init(&shown);
    struct object *o = store_get(a->store, t->kind, str_or_empty(t->ns), t->name);
    int rc = read_options(c, &d, &body, &err);
    d.by_request = true;
    if (o)
        (void)object_ref(o);
    else if (rc == 0)
        rc = api_not_found(&err, t->kind, t->name);
    struct admission_request q = {.kind = t->kind,
                                  .operation = "DELETE",
                                  .ns = t->ns,
                                  .name = t->name,
                                  .dry_run = d.dry_run,
                                  .old = o};
    if (rc == 0 && a->config.admission)
        rc = admission_check(a->config.admission, &q, NULL, &err);
    if (rc == 0 && o)
        rc = api_delete_object(a, o, &d, &shown, &err);
    if (rc == 0 && o && shown.len == 0)
        api_status_success(&shown, t->kind, t->name, o->uid, 0);
    AUTO_STRBUF warning;
    strbuf_init(&warning);
    if (t->kind == &kind_jobs && !d.how_given)
        api_print_warning("child pods are preserved by default when jobs are deleted; set "
                          "propagationPolicy=Background to remove them or set "
                          "propagationPolicy=Orphan to suppress this warning",
                          &warning);
    if (rc == 0) {
        api_reply_text(c, 200, strbuf_str(&warning), &shown);
    } else {
        api_reply_error(c, &err, t->kind, t->name);
        strbuf_deinit(&shown);
    }
    jsontree_free(body);
    object_unref(o);
}

void api_delete_many(struct api *a, struct call *c, const struct api_target *t)
{
    struct api_delete_options d;
    struct api_selection s = {0};
    struct api_objects all = {0};
    struct jsontree *body = NULL;
    struct error err = ERROR_INIT;
    arena_init(&s.arena, 0);
    int rc = read_options(c, &d, &body, &err) < 0 || api_select(c, t, &s, &err) < 0 ? -1 : 0;
    d.by_request = true;
    if (rc == 0)
        (void)api_collect(a, t->kind, t->ns, 0, &s, NULL, &all);
    for (size_t i = 0; i < all.len && rc == 0; i++) {
        AUTO_STRBUF shown;
        strbuf_init(&shown);
        struct object *o = all.items[i];
        /* What is gone or new under this name meanwhile (a listener's work) is not what was
         * listed. */
        if (store_get(a->store, t->kind, o->ns, o->name) == o)
            rc = api_delete_object(a, o, &d, &shown, &err);
    }
    if (rc == 0) {
        struct strbuf out;
        char meta[64];
        strbuf_init(&out);
        (void)str_format(meta, sizeof meta, "{\"resourceVersion\":\"%llu\"}",
                         (unsigned long long)store_version(a->store));
        static struct object *const none[1];
        api_print_list(a, API_JSON, t->kind, all.len > 0 ? all.items : none, all.len, meta, &out);
        api_reply_text(c, 200, NULL, &out);
    } else {
        api_reply_error(c, &err, NULL, NULL);
    }
    api_objects_deinit(&all);
    api_selection_deinit(&s);
    jsontree_free(body);
}
