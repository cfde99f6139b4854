// SPDX-License-Identifier: Apache-2.0
/*
 * bench_webhook - what an admission costs: the real program, with cosched-local as its API server,
 * asked over TLS on connections that are kept, as an API server does; a review of 6 KB about a GPU
 * pod that is given our scheduler's name.
 *
 * The floor is a server of the same TLS stack (lib/base/httpd, as many threads) that reads the same
 * body and answers with the same bytes, made beforehand: what is above it is ours. Beside it, when
 * Go is there, a webhook of net/http and encoding/json that only decodes the review and makes the
 * same patch. wrk asks from the other core; many short rounds of all servers alternate in one run.
 * The figures are medians of the rounds, and a ratio is the median of the rounds' ratios: what else
 * the machine does in a round, it does to both. (How wrk's connections fall on the server's two
 * threads is new in each round and worth a third of the CPU time.) CPU time is that of all threads
 * of the server.
 *
 *     make bench-webhook [ARGS='--seconds 2 --rounds 1']
 */
#include <sys/stat.h>

#include "lib/base/file.h"
#include "lib/base/httpd.h"
#include "lib/base/options.h"
#include "lib/base/rss_trim.h"
#include "lib/model/names.h"
#include "test/bench/local.h"
#include "webhook/certs.h"
#include "webhook/review.h"

enum { CONNECTIONS = 8, REVIEW_BYTES = 6 * 1024, SERVER_THREADS = 2, RSS_GOAL_MIB = 10 };
/* Then the webhook has let go of what only its start has needed; memory is read after each round,
 * under load. */
enum { SETTLE_MS = RSS_TRIM_FIRST_MS + 2000 };

static struct settings {
    int64_t seconds, rounds;
    const char *constant; /* the folder: this process is the floor */
    int64_t port;
} settings;

static const struct option_row rows[] = {
    {.name = "seconds",
     .kind = OPTION_INT,
     .offset = offsetof(struct settings, seconds),
     .fallback = "2",
     .min = 1,
     .max = 600,
     .meta = "N",
     .help = "Length of one measurement."},
    {.name = "rounds",
     .kind = OPTION_INT,
     .offset = offsetof(struct settings, rounds),
     .fallback = "15",
     .min = 1,
     .max = ROUNDS_MAX,
     .meta = "N",
     .help = "Repeats; the figures are medians."},
    {.name = "constant",
     .kind = OPTION_STRING,
     .offset = offsetof(struct settings, constant),
     .meta = "FOLDER",
     .help = "Be the floor: serve FOLDER/reply with the certificate there."},
    {.name = "port",
     .kind = OPTION_INT,
     .offset = offsetof(struct settings, port),
     .fallback = "0",
     .min = 0,
     .max = 65535,
     .meta = "N",
     .help = "The floor's port."},
    {0}};

/* ---- the floor ---- */

static struct strbuf constant_reply;

static void answer_constant(void *arg, const struct httpd_request *request,
                            struct httpd_response *reply)
{
    (void)arg, (void)request;
    reply->content_type = "application/json";
    strbuf_add(&reply->body, constant_reply.ptr, constant_reply.len);
}

static void read_in(const char *folder, const char *name, struct strbuf *out)
{
    char path[512];
    struct error err = ERROR_INIT;
    str_format(path, sizeof path, "%s/%s", folder, name);
    if (file_read(path, 1 << 20, out, &err) < 0)
        result_fail("file", err.text);
}

static int serve_constant(void)
{
    AUTO_STRBUF cert = {0};
    AUTO_STRBUF key = {0};
    struct error err = ERROR_INIT;
    struct httpd *h = NULL;
    sigset_t end;
    int signo = 0;
    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    sigprocmask(SIG_BLOCK, &end, NULL);
    read_in(settings.constant, "cert", &cert);
    read_in(settings.constant, "key", &key);
    read_in(settings.constant, "reply", &constant_reply);
    struct httpd_config config = {.address = "127.0.0.1",
                                  .port = (uint16_t)settings.port,
                                  .threads = SERVER_THREADS,
                                  .max_body_bytes = 3 << 20,
                                  .max_connections = 1024,
                                  .timeout_s = 90,
                                  .tls = true,
                                  .handler = answer_constant};
    if (httpd_start(&h, &config, &err) < 0 ||
        httpd_set_certificate(h, strbuf_str(&cert), strbuf_str(&key), &err) < 0)
        result_fail("the floor", err.text);
    sigwait(&end, &signo);
    httpd_stop(h);
    strbuf_deinit(&constant_reply);
    return 0;
}

/* ---- what is asked ---- */

static char folder[64];

static void remove_folder(void)
{
    process_run((const char *[]){"/bin/rm", "-rf", folder, NULL}, NULL);
}

static void write_in(const char *name, const void *bytes, size_t n)
{
    char path[128];
    str_format(path, sizeof path, "%s/%s", folder, name);
    AUTO_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, bytes, n) != (ssize_t)n)
        die(path);
}

/* A pod as it comes from a Job's controller, filled up with environment to the size. */
static void make_review(struct strbuf *out)
{
    strbuf_adds(
        out,
        "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{\"uid\":"
        "\"705ab4f5-6393-11e8-b7cc-42010a800002\",\"kind\":{\"group\":\"\",\"version\":\"v1\","
        "\"kind\":\"Pod\"},\"resource\":{\"group\":\"\",\"version\":\"v1\",\"resource\":\"pods\"},"
        "\"namespace\":\"default\",\"operation\":\"CREATE\",\"userInfo\":{\"username\":"
        "\"system:serviceaccount:kube-system:job-controller\"},\"object\":{\"kind\":\"Pod\","
        "\"apiVersion\":\"v1\",\"metadata\":{\"generateName\":\"train-\",\"namespace\":\"default\","
        "\"labels\":{\"app\":\"train\",\"" NAME_LABEL_GANG_NAME
        "\":\"train\",\"" NAME_LABEL_GANG_MIN
        "\":\"4\"}},\"spec\":{\"restartPolicy\":\"Never\",\"schedulerName\":\"default-scheduler\","
        "\"containers\":[{\"name\":\"main\",\"image\":\"registry.example/train:1\",\"resources\":{"
        "\"limits\":{\"cpu\":\"4\",\"memory\":\"8Gi\",\"" NAME_RES_GPU_MEM
        "\":\"3\"},\"requests\":{\"cpu\":\"4\",\"memory\":\"8Gi\",\"" NAME_RES_GPU_MEM
        "\":\"3\"}},\"env\":[{\"name\":\"FIRST\",\"value\":\"1\"}");
    static const char tail[] = "]}]}},\"oldObject\":null,\"dryRun\":false,\"options\":{\"kind\":"
                               "\"CreateOptions\",\"apiVersion\":\"meta.k8s.io/v1\"}}}";
    for (int i = 0; out->len + sizeof tail < REVIEW_BYTES - 64; i++)
        strbuf_addf(out, ",{\"name\":\"VARIABLE_%03d\",\"value\":\"/data/part-%05d\"}", i, i);
    strbuf_adds(out, tail);
}

static void make_reply(const struct strbuf *review, struct strbuf *out)
{
    struct review_config config = {.rules = {.scheduler = NAME_SCHEDULER}};
    struct review_outcome o;
    struct arena arena;
    char *copy = calloc(1, review->len + JSON_PADDING);
    if (!copy)
        die("memory");
    memcpy(copy, review->ptr, review->len);
    arena_init(&arena, 0);
    review_answer(&config, true, copy, review->len, &arena, out, &o);
    if (o.result != REVIEW_PATCHED)
        die("the review is not answered with a patch");
    arena_deinit(&arena);
    free(copy);
}

static void make_files(void)
{
    static const char *const names[] = {"127.0.0.1"};
    struct certs_pair ca = {.cert_pem = NULL}, leaf = {.cert_pem = NULL};
    struct error err = ERROR_INIT;
    AUTO_STRBUF review = {0};
    AUTO_STRBUF reply = {0};
    AUTO_STRBUF script = {0};
    int64_t now_s = clock_wall_ns() / 1000000000;
    if (certs_make_ca("bench", now_s, 7200, &ca, &err) < 0 ||
        certs_make_leaf(&ca, names, 1, now_s, 3600, &leaf, &err) < 0)
        result_fail("certificates", err.text);
    make_review(&review);
    make_reply(&review, &reply);
    strbuf_addf(
        &script,
        "local f = io.open('%s/review'); wrk.method = 'POST'; wrk.body = f:read('*a')\n"
        "wrk.headers['Content-Type'] = 'application/json'\n"
        "function done(s, l)\n"
        "  io.write(string.format('COUNT %%d errors %%d p50 %%d p99 %%d us %%d\\n', s.requests,\n"
        "    s.errors.connect + s.errors.read + s.errors.write + s.errors.status + s.errors.timeout,\n"
        "    l:percentile(50), l:percentile(99), s.duration))\n"
        "end\n",
        folder);
    write_in("cert", leaf.cert_pem, strlen(leaf.cert_pem));
    write_in("key", leaf.key_pem, strlen(leaf.key_pem));
    write_in("review", review.ptr, review.len);
    write_in("reply", reply.ptr, reply.len);
    write_in("ask.lua", script.ptr, script.len);
    certs_pair_deinit(&ca);
    certs_pair_deinit(&leaf);
    printf("a review of %zu bytes, a reply of %zu\n", review.len, reply.len);
}

/* ---- the servers ---- */

struct figures {
    int64_t per_second, p50_us, p99_us, cpu_ns;
};
struct contender {
    const char *name;
    pid_t pid;
    uint16_t port;
    struct figures rounds[ROUNDS_MAX];
    int64_t rss_kib;
};

static const char *taskset(void)
{
    return sysconf(_SC_NPROCESSORS_ONLN) > 1 ? "0" : "0-255";
}

static void wait_for_port(uint16_t port)
{
    for (int64_t end = clock_mono_ms() + 30000; clock_mono_ms() < end; clock_sleep_ms(20)) {
        int fd = local_try_dial(port);
        process_check();
        if (fd >= 0) {
            close(fd);
            return;
        }
    }
    die("a server does not listen");
}

static void start_webhook(struct contender *c, const struct local *local)
{
    char program[512], kubeconfig[600], port[32], http_port[32], cert[128], key[128];
    process_program(program, sizeof program, "bin/cosched-webhook");
    c->port = local_free_port();
    str_format(kubeconfig, sizeof kubeconfig, "--kubeconfig=%s", local->kubeconfig);
    str_format(port, sizeof port, "--port=%u", c->port);
    str_format(http_port, sizeof http_port, "--http-port=%u", local_free_port());
    str_format(cert, sizeof cert, "--cert-file=%s/cert", folder);
    str_format(key, sizeof key, "--key-file=%s/key", folder);
    c->pid = process_start((const char *[]){"/usr/bin/taskset", "-c", taskset(), program,
                                            kubeconfig, port, http_port, cert, key,
                                            "--address=127.0.0.1", "--http-address=127.0.0.1",
                                            "--namespace=bench", "--log-level=error", NULL},
                           -1, -1);
    wait_for_port(c->port);
}

static void start_constant(struct contender *c)
{
    char program[512], port[32];
    process_program(program, sizeof program, "test/bench/bench_webhook");
    c->port = local_free_port();
    str_format(port, sizeof port, "--port=%u", c->port);
    c->pid = process_start((const char *[]){"/usr/bin/taskset", "-c", taskset(), program,
                                            "--constant", folder, port, NULL},
                           -1, -1);
    wait_for_port(c->port);
}

/* false: there is no Go, or it cannot build. */
static bool start_go(struct contender *c)
{
    char binary[128], port[32], command[512];
    str_format(binary, sizeof binary, "%s/baseline", folder);
    str_format(
        command, sizeof command,
        "PATH=$PATH:/usr/local/go/bin; command -v go >/dev/null && cd test/bench/webhook_go && "
        "GO111MODULE=off GOFLAGS= go build -o '%s' . 2>&1",
        binary);
    pid_t pid = process_start((const char *[]){"/bin/sh", "-c", command, NULL}, -1, -1);
    if (process_wait(pid) != 0) {
        printf("no Go here: its baseline is left out\n");
        return false;
    }
    c->port = local_free_port();
    str_format(port, sizeof port, "127.0.0.1:%u", c->port);
    c->pid = process_start(
        (const char *[]){"/usr/bin/taskset", "-c", taskset(), binary, port, folder, NULL}, -1, -1);
    wait_for_port(c->port);
    return true;
}

/* ---- measuring ---- */

static void load(struct contender *c, int64_t seconds, struct figures *out)
{
    char url[96], duration[16], script[96], connections[16];
    AUTO_STRBUF text = {0};
    str_format(url, sizeof url, "https://127.0.0.1:%u/mutate?timeout=5s", c->port);
    str_format(duration, sizeof duration, "-d%llds", (long long)seconds);
    str_format(connections, sizeof connections, "-c%d", CONNECTIONS);
    str_format(script, sizeof script, "%s/ask.lua", folder);
    int64_t cpu_us = process_cpu_us(c->pid);
    process_run((const char *[]){"/usr/bin/taskset", "-c",
                                 sysconf(_SC_NPROCESSORS_ONLN) > 1 ? "1" : "0", "/usr/bin/wrk",
                                 "-t1", connections, duration, "-s", script, url, NULL},
                &text);
    cpu_us = process_cpu_us(c->pid) - cpu_us;
    const char *line = strstr(strbuf_str(&text), "COUNT ");
    int64_t requests = line ? process_number_after(line, "COUNT ") : 0;
    if (requests == 0)
        die("wrk printed nothing that is understood");
    if (process_number_after(line, " errors ") != 0)
        die("requests failed");
    *out = (struct figures){.per_second =
                                requests * 1000000 / num_max(process_number_after(line, " us "), 1),
                            .p50_us = process_number_after(line, " p50 "),
                            .p99_us = process_number_after(line, " p99 "),
                            .cpu_ns = cpu_us * 1000 / requests};
}

static int64_t median(const struct contender *c, size_t offset)
{
    int64_t values[ROUNDS_MAX];
    for (int64_t i = 0; i < settings.rounds; i++)
        memcpy(&values[i], (const char *)&c->rounds[i] + offset, sizeof values[i]);
    return quantile(values, settings.rounds, 50);
}
#define MEDIAN(c, field) ((double)median((c), offsetof(struct figures, field)))

/* Of a to b, in the rounds. */
static double median_ratio(const struct contender *a, const struct contender *b, size_t offset)
{
    int64_t values[ROUNDS_MAX];
    for (int64_t i = 0; i < settings.rounds; i++) {
        int64_t of_a, of_b;
        memcpy(&of_a, (const char *)&a->rounds[i] + offset, sizeof of_a);
        memcpy(&of_b, (const char *)&b->rounds[i] + offset, sizeof of_b);
        values[i] = of_a * 1000 / num_max(of_b, 1);
    }
    return (double)quantile(values, settings.rounds, 50) / 1000;
}
#define RATIO(a, b, field) median_ratio((a), (b), offsetof(struct figures, field))

static int64_t rss_kib(pid_t pid)
{
    AUTO_STRBUF text = {0};
    process_proc(pid, "status", &text);
    return process_number_after(strbuf_str(&text), "VmRSS:");
}

/* ratio 0: value by baseline */
static void report(const char *name, double value, const char *unit, int places, double baseline,
                   double ratio, double goal, enum result_met met)
{
    struct result f = {.name = name,
                       .unit = unit,
                       .places = places,
                       .value = value,
                       .baseline = baseline,
                       .ratio = ratio,
                       .goal = goal,
                       .met = met};
    result_print(&f, "%s", "");
}

static void report_all(const struct contender *hook, const struct contender *floor,
                       const struct contender *go, bool noisy)
{
    double cpu = MEDIAN(hook, cpu_ns) / 1000, cpu_floor = MEDIAN(floor, cpu_ns) / 1000;
    double p99 = MEDIAN(hook, p99_us), p99_floor = MEDIAN(floor, p99_us);
    double rss = (double)hook->rss_kib / 1024;
    double more_cpu = RATIO(hook, floor, cpu_ns), later = RATIO(hook, floor, p99_us);
    report("webhook_requests_per_second", MEDIAN(hook, per_second), "1/s", 0,
           MEDIAN(floor, per_second), 0, 0, RESULT_NO_GOAL);
    report("webhook_p50", MEDIAN(hook, p50_us), "us", 0, MEDIAN(floor, p50_us), 0, 0,
           RESULT_NO_GOAL);
    report("webhook_p99", p99, "us", 0, p99_floor, later, 2 * p99_floor,
           noisy ? RESULT_NO_GOAL : result_met(later <= 2));
    report("webhook_cpu_per_request", cpu, "us", 1, cpu_floor, more_cpu, 2 * cpu_floor,
           result_met(more_cpu <= 2));
    report("webhook_rss", rss, "MiB", 1, (double)floor->rss_kib / 1024, 0, RSS_GOAL_MIB,
           result_met(rss <= RSS_GOAL_MIB));
    if (!go->pid)
        return;
    double cpu_go = MEDIAN(go, cpu_ns) / 1000, more_go = RATIO(go, hook, cpu_ns);
    report("webhook_go_cpu_per_request", cpu_go, "us", 1, cpu, more_go, 4 * cpu,
           result_met(more_go >= 4));
    report("webhook_go_requests_per_second", MEDIAN(go, per_second), "1/s", 0,
           MEDIAN(hook, per_second), 0, 0, RESULT_NO_GOAL);
    report("webhook_go_p99", MEDIAN(go, p99_us), "us", 0, p99, 0, 0, RESULT_NO_GOAL);
    report("webhook_go_rss", (double)go->rss_kib / 1024, "MiB", 1, rss, 0, 0, RESULT_NO_GOAL);
}

int main(int argc, char **argv)
{
    static const struct option_program program = {
        .name = "bench_webhook", .summary = "what an admission costs", .synopsis = "[OPTION]..."};
    const struct option_table tables[] = {{rows, &settings}, {NULL, NULL}};
    struct error err = ERROR_INIT;
    switch (options_parse(&program, tables, argc, argv, NULL, &err)) {
    case OPTIONS_EXIT:
        return 0;
    case OPTIONS_ERROR:
        result_fail("options", err.text);
    case OPTIONS_RUN:
        break;
    }
    if (settings.constant)
        return serve_constant();
    process_init();
    str_format(folder, sizeof folder, "/tmp/bench-webhook-XXXXXX");
    if (!mkdtemp(folder))
        die("a folder");
    process_at_end = remove_folder;
    bool noisy = process_is_noisy();
    make_files();
    struct local local;
    struct contender hook = {.name = "cosched-webhook"}, floor = {.name = "constant"},
                     go = {.name = "go"};
    local_start(&local, 0);
    start_webhook(&hook, &local);
    start_constant(&floor);
    bool with_go = start_go(&go);
    clock_sleep_ms(SETTLE_MS);
    struct contender *all[] = {&floor, &hook, with_go ? &go : NULL};
    for (int64_t round = -1; round < settings.rounds; round++)
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
            struct figures f;
            if (!all[i])
                continue;
            load(all[i], round < 0 ? 1 : settings.seconds, &f);
            if (round < 0)
                continue; /* warm */
            all[i]->rounds[round] = f;
            all[i]->rss_kib = rss_kib(all[i]->pid);
            printf(
                "%-16s %6lld/s  p50 %4lld us  p99 %5lld us  CPU %5.1f us/request  RSS %5.1f MiB\n",
                all[i]->name, (long long)f.per_second, (long long)f.p50_us, (long long)f.p99_us,
                (double)f.cpu_ns / 1000, (double)all[i]->rss_kib / 1024);
        }
    report_all(&hook, &floor, &go, noisy);
    process_end_all();
    return 0;
}
