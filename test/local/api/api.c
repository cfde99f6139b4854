// SPDX-License-Identifier: Apache-2.0
/*
 * api - see api.h. From a request to a verb:
 *
 *   api_handle ─► discovery_handle ─► read_path
 *       ├─► collection:  GET api_list, api_watch; POST api_write; DELETE api_delete_many
 *       ├─► object:      GET api_get; PUT, PATCH api_write; DELETE api_delete_one
 *       └─► subresource: status as the object; api_pods.c, api_scale.c
 *
 * Everything but a write that meets a webhook is answered before api_handle returns.
 */
#include "test/local/api/api.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "test/local/api/api_internal.h"
#include "test/local/kinds/discovery.h"
#include "test/local/kinds/table.h"

struct api *api_new(const struct api_config *c)
{
    struct api *a = mem_new(struct api, 1);
    a->config = *c;
    a->store = c->store;
    strbuf_init(&a->scratch);
    a->watches = api_watches_new(a);
    return a;
}

void api_free(struct api *a)
{
    if (!a)
        return;
    api_watches_free(a->watches);
    while (a->waiting)
        api_request_free(a->waiting);
    strbuf_deinit(&a->scratch);
    free(a);
}

/* ---- errors and replies ---- */

static enum error_code code_of(int status)
{
    switch (status) {
    case 404:
        return ERROR_NOT_FOUND;
    case 409:
        return ERROR_CONFLICT;
    case 410:
        return ERROR_GONE;
    case 401:
    case 403:
        return ERROR_DENIED;
    case 429:
        return ERROR_THROTTLED;
    case 501:
        return ERROR_UNSUPPORTED;
    case 504:
        return ERROR_TIMEOUT;
    default:
        return status >= 500 ? ERROR_INTERNAL : ERROR_INVALID;
    }
}

int api_fail(struct error *err, int status, const char *fmt, ...)
{
    char text[ERROR_TEXT_SIZE + 8];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    (void)error_set(err, code_of(status), "%s", text);
    if (err)
        err->http_status = status;
    return -1;
}

int api_not_found(struct error *err, const struct kind *k, const char *name)
{
    return api_fail(err, 404, "%s%s%s \"%s\" not found", k->resource, *k->group ? "." : "",
                    k->group, name);
}

static int status_of(const struct strbuf *status_text)
{
    AUTO_JSON *doc = NULL;
    int64_t code = 500;
    if (json_parse(&doc, strbuf_str(status_text), status_text->len, NULL) == 0)
        (void)json_get_int(json_root(doc), "code", &code);
    return (int)code;
}

void api_reply_refusal(struct call *c, const struct error *err, const struct kind *k,
                       const char *name, const char *warnings)
{
    struct strbuf body;
    strbuf_init(&body);
    api_status_print(err, k, name, &body);
    call_reply(c, err->http_status ? err->http_status : status_of(&body), "application/json",
               err->http_status == 429 ? "Retry-After: 1\r\n" : warnings, &body);
}

void api_reply_error(struct call *c, const struct error *err, const struct kind *k,
                     const char *name)
{
    api_reply_refusal(c, err, k, name, NULL);
}

void api_reply_text(struct call *c, int status, const char *warnings, struct strbuf *take)
{
    call_reply(c, status, "application/json", warnings, take);
}

static void print_partial(const struct object *o, struct strbuf *out)
{
    AUTO_JSON *doc = NULL;
    struct json_writer w;
    if (json_parse(&doc, o->text, o->text_len, NULL) < 0)
        return;
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_kv_str(&w, "kind", "PartialObjectMetadata");
    json_kv_str(&w, "apiVersion", "meta.k8s.io/v1");
    json_key(&w, "metadata");
    json_put_value(&w, json_get(json_root(doc), "metadata"));
    json_object_end(&w);
}

void api_print_object(struct api *a, enum api_form form, struct object *o, struct strbuf *out)
{
    char meta[64];
    switch (form) {
    case API_TABLE:
    case API_TABLE_FULL:
        (void)str_format(meta, sizeof meta, "{\"resourceVersion\":\"%llu\"}",
                         (unsigned long long)o->version);
        table_print_list(o->kind, &o, 1, meta, form == API_TABLE_FULL, a->config.now_ns(), out);
        break;
    case API_PARTIAL:
        print_partial(o, out);
        break;
    case API_JSON:
        strbuf_add(out, o->text, o->text_len);
        break;
    }
}

void api_reply_object(struct api *a, struct call *c, int status, const char *warnings,
                      struct object *o)
{
    enum api_form form = API_JSON;
    struct error err = ERROR_INIT;
    struct strbuf body;
    if (api_form_of(c, &form, &err) < 0) {
        api_reply_error(c, &err, NULL, NULL);
        return;
    }
    strbuf_init(&body);
    strbuf_reserve(&body, o->text_len + 1);
    api_print_object(a, form, o, &body);
    call_reply(c, status, "application/json", warnings, &body);
}

/* ---- what is asked ---- */

/* One of Accept's choices, n bytes: 1 taken, 0 not ours, -1 ours but for what it asks the server to
 * make of it. */
static int read_choice(const char *text, size_t n, bool full, enum api_form *out)
{
    static const char plain[] = "application/json";
    while (n > 0 && (*text == ' ' || *text == '\t'))
        text++, n--;
    size_t type = 0;
    while (type < n && text[type] != ';' && text[type] != ' ')
        type++;
    bool any = (type == 3 && memcmp(text, "*/*", 3) == 0) ||
               (type == 13 && memcmp(text, "application/*", 13) == 0);
    if (!any && (type != strlen(plain) || strncasecmp(text, plain, type) != 0))
        return 0;
    const char *as = memmem(text, n, ";as=", 4);
    if (!as) {
        *out = API_JSON;
        return 1;
    }
    as += 4;
    size_t word = strcspn(as, ";, ");
    const char *version = memmem(text, n, ";v=", 3);
    if (!version || strcspn(version + 3, ";, ") != 2 || memcmp(version + 3, "v1", 2) != 0)
        return -1;
    if (word == 5 && memcmp(as, "Table", 5) == 0)
        *out = full ? API_TABLE_FULL : API_TABLE;
    else if ((word == 21 || word == 25) && memcmp(as, "PartialObjectMetadata", 21) == 0)
        *out = API_PARTIAL;
    else
        return -1;
    return 1;
}

int api_form_of(const struct call *c, enum api_form *out, struct error *err)
{
    const char *accept = call_header(c, "Accept");
    bool full = str_eq(call_query(c, "includeObject"), "Object");
    bool ours = false;
    *out = API_JSON;
    if (!accept || !*accept)
        return 0;
    for (const char *at = accept; *at != '\0';) {
        size_t n = strcspn(at, ",");
        int taken = read_choice(at, n, full, out);
        if (taken == 1)
            return 0;
        ours = ours || taken < 0;
        at += n + (at[n] == ',' ? 1 : 0);
    }
    if (ours)
        return api_fail(err, 406, "only the following media types are accepted: application/json");
    return api_fail(err, 406,
                    "406: Not Acceptable: available representations: application/json, "
                    "application/json;stream=watch");
}

/* ---- the path ---- */

enum { MAX_PARTS = 10 };

static bool is_served(const char *group, const char *version)
{
    for (size_t i = 0; kinds_all[i]; i++)
        if (str_eq(kinds_all[i]->group, group) && str_eq(kinds_all[i]->version, version))
            return true;
    return false;
}

/* 0: an object or a collection; -1: the resource is unknown; -2: no path of ours. */
static int read_path(const char *path, struct api_target *t)
{
    char *parts[MAX_PARTS];
    size_t n = 0;
    size_t length = strlen(path);
    if (length >= sizeof t->buf)
        return -2;
    memcpy(t->buf, path, length + 1);
    for (char *at = t->buf; *at != '\0';) {
        char *end = strchrnul(at, '/');
        bool last = *end == '\0';
        *end = '\0';
        if (end > at) {
            if (n == MAX_PARTS)
                return -2;
            parts[n++] = at;
        }
        at = last ? end : end + 1;
    }
    size_t i = 0;
    const char *group = "";
    const char *version = NULL;
    if (n >= 3 && str_eq(parts[0], "api")) {
        version = parts[1];
        i = 2;
    } else if (n >= 4 && str_eq(parts[0], "apis")) {
        group = parts[1];
        version = parts[2];
        i = 3;
    } else {
        return -2;
    }
    if (str_eq(parts[i], "watch") && i + 1 < n) {
        t->watch = true;
        i++;
    }
    /* /namespaces/NS/RESOURCE...; /namespaces/NAME[/status] is an object of its own. */
    if (str_eq(parts[i], "namespaces") && n - i >= 3 &&
        !(n - i == 3 && (str_eq(parts[i + 2], "status") || str_eq(parts[i + 2], "finalize")))) {
        t->ns = parts[i + 1];
        i += 2;
    }
    t->kind = kinds_find(group, version, parts[i]);
    if (!t->kind && !is_served(group, version))
        return -2;
    if (!t->kind || (t->ns && !t->kind->namespaced) || n - i > 4)
        return -1;
    t->name = n - i > 1 ? parts[i + 1] : NULL;
    t->sub = n - i > 2 ? parts[i + 2] : NULL;
    if (n - i > 3 && !str_eq(t->sub, "proxy"))
        return -1;
    /* An object of a namespace needs one. */
    return t->name && t->kind->namespaced && !t->ns ? -1 : 0;
}

static void reply_plain_404(struct call *c)
{
    struct strbuf body;
    strbuf_init(&body);
    strbuf_adds(&body, "404 page not found\n");
    call_reply(c, 404, "text/plain; charset=utf-8", NULL, &body);
}

static void not_allowed(struct call *c)
{
    struct error err = ERROR_INIT;
    (void)api_fail(&err, 405, "the server does not allow this method on the requested resource");
    api_reply_error(c, &err, NULL, NULL);
}

static void unknown_resource(struct call *c)
{
    struct error err = ERROR_INIT;
    (void)api_fail(&err, 404, "the server could not find the requested resource");
    api_reply_error(c, &err, NULL, NULL);
}

static bool asks_to_watch(const struct call *c, const struct api_target *t)
{
    return t->watch || api_query_bool(call_query(c, "watch"));
}

static void collection(struct api *a, struct call *c, const struct api_target *t)
{
    const char *m = call_method(c);
    const struct kind *k = t->kind;
    bool one_place = t->ns || !k->namespaced;
    if (str_eq(m, "GET") && asks_to_watch(c, t) && kinds_has_verb(k, "watch"))
        api_watch(a, c, t);
    else if (str_eq(m, "GET") && kinds_has_verb(k, "list"))
        api_list(a, c, t);
    else if (str_eq(m, "POST") && one_place && k == &kind_bindings)
        api_pods_bind(a, c, t);
    else if (str_eq(m, "POST") && one_place && kinds_has_verb(k, "create"))
        api_write(a, c, t, API_CREATE);
    else if (str_eq(m, "DELETE") && one_place && kinds_has_verb(k, "deletecollection"))
        api_delete_many(a, c, t);
    else
        not_allowed(c);
}

static void object_itself(struct api *a, struct call *c, const struct api_target *t)
{
    const char *m = call_method(c);
    const struct kind *k = t->kind;
    if (str_eq(m, "GET") && kinds_has_verb(k, "get"))
        api_get(a, c, t);
    else if (str_eq(m, "PUT") && kinds_has_verb(k, "update"))
        api_write(a, c, t, API_UPDATE);
    else if (str_eq(m, "PATCH") && kinds_has_verb(k, "patch"))
        api_write(a, c, t, API_PATCH);
    else if (str_eq(m, "DELETE") && !t->sub && kinds_has_verb(k, "delete"))
        api_delete_one(a, c, t);
    else
        not_allowed(c);
}

static void subresource(struct api *a, struct call *c, const struct api_target *t)
{
    const struct kind *k = t->kind;
    bool like_object =
        (str_eq(t->sub, "status") && k->has_status) ||
        (str_eq(t->sub, "finalize") && k == &kind_namespaces) ||
        (k == &kind_pods && (str_eq(t->sub, "resize") || str_eq(t->sub, "ephemeralcontainers")));
    if (like_object && (str_eq(call_method(c), "DELETE") ||
                        (str_eq(t->sub, "finalize") && !str_eq(call_method(c), "PUT"))))
        not_allowed(c);
    else if (like_object)
        object_itself(a, c, t);
    else if (str_eq(t->sub, "scale") && k->has_scale)
        api_scale_sub(a, c, t);
    else if (!api_pods_sub(a, c, t))
        unknown_resource(c);
}

void api_handle(struct api *a, struct call *c)
{
    struct api_target t;
    struct error err = ERROR_INIT;
    t.kind = NULL;
    t.ns = t.name = t.sub = NULL;
    t.watch = false;
    if (!call_authenticated(c)) {
        (void)api_fail(&err, 401, "Unauthorized");
        api_reply_error(c, &err, NULL, NULL);
        return;
    }
    int rc = read_path(call_path(c), &t);
    if (rc < 0 && discovery_handle(c))
        return;
    if (rc == -2)
        reply_plain_404(c);
    else if (rc == -1)
        unknown_resource(c);
    else if (t.watch && !str_eq(call_method(c), "GET"))
        not_allowed(c);
    else if (t.watch && t.name && !t.sub && kinds_has_verb(t.kind, "watch"))
        api_watch(a, c, &t);
    else if (!t.name)
        collection(a, c, &t);
    else if (!t.sub)
        object_itself(a, c, &t);
    else
        subresource(a, c, &t);
}
