// SPDX-License-Identifier: Apache-2.0
/*
 * api_write - create, update and patch: one pipeline.
 *
 *   api_write ─► start ─► from_body (POST, PUT) ──┬─► admit ─► admission_run ─► on_admitted
 *                  ▲      api_request_patch ──────┘                                │
 *                  │                                       store, reply ◄── finish ◄┘
 *                  └── the object changed meanwhile, and the client named no version ┘ (API_TRIES)
 *
 * Between admit and on_admitted webhooks may be called, and other requests are served: when the
 * object is stored, its version is compared with the one that was read.
 *
 * A webhook sees a new object as in a real cluster: without uid, creation time and generated name,
 * which the server sets last.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "test/local/api/api_internal.h"

enum { NAME_TRIES = 8 };

static void start(struct api_request *r);

/* ---- a request ---- */

static const char *moved(const char *p, const struct api_target *from, struct api_target *to)
{
    return p ? to->buf + (p - from->buf) : NULL;
}

static struct api_request *request_new(struct api *a, struct call *c, const struct api_target *t,
                                       enum api_write what)
{
    struct api_request *r = mem_new(struct api_request, 1);
    r->api = a;
    r->call = c;
    r->what = what;
    r->target = *t;
    r->target.ns = moved(t->ns, t, &r->target);
    r->target.name = moved(t->name, t, &r->target);
    r->target.sub = moved(t->sub, t, &r->target);
    return r;
}

static void unlink_request(struct api_request *r)
{
    if (!r->prev)
        return;
    *r->prev = r->next;
    if (r->next)
        r->next->prev = r->prev;
    r->prev = NULL;
}

void api_request_free(struct api_request *r)
{
    unlink_request(r);
    jsontree_free(r->tree);
    object_unref(r->old);
    typed_notes_deinit(&r->notes);
    free(r);
}

int api_blame_patch(struct jsontree *t, struct error *err)
{
    static const char mark[] = " cannot be handled as a ";
    const char *why = strstr(err->text, mark);
    why = why ? strstr(why, ": ") : NULL;
    if (err->http_status != 400 || !why || !t)
        return -1;
    AUTO_STRBUF text;
    char reason[ERROR_TEXT_SIZE];
    strbuf_init(&text);
    jsontree_print(t, &text);
    (void)str_format(reason, sizeof reason, "%s", why + 2);
    return api_fail(err, 422, " \"\" is invalid: patch: Invalid value: \"%.*s\": %s",
                    (int)(text.len < 128 ? text.len : 128), strbuf_str(&text), reason);
}

static void fail_with(struct api_request *r, const struct error *given, const char *warnings)
{
    struct error own = *given;
    struct error *err = &own;
    if (r->what == API_PATCH)
        (void)api_blame_patch(r->tree, err);
    const char *name = r->target.name;
    if (!name && r->tree)
        name = jsonnode_str(jsonnode_path(jsontree_root(r->tree), "metadata", "name", NULL));
    api_reply_refusal(r->call, err, r->target.kind, name, warnings);
    api_request_free(r);
}

static void fail(struct api_request *r, const struct error *err)
{
    fail_with(r, err, NULL);
}

/* Whether the result is a new object. */
static bool is_new(const struct api_request *r)
{
    return r->what == API_CREATE || r->creates;
}

/* ---- what the client sent ---- */

int api_check_name(const char *name, const char *wanted, struct error *err)
{
    if (!name || !*name)
        return api_fail(err, 400,
                        "the name of the object (%s based on URL) was undeterminable: name must be "
                        "provided",
                        wanted);
    if (str_eq(name, wanted))
        return 0;
    return api_fail(err, 400, "the name of the object (%s) does not match the name on the URL (%s)",
                    name, wanted);
}

/* A name and a namespace in the body are those of the path. */
static int check_place(struct api_request *r, struct jsonnode *root, struct error *err)
{
    struct jsonnode *meta = jsonnode_get(root, "metadata");
    const char *name = jsonnode_get_str(meta, "name");
    const char *ns = jsonnode_get_str(meta, "namespace");
    if (r->target.ns && ns && *ns && !str_eq(ns, r->target.ns))
        return api_fail(err, 400,
                        "the namespace of the provided object does not match the namespace sent on "
                        "the request");
    return r->target.name ? api_check_name(name, r->target.name, err) : 0;
}

int api_check_uid(const struct object *o, const char *uid, struct error *err)
{
    const struct kind *k = o->kind;
    if (str_eq(uid, o->uid))
        return 0;
    return api_fail(err, 409,
                    "Operation cannot be fulfilled on %s%s%s \"%s\": StorageError: invalid object, "
                    "Code: 4, Key: /registry/%s/%s, ResourceVersion: 0, AdditionalErrorMsg: "
                    "Precondition failed: UID in precondition: %s, UID in object meta: %s",
                    k->resource, *k->group ? "." : "", k->group, o->name, k->resource, o->key, uid,
                    o->uid);
}

int api_check_version(const struct object *o, const char *text, struct error *err)
{
    uint64_t version = 0;
    const struct kind *k = o->kind;
    if (api_version_of(text, "", 500, &version, NULL) < 0)
        return api_fail(err, 500, "strconv.ParseUint: parsing \"%s\": invalid syntax", text);
    if (version == 0 || version == o->version)
        return 0;
    return api_fail(err, 409,
                    "Operation cannot be fulfilled on %s%s%s \"%s\": the object has been modified; "
                    "please apply your changes to the latest version and try again",
                    k->resource, *k->group ? "." : "", k->group, o->name);
}

int api_request_read_old(struct api_request *r, struct error *err)
{
    const struct api_target *t = &r->target;
    struct object *o = store_get(r->api->store, t->kind, str_or_empty(t->ns), t->name);
    object_unref(r->old);
    r->old = o ? object_ref(o) : NULL;
    if (o)
        return 0;
    (void)api_not_found(err, t->kind, t->name);
    return -1;
}

static int check_put(struct api_request *r, struct error *err)
{
    const struct kind *k = r->target.kind;
    struct jsonnode *meta = jsonnode_get(jsontree_root(r->tree), "metadata");
    const char *version = jsonnode_get_str(meta, "resourceVersion");
    const char *uid = jsonnode_get_str(meta, "uid");
    r->own_version = version && *version && !str_eq(version, "0");
    if (api_request_read_old(r, err) < 0 || !r->old) {
        if (!k->put_creates || r->target.sub || r->own_version)
            return -1;
        error_clear(err);
        r->creates = true;
        return 0;
    }
    if (uid && *uid && api_check_uid(r->old, uid, err) < 0)
        return -1;
    if (!r->own_version && k->update_needs_version)
        return api_fail(
            err, 422,
            "%s%s%s \"%s\" is invalid: metadata.resourceVersion: Invalid value: 0: must "
            "be specified for an update",
            k->resource, *k->group ? "." : "", k->group, r->target.name);
    return api_check_version(r->old, version, err);
}

int api_request_decode(struct api_request *r, struct error *err)
{
    const struct kind *k = r->target.kind;
    const struct api_type type = {k->api_version, k->kind, NULL};
    if (api_check_kind(jsontree_root(r->tree), &type, err) < 0 ||
        api_decode(r->tree, &type, r->strict, &r->notes, err) < 0 ||
        api_meta_shape(r->tree, k, err) < 0)
        return -1;
    return check_place(r, jsontree_root(r->tree), err);
}

static int from_body(struct api_request *r, struct error *err)
{
    const struct kind *k = r->target.kind;
    if (api_body(r->call, k->kind, &r->tree, err) < 0 || api_request_decode(r, err) < 0)
        return -1;
    if (r->what == API_UPDATE)
        return check_put(r, err);
    const char *version =
        jsonnode_str(jsonnode_path(jsontree_root(r->tree), "metadata", "resourceVersion", NULL));
    if (version && *version)
        return api_fail(err, 500, "resourceVersion should not be set on objects to be created");
    return 0;
}

/* ---- the end of the pipeline ---- */

static int validate(const struct kind *k, const char *sub, struct jsonnode *root,
                    const struct object *old, struct error *err)
{
    bool status = str_eq(sub, "status");
    bool whole = !status || k->status_is_validated;
    AUTO_JSONTREE *was = NULL;
    if (whole && api_meta_validate(root, k, err) < 0)
        return -1;
    int (*rules)(struct jsonnode *, struct jsonnode *, struct error *) = status ? k->validate_status
                                                                         : sub  ? NULL
                                                                               : k->validate_update;
    if (!old || !rules)
        return 0;
    if (jsontree_parse(&was, old->text, old->text_len, err) < 0)
        return -1;
    return rules(jsontree_root(was), root, err);
}

void api_print_warning(const char *text, struct strbuf *out)
{
    strbuf_adds(out, "Warning: 299 - \"");
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            strbuf_addc(out, '\\');
        strbuf_addc(out, (unsigned char)*text < 0x20 ? ' ' : *text);
    }
    strbuf_adds(out, "\"\r\n");
}

static void reply_tree(struct api_request *r, int status, const char *headers)
{
    struct strbuf body;
    strbuf_init(&body);
    jsontree_print(r->tree, &body);
    api_reply_text(r->call, status, headers, &body);
    api_request_free(r);
}

static int store_new_object(struct api_request *r, struct object **out, struct error *err)
{
    struct api *a = r->api;
    const struct kind *k = r->target.kind;
    struct jsonnode *meta = jsonnode_get(jsontree_root(r->tree), "metadata");
    for (int tries = 0;; tries++) {
        const char *name = jsonnode_get_str(meta, "name");
        if (r->dry_run) {
            if (!store_get(a->store, k, str_or_empty(r->target.ns), name))
                return 0;
            (void)api_fail(err, 409, "%s%s%s \"%s\" already exists", k->resource,
                           *k->group ? "." : "", k->group, name);
        } else if (api_store_tree(a, k, r->tree, true, 0, out, err) == 0) {
            return 0;
        }
        if (err->code != ERROR_CONFLICT || r->name[0] == '\0' || tries == NAME_TRIES)
            return -1;
        r->name[0] = '\0'; /* the dice fell on a name that is taken */
        (void)jsonnode_remove(meta, "name");
        api_meta_create(a, r);
        meta = jsonnode_get(jsontree_root(r->tree), "metadata");
    }
}

static void finish_new(struct api_request *r, const char *headers)
{
    struct error err = ERROR_INIT;
    struct object *o = NULL;
    api_meta_create(r->api, r);
    if (validate(r->target.kind, NULL, jsontree_root(r->tree), NULL, &err) < 0 ||
        store_new_object(r, &o, &err) < 0) {
        if (err.code == ERROR_CONFLICT && r->creates && ++r->tries < API_TRIES)
            start(r); /* it was created while a webhook was called: then this is an update */
        else
            fail(r, &err);
    } else if (r->dry_run) {
        reply_tree(r, 201, headers);
    } else {
        api_reply_object(r->api, r->call, 201, headers, o);
        api_request_free(r);
    }
}

/* A webhook has no more say in what is the server's than a client. */
static int keep_what_is_fixed(struct api_request *r, struct error *err)
{
    AUTO_JSONTREE *was = NULL;
    if (api_meta_shape(r->tree, r->target.kind, err) < 0 ||
        jsontree_parse(&was, r->old->text, r->old->text_len, err) < 0)
        return -1;
    return api_meta_update(r->tree, r->target.kind, jsontree_root(was), r->target.sub, err);
}

static void finish_change(struct api_request *r, const char *headers)
{
    struct api *a = r->api;
    const struct kind *k = r->target.kind;
    struct error err = ERROR_INIT;
    struct object *o = NULL;
    int rc = r->changed ? keep_what_is_fixed(r, &err) : 0;
    struct jsonnode *root = jsontree_root(r->tree);
    if (rc == 0)
        rc = validate(k, r->target.sub, root, r->old, &err);
    if (rc == 0 && r->dry_run) {
        reply_tree(r, 200, headers);
        return;
    }
    if (rc == 0 && api_meta_is_gone(root, k)) { /* the last finalizer is off */
        rc = store_delete(a->store, k, str_or_empty(r->target.ns), r->target.name, r->old->version,
                          &err);
        if (rc == 0) {
            reply_tree(r, 200, headers);
            return;
        }
    } else if (rc == 0) {
        rc = api_store_tree(a, k, r->tree, false, r->old->version, &o, &err);
        if (rc == 0) {
            api_reply_object(a, r->call, 200, headers, o);
            api_request_free(r);
            return;
        }
    }
    if (err.code == ERROR_CONFLICT && !r->own_version && ++r->tries < API_TRIES)
        start(r); /* it changed while a webhook thought */
    else
        fail(r, &err);
}

static void on_admitted(void *arg, const struct error *err, const char *const *warnings)
{
    struct api_request *r = arg;
    AUTO_STRBUF headers;
    strbuf_init(&headers);
    unlink_request(r);
    for (size_t i = 0; r->warns && i < r->notes.len; i++)
        api_print_warning(r->notes.items[i], &headers);
    for (; warnings && *warnings; warnings++)
        api_print_warning(*warnings, &headers);
    if (err) {
        fail_with(r, err, headers.len > 0 ? strbuf_str(&headers) : NULL);
        return;
    }
    if (is_new(r) || !r->old)
        finish_new(r, headers.len > 0 ? strbuf_str(&headers) : NULL);
    else
        finish_change(r, headers.len > 0 ? strbuf_str(&headers) : NULL);
}

static void hide_from_webhooks(struct api_request *r)
{
    struct jsonnode *meta = jsonnode_get(jsontree_root(r->tree), "metadata");
    (void)jsonnode_remove(meta, "uid");
    (void)jsonnode_remove(meta, "creationTimestamp");
    (void)jsonnode_remove(meta, "generation");
    if (r->name[0] != '\0')
        (void)jsonnode_remove(meta, "name");
}

static void admit(struct api_request *r)
{
    struct api *a = r->api;
    if (!a->config.admission) {
        on_admitted(r, NULL, NULL);
        return;
    }
    if (is_new(r))
        hide_from_webhooks(r);
    struct admission_request q = {
        .kind = r->target.kind,
        .operation = is_new(r) ? "CREATE" : "UPDATE",
        .ns = r->target.ns,
        .name = r->target.name
                    ? r->target.name
                    : jsonnode_str(jsonnode_path(jsontree_root(r->tree), "metadata", "name", NULL)),
        .dry_run = r->dry_run,
        .sub = r->target.sub,
        .old = r->old,
        .changed = &r->changed,
    };
    r->changed = false;
    r->next = a->waiting;
    r->prev = &a->waiting;
    if (r->next)
        r->next->prev = &r->next;
    a->waiting = r;
    admission_run(a->config.admission, &q, r->tree, on_admitted, r);
}

static void start(struct api_request *r)
{
    struct error err = ERROR_INIT;
    jsontree_free(r->tree);
    r->tree = NULL;
    typed_notes_deinit(&r->notes);
    int rc = r->what == API_PATCH ? api_request_patch(r, &err) : from_body(r, &err);
    if (rc == 0 && (is_new(r) || !r->old))
        api_meta_create(r->api, r);
    else if (rc == 0)
        rc = keep_what_is_fixed(r, &err);
    if (rc < 0)
        fail(r, &err);
    else
        admit(r);
}

void api_write(struct api *a, struct call *c, const struct api_target *t, enum api_write what)
{
    static const char *const options[] = {"CreateOptions", "UpdateOptions", "PatchOptions"};
    struct error err = ERROR_INIT;
    struct api_request *r = request_new(a, c, t, what);
    r->warns = !str_eq(call_query(c, "fieldValidation"), "Ignore");
    int rc = api_dry_run(c, options[what], &r->dry_run, &err) < 0 ||
                     api_field_manager(c, options[what], &err) < 0 ||
                     api_field_validation(c, options[what], &r->strict, &err) < 0
                 ? -1
                 : 0;
    if (rc == 0 && what == API_PATCH)
        rc = api_patch_type_of(c, t->kind, &r->patch_type, &err) < 0 ||
                     api_patch_options(c, r->patch_type, &err) < 0
                 ? -1
                 : 0;
    if (rc < 0)
        fail(r, &err);
    else
        start(r);
}

/* ---- for those inside ---- */

int api_create(struct api *a, const struct kind *k, const char *ns, struct jsontree *object,
               struct object **out, struct error *err)
{
    struct api_request r = {.api = a, .what = API_CREATE, .tree = object};
    struct object *o = NULL;
    r.target.kind = k;
    r.target.ns = k->namespaced ? ns : NULL;
    if (api_meta_shape(object, k, err) < 0)
        return -1;
    api_meta_create(a, &r);
    struct admission_request q = {
        .kind = k,
        .operation = "CREATE",
        .ns = r.target.ns,
        .name = jsonnode_str(jsonnode_path(jsontree_root(object), "metadata", "name", NULL)),
    };
    struct error own = ERROR_INIT;
    if (!err)
        err = &own;
    if (a->config.admission && admission_check(a->config.admission, &q, object, err) < 0)
        return -1;
    if (validate(k, NULL, jsontree_root(object), NULL, err) < 0 ||
        store_new_object(&r, &o, err) < 0)
        return -1;
    if (out)
        *out = o;
    return 0;
}

int api_modify(struct api *a, const struct kind *k, const char *ns, const char *name,
               const char *sub, bool (*fn)(void *arg, struct jsontree *t, struct jsonnode *object),
               void *arg, struct error *err)
{
    AUTO_JSONTREE *was = NULL;
    AUTO_JSONTREE *t = NULL;
    struct object *o = store_get(a->store, k, str_or_empty(ns), name);
    if (!o)
        return api_not_found(err, k, name);
    uint64_t version = o->version;
    if (jsontree_parse(&was, o->text, o->text_len, err) < 0 ||
        jsontree_parse(&t, o->text, o->text_len, err) < 0)
        return -1;
    if (!fn(arg, t, jsontree_root(t)))
        return 0;
    if (api_meta_shape(t, k, err) < 0 || api_meta_update(t, k, jsontree_root(was), sub, err) < 0 ||
        validate(k, sub, jsontree_root(t), o, err) < 0)
        return -1;
    if (api_meta_is_gone(jsontree_root(t), k))
        return store_delete(a->store, k, str_or_empty(ns), name, version, err);
    return api_store_tree(a, k, t, false, version, NULL, err);
}
