// SPDX-License-Identifier: Apache-2.0
#include "scheduler/framework/facets_guard.h"

#ifdef FACETS_GUARDED
#include <sanitizer/asan_interface.h>

#include "scheduler/model/api_objects.h"

/* A field, and the facets that show it; 0: none does. */
struct field {
    size_t offset, size;
    uint32_t shown_by;
};
#define FIELD(type, field, facets)                                              \
    {                                                                           \
        offsetof(struct type, field), sizeof(((struct type *)0)->field), facets \
    }

static const struct field of_cluster[] = {
    FIELD(cluster, nodes, 0),
    FIELD(cluster, pods, FACET_RESERVED),
    FIELD(cluster, gangs, 0),
    FIELD(cluster, pod_groups, 0),
    FIELD(cluster, nominated, FACET_NOMINATED),
    FIELD(cluster, rejections, FACET_REJECTIONS),
    FIELD(cluster, holds, 0),
    FIELD(cluster, reservations, FACET_RESERVED),
    FIELD(cluster, policies, FACET_POLICIES | FACET_UNITS),
    FIELD(cluster, volumes, FACET_VOLUMES),
    FIELD(cluster, volumes_index, FACET_VOLUMES),
    FIELD(cluster, index, FACET_COUNTERS),
    FIELD(cluster, gpu_prices, 0),
};

static const struct field of_objects[] = {
    FIELD(api_objects, by_key[API_OBJECTS_NAMESPACES], FACET_NAMESPACES),
    FIELD(api_objects, by_key[API_OBJECTS_CLAIMS], FACET_VOLUMES),
    FIELD(api_objects, by_key[API_OBJECTS_VOLUMES], FACET_VOLUMES),
    FIELD(api_objects, by_key[API_OBJECTS_STORAGE_CLASSES], FACET_VOLUMES),
    FIELD(api_objects, by_key[API_OBJECTS_CSI_NODES], FACET_VOLUMES),
    FIELD(api_objects, by_key[API_OBJECTS_CSI_DRIVERS], FACET_VOLUMES),
    FIELD(api_objects, by_key[API_OBJECTS_CSI_CAPACITIES], FACET_VOLUMES),
    FIELD(api_objects, by_key[API_OBJECTS_VOLUME_ATTACHMENTS], FACET_VOLUMES),
    FIELD(api_objects, by_key[API_OBJECTS_BUDGETS], 0),
    FIELD(api_objects, by_key[API_OBJECTS_POLICIES], FACET_POLICIES),
};

/* What shares 8 bytes with the field before it is closed to the end of these 8. */
static const struct field of_cluster_node[] = {
    FIELD(cluster_node, allocatable, FACET_CAPACITY),
    FIELD(cluster_node, used, FACET_HELD),
    FIELD(cluster_node, pods, FACET_HELD),
    FIELD(cluster_node, ports, FACET_HELD),
    FIELD(cluster_node, is_virtual, FACET_VIRTUAL),
    FIELD(cluster_node, nominated, FACET_NOMINATED | FACET_REJECTIONS),
    FIELD(cluster_node, rejections, FACET_REJECTIONS),
    FIELD(cluster_node, reserved, FACET_RESERVED),
    FIELD(cluster_node, gpu_accounts, FACET_CARDS | FACET_RESERVED),
    FIELD(cluster_node, cpus, FACET_CPUS | FACET_RESERVED),
};

static const struct field of_node[] = {
    FIELD(node, labels, FACET_LABELS),
    FIELD(node, annotations, 0),
    FIELD(node, unschedulable, FACET_TAINTS),
    FIELD(node, taints, FACET_TAINTS),
    FIELD(node, taints_len, FACET_TAINTS),
    FIELD(node, capacity, 0),
    FIELD(node, allocatable, FACET_CAPACITY),
    FIELD(node, ready, FACET_FEATURES),
    FIELD(node, images, 0),
};

static const struct field of_pod[] = {FIELD(cluster_pod, membership, FACET_POLICIES | FACET_UNITS)};

static _Thread_local bool runs;
static _Thread_local uint32_t declared; /* by the filter that runs */

static void set(const void *object, const struct field *fields, size_t len, uint32_t shown,
                bool closed)
{
    for (size_t i = 0; object != NULL && i < len; i++) {
        const char *at = (const char *)object + fields[i].offset;
        size_t size = (fields[i].size + 7) / 8 * 8 - (uintptr_t)at % 8;
        if ((fields[i].shown_by & shown) != 0)
            continue;
        if (closed)
            ASAN_POISON_MEMORY_REGION(at, size);
        else
            ASAN_UNPOISON_MEMORY_REGION(at, size);
    }
}
#define SET(object, fields, shown, closed) \
    set(object, fields, sizeof(fields) / sizeof *(fields), shown, closed)

void facets_guard_close(uint32_t reads, const struct cluster *c, const struct cluster_pod *pod,
                        const struct cluster_node *node)
{
    runs = true;
    declared = reads;
    SET(c->objects, of_objects, reads, true);
    SET(node->node, of_node, reads, true);
    SET(node, of_cluster_node, reads, true);
    SET(pod, of_pod, reads, true);
    SET(c, of_cluster, reads, true);
}

void facets_guard_open(uint32_t reads, const struct cluster *c, const struct cluster_pod *pod,
                       const struct cluster_node *node)
{
    runs = false;
    SET(c, of_cluster, reads, false);
    SET(pod, of_pod, reads, false);
    SET(node, of_cluster_node, reads, false);
    SET(node->node, of_node, reads, false);
    SET(c->objects, of_objects, reads, false);
}

void facets_guard_read(uint32_t facets)
{
    static uint64_t undeclared; /* writing it makes a report, with the filter among its callers */
    if (!runs || (facets & ~declared) == 0)
        return;
    ASAN_POISON_MEMORY_REGION(&undeclared, sizeof undeclared);
    uint64_t *volatile at =
        &undeclared; /* so that the compiler does not know that it is in bounds */
    *at = 1;
}
#endif
