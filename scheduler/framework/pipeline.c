// SPDX-License-Identifier: Apache-2.0
/*
 * The quick way asks the pod's class (classes.h), which remembers. The slow way asks every plugin about every node: it is the definition of the right answer, it gives the
 * reasons when no node fits, and the quick way must always agree with it.
 */
#include "scheduler/framework/pipeline.h"

#include <assert.h>
#include <string.h>

#include "scheduler/framework/classes.h"
#include "scheduler/cache/virtual_use.h"
#include "scheduler/cache/volumes_view.h"

void pipeline_init(struct pipeline *p, struct cluster *c)
{
    const char *key;
    void *value;
    *p = (struct pipeline){.cluster = c, .classes = classes_new(), .packing = CLUSTER_AS_SET};
    /* What was noted of classes belongs to the pipeline before, if there was one. */
    for (size_t i = 0; map_next(&c->pods, &i, &key, &value);)
        ((struct cluster_pod *)value)->class_serial = 0;
    volumes_view_forget(c);
}

void pipeline_deinit(struct pipeline *p)
{
    classes_free(p->classes);
}

struct plugin_ask pipeline_ask(const struct pipeline *p, struct cluster_pod *pod)
{
    return plugin_question(p, pod, classes_ask(p, pod));
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
                    struct claim *claim)
{
    *claim = (struct claim){0};
    for (const struct plugin *const *p = plugin_table; *p != NULL; p++)
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
           (burst == VIRTUAL_USE_LAST || burst == VIRTUAL_USE_ONLY ||
            (burst == VIRTUAL_USE_BY_POLICY && policies_goes_virtual(ask->pod)));
}

static void scan(const struct plugin_ask *ask, struct arena *a, struct pipeline_choice *out)
{
    const struct table *t = ask->cluster->table;
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
        if (out->node == NULL || score > best) { /* by name: of equal ones the first stays */
            out->node = node;
            best = score;
        }
    }
    out->why.lacks_virtual = lacks_virtual(ask);
}

void pipeline_scan(const struct pipeline *p, struct cluster_pod *pod, struct arena *a,
                   struct pipeline_choice *out)
{
    struct plugin_ask ask = pipeline_ask(p, pod);
    scan(&ask, a, out);
    if (out->node != NULL)
        reserve(&ask, out->node, a, &out->claim);
}

static void refuse(const struct pipeline *p, const struct plugin_ask *ask, struct pod_class *class,
                   struct arena *a, struct pipeline_choice *out)
{
    if (classes_tally(p->classes, ask, class, a, &out->why, &out->wakes)) {
        out->why.lacks_virtual = lacks_virtual(ask);
        return;
    }
    scan(ask, a, out);
    if (out->node == NULL)
        return;
    classes_disown(p->classes, class);
    reserve(ask, out->node, a, &out->claim);
}

/*
 * The class' choice is asked about once more, by the plugins themselves: it costs little for one node, and whatever may be wrong with what is remembered, no pod goes where
 * a plugin refuses it. Where the two disagree the class begins anew and the plugins' word holds; classes.disagreed counts it, and is 0 unless there is a mistake in a plugin
 * or in its key.
 */
void pipeline_choose(const struct pipeline *p, struct cluster_pod *pod, struct arena *a,
                     struct pipeline_choice *out)
{
    struct pod_class *class = classes_ask(p, pod);
    struct plugin_ask ask = plugin_question(p, pod, class);
    clear(out);
    out->node = classes_best(p->cluster, class);
    if (out->node == NULL) {
        refuse(p, &ask, class, a, out);
    } else if (plugin_refusing(&ask, out->node, a, NULL) == NULL) {
        reserve(&ask, out->node, a, &out->claim);
    } else {
        classes_disown(p->classes, class);
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
    reserve(&ask, node, a, &out->claim);
    return true;
}
