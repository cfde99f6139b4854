// SPDX-License-Identifier: Apache-2.0
#include "scheduler/cycle/virtual_explain.h"

#include "scheduler/cache/virtual_use.h"
#include "scheduler/cycle/plan.h"
#include "scheduler/framework/pipeline.h"

/* Keeps the real nodes' reasons; nodes of the other pool are dropped. */
static void keep_real(struct reasons *t)
{
    size_t kept = 0;
    for (size_t i = 0; i < t->len; i++) {
        if (t->rows[i].reason.kind == REASON_POOL_REAL)
            t->nodes -= t->rows[i].nodes;
        else
            t->rows[kept++] = t->rows[i];
    }
    t->len = kept;
    t->of = "real nodes";
}

const char *virtual_explain(const struct pipeline *ask, struct cluster_pod *cp,
                            const struct cluster_node *node, struct arena *a)
{
    if (!node->is_virtual || virtual_use_of(ask->cluster, cp) != VIRTUAL_USE_LAST)
        return NULL;
    struct pipeline_choice choice;
    struct pipeline real = *ask;
    struct plan trial;
    plan_begin(&trial, ask->cluster);
    if (cp->on != NULL) /* or it might match its own affinity */
        (void)plan_evict(&trial, cp);
    real.pool = CLUSTER_POOL_REAL;
    pipeline_choose(&real, cp, a, &choice);
    plan_end(&trial);
    if (choice.node != NULL) /* a gang that stays together */
        return arena_printf(a, "bursting to virtual node %s with its gang", node->name);
    keep_real(&choice.why);
    return arena_printf(a, "bursting to virtual node %s: %s", node->name,
                        reasons_sentence(&choice.why, a));
}
