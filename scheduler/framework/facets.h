// SPDX-License-Identifier: Apache-2.0
/*
 * facets - the parts of the model that a filter may read, and for each part the events that
 * announce a change of it. Pure.
 *
 * A plugin declares the facets that its filter reads (PLUGIN_READS). Which events can turn its "no"
 * into a "yes" (wakes) and how long its answers stay valid (depends) follow from the table below,
 * so they cannot contradict each other. In builds with AddressSanitizer facets_guard.h closes all
 * other facets while the filter runs: a read that was not declared ends the test there.
 *
 * What may be read without a facet: the pod and its class key, the names of nodes, and settings
 * that never change (virtual nodes' labels and taints, packing). A new node is an event for
 * everybody.
 */
#pragma once

#include <stdint.h>

#include "scheduler/model/model.h"

enum plugin_depends { PLUGIN_NODE, PLUGIN_HELD, PLUGIN_DOMAIN };

/* F(x, facet, its number, its events, what an answer that reads it depends on) */
#define FACETS_EACH(F, x)                                                                        \
    F(x, LABELS, 0, EVENT_NODE_LABELS, PLUGIN_NODE)                                              \
    F(x, VIRTUAL, 1, EVENT_NODE_LABELS, PLUGIN_NODE)                                             \
    F(x, TAINTS, 2, EVENT_NODE_TAINTS, PLUGIN_NODE)                                              \
    F(x, FEATURES, 3, EVENT_NODE_FEATURES, PLUGIN_NODE)                                          \
    F(x, CAPACITY, 4, EVENT_NODE_CAPACITY, PLUGIN_NODE)                                          \
    F(x, CARDS, 5, EVENT_NODE_GPU, PLUGIN_NODE)                                                  \
    F(x, CPUS, 6, EVENT_NODE_CPU, PLUGIN_NODE)                                                   \
    F(x, HELD, 7, EVENT_POD_GONE, PLUGIN_HELD)                                                   \
    F(x, NOMINATED, 8, EVENT_POD_GONE, PLUGIN_HELD)                                              \
    F(x, REJECTIONS, 9, EVENT_NODE_CAPACITY, PLUGIN_HELD)                                        \
    F(x, RESERVED, 10, EVENT_NODE_CAPACITY | EVENT_POD_GONE, PLUGIN_HELD)                        \
    F(x, COUNTERS, 11, EVENT_POD_LEFT | EVENT_POD_COUNTED | EVENT_NODE_GONE | EVENT_NODE_LABELS, \
      PLUGIN_DOMAIN)                                                                             \
    F(x, COUNTED_TAINTS, 12, EVENT_NODE_TAINTS, PLUGIN_DOMAIN)                                   \
    F(x, NAMESPACES, 13, EVENT_NAMESPACE, PLUGIN_NODE)                                           \
    F(x, VOLUMES, 14, EVENT_VOLUME, PLUGIN_NODE)                                                 \
    F(x, POLICIES, 15, EVENT_POLICY, PLUGIN_NODE)                                                \
    F(x, UNITS, 16, EVENT_UNIT | EVENT_POD_LEFT, PLUGIN_HELD)                                    \
    F(x, CLAIMS_USED, 17, EVENT_POD_LEFT, PLUGIN_HELD)

/* Facets of the node are those of its Node object (LABELS, VIRTUAL, TAINTS, FEATURES, CAPACITY,
 * CARDS: inventory, CPUS: topology), and of the pods there (HELD: amounts, ports, cards and CPUs in
 * use; NOMINATED, REJECTIONS, RESERVED). COUNTERS: pods of other nodes too, by label (domains.h);
 * COUNTED_TAINTS: which nodes count for that. POLICIES: which policy selects the pod; UNITS: what
 * its units have used; CLAIMS_USED: claims of pods on any node. */
#define FACETS_NAME(x, facet, number, events, depends) FACET_##facet = 1 << (number),
enum facet { FACETS_EACH(FACETS_NAME, 0) };
#undef FACETS_NAME

#define FACETS_EVENTS(x, facet, number, events, depends) \
    | (((x)&FACET_##facet) != 0 ? (uint32_t)(events) : 0)
#define FACETS_DEPENDS(x, facet, number, events, depends) \
    | (((x)&FACET_##facet) != 0 ? 1 << (depends) : 0)
#define FACETS_WAKES(x) (0 FACETS_EACH(FACETS_EVENTS, x))
#define FACETS_DEPENDENCE(x)                                                  \
    ((0 FACETS_EACH(FACETS_DEPENDS, x)) >= 1 << PLUGIN_DOMAIN ? PLUGIN_DOMAIN \
     : (0 FACETS_EACH(FACETS_DEPENDS, x)) >= 1 << PLUGIN_HELD ? PLUGIN_HELD   \
                                                              : PLUGIN_NODE)
/* In a plugin's table: what its filter reads, and what follows from it. */
#define PLUGIN_READS(facets) \
    .reads = (facets), .wakes = FACETS_WAKES(facets), .depends = FACETS_DEPENDENCE(facets)
