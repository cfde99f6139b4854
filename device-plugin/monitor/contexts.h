// SPDX-License-Identifier: Apache-2.0
/*
 * contexts - what the driver takes of a card for a context, by the driver's own figure: a child of ours makes one, and NVML says how much memory the child has. On the loop.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device-plugin/monitor/scan.h"

#define CONTEXTS_PROBE "--probe-context" /* LIBRARY UUID: this program as that child */

struct contexts;

/* mib: by card index, GPU_CARDS_MAX of them; 0: not known. program: this one. Texts are borrowed. */
struct contexts *contexts_new(const char *program, const char *cuda_library, _Atomic int32_t *mib);
void contexts_free(struct contexts *c);
/* At every sight of the cards. wanted: somebody is going to be charged for contexts. */
void contexts_look(struct contexts *c, const struct scan_letter *l, bool wanted);
/* The child: makes a context on the card, says so on its output, and stays until its input ends. Returns its exit status. */
int contexts_probe(const char *cuda_library, const char *uuid);
