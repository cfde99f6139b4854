// SPDX-License-Identifier: Apache-2.0
/* replay_explain - for one pod and every node: the refusal or the score. Evaluated in the state of
 * the decision: with everything that the scheduler had placed by then, without the pod itself. For
 * a gang member the others are placed, as far as they fit. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/vec.h"
#include "scheduler/cache/cluster.h"
#include "scheduler/cycle/cycle.h"

struct replay_explain_node {
    const char *name;
    bool chosen;
    const char *no; /* the sentence; NULL: the node fits */
    const char *plugin;
    int64_t score;
};

struct replay_explain {
    const char *key;
    struct arena arena;
    bool done;
    bool bound;                                   /* in the input: `chosen` is its node */
    const char *note;                             /* additional remark, or NULL */
    struct VEC(struct replay_explain_node) nodes; /* chosen, then fitting by score, then by name */
};

void replay_explain_init(struct replay_explain *e, const char *key);
void replay_explain_deinit(struct replay_explain *e);
/* Before the run. Evaluates a pod that is bound, or another scheduler's. false: no such pod. */
bool replay_explain_prepare(struct replay_explain *e, const struct pipeline *ask,
                            const struct cluster_hooks *hooks);
/* After a cycle that fits g only by preemption, before any eviction. */
void replay_explain_preempts(struct replay_explain *e, const struct pipeline *ask,
                             const struct gang *g, const struct cycle_result *result);
/* After a cycle that placed members of g. */
void replay_explain_placed(struct replay_explain *e, const struct pipeline *ask,
                           const struct gang *g);
/* After the run, if it was not placed. */
void replay_explain_waiting(struct replay_explain *e, const struct pipeline *ask);
