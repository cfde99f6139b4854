// SPDX-License-Identifier: Apache-2.0
#include "scheduler/framework/score_tree.h"

#include <assert.h>

static uint32_t padded(uint32_t len)
{
    return len == 0 ? SCORE_TREE_FAN : (len + SCORE_TREE_FAN - 1) / SCORE_TREE_FAN * SCORE_TREE_FAN;
}

size_t score_tree_size(uint32_t len)
{
    size_t sum = 0;
    uint32_t n = padded(len);
    for (;; n = padded(n / SCORE_TREE_FAN)) {
        sum += n;
        if (n == SCORE_TREE_FAN)
            return sum + SCORE_TREE_FAN; /* the top: one, in a cache line of its own */
    }
}

void score_tree_init(struct score_tree *t, uint32_t len, int32_t *memory)
{
    size_t size = score_tree_size(len);
    *t = (struct score_tree){.len = len};
    for (size_t i = 0; i < size; i++)
        memory[i] = SCORE_TREE_NO;
    uint32_t n = padded(len);
    for (;; n = padded(n / SCORE_TREE_FAN)) {
        t->level[t->levels++] = memory;
        memory += n;
        if (n == SCORE_TREE_FAN)
            break;
    }
    assert(t->levels < SCORE_TREE_LEVELS);
    t->level[t->levels++] = memory;
}

static int32_t best_of(const int32_t *of)
{
    int32_t best = of[0];
    for (int i = 1; i < SCORE_TREE_FAN; i++)
        best = of[i] > best ? of[i] : best;
    return best;
}

void score_tree_build(struct score_tree *t)
{
    uint32_t n = padded(t->len);
    for (uint32_t k = 1; k < t->levels; k++, n = padded(n / SCORE_TREE_FAN))
        for (uint32_t i = 0; i < n / SCORE_TREE_FAN; i++)
            t->level[k][i] = best_of(&t->level[k - 1][(size_t)i * SCORE_TREE_FAN]);
}

void score_tree_set(struct score_tree *t, uint32_t i, int32_t score)
{
    int32_t was = t->level[0][i];
    t->level[0][i] = score;
    for (uint32_t k = 1; k < t->levels; k++) {
        uint32_t at = i / SCORE_TREE_FAN;
        int32_t best = t->level[k][at];
        if (score >= best)
            t->level[k][at] = score;
        else if (was < best)
            return;
        else
            t->level[k][at] = score = best_of(&t->level[k - 1][(size_t)at * SCORE_TREE_FAN]);
        if (t->level[k][at] == best)
            return;
        was = best;
        i = at;
    }
}

uint32_t score_tree_winner(const struct score_tree *t)
{
    int32_t best = score_tree_best(t);
    uint32_t at = 0;
    for (uint32_t k = t->levels - 1; k-- > 0;)
        for (at *= SCORE_TREE_FAN; t->level[k][at] != best;)
            at++;
    return at;
}
