// SPDX-License-Identifier: Apache-2.0
/*
 * admission_caller - asks webhooks on worker threads and brings the answers back to the loop.
 *
 *   admission_caller_send ─► queue ─► worker: kube_http_do ─► mailbox ─► call->done, on the loop
 *
 * A worker keeps the connections it has made, one for each webhook server that it met lately, so
 * that most calls need no handshake.
 */
#include "test/local/admission/admission_internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/kube/config.h"
#include "lib/kube/http.h"

enum {
    WORKERS = 4,
    KEPT = 4,       /* connections of one worker */
    ANSWERS = 4096, /* mailbox */
    REPLY_MAX = 16 * 1024 * 1024,
};

struct connection {
    char *kubeconfig;
    struct kube_config *config;
    struct kube_http *http;
};

struct worker {
    struct admission_caller *caller;
    pthread_t thread;
    bool started;
    struct connection *kept[KEPT]; /* newest first */
    struct kube_http *busy;        /* under the lock: what to cancel */
};

struct admission_caller {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct admission_call *first, **last;
    bool stopping;
    struct mailbox *answers;
    struct worker workers[WORKERS];
};

void admission_call_free(struct admission_call *c)
{
    if (!c)
        return;
    free(c->kubeconfig);
    free(c->server);
    free(c->path);
    strbuf_deinit(&c->body);
    strbuf_deinit(&c->reply);
    free(c);
}

static void connection_close(struct connection *c)
{
    if (!c)
        return;
    kube_http_free(c->http);
    kube_config_free(c->config);
    free(c->kubeconfig);
    free(c);
}

static struct connection *connection_open(const char *kubeconfig, struct error *err)
{
    static const struct kube_options options = {
        .max_list_bytes = REPLY_MAX,
        .max_line_bytes = REPLY_MAX,
        .max_reply_bytes = REPLY_MAX,
        .request_timeout_ms = 30000,
    };
    struct connection *c = mem_new(struct connection, 1);
    c->kubeconfig = mem_strdup(kubeconfig);
    if (kube_config_parse(&c->config, kubeconfig, strlen(kubeconfig), NULL, "", false, err) < 0 ||
        kube_http_new(&c->http, c->config, &options, "kube-apiserver-admission", err) < 0) {
        connection_close(c);
        return NULL;
    }
    return c;
}

/* The worker's connection to that server, moved to the front; made if need be (*kept is false). */
static struct kube_http *worker_connect(struct worker *w, const char *kubeconfig, bool *kept,
                                        struct error *err)
{
    size_t i = 0;
    while (i < KEPT && !(w->kept[i] && str_eq(w->kept[i]->kubeconfig, kubeconfig)))
        i++;
    *kept = i < KEPT;
    struct connection *c = *kept ? w->kept[i] : connection_open(kubeconfig, err);
    if (!c)
        return NULL;
    if (i == KEPT)
        connection_close(w->kept[--i]);
    memmove(&w->kept[1], &w->kept[0], i * sizeof w->kept[0]);
    w->kept[0] = c;
    return c->http;
}

static void worker_call(struct worker *w, struct admission_call *call)
{
    struct admission_caller *c = w->caller;
    bool kept;
    struct kube_http *http = worker_connect(w, call->kubeconfig, &kept, &call->error);
    if (!http) {
        call->failed = true;
        return;
    }
    pthread_mutex_lock(&c->lock);
    w->busy = http;
    if (c->stopping)
        kube_http_cancel(http);
    pthread_mutex_unlock(&c->lock);
    const struct kube_request r = {.method = "POST",
                                   .path = call->path,
                                   .content_type = "application/json",
                                   .body = strbuf_str(&call->body),
                                   .body_len = call->body.len,
                                   .timeout_ms = call->timeout_ms};
    int status = 0;
    call->failed = kube_http_do(http, &r, &call->reply, &status, NULL, &call->error) < 0;
    /* Servers close idle connections. The API server asks again on a new one, and so do we. */
    if (call->failed && kept && status == 0 && call->error.code == ERROR_UNAVAILABLE) {
        strbuf_reset(&call->reply);
        call->failed = kube_http_do(http, &r, &call->reply, &status, NULL, &call->error) < 0;
    }
    pthread_mutex_lock(&c->lock);
    w->busy = NULL;
    pthread_mutex_unlock(&c->lock);
}

static void *worker_run(void *arg)
{
    struct worker *w = arg;
    struct admission_caller *c = w->caller;
    for (;;) {
        pthread_mutex_lock(&c->lock);
        while (!c->first && !c->stopping)
            pthread_cond_wait(&c->wake, &c->lock);
        struct admission_call *call = c->stopping ? NULL : c->first;
        if (call) {
            c->first = call->next_;
            if (!c->first)
                c->last = &c->first;
        }
        pthread_mutex_unlock(&c->lock);
        if (!call)
            break;
        worker_call(w, call);
        mailbox_post(c->answers, call);
    }
    for (size_t i = 0; i < KEPT; i++)
        connection_close(w->kept[i]);
    return NULL;
}

static void deliver(void *arg, void *msg)
{
    (void)arg;
    struct admission_call *call = msg;
    call->done(call);
}

static void dispose(void *msg)
{
    admission_call_free(msg);
}

void admission_caller_send(struct admission_caller *c, struct admission_call *call)
{
    call->next_ = NULL;
    pthread_mutex_lock(&c->lock);
    *c->last = call;
    c->last = &call->next_;
    pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&c->lock);
}

int admission_caller_new(struct admission_caller **out, struct loop *l, struct error *err)
{
    struct admission_caller *c = mem_new(struct admission_caller, 1);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->wake, NULL);
    c->last = &c->first;
    int rc = mailbox_new(&c->answers, l, ANSWERS, deliver, dispose, NULL, err);
    for (size_t i = 0; i < WORKERS && rc == 0; i++) {
        struct worker *w = &c->workers[i];
        w->caller = c;
        int e = pthread_create(&w->thread, NULL, worker_run, w);
        if (e != 0)
            rc = error_errno(err, e, "a thread for webhooks");
        w->started = e == 0;
    }
    if (rc < 0) {
        admission_caller_free(c);
        return -1;
    }
    *out = c;
    return 0;
}

void admission_caller_free(struct admission_caller *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->stopping = true;
    for (size_t i = 0; i < WORKERS; i++)
        if (c->workers[i].busy)
            kube_http_cancel(c->workers[i].busy);
    pthread_cond_broadcast(&c->wake);
    pthread_mutex_unlock(&c->lock);
    if (c->answers)
        mailbox_close(c->answers);
    for (size_t i = 0; i < WORKERS; i++)
        if (c->workers[i].started)
            pthread_join(c->workers[i].thread, NULL);
    mailbox_free(c->answers);
    for (struct admission_call *call = c->first, *next; call; call = next) {
        next = call->next_;
        admission_call_free(call);
    }
    pthread_cond_destroy(&c->wake);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
