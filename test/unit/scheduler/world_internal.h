// SPDX-License-Identifier: Apache-2.0
/*
 * What the files of the world share.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "test/unit/scheduler/world.h"

#define MUST(w, condition, ...)                                                                 \
    do {                                                                                        \
        if (!(condition)) {                                                                     \
            fprintf(stderr, "seed %llu broken after '%s': %s: ", (unsigned long long)(w)->seed, \
                    (w)->said, #condition);                                                     \
            fprintf(stderr, __VA_ARGS__);                                                       \
            fputc('\n', stderr);                                                                \
            abort();                                                                            \
        }                                                                                       \
    } while (0)

bool world_chance(struct world *w, uint64_t percent);
/* Wakes the gangs that wait for one of the events. */
void world_spread_events(struct world *w, uint32_t events);

/* world_fill.c */
void world_fill_grant(struct world *w, struct world_slot *s);

/* world_change.c, world_try.c: the operations */
/* The annotation cpuset of a bound pod gets smaller; confirmed: the node agent has done it. */
void world_give_back(struct world *w, struct cluster_pod *cp, const char *text, bool confirmed);
void world_remove_node(struct world *w, uint64_t i);
void world_new_pod(struct world *w, uint64_t i);
void world_update_pod(struct world *w, uint64_t i);
void world_remove_pod(struct world *w, struct world_slot *s);
void world_put_namespace(struct world *w);
void world_put_group(struct world *w);
void world_reject(struct world *w);
void world_wait(struct world *w);
void world_try_and_undo(struct world *w);
void world_filter_means_reserve(struct world *w);
void world_sleepers_cannot_go(struct world *w);

/* world_store.c */
void world_put_storage(struct world *w);
/* The claims that the pod waits for are bound. */
void world_bind_claims(struct world *w, const struct cluster_pod *cp);
void world_put_budget(struct world *w);
void world_reserve(struct world *w);

/* world_policy.c */
void world_put_policy(struct world *w);
void world_policies_wait(struct world *w);
void world_check_policies(const struct world *w);
void world_check_seat(const struct world *w, const struct cluster_pod *cp);

int64_t world_now_ns(const struct world *w);

/* world_try.c: hooks of the attempts */
struct attempt_hooks world_attempt_hooks(struct world *w);

/* world_preempt.c */
/* As attempt.c lends what is held for the gang's members. */
void world_lend(const struct gang *g, struct plan *lent);
void world_check_victims(const struct world *w, const struct gang *g, const struct cycle_result *r);
/* Before the victims go and anybody is nominated. */
void world_check_preempt(struct world *w, const struct gang *g, const struct cycle_result *r);
/* After the attempt. */
void world_carry_out(struct world *w, const struct gang *g, const struct cycle_result *r);
