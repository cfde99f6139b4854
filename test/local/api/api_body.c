// SPDX-License-Identifier: Apache-2.0
/*
 * api_body - parses the body of a request into a tree with the fields of its kind's types.
 *
 *   api_body, api_patch_body   Content-Type: JSON, YAML or protobuf; bounds; the syntax
 *   api_check_kind             apiVersion and kind are those of the path
 *   api_decode                 types (typed.c); with fieldValidation=Strict what they do not know
 *                              is an error, otherwise a warning
 *
 * The text is checked first for nesting depth and for the number of members of one object or list,
 * since jsontree and merges search members linearly and so take quadratic time.
 */
#include <string.h>
#include <strings.h>

#include "lib/base/yaml.h"
#include "test/local/api/api_internal.h"
#include "test/local/kinds/protobody.h"

enum { YAML_MAX_BYTES = 16 * 1024 * 1024, MEMBERS_MAX = 10000 };

/* operations: the outermost list is of a JSON patch, which has a bound of its own. */
static int check_bounds(const char *text, size_t n, bool operations, struct error *err)
{
    size_t members[JSON_MAX_DEPTH + 1] = {0};
    size_t depth = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] == '"') {
            for (i++; i < n && text[i] != '"'; i++)
                i += text[i] == '\\';
        } else if (text[i] == '{' || text[i] == '[') {
            if (++depth > JSON_MAX_DEPTH)
                return api_fail(err, 400, "the object is nested deeper than %d levels",
                                JSON_MAX_DEPTH);
            members[depth] = 1;
        } else if ((text[i] == '}' || text[i] == ']') && depth > 0) {
            depth--;
        } else if (text[i] == ',' && ++members[depth] > MEMBERS_MAX &&
                   !(operations && depth == 1)) {
            return api_fail(err, 413,
                            "Request entity too large: an object or list of more than %d members",
                            MEMBERS_MAX);
        }
    }
    return 0;
}

static bool is_type(const char *header, const char *type)
{
    size_t n = strlen(type);
    return header && strncasecmp(header, type, n) == 0 &&
           (header[n] == '\0' || header[n] == ';' || header[n] == ' ');
}

/* YAML's first document as a line of JSON. */
static int from_yaml(const char *text, size_t n, struct strbuf *out, struct error *err)
{
    if (yaml_to_json(text, n, YAML_MAX_BYTES, out, err) < 0)
        return -1;
    const char *end = strchr(strbuf_str(out), '\n');
    if (end)
        out->len = (size_t)(end - strbuf_str(out));
    return 0;
}

static int unrecognized(struct error *err, int status, const char *what, const char *how,
                        const char *why)
{
    if (!what)
        return api_fail(err, status, "%s%s", how, why);
    return api_fail(err, status, "the object provided is unrecognized (must be of type %s): %s%s",
                    what, how, why);
}

int api_body(struct call *c, const char *what, struct jsontree **out, struct error *err)
{
    static const char as_json[] = "couldn't get version/kind; json parse error: ";
    const char *type = call_header(c, "Content-Type");
    size_t n = 0;
    const char *text = call_body(c, &n);
    struct error why = ERROR_INIT;
    AUTO_STRBUF converted;
    strbuf_init(&converted);
    *out = NULL;
    bool yaml = is_type(type, "application/yaml") || is_type(type, "application/x-yaml");
    bool protobuf = is_type(type, "application/vnd.kubernetes.protobuf");
    if (type && *type && !yaml && !protobuf && !is_type(type, "application/json") &&
        !is_type(type, "*/*"))
        return api_fail(err, 415,
                        "the body of the request was in an unknown format - accepted media types "
                        "include: application/json, application/yaml, "
                        "application/vnd.kubernetes.protobuf");
    if (yaml && from_yaml(text, n, &converted, &why) < 0)
        return unrecognized(err, 400, what,
                            "couldn't get version/kind; yaml parse error: ", why.text);
    if (protobuf && protobody_to_json(text, n, &converted, &why) < 0)
        return unrecognized(err, why.code == ERROR_UNSUPPORTED ? 415 : 400, what, "", why.text);
    if (yaml || protobuf) {
        text = strbuf_str(&converted);
        n = converted.len;
    }
    if (check_bounds(text, n, false, err) < 0)
        return -1;
    if (jsontree_parse(out, text, n, &why) < 0)
        return unrecognized(err, 400, what, as_json, why.text);
    if (jsonnode_is_null(jsontree_root(*out)))
        jsontree_set_root(*out, jsonnode_object(*out));
    if (jsonnode_is_object(jsontree_root(*out)))
        return 0;
    jsontree_free(*out);
    *out = NULL;
    return unrecognized(err, 400, what, as_json, "not an object");
}

int api_patch_body(const struct call *c, enum api_patch_type type, struct json_doc **out,
                   struct error *err)
{
    size_t n = 0;
    const char *text = call_body(c, &n);
    struct error why = ERROR_INIT;
    AUTO_STRBUF converted;
    strbuf_init(&converted);
    *out = NULL;
    if (type == API_PATCH_APPLY) {
        if (from_yaml(n > 0 ? text : "null", n > 0 ? n : 4, &converted, &why) < 0)
            return api_fail(err, 400, "error decoding YAML: %s", why.text);
        text = strbuf_str(&converted);
        n = converted.len;
    }
    if (check_bounds(text, n, type == API_PATCH_JSON, err) < 0)
        return -1;
    if (json_parse(out, text, n, &why) < 0)
        return api_fail(err, 400, "error decoding patch: %s", why.text);
    return 0;
}

int api_check_kind(struct jsonnode *root, const struct api_type *type, struct error *err)
{
    const char *version = jsonnode_get_str(root, "apiVersion");
    const char *kind = jsonnode_get_str(root, "kind");
    version = version && *version ? version : type->api_version;
    kind = kind && *kind ? kind : type->kind;
    if (str_eq(kind, type->kind) &&
        (str_eq(version, type->api_version) || (type->older && str_eq(version, type->older))))
        return 0;
    const char *slash = strrchr(version, '/');
    const char *short_version = slash ? slash + 1 : version;
    const char *end = strchr(type->api_version, '/');
    int group = end ? (int)(end - type->api_version) : 0;
    if (!kinds_by_name(version, kind))
        return api_fail(err, 400,
                        "%s in version \"%s\" cannot be handled as a %s: no kind \"%s\" is "
                        "registered for version \"%s\" in scheme \"pkg/runtime/scheme.go:111\"",
                        kind, short_version, type->kind, kind, version);
    return api_fail(err, 400,
                    "%s in version \"%s\" cannot be handled as a %s: converting (%s.%s) to "
                    "(%.*s.%s): unknown conversion",
                    kind, short_version, type->kind, short_version, kind,
                    group > 0 ? group : (int)strlen("core"), group > 0 ? type->api_version : "core",
                    type->kind);
}

int api_decode(struct jsontree *t, const struct api_type *type, bool strict,
               struct typed_notes *notes, struct error *err)
{
    const char *slash = strrchr(type->api_version, '/');
    const char *version = slash ? slash + 1 : type->api_version;
    struct error why = ERROR_INIT;
    AUTO_STRBUF all;
    strbuf_init(&all);
    int rc = typed_decode(t, type->api_version, type->kind, notes, &why);
    if (rc < 0)
        strbuf_adds(&all, why.text);
    for (size_t i = 0; rc == 0 && strict && notes && i < notes->len; i++)
        strbuf_addf(&all, "%s%s", i > 0 ? ", " : "strict decoding error: ", notes->items[i]);
    if (all.len == 0)
        return 0;
    return api_fail(err, 400, "%s in version \"%s\" cannot be handled as a %s: %s", type->kind,
                    version, type->kind, strbuf_str(&all));
}
