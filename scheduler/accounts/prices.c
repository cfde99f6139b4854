// SPDX-License-Identifier: Apache-2.0
#include "scheduler/accounts/prices.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/num.h"

enum { MODEL_PRICE_MAX = 100 * PRICES_CARD };
/* Bounds of CPU and cards: a product of both, times 1,000, stays below 2^63. */
#define CPU_MAX (INT64_C(1) << 26)
#define CARDS_MAX (INT64_C(1) << 20)

void prices_init(struct prices *p)
{
    *p = (struct prices){.version = 1};
}

void prices_deinit(struct prices *p)
{
    free(p->tables);
    *p = (struct prices){0};
}

static int64_t up(int64_t size, int64_t units, int64_t capacity)
{
    return units == capacity ? size : (size * units + capacity - 1) / capacity;
}

static int64_t down(int64_t left, int64_t units, int64_t capacity)
{
    return units == capacity ? left : left * units / capacity;
}

/* Sizes that are equal in the table's units are merged. */
static void make_table(struct prices_table *t, int64_t capacity, const struct demand *d)
{
    struct card_value_ask asks[DEMAND_SIZES_MAX];
    size_t n = 0;
    t->capacity = capacity;
    t->units = num_min(capacity, CARD_VALUE_UNITS_MAX);
    for (size_t i = 0; i < d->sizes_len && d->sizes[i].size < capacity; i++) {
        struct card_value_ask a = d->sizes[i];
        a.size = up(a.size, t->units, capacity);
        if (n > 0 && asks[n - 1].size == a.size)
            asks[n - 1].weight += a.weight;
        else if (a.size < t->units)
            asks[n++] = a;
    }
    card_value_table(t->units, asks, n, t->value);
}

static const struct prices_table *table_for(const struct prices *p, int64_t capacity)
{
    for (size_t i = 0; i < p->tables_len; i++)
        if (p->tables[i].capacity == capacity)
            return &p->tables[i];
    return NULL;
}

/* The cost in cards of that capacity. */
static int64_t of_share(const struct prices *p, int64_t capacity, int64_t before, int64_t after,
                        bool untouched)
{
    const struct prices_table *t = table_for(p, capacity);
    int64_t cost = untouched ? PRICES_UNTOUCHED * PRICES_POINT : 0;
    if (after < 0 || after > before || before > capacity)
        return cost;
    if (t == NULL) /* no prices for this size: use the fullest card */
        return cost + before * PRICES_CARD / capacity;
    int32_t worth = t->value[down(before, t->units, capacity)];
    int32_t rest = t->value[down(after, t->units, capacity)];
    return cost + (int64_t)(worth - rest) * (PRICES_CARD / CARD_VALUE_ONE);
}

int64_t prices_of_share(const struct prices *p, int64_t capacity, int64_t before, int64_t after,
                        bool untouched)
{
    if (capacity <= 0 || capacity > PRICES_CAPACITY_MAX)
        return untouched ? PRICES_UNTOUCHED * PRICES_POINT : 0;
    int64_t cost = of_share(p, capacity, before, after, untouched);
    return p->reference > 0 && p->reference != capacity ? cost * capacity / p->reference : cost;
}

/* Idle cards without CPU. */
static int64_t stranded(int64_t idle_milli, int64_t cpu_per_card, int64_t free_cpu_milli)
{
    int64_t lacks = idle_milli * cpu_per_card - free_cpu_milli * DEMAND_CARD;
    return lacks > 0 ? lacks * (PRICES_CARD / DEMAND_CARD) / cpu_per_card : 0;
}

static int64_t size_of(const struct prices_node *n)
{
    return n->size_milli > 0 ? num_min(n->size_milli, PRICES_SIZE_MAX) : DEMAND_CARD;
}

static int64_t cpu_cost(const struct prices *p, const struct prices_node *n, int64_t cpu_milli,
                        int64_t milli_cards)
{
    if (p->cpu_per_card <= 0 || n->cards <= 0)
        return 0;
    int64_t total = num_min(n->cpu_milli, CPU_MAX), left = num_min(n->free_cpu_milli, CPU_MAX);
    int64_t idle = num_min(n->idle_milli, CARDS_MAX);
    int64_t wanted = num_min(p->cpu_per_card, CPU_MAX) * size_of(n) / DEMAND_CARD;
    int64_t per_card = num_min(wanted, total * PRICES_CPU_PERCENT / 100 / n->cards);
    if (per_card <= 0)
        return 0;
    int64_t more = stranded(idle - milli_cards, per_card, left - num_min(cpu_milli, CPU_MAX)) -
                   stranded(idle, per_card, left);
    return more * size_of(n) / DEMAND_CARD;
}

int64_t prices_of_node(const struct prices *p, const struct prices_node *n, int64_t cpu_milli,
                       int64_t milli_cards)
{
    milli_cards = num_min(milli_cards, CARDS_MAX);
    int64_t cost = cpu_cost(p, n, cpu_milli, milli_cards);
    if (n->model < DEMAND_MODELS_MAX)
        cost += p->model[n->model] * milli_cards / DEMAND_CARD * PRICES_MODEL_PERCENT / 100 *
                size_of(n) / DEMAND_CARD;
    return cost;
}

void prices_take(struct prices *p, const struct demand *d, const int64_t *capacities, size_t len,
                 int64_t reference)
{
    p->reference = num_min(reference, PRICES_CAPACITY_MAX);
    free(p->tables);
    p->tables_len = len < PRICES_CAPACITIES ? len : PRICES_CAPACITIES;
    p->tables = p->tables_len > 0 ? mem_new(struct prices_table, p->tables_len) : NULL;
    for (size_t i = 0; i < p->tables_len; i++)
        make_table(&p->tables[i], num_min(num_max(capacities[i], 1), PRICES_CAPACITY_MAX), d);
    int64_t cards = d->milli_cards / DEMAND_CARD;
    p->cpu_wanted = cards > 0 ? d->cpu_milli / cards : 0;
    p->cpu_per_card = p->cpu_wanted;
    memcpy(p->sets, d->sets, d->sets_len * sizeof *d->sets);
    p->sets_len = d->sets_len;
    p->sets_of = d->milli_cards;
    p->version++;
}

/* For each set: its part of the demand divided by its part of the idle cards. */
static void price_sets(const struct prices *p, const int64_t *idle, double *out)
{
    int64_t all = 0;
    for (uint32_t k = 0; k < DEMAND_MODELS_MAX; k++)
        all += idle[k];
    for (size_t i = 0; i < p->sets_len; i++) {
        int64_t there = 0;
        for (uint64_t left = p->sets[i].models; left != 0; left &= left - 1)
            there += idle[__builtin_ctzll(left)];
        double q = (double)p->sets[i].weight / (double)p->sets_of;
        out[i] =
            there > 0 ? q * (double)all / (double)there : (double)MODEL_PRICE_MAX / PRICES_CARD;
    }
}

static void price_models(const struct prices *p, const int64_t *idle,
                         int64_t out[DEMAND_MODELS_MAX])
{
    double of_set[DEMAND_SETS_MAX], sum[DEMAND_MODELS_MAX] = {0};
    price_sets(p, idle, of_set);
    for (size_t i = 0; i < p->sets_len; i++)
        for (uint64_t left = p->sets[i].models; left != 0; left &= left - 1)
            sum[__builtin_ctzll(left)] += of_set[i];
    for (uint32_t k = 0; k < DEMAND_MODELS_MAX; k++)
        out[k] = sum[k] * PRICES_CARD < MODEL_PRICE_MAX ? (int64_t)(sum[k] * PRICES_CARD)
                                                        : MODEL_PRICE_MAX;
}

static bool has_moved(int64_t from, int64_t to)
{
    return (from > to ? from - to : to - from) > from / PRICES_STEP;
}

static int64_t cpu_for_card(const struct prices *p, const struct prices_idle *idle)
{
    int64_t milli_cards = 0;
    for (uint32_t k = 0; k < DEMAND_MODELS_MAX; k++)
        milli_cards = num_add_sat(milli_cards, idle->milli_cards[k]);
    if (milli_cards < DEMAND_CARD)
        return p->cpu_wanted;
    int64_t there = idle->cpu_milli / (milli_cards / DEMAND_CARD) * PRICES_SCARCE_PERCENT / 100;
    return num_min(p->cpu_wanted, num_max(there, 1));
}

bool prices_set_idle(struct prices *p, const struct prices_idle *idle)
{
    int64_t models[DEMAND_MODELS_MAX], cpu = cpu_for_card(p, idle);
    bool moved =
        has_moved(p->cpu_per_card, cpu) || (cpu == p->cpu_wanted && cpu != p->cpu_per_card);
    price_models(p, idle->milli_cards, models);
    for (uint32_t k = 0; k < DEMAND_MODELS_MAX; k++)
        moved |= has_moved(p->model[k], models[k]);
    if (!moved)
        return false;
    memcpy(p->model, models, sizeof models);
    p->cpu_per_card = cpu;
    p->version++;
    return true;
}
