// SPDX-License-Identifier: Apache-2.0
/*
 * bench_isolation - what libcosched-gpu.so costs: an allocation with its free, a launch that is not
 * throttled (with a limit of time, and without one), and the start of a program that has nothing to
 * do with CUDA. Each beside the same without the library, in turns, CPU time; medians of ROUNDS.
 * The fake driver is the baseline: a real one takes longer.
 */
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device-plugin/isolation/limits.h"
#include "lib/base/str.h"
#include "test/bench/result.h"
#include "test/fake/cuda/card.h"

enum { ROUNDS = 9, TIMES = 200000, STARTS = 100, PATH = 512 };

static char dir[PATH] = "/tmp/cosched-bench-XXXXXX";
static const char *build;
extern char **environ;

static void put(const char *name, const void *bytes, size_t len)
{
    char path[PATH + 32];
    (void)str_format(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
        result_fail(path, "cannot be written");
    close(fd);
}

/* A container with all of a card's memory but one MiB, and this part of its time. */
static void container(uint32_t percent)
{
    static char text[LIMITS_BYTES_MAX];
    struct limits l = {.len = 1};
    l.cards[0] = (struct limits_card){.uuid = {0, 0, 0, 0, 0, 0, 0x40, 0, 0x80},
                                      .bytes = UINT64_C(1023) << 20,
                                      .percent = percent};
    size_t n = region_bytes(REGION_SLOTS, 1);
    void *region = calloc(1, n);
    struct region r;
    region_format(region, REGION_SLOTS, 1);
    if (!region_open(&r, region, n))
        result_fail("region", "cannot be made");
    region_card(&r, 0)->cost_ns = 200; /* so that a launch of nothing is not throttled */
    put("limits", text, limits_print(&l, text, sizeof text));
    put("region", region, n);
    free(region);
}

static int64_t worker(const char *what, bool preloaded)
{
    char command[4 * PATH];
    long long ns = -1;
    (void)str_format(command, sizeof command,
                     "printf 'init\\nprimary 0\\nbench %s %d\\n' | env COSCHED_FAKE_CUDA=%s/cards "
                     "LD_LIBRARY_PATH=%s/lib %s%s%s %s/test/fake/cuda_worker | tail -n 1",
                     what, TIMES, dir, build, preloaded ? "LD_PRELOAD=" : "", preloaded ? dir : "",
                     preloaded ? "/libcosched-gpu.so" : "", build);
    FILE *f = popen(command, "r");
    if (f == NULL || fscanf(f, "0 %lld", &ns) != 1 || pclose(f) != 0)
        result_fail(what, "the worker failed");
    return ns;
}

static int64_t children_us(void)
{
    struct rusage u;
    getrusage(RUSAGE_CHILDREN, &u);
    return (int64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000 + u.ru_utime.tv_usec +
           u.ru_stime.tv_usec;
}

/* Microseconds to start and end a program. */
static int64_t start(bool preloaded)
{
    char variable[PATH + 64], *with[] = {variable, NULL}, *argv[] = {(char[]){"true"}, NULL};
    char *without[] = {NULL};
    (void)str_format(variable, sizeof variable, "LD_PRELOAD=%s/libcosched-gpu.so", dir);
    int64_t before = children_us();
    for (int i = 0; i < STARTS; i++) {
        pid_t pid;
        int status;
        if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, preloaded ? with : without) != 0 ||
            waitpid(pid, &status, 0) != pid || status != 0)
            result_fail("/bin/true", "cannot be started");
    }
    return (children_us() - before) / STARTS;
}

/* goal: of the difference. */
static void report(const char *name, int64_t with[ROUNDS], int64_t without[ROUNDS],
                   const char *unit, int64_t goal)
{
    int64_t a = quantile(with, ROUNDS, 50), b = quantile(without, ROUNDS, 50);
    struct result f = {.name = name,
                       .unit = unit,
                       .value = (double)(a - b),
                       .baseline = (double)b,
                       .ratio = b > 0 ? (double)a / (double)b : 0,
                       .goal = (double)goal,
                       .met = result_met(a - b <= goal)};
    result_print(&f, "with=%lld", (long long)a);
}

static void compare(const char *name, const char *what, uint32_t percent, int64_t goal)
{
    int64_t with[ROUNDS], without[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        container(percent);
        with[i] = worker(what, true);
        without[i] = worker(what, false);
    }
    report(name, with, without, "ns", goal);
}

int main(void)
{
    static const char *const names[] = {"cards", "limits", "region", "libcosched-gpu.so"};
    char path[2 * PATH], library[PATH_MAX];
    int64_t with[ROUNDS], without[ROUNDS];
    build = getenv("BUILD_DIR") != NULL ? getenv("BUILD_DIR") : "build/release";
    (void)str_format(path, sizeof path, "%s/lib/libcosched-gpu.so", build);
    if (mkdtemp(dir) == NULL || realpath(path, library) == NULL)
        result_fail(path, "is not built");
    (void)str_format(path, sizeof path, "%s/libcosched-gpu.so", dir);
    if (symlink(library, path) < 0)
        result_fail(path, "cannot be made");
    (void)str_format(path, sizeof path, "%s/cards", dir);
    if (!card_create(path, UINT64_C(1) << 30, 0))
        result_fail(path, "cannot be made");
    compare("isolation_alloc_and_free", "alloc", 100, 500);
    compare("isolation_launch", "launch", 99, 150);
    compare("isolation_launch_without_limit_of_time", "launch", 100, 150);
    for (int i = 0; i < ROUNDS; i++) {
        with[i] = start(true);
        without[i] = start(false);
    }
    report("isolation_program_start", with, without, "us", 500);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)str_format(path, sizeof path, "%s/%s", dir, names[i]);
        (void)unlink(path);
    }
    return rmdir(dir) == 0 ? 0 : 1;
}
