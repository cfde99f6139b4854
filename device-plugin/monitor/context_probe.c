// SPDX-License-Identifier: Apache-2.0
/*
 * context_probe - one card after the other, each once:
 *
 *   start (child) ─► it is ready ─► the next scan of the cards shows its memory: measured ─► end
 *                 └─► it exits, or times out: unknown, contexts on this card are not charged
 *
 * The driver reports host process ids. In a pod without hostPID they do not match, and nothing is
 * charged. The containers' own figures are not used: they could inflate the contexts of others.
 */
#include "device-plugin/monitor/context_probe.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device-plugin/isolation/limits.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"

enum { LOOKS_MAX = 30, MIB_MAX = 16 * 1024 };

struct context_probe {
    const char *program, *cuda_library;
    _Atomic int32_t *mib;
    char tried[GPU_CARDS_MAX][BACKEND_UUID_SIZE]; /* by index */
    pid_t pid;                                    /* 0: no child runs */
    int to, from;                                 /* the child's input and output */
    int32_t card;
    int looks;
    bool ready, ending;
};

struct context_probe *context_probe_new(const char *program, const char *cuda_library,
                                        _Atomic int32_t *mib)
{
    struct context_probe *c = mem_new(struct context_probe, 1);
    c->program = program;
    c->cuda_library = cuda_library;
    c->mib = mib;
    c->to = c->from = -1;
    return c;
}

static void let_go(struct context_probe *c)
{
    if (c->to >= 0)
        close(c->to);
    if (c->from >= 0)
        close(c->from);
    c->to = c->from = -1;
}

/* Kills the child, which may hang in the driver; later calls reap it. */
static void end(struct context_probe *c)
{
    let_go(c);
    (void)kill(c->pid, SIGKILL);
    c->ending = true;
}

void context_probe_free(struct context_probe *c)
{
    if (c == NULL)
        return;
    if (c->pid > 0) {
        if (!c->ending)
            end(c);
        (void)waitpid(c->pid, NULL, WNOHANG);
    }
    let_go(c);
    free(c);
}

/* ---- the child ---- */

int context_probe_run(const char *cuda_library, const char *uuid)
{
    unsigned char wanted[16], has[16];
    int (*init)(unsigned), (*count)(int *), (*get)(int *, int), (*uuid_of)(void *, int),
        (*retain)(void **, int);
    int n = 0, device = 0;
    void *context = NULL, *library = dlopen(cuda_library, RTLD_NOW | RTLD_LOCAL);
    char byte = 'r';
    if (library == NULL || !limits_uuid(uuid, strlen(uuid), wanted))
        return 3;
    *(void **)&init = dlsym(library, "cuInit");
    *(void **)&count = dlsym(library, "cuDeviceGetCount");
    *(void **)&get = dlsym(library, "cuDeviceGet");
    *(void **)&uuid_of = dlsym(library, "cuDeviceGetUuid");
    *(void **)&retain = dlsym(library, "cuDevicePrimaryCtxRetain");
    if (init == NULL || count == NULL || get == NULL || uuid_of == NULL || retain == NULL ||
        init(0) != 0 || count(&n) != 0)
        return 4;
    for (int i = 0; i < n; i++) {
        if (get(&device, i) != 0 || uuid_of(has, device) != 0 ||
            memcmp(has, wanted, sizeof has) != 0)
            continue;
        if (retain(&context, device) != 0 || write(STDOUT_FILENO, &byte, 1) != 1)
            return 5;
        while (read(STDIN_FILENO, &byte, 1) > 0)
            ;
        return 0;
    }
    return 6;
}

/* Between fork and exec: async-signal-safe calls only. */
static void become(const struct context_probe *c, const char *uuid, int in, int out, pid_t parent)
{
    union { /* execv does not change them */
        const char *given[5];
        char *argv[5];
    } a = {{c->program, CONTEXT_PROBE_PROBE, c->cuda_library, uuid, NULL}};
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent && dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0)
        (void)execv(c->program, a.argv);
    _exit(127);
}

/* ---- the parent ---- */

static void start(struct context_probe *c, const struct gpu_card *card)
{
    int in[2], out[2];
    pid_t parent = getpid();
    (void)str_format(c->tried[card->index], BACKEND_UUID_SIZE, "%s", card->uuid);
    if (pipe2(in, O_CLOEXEC) < 0)
        return;
    if (pipe2(out, O_CLOEXEC | O_NONBLOCK) < 0) {
        close(in[0]);
        close(in[1]);
        return;
    }
    c->pid = fork();
    if (c->pid == 0)
        become(c, card->uuid, in[0], out[1], parent);
    close(in[0]);
    close(out[1]);
    c->to = in[1];
    c->from = out[0];
    c->card = card->index;
    c->looks = 0;
    c->ready = c->ending = false;
    if (c->pid < 0) {
        log_warn("the memory of a CUDA context cannot be measured", kv("errno", errno));
        c->pid = 0;
        let_go(c);
    }
}

static void give_up(const struct context_probe *c, const char *why)
{
    log_warn("the memory of a CUDA context is unknown: it is not charged to containers",
             kv("card", c->card), kv("why", why));
}

static void follow(struct context_probe *c, const struct scan_message *l)
{
    int status = 0;
    char byte;
    if (waitpid(c->pid, &status, WNOHANG) == c->pid) {
        if (!c->ending)
            give_up(c, WIFEXITED(status) && WEXITSTATUS(status) == 3
                           ? "there is no CUDA driver here"
                           : "no context could be made");
        c->pid = 0;
        let_go(c);
        return;
    }
    if (c->ending)
        return;
    /* The scan that arrived with the child's message may have begun before it. */
    for (size_t i = 0; c->ready && i < l->processes_len; i++) {
        const struct usage_process *p = &l->processes[i];
        if (p->pid != c->pid || p->card != c->card || p->mib < 0 || p->mib > MIB_MAX)
            continue;
        log_info("the memory of a CUDA context", kv("card", c->card), kv("mib", p->mib));
        atomic_store(&c->mib[c->card], (int32_t)p->mib);
        end(c);
        return;
    }
    c->ready = c->ready || read(c->from, &byte, 1) == 1;
    if (++c->looks > LOOKS_MAX) {
        give_up(
            c,
            c->ready
                ? "the driver does not list the process: does this program have the host's process ids?"
                : "the driver does not answer");
        end(c);
    }
}

void context_probe_scan(struct context_probe *c, const struct scan_message *l, bool wanted)
{
    if (c->pid > 0) {
        follow(c, l);
        return;
    }
    for (size_t i = 0; wanted && c->pid == 0 && i < l->sight.inventory.cards_len; i++) {
        const struct gpu_card *card = &l->sight.inventory.cards[i];
        if (card->index < 0 || card->index >= GPU_CARDS_MAX || !l->sight.cards[i].processes_known ||
            str_eq(c->tried[card->index], card->uuid))
            continue;
        atomic_store(&c->mib[card->index], 0);
        start(c, card);
    }
}
