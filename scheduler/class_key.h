// SPDX-License-Identifier: Apache-2.0
/*
 * class_key - the text that makes pods equal: everything of a pod that filters and scores read, and nothing else. Pure.
 *
 * What a plugin reads and this leaves out gives a pod the answers of another one; what this has and no plugin reads only makes classes that need not be. Raw labels are not in
 * it: Jobs and StatefulSets give each pod a label of its own.
 */
#pragma once

#include "lib/base/str.h"
#include "scheduler/cluster.h"

/* The pod's traits in the index are made on the way. */
void class_key_print(struct cluster *c, struct cluster_pod *cp, struct strbuf *out);
