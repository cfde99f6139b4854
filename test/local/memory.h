// SPDX-License-Identifier: Apache-2.0
/*
 * memory - allocated and not yet freed bytes. RSS is no substitute: it includes fragmentation and
 * the sanitizer's memory and rarely shrinks, so only large leaks show.
 */
#pragma once

#include <stdint.h>

int64_t memory_in_use_bytes(void);
/* As cosched_local_memory_bytes in /metrics. */
void memory_register(void);
