// SPDX-License-Identifier: Apache-2.0
/* score_tree - the best of many scores that change one at a time. Pure. A tournament of 16: level 0
 * has the scores, each entry above is the largest of the 16 below, so 5,000 scores make four levels
 * and each step touches one cache line. A change that does not affect the best of its 16, the
 * common case, stops there. Of equal scores the first wins. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { SCORE_TREE_NO = INT32_MIN, SCORE_TREE_FAN = 16, SCORE_TREE_LEVELS = 9 };

struct score_tree {
    uint32_t len;
    uint32_t levels;
    int32_t *level[SCORE_TREE_LEVELS]; /* [0]: the scores, SCORE_TREE_NO behind the last */
};

/* Number of int32_t for a tree of that many scores. */
size_t score_tree_size(uint32_t len);
/* memory is the caller's, score_tree_size(len) long. All scores are SCORE_TREE_NO. */
void score_tree_init(struct score_tree *t, uint32_t len, int32_t *memory);
/* After t->level[0] was written directly. */
void score_tree_build(struct score_tree *t);
void score_tree_set(struct score_tree *t, uint32_t i, int32_t score);
/* SCORE_TREE_NO: none. */
static inline int32_t score_tree_best(const struct score_tree *t)
{
    return t->level[t->levels - 1][0];
}
/* The index of the first best score. Not for an empty tree. */
uint32_t score_tree_winner(const struct score_tree *t);
