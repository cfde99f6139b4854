// SPDX-License-Identifier: Apache-2.0
/*
 * The region of a container: the limit, versions, and processes that die: at every instruction of a
 * reservation, one by one, and at random among many.
 */
#include "device-plugin/isolation/region.h"
#include "device-plugin/isolation/regionfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <time.h>

#include "test/unit/lib/base/expect.h"

#include "lib/base/clock.h"
#include "lib/base/num.h"
#include "test/unit/lib/base/scratch.h"

enum { SLOTS = 16, CARDS = 2, LIMIT = 1000 };

struct fixture {
    char path[SCRATCH_PATH];
    struct regionfile self;
};

static void make(const char *path, uint32_t slots, uint32_t cards)
{
    size_t n = region_bytes(slots, cards);
    void *empty = calloc(1, n);
    region_format(empty, slots, cards);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(n, write(fd, empty, n));
    close(fd);
    free(empty);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    close(scratch_file(f->path, "region"));
    make(f->path, SLOTS, CARDS);
    assert_int_equal(0, regionfile_attach(&f->self, f->path));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    regionfile_detach(&f->self);
    unlink(f->path);
    free(f);
    return 0;
}

static void limit_table(void **state)
{
    struct fixture *f = *state;
    struct region *r = &f->self.region;
    static const struct {
        const char *row;
        uint64_t before, take, limit;
        bool granted;
    } rows[] = {
        {"one byte below", 500, 499, LIMIT, true},
        {"exactly at it", 500, 500, LIMIT, true},
        {"one byte over", 500, 501, LIMIT, false},
        {"all of it at once", 0, LIMIT, LIMIT, true},
        {"one more than all", 0, LIMIT + 1, LIMIT, false},
        {"nothing, when full", LIMIT, 0, LIMIT, true},
        {"anything with limit 0", 0, 1, 0, false},
        {"a size that overflows", 500, UINT64_MAX - 100, LIMIT, false},
        {"the largest that a word holds", 0, REGION_USED_MAX, UINT64_MAX, true},
        {"one more than that", 0, REGION_USED_MAX + 1, UINT64_MAX, false},
        {"a sum that a word does not hold", 1, REGION_USED_MAX, UINT64_MAX, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        expect_true(rows[i].row, region_take(r, f->self.slot, 1, rows[i].before, UINT64_MAX));
        bool got = region_take(r, f->self.slot, 1, rows[i].take, rows[i].limit);
        expect_int(rows[i].row, rows[i].granted, got);
        expect_int(rows[i].row, (int64_t)(rows[i].before + (got ? rows[i].take : 0)),
                   (int64_t)region_used(r, 1));
        expect_int(rows[i].row, (int64_t)region_used(r, 1),
                   (int64_t)region_held(r, f->self.slot, 1));
        expect_int("the other card", 0, (int64_t)region_used(r, 0));
        region_give(r, f->self.slot, 1, UINT64_MAX);
        expect_int("given back", 0, (int64_t)region_used(r, 1));
    }
    expect_int("the peak stays", (int64_t)REGION_USED_MAX, (int64_t)region_card(r, 1)->peak);
    expect_done();
}

/* More than the numbers in the word can tell apart. */
static void many_changes(void **state)
{
    struct fixture *f = *state;
    struct region *r = &f->self.region;
    for (int i = 0; i < 40000; i++) {
        assert_true(region_take(r, (uint32_t)i % 3, 0, 7, LIMIT));
        if (i % 5 == 0)
            assert_false(region_take(r, (uint32_t)i % 3, 0, LIMIT, LIMIT));
        region_give(r, (uint32_t)i % 3, 0, i % 2 ? 7 : 14);
        assert_int_equal(region_used(r, 0),
                         region_held(r, 0, 0) + region_held(r, 1, 0) + region_held(r, 2, 0));
    }
    for (uint32_t slot = 0; slot < 3; slot++)
        region_clear(r, slot);
    assert_int_equal(0, region_used(r, 0));
}

static void versions_table(void **state)
{
    (void)state;
    enum { ROOM = 64 * 1024 };
    static const struct {
        const char *row;
        size_t at; /* of a 32-bit field */
        uint32_t value;
        bool opens;
    } rows[] = {
        {"as it was made", offsetof(struct region_header, reserved), 0, true},
        {"a later version with larger rows of cards", offsetof(struct region_header, card_size),
         sizeof(struct region_card) + 64, true},
        {"fewer slots than there is room for", offsetof(struct region_header, slots), 1, true},
        {"an earlier one with rows that are too small for us",
         offsetof(struct region_header, card_size), sizeof(struct region_card) - 8, false},
        {"another meaning", offsetof(struct region_header, version), 2, false},
        {"not one of ours", offsetof(struct region_header, magic), 7, false},
        {"no cards", offsetof(struct region_header, cards), 0, false},
        {"too many", offsetof(struct region_header, cards), 65, false},
        {"no slots", offsetof(struct region_header, slots), 0, false},
        {"slots beyond the end", offsetof(struct region_header, slots), 1024, false},
        {"slots that a word cannot name", offsetof(struct region_header, slots), 1025, false},
        {"rows of nothing", offsetof(struct region_header, slot_size), 0, false},
        {"rows that wrap around", offsetof(struct region_header, slot_size), 0xfffffff8, false},
        {"rows inside the header", offsetof(struct region_header, card_offset), 8, false},
        {"rows that are not aligned", offsetof(struct region_header, slot_offset), 3001, false},
        {"rows behind the end", offsetof(struct region_header, slot_offset), 0xfffffff8, false},
        {"holdings larger than their slot", offsetof(struct region_header, held_size), 4096, false},
        {"holdings of nothing", offsetof(struct region_header, held_size), 0, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct region r;
        unsigned char *base = aligned_alloc(64, ROOM);
        memset(base, 0, ROOM);
        region_format(base, SLOTS, CARDS);
        memcpy(base + rows[i].at, &rows[i].value, sizeof rows[i].value);
        if (rows[i].at == offsetof(struct region_header, card_size))
            ((struct region_header *)(void *)base)->slot_offset = 4096;
        bool opens = region_open(&r, base, region_bytes(SLOTS, CARDS) + 4096);
        expect_int(rows[i].row, rows[i].opens, opens);
        if (opens) { /* and it works with the rows as they are */
            expect_true(rows[i].row, region_take(&r, 0, CARDS - 1, 5, 5));
            region_clear(&r, 0);
            expect_int(rows[i].row, 0, (int64_t)region_used(&r, CARDS - 1));
        }
        free(base);
    }
    expect_done();
}

static void stat_table(void **state)
{
    (void)state;
#define STAT(name, state_, flags, threads) \
    "7 (" name ") " state_ " 1 7 7 0 -1 " flags " 0 0 0 0 0 0 0 0 20 0 " threads " 0 4242 1 2\n"
    static const struct {
        const char *row, *text;
        bool valid, leaving;
    } rows[] = {
        {"a process", STAT("python", "S", "4194304", "3"), true, false},
        {"a name with parentheses and spaces", STAT("a) Z 1 (b", "R", "4194304", "1"), true, false},
        {"one that exits", STAT("x", "R", "4194308", "1"), true, true},
        {"a zombie", STAT("x", "Z", "4194316", "1"), true, false},
        {"a zombie whose other threads are still there", STAT("x", "Z", "4194316", "2"), true,
         true},
        {"cut off", "7 (x) R 1 7 7 0 -1 4194304", false, false},
        {"empty", "", false, false},
        {"no number", "x (x) R", false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct regionfile_process p = {0};
        expect_int(rows[i].row, rows[i].valid, regionfile_parse(rows[i].text, &p));
        if (rows[i].valid) {
            expect_int(rows[i].row, rows[i].leaving, p.leaving);
            expect_int(rows[i].row, 7, p.pid);
            expect_int(rows[i].row, 4242, (int64_t)p.start);
        }
    }
    struct regionfile_process self;
    expect_true("this process", regionfile_process(0, &self));
    expect_int("its pid", getpid(), self.pid);
    expect_done();
}

static void ended(pid_t child)
{
    int status;
    assert_int_equal(child, waitpid(child, &status, 0));
}

/* A file that is no region fails the attach and nothing else. */
static void attach_refuses(void **state)
{
    struct fixture *f = *state;
    char path[SCRATCH_PATH];
    struct regionfile other;
    int fd = scratch_file(path, "noregion");
    expect_int("empty", -1, regionfile_attach(&other, path));
    expect_int("empty: why", EPROTO, errno);
    assert_int_equal(7, write(fd, "garbage", 7));
    expect_int("garbage", -1, regionfile_attach(&other, path));
    expect_int("garbage: why", EPROTO, errno);
    close(fd);
    unlink(path);
    expect_int("missing", -1, regionfile_attach(&other, path));
    expect_int("missing: why", ENOENT, errno);
    struct regionfile more[SLOTS];
    for (int i = 0; i < SLOTS - 1; i++)
        assert_int_equal(0, regionfile_attach(&more[i], f->path));
    expect_int("one process too many", -1, regionfile_attach(&other, f->path));
    expect_int("one too many: why", EAGAIN, errno);
    for (int i = 0; i < SLOTS - 1; i++)
        regionfile_detach(&more[i]);
    expect_done();
}

/* What a child does with its share, and what becomes of it: everything is given back by reap, and
 * not before. */
static void ends_table(void **state)
{
    struct fixture *f = *state;
    enum { EXIT, KILL, EXEC, CLOSE_ALL, FORK };
    static const struct {
        const char *row;
        int how;
        unsigned reaped_alive, reaped_dead;
    } rows[] = {
        {"a process that exits", EXIT, 0, 1},
        {"one that is killed", KILL, 0, 1},
        {"one that becomes another program", EXEC, 1, 0},
        {"one that closes all descriptors", CLOSE_ALL, 0, 1},
        {"one with a child that does not use the card", FORK, 0, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int ready[2], go[2];
        char byte;
        assert_int_equal(0, pipe2(ready, O_CLOEXEC));
        assert_int_equal(0, pipe(go));
        pid_t child = fork();
        if (child == 0) {
            struct regionfile mine;
            dup2(go[0], 0);
            close(go[1]);
            if (regionfile_attach(&mine, f->path) < 0 ||
                !region_take(&mine.region, mine.slot, 0, 300, LIMIT))
                _exit(1);
            if (rows[i].how == EXEC)
                execlp("cat", "cat", (char *)NULL);
            if (rows[i].how == FORK && fork() == 0) {
                close(ready[1]);
                _exit(read(0, &byte, 1) == 0);
            }
            if (rows[i].how == CLOSE_ALL)
                for (int fd = 3; fd < 256; fd++)
                    close(fd);
            else
                close(ready[1]);
            _exit(read(0, &byte, 1) < 0);
        }
        close(ready[1]);
        close(go[0]);
        assert_int_equal(0, read(ready[0], &byte, 1)); /* closed by exec as well */
        close(ready[0]);
        expect_int(rows[i].row, 300, (int64_t)region_used(&f->self.region, 0));
        /* The lock of an exec is let go when the new program starts. */
        unsigned reaped = 0;
        for (int n = 0; n < 500 && reaped == 0 && (n == 0 || rows[i].reaped_alive > 0); n++) {
            reaped = regionfile_reap(&f->self, f->path);
            nanosleep(&(struct timespec){.tv_nsec = reaped == 0 ? 2000000 : 0}, NULL);
        }
        expect_int("alive", rows[i].reaped_alive, reaped);
        if (rows[i].how == KILL)
            kill(child, SIGKILL);
        close(go[1]);
        ended(child);
        expect_int("dead", rows[i].reaped_dead, regionfile_reap(&f->self, f->path));
        expect_int(rows[i].row, 0, (int64_t)region_used(&f->self.region, 0));
    }
    expect_done();
}

/* ---- death at every instruction ---- */

static void stepped_child(const char *path)
{
    struct regionfile mine;
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0 || regionfile_attach(&mine, path) < 0)
        _exit(1);
    (void)region_take(&mine.region, mine.slot, 0, 100, LIMIT);
    raise(SIGSTOP);
    (void)region_take(&mine.region, mine.slot, 0, 30, LIMIT);
    region_give(&mine.region, mine.slot, 0, 50);
    raise(SIGSTOP);
    _exit(0);
}

/* Lets the child make n steps of its changes, kills it there, and looks. false: it had come to the
 * end. */
static bool die_after(struct fixture *f, long n, unsigned seen[3])
{
    int status;
    pid_t child = fork();
    if (child == 0)
        stepped_child(f->path);
    assert_int_equal(child, waitpid(child, &status, 0));
    assert_true(WIFSTOPPED(status));
    bool running = true;
    for (long i = 0; i < n && running; i++) {
        assert_int_equal(0, ptrace(PTRACE_SINGLESTEP, child, NULL, NULL));
        assert_int_equal(child, waitpid(child, &status, 0));
        running = WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP;
    }
    kill(child, SIGKILL);
    ended(child);
    const struct region *r = &f->self.region;
    uint64_t held = 0, used = region_used(r, 0);
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        held += region_held(r, slot, 0);
    if (used != held || (used != 100 && used != 130 && used != 80))
        fail_msg("killed after %ld steps: used %llu, held %llu", n, (unsigned long long)used,
                 (unsigned long long)held);
    seen[used == 100 ? 0 : used == 130 ? 1 : 2]++;
    /* Others go on changing the word before anybody looks after the dead one. */
    if (n % 2)
        assert_true(region_take(r, f->self.slot, 0, 1, LIMIT));
    assert_int_equal(1, regionfile_reap(&f->self, f->path));
    assert_int_equal(n % 2, region_used(r, 0));
    region_clear(r, f->self.slot);
    return running;
}

static int64_t from_environment(const char *name, int64_t fallback)
{
    const char *text = getenv(name);
    int64_t n;
    return text != NULL && num_parse_range(text, 0, INT64_MAX, &n, NULL) == 0 ? n : fallback;
}

static void death_at_any_instruction(void **state)
{
    struct fixture *f = *state;
    /* Each run begins elsewhere; COSCHED_OPS=1000000 makes every single step. */
    int64_t ops = from_environment("COSCHED_OPS", 0);
    long stride = ops > 0 ? 1 : 89;
    long at = (long)(from_environment("COSCHED_SEED", clock_wall_ns() & INT32_MAX) % stride);
    unsigned seen[3] = {0};
    print_message("every %ld steps from %ld\n", stride, at);
    while (die_after(f, at, seen))
        at += stride;
    print_message("%ld instructions; killed before %u, between %u, after %u\n", at, seen[0],
                  seen[1], seen[2]);
    assert_true(seen[0] > 0 && seen[1] > 0 && seen[2] > 0);
}

/* ---- many ---- */

static uint64_t next(uint64_t *x)
{
    *x ^= *x << 13, *x ^= *x >> 7, *x ^= *x << 17;
    return *x;
}

static _Noreturn void hammer(const char *path, uint64_t seed)
{
    struct regionfile mine;
    uint64_t x = seed | 1;
    while (regionfile_attach(&mine, path) < 0) /* those before are still on the way out */
        if (errno != EAGAIN)
            _exit(1);
    for (;;) {
        if (next(&x) % 2)
            (void)region_take(&mine.region, mine.slot, 0, next(&x) % (LIMIT / 2), LIMIT);
        else
            region_give(&mine.region, mine.slot, 0, next(&x) % (LIMIT / 2));
        if (region_used(&mine.region, 0) > LIMIT)
            _exit(2);
    }
}

static void many_processes_killed(void **state)
{
    struct fixture *f = *state;
    enum { PROCESSES = 6 };
    pid_t children[PROCESSES];
    uint64_t x = (uint64_t)from_environment("COSCHED_SEED", clock_wall_ns() & INT32_MAX) | 1;
    int64_t kills = num_min(from_environment("COSCHED_OPS", 40), 20000);
    print_message("COSCHED_SEED=%llu\n", (unsigned long long)x);
    for (int i = 0; i < PROCESSES; i++)
        if ((children[i] = fork()) == 0)
            hammer(f->path, next(&x) + (uint64_t)i);
    for (int64_t k = 0; k < kills; k++) {
        int status, i = (int)(next(&x) % PROCESSES);
        nanosleep(&(struct timespec){.tv_nsec = (long)(next(&x) % 3000000)}, NULL);
        kill(children[i], SIGKILL);
        assert_int_equal(children[i], waitpid(children[i], &status, 0));
        if (!WIFSIGNALED(status))
            fail_msg("a process ended with %d: 2 is that it saw more than the limit in use",
                     WEXITSTATUS(status));
        (void)regionfile_reap(&f->self, f->path);
        if ((children[i] = fork()) == 0)
            hammer(f->path, next(&x) + (uint64_t)k);
    }
    for (int i = 0; i < PROCESSES; i++) {
        kill(children[i], SIGKILL);
        ended(children[i]);
    }
    (void)regionfile_reap(&f->self, f->path);
    assert_int_equal(0, region_used(&f->self.region, 0));
    uint64_t peak = region_card(&f->self.region, 0)->peak;
    assert_true(peak > LIMIT / 2 && peak <= LIMIT);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(limit_table),
        CASE(many_changes),
        CASE(versions_table),
        CASE(stat_table),
        CASE(attach_refuses),
        CASE(ends_table),
        CASE(death_at_any_instruction),
        CASE(many_processes_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
