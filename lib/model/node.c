// SPDX-License-Identifier: Apache-2.0
#include "lib/model/node.h"

#include "lib/base/str.h"
#include "lib/model/names.h"

void node_free(struct node *n)
{
    if (!n)
        return;
    struct arena arena = n->arena; /* the node lies in it */
    arena_deinit(&arena);
}

bool node_is_virtual(const struct node *n)
{
    return str_eq(labels_get(&n->labels, NAME_LABEL_NODE_TYPE), NAME_NODE_TYPE_VIRTUAL);
}

static bool tolerated(const struct pod *p, const struct taint *t)
{
    for (size_t i = 0; i < p->tolerations_len; i++)
        if (toleration_covers(&p->tolerations[i], t->key, t->value, t->effect))
            return true;
    return false;
}

const struct taint *node_untolerated(const struct node *n, const struct pod *p)
{
    static const struct taint unschedulable = {"node.kubernetes.io/unschedulable", "",
                                               TAINT_NO_SCHEDULE};

    for (size_t i = 0; i < n->taints_len; i++)
        if (n->taints[i].effect != TAINT_PREFER_NO_SCHEDULE && !tolerated(p, &n->taints[i]))
            return &n->taints[i];
    return n->unschedulable && !tolerated(p, &unschedulable) ? &unschedulable : NULL;
}
