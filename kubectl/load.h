// SPDX-License-Identifier: Apache-2.0
/*
 * load - all nodes and pods of a cluster: one list call per kind.
 */
#pragma once

#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/vec.h"
#include "lib/kube/api.h"
#include "lib/model/node.h"
#include "lib/model/pod.h"

struct load {
    struct VEC(struct node *) nodes;
    struct VEC(struct pod *) pods;
    size_t unreadable;          /* objects that could not be decoded, and are left out */
    struct error first_problem; /* of the first of them */
};

int load_all(struct load *l, struct kube_client *client, const struct kube_options *o,
             struct error *err);
void load_free(struct load *l);
