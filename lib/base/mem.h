// SPDX-License-Identifier: Apache-2.0
/* mem - single heap objects. Zeroed; allocation failure aborts; free() them. */
#pragma once

#include <stddef.h>

/* mem_new(struct foo, n): an array of n, zeroed. */
#define mem_new(type, n) ((type *)mem_array_((n), sizeof(type)))
void *mem_array_(size_t n, size_t size);
/* NULL gives NULL. */
char *mem_strdup(const char *s);
/* Zeroes a secret; the compiler cannot remove it (explicit_bzero is not POSIX). NULL and 0 are
 * fine. */
void mem_wipe(void *p, size_t n);
/* For programs that keep many objects and receive thousands per second. Call before the first
 * thread. Freed large blocks (a list page, its parse) return to the system; by default glibc's
 * adaptive threshold would keep them in the heap between long-lived objects. The heap grows by 1 MB
 * per system call, and its free end is returned only when large. */
void mem_expect_many(void);
