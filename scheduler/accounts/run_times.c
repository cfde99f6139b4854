// SPDX-License-Identifier: Apache-2.0
#include "scheduler/accounts/run_times.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/num.h"

void run_times_deinit(struct run_times *r)
{
    free(r->items);
    *r = (struct run_times){0};
}

/* The first one that is not before the template. */
static size_t place_of(const struct run_times *r, uint64_t template)
{
    size_t low = 0, high = r->len;
    while (low < high) {
        size_t half = low + (high - low) / 2;
        if (r->items[half].template <template)
            low = half + 1;
        else
            high = half;
    }
    return low;
}

static struct run_time *find(const struct run_times *r, uint64_t template)
{
    size_t at = place_of(r, template);
    return at < r->len && r->items[at].template == template ? &r->items[at] : NULL;
}

static void drop_oldest(struct run_times *r)
{
    size_t oldest = 0;
    for (size_t i = 1; i < r->len; i++)
        if (r->items[i].last < r->items[oldest].last)
            oldest = i;
    r->len--;
    memmove(&r->items[oldest], &r->items[oldest + 1], (r->len - oldest) * sizeof *r->items);
}

static void add(struct run_times *r, const struct run_time *one)
{
    if (r->items == NULL)
        r->items = mem_new(struct run_time, RUN_TIMES_MAX);
    if (r->len == RUN_TIMES_MAX)
        drop_oldest(r);
    size_t at = place_of(r, one->template);
    memmove(&r->items[at + 1], &r->items[at], (r->len - at) * sizeof *r->items);
    r->items[at] = *one;
    r->len++;
}

void run_times_see(struct run_times *r, uint64_t template, int64_t weight, int64_t run_ms)
{
    int64_t ran_ms = num_min(num_max(run_ms, 1), RUN_TIMES_LONGEST_MS);
    if (r->ended > 0 && r->ended % RUN_TIMES_FADE_EVERY == 0) {
        r->weight -= r->weight / RUN_TIMES_FADE_PART;
        r->total_ms -= r->total_ms / RUN_TIMES_FADE_PART;
    }
    r->ended++;
    r->weight += weight;
    r->total_ms += weight * ran_ms;
    if (template == 0)
        return;
    struct run_time *known = find(r, template);
    if (known == NULL) {
        add(r, &(struct run_time){.template = template, .mean_ms = ran_ms, .last = r->ended});
        return;
    }
    int64_t off_ms = ran_ms - known->mean_ms;
    known->mean_ms += off_ms / RUN_TIMES_FOLLOW_PART;
    known->deviation_ms +=
        ((off_ms < 0 ? -off_ms : off_ms) - known->deviation_ms) / RUN_TIMES_FOLLOW_PART;
    known->last = r->ended;
}

int64_t run_times_expect(const struct run_times *r, uint64_t template)
{
    const struct run_time *known = template != 0 ? find(r, template) : NULL;
    return known != NULL ? known->mean_ms + 2 * known->deviation_ms : 0;
}

int run_times_restore(struct run_times *r, const struct run_time *one)
{
    if (r->len == RUN_TIMES_MAX || find(r, one->template) != NULL)
        return -1;
    add(r, one);
    return 0;
}
