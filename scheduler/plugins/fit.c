// SPDX-License-Identifier: Apache-2.0
/*
 * fit - room for the effective request: CPU, memory, ephemeral storage, pod places and every extended resource. A resource that the node does not list
 * is a "no" even where the kubelet would start the pod without it. A node with a pod whose size nobody knows has no room.
 */
#include "lib/base/num.h"
#include "scheduler/plugin.h"

static bool lacks(const char *what, int64_t want, int64_t total, int64_t used, struct reason *why)
{
    int64_t left = num_max(num_sub_sat(total, used), 0);
    if (want <= left || want == 0)
        return false;
    if (why != NULL)
        *why = (struct reason){.kind = REASON_RESOURCE, .what = what, .want = want, .free = left};
    return true;
}

static bool refuse(struct reason *why, enum reason_kind kind, const char *what, const char *detail)
{
    if (why != NULL)
        *why = (struct reason){.kind = kind, .what = what, .detail = detail};
    return false;
}

static bool filter(const struct plugin_ask *ask, const struct cluster_node *node, struct arena *a,
                   struct reason *why)
{
    (void)a;
    const struct cluster_pod *unknown = cluster_find_unreadable(node);
    if (unknown != NULL)
        return refuse(why, REASON_UNREADABLE, NULL, unknown->pod->unreadable);
    const struct amounts *want = &ask->pod->request, *total = &node->allocatable,
                         *used = &node->used;
    if (num_sub_sat(total->pods, used->pods) < 1)
        return refuse(why, REASON_PODS, NULL, NULL);
    if (lacks("cpu", want->cpu_milli, total->cpu_milli, used->cpu_milli, why) ||
        lacks("memory", want->memory_bytes, total->memory_bytes, used->memory_bytes, why) ||
        lacks("ephemeral-storage", want->ephemeral_bytes, total->ephemeral_bytes,
              used->ephemeral_bytes, why))
        return false;
    for (uint32_t i = 0; i < want->extra_len; i++) {
        int64_t offered = 0, taken = 0;
        if (want->extra[i].value == 0)
            continue;
        if (!amounts_get(total, want->extra[i].id, &offered))
            return refuse(why, REASON_NOT_OFFERED, want->extra[i].name, NULL);
        (void)amounts_get(used, want->extra[i].id, &taken);
        if (lacks(want->extra[i].name, want->extra[i].value, offered, taken, why))
            return false;
    }
    return true;
}

static int64_t free_share(int64_t want, int64_t total, int64_t used)
{
    if (total <= 0)
        return 0;
    int64_t left = num_max(num_sub_sat(num_sub_sat(total, used), want), 0);
    int64_t scaled = 0;
    bool exact =
        num_mul(left, PLUGIN_SCORE_MAX, &scaled); /* else beyond 90 PB: never mind precision */
    return num_min(exact ? scaled / total : left / (total / PLUGIN_SCORE_MAX), PLUGIN_SCORE_MAX);
}

/* Least allocated: the node that stays emptiest, CPU and memory counting the same. */
static int64_t score(const struct plugin_ask *ask, const struct cluster_node *node)
{
    const struct cluster_pod *pod = ask->pod;
    int64_t cpu =
        free_share(pod->request.cpu_milli, node->allocatable.cpu_milli, node->used.cpu_milli);
    int64_t memory = free_share(pod->request.memory_bytes, node->allocatable.memory_bytes,
                                node->used.memory_bytes);
    return (cpu + memory) / 2;
}

const struct plugin plugin_fit = {.name = "fit",
                                  .wakes = EVENT_NODE_ROOM | EVENT_POD_GONE,
                                  .depends = PLUGIN_HELD,
                                  .score_depends = PLUGIN_HELD,
                                  .filter = filter,
                                  .score = score,
                                  .weight = 1};
