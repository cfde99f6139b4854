// SPDX-License-Identifier: Apache-2.0
/*
 * bench_plugin - what the device plugin costs a node: memory, CPU when nothing happens, and how
 * long the kubelet waits for it.
 *
 * The plugin is the real program, with 8 cards of 80 GiB (640 ids), cosched-local as its API server
 * over TLS, the kubelet's twin of the unit tests, and twenty pods of which one waits for its ids.
 * The floor is an empty server of gRPC core (test/fake/grpc_empty): the same transport, the same
 * threads, replies of the same sizes to the same requests. The sequence is a kubelet's:
 * GetPreferredAllocation, then Allocate, on one connection; rounds of both servers alternate, and
 * the figures are medians of the rounds.
 *
 *   1. A minute in which the kubelet and the API server are connected and nothing happens: CPU of
 *      all threads, memory at its end. It begins after the plugin has released what only its start
 *      needed (lib/base/rss_trim).
 *   2. The rounds. Private memory after a tenth of them against that at their end shows growth.
 *      (The total also moves with code that comes back when it is used, such as the TLS library's
 *      when a watch brings a bookmark.)
 *   3. The kubelet restarts: from there to the list of all ids.
 *
 * Memory is what /proc/PID/smaps_rollup says: total is Rss; private is what no other process has
 * mapped, too. A library's code counts as private if no other process maps it; here the benchmark
 * itself uses the same libraries, so private is close to what the process has written.
 *
 *     make bench-plugin [ARGS='--allocates 1000 --rounds 1 --idle 5s']
 */
#include <dirent.h>

#include "device-plugin/kubelet/rpc.h"
#include "lib/base/rss_trim.h"
#include "device-plugin/kubelet/wire.h"
#include "lib/base/arena.h"
#include "lib/base/options.h"
#include "lib/kube/api.h"
#include "lib/kube/config.h"
#include "lib/kube/http.h"
#include "lib/model/names.h"
#include "test/bench/local.h"
#include "test/fake/kubelet/kubelet.h"
#include "test/local/nodes/kwire.h"

enum {
    CARDS = 8,
    GIB = 80,
    IDS = CARDS * GIB,
    PODS = 20,
    POD_GIB = 4,
    WARM = 500, /* calls before the first that counts */
    CALL_MS = 5000,
    SETTLE_MS = RSS_TRIM_FIRST_MS + 5000,
    RESTARTS = 5,
    GOAL_RSS_KIB = 12 * 1024,
    GOAL_MORE_KIB = 3 * 1024,
    GOAL_GROWTH_KIB = 256,
    GOAL_IDLE_US = 10000,
    GOAL_REGISTER_MS = 300,
};
#define NODE "bench-plugin"
#define UUID "GPU-8f1e0000-0000-0000-0000-00000000000"

static struct {
    int64_t allocates, rounds, idle_ms;
} options;

static const struct option_row rows[] = {{.name = "allocates",
                                          .kind = OPTION_INT,
                                          .offset = 0,
                                          .fallback = "100000",
                                          .min = 100,
                                          .max = 10000000,
                                          .meta = "N",
                                          .help = "Calls of Allocate, all rounds together."},
                                         {.name = "rounds",
                                          .kind = OPTION_INT,
                                          .offset = sizeof(int64_t),
                                          .fallback = "5",
                                          .min = 1,
                                          .max = ROUNDS_MAX,
                                          .meta = "N",
                                          .help = "Repeats; the figures are medians."},
                                         {.name = "idle",
                                          .kind = OPTION_DURATION,
                                          .offset = 2 * sizeof(int64_t),
                                          .fallback = "60s",
                                          .min = 1000,
                                          .max = 3600 * 1000,
                                          .meta = "DURATION",
                                          .help = "How long nothing happens."},
                                         {0}};

static char dir[] = "/tmp/cosched-bp-XXXXXX";

static void remove_dir(void)
{
    char command[128];
    str_format(command, sizeof command, "/bin/rm -rf %s", dir);
    if (system(command) != 0)
        fprintf(stderr, "bench: %s is left behind\n", dir);
}

/* ---- what /proc says ---- */

struct memory {
    int64_t total_kib, private_kib;
};

static struct memory memory_of(pid_t pid)
{
    AUTO_STRBUF text = {0};
    process_proc(pid, "smaps_rollup", &text);
    const char *t = strbuf_str(&text);
    return (struct memory){process_number_after(t, "\nRss:"),
                           process_number_after(t, "\nPrivate_Clean:") +
                               process_number_after(t, "\nPrivate_Dirty:")};
}

/* CPU of its threads. Finer than the ticks of process_cpu_us: a minute of idling is about one
 * tick. */
static int64_t cpu_us_of(pid_t pid)
{
    char path[64];
    int64_t ns = 0;
    str_format(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    if (d == NULL)
        die(path);
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        AUTO_STRBUF text = {0};
        AUTO_STRBUF name = {0};
        if (e->d_name[0] == '.')
            continue;
        strbuf_addf(&name, "task/%s/schedstat", e->d_name);
        process_proc(pid, strbuf_str(&name), &text);
        ns += process_number_after(strbuf_str(&text), NULL);
    }
    closedir(d);
    return ns / 1000;
}

/* ---- the cluster and the kubelet ---- */

static void create(struct kube_client *c, const struct kube_kind *kind, const char *ns,
                   const struct strbuf *body)
{
    struct error err = ERROR_INIT;
    if (kube_create(c, kind, ns, strbuf_str(body), body->len, NULL, &err) < 0)
        die(err.text);
}

static void make_objects(const struct local *l, struct kube_options *o)
{
    struct kube_config *config;
    struct kube_client *c;
    struct error err = ERROR_INIT;
    AUTO_STRBUF body = {0};
    o->kubeconfig = l->kubeconfig;
    if (kube_config_load(&config, o, &err) < 0 || kube_client_new(&c, config, o, "bench", &err) < 0)
        die(err.text);
    strbuf_adds(&body, "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"" NODE
                       "\",\"labels\":{\"" NAME_LABEL_GPU_MODE "\":\"share\"}}}");
    create(c, &kube_nodes, NULL, &body);
    for (int i = 0; i < PODS; i++) {
        strbuf_reset(&body);
        strbuf_addf(&body,
                    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p%d\","
                    "\"namespace\":\"default\",\"annotations\":{\"" NAME_ANN_ALLOCATION
                    "\":\"{\\\"0\\\":{\\\"%d\\\":%d}}\",\"" NAME_ANN_ASSIGNED
                    "\":\"false\"}},\"spec\":{\"nodeName\":\"" NODE
                    "\",\"containers\":[{\"name\":\"c0\",\"image\":\"i\",\"resources\":{"
                    "\"limits\":{\"" NAME_RES_GPU_MEM "\":\"%d\"}}}]}}",
                    i, i % CARDS, POD_GIB, POD_GIB);
        create(c, &kube_pods, "default", &body);
    }
    kube_client_free(c);
    kube_config_free(config);
}

static void write_cards(const char *path)
{
    FILE *f = fopen(path, "w");
    if (f == NULL)
        die(path);
    fprintf(f, "{\"cards\":[");
    for (int i = 0; i < CARDS; i++)
        fprintf(f,
                "%s{\"i\":%d,\"uuid\":\"" UUID "%d\",\"model\":\"A100\",\"mib\":%d,\"numa\":0,"
                "\"pci\":\"0000:3%d:00.0\",\"health\":\"ok\"}",
                i > 0 ? "," : "", i, i, GIB * 1024, i);
    fprintf(f, "]}\n");
    fclose(f);
}

/* All hold their ids but the last, which waits. */
static void list_pods(struct kubelet *k)
{
    static const char *const one[] = {"c0", NULL};
    static struct kubelet_ids held;
    for (int i = 0; i < PODS; i++) {
        char name[16];
        str_format(name, sizeof name, "p%d", i);
        kubelet_add_pod(k, "default", name, one);
        if (i == PODS - 1)
            break;
        held.len = POD_GIB;
        for (int n = 0; n < POD_GIB; n++)
            str_format(held.items[n], KUBELET_ID, UUID "%d-_-%d", i % CARDS,
                       i / CARDS * POD_GIB + n);
        kubelet_hold(k, "default", name, "c0", NAME_RES_GPU_MEM, &held);
    }
}

/* Milliseconds until the kubelet has the list of all ids. */
static int64_t wait_for_ids(struct kubelet *k, int64_t began_us)
{
    while (kubelet_devices(k, NAME_RES_GPU_MEM, NULL) != IDS) {
        process_check();
        if (clock_mono_us() - began_us > 30000000)
            die("the plugin does not register");
        clock_sleep_ms(1);
    }
    return (clock_mono_us() - began_us) / 1000;
}

static pid_t start_plugin(const struct local *l, const char *cards, int log)
{
    char program[512], kubeconfig[600], kubelet_dir[64], state[64], sim[128];
    process_program(program, sizeof program, "bin/cosched-device-plugin");
    str_format(kubeconfig, sizeof kubeconfig, "--kubeconfig=%s", l->kubeconfig);
    str_format(kubelet_dir, sizeof kubelet_dir, "--kubelet-dir=%s", dir);
    str_format(state, sizeof state, "--state-dir=%s/state", dir);
    str_format(sim, sizeof sim, "--sim-file=%s", cards);
    return process_start((const char *[]){program, "--node-name=" NODE, "--backend=sim", sim,
                                          kubeconfig, kubelet_dir, state,
                                          "--http-address=127.0.0.1", "--http-port=0", NULL},
                         log, log);
}

/* ---- calls ---- */

struct server {
    pid_t pid;
    struct rpc_channel *channel;
    int64_t preferred50[ROUNDS_MAX], preferred99[ROUNDS_MAX], allocate50[ROUNDS_MAX],
        allocate99[ROUNDS_MAX];
    struct memory idle, early, late;
    int64_t idle_us; /* CPU of a minute */
};

static struct rpc_channel *dial(const char *path)
{
    struct rpc_channel *c;
    struct error err = ERROR_INIT;
    if (rpc_channel_new(&c, path, &err) < 0)
        die(err.text);
    return c;
}

static int64_t call(struct rpc_channel *c, const char *method, const struct strbuf *request,
                    struct strbuf *reply)
{
    struct error err = ERROR_INIT;
    strbuf_reset(reply);
    int64_t began_us = clock_mono_us();
    if (rpc_channel_call(c, method, strbuf_str(request), request->len, CALL_MS, true, reply, &err) <
        0)
        die(err.text);
    return clock_mono_us() - began_us;
}

/* The two requests, made once: the ids that are free do not change, since the kubelet here gives
 * none away. */
struct requests {
    struct strbuf preferred, allocate;
    size_t preferred_reply, allocate_reply; /* bytes */
};

static void make_requests(struct kubelet *k, struct rpc_channel *c, struct requests *r)
{
    static struct kubelet_ids available;
    struct arena a;
    struct error err = ERROR_INIT;
    AUTO_STRBUF reply = {0};
    arena_init(&a, 0);
    kubelet_free_ids(k, NAME_RES_GPU_MEM, &available);
    struct kwire_ids ids = {arena_new(&a, const char *, available.len), available.len}, chosen;
    for (size_t i = 0; i < available.len; i++)
        ids.items[i] = available.items[i];
    kwire_encode_preferred(&ids, &(struct kwire_ids){0}, POD_GIB, &r->preferred);
    (void)call(c, WIRE_PREFERRED, &r->preferred, &reply);
    r->preferred_reply = reply.len;
    if (kwire_decode_preferred(strbuf_str(&reply), reply.len, &a, &chosen, &err) < 0)
        die(err.text);
    if (chosen.len != POD_GIB)
        die("GetPreferredAllocation did not choose");
    kwire_encode_allocate(&chosen, &r->allocate);
    (void)call(c, WIRE_ALLOCATE, &r->allocate, &reply);
    r->allocate_reply = reply.len;
    arena_deinit(&a);
}

/* early: after so many of this round's calls the memory is noted; 0: not in this round. */
static void run_round(struct server *s, const struct requests *r, int64_t number, int64_t n,
                      int64_t early)
{
    AUTO_STRBUF reply = {0};
    AUTO_FREE int64_t *preferred = calloc((size_t)n, sizeof *preferred);
    AUTO_FREE int64_t *allocate = calloc((size_t)n, sizeof *allocate);
    if (preferred == NULL || allocate == NULL)
        die("memory");
    for (int64_t i = -WARM; i < n; i++) {
        process_check();
        int64_t first = call(s->channel, WIRE_PREFERRED, &r->preferred, &reply);
        int64_t second = call(s->channel, WIRE_ALLOCATE, &r->allocate, &reply);
        if (reply.len != r->allocate_reply)
            die("an answer of another size");
        if (i < 0)
            continue;
        preferred[i] = first;
        allocate[i] = second;
        if (early > 0 && i == early)
            s->early = memory_of(s->pid);
    }
    s->preferred50[number] = quantile(preferred, n, 50);
    s->preferred99[number] = quantile(preferred, n, 99);
    s->allocate50[number] = quantile(allocate, n, 50);
    s->allocate99[number] = quantile(allocate, n, 99);
}

/* ---- the run ---- */

static void idle(struct server *floor, struct server *plugin)
{
    struct server *both[] = {floor, plugin};
    clock_sleep_ms(SETTLE_MS);
    for (int i = 0; i < 2; i++)
        both[i]->idle_us = -cpu_us_of(both[i]->pid);
    for (int64_t end_ms = clock_mono_ms() + options.idle_ms; clock_mono_ms() < end_ms;) {
        process_check();
        clock_sleep_ms(num_min(1000, end_ms - clock_mono_ms()));
    }
    for (int i = 0; i < 2; i++) {
        both[i]->idle_us += cpu_us_of(both[i]->pid);
        both[i]->idle_us = both[i]->idle_us * 60000 / options.idle_ms;
        both[i]->idle = memory_of(both[i]->pid);
    }
}

static int64_t restart_kubelet(struct kubelet *k)
{
    int64_t all[RESTARTS];
    for (int i = 0; i < RESTARTS; i++) {
        kubelet_stop(k);
        clock_sleep_ms(500); /* the plugin sees it go, and tries in vain */
        int64_t began_us = clock_mono_us();
        kubelet_start(k);
        all[i] = wait_for_ids(k, began_us);
    }
    printf("kubelet restarts: all %d ids again after %lld ms (median of %d; worst %lld ms)\n", IDS,
           (long long)quantile(all, RESTARTS, 50), RESTARTS,
           (long long)quantile(all, RESTARTS, 100));
    return quantile(all, RESTARTS, 100);
}

static void say(const char *name, struct server *s)
{
    int64_t n = options.rounds;
    printf(
        "%s: memory %lld KiB (private %lld) idle, %lld (%lld) after a tenth, %lld (%lld) after all; "
        "idle CPU %lld us a minute; GetPreferredAllocation p50 %lld us, p99 %lld us; Allocate p50 "
        "%lld us, p99 %lld us (%lld to %lld)\n",
        name, (long long)s->idle.total_kib, (long long)s->idle.private_kib,
        (long long)s->early.total_kib, (long long)s->early.private_kib,
        (long long)s->late.total_kib, (long long)s->late.private_kib, (long long)s->idle_us,
        (long long)quantile(s->preferred50, n, 50), (long long)quantile(s->preferred99, n, 50),
        (long long)quantile(s->allocate50, n, 50), (long long)quantile(s->allocate99, n, 50),
        (long long)quantile(s->allocate99, n, 0), (long long)quantile(s->allocate99, n, 100));
}

static void report(struct server *floor, struct server *plugin, int64_t register_ms, bool noisy)
{
    int64_t n = options.rounds;
    int64_t floor99 = quantile(floor->allocate99, n, 50);
    say("empty gRPC server", floor);
    say("device plugin", plugin);
    print_result("plugin_allocate_p50", quantile(plugin->allocate50, n, 50), "us",
                 quantile(floor->allocate50, n, 50), 0);
    print_result("plugin_allocate_p99", quantile(plugin->allocate99, n, 50), "us", floor99,
                 noisy ? 0 : -floor99 * 3 / 2);
    print_result("plugin_preferred_p99", quantile(plugin->preferred99, n, 50), "us",
                 quantile(floor->preferred99, n, 50), 0);
    print_result("plugin_rss_idle", plugin->idle.total_kib, "KiB", floor->idle.total_kib,
                 -GOAL_RSS_KIB);
    print_result("plugin_rss", plugin->late.total_kib, "KiB", floor->late.total_kib, -GOAL_RSS_KIB);
    print_result("plugin_private_rss", plugin->late.private_kib, "KiB", floor->late.private_kib,
                 -(floor->late.private_kib + GOAL_MORE_KIB));
    print_result("plugin_growth", plugin->late.private_kib - plugin->early.private_kib, "KiB",
                 floor->late.private_kib - floor->early.private_kib, -GOAL_GROWTH_KIB);
    print_result("plugin_idle_cpu", plugin->idle_us, "us_per_min", floor->idle_us, -GOAL_IDLE_US);
    print_result("plugin_register", register_ms, "ms", 0, noisy ? 0 : -GOAL_REGISTER_MS);
}

static pid_t start_empty(const char *socket, const struct requests *r)
{
    char program[512], preferred[24], allocate[24];
    process_program(program, sizeof program, "test/fake/grpc_empty");
    str_format(preferred, sizeof preferred, "%zu", r->preferred_reply);
    str_format(allocate, sizeof allocate, "%zu", r->allocate_reply);
    return process_start(
        (const char *[]){program, socket, WIRE_PREFERRED, preferred, WIRE_ALLOCATE, allocate, NULL},
        -1, -1);
}

static void run(struct kube_options *kube, bool noisy)
{
    struct local local;
    struct server floor = {0}, plugin = {0};
    struct requests r = {0};
    char empty[64], cards[64], socket[96], log_path[64];
    str_format(empty, sizeof empty, "%s/empty.sock", dir);
    str_format(cards, sizeof cards, "%s/cards.json", dir);
    str_format(log_path, sizeof log_path, "%s/plugin.log", dir);
    str_format(socket, sizeof socket, "%s/device-plugins/cosched-gpu-mem.sock", dir);
    write_cards(cards);
    int log = open(log_path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    local_start_as(&local, 0, true);
    make_objects(&local, kube);
    struct kubelet *k = kubelet_new(dir);
    kubelet_start(k);
    plugin.pid = start_plugin(&local, cards, log);
    printf("started: all %d ids after %lld ms\n", IDS, (long long)wait_for_ids(k, clock_mono_us()));
    list_pods(k);
    plugin.channel = dial(socket);
    make_requests(k, plugin.channel, &r);
    floor.pid = start_empty(empty, &r);
    floor.channel = dial(empty);
    idle(&floor, &plugin);
    int64_t each = options.allocates / options.rounds;
    for (int64_t i = 0; i < options.rounds; i++) {
        /* With a single round a tenth of it, with more a tenth of all. */
        int64_t early = i == 0 ? num_min(options.allocates / 10, each - 1) : 0;
        run_round(&floor, &r, i, each, early);
        run_round(&plugin, &r, i, each, early);
    }
    floor.late = memory_of(floor.pid);
    plugin.late = memory_of(plugin.pid);
    rpc_channel_free(plugin.channel);
    rpc_channel_free(floor.channel);
    report(&floor, &plugin, restart_kubelet(k), noisy);
    kubelet_free(k);
    process_stop(plugin.pid);
    process_stop(floor.pid);
    process_stop(local.pid);
    strbuf_deinit(&r.preferred), strbuf_deinit(&r.allocate);
    close(log);
}

int main(int argc, char **argv)
{
    static const struct option_program program = {
        .name = "bench_plugin", .summary = "cost of the device plugin", .synopsis = "[OPTION]..."};
    struct kube_options kube;
    const struct option_table tables[] = {
        {rows, &options}, {kube_option_rows, &kube}, {NULL, NULL}};
    struct error err = ERROR_INIT;
    enum options_result got = options_parse(&program, tables, argc, argv, NULL, &err);
    if (got != OPTIONS_RUN) {
        if (got == OPTIONS_ERROR)
            fprintf(stderr, "bench_plugin: %s\n", err.text);
        return got == OPTIONS_ERROR ? 2 : 0;
    }
    process_init();
    bool noisy = process_is_noisy();
    if (mkdtemp(dir) == NULL)
        die("mkdtemp");
    process_at_end = remove_dir;
    kube_http_global_init();
    rpc_init();
    run(&kube, noisy);
    rpc_shutdown();
    kube_http_global_cleanup();
    process_end_all();
    return 0;
}
