// SPDX-License-Identifier: Apache-2.0
/*
 * virtuals - which nodes are virtual, by label, and which provider taints keep ordinary pods away.
 * Pure.
 *
 * The defaults are Alibaba Cloud's (--virtual-node-labels, --virtual-node-taints override them).
 * Only NoSchedule taints are tolerated: the pod gets no toleration, so a NoExecute taint would
 * evict it.
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

/* Sets the defaults. */
void virtuals_init(struct virtuals *v);
void virtuals_deinit(struct virtuals *v);
/* "key=value,key=value"; NULL or "": unchanged. On error both lists are unchanged and err names the
 * list and the pair. */
int virtuals_set(struct virtuals *v, const char *labels, const char *taints, struct error *err);
bool virtuals_are_default(const struct virtuals *v);

bool virtuals_have(const struct virtuals *v, const struct node *n);
/* Whether this label marks virtual nodes. */
bool virtuals_know(const struct virtuals *v, const char *key, const char *value);
/* Whether it is a provider's taint. */
bool virtuals_cover(const struct virtuals *v, const struct taint *t);
