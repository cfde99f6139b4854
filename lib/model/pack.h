// SPDX-License-Identifier: Apache-2.0
/*
 * pack - copies an object, with all that it points to, into one block of exactly its size.
 *
 * A decoder allocates as it reads: repeated names, lists that turn out shorter, intermediate sums.
 * With a hundred thousand pods a compact copy pays off. An object's packer is one function that
 * calls pack_* for each pointer in the object. It runs twice: with `to` NULL it only counts bytes;
 * then `to` is an arena of that size (arena_init_exact), and each pointer is set to the copy, whose
 * own pointers still lead to the original and are packed in turn. So both runs agree on what to
 * copy, and a forgotten pointer leads into freed memory, which the asan tests detect.
 */
#pragma once

#include <stddef.h>

#include "lib/base/arena.h"
#include "lib/model/resources.h"
#include "lib/model/selector.h"

struct pack {
    struct arena *to; /* NULL: only count */
    size_t bytes;
};

/* An array of len elements; NULL when empty. The element size must be a multiple of 8. */
#define pack_array(k, items, len) ((items) = pack_bytes_((k), (items), (len) * sizeof *(items)))
void *pack_bytes_(struct pack *k, const void *from, size_t bytes);

/* NULL stays NULL. */
void pack_text(struct pack *k, const char **text);
/* A text that is one of these words (NULL-terminated list) points to that word and takes no
 * memory. */
void pack_word(struct pack *k, const char **text, const char *const *words);
void pack_texts(struct pack *k, const char ***texts, size_t len);
void pack_labels(struct pack *k, struct labels *l);
void pack_resources(struct pack *k, struct resources *r);
void pack_selector(struct pack *k, struct selector *s);
void pack_node_term(struct pack *k, struct node_term *t);
void pack_node_selector(struct pack *k, struct node_selector *s);
