// SPDX-License-Identifier: Apache-2.0
/* resource_vector - resources with extra names mapped to small numbers, so that fitting a pod
 * compares integers. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/map.h"
#include "lib/base/vec.h"
#include "lib/model/resources.h"

/* Names are never removed: a cluster has a handful. Tenants invent more, so those of pods are
 * bounded: beyond RESOURCE_VECTOR_NAMES_MAX a name that nobody has is one that no node offers. */
enum { RESOURCE_VECTOR_NAMES_MAX = 65536 };
struct resource_vector_names {
    struct map ids; /* name -> entry in names */
    struct VEC(char *) names;
};

void resource_vector_names_init(struct resource_vector_names *n);
void resource_vector_names_deinit(struct resource_vector_names *n);
uint32_t resource_vector_id(struct resource_vector_names *n, const char *name);
const char *resource_vector_name(const struct resource_vector_names *n, uint32_t id);

struct resource_vector_extra {
    uint32_t id;
    const char *name; /* owned by resource_vector_names, permanent */
    int64_t value;
};

struct resource_vector {
    int64_t cpu_milli;
    int64_t memory_bytes;
    int64_t ephemeral_bytes;
    int64_t pods;
    /* Sorted by name; a resource that a node offers with amount 0 has an entry. */
    struct resource_vector_extra *extra;
    uint32_t extra_len;
    uint32_t extra_cap; /* 0: in an arena, must not grow */
    bool saturated;     /* a sum did not fit in int64 */
};

/* An immutable copy in an arena: a node's allocatable, a pod's request. */
void resource_vector_of(struct resource_vector *out, const struct resources *r,
                        struct resource_vector_names *names, struct arena *a);
void resource_vector_of_pod(struct resource_vector *out, const struct resources *r,
                            struct resource_vector_names *names, struct arena *a);
/* true: there is an entry, and *value is set. */
bool resource_vector_get(const struct resource_vector *a, uint32_t id, int64_t *value);
/* dst (heap) += sign * src. An overflow saturates at INT64_MAX, where nothing fits, and sets
 * `saturated`: it cannot be subtracted, so the owner must recount (only hostile input causes this).
 * An entry that becomes 0 is removed. */
void resource_vector_account(struct resource_vector *dst, const struct resource_vector *src,
                             int sign);
/* The same for the names that `offered` has only: a pod's owner may invent as many others as he
 * likes, and nobody asks for them. The caller accounts again when the names of `offered` change. */
void resource_vector_account_offered(struct resource_vector *dst, const struct resource_vector *src,
                                     const struct resource_vector *offered, int sign);
void resource_vector_deinit(struct resource_vector *a); /* only heap ones */
/* Whether total has room for want beside used. without: what of used would leave, with the names
 * of want; or NULL. */
bool resource_vector_fits(const struct resource_vector *want, const struct resource_vector *total,
                          const struct resource_vector *used,
                          const struct resource_vector *without);
/* Whether an amount of b exceeds that of a, or b has a resource that a lacks. */
bool resource_vector_grew(const struct resource_vector *a, const struct resource_vector *b);
/* By name and of non-zero amounts only: independent of numbering and history. */
uint64_t resource_vector_digest(const struct resource_vector *a);
