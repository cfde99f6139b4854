// SPDX-License-Identifier: Apache-2.0
/*
 * api_patch - PATCH: its media type, its options, the patch done to a tree, and the object that
 * comes of it.
 */
#include <string.h>
#include <strings.h>

#include "test/local/api/api_internal.h"
#include "test/local/patch/patch.h"

int api_patch_type_of(const struct call *c, const struct kind *k, enum api_patch_type *out,
                      struct error *err)
{
    static const struct {
        const char *type;
        enum api_patch_type patch;
    } rows[] = {
        {"application/json-patch+json", API_PATCH_JSON},
        {"application/merge-patch+json", API_PATCH_MERGE},
        {"application/strategic-merge-patch+json", API_PATCH_STRATEGIC},
        {"application/apply-patch+yaml", API_PATCH_APPLY},
    };
    const char *type = call_header(c, "Content-Type");
    size_t n = strcspn(str_or_empty(type), "; ");
    for (size_t i = 0; type && i < sizeof rows / sizeof rows[0]; i++) {
        if (n != strlen(rows[i].type) || strncasecmp(type, rows[i].type, n) != 0)
            continue;
        if (k->custom && rows[i].patch == API_PATCH_STRATEGIC)
            break;
        *out = rows[i].patch;
        return 0;
    }
    if (k->custom)
        return api_fail(err, 415,
                        "the body of the request was in an unknown format - accepted media types "
                        "include: application/json-patch+json, application/merge-patch+json, "
                        "application/apply-patch+yaml");
    return api_fail(err, 415, "415: Unsupported Media Type");
}

static int patch_options_invalid(struct error *err, const char *what)
{
    return api_fail(err, 422, "PatchOptions.meta.k8s.io \"\" is invalid: %s", what);
}

int api_patch_options(const struct call *c, enum api_patch_type type, struct error *err)
{
    const char *manager = call_query(c, "fieldManager");
    const char *force = call_query(c, "force");
    if (type == API_PATCH_APPLY && (!manager || !*manager))
        return patch_options_invalid(err,
                                     "fieldManager: Required value: is required for apply patch");
    if (type != API_PATCH_APPLY && force)
        return patch_options_invalid(err,
                                     "force: Forbidden: may not be specified for non-apply patch");
    return 0;
}

int api_apply_patch(const struct call *c, struct jsontree *t, enum api_patch_type type,
                    const char *kind, json *patch, struct error *err)
{
    struct error why = ERROR_INIT;
    const char *force = call_query(c, "force");
    switch (type) {
    case API_PATCH_APPLY:
        return patch_apply(t, kind, patch, call_query(c, "fieldManager"), api_query_bool(force),
                           err);
    case API_PATCH_MERGE:
        return patch_merge(t, patch, err);
    case API_PATCH_STRATEGIC:
        return patch_strategic(t, kind, patch, err);
    case API_PATCH_JSON:
        break;
    }
    if (patch_json(t, patch, &why) == 0)
        return 0;
    if (why.http_status == 422) /* the message does not name the failed operation */
        return api_fail(err, 422, "the server rejected our request due to an error in our request");
    *err = why;
    return -1;
}

/* The patch of an apply says what it applies to. */
static int check_applied(const struct api_request *r, json *patch, struct error *err)
{
    const struct kind *k = r->target.kind;
    const char *version = str_or_empty(json_get_str(patch, "apiVersion"));
    const char *kind = str_or_empty(json_get_str(patch, "kind"));
    json *meta = json_get(patch, "metadata");
    const char *name = json_get_str(meta, "name"), *uid = json_get_str(meta, "uid");
    if (!json_is_object(patch) && !json_is_null(patch))
        return api_fail(err, 400,
                        "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: "
                        "cannot unmarshal %s into Go value of type map[string]interface {}",
                        json_kind_name(patch));
    if (!str_eq(version, k->api_version) || !str_eq(kind, k->kind))
        return api_fail(err, 400, "invalid object type: %s%s, Kind=%s",
                        strchr(version, '/') ? "" : "/", version, kind);
    if (name && !str_eq(name, r->target.name))
        return api_fail(err, 400,
                        "the name of the object (%s) does not match the name on the URL (%s)", name,
                        r->target.name);
    if (uid && *uid && !r->old)
        return api_fail(err, 409,
                        "Operation cannot be fulfilled on %s%s%s \"%s\": uid mismatch: the "
                        "provided object specified uid %s, and no existing object was found",
                        k->resource, *k->group ? "." : "", k->group, r->target.name, uid);
    return 0;
}

/* What an apply names is in the schema, or nothing of it is done. */
static int check_declared(const struct api_request *r, json *patch, struct error *err)
{
    const struct kind *k = r->target.kind;
    struct typed_notes notes = {0};
    struct error why = ERROR_INIT;
    struct jsontree *t = jsontree_new();
    AUTO_STRBUF text;
    strbuf_init(&text);
    jsontree_set_root(t, jsonnode_copy(t, patch));
    if (typed_decode(t, k->api_version, k->kind, &notes, &why) < 0)
        strbuf_adds(&text, why.text);
    else if (notes.len > 0) { /* `unknown field "spec.x"` */
        const char *path = strchr(notes.items[0], '"') + 1;
        strbuf_addf(&text, ".%.*s: field not declared in schema", (int)strlen(path) - 1, path);
    }
    typed_notes_deinit(&notes);
    jsontree_free(t);
    if (text.len == 0)
        return 0;
    return api_fail(err, 500, "failed to create typed patch object (/%s; %s%s, Kind=%s): %s",
                    r->target.name, strchr(k->api_version, '/') ? "" : "/", k->api_version, k->kind,
                    strbuf_str(&text));
}

static void stamp_managers(struct api *a, struct jsontree *t)
{
    char now[32];
    api_now(a, 0, now);
    for (struct jsonnode_iter it =
             jsonnode_iter(jsonnode_path(jsontree_root(t), "metadata", "managedFields", NULL));
         jsonnode_next(&it);)
        if (!jsonnode_get(it.value, "time"))
            jsonnode_set_str(t, it.value, "time", now);
}

static struct jsontree *empty_object(const struct api_target *t)
{
    struct jsontree *tree = jsontree_new();
    struct jsonnode *root = jsonnode_object(tree);
    jsontree_set_root(tree, root);
    jsonnode_set_str(tree, root, "apiVersion", t->kind->api_version);
    jsonnode_set_str(tree, root, "kind", t->kind->kind);
    jsonnode_set_str(tree, jsonnode_need_object(tree, root, "metadata"), "name", t->name);
    return tree;
}

int api_request_patch(struct api_request *r, struct error *err)
{
    const struct kind *k = r->target.kind;
    AUTO_JSON *patch = NULL;
    bool apply = r->patch_type == API_PATCH_APPLY;
    r->creates = api_request_read_old(r, err) < 0 || !r->old;
    if (r->creates && (!apply || r->target.sub))
        return -1;
    error_clear(err);
    if (api_patch_body(r->call, r->patch_type, &patch, err) < 0)
        return -1;
    if (apply && (check_applied(r, json_root(patch), err) < 0 ||
                  check_declared(r, json_root(patch), err) < 0))
        return -1;
    if (!r->old)
        r->tree = empty_object(&r->target);
    else if (jsontree_parse(&r->tree, r->old->text, r->old->text_len, err) < 0)
        return -1;
    if (api_apply_patch(r->call, r->tree, r->patch_type, k->custom ? NULL : k->kind,
                        json_root(patch), err) < 0)
        return -1;
    if (!jsonnode_is_object(jsontree_root(r->tree)))
        return api_fail(err, 422, "the server rejected our request due to an error in our request");
    if (apply)
        stamp_managers(r->api, r->tree);
    if (api_request_decode(r, err) < 0)
        return -1;
    if (!r->old)
        return 0;
    const char *version =
        jsonnode_str(jsonnode_path(jsontree_root(r->tree), "metadata", "resourceVersion", NULL));
    return version ? api_check_version(r->old, version, err) : 0;
}
