// SPDX-License-Identifier: Apache-2.0
/* context_probe - measures the memory the driver uses for one CUDA context on each card: a child
 * process creates a context, and NVML reports the child's memory. On the loop. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device-plugin/monitor/scan.h"

#define CONTEXT_PROBE_PROBE "--probe-context" /* LIBRARY UUID: runs this program as the child */

struct context_probe;

/* mib: by card index, GPU_CARDS_MAX entries; 0: unknown. program: this executable. Strings are
 * borrowed. */
struct context_probe *context_probe_new(const char *program, const char *cuda_library,
                                        _Atomic int32_t *mib);
void context_probe_free(struct context_probe *c);
/* After every scan of the cards. wanted: contexts are going to be charged. */
void context_probe_scan(struct context_probe *c, const struct scan_message *l, bool wanted);
/* The child: creates a context on the card, reports it on stdout, and stays until stdin closes.
 * Returns its exit status. */
int context_probe_run(const char *cuda_library, const char *uuid);
