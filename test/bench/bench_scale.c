// SPDX-License-Identifier: Apache-2.0
/*
 * bench_scale - the scheduler on a large cluster: 10,000 hollow nodes of cosched-local, 100,000
 * pods that are created over plain HTTP while it binds them. Client, server and scheduler share the
 * machine's cores.
 *
 *   create to bound   from the first request to create a pod until all are bound
 *   CPU of each pod   the scheduler's user and system time for that, by the pod: the figure that
 *                     says what the scheduler itself costs
 *   memory            of the scheduler when all are bound, and its peak
 *   restart           from the start of the program until it has bound a pod that waited, with
 *                     everything else in place; against this program listing pods and nodes in
 *                     pages of the same size and parsing each page (in turns, medians)
 *
 * The scheduler runs without a lease in all of this: a new leader would wait out the old one's
 * lease, which is no work. On a machine that others use, figures of time are printed and not
 * judged; memory is.
 *
 * At the end all pods are listed: each must have a node. --rounds is the number of restarts.
 *
 *     make bench-scale [ARGS='--nodes 1000 --pods 10000']       or COSCHED_NODES=1000 and so on
 */
#include "lib/base/cleanup.h"
#include "lib/base/json.h"
#include "lib/model/names.h"
#include "test/bench/load.h"

enum { PAGE = 5000, PODS_PER_S = 5000, CPU_US = 80, RSS_MIB = 250 };

static struct local server;
static pid_t scheduler;
static uint16_t scheduler_port;
static bool noisy;

static void print_pod(struct strbuf *out, int64_t i)
{
    load_print_pod(out, NAME_SCHEDULER, i);
}

/* ---- the programs ---- */

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
    (void)load_get(scheduler_port, "/metrics", &reply);
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

/* ---- the runs ---- */

static void run_load(void)
{
    AUTO_STRBUF reply = {0};
    while (load_get(scheduler_port, "/readyz", &reply) != 200) {
        clock_sleep_ms(10);
        process_check();
    }
    int64_t cpu_us = process_cpu_us(scheduler), server_us = process_cpu_us(server.pid);
    int64_t began_us = clock_mono_us();
    load_run(server.port, print_pod, 0, load.pods);
    int64_t created_us = clock_mono_us();
    wait_bound(load.pods);
    int64_t took_us = clock_mono_us() - began_us;
    cpu_us = process_cpu_us(scheduler) - cpu_us;
    server_us = process_cpu_us(server.pid) - server_us;
    int64_t rss = process_memory_mib(scheduler, "VmRSS:");
    printf("%lld nodes, %lld pods: created in %lld ms, all bound after %lld ms; scheduler CPU %lld "
           "ms, server CPU %lld ms; scheduler %lld MiB (peak %lld), server %lld MiB\n",
           (long long)load.nodes, (long long)load.pods, (long long)((created_us - began_us) / 1000),
           (long long)(took_us / 1000), (long long)(cpu_us / 1000), (long long)(server_us / 1000),
           (long long)rss, (long long)process_memory_mib(scheduler, "VmHWM:"),
           (long long)process_memory_mib(server.pid, "VmRSS:"));
    print_result("scale_bound", load.pods * 1000000 / took_us, "per_s", 0, noisy ? 0 : PODS_PER_S);
    print_result("scale_cpu", cpu_us / load.pods, "us_per_pod", 0, noisy ? 0 : -CPU_US);
    print_result("scale_rss", rss, "MiB", 0, -RSS_MIB);
}

/* All pages of a collection, parsed; counts the strings `word` before that, so that the bytes are
 * touched as in any check. */
static int64_t list_all(const char *resource, const char *word)
{
    AUTO_STRBUF reply = {0}, target = {0};
    struct error err = ERROR_INIT;
    int64_t found = 0;
    strbuf_addf(&target, "/api/v1/%s?limit=%d", resource, PAGE);
    for (bool more = true; more;) {
        (void)load_get(server.port, target.ptr, &reply);
        for (const char *at = word ? strbuf_str(&reply) : NULL; at && (at = strstr(at, word)); at++)
            found++;
        AUTO_JSON *doc = NULL;
        if (json_parse_insitu(&doc, reply.ptr, reply.len, &err) < 0)
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
    for (int64_t i = 0; i < load.rounds; i++) {
        process_stop(scheduler);
        load_run(server.port, print_pod, load.pods + i,
                 load.pods + i + 1); /* it waits for the next one */
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
    int64_t bare = quantile(listing, load.rounds, 50);
    print_result("scale_restart", quantile(restart, load.rounds, 50), "ms", bare,
                 noisy ? 0 : -2 * bare);
    process_stop(scheduler);
}

int main(int argc, char **argv)
{
    enum options_result got = load_parse("bench_scale", "a large cluster", argc, argv);
    if (got != OPTIONS_RUN)
        return got == OPTIONS_ERROR ? 2 : 0;
    process_init();
    noisy = process_is_noisy();
    local_start(&server, load.nodes);
    start_scheduler();
    run_load();
    run_restarts();
    int64_t placed = list_all("pods", "\"nodeName\":");
    if (placed != load.pods + load.rounds)
        die("not every pod has a node");
    process_stop(server.pid);
    process_end_all();
    return 0;
}
