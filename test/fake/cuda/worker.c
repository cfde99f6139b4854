// SPDX-License-Identifier: Apache-2.0
/*
 * A program that uses CUDA and does what it is told: one command on each line of the standard
 * input, one line of answer to each. It knows nothing of the library that is preloaded into it.
 *
 *   path link|dlsym|dlvsym|default|next|proc|proc2|ptsz   how it finds the driver's functions from
 *                                                         now on
 *   init | ctx CARD | ctxdestroy | primary CARD | release CARD | reset CARD
 *   alloc KIND BYTES      plain managed pitch async pool create map array array3d mipmap layers
 *                         graph (a node of one), upload (one that is uploaded), ownpool (made for
 *                         it), pool0 and stream0 (of card 0, whatever is current), old oldpitch
 *                         oldarray oldarray3d (the first forms); answers the code and its number
 *   free NUMBER           answers the code
 *   info | total CARD     bytes
 *   launch NS TIMES | ex NS TIMES | coop NS TIMES | old NS TIMES | multi NS TIMES (two kernels
 *   each) | graph NS NODES TIMES | mixed NS NODES TIMES (every second node does nothing) | sync
 *   trim                  all pools of card 0
 *   oldrelease CARD | oldreset CARD | oldctx CARD | olddestroy | attach | detach     the first
 *                                                                                    forms for
 *                                                                                    contexts
 *   oldinfo | oldtotal CARD                                          and for sizes
 *   share NUMBER PATH | open PATH | close    writes a handle of IPC for others; uses one, and lets
 *                                            go of it
 *   export NUMBER | import PID FD | drop     the same for physical memory, by a file descriptor
 *   thread KIND BYTES     alloc by another thread
 *   threads COUNT TIMES SEED     that many threads take and let go the primary context, allocate
 *                                and free at random, in contexts of their own
 *                         too; answers how many were refused
 *   bench alloc|launch TIMES     nanoseconds of CPU time for each
 *   random BYTES SECONDS SEED    allocates and frees at random; answers how often it got memory
 *   fork                  the rest is done by a child; this process waits for it
 *   exec | die            becomes another program, which sleeps; is killed
 *   nvml CARD             what NVML says of its memory: free and total
 *   next                  is dlsym(RTLD_NEXT, "getpid") the C library's, and an unknown name an
 *                         error?
 */
#include "test/fake/cuda/worker.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THINGS = 65536 };
static struct thing things[THINGS];
static int things_len;
static CUcontext context;

static const char *const kinds[] = {"plain", "managed", "create",  "map",   "array",
                                    "async", "pitch",   "ownpool", "graph", "mipmap",
                                    "old",   "pool",    "oldarray"};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static void random_work(size_t bytes, int seconds, uint64_t x)
{
    long got = 0, refused = 0;
    struct timespec now, end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += seconds;
    do {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        if (things_len < 8 && x % 3 != 0) {
            CUresult r =
                worker_allocate(&things[things_len], kinds[x / 8 % KINDS], 1 + x / 64 % bytes);
            things_len += r == 0;
            got += r == 0;
            refused += r == CUDA_ERROR_OUT_OF_MEMORY;
            if (r != 0 && r != CUDA_ERROR_OUT_OF_MEMORY)
                exit(4);
        } else if (things_len > 0) {
            int i = (int)(x / 8 % (uint64_t)things_len);
            if (worker_let_go(&things[i]) != 0)
                exit(5);
            things[i] = things[--things_len];
        }
        if (x / 512 % 8 == 0) /* others want to run as well */
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
    while (things_len > 0)
        (void)worker_let_go(&things[--things_len]);
    printf("%ld %ld\n", got, refused);
}

struct crowd {
    uint64_t seed;
    long times;
    atomic_int *refused, *failed;
};

static void *in_crowd(void *arg)
{
    const struct crowd *w = arg;
    uint64_t x = w->seed;
    for (long i = 0; i < w->times; i++) {
        CUcontext c, own;
        struct thing held[4];
        CUresult r = cu.cuDevicePrimaryCtxRetain(&c, 0);
        atomic_fetch_add(w->refused, r == CUDA_ERROR_OUT_OF_MEMORY);
        if (r != 0)
            continue;
        (void)cu.cuCtxSetCurrent(c);
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        bool inner = x % 4 == 0 && cu.cuCtxCreate(&own, 0, 0) == 0;
        int n = 0;
        for (int k = 0; k < 4; k++) {
            r = worker_allocate(&held[n], kinds[(x >> (8 * k)) % KINDS], 1 + x % (6 << 20));
            n += r == 0;
            atomic_fetch_add(w->refused, r == CUDA_ERROR_OUT_OF_MEMORY);
            atomic_fetch_add(w->failed, r != 0 && r != CUDA_ERROR_OUT_OF_MEMORY);
        }
        for (int k = 0; k < n; k++)
            atomic_fetch_add(w->failed, worker_let_go(&held[k]) != 0);
        atomic_fetch_add(w->failed, inner && cu.cuCtxDestroy(own) != 0);
        atomic_fetch_add(w->failed, cu.cuDevicePrimaryCtxRelease(0) != 0);
    }
    return NULL;
}

static void crowd(unsigned count, long times, uint64_t seed)
{
    enum { MOST = 16 };
    pthread_t threads[MOST];
    struct crowd work[MOST];
    atomic_int refused = 0, failed = 0;
    for (unsigned i = 0; i < count && i < MOST; i++) {
        work[i] = (struct crowd){seed * 7919 + i + 1, times, &refused, &failed};
        pthread_create(&threads[i], NULL, in_crowd, &work[i]);
    }
    for (unsigned i = 0; i < count && i < MOST; i++)
        pthread_join(threads[i], NULL);
    printf("%d %d\n", failed, refused);
}

static CUresult launch(const char *how, uint64_t ns, long times, long nodes)
{
    char name[40];
    CUfunction f;
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec exec = NULL;
    CUlaunchConfig config = {0};
    snprintf(name, sizeof name, "busy_%llu", (unsigned long long)ns);
    CUresult r = cu.cuModuleGetFunction(&f, NULL, name);
    if (r == 0 && nodes > 0) {
        (void)cu.cuGraphCreate(&graph, 0);
        for (long i = 0; i < nodes; i++)
            (void)(i % 2 == 0 || how[0] == 'g' ? cu.cuGraphAddKernelNode(&node, graph, NULL, 0, &f)
                                               : cu.cuGraphAddEmptyNode(&node, graph, NULL, 0));
        r = cu.cuGraphInstantiateWithFlags(&exec, graph, 0);
    }
    for (long i = 0; r == 0 && i < times; i++) {
        if (nodes > 0)
            r = cu.cuGraphLaunch(exec, NULL);
        else if (strcmp(how, "ex") == 0)
            r = cu.cuLaunchKernelEx(&config, f, NULL, NULL);
        else if (strcmp(how, "coop") == 0)
            r = cu.cuLaunchCooperativeKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL);
        else if (strcmp(how, "old") == 0)
            r = i % 3 == 0   ? cu.cuLaunch(f)
                : i % 3 == 1 ? cu.cuLaunchGrid(f, 1, 1)
                             : cu.cuLaunchGridAsync(f, 1, 1, NULL);
        else if (strcmp(how, "multi") == 0) {
            struct {
                CUfunction function;
                unsigned grid[3], block[3], shared;
                CUstream stream;
                void **params;
            } list[2] = {{.function = f}, {.function = f}};
            r = cu.cuLaunchCooperativeKernelMultiDevice(list, 2, 0);
        } else
            r = cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    }
    return r;
}

static void nvml(unsigned card)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL), *device;
    int (*init)(void), (*handle)(unsigned, void **), (*memory)(void *, nvmlMemory *);
    nvmlMemory m = {0};
    *(void **)&init = dlsym(library, "nvmlInit_v2");
    *(void **)&handle = dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
    *(void **)&memory = dlsym(library, "nvmlDeviceGetMemoryInfo");
    int r = init() + handle(card, &device) + memory(device, &m);
    printf("%d %llu %llu\n", r, m.free, m.total);
}

static void bench(const char *what, unsigned long long times)
{
    struct timespec a, b;
    CUdeviceptr at;
    CUfunction f;
    (void)cu.cuModuleGetFunction(&f, NULL, "busy_0");
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    for (unsigned long long i = 0; i < times; i++) {
        if (what[0] == 'l') {
            (void)cu.cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
        } else if (cu.cuMemAlloc(&at, 4096) != 0 || cu.cuMemFree(at) != 0) {
            exit(6);
        }
    }
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    long long ns = (long long)(b.tv_sec - a.tv_sec) * 1000000000 + (b.tv_nsec - a.tv_nsec);
    printf("0 %lld\n", ns / (long long)times);
}

struct job {
    char kind[12];
    size_t bytes;
};

static void *in_thread(void *arg)
{
    const struct job *j = arg;
    CUresult r = cu.cuCtxSetCurrent(context);
    r = r != 0 ? r : worker_allocate(&things[things_len], j->kind, j->bytes);
    printf("%d %d\n", r, r == 0 ? things_len++ : -1);
    return NULL;
}

/* Memory that other processes use. */
static bool shared(const char *line)
{
    static CUdeviceptr opened;
    static CUhandle imported;
    char path[100];
    handle64 h = {{0}};
    unsigned n, pid;
    int fd = -1;
    if (sscanf(line, "share %u %99s", &n, path) == 2) {
        CUresult r = cu.cuIpcGetMemHandle(&h, things[n].handle);
        FILE *f = fopen(path, "we");
        printf("%d\n", f != NULL && fwrite(&h, sizeof h, 1, f) == 1 ? r : -1);
        if (f != NULL)
            (void)fclose(f);
    } else if (sscanf(line, "open %99s", path) == 1) {
        FILE *f = fopen(path, "re");
        bool read = f != NULL && fread(&h, sizeof h, 1, f) == 1;
        if (f != NULL)
            (void)fclose(f);
        printf("%d\n", read ? cu.cuIpcOpenMemHandle(&opened, h, 1) : -1);
    } else if (strcmp(line, "close\n") == 0) {
        printf("%d\n", cu.cuIpcCloseMemHandle(opened));
    } else if (sscanf(line, "export %u", &n) == 1) {
        CUresult r = cu.cuMemExportToShareableHandle(&fd, things[n].handle, 1, 0);
        printf("%d %d\n", r, fd);
    } else if (sscanf(line, "import %u %u", &pid, &n) == 2) {
        snprintf(path, sizeof path, "/proc/%u/fd/%u", pid, n);
        fd = open(path, O_RDWR | O_CLOEXEC);
        printf("%d\n", cu.cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)fd, 1));
        close(fd);
    } else if (strcmp(line, "drop\n") == 0) {
        printf("%d\n", cu.cuMemRelease(imported));
    } else {
        return false;
    }
    return true;
}

/* Forms for contexts and sizes that later ones replaced. */
static bool replaced(const char *line)
{
    unsigned card, left = 0, total = 0;
    if (sscanf(line, "oldrelease %u", &card) == 1)
        printf("%d\n", old.cuDevicePrimaryCtxRelease((CUdevice)card));
    else if (sscanf(line, "oldreset %u", &card) == 1)
        printf("%d\n", old.cuDevicePrimaryCtxReset((CUdevice)card));
    else if (sscanf(line, "oldctx %u", &card) == 1)
        printf("%d\n", old.cuCtxCreate(&context, 0, (CUdevice)card));
    else if (strcmp(line, "olddestroy\n") == 0)
        printf("%d\n", old.cuCtxDestroy(context));
    else if (strcmp(line, "attach\n") == 0)
        printf("%d\n", old.cuCtxAttach(&context, 0));
    else if (strcmp(line, "detach\n") == 0)
        printf("%d\n", old.cuCtxDetach(context));
    else if (strcmp(line, "oldinfo\n") == 0) {
        CUresult r = old.cuMemGetInfo(&left, &total);
        printf("%d %u %u\n", r, left, total);
    } else if (sscanf(line, "oldtotal %u", &card) == 1) {
        CUresult r = old.cuDeviceTotalMem(&total, (CUdevice)card);
        printf("%d %u\n", r, total);
    } else {
        return false;
    }
    return true;
}

static void command(const char *line)
{
    char word[16], kind[12] = "";
    unsigned long long a = 0, b = 0, c = 0;
    size_t free_bytes = 0, total = 0;
    if (sscanf(line, "%15s", word) != 1)
        return;
    if (sscanf(line, "path %15s", word) == 1) {
        worker_by(word);
        printf("0\n");
    } else if (strcmp(word, "init") == 0)
        printf("%d\n", cu.cuInit(0));
    else if (sscanf(line, "ctx %llu", &a) == 1)
        printf("%d\n", cu.cuCtxCreate(&context, 0, (int)a));
    else if (strcmp(word, "ctxdestroy") == 0)
        printf("%d\n", cu.cuCtxDestroy(context));
    else if (sscanf(line, "primary %llu", &a) == 1) {
        CUresult r = cu.cuDevicePrimaryCtxRetain(&context, (int)a);
        printf("%d\n", r != 0 ? r : cu.cuCtxSetCurrent(context));
    } else if (sscanf(line, "release %llu", &a) == 1)
        printf("%d\n", cu.cuDevicePrimaryCtxRelease((int)a));
    else if (sscanf(line, "reset %llu", &a) == 1)
        printf("%d\n", cu.cuDevicePrimaryCtxReset((int)a));
    else if (sscanf(line, "alloc %11s %llu", kind, &a) == 2 && things_len < THINGS) {
        CUresult r = worker_allocate(&things[things_len], kind, a);
        printf("%d %d\n", r, r == 0 ? things_len++ : -1);
    } else if (sscanf(line, "free %llu", &a) == 1 && a < (unsigned)things_len)
        printf("%d\n", worker_let_go(&things[a]));
    else if (strcmp(word, "info") == 0) {
        CUresult r = cu.cuMemGetInfo(&free_bytes, &total);
        printf("%d %zu %zu\n", r, free_bytes, total);
    } else if (sscanf(line, "total %llu", &a) == 1) {
        CUresult r = cu.cuDeviceTotalMem(&total, (int)a);
        printf("%d %zu\n", r, total);
    } else if (sscanf(line, "graph %llu %llu %llu", &a, &b, &c) == 3 ||
               sscanf(line, "mixed %llu %llu %llu", &a, &b, &c) == 3)
        printf("%d\n", launch(line, a, (long)c, (long)b));
    else if (sscanf(line, "%*s %llu %llu", &a, &b) == 2 &&
             (strcmp(word, "launch") == 0 || strcmp(word, "ex") == 0 || strcmp(word, "coop") == 0 ||
              strcmp(word, "old") == 0 || strcmp(word, "multi") == 0))
        printf("%d\n", launch(word, a, (long)b, 0));
    else if (strcmp(word, "sync") == 0)
        printf("%d\n", cu.cuCtxSynchronize());
    else if (strcmp(word, "trim") == 0) {
        CUmemoryPool pool;
        CUresult r = cu.cuDeviceGetMemPool(&pool, 0);
        r = r != 0 ? r : cu.cuMemPoolTrimTo(pool, 0);
        printf("%d\n", r != 0 ? r : cu.cuDeviceGraphMemTrim(0));
    } else if (shared(line) || replaced(line)) {
    } else if (sscanf(line, "random %llu %llu %llu", &a, &b, &c) == 3)
        random_work(a, (int)b, c | 1);
    else if (sscanf(line, "threads %llu %llu %llu", &a, &b, &c) == 3)
        crowd((unsigned)a, (long)b, c);
    else if (sscanf(line, "thread %11s %llu", kind, &a) == 2) {
        struct job j = {.bytes = a};
        pthread_t t;
        memcpy(j.kind, kind, sizeof kind);
        pthread_create(&t, NULL, in_thread, &j);
        pthread_join(t, NULL);
    } else if (strcmp(word, "fork") == 0) {
        pid_t child = fork();
        int status;
        if (child > 0) {
            waitpid(child, &status, 0);
            _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 9);
        }
        printf("0\n");
    } else if (strcmp(word, "exec") == 0) {
        printf("0\n");
        fflush(stdout);
        execlp("cat", "cat", (char *)NULL);
    } else if (strcmp(word, "die") == 0)
        kill(getpid(), SIGKILL);
    else if (sscanf(line, "nvml %llu", &a) == 1)
        nvml((unsigned)a);
    else if (sscanf(line, "bench %11s %llu", kind, &a) == 2)
        bench(kind, a);
    else if (strcmp(word, "next") == 0) {
        void *next = dlsym(RTLD_NEXT, "getpid"), *any = dlsym(RTLD_DEFAULT, "getpid");
        bool none = dlsym(RTLD_DEFAULT, "cuNoSuchFunction") == NULL && dlerror() != NULL;
        printf("%d\n", next != NULL && next == any && none ? 0 : 1);
    } else
        printf("not understood: %s", line);
}

int main(void)
{
    char line[128];
    worker_by("link");
    while (fgets(line, sizeof line, stdin) != NULL) {
        command(line);
        fflush(stdout);
    }
    return 0;
}
