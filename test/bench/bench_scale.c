// SPDX-License-Identifier: Apache-2.0
/*
 * bench_scale - the scheduler on a large cluster: 10,000 hollow nodes of cosched-local, 100,000 pods that are created over plain HTTP while it binds them.
 * Client, server and scheduler share the machine's cores.
 *
 *   create to bound   from the first request to create a pod until all are bound
 *   CPU of each pod   the scheduler's user and system time for that, by the pod: the figure that says what the scheduler itself costs
 *   memory            of the scheduler when all are bound, and its peak
 *   restart           from the start of the program until it has bound a pod that waited, with everything else in place; against this program listing
 *                     pods and nodes in pages of the same size and parsing each page (in turns, medians)
 *
 * The scheduler runs without a lease in all of this: a new leader would wait out the old one's lease, which is no work. On a machine that others use, figures of
 * time are printed and not judged; memory is.
 *
 * At the end all pods are listed: each must have a node. The client sends on 16 connections, one request at a time on each, without curl.
 *
 *     make bench-scale [ARGS='--nodes 1000 --pods 10000']       or COSCHED_NODES=1000 and so on
 */
#include <poll.h>

#include "lib/base/cleanup.h"
#include "lib/base/json.h"
#include "lib/base/options.h"
#include "lib/model/names.h"
#include "test/bench/local.h"

enum { CONNECTIONS = 16, PAGE = 5000, PODS_PER_S = 5000, CPU_US = 80, RSS_MIB = 250 };

static struct {
    int64_t nodes, pods, restarts;
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
                                         {.name = "restarts",
                                          .kind = OPTION_INT,
                                          .offset = 2 * sizeof(int64_t),
                                          .fallback = "3",
                                          .min = 1,
                                          .max = ROUNDS_MAX,
                                          .meta = "N",
                                          .help = "Restarts; the figure is the median."},
                                         {0}};

static struct local server;
static pid_t scheduler;
static uint16_t scheduler_port;
static bool noisy;

/* ---- HTTP ------------------------------------------------------------------------------------- */

/* 1 a piece, 0 the other side has closed. */
static bool receive(int fd, struct strbuf *in, size_t room, int flags)
{
    strbuf_reserve(in, room + JSON_PADDING);
    ssize_t n = recv(fd, in->ptr + in->len, room, flags);
    if (n <= 0)
        return false;
    in->len += (size_t)n;
    in->ptr[in->len] = '\0';
    return true;
}

/* GET on a connection of its own; the reply with its head, empty when nobody listens. */
static void get(uint16_t port, const char *target, struct strbuf *reply)
{
    AUTO_CLOSE int fd = local_try_dial(port);
    AUTO_STRBUF text = {0};
    strbuf_reset(reply);
    if (fd < 0)
        return;
    strbuf_addf(&text, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n\r\n",
                target);
    local_send(fd, &text);
    while (local_whole_reply(reply) == 0)
        if (!receive(fd, reply, 256 * 1024, 0))
            die("connection lost");
}

/* ---- pods ------------------------------------------------------------------------------------- */

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
        "\"spec\":{\"schedulerName\":\"" NAME_SCHEDULER "\",\"containers\":[{\"name\":\"main\","
        "\"image\":\"registry.example.org/team/train:v1.2.3\",\"command\":[\"python\",\"train.py\","
        "\"--epochs=90\",\"--batch-size=256\"],\"env\":[{\"name\":\"RANK\",\"value\":\"%lld\"},"
        "{\"name\":\"MASTER_ADDR\",\"value\":\"worker-0\"},{\"name\":\"MASTER_PORT\",\"value\":"
        "\"23456\"},{\"name\":\"NCCL_DEBUG\",\"value\":\"INFO\"}],\"resources\":{\"limits\":{\"cpu\":"
        "\"2\",\"memory\":\"4Gi\"},\"requests\":{\"cpu\":\"2\",\"memory\":\"4Gi\"}},"
        "\"volumeMounts\":[{\"name\":\"data\",\"mountPath\":\"/data\"}]}],\"volumes\":[{\"name\":"
        "\"data\",\"emptyDir\":{}}],\"restartPolicy\":\"Never\",\"tolerations\":[{\"key\":\"gpu\","
        "\"operator\":\"Exists\",\"effect\":\"NoSchedule\"}]}}",
        (long long)i, (long long)(i / 32), (long long)(i % 32));
    strbuf_addf(out,
                "POST /api/v1/namespaces/default/pods HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: "
                "bench\r\nAccept: application/json\r\nContent-Type: application/json\r\n"
                "Content-Length: %zu\r\n\r\n",
                body.len);
    strbuf_add(out, body.ptr, body.len);
}

struct connection {
    int fd;
    struct strbuf in;
    bool waiting;
};

static void send_pod(struct connection *c, int64_t i)
{
    static struct strbuf text;
    strbuf_reset(&text);
    print_pod(&text, i);
    local_send(c->fd, &text);
    c->waiting = true;
}

/* One reply more, or not yet. */
static bool take_reply(struct connection *c)
{
    if (!receive(c->fd, &c->in, 16384, MSG_DONTWAIT))
        die("connection lost");
    size_t whole = local_whole_reply(&c->in);
    if (whole == 0)
        return false;
    if (!str_starts(c->in.ptr, "HTTP/1.1 201"))
        die(c->in.ptr);
    strbuf_consume(&c->in, whole);
    c->waiting = false;
    return true;
}

/* Pods from..to-1; each reply must be 201. */
static void create_pods(int64_t from, int64_t to)
{
    struct connection all[CONNECTIONS] = {0};
    struct pollfd polls[CONNECTIONS];
    for (size_t i = 0; i < CONNECTIONS; i++)
        all[i].fd = local_dial(server.port);
    for (int64_t next = from, done = from; done < to;) {
        for (size_t i = 0; i < CONNECTIONS; i++) {
            if (!all[i].waiting && next < to)
                send_pod(&all[i], next++);
            polls[i] = (struct pollfd){.fd = all[i].fd, .events = POLLIN};
        }
        if (poll(polls, CONNECTIONS, 60000) <= 0)
            die("no reply within a minute");
        for (size_t i = 0; i < CONNECTIONS; i++)
            if (polls[i].revents)
                done += take_reply(&all[i]);
    }
    for (size_t i = 0; i < CONNECTIONS; i++) {
        close(all[i].fd);
        strbuf_deinit(&all[i].in);
    }
}

/* ---- the programs ----------------------------------------------------------------------------- */

static void start_scheduler(void)
{
    char program[512], file[600], port[64];
    scheduler_port = local_free_port();
    process_program(program, sizeof program, "bin/cosched-scheduler");
    str_format(file, sizeof file, "--kubeconfig=%s", server.kubeconfig);
    str_format(port, sizeof port, "--http-port=%u", (unsigned)scheduler_port);
    scheduler = process_start((const char *[]){program, file, port, "--http-address=127.0.0.1",
                                               "--no-leader-elect", "--log-level=warn", NULL},
                              -1, -1);
}

/* A number of our scheduler's /metrics. */
static int64_t metric(const char *line)
{
    AUTO_STRBUF reply = {0};
    get(scheduler_port, "/metrics", &reply);
    const char *at = strstr(strbuf_str(&reply), line);
    return at ? process_number_after(at, line) : 0;
}

static int64_t bound_by_us(void)
{
    return metric("\ncosched_scheduler_binds_total{outcome=\"bound\"}");
}

/* Until so many are bound; dies when nothing moves for a minute. */
static void wait_bound(int64_t want)
{
    int64_t last = -1, until_ms = 0;
    for (int64_t now = bound_by_us(); now < want; now = bound_by_us()) {
        if (now != last)
            until_ms = clock_mono_ms() + 60000;
        last = now;
        if (clock_mono_ms() > until_ms || !process_is_alive(scheduler)) {
            fprintf(stderr, "%lld of %lld are bound\n", (long long)now, (long long)want);
            die("the scheduler does not go on");
        }
        process_check();
        clock_sleep_ms(want - now > 1000 ? 20 : 2);
    }
}

/* ---- the runs --------------------------------------------------------------------------------- */

static void run_load(void)
{
    AUTO_STRBUF reply = {0};
    while (!str_starts(strbuf_str(&reply), "HTTP/1.1 200")) {
        clock_sleep_ms(10);
        process_check();
        get(scheduler_port, "/readyz", &reply);
    }
    int64_t cpu_us = process_cpu_us(scheduler), server_us = process_cpu_us(server.pid);
    int64_t began_us = clock_mono_us();
    create_pods(0, options.pods);
    int64_t created_us = clock_mono_us();
    wait_bound(options.pods);
    int64_t took_us = clock_mono_us() - began_us;
    cpu_us = process_cpu_us(scheduler) - cpu_us;
    server_us = process_cpu_us(server.pid) - server_us;
    int64_t rss = process_memory_mib(scheduler, "VmRSS:");
    printf("%lld nodes, %lld pods: created in %lld ms, all bound after %lld ms; scheduler CPU %lld "
           "ms, server CPU %lld ms; scheduler %lld MiB (peak %lld), server %lld MiB\n",
           (long long)options.nodes, (long long)options.pods,
           (long long)((created_us - began_us) / 1000), (long long)(took_us / 1000),
           (long long)(cpu_us / 1000), (long long)(server_us / 1000), (long long)rss,
           (long long)process_memory_mib(scheduler, "VmHWM:"),
           (long long)process_memory_mib(server.pid, "VmRSS:"));
    print_result("scale_bound", options.pods * 1000000 / took_us, "per_s", 0,
                 noisy ? 0 : PODS_PER_S);
    print_result("scale_cpu", cpu_us / options.pods, "us_per_pod", 0, noisy ? 0 : -CPU_US);
    print_result("scale_rss", rss, "MiB", 0, -RSS_MIB);
}

/* All pages of a collection, parsed; counts the strings `word` before that, so that the bytes are touched as in any check. */
static int64_t list_all(const char *resource, const char *word)
{
    AUTO_STRBUF reply = {0}, target = {0};
    struct error err = ERROR_INIT;
    int64_t found = 0;
    strbuf_addf(&target, "/api/v1/%s?limit=%d", resource, PAGE);
    for (bool more = true; more;) {
        get(server.port, target.ptr, &reply);
        char *body = strstr(reply.ptr, "\r\n\r\n") + 4;
        size_t n = reply.len - (size_t)(body - reply.ptr);
        for (const char *at = word ? body : NULL; at && (at = strstr(at, word)); at++)
            found++;
        AUTO_JSON *doc = NULL;
        if (json_parse_insitu(&doc, body, n, &err) < 0)
            die(err.text);
        const char *next = json_get_str(json_get(json_root(doc), "metadata"), "continue");
        more = str_or_empty(next)[0] != '\0';
        strbuf_reset(&target);
        strbuf_addf(&target, "/api/v1/%s?limit=%d&continue=%s", resource, PAGE, str_or_empty(next));
    }
    return found;
}

static void run_restarts(void)
{
    int64_t listing[ROUNDS_MAX], restart[ROUNDS_MAX];
    for (int64_t i = 0; i < options.restarts; i++) {
        process_stop(scheduler);
        create_pods(options.pods + i, options.pods + i + 1); /* it waits for the next one */
        int64_t began_us = clock_mono_us();
        list_all("nodes", NULL);
        list_all("pods", NULL);
        listing[i] = (clock_mono_us() - began_us) / 1000;
        began_us = clock_mono_us();
        start_scheduler();
        wait_bound(1);
        restart[i] = (clock_mono_us() - began_us) / 1000;
        printf("restart: first bind after %lld ms, bare list and parse %lld ms; scheduler %lld MiB "
               "(peak %lld)\n",
               (long long)restart[i], (long long)listing[i],
               (long long)process_memory_mib(scheduler, "VmRSS:"),
               (long long)process_memory_mib(scheduler, "VmHWM:"));
    }
    int64_t bare = quantile(listing, options.restarts, 50);
    print_result("scale_restart", quantile(restart, options.restarts, 50), "ms", bare,
                 noisy ? 0 : -2 * bare);
    process_stop(scheduler);
}

int main(int argc, char **argv)
{
    static const struct option_program program = {
        .name = "bench_scale", .summary = "a large cluster", .synopsis = "[OPTION]..."};
    const struct option_table tables[] = {{rows, &options}, {NULL, NULL}};
    struct error err = ERROR_INIT;
    enum options_result got = options_parse(&program, tables, argc, argv, NULL, &err);
    if (got != OPTIONS_RUN) {
        if (got == OPTIONS_ERROR)
            fprintf(stderr, "bench_scale: %s\n", err.text);
        return got == OPTIONS_ERROR ? 2 : 0;
    }
    process_init();
    noisy = process_is_noisy();
    local_start(&server, options.nodes);
    start_scheduler();
    run_load();
    run_restarts();
    int64_t placed = list_all("pods", "\"nodeName\":");
    if (placed != options.pods + options.restarts)
        die("not every pod has a node");
    process_stop(server.pid);
    process_end_all();
    return 0;
}
