// SPDX-License-Identifier: Apache-2.0
/*
 * mpsd - a child process and when to start it again:
 *
 *   idle ──mpsd_want(true)──► running ──on_end──► waiting (1 s, 2 s, … 30 s) ──start──► running
 *   any ──mpsd_want(false), mpsd_free──► idle: SIGTERM, after a second SIGKILL
 *
 * It runs in the foreground (-f), so a descriptor signals its end, and it gets SIGTERM when we die:
 * an unsupervised daemon would keep the cards under limits of pods that are gone. isolation checks
 * whether it answers.
 */
#include "device-plugin/isolation/mpsd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/model/names.h"

enum { BACKOFF_FIRST_MS = 1000, BACKOFF_MAX_MS = 30 * 1000, END_MS = 1000 };

struct mpsd {
    struct loop *loop;
    char *path, *pipe_dir, *log_dir;
    char *env[5]; /* KEY=VALUE, NULL */
    void (*changed)(void *arg);
    void *arg;
    bool wanted;
    pid_t pid; /* 0: not running */
    int pidfd;
    int64_t backoff_ms;
    struct loop_timer again;
};

static void start(void *arg);

static void on_end(void *arg, uint32_t events)
{
    struct mpsd *m = arg;
    int status = 0;
    (void)events;
    loop_unwatch_fd(m->loop, m->pidfd);
    close(m->pidfd);
    m->pidfd = -1;
    (void)waitpid(m->pid, &status, 0);
    m->pid = 0;
    log_warn("the MPS control daemon has ended and is started again", kv("path", m->path),
             kv("status", WIFEXITED(status) ? WEXITSTATUS(status) : -1),
             kv("signal", WIFSIGNALED(status) ? WTERMSIG(status) : 0), kv("ms", m->backoff_ms));
    if (m->wanted)
        loop_timer_set(m->loop, &m->again, m->backoff_ms, start, m);
    m->backoff_ms = num_min(m->backoff_ms * 2, BACKOFF_MAX_MS);
    m->changed(m->arg);
}

/* In the child, between fork and exec: async-signal-safe calls only. */
static void become(const struct mpsd *m, pid_t parent)
{
    sigset_t none;
    char *argv[] = {m->path, (char[]){"-f"}, NULL};
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == parent)
        (void)execve(m->path, argv, m->env);
    _exit(127);
}

static void start(void *arg)
{
    struct mpsd *m = arg;
    struct error err = ERROR_INIT;
    pid_t parent = getpid();
    if ((mkdir(m->pipe_dir, 0755) < 0 && errno != EEXIST) ||
        (mkdir(m->log_dir, 0755) < 0 && errno != EEXIST))
        log_warn("a directory of the MPS control daemon cannot be made", kv("pipe", m->pipe_dir),
                 kv("log", m->log_dir), kv("errno", errno));
    m->pid = fork();
    if (m->pid == 0)
        become(m, parent);
    m->pidfd = m->pid > 0 ? (int)syscall(SYS_pidfd_open, m->pid, 0) : -1;
    if (m->pidfd < 0 || loop_watch_fd(m->loop, m->pidfd, EPOLLIN, on_end, m, &err) < 0) {
        log_error("the MPS control daemon cannot be started", kv("path", m->path),
                  kv("errno", errno), kv("error", err.text));
        if (m->pid > 0) {
            (void)kill(m->pid, SIGKILL);
            (void)waitpid(m->pid, NULL, 0);
        }
        if (m->pidfd >= 0)
            close(m->pidfd);
        m->pidfd = -1;
        m->pid = 0;
        loop_timer_set(m->loop, &m->again, m->backoff_ms, start, m);
        return;
    }
    log_info("the MPS control daemon is started", kv("path", m->path), kv("pid", m->pid),
             kv("pipe", m->pipe_dir));
    m->changed(m->arg);
}

static void end(struct mpsd *m)
{
    loop_timer_cancel(m->loop, &m->again);
    if (m->pid == 0)
        return;
    loop_unwatch_fd(m->loop, m->pidfd);
    (void)kill(m->pid, SIGTERM);
    struct pollfd ended = {.fd = m->pidfd, .events = POLLIN};
    if (poll(&ended, 1, END_MS) <= 0)
        (void)kill(m->pid, SIGKILL);
    (void)waitpid(m->pid, NULL, 0);
    close(m->pidfd);
    m->pidfd = -1;
    m->pid = 0;
}

static char *pair(const char *key, const char *value)
{
    struct strbuf b;
    strbuf_init(&b);
    strbuf_addf(&b, "%s=%s", key, value);
    return strbuf_take(&b);
}

void mpsd_new(struct mpsd **out, struct loop *loop, const char *path, const char *pipe_dir,
              const char *log_dir, void (*changed)(void *arg), void *arg)
{
    /* Limits for all clients of the daemon: what a client's own environment says counts only below
     * them. */
    static const char *const limits[] = {NAME_ENV_MPS_MEM, NAME_ENV_MPS_THREADS};
    struct mpsd *m = mem_new(struct mpsd, 1);
    *m = (struct mpsd){
        .loop = loop,
        .path = mem_strdup(path),
        .pipe_dir = mem_strdup(pipe_dir),
        .log_dir = mem_strdup(log_dir),
        .env = {pair(NAME_ENV_MPS_PIPE, pipe_dir), pair("CUDA_MPS_LOG_DIRECTORY", log_dir), NULL},
        .changed = changed,
        .arg = arg,
        .pidfd = -1,
        .backoff_ms = BACKOFF_FIRST_MS};
    for (size_t i = 0, at = 2; i < sizeof limits / sizeof limits[0]; i++)
        if (getenv(limits[i]) != NULL)
            m->env[at++] = pair(limits[i], getenv(limits[i]));
    *out = m;
}

void mpsd_free(struct mpsd *m)
{
    if (m == NULL)
        return;
    end(m);
    free(m->path);
    free(m->pipe_dir);
    free(m->log_dir);
    for (size_t i = 0; m->env[i] != NULL; i++)
        free(m->env[i]);
    free(m);
}

void mpsd_want(struct mpsd *m, bool run)
{
    if (m->wanted == run)
        return;
    m->wanted = run;
    m->backoff_ms = BACKOFF_FIRST_MS;
    if (run)
        start(m);
    else
        end(m);
}
