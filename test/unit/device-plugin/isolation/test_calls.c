// SPDX-License-Identifier: Apache-2.0
/*
 * The table: every call that allocates, below, exactly at and one byte over the limit, by one
 * process and by many, in a child of fork, in a thread, in a context that ends and on a device that
 * is reset. After each step the driver's own count is what the region says.
 */
#include "test/unit/device-plugin/isolation/crew.h"

enum { LIMIT_MIB = 64, OTHERS = 4 };
#define LIMIT (LIMIT_MIB * MIB)

/* What a call takes is rounded up to steps; freed memory of pools stays theirs; physical memory is
 * of no context. */
static const struct call {
    const char *kind;
    uint64_t step;
    bool pooled, physical;
} calls[] = {
    {"plain", 1, false, false},        {"managed", 1, false, false},
    {"pitch", 512, false, false},      {"array", 1, false, false},
    {"array3d", 1, false, false},      {"mipmap", 1, false, false},
    {"create", 1, false, true},        {"map", 1, false, true},
    {"async", 2 * MIB, true, false},   {"pool", 2 * MIB, true, false},
    {"ownpool", 2 * MIB, true, false}, {"graph", 2 * MIB, true, false},
    {"upload", 2 * MIB, true, false},  {"old", 1, false, false},
    {"oldpitch", 512, false, false},   {"oldarray", 1, false, false},
    {"oldarray3d", 1, false, false},   {"layers", 4, false, false},
};
enum { CALLS = sizeof calls / sizeof calls[0] };

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

static uint64_t really(const struct call *call, uint64_t bytes)
{
    return (bytes + call->step - 1) / call->step * call->step;
}

/* ---- how a step is done, and how it is undone ---- */

struct place {
    const char *name, *verb; /* alloc or thread */
    const char *enter; /* what is said before it, and after it instead of free; NULL: nothing */
    const char *leave;
    bool others;
};

static const struct place places[] = {
    {"one process", "alloc", NULL, NULL, false},
    {"many processes", "alloc", NULL, NULL, true},
    {"a thread", "thread", NULL, NULL, false},
    {"a thread, many processes", "thread", NULL, NULL, true},
    {"a context that ends", "alloc", "ctx 0", "ctxdestroy", false},
    {"a context that ends, many processes", "alloc", "ctx 0", "ctxdestroy", true},
    {"a context of the first form", "alloc", "oldctx 0", "olddestroy", false},
    {"a context that is detached", "alloc", "oldctx 0", "detach", false},
    {"a device that is reset", "alloc", "primary 0", "reset 0", false},
    {"a device that is reset, many processes", "alloc", "primary 0", "reset 0", true},
    {"a device that is reset by the first form", "alloc", "primary 0", "oldreset 0", false},
    {"a primary context that is let go", "alloc", "primary 0", "release 0", false},
    {"a primary context that is let go by the first form", "alloc", "primary 0", "oldrelease 0",
     false},
};

static void say(const char *row, const struct worker *w, const char *answer, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static void say(const char *row, const struct worker *w, const char *answer, const char *fmt, ...)
{
    char command[CREW_LINE];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(command, sizeof command, fmt, ap);
    va_end(ap);
    crew_expect(row, w, answer, command);
}

/* After what was got at the limit: given back by free, or by the end of its context. */
static void undo(struct crew *c, const char *row, const struct worker *w, const struct call *call,
                 const struct place *p, uint64_t held, uint64_t got, int n)
{
    bool gone = p->leave != NULL && !call->physical;
    if (p->leave != NULL)
        say(row, w, "0", "%s", p->leave);
    if (p->leave != NULL && call->physical)
        crew_judge("physical memory is of no context", c, held + got, LIMIT);
    if (!gone)
        say(row, w, "0", "free %d", n);
    if (call->pooled && strcmp(call->kind, "ownpool") != 0 && !gone)
        crew_judge("a pool keeps what was freed", c, held + got, LIMIT);
    if (call->pooled)
        say(row, w, "0", "trim");
    /* The context has taken its memory out of a pool that a program made; the pool is still there,
     * with what it keeps. */
    bool kept = gone && strcmp(call->kind, "ownpool") == 0 && strstr(p->leave, "reset") == NULL;
    if (!kept || strstr(p->leave, "release") != NULL)
        crew_judge(row, c, held, LIMIT);
    /* The next one that needs it makes pools let go. */
    char line[CREW_LINE];
    if (kept) {
        say(row, w, "0", "primary 0");
        crew_ask(w, line, "alloc plain %llu", (unsigned long long)(LIMIT - held));
        expect_true(row, str_starts(line, "0 "));
        say(row, w, "0", "reset 0");
        crew_judge(row, c, held, LIMIT);
    }
}

static void one_call(struct crew *c, const struct worker *w, const struct call *call,
                     const struct place *p, uint64_t held)
{
    for (int64_t beside = -1; beside <= 1; beside++) {
        char row[CREW_LINE], line[CREW_LINE];
        uint64_t bytes = (uint64_t)((int64_t)(LIMIT - held) + beside);
        uint64_t got = really(call, bytes);
        (void)str_format(row, sizeof row, "%s, %s, %lld beside the limit", call->kind, p->name,
                         (long long)beside);
        if (p->enter != NULL)
            say(row, w, "0", "%s", p->enter);
        crew_ask(w, line, "%s %s %llu", p->verb, call->kind, (unsigned long long)bytes);
        bool ok = str_starts(line, "0 ");
        if (ok != (beside <= 0) || (!ok && strcmp(line, "2 -1") != 0))
            expect_str(row, beside <= 0 ? "0 …" : "2 -1", line);
        crew_judge(row, c, held + (ok ? got : 0), LIMIT);
        if (ok)
            undo(c, row, w, call, p, held, got, (int)strtol(line + 2, NULL, 10));
        else if (p->leave != NULL)
            say(row, w, "0", "%s", p->leave);
        crew_judge(row, c, held, LIMIT);
    }
}

static void in_place(struct crew *c, const struct place *p, bool forked)
{
    struct worker others[OTHERS], w = crew_start(c, true);
    uint64_t held = 0;
    for (int i = 0; p->others && i < OTHERS; i++) {
        others[i] = crew_begin(c);
        crew_expect(p->name, &others[i], "0",
                    i % 2 ? "alloc create 4194304" : "alloc plain 4194304");
        held += 4 * MIB;
    }
    if (forked)
        crew_expect("a parent that never used the driver", &w, "0", "fork");
    crew_expect(p->name, &w, "0", "init");
    if (p->enter == NULL)
        crew_expect(p->name, &w, "0", "primary 0");
    for (int i = 0; i < CALLS; i++)
        one_call(c, &w, &calls[i], p, held);
    expect_int(p->name, 0, crew_stop(&w));
    for (int i = 0; p->others && i < OTHERS; i++)
        expect_int(p->name, 0, crew_stop(&others[i]));
    crew_judge("all have gone", c, 0, LIMIT);
}

static void every_call_in_every_place(void **state)
{
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        in_place(*state, &places[i], false);
    expect_done();
}

static void every_call_in_a_child_of_fork(void **state)
{
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (places[i].enter == NULL)
            in_place(*state, &places[i], true);
    expect_done();
}

/* Many at once for the last bytes: as many get theirs as fit, whichever call it is. */
static void many_at_once(void **state)
{
    struct crew *c = *state;
    enum { MANY = 12, FIT = 8 };
    for (int i = 0; i < CALLS; i++) {
        struct worker w[MANY];
        char line[CREW_LINE];
        int got = 0;
        for (int k = 0; k < MANY; k++)
            w[k] = crew_begin(c);
        for (int k = 0; k < MANY; k++) {
            fprintf(w[k].to, "alloc %s %llu\n", calls[i].kind, (unsigned long long)(LIMIT / FIT));
            fflush(w[k].to);
        }
        for (int k = 0; k < MANY; k++) {
            const char *read = fgets(line, sizeof line, w[k].from);
            got += read != NULL && str_starts(line, "0 ");
            expect_true(calls[i].kind,
                        read != NULL && (str_starts(line, "0 ") || str_starts(line, "2 ")));
        }
        expect_int(calls[i].kind, FIT, got);
        crew_judge(calls[i].kind, c, LIMIT, LIMIT);
        for (int k = 0; k < MANY; k++) {
            kill(w[k].pid, SIGKILL);
            expect_int("killed", 256 + SIGKILL, crew_stop(&w[k]));
        }
        crew_judge("the dead have nothing", c, 0, LIMIT);
    }
    expect_done();
}

/* Threads of several processes that do everything at once: the books are right when they have
 * ended, and the limit was never passed. */
static void many_threads(void **state)
{
    struct crew *c = *state;
    enum { PROCESSES = 3 };
    struct worker w[PROCESSES];
    char line[CREW_LINE];
    crew_end(c);
    crew_make(c, NULL, 0, MIB);
    crew_limit(c, LIMIT_MIB, 100, 1);
    uint64_t seed = (uint64_t)getpid();
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int i = 0; i < PROCESSES; i++) {
        w[i] = crew_start(c, true);
        crew_expect("begin", &w[i], "0", "init");
        fprintf(w[i].to, "threads 6 60 %llu\n", (unsigned long long)seed + (unsigned)i);
        fflush(w[i].to);
    }
    for (int i = 0; i < PROCESSES; i++) {
        expect_true("an answer", fgets(line, sizeof line, w[i].from) != NULL);
        expect_true("nothing failed but for want of room", str_starts(line, "0 "));
        crew_expect("pools let go", &w[i], "0", "trim");
    }
    crew_judge("nobody holds anything", c, 0, LIMIT);
    for (int i = 0; i < PROCESSES; i++)
        expect_int("ends well", 0, crew_stop(&w[i]));
    expect_done();
}

/* ---- what is of another card than the current one, or of another process ---- */

static void pools_and_streams_of_another_card(void **state)
{
    struct crew *c = *state;
    struct worker w = crew_start(c, true);
    crew_expect("begin", &w, "0", "init");
    crew_expect("a card without a limit", &w, "0", "ctx 1");
    crew_expect("its own pools are not limited", &w, "0 0", "alloc async 134217728");
    crew_expect("nor those that are made for it", &w, "0 1", "alloc ownpool 134217728");
    crew_judge("nothing of the limited card", c, 0, LIMIT);
    static const char *const kinds[] = {"pool0", "stream0"};
    int n = 2;
    for (int i = 0; i < 2; i++) {
        say(kinds[i], &w, "2 -1", "alloc %s 67108865", kinds[i]);
        crew_judge(kinds[i], c, 0, LIMIT);
        char line[CREW_LINE], answer[16];
        (void)str_format(answer, sizeof answer, "0 %d", n);
        expect_str(kinds[i], answer, crew_ask(&w, line, "alloc %s 67108864", kinds[i]));
        crew_judge(kinds[i], c, LIMIT, LIMIT);
        say(kinds[i], &w, "0", "free %d", n++);
        crew_expect(kinds[i], &w, "0", "trim");
        crew_judge(kinds[i], c, 0, LIMIT);
    }
    expect_int("ends well", 0, crew_stop(&w));
    expect_done();
}

static void imported_memory_counts_once(void **state)
{
    struct crew *c = *state;
    struct worker a = crew_begin(c), b = crew_begin(c);
    char path[CREW_PATH], line[CREW_LINE];
    crew_path(c, "handle", path);
    crew_expect("all of it", &a, "0 0", "alloc plain 67108864");
    say("others may use it", &a, "0", "share 0 %s", path);
    say("a handle of IPC", &b, "0", "open %s", path);
    crew_judge("counted once", c, LIMIT, LIMIT);
    crew_expect("there is nothing left", &b, "2 -1", "alloc plain 1");
    crew_expect("let go", &b, "0", "close");
    crew_judge("it is still its maker's", c, LIMIT, LIMIT);
    crew_expect("freed", &a, "0", "free 0");
    crew_judge("freed", c, 0, LIMIT);
    crew_expect("all of it, physical", &a, "0 1", "alloc create 67108864");
    crew_ask(&a, line, "export 1");
    expect_true("exported", str_starts(line, "0 "));
    say("imported", &b, "0", "import %d %s", (int)a.pid, line + 2);
    crew_judge("counted once", c, LIMIT, LIMIT);
    crew_expect("let go", &b, "0", "drop");
    crew_judge("it is still its maker's", c, LIMIT, LIMIT);
    crew_expect("freed", &a, "0", "free 1");
    crew_judge("freed", c, 0, LIMIT);
    expect_int("ends well", 0, crew_stop(&a));
    expect_int("ends well", 0, crew_stop(&b));
    unlink(path);
    expect_done();
}

/* ---- what first forms say, and contexts that are held more than once ---- */

static void first_forms(void **state)
{
    struct crew *c = *state;
    static const char *const paths[] = {"link", "dlsym", "default", "next", "proc", "proc2"};
    struct worker w = crew_begin(c);
    crew_end(c);
    crew_stop(&w);
    crew_make(c, NULL, 0, 4 * MIB);
    crew_limit(c, LIMIT_MIB, 100, 4);
    w = crew_start(c, true);
    crew_expect("begin", &w, "0", "init");
    crew_expect("begin", &w, "0", "primary 0");
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        say(paths[i], &w, "0", "path %s", paths[i]);
        crew_expect(paths[i], &w, "2 -1", "alloc old 62914561");
        crew_expect(paths[i], &w, "2 -1", "alloc oldpitch 62914561");
        crew_expect(paths[i], &w, "2 -1", "alloc oldarray 62914561");
        crew_expect(paths[i], &w, "2 -1", "alloc oldarray3d 62914561");
        crew_expect(paths[i], &w, "0 62914560 67108864", "oldinfo");
        crew_expect(paths[i], &w, "0 67108864", "oldtotal 0");
        crew_expect("a card without a limit", &w, "0 1073741824", "oldtotal 1");
    }
    crew_expect("let go", &w, "0", "oldrelease 0");
    crew_judge("nothing is left", c, 0, LIMIT);
    static const struct {
        const char *command, *answer;
        uint64_t mib;
    } rows[] = {
        {"oldctx 0", "0", 4}, {"attach", "0", 4},     {"alloc plain 1048576", "0 0", 5},
        {"detach", "0", 5},   {"detach", "0", 0},     {"oldctx 0", "0", 4},
        {"attach", "0", 4},   {"olddestroy", "0", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        crew_expect("contexts", &w, rows[i].answer, rows[i].command);
        crew_judge(rows[i].command, c, rows[i].mib * MIB, LIMIT);
    }
    expect_int("ends well", 0, crew_stop(&w));
    expect_done();
}

/* ---- whose limit, and what is told of it ---- */

/* Cards go by their uuid: in a container, or by CUDA_VISIBLE_DEVICES, they have other numbers. */
static void limits_go_by_the_card_and_not_by_its_number(void **state)
{
    struct crew *c = *state;
    static const char limits[] = "cosched-gpu-limits 1\n"
                                 "card GPU-00000000-0000-4000-8000-000000000001 mib=64 percent=100 "
                                 "context=0\n";
    crew_write(c, "limits", limits, sizeof limits - 1);
    struct worker w = crew_start(c, true);
    crew_expect("begin", &w, "0", "init");
    crew_expect("the first has no limit", &w, "0", "ctx 0");
    crew_expect("the first has no limit", &w, "0 0", "alloc plain 134217728");
    crew_expect("the first has no limit", &w, "0 1073741824", "total 0");
    crew_expect("the second has", &w, "0 67108864", "total 1");
    crew_expect("the second has", &w, "0", "ctx 1");
    crew_expect("the second has", &w, "2 -1", "alloc plain 67108865");
    crew_expect("the second has", &w, "0 1", "alloc plain 67108864");
    crew_expect("the second has", &w, "0 0 67108864", "info");
    crew_expect("so says NVML", &w, "0 16944988160 16944988160", "nvml 0");
    crew_expect("so says NVML", &w, "0 0 67108864", "nvml 1");
    expect_int("the driver counted", LIMIT, (int64_t)card_used(&c->judge, c->group, 1));
    expect_int("ends well", 0, crew_stop(&w));
    expect_done();
}

static void nvml_tells_the_share(void **state)
{
    const struct crew *c = *state;
    char command[4 * CREW_PATH];
    struct worker w = crew_begin(c);
    crew_expect("some is used", &w, "0 0", "alloc plain 1048576");
    assert_true(str_format(
        command, sizeof command,
        "LD_LIBRARY_PATH=%s/lib/alone LD_PRELOAD=%s/libcosched-gpu.so python3 -c '"
        "import ctypes\n"
        "class Two(ctypes.Structure):\n"
        "    _fields_ = [(\"version\", ctypes.c_uint)] + [(n, ctypes.c_ulonglong) for n in "
        "(\"total\", \"reserved\", \"free\", \"used\")]\n"
        "n = ctypes.CDLL(\"libnvidia-ml.so.1\")\n"
        "d, m, one = ctypes.c_void_p(), Two(version=0x2000028), (ctypes.c_ulonglong * 3)()\n"
        "assert n.nvmlInit_v2() == 0 and n.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(d)) == 0\n"
        "assert n.nvmlDeviceGetMemoryInfo_v2(d, ctypes.byref(m)) == 0\n"
        "assert n.nvmlDeviceGetMemoryInfo(d, one) == 0\n"
        "MIB = 1 << 20\n"
        "assert [m.total, m.reserved, m.free, m.used] == [64 * MIB, 0, 63 * MIB, MIB], m.total\n"
        "assert list(one) == [64 * MIB, 63 * MIB, MIB], list(one)'",
        crew_build(), c->dir));
    expect_int("both forms", 0, system(command));
    expect_int("ends well", 0, crew_stop(&w));
    expect_done();
}

static void a_program_that_looks_for_cuda_finds_none(void **state)
{
    const struct crew *c = *state;
    char command[4 * CREW_PATH];
    assert_true(str_format(
        command, sizeof command,
        "LD_LIBRARY_PATH=%s/lib LD_PRELOAD=%s/libcosched-gpu.so python3 -c '"
        "import ctypes\n"
        "all = ctypes.CDLL(None)\n"
        "assert not hasattr(all, \"cuMemAlloc_v2\") and not hasattr(all, \"nvmlDeviceGetMemoryInfo\")\n"
        "d = ctypes.CDLL(\"libcuda.so.1\", mode=ctypes.RTLD_GLOBAL)\n"
        "assert all.cuMemAlloc_v2 and d.cuMemAlloc_v2 and not hasattr(all, \"nvmlDeviceGetMemoryInfo\")'",
        crew_build(), c->dir));
    expect_int("before the driver is loaded", 0, system(command));
    expect_done();
}

/* libcudart does so with a driver that it does not like. */
static void a_driver_that_is_let_go_and_loaded_again(void **state)
{
    const struct crew *c = *state;
    char command[4 * CREW_PATH];
    assert_true(str_format(
        command, sizeof command,
        "COSCHED_FAKE_CUDA=%s LD_LIBRARY_PATH=%s/lib LD_PRELOAD=%s/libcosched-gpu.so python3 -c '"
        "import ctypes, _ctypes\n"
        "n = ctypes.c_size_t()\n"
        "for i in range(3):\n"
        "    d = ctypes.CDLL(\"libcuda.so.1\")\n"
        "    assert d.cuInit(0) == 0 and d.cuDeviceTotalMem_v2(ctypes.byref(n), 0) == 0\n"
        "    assert n.value == 64 << 20, n.value\n"
        "    _ctypes.dlclose(d._handle)\n"
        "assert \"libcuda.so.1\" in open(\"/proc/self/maps\").read()'",
        c->cards, crew_build(), c->dir));
    expect_int("what we know of it stays true", 0, system(command));
    expect_done();
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(every_call_in_every_place),
        CASE(every_call_in_a_child_of_fork),
        CASE(many_at_once),
        CASE(many_threads),
        CASE(pools_and_streams_of_another_card),
        CASE(imported_memory_counts_once),
        CASE(first_forms),
        CASE(limits_go_by_the_card_and_not_by_its_number),
        CASE(nvml_tells_the_share),
        CASE(a_program_that_looks_for_cuda_finds_none),
        CASE(a_driver_that_is_let_go_and_loaded_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
