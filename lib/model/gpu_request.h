// SPDX-License-Identifier: Apache-2.0
/*
 * gpu_request - what a pod requests of GPUs: the limits of its containers and the label
 * aliyun.com/gpu-count. The scheduler, the device plugin, the webhook and kubectl-inspect-cgpu all
 * use this parser. Pure.
 *
 * A pod has one kind of GPU: shares of cards (gpu-mem, with or without gpu-core.percentage), whole
 * cards by topology (aliyun.com/gpu), or whole cards (nvidia.com/gpu). An amount of 0 requests
 * nothing, as everywhere in Kubernetes, and a gpu-count of 1 is the same as none.
 *
 * This reports what no program can serve. webhook/rules/rules_gpu.c has the checks that only the
 * webhook makes (the form of amounts, other vendors' resources beside ours).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/model/pod.h"
#include "lib/model/request.h"

/* GiB, percent or cards of one pod. Amounts saturate here, so that sums over all pods of a node
 * cannot overflow, whatever the input. */
#define GPU_REQUEST_MAX (INT64_C(1) << 32)

/* This many GiB of gpu-mem are an error: bytes were meant. */
#define GPU_REQUEST_GIB_MAX (INT64_C(1) << 20)

/* Compute is requested in steps of this many percent. */
enum { GPU_REQUEST_PERCENT_STEP = 5 };

enum gpu_request_resource {
    GPU_REQUEST_MEM,
    GPU_REQUEST_CORE,
    GPU_REQUEST_CARDS,
    GPU_REQUEST_NVIDIA,
    GPU_REQUEST_RESOURCES
};
extern const char *const gpu_request_names[GPU_REQUEST_RESOURCES];

/* One container's share of its card, or of all its cards together. */
struct gpu_request_share {
    uint32_t container; /* index in spec.containers; init container i is containers_len + i */
    int64_t gib;
    int64_t percent;
};

struct gpu_request {
    /* What the pod takes of a node by Kubernetes' formula, including init containers. */
    int64_t total[GPU_REQUEST_RESOURCES];
    /* By container. The shares add up to the totals: containers and sidecars have what they
     * request; ordinary init containers run before the others on the same card, so only what the
     * largest needs beyond that is a share. */
    struct gpu_request_share *shares;
    size_t shares_len;
    int64_t spread_over; /* cards that each share is divided over; 1 unless the label sets more */
    bool shared;         /* requests shares of cards */
    bool any;            /* requests cards that the scheduler chooses: all but nvidia.com/gpu */
    bool
        one_card; /* an ordinary init container requests: the kubelet reuses its ids in any order */
    const char *illegal; /* the first error: why no node can serve it; NULL: valid */
};

/* Everything lives in a. errors may be NULL; else it gets every message. What an invalid pod would
 * hold if it runs anyway is counted too. */
void gpu_request_read(const struct pod *p, struct arena *a, struct gpu_request *out,
                      struct request_errors *errors);
/* Of one container: limits, or requests if only those are set (the API server makes them equal). At
 * most GPU_REQUEST_MAX. */
int64_t gpu_request_amount(const struct container *c, const char *resource);
/* Indexes of shares, the most GiB first, equal ones in order: for the second try, after placing
 * them in order failed. In a. */
size_t *gpu_request_largest_first(const struct gpu_request *r, struct arena *a);
