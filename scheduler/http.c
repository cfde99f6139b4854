// SPDX-License-Identifier: Apache-2.0
#include "scheduler/http.h"

#include <stdlib.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "scheduler/dump/dump.h"

enum { ASKS = 4, POD_BYTES = 1024, NODE_BYTES = 2048 };

/* One request to the loop. The server's thread may give up first; then the loop frees it. All
 * fields but http are under http->lock. */
struct ask {
    struct http *http;
    struct strbuf text;
    bool done;
    bool abandoned;
};

static void ask_free(struct ask *a)
{
    strbuf_deinit(&a->text);
    free(a);
}

static void print(void *arg, void *msg)
{
    struct http *h = arg;
    struct ask *a = msg;
    struct strbuf text = {0};
    pthread_mutex_lock(&h->lock);
    bool wanted = !a->abandoned;
    pthread_mutex_unlock(&h->lock);
    int64_t began_us = clock_mono_us();
    if (wanted) {
        if (h->settle != NULL)
            h->settle(h->settle_arg);
        size_t guess = map_count(&h->cluster->pods) * POD_BYTES +
                       map_count(&h->cluster->nodes) * NODE_BYTES + POD_BYTES;
        strbuf_reserve(&text, h->last_len > 0 ? h->last_len + h->last_len / 8 : guess);
        dump_cluster(h->cluster, &text);
        h->last_len = text.len;
        int64_t took_us = clock_mono_us() - began_us;
        log_info("cluster dumped", kv("bytes", text.len), kv("ms", took_us / 1000));
    }
    pthread_mutex_lock(&h->lock);
    int64_t now_ms = clock_mono_ms();
    if (wanted) {
        h->not_before = now_ms + (now_ms - began_us / 1000) * (HTTP_SHARE - 1);
        h->window_bytes += text.len;
    }
    a->text = text;
    a->done = true;
    bool abandoned = a->abandoned;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
    if (abandoned)
        ask_free(a);
}

/* The mailbox is closed, or freed with the request in it. */
static void dispose(void *msg)
{
    struct ask *a = msg;
    struct http *h = a->http;
    pthread_mutex_lock(&h->lock);
    bool abandoned = a->abandoned;
    a->abandoned = true; /* the second of the two to come frees it */
    pthread_mutex_unlock(&h->lock);
    if (abandoned)
        ask_free(a);
}

static void unavailable(struct httpd_response *r, const char *why)
{
    r->status = 503;
    strbuf_addf(&r->body, "%s\n", why);
}

/* false: *wait_ms says how long to wait. Under the lock. */
static bool may_ask(struct http *h, int64_t now_ms, int64_t *wait_ms)
{
    if (now_ms - h->window_ms >= HTTP_SENDING_MS) {
        h->window_ms = now_ms;
        h->window_bytes = 0;
    }
    *wait_ms = h->not_before - now_ms;
    if (h->window_bytes > 0 && h->window_bytes + h->window_bytes / 2 > HTTP_TEXT_MAX)
        *wait_ms = num_max(*wait_ms, h->window_ms + HTTP_SENDING_MS - now_ms);
    return *wait_ms <= 0;
}

/* Until the loop has answered, the server stops, or HTTP_WAIT_MS have passed. Under the lock. */
static void wait_for(struct http *h, const struct ask *a)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += HTTP_WAIT_MS / 1000;
    while (!a->done && !h->closed)
        if (pthread_cond_timedwait(&h->changed, &h->lock, &until) != 0)
            break;
}

static void answer_cluster(struct http *h, struct httpd_response *response)
{
    int64_t wait_ms = 0;
    pthread_mutex_lock(&h->lock);
    bool closed = h->closed, may = may_ask(h, clock_mono_ms(), &wait_ms);
    pthread_mutex_unlock(&h->lock);
    if (closed) {
        unavailable(response, "the scheduler is ending");
        return;
    }
    if (!may) {
        response->status = 503;
        strbuf_addf(&response->body,
                    "the last dump was a moment ago, and each stops the scheduler: again in %lld "
                    "ms\n",
                    (long long)wait_ms);
        return;
    }
    struct ask *a = mem_new(struct ask, 1);
    a->http = h;
    bool posted = mailbox_post(h->asks, a);
    pthread_mutex_lock(&h->lock);
    if (posted)
        wait_for(h, a);
    bool done = a->done, mine = done || a->abandoned;
    a->abandoned = true;
    if (done) {
        strbuf_deinit(&response->body);
        response->body = a->text;
        a->text = (struct strbuf){0};
    }
    pthread_mutex_unlock(&h->lock);
    if (mine)
        ask_free(a);
    if (done)
        response->content_type = "application/json";
    else
        unavailable(response, "the scheduler's loop did not answer");
}

void http_answer(void *arg, const struct httpd_request *request, struct httpd_response *response)
{
    struct http *h = arg;
    if (!str_eq(request->path, "/debug/cluster")) {
        response->status = 404;
        strbuf_adds(&response->body,
                    "not found; there are /healthz, /readyz, /metrics and /debug/cluster\n");
    } else if (!str_eq(request->method, "GET")) {
        response->status = 405;
        strbuf_adds(&response->body, "only GET is allowed here\n");
    } else if (!atomic_load(&h->serving)) {
        unavailable(response, "this replica has no complete copy of the cluster: it stands by, or "
                              "is still listing");
    } else {
        answer_cluster(h, response);
    }
}

int http_init(struct http *h, struct loop *loop, const struct cluster *c, struct error *err)
{
    pthread_condattr_t attr;
    *h = (struct http){.cluster = c};
    if (mailbox_new(&h->asks, loop, ASKS, print, dispose, h, err) < 0)
        return -1;
    (void)pthread_mutex_init(&h->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&h->changed, &attr);
    (void)pthread_condattr_destroy(&attr);
    return 0;
}

void http_serve(struct http *h, bool complete)
{
    atomic_store(&h->serving, complete);
}

void http_close(struct http *h)
{
    if (h->asks == NULL)
        return;
    mailbox_close(h->asks);
    pthread_mutex_lock(&h->lock);
    h->closed = true;
    pthread_cond_broadcast(&h->changed);
    pthread_mutex_unlock(&h->lock);
}

void http_deinit(struct http *h)
{
    if (h->asks == NULL)
        return;
    mailbox_free(h->asks);
    h->asks = NULL;
    (void)pthread_cond_destroy(&h->changed);
    (void)pthread_mutex_destroy(&h->lock);
}
