// SPDX-License-Identifier: Apache-2.0
/*
 * expect - checks for tables: a row that fails prints its sentence, what was expected and what
 * came, and the test goes on; expect_done at the end of the test fails if any row did. Brings
 * cmocka and what it wants included.
 */
#pragma once

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static int expect_failures;

static inline void expect_str(const char *row, const char *expected, const char *got)
{
    if (expected == got || (expected && got && strcmp(expected, got) == 0))
        return;
    print_error("%s\n  expected: %s\n  got:      %s\n", row, expected ? expected : "(NULL)",
                got ? got : "(NULL)");
    expect_failures++;
}

static inline void expect_int(const char *row, int64_t expected, int64_t got)
{
    if (expected == got)
        return;
    print_error("%s\n  expected: %lld\n  got:      %lld\n", row, (long long)expected,
                (long long)got);
    expect_failures++;
}

static inline void expect_true(const char *row, bool got)
{
    expect_int(row, true, got);
}

static inline void expect_done(void)
{
    int n = expect_failures;
    expect_failures = 0;
    if (n > 0)
        fail_msg("%d of the checks above failed", n);
}

/* fn must abort. It runs in a child, which leaves no core and prints nothing. */
static inline void expect_abort(const char *row, void (*fn)(void))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit none = {0, 0};
        (void)setrlimit(RLIMIT_CORE, &none);
        (void)signal(SIGABRT, SIG_DFL);
        fn();
        _exit(0);
    }
    int status = 0;
    assert_int_equal(child, waitpid(child, &status, 0));
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)
        return;
    print_error("%s\n  expected: SIGABRT\n  got:      wait status %d\n", row, status);
    expect_failures++;
}
