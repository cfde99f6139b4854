// SPDX-License-Identifier: Apache-2.0
/* The fast path asks the pod's class (equivalence.h), which caches. The slow path asks every plugin
 * about every node: it is the reference for the fast path, and gives the reasons for a refusal. */
#include "scheduler/framework/pipeline.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/ids.h"
#include "lib/base/mem.h"
#include "scheduler/framework/equivalence.h"
#include "scheduler/model/volumes_view.h"

static void free_block(void *memory)
{
    free(*(void **)memory);
}

void pipeline_init(struct pipeline *p, struct cluster *c)
{
    *p = (struct pipeline){.cluster = c,
                           .classes = equivalence_new(),
                           .node_pods = mem_new(struct ids_table, 1),
                           .volumes = volumes_view_cache_new(),
                           .packing = CLUSTER_AS_SET};
    ids_table_init(p->node_pods, sizeof(void *), free_block);
}

void pipeline_deinit(struct pipeline *p)
{
    equivalence_free(p->classes);
    ids_table_deinit(p->node_pods);
    free(p->node_pods);
    volumes_view_cache_free(p->volumes);
}

struct plugin_ask pipeline_ask(const struct pipeline *p, struct cluster_pod *pod)
{
    return plugin_question(p, pod, equivalence_ask(p, pod));
}

uint32_t pipeline_wakes(const struct pipeline *p, struct cluster_pod *pod)
{
    const struct pod_class *class = equivalence_ask(p, pod);
    uint32_t wakes = EVENT_NODE_ADDED;
    for (size_t i = 0; class->fixed[i] != NULL; i++)
        wakes |= class->fixed[i]->wakes;
    for (size_t i = 0; class->held[i] != NULL; i++)
        wakes |= class->held[i]->wakes;
    for (size_t i = 0; class->domains != NULL && plugin_table[i] != NULL; i++)
        wakes |= plugin_table[i]->depends == PLUGIN_DOMAIN ? plugin_table[i]->wakes : 0;
    return wakes;
}

int64_t pipeline_score(const struct plugin_ask *ask, const struct cluster_node *node)
{
    int64_t sum = 0;
    for (const struct plugin *const *p = plugin_table; *p != NULL; p++)
        if ((*p)->score != NULL && ((*p)->applies == NULL || (*p)->applies(ask->pod)))
            sum += (*p)->score(ask, node) * (*p)->weight;
    return sum;
}

static void reserve(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                    struct grant *grant)
{
    *grant = (struct grant){0};
    for (const struct plugin *const *p = plugin_table; *p != NULL; p++)
        if ((*p)->reserve != NULL) {
            bool reserved = (*p)->reserve(ask, node, a, grant);
            assert(reserved); /* I3: filter said yes on this state */
            (void)reserved;
        }
}

static void clear(struct pipeline_choice *out)
{
    out->node = NULL;
    out->wakes = EVENT_NODE_ADDED;
    reasons_init(&out->why);
}

static void remark(const struct plugin_ask *ask, struct reasons *why)
{
    for (const struct plugin *const *p = plugin_table; *p != NULL; p++)
        if ((*p)->remark != NULL)
            (*p)->remark(ask, why);
}

static void scan(const struct plugin_ask *ask, struct arena *a, struct pipeline_choice *out)
{
    const struct node_table *t = ask->cluster->table;
    int64_t best = 0;
    clear(out);
    for (uint32_t i = 0; i < t->len; i++) {
        struct cluster_node *node = t->rows[i].node;
        struct reason why = {0};
        const struct plugin *no = plugin_refusing(ask, node, a, &why);
        if (no != NULL) {
            reasons_add(&out->why, &why, node->name);
            out->wakes |= no->wakes;
            continue;
        }
        int64_t score = pipeline_score(ask, node);
        if (out->node == NULL || score > best) { /* by name: of equal ones the first wins */
            out->node = node;
            best = score;
        }
    }
    if (out->node == NULL)
        remark(ask, &out->why);
}

void pipeline_scan(const struct pipeline *p, struct cluster_pod *pod, struct arena *a,
                   struct pipeline_choice *out)
{
    struct plugin_ask ask = pipeline_ask(p, pod);
    scan(&ask, a, out);
    if (out->node != NULL)
        reserve(&ask, out->node, a, &out->grant);
}

static void refuse(const struct pipeline *p, const struct plugin_ask *ask, struct pod_class *class,
                   struct arena *a, struct pipeline_choice *out)
{
    if (equivalence_tally(p->classes, ask, class, a, &out->why, &out->wakes)) {
        remark(ask, &out->why);
        return;
    }
    scan(ask, a, out);
    if (out->node == NULL)
        return;
    equivalence_disown(p->classes, class);
    reserve(ask, out->node, a, &out->grant);
}

/* The plugins check the class' choice once more: that is cheap for one node, and keeps a cache
 * error from placing a pod where a plugin refuses it. If they disagree the plugins win and the
 * class is rebuilt; classes.disagreed counts it, and is 0 unless a plugin or its key has a bug. */
void pipeline_choose(const struct pipeline *p, struct cluster_pod *pod, struct arena *a,
                     struct pipeline_choice *out)
{
    struct pod_class *class = equivalence_ask(p, pod);
    struct plugin_ask ask = plugin_question(p, pod, class);
    clear(out);
    out->node = equivalence_best(p->cluster, class);
    if (out->node == NULL) {
        refuse(p, &ask, class, a, out);
    } else if (plugin_refusing(&ask, out->node, a, NULL) == NULL) {
        reserve(&ask, out->node, a, &out->grant);
    } else {
        equivalence_disown(p->classes, class);
        pipeline_scan(p, pod, a, out);
    }
}

bool pipeline_try(const struct pipeline *p, struct cluster_pod *pod, struct cluster_node *node,
                  struct arena *a, struct pipeline_choice *out)
{
    struct plugin_ask ask = pipeline_ask(p, pod);
    clear(out);
    if (node->node == NULL || plugin_refusing(&ask, node, a, NULL) != NULL)
        return false;
    out->node = node;
    reserve(&ask, node, a, &out->grant);
    return true;
}
