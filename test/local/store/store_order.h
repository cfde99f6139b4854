// SPDX-License-Identifier: Apache-2.0
/*
 * store_order - the objects of one kind in the order of their keys. For store.c. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/vec.h"
#include "test/local/store/store.h"

/* Where an object lies while it exists; its versions come and go in it. */
struct store_slot {
    struct object *now;
};

enum { STORE_LEAF = 256 };

struct store_leaf {
    size_t len;
    struct store_slot *slots[STORE_LEAF];
};

struct store_order {
    struct VEC(struct store_leaf *) leaves; /* none is empty */
};

struct store_place {
    size_t leaf, slot;
};

void store_order_deinit(struct store_order *o); /* slots stay the caller's */
void store_order_insert(struct store_order *o, struct store_slot *slot); /* its key is new */
void store_order_remove(struct store_order *o, const char *key);         /* it is there */
/* The first place whose key is not before `key`. */
struct store_place store_order_seek(const struct store_order *o, const char *key);
/* The slot at the place, which moves on; NULL at the end. */
struct store_slot *store_order_next(const struct store_order *o, struct store_place *at);
