// SPDX-License-Identifier: Apache-2.0
/*
 * bench_bind - how fast pods are bound on a real API server, which takes a few hundred binds a
 * second on two cores: how much of that is left?
 *
 * 1,000 nodes that are only API objects; 5,000 pods that wait; then one of three programs starts,
 * in turns, all rounds in one run on one cluster:
 *
 *     poster   binds each pod to the next node without a thought: this program again, with the
 *              scheduler's own watch on pods, connections and number of workers. What it reaches is
 *              what the API server can do.
 *     kube     kube-scheduler v1.36, its limits on requests lifted
 *     ours     cosched-scheduler with its default options
 *
 * The rate is from the first to the last bind that a watch of ours shows, so how long a program
 * takes to start does not count. A short round before the first warms the API server up.
 *
 * The rounds of one program differ by a third. The poster's own CPU time of a bind, which is always
 * the same work, moves with the API server's, so we take it that the machine changes its speed; one
 * trial each of compacting and defragmenting etcd and of deleting the Events did not bring the
 * speed back (a restart of the API server was not tried). So only neighbours are compared: the
 * poster runs before and after every round, and a round's bar is what lies between its two, by the
 * place in the round; the two schedulers change places from round to round. What is judged is the
 * median of the rounds' ratios, where they agree.
 *
 * Then, idle, single pods for each of the three in turns of 20, the other two stopped meanwhile:
 * from the event that shows the pod to the one that shows its node. The poster's is the floor,
 * which is the API server's own time for a Binding and two watch events; above_floor is what a
 * scheduler adds to it.
 *
 *     make bench-bind [ARGS='--nodes 100 --pods 500 --rounds 1 --singles 20']
 *     or COSCHED_NODES=100 and so on
 */
#include <pthread.h>

#include "lib/base/arena.h"
#include "lib/base/cleanup.h"
#include "lib/base/loop.h"
#include "lib/base/map.h"
#include "lib/base/options.h"
#include "lib/model/names.h"
#include "scheduler/binding/binder.h"
#include "test/bench/real.h"

enum { WORKERS = 16 /* --bind-workers' default */, NOISE_PERCENT = 115, TURN = 20 };
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

static const char *self;

/* ---- the poster ---- */

struct post_pipeline {
    struct mailbox *pods, *results;
    struct binder *binder;
    struct map posted; /* by uid */
    struct arena uids;
    int64_t next;
};

static void poster_take(struct post_pipeline *p, const struct pod *pod)
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

static void post_message(void *arg, void *msg)
{
    struct reflector_message *message = msg;
    for (size_t i = 0; message->event != REFLECTOR_DELETE && i < message->len; i++)
        poster_take(arg, message->objects[i]);
    reflector_message_free(message);
}

static void poster_result(void *arg, void *msg)
{
    (void)arg;
    binder_result_free(msg);
}

static bool poster_post(void *arg, struct reflector_message *message)
{
    struct post_pipeline *p = arg;
    return mailbox_post(p->pods, message);
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
    struct post_pipeline p = {0};
    struct reflector *reflector = NULL;
    map_init(&p.posted);
    arena_init(&p.uids, 65536);
    loop_block_signals();
    if (loop_new(&loop, &err) < 0 ||
        mailbox_new(&p.pods, loop, 4096, post_message, reflector_message_free, &p, &err) < 0 ||
        mailbox_new(&p.results, loop, 4096, poster_result, binder_result_free, &p, &err) < 0 ||
        loop_on_signal(loop, SIGTERM, stop_loop, loop, &err) < 0)
        die(err.text);
    struct binder_config c = {.threads = WORKERS, .results = p.results};
    if (binder_start(&p.binder, real.config, &real.options, &c, &err) < 0)
        die(err.text);
    real_watch_pods(&reflector, poster_post, &p);
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

/* ---- the observer ---- */

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

static bool observe(void *arg, struct reflector_message *message)
{
    (void)arg;
    int64_t now_us = clock_mono_us();
    pthread_mutex_lock(&watched.lock);
    watched.listed |= message->event == REFLECTOR_RESET;
    for (size_t i = 0; message->event != REFLECTOR_DELETE && i < message->len; i++)
        note_pod(message->objects[i], now_us);
    pthread_cond_broadcast(&watched.changed);
    pthread_mutex_unlock(&watched.lock);
    reflector_message_free(message);
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

/* Our scheduler's own words, the lines with this word in them; nothing when it does not run. */
static void show_metrics(const char *word)
{
    char url[128];
    AUTO_STRBUF text = {0};
    str_format(url, sizeof url, "http://127.0.0.1:%lld/metrics", (long long)real.http_port);
    process_run((const char *[]){"/bin/sh", "-c",
                                 "curl -s --max-time 5 --noproxy '*' \"$0\" || true", url, NULL},
                &text);
    char *save = NULL;
    for (char *line = text.ptr ? strtok_r(text.ptr, "\n", &save) : NULL; line;
         line = strtok_r(NULL, "\n", &save))
        if (line[0] != '#' && strstr(line, word) && !strstr(line, "_bucket"))
            printf("  %s\n", line);
}

static void wait_for(const int64_t *value, int64_t want, const char *what)
{
    if (real_wait(&watched.lock, &watched.changed, value, want, what))
        return;
    show_metrics("");
    die("no progress in a minute");
}

/* ---- pods and events ---- */

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

static int64_t run_pods; /* of this run: fewer to warm up */

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
        s->from = run_pods * i / WORKERS;
        s->to = run_pods * (i + 1) / WORKERS;
        if (!s->client &&
            kube_client_new(&s->client, real.config, &real.options, "bench", &s->err) < 0)
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
    return run_pods * 1000000 / (clock_mono_us() - began_us);
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

/* ---- the three ---- */

static pid_t start_kind(int kind)
{
    char number[32], file[600];
    if (kind == KUBE)
        return real_start_kube(schedulers[KUBE], NULL);
    if (kind == OURS)
        return real_start_ours();
    str_format(number, sizeof number, "--nodes=%lld", (long long)options.nodes);
    str_format(file, sizeof file, "--poster=%s", real.kubeconfig);
    return process_start((const char *[]){self, number, file, NULL}, real.log_fd, real.log_fd);
}

static void stop_kind(int kind, pid_t pid)
{
    if (kind == KUBE)
        real_stop_kube();
    else
        process_stop(pid);
}

/* What others on the host had of our cores. */
static int64_t stolen_ms(void)
{
    return process_ticks(8) * (1000 / sysconf(_SC_CLK_TCK));
}

/* Binds a second. */
static int64_t run_kind(int kind, const char *what, int64_t pods)
{
    run_pods = pods;
    int64_t created = all_pods(schedulers[kind]), events = count_events();
    pid_t api = real_pid("apiserver"), etcd = real_pid("etcd");
    forget_binds();
    int64_t api_us = process_cpu_us(api), etcd_us = process_cpu_us(etcd), stolen = stolen_ms();
    pid_t pid = start_kind(kind);
    wait_for(&watched.bound, pods, kind_names[kind]);
    int64_t cpu_us = process_cpu_us(pid), rss = process_memory_mib(pid, "VmRSS:");
    api_us = process_cpu_us(api) - api_us;
    etcd_us = process_cpu_us(etcd) - etcd_us;
    stolen = stolen_ms() - stolen;
    int64_t took_us = num_max(watched.last_us - watched.first_us, 1);
    int64_t rate = (pods - 1) * 1000000 / took_us;
    printf("%s %s: %lld binds in %lld ms, %lld/s; CPU of each: %lld us, API server %lld us, etcd "
           "%lld us; stolen %lld ms; %lld MiB; %lld events written by then (pods created at "
           "%lld/s)\n",
           what, kind_names[kind], (long long)pods, (long long)(took_us / 1000), (long long)rate,
           (long long)(cpu_us / pods), (long long)(api_us / pods), (long long)(etcd_us / pods),
           (long long)stolen, (long long)rss, (long long)(count_events() - events),
           (long long)created);
    if (kind == OURS)
        show_metrics("event");
    stop_kind(kind, pid);
    all_pods(NULL);
    return rate;
}

/* ---- rounds and their ratios ---- */

struct pair {
    int64_t value, bar; /* of the same round */
};

static int by_ratio(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    int64_t l = x->value * y->bar, r = y->value * x->bar;
    return (l > r) - (l < r);
}

/* The round in the middle; judged where all rounds agree about the goal, or lie together. */
static void print_pairs(const char *name, struct pair *pairs, int64_t n, int64_t goal_percent)
{
    qsort(pairs, (size_t)n, sizeof pairs[0], by_ratio);
    const struct pair *least = &pairs[0], *middle = &pairs[n / 2], *most = &pairs[n - 1];
    int64_t low = least->value * 1000 / num_max(least->bar, 1),
            high = most->value * 1000 / num_max(most->bar, 1);
    bool agree = (low >= goal_percent * 10) == (high >= goal_percent * 10);
    bool quiet = agree || high * 100 <= low * NOISE_PERCENT;
    printf("%s: %lld.%03lld to %lld.%03lld of its round's bar in %lld rounds%s\n", name,
           (long long)(low / 1000), (long long)(low % 1000), (long long)(high / 1000),
           (long long)(high % 1000), (long long)n,
           quiet ? "" : "; NOISY: the rounds do not agree, the goal is not judged");
    print_result(name, middle->value, "per_s", middle->bar,
                 quiet ? middle->bar * goal_percent / 100 : 0);
}

static void run_rounds(void)
{
    static struct pair to_poster[ROUNDS_MAX], to_kube[ROUNDS_MAX], kube_to_poster[ROUNDS_MAX];
    int64_t posters[ROUNDS_MAX + 1], n = options.rounds;
    run_kind(POSTER, "warm-up", num_max(options.pods / 5, 2));
    posters[0] = run_kind(POSTER, "bar", options.pods);
    for (int64_t i = 0; i < n; i++) {
        int first = i % 2 == 0 ? OURS : KUBE, second = i % 2 == 0 ? KUBE : OURS;
        int64_t rate[KINDS];
        rate[first] = run_kind(first, "round", options.pods);
        rate[second] = run_kind(second, "round", options.pods);
        int64_t before = posters[i], after = run_kind(POSTER, "bar", options.pods);
        posters[i + 1] = after;
        rate[POSTER] = 0;
        for (int kind = KUBE; kind <= OURS; kind++) {
            int64_t bar = kind == first ? (2 * before + after) / 3 : (before + 2 * after) / 3;
            struct pair *to = kind == OURS ? &to_poster[i] : &kube_to_poster[i];
            *to = (struct pair){.value = rate[kind], .bar = bar};
        }
        to_kube[i] = (struct pair){.value = rate[OURS], .bar = rate[KUBE]};
    }
    print_result("bind_poster", quantile(posters, n + 1, 50), "per_s", 0, 0);
    print_pairs("bind_kube", kube_to_poster, n, 0);
    print_pairs("bind_ours", to_poster, n, 90);
    print_pairs("bind_ours_to_kube", to_kube, n, 200);
}

/* ---- single pods on an idle cluster ---- */

static int64_t run_single(int kind, int64_t number)
{
    AUTO_STRBUF body = {0};
    struct error err = ERROR_INIT;
    char name[64];
    str_format(name, sizeof name, "single-%d-%s%lld", kind, number < 0 ? "w" : "",
               (long long)(number < 0 ? -number : number));
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

static pid_t single_pids[KINDS];

/* A stopped one would not hear that it is to end. */
static void go_on_and_down(void)
{
    if (single_pids[KUBE] > 0)
        kill(single_pids[KUBE], SIGCONT);
    real_down();
}

/* What the API server's own clock says of Bindings: their number, and their time in
 * microseconds. */
static void read_handler(int64_t *count, int64_t *sum_us)
{
    AUTO_STRBUF body = {0};
    struct error err = ERROR_INIT;
    struct kube_request r = {.method = "GET", .path = "/metrics"};
    if (kube_http_do(kube_client_http(single_client), &r, &body, NULL, NULL, &err) < 0)
        die(err.text);
    char *save = NULL;
    *count = *sum_us = 0;
    for (char *line = strtok_r(body.ptr, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        const char *value = strstr(line, "} ");
        if (!value || !str_starts(line, "apiserver_request_duration_seconds_") ||
            !strstr(line, "subresource=\"binding\"") || strstr(line, "_bucket"))
            continue;
        if (strstr(line, "_seconds_count")) {
            *count += process_number_after(value, "} ");
            continue;
        }
        char digits[8] = "000000";
        const char *point = strchr(value, '.');
        for (size_t i = 0; point && i < 6 && point[i + 1] >= '0' && point[i + 1] <= '9'; i++)
            digits[i] = point[i + 1];
        *sum_us += process_number_after(value, "} ") * 1000000 + process_number_after(digits, NULL);
    }
}

/* Twenty in a row, with the other schedulers stopped: an idle cluster has one scheduler. */
static void take_turn(int kind, int64_t from, int64_t *took_us, int64_t *count, int64_t *handler_us)
{
    int64_t count_before, us_before, count_after, us_after;
    for (int other = 0; other < KINDS; other++)
        kill(single_pids[other], other == kind ? SIGCONT : SIGSTOP);
    read_handler(&count_before, &us_before);
    run_single(kind, -1 - from); /* it has caught up with what it missed */
    for (int64_t i = from; i < num_min(from + TURN, options.singles); i++)
        took_us[i] = run_single(kind, i);
    read_handler(&count_after, &us_after);
    *count += count_after - count_before;
    *handler_us += us_after - us_before;
}

static void run_singles(void)
{
    static int64_t took_us[KINDS][10000];
    int64_t n = options.singles, p50[KINDS], p99[KINDS], count[KINDS] = {0}, handler[KINDS] = {0};
    process_at_end = go_on_and_down;
    for (int kind = 0; kind < KINDS; kind++)
        single_pids[kind] = start_kind(kind);
    for (int kind = 0; kind < KINDS; kind++)
        run_single(kind, -1 - n); /* it has listed everything */
    for (int64_t from = 0; from < n; from += TURN)
        for (int i = 0; i < KINDS; i++) {
            int kind = (int)((from / TURN + i) % KINDS);
            take_turn(kind, from, took_us[kind], &count[kind], &handler[kind]);
        }
    for (int kind = 0; kind < KINDS; kind++) {
        kill(single_pids[kind], SIGCONT);
        stop_kind(kind, single_pids[kind]);
    }
    for (int kind = 0; kind < KINDS; kind++) {
        p50[kind] = quantile(took_us[kind], n, 50);
        p99[kind] = quantile(took_us[kind], n, 99);
        printf(
            "single pods, idle, %s: watch to bind p50 %lld us, p99 %lld us; the API server's own "
            "clock for a Binding: mean %lld us\n",
            kind_names[kind], (long long)p50[kind], (long long)p99[kind],
            (long long)(handler[kind] / num_max(count[kind], 1)));
    }
    print_result("bind_idle_p50", p50[OURS], "us", p50[KUBE], -(p50[KUBE] / 2));
    print_result("bind_idle_p99", p99[OURS], "us", p99[KUBE], 0);
    print_result("bind_idle_floor", p50[POSTER], "us", p50[KUBE], 0);
    print_result("bind_idle_above_floor", num_max(p50[OURS] - p50[POSTER], 0), "us",
                 num_max(p50[KUBE] - p50[POSTER], 1), 0);
}

/* ---- all of it ---- */

static void run_all(void)
{
    struct error err = ERROR_INIT;
    struct reflector *observer = NULL;
    real_up(options.nodes, NULL);
    if (kube_client_new(&single_client, real.config, &real.options, "bench", &err) < 0)
        die(err.text);
    map_init(&watched.seen);
    arena_init(&watched.uids, 65536);
    real_watch_pods(&observer, observe, NULL);
    if (options.rounds > 0)
        run_rounds();
    if (options.singles > 0)
        run_singles();
    reflector_stop(observer);
    real_end();
}

int main(int argc, char **argv)
{
    const struct option_row rows[] = {
        ROW("nodes", nodes, "1000", 1, 100000, "Nodes that are only API objects."),
        ROW("pods", pods, "5000", 2, 100000, "Pods that wait in each round."),
        ROW("rounds", rounds, "3", 0, ROUNDS_MAX, "Repeats; the figures are the middle one's."),
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
        {rows, &options}, {kube_option_rows, &real.options}, {NULL, NULL}};
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
        real_load_config(options.poster);
        return be_poster();
    }
    process_init();
    run_all();
    return 0;
}
