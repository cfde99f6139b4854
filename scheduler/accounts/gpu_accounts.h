// SPDX-License-Identifier: Apache-2.0
/*
 * gpu_accounts - how much of each card of one node each pod holds. Pure.
 *
 * A shared card has GiB and percent, a whole card is held or not. What a pod holds without a
 * trusted grant (the annotation was lost or edited, or names a card that the node lacks) is
 * `unplaced`: it may be on any card, so it is subtracted from every card's free share, and no whole
 * card is given out beside it. That wastes a little and never gives a card out twice (I1).
 *
 * Amounts of one pod, and of one card, are capped at GPU_REQUEST_MAX, so that sums over a node's
 * pods cannot overflow.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/model/grant.h"
#include "lib/model/gpu.h"
#include "lib/model/gpu_request.h"
#include "scheduler/accounts/prices.h"

enum { GPU_ACCOUNTS_PERCENT = 100 };

struct gpu_accounts_card {
    int64_t used_gib;
    int64_t used_percent;
    int32_t whole_holders; /* pods that hold the whole card */
};

/* Assignment would share the cards: copy with gpu_accounts_try_on. */
struct gpu_accounts {
    bool known;          /* the node has published a valid inventory */
    const char *problem; /* why known is false: static text or in the inventory's arena */
    struct arena arena;  /* owns the inventory */
    struct gpu_inventory inventory;
    enum gpu_placement placement;
    bool ruled; /* a label sets the placement, or cards differ in size; else prices choose */
    const struct prices *prices;     /* the cluster's; NULL: binpack unless a label sets a rule */
    struct gpu_accounts_card *cards; /* by position in inventory.cards; in the arena */
    const char **troubles;           /* "GPU0 unhealthy (XID 79)", or NULL; likewise */
    int64_t unplaced_gib;
    int64_t unplaced_percent;
    int64_t unplaced_cards;
};

void gpu_accounts_init(struct gpu_accounts *l);
void gpu_accounts_deinit(struct gpu_accounts *l);
/* Takes the node's annotation (or NULL) and placement label, and drops all pods: the caller adds
 * them again. */
void gpu_accounts_set_inventory(struct gpu_accounts *l, const char *annotation,
                                const char *placement);

/* A copy in a for trial accounting; it borrows the inventory. Nothing to deinit. */
void gpu_accounts_try_on(const struct gpu_accounts *l, struct arena *a, struct gpu_accounts *out);

/* The same with the cards of one NUMA node only: the others count as unhealthy. */
void gpu_accounts_try_on_numa(const struct gpu_accounts *l, int32_t numa, struct arena *a,
                              struct gpu_accounts *out);

/* Adds or (sign -1) removes what a pod holds: by its grant, if that is trusted and all its cards
 * exist here; else by its request, as unplaced. */
void gpu_accounts_account(struct gpu_accounts *l, const struct grant *grant, bool trusted,
                          const struct gpu_request *r, int sign);

enum gpu_accounts_no {
    GPU_ACCOUNTS_FITS,
    GPU_ACCOUNTS_NO_INVENTORY,
    GPU_ACCOUNTS_WRONG_MODE,
    GPU_ACCOUNTS_SWITCHING,
    GPU_ACCOUNTS_UNPLACED, /* whole cards requested, and pods hold unidentified cards */
    GPU_ACCOUNTS_NO_CARD,
    GPU_ACCOUNTS_TOO_FEW_CARDS
};
struct gpu_accounts_why {
    enum gpu_accounts_no no;
    int64_t want;            /* GiB on one card, or cards */
    int64_t want_percent;    /* 0: not asked */
    int64_t largest_gib;     /* free on the card with the most capacity */
    int64_t largest_percent; /* free there */
    int32_t largest_card;    /* its index; -1: none */
    int64_t free_cards;
};
/* Chooses cards by the node's placement rule and sets only the grant's cards (in a). Deterministic:
 * filter and reserve both call it (I3). out may be NULL. */
bool gpu_accounts_choose(const struct gpu_accounts *l, const struct gpu_request *r, struct arena *a,
                         struct grant *out, struct gpu_accounts_why *why);
/* Whether the node's cards could hold it with no other pod and all of them healthy; if not, why has
 * the sizes. Also true if that is not known (no inventory) or not a matter of size (mode). */
bool gpu_accounts_could(const struct gpu_accounts *l, const struct gpu_request *r, struct arena *a,
                        struct gpu_accounts_why *why);
/* The cost of the shares that gpu_accounts_choose would take (prices.h); of whole cards, by their
 * links (gpu_accounts_links.h). false: unknown, or the request does not fit. */
bool gpu_accounts_cost(const struct gpu_accounts *l, const struct gpu_request *r, int64_t *cost);
/* The free part of all healthy cards, in thousandths of a card. */
int64_t gpu_accounts_idle_milli(const struct gpu_accounts *l);
/* As gpu_accounts_choose, for one pod of a job: takes the whole cards that connect best with the
 * cards `beside` (by position; held by the other pods), and leaves the best ones for later members,
 * which want so many. */
struct gpu_accounts_peers {
    uint64_t beside;
    int64_t to_come;
};
bool gpu_accounts_choose_with(const struct gpu_accounts *l, const struct gpu_request *r,
                              const struct gpu_accounts_peers *topology_job, struct arena *a,
                              struct grant *out, struct gpu_accounts_why *why);
/* A card that could take the largest share of the request, or one of its whole cards, if it were
 * healthy: "GPU0 unhealthy (XID 79)", valid as long as the inventory. NULL: none; health is not the
 * cause. short_by: for a request that is not accounted here (nvidia.com/gpu), the number of missing
 * cards; 0: use r. */
const char *gpu_accounts_trouble(const struct gpu_accounts *l, const struct gpu_request *r,
                                 int64_t short_by);
/* Free whole cards, by position; 0 if the node offers none (unknown, another mode, switching). */
uint64_t gpu_accounts_free_cards(const struct gpu_accounts *l);
/* The position of the card of that index, or -1. */
int32_t gpu_accounts_find_card(const struct gpu_accounts *l, int32_t card);
/* GiB of a card of that index (for grant_encode), 0 when there is none. */
int64_t gpu_accounts_card_gib(const struct gpu_accounts *l, int32_t card);
uint64_t gpu_accounts_digest(const struct gpu_accounts *l);
