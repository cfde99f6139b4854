// SPDX-License-Identifier: Apache-2.0
/*
 * burst - where a pod may go: real nodes, real then virtual, virtual only (contract, section 5).
 */
#pragma once

#include <stdbool.h>

#include "lib/model/node.h"
#include "lib/model/pod.h"

enum burst_policy { BURST_REAL_ONLY, BURST_REAL_FIRST, BURST_VIRTUAL_ONLY };

enum burst_policy burst_policy_of(const struct pod *p);
/* The provider's taint of a virtual node, and no other, is tolerated for pods that burst. */
bool burst_tolerates(const struct pod *p, const struct node *n, const struct taint *t);
