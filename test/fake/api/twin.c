// SPDX-License-Identifier: Apache-2.0
/*
 * twin - one thread accepts, one serves each connection, one lock guards what they share. Everything that changes is an event in a log with
 * its version, as in etcd: a watch is a place in the log, a compaction raises its floor.
 */
#include "test/fake/api/twin.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/base/vec.h"
#include "test/fake/api/wire.h"

enum { REQUESTS_KEPT = 64, TICK_MS = 5, HANG_MAX_MS = 60000, OVERSIZE = 4 * 1024 * 1024 };

struct pod {
    char name[64];
    char uid[64];
    int64_t version;
    char *json; /* without the versions of lists */
};

struct entry { /* of the log */
    int64_t version;
    const char *type;
    char *json;
};

struct queued {
    enum twin_class class;
    enum twin_fault fault;
};

struct scripted {
    int status;
    char *headers, *body;
};

struct twin {
    int fd;
    uint16_t port;
    struct wire_context *tls;
    pthread_t acceptor;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stopping;
    struct twin_fds VEC(int) fds; /* of live connections */
    struct twin_threads VEC(pthread_t) threads;

    int64_t version, floor;
    struct twin_pods_ VEC(struct pod) pods; /* sorted by name */
    struct twin_log VEC(struct entry) log;
    struct twin_pages VEC(char *) snapshot; /* of a list in pages */
    int64_t snapshot_version;
    bool absent;

    struct twin_faults VEC(struct queued) faults;
    struct twin_scripts VEC(struct scripted) scripts;
    size_t watches;  /* running */
    size_t broken;   /* watches that met twin_break */
    uint64_t breaks; /* counts twin_break */
    enum twin_fault break_how;
    uint64_t bookmarks;
    size_t counts[TWIN_ANY];
    size_t connections;

    struct twin_seen VEC(char *) seen;
    char *lease; /* spec as JSON, NULL: no Lease */
    char lease_holder[256];
    int64_t lease_version;
};

/* A request being served. */
struct exchange {
    struct twin *t;
    struct wire *w;
    struct strbuf head, body;
    char method[16];
    char path[1024];
    char query[8192];
    enum twin_class class;
    enum twin_fault fault;
};

const char *twin_fault_name(enum twin_fault f)
{
    static const char *const names[TWIN_FAULTS] = {
        "none",        "cut line", "cut chunk", "reset",        "close",      "hang",
        "hang midway", "trickle",  "429",       "500",          "410 status", "410 event",
        "redirect",    "html",     "oversize",  "unknown type", "no version"};
    return names[f];
}

/* ---- pods ----------------------------------------------------------------------------------- */

static char *printed(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static char *printed(const char *fmt, ...)
{
    struct strbuf b = {0};
    va_list ap;
    va_start(ap, fmt);
    strbuf_vaddf(&b, fmt, ap);
    va_end(ap);
    return strbuf_take(&b);
}

static size_t place_of(const struct twin *t, const char *name, bool *found)
{
    size_t i = 0;
    while (i < t->pods.len && strcmp(t->pods.items[i].name, name) < 0)
        i++;
    *found = i < t->pods.len && str_eq(t->pods.items[i].name, name);
    return i;
}

static void log_event(struct twin *t, const char *type, const char *object)
{
    struct entry e = {.version = t->version, .type = type, .json = strdup(object)};
    vec_push(&t->log, e);
    pthread_cond_broadcast(&t->changed);
}

static char *pod_json(const struct pod *p, const char *more)
{
    return printed(
        "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"%s\",\"resourceVersion\":\"%lld\","
        "\"labels\":{\"n\":\"%lld\"}}%s%s}",
        p->name, p->uid, (long long)p->version, (long long)p->version, more ? "," : "",
        more ? more : "");
}

void twin_put(struct twin *t, const char *name, const char *more)
{
    bool found;
    pthread_mutex_lock(&t->lock);
    size_t i = place_of(t, name, &found);
    t->version++;
    if (!found) {
        struct pod p = {0};
        str_format(p.name, sizeof p.name, "%s", name);
        str_format(p.uid, sizeof p.uid, "uid-%s-%lld", name, (long long)t->version);
        vec_push(&t->pods, p);
        memmove(&t->pods.items[i + 1], &t->pods.items[i], (t->pods.len - 1 - i) * sizeof p);
        t->pods.items[i] = p;
    }
    struct pod *p = &t->pods.items[i];
    p->version = t->version;
    free(p->json);
    p->json = pod_json(p, more);
    log_event(t, found ? "MODIFIED" : "ADDED", p->json);
    pthread_mutex_unlock(&t->lock);
}

void twin_delete(struct twin *t, const char *name)
{
    bool found;
    pthread_mutex_lock(&t->lock);
    size_t i = place_of(t, name, &found);
    if (found) {
        struct pod gone = t->pods.items[i];
        gone.version = ++t->version;
        memmove(&t->pods.items[i], &t->pods.items[i + 1], (t->pods.len - 1 - i) * sizeof gone);
        t->pods.len--;
        free(gone.json);
        gone.json = pod_json(&gone, NULL);
        log_event(t, "DELETED", gone.json);
        free(gone.json);
    }
    pthread_mutex_unlock(&t->lock);
}

size_t twin_pods(struct twin *t, struct twin_pod **out)
{
    pthread_mutex_lock(&t->lock);
    size_t n = t->pods.len;
    *out = calloc(n + 1, sizeof **out);
    for (size_t i = 0; i < n; i++) {
        struct twin_pod *p = &(*out)[i];
        str_format(p->name, sizeof p->name, "%s", t->pods.items[i].name);
        str_format(p->uid, sizeof p->uid, "%s", t->pods.items[i].uid);
        str_format(p->version, sizeof p->version, "%lld", (long long)t->pods.items[i].version);
    }
    pthread_mutex_unlock(&t->lock);
    return n;
}

void twin_bookmark(struct twin *t)
{
    pthread_mutex_lock(&t->lock);
    t->bookmarks++;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
}

static void drop_snapshot(struct twin *t)
{
    for (size_t i = 0; i < t->snapshot.len; i++)
        free(t->snapshot.items[i]);
    t->snapshot.len = 0;
    t->snapshot_version = -1;
}

void twin_compact(struct twin *t)
{
    pthread_mutex_lock(&t->lock);
    t->floor = ++t->version;
    drop_snapshot(t);
    pthread_mutex_unlock(&t->lock);
}

void twin_absent(struct twin *t, bool absent)
{
    pthread_mutex_lock(&t->lock);
    t->absent = absent;
    pthread_mutex_unlock(&t->lock);
}

/* ---- faults, scripts, records --------------------------------------------------------------- */

void twin_fault(struct twin *t, enum twin_class class, enum twin_fault fault)
{
    pthread_mutex_lock(&t->lock);
    struct queued q = {.class = class, .fault = fault};
    vec_push(&t->faults, q);
    pthread_mutex_unlock(&t->lock);
}

size_t twin_faults_left(struct twin *t)
{
    pthread_mutex_lock(&t->lock);
    size_t n = t->faults.len;
    pthread_mutex_unlock(&t->lock);
    return n;
}

size_t twin_break(struct twin *t, enum twin_fault fault)
{
    pthread_mutex_lock(&t->lock);
    t->breaks++;
    t->break_how = fault;
    size_t n = t->watches;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    return n;
}

size_t twin_broken(struct twin *t)
{
    pthread_mutex_lock(&t->lock);
    size_t n = t->broken;
    pthread_mutex_unlock(&t->lock);
    return n;
}

void twin_script(struct twin *t, int status, const char *headers, const char *body)
{
    struct scripted s = {.status = status, .headers = strdup(headers), .body = strdup(body)};
    pthread_mutex_lock(&t->lock);
    vec_push(&t->scripts, s);
    pthread_mutex_unlock(&t->lock);
}

size_t twin_requests(struct twin *t, enum twin_class class)
{
    pthread_mutex_lock(&t->lock);
    size_t n = 0;
    for (size_t i = 0; i < TWIN_ANY; i++)
        n += class == TWIN_ANY || class == (enum twin_class)i ? t->counts[i] : 0;
    pthread_mutex_unlock(&t->lock);
    return n;
}

size_t twin_connections(struct twin *t)
{
    pthread_mutex_lock(&t->lock);
    size_t n = t->connections;
    pthread_mutex_unlock(&t->lock);
    return n;
}

bool twin_request(struct twin *t, size_t n, struct strbuf *out)
{
    pthread_mutex_lock(&t->lock);
    bool there = n < t->seen.len;
    if (there)
        strbuf_adds(out, t->seen.items[t->seen.len - 1 - n]);
    pthread_mutex_unlock(&t->lock);
    return there;
}

/* Under the lock: records the request and meets the first fault queued for its class. */
static void note_request(struct exchange *x)
{
    struct twin *t = x->t;
    t->counts[x->class]++;
    if (t->seen.len == REQUESTS_KEPT) {
        free(t->seen.items[0]);
        memmove(t->seen.items, t->seen.items + 1, (REQUESTS_KEPT - 1) * sizeof(char *));
        t->seen.len--;
    }
    vec_push(&t->seen, printed("%s%s", strbuf_str(&x->head), strbuf_str(&x->body)));
    x->fault = TWIN_NONE;
    for (size_t i = 0; i < t->faults.len; i++) {
        struct queued q = t->faults.items[i];
        if (q.class != TWIN_ANY && q.class != x->class)
            continue;
        x->fault = q.fault;
        memmove(&t->faults.items[i], &t->faults.items[i + 1], (t->faults.len - 1 - i) * sizeof q);
        t->faults.len--;
        break;
    }
}

/* ---- answers -------------------------------------------------------------------------------- */

static bool say(struct wire *w, const char *s)
{
    return wire_write(w, s, strlen(s));
}

/* A few bytes at a time when the exchange trickles. */
static bool say_n(struct exchange *x, const char *bytes, size_t n)
{
    if (x->fault != TWIN_TRICKLE)
        return wire_write(x->w, bytes, n);
    for (size_t at = 0; at < n;) {
        size_t piece = n - at < 37 ? n - at : 37;
        if (!wire_write(x->w, bytes + at, piece))
            return false;
        at += piece;
        if (at < 37 * 20)
            clock_sleep_ms(1);
    }
    return true;
}

static bool answer(struct exchange *x, int status, const char *headers, const char *body)
{
    AUTO_STRBUF out = {0};
    strbuf_addf(&out,
                "HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n%s\r\n",
                status, strlen(body), headers);
    strbuf_adds(&out, body);
    return say_n(x, out.ptr, out.len);
}

static bool answer_status(struct exchange *x, int status, const char *headers, const char *reason,
                          const char *message)
{
    AUTO_STRBUF body = {0};
    strbuf_addf(
        &body,
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":\"%s\",\"message\":\"%s\",\"code\":%d}",
        reason, message, status);
    return answer(x, status, headers, strbuf_str(&body));
}

/* Says nothing until the peer goes away. */
static void hang(struct exchange *x)
{
    for (int64_t ms = 0; ms < HANG_MAX_MS && !wire_peer_closed(x->w); ms += TICK_MS) {
        pthread_mutex_lock(&x->t->lock);
        bool stopping = x->t->stopping;
        pthread_mutex_unlock(&x->t->lock);
        if (stopping)
            return;
        clock_sleep_ms(TICK_MS);
    }
}

static void oversize(struct wire *w, bool chunked)
{
    char piece[4096];
    memset(piece, 'x', sizeof piece);
    for (size_t sent = 0; sent < OVERSIZE; sent += sizeof piece)
        if ((chunked && !say(w, "1000\r\n")) || !wire_write(w, piece, sizeof piece) ||
            (chunked && !say(w, "\r\n")))
            return;
}

enum served { SERVED_GOOD, SERVED_CLOSE, SERVED_RESET, SERVED_NOT };

/* The faults that stand in the place of an answer. SERVED_NOT: answer as usual. */
static enum served misbehave(struct exchange *x)
{
    switch (x->fault) {
    case TWIN_RESET:
        return SERVED_RESET;
    case TWIN_CLOSE:
        return SERVED_CLOSE;
    case TWIN_HANG:
        hang(x);
        return SERVED_CLOSE;
    case TWIN_HANG_MIDWAY:
        say(x->w,
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"kin");
        hang(x);
        return SERVED_CLOSE;
    case TWIN_CUT_LINE:
    case TWIN_CUT_CHUNK:
        say(x->w,
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"kin");
        return SERVED_CLOSE;
    case TWIN_THROTTLE:
        return answer_status(x, 429, "Retry-After: 1\r\n", "TooManyRequests", "slow down")
                   ? SERVED_GOOD
                   : SERVED_CLOSE;
    case TWIN_500:
        return answer_status(x, 500, "", "InternalError", "etcd said no") ? SERVED_GOOD
                                                                          : SERVED_CLOSE;
    case TWIN_GONE_STATUS:
    case TWIN_GONE_EVENT:
        return answer_status(x, 410, "", "Expired", "too old") ? SERVED_GOOD : SERVED_CLOSE;
    case TWIN_REDIRECT:
        return answer(x, 302, "Location: /api/v1/pods\r\n", "") ? SERVED_GOOD : SERVED_CLOSE;
    case TWIN_HTML:
        return answer(x, 200, "", "<html>welcome</html>\n") ? SERVED_GOOD : SERVED_CLOSE;
    case TWIN_OVERSIZE:
        say(x->w,
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n\r\n");
        oversize(x->w, false);
        return SERVED_CLOSE;
    default:
        return SERVED_NOT;
    }
}

/* ---- list ----------------------------------------------------------------------------------- */

static int64_t query_int(const struct exchange *x, const char *key, int64_t fallback)
{
    size_t n = strlen(key);
    for (const char *p = x->query; p && *p; p = strchr(p, '&'), p = p ? p + 1 : NULL)
        if (strncmp(p, key, n) == 0 && p[n] == '=') {
            int64_t v;
            return num_parse(p + n + 1, strcspn(p + n + 1, "&"), &v, NULL) == 0 ? v : fallback;
        }
    return fallback;
}

/* Under the lock. Tokens are a version and a place: version * 1000000 + place. */
static bool make_page(struct exchange *x, struct strbuf *out)
{
    struct twin *t = x->t;
    int64_t token = query_int(x, "continue", -1), limit = query_int(x, "limit", 1000000);
    size_t at = token < 0 ? 0 : (size_t)(token % 1000000);
    if (token >= 0 && token / 1000000 != t->snapshot_version)
        return false;
    if (token < 0) {
        drop_snapshot(t);
        for (size_t i = 0; i < t->pods.len; i++)
            vec_push(&t->snapshot, strdup(t->pods.items[i].json));
        t->snapshot_version = t->version;
    }
    size_t end = num_min((int64_t)at + limit, (int64_t)t->snapshot.len) < 0
                     ? 0
                     : (size_t)num_min((int64_t)at + limit, (int64_t)t->snapshot.len);
    strbuf_addf(
        out,
        "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"%lld\"",
        (long long)t->snapshot_version);
    if (end < t->snapshot.len)
        strbuf_addf(out, ",\"continue\":\"%lld\"",
                    (long long)(t->snapshot_version * 1000000 + (int64_t)end));
    strbuf_adds(out, "},\"items\":[");
    for (size_t i = at; i < end; i++)
        strbuf_addf(out, "%s%s", i > at ? "," : "", t->snapshot.items[i]);
    strbuf_adds(out, "]}");
    return true;
}

static enum served serve_list(struct exchange *x)
{
    enum served early = misbehave(x);
    if (early != SERVED_NOT)
        return early;
    AUTO_STRBUF out = {0};
    pthread_mutex_lock(&x->t->lock);
    bool absent = x->t->absent, made = !absent && make_page(x, &out);
    pthread_mutex_unlock(&x->t->lock);
    bool ok = absent ? answer_status(x, 404, "", "NotFound", "no such resource")
              : made ? answer(x, 200, "", strbuf_str(&out))
                     : answer_status(x, 410, "", "Expired", "the continue token is too old");
    return ok ? SERVED_GOOD : SERVED_CLOSE;
}

/* ---- watch ---------------------------------------------------------------------------------- */

static bool say_chunk(struct exchange *x, const char *bytes, size_t n)
{
    AUTO_STRBUF out = {0};
    strbuf_addf(&out, "%zx\r\n", n);
    strbuf_add(&out, bytes, n);
    strbuf_adds(&out, "\r\n");
    return say_n(x, out.ptr, out.len);
}

static bool say_event(struct exchange *x, const char *type, const char *object)
{
    AUTO_STRBUF line = {0};
    strbuf_addf(&line, "{\"type\":\"%s\",\"object\":%s}\n", type, object);
    return say_chunk(x, line.ptr, line.len);
}

/* A fault in the middle of a stream. */
static enum served break_watch(struct exchange *x, enum twin_fault fault)
{
    static const char half[] =
        "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"p1\",\"uid\":\"u";
    static const char gone[] =
        "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\",\"message\":\"too old resource version\"}";
    switch (fault) {
    case TWIN_CUT_LINE:
        say_chunk(x, half, sizeof half - 1);
        say(x->w, "0\r\n\r\n");
        return SERVED_CLOSE;
    case TWIN_CUT_CHUNK:
        say(x->w, "fff\r\n{\"type\":\"ADD");
        return SERVED_CLOSE;
    case TWIN_RESET:
        return SERVED_RESET;
    case TWIN_HANG:
        hang(x);
        return SERVED_CLOSE;
    case TWIN_HANG_MIDWAY:
        say_chunk(x, half, sizeof half - 1);
        hang(x);
        return SERVED_CLOSE;
    case TWIN_500:
        say_event(
            x, "ERROR",
            "{\"kind\":\"Status\",\"code\":500,\"reason\":\"InternalError\",\"message\":\"unable to decode\"}");
        break;
    case TWIN_GONE_STATUS:
    case TWIN_GONE_EVENT:
        say_event(x, "ERROR", gone);
        break;
    case TWIN_HTML:
        say_chunk(x, "<html>\n", 7);
        break;
    case TWIN_OVERSIZE:
        oversize(x->w, true);
        break;
    case TWIN_UNKNOWN_TYPE:
        say_event(x, "SURPRISE", "{\"metadata\":{\"name\":\"p1\"}}");
        break;
    case TWIN_NO_VERSION:
        say_event(x, "BOOKMARK", "{\"metadata\":{}}");
        break;
    default:
        break;
    }
    say(x->w, "0\r\n\r\n");
    return SERVED_GOOD;
}

static enum served break_met(struct exchange *x, enum twin_fault fault)
{
    pthread_mutex_lock(&x->t->lock);
    x->t->broken++;
    pthread_mutex_unlock(&x->t->lock);
    return break_watch(x, fault);
}

/* Under the lock: the next line to say for a watch that has said everything up to *version. NULL: nothing. */
static char *next_line(struct twin *t, int64_t *version, uint64_t *bookmarks)
{
    for (size_t i = 0; i < t->log.len; i++) {
        const struct entry *e = &t->log.items[i];
        if (e->version <= *version)
            continue;
        *version = e->version;
        return printed("{\"type\":\"%s\",\"object\":%s}\n", e->type, e->json);
    }
    if (*bookmarks == t->bookmarks)
        return NULL;
    *bookmarks = t->bookmarks;
    *version = t->version;
    return printed(
        "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":\"%lld\"}}}\n\n",
        (long long)t->version);
}

static void wait_a_tick(struct twin *t)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += TICK_MS * 1000000L;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_cond_timedwait(&t->changed, &t->lock, &until);
}

static enum served stream(struct exchange *x, int64_t version)
{
    struct twin *t = x->t;
    int64_t end_ms = clock_mono_ms() + query_int(x, "timeoutSeconds", 60) * 1000;
    pthread_mutex_lock(&t->lock);
    uint64_t breaks = t->breaks, bookmarks = t->bookmarks;
    t->watches++;
    enum served how = SERVED_NOT;
    while (how == SERVED_NOT) {
        char *line = next_line(t, &version, &bookmarks);
        enum twin_fault fault = t->breaks != breaks ? t->break_how : TWIN_NONE;
        if (!line && fault == TWIN_NONE && !t->stopping)
            wait_a_tick(t);
        bool over = t->stopping || clock_mono_ms() > end_ms;
        pthread_mutex_unlock(&t->lock);
        if (line && !say_chunk(x, line, strlen(line)))
            how = SERVED_CLOSE;
        else if (!line && fault != TWIN_NONE)
            how = break_met(x, fault);
        else if (!line && over)
            how = say(x->w, "0\r\n\r\n") ? SERVED_GOOD : SERVED_CLOSE;
        else if (wire_peer_closed(x->w))
            how = SERVED_CLOSE;
        free(line);
        pthread_mutex_lock(&t->lock);
    }
    t->watches--;
    pthread_mutex_unlock(&t->lock);
    return how;
}

static enum served serve_watch(struct exchange *x)
{
    struct twin *t = x->t;
    int64_t version = query_int(x, "resourceVersion", 0);
    pthread_mutex_lock(&t->lock);
    bool absent = t->absent, old = version < t->floor;
    pthread_mutex_unlock(&t->lock);
    if (absent)
        return answer_status(x, 404, "", "NotFound", "no such resource") ? SERVED_GOOD
                                                                         : SERVED_CLOSE;
    bool in_stream = x->fault == TWIN_GONE_EVENT || x->fault == TWIN_CUT_LINE ||
                     x->fault == TWIN_CUT_CHUNK || x->fault == TWIN_HANG_MIDWAY ||
                     x->fault == TWIN_OVERSIZE || x->fault == TWIN_UNKNOWN_TYPE ||
                     x->fault == TWIN_NO_VERSION || x->fault == TWIN_CLOSE;
    enum served early = in_stream ? SERVED_NOT : misbehave(x);
    if (early != SERVED_NOT)
        return early;
    if (old && version % 2)
        return answer_status(x, 410, "", "Expired", "too old resource version") ? SERVED_GOOD
                                                                                : SERVED_CLOSE;
    if (!say(
            x->w,
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"))
        return SERVED_CLOSE;
    if (in_stream)
        return break_watch(x, x->fault);
    return old ? break_watch(x, TWIN_GONE_EVENT) : stream(x, version);
}

/* ---- leases --------------------------------------------------------------------------------- */

static bool answer_lease(struct exchange *x, int status)
{
    struct twin *t = x->t;
    char *body = printed(
        "{\"kind\":\"Lease\",\"metadata\":{\"name\":\"l\",\"resourceVersion\":\"%lld\"},\"spec\":%s}",
        (long long)t->lease_version, t->lease);
    bool ok = answer(x, status, "", body);
    free(body);
    return ok;
}

static void store_lease(struct twin *t, const char *spec, const char *holder)
{
    free(t->lease);
    t->lease = strdup(spec);
    t->lease_version = ++t->version;
    str_format(t->lease_holder, sizeof t->lease_holder, "%s", holder);
}

/* Under the lock. */
static enum served serve_lease(struct exchange *x)
{
    struct twin *t = x->t;
    bool ok;
    if (str_eq(x->method, "GET")) {
        ok = t->lease ? answer_lease(x, 200) : answer_status(x, 404, "", "NotFound", "no lease");
        return ok ? SERVED_GOOD : SERVED_CLOSE;
    }
    AUTO_JSON *doc = NULL;
    if (json_parse(&doc, strbuf_str(&x->body), x->body.len, NULL) < 0)
        return answer_status(x, 400, "", "BadRequest", "not JSON") ? SERVED_GOOD : SERVED_CLOSE;
    json *root = json_root(doc), *spec = json_get(root, "spec");
    const char *version = str_or_empty(json_get_str(json_get(root, "metadata"), "resourceVersion"));
    char now[32];
    str_format(now, sizeof now, "%lld", (long long)t->lease_version);
    bool post = str_eq(x->method, "POST");
    if (post ? t->lease != NULL : !t->lease || !str_eq(version, now)) {
        ok = !post && !t->lease ? answer_status(x, 404, "", "NotFound", "no lease")
                                : answer_status(x, 409, "", post ? "AlreadyExists" : "Conflict",
                                                "somebody was faster");
        return ok ? SERVED_GOOD : SERVED_CLOSE;
    }
    AUTO_STRBUF text = {0};
    struct json_writer w;
    json_writer_init(&w, &text);
    json_put_value(&w, spec);
    store_lease(t, strbuf_str(&text), str_or_empty(json_get_str(spec, "holderIdentity")));
    return answer_lease(x, post ? 201 : 200) ? SERVED_GOOD : SERVED_CLOSE;
}

void twin_lease_holder(struct twin *t, char *out, size_t size)
{
    pthread_mutex_lock(&t->lock);
    str_format(out, size, "%s", t->lease ? t->lease_holder : "");
    pthread_mutex_unlock(&t->lock);
}

void twin_lease_set(struct twin *t, const char *holder)
{
    pthread_mutex_lock(&t->lock);
    char *spec = printed(
        "{\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":1,\"renewTime\":\"t%lld\",\"leaseTransitions\":7}",
        holder, (long long)t->version);
    store_lease(t, spec, holder);
    free(spec);
    pthread_mutex_unlock(&t->lock);
}

void twin_lease_delete(struct twin *t)
{
    pthread_mutex_lock(&t->lock);
    free(t->lease);
    t->lease = NULL;
    pthread_mutex_unlock(&t->lock);
}

/* ---- serving -------------------------------------------------------------------------------- */

static enum served serve_other(struct exchange *x)
{
    struct twin *t = x->t;
    enum served early = misbehave(x);
    if (early != SERVED_NOT)
        return early;
    pthread_mutex_lock(&t->lock);
    if (strstr(x->path, "/leases")) {
        enum served how = serve_lease(x);
        pthread_mutex_unlock(&t->lock);
        return how;
    }
    struct scripted s = {.status = 200, .headers = NULL, .body = NULL};
    if (t->scripts.len > 0) {
        s = t->scripts.items[0];
        memmove(t->scripts.items, t->scripts.items + 1, (t->scripts.len - 1) * sizeof s);
        t->scripts.len--;
    }
    pthread_mutex_unlock(&t->lock);
    bool ok = answer(x, s.status, s.headers ? s.headers : "", s.body ? s.body : "{}");
    free(s.headers);
    free(s.body);
    return ok ? SERVED_GOOD : SERVED_CLOSE;
}

static bool parse_target(struct exchange *x)
{
    const char *head = strbuf_str(&x->head);
    size_t m = strcspn(head, " ");
    const char *target = head + m + 1;
    size_t n = strcspn(target, " \r");
    size_t p = strcspn(target, "? \r");
    if (m >= sizeof x->method || p >= sizeof x->path || n - p >= sizeof x->query)
        return false;
    memcpy(x->method, head, m);
    x->method[m] = 0;
    memcpy(x->path, target, p);
    x->path[p] = 0;
    size_t q = p < n ? p + 1 : n;
    memcpy(x->query, target + q, n - q);
    x->query[n - q] = 0;
    bool pods = str_eq(x->method, "GET") && str_ends(x->path, "/pods");
    x->class = !pods ? TWIN_OTHER : strstr(x->query, "watch=1") ? TWIN_WATCH : TWIN_LIST;
    return true;
}

struct handed {
    struct twin *t;
    int fd;
};

static void forget_fd(struct twin *t, int fd)
{
    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->fds.len; i++)
        if (t->fds.items[i] == fd) {
            vec_remove_swap(&t->fds, i);
            break;
        }
    pthread_mutex_unlock(&t->lock);
}

static void *serve(void *arg)
{
    struct handed h = *(struct handed *)arg;
    free(arg);
    struct wire *w = wire_accept(h.fd, h.t->tls);
    if (!w) {
        forget_fd(h.t, h.fd);
        return NULL;
    }
    struct exchange x = {.t = h.t, .w = w};
    enum served how = SERVED_GOOD;
    while (how == SERVED_GOOD && wire_read_request(w, &x.head, &x.body) && parse_target(&x)) {
        pthread_mutex_lock(&h.t->lock);
        note_request(&x);
        pthread_mutex_unlock(&h.t->lock);
        how = x.class == TWIN_LIST    ? serve_list(&x)
              : x.class == TWIN_WATCH ? serve_watch(&x)
                                      : serve_other(&x);
    }
    strbuf_deinit(&x.head);
    strbuf_deinit(&x.body);
    forget_fd(h.t, h.fd);
    wire_close(w, how == SERVED_RESET);
    return NULL;
}

static void *accept_all(void *arg)
{
    struct twin *t = arg;
    for (;;) {
        int fd = accept(t->fd, NULL, NULL);
        if (fd < 0)
            return NULL;
        struct handed *h = malloc(sizeof *h);
        *h = (struct handed){.t = t, .fd = fd};
        pthread_mutex_lock(&t->lock);
        bool stopping = t->stopping;
        if (!stopping) {
            pthread_t thread;
            t->connections++;
            vec_push(&t->fds, fd);
            if (pthread_create(&thread, NULL, serve, h) != 0)
                abort();
            vec_push(&t->threads, thread);
        }
        pthread_mutex_unlock(&t->lock);
        if (stopping) {
            close(fd);
            free(h);
            return NULL;
        }
    }
}

/* ---- start and stop ------------------------------------------------------------------------- */

struct twin *twin_start(const struct twin_tls *tls, bool want_client)
{
    struct twin *t = calloc(1, sizeof *t);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;
    t->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (t->fd < 0 || bind(t->fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(t->fd, 64) < 0 ||
        getsockname(t->fd, (struct sockaddr *)&a, &len) < 0)
        abort();
    t->port = ntohs(a.sin_port);
    t->version = 1;
    t->snapshot_version = -1;
    if (tls)
        t->tls = wire_context_new(tls->server_cert, tls->server_key, want_client ? tls->ca : NULL);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    if (pthread_create(&t->acceptor, NULL, accept_all, t) != 0)
        abort();
    return t;
}

void twin_stop(struct twin *t)
{
    pthread_mutex_lock(&t->lock);
    t->stopping = true;
    pthread_cond_broadcast(&t->changed);
    for (size_t i = 0; i < t->fds.len; i++)
        shutdown(t->fds.items[i], SHUT_RDWR);
    pthread_mutex_unlock(&t->lock);
    shutdown(t->fd, SHUT_RDWR);
    pthread_join(t->acceptor, NULL);
    for (size_t i = 0; i < t->threads.len; i++)
        pthread_join(t->threads.items[i], NULL);
    close(t->fd);
    for (size_t i = 0; i < t->pods.len; i++)
        free(t->pods.items[i].json);
    for (size_t i = 0; i < t->log.len; i++)
        free(t->log.items[i].json);
    for (size_t i = 0; i < t->seen.len; i++)
        free(t->seen.items[i]);
    for (size_t i = 0; i < t->scripts.len; i++) {
        free(t->scripts.items[i].headers);
        free(t->scripts.items[i].body);
    }
    drop_snapshot(t);
    vec_deinit(&t->fds);
    vec_deinit(&t->threads);
    vec_deinit(&t->pods);
    vec_deinit(&t->log);
    vec_deinit(&t->snapshot);
    vec_deinit(&t->faults);
    vec_deinit(&t->scripts);
    vec_deinit(&t->seen);
    free(t->lease);
    wire_context_free(t->tls);
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

uint16_t twin_port(const struct twin *t)
{
    return t->port;
}

struct kube_config *twin_config(const struct twin *t)
{
    struct kube_config *c = NULL;
    struct error err = ERROR_INIT;
    AUTO_STRBUF y = {0};
    strbuf_addf(
        &y,
        "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u, namespace: ns}}]\n"
        "clusters: [{name: k, cluster: {server: 'http://127.0.0.1:%u'}}]\nusers: [{name: u, user: {token: s3cr3t-t0ken}}]\n",
        t->port);
    if (kube_config_parse(&c, strbuf_str(&y), y.len, NULL, "", false, &err) < 0)
        abort();
    return c;
}

struct kube_options twin_options(void)
{
    return (struct kube_options){.max_list_bytes = 1 << 20,
                                 .max_line_bytes = 64 * 1024,
                                 .max_reply_bytes = 1 << 20,
                                 .max_objects = 10000,
                                 .page_size = 7,
                                 .request_timeout_ms = 2000,
                                 .watch_timeout_ms = 60000,
                                 .watch_idle_ms = 300,
                                 .burst = 100};
}
