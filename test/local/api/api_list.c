// SPDX-License-Identifier: Apache-2.0
/*
 * api_list - get and list.
 *
 * A list has one version. The store has only the newest objects and a history of the objects that
 * recent changes replaced. A list at an older version (the later pages of a long list,
 * resourceVersionMatch=Exact) is the newest one with those changes undone: api_collect. A version
 * older than the history gets 410.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/base64.h"
#include "lib/base/map.h"
#include "lib/base/vec.h"
#include "test/local/api/api_internal.h"
#include "test/local/kinds/table.h"

/* ---- at a version ---- */

struct collecting {
    const char *ns;
    const struct api_selection *selection;
    struct map *undone; /* key -> the object at that version, or &nothing */
    size_t limit;       /* 0: none */
    size_t found;       /* with those that the limit left out */
    struct api_objects *out;
};
static struct object nothing;

static bool collect_one(void *arg, struct object *o)
{
    struct collecting *c = arg;
    if ((c->undone && map_get(c->undone, o->key)) || !api_selected(c->selection, c->ns, o))
        return true;
    c->found++;
    if (c->limit == 0 || c->found <= c->limit)
        vec_push(c->out, object_ref(o));
    else
        return c->selection->all; /* remainingItemCount is set only without selectors */
    return true;
}

/* The first change of a key after the version says what was there at it. */
static void undo(void *arg, const struct store_event *e)
{
    struct map *undone = arg;
    if (!map_get(undone, e->object->key))
        (void)map_put(undone, e->object->key, e->before ? e->before : &nothing);
}

static int by_key(const void *a, const void *b)
{
    struct object *const *x = a;
    struct object *const *y = b;
    return strcmp((*x)->key, (*y)->key);
}

/* Those that were otherwise at the version come in between. */
static void collect_undone(struct collecting *c, const char *after)
{
    void *value = NULL;
    for (size_t i = 0; map_next(c->undone, &i, NULL, &value);) {
        struct object *o = value;
        if (o == &nothing || (after && strcmp(o->key, after) <= 0) ||
            !api_selected(c->selection, c->ns, o))
            continue;
        c->found++;
        vec_push(c->out, object_ref(o));
    }
    qsort(c->out->items, c->out->len, sizeof *c->out->items, by_key);
    while (c->limit > 0 && c->out->len > c->limit)
        object_unref(c->out->items[--c->out->len]);
}

bool api_collect(struct api *a, const struct kind *k, const char *ns, uint64_t version,
                 const struct api_selection *s, struct api_page *page, struct api_objects *out)
{
    struct map undone;
    struct collecting c = {.ns = ns, .selection = s, .limit = page ? page->limit : 0, .out = out};
    const char *after = page ? page->after : NULL;
    bool old = version != 0 && version < store_version(a->store);
    map_init(&undone);
    if (old && !store_replay(a->store, k, version, undo, &undone)) {
        map_deinit(&undone);
        return false;
    }
    if (map_count(&undone) > 0)
        c.undone = &undone;
    store_each(a->store, k, ns, after, collect_one, &c);
    if (c.undone)
        collect_undone(&c, after);
    map_deinit(&undone);
    if (page)
        page->left = c.found - out->len;
    return true;
}

void api_objects_deinit(struct api_objects *o)
{
    for (size_t i = 0; i < o->len; i++)
        object_unref(o->items[i]);
    vec_deinit(o);
}

/* ---- options ---- */

struct listing {
    uint64_t version; /* 0: the newest */
    bool exact;
    int64_t limit;
    struct strbuf after; /* continue behind this key; empty: from the start */
    bool resumed;
};

void api_print_too_large(uint64_t version, uint64_t now, struct strbuf *out)
{
    char message[128];
    (void)str_format(message, sizeof message,
                     "Timeout: Too large resource version: %llu, current: %llu",
                     (unsigned long long)version, (unsigned long long)now);
    api_status_failure(out, 504, "Timeout", message,
                       "{\"causes\":[{\"reason\":\"ResourceVersionTooLarge\",\"message\":\"Too "
                       "large resource version\"}],\"retryAfterSeconds\":1}");
}

static void reply_too_large(struct api *a, struct call *c, uint64_t version)
{
    struct strbuf body;
    strbuf_init(&body);
    api_print_too_large(version, store_version(a->store), &body);
    call_reply(c, 504, "application/json", "Retry-After: 1\r\n", &body);
}

static int bad_token(struct error *err, const char *why)
{
    return api_fail(err, 400, "invalid continue token: continue key is not valid: %s", why);
}

static int json_of_token(const char *token, struct json_doc **doc, struct error *err)
{
    AUTO_STRBUF text;
    AUTO_STRBUF padded;
    struct error why = ERROR_INIT;
    strbuf_init(&text);
    strbuf_init(&padded);
    if (strlen(token) > API_PATH_MAX * 2)
        return bad_token(err, "it is too long");
    for (const char *p = token; *p != '\0'; p++)
        strbuf_addc(&padded, *p == '-' ? '+' : *p == '_' ? '/' : *p == '=' ? '!' : *p);
    while (padded.len % 4 != 0)
        strbuf_addc(&padded, '=');
    if (!base64_decode(strbuf_str(&padded), padded.len, &text))
        return bad_token(err, "illegal base64 data");
    return json_parse(doc, strbuf_str(&text), text.len, &why) < 0 ? bad_token(err, why.text) : 0;
}

/*
 * {"v":"meta.k8s.io/v1","rv":420,"start":"default/c1"}, in base64 without padding. Version -1
 * continues with the current state, after a 410 for the version of the first page.
 */
static int read_token(const char *token, const char *ns, struct listing *l, struct error *err)
{
    AUTO_JSON *doc = NULL;
    int64_t version = 0;
    if (json_of_token(token, &doc, err) < 0)
        return -1;
    const char *form = str_or_empty(json_get_str(json_root(doc), "v"));
    const char *start = str_or_empty(json_get_str(json_root(doc), "start"));
    json *number = json_get(json_root(doc), "rv");
    if (!str_eq(form, "meta.k8s.io/v1"))
        return api_fail(err, 400,
                        "invalid continue token: continue key is not valid: server does not "
                        "recognize this encoded version %s",
                        form);
    if (number && !json_int(number, &version))
        return bad_token(err, "rv is no integer");
    if (version == 0 || version < -1)
        return bad_token(err, "incorrect encoded start resourceVersion (version meta.k8s.io/v1)");
    if (!*start)
        return bad_token(err, "encoded start key empty (version meta.k8s.io/v1)");
    size_t n = ns ? strlen(ns) : 0;
    if (ns && (strncmp(start, ns, n) != 0 || start[n] != '/'))
        return bad_token(err, start);
    l->version = version > 0 ? (uint64_t)version : 0;
    l->exact = version > 0;
    l->resumed = true;
    strbuf_adds(&l->after, start);
    return 0;
}

/* The URL form of base64: other digits at the end of the alphabet, and not padded. */
static void print_token(int64_t version, const char *key, struct strbuf *out)
{
    AUTO_STRBUF text;
    strbuf_init(&text);
    strbuf_addf(&text, "{\"v\":\"meta.k8s.io/v1\",\"rv\":%lld,\"start\":\"%s\"}",
                (long long)version, key);
    AUTO_STRBUF usual = {0};
    base64_encode(strbuf_str(&text), text.len, &usual);
    for (const char *p = strbuf_str(&usual); *p != '\0' && *p != '='; p++)
        strbuf_addc(out, *p == '+' ? '-' : *p == '/' ? '_' : *p);
}

static int read_options(const struct call *c, const struct api_target *t, struct listing *l,
                        struct error *err)
{
    struct api_list_options o;
    if (api_list_options(c, false, &o, err) < 0)
        return -1;
    l->limit = o.limit;
    if (o.token && *o.token && o.version && *o.version && !str_eq(o.version, "0"))
        return api_fail(err, 400, "specifying resource version is not allowed when using continue");
    if (o.token && *o.token)
        return read_token(o.token, t->ns, l, err);
    if (api_version_of(o.version, "invalid resource version: ", 400, &l->version, err) < 0)
        return -1;
    /* From version 0 a real server answers out of its cache, which knows no pages; events are not
     * in it. */
    if (str_eq(o.version, "0") && t->kind != &kind_events)
        l->limit = 0;
    /* A limit with a version and no match means Exact, an old rule. */
    l->exact =
        str_eq(o.match, "Exact") || (l->limit > 0 && l->version > 0 && !(o.match && *o.match));
    return 0;
}

/* ---- printing ---- */

/* In a list, built-in kinds say neither apiVersion nor kind: the list's kind says it. */
static void print_item(const struct object *o, const char *about, size_t n, struct strbuf *out)
{
    if (n > 0 && o->text_len > n && memcmp(o->text, about, n) == 0) {
        strbuf_addc(out, '{');
        strbuf_add(out, o->text + n, o->text_len - n);
    } else {
        strbuf_add(out, o->text, o->text_len);
    }
}

static void print_json(const struct kind *k, struct object *const *items, size_t n,
                       const char *meta, struct strbuf *out)
{
    char about[256];
    size_t bytes = 256;
    (void)str_format(about, sizeof about, "{\"apiVersion\":\"%s\",\"kind\":\"%s\",", k->api_version,
                     k->kind);
    for (size_t i = 0; i < n; i++)
        bytes += items[i]->text_len + 1;
    strbuf_reserve(out, bytes);
    strbuf_addf(out, "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":%s,\"items\":[",
                k->list_kind, k->api_version, meta);
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            strbuf_addc(out, ',');
        print_item(items[i], about, k->custom ? 0 : strlen(about), out);
    }
    strbuf_adds(out, "]}");
}

static void print_partials(struct api *a, struct object *const *items, size_t n, const char *meta,
                           struct strbuf *out)
{
    strbuf_addf(out,
                "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/v1\","
                "\"metadata\":%s,\"items\":[",
                meta);
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            strbuf_addc(out, ',');
        api_print_object(a, API_PARTIAL, items[i], out);
    }
    strbuf_adds(out, "]}");
}

void api_print_list(struct api *a, enum api_form form, const struct kind *k,
                    struct object *const *items, size_t n, const char *meta, struct strbuf *out)
{
    switch (form) {
    case API_JSON:
        print_json(k, items, n, meta, out);
        break;
    case API_PARTIAL:
        print_partials(a, items, n, meta, out);
        break;
    case API_TABLE:
    case API_TABLE_FULL:
        table_print_list(k, items, n, meta, form == API_TABLE_FULL, a->config.now_ns(), out);
        break;
    }
}

/* ---- verbs ---- */

void api_get(struct api *a, struct call *c, const struct api_target *t)
{
    struct error err = ERROR_INIT;
    uint64_t version = 0;
    struct object *o = store_get(a->store, t->kind, str_or_empty(t->ns), t->name);
    if (api_version_of(call_query(c, "resourceVersion"), "", 500, &version, &err) < 0) {
        api_reply_error(c, &err, t->kind, t->name);
    } else if (version > store_version(a->store)) {
        reply_too_large(a, c, version);
    } else if (!o) {
        (void)api_not_found(&err, t->kind, t->name);
        api_reply_error(c, &err, t->kind, t->name);
    } else {
        api_reply_object(a, c, 200, NULL, o);
    }
}

static void reply_page(struct api *a, struct call *c, const struct api_target *t,
                       const struct listing *l, const struct api_selection *s,
                       const struct api_objects *items, size_t left, enum api_form form)
{
    struct strbuf meta;
    struct strbuf body;
    uint64_t version = l->exact ? l->version : store_version(a->store);
    strbuf_init(&meta);
    strbuf_init(&body);
    strbuf_addf(&meta, "{\"resourceVersion\":\"%llu\"", (unsigned long long)version);
    if (left > 0) {
        strbuf_adds(&meta, ",\"continue\":\"");
        print_token((int64_t)version, items->items[items->len - 1]->key, &meta);
        strbuf_addc(&meta, '"');
        if (s->all)
            strbuf_addf(&meta, ",\"remainingItemCount\":%zu", left);
    }
    strbuf_addc(&meta, '}');
    static struct object *const none[1];
    api_print_list(a, form, t->kind, items->len > 0 ? items->items : none, items->len,
                   strbuf_str(&meta), &body);
    strbuf_deinit(&meta);
    call_reply(c, 200, "application/json", NULL, &body);
}

/* The 410 has a token with which the client can continue the list from the current state. */
static void reply_too_old(struct call *c, const struct listing *l)
{
    struct error err = ERROR_INIT;
    struct strbuf body;
    AUTO_STRBUF token;
    strbuf_init(&body);
    strbuf_init(&token);
    if (!l->resumed) {
        (void)api_fail(&err, 410, "The resourceVersion for the provided list is too old.");
        api_reply_error(c, &err, NULL, NULL);
        return;
    }
    print_token(-1, strbuf_str(&l->after), &token);
    strbuf_addf(
        &body,
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{\"continue\":\"%s\"},"
        "\"status\":\"Failure\",\"message\":\"The provided continue parameter is too old to "
        "display a consistent list result. You can start a new list without the continue "
        "parameter, or use the continue token in this response to retrieve the remainder "
        "of the results. Continuing with the provided token results in an inconsistent "
        "list - objects that were created, modified, or deleted between the time the first "
        "chunk was returned and now may show up in the list.\",\"reason\":\"Expired\","
        "\"code\":410}",
        strbuf_str(&token));
    api_reply_text(c, 410, NULL, &body);
}

static void reply_list(struct api *a, struct call *c, const struct api_target *t,
                       const struct listing *l, const struct api_selection *s, enum api_form form)
{
    struct api_objects items = {0};
    if (l->version > store_version(a->store)) {
        reply_too_large(a, c, l->version);
        return;
    }
    struct api_page page = {.after = l->after.len > 0 ? strbuf_str(&l->after) : NULL,
                            .limit = l->limit > 0 ? (size_t)l->limit : 0};
    if (api_collect(a, t->kind, t->ns, l->exact ? l->version : 0, s, &page, &items))
        reply_page(a, c, t, l, s, &items, page.left, form);
    else
        reply_too_old(c, l);
    api_objects_deinit(&items);
}

void api_list(struct api *a, struct call *c, const struct api_target *t)
{
    struct listing l = {0};
    struct api_selection s = {0};
    enum api_form form = API_JSON;
    struct error err = ERROR_INIT;
    strbuf_init(&l.after);
    arena_init(&s.arena, 0);
    if (api_form_of(c, &form, &err) < 0 || api_select(c, t, &s, &err) < 0 ||
        read_options(c, t, &l, &err) < 0)
        api_reply_error(c, &err, NULL, NULL);
    else
        reply_list(a, c, t, &l, &s, form);
    api_selection_deinit(&s);
    strbuf_deinit(&l.after);
}
