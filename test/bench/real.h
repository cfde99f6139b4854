// SPDX-License-Identifier: Apache-2.0
/*
 * real - what benchmarks on a real API server share: the cluster, kube-scheduler and our scheduler
 * on it, a watch on all pods, and what the API server itself spends.
 */
#pragma once

#include <pthread.h>

#include "lib/base/str.h"
#include "lib/kube/api.h"
#include "lib/kube/decode.h"
#include "lib/kube/reflector.h"
#include "test/bench/process.h"

enum {
    REAL_HTTP_OFFSET = 7
}; /* of our scheduler: free for tests in the cluster's block of ports */

static struct {
    char name[64], kubeconfig[512], log_path[512];
    int64_t http_port; /* of our scheduler */
    int log_fd;        /* what the programs say */
    struct kube_options options;
    struct kube_config *config;
} real = {.log_fd = -1};

static inline void real_k8s(struct strbuf *out, const char *verb, const char *const *more)
{
    const char *argv[32] = {"test/kubernetes/k8s", verb};
    size_t n = 2;
    while (more && *more && n < 29)
        argv[n++] = *more++;
    argv[n++] = "--name";
    argv[n++] = real.name;
    process_run(argv, out);
}

static inline void real_down(void)
{
    real_k8s(NULL, "down", NULL);
}

static inline void real_load_config(const char *path)
{
    struct error err = ERROR_INIT;
    if (path != real.kubeconfig)
        str_format(real.kubeconfig, sizeof real.kubeconfig, "%s", path);
    real.options.kubeconfig = real.kubeconfig;
    if (kube_config_load(&real.config, &real.options, &err) < 0)
        die(err.text);
}

/* Until *value, which lock guards and changed tells of, reaches what is wanted. false, with a line
 * about it: it did not move for a minute, or the benchmark was interrupted. */
static inline bool real_wait(pthread_mutex_t *lock, pthread_cond_t *changed, const int64_t *value,
                             int64_t want, const char *what)
{
    int64_t last = -1, until_ms = 0;
    bool late = false;
    pthread_mutex_lock(lock);
    while (*value < want && !late) {
        if (*value != last)
            until_ms = clock_mono_ms() + 60000;
        last = *value;
        struct timespec at;
        clock_gettime(CLOCK_REALTIME, &at);
        at.tv_sec += 1;
        pthread_cond_timedwait(changed, lock, &at);
        late = process_interrupted || clock_mono_ms() > until_ms;
    }
    if (late)
        fprintf(stderr, "%s: %lld of %lld; logs: %s\n", what, (long long)*value, (long long)want,
                real.log_path);
    pthread_mutex_unlock(lock);
    return !late;
}

/* Kept when the benchmark fails: what a program that stood still had to say. */
static inline void real_open_log(void)
{
    const char *dir = getenv("TMPDIR");
    str_format(real.log_path, sizeof real.log_path, "%s/bench-%d.log", dir ? dir : "/tmp",
               (int)getpid());
    real.log_fd = open(real.log_path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    if (real.log_fd < 0)
        die(real.log_path);
}

/* more: further options of `k8s up`. */
static inline void real_up(int64_t nodes, const char *const *more)
{
    char number[32];
    const char *argv[24] = {"--nodes", number, "--no-scheduler", "--no-controller-manager"};
    AUTO_STRBUF text = {0}, env = {0};
    for (size_t n = 4; more && *more && n < 23;)
        argv[n++] = *more++;
    str_format(real.name, sizeof real.name, "bench-%d", (int)getpid());
    str_format(number, sizeof number, "%lld", (long long)nodes);
    process_at_end = real_down;
    real_k8s(&text, "up", argv);
    const char *at = strstr(strbuf_str(&text), "export KUBECONFIG=");
    if (!at)
        die("the cluster did not come up");
    at += strlen("export KUBECONFIG=");
    str_format(real.kubeconfig, sizeof real.kubeconfig, "%.*s", (int)strcspn(at, "\n"), at);
    real_k8s(&env, "env", NULL);
    real.http_port = process_number_after(strbuf_str(&env), "K8S_PORT_BASE=") + REAL_HTTP_OFFSET;
    real_load_config(real.kubeconfig);
    real_open_log();
}

static inline void real_end(void)
{
    process_end_all();
    kube_config_free(real.config);
    real.config = NULL;
    close(real.log_fd);
    unlink(real.log_path);
}

/* "apiserver", "etcd", "scheduler" */
static inline pid_t real_pid(const char *part)
{
    char path[600];
    AUTO_STRBUF text = {0};
    str_format(path, sizeof path, "%.*s/pid/%s",
               (int)(strrchr(real.kubeconfig, '/') - real.kubeconfig), real.kubeconfig, part);
    process_read_file(path, &text);
    return (pid_t)process_number_after(strbuf_str(&text), NULL);
}

static inline pid_t real_start_kube(const char *scheduler_name, const char *more)
{
    real_k8s(NULL, "scheduler",
             (const char *[]){"start", "--scheduler-name", scheduler_name, "--scheduler-qps",
                              "100000", more, NULL});
    return real_pid("scheduler");
}

static inline void real_stop_kube(void)
{
    real_k8s(NULL, "scheduler", (const char *[]){"stop", NULL});
}

static inline pid_t real_start_ours(void)
{
    char port[64], file[600], program[512];
    process_program(program, sizeof program, "bin/cosched-scheduler");
    str_format(file, sizeof file, "--kubeconfig=%s", real.kubeconfig);
    str_format(port, sizeof port, "--http-port=%lld", (long long)real.http_port);
    return process_start((const char *[]){program, file, port, "--http-address=127.0.0.1",
                                          "--no-leader-elect", "--log-level=warn", NULL},
                         real.log_fd, real.log_fd);
}

/* ---- a watch on pods ---- */

static inline int real_decode_pod(json *j, void **out, struct error *err)
{
    struct pod *pod = NULL;
    int rc = decode_pod(j, &pod, err);
    *out = pod;
    return rc;
}

static inline void real_free_pod(void *pod)
{
    pod_free(pod);
}

/* As the scheduler's intake does. */
static inline void real_watch_pods(struct reflector **out,
                                   bool (*deliver)(void *, struct reflector_message *), void *arg)
{
    struct error err = ERROR_INIT;
    struct reflector_config c = {.kind = &kube_pods,
                                 .field_selector = "status.phase!=Failed",
                                 .type = {.decode = real_decode_pod, .free = real_free_pod},
                                 .deliver = deliver,
                                 .arg = arg,
                                 .from_etcd = true};
    if (reflector_start(out, real.config, &real.options, &c, &err) < 0)
        die(err.text);
}
