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
/* Zeroes a secret even if the compiler sees no later read (explicit_bzero is not POSIX). NULL and 0
 * are fine. */
void mem_wipe(void *p, size_t n);
/* For programs that keep many objects and receive thousands in a second; call before the first
 * thread. Large blocks (a page of a list, its parse) return to the system when freed: by default
 * glibc's threshold adapts and keeps later ones in the heap, between long-lived objects. The heap
 * grows by a megabyte per system call, and its free end is returned only when it is large. */
void mem_expect_many(void);
