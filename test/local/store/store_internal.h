// SPDX-License-Identifier: Apache-2.0
/*
 * store_internal - the inside of the store. For store*.c alone.
 */
#pragma once

#include "lib/base/map.h"
#include "lib/base/vec.h"
#include "test/local/store/store.h"
#include "test/local/store/store_order.h"

/* The last changes of a kind: a ring that grows up to the store's history. */
struct store_past {
    struct store_event *ring;
    size_t cap, head, len;
    uint64_t forgotten; /* the newest version that is not in it any more */
};

struct store_table {
    const struct kind *kind;
    struct map by_key; /* to slots */
    struct store_order order;
    struct store_past past;
    struct store_listener *listeners, **listeners_end;
};

enum { STORE_KINDS = 256 }; /* a power of two; at most half are used */

struct store {
    size_t history;
    uint64_t version, compacted;
    struct store_table *hashed[STORE_KINDS]; /* by the kind's address */
    struct VEC(struct store_table *) tables; /* in order of first use */
    struct store_listener *listeners, **listeners_end;
    struct store_listener
        *cursor; /* the listener to call next; advanced when that one is removed */
    bool telling;
    struct VEC(struct store_event) waiting; /* made by listeners, not yet delivered */
    struct VEC(struct object *) replaced;   /* given out, and no longer the newest */
    struct strbuf key;                      /* scratch */
};

struct store_table *store_table(struct store *s, const struct kind *k);
