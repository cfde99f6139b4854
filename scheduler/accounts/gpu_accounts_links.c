// SPDX-License-Identifier: Apache-2.0
/*
 * links.h chooses the cards on a node. This file compares nodes by the cards that the pod would get
 * there, as a cost in points, thousandths of a card:
 *
 *     the weakest link between two of its cards    200 without any, 100 for one NVLink, 50 for
 *                                                  three, 11 for seventeen
 *     the mean of its links                        8 and less, in the same way
 *     cards left over                              1 for each, at most 8: a pair goes where a pair
 *                                                  is free, and not into eight that belong together
 *
 * So the weakest link outweighs stranded CPU, and a user's preferences can outweigh the link.
 *
 * A node is scored whenever it changes, so this must be cheap on the largest machine: among more
 * than GPU_ACCOUNTS_LINKS_EXACT free cards a set is grown from each card, always by the card with
 * the best weakest link, and the best of these sets counts. The pod may get another one.
 */
#include "scheduler/accounts/gpu_accounts_links.h"

#include "lib/base/num.h"
#include "lib/model/links.h"
#include "lib/model/topology.h"
#include "scheduler/accounts/prices.h"

struct rating {
    int64_t weakest, sum;
};

static bool is_better(const struct rating *x, const struct rating *than)
{
    return x->weakest != than->weakest ? x->weakest > than->weakest : x->sum > than->sum;
}

static struct rating rate(const struct links *l, uint64_t set)
{
    struct rating r = {INT64_MAX, 0};
    for (uint64_t x = set; x != 0; x &= x - 1)
        for (uint64_t y = x & (x - 1); y != 0; y &= y - 1) {
            int32_t score = l->score[__builtin_ctzll(x)][__builtin_ctzll(y)];
            r.weakest = num_min(r.weakest, score);
            r.sum += score;
        }
    return r;
}

/* Grows a set from one card; ties go to the lowest. */
static struct rating grow(const struct links *l, uint64_t free, size_t first, int64_t want)
{
    struct rating each[GPU_CARDS_MAX], all = {INT64_MAX, 0};
    size_t last = first;
    free &= ~(UINT64_C(1) << first);
    for (size_t i = 0; i < GPU_CARDS_MAX; i++)
        each[i] = (struct rating){INT64_MAX, 0};
    for (int64_t n = 1; n < want; n++) {
        size_t next = GPU_CARDS_MAX;
        for (uint64_t rest = free; rest != 0; rest &= rest - 1) {
            size_t i = (size_t)__builtin_ctzll(rest);
            each[i].weakest = num_min(each[i].weakest, l->score[last][i]);
            each[i].sum += l->score[last][i];
            if (next == GPU_CARDS_MAX || is_better(&each[i], &each[next]))
                next = i;
        }
        all.weakest = num_min(all.weakest, each[next].weakest);
        all.sum += each[next].sum;
        free &= ~(UINT64_C(1) << next);
        last = next;
    }
    return all;
}

static struct rating best(const struct links *l, uint64_t free, int64_t want)
{
    struct rating most = {-1, 0};
    if (__builtin_popcountll(free) <= GPU_ACCOUNTS_LINKS_EXACT)
        return rate(l, links_choose(l, &(struct links_ask){.free = free, .count = (size_t)want}));
    for (uint64_t rest = free; rest != 0; rest &= rest - 1) {
        struct rating r = grow(l, free, (size_t)__builtin_ctzll(rest), want);
        if (is_better(&r, &most))
            most = r;
    }
    return most;
}

/* All points for no link, half for one NVLink. */
static int64_t fading(int64_t points, int64_t link)
{
    int64_t half = topology_link_score("NV1");
    return points * PRICES_POINT * half / (half + link);
}

int64_t gpu_accounts_links_cost(const struct gpu_inventory *inv, uint64_t free, int64_t want)
{
    int64_t left = __builtin_popcountll(free) - want, pairs = want * (want - 1) / 2;
    struct links links;
    if (left < 0 || want < 1)
        return 0;
    int64_t cost = num_min(left, GPU_ACCOUNTS_LINKS_LEFT) * PRICES_POINT;
    if (pairs == 0)
        return cost;
    links_of(inv, &links);
    struct rating r = best(&links, free, want);
    return cost + fading(GPU_ACCOUNTS_LINKS_WEAKEST, r.weakest) +
           fading(GPU_ACCOUNTS_LINKS_MEAN, r.sum / pairs);
}
