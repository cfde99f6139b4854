// SPDX-License-Identifier: Apache-2.0
/*
 * prices - the cost of placing a pod on a certain card of a certain node, given the expected
 * demand. Pure.
 *
 * The cheapest placement that fits wins. A cost has three parts, all in cards (here in millionths,
 * PRICES_CARD):
 *
 *     the card    the value of its free part for the expected shares before, less the value after
 *                 (card_value.h); a little more for an unused card. Whole cards cost the same
 *                 everywhere, except for their links (gpu_accounts_links.h).
 *     the CPU     idle cards of the node left without the CPU that a card needs, after less before.
 *                 Also for pods that request no card. A card needs what pods request on average,
 *                 but no more than the node has per card, nor half of what the cluster has left
 *                 per idle card: if CPU is scarce only pods that request little of it get a card.
 *     the model   the pod's cards, times the part of the demand that insists on that model, divided
 *                 by its part of the idle cards.
 *
 * Cards differ in size, and a tenth of a large one may exceed half of a small one. So the unit is a
 * card of the mean size (prices.reference), and others count by their GiB. With different sizes,
 * small requests go to small cards, and large cards stay free for those that need them.
 *
 * Prices are a snapshot of the demand and of the idle cards (prices_take, prices_set_idle). Between
 * snapshots an answer about a node changes only with the node or with prices.version, which
 * equivalence classes rely on.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler/accounts/card_value.h"
#include "scheduler/accounts/demand.h"

enum {
    PRICES_CARD = 1000000,
    PRICES_POINT = 1000, /* costs that differ by less are equal: a thousandth of a card */
    PRICES_CAPACITIES = 16,
    PRICES_UNTOUCHED = 10,    /* points for using an unused card */
    PRICES_CPU_PERCENT = 95,  /* share of a node's CPU that can go with its cards */
    PRICES_TAKE_EVERY = 1024, /* pods */
    PRICES_MODEL_PERCENT = 30,
    PRICES_SCARCE_PERCENT = 50, /* share of the CPU per idle card that a pod can expect */
    PRICES_STEP = 8,            /* changes below an eighth are ignored */
    PRICES_SIZE_MAX = 1 << 20   /* thousandths of the mean size: upper bound for a card */
};

/* The value of free parts of cards of one size. */
struct prices_table {
    int64_t capacity; /* in the caller's unit */
    int64_t units;    /* capacity, or CARD_VALUE_UNITS_MAX if that is less */
    int32_t value[CARD_VALUE_UNITS_MAX + 1];
};

struct prices {
    uint64_t version;
    /* size of the unit card, in the unit of capacities; 0: every card is one */
    int64_t reference;
    int64_t cpu_wanted;   /* milli-CPU per card, by the demand */
    int64_t cpu_per_card; /* the same, or less if CPU is scarce; 0: CPU costs nothing */
    struct prices_table *tables;
    size_t tables_len;
    int64_t model[DEMAND_MODELS_MAX]; /* in millionths of a card for each card */
    struct demand_set sets[DEMAND_SETS_MAX];
    size_t sets_len;
    int64_t sets_of; /* total demand of the sets */
};

#define PRICES_CAPACITY_MAX (INT64_C(1) << 32)

/* The relevant part of a node. */
struct prices_node {
    int64_t cpu_milli; /* allocatable */
    int64_t cards;
    int64_t free_cpu_milli;
    int64_t idle_milli; /* of all cards, in thousandths of one */
    uint32_t model;     /* DEMAND_MODELS_MAX: unknown */
    int64_t size_milli; /* of one of its cards, in thousandths of the mean size; 0: the mean */
};

/* The cluster's idle capacity. */
struct prices_idle {
    int64_t milli_cards[DEMAND_MODELS_MAX]; /* by model */
    int64_t cpu_milli;                      /* left on nodes with cards */
};

void prices_init(struct prices *p);
void prices_deinit(struct prices *p);

/* Whether to recompute prices: when the number of pods seen has doubled, later every
 * PRICES_TAKE_EVERY pods. */
static inline bool prices_are_due(uint64_t seen, uint64_t taken)
{
    return seen != taken && (seen >= 2 * taken || seen >= taken + PRICES_TAKE_EVERY);
}
/* Computes prices from the current demand, for cards of these sizes (the first PRICES_CAPACITIES of
 * them), with the mean size reference. */
void prices_take(struct prices *p, const struct demand *d, const int64_t *capacities, size_t len,
                 int64_t reference);
/* Computes prices from idle capacity. false, and nothing is set: no change reached
 * 1/PRICES_STEP. */
bool prices_set_idle(struct prices *p, const struct prices_idle *idle);

/* Cost of a share of a card with that capacity, of which `before` is free now and `after` then. */
int64_t prices_of_share(const struct prices *p, int64_t capacity, int64_t before, int64_t after,
                        bool untouched);
/* Cost of so much CPU and so many thousandths of cards, whichever cards they are. */
int64_t prices_of_node(const struct prices *p, const struct prices_node *n, int64_t cpu_milli,
                       int64_t milli_cards);
/* The score in points of a total cost: higher is better. */
static inline int64_t prices_score(int64_t cost)
{
    return cost >= 0 ? -((cost + PRICES_POINT - 1) / PRICES_POINT) : -cost / PRICES_POINT;
}
