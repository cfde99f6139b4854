// SPDX-License-Identifier: Apache-2.0
/*
 * demand - what the pods that were seen lately ask of cards: the sizes of shares, the CPU that goes with a card, and how much insists on which models. Pure.
 *
 * A pod counts once, when it is first seen, whether it is placed or not. All counts fade: after every DEMAND_FADE_EVERY pods they lose a part, so that the last few thousand
 * pods matter and a cluster whose users change follows them. Integers only. The state is part of the dump, because it decides where pods go (I4).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "scheduler/accounts/card_value.h"

enum {
    DEMAND_SIZES_MAX = CARD_VALUE_SIZES_MAX,
    DEMAND_SETS_MAX = 64,
    DEMAND_MODELS_MAX = 64,
    DEMAND_ONE = 1 << 12, /* the weight of one pod when it comes */
    DEMAND_FADE_EVERY = 256,
    DEMAND_FADE_PART = 16, /* 1/16: the last 4,096 pods */
    DEMAND_CARD = 1000     /* thousandths of a card */
};

/* One pod. */
struct demand_ask {
    int64_t cpu_milli;
    int64_t milli_cards; /* altogether; 0: it asks for no card, and is not counted */
    int64_t size;        /* of its share of each card, in the caller's unit; 0: whole cards */
    int64_t shares;      /* of that size */
    uint64_t models;     /* a bit for each model that will do; 0: all of them */
};

struct demand_set {
    uint64_t models;
    int64_t weight;
};

struct demand {
    uint64_t seen;                                 /* pods that asked for cards */
    struct card_value_ask sizes[DEMAND_SIZES_MAX]; /* by size */
    size_t sizes_len;
    struct demand_set sets[DEMAND_SETS_MAX]; /* by models; weight in milli-cards */
    size_t sets_len;
    int64_t cpu_milli, milli_cards; /* of all that asked for cards; weighted */
};

/* Amounts of one pod are held at DEMAND_ASK_MAX: no sum overflows. */
#define DEMAND_ASK_MAX (INT64_C(1) << 30)

void demand_see(struct demand *d, const struct demand_ask *ask);
/* The same, and nothing fades: for a demand that is known as a whole. */
void demand_count(struct demand *d, const struct demand_ask *ask);
uint64_t demand_digest(const struct demand *d);
