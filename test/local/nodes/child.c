// SPDX-License-Identifier: Apache-2.0
#include "test/local/nodes/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

void child_init(struct child *c)
{
    *c = (struct child){.pidfd = -1};
    pthread_mutex_init(&c->lock, NULL);
}

void child_deinit(struct child *c)
{
    pthread_mutex_destroy(&c->lock);
}

/* Between fork and exec in a program with threads: only what may be called in a signal handler. */
static _Noreturn void become(char *const *argv, int log, pid_t parent)
{
    sigset_t none;
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(127);
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing < 0 || dup2(nothing, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
        _exit(127);
    (void)close_range(3, ~0U, 0);
    (void)execv(argv[0], argv);
    static const char sorry[] = "cannot be executed\n";
    (void)!write(2, sorry, sizeof sorry - 1);
    _exit(127);
}

int child_start(struct child *c, const char *const *argv, const char *log_path, struct error *err)
{
    AUTO_CLOSE int log = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log < 0)
        return error_errno(err, errno, "%s", log_path);
    char *const *plain;
    memcpy(&plain, &argv, sizeof plain); /* execv changes nothing in it */
    pid_t parent = getpid();
    pid_t pid = _Fork(); /* without the fork handlers of the libraries: exec follows at once */
    if (pid == 0)
        become(plain, log, parent);
    if (pid < 0)
        return error_errno(err, errno, "fork");
    int fd = pidfd_open(pid, 0);
    if (fd < 0) {
        int why = errno;
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        return error_errno(err, why, "pidfd_open");
    }
    pthread_mutex_lock(&c->lock);
    c->pid = pid;
    c->pidfd = fd;
    pthread_mutex_unlock(&c->lock);
    return 0;
}

static void forget(struct child *c)
{
    pthread_mutex_lock(&c->lock);
    (void)close(c->pidfd);
    c->pidfd = -1;
    c->pid = 0;
    pthread_mutex_unlock(&c->lock);
}

bool child_reap(struct child *c, int *status)
{
    if (c->pid == 0 || waitpid(c->pid, status, WNOHANG) != c->pid)
        return false;
    forget(c);
    return true;
}

void child_signal(struct child *c, int signo)
{
    pthread_mutex_lock(&c->lock);
    if (c->pidfd >= 0)
        (void)pidfd_send_signal(c->pidfd, signo, NULL, 0);
    pthread_mutex_unlock(&c->lock);
}

void child_stop(struct child *c, int64_t wait_ms)
{
    if (c->pid == 0)
        return;
    child_signal(c, SIGCONT);
    child_signal(c, SIGTERM);
    struct pollfd ended = {.fd = c->pidfd, .events = POLLIN};
    int n;
    do
        n = poll(&ended, 1, (int)wait_ms);
    while (n < 0 && errno == EINTR);
    if (n == 0)
        child_signal(c, SIGKILL);
    (void)waitpid(c->pid, NULL, 0);
    forget(c);
}
