// SPDX-License-Identifier: Apache-2.0
/*
 * tree - the best of many scores, of which one changes at a time. Pure.
 *
 * A tournament of 16 at a time: level 0 has the scores, each entry above is the largest of the 16 below it, so 5,000 scores are four levels and each step touches one
 * cache line. A score that neither was nor becomes the best of its 16 stops there, which is what most changes do. Equal scores: the first wins.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { TREE_NO = INT32_MIN, TREE_FAN = 16, TREE_LEVELS = 9 };

struct tree {
    uint32_t len;
    uint32_t levels;
    int32_t *level[TREE_LEVELS]; /* [0]: the scores, TREE_NO behind the last */
};

/* How many int32_t a tree of that many scores takes. */
size_t tree_size(uint32_t len);
/* memory is the caller's, tree_size(len) long. All scores are TREE_NO. */
void tree_init(struct tree *t, uint32_t len, int32_t *memory);
/* After t->level[0] was written directly. */
void tree_build(struct tree *t);
void tree_set(struct tree *t, uint32_t i, int32_t score);
/* TREE_NO: none. */
static inline int32_t tree_best(const struct tree *t)
{
    return t->level[t->levels - 1][0];
}
/* The first that has the best score. Not for an empty tree. */
uint32_t tree_winner(const struct tree *t);
