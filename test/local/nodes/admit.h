// SPDX-License-Identifier: Apache-2.0
/*
 * admit - the kubelet's own check that a pod fits, which it makes after the devices were allocated.
 * Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/str.h"
#include "lib/model/pod.h"
#include "lib/model/resources.h"

struct admit_used { /* by the pods that were admitted */
    int64_t cpu_milli, memory_bytes, ephemeral_bytes, pods;
};
void admit_add(struct admit_used *u, const struct pod *p);
/* false: reason ("OutOfcpu") and message as the kubelet gives them. */
bool admit_fits(const struct pod *p, const struct admit_used *u,
                const struct resources *allocatable, char *reason, size_t reason_size,
                struct strbuf *message);
