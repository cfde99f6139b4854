// SPDX-License-Identifier: Apache-2.0
/*
 * bench_local - how much cosched-local bears, as a scheduler benchmark would load it: 10,000 hollow
 * nodes, 100,000 pods created over HTTP, then all of them bound while four watchers follow every
 * change. Client and server share the machine; the client is one thread for requests (16
 * connections, one request at a time on each) and one for the four watchers.
 *
 * Each bind is two changes: the binding, and the hollow node that makes the pod Running. So each
 * watcher is to get two events per pod, and at the end all have been counted: nothing may be lost.
 *
 * The baseline of the same run is what the server does when it has nothing to do: bare GETs of /healthz by the same client. All of it is done --rounds
 * times, each with a fresh server; the figures are medians. A request that fails ends the benchmark; a goal that is missed does not.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/options.h"
#include "lib/base/str.h"
#include "test/bench/local.h"

enum { CONNECTIONS = 16, WATCHERS = 4, LOAD_MS = 60000, BINDS = 10000, EVENTS = 40000 };

static struct {
    int64_t nodes, pods, rounds;
} options;

static const struct option_row rows[] = {{.name = "nodes",
                                          .kind = OPTION_INT,
                                          .offset = 0,
                                          .fallback = "10000",
                                          .min = 1,
                                          .max = 100000,
                                          .meta = "N",
                                          .help = "Hollow nodes."},
                                         {.name = "pods",
                                          .kind = OPTION_INT,
                                          .offset = sizeof(int64_t),
                                          .fallback = "100000",
                                          .min = 1,
                                          .max = 1000000,
                                          .meta = "N",
                                          .help = "Pods."},
                                         {.name = "rounds",
                                          .kind = OPTION_INT,
                                          .offset = 2 * sizeof(int64_t),
                                          .fallback = "3",
                                          .min = 1,
                                          .max = 9,
                                          .meta = "N",
                                          .help = "Repeats; the figures are medians."},
                                         {0}};

static struct local server;

/* ---- requests --------------------------------------------------------------------------------- */

struct connection {
    int fd;
    struct strbuf in;
    bool waiting;
};

typedef void (*print_request)(struct strbuf *out, int64_t i);

static void send_next(struct connection *c, print_request print, int64_t i, struct strbuf *text)
{
    strbuf_reset(text);
    print(text, i);
    local_send(c->fd, text);
    c->waiting = true;
}

/* Sends requests 0..count-1 and takes their replies; each must be 200 or 201. */
static void run_requests(print_request print, int64_t count)
{
    struct connection all[CONNECTIONS] = {0};
    struct pollfd polls[CONNECTIONS];
    struct strbuf text = {0};
    int64_t next = 0, done = 0;
    for (size_t i = 0; i < CONNECTIONS; i++)
        all[i].fd = local_dial(server.port);
    while (done < count) {
        for (size_t i = 0; i < CONNECTIONS; i++) {
            if (!all[i].waiting && next < count)
                send_next(&all[i], print, next++, &text);
            polls[i] = (struct pollfd){.fd = all[i].fd, .events = POLLIN};
        }
        if (poll(polls, CONNECTIONS, 60000) <= 0)
            die("no reply within a minute");
        for (size_t i = 0; i < CONNECTIONS; i++) {
            struct connection *c = &all[i];
            if (!(polls[i].revents & (POLLIN | POLLERR | POLLHUP)))
                continue;
            strbuf_reserve(&c->in, 16384);
            ssize_t n = recv(c->fd, c->in.ptr + c->in.len, 16384, MSG_DONTWAIT);
            if (n <= 0)
                die("connection lost");
            c->in.len += (size_t)n;
            c->in.ptr[c->in.len] = '\0';
            size_t whole = local_whole_reply(&c->in);
            if (whole == 0)
                continue;
            if (!str_starts(c->in.ptr, "HTTP/1.1 20"))
                die(c->in.ptr);
            strbuf_consume(&c->in, whole);
            c->waiting = false;
            done++;
        }
    }
    for (size_t i = 0; i < CONNECTIONS; i++) {
        close(all[i].fd);
        strbuf_deinit(&all[i].in);
    }
    strbuf_deinit(&text);
}

static void print_post(struct strbuf *out, const char *path, const struct strbuf *body)
{
    strbuf_addf(out,
                "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nAccept: "
                "application/json\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                path, body->len);
    strbuf_add(out, body->ptr, body->len);
}

static void print_pod(struct strbuf *out, int64_t i)
{
    static struct strbuf body;
    strbuf_reset(&body);
    strbuf_addf(
        &body,
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"worker-%06lld\","
        "\"namespace\":\"default\",\"labels\":{\"app\":\"train\",\"job\":\"job-%lld\",\"role\":"
        "\"worker\",\"team\":\"vision\"},\"annotations\":{\"example.org/owner\":\"someone@example.org"
        "\",\"example.org/purpose\":\"a pod of a size that is usual for a training job\"}},"
        "\"spec\":{\"schedulerName\":\"cosched\",\"containers\":[{\"name\":\"main\",\"image\":"
        "\"registry.example.org/team/train:v1.2.3\",\"command\":[\"python\",\"train.py\","
        "\"--epochs=90\",\"--batch-size=256\"],\"env\":[{\"name\":\"RANK\",\"value\":\"%lld\"},"
        "{\"name\":\"MASTER_ADDR\",\"value\":\"worker-0\"},{\"name\":\"MASTER_PORT\",\"value\":"
        "\"23456\"},{\"name\":\"NCCL_DEBUG\",\"value\":\"INFO\"}],\"resources\":{\"limits\":{\"cpu\":"
        "\"2\",\"memory\":\"4Gi\"},\"requests\":{\"cpu\":\"2\",\"memory\":\"4Gi\"}},"
        "\"volumeMounts\":[{\"name\":\"data\",\"mountPath\":\"/data\"}]}],\"volumes\":[{\"name\":"
        "\"data\",\"emptyDir\":{}}],\"restartPolicy\":\"Never\",\"tolerations\":[{\"key\":\"gpu\","
        "\"operator\":\"Exists\",\"effect\":\"NoSchedule\"}]}}",
        (long long)i, (long long)(i / 32), (long long)(i % 32));
    print_post(out, "/api/v1/namespaces/default/pods", &body);
}

static void print_binding(struct strbuf *out, int64_t i)
{
    static struct strbuf body;
    char path[128];
    strbuf_reset(&body);
    strbuf_addf(
        &body,
        "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"worker-%06lld\","
        "\"namespace\":\"default\",\"annotations\":{\"cosched.io/claim\":\"{\\\"v\\\":1}\"}},"
        "\"target\":{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":\"hollow-%05lld\"}}",
        (long long)i, (long long)(i % options.nodes));
    str_format(path, sizeof path, "/api/v1/namespaces/default/pods/worker-%06lld/binding",
               (long long)i);
    print_post(out, path, &body);
}

/* GET; the body. */
static char *get(const char *target)
{
    AUTO_CLOSE int fd = local_dial(server.port);
    struct strbuf text = {0};
    strbuf_addf(&text, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n\r\n",
                target);
    local_send(fd, &text);
    strbuf_reset(&text);
    while (local_whole_reply(&text) == 0) {
        strbuf_reserve(&text, 65536);
        ssize_t n = recv(fd, text.ptr + text.len, 65536, 0);
        if (n <= 0)
            die("connection lost");
        text.len += (size_t)n;
        text.ptr[text.len] = '\0';
    }
    strbuf_consume(&text, (size_t)(strstr(text.ptr, "\r\n\r\n") + 4 - text.ptr));
    return strbuf_take(&text);
}

/* ---- watchers --------------------------------------------------------------------------------- */

struct watching {
    int fds[WATCHERS];
    int64_t want; /* events for each */
    int64_t events[WATCHERS];
    _Atomic int64_t bytes;
    int64_t ended_us;
};

static void open_watch(struct watching *w, size_t i, int64_t version)
{
    w->fds[i] = local_dial(server.port);
    struct strbuf text = {0};
    strbuf_addf(&text,
                "GET /api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion=%lld "
                "HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n\r\n",
                (long long)version);
    local_send(w->fds[i], &text);
    /* The head of the reply, byte by byte: the watch is there before the first bind. */
    for (strbuf_reset(&text); !str_ends(strbuf_str(&text), "\r\n\r\n");) {
        char c;
        if (recv(w->fds[i], &c, 1, 0) != 1)
            die("watch");
        strbuf_addc(&text, c);
    }
    if (!str_starts(text.ptr, "HTTP/1.1 200"))
        die(text.ptr);
    strbuf_deinit(&text);
}

/* An event is a line; chunk sizes end in CRLF, lines of JSON in '}' LF. */
static int64_t count_events(const char *bytes, size_t n, char *last)
{
    int64_t count = 0;
    for (const char *at = bytes, *end = bytes + n; (at = memchr(at, '\n', (size_t)(end - at)));
         at++)
        count += (at > bytes ? at[-1] : *last) == '}';
    *last = bytes[n - 1];
    return count;
}

static void *follow(void *arg)
{
    struct watching *w = arg;
    static char buf[256 * 1024];
    char last[WATCHERS] = {0};
    struct pollfd polls[WATCHERS];
    for (bool all = false; !all;) {
        for (size_t i = 0; i < WATCHERS; i++)
            polls[i] = (struct pollfd){.fd = w->fds[i], .events = POLLIN};
        if (poll(polls, WATCHERS, 60000) <= 0)
            die("no event within a minute");
        all = true;
        for (size_t i = 0; i < WATCHERS; i++) {
            if (polls[i].revents) {
                ssize_t n = recv(w->fds[i], buf, sizeof buf, MSG_DONTWAIT);
                if (n <= 0)
                    die("a watch ended");
                w->events[i] += count_events(buf, (size_t)n, &last[i]);
                atomic_fetch_add(&w->bytes, n);
            }
            all &= w->events[i] >= w->want;
        }
    }
    w->ended_us = clock_mono_us();
    return NULL;
}

/* ---- the runs --------------------------------------------------------------------------------- */

enum figure { BARE, LOAD, BIND, EVENT, STOP, FIGURES };
static int64_t figures[FIGURES][ROUNDS_MAX];
static int64_t round_number;

static void note(enum figure f, int64_t value)
{
    figures[f][round_number] = value;
}

static int64_t median(enum figure f)
{
    return quantile(figures[f], options.rounds, 50);
}

static void report(const char *what, int64_t requests, int64_t us, int64_t cpu)
{
    printf("%s: %lld in %lld ms, %lld/s, server CPU %lld us each, resident %lld MiB (peak %lld)\n",
           what, (long long)requests, (long long)(us / 1000), (long long)(requests * 1000000 / us),
           (long long)(cpu / requests), (long long)process_memory_mib(server.pid, "VmRSS:"),
           (long long)process_memory_mib(server.pid, "VmHWM:"));
}

static void print_health(struct strbuf *out, int64_t i)
{
    (void)i;
    strbuf_adds(out, "GET /healthz HTTP/1.1\r\nHost: local\r\n\r\n");
}

static void bench_bare(void)
{
    int64_t begun = clock_mono_us(), cpu = process_cpu_us(server.pid);
    run_requests(print_health, options.pods);
    int64_t us = clock_mono_us() - begun;
    report("bare requests", options.pods, us, process_cpu_us(server.pid) - cpu);
    note(BARE, options.pods * 1000000 / us);
}

static void bench_load(int64_t started_us)
{
    int64_t ready_us = clock_mono_us();
    printf("nodes: %lld hollow ones, ready in %lld ms\n", (long long)options.nodes,
           (long long)((ready_us - started_us) / 1000));
    int64_t cpu = process_cpu_us(server.pid);
    run_requests(print_pod, options.pods);
    int64_t now = clock_mono_us();
    report("creates", options.pods, now - ready_us, process_cpu_us(server.pid) - cpu);
    note(LOAD, (now - started_us) / 1000);
}

static void bench_binds(void)
{
    AUTO_FREE char *page = get("/api/v1/pods?limit=1");
    int64_t version = process_number_after(page, "\"resourceVersion\":\"");
    struct watching w = {0};
    w.want = options.pods * 2;
    for (size_t i = 0; i < WATCHERS; i++)
        open_watch(&w, i, version);
    pthread_t thread;
    int64_t begun = clock_mono_us(), cpu = process_cpu_us(server.pid);
    if (pthread_create(&thread, NULL, follow, &w) != 0)
        die("thread");
    run_requests(print_binding, options.pods);
    int64_t bound = clock_mono_us();
    pthread_join(thread, NULL);
    int64_t events = 0;
    for (size_t i = 0; i < WATCHERS; i++) {
        events += w.events[i];
        close(w.fds[i]);
    }
    report("binds", options.pods, bound - begun, process_cpu_us(server.pid) - cpu);
    printf("events: %lld to %d watchers in %lld ms, %lld MiB\n", (long long)events, WATCHERS,
           (long long)((w.ended_us - begun) / 1000), (long long)(w.bytes >> 20));
    note(BIND, options.pods * 1000000 / (bound - begun));
    note(EVENT, events * 1000000 / (w.ended_us - begun));
}

static void bench_list(void)
{
    int64_t begun = clock_mono_us(), cpu = process_cpu_us(server.pid), pages = 0, items = 0;
    struct strbuf target = {0};
    strbuf_adds(&target, "/api/v1/pods?limit=5000");
    for (bool more = true; more; pages++) {
        AUTO_FREE char *page = get(target.ptr);
        for (const char *at = page; (at = strstr(at, "\"phase\":\"Running\"")); at++)
            items++;
        const char *next = strstr(page, "\"continue\":\"");
        next = next ? next + strlen("\"continue\":\"") : "";
        more = *next && *next != '"';
        strbuf_reset(&target);
        strbuf_addf(&target, "/api/v1/pods?limit=5000&continue=%.*s", (int)strcspn(next, "\""),
                    next);
    }
    strbuf_deinit(&target);
    report("lists, pages of 5000", pages, clock_mono_us() - begun,
           process_cpu_us(server.pid) - cpu);
    if (items != options.pods)
        die("not every pod is Running");
}

static void run_round(void)
{
    int64_t started_us = clock_mono_us();
    local_start(&server, options.nodes);
    bench_load(started_us);
    bench_binds();
    bench_list();
    bench_bare();
    int64_t begun = clock_mono_us();
    process_stop(server.pid);
    note(STOP, (clock_mono_us() - begun) / 1000);
    unlink(server.kubeconfig);
    *strrchr(server.kubeconfig, '/') = '\0';
    rmdir(server.kubeconfig);
}

int main(int argc, char **argv)
{
    static const struct option_program program = {
        .name = "bench_local", .summary = "load on cosched-local", .synopsis = "[OPTION]..."};
    const struct option_table tables[] = {{rows, &options}, {NULL, NULL}};
    struct error err = ERROR_INIT;
    enum options_result got = options_parse(&program, tables, argc, argv, NULL, &err);
    if (got != OPTIONS_RUN) {
        if (got == OPTIONS_ERROR)
            fprintf(stderr, "bench_local: %s\n", err.text);
        return got == OPTIONS_ERROR ? 2 : 0;
    }
    process_init();
    bool noisy = process_is_noisy();
    for (round_number = 0; round_number < options.rounds; round_number++)
        run_round();
    int64_t bare = median(BARE);
    print_result("local_load", median(LOAD), "ms", options.pods * 1000 / bare,
                 noisy ? 0 : -LOAD_MS);
    print_result("local_binds", median(BIND), "per_s", bare, noisy ? 0 : BINDS);
    print_result("local_watch_events", median(EVENT), "per_s", bare, noisy ? 0 : EVENTS);
    print_result("local_stop", median(STOP), "ms", 0, noisy ? 0 : -2000);
    return 0;
}
