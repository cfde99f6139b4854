// SPDX-License-Identifier: Apache-2.0
#include "scheduler/queue/queue_need.h"

#include "lib/base/num.h"

/* The largest piece of it that must be on one card. */
static int64_t card_gib_of(const struct gpu_request *r)
{
    int64_t most = 0;
    if (!r->shared || r->spread_over > 1)
        return 0;
    for (size_t i = 0; i < r->shares_len; i++)
        most = num_max(most, r->shares[i].gib);
    return most;
}

void queue_need_add(struct queue_need *n, const struct cluster_pod *cp)
{
    const struct resource_vector *want = &cp->request;
    struct queue_need one = {.set = true,
                             .preempts = !cp->pod->preempt_never,
                             .priority = cp->pod->priority,
                             .cpu_milli = want->cpu_milli,
                             .memory_bytes = want->memory_bytes,
                             .ephemeral_bytes = want->ephemeral_bytes,
                             .card_gib = card_gib_of(&cp->gpu),
                             .cards = cp->gpu.total[GPU_REQUEST_CARDS]};
    if (!n->set) {
        *n = one;
        return;
    }
    n->preempts |= one.preempts;
    n->priority = (int32_t)num_max(n->priority, one.priority);
    n->cpu_milli = num_min(n->cpu_milli, one.cpu_milli);
    n->memory_bytes = num_min(n->memory_bytes, one.memory_bytes);
    n->ephemeral_bytes = num_min(n->ephemeral_bytes, one.ephemeral_bytes);
    n->card_gib = num_min(n->card_gib, one.card_gib);
    n->cards = num_min(n->cards, one.cards);
}

/* Keeps four bits: small numbers, as GiB of a card and cards are, stay as they are. */
static int64_t rounded(int64_t amount)
{
    int shift = 0;
    while (amount >> shift >= 16)
        shift++;
    return amount >> shift << shift;
}

void queue_need_round(struct queue_need *n)
{
    if (!n->preempts)
        n->priority = 0;
    n->cpu_milli = rounded(n->cpu_milli);
    n->memory_bytes = rounded(n->memory_bytes);
    n->ephemeral_bytes = rounded(n->ephemeral_bytes);
    n->card_gib = rounded(n->card_gib);
    n->cards = rounded(n->cards);
}

/* What its cards have at most, whatever their health. */
static bool cards_may_fit(const struct queue_need *n, const struct gpu_accounts *l)
{
    int64_t largest = 0, whole = 0;
    for (size_t i = 0; i < l->inventory.cards_len; i++) {
        const struct gpu_accounts_card *card = &l->cards[i];
        if (card->whole_holders > 0)
            continue;
        whole += card->used_gib == 0;
        largest = num_max(largest, gpu_card_gib(&l->inventory.cards[i]) - card->used_gib);
    }
    return n->card_gib <= largest && n->cards <= whole;
}

static bool has(int64_t want, int64_t total, int64_t used)
{
    return want <= 0 || want <= num_sub_sat(total, used);
}

static bool amounts_may_fit(const struct queue_need *n, const struct resource_vector *total,
                            const struct resource_vector *used)
{
    return has(1, total->pods, used->pods) &&
           has(n->cpu_milli, total->cpu_milli, used->cpu_milli) &&
           has(n->memory_bytes, total->memory_bytes, used->memory_bytes) &&
           has(n->ephemeral_bytes, total->ephemeral_bytes, used->ephemeral_bytes);
}

/* What stays if less important pods go. An overflow counts as nothing. */
static bool may_fit_without_others(const struct queue_need *n, const struct cluster_node *cn)
{
    struct resource_vector used = {0};
    bool cards_stay = true;
    for (size_t i = 0; i < cn->pods.len; i++) {
        const struct cluster_pod *cp = cn->pods.items[i];
        if (cp->pod->priority < n->priority || cp->pod->terminating || cp->evicting) {
            cards_stay &= !cp->gpu.any;
            continue;
        }
        used.pods++;
        used.cpu_milli = num_add_sat(used.cpu_milli, cp->request.cpu_milli);
        used.memory_bytes = num_add_sat(used.memory_bytes, cp->request.memory_bytes);
        used.ephemeral_bytes = num_add_sat(used.ephemeral_bytes, cp->request.ephemeral_bytes);
    }
    return amounts_may_fit(n, &cn->allocatable, &used) &&
           (!cards_stay || cards_may_fit(n, &cn->gpu_accounts));
}

bool queue_need_may_fit(const struct queue_need *n, const struct cluster_node *cn)
{
    if (!n->set || cn->is_virtual)
        return true;
    if (cn->node == NULL)
        return false;
    if (amounts_may_fit(n, &cn->allocatable, &cn->used) && cards_may_fit(n, &cn->gpu_accounts))
        return true;
    return n->preempts && may_fit_without_others(n, cn);
}
