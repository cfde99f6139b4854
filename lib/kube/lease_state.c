// SPDX-License-Identifier: Apache-2.0
/* The rules of lease.h without I/O; lease.c has a diagram. Only our own monotonic clock is read.
 * The times inside the record are only compared for change. */
#include "lib/kube/lease.h"

#include <string.h>

#include "lib/base/num.h"
#include "lib/base/str.h"

static bool same_record(const struct lease_record *a, const struct lease_record *b)
{
    return str_eq(a->holder, b->holder) && a->transitions == b->transitions &&
           a->duration_s == b->duration_s && str_eq(a->resource_version, b->resource_version) &&
           str_eq(a->renew_time, b->renew_time);
}

void lease_state_observe(struct lease_state *s, const struct lease_record *rec, bool found,
                         int64_t now_ms)
{
    if (!found) {
        /* The Lease was deleted, and its holder may not know yet: this counts as a change, and the
         * holder's name stays. */
        if (s->have_seen && s->seen.resource_version[0]) {
            s->seen.resource_version[0] = '\0';
            s->seen_at_ms = now_ms;
        }
        return;
    }
    if (s->have_seen && same_record(&s->seen, rec))
        return;
    s->seen = *rec;
    s->seen_at_ms = now_ms;
    s->have_seen = true;
}

enum lease_action lease_state_next(const struct lease_state *s, const struct lease_options *o,
                                   const char *identity, bool found, int64_t now_ms)
{
    if (s->leading) {
        bool ours = found && s->have_seen && str_eq(s->seen.holder, identity);
        return ours && lease_state_may_write(s, o, now_ms) ? LEASE_RENEW : LEASE_LOST;
    }
    if (!s->have_seen)
        return found ? LEASE_WAIT : LEASE_ACQUIRE;
    if (!s->seen.holder[0])
        return LEASE_ACQUIRE;
    /* The record's writer may use a longer duration than ours. Our own name makes no difference: a
     * predecessor with that name may still run. */
    int64_t duration = num_max(o->duration_ms, (int64_t)s->seen.duration_s * 1000);
    return now_ms - s->seen_at_ms >= duration ? LEASE_ACQUIRE : LEASE_WAIT;
}

bool lease_state_may_write(const struct lease_state *s, const struct lease_options *o,
                           int64_t now_ms)
{
    return s->leading && now_ms >= s->renewal_began_ms &&
           now_ms - s->renewal_began_ms < o->renew_deadline_ms;
}
