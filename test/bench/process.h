// SPDX-License-Identifier: Apache-2.0
/*
 * process - what benchmarks of whole programs share: children that are started, watched by their
 * /proc and always ended.
 *
 * A header of static functions, since each file in this folder is a program of its own. Whatever
 * goes wrong ends the benchmark, and its children first.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "test/bench/result.h"

enum { PROCESS_MAX = 16, ROUNDS_MAX = 16 };

static pid_t process_children[PROCESS_MAX];
static void (*process_at_end)(void); /* undoes what is not a child */

static inline void process_end_all(void)
{
    for (int i = 0; i < PROCESS_MAX; i++) {
        if (process_children[i] > 0) {
            kill(process_children[i], SIGKILL);
            waitpid(process_children[i], NULL, 0);
        }
        process_children[i] = 0;
    }
    void (*at_end)(void) = process_at_end;
    process_at_end = NULL;
    if (at_end)
        at_end();
}

static inline _Noreturn void die(const char *what)
{
    fprintf(stderr, "bench: %s (%s)\n", what, strerror(errno));
    process_end_all();
    exit(1);
}

static volatile sig_atomic_t process_interrupted;
static inline void process_interrupt(int signo)
{
    (void)signo;
    process_interrupted = 1;
}

/* Ctrl-C ends the children too: waiting loops check this. */
static inline void process_check(void)
{
    if (process_interrupted)
        die("interrupted");
}

static inline void process_init(void)
{
    struct sigaction sa = {.sa_handler = process_interrupt};
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IOLBF, 0);
}

/* "bin/cosched-local" below the build directory. */
static inline void process_program(char *out, size_t size, const char *name)
{
    const char *build = getenv("BUILD_DIR");
    str_format(out, size, "%s/%s", build ? build : "build/release", name);
}

/* stdout and stderr go where they are given; -1: to ours. */
static inline pid_t process_start(const char *const *argv, int out_fd, int err_fd)
{
    int slot = 0;
    while (slot < PROCESS_MAX && process_children[slot] > 0)
        slot++;
    if (slot == PROCESS_MAX)
        die("too many children");
    pid_t pid = fork();
    if (pid < 0)
        die("fork");
    if (pid == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        if (out_fd >= 0)
            dup2(out_fd, STDOUT_FILENO);
        if (err_fd >= 0)
            dup2(err_fd, STDERR_FILENO);
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    process_children[slot] = pid;
    return pid;
}

/* Its exit status; the child is not ours any more. */
static inline int process_wait(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        process_check();
    for (int i = 0; i < PROCESS_MAX; i++)
        if (process_children[i] == pid)
            process_children[i] = 0;
    return status;
}

static inline void process_stop(pid_t pid)
{
    kill(pid, SIGTERM);
    if (process_wait(pid) != 0)
        die("a program did not end with 0");
}

static inline bool process_is_alive(pid_t pid)
{
    int status;
    return waitpid(pid, &status, WNOHANG) == 0;
}

static inline void process_read(int fd, struct strbuf *out)
{
    for (;;) {
        strbuf_reserve(out, 65536);
        ssize_t n = read(fd, out->ptr + out->len, 65535);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        out->len += (size_t)n;
        out->ptr[out->len] = '\0';
    }
}

static inline void process_read_file(const char *path, struct strbuf *out)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    process_read(fd, out);
    close(fd);
}

/* Runs it to its end; what it printed is added to out (NULL: shown). Must exit with 0. */
static inline void process_run(const char *const *argv, struct strbuf *out)
{
    int ends[2] = {-1, -1};
    if (out && pipe2(ends, O_CLOEXEC) < 0)
        die("pipe");
    pid_t pid = process_start(argv, ends[1], -1);
    if (out) {
        close(ends[1]);
        process_read(ends[0], out);
        close(ends[0]);
    }
    if (process_wait(pid) != 0)
        die(argv[1] ? argv[1] : argv[0]);
}

static inline int64_t process_number_after(const char *text, const char *word)
{
    const char *at = word ? strstr(text, word) : text;
    if (!at)
        return 0;
    at += word ? strlen(word) : 0;
    at += strspn(at, " \t");
    int64_t n = 0;
    num_parse(at, strspn(at, "0123456789"), &n, NULL);
    return n;
}

static inline void process_proc(pid_t pid, const char *name, struct strbuf *out)
{
    char path[64];
    str_format(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    process_read_file(path, out);
}

/* User and system time of all its threads. */
static inline int64_t process_cpu_us(pid_t pid)
{
    AUTO_STRBUF text = {0};
    process_proc(pid, "stat", &text);
    const char *at = strrchr(strbuf_str(&text), ')'); /* then fields 3 on; utime is 14 */
    for (int field = 2; at && field < 14; field++)
        at = strchr(at + 1, ' ');
    if (!at)
        return 0;
    int64_t utime = process_number_after(at + 1, NULL);
    int64_t stime = process_number_after(strchr(at + 1, ' ') + 1, NULL);
    return (utime + stime) * (1000000 / sysconf(_SC_CLK_TCK));
}

/* word: "VmRSS:" or "VmHWM:" (the peak). */
static inline int64_t process_memory_mib(pid_t pid, const char *word)
{
    AUTO_STRBUF text = {0};
    process_proc(pid, "status", &text);
    return process_number_after(strbuf_str(&text), word) / 1024;
}

/* A field of the first line of /proc/stat, all cores together: 1 user, 4 idle, 5 waiting for disks,
 * 8 stolen by the host. */
static inline int64_t process_ticks(int field)
{
    AUTO_STRBUF text = {0};
    process_read_file("/proc/stat", &text);
    const char *at = strbuf_str(&text);
    for (int i = 0; at && i < field; i++) {
        at = strchr(at, ' ');
        at = at ? at + strspn(at, " ") : NULL;
    }
    return at ? process_number_after(at, NULL) : 0;
}

/* Reports the current load of the machine before the first figure. true: too busy for figures that
 * depend on it. */
static inline bool process_is_noisy(void)
{
    enum { LOOK_MS = 1000, BUSY_PERCENT = 25 };
    int64_t cores = sysconf(_SC_NPROCESSORS_ONLN), tick_ms = 1000 / sysconf(_SC_CLK_TCK);
    int64_t idle = process_ticks(4) + process_ticks(5), began_ms = clock_mono_ms();
    clock_sleep_ms(LOOK_MS);
    idle = (process_ticks(4) + process_ticks(5) - idle) * tick_ms;
    int64_t all = num_max((clock_mono_ms() - began_ms) * cores, 1);
    int64_t percent = num_max(100 - idle * 100 / all, 0);
    bool noisy = percent > BUSY_PERCENT;
    printf("others use %lld %% of %lld cores at the start\n", (long long)percent, (long long)cores);
    if (noisy)
        printf("NOISY: others use the machine; goals of time are not judged, repeat when it is "
               "quiet\n");
    return noisy;
}
