// SPDX-License-Identifier: Apache-2.0
/*
 * resources - amounts that a node offers or a pod requests.
 *
 * CPU in milli, memory and ephemeral storage in bytes, the rest (extended resources, hugepages) as
 * whole numbers sorted by name. Amounts and sums saturate: RESOURCES_TOO_LARGE is an amount that
 * cannot be represented ("1e30", which the API server accepts). A node never has it, so no pod that
 * requests it fits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/model/quantity.h"

enum { RESOURCES_EXTRA_MAX = 512 }; /* different extra names in one list, besides those of cards */
#define RESOURCES_TOO_LARGE INT64_MAX

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
    uint16_t extra_free; /* free entries behind `extra`, while its owner builds it */
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
/* Room for so many more names, in one allocation. */
void resources_reserve(struct resources *r, struct arena *a, size_t names);
/* Sets one entry from text, replacing a previous one. Too large an amount is RESOURCES_TOO_LARGE,
 * of a capacity (QUANTITY_DOWN) one less. Errors name the resource: "resource memory: not a
 * quantity: 'x'"; negative amounts and names beyond RESOURCES_EXTRA_MAX are rejected, and nothing
 * is set. */
int resources_set_text(struct resources *r, struct arena *a, const char *name, size_t name_len,
                       const char *text, size_t text_len, enum quantity_round round,
                       struct error *err);
/* dst += src. dst began as {0}, and its array is changed in place; names are borrowed, so src's
 * arena must outlive dst. false: too many names; those beyond the bound are left out. */
bool resources_add(struct resources *dst, const struct resources *src, struct arena *a);
/* dst = max(dst, src) for each. false: as above. */
bool resources_max(struct resources *dst, const struct resources *src, struct arena *a);
/* Equal amounts; 0 equals absent. */
bool resources_equal(const struct resources *a, const struct resources *b);
/* "cpu 1500m, memory 2Gi, aliyun.com/gpu-mem 3": the non-zero amounts. */
void resources_print(const struct resources *r, struct strbuf *out);
