// SPDX-License-Identifier: Apache-2.0
/*
 * bench_bind - how fast pods are bound on a real API server, which takes a few hundred binds a second on two cores: how much of that is left?
 *
 * 1,000 nodes that are only API objects; 5,000 pods that wait; then one of three programs starts, in turns, all rounds in one run on one cluster:
 *
 *     poster   binds each pod to the next node without a thought: this program again, with the scheduler's own watch on pods, connections and
 *              number of workers. What it reaches is what the API server can do.
 *     kube     kube-scheduler v1.36, its limits on requests lifted
 *     ours     cosched-scheduler with its default options
 *
 * The rate is from the first to the last bind that a watch of ours shows, so how long a program takes to start does not count. A round before the
 * first warms the API server up. Then, idle, single pods for each of the three in turns: from the event that shows the pod to the one that shows its node.
 *
 *     make bench-bind [ARGS='--nodes 100 --pods 500 --rounds 1 --singles 20']       or COSCHED_NODES=100 and so on
 */
#include <pthread.h>

#include "lib/base/arena.h"
#include "lib/base/cleanup.h"
#include "lib/base/loop.h"
#include "lib/base/map.h"
#include "lib/base/options.h"
#include "lib/kube/api.h"
#include "lib/kube/decode.h"
#include "lib/kube/reflector.h"
#include "lib/model/names.h"
#include "scheduler/binder.h"
#include "test/bench/process.h"

enum { WORKERS = 8 /* --bind-workers' default */, NOISE_PERCENT = 115 };
enum { POSTER, KUBE, OURS, KINDS };
static const char *const kind_names[KINDS] = {"poster", "kube", "ours"};
static const char *const schedulers[KINDS] = {"bench-poster", "bench-kube", NAME_SCHEDULER};

static struct {
    int64_t nodes, pods, rounds, singles;
    const char *poster; /* a kubeconfig: be the poster */
} options;

#define ROW(n, field, text, least, most, what)                                           \
    {                                                                                    \
        .name = n, .kind = OPTION_INT,                                                   \
        .offset = (size_t)((char *)&options.field - (char *)&options), .fallback = text, \
        .min = least, .max = most, .meta = "N", .help = what                             \
    }

static struct kube_options kube_options;
static struct kube_config *config;
static const char *self;

/* ---- the poster ------------------------------------------------------------------------------- */

struct poster {
    struct mailbox *pods, *results;
    struct binder *binder;
    struct map posted; /* by uid */
    struct arena uids;
    int64_t next;
};

static void poster_take(struct poster *p, const struct pod *pod)
{
    if (!str_eq(pod->scheduler, schedulers[POSTER]) || str_or_empty(pod->node)[0] ||
        map_get(&p->posted, pod->uid) != NULL)
        return;
    char node[64];
    map_put(&p->posted, arena_strdup(&p->uids, pod->uid), p);
    str_format(node, sizeof node, "node-%lld", (long long)(p->next++ % options.nodes + 1));
    struct kube_binding b = {.ns = pod->ns, .pod = pod->name, .uid = pod->uid, .node = node};
    binder_submit(p->binder, &b, (uint64_t)p->next);
}

static void poster_letter(void *arg, void *msg)
{
    struct reflector_letter *letter = msg;
    for (size_t i = 0; letter->event != REFLECTOR_DELETE && i < letter->len; i++)
        poster_take(arg, letter->objects[i]);
    reflector_letter_free(letter);
}

static void poster_result(void *arg, void *msg)
{
    (void)arg;
    binder_result_free(msg);
}

static bool poster_post(void *arg, struct reflector_letter *letter)
{
    struct poster *p = arg;
    return mailbox_post(p->pods, letter);
}

static int decode_a_pod(json *j, void **out, struct error *err)
{
    struct pod *pod = NULL;
    int rc = decode_pod(j, &pod, err);
    *out = pod;
    return rc;
}

static void free_a_pod(void *pod)
{
    pod_free(pod);
}

static void watch_pods(struct reflector **out, bool (*deliver)(void *, struct reflector_letter *),
                       void *arg)
{
    struct error err = ERROR_INIT;
    /* As the scheduler's intake does. */
    struct reflector_config c = {.kind = &kube_pods,
                                 .field_selector = "status.phase!=Failed",
                                 .type = {.decode = decode_a_pod, .free = free_a_pod},
                                 .deliver = deliver,
                                 .arg = arg,
                                 .from_etcd = true};
    if (reflector_start(out, config, &kube_options, &c, &err) < 0)
        die(err.text);
}

static void stop_loop(void *arg, int signo)
{
    (void)signo;
    loop_stop(arg);
}

static int be_poster(void)
{
    struct error err = ERROR_INIT;
    struct loop *loop = NULL;
    struct poster p = {0};
    struct reflector *reflector = NULL;
    map_init(&p.posted);
    arena_init(&p.uids, 65536);
    loop_block_signals();
    if (loop_new(&loop, &err) < 0 ||
        mailbox_new(&p.pods, loop, 4096, poster_letter, reflector_letter_free, &p, &err) < 0 ||
        mailbox_new(&p.results, loop, 4096, poster_result, binder_result_free, &p, &err) < 0 ||
        loop_on_signal(loop, SIGTERM, stop_loop, loop, &err) < 0)
        die(err.text);
    struct binder_config c = {.threads = WORKERS, .results = p.results};
    if (binder_start(&p.binder, config, &kube_options, &c, &err) < 0)
        die(err.text);
    watch_pods(&reflector, poster_post, &p);
    loop_run(loop);
    mailbox_close(p.pods);
    mailbox_close(p.results);
    reflector_stop(reflector);
    binder_stop(p.binder);
    mailbox_free(p.pods);
    mailbox_free(p.results);
    loop_free(loop);
    map_deinit(&p.posted);
    arena_deinit(&p.uids);
    return 0;
}

/* ---- the observer ----------------------------------------------------------------------------- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct map seen; /* the bound ones, by uid */
    struct arena uids;
    bool listed;
    int64_t bound, first_us, last_us;
    char single[64]; /* this pod's times are wanted */
    int64_t single_seen_us, single_bound_us;
} watched = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void note_pod(const struct pod *pod, int64_t now_us)
{
    bool bound = str_or_empty(pod->node)[0] != '\0';
    if (str_eq(pod->name, watched.single)) {
        if (watched.single_seen_us == 0)
            watched.single_seen_us = now_us;
        if (bound && watched.single_bound_us == 0)
            watched.single_bound_us = now_us;
    }
    if (!bound || map_get(&watched.seen, pod->uid) != NULL)
        return;
    map_put(&watched.seen, arena_strdup(&watched.uids, pod->uid), &watched);
    if (watched.bound++ == 0)
        watched.first_us = now_us;
    watched.last_us = now_us;
}

static bool observe(void *arg, struct reflector_letter *letter)
{
    (void)arg;
    int64_t now_us = clock_mono_us();
    pthread_mutex_lock(&watched.lock);
    watched.listed |= letter->event == REFLECTOR_RESET;
    for (size_t i = 0; letter->event != REFLECTOR_DELETE && i < letter->len; i++)
        note_pod(letter->objects[i], now_us);
    pthread_cond_broadcast(&watched.changed);
    pthread_mutex_unlock(&watched.lock);
    reflector_letter_free(letter);
    return true;
}

static void forget_binds(void)
{
    pthread_mutex_lock(&watched.lock);
    watched.bound = watched.first_us = watched.last_us = 0;
    map_deinit(&watched.seen);
    map_init(&watched.seen);
    arena_reset(&watched.uids);
    pthread_mutex_unlock(&watched.lock);
}

static char cluster[64];
static char kubeconfig[512];
static int log_fd = -1;
static char log_path[512];
enum { HTTP_PORT_OFFSET = 7 }; /* free for tests in the cluster's block */
static int64_t port_base;

/* Our scheduler's own words, the lines with this word in them; nothing when it does not run. */
static void show_metrics(const char *word)
{
    char url[128];
    AUTO_STRBUF text = {0};
    str_format(url, sizeof url, "http://127.0.0.1:%lld/metrics",
               (long long)(port_base + HTTP_PORT_OFFSET));
    process_run((const char *[]){"/bin/sh", "-c",
                                 "curl -s --max-time 5 --noproxy '*' \"$0\" || true", url, NULL},
                &text);
    char *save = NULL;
    for (char *line = text.ptr ? strtok_r(text.ptr, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save))
        if (line[0] != '#' && strstr(line, word) && !strstr(line, "_bucket"))
            printf("  %s\n", line);
}

/* Until *value reaches what is wanted; a minute at most for as long as it does not move. */
static void wait_for(const int64_t *value, int64_t want, const char *what)
{
    int64_t last = -1, until_ms = 0;
    pthread_mutex_lock(&watched.lock);
    while (*value < want) {
        if (*value != last)
            until_ms = clock_mono_ms() + 60000;
        last = *value;
        struct timespec at;
        clock_gettime(CLOCK_REALTIME, &at);
        at.tv_sec += 1;
        pthread_cond_timedwait(&watched.changed, &watched.lock, &at);
        if (process_interrupted || clock_mono_ms() > until_ms) {
            pthread_mutex_unlock(&watched.lock);
            fprintf(stderr, "%s: %lld of %lld; logs: %s\n", what, (long long)*value,
                    (long long)want, log_path);
            show_metrics("");
            die("no progress in a minute");
        }
    }
    pthread_mutex_unlock(&watched.lock);
}

/* ---- pods and events -------------------------------------------------------------------------- */

static void print_pod(struct strbuf *out, const char *name, const char *scheduler)
{
    strbuf_addf(
        out,
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"%s\",\"labels\":{\"app\":"
        "\"bench\"}},\"spec\":{\"schedulerName\":\"%s\",\"terminationGracePeriodSeconds\":0,"
        "\"automountServiceAccountToken\":false,\"containers\":[{\"name\":\"main\",\"image\":"
        "\"registry.example.org/bench:v1\",\"resources\":{\"requests\":{\"cpu\":\"100m\","
        "\"memory\":\"128Mi\"}}}]}}",
        name, scheduler);
}

struct share {
    struct kube_client *client;
    const char *scheduler; /* NULL: delete */
    int64_t from, to;
    struct error err;
};

static void *work(void *arg)
{
    struct share *s = arg;
    AUTO_STRBUF body = {0};
    for (int64_t i = s->from; i < s->to; i++) {
        char name[64];
        str_format(name, sizeof name, "load-%05lld", (long long)i);
        strbuf_reset(&body);
        print_pod(&body, name, s->scheduler);
        int rc =
            s->scheduler
                ? kube_create(s->client, &kube_pods, "default", body.ptr, body.len, NULL, &s->err)
                : kube_delete(s->client, &kube_pods, "default", name, NULL, 0, &s->err);
        if (rc < 0)
            break;
    }
    return NULL;
}

/* Creates or deletes the pods of a round, on eight connections. */
static int64_t all_pods(const char *scheduler)
{
    static struct share shares[WORKERS];
    pthread_t threads[WORKERS];
    int64_t began_us = clock_mono_us();
    for (int64_t i = 0; i < WORKERS; i++) {
        struct share *s = &shares[i];
        s->scheduler = scheduler;
        s->from = options.pods * i / WORKERS;
        s->to = options.pods * (i + 1) / WORKERS;
        if (!s->client && kube_client_new(&s->client, config, &kube_options, "bench", &s->err) < 0)
            die(s->err.text);
        if (pthread_create(&threads[i], NULL, work, s) != 0)
            die("thread");
    }
    for (int64_t i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
        if (shares[i].err.code != 0)
            die(shares[i].err.text);
    }
    process_check();
    return options.pods * 1000000 / (clock_mono_us() - began_us);
}

static struct kube_client *single_client;

static int64_t count_events(void)
{
    AUTO_STRBUF body = {0};
    struct error err = ERROR_INIT;
    struct kube_request r = {.method = "GET", .path = "/api/v1/namespaces/default/events?limit=1"};
    if (kube_http_do(kube_client_http(single_client), &r, &body, NULL, NULL, &err) < 0)
        die(err.text);
    return process_number_after(strbuf_str(&body), "\"remainingItemCount\":") +
           (strstr(strbuf_str(&body), "\"involvedObject\"") != NULL);
}

/* ---- the three -------------------------------------------------------------------------------- */

static void k8s(struct strbuf *out, const char *verb, const char *const *more)
{
    const char *argv[16] = {"test/kubernetes/k8s", verb};
    size_t n = 2;
    while (more && *more && n < 13)
        argv[n++] = *more++;
    argv[n++] = "--name";
    argv[n++] = cluster;
    process_run(argv, out);
}

static void cluster_down(void)
{
    k8s(NULL, "down", NULL);
}

static pid_t kube_pid(void)
{
    char path[600];
    AUTO_STRBUF text = {0};
    str_format(path, sizeof path, "%.*s/pid/scheduler",
               (int)(strrchr(kubeconfig, '/') - kubeconfig), kubeconfig);
    process_read_file(path, &text);
    return (pid_t)process_number_after(strbuf_str(&text), NULL);
}

static pid_t start_kind(int kind)
{
    char number[32], port[64], file[600], program[512];
    str_format(number, sizeof number, "--nodes=%lld", (long long)options.nodes);
    str_format(file, sizeof file, "--kubeconfig=%s", kubeconfig);
    if (kind == KUBE) {
        k8s(NULL, "scheduler",
            (const char *[]){"start", "--scheduler-name", schedulers[KUBE], "--scheduler-qps",
                             "100000", NULL});
        return kube_pid();
    }
    if (kind == POSTER) {
        str_format(file, sizeof file, "--poster=%s", kubeconfig);
        return process_start((const char *[]){self, number, file, NULL}, log_fd, log_fd);
    }
    process_program(program, sizeof program, "bin/cosched-scheduler");
    str_format(port, sizeof port, "--http-port=%lld", (long long)(port_base + HTTP_PORT_OFFSET));
    return process_start((const char *[]){program, file, port, "--http-address=127.0.0.1",
                                          "--no-leader-elect", "--log-level=warn", NULL},
                         log_fd, log_fd);
}

static void stop_kind(int kind, pid_t pid)
{
    if (kind == KUBE)
        k8s(NULL, "scheduler", (const char *[]){"stop", NULL});
    else
        process_stop(pid);
}

static int64_t rates[KINDS][ROUNDS_MAX];

static void run_kind(int kind, int64_t number)
{
    int64_t created = all_pods(schedulers[kind]), events = count_events();
    forget_binds();
    pid_t pid = start_kind(kind);
    wait_for(&watched.bound, options.pods, kind_names[kind]);
    int64_t cpu_us = process_cpu_us(pid), rss = process_memory_mib(pid, "VmRSS:");
    int64_t took_us = num_max(watched.last_us - watched.first_us, 1);
    int64_t rate = (options.pods - 1) * 1000000 / took_us;
    printf("%s %s: %lld binds in %lld ms, %lld/s; CPU %lld us each, %lld MiB; %lld events written "
           "by then (pods created at %lld/s)\n",
           number < 0 ? "warm-up" : "round", kind_names[kind], (long long)options.pods,
           (long long)(took_us / 1000), (long long)rate, (long long)(cpu_us / options.pods),
           (long long)rss, (long long)(count_events() - events), (long long)created);
    if (kind == OURS)
        show_metrics("event");
    if (number >= 0)
        rates[kind][number] = rate;
    stop_kind(kind, pid);
    all_pods(NULL);
}

/* ---- single pods on an idle cluster ----------------------------------------------------------- */

static int64_t run_single(int kind, int64_t number)
{
    AUTO_STRBUF body = {0};
    struct error err = ERROR_INIT;
    char name[64];
    str_format(name, sizeof name, "single-%d-%lld", kind, (long long)number);
    print_pod(&body, name, schedulers[kind]);
    pthread_mutex_lock(&watched.lock);
    str_format(watched.single, sizeof watched.single, "%s", name);
    watched.single_seen_us = watched.single_bound_us = 0;
    pthread_mutex_unlock(&watched.lock);
    if (kube_create(single_client, &kube_pods, "default", body.ptr, body.len, NULL, &err) < 0)
        die(err.text);
    wait_for(&watched.single_bound_us, 1, "a single pod is bound");
    int64_t took_us = watched.single_bound_us - watched.single_seen_us;
    if (kube_delete(single_client, &kube_pods, "default", name, NULL, 0, &err) < 0)
        die(err.text);
    clock_sleep_ms(20); /* what the bind has left to do: an event, other watchers */
    return took_us;
}

static void run_singles(bool quiet)
{
    static int64_t took_us[KINDS][10000];
    pid_t pids[KINDS];
    for (int kind = 0; kind < KINDS; kind++)
        pids[kind] = start_kind(kind);
    for (int kind = 0; kind < KINDS; kind++)
        run_single(kind, -1); /* it has listed everything */
    for (int64_t i = 0; i < options.singles; i++)
        for (int kind = 0; kind < KINDS; kind++)
            took_us[kind][i] = run_single(kind, i);
    for (int kind = 0; kind < KINDS; kind++)
        stop_kind(kind, pids[kind]);
    int64_t n = options.singles, kube50 = quantile(took_us[KUBE], n, 50),
            kube99 = quantile(took_us[KUBE], n, 99);
    for (int kind = 0; kind < KINDS; kind++)
        printf("single pods, idle, %s: watch to bind p50 %lld us, p99 %lld us\n", kind_names[kind],
               (long long)quantile(took_us[kind], n, 50),
               (long long)quantile(took_us[kind], n, 99));
    print_result("bind_idle_p50", quantile(took_us[OURS], n, 50), "us", kube50,
                 quiet ? -(kube50 / 2) : 0);
    print_result("bind_idle_p99", quantile(took_us[OURS], n, 99), "us", kube99, 0);
}

/* ---- all of it -------------------------------------------------------------------------------- */

static void cluster_up(void)
{
    char number[32];
    AUTO_STRBUF text = {0}, env = {0};
    str_format(cluster, sizeof cluster, "bench-%d", (int)getpid());
    str_format(number, sizeof number, "%lld", (long long)options.nodes);
    process_at_end = cluster_down;
    k8s(&text, "up",
        (const char *[]){"--nodes", number, "--no-scheduler", "--no-controller-manager", NULL});
    const char *at = strstr(strbuf_str(&text), "export KUBECONFIG=");
    if (!at)
        die("the cluster did not come up");
    at += strlen("export KUBECONFIG=");
    str_format(kubeconfig, sizeof kubeconfig, "%.*s", (int)strcspn(at, "\n"), at);
    k8s(&env, "env", NULL);
    port_base = process_number_after(strbuf_str(&env), "K8S_PORT_BASE=");
}

static void load_config(const char *path)
{
    struct error err = ERROR_INIT;
    kube_options.kubeconfig = path;
    if (kube_config_load(&config, &kube_options, &err) < 0)
        die(err.text);
}

static void run_all(void)
{
    struct error err = ERROR_INIT;
    struct reflector *observer = NULL;
    cluster_up();
    load_config(kubeconfig);
    if (kube_client_new(&single_client, config, &kube_options, "bench", &err) < 0)
        die(err.text);
    /* Kept when the benchmark fails: what a program that stood still had to say. */
    str_format(log_path, sizeof log_path, "%s/bench-bind-%d.log",
               getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid());
    log_fd = open(log_path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    if (log_fd < 0)
        die(log_path);
    map_init(&watched.seen);
    arena_init(&watched.uids, 65536);
    watch_pods(&observer, observe, NULL);
    run_kind(POSTER, -1);
    for (int64_t i = 0; i < options.rounds; i++)
        for (int kind = 0; kind < KINDS; kind++)
            run_kind(kind, i);
    int64_t rate[KINDS];
    bool quiet = true;
    for (int kind = 0; kind < KINDS; kind++) {
        rate[kind] = quantile(rates[kind], options.rounds, 50); /* sorts them */
        int64_t least = rates[kind][0], most = rates[kind][options.rounds - 1];
        printf("%s: %lld to %lld binds/s in %lld rounds\n", kind_names[kind], (long long)least,
               (long long)most, (long long)options.rounds);
        quiet &= kind != POSTER || most * 100 <= least * NOISE_PERCENT;
    }
    /* The poster does the same in every round: if it differs by more than what is asked about, the machine was measured and not the programs. */
    if (!quiet)
        printf(
            "NOISY: the poster's rounds differ too much; goals are not judged, repeat on a quiet machine\n");
    print_result("bind_poster", rate[POSTER], "per_s", 0, 0);
    print_result("bind_kube", rate[KUBE], "per_s", rate[POSTER], 0);
    print_result("bind_ours", rate[OURS], "per_s", rate[POSTER],
                 quiet ? rate[POSTER] * 90 / 100 : 0);
    print_result("bind_ours_to_kube", rate[OURS], "per_s", rate[KUBE], quiet ? rate[KUBE] * 2 : 0);
    if (options.singles > 0)
        run_singles(quiet);
    reflector_stop(observer);
    process_end_all();
    unlink(log_path);
}

int main(int argc, char **argv)
{
    const struct option_row rows[] = {
        ROW("nodes", nodes, "1000", 1, 100000, "Nodes that are only API objects."),
        ROW("pods", pods, "5000", 2, 100000, "Pods that wait in each round."),
        ROW("rounds", rounds, "3", 1, ROUNDS_MAX, "Repeats; the figures are medians."),
        ROW("singles", singles, "200", 0, 10000, "Single pods on an idle cluster, for each."),
        {.name = "poster",
         .kind = OPTION_STRING,
         .offset = (size_t)((char *)&options.poster - (char *)&options),
         .meta = "FILE",
         .help = "Be the poster, on the cluster of this kubeconfig."},
        {0}};
    static const struct option_program program = {
        .name = "bench_bind", .summary = "binds on a real API server", .synopsis = "[OPTION]..."};
    const struct option_table tables[] = {
        {rows, &options}, {kube_option_rows, &kube_options}, {NULL, NULL}};
    struct error err = ERROR_INIT;
    enum options_result got = options_parse(&program, tables, argc, argv, NULL, &err);
    if (got != OPTIONS_RUN) {
        if (got == OPTIONS_ERROR)
            fprintf(stderr, "bench_bind: %s\n", err.text);
        return got == OPTIONS_ERROR ? 2 : 0;
    }
    self = argv[0];
    kube_http_global_init();
    if (options.poster) {
        load_config(options.poster);
        return be_poster();
    }
    process_init();
    run_all();
    return 0;
}
