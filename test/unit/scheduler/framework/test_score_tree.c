// SPDX-License-Identifier: Apache-2.0
#include "scheduler/framework/score_tree.h"

#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "test/unit/lib/base/expect.h"

static uint64_t state_of_random = 1;

static uint32_t below(uint32_t n)
{
    state_of_random = state_of_random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (uint32_t)(state_of_random >> 33) % n;
}

static void nothing_wins_where_nothing_is(void **state)
{
    (void)state;
    static const uint32_t lengths[] = {0, 1, 15, 16, 17, 256, 257, 5000};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct score_tree t;
        int32_t *memory = mem_new(int32_t, score_tree_size(lengths[i]));
        score_tree_init(&t, lengths[i], memory);
        expect_int("none", SCORE_TREE_NO, score_tree_best(&t));
        free(memory);
    }
    expect_done();
}

/* Against a plain search, with few different scores so that there are ties, and with "no" among
 * them. */
static void the_winner_is_the_first_of_the_best(void **state)
{
    (void)state;
    static const uint32_t lengths[] = {1, 2, 16, 17, 100, 257, 4097};
    for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
        uint32_t len = lengths[k];
        struct score_tree t;
        int32_t *memory = mem_new(int32_t, score_tree_size(len)), *plain = mem_new(int32_t, len);
        score_tree_init(&t, len, memory);
        for (uint32_t i = 0; i < len; i++)
            plain[i] = SCORE_TREE_NO;
        for (int op = 0; op < 3000; op++) {
            uint32_t at = below(len), value = below(12);
            plain[at] = value < 4 ? SCORE_TREE_NO : (int32_t)value - 6;
            if (op % 500 == 499) {
                for (uint32_t i = 0; i < len; i++)
                    t.level[0][i] = plain[i];
                score_tree_build(&t);
            } else {
                score_tree_set(&t, at, plain[at]);
            }
            uint32_t best = 0;
            for (uint32_t i = 1; i < len; i++)
                best = plain[i] > plain[best] ? i : best;
            bool same = score_tree_best(&t) == plain[best] &&
                        (plain[best] == SCORE_TREE_NO || score_tree_winner(&t) == best);
            if (!same) {
                print_error("length %u, operation %d: expected %d at %u, got %d\n", len, op,
                            plain[best], best, score_tree_best(&t));
                expect_failures++;
                break;
            }
        }
        free(memory);
        free(plain);
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_wins_where_nothing_is),
        cmocka_unit_test(the_winner_is_the_first_of_the_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
