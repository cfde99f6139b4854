// SPDX-License-Identifier: Apache-2.0
/*
 * mem - heap objects that live on their own. Zeroed; allocation failure aborts; free() them.
 */
#pragma once

#include <stddef.h>

/* mem_new(struct foo, n): an array of n, zeroed. */
#define mem_new(type, n) ((type *)mem_array_((n), sizeof(type)))
void *mem_array_(size_t n, size_t size);
/* NULL gives NULL. */
char *mem_strdup(const char *s);
