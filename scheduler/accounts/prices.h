// SPDX-License-Identifier: Apache-2.0
/*
 * prices - what it costs to put a pod on a certain card of a certain node, by the demand that is expected. Pure.
 *
 * The cheapest place that fits is taken. A cost has three parts, all in cards (here in millionths, PRICES_CARD):
 *
 *     the card    what its rest was worth to the shares that are expected, less what the new rest is worth (card_value.h); a little more for a card that nobody uses yet.
 *                 Whole cards cost the same everywhere, but for their links (ledger_links.h).
 *     the CPU     idle cards of the node that are left without the CPU that goes with a card, after less before. Also for pods that ask for no card. What goes with a card is
 *                 what pods ask for on average, but no more than the node has for each card, nor than half of what the cluster has left for each idle one: where CPU is
 *                 scarce only pods that ask for little of it will get a card.
 *     the model   the pod's cards, times how much of the demand insists on that model, by how much of it is idle.
 *
 * Cards differ in size, and a tenth of a large one may be more than half of a small one. So a card here is one of the mean size (prices.reference): what is taken of another counts by
 * its GiB. Where all are equal that changes nothing; where they are not, small requests go to small cards, and large cards stay for those that need them.
 *
 * Prices are a picture of the demand and of the idle cards at one time (prices_take, prices_set_idle). They hold until they are taken anew: an answer about a node changes only with the
 * node or with prices.version, which is what a class of pods may rely on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler/accounts/card_value.h"
#include "scheduler/accounts/demand.h"

enum {
    PRICES_CARD = 1000000,    /* one card */
    PRICES_POINT = 1000,      /* costs that differ by less are equal: a thousandth of a card */
    PRICES_CAPACITIES = 16,   /* different sizes of cards that are told apart */
    PRICES_UNTOUCHED = 10,    /* points for a card that nobody uses yet */
    PRICES_CPU_PERCENT = 95,  /* of a node's CPU is what can go with its cards */
    PRICES_TAKE_EVERY = 1024, /* pods */
    PRICES_MODEL_PERCENT = 30,
    PRICES_SCARCE_PERCENT = 50, /* of the CPU there is for an idle card can be hoped for */
    PRICES_STEP = 8,            /* by less than an eighth nothing is changed */
    PRICES_SIZE_MAX = 1 << 20   /* thousandths of the mean size: no card counts as larger */
};

/* The worth of rests of cards of one size. */
struct prices_table {
    int64_t capacity; /* in the caller's unit */
    int64_t units;    /* capacity, or CARD_VALUE_UNITS_MAX if that is less */
    int32_t value[CARD_VALUE_UNITS_MAX + 1];
};

struct prices {
    uint64_t version;
    int64_t
        reference; /* the size that is a card, in the unit of capacities; 0: every card is one */
    int64_t cpu_wanted;   /* milli-CPU for a card, by the demand */
    int64_t cpu_per_card; /* the same, or less where there is less; 0: CPU costs nothing */
    struct prices_table *tables;
    size_t tables_len;
    int64_t model[DEMAND_MODELS_MAX]; /* in millionths of a card for each card */
    struct demand_set sets[DEMAND_SETS_MAX];
    size_t sets_len;
    int64_t sets_of; /* of that much demand altogether */
};

#define PRICES_CAPACITY_MAX (INT64_C(1) << 32)

/* A node as far as it matters. */
struct prices_node {
    int64_t cpu_milli; /* allocatable */
    int64_t cards;
    int64_t free_cpu_milli;
    int64_t idle_milli; /* of all cards, in thousandths of one */
    uint32_t model;     /* DEMAND_MODELS_MAX: not known */
    int64_t size_milli; /* of one of its cards, in thousandths of the mean size; 0: the same */
};

/* What is idle in the cluster. */
struct prices_idle {
    int64_t milli_cards[DEMAND_MODELS_MAX]; /* by model */
    int64_t cpu_milli;                      /* left on nodes with cards */
};

void prices_init(struct prices *p);
void prices_deinit(struct prices *p);

/* Whether so many pods were seen since prices were last taken that they should be again: twice as many, and later every thousand. */
static inline bool prices_are_due(uint64_t seen, uint64_t taken)
{
    return seen != taken && (seen >= 2 * taken || seen >= taken + PRICES_TAKE_EVERY);
}
/* By the demand as it is, for cards of these sizes (the first PRICES_CAPACITIES of them), of which reference is the mean. */
void prices_take(struct prices *p, const struct demand *d, const int64_t *capacities, size_t len,
                 int64_t reference);
/* By what is idle. false, and nothing is set: nothing has moved by as much as a PRICES_STEP-th. */
bool prices_set_idle(struct prices *p, const struct prices_idle *idle);

/* Of a share of a card with that capacity, of which `before` is left now and `after` then. */
int64_t prices_of_share(const struct prices *p, int64_t capacity, int64_t before, int64_t after,
                        bool untouched);
/* Of that much CPU and so many thousandths of cards, whichever cards they are. */
int64_t prices_of_node(const struct prices *p, const struct prices_node *n, int64_t cpu_milli,
                       int64_t milli_cards);
/* Of both: higher is better, in points. */
static inline int64_t prices_score(int64_t cost)
{
    return cost >= 0 ? -((cost + PRICES_POINT - 1) / PRICES_POINT) : -cost / PRICES_POINT;
}
