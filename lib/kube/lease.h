// SPDX-License-Identifier: Apache-2.0
/*
 * lease - leader election by a coordination.k8s.io Lease: 15 s duration, 10 s renew deadline, 2 s
 * retry. One thread.
 *
 * Fencing: a write is sent only while the time since the last successful renewal *began* is under
 * the renew deadline (lease_may_write; on the monotonic clock, and time in suspend counts), with a
 * request timeout of at most 4 s. So a paused or disconnected leader stops before another can
 * start: 10 s + 4 s < 15 s. A new leader waits a full lease duration on its own clock from the last
 * change of the holder's record that it saw (not by the record's times: clocks differ); only a
 * released lease is taken at once. lost is called once when the lead is lost; the program then
 * exits at once.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/options.h"
#include "lib/kube/config.h"

struct lease_options {    /* rows: lease_option_rows */
    bool enabled;         /* --leader-elect */
    const char *name;     /* --lease-name */
    const char *ns;       /* --lease-namespace; NULL: our own */
    const char *identity; /* --lease-identity; NULL: hostname_pid_random */
    int64_t duration_ms, renew_deadline_ms, retry_ms;
};
extern const struct option_row lease_option_rows[];

/* The rules, without I/O. All times are of one monotonic clock in ms. */
struct lease_record { /* spec of the Lease */
    char holder[256]; /* "" released */
    int64_t transitions;
    char resource_version[64];
    char renew_time[40];
    int32_t duration_s;
};
struct lease_state {
    struct lease_record seen;
    int64_t seen_at_ms; /* when `seen` last changed, on our clock */
    bool have_seen;
    bool leading;
    int64_t renewal_began_ms; /* of the last renewal that succeeded */
};
enum lease_action { LEASE_WAIT, LEASE_ACQUIRE, LEASE_RENEW, LEASE_LOST };
/* A fresh GET (found false: no Lease object). */
void lease_state_observe(struct lease_state *s, const struct lease_record *rec, bool found,
                         int64_t now_ms);
enum lease_action lease_state_next(const struct lease_state *s, const struct lease_options *o,
                                   const char *identity, bool found, int64_t now_ms);
bool lease_state_may_write(const struct lease_state *s, const struct lease_options *o,
                           int64_t now_ms);

/* A deleted Lease counts as a change of the record: its last holder may not know yet. One that
 * never existed is taken at once. */

struct lease;
struct lease_callbacks {
    void (*started)(void *arg); /* we lead; on the lease's thread */
    void (*lost)(void *arg);
    void *arg;
};
/* Election off: no thread; started is called before lease_start returns. ERROR_INVALID unless retry
 * < renew deadline and renew deadline + 4 s < duration. */
int lease_start(struct lease **out, struct kube_config *kube, const struct kube_options *k,
                const struct lease_options *o, const struct lease_callbacks *cb, struct error *err);
/* Any thread. Always true when election is off. */
bool lease_may_write(const struct lease *l);
bool lease_is_leader(const struct lease *l);
/* release: gives the lead up (call only after the last bind was answered). Joins the thread. */
void lease_stop(struct lease *l, bool release);
