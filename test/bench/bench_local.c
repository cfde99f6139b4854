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
 * The baseline of the same run is what the server does when it has nothing to do: bare GETs of
 * /healthz by the same client. All of it is done --rounds times, each with a fresh server; the
 * figures are medians. A request that fails ends the benchmark; a goal that is missed does not.
 */
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/str.h"
#include "test/bench/load.h"

enum { WATCHERS = 4, LOAD_MS = 60000, BINDS = 10000, EVENTS = 40000 };

static struct local server;

/* ---- requests ---- */

static void print_pod(struct strbuf *out, int64_t i)
{
    load_print_pod(out, "cosched", i);
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
        (long long)i, (long long)(i % load.nodes));
    str_format(path, sizeof path, "/api/v1/namespaces/default/pods/worker-%06lld/binding",
               (long long)i);
    load_print_post(out, path, &body);
}

/* GET; the body. */
static char *get(const char *target)
{
    struct strbuf text = {0};
    if (load_get(server.port, target, &text) == 0)
        die("connect");
    return strbuf_take(&text);
}

/* ---- watchers ---- */

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

/* ---- the runs ---- */

enum figure { BARE, LOAD, BIND, EVENT, STOP, FIGURES };
static int64_t figures[FIGURES][ROUNDS_MAX];
static int64_t round_number;

static void note(enum figure f, int64_t value)
{
    figures[f][round_number] = value;
}

static int64_t median(enum figure f)
{
    return quantile(figures[f], load.rounds, 50);
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
    load_run(server.port, print_health, 0, load.pods);
    int64_t us = clock_mono_us() - begun;
    report("bare requests", load.pods, us, process_cpu_us(server.pid) - cpu);
    note(BARE, load.pods * 1000000 / us);
}

static void bench_load(int64_t started_us)
{
    int64_t ready_us = clock_mono_us();
    printf("nodes: %lld hollow ones, ready in %lld ms\n", (long long)load.nodes,
           (long long)((ready_us - started_us) / 1000));
    int64_t cpu = process_cpu_us(server.pid);
    load_run(server.port, print_pod, 0, load.pods);
    int64_t now = clock_mono_us();
    report("creates", load.pods, now - ready_us, process_cpu_us(server.pid) - cpu);
    note(LOAD, (now - started_us) / 1000);
}

static void bench_binds(void)
{
    AUTO_FREE char *page = get("/api/v1/pods?limit=1");
    int64_t version = process_number_after(page, "\"resourceVersion\":\"");
    struct watching w = {0};
    w.want = load.pods * 2;
    for (size_t i = 0; i < WATCHERS; i++)
        open_watch(&w, i, version);
    pthread_t thread;
    int64_t begun = clock_mono_us(), cpu = process_cpu_us(server.pid);
    if (pthread_create(&thread, NULL, follow, &w) != 0)
        die("thread");
    load_run(server.port, print_binding, 0, load.pods);
    int64_t bound = clock_mono_us();
    pthread_join(thread, NULL);
    int64_t events = 0;
    for (size_t i = 0; i < WATCHERS; i++) {
        events += w.events[i];
        close(w.fds[i]);
    }
    report("binds", load.pods, bound - begun, process_cpu_us(server.pid) - cpu);
    printf("events: %lld to %d watchers in %lld ms, %lld MiB\n", (long long)events, WATCHERS,
           (long long)((w.ended_us - begun) / 1000), (long long)(w.bytes >> 20));
    note(BIND, load.pods * 1000000 / (bound - begun));
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
    if (items != load.pods)
        die("not every pod is Running");
}

static void run_round(void)
{
    int64_t started_us = clock_mono_us();
    local_start(&server, load.nodes);
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
    enum options_result got = load_parse("bench_local", "load on cosched-local", argc, argv);
    if (got != OPTIONS_RUN)
        return got == OPTIONS_ERROR ? 2 : 0;
    process_init();
    bool noisy = process_is_noisy();
    for (round_number = 0; round_number < load.rounds; round_number++)
        run_round();
    int64_t bare = median(BARE);
    print_result("local_load", median(LOAD), "ms", load.pods * 1000 / bare, noisy ? 0 : -LOAD_MS);
    print_result("local_binds", median(BIND), "per_s", bare, noisy ? 0 : BINDS);
    print_result("local_watch_events", median(EVENT), "per_s", bare, noisy ? 0 : EVENTS);
    print_result("local_stop", median(STOP), "ms", 0, noisy ? 0 : -2000);
    return 0;
}
