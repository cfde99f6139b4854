// SPDX-License-Identifier: Apache-2.0
/*
 * demand - what recent pods requested of cards: the sizes of shares, the CPU per card, and the
 * demand for specific models. Pure.
 *
 * A pod counts once, when first seen, whether it is placed or not. Counts decay after every
 * DEMAND_FADE_EVERY pods, so that the last few thousand pods matter and the demand follows a
 * changing cluster. Integers only. The state is part of the dump, because it affects placement
 * (I4).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "scheduler/accounts/card_value.h"

enum {
    DEMAND_SIZES_MAX = CARD_VALUE_SIZES_MAX,
    DEMAND_SETS_MAX = 64,
    DEMAND_MODELS_MAX = 64,
    DEMAND_ONE = 1 << 12, /* the weight of a new pod */
    DEMAND_FADE_EVERY = 256,
    DEMAND_FADE_PART = 16, /* 1/16: the last 4,096 pods */
    DEMAND_CARD = 1000     /* thousandths of a card */
};

struct demand_ask {
    int64_t cpu_milli;
    int64_t milli_cards; /* total; 0: the pod requests no card and is not counted */
    int64_t size;        /* of its share of each card, in the caller's unit; 0: whole cards */
    int64_t shares;      /* of that size */
    uint64_t models;     /* a bit for each acceptable model; 0: all */
};

struct demand_set {
    uint64_t models;
    int64_t weight;
};

struct demand {
    uint64_t seen;                                 /* pods that requested cards */
    struct card_value_ask sizes[DEMAND_SIZES_MAX]; /* by size */
    size_t sizes_len;
    struct demand_set sets[DEMAND_SETS_MAX]; /* by models; weight in milli-cards */
    size_t sets_len;
    int64_t cpu_milli, milli_cards; /* weighted sums over pods that requested cards */
};

/* The amounts of one pod are capped at DEMAND_ASK_MAX, so no sum overflows. */
#define DEMAND_ASK_MAX (INT64_C(1) << 30)

void demand_see(struct demand *d, const struct demand_ask *ask);
/* The same without decay, for a demand that is known as a whole. */
void demand_count(struct demand *d, const struct demand_ask *ask);
