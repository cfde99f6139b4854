// SPDX-License-Identifier: Apache-2.0
/*
 * virtuals - which nodes are virtual, by label, and which provider taints keep ordinary pods away.
 * Pure.
 *
 * Alibaba Cloud's unless options say otherwise (--virtual-node-labels, --virtual-node-taints). Only
 * NoSchedule taints are tolerated: the pod gets no toleration, so a taint that evicts would evict
 * it.
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
    struct labels labels; /* a node with any of them is virtual; unsorted */
    struct labels taints; /* tolerated as NoSchedule on virtual nodes, for pods that may use them */
    const char *labels_text, *taints_text;
};

/* Alibaba Cloud's. */
void virtuals_init(struct virtuals *v);
void virtuals_deinit(struct virtuals *v);
/* "key=value,key=value"; NULL or "": unchanged. An error names the list and the pair, and changes
 * neither list. */
int virtuals_set(struct virtuals *v, const char *labels, const char *taints, struct error *err);
bool virtuals_are_default(const struct virtuals *v);

bool virtuals_have(const struct virtuals *v, const struct node *n);
/* Whether this label marks virtual nodes. */
bool virtuals_know(const struct virtuals *v, const char *key, const char *value);
/* A provider's taint. */
bool virtuals_cover(const struct virtuals *v, const struct taint *t);
