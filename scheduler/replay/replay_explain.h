// SPDX-License-Identifier: Apache-2.0
/*
 * replay_explain - for one pod, every node: why not, or with which score.
 *
 * Asked where the decision fell: with everything placed that the scheduler had placed then, the pod
 * itself not counted. For a member of a gang the others of it are placed, as far as they fit.
 */
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
    bool bound;       /* in the input: `chosen` is where it is */
    const char *note; /* what else there is to know, or NULL */
    struct VEC(struct replay_explain_node)
        nodes; /* the chosen one, the fitting by score, the others by name */
};

void replay_explain_init(struct replay_explain *e, const char *key);
void replay_explain_deinit(struct replay_explain *e);
/* Before the run. A pod that is bound, or another scheduler's, is asked about here. false: there is
 * no such pod. */
bool replay_explain_prepare(struct replay_explain *e, const struct pipeline *ask,
                            const struct cluster_hooks *hooks);
/* After a cycle that found room for g only by pods that leave: nothing has been done about it
 * yet. */
void replay_explain_makes_room(struct replay_explain *e, const struct pipeline *ask,
                               const struct gang *g, const struct cycle_result *result);
/* After a cycle that placed members of g. */
void replay_explain_placed(struct replay_explain *e, const struct pipeline *ask,
                           const struct gang *g);
/* After the run, if it was not placed. */
void replay_explain_waiting(struct replay_explain *e, const struct pipeline *ask);
