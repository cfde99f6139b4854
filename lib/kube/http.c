// SPDX-License-Identifier: Apache-2.0
/*
 * One connection to the API server over libcurl.
 *
 * One request at a time still uses the multi interface: a watch spends its life in poll(2), and
 * only curl_multi_wakeup interrupts that at once when another thread cancels. It also lets us
 * detect silence (idle_ms) more finely than curl's low-speed limit, which counts seconds.
 *
 * libcurl must not repeat a write (see transport for other restrictions). When a kept connection
 * turns out to be dead, curl sends the request again by itself, whatever the method. That is fine
 * for reads. For writes the pre-request hook refuses the second attempt: the caller must find out
 * whether the first was done (never_sent tells when it cannot have been).
 *
 * The bearer token is fetched for every request, lives in the header list for that request and is
 * wiped afterwards. No error text holds it: those have the method, the path without its query, and
 * curl's message.
 */
#include "lib/kube/http.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/wake_coalesce.h"
#include "lib/base/json.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/kube/transport.h"

enum {
    ERROR_BODY_MAX = 64 * 1024, /* of an error reply to a streaming request */
    RETRY_AFTER_MAX_S = 3600,
    POLL_MAX_MS = 60 * 1000, /* libcurl's timers and curl_multi_wakeup end a wait earlier */
};

struct kube_http {
    CURL *easy;
    CURLM *multi;
    struct kube_config *config;
    struct kube_options options;
    struct transport transport;
    _Atomic bool cancelled;
};

struct transfer {
    struct kube_http *http;
    const struct kube_request *request;
    struct strbuf *body;
    kube_http_sink sink; /* NULL: into body */
    void *sink_arg;
    struct error *err;
    struct error unwanted; /* used as err when the caller passes NULL */
    size_t received;
    size_t max_bytes;
    int64_t last_byte_ms;
    struct wake_coalesce coalesce; /* for a stream */
    unsigned attempts;
    bool write;
    bool refused; /* a callback ended it; err says why */
    bool cut;     /* enough of an error reply was read */
    bool repeated;
    bool late;
    bool head_ended; /* libcurl takes a truncated head for a complete one */
};

static enum error_code code_of(int status, const char *reason)
{
    switch (status) {
    case 401:
    case 403:
        return ERROR_DENIED;
    case 404:
        return ERROR_NOT_FOUND;
    case 409:
        return ERROR_CONFLICT;
    case 410:
        return ERROR_GONE;
    case 413:
        return ERROR_TOO_LARGE;
    case 429:
        return ERROR_THROTTLED;
    case 408:
    case 504:
        return ERROR_TIMEOUT;
    default:
        break;
    }
    if (str_eq(reason, "Expired") || str_eq(reason, "Gone"))
        return ERROR_GONE;
    if (str_eq(reason, "Timeout") || str_eq(reason, "ServerTimeout"))
        return ERROR_TIMEOUT;
    return status >= 400 && status < 500 ? ERROR_INVALID : ERROR_UNAVAILABLE;
}

int kube_http_status_error(struct error *err, int status, const char *body, size_t n,
                           int64_t retry_after_s)
{
    if (status < 400)
        return error_set(err, ERROR_UNSUPPORTED, "the server answered %d, a redirect: not followed",
                         status);
    AUTO_JSON *doc = NULL;
    struct error not_json;
    json *root = n > 0 && json_parse(&doc, body, n, &not_json) == 0 ? json_root(doc) : NULL;
    const char *reason = json_get_str(root, "reason"), *message = json_get_str(root, "message");
    int64_t details_s;
    if (retry_after_s <= 0 &&
        json_get_int(json_get(root, "details"), "retryAfterSeconds", &details_s))
        retry_after_s = details_s;
    if (reason || message)
        error_set(err, code_of(status, reason), "%d %s: %s", status, str_or_empty(reason),
                  str_or_empty(message));
    else
        error_set(err, code_of(status, NULL), "HTTP status %d", status);
    if (err) {
        err->http_status = status;
        err->retry_after_ms = num_min(num_max(retry_after_s, 0), RETRY_AFTER_MAX_S) * 1000;
    }
    return -1;
}

void kube_http_global_init(void)
{
    /* A server that closes the connection while we write must not kill the process. */
    signal(SIGPIPE, SIG_IGN);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        abort();
}

void kube_http_global_cleanup(void)
{
    curl_global_cleanup();
}

static size_t on_header(char *bytes, size_t size, size_t n, void *arg)
{
    struct transfer *t = arg;
    t->head_ended = bytes[0] == '\r' || bytes[0] == '\n';
    t->last_byte_ms = clock_mono_ms();
    t->http->transport.unanswered = false;
    return size * n;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *arg)
{
    struct transfer *t = arg;
    size_t n = size * count;
    t->last_byte_ms = clock_mono_ms();
    long status = 0;
    curl_easy_getinfo(t->http->easy, CURLINFO_RESPONSE_CODE, &status);
    bool good = status >= 200 && status < 300;
    if (t->sink && good) {
        bool more = t->sink(t->sink_arg, bytes, n, t->err);
        t->last_byte_ms =
            clock_mono_ms(); /* a slow receiver does not count as the server's silence */
        if (more)
            return n;
        t->refused = true;
        return CURL_WRITEFUNC_ERROR;
    }
    size_t max = t->sink ? (size_t)ERROR_BODY_MAX : t->max_bytes;
    if (n > max - t->received) {
        t->cut = t->sink !=
                 NULL; /* a stream has no time limit, so the rest of its error reply is not read */
        t->refused = !t->cut;
        if (t->refused)
            error_set(t->err, ERROR_TOO_LARGE, "reply is larger than %zu bytes", max);
        return CURL_WRITEFUNC_ERROR;
    }
    t->received += n;
    strbuf_add(t->body, bytes, n);
    return n;
}

static int64_t whole_timeout(const struct kube_http *h, const struct kube_request *r)
{
    if (r->timeout_ms < 0)
        return 0;
    return r->timeout_ms > 0 ? r->timeout_ms : h->options.request_timeout_ms;
}

/* Called before each attempt to send, including curl's own repetitions. */
static int on_request(void *arg, char *remote_ip, char *local_ip, int remote_port, int local_port)
{
    (void)remote_ip, (void)local_ip, (void)remote_port, (void)local_port;
    struct transfer *t = arg;
    if (++t->attempts > 1 && t->write) {
        t->repeated = true;
        return CURL_PREREQFUNC_ABORT;
    }
    /* The last check before bytes are sent: the process may have been stopped (SIGSTOP, a frozen
     * machine) anywhere before. */
    int64_t until = t->request->not_after_ms, left = until - clock_mono_ms();
    if (until > 0 && left <= 0) {
        t->late = true;
        return CURL_PREREQFUNC_ABORT;
    }
    t->http->transport.unanswered = t->write;
    transport_limit_delivery(&t->http->transport, !t->write   ? 0
                                                  : until > 0 ? left
                                                              : whole_timeout(t->http, t->request));
    return CURL_PREREQFUNC_OK;
}

static CURLcode set_up(struct kube_http *h, const char *user_agent)
{
    CURL *e = h->easy;
    CURLcode rc = transport_set_up(&h->transport, e, user_agent);
    TRANSPORT_SET(rc, e, CURLOPT_HEADERFUNCTION, on_header);
    TRANSPORT_SET(rc, e, CURLOPT_WRITEFUNCTION, on_body);
    TRANSPORT_SET(rc, e, CURLOPT_PREREQFUNCTION, on_request);
    TRANSPORT_SET(rc, e, CURLOPT_BUFFERSIZE, 128L * 1024L);
    return rc;
}

int kube_http_new(struct kube_http **out, struct kube_config *config, const struct kube_options *o,
                  const char *user_agent, struct error *err)
{
    struct kube_http *h = mem_new(struct kube_http, 1);
    h->config = config;
    h->options = *o;
    transport_init(&h->transport, config);
    h->easy = curl_easy_init();
    h->multi = curl_multi_init();
    if (!h->easy || !h->multi) {
        kube_http_free(h);
        return error_set(err, ERROR_INTERNAL, "libcurl could not be set up");
    }
    CURLcode rc = set_up(h, user_agent);
    if (rc != CURLE_OK) {
        kube_http_free(h);
        return error_set(err, ERROR_INTERNAL, "libcurl could not be set up: %s",
                         curl_easy_strerror(rc));
    }
    curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, 1L);
    *out = h;
    return 0;
}

void kube_http_free(struct kube_http *h)
{
    if (!h)
        return;
    if (h->easy)
        curl_easy_cleanup(h->easy);
    if (h->multi)
        curl_multi_cleanup(h->multi);
    transport_deinit(&h->transport);
    free(h);
}

void kube_http_cancel(struct kube_http *h)
{
    atomic_store(&h->cancelled, true);
    curl_multi_wakeup(h->multi);
}

bool kube_http_is_cancelled(const struct kube_http *h)
{
    return atomic_load(&h->cancelled);
}

bool kube_http_sleep(struct kube_http *h, int64_t ms)
{
    int64_t end = clock_mono_ms() + ms;
    int64_t left;
    while (!atomic_load(&h->cancelled) && (left = end - clock_mono_ms()) > 0)
        curl_multi_poll(h->multi, NULL, 0, (int)num_min(left, POLL_MAX_MS), NULL);
    return !atomic_load(&h->cancelled);
}

static struct curl_slist *add_header(struct curl_slist *list, const char *header)
{
    struct curl_slist *longer = curl_slist_append(list, header);
    if (!longer)
        abort();
    return longer;
}

static struct curl_slist *make_headers(struct kube_http *h, const struct kube_request *r)
{
    enum { PREFIX = sizeof "Authorization: Bearer " - 1 };
    struct curl_slist *list = add_header(NULL, "Accept: application/json");
    list = add_header(list, "Expect:"); /* without it a write would take two round trips */
    if (h->transport.renamed) {
        AUTO_STRBUF b = {0};
        strbuf_addf(&b, "Host: %s", h->transport.host);
        list = add_header(list, strbuf_str(&b));
    }
    if (r->body) {
        AUTO_STRBUF b = {0};
        strbuf_addf(&b, "Content-Type: %s", r->content_type ? r->content_type : "application/json");
        list = add_header(list, strbuf_str(&b));
    }
    char *auth = mem_new(char, PREFIX + KUBE_TOKEN_MAX);
    memcpy(auth, "Authorization: Bearer ", PREFIX);
    if (kube_config_token(h->config, auth + PREFIX, KUBE_TOKEN_MAX))
        list = add_header(list, auth);
    mem_wipe(auth, PREFIX + KUBE_TOKEN_MAX);
    free(auth);
    return list;
}

static void free_headers(struct curl_slist *list)
{
    for (struct curl_slist *i = list; i; i = i->next)
        mem_wipe(i->data, strlen(i->data));
    curl_slist_free_all(list);
}

/* Without the query: continue tokens and selectors do not help a reader. */
static int wrap(struct error *err, const struct kube_request *r)
{
    return error_wrap(err, "%s %.*s", r->method, (int)strcspn(r->path, "?"), r->path);
}

enum outcome { OUTCOME_DONE, OUTCOME_CANCELLED, OUTCOME_IDLE, OUTCOME_BROKEN };

/* Runs the transfer to its end. BROKEN: libcurl itself failed. */
static enum outcome drive(struct kube_http *h, struct transfer *t, CURLcode *result)
{
    int64_t idle_ms = t->request->idle_ms;
    for (;;) {
        int running = 0;
        CURLMcode rc = curl_multi_perform(h->multi, &running);
        int left = 0;
        for (CURLMsg *m; (m = curl_multi_info_read(h->multi, &left));) {
            if (m->msg == CURLMSG_DONE) {
                *result = m->data.result;
                return OUTCOME_DONE;
            }
        }
        if (atomic_load(&h->cancelled))
            return OUTCOME_CANCELLED;
        if (rc != CURLM_OK || running == 0)
            return OUTCOME_BROKEN;
        int64_t wait = POLL_MAX_MS;
        if (idle_ms > 0) {
            int64_t due = t->last_byte_ms + idle_ms - clock_mono_ms();
            if (due <= 0)
                return OUTCOME_IDLE;
            wait = num_min(wait, due);
        }
        if (t->sink)
            clock_sleep_us(wake_coalesce_round(&t->coalesce, clock_mono_us()));
        if (curl_multi_poll(h->multi, NULL, 0, (int)wait, NULL) != CURLM_OK)
            return OUTCOME_BROKEN;
    }
}

static CURLcode prepare(struct kube_http *h, struct transfer *t, const char *url,
                        struct curl_slist *headers)
{
    const struct kube_request *r = t->request;
    CURL *e = h->easy;
    CURLcode rc = CURLE_OK;
    int64_t timeout = whole_timeout(h, r);
    int64_t connect = timeout > 0 ? num_min(timeout, TRANSPORT_CONNECT_MS) : TRANSPORT_CONNECT_MS;
    if (r->idle_ms > 0)
        connect = num_min(connect, r->idle_ms);
    h->transport.curl_text[0] = 0;
    TRANSPORT_SET(rc, e, CURLOPT_URL, url);
    TRANSPORT_SET(rc, e, CURLOPT_HTTPHEADER, headers);
    TRANSPORT_SET(rc, e, CURLOPT_TIMEOUT_MS, (long)timeout);
    TRANSPORT_SET(rc, e, CURLOPT_CONNECTTIMEOUT_MS, (long)connect);
    TRANSPORT_SET(rc, e, CURLOPT_HEADERDATA, t);
    TRANSPORT_SET(rc, e, CURLOPT_WRITEDATA, t);
    TRANSPORT_SET(rc, e, CURLOPT_PREREQDATA, t);
    if (r->body) {
        TRANSPORT_SET(rc, e, CURLOPT_POST, 1L);
        TRANSPORT_SET(rc, e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body_len);
        TRANSPORT_SET(rc, e, CURLOPT_POSTFIELDS, r->body);
    } else {
        TRANSPORT_SET(rc, e, CURLOPT_HTTPGET, 1L);
    }
    TRANSPORT_SET(rc, e, CURLOPT_CUSTOMREQUEST, r->method);
    return rc;
}

/* Maps curl's result to our error codes. */
static int transport_error(struct kube_http *h, CURLcode result, bool sent, struct error *err)
{
    const char *text =
        h->transport.curl_text[0] ? h->transport.curl_text : curl_easy_strerror(result);
    if (result == CURLE_OPERATION_TIMEDOUT)
        return error_set(err, sent ? ERROR_TIMEOUT : ERROR_UNAVAILABLE, "%s", text);
    return error_set(err, ERROR_UNAVAILABLE, "%s", text);
}

static int status_error(struct kube_http *h, long status, const struct strbuf *body,
                        struct error *err)
{
    curl_off_t after_s = 0;
    curl_easy_getinfo(h->easy, CURLINFO_RETRY_AFTER, &after_s);
    return kube_http_status_error(err, (int)status, strbuf_str(body), body->len, (int64_t)after_s);
}

static int conclude(struct kube_http *h, struct transfer *t, enum outcome outcome, CURLcode result,
                    int *status, bool *never_sent)
{
    long code = 0, sent = 0;
    curl_easy_getinfo(h->easy, CURLINFO_RESPONSE_CODE, &code);
    curl_easy_getinfo(h->easy, CURLINFO_REQUEST_SIZE, &sent);
    *status = (int)code;
    *never_sent = sent == 0;
    if (t->refused)
        return -1;
    if (outcome == OUTCOME_CANCELLED)
        return error_set(t->err, ERROR_CANCELLED, "cancelled");
    if (outcome == OUTCOME_IDLE)
        return error_set(t->err, ERROR_TIMEOUT, "no byte for %lld ms",
                         (long long)t->request->idle_ms);
    if (outcome == OUTCOME_BROKEN)
        return error_set(t->err, ERROR_UNAVAILABLE, "libcurl gave up");
    if (t->repeated)
        return error_set(t->err, ERROR_UNAVAILABLE, "the connection was closed before an answer");
    if (t->late)
        return error_set(t->err, ERROR_TIMEOUT, "its time was over before it was sent");
    if (result != CURLE_OK && !t->cut)
        return transport_error(h, result, sent > 0, t->err);
    if (!t->head_ended)
        return error_set(t->err, ERROR_UNAVAILABLE,
                         "the connection was closed in the middle of the answer");
    if (code >= 300)
        return status_error(h, code, t->body, t->err);
    return 0;
}

static int run(struct kube_http *h, struct transfer *t, int *status, bool *never_sent)
{
    const struct kube_request *r = t->request;
    int ignored_status;
    bool ignored_sent;
    t->err = t->err ? t->err : &t->unwanted;
    status = status ? status : &ignored_status;
    never_sent = never_sent ? never_sent : &ignored_sent;
    error_clear(t->err);
    *status = 0;
    *never_sent = true;
    if (atomic_load(&h->cancelled)) {
        error_set(t->err, ERROR_CANCELLED, "cancelled");
        return wrap(t->err, r);
    }
    AUTO_STRBUF url = {0};
    strbuf_adds(&url, h->transport.base);
    strbuf_adds(&url, r->path);
    struct curl_slist *headers = make_headers(h, r);
    t->http = h;
    t->max_bytes = (size_t)(r->max_bytes > 0 ? r->max_bytes : h->options.max_reply_bytes);
    t->write = !str_eq(r->method, "GET");
    t->last_byte_ms = clock_mono_ms();
    CURLcode result = prepare(h, t, strbuf_str(&url), headers);
    int rc;
    if (result != CURLE_OK) {
        rc = error_set(t->err, ERROR_INVALID, "%s", curl_easy_strerror(result));
    } else {
        enum outcome outcome = curl_multi_add_handle(h->multi, h->easy) == CURLM_OK
                                   ? drive(h, t, &result)
                                   : OUTCOME_BROKEN;
        rc = conclude(h, t, outcome, result, status, never_sent);
        curl_multi_remove_handle(h->multi, h->easy);
        h->transport.unanswered = false;
    }
    curl_easy_setopt(h->easy, CURLOPT_HTTPHEADER, NULL);
    free_headers(headers);
    return rc < 0 ? wrap(t->err, r) : 0;
}

int kube_http_do(struct kube_http *h, const struct kube_request *r, struct strbuf *body,
                 int *status, bool *never_sent, struct error *err)
{
    struct transfer t = {.request = r, .body = body, .err = err};
    return run(h, &t, status, never_sent);
}

int kube_http_stream(struct kube_http *h, const struct kube_request *r, kube_http_sink on_bytes,
                     void *arg, int *status, struct error *err)
{
    AUTO_STRBUF error_body = {0};
    struct transfer t = {
        .request = r, .body = &error_body, .sink = on_bytes, .sink_arg = arg, .err = err};
    return run(h, &t, status, NULL);
}

void kube_http_escape(struct strbuf *out, const char *s)
{
    static const char hex[] = "0123456789ABCDEF";
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '_' || c == '.' || c == '~';
        if (plain) {
            strbuf_addc(out, (char)c);
        } else {
            strbuf_addc(out, '%');
            strbuf_addc(out, hex[c >> 4]);
            strbuf_addc(out, hex[c & 15]);
        }
    }
}
