// SPDX-License-Identifier: Apache-2.0
/*
 * amounts - resources with their extra names turned into small numbers, so that fitting a pod compares integers. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/map.h"
#include "lib/base/vec.h"
#include "lib/model/resources.h"

/* The numbering. Names are never forgotten: a cluster has a handful. */
struct amounts_names {
    struct map ids; /* name -> entry in names */
    struct VEC(char *) names;
};

void amounts_names_init(struct amounts_names *n);
void amounts_names_deinit(struct amounts_names *n);
uint32_t amounts_id(struct amounts_names *n, const char *name);
const char *amounts_name(const struct amounts_names *n, uint32_t id);

struct amounts_extra {
    uint32_t id;
    const char *name; /* of the numbering: as good as forever */
    int64_t value;
};

struct amounts {
    int64_t cpu_milli;
    int64_t memory_bytes;
    int64_t ephemeral_bytes;
    int64_t pods;
    /* By name; a resource that a node offers with 0 has an entry. */
    struct amounts_extra *extra;
    uint32_t extra_len;
    uint32_t extra_cap; /* 0: in somebody's arena, must not grow */
    bool saturated;     /* a sum did not fit in int64 */
};

/* An arena copy that is never changed: a pod's request, a node's allocatable. */
void amounts_of(struct amounts *out, const struct resources *r, struct amounts_names *names,
                struct arena *a);
/* *value set and true when there is an entry. */
bool amounts_get(const struct amounts *a, uint32_t id, int64_t *value);
/* dst (heap) += sign * src. What would overflow is held at INT64_MAX, where nothing fits any more, and dst is `saturated`: what was added cannot be taken
 * off again, the owner must count anew (only hostile input gets there). An entry that comes to 0 goes. */
void amounts_account(struct amounts *dst, const struct amounts *src, int sign);
void amounts_deinit(struct amounts *a); /* heap ones */
/* Some amount of b is more than that of a, or b has a resource that a has not. */
bool amounts_grew(const struct amounts *a, const struct amounts *b);
/* By name and of non-zero amounts only: neither the numbering nor an entry that came and went leaves a trace. */
uint64_t amounts_digest(const struct amounts *a);
