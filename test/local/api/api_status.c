// SPDX-License-Identifier: Apache-2.0
/*
 * api_status - Status objects, as the API server forms them.
 *
 * The sentence carries it all: `pods "x" not found`, `Pod "x" is invalid: spec.containers: Required
 * value`, `Operation cannot be fulfilled on pods "x": ...`. Errors carry the whole sentence; the
 * machine-readable part (reason, details, causes) is parsed from it here, so the two cannot
 * disagree and struct error suffices.
 */
#include "test/local/api/api.h"

#include <string.h>

#include "lib/base/json.h"
#include "test/local/api/api_internal.h"

static int status_of(const struct error *err)
{
    if (err->http_status != 0)
        return err->http_status;
    switch (err->code) {
    case ERROR_INVALID:
    case ERROR_RANGE:
        return 422;
    case ERROR_TOO_LARGE:
        return 413;
    case ERROR_UNSUPPORTED:
        return 501;
    case ERROR_NOT_FOUND:
        return 404;
    case ERROR_CONFLICT:
        return 409;
    case ERROR_GONE:
        return 410;
    case ERROR_DENIED:
        return 403;
    case ERROR_THROTTLED:
        return 429;
    case ERROR_TIMEOUT:
        return 504;
    case ERROR_UNAVAILABLE:
        return 503;
    default:
        return 500;
    }
}

/* NULL: the API server gives none. */
static const char *reason_of(int status, const char *message)
{
    switch (status) {
    case 400:
        return "BadRequest";
    case 401:
        return "Unauthorized";
    case 403:
        return "Forbidden";
    case 404:
        return "NotFound";
    case 405:
        return "MethodNotAllowed";
    case 406:
        return "NotAcceptable";
    case 409:
        return str_ends(message, "already exists") ? "AlreadyExists" : "Conflict";
    case 410:
        return "Expired";
    case 413:
        return "RequestEntityTooLarge";
    case 415:
        return "UnsupportedMediaType";
    case 422:
        return "Invalid";
    case 429:
        return "TooManyRequests";
    case 503:
        return "ServiceUnavailable";
    case 504:
        return "Timeout";
    default:
        return NULL;
    }
}

/* `deployments.apps "web"`: what (deployments), group (apps), name (web). */
struct subject {
    const char *what, *group, *name;
    size_t what_len, group_len, name_len;
    const char *rest; /* behind the closing quote */
};

static bool read_subject(const char *text, struct subject *out)
{
    size_t word = strcspn(text, " \"");
    if (word == 0 || strncmp(text + word, " \"", 2) != 0)
        return word == 0 && strncmp(text, " \"\"", 3) == 0; /* ` "" is invalid` */
    const char *name = text + word + 2;
    const char *end = strchr(name, '"');
    if (!end)
        return false;
    size_t what = 0;
    while (what < word && text[what] != '.')
        what++;
    out->what = text;
    out->what_len = what;
    out->group = what < word ? text + what + 1 : text + word;
    out->group_len = what < word ? word - what - 1 : 0;
    out->name = name;
    out->name_len = (size_t)(end - name);
    out->rest = end + 1;
    return true;
}

static void put_subject(struct json_writer *w, const struct subject *s)
{
    if (s->name_len > 0) {
        json_key(w, "name");
        json_put_str_n(w, s->name, s->name_len);
    }
    if (s->group_len > 0) {
        json_key(w, "group");
        json_put_str_n(w, s->group, s->group_len);
    }
    json_key(w, "kind");
    json_put_str_n(w, s->what, s->what_len);
}

static const char *cause_reason(const char *message)
{
    static const struct {
        const char *start, *reason;
    } rows[] = {
        {"Required value", "FieldValueRequired"},   {"Invalid value", "FieldValueInvalid"},
        {"Duplicate value", "FieldValueDuplicate"}, {"Not found", "FieldValueNotFound"},
        {"Forbidden", "FieldValueForbidden"},       {"Unsupported value", "FieldValueNotSupported"},
        {"Too long", "FieldValueTooLong"},          {"Too many", "FieldValueTooMany"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (str_starts(message, rows[i].start))
            return rows[i].reason;
    return "FieldValueInvalid";
}

/* Where the next `field.path: Kind of value` begins in "one, two]": behind a ", " after which a
 * known kind follows a path. */
static const char *next_cause(const char *text)
{
    for (const char *p = text; (p = strstr(p, ", ")); p++) {
        size_t path = strcspn(p + 2, " :,\"");
        if (path > 0 && strncmp(p + 2 + path, ": ", 2) == 0 && p[2] >= 'a' && p[2] <= 'z')
            return p;
    }
    return NULL;
}

static void put_cause(struct json_writer *w, const char *text, size_t n)
{
    const char *colon = memmem(text, n, ": ", 2);
    if (!colon)
        return;
    const char *message = colon + 2;
    json_object_begin(w);
    json_kv_str(w, "reason", cause_reason(message));
    json_key(w, "message");
    json_put_str_n(w, message, n - (size_t)(message - text));
    json_key(w, "field");
    json_put_str_n(w, text, (size_t)(colon - text));
    json_object_end(w);
}

static void put_causes(struct json_writer *w, const char *text)
{
    size_t n = strlen(text);
    bool several =
        n > 1 && text[0] == '['; /* the end may be cut off: an error holds only so much */
    json_key(w, "causes");
    json_array_begin(w);
    if (several) {
        const char *end = text[n - 1] == ']' ? text + n - 1 : text + n;
        const char *at = text + 1;
        for (const char *next; (next = next_cause(at)) && next < end; at = next + 2)
            put_cause(w, at, (size_t)(next - at));
        put_cause(w, at, (size_t)(end - at));
    } else {
        put_cause(w, text, n);
    }
    json_array_end(w);
}

static void put_conflicts(struct json_writer *w, const char *text)
{
    json_key(w, "causes");
    json_array_begin(w);
    for (const char *p = text; (p = strstr(p, "conflict with \"")); p++) {
        const char *end = strstr(p + 15, "\": ");
        if (!end)
            break;
        const char *path = end + 3;
        const char *stop = strstr(path, ", conflict with");
        json_object_begin(w);
        json_kv_str(w, "reason", "FieldManagerConflict");
        json_key(w, "message");
        json_put_str_n(w, p, (size_t)(end + 1 - p));
        json_key(w, "field");
        json_put_str_n(w, path, stop ? (size_t)(stop - path) : strlen(path));
        json_object_end(w);
    }
    json_array_end(w);
}

/* `...in namespace x because it is being terminated` has a cause of its own. */
static void put_terminating(struct json_writer *w, const char *text)
{
    static const char before[] = "unable to create new content in namespace ";
    const char *ns = strstr(text, before);
    const char *end = ns ? strstr(ns, " because it is being terminated") : NULL;
    char message[300];
    if (!ns || !end)
        return;
    ns += strlen(before);
    (void)str_format(message, sizeof message, "namespace %.*s is being terminated", (int)(end - ns),
                     ns);
    json_key(w, "causes");
    json_array_begin(w);
    json_object_begin(w);
    json_kv_str(w, "reason", "NamespaceTerminating");
    json_kv_str(w, "message", message);
    json_kv_str(w, "field", "metadata.namespace");
    json_object_end(w);
    json_array_end(w);
}

/* Reads the details from the sentence. Nothing is written when the sentence has none. */
static void put_details(struct strbuf *out, int status, const char *message)
{
    static const char cannot[] = "Operation cannot be fulfilled on ";
    static const char invalid[] = " is invalid: ";
    struct subject s = {0};
    struct json_writer w;
    json_writer_init(&w, out);
    json_object_begin(&w);
    if (status == 422 && read_subject(message, &s)) {
        const char *why = strstr(s.rest ? s.rest : message, invalid);
        if (s.what)
            put_subject(&w, &s);
        if (why)
            put_causes(&w, why + strlen(invalid));
    } else if (status == 409 && str_starts(message, cannot)) {
        if (read_subject(message + strlen(cannot), &s) && s.what)
            put_subject(&w, &s);
    } else if (status == 409 && str_starts(message, "Apply failed")) {
        put_conflicts(&w, message);
    } else if ((status == 404 || status == 409 || status == 403) && read_subject(message, &s) &&
               s.what) {
        put_subject(&w, &s);
        if (status == 403)
            put_terminating(&w, s.rest);
    }
    json_object_end(&w);
}

void api_status_failure(struct strbuf *out, int code, const char *reason, const char *message,
                        const char *details)
{
    struct json_writer w;
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_kv_str(&w, "kind", "Status");
    json_kv_str(&w, "apiVersion", "v1");
    json_key(&w, "metadata");
    json_put_raw(&w, "{}", 2);
    json_kv_str(&w, "status", "Failure");
    json_kv_str(&w, "message", message);
    if (reason)
        json_kv_str(&w, "reason", reason);
    if (details) {
        json_key(&w, "details");
        json_put_raw(&w, details, strlen(details));
    }
    json_kv_int(&w, "code", code);
    json_object_end(&w);
}

void api_status_success(struct strbuf *out, const struct kind *k, const char *name, const char *uid,
                        int code)
{
    struct json_writer w;
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_kv_str(&w, "kind", "Status");
    json_kv_str(&w, "apiVersion", "v1");
    json_key(&w, "metadata");
    json_put_raw(&w, "{}", 2);
    json_kv_str(&w, "status", "Success");
    if (k) {
        json_key(&w, "details");
        json_object_begin(&w);
        json_kv_str(&w, "name", name);
        if (*k->group)
            json_kv_str(&w, "group", k->group);
        json_kv_str(&w, "kind", k->resource);
        json_kv_str(&w, "uid", uid);
        json_object_end(&w);
    }
    if (code != 0)
        json_kv_int(&w, "code", code);
    json_object_end(&w);
}

void api_status_print(const struct error *err, const struct kind *k, const char *name,
                      struct strbuf *out)
{
    int status = status_of(err);
    AUTO_STRBUF message;
    AUTO_STRBUF details;
    strbuf_init(&message);
    strbuf_init(&details);
    if (status == 422 && k && !strstr(err->text, " is invalid: ") &&
        !str_starts(err->text, "the server rejected"))
        strbuf_addf(&message, "%s%s%s \"%s\" is invalid: ", k->kind, *k->group ? "." : "", k->group,
                    str_or_empty(name));
    strbuf_adds(&message, err->text);
    put_details(&details, status, strbuf_str(&message));
    /* Where the API server itself looked at the path and the headers only, details are there and
     * empty. */
    bool empty = details.len <= 2;
    bool shown = status == 405 || str_starts(err->text, "the server ") ||
                 str_starts(err->text, "415: ") || str_starts(err->text, "406: ");
    api_status_failure(out, status, reason_of(status, err->text), strbuf_str(&message),
                       !empty  ? strbuf_str(&details)
                       : shown ? "{}"
                               : NULL);
}
