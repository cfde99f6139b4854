// SPDX-License-Identifier: Apache-2.0
/* Memory in use: what is asked for counts, what is given back does not. */
#include "test/local/memory.h"

#include "test/unit/lib/base/expect.h"

#include "lib/base/mem.h"
#include "lib/base/metrics.h"
#include "lib/base/str.h"

enum { PIECE = 1000, COUNT = 2000, SLACK = 200 * 1000 };

static void counts_what_is_asked_for_and_not_given_back(void **state)
{
    (void)state;
    static char *pieces[COUNT];
    int64_t before = memory_in_use_bytes();
    for (size_t i = 0; i < COUNT; i++)
        pieces[i] = mem_new(char, PIECE);
    int64_t between = memory_in_use_bytes();
    for (size_t i = 0; i < COUNT; i++)
        free(pieces[i]);
    int64_t after = memory_in_use_bytes();
    if (before <= 0 || between - before < PIECE * COUNT || between - before > PIECE * COUNT + SLACK)
        fail_msg("expected %d more (and some) than %lld, got %lld", PIECE * COUNT,
                 (long long)before, (long long)between);
    if (after > before + SLACK || after < before - SLACK)
        fail_msg("expected about %lld again, got %lld", (long long)before, (long long)after);
    /* One large piece, which malloc asks the kernel for. */
    char *large = mem_new(char, 64 << 20);
    between = memory_in_use_bytes();
    free(large);
    if (between - before < 64 << 20)
        fail_msg("expected 64 MiB more than %lld, got %lld", (long long)before, (long long)between);
}

static void is_a_metric(void **state)
{
    (void)state;
    AUTO_STRBUF text = {0};
    memory_register();
    metrics_render(&text);
    if (!strstr(strbuf_str(&text), "\ncosched_local_memory_bytes "))
        fail_msg("expected cosched_local_memory_bytes, got %s", strbuf_str(&text));
    metrics_reset();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_what_is_asked_for_and_not_given_back),
        cmocka_unit_test(is_a_metric),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
