// SPDX-License-Identifier: Apache-2.0
/*
 * api_list - get and list.
 *
 * A list is of one version. The store only has the newest, but it remembers what its last changes replaced, and a list at an older version (the later pages of
 * a long list, resourceVersionMatch=Exact) is the newest one with those changes taken back: api_collect. What the store has forgotten is 410.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/base/map.h"
#include "lib/base/num.h"
#include "lib/base/vec.h"
#include "lib/kube/base64.h"
#include "test/local/api_inside.h"
#include "test/local/table.h"

/* ---- at a version ----------------------------------------------------------------------------- */

struct collecting {
    const char *ns;
    const struct api_selection *selection;
    struct map *undone; /* key -> the object at that version, or &nothing */
    struct api_objects *out;
};
static struct object nothing;

static void keep(struct api_objects *out, struct object *o)
{
    vec_push(out, object_ref(o));
}

static bool collect_one(void *arg, struct object *o)
{
    struct collecting *c = arg;
    if (c->undone && map_get(c->undone, o->key))
        return true;
    if (api_selected(c->selection, c->ns, o))
        keep(c->out, o);
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

bool api_collect(struct api *a, const struct kind *k, const char *ns, uint64_t version,
                 const struct api_selection *s, struct api_objects *out)
{
    struct map undone;
    struct collecting c = {.ns = ns, .selection = s, .out = out};
    bool old = version != 0 && version < store_version(a->store);
    map_init(&undone);
    if (old && !store_replay(a->store, k, version, undo, &undone)) {
        map_deinit(&undone);
        return false;
    }
    if (map_count(&undone) > 0)
        c.undone = &undone;
    store_each(a->store, k, ns, NULL, collect_one, &c);
    if (c.undone) {
        void *value = NULL;
        for (size_t i = 0; map_next(&undone, &i, NULL, &value);)
            if (value != &nothing && api_selected(s, ns, value))
                keep(out, value);
        qsort(out->items, out->len, sizeof *out->items, by_key);
    }
    map_deinit(&undone);
    return true;
}

void api_objects_deinit(struct api_objects *o)
{
    for (size_t i = 0; i < o->len; i++)
        object_unref(o->items[i]);
    vec_deinit(o);
}

/* ---- options ---------------------------------------------------------------------------------- */

struct listing {
    uint64_t version; /* 0: the newest */
    bool exact;
    int64_t limit;
    struct strbuf after; /* continue behind this key; empty: from the start */
    bool resumed;
};

static int too_large(struct call *c, uint64_t version, uint64_t now)
{
    struct strbuf body;
    char message[128];
    strbuf_init(&body);
    (void)str_format(message, sizeof message,
                     "Timeout: Too large resource version: %llu, current: %llu",
                     (unsigned long long)version, (unsigned long long)now);
    api_status_failure(&body, 504, "Timeout", message,
                       "{\"causes\":[{\"reason\":\"ResourceVersionTooLarge\",\"message\":\"Too "
                       "large resource version\"}],\"retryAfterSeconds\":1}");
    call_reply(c, 504, "application/json", "Retry-After: 1\r\n", &body);
    return -1;
}

static int list_invalid(struct error *err, const char *what)
{
    return api_fail(err, 422, "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: %s",
                    what);
}

int api_version_of(const char *text, const char *before, int status, uint64_t *out,
                   struct error *err)
{
    int64_t n = 0;
    *out = 0;
    if (!text || !*text)
        return 0;
    if (num_parse(text, strlen(text), &n, NULL) < 0 || n < 0)
        return api_fail(err, status,
                        "%sresourceVersion: Invalid value: \"%s\": strconv.ParseUint: parsing "
                        "\"%s\": invalid syntax",
                        before, text, text);
    *out = (uint64_t)n;
    return 0;
}

static int bad_token(struct error *err, const char *why)
{
    return api_fail(err, 400, "invalid continue token: continue key is not valid: %s", why);
}

/* {"v":"meta.k8s.io/v1","rv":420,"start":"default/c1"}, in base64 without padding. */
static int read_token(const char *token, struct listing *l, struct error *err)
{
    AUTO_STRBUF text;
    AUTO_STRBUF padded;
    AUTO_JSON *doc = NULL;
    int64_t version = 0;
    strbuf_init(&text);
    strbuf_init(&padded);
    if (strlen(token) > API_PATH_MAX * 2)
        return api_fail(err, 400, "invalid continue token: it is too long");
    for (const char *p = token; *p != '\0'; p++)
        strbuf_addc(&padded, *p == '-' ? '+' : *p == '_' ? '/' : *p);
    while (padded.len % 4 != 0)
        strbuf_addc(&padded, '=');
    struct error why = ERROR_INIT;
    if (!base64_decode(strbuf_str(&padded), padded.len, &text))
        return bad_token(err, "it is not base64");
    if (json_parse(&doc, strbuf_str(&text), text.len, &why) < 0)
        return bad_token(err, why.text);
    const char *form = str_or_empty(json_get_str(json_root(doc), "v"));
    if (!str_eq(form, "meta.k8s.io/v1"))
        return api_fail(err, 400,
                        "invalid continue token: continue key is not valid: server does not "
                        "recognize this encoded version %s",
                        form);
    if (!json_get_int(json_root(doc), "rv", &version) || version <= 0 ||
        !json_get_str(json_root(doc), "start"))
        return bad_token(err, "incorrect encoded start resourceVersion (version meta.k8s.io/v1)");
    l->version = (uint64_t)version;
    l->exact = true;
    l->resumed = true;
    strbuf_adds(&l->after, json_get_str(json_root(doc), "start"));
    return 0;
}

static void print_token(uint64_t version, const char *key, struct strbuf *out)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    AUTO_STRBUF text;
    strbuf_init(&text);
    strbuf_addf(&text, "{\"v\":\"meta.k8s.io/v1\",\"rv\":%llu,\"start\":\"%s\"}",
                (unsigned long long)version, key);
    for (size_t i = 0; i < text.len; i += 3) {
        unsigned v = (unsigned)(unsigned char)text.ptr[i] << 16;
        size_t left = text.len - i;
        v |= left > 1 ? (unsigned)(unsigned char)text.ptr[i + 1] << 8 : 0;
        v |= left > 2 ? (unsigned)(unsigned char)text.ptr[i + 2] : 0;
        strbuf_addc(out, letters[v >> 18]);
        strbuf_addc(out, letters[(v >> 12) & 63]);
        if (left > 1)
            strbuf_addc(out, letters[(v >> 6) & 63]);
        if (left > 2)
            strbuf_addc(out, letters[v & 63]);
    }
}

static int read_options(const struct call *c, const struct kind *k, struct listing *l,
                        struct error *err)
{
    const char *version = call_query(c, "resourceVersion");
    const char *match = call_query(c, "resourceVersionMatch");
    const char *token = call_query(c, "continue");
    bool exact = str_eq(match, "Exact");
    if (api_query_int(c, "limit", 0, &l->limit, err) < 0)
        return -1;
    if (token && *token && version && *version && !str_eq(version, "0"))
        return api_fail(err, 400, "specifying resource version is not allowed when using continue");
    if (token && *token)
        return read_token(token, l, err);
    if (match && *match) {
        if (!exact && !str_eq(match, "NotOlderThan"))
            return api_fail(err, 422,
                            "ListOptions.meta.k8s.io \"\" is invalid: resourceVersionMatch: "
                            "Unsupported value: \"%s\": supported values: \"Exact\", "
                            "\"NotOlderThan\", \"\"",
                            match);
        if (!version || !*version)
            return list_invalid(err, "Forbidden: resourceVersionMatch is forbidden unless "
                                     "resourceVersion is provided");
        if (exact && str_eq(version, "0"))
            return list_invalid(err, "Forbidden: resourceVersionMatch \"exact\" is forbidden for "
                                     "resourceVersion \"0\"");
    }
    if (api_version_of(version, "invalid resource version: ", 400, &l->version, err) < 0)
        return -1;
    /* From version 0 a real server answers out of its cache, which knows no pages; events are not in it. */
    if (str_eq(version, "0") && k != &kind_events)
        l->limit = 0;
    /* A limit with a version and no match means Exact, an old rule. */
    l->exact = exact || (l->limit > 0 && l->version > 0 && !(match && *match));
    return 0;
}

/* ---- printing --------------------------------------------------------------------------------- */

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

/* ---- verbs ------------------------------------------------------------------------------------ */

void api_get(struct api *a, struct call *c, const struct api_target *t)
{
    struct error err = ERROR_INIT;
    uint64_t version = 0;
    struct object *o = store_get(a->store, t->kind, str_or_empty(t->ns), t->name);
    if (api_version_of(call_query(c, "resourceVersion"), "", 500, &version, &err) < 0) {
        api_reply_error(c, &err, t->kind, t->name);
    } else if (version > store_version(a->store)) {
        (void)too_large(c, version, store_version(a->store));
    } else if (!o) {
        (void)api_not_found(&err, t->kind, t->name);
        api_reply_error(c, &err, t->kind, t->name);
    } else {
        api_reply_object(a, c, 200, NULL, o);
    }
}

/* A page of what was collected. */
static void reply_page(struct api *a, struct call *c, const struct api_target *t,
                       const struct listing *l, const struct api_selection *s,
                       const struct api_objects *all, enum api_form form)
{
    struct strbuf meta;
    struct strbuf body;
    size_t from = 0;
    uint64_t version = l->exact ? l->version : store_version(a->store);
    strbuf_init(&meta);
    strbuf_init(&body);
    while (from < all->len && l->after.len > 0 &&
           strcmp(all->items[from]->key, strbuf_str(&l->after)) <= 0)
        from++;
    size_t n = all->len - from;
    bool cut = l->limit > 0 && n > (size_t)l->limit;
    size_t left = cut ? n - (size_t)l->limit : 0;
    n -= left;
    strbuf_addf(&meta, "{\"resourceVersion\":\"%llu\"", (unsigned long long)version);
    if (cut) {
        strbuf_adds(&meta, ",\"continue\":\"");
        print_token(version, all->items[from + n - 1]->key, &meta);
        strbuf_addc(&meta, '"');
        if (s->all)
            strbuf_addf(&meta, ",\"remainingItemCount\":%zu", left);
    }
    strbuf_addc(&meta, '}');
    static struct object *const none[1];
    api_print_list(a, form, t->kind, all->len > 0 ? all->items + from : none, n, strbuf_str(&meta),
                   &body);
    strbuf_deinit(&meta);
    call_reply(c, 200, "application/json", NULL, &body);
}

void api_list(struct api *a, struct call *c, const struct api_target *t)
{
    struct listing l = {0};
    struct api_selection s = {0};
    struct api_objects all = {0};
    enum api_form form = API_JSON;
    struct error err = ERROR_INIT;
    strbuf_init(&l.after);
    arena_init(&s.arena, 0);
    if (api_form_of(c, &form, &err) < 0 || api_select(c, t->kind, &s, &err) < 0 ||
        read_options(c, t->kind, &l, &err) < 0) {
        api_reply_error(c, &err, NULL, NULL);
    } else if (l.version > store_version(a->store)) {
        (void)too_large(c, l.version, store_version(a->store));
    } else if (!api_collect(a, t->kind, t->ns, l.exact ? l.version : 0, &s, &all)) {
        (void)api_fail(&err, 410, "%s",
                       l.resumed ? "The provided continue parameter is too old to display a "
                                   "consistent list result. You can start a new list without the "
                                   "continue parameter."
                                 : "The resourceVersion for the provided list is too old.");
        api_reply_error(c, &err, NULL, NULL);
    } else {
        reply_page(a, c, t, &l, &s, &all, form);
    }
    api_objects_deinit(&all);
    api_selection_deinit(&s);
    strbuf_deinit(&l.after);
}
