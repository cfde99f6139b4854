// SPDX-License-Identifier: Apache-2.0
#include "scheduler/pipeline.h"

#include <assert.h>
#include <string.h>

const struct plugin *const pipeline_plugins[] = {&plugin_taints, &plugin_burst, &plugin_affinity,
                                                 &plugin_fit,    &plugin_gpu,   NULL};

static const struct plugin *refusing(const struct plugin_ask *ask, const struct cluster_node *node,
                                     struct arena *a, struct reason *why)
{
    for (const struct plugin *const *p = pipeline_plugins; *p != NULL; p++)
        if (!(*p)->filter(ask, node, a, why))
            return *p;
    return NULL;
}

static int64_t score_of(const struct plugin_ask *ask, const struct cluster_node *node)
{
    int64_t sum = 0;
    for (const struct plugin *const *p = pipeline_plugins; *p != NULL; p++)
        if ((*p)->score != NULL)
            sum += (*p)->score(ask, node) * (*p)->weight;
    return sum;
}

static void reserve(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                    struct claim *claim)
{
    *claim = (struct claim){0};
    for (const struct plugin *const *p = pipeline_plugins; *p != NULL; p++)
        if ((*p)->reserve != NULL) {
            bool reserved = (*p)->reserve(ask, node, a, claim);
            assert(reserved); /* I3: filter said yes on this very state */
            (void)reserved;
        }
}

void pipeline_choose(struct cluster *c, const struct cluster_pod *pod, struct arena *a,
                     struct pipeline_choice *out)
{
    const char *name;
    void *value;
    int64_t best = 0;
    struct plugin_ask ask = {.cluster = c, .pod = pod};
    out->node = NULL;
    out->wakes = EVENT_NODE_ADDED;
    reasons_init(&out->why);
    for (size_t i = 0; map_next(&c->nodes, &i, &name, &value);) {
        struct cluster_node *node = value;
        if (node->node == NULL)
            continue;
        struct reason why = {0};
        const struct plugin *no = refusing(&ask, node, a, &why);
        if (no != NULL) {
            reasons_add(&out->why, &why, node->name);
            out->wakes |= no->wakes;
            continue;
        }
        int64_t score = score_of(&ask, node);
        if (out->node == NULL || score > best ||
            (score == best && strcmp(node->name, out->node->name) < 0)) {
            out->node = node;
            best = score;
        }
    }
    if (out->node != NULL)
        reserve(&ask, out->node, a, &out->claim);
}
