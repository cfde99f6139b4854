// SPDX-License-Identifier: Apache-2.0
/*
 * api_patch - a PATCH's media type, its options, and the patch done to a tree.
 */
#include <string.h>
#include <strings.h>

#include "lib/base/yaml.h"
#include "test/local/api_inside.h"
#include "test/local/patch.h"

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

int api_apply_patch(struct call *c, struct jsontree *t, enum api_patch_type type, const char *kind,
                    struct error *err)
{
    AUTO_JSON *doc = NULL;
    size_t n = 0;
    const char *text = call_body(c, &n);
    struct error why = ERROR_INIT;
    if (type == API_PATCH_APPLY) {
        if (yaml_parse(&doc, text, n, API_PATCH_MAX, &why) < 0)
            return api_fail(err, 400, "error decoding YAML: %s", why.text);
        const char *force = call_query(c, "force");
        return patch_apply(t, kind, json_root(doc), call_query(c, "fieldManager"),
                           str_eq(force, "true") || str_eq(force, "1"), err);
    }
    if (json_parse(&doc, text, n, &why) < 0)
        return api_fail(err, 400, "error decoding patch: %s", why.text);
    if (type == API_PATCH_MERGE)
        return patch_merge(t, json_root(doc), err);
    if (type == API_PATCH_STRATEGIC)
        return patch_strategic(t, kind, json_root(doc), err);
    if (patch_json(t, json_root(doc), &why) == 0)
        return 0;
    if (why.http_status == 422) /* which of the operations failed is not told */
        return api_fail(err, 422, "the server rejected our request due to an error in our request");
    *err = why;
    return -1;
}
