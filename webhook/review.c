// SPDX-License-Identifier: Apache-2.0
/* The whole request path (parse, rules, patch, reply) without I/O, so unit tests and the fuzzer run
 * it too. `--check` uses it from review_judge on. */
#include "webhook/review.h"

#include "lib/base/base64.h"
#include "webhook/patch.h"

#define API_VERSION "admission.k8s.io/v1"

static const char *const result_names[REVIEW_RESULTS] = {
    [REVIEW_UNTOUCHED] = "untouched",
    [REVIEW_PATCHED] = "patched",
    [REVIEW_REFUSED] = "refused",
    [REVIEW_MALFORMED] = "malformed",
};

const char *review_result_name(enum review_result result)
{
    return result_names[result];
}

/* *out is "" if the field is absent, and also on error (not a string). */
static int optional_str(json *object, const char *field, const char **out, struct error *err)
{
    json *v = json_get(object, field);
    *out = v ? json_str(v) : "";
    if (*out)
        return 0;
    *out = "";
    return error_set(err, ERROR_INVALID, "request.%s: must be a string, not %s", field,
                     json_kind_name(v));
}

static int required_str(json *object, const char *field, const char **out, struct error *err)
{
    if (optional_str(object, field, out, err) < 0)
        return -1;
    if (**out == '\0')
        return error_set(err, ERROR_INVALID, "request.%s: is missing", field);
    return 0;
}

int review_parse(json *root, struct review *out, struct error *err)
{
    *out = (struct review){.uid = "",
                           .operation = "",
                           .group = "",
                           .version = "",
                           .kind = "",
                           .subresource = "",
                           .ns = "",
                           .name = ""};
    const char *api = json_get_str(root, "apiVersion");
    const char *kind = json_get_str(root, "kind");
    if (!str_eq(kind, "AdmissionReview"))
        return error_set(err, ERROR_INVALID, "kind: expected AdmissionReview, got '%s'",
                         str_or_empty(kind));
    if (!str_eq(api, API_VERSION))
        return error_set(err, ERROR_UNSUPPORTED,
                         "apiVersion: only " API_VERSION " is spoken here, got '%s'",
                         str_or_empty(api));
    json *request = json_get(root, "request");
    if (!json_is_object(request))
        return error_set(err, ERROR_INVALID, "request: must be an object, not %s",
                         json_kind_name(request));
    if (required_str(request, "uid", &out->uid, err) < 0 ||
        required_str(request, "operation", &out->operation, err) < 0 ||
        optional_str(request, "subResource", &out->subresource, err) < 0 ||
        optional_str(request, "namespace", &out->ns, err) < 0 ||
        optional_str(request, "name", &out->name, err) < 0)
        return -1;
    if (strlen(out->uid) > REVIEW_UID_MAX)
        return error_set(err, ERROR_INVALID, "request.uid: is longer than %d bytes",
                         REVIEW_UID_MAX);
    json *gvk = json_get(request, "kind");
    if (optional_str(gvk, "group", &out->group, err) < 0 ||
        required_str(gvk, "version", &out->version, err) < 0 ||
        required_str(gvk, "kind", &out->kind, err) < 0)
        return error_wrap(err, "request.kind");
    out->dry_run = json_get_bool(request, "dryRun", false);
    json *object = json_get(request, "object");
    json *old = json_get(request, "oldObject");
    out->object = json_is_null(object) ? NULL : object;
    out->old = json_is_null(old) ? NULL : old;
    return 0;
}

/* Writes the members of a metav1.Status. */
static void put_status(struct json_writer *w, int code, const char *reason, const char *message)
{
    json_kv_str(w, "status", "Failure");
    json_kv_str(w, "message", message);
    json_kv_str(w, "reason", reason);
    json_kv_int(w, "code", code);
}

void review_status(struct strbuf *out, int code, const char *reason, const char *message)
{
    struct json_writer w;
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_kv_str(&w, "kind", "Status");
    json_kv_str(&w, "apiVersion", "v1");
    put_status(&w, code, reason, message);
    json_object_end(&w);
}

static const char *join(const struct rules_sentences *s, struct arena *a)
{
    const char *all = s->items[0];
    for (size_t i = 1; i < s->len; i++)
        all = arena_printf(a, "%s; %s", all, s->items[i]);
    return all;
}

static void put_response(struct json_writer *w, const char *uid, const struct rules_verdict *v,
                         struct patch *patch, const char *refusal)
{
    json_key(w, "response");
    json_object_begin(w);
    json_kv_str(w, "uid", uid);
    json_kv_bool(w, "allowed", refusal == NULL);
    if (refusal) {
        json_key(w, "status");
        json_object_begin(w);
        put_status(w, 422, "Invalid", refusal);
        json_object_end(w);
    } else if (!patch_is_empty(patch)) {
        const char *text = patch_text(patch);
        AUTO_STRBUF base64 = {0};
        base64_encode(text, strlen(text), &base64);
        json_kv_str(w, "patchType", "JSONPatch");
        json_kv_str(w, "patch", strbuf_str(&base64));
    }
    if (v->warnings.len > 0) {
        json_key(w, "warnings");
        json_array_begin(w);
        for (size_t i = 0; i < v->warnings.len; i++)
            json_put_str(w, v->warnings.items[i]);
        json_array_end(w);
    }
    json_object_end(w);
}

static void put_review(struct strbuf *out, const char *uid, const struct rules_verdict *v,
                       struct patch *patch, const char *refusal)
{
    struct json_writer w;
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_kv_str(&w, "kind", "AdmissionReview");
    json_kv_str(&w, "apiVersion", API_VERSION);
    put_response(&w, uid, v, patch, refusal);
    json_object_end(&w);
}

static void make_patch(const struct review_config *config, const struct rules_verdict *v,
                       struct patch *p)
{
    for (size_t i = 0; i < v->remove_len; i++)
        patch_remove(p, "metadata", "annotations", v->remove[i], NULL);
    for (size_t i = 0; i < v->fill_len; i++) {
        const struct rules_fill *f = &v->fill[i];
        char index[24];
        (void)str_format(index, sizeof index, "%zu", f->index);
        if (f->make)
            patch_add_value(p, NULL, "spec", f->list, index, "resources", f->missing, NULL);
        patch_add_value(p, f->value, "spec", f->list, index, "resources", f->missing, f->resource,
                        NULL);
    }
    if (v->inject)
        patch_add_str(p, config->rules.scheduler, "spec", "schedulerName", NULL);
}

int review_judge(const struct review_config *config, const struct rules_subject *s, const char *ns,
                 struct arena *a, struct rules_verdict *out, struct error *err)
{
    struct rules_context context = {.ns = ns};
    if (config->enter)
        config->enter(config->arg, ns, &context);
    int rc = rules_object(&config->rules, &context, s, a, out, err);
    if (config->leave)
        config->leave(config->arg);
    return rc;
}

static int judge(const struct review_config *config, const struct review *r, struct arena *a,
                 struct rules_verdict *v, struct error *err)
{
    struct rules_subject s = {.group = r->group,
                              .kind = r->kind,
                              .subresource = r->subresource,
                              .operation = r->operation,
                              .object = r->object,
                              .old = r->old};
    if (review_judge(config, &s, r->ns, a, v, err) < 0)
        return error_wrap(err, "request.object");
    return 0;
}

static int answer(const struct review_config *config, bool mutate, char *body, size_t n,
                  struct arena *a, struct strbuf *out, struct review_outcome *o, struct error *err)
{
    AUTO_JSON *doc = NULL;
    struct review r;
    struct rules_verdict v;
    if (json_parse_insitu(&doc, body, n, err) < 0)
        return error_wrap(err, "body");
    if (review_parse(json_root(doc), &r, err) < 0 || judge(config, &r, a, &v, err) < 0)
        return -1;
    AUTO_PATCH patch = {.len = 0};
    patch_init(&patch);
    if (mutate)
        make_patch(config, &v, &patch);
    o->uid = arena_strdup(a, r.uid);
    o->kind = arena_strdup(a, r.kind);
    o->ns = arena_strdup(a, r.ns);
    o->name = arena_strdup(a, r.name);
    if (v.refusals.len > 0) {
        o->result = REVIEW_REFUSED;
        o->message = join(&v.refusals, a);
    } else if (!patch_is_empty(&patch)) {
        o->result = REVIEW_PATCHED;
        o->trigger = v.inject ? v.trigger : NULL;
        o->removed = v.remove_len;
    }
    put_review(out, r.uid, &v, &patch, o->message);
    return 0;
}

void review_answer(const struct review_config *config, bool mutate, char *body, size_t n,
                   struct arena *a, struct strbuf *out, struct review_outcome *outcome)
{
    *outcome = (struct review_outcome){
        .result = REVIEW_UNTOUCHED, .status = 200, .uid = "", .kind = "", .ns = "", .name = ""};
    struct error err = ERROR_INIT;
    if (answer(config, mutate, body, n, a, out, outcome, &err) == 0)
        return;
    outcome->result = REVIEW_MALFORMED;
    outcome->status = 400;
    outcome->message = arena_strdup(a, err.text);
    review_status(out, outcome->status, "BadRequest", err.text);
}
