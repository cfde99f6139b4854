// SPDX-License-Identifier: Apache-2.0
/*
 * node - what we know of a node, decoded once; same rules as pod.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/model/pod.h"
#include "lib/model/resources.h"
#include "lib/model/selector.h"

struct taint {
    const char *key;
    const char *value;
    enum taint_effect effect;
};

struct node {
    struct arena arena; /* owns everything below, and the struct itself */
    const char *name;
    const char *uid;
    const char *resource_version;
    struct labels labels;
    struct labels annotations;
    bool unschedulable;
    bool terminating;
    struct taint *taints;
    size_t taints_len;
    struct resources capacity;
    struct resources allocatable;
    const char *internal_ip; /* or NULL */
    bool ready;              /* condition Ready is True */
};

void node_free(struct node *n);
bool node_is_virtual(const struct node *n);
/* The first NoSchedule or NoExecute taint that the pod does not tolerate, or NULL.
 * spec.unschedulable counts as the taint node.kubernetes.io/unschedulable:NoSchedule that the node
 * controller adds. */
const struct taint *node_untolerated(const struct node *n, const struct pod *p);
