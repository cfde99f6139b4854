// SPDX-License-Identifier: Apache-2.0
/*
 * post_pipeline_kit - a pipeline and the API server's twin, which answers with any bytes, late, in
 * part or not at all. A write that is reported twice, or disposed of after it was reported, aborts.
 */
#pragma once

#include "lib/kube/post_pipeline.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "lib/kube/http.h"
#include "test/fake/api/twin.h"
#include "test/unit/lib/base/expect.h"

enum { WAIT_MS = 60000, SHORT_MS = 500, JOBS = 2000 };

/* A write: its number is in its path. */
struct job {
    int number;
    bool done, disposed;
    struct post_pipeline_answer answer;
};

static struct bench {
    struct twin *twin;
    struct kube_config *config;
    struct kube_options options;
    struct post_pipeline *pipeline;
    struct job jobs[JOBS];
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int done, disposed;
    const char *body;
    bool ahead;
    _Atomic bool fence_closed;
    _Atomic int64_t stall_ms; /* in compose, as if the process had been stopped there */
} b;

static inline int compose(void *arg, void *p, struct strbuf *path, struct strbuf *body,
                          struct error *err)
{
    const struct job *job = p;
    (void)arg;
    if (atomic_load(&b.fence_closed))
        return error_set(err, ERROR_CANCELLED, "the fence is closed");
    clock_sleep_ms(atomic_exchange(&b.stall_ms, 0));
    strbuf_addf(path, "/x/%d", job->number);
    strbuf_adds(body, b.body);
    return 0;
}

static inline void done(void *arg, void *p, const struct post_pipeline_answer *a)
{
    struct job *job = p;
    (void)arg;
    pthread_mutex_lock(&b.lock);
    if (job->done)
        abort();
    job->done = true;
    job->answer = *a;
    b.done++;
    pthread_cond_signal(&b.changed);
    pthread_mutex_unlock(&b.lock);
}

static inline void dispose(void *p)
{
    struct job *job = p;
    if (job->done || job->disposed)
        abort();
    job->disposed = true;
    b.disposed++;
}

static inline void start(unsigned connections, int64_t timeout_ms)
{
    struct error err = ERROR_INIT;
    struct post_pipeline_config c = {.connections = connections,
                                     .ahead = b.ahead,
                                     .timeout_ms = timeout_ms,
                                     .user_agent = "test/1",
                                     .compose = compose,
                                     .done = done,
                                     .dispose = dispose};
    if (post_pipeline_start(&b.pipeline, b.config, &b.options, &c, &err) < 0)
        fail_msg("%s", err.text);
}

static inline int setup(void **state)
{
    (void)state;
    memset(&b, 0, sizeof b);
    pthread_mutex_init(&b.lock, NULL);
    pthread_cond_init(&b.changed, NULL);
    b.twin = twin_start(NULL, false);
    b.config = twin_config(b.twin);
    b.options = twin_options();
    b.body = "{}";
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    post_pipeline_stop(b.pipeline);
    kube_config_free(b.config);
    twin_stop(b.twin);
    pthread_cond_destroy(&b.changed);
    pthread_mutex_destroy(&b.lock);
    return 0;
}

/* From the next start on, another server than the twin: what is in its cluster's entry of a
 * kubeconfig. */
static inline void go_to(const char *cluster)
{
    struct error err = ERROR_INIT;
    AUTO_STRBUF text = {0};
    strbuf_addf(&text,
                "current-context: c\ncontexts: [{name: c, context: {cluster: k}}]\n"
                "clusters: [{name: k, cluster: {%s}}]\n",
                cluster);
    kube_config_free(b.config);
    b.config = NULL;
    if (kube_config_parse(&b.config, text.ptr, text.len, NULL, "", false, &err) < 0)
        fail_msg("%s", err.text);
}

static inline void go_to_port(const char *scheme, uint16_t port)
{
    char cluster[64];
    (void)str_format(cluster, sizeof cluster, "server: '%s://127.0.0.1:%u'", scheme, port);
    go_to(cluster);
}

static inline void submit(int number)
{
    b.jobs[number].number = number;
    post_pipeline_submit(b.pipeline, &b.jobs[number]);
}

static inline void await_done(int n)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += WAIT_MS / 1000;
    pthread_mutex_lock(&b.lock);
    while (b.done < n)
        if (pthread_cond_timedwait(&b.changed, &b.lock, &end) != 0)
            fail_msg("%d of %d writes are reported after %d ms", b.done, n, WAIT_MS);
    pthread_mutex_unlock(&b.lock);
}

static inline void await_requests(size_t n)
{
    for (int64_t end = clock_mono_ms() + WAIT_MS; twin_requests(b.twin, TWIN_ANY) < n;
         clock_sleep_ms(1))
        if (clock_mono_ms() >= end)
            fail_msg("expected %zu requests, got %zu", n, twin_requests(b.twin, TWIN_ANY));
}

static inline void await_connections(size_t n)
{
    for (int64_t end = clock_mono_ms() + WAIT_MS; twin_connections(b.twin) < n; clock_sleep_ms(1))
        if (clock_mono_ms() >= end)
            fail_msg("expected %zu connections, got %zu", n, twin_connections(b.twin));
}

/* One write at a time, and what came of it. */
static inline const struct post_pipeline_answer *write_one(int number)
{
    submit(number);
    await_done(number + 1);
    return &b.jobs[number].answer;
}

/* Our end of a connection to the port, -1: there is none. */
static inline int find_socket(uint16_t port)
{
    for (int fd = 3; fd < 1024; fd++) {
        struct sockaddr_in peer = {0};
        socklen_t len = sizeof peer;
        if (getpeername(fd, (struct sockaddr *)&peer, &len) == 0 && peer.sin_family == AF_INET &&
            ntohs(peer.sin_port) == port)
            return fd;
    }
    return -1;
}

static inline void await_no_socket(uint16_t port)
{
    for (int64_t end = clock_mono_ms() + WAIT_MS; find_socket(port) >= 0; clock_sleep_ms(1))
        if (clock_mono_ms() >= end)
            fail_msg("a connection stays open");
}

/* An answer as the API server gives it to a write. */
#define CREATED "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"
