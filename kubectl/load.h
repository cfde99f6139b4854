// SPDX-License-Identifier: Apache-2.0
/* load - lists all nodes and pods of a cluster, with one list call per kind. */
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
    size_t unreadable;          /* objects left out because they could not be decoded */
    struct error first_problem; /* error of the first one */
};

int load_all(struct load *l, struct kube_client *client, const struct kube_options *o,
             struct error *err);
void load_free(struct load *l);
