// SPDX-License-Identifier: Apache-2.0
/* twin_serve - requests in, answers or faults out. */
#include <stdlib.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/num.h"
#include "test/fake/api/twin_state.h"

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
    vec_push(&t->seen, twin_printed("%s%s", strbuf_str(&x->head), strbuf_str(&x->body)));
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
        twin_drop_snapshot(t);
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

/* Under the lock: the next line to say for a watch that has said everything up to *version. NULL:
 * nothing. */
static char *next_line(struct twin *t, int64_t *version, uint64_t *bookmarks)
{
    for (size_t i = 0; i < t->log.len; i++) {
        const struct entry *e = &t->log.items[i];
        if (e->version <= *version)
            continue;
        *version = e->version;
        return twin_printed("{\"type\":\"%s\",\"object\":%s}\n", e->type, e->json);
    }
    if (*bookmarks == t->bookmarks)
        return NULL;
    *bookmarks = t->bookmarks;
    *version = t->version;
    return twin_printed(
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
    uint64_t bookmarks = t->bookmarks;
    t->watches++;
    enum served how = SERVED_NOT;
    while (how == SERVED_NOT) {
        char *line = next_line(t, &version, &bookmarks);
        enum twin_fault fault = line ? TWIN_NONE : t->break_how;
        if (fault != TWIN_NONE) { /* for this one only */
            t->break_how = TWIN_NONE;
            t->broken++;
        }
        if (!line && fault == TWIN_NONE && !t->stopping)
            wait_a_tick(t);
        bool over = t->stopping || clock_mono_ms() > end_ms;
        pthread_mutex_unlock(&t->lock);
        if (line && !say_chunk(x, line, strlen(line)))
            how = SERVED_CLOSE;
        else if (!line && fault != TWIN_NONE)
            how = break_watch(x, fault);
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
    char *body = twin_printed(
        "{\"kind\":\"Lease\",\"metadata\":{\"name\":\"l\",\"resourceVersion\":\"%lld\"},\"spec\":%s}",
        (long long)t->lease_version, t->lease);
    bool ok = answer(x, status, "", body);
    free(body);
    return ok;
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
    twin_store_lease(t, strbuf_str(&text), str_or_empty(json_get_str(spec, "holderIdentity")));
    return answer_lease(x, post ? 201 : 200) ? SERVED_GOOD : SERVED_CLOSE;
}

/* ---- serving -------------------------------------------------------------------------------- */

/* The pause lets the peer read the first piece alone, most of the time. */
static enum served answer_raw(struct exchange *x, const struct scripted *s)
{
    size_t n = strlen(s->body), first = s->cut < n ? s->cut : n;
    bool ok = wire_write(x->w, s->body, first);
    if (ok && first < n) {
        clock_sleep_ms(1);
        ok = wire_write(x->w, s->body + first, n - first);
    }
    return ok && !s->close ? SERVED_GOOD : SERVED_CLOSE;
}

/* The first that is for this path; none: all is well, with an empty object. */
static struct scripted take_script(struct twin *t, const char *path)
{
    for (size_t i = 0; i < t->scripts.len; i++) {
        struct scripted s = t->scripts.items[i];
        if (s.part != NULL && strstr(path, s.part) == NULL)
            continue;
        t->scripts.len--;
        memmove(t->scripts.items + i, t->scripts.items + i + 1, (t->scripts.len - i) * sizeof s);
        return s;
    }
    return (struct scripted){.status = 200};
}

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
    struct scripted s = take_script(t, x->path);
    pthread_mutex_unlock(&t->lock);
    enum served how = s.status == 0 ? answer_raw(x, &s)
                      : answer(x, s.status, s.headers ? s.headers : "", s.body ? s.body : "{}")
                          ? SERVED_GOOD
                          : SERVED_CLOSE;
    free(s.part);
    free(s.headers);
    free(s.body);
    return how;
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

void *twin_serve(void *arg)
{
    struct twin_handed h = *(struct twin_handed *)arg;
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
