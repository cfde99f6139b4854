// SPDX-License-Identifier: Apache-2.0
/*
 * deployment_scale - spec.replicas has another value than before, or the Deployment is paused.
 *
 * During a rollout there are pods of several templates. If one set alone took the difference,
 * scaling would advance or revert the rollout; and a rollout that is stuck, because its new pods do
 * not fit, would keep more than replicas + maxSurge pods. So all sets with pods share the
 * difference in proportion, and together have replicas + maxSurge afterwards.
 *
 * The sets' annotations have the previous state: desired-replicas is the spec.replicas that the set
 * was scaled for (if it differs, scaling is due), max-replicas the limit for all sets at that time.
 *
 *   old 4, new 3 of 5 + 2;  replicas: 8, so 8 + 2 = 10 in all:
 *       old 4 * 10/7 = 5.7, so 6;  new 3 * 10/7 = 4.3, so 4
 *
 * Shares are rounded to the nearest, half up; what that leaves goes to, or comes from, the largest.
 */
#include "test/local/controllers/deployment.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/num.h"

struct sets VEC(struct deployment_set *);

bool deployment_scale_is_due(const struct deployment *d)
{
    for (size_t i = 0; i < d->sets.len; i++) {
        const struct deployment_set *s = d->sets.items[i];
        if (s->replicas > 0 && s->desired >= 0 && s->desired != d->replicas)
            return true;
    }
    return false;
}

static bool is_saturated(const struct deployment *d)
{
    const struct deployment_set *s = d->current;
    return s && s->replicas == d->replicas && s->desired == d->replicas &&
           s->available == d->replicas;
}

/* Largest first; of equal ones the oldest (the list's order) first, or the newest. */
static void order(struct sets *list, bool newest_first)
{
    for (size_t i = 1; i < list->len; i++)
        for (size_t k = i; k > 0; k--) {
            struct deployment_set **a = &list->items[k - 1], **b = &list->items[k];
            if ((*a)->replicas > (*b)->replicas ||
                ((*a)->replicas == (*b)->replicas && !newest_first))
                break;
            struct deployment_set *swap = *a;
            *a = *b;
            *b = swap;
        }
}

/* How many more (or, negative, less) a set would have if all went by its part in what could be. */
static int64_t share_of(const struct deployment *d, const struct deployment_set *s)
{
    if (d->replicas == 0)
        return -s->replicas;
    int64_t before = s->max_size, now = d->replicas + d->max_surge, product, twice;
    if (before <= 0) /* someone removed the note */
        before = controllers_int(jsonnode_path(d->root, "status", "replicas", NULL), 0);
    if (before <= 0)
        return 0;
    if (!num_mul(s->replicas, now, &product) || !num_mul(product, 2, &twice) ||
        !num_add(twice, before, &twice) || !num_mul(before, 2, &before))
        return 0;
    return twice / before - s->replicas;
}

static int scale_all(struct deployment *d, struct sets *list, struct error *err)
{
    int64_t total = 0, given = 0;
    for (size_t i = 0; i < list->len; i++)
        total += list->items[i]->replicas;
    int64_t room = (d->replicas > 0 ? d->replicas + d->max_surge : 0) - total;
    order(list, room > 0);
    int64_t first = 0;
    for (size_t i = 0; i < list->len; i++) {
        struct deployment_set *s = list->items[i];
        int64_t left = room - given, share = room == 0 ? 0 : share_of(d, s);
        share = room > 0 ? num_min(share, left) : num_max(share, left);
        given += share;
        if (i == 0)
            first = s->replicas + share;
        else if (deployment_set_scale(d, s, num_max(0, s->replicas + share), err) < 0)
            return -1;
    }
    return deployment_set_scale(d, list->items[0], num_max(0, first + room - given), err);
}

int deployment_scale(struct deployment *d, struct error *err)
{
    struct sets active = {0};
    int rc = 0;
    for (size_t i = 0; i < d->sets.len; i++)
        if (d->sets.items[i]->replicas > 0)
            vec_push(&active, d->sets.items[i]);
    if (active.len == 0 && d->sets.len > 0)
        vec_push(&active, d->current ? d->current : d->sets.items[d->sets.len - 1]);
    if (active.len == 1)
        rc = deployment_set_scale(d, active.items[0], d->replicas, err);
    else if (is_saturated(d)) {
        for (size_t i = 0; rc == 0 && i < active.len; i++)
            if (active.items[i] != d->current)
                rc = deployment_set_scale(d, active.items[i], 0, err);
    } else if (active.len > 1 && !d->recreate)
        rc = scale_all(d, &active, err);
    vec_deinit(&active);
    return rc;
}
