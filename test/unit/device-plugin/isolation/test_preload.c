// SPDX-License-Identifier: Apache-2.0
/*
 * The library in real processes, on a driver that counts: every call that allocates, at both sides
 * of the limit; every way to find the driver's functions; processes, threads, fork, exec, death,
 * contexts and resets.
 */
#include "test/unit/device-plugin/isolation/crew.h"

#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/num.h"
#include "test/unit/device-plugin/isolation/measure.h"

enum { LIMIT_MIB = 64 };
#define LIMIT (LIMIT_MIB * MIB)

static int setup(void **state)
{
    struct crew *c = malloc(sizeof *c);
    crew_make(c, NULL, 0, 0);
    crew_limit(c, LIMIT_MIB, 100, 0);
    *state = c;
    return 0;
}

static int teardown(void **state)
{
    crew_end(*state);
    free(*state);
    return 0;
}

static const char *const kinds[] = {"plain",  "managed", "pitch", "async",   "pool",
                                    "create", "map",     "array", "array3d", "mipmap"};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static bool is_pooled(const char *kind)
{
    return strcmp(kind, "async") == 0 || strcmp(kind, "pool") == 0;
}

/* What the driver takes for it. */
static uint64_t really(const char *kind, uint64_t bytes)
{
    uint64_t step = is_pooled(kind) ? 2 * MIB : strcmp(kind, "pitch") == 0 ? 512 : 1;
    return (bytes + step - 1) / step * step;
}

/* With `held` bytes of plain memory taken already, by the same process or by another. */
static void one_row(struct crew *c, struct worker *w, const char *kind, uint64_t held,
                    int64_t beside, int n)
{
    char row[CREW_LINE], line[CREW_LINE];
    uint64_t bytes = (uint64_t)((int64_t)(LIMIT - held) + beside);
    (void)str_format(row, sizeof row, "%s, %llu of %llu held, %lld beside the limit", kind,
                     (unsigned long long)held, (unsigned long long)LIMIT, (long long)beside);
    crew_ask(w, line, "alloc %s %llu", kind, (unsigned long long)bytes);
    char expected[32];
    (void)str_format(expected, sizeof expected, beside > 0 ? "2 -1" : "0 %d", n);
    expect_str(row, expected, line);
    crew_judge(row, c, held + (beside > 0 ? 0 : really(kind, bytes)), LIMIT);
    if (beside > 0)
        return;
    (void)str_format(line, sizeof line, "free %d", n);
    crew_expect(row, w, "0", line);
    if (is_pooled(kind)) {
        crew_judge("a pool keeps what was freed", c, held + really(kind, bytes), LIMIT);
        crew_expect(row, w, "0", "trim");
    }
    crew_judge(row, c, held, LIMIT);
}

static void every_call_at_the_limit(void **state)
{
    struct crew *c = *state;
    static const int64_t beside[] = {-1, 0, 1};
    struct worker a = crew_begin(c), b = crew_begin(c);
    int n = 0;
    for (int i = 0; i < KINDS; i++)
        for (int k = 0; k < 3; k++)
            one_row(c, &a, kinds[i], 0, beside[k], beside[k] <= 0 ? n++ : 0);
    crew_expect("another process holds a part", &b, "0 0", "alloc plain 16777216");
    for (int i = 0; i < KINDS; i++)
        for (int k = 0; k < 3; k++)
            one_row(c, &a, kinds[i], 16 * MIB, beside[k], beside[k] <= 0 ? n++ : 0);
    expect_int("ends well", 0, crew_stop(&b));
    crew_judge("the other one has gone", c, 0, LIMIT);
    char line[CREW_LINE], freed[CREW_LINE];
    (void)str_format(freed, sizeof freed, "free %s",
                     crew_ask(&a, line, "alloc async 67108864") + 2);
    crew_expect("a pool has all of it", &a, "0", freed);
    crew_judge("and keeps it", c, LIMIT, LIMIT);
    (void)str_format(freed, sizeof freed, "free %s",
                     crew_ask(&a, line, "alloc plain 67108864") + 2);
    expect_true("until somebody needs it", str_starts(line, "0 "));
    crew_expect("as on a card of this size", &a, "0", freed);
    crew_expect("and this one has all", &a, "0", "alloc plain 67108864");
    expect_int("ends well", 0, crew_stop(&a));
    crew_judge("all have gone", c, 0, LIMIT);
    expect_done();
}

static void every_way_to_the_driver(void **state)
{
    struct crew *c = *state;
    static const char *const paths[] = {"link", "dlsym", "default", "next",
                                        "proc", "proc2", "ptsz"};
    struct worker w = crew_begin(c);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        char line[CREW_LINE];
        expect_str(paths[i], "0", crew_ask(&w, line, "path %s", paths[i]));
        for (int k = 0; k < KINDS; k++)
            expect_str(
                paths[i], "2 -1",
                crew_ask(&w, line, "alloc %s %llu", kinds[k], (unsigned long long)LIMIT + 1));
        crew_expect(paths[i], &w, "0 67108864 67108864", "info");
        crew_expect(paths[i], &w, "0 67108864", "total 0");
        crew_expect("a card without a limit", &w, "0 1073741824", "total 1");
    }
    crew_expect("some is used", &w, "0 0", "alloc plain 1000");
    crew_expect("free is what is left of the share", &w, "0 67107864 67108864", "info");
    crew_expect("NVML says the same", &w, "0 67107864 67108864", "nvml 0");
    crew_expect("and the truth of a card without a limit", &w, "0 16944988160 16944988160",
                "nvml 1");
    crew_expect("dlsym for other names", &w, "0", "next");
    expect_int("ends well", 0, crew_stop(&w));
    expect_done();
}

static void processes_threads_and_forks(void **state)
{
    struct crew *c = *state;
    struct worker a = crew_begin(c), b = crew_begin(c);
    crew_expect("a takes a half", &a, "0", "alloc plain 33554432");
    crew_expect("a thread of a as well", &a, "0", "thread array 33554432");
    crew_expect("a thread of a wants one byte more", &a, "2 -1", "thread managed 1");
    crew_expect("b gets nothing", &b, "2 -1", "alloc plain 1");
    crew_expect("a gives the first half back", &a, "0", "free 0");
    crew_expect("b takes it", &b, "0", "alloc create 33554432");
    crew_judge("a half each", c, LIMIT, LIMIT);
    /* The driver does not serve a child of a process that has used it. */
    crew_expect("b forks", &b, "0", "fork");
    crew_expect("the child cannot use the driver", &b, "3", "alloc plain 1");
    crew_judge("what b has stays", c, LIMIT, LIMIT);
    expect_int("b and its child end well", 0, crew_stop(&b));
    crew_judge("b's half is free", c, LIMIT / 2, LIMIT);
    struct worker p = crew_start(c, true);
    crew_expect("a parent that never used the driver", &p, "0", "fork");
    crew_expect("its child", &p, "0", "init");
    crew_expect("its child", &p, "0", "ctx 0");
    crew_expect("its child takes b's half", &p, "0", "alloc plain 33554432");
    crew_expect("and not more", &p, "2 -1", "alloc plain 1");
    kill(a.pid, SIGKILL);
    expect_int("a is killed", 256 + SIGKILL, crew_stop(&a));
    crew_expect("a's half is free at once", &p, "0", "alloc plain 33554432");
    expect_int("ends well", 0, crew_stop(&p));
    crew_judge("all have gone", c, 0, LIMIT);
    struct worker e = crew_begin(c);
    crew_expect("takes all", &e, "0", "alloc plain 67108864");
    crew_expect("becomes another program, which is alive", &e, "0", "exec");
    struct worker f = crew_begin(c);
    char line[CREW_LINE] = "";
    for (int i = 0; i < 1000 && strncmp(line, "0 ", 2) != 0; i++) {
        crew_ask(&f, line, "alloc plain 67108864");
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    expect_str("it holds nothing then", "0 0", line);
    expect_int("ends well", 0, crew_stop(&f));
    expect_int("ends well", 0, crew_stop(&e));
    expect_done();
}

static void contexts_and_resets(void **state)
{
    struct crew *c = *state;
    crew_end(c);
    crew_make(c, NULL, 0, 4 * MIB);
    crew_limit(c, LIMIT_MIB, 100, 4);
    struct worker w = crew_start(c, true);
    static const struct {
        const char *command, *answer;
        uint64_t mib;
    } rows[] = {
        {"init", "0", 0},
        {"primary 0", "0", 4},
        {"primary 0", "0", 4},
        {"alloc plain 10485760", "0 0", 14},
        {"alloc array 10485760", "0 1", 24},
        {"alloc create 1048576", "0 2", 25},
        {"release 0", "0", 25},
        {"release 0", "0", 1}, /* physical memory is of no context */
        {"free 2", "0", 0},
        {"primary 0", "0", 4},
        {"alloc pitch 1048576", "0 3", 5},
        {"reset 0", "0", 0},
        {"ctx 0", "0", 4},
        {"alloc managed 1048576", "0 4", 5},
        {"ctx 0", "0", 9},
        {"alloc mipmap 1048576", "0 5", 10},
        {"ctxdestroy", "0", 5},
        {"alloc plain 62914560", "2 -1", 5},
        {"ctx 1", "0", 5}, /* a card without a limit */
        {"alloc plain 536870912", "0 6", 5},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        crew_expect("contexts", &w, rows[i].answer, rows[i].command);
        crew_judge(rows[i].command, c, rows[i].mib * MIB, LIMIT);
    }
    expect_int("ends well", 0, crew_stop(&w));
    crew_judge("all have gone", c, 0, LIMIT);
    crew_limit(c, 3, 100, 4);
    w = crew_start(c, true);
    crew_expect("a share smaller than a context", &w, "0", "init");
    crew_expect("a share smaller than a context", &w, "2", "primary 0");
    crew_expect("a share smaller than a context", &w, "2", "ctx 0");
    expect_int("ends well", 0, crew_stop(&w));
    expect_done();
}

static void files_that_are_not_there(void **state)
{
    struct crew *c = *state;
    char path[CREW_PATH];
    struct worker w;
    crew_path(c, "region", path);
    crew_write(c, "region", "garbage", 7);
    for (int i = 0; i < 2; i++) {
        w = crew_start(c, true);
        crew_expect("a card without a limit works", &w, "0", "init");
        crew_expect("a card without a limit works", &w, "0", "ctx 1");
        crew_expect("a card without a limit works", &w, "0 0", "alloc plain 1");
        crew_expect("nobody knows what is in use of the other", &w, "2", "primary 0");
        crew_expect("its size is known", &w, "0 67108864", "total 0");
        crew_expect("it is full", &w, "0 0 67108864", "nvml 0");
        expect_int("ends well", 0, crew_stop(&w));
        unlink(path); /* and the same without the file */
    }
    crew_limit(c, LIMIT_MIB, 100, 0);
    crew_path(c, "limits", path);
    unlink(path);
    w = crew_begin(c);
    crew_expect("without limits nothing is limited", &w, "0 0", "alloc plain 536870912");
    crew_expect("nor shown otherwise", &w, "0 536870912 1073741824", "info");
    expect_int("ends well", 0, crew_stop(&w));
    expect_done();
}

static int run(const char *row, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static int run(const char *row, const char *fmt, ...)
{
    char command[2 * CREW_PATH];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(command, sizeof command, fmt, ap);
    va_end(ap);
    int status = system(command);
    expect_int(row, 0, status);
    return status;
}

static void stranger_programs(void **state)
{
    const struct crew *c = *state;
    /* Every program of a container loads it, and none may notice. */
    run("programs without CUDA",
        "test \"$(LD_PRELOAD=%s/libcosched-gpu.so sh -c 'echo a; ls -d /; true' 2>&1)\" = 'a\n/'",
        c->dir);
    run("python loads modules with dlsym",
        "LD_PRELOAD=%s/libcosched-gpu.so python3 -c 'import ctypes, json, hashlib, socket; ctypes.CDLL(None).getpid()'",
        c->dir);
    run("no C library newer than 2.17 is asked for",
        "test -z \"$(objdump -T %s/lib/libcosched-gpu.so | grep -o 'GLIBC_2[.0-9]*' | sort -uV | awk -F. '$2 > 17')\"",
        crew_build());
    run("nothing but the C library is needed",
        "test \"$(objdump -p %s/lib/libcosched-gpu.so | awk '/NEEDED/ {print $2}')\" = libc.so.6",
        crew_build());
    run("nothing but functions of the driver, and dlsym, is exported",
        "test -z \"$(objdump -T %s/lib/libcosched-gpu.so | awk '!/UND/ && NF > 5 {print $NF}' | grep -vE '^(cu[A-Z]|nvml[A-Z]|dlsym$|dlvsym$)')\"",
        crew_build());
    expect_done();
}

/* ---- many, at random ---- */

static int64_t from_environment(const char *name, int64_t fallback)
{
    const char *text = getenv(name);
    int64_t n;
    return text != NULL && num_parse_range(text, 0, INT64_MAX, &n, NULL) == 0 ? n : fallback;
}

/* Nothing is waited for: it may be killed before it has begun. */
static struct worker start_random(const struct crew *c, int64_t seconds, uint64_t seed)
{
    struct worker w = crew_start(c, true);
    fprintf(w.to, "init\nprimary 0\nrandom %llu %lld %llu\n", (unsigned long long)(LIMIT / 4),
            (long long)seconds, (unsigned long long)(seed % 1000000007));
    fflush(w.to);
    return w;
}

static void many_processes_killed(void **state)
{
    struct crew *c = *state;
    enum { MOST = 128 };
    struct worker workers[MOST];
    int64_t count = num_min(from_environment("COSCHED_ISOLATION_PROCESSES", 6), MOST);
    int64_t seconds = from_environment("COSCHED_ISOLATION_SECONDS", 1);
    uint64_t x = (uint64_t)from_environment("COSCHED_SEED", clock_wall_ns() & INT32_MAX) | 1;
    print_message("COSCHED_SEED=%llu\n", (unsigned long long)x);
    for (int64_t i = 0; i < count; i++)
        workers[i] = start_random(c, seconds + 600, x + (uint64_t)i);
    int64_t began_ms = clock_mono_ms(), now_ms, deaths = 0;
    while ((now_ms = clock_mono_ms()) < began_ms + seconds * 1000) {
        /* A tenth of them each second; at least one in 200 ms where they are few. */
        int64_t due = num_max((now_ms - began_ms) * count / 10000, (now_ms - began_ms) / 200);
        if (deaths >= due) {
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
            continue;
        }
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        struct worker *w = &workers[x % (uint64_t)count];
        kill(w->pid, SIGKILL);
        int how = crew_stop(w);
        if (how != 256 + SIGKILL)
            fail_msg("a worker ended with %d before it was killed", how);
        *w = start_random(c, seconds + 600, x);
        deaths++;
    }
    for (int64_t i = 0; i < count; i++) {
        kill(workers[i].pid, SIGKILL);
        expect_int("still at work", 256 + SIGKILL, crew_stop(&workers[i]));
    }
    uint64_t peak = c->judge.world->groups[0].peak[0];
    print_message("%lld processes, %lld killed; the most that the driver counted: %llu of %llu\n",
                  (long long)count, (long long)deaths, (unsigned long long)peak,
                  (unsigned long long)LIMIT);
    expect_true("they came near the limit", peak > LIMIT / 2);
    expect_true("and never passed it", peak <= LIMIT);
    crew_judge("all have gone", c, 0, LIMIT);
    expect_done();
}

/* ---- three containers on one card ---- */

/* The node's part: what the driver says each container used. */
static void measure(struct crew *crews, struct regionfile *regions, int n)
{
    for (int i = 0; i < n; i++)
        measure_card(region_card(&regions[i].region, 0), card_busy_ns(&crews[i].judge, i, 0),
                     card_now_ns());
}

/* Shares in windows of five seconds, in real time: on a machine with nothing else to do, so only
 * when COSCHED_ISOLATION_WINDOWS says how many. test_budget.c has the same in simulated time. */
static void shares_of_time(void **state)
{
    enum { N = 3, WINDOW_MS = 5000, STEP_MS = 100 };
    static const uint32_t percents[N] = {20, 30, 50};
    static const char *const work[N] = {"launch 10000 1000000000", "graph 100000 20 1000000000",
                                        "launch 50000000 1000000000"};
    int64_t windows = from_environment("COSCHED_ISOLATION_WINDOWS", 0);
    struct crew crews[N];
    struct regionfile regions[N];
    struct worker workers[N];
    uint64_t before[N] = {0};
    char path[CREW_PATH];
    (void)state;
    for (int i = 0; windows > 0 && i < N; i++) {
        crew_make(&crews[i], i == 0 ? NULL : crews[0].cards, i, 0);
        crew_limit(&crews[i], LIMIT_MIB, percents[i], 0);
        crew_path(&crews[i], "region", path);
        assert_int_equal(0, regionfile_attach(&regions[i], path));
        workers[i] = crew_begin(&crews[i]);
    }
    for (int i = 0; windows > 0 && i < N; i++)
        fprintf(workers[i].to, "%s\n", work[i]), fflush(workers[i].to);
    for (int64_t w = -1; windows > 0 && w < windows;
         w++) { /* the first is for getting used to each other */
        for (int64_t end = clock_mono_ms() + WINDOW_MS; clock_mono_ms() < end;) {
            measure(crews, regions, N);
            nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000}, NULL);
        }
        for (int i = 0; i < N; i++) {
            uint64_t busy = card_busy_ns(&crews[i].judge, i, 0);
            int64_t share = (int64_t)((busy - before[i]) / (WINDOW_MS * 1000));
            before[i] = busy;
            print_message("window %lld, %u %%: %lld.%lld\n", (long long)w, percents[i],
                          (long long)share / 10, (long long)share % 10);
            if (w >= 0)
                expect_true("within 5 points", share >= (int64_t)percents[i] * 10 - 50 &&
                                                   share <= (int64_t)percents[i] * 10 + 50);
        }
    }
    for (int i = N - 1; windows > 0 && i >= 0; i--) {
        kill(workers[i].pid, SIGKILL);
        (void)crew_stop(&workers[i]);
        regionfile_detach(&regions[i]);
        crew_end(&crews[i]);
    }
    expect_done();
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(every_call_at_the_limit),     CASE(every_way_to_the_driver),
        CASE(processes_threads_and_forks), CASE(contexts_and_resets),
        CASE(files_that_are_not_there),    CASE(stranger_programs),
        CASE(many_processes_killed),       cmocka_unit_test(shares_of_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
