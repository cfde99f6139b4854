// SPDX-License-Identifier: Apache-2.0
/*
 * facets_guard - in builds with AddressSanitizer a filter cannot read what it does not declare: the
 * memory of all other facets is poisoned while it runs, and the report names the filter and the
 * line. In other builds there is nothing.
 */
#pragma once

#include <stdbool.h>

#include "scheduler/framework/facets.h"

#if defined(__SANITIZE_ADDRESS__)
#define FACETS_GUARDED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FACETS_GUARDED 1
#endif
#endif

#ifdef FACETS_GUARDED
/* Closes all but these facets to the filter that now runs about this pod and node, or opens them
 * again. */
void facets_guard_close(uint32_t reads, const struct cluster *c, const struct cluster_pod *pod,
                        const struct cluster_node *node);
void facets_guard_open(uint32_t reads, const struct cluster *c, const struct cluster_pod *pod,
                       const struct cluster_node *node);
/* The filter that runs reads these facets in a form that does not show it: a report if it does not
 * declare them. */
void facets_guard_read(uint32_t facets);
#else
static inline void facets_guard_read(uint32_t facets)
{
    (void)facets;
}
#endif
