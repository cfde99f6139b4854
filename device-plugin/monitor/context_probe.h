// SPDX-License-Identifier: Apache-2.0
/*
 * context_probe - what the driver takes of a card for a context, by the driver's own figure: a
 * child of ours makes one, and NVML says how much memory the child has. On the loop.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device-plugin/monitor/scan.h"

#define CONTEXT_PROBE_PROBE "--probe-context" /* LIBRARY UUID: this program as that child */

struct context_probe;

/* mib: by card index, GPU_CARDS_MAX of them; 0: not known. program: this one. Texts are
 * borrowed. */
struct context_probe *context_probe_new(const char *program, const char *cuda_library,
                                        _Atomic int32_t *mib);
void context_probe_free(struct context_probe *c);
/* At every sight of the cards. wanted: somebody is going to be charged for contexts. */
void context_probe_look(struct context_probe *c, const struct scan_letter *l, bool wanted);
/* The child: makes a context on the card, says so on its output, and stays until its input ends.
 * Returns its exit status. */
int context_probe_probe(const char *cuda_library, const char *uuid);
