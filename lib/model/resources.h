// SPDX-License-Identifier: Apache-2.0
/*
 * resources - amounts that a node offers or a pod requests.
 *
 * CPU in milli, memory and ephemeral storage in bytes, the rest (extended resources, hugepages) as
 * whole numbers sorted by name. Sums are checked: resources_add returns false rather than wrap.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/model/quantity.h"

enum { RESOURCES_EXTRA_MAX = 64 }; /* different extra names in one list */

struct resource_extra {
    const char *name;
    int64_t value;
};

struct resources {
    int64_t cpu_milli;
    int64_t memory_bytes;
    int64_t ephemeral_bytes;
    int64_t pods; /* capacity only; a request has 0 here and counts as one pod */
    struct resource_extra *extra;
    uint32_t extra_len;
    /* RESOURCES_HAS_*: which of the four are present; 0 differs from absent in pod-level and
     * default rules */
    uint8_t has;
};
enum {
    RESOURCES_HAS_CPU = 1,
    RESOURCES_HAS_MEMORY = 2,
    RESOURCES_HAS_EPHEMERAL = 4,
    RESOURCES_HAS_PODS = 8
};

/* Amount of any resource by its Kubernetes name ("cpu" gives milli); 0 when absent. *present may be
 * NULL. */
int64_t resources_get(const struct resources *r, const char *name, bool *present);
/* Sets one entry from text, replacing a previous one. ERROR_RANGE/ERROR_INVALID name the resource:
 * "resource memory: not a quantity: 'x'"; negative amounts are rejected. */
int resources_set_text(struct resources *r, struct arena *a, const char *name, size_t name_len,
                       const char *text, size_t text_len, enum quantity_round round,
                       struct error *err);
/* dst += src. dst began as {0} or by resources_copy (its array is changed in place); names are
 * borrowed, so src's arena must outlive dst. false: overflow or too many names; dst is then
 * unspecified. */
bool resources_add(struct resources *dst, const struct resources *src, struct arena *a);
/* dst = max(dst, src) for each. false: too many names. */
bool resources_max(struct resources *dst, const struct resources *src, struct arena *a);
/* A copy whose names live in a. */
void resources_copy(struct resources *dst, const struct resources *src, struct arena *a);
/* Equal amounts; 0 equals absent. */
bool resources_equal(const struct resources *a, const struct resources *b);
bool resources_is_zero(const struct resources *r);
/* "cpu 1500m, memory 2Gi, aliyun.com/gpu-mem 3": the non-zero amounts. */
void resources_print(const struct resources *r, struct strbuf *out);
