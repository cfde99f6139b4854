// SPDX-License-Identifier: Apache-2.0
/*
 * crew - a container of the isolation tests: a folder with the library, a limits file and a region,
 * and workers (test/fake/cuda/worker.c) that have the library preloaded and use simulated cards.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "test/unit/lib/base/expect.h"

#include "device-plugin/isolation/limits.h"
#include "device-plugin/isolation/regionfile.h"
#include "lib/base/str.h"
#include "test/fake/cuda/card.h"
#include "test/unit/lib/base/scratch.h"

enum { CREW_LINE = 256, CREW_PATH = 512 };
#define MIB (UINT64_C(1) << 20)

struct crew {
    char dir[SCRATCH_PATH];
    char cards[CREW_PATH];
    struct card judge;
    int group;
};

struct worker {
    pid_t pid;
    FILE *to, *from;
};

static inline void crew_path(const struct crew *c, const char *name, char path[CREW_PATH])
{
    assert_true(str_format(path, CREW_PATH, "%s/%s", c->dir, name));
}

static inline const char *crew_build(void)
{
    const char *dir = getenv("BUILD_DIR");
    return dir != NULL ? dir : "build/asan";
}

static inline void crew_write(const struct crew *c, const char *name, const void *bytes, size_t len)
{
    char path[CREW_PATH];
    crew_path(c, name, path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(len, write(fd, bytes, len));
    close(fd);
}

/* Limits of card 0; card 1 is not limited. mib 0: there is no limits file. */
static inline void crew_limit(const struct crew *c, uint64_t mib, uint32_t percent,
                              uint64_t context_mib)
{
    char text[LIMITS_BYTES_MAX];
    struct limits l = {.len = 1};
    l.cards[0] = (struct limits_card){.uuid = {0, 0, 0, 0, 0, 0, 0x40, 0, 0x80},
                                      .bytes = mib * MIB,
                                      .percent = percent,
                                      .context_bytes = context_mib * MIB};
    crew_write(c, "limits", text, limits_print(&l, text, sizeof text));
    void *region = calloc(1, region_bytes(REGION_SLOTS, 1));
    region_format(region, REGION_SLOTS, 1);
    crew_write(c, "region", region, region_bytes(REGION_SLOTS, 1));
    free(region);
}

/* cards: a file of cards that exists, NULL: new ones of 1 GiB each. */
static inline void crew_make(struct crew *c, const char *cards, int group, uint64_t context_bytes)
{
    char link[CREW_PATH], library[CREW_PATH], *real;
    *c = (struct crew){.group = group};
    scratch_folder(c->dir, "crew");
    crew_path(c, "cards", c->cards);
    if (cards != NULL)
        (void)str_format(c->cards, sizeof c->cards, "%s", cards);
    else
        assert_true(card_create(c->cards, 1024 * MIB, context_bytes));
    assert_true(card_open(&c->judge, c->cards, -1));
    crew_path(c, "libcosched-gpu.so", link);
    (void)str_format(library, sizeof library, "%s/lib/libcosched-gpu.so", crew_build());
    real = realpath(library, NULL);
    if (real == NULL)
        fail_msg("%s is not built", library);
    assert_int_equal(0, symlink(real, link));
    free(real);
}

static inline void crew_end(struct crew *c)
{
    static const char *const names[] = {"cards", "limits", "region", "libcosched-gpu.so"};
    char path[CREW_PATH];
    card_close(&c->judge);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        crew_path(c, names[i], path);
        (void)unlink(path);
    }
    assert_int_equal(0, rmdir(c->dir));
}

static inline struct worker crew_start(const struct crew *c, bool preloaded)
{
    int in[2], out[2];
    char library[CREW_PATH], program[CREW_PATH], libraries[CREW_PATH],
        group[2] = {(char)('0' + c->group), 0};
    crew_path(c, "libcosched-gpu.so", library);
    (void)str_format(program, sizeof program, "%s/test/fake/cuda_worker", crew_build());
    (void)str_format(libraries, sizeof libraries, "%s/lib/alone:%s/lib", crew_build(),
                     crew_build());
    assert_int_equal(0, pipe2(in, O_CLOEXEC));
    assert_int_equal(0, pipe2(out, O_CLOEXEC));
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        setenv("COSCHED_FAKE_CUDA", c->cards, 1);
        setenv("COSCHED_FAKE_CUDA_GROUP", group, 1);
        setenv("LD_LIBRARY_PATH", libraries, 1);
        if (preloaded)
            setenv("LD_PRELOAD", library, 1);
        execl(program, program, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    return (struct worker){pid, fdopen(in[1], "w"), fdopen(out[0], "r")};
}

/* Says it and returns the answer, without the end of its line; "" when the worker has gone. */
static inline const char *crew_ask(const struct worker *w, char line[CREW_LINE], const char *fmt,
                                   ...) __attribute__((format(printf, 3, 4)));
static inline const char *crew_ask(const struct worker *w, char line[CREW_LINE], const char *fmt,
                                   ...)
{
    va_list ap;
    va_start(ap, fmt);
    vfprintf(w->to, fmt, ap);
    va_end(ap);
    fputc('\n', w->to);
    fflush(w->to);
    if (fgets(line, CREW_LINE, w->from) == NULL)
        line[0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    return line;
}

/* Its answer begins with this. */
static inline void crew_expect(const char *row, const struct worker *w, const char *answer,
                               const char *command)
{
    char line[CREW_LINE];
    size_t n = strlen(answer);
    crew_ask(w, line, "%s", command);
    if (strncmp(line, answer, n) != 0 || (line[n] != '\0' && line[n] != ' ')) {
        print_error("%s: %s\n  expected: %s\n  got:      %s\n", row, command, answer, line);
        expect_failures++;
    }
}

static inline int crew_stop(struct worker *w)
{
    int status;
    (void)fclose(w->to);
    (void)fclose(w->from);
    assert_int_equal(w->pid, waitpid(w->pid, &status, 0));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

/* A worker that has begun on card 0. */
static inline struct worker crew_begin(const struct crew *c)
{
    struct worker w = crew_start(c, true);
    crew_expect("begin", &w, "0", "init");
    crew_expect("begin", &w, "0", "primary 0");
    return w;
}

/* What the driver counted is what the region says, and never passed the limit. */
static inline void crew_judge(const char *row, struct crew *c, uint64_t used, uint64_t limit)
{
    char path[CREW_PATH];
    struct regionfile f;
    crew_path(c, "region", path);
    assert_int_equal(0, regionfile_attach(&f, path));
    (void)regionfile_reap(&f, path);
    expect_int(row, (int64_t)used, (int64_t)card_used(&c->judge, c->group, 0));
    expect_int(row, (int64_t)used, (int64_t)region_used(&f.region, 0));
    expect_true(row, c->judge.world->groups[c->group].peak[0] <= limit);
    regionfile_detach(&f);
}
