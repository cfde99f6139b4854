// SPDX-License-Identifier: Apache-2.0
/* Requests share no state, so any replica and thread gives the same answer. */
#include "webhook/server.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/resource.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/httpd.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/metrics.h"
#include "lib/base/num.h"

#define PATH_MUTATE "/mutate"
#define PATH_VALIDATE "/validate"

const struct option_row server_option_rows[] = {
    {.section = "SERVING"},
    {.name = "address",
     .kind = OPTION_STRING,
     .offset = offsetof(struct server_options, address),
     .fallback = "0.0.0.0",
     .meta = "IP",
     .help = "Address on which the API server reaches the webhook (HTTPS)."},
    {.name = "port",
     .kind = OPTION_INT,
     .offset = offsetof(struct server_options, port),
     .fallback = "9443",
     .min = 0,
     .max = 65535,
     .meta = "N",
     .help = "Its port; 0 takes a free one, which is logged."},
    {.name = "threads",
     .kind = OPTION_INT,
     .offset = offsetof(struct server_options, threads),
     .fallback = "4",
     .min = 1,
     .max = 64,
     .meta = "N",
     .help = "Threads that serve requests."},
    {.name = "max-body",
     .kind = OPTION_SIZE,
     .offset = offsetof(struct server_options, max_body_bytes),
     .fallback = "3MiB",
     .min = 1024,
     .max = 64 * 1024 * 1024,
     .meta = "SIZE",
     .help =
         "Largest review that is read; larger ones are answered 413. The API server takes objects of "
         "1.5 MiB at most."},
    {.name = "max-connections",
     .kind = OPTION_INT,
     .offset = offsetof(struct server_options, max_connections),
     .fallback = "1024",
     .min = 1,
     .max = 65535,
     .meta = "N",
     .help = "Connections held at a time, three quarters of them by one address at most. For one "
             "more another goes: first one that never got an answer."},
    {.name = "idle-timeout",
     .kind = OPTION_DURATION,
     .offset = offsetof(struct server_options, idle_timeout_ms),
     .fallback = "10m",
     .min = 120 * 1000,
     .max = 3600 * 1000,
     .meta = "TIME",
     .help = "A connection without traffic is closed after this time. The API server closes them "
             "after 90 s; it must be the first, or it asks on one that is about to close."},
    {.name = "client-ca-file",
     .kind = OPTION_STRING,
     .offset = offsetof(struct server_options, client_ca_file),
     .meta = "FILE",
     .help = "Answer only clients that show a certificate of this CA (PEM, one or several; read at "
             "the start). The API server shows one when its AdmissionConfiguration says so. Unset: "
             "every client is answered."},
    {0}};

static struct metric requests = {.kind = METRIC_COUNTER,
                                 .name = "cosched_webhook_requests_total",
                                 .help =
                                     "Requests by result: untouched, patched, refused, malformed.",
                                 .label = "result"};
static struct metric kinds = {.kind = METRIC_COUNTER,
                              .name = "cosched_webhook_objects_total",
                              .help = "Reviews answered, by kind of object.",
                              .label = "kind"};
static struct metric injections = {.kind = METRIC_COUNTER,
                                   .name = "cosched_webhook_injections_total",
                                   .help = "Pods given our schedulerName, by what they asked for.",
                                   .label = "trigger"};
static struct metric removals = {.kind = METRIC_COUNTER,
                                 .name = "cosched_webhook_removed_annotations_total",
                                 .help = "Result annotations removed from new pods."};
static struct metric durations = {
    .kind = METRIC_HISTOGRAM,
    .name = "cosched_webhook_request_duration_seconds",
    .help = "Time from the whole request to the whole reply, without TLS."};

struct server {
    atomic_bool draining;
    struct httpd *httpd;
    struct review_config config;
};

static void reject(struct httpd_response *reply, int status, const char *reason,
                   const char *message)
{
    reply->status = status;
    reply->content_type = "application/json";
    review_status(&reply->body, status, reason, message);
    metrics_inc(&requests, review_result_name(REVIEW_MALFORMED));
}

static void report(const struct review_outcome *o)
{
    metrics_inc(&requests, review_result_name(o->result));
    if (o->result != REVIEW_MALFORMED)
        metrics_inc(&kinds, o->kind);
    if (o->trigger)
        metrics_inc(&injections, o->trigger);
    if (o->removed > 0)
        metrics_add(&removals, NULL, (int64_t)o->removed);
    if (o->result == REVIEW_MALFORMED)
        log_warn("malformed review", kv("error", o->message));
    else if (o->result == REVIEW_REFUSED)
        log_info("object refused", kv("kind", o->kind), kv("namespace", o->ns), kv("name", o->name),
                 kv("uid", o->uid), kv("reason", o->message));
    else
        log_debug("object reviewed", kv("kind", o->kind),
                  kv("result", review_result_name(o->result)), kv("namespace", o->ns),
                  kv("name", o->name), kv("uid", o->uid), kv("trigger", str_or_empty(o->trigger)),
                  kv("removed", o->removed));
}

/* "application/json", possibly with parameters. */
static bool is_json(const char *content_type)
{
    static const char json_type[] = "application/json";
    size_t n = sizeof json_type - 1;
    return strncasecmp(content_type, json_type, n) == 0 &&
           (content_type[n] == '\0' || content_type[n] == ';' || content_type[n] == ' ');
}

/* For bodies that are too large, and for too many of them at a time. */
static void refuse_body(void *arg, const char *sentence, struct httpd_response *reply)
{
    const struct server *s = arg;
    reply->close = atomic_load(&s->draining);
    reject(reply, reply->status,
           reply->status == 413 ? "RequestEntityTooLarge" : "ServiceUnavailable", sentence);
}

/* Reads the fraction of n.ddd in units of 1/whole and moves *text past it. */
static int64_t read_fraction(const char **text, int64_t whole)
{
    int64_t sum = 0;
    if (**text != '.')
        return 0;
    for ((*text)++; **text >= '0' && **text <= '9'; (*text)++) {
        whole /= 10;
        sum += whole * (**text - '0');
    }
    return sum;
}

/* Parses "5s", "500ms", "1m30s" or "1.5s", as Go prints deadlines. 0: none; -1: invalid. */
static int64_t read_timeout_us(const char *text)
{
    static const struct {
        const char *unit;
        int64_t us;
    } units[] = {{"ms", 1000},    {"us", 1},     {"\u00b5s", 1}, {"h", INT64_C(3600000000)},
                 {"m", 60000000}, {"s", 1000000}};
    const int64_t millionths = 1000000;
    int64_t sum = 0;
    if (!text)
        return 0;
    if (*text == '\0' || strlen(text) > 20)
        return -1;
    while (*text != '\0') {
        int64_t n = 0, part = 0;
        size_t digits = strspn(text, "0123456789");
        if (digits == 0 || num_parse(text, digits, &n, NULL) < 0)
            return -1;
        text += digits;
        int64_t fraction = read_fraction(&text, millionths);
        size_t u = 0;
        while (u < sizeof units / sizeof units[0] && !str_starts(text, units[u].unit))
            u++;
        if (u == sizeof units / sizeof units[0] || !num_mul(n, units[u].us, &part) ||
            !num_add(sum, part, &sum) ||
            !num_add(sum, fraction * (units[u].us / 1000) / 1000, &sum))
            return -1;
        text += strlen(units[u].unit);
    }
    return sum;
}

/* Skips work for clients that no longer wait. */
static bool is_in_time(const struct httpd_request *request, struct httpd_response *reply)
{
    const char *text = httpd_query(request, "timeout");
    int64_t timeout_us = read_timeout_us(text);
    if (timeout_us < 0) {
        reject(reply, 400, "BadRequest", "timeout: must be a time such as 5s");
        return false;
    }
    if (timeout_us > 0 && clock_mono_us() - request->began_us > timeout_us) {
        reject(reply, 504, "Timeout", "the review was longer on its way than its timeout");
        return false;
    }
    return true;
}

static void handle(void *arg, const struct httpd_request *request, struct httpd_response *reply)
{
    const struct server *s = arg;
    reply->close = atomic_load(&s->draining);
    int64_t began_us = clock_mono_us();
    bool mutate = str_eq(request->path, PATH_MUTATE);
    if (!mutate && !str_eq(request->path, PATH_VALIDATE)) {
        reject(reply, 404, "NotFound",
               "only " PATH_MUTATE " and " PATH_VALIDATE " are served here");
        return;
    }
    if (!str_eq(request->method, "POST")) {
        reject(reply, 405, "MethodNotAllowed", "reviews are sent by POST");
        return;
    }
    if (!is_json(request->content_type)) {
        reject(reply, 415, "UnsupportedMediaType", "reviews are application/json");
        return;
    }
    if (!is_in_time(request, reply))
        return;
    struct arena arena;
    struct review_outcome outcome;
    arena_init(&arena, 16 * 1024);
    review_answer(&s->config, mutate, request->body_insitu, request->body_len, &arena, &reply->body,
                  &outcome);
    reply->status = outcome.status;
    reply->content_type = "application/json";
    report(&outcome);
    arena_deinit(&arena);
    metrics_observe_us(&durations, NULL, clock_mono_us() - began_us);
}

/* Limit for all bodies over 16 KiB together, to bound memory however many clients there are. */
enum { LARGE_BYTES = 32 * 1024 * 1024, CA_BYTES_MAX = 1024 * 1024 };

/* For watches, certificates, probes and logs. */
enum { OTHER_FILES = 64 };

/* Raises the limit of open files as far as allowed. Returns how many connections fit below it. */
static int64_t fit_connections(const struct server_options *o)
{
    struct rlimit files;
    int64_t others = OTHER_FILES + o->threads * HTTPD_SPARE_FILES;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return o->max_connections;
    files.rlim_cur = files.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &files) < 0)
        (void)getrlimit(RLIMIT_NOFILE, &files);
    int64_t most = files.rlim_cur > INT32_MAX ? INT32_MAX : (int64_t)files.rlim_cur;
    int64_t fit = num_max(1, num_min(o->max_connections, most - others));
    if (fit < o->max_connections)
        log_warn("the limit of open files is below --max-connections", kv("files", most),
                 kv("connections", fit));
    return fit;
}

int server_start(struct server **out, const struct server_options *o,
                 const struct review_config *config, struct error *err)
{
    AUTO_STRBUF client_ca = {0};
    if (o->client_ca_file && file_read(o->client_ca_file, CA_BYTES_MAX, &client_ca, err) < 0)
        return error_wrap(err, "--client-ca-file");
    struct server *s = mem_new(struct server, 1);
    s->config = *config;
    struct httpd_config http = {.address = o->address,
                                .port = (uint16_t)o->port,
                                .threads = (unsigned)o->threads,
                                .max_body_bytes = (size_t)o->max_body_bytes,
                                .max_large_bytes = (size_t)num_max(LARGE_BYTES, o->max_body_bytes),
                                .max_connections = (unsigned)fit_connections(o),
                                .timeout_s = (unsigned)(o->idle_timeout_ms / 1000),
                                .tls = true,
                                .client_ca_pem = o->client_ca_file ? strbuf_str(&client_ca) : NULL,
                                .handler = handle,
                                .refuser = refuse_body,
                                .arg = s};
    metrics_register(&requests);
    metrics_register(&kinds);
    metrics_register(&injections);
    metrics_register(&removals);
    metrics_register(&durations);
    if (httpd_start(&s->httpd, &http, err) < 0) {
        free(s);
        return error_wrap(err, "listen on %s port %lld", o->address, (long long)o->port);
    }
    *out = s;
    return 0;
}

void server_drain(struct server *s)
{
    atomic_store(&s->draining, true);
}

void server_stop(struct server *s)
{
    if (!s)
        return;
    httpd_stop(s->httpd);
    free(s);
}

uint16_t server_port(const struct server *s)
{
    return httpd_port(s->httpd);
}

int server_set_certificate(struct server *s, const char *cert_pem, const char *key_pem,
                           struct error *err)
{
    return httpd_set_certificate(s->httpd, cert_pem, key_pem, err);
}
