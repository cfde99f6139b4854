// SPDX-License-Identifier: Apache-2.0
#include "lib/model/cpuset.h"

void cpuset_clear(struct cpuset *s)
{
    *s = (struct cpuset){{0}};
}

void cpuset_add(struct cpuset *s, unsigned cpu)
{
    if (cpu < CPUSET_MAX)
        s->words[cpu / 64] |= UINT64_C(1) << cpu % 64;
}

void cpuset_remove(struct cpuset *s, unsigned cpu)
{
    if (cpu < CPUSET_MAX)
        s->words[cpu / 64] &= ~(UINT64_C(1) << cpu % 64);
}

bool cpuset_has(const struct cpuset *s, unsigned cpu)
{
    return cpu < CPUSET_MAX && (s->words[cpu / 64] >> cpu % 64 & 1) != 0;
}

/* __builtin_popcountll is a function call on CPUs without the instruction, and most words are 0. */
static unsigned bits(uint64_t w)
{
    if (w == 0)
        return 0;
    w -= w >> 1 & UINT64_C(0x5555555555555555);
    w = (w & UINT64_C(0x3333333333333333)) + (w >> 2 & UINT64_C(0x3333333333333333));
    w = (w + (w >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (unsigned)(w * UINT64_C(0x0101010101010101) >> 56);
}

unsigned cpuset_count(const struct cpuset *s)
{
    unsigned n = 0;

    for (size_t i = 0; i < CPUSET_WORDS; i++)
        n += bits(s->words[i]);
    return n;
}

unsigned cpuset_count_in(const struct cpuset *s, const struct cpuset *within)
{
    unsigned n = 0;

    for (size_t i = 0; i < CPUSET_WORDS; i++)
        n += bits(s->words[i] & within->words[i]);
    return n;
}

bool cpuset_is_empty(const struct cpuset *s)
{
    for (size_t i = 0; i < CPUSET_WORDS; i++)
        if (s->words[i] != 0)
            return false;
    return true;
}

bool cpuset_equal(const struct cpuset *a, const struct cpuset *b)
{
    return memcmp(a->words, b->words, sizeof a->words) == 0;
}

bool cpuset_is_subset(const struct cpuset *part, const struct cpuset *whole)
{
    for (size_t i = 0; i < CPUSET_WORDS; i++)
        if (part->words[i] & ~whole->words[i])
            return false;
    return true;
}

void cpuset_union(struct cpuset *dst, const struct cpuset *src)
{
    for (size_t i = 0; i < CPUSET_WORDS; i++)
        dst->words[i] |= src->words[i];
}

void cpuset_intersect(struct cpuset *dst, const struct cpuset *src)
{
    for (size_t i = 0; i < CPUSET_WORDS; i++)
        dst->words[i] &= src->words[i];
}

void cpuset_subtract(struct cpuset *dst, const struct cpuset *src)
{
    for (size_t i = 0; i < CPUSET_WORDS; i++)
        dst->words[i] &= ~src->words[i];
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static int not_a_list(const char *text, struct error *err)
{
    return error_set(err, ERROR_INVALID, "not a CPU list: '%.64s'", text);
}

/* One number; moves *s past it. */
static int take_cpu(const char *text, const char **s, const char *end, unsigned *out,
                    struct error *err)
{
    unsigned v = 0;
    const char *begin = *s;

    for (; *s < end && **s >= '0' && **s <= '9'; ++*s) {
        v = v * 10 + (unsigned)(**s - '0');
        if (v >= CPUSET_MAX)
            return error_set(err, ERROR_RANGE, "CPU number above %d: '%.64s'", CPUSET_MAX - 1,
                             text);
    }
    if (*s == begin)
        return not_a_list(text, err);
    *out = v;
    return 0;
}

int cpuset_parse(const char *text, struct cpuset *out, struct error *err)
{
    const char *s = text, *end = text + strlen(text);
    struct cpuset set = {{0}};

    cpuset_clear(out);
    while (s < end && is_blank(*s))
        s++;
    while (end > s && is_blank(end[-1]))
        end--;
    while (s < end) {
        unsigned first = 0, last;
        if (take_cpu(text, &s, end, &first, err) < 0)
            return -1;
        last = first;
        if (s < end && *s == '-') {
            s++;
            if (take_cpu(text, &s, end, &last, err) < 0)
                return -1;
        }
        if (last < first)
            return error_set(err, ERROR_INVALID, "CPU range runs backwards: '%.64s'", text);
        for (unsigned cpu = first; cpu <= last; cpu++)
            cpuset_add(&set, cpu);
        if (s == end)
            break;
        if (*s++ != ',' || s == end)
            return not_a_list(text, err);
    }
    *out = set;
    return 0;
}

void cpuset_print(const struct cpuset *s, struct strbuf *out)
{
    const char *comma = "";

    for (int cpu = -1; (cpu = cpuset_next(s, cpu)) >= 0;) {
        int last = cpu;
        while (cpuset_has(s, (unsigned)last + 1))
            last++;
        strbuf_addf(out, "%s%d", comma, cpu);
        if (last > cpu)
            strbuf_addf(out, "-%d", last);
        comma = ",";
        cpu = last;
    }
}
