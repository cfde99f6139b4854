// SPDX-License-Identifier: Apache-2.0
/*
 * admission_review - the AdmissionReview that a webhook gets, and what it answers. Pure.
 */
#include "test/local/admission/admission_internal.h"

#include <string.h>

#include "lib/base/base64.h"
#include "lib/base/json.h"

enum { WARNINGS_MAX = 64 };

static void put_kind(struct json_writer *w, const char *group, const char *version,
                     const char *last, const char *value)
{
    json_object_begin(w);
    json_kv_str(w, "group", group);
    json_kv_str(w, "version", version);
    json_kv_str(w, last, value);
    json_object_end(w);
}

/* A subresource may have a kind of its own: pods/binding is a Binding. */
static void put_object_kind(struct json_writer *w, const struct admission_request *r)
{
    const struct kind *k = r->kind;
    for (const struct kind_sub *s = r->sub ? k->subs : NULL; s && s->name; s++)
        if (str_eq(s->name, r->sub)) {
            put_kind(w, s->group ? s->group : k->group, s->version ? s->version : k->version,
                     "kind", s->kind);
            return;
        }
    if (str_eq(r->sub, "scale"))
        put_kind(w, "autoscaling", "v1", "kind", "Scale");
    else
        put_kind(w, k->group, k->version, "kind", k->kind);
}

static void put_text(struct json_writer *w, const char *key, const char *text)
{
    json_key(w, key);
    if (text)
        json_put_raw(w, text, strlen(text));
    else
        json_put_null(w);
}

void admission_review_print(const struct admission_request *r, const char *uid,
                            const char *object_text, const char *old_text, struct strbuf *out)
{
    const struct kind *k = r->kind;
    struct json_writer w;
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_kv_str(&w, "kind", "AdmissionReview");
    json_kv_str(&w, "apiVersion", "admission.k8s.io/v1");
    json_key(&w, "request");
    json_object_begin(&w);
    json_kv_str(&w, "uid", uid);
    for (int i = 0; i < 2; i++) { /* with one version of each kind both are the same */
        json_key(&w, i == 0 ? "kind" : "requestKind");
        put_object_kind(&w, r);
        json_key(&w, i == 0 ? "resource" : "requestResource");
        put_kind(&w, k->group, k->version, "resource", k->resource);
        if (r->sub)
            json_kv_str(&w, i == 0 ? "subResource" : "requestSubResource", r->sub);
    }
    if (r->name && *r->name)
        json_kv_str(&w, "name", r->name);
    if (r->ns && *r->ns)
        json_kv_str(&w, "namespace", r->ns);
    json_kv_str(&w, "operation", r->operation);
    json_key(&w, "userInfo");
    json_object_begin(&w);
    json_kv_str(&w, "username", r->user ? r->user : "kubernetes-admin");
    json_key(&w, "groups");
    json_array_begin(&w);
    json_put_str(&w, "system:masters");
    json_put_str(&w, "system:authenticated");
    json_array_end(&w);
    json_object_end(&w);
    put_text(&w, "object", object_text);
    put_text(&w, "oldObject", old_text);
    json_kv_bool(&w, "dryRun", r->dry_run);
    json_key(&w, "options");
    json_object_begin(&w);
    json_kv_str(&w, "kind",
                str_eq(r->operation, "CREATE")   ? "CreateOptions"
                : str_eq(r->operation, "DELETE") ? "DeleteOptions"
                                                 : "UpdateOptions");
    json_kv_str(&w, "apiVersion", "meta.k8s.io/v1");
    if (r->dry_run) {
        json_key(&w, "dryRun");
        json_array_begin(&w);
        json_put_str(&w, "All");
        json_array_end(&w);
    }
    json_object_end(&w);
    json_object_end(&w);
    json_object_end(&w);
}

void admission_verdict_deinit(struct admission_verdict *v)
{
    json_free(v->patch);
    json_free(v->doc);
    *v = (struct admission_verdict){0};
}

static int read_patch(json *response, struct json_doc **out, struct error *err)
{
    const char *text = json_get_str(response, "patch");
    if (!text || !*text)
        return 0;
    const char *type = json_get_str(response, "patchType");
    if (!str_eq(type, "JSONPatch"))
        return error_set(err, ERROR_INVALID, "webhook returned response.patch but %s%s%s",
                         type ? "response.patchType is " : "not response.patchType",
                         type ? type : "", type ? ", not JSONPatch" : "");
    struct strbuf bytes = {0};
    int rc = 0;
    if (!base64_decode(text, strlen(text), &bytes))
        rc = error_set(err, ERROR_INVALID, "response.patch: not base64");
    else if (json_parse(out, strbuf_str(&bytes), bytes.len, err) < 0)
        rc = error_wrap(err, "response.patch");
    strbuf_deinit(&bytes);
    return rc;
}

static int read_response(json *root, const char *uid, struct admission_verdict *out,
                         struct error *err)
{
    json *response = json_get(root, "response");
    const char *version = json_get_str(root, "apiVersion"), *kind = json_get_str(root, "kind");
    if (!str_eq(version, "admission.k8s.io/v1") || !str_eq(kind, "AdmissionReview"))
        return error_set(err, ERROR_INVALID,
                         "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, "
                         "got %s, Kind=%s",
                         str_or_empty(version), str_or_empty(kind));
    if (!json_is_object(response))
        return error_set(err, ERROR_INVALID, "webhook response was absent");
    const char *got = json_get_str(response, "uid");
    if (!str_eq(got, uid))
        return error_set(err, ERROR_INVALID, "expected response.uid=\"%s\", got \"%s\"", uid,
                         str_or_empty(got));
    out->allowed = json_get_bool(response, "allowed", false);
    out->warnings = json_get(response, "warnings");
    if (json_len(out->warnings) > WARNINGS_MAX)
        out->warnings = NULL;
    if (!out->allowed) {
        json *status = json_get(response, "status");
        int64_t code = 0;
        json_get_int(status, "code", &code);
        out->code = code >= 400 && code < 600 ? (int)code : 400;
        out->message = json_get_str(status, "message");
        if (!out->message || !*out->message)
            out->message = str_or_empty(json_get_str(status, "reason"));
        return 0;
    }
    return read_patch(response, &out->patch, err);
}

int admission_review_read(const char *text, size_t n, const char *uid,
                          struct admission_verdict *out, struct error *err)
{
    *out = (struct admission_verdict){.message = ""};
    if (json_parse(&out->doc, text, n, err) < 0)
        return error_wrap(err,
                          "failed to call webhook: couldn't get version/kind; json parse error");
    if (read_response(json_root(out->doc), uid, out, err) < 0)
        return error_wrap(err, "received invalid webhook response");
    return 0;
}
