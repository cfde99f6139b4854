// SPDX-License-Identifier: Apache-2.0
/*
 * ledger - who holds how much of which card of one node. Pure.
 *
 * A shared card has GiB and percent, a whole card is held or not. What a pod holds without a claim that we can trust (the annotation was lost or edited, or it
 * names a card that the node does not have) is `unplaced`: it may be on any card, so it is taken off every card's free share, and no whole card is
 * promised beside it. That wastes a little and never promises twice (I1).
 *
 * Amounts of one pod are held at LEDGER_MAX, far beyond any card, so that sums over all pods of a node cannot overflow whatever somebody writes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/model/claim.h"
#include "lib/model/gpu.h"
#include "scheduler/accounts/ledger_request.h"
#include "scheduler/accounts/prices.h"

enum { LEDGER_PERCENT = 100 };

struct ledger_card {
    int64_t used_gib;
    int64_t used_percent;
    int32_t whole_holders; /* pods that hold the whole card */
};

/* A copy by assignment would share the cards: ledger_try_on. */
struct ledger {
    bool known;          /* the node has published an inventory that we understand */
    const char *problem; /* why not, when known is false: static text or in the inventory's arena */
    struct arena arena;  /* owns the inventory */
    struct gpu_inventory inventory;
    enum gpu_placement placement;
    bool ruled; /* by the node's label, or cards differ in size; else prices decide between cards */
    const struct prices *prices; /* the cluster's; NULL: binpack where no label rules */
    struct ledger_card *cards;   /* by position in inventory.cards; in the arena */
    const char **troubles;       /* "GPU0 unhealthy (XID 79)", or NULL; likewise */
    int64_t unplaced_gib;
    int64_t unplaced_percent;
    int64_t unplaced_cards;
};

void ledger_init(struct ledger *l);
void ledger_deinit(struct ledger *l);
/* Takes the node's annotation and placement label; what is held is forgotten: the caller adds its pods again. annotation may be NULL. */
void ledger_set_inventory(struct ledger *l, const char *annotation, const char *placement);

/* One to account on for a trial, in a: the inventory is the other's. Nothing to deinit. */
void ledger_try_on(const struct ledger *l, struct arena *a, struct ledger *out);

/* The same with the cards of one NUMA node alone: the others count as unhealthy. */
void ledger_try_on_numa(const struct ledger *l, int32_t numa, struct arena *a, struct ledger *out);

/* Adds or (sign -1) removes what a pod holds. By its claim, if that is trusted and all its cards exist here; else by its request, on no known card. */
void ledger_account(struct ledger *l, const struct claim *claim, bool trusted,
                    const struct ledger_request *r, int sign);

enum ledger_no {
    LEDGER_FITS,
    LEDGER_NO_INVENTORY,
    LEDGER_WRONG_MODE,
    LEDGER_SWITCHING,
    LEDGER_UNPLACED, /* whole cards, and pods hold cards that nobody can name */
    LEDGER_NO_CARD,
    LEDGER_TOO_FEW_CARDS
};
struct ledger_why {
    enum ledger_no no;
    int64_t want;            /* GiB on one card, or cards */
    int64_t want_percent;    /* 0: not asked */
    int64_t largest_gib;     /* free on the most promising card */
    int64_t largest_percent; /* free there */
    int32_t largest_card;    /* its index; -1: there is none */
    int64_t free_cards;
};
/* Chooses cards by the node's placement rule and sets the claim's cards (in a), nothing else of it. The same state gives the same answer: filter and
 * reserve both ask here (I3). out may be NULL. */
bool ledger_choose(const struct ledger *l, const struct ledger_request *r, struct arena *a,
                   struct claim *out, struct ledger_why *why);
/* What the shares of the cards that ledger_choose would take cost (prices.h); of whole cards, by their links (ledger_links.h). false: nothing is known of that, or it does not fit. */
bool ledger_cost(const struct ledger *l, const struct ledger_request *r, int64_t *cost);
/* How much of all healthy cards is free for pods, in thousandths of a card. */
int64_t ledger_idle_milli(const struct ledger *l);
/* The same for one of several pods that belong together: of whole cards those that go best with the cards `beside` (by position; held by the others) and leave the best
 * ones for those to come, who want so many. */
struct ledger_peers {
    uint64_t beside;
    int64_t to_come;
};
bool ledger_choose_with(const struct ledger *l, const struct ledger_request *r,
                        const struct ledger_peers *peers, struct arena *a, struct claim *out,
                        struct ledger_why *why);
/* A card that could take the largest share of the request, or one of its whole cards, if only it were well: "GPU0 unhealthy (XID 79)", valid as long as the inventory. NULL: there is none,
 * and health is not what keeps the pod away. short_by: of a request that no ledger is kept of (nvidia.com/gpu), how many cards are missing; 0: r says. */
const char *ledger_trouble(const struct ledger *l, const struct ledger_request *r,
                           int64_t short_by);
/* Whole cards that are free, by position; 0 where the node has none to give (unknown, another mode, switching). */
uint64_t ledger_free_cards(const struct ledger *l);
/* The position of the card of that index, or -1. */
int32_t ledger_find_card(const struct ledger *l, int32_t card);
/* GiB of a card of that index (for claim_encode), 0 when there is none. */
int64_t ledger_card_gib(const struct ledger *l, int32_t card);
uint64_t ledger_digest(const struct ledger *l);
