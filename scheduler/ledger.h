// SPDX-License-Identifier: Apache-2.0
/*
 * ledger - who holds how much of which card of one node. Pure.
 *
 * A shared card has GiB and percent, a whole card is held or not. What a pod holds without a claim that we can trust (the annotation was lost or edited) is
 * `unplaced`: it may be on any card, so it is taken off every card's free share. That wastes a little and never promises twice (I1).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/model/claim.h"
#include "lib/model/gpu.h"
#include "lib/model/pod.h"

enum { LEDGER_PERCENT = 100 };

struct ledger_card {
    int64_t used_gib;
    int64_t used_percent;
    int32_t whole_holders; /* pods that hold the whole card */
};

struct ledger {
    bool known;          /* the node has published an inventory that we understand */
    const char *problem; /* why not, when known is false: static text or in the inventory's arena */
    struct arena arena;  /* owns the inventory */
    struct gpu_inventory inventory;
    enum gpu_placement placement;
    struct ledger_card cards[GPU_CARDS_MAX]; /* by position in inventory.cards */
    int64_t unplaced_gib;
    int64_t unplaced_percent;
    int64_t unplaced_cards;
};

/* What a pod asks of the cards of one node. */
struct ledger_request {
    const struct pod *pod;
    int64_t total_gib;
    int64_t spread_over; /* label aliyun.com/gpu-count; 1 when absent */
    int64_t whole_cards; /* aliyun.com/gpu */
    bool shared;         /* asks for gpu-mem or gpu-core.percentage */
    bool any;            /* asks for anything of ours */
    const char *illegal; /* a sentence: why no node can ever serve it; NULL when legal */
};

void ledger_request_of(const struct pod *p, struct arena *a, struct ledger_request *out);

void ledger_init(struct ledger *l);
void ledger_deinit(struct ledger *l);
/* Takes the node's annotation and placement label; what is held is forgotten: the caller adds its pods again. annotation may be NULL. */
void ledger_set_inventory(struct ledger *l, const char *annotation, const char *placement);

/* Adds or (sign -1) removes what a pod holds. trusted false: by its request, on no known card. */
void ledger_account(struct ledger *l, const struct claim *claim, bool trusted,
                    const struct ledger_request *r, int sign);

enum ledger_no {
    LEDGER_FITS,
    LEDGER_NO_INVENTORY,
    LEDGER_WRONG_MODE,
    LEDGER_NO_CARD,
    LEDGER_TOO_FEW_CARDS
};
struct ledger_why {
    enum ledger_no no;
    int64_t want;        /* GiB on one card, or cards */
    int64_t largest_gib; /* free on the best card */
    int64_t free_cards;
};
/* Chooses cards by the node's placement rule; the claim lives in a. The same state gives the same answer: filter and reserve both ask here (I3). out may be NULL. */
bool ledger_choose(const struct ledger *l, const struct ledger_request *r, struct arena *a,
                   struct claim *out, struct ledger_why *why);
/* GiB of a card of that index (for claim_encode), 0 when there is none. */
int64_t ledger_card_gib(const struct ledger *l, int32_t card);
uint64_t ledger_digest(const struct ledger *l);
