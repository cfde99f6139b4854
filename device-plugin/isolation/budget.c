// SPDX-License-Identifier: Apache-2.0
/*
 * budget - tokens are nanoseconds of device time. A container earns percent/100 of the elapsed
 * time, launches spend it, and below zero launches wait.
 *
 * A launch's cost is known only afterwards, so a launch is charged an estimate. When the plugin has
 * measured the container's device time, the difference to the charged time is taken from the tokens
 * (or returned), and the estimate moves towards the observed cost, by at most half of the way. So
 * in the long run the tokens spent equal the time used: the limit is hard on average, and off by at
 * most one measurement period at any moment.
 *
 * Any process may refill or correct; swapping a time stamp decides which one does. A process that
 * dies right after the swap loses that one refill or correction for its container, and blocks no
 * other. A stamp from the future (a corrupted region) only delays the container's refills until
 * then.
 */
#include "device-plugin/isolation/budget.h"

#define MS UINT64_C(1000000)
#define COST_MIN UINT64_C(200)
#define COST_MAX (1000 * MS)
#define DEBT_MAX (INT64_MIN / 4)
#define SAVED_MAX (int64_t)(2000 * MS)

static int64_t burst_ns(uint32_t percent)
{
    return (int64_t)(BUDGET_BURST_MS * MS * percent / 100);
}

/* Tokens above `most` do not grow. */
static void add_tokens(struct region_card *c, int64_t ns, int64_t most)
{
    int64_t old = atomic_load(&c->tokens_ns), from, fresh;
    do {
        from = old > SAVED_MAX ? SAVED_MAX : old < DEBT_MAX ? DEBT_MAX : old; /* corrupted */
        fresh = from + ns > most && ns > 0 ? (from > most ? from : most) : from + ns;
    } while (!atomic_compare_exchange_weak(&c->tokens_ns, &old, fresh));
}

static void refill(struct region_card *c, uint32_t percent, uint64_t now_ns)
{
    uint64_t last = atomic_load(&c->refilled_ns);
    /* Smaller steps are not worth a swap. */
    if (now_ns < last + BUDGET_WAIT_MIN_US * UINT64_C(1000) ||
        !atomic_compare_exchange_strong(&c->refilled_ns, &last, now_ns))
        return;
    uint64_t gone = now_ns - last;
    if (gone > 1000 * MS) /* more than can be saved up */
        gone = 1000 * MS;
    add_tokens(c, (int64_t)(gone * percent / 100), burst_ns(percent));
}

static uint64_t cost_of(const struct region_card *c)
{
    uint64_t cost = atomic_load_explicit(&c->cost_ns, memory_order_relaxed);
    return cost == 0 ? BUDGET_COST_US * UINT64_C(1000) : cost > COST_MAX ? COST_MAX : cost;
}

/* Settles the time measured since the last call against the time charged. */
static void correct(struct region_card *c, uint32_t percent, uint64_t measured, uint64_t stamp)
{
    uint64_t last = atomic_load(&c->settling_ns);
    if (last == stamp || !atomic_compare_exchange_strong(&c->settling_ns, &last, stamp))
        return;
    uint64_t charged = atomic_load(&c->charged_ns), launches = atomic_load(&c->launches);
    uint64_t used = measured - atomic_exchange(&c->settled_ns, measured);
    uint64_t taken = charged - atomic_exchange(&c->settled_charged_ns, charged);
    uint64_t n = launches - atomic_exchange(&c->settled_launches, launches);
    /* The first measurement, also after a pause (plugin restart, hung driver), only starts the
     * count. */
    if (last == 0 || stamp < last || stamp - last > BUDGET_STALE_MS * MS || used > 100000 * MS ||
        taken > 100000 * MS)
        return;
    /* An overcharge since the last call is returned on top of the tokens that may be saved. */
    uint64_t since = stamp - last < 1000 * MS ? stamp - last : 1000 * MS;
    add_tokens(c, (int64_t)taken - (int64_t)used,
               burst_ns(percent) + (int64_t)(since * percent / 100));
    if (n == 0)
        return;
    bool known = atomic_load_explicit(&c->cost_ns, memory_order_relaxed) != 0;
    int64_t cost = known || n < 16 ? (int64_t)cost_of(c) : (int64_t)(used / n);
    /* A few launches are a weak sample: charge and use may fall into different measurements. */
    cost += ((int64_t)(used / n) - cost) * (int64_t)(n < 16 ? n : 16) / 32;
    atomic_store(&c->cost_ns, cost < (int64_t)COST_MIN   ? COST_MIN
                              : cost > (int64_t)COST_MAX ? COST_MAX
                                                         : (uint64_t)cost);
}

static void settle_measurement(struct region_card *c, uint32_t percent, uint64_t now_ns)
{
    uint64_t stamp = atomic_load(&c->measured_at_ns), measured = atomic_load(&c->measured_ns);
    /* A measurement that is being written counts from the next launch. */
    bool whole = atomic_load(&c->measured_check) == budget_check(measured, stamp);
    if (!whole)
        stamp = atomic_load(&c->settling_ns);
    bool stale = stamp == 0 || stamp > now_ns + BUDGET_STALE_MS * MS ||
                 now_ns > stamp + BUDGET_STALE_MS * MS;
    uint64_t flags = atomic_load_explicit(&c->flags, memory_order_relaxed);
    if (stale != ((flags & REGION_UNMEASURED) != 0))
        atomic_store(&c->flags,
                     stale ? flags | REGION_UNMEASURED : flags & ~(uint64_t)REGION_UNMEASURED);
    if (whole && !stale)
        correct(c, percent, measured, stamp);
}

uint64_t budget_charge(struct region_card *c, uint32_t percent, uint64_t launches, uint64_t now_ns)
{
    refill(c, percent, now_ns);
    settle_measurement(c, percent, now_ns);
    int64_t tokens = atomic_load(&c->tokens_ns);
    if (tokens > 0) {
        uint64_t cost = cost_of(c) * launches;
        if (cost > COST_MAX)
            cost = COST_MAX;
        atomic_fetch_sub(&c->tokens_ns, (int64_t)cost);
        atomic_fetch_add_explicit(&c->charged_ns, cost, memory_order_relaxed);
        atomic_fetch_add_explicit(&c->launches, launches, memory_order_relaxed);
        return 0;
    }
    if (tokens < -(int64_t)(1000 * MS))
        return BUDGET_WAIT_MAX_MS * MS;
    uint64_t wait = (uint64_t)-tokens * 100 / percent;
    if (wait > BUDGET_WAIT_MAX_MS * MS)
        return BUDGET_WAIT_MAX_MS * MS;
    return wait < BUDGET_WAIT_MIN_US * 1000 ? BUDGET_WAIT_MIN_US * 1000 : wait;
}

void budget_note_throttled(struct region_card *c, uint64_t ns)
{
    atomic_fetch_add_explicit(&c->throttled_ns, ns, memory_order_relaxed);
}

uint64_t budget_check(uint64_t used_ns, uint64_t now_ns)
{
    /* Odd factors: each input bit changes many of the result. */
    return used_ns * UINT64_C(0x9e3779b97f4a7c15) + now_ns * UINT64_C(0xc2b2ae3d27d4eb4f) + 1;
}
