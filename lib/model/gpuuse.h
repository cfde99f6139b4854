// SPDX-License-Identifier: Apache-2.0
/* gpuuse - what a pod's processes use of its cards: the annotation that the device plugin writes
 * and `kubectl inspect cgpu -d` shows. Pure. For display only: a sample, rewritten when it changes
 * by much. The plugin's metrics have the exact figures. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/model/pod.h"

enum { GPUUSE_BYTES_MAX = 256 };

struct gpuuse {
    int64_t mib; /* on all its cards */
    int64_t processes;
};

/* {"mib":3072,"processes":2} */
void gpuuse_print(const struct gpuuse *u, struct strbuf *out);
/* 1: present; 0: absent; -1: malformed, and the error names the field. */
int gpuuse_read(const struct pod *p, struct gpuuse *out, struct error *err);
