// SPDX-License-Identifier: Apache-2.0
/*
 * memory - how much of it the program has asked for and not given back. What the kernel says (RSS)
 * is the most there ever was, with holes, and with whatever a sanitizer keeps: a leak has to be
 * large to be seen there.
 */
#pragma once

#include <stdint.h>

int64_t memory_in_use_bytes(void);
/* As cosched_local_memory_bytes in /metrics. */
void memory_register(void);
