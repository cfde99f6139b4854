// SPDX-License-Identifier: Apache-2.0
/* The limits file: what it says, what it may say later, and what makes no sense. */
#include "device-plugin/isolation/limits.h"

#include <stdio.h>

#include "test/unit/lib/base/expect.h"

#define FIRST "cosched-gpu-limits 1\n"
#define UUID "GPU-6c9b1d3e-00aa-4000-8000-0123456789aB"

static void parse_table(void **state)
{
    (void)state;
    static const struct {
        const char *row, *text;
        bool valid;
        uint32_t cards;
        uint64_t mib, percent, context;
    } rows[] = {
        {"one card", FIRST "card " UUID " mib=3072 percent=30 context=7\n", true, 1, 3072, 30, 7},
        {"without the end of the last line", FIRST "card " UUID " mib=1", true, 1, 1, 100, 0},
        {"no cards", FIRST, true, 0, 0, 0, 0},
        {"words and lines of a later plugin",
         FIRST "driver 999\n\ncard " UUID " colour=red mib=5 percent=1\nlater x=1\n", true, 1, 5, 1,
         0},
        {"no memory at all", FIRST "card " UUID " mib=0\n", true, 1, 0, 100, 0},
        {"the most", FIRST "card " UUID " mib=1048576 percent=100\n", true, 1, 1048576, 100, 0},
        {"more than that", FIRST "card " UUID " mib=1048577\n", false, 0, 0, 0, 0},
        {"without memory", FIRST "card " UUID " percent=30\n", false, 0, 0, 0, 0},
        {"no percent", FIRST "card " UUID " mib=1 percent=0\n", false, 0, 0, 0, 0},
        {"101 percent", FIRST "card " UUID " mib=1 percent=101\n", false, 0, 0, 0, 0},
        {"a sign", FIRST "card " UUID " mib=-1\n", false, 0, 0, 0, 0},
        {"letters", FIRST "card " UUID " mib=1x\n", false, 0, 0, 0, 0},
        {"nothing after =", FIRST "card " UUID " mib=\n", false, 0, 0, 0, 0},
        {"a number that overflows", FIRST "card " UUID " mib=18446744073709551617\n", false, 0, 0,
         0, 0},
        {"half a uuid", FIRST "card GPU-6c9b1d3e mib=1\n", false, 0, 0, 0, 0},
        {"a uuid that is none", FIRST "card GPU-6c9b1d3g-00aa-4000-8000-0123456789ab mib=1\n",
         false, 0, 0, 0, 0},
        {"another version", "cosched-gpu-limits 2\ncard " UUID " mib=1\n", false, 0, 0, 0, 0},
        {"empty", "", false, 0, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct limits l;
        /* In memory of its own size, so that the sanitizer sees a step too far. */
        size_t n = strlen(rows[i].text);
        char *text = malloc(n + 1);
        memcpy(text, rows[i].text, n);
        expect_int(rows[i].row, rows[i].valid, limits_parse(text, n, &l));
        free(text);
        expect_int(rows[i].row, rows[i].cards, l.len);
        if (l.len != 1)
            continue;
        expect_int(rows[i].row, (int64_t)rows[i].mib << 20, (int64_t)l.cards[0].bytes);
        expect_int(rows[i].row, (int64_t)rows[i].percent, l.cards[0].percent);
        expect_int(rows[i].row, (int64_t)rows[i].context << 20, (int64_t)l.cards[0].context_bytes);
        char out[256];
        struct limits again;
        expect_true(rows[i].row, limits_parse(out, limits_print(&l, out, sizeof out), &again));
        expect_int("printed and read again", (int64_t)l.cards[0].bytes,
                   (int64_t)again.cards[0].bytes);
        expect_int("the same card", 0, limits_find(&again, l.cards[0].uuid));
        expect_int("the same percent", l.cards[0].percent, again.cards[0].percent);
    }
    expect_done();
}

static void sizes(void **state)
{
    (void)state;
    struct limits l = {.len = LIMITS_CARDS}, again;
    static char text[LIMITS_BYTES_MAX];
    for (uint32_t i = 0; i < l.len; i++)
        l.cards[i] = (struct limits_card){
            .uuid = {(unsigned char)i}, .bytes = (uint64_t)LIMITS_MIB_MAX << 20, .percent = 100};
    size_t n = limits_print(&l, text, sizeof text);
    expect_true("the largest file fits", n > 0);
    expect_true("and is read", limits_parse(text, n, &again));
    expect_int("all cards", LIMITS_CARDS, again.len);
    expect_int("found by uuid", 5, limits_find(&again, l.cards[5].uuid));
    expect_int("not found", -1, limits_find(&again, (const unsigned char[16]){99}));
    expect_int("no room for it", 0, (int64_t)limits_print(&l, text, n - 1));
    static const char more[] = "card " UUID " mib=1\n";
    memcpy(text + n, more, sizeof more - 1);
    expect_int("one card too many", false, limits_parse(text, n + sizeof more - 1, &again));
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parse_table), cmocka_unit_test(sizes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
