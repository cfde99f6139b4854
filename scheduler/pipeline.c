// SPDX-License-Identifier: Apache-2.0
/*
 * The quick way asks the pod's class (classes.h), which remembers. The slow way asks every plugin about every node: it is the definition of the right answer, it gives the
 * reasons when no node fits, and the quick way must always agree with it.
 */
#include "scheduler/pipeline.h"

#include <assert.h>
#include <string.h>

#include "scheduler/classes.h"
#include "scheduler/plugins/burst.h"

/* Burst first: nodes of a kind that the pod does not go to are out of the question, whatever else there is to say of them. Then volumes: what is wrong with a claim is wrong on every node, and is what
 * the user wants to know. */
const struct plugin *const pipeline_plugins[] = {
    &plugin_burst,          &plugin_volumes,       &plugin_taints,
    &plugin_policy,         &plugin_policy_open,   &plugin_affinity,
    &plugin_compute,        &plugin_features,      &plugin_fit,
    &plugin_ports,          &plugin_gpu,           &plugin_cpu,
    &plugin_volumes_attach, &plugin_spread,        &plugin_interpod,
    &plugin_images,         &plugin_fragmentation, NULL};

struct plugin_ask pipeline_ask(struct cluster *c, struct cluster_pod *pod)
{
    return (struct plugin_ask){.cluster = c, .pod = pod, .class = classes_ask(c, pod)};
}

const struct plugin *pipeline_refusing(const struct plugin_ask *ask,
                                       const struct cluster_node *node, struct arena *a,
                                       struct reason *why)
{
    for (const struct plugin *const *p = pipeline_plugins; *p != NULL; p++)
        if ((*p)->filter != NULL && !(*p)->filter(ask, node, a, why))
            return *p;
    return NULL;
}

int64_t pipeline_score(const struct plugin_ask *ask, const struct cluster_node *node)
{
    int64_t sum = 0;
    for (const struct plugin *const *p = pipeline_plugins; *p != NULL; p++)
        if ((*p)->score != NULL && ((*p)->applies == NULL || (*p)->applies(ask->pod)))
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

static void clear(struct pipeline_choice *out)
{
    out->node = NULL;
    out->wakes = EVENT_NODE_ADDED;
    reasons_init(&out->why);
}

/* That there is no virtual node is a reason of its own. */
static bool lacks_virtual(const struct plugin_ask *ask)
{
    int burst = ask->class->burst;
    return ask->cluster->virtual_nodes == 0 &&
           (burst == BURST_REAL_FIRST || burst == BURST_VIRTUAL_ONLY ||
            (burst == BURST_BY_POLICY && policies_goes_virtual(ask->pod)));
}

static void scan(const struct plugin_ask *ask, struct arena *a, struct pipeline_choice *out)
{
    const struct table *t = &ask->cluster->table;
    int64_t best = 0;
    clear(out);
    for (uint32_t i = 0; i < t->len; i++) {
        struct cluster_node *node = t->rows[i].node;
        struct reason why = {0};
        const struct plugin *no = pipeline_refusing(ask, node, a, &why);
        if (no != NULL) {
            reasons_add(&out->why, &why, node->name);
            out->wakes |= no->wakes;
            continue;
        }
        int64_t score = pipeline_score(ask, node);
        if (out->node == NULL || score > best) { /* by name: of equal ones the first stays */
            out->node = node;
            best = score;
        }
    }
    out->why.lacks_virtual = lacks_virtual(ask);
}

void pipeline_scan(struct cluster *c, struct cluster_pod *pod, struct arena *a,
                   struct pipeline_choice *out)
{
    struct plugin_ask ask = pipeline_ask(c, pod);
    scan(&ask, a, out);
    if (out->node != NULL)
        reserve(&ask, out->node, a, &out->claim);
}

static void refuse(const struct plugin_ask *ask, struct pod_class *class, struct arena *a,
                   struct pipeline_choice *out)
{
    if (classes_tally(ask, class, a, &out->why, &out->wakes)) {
        out->why.lacks_virtual = lacks_virtual(ask);
        return;
    }
    scan(ask, a, out);
    if (out->node == NULL)
        return;
    classes_disown(ask->cluster, class);
    reserve(ask, out->node, a, &out->claim);
}

/*
 * The class' choice is asked about once more, by the plugins themselves: it costs little for one node, and whatever may be wrong with what is remembered, no pod goes where
 * a plugin refuses it. Where the two disagree the class begins anew and the plugins' word holds; classes.disagreed counts it, and is 0 unless there is a mistake in a plugin
 * or in class_key.c.
 */
void pipeline_choose(struct cluster *c, struct cluster_pod *pod, struct arena *a,
                     struct pipeline_choice *out)
{
    struct pod_class *class = classes_ask(c, pod);
    struct plugin_ask ask = {.cluster = c, .pod = pod, .class = class};
    clear(out);
    out->node = classes_best(c, class);
    if (out->node == NULL) {
        refuse(&ask, class, a, out);
    } else if (pipeline_refusing(&ask, out->node, a, NULL) == NULL) {
        reserve(&ask, out->node, a, &out->claim);
    } else {
        classes_disown(c, class);
        pipeline_scan(c, pod, a, out);
    }
}

bool pipeline_try(struct cluster *c, struct cluster_pod *pod, struct cluster_node *node,
                  struct arena *a, struct pipeline_choice *out)
{
    struct plugin_ask ask = pipeline_ask(c, pod);
    clear(out);
    if (node->node == NULL || pipeline_refusing(&ask, node, a, NULL) != NULL)
        return false;
    out->node = node;
    reserve(&ask, node, a, &out->claim);
    return true;
}
