// SPDX-License-Identifier: Apache-2.0
/* compute - the compute class and the GPU series that a pod requests by label. A node with another
 * value of the label is refused; a node without it is not, since only some nodes have a class. */
#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/plugins/all.h"
#include "scheduler/framework/class_key.h"

static const char *const compute_labels[] = {NAME_LABEL_COMPUTE_CLASS, NAME_LABEL_GPU_MODEL_SERIES,
                                             NULL};

static const char *value_of(const struct labels *l, const char *key)
{
    const char *value = labels_get(l, key);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static bool filter(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                   struct reason *why)
{
    for (const char *const *key = compute_labels; *key != NULL; key++) {
        const char *wanted = value_of(&ask->pod->pod->labels, *key);
        const char *has = wanted != NULL ? value_of(&node->node->labels, *key) : NULL;
        if (has == NULL || str_eq(wanted, has))
            continue;
        if (why != NULL)
            *why = (struct reason){.kind = REASON_COMPUTE,
                                   .what = arena_printf(a, "%s=%s", *key, has)};
        return false;
    }
    return true;
}

static bool applies(const struct cluster_pod *pod)
{
    for (const char *const *key = compute_labels; *key != NULL; key++)
        if (value_of(&pod->pod->labels, *key) != NULL)
            return true;
    return false;
}

static void key(const struct plugin_ask *ask, struct strbuf *out)
{
    for (const char *const *label = compute_labels; *label != NULL; label++) {
        strbuf_addc(out, 'C');
        class_key_text(out, labels_get(&ask->pod->pod->labels, *label));
    }
}

const struct plugin plugin_compute = {.name = "compute",
                                      .key = key,
                                      PLUGIN_READS(FACET_LABELS),
                                      .applies = applies,
                                      .filter = filter};
