// SPDX-License-Identifier: Apache-2.0
/*
 * bench_pin - what pinning brings to a container that waits for work: how late it wakes up beside a
 * noisy neighbour, with CPUs of its own and without.
 *
 * The sleeper asks to be woken every millisecond and notes how late it was. The neighbour is as
 * many threads as there are CPUs, which compute without a pause. The two are in two cgroups that
 * are made as the kubelet makes those of two pods, and it is the device plugin's own code that
 * writes their CPUs:
 *
 *   free     both may use all CPUs, as in a cluster without pinning
 *   pinned   the sleeper has one CPU, and the neighbour the others (as with --shared-pool, or when
 *            both are pinned)
 *   beside   the sleeper has one CPU, and the neighbour, which is not pinned, may use it as well
 *
 * Rounds of the three follow each other, so that whatever else the machine does is shared by all.
 * What is compared is the 99th percentile and the longest; the figures are this machine's, whatever
 * they are, and nothing here is a goal. Needs root and the kernel's cpuset groups (v1 or v2); ends
 * with status 1 without them.
 *
 *     bench_pin [ROUNDS [MILLISECONDS]]
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "device-plugin/cpu/cgroups.h"
#include "device-plugin/cpu/cpuinfo.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "test/bench/result.h"

enum { PERIOD_NS = 1000 * 1000, SAMPLES_MAX = 1 << 20 };
enum way { FREE, PINNED, BESIDE, WAYS };

static const char *const way_names[] = {"free", "pinned", "beside"};

struct samples {
    int64_t *late_ns;
    size_t len;
};

static struct cgroups g;
static char sleeper_group[64], noisy_group[64];

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- the neighbour: a process of its own, since a group has processes ---- */

static void *burn(void *arg)
{
    volatile uint64_t x = 1;
    (void)arg;
    for (;;)
        x = x * 6364136223846793005U + 1;
    return NULL;
}

static pid_t start_noise(unsigned threads)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned i = 1; i < threads; i++) {
        pthread_t t;
        if (pthread_create(&t, NULL, burn, NULL) != 0)
            _exit(1);
    }
    (void)burn(NULL);
    _exit(0);
}

/* ---- groups ---- */

static void give_up(const char *what, const struct error *err)
{
    fprintf(stderr, "bench_pin: %s: %s\n", what, err->text);
    exit(1);
}

static void enter(const char *group, pid_t pid)
{
    char path[CGROUPS_PATH_SIZE];
    FILE *f = cgroups_full(&g, group, "cgroup.procs", path) ? fopen(path, "we") : NULL;
    if (f == NULL || fprintf(f, "%ld", (long)pid) < 0 || fclose(f) != 0) {
        fprintf(stderr, "bench_pin: %s: %s\n", path, strerror(errno));
        exit(1);
    }
}

static void make_group(char out[64], const char *name)
{
    char path[CGROUPS_PATH_SIZE];
    (void)str_format(out, 64, "cosched-bench-%ld-%s", (long)getpid(), name);
    if (!cgroups_full(&g, out, NULL, path) || mkdir(path, 0755) < 0) {
        fprintf(stderr, "bench_pin: %s: %s\n", path, strerror(errno));
        exit(1);
    }
}

static void remove_groups(void)
{
    char path[CGROUPS_PATH_SIZE];
    if (cgroups_full(&g, sleeper_group, NULL, path))
        (void)rmdir(path);
    if (cgroups_full(&g, noisy_group, NULL, path))
        (void)rmdir(path);
}

static void pin(const char *group, const struct cpuset *cpus)
{
    struct error err = ERROR_INIT;
    struct cpuset mems;
    bool wrote;
    /* On v1 a new group has no memory nodes either, and takes no process without. */
    const char *file = g.v2 ? "cpuset.mems.effective" : "cpuset.mems";
    if (cgroups_read(&g, ".", file, &mems, &err) < 0 ||
        cgroups_pin(&g, group, cpus, &mems, &wrote, &err) < 0)
        give_up(group, &err);
}

static void arrange(enum way way, const struct cpuset *all)
{
    struct cpuset own = {{0}}, others = *all;
    int last = -1;
    for (int cpu = -1; (cpu = cpuset_next(all, cpu)) >= 0;)
        last = cpu;
    cpuset_add(&own, (unsigned)last);
    cpuset_subtract(&others, &own);
    pin(sleeper_group, way == FREE ? all : &own);
    pin(noisy_group, way == PINNED ? &others : all);
}

/* ---- the sleeper ---- */

static void sleep_and_note(struct samples *s, int64_t ms)
{
    int64_t begin = now_ns(), due = begin;
    while (due - begin < ms * 1000000 && s->len < SAMPLES_MAX) {
        due += PERIOD_NS;
        struct timespec until = {.tv_sec = due / 1000000000, .tv_nsec = due % 1000000000};
        (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        int64_t late = now_ns() - due;
        s->late_ns[s->len++] = late;
        if (late > PERIOD_NS) /* what was slept through is not slept again */
            due += late - late % PERIOD_NS;
    }
}

static int64_t percentile(const struct samples *s, size_t per_mille)
{
    size_t at = s->len * per_mille / 1000;
    return s->len == 0 ? 0 : s->late_ns[at < s->len ? at : s->len - 1];
}

static void tell(struct samples all[WAYS], int64_t rounds, int64_t ms)
{
    printf(
        "how late a sleeper wakes up that asks for every millisecond, beside computing threads on all CPUs, %" PRId64
        " rounds of %" PRId64 " ms each:\n"
        "            wake-ups      median        99 %%      99.9 %%     longest\n",
        rounds, ms);
    for (int w = 0; w < WAYS; w++) {
        struct samples *s = &all[w];
        qsort(s->late_ns, s->len, sizeof *s->late_ns, ascending);
        printf("  %-8s %9zu %8.1f us %8.1f us %8.1f us %8.1f us\n", way_names[w], s->len,
               (double)percentile(s, 500) / 1e3, (double)percentile(s, 990) / 1e3,
               (double)percentile(s, 999) / 1e3, (double)percentile(s, 1000) / 1e3);
    }
}

/* Each against the way without pinning; they are sorted. */
static void print_results(struct samples all[WAYS])
{
    static const struct {
        const char *name;
        enum way way;
        size_t per_mille;
    } rows[] = {{"pin_wakeup_p99", PINNED, 990},
                {"pin_wakeup_p999", PINNED, 999},
                {"pin_wakeup_longest", PINNED, 1000},
                {"pin_wakeup_beside_p99", BESIDE, 990}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct result f = {.name = rows[i].name,
                           .unit = "us",
                           .places = 1,
                           .value = (double)percentile(&all[rows[i].way], rows[i].per_mille) / 1e3,
                           .baseline = (double)percentile(&all[FREE], rows[i].per_mille) / 1e3};
        result_print(&f, "%s", "");
    }
}

int main(int argc, char **argv)
{
    struct error err = ERROR_INIT;
    struct cpuset online;
    struct samples all[WAYS] = {{0}};
    int64_t rounds = 5, ms = 1000;
    if ((argc > 1 && num_parse_range(argv[1], 1, 1000, &rounds, &err) < 0) ||
        (argc > 2 && num_parse_range(argv[2], 10, 60000, &ms, &err) < 0))
        give_up("usage: bench_pin [ROUNDS [MILLISECONDS]]", &err);
    if (cgroups_open(&g, "/sys/fs/cgroup", "", &err) < 0 ||
        cpuinfo_list("/sys", "online", &online, &err) < 0)
        give_up("this machine", &err);
    if (cpuset_count(&online) < 2) {
        fprintf(stderr, "bench_pin: this machine has one CPU: there is nothing to choose\n");
        return 1;
    }
    make_group(sleeper_group, "sleeper");
    make_group(noisy_group, "noisy");
    arrange(FREE, &online);
    pid_t noise = start_noise(cpuset_count(&online));
    enter(noisy_group, noise);
    enter(sleeper_group, getpid());
    for (int w = 0; w < WAYS; w++)
        all[w].late_ns = calloc(SAMPLES_MAX, sizeof *all[w].late_ns);
    for (int64_t r = 0; r < rounds; r++)
        for (int w = 0; w < WAYS; w++) {
            arrange((enum way)w, &online);
            sleep_and_note(&all[w], ms);
        }
    (void)kill(noise, SIGKILL);
    (void)waitpid(noise, NULL, 0);
    enter(".", getpid());
    remove_groups();
    tell(all, rounds, ms);
    print_results(all);
    for (int w = 0; w < WAYS; w++)
        free(all[w].late_ns);
    return 0;
}
