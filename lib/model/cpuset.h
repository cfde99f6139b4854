// SPDX-License-Identifier: Apache-2.0
/* cpuset - a set of CPU numbers below CPUSET_MAX, and the kernel's list form "0-3,8,10-11". */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

enum { CPUSET_MAX = 1024, CPUSET_WORDS = CPUSET_MAX / 64 };

struct cpuset {
    uint64_t words[CPUSET_WORDS];
};

void cpuset_clear(struct cpuset *s);
void cpuset_add(struct cpuset *s, unsigned cpu); /* cpu < CPUSET_MAX */
void cpuset_remove(struct cpuset *s, unsigned cpu);
bool cpuset_has(const struct cpuset *s, unsigned cpu);
unsigned cpuset_count(const struct cpuset *s);
/* The size of the intersection. */
unsigned cpuset_count_in(const struct cpuset *s, const struct cpuset *within);
bool cpuset_is_empty(const struct cpuset *s);
bool cpuset_equal(const struct cpuset *a, const struct cpuset *b);
bool cpuset_is_subset(const struct cpuset *part, const struct cpuset *whole);
void cpuset_union(struct cpuset *dst, const struct cpuset *src);
void cpuset_intersect(struct cpuset *dst, const struct cpuset *src);
void cpuset_subtract(struct cpuset *dst, const struct cpuset *src);
/* for (int cpu = -1; (cpu = cpuset_next(s, cpu)) >= 0;). Inline: the innermost loop of every
 * plan. */
static inline int cpuset_next(const struct cpuset *s, int after)
{
    unsigned from = after < 0 ? 0 : (unsigned)after + 1;
    for (size_t i = from / 64; i < CPUSET_WORDS; i++) {
        uint64_t left = s->words[i];
        if (i == from / 64)
            left &= ~UINT64_C(0) << from % 64;
        if (left != 0)
            return (int)(i * 64 + (size_t)__builtin_ctzll(left));
    }
    return -1;
}
/* Kernel list form; "" is the empty set. Blanks and a newline are allowed around the text only. */
int cpuset_parse(const char *text, struct cpuset *out, struct error *err);
void cpuset_print(const struct cpuset *s, struct strbuf *out);
