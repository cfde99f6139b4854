// SPDX-License-Identifier: Apache-2.0
/* The server has its own thread, so it can report that the loop hangs. */
#include "lib/base/probes.h"

#include <assert.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "lib/base/options.h"

enum { MAX_CONNECTIONS = 64, TIMEOUT_S = 10 };

const struct option_row probes_option_rows[] = {
    {.section = "PROBES"},
    {.name = "http-address",
     .kind = OPTION_STRING,
     .offset = offsetof(struct probes_options, address),
     .fallback = "0.0.0.0",
     .meta = "IP",
     .help = "Where /healthz, /readyz and /metrics are served; \"::\" takes IPv6 and IPv4."},
    {.name = "http-port",
     .kind = OPTION_INT,
     .offset = offsetof(struct probes_options, port),
     .fallback = "8080",
     .min = 0,
     .max = 65535,
     .meta = "N",
     .help = "Their port; 0 takes a free one and logs it."},
    {0},
};

static void on_beat(void *arg)
{
    struct probes *p = arg;
    atomic_store(&p->beat_ms, clock_mono_ms());
    loop_timer_beat(p->loop, &p->beat, PROBES_BEAT_MS, on_beat, p);
}

static void answer_healthz(struct probes *p, struct httpd_response *response)
{
    int64_t silent_ms = clock_mono_ms() - atomic_load(&p->beat_ms);
    if (silent_ms <= PROBES_STALL_MS) {
        strbuf_adds(&response->body, "ok\n");
        return;
    }
    response->status = 503;
    strbuf_addf(&response->body, "the main loop has not answered for %lld ms\n",
                (long long)silent_ms);
}

static void answer_readyz(struct probes *p, struct httpd_response *response)
{
    for (unsigned i = 0; i < p->needs_len; i++)
        if (!atomic_load(&p->met[i]))
            strbuf_addf(&response->body, "%s%s", response->body.len == 0 ? "waiting for: " : ", ",
                        p->needs[i]);
    if (response->body.len == 0)
        strbuf_adds(&response->body, "ok");
    else
        response->status = 503;
    strbuf_addc(&response->body, '\n');
}

static void answer_metrics(struct httpd_response *response)
{
    response->content_type = "text/plain; version=0.0.4; charset=utf-8";
    metrics_render(&response->body);
}

static void on_request(void *arg, const struct httpd_request *request,
                       struct httpd_response *response)
{
    struct probes *p = arg;
    bool healthz = str_eq(request->path, "/healthz"), readyz = str_eq(request->path, "/readyz");
    if (!healthz && !readyz && !str_eq(request->path, "/metrics")) {
        if (p->other != NULL) {
            p->other(p->other_arg, request, response);
            return;
        }
        response->status = 404;
        strbuf_adds(&response->body, "not found; there are /healthz, /readyz and /metrics\n");
        return;
    }
    if (!str_eq(request->method, "GET") && !str_eq(request->method, "HEAD")) {
        response->status = 405;
        strbuf_adds(&response->body, "only GET and HEAD are allowed here\n");
    } else if (healthz) {
        answer_healthz(p, response);
    } else if (readyz) {
        answer_readyz(p, response);
    } else {
        answer_metrics(response);
    }
}

void probes_init(struct probes *p, struct loop *loop)
{
    *p = (struct probes){.loop = loop};
}

unsigned probes_need(struct probes *p, const char *what)
{
    assert(p->needs_len < PROBES_NEEDS && p->httpd == NULL);
    p->needs[p->needs_len] = what;
    return p->needs_len++;
}

void probes_met(struct probes *p, unsigned need, bool met)
{
    assert(need < p->needs_len);
    atomic_store(&p->met[need], met);
}

bool probes_ready(const struct probes *p)
{
    for (unsigned i = 0; i < p->needs_len; i++)
        if (!atomic_load(&p->met[i]))
            return false;
    return true;
}

int probes_start(struct probes *p, const struct probes_options *o, httpd_handler other,
                 void *other_arg, struct error *err)
{
    p->other = other;
    p->other_arg = other_arg;
    on_beat(p);
    struct httpd_config config = {
        .address = o->address,
        .port = (uint16_t)o->port,
        .max_connections = MAX_CONNECTIONS,
        .timeout_s = TIMEOUT_S,
        .handler = on_request,
        .arg = p,
    };
    if (httpd_start(&p->httpd, &config, err) < 0) {
        loop_timer_cancel(p->loop, &p->beat);
        return error_wrap(err, "probes");
    }
    log_info("probes listening", kv("address", o->address), kv("port", httpd_port(p->httpd)));
    return 0;
}

void probes_stop(struct probes *p)
{
    httpd_stop(p->httpd);
    p->httpd = NULL;
    loop_timer_cancel(p->loop, &p->beat);
}
