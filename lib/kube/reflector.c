// SPDX-License-Identifier: Apache-2.0
/*
 * One thread that lists a collection, then watches it.
 *
 *                    start
 *                      |
 *                      v    page: list_pager_next; 410 on a continue token: from the first again
 *     +------------> LIST <-----------------------------------------------+
 *     |                | (the first one, in_parts: a PART per page)       | watch_failed: 410
 *     | backed_off     | all pages read: deliver RESET, LISTED (list)     | (status or ERROR),
 *     +--- list fails  |                                                  | a line that is no event
 *     |                v                                                  | or too long, 8 failures
 *     | not there   WATCH --- line: PUT, DELETE, BOOKMARK (on_line) ---+  |
 *     | (optional):   ^ |                                              |  |
 *     | empty RESET,  | +<---------------------------------------------+  |
 *     | wait 30 s     | |                                                 |
 *     +               | +-- the server ends it, connection lost, silence, |
 *                     |     5xx, 429 (watch_failed) ----------------------+
 *                     |         |
 *                     +---------+ resume at the last resourceVersion seen, after backed_off
 *                                 unless the watch was healthy
 *
 *     any state: cancelled, or the receiver closed → END
 *
 * Rules:
 *   - The version moves after the message was delivered, so a resume repeats and skips nothing.
 *   - The first list may come from the server's watch cache (resourceVersion=0) unless from_etcd;
 *     later ones ask for the latest state, or a lagging server would take us back in time.
 *   - Backoff doubles from 100 ms to 30 s, with jitter between half and all of it. A healthy watch
 *     (an event, or ten seconds) resets it; one that ended with an unacceptable line resets it only
 *     after ten seconds. Retry-After is honoured in addition.
 *   - A line is validated before any of it is used; after a malformed one we may have missed an
 *     event, so the reflector lists again.
 */
#include "lib/kube/reflector.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/vec.h"
#include "lib/kube/decode.h"
#include "lib/kube/http.h"
#include "lib/kube/list_pager.h"
#include "lib/kube/watchline.h"

enum {
    BACKOFF_FIRST_MS = 100,
    BACKOFF_MAX_MS = 30000,
    RETRY_AFTER_MAX_MS = 60000,
    OPTIONAL_MS = 30000,
    HEALTHY_MS = 10000,
    FRUITLESS_MAX = 8,
    LIST_TIMES = 10, /* a page may take so many request timeouts while bytes keep coming */
    VERSION_SIZE = LIST_PAGER_VERSION_SIZE,
    LOG_EVERY_MS = 10000,
    KEEP_BYTES = 256 * 1024, /* of a line's document: memory beyond that is freed */
};

enum state { STATE_LIST, STATE_WATCH, STATE_END };

struct reflector {
    struct reflector_config config;
    char *ns, *label_selector, *field_selector;
    struct kube_options options;
    struct kube_http *http;
    pthread_t thread;

    /* of the thread */
    struct watchline lines;
    struct json_memory memory;  /* of a line */
    char version[VERSION_SIZE]; /* the version that the receiver has */
    bool consistent;            /* the next list asks for the latest state */
    bool reported_absent;
    bool delivered;    /* the receiver got something */
    bool closed;       /* the receiver accepts no more */
    bool fruitful;     /* this watch delivered something */
    unsigned failures; /* in a row */
    int64_t bad_logged_ms, bad_not_logged;

    struct {
        _Atomic int64_t lists, watches, events, bookmarks, gone, failures, undecodable;
    } stats;
};

struct objects VEC(void *);

void reflector_message_free(void *message)
{
    struct reflector_message *l = message;
    if (!l)
        return;
    for (size_t i = 0; i < l->len; i++)
        if (l->objects[i])
            l->free_object(l->objects[i]);
    if (l->objects != &l->one)
        free(l->objects);
    free(l);
}

static void free_objects(struct reflector *r, struct objects *o)
{
    for (size_t i = 0; i < o->len; i++)
        r->config.type.free(o->items[i]);
    vec_deinit(o);
}

static bool send_message(struct reflector *r, struct reflector_message *l)
{
    l->from = r;
    l->free_object = r->config.type.free;
    l->arg = r->config.arg;
    r->delivered = true;
    r->closed = !r->config.deliver(r->config.arg, l);
    return !r->closed;
}

/* Takes the objects. false: the receiver has closed. */
static bool deliver(struct reflector *r, enum reflector_event event, struct objects *o)
{
    struct reflector_message *l = mem_new(struct reflector_message, 1);
    *l = (struct reflector_message){.event = event, .objects = o->items, .len = o->len};
    *o = (struct objects){0};
    return send_message(r, l);
}

/* A change is one message with one object, so both share one allocation. */
static bool deliver_one(struct reflector *r, enum reflector_event event, void *object)
{
    struct reflector_message *l = mem_new(struct reflector_message, 1);
    *l = (struct reflector_message){.event = event, .one = object, .objects = &l->one, .len = 1};
    return send_message(r, l);
}

static void count_undecodable(struct reflector *r, bool remains, const struct error *why)
{
    atomic_fetch_add(&r->stats.undecodable, 1);
    int64_t now = clock_mono_ms();
    if (r->bad_logged_ms != 0 && now - r->bad_logged_ms < LOG_EVERY_MS) {
        r->bad_not_logged++;
        return;
    }
    log_warn(
        remains ? "object not understood, its last good version stays" : "object treated as absent",
        kv("kind", r->config.kind->kind), kv("error", why->text), kv("more", r->bad_not_logged));
    r->bad_logged_ms = now;
    r->bad_not_logged = 0;
}

/* Decodes the object, or its remains if the type can. -1: treat it as absent. */
static int decode_or_remains(struct reflector *r, json *object, void **out)
{
    const struct reflector_type *type = &r->config.type;
    struct error why = ERROR_INIT, not_even = ERROR_INIT;
    if (type->decode(object, out, &why) == 0)
        return 0;
    bool remains = type->remains && type->remains(object, &why, out, &not_even) == 0;
    count_undecodable(r, remains, &why);
    return remains ? 0 : -1;
}

/* An object with only its metadata, enough for a receiver to know which one to forget. */
static int decode_metadata_only(struct reflector *r, json *object, void **out, struct error *err)
{
    struct object_meta m;
    struct json_writer w;
    AUTO_STRBUF text = {0};
    AUTO_JSON *doc = NULL;
    decode_meta(object, &m);
    json_writer_init(&w, &text);
    json_object_begin(&w);
    json_key(&w, "metadata");
    json_object_begin(&w);
    if (m.ns[0])
        json_kv_str(&w, "namespace", m.ns);
    json_kv_str(&w, "name", m.name);
    json_kv_str(&w, "uid", m.uid);
    json_kv_str(&w, "resourceVersion", m.resource_version);
    json_object_end(&w);
    json_object_end(&w);
    if (json_parse(&doc, strbuf_str(&text), text.len, err) < 0)
        return -1;
    return r->config.type.decode(json_root(doc), out, err);
}

static int64_t backoff_ms(const struct reflector *r, int64_t retry_after_ms)
{
    int64_t ms = r->config.backoff_first_ms;
    for (unsigned i = 1; i < r->failures && ms < r->config.backoff_max_ms; i++)
        ms *= 2;
    ms = num_min(ms, r->config.backoff_max_ms);
    ms = ms / 2 + clock_jitter(ms / 2 + 1);
    return num_max(ms, num_min(retry_after_ms, RETRY_AFTER_MAX_MS));
}

/* Counts and logs a failure, waits, then continues with next. */
static enum state backed_off(struct reflector *r, const char *what, const struct error *why,
                             enum state next)
{
    if (why->code == ERROR_CANCELLED || r->closed)
        return STATE_END;
    r->failures++;
    atomic_fetch_add(&r->stats.failures, 1);
    int64_t wait = backoff_ms(r, why->retry_after_ms);
    log_warn(what, kv("kind", r->config.kind->kind), kv("error", why->text),
             kv("failures", r->failures), kv("retry_ms", wait));
    return kube_http_sleep(r->http, wait) ? next : STATE_END;
}

static void add_selectors(const struct reflector *r, struct strbuf *path)
{
    if (r->label_selector) {
        strbuf_adds(path, "&labelSelector=");
        kube_http_escape(path, r->label_selector);
    }
    if (r->field_selector) {
        strbuf_adds(path, "&fieldSelector=");
        kube_http_escape(path, r->field_selector);
    }
}

struct listing {
    struct list_pager pages;
    struct objects all;
    size_t seen;        /* objects, decodable or not */
    size_t empty_pages; /* empty pages with a continue token */
};

static int take_items(struct reflector *r, struct listing *l, json *root, struct error *err)
{
    json *items = json_get(root, "items");
    if (!json_is_array(items) && !json_is_null(items))
        return error_set(err, ERROR_INVALID, "items: must be a list, not %s",
                         json_kind_name(items));
    size_t n = json_len(items);
    if (n > (size_t)r->options.max_objects - l->seen)
        return error_set(err, ERROR_TOO_LARGE, "more than %lld objects",
                         (long long)r->options.max_objects);
    if (n == 0 && l->pages.more && ++l->empty_pages > FRUITLESS_MAX)
        return error_set(err, ERROR_INVALID, "one empty page after the other");
    l->seen += n;
    vec_reserve(&l->all, l->all.len + n);
    for (struct json_iter it = json_iter(items); json_next(&it);) {
        void *object = NULL;
        if (decode_or_remains(r, it.value, &object) == 0)
            vec_push(&l->all, object);
    }
    return 0;
}

static int list_all(struct reflector *r, struct listing *l, bool in_parts, struct error *err)
{
    json *root;
    int rc;
    while ((rc = list_pager_next(&l->pages, &root, err)) > 0) {
        if (take_items(r, l, root, err) < 0)
            return error_wrap(err, "list");
        if (in_parts && l->pages.more && !deliver(r, REFLECTOR_PART, &l->all))
            return error_set(err, ERROR_CANCELLED, "the receiver has closed");
    }
    return rc;
}

static int list_from(struct reflector *r, struct listing *l, bool in_parts, struct error *err)
{
    AUTO_STRBUF path = {0}, query = {0};
    kube_api_path(&path, r->config.kind, r->ns, NULL, NULL);
    add_selectors(r, &query);
    struct list_pager_config c = {.http = r->http,
                                  .path = strbuf_str(&path),
                                  .query = strbuf_str(&query),
                                  .limit = r->options.page_size,
                                  .consistent = r->consistent,
                                  .timeout_ms = r->options.request_timeout_ms * LIST_TIMES,
                                  .idle_ms = r->options.request_timeout_ms,
                                  .max_bytes = r->options.max_list_bytes};
    list_pager_init(&l->pages, &c);
    int rc = list_all(r, l, in_parts, err);
    list_pager_deinit(&l->pages);
    return rc;
}

static bool is_missing(const struct reflector *r, const struct error *err)
{
    return r->config.optional &&
           (err->code == ERROR_NOT_FOUND || (r->config.without && err->http_status == 403));
}

/* The collection does not exist (its CRD is not installed), or we may not read it. */
static enum state wait_for_kind(struct reflector *r, const struct error *err)
{
    struct objects none = {0};
    if (!r->reported_absent && r->config.without)
        log_write(err->code == ERROR_NOT_FOUND ? LOG_INFO : LOG_WARN,
                  "going on without a collection", kv("resource", r->config.kind->resource),
                  kv("group", r->config.kind->group), kv("means", r->config.without),
                  kv("error", err->text), log_kv_str(NULL, NULL));
    if (!r->reported_absent && !deliver(r, REFLECTOR_RESET, &none))
        return STATE_END;
    r->reported_absent = true;
    return kube_http_sleep(r->http, r->config.optional_ms) ? STATE_LIST : STATE_END;
}

static enum state list(struct reflector *r)
{
    struct listing l = {0};
    struct error err = ERROR_INIT;
    bool in_parts = r->config.in_parts && !r->delivered;
    int rc = list_from(r, &l, in_parts, &err);
    if (rc == 0) {
        memcpy(r->version, list_pager_version(&l.pages), VERSION_SIZE);
        atomic_fetch_add(&r->stats.lists, 1);
        r->consistent = true;
        r->reported_absent = false;
        return deliver(r, in_parts ? REFLECTOR_LISTED : REFLECTOR_RESET, &l.all) ? STATE_WATCH
                                                                                 : STATE_END;
    }
    free_objects(r, &l.all);
    if (is_missing(r, &err))
        return wait_for_kind(r, &err);
    if (err.code == ERROR_GONE) {
        atomic_fetch_add(&r->stats.gone, 1);
        r->consistent = true;
    }
    return backed_off(r, "list failed", &err, STATE_LIST);
}

static int set_version(struct reflector *r, const char *version, struct error *err)
{
    size_t n = strlen(version);
    if (n == 0 || n >= VERSION_SIZE)
        return error_set(err, ERROR_INVALID, "watch: resourceVersion: '%.32s'", version);
    memcpy(r->version, version, n + 1);
    return 0;
}

/* ADDED, MODIFIED, DELETED. */
static int on_change(struct reflector *r, bool deleted, json *object, struct error *err)
{
    void *decoded = NULL;
    struct object_meta m;
    decode_meta(object, &m);
    if (decode_or_remains(r, object, &decoded) < 0) {
        deleted = true;
        if (decode_metadata_only(r, object, &decoded, err) < 0)
            return error_wrap(err, "watch");
    }
    atomic_fetch_add(&r->stats.events, 1);
    if (!deliver_one(r, deleted ? REFLECTOR_DELETE : REFLECTOR_PUT, decoded))
        return error_set(err, ERROR_CANCELLED, "the receiver has closed");
    return set_version(r, m.resource_version, err);
}

static int on_error_event(json *status, struct error *err)
{
    AUTO_STRBUF text = {0};
    struct json_writer w;
    int64_t code = 500;
    (void)json_get_int(status, "code", &code);
    json_writer_init(&w, &text);
    json_put_value(&w, status);
    return kube_http_status_error(err, code >= 400 && code < 600 ? (int)code : 500,
                                  strbuf_str(&text), text.len, 0);
}

static int on_line(void *arg, char *line, size_t n, struct error *err)
{
    struct reflector *r = arg;
    AUTO_JSON *doc = NULL;
    if (json_parse_within(&doc, line, n, &r->memory, err) < 0)
        return error_wrap(err, "watch");
    json *root = json_root(doc), *object = json_get(root, "object");
    const char *type = json_get_str(root, "type");
    if (!json_is_object(object))
        return error_set(err, ERROR_INVALID, "watch: an event without an object");
    if (str_eq(type, "ERROR"))
        return on_error_event(object, err);
    r->fruitful = true;
    if (str_eq(type, "ADDED") || str_eq(type, "MODIFIED"))
        return on_change(r, false, object, err);
    if (str_eq(type, "DELETED"))
        return on_change(r, true, object, err);
    if (!str_eq(type, "BOOKMARK"))
        return error_set(err, ERROR_INVALID, "watch: unknown event '%.32s'", str_or_empty(type));
    atomic_fetch_add(&r->stats.bookmarks, 1);
    struct object_meta m;
    decode_meta(object, &m);
    return set_version(r, m.resource_version, err);
}

static bool on_bytes(void *arg, const char *bytes, size_t n, struct error *err)
{
    struct reflector *r = arg;
    return watchline_feed(&r->lines, bytes, n, on_line, r, err) == 0;
}

/* Whether the connection or the server ended the watch, rather than a line that we could not
 * accept. */
static bool is_interruption(enum error_code code)
{
    return code == ERROR_NONE || code == ERROR_GONE || code == ERROR_TIMEOUT ||
           code == ERROR_UNAVAILABLE || code == ERROR_THROTTLED || code == ERROR_DENIED;
}

/* What to do after the end of a watch. */
static enum state watch_failed(struct reflector *r, const struct error *err, bool healthy)
{
    if (healthy)
        r->failures = 0;
    switch (err->code) {
    case ERROR_CANCELLED:
        return STATE_END;
    case ERROR_GONE:
        atomic_fetch_add(&r->stats.gone, 1);
        return backed_off(r, "watch expired, listing again", err, STATE_LIST);
    case ERROR_TIMEOUT:
    case ERROR_UNAVAILABLE:
    case ERROR_THROTTLED:
    case ERROR_DENIED:
        return backed_off(r, "watch failed", err,
                          r->failures < FRUITLESS_MAX ? STATE_WATCH : STATE_LIST);
    default:
        return backed_off(r, "watch not understood, listing again", err, STATE_LIST);
    }
}

static enum state watch(struct reflector *r)
{
    int64_t timeout_s =
        (r->options.watch_timeout_ms + clock_jitter(r->options.watch_timeout_ms / 2 + 1) + 999) /
        1000;
    AUTO_STRBUF path = {0};
    kube_api_path(&path, r->config.kind, r->ns, NULL, NULL);
    strbuf_addf(&path, "?watch=1&allowWatchBookmarks=true&timeoutSeconds=%lld&resourceVersion=",
                (long long)timeout_s);
    kube_http_escape(&path, r->version);
    add_selectors(r, &path);
    struct kube_request q = {.method = "GET",
                             .path = strbuf_str(&path),
                             .timeout_ms = -1,
                             .idle_ms = r->options.watch_idle_ms};
    struct error err = ERROR_INIT;
    int status = 0;
    int64_t began = clock_mono_ms();
    watchline_reset(&r->lines);
    r->fruitful = false;
    atomic_fetch_add(&r->stats.watches, 1);
    int rc = kube_http_stream(r->http, &q, on_bytes, r, &status, &err);
    /* An unacceptable line costs a full list and may come again with the next event: earlier events
     * do not make the watch healthy. */
    bool fruitful = r->fruitful && is_interruption(err.code);
    bool healthy = status == 200 && (fruitful || clock_mono_ms() - began >= HEALTHY_MS);
    if (rc < 0)
        return watch_failed(r, &err, healthy);
    if (healthy) { /* timeoutSeconds, or a graceful shutdown of the server */
        r->failures = 0;
        return STATE_WATCH;
    }
    error_set(&err, ERROR_UNAVAILABLE, "ended at once");
    return watch_failed(r, &err, false);
}

static void *run(void *arg)
{
    struct reflector *r = arg;
    char name[16]; /* the kernel's limit */
    enum state state = STATE_LIST;
    (void)str_format(name, sizeof name, "%.15s", r->config.kind->resource);
    (void)pthread_setname_np(pthread_self(), name);
    while (state != STATE_END)
        state = state == STATE_LIST ? list(r) : watch(r);
    return NULL;
}

static void reflector_free(struct reflector *r)
{
    kube_http_free(r->http);
    watchline_deinit(&r->lines);
    json_memory_deinit(&r->memory);
    free(r->ns);
    free(r->label_selector);
    free(r->field_selector);
    free(r);
}

int reflector_start(struct reflector **out, struct kube_config *kube, const struct kube_options *o,
                    const struct reflector_config *c, struct error *err)
{
    struct reflector *r = mem_new(struct reflector, 1);
    r->config = *c;
    r->config.backoff_first_ms = c->backoff_first_ms > 0 ? c->backoff_first_ms : BACKOFF_FIRST_MS;
    r->config.backoff_max_ms = c->backoff_max_ms > 0 ? c->backoff_max_ms : BACKOFF_MAX_MS;
    r->config.optional_ms = c->optional_ms > 0 ? c->optional_ms : OPTIONAL_MS;
    r->ns = mem_strdup(c->ns);
    r->label_selector = mem_strdup(c->label_selector);
    r->field_selector = mem_strdup(c->field_selector);
    r->options = *o;
    r->consistent = c->from_etcd;
    watchline_init(&r->lines, (size_t)o->max_line_bytes);
    r->memory.keep = KEEP_BYTES;
    if (kube_http_new(&r->http, kube, o, "cosched-reflector", err) < 0) {
        reflector_free(r);
        return -1;
    }
    int rc = pthread_create(&r->thread, NULL, run, r);
    if (rc != 0) {
        reflector_free(r);
        return error_errno(err, rc, "reflector thread");
    }
    *out = r;
    return 0;
}

void reflector_stop(struct reflector *r)
{
    if (!r)
        return;
    kube_http_cancel(r->http);
    pthread_join(r->thread, NULL);
    reflector_free(r);
}

void reflector_stats(const struct reflector *r, struct reflector_stats *out)
{
    *out = (struct reflector_stats){.lists = atomic_load(&r->stats.lists),
                                    .watches = atomic_load(&r->stats.watches),
                                    .events = atomic_load(&r->stats.events),
                                    .bookmarks = atomic_load(&r->stats.bookmarks),
                                    .gone = atomic_load(&r->stats.gone),
                                    .failures = atomic_load(&r->stats.failures),
                                    .undecodable = atomic_load(&r->stats.undecodable)};
}
