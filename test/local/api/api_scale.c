// SPDX-License-Identifier: Apache-2.0
/*
 * api_scale - /scale of what has replicas: a Scale of autoscaling/v1 is made from the object, and a
 * changed one goes back as its spec.replicas.
 */
#include <stdlib.h>
#include <string.h>

#include "test/local/api/api_internal.h"

/* matchLabels and matchExpressions in the form of a query, in the order of the keys: "a=b,e in
 * (x,y)". */
struct clause {
    const char *key;
    struct strbuf text;
};
enum { MAX_CLAUSES = 64 };

static int by_key(const void *a, const void *b)
{
    const struct clause *x = a;
    const struct clause *y = b;
    return strcmp(x->key, y->key);
}

static void print_expression(struct jsonnode *e, struct strbuf *out)
{
    const char *key = str_or_empty(jsonnode_get_str(e, "key"));
    const char *op = jsonnode_get_str(e, "operator");
    if (str_eq(op, "Exists") || str_eq(op, "DoesNotExist")) {
        strbuf_addf(out, "%s%s", str_eq(op, "Exists") ? "" : "!", key);
        return;
    }
    strbuf_addf(out, "%s %s (", key, str_eq(op, "NotIn") ? "notin" : "in");
    bool comma = false;
    for (struct jsonnode_iter it = jsonnode_iter(jsonnode_get(e, "values")); jsonnode_next(&it);) {
        strbuf_addf(out, "%s%s", comma ? "," : "", str_or_empty(jsonnode_str(it.value)));
        comma = true;
    }
    strbuf_addc(out, ')');
}

static void print_selector(struct jsonnode *selector, struct strbuf *out)
{
    struct clause clauses[MAX_CLAUSES];
    size_t n = 0;
    for (struct jsonnode_iter it = jsonnode_iter(jsonnode_get(selector, "matchLabels"));
         jsonnode_next(&it) && n < MAX_CLAUSES;) {
        clauses[n] = (struct clause){.key = it.key};
        strbuf_init(&clauses[n].text);
        strbuf_addf(&clauses[n++].text, "%s=%s", it.key, str_or_empty(jsonnode_str(it.value)));
    }
    for (struct jsonnode_iter it = jsonnode_iter(jsonnode_get(selector, "matchExpressions"));
         jsonnode_next(&it) && n < MAX_CLAUSES;) {
        clauses[n] = (struct clause){.key = str_or_empty(jsonnode_get_str(it.value, "key"))};
        strbuf_init(&clauses[n].text);
        print_expression(it.value, &clauses[n++].text);
    }
    qsort(clauses, n, sizeof *clauses, by_key);
    for (size_t i = 0; i < n; i++) {
        strbuf_addf(out, "%s%s", i > 0 ? "," : "", strbuf_str(&clauses[i].text));
        strbuf_deinit(&clauses[i].text);
    }
}

static void copy_text(struct jsontree *t, struct jsonnode *to, struct jsonnode *from,
                      const char *key)
{
    const char *s = jsonnode_get_str(from, key);
    if (s)
        jsonnode_set_str(t, to, key, s);
}

static struct jsontree *scale_of(const struct object *o)
{
    static const char *const kept[] = {"name", "namespace", "uid", "resourceVersion",
                                       "creationTimestamp"};
    AUTO_JSONTREE *from = NULL;
    AUTO_STRBUF selector;
    int64_t wanted = 0;
    int64_t there = 0;
    strbuf_init(&selector);
    if (jsontree_parse(&from, o->text, o->text_len, NULL) < 0)
        return NULL;
    struct jsonnode *root = jsontree_root(from);
    struct jsontree *t = jsontree_new();
    struct jsonnode *scale = jsonnode_object(t);
    jsontree_set_root(t, scale);
    jsonnode_set_str(t, scale, "kind", "Scale");
    jsonnode_set_str(t, scale, "apiVersion", "autoscaling/v1");
    struct jsonnode *meta = jsonnode_need_object(t, scale, "metadata");
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        copy_text(t, meta, jsonnode_get(root, "metadata"), kept[i]);
    (void)jsonnode_int(jsonnode_path(root, "spec", "replicas", NULL), &wanted);
    (void)jsonnode_int(jsonnode_path(root, "status", "replicas", NULL), &there);
    struct jsonnode *spec = jsonnode_need_object(t, scale, "spec");
    if (wanted != 0)
        jsonnode_set_int(t, spec, "replicas", wanted);
    struct jsonnode *status = jsonnode_need_object(t, scale, "status");
    jsonnode_set_int(t, status, "replicas", there);
    print_selector(jsonnode_path(root, "spec", "selector", NULL), &selector);
    if (selector.len > 0)
        jsonnode_set_str(t, status, "selector", strbuf_str(&selector));
    return t;
}

/* replicas: shown in place of the object's own (a dry run); NULL: its own. */
static void reply_scale(struct call *c, const struct object *o, const int64_t *replicas)
{
    struct jsontree *t = scale_of(o);
    struct strbuf out;
    strbuf_init(&out);
    if (t && replicas)
        jsonnode_set_int(t, jsonnode_get(jsontree_root(t), "spec"), "replicas", *replicas);
    if (t)
        jsontree_print(t, &out);
    jsontree_free(t);
    api_reply_text(c, 200, NULL, &out);
}

static bool set_replicas(void *arg, struct jsontree *t, struct jsonnode *object)
{
    const int64_t *n = arg;
    jsonnode_set_int(t, jsonnode_need_object(t, object, "spec"), "replicas", *n);
    return true;
}

/* The Scale that the client sends, or that its patch makes of the one there is. */
static int read_tree(struct call *c, const struct object *o, struct jsontree **out,
                     struct error *err)
{
    enum api_patch_type type = API_PATCH_MERGE;
    AUTO_JSON *patch = NULL;
    if (!str_eq(call_method(c), "PATCH"))
        return api_body(c, "Scale", out, err);
    *out = scale_of(o);
    if (!*out || api_patch_type_of(c, o->kind, &type, err) < 0 ||
        api_patch_options(c, type, err) < 0 || api_patch_body(c, type, &patch, err) < 0)
        return -1;
    return api_apply_patch(c, *out, type, NULL, json_root(patch), err);
}

static int check_place(struct jsonnode *root, const struct object *o, struct error *err)
{
    const char *name = jsonnode_str(jsonnode_path(root, "metadata", "name", NULL));
    const char *ns = jsonnode_str(jsonnode_path(root, "metadata", "namespace", NULL));
    const char *uid = jsonnode_str(jsonnode_path(root, "metadata", "uid", NULL));
    if (ns && *ns && !str_eq(ns, o->ns))
        return api_fail(err, 400,
                        "the namespace of the provided object does not match the namespace sent on "
                        "the request");
    if (api_check_name(name, o->name, err) < 0)
        return -1;
    return uid && *uid ? api_check_uid(o, uid, err) : 0;
}

static int read_scale(struct call *c, const struct object *o, int64_t *replicas, struct error *err)
{
    static const struct api_type type = {"autoscaling/v1", "Scale", NULL};
    AUTO_JSONTREE *t = NULL;
    *replicas = 0;
    if (read_tree(c, o, &t, err) < 0 || api_check_kind(jsontree_root(t), &type, err) < 0)
        return -1;
    if (api_decode(t, &type, false, NULL, err) < 0)
        return str_eq(call_method(c), "PATCH") ? api_blame_patch(t, err) : -1;
    struct jsonnode *root = jsontree_root(t);
    if (check_place(root, o, err) < 0)
        return -1;
    (void)jsonnode_int(jsonnode_path(root, "spec", "replicas", NULL), replicas);
    if (*replicas < 0)
        return api_fail(err, 422,
                        "Scale.autoscaling \"%s\" is invalid: spec.replicas: Invalid value: %lld: "
                        "must be greater than or equal to 0",
                        o->name, (long long)*replicas);
    return api_check_version(
        o, jsonnode_str(jsonnode_path(root, "metadata", "resourceVersion", NULL)), err);
}

void api_scale_sub(struct api *a, struct call *c, const struct api_target *t)
{
    struct error err = ERROR_INIT;
    const char *m = call_method(c);
    bool patch = str_eq(m, "PATCH");
    bool change = str_eq(m, "PUT") || patch;
    bool dry = false;
    int64_t replicas = 0;
    struct object *o = store_get(a->store, t->kind, str_or_empty(t->ns), t->name);
    int rc = 0;
    if (!change && !str_eq(m, "GET"))
        rc = api_fail(&err, 405, "the server does not allow this method on the requested resource");
    else if (!o)
        rc = api_not_found(&err, t->kind, t->name);
    else if (change)
        rc = api_dry_run(c, patch ? "PatchOptions" : "UpdateOptions", &dry, &err) < 0 ||
                     read_scale(c, o, &replicas, &err) < 0
                 ? -1
                 : 0;
    if (rc == 0 && change && !dry) {
        rc = api_modify(a, t->kind, t->ns, t->name, NULL, set_replicas, &replicas, &err);
        o = store_get(a->store, t->kind, str_or_empty(t->ns), t->name);
    }
    if (rc < 0 || !o)
        api_reply_error(c, &err, NULL, NULL);
    else
        reply_scale(c, o, dry ? &replicas : NULL);
}
