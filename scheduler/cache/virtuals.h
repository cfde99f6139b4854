// SPDX-License-Identifier: Apache-2.0
/*
 * virtuals - which nodes are virtual: by label, and by which taint their provider keeps ordinary pods away. Pure.
 *
 * Alibaba Cloud's unless options say otherwise (--virtual-node-labels, --virtual-node-taints). Of a provider's taints only NoSchedule is tolerated: a pod is given no toleration, so one
 * that evicts would evict it.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/model/names.h"
#include "lib/model/node.h"
#include "lib/model/selector.h"

enum { VIRTUALS_MAX = 16 /* pairs in a list */ };

#define VIRTUALS_LABELS NAME_LABEL_NODE_TYPE "=" NAME_NODE_TYPE_VIRTUAL
#define VIRTUALS_TAINTS NAME_TAINT_VIRTUAL "=" NAME_TAINT_VIRTUAL_VALUE

struct virtuals {
    struct arena arena;
    struct labels labels; /* a node with any of them is virtual; as given, not sorted */
    struct labels taints; /* tolerated for pods that burst, on virtual nodes, as NoSchedule */
    const char *labels_text, *taints_text;
};

/* Alibaba Cloud's. */
void virtuals_init(struct virtuals *v);
void virtuals_deinit(struct virtuals *v);
/* "key=value,key=value"; NULL or "": as before. An error names the list and the pair, and leaves both as they were. */
int virtuals_set(struct virtuals *v, const char *labels, const char *taints, struct error *err);
bool virtuals_are_default(const struct virtuals *v);

bool virtuals_have(const struct virtuals *v, const struct node *n);
/* Whether that pair of a label is one by which virtual nodes are known. */
bool virtuals_know(const struct virtuals *v, const char *key, const char *value);
/* A provider's taint. */
bool virtuals_cover(const struct virtuals *v, const struct taint *t);
