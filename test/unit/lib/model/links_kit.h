// SPDX-License-Identifier: Apache-2.0
/*
 * links_kit - the order of lib/model/links.h once more, by trying every set and dividing into
 * islands in the plainest way; and machines as nvidia-smi prints them. For the unit test and the
 * benchmark.
 */
#pragma once

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/model/links.h"

/* The best of all choices, up to LINKS_EXACT cards in the machine. */
uint64_t links_kit_brute(const struct links *l, const struct links_ask *ask);
/* The matrix that `nvidia-smi topo -m` prints: lines "GPU<n>" with a link for each card, then the
 * CPU affinity and the NUMA node. Lines that begin with # are comments. */
int links_kit_parse(const char *text, struct arena *a, struct gpu_inventory *out,
                    struct error *err);
/* The next of a series of numbers that is the same everywhere. */
uint64_t links_kit_random(uint64_t *state);
/* A machine of n cards on two NUMA nodes whose links are drawn from a few kinds. */
void links_kit_invent(uint64_t *state, size_t n, struct arena *a, struct gpu_inventory *out);
