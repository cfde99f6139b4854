// SPDX-License-Identifier: Apache-2.0
#include "scheduler/accounts/demand.h"

#include <string.h>

#include "lib/base/num.h"
#include "lib/base/str.h"

static void fade(struct demand *d)
{
    size_t n = 0;
    for (size_t i = 0; i < d->sizes_len; i++) {
        struct card_value_ask a = d->sizes[i];
        a.weight -= (a.weight + DEMAND_FADE_PART - 1) / DEMAND_FADE_PART;
        if (a.weight > 0)
            d->sizes[n++] = a;
    }
    d->sizes_len = n;
    n = 0;
    for (size_t i = 0; i < d->sets_len; i++) {
        struct demand_set s = d->sets[i];
        s.weight -= (s.weight + DEMAND_FADE_PART - 1) / DEMAND_FADE_PART;
        if (s.weight > 0)
            d->sets[n++] = s;
    }
    d->sets_len = n;
    d->cpu_milli -= d->cpu_milli / DEMAND_FADE_PART;
    d->milli_cards -= d->milli_cards / DEMAND_FADE_PART;
}

/* When the table is full the rarest size is replaced. */
static void count_size(struct demand *d, int64_t size, int64_t weight)
{
    size_t at = 0, rarest = 0;
    while (at < d->sizes_len && d->sizes[at].size < size)
        at++;
    if (at < d->sizes_len && d->sizes[at].size == size) {
        d->sizes[at].weight += weight;
        return;
    }
    if (d->sizes_len == DEMAND_SIZES_MAX) {
        for (size_t i = 1; i < d->sizes_len; i++)
            if (d->sizes[i].weight < d->sizes[rarest].weight)
                rarest = i;
        d->sizes_len--;
        memmove(&d->sizes[rarest], &d->sizes[rarest + 1],
                (d->sizes_len - rarest) * sizeof *d->sizes);
        at -= at > rarest;
    }
    memmove(&d->sizes[at + 1], &d->sizes[at], (d->sizes_len - at) * sizeof *d->sizes);
    d->sizes[at] = (struct card_value_ask){.size = size, .weight = weight};
    d->sizes_len++;
}

static void count_set(struct demand *d, uint64_t models, int64_t weight)
{
    size_t at = 0, rarest = 0;
    while (at < d->sets_len && d->sets[at].models < models)
        at++;
    if (at < d->sets_len && d->sets[at].models == models) {
        d->sets[at].weight += weight;
        return;
    }
    if (d->sets_len == DEMAND_SETS_MAX) {
        for (size_t i = 1; i < d->sets_len; i++)
            if (d->sets[i].weight < d->sets[rarest].weight)
                rarest = i;
        d->sets_len--;
        memmove(&d->sets[rarest], &d->sets[rarest + 1], (d->sets_len - rarest) * sizeof *d->sets);
        at -= at > rarest;
    }
    memmove(&d->sets[at + 1], &d->sets[at], (d->sets_len - at) * sizeof *d->sets);
    d->sets[at] = (struct demand_set){.models = models, .weight = weight};
    d->sets_len++;
}

void demand_count(struct demand *d, const struct demand_ask *ask)
{
    int64_t cards = num_min(ask->milli_cards, DEMAND_ASK_MAX);
    if (cards <= 0)
        return;
    d->seen++;
    d->cpu_milli += num_min(num_max(ask->cpu_milli, 0), DEMAND_ASK_MAX) * DEMAND_ONE;
    d->milli_cards += cards * DEMAND_ONE;
    if (ask->size > 0)
        count_size(d, ask->size, num_min(ask->shares, DEMAND_ASK_MAX) * DEMAND_ONE);
    if (ask->models != 0)
        count_set(d, ask->models, cards * DEMAND_ONE);
}

void demand_see(struct demand *d, const struct demand_ask *ask)
{
    if (ask->milli_cards > 0 && d->seen > 0 && d->seen % DEMAND_FADE_EVERY == 0)
        fade(d);
    demand_count(d, ask);
}
