// SPDX-License-Identifier: Apache-2.0
#include "scheduler/cache/pods.h"

#include <stdlib.h>

#include "lib/base/mem.h"
#include "scheduler/accounts/gpu_accounts_shape.h"
#include "scheduler/cache/expected_end.h"
#include "scheduler/cache/policies.h"

static bool has_ports(const struct container *c, size_t len, bool sidecars_only)
{
    for (size_t i = 0; i < len; i++)
        if (c[i].ports_len > 0 && (c[i].sidecar || !sidecars_only))
            return true;
    return false;
}

static void drop_too_large(int64_t *amount)
{
    *amount = *amount == RESOURCES_TOO_LARGE ? 0 : *amount;
}

/* A waiting pod that requests an amount that nobody can represent fits nowhere. On a node it holds
 * nothing of that resource: to the kubelet, whose arithmetic overflows, 1e30 CPUs are none, so it
 * runs the pod, and the node has what it had. */
static void count_as_kubelet(struct resource_vector *r)
{
    drop_too_large(&r->cpu_milli);
    drop_too_large(&r->memory_bytes);
    drop_too_large(&r->ephemeral_bytes);
    for (uint32_t i = 0; i < r->extra_len; i++)
        drop_too_large(&r->extra[i].value);
}

void pods_set_object(struct cluster *c, struct cluster_pod *cp, struct pod *p)
{
    cp->pod = p;
    cp->version++;
    cp->template = expected_end_template(p);
    resource_vector_of_pod(&cp->request, &p->request, &c->names, &p->arena);
    if (p->node != NULL)
        count_as_kubelet(&cp->request);
    cp->request.pods = 1;
    gpu_request_read(p, &p->arena, &cp->gpu, NULL);
    cp->gpu_shape = gpu_accounts_shape(&cp->gpu, &p->arena);
    cp->cpu = cpu_request_read(p, &p->arena, NULL);
    cp->has_ports = has_ports(p->containers, p->containers_len, false) ||
                    has_ports(p->init_containers, p->init_containers_len, true);
}

struct cluster_pod *pods_new(struct cluster *c, struct pod *p)
{
    struct cluster_pod *cp = mem_new(struct cluster_pod, 1);
    cp->id = ids_take(&c->pod_ids);
    cp->state = CLUSTER_PENDING;
    cp->membership.unit = POLICIES_NO_UNIT;
    arena_init(&cp->grant_arena, 256);
    pods_set_object(c, cp, p);
    return cp;
}

void pods_free(struct cluster *c, struct cluster_pod *cp)
{
    ids_give(&c->pod_ids, cp->id);
    arena_deinit(&cp->grant_arena);
    pod_free(cp->pod);
    free(cp->giving);
    free(cp->volumes);
    free(cp->membership.marks);
    free(cp);
}
