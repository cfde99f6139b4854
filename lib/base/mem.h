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
/* Zeroes what held a secret, also where the compiler sees that nobody reads it any more (explicit_bzero is not POSIX). NULL and 0 are fine. */
void mem_wipe(void *p, size_t n);
/* For the main() of a program that keeps many objects and gets them by thousands in a second, before its first thread:
 *   - large blocks (a page of a list, its parse) go back to the system as soon as they are freed. By default glibc learns from the first of them to keep all later
 *     ones in the heap, between objects that stay;
 *   - a heap grows by a megabyte in a system call, not by a page or two, and what is free at its end is given back only when it is a lot. */
void mem_expect_many(void);
