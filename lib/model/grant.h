// SPDX-License-Identifier: Apache-2.0
/*
 * grant - what a pod was given: the contract between the scheduler, the device plugin and the
 * webhook.
 *
 * The scheduler writes a grant into the Binding (grant_encode); the plugin and a restarted
 * scheduler read it back from the pod (grant_decode). Both annotation forms are read; the newer
 * takes precedence. A grant counts only if its sums equal the requests and the cards exist
 * (grant_check).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/model/cpu_grant.h"
#include "lib/model/gpu.h"
#include "lib/model/gpu_request.h"
#include "lib/model/pod.h"
#include "lib/model/selector.h"

enum { GRANT_ANNOTATION_MAX = 16 * 1024, GRANT_GIB_MAX = 1024 * 1024 };

/*
 * One container's share of one card. The shares of a pod add up to its effective request, so
 * accounts may simply sum them. spec.containers and sidecars have exactly what they request.
 * Ordinary init containers run before the others and use the same card; only what the largest of
 * them needs beyond that is a share of its own.
 */
struct grant_share {
    uint32_t container; /* index in spec.containers; init container i is containers_len + i */
    int32_t card;
    int64_t gib;     /* 0: only compute */
    int64_t percent; /* 0: only memory */
};

struct grant {
    struct grant_share *shares; /* sorted by container, then card */
    size_t shares_len;
    int32_t *group; /* whole cards (topology, exclusive), ascending */
    size_t group_len;
    int32_t *visible;
    size_t visible_len;
    int64_t assume_time_ns;
    bool assigned;
    /* annotation cpuset: grant_encode writes it, cpu_grant_decode reads it */
    struct cpu_grant cpus;
};

/* The grant of the whole pod on one card; empty if it requests no shares. */
void grant_one_card(const struct gpu_request *r, int32_t card, struct arena *a, struct grant *out);
/* Whether it has no cards; CPUs do not count. */
bool grant_is_empty(const struct grant *c);
/* GiB of the pod on one card; of the whole pod; of one container. */
int64_t grant_card_gib(const struct grant *c, int32_t card);
int64_t grant_total_gib(const struct grant *c);
int64_t grant_container_gib(const struct grant *c, uint32_t container);

/* From a pod's annotations. Empty values count as absent. 0 with an empty grant when there is none;
 * ERROR_INVALID names the annotation. In the older form the container is the only one with a
 * gpu-mem limit (an error if several have one). visible defaults to group. */
int grant_decode(const struct pod *p, struct arena *a, struct grant *out, struct error *err);
/* The annotations of a Binding: every result key of the contract. Unused ones are "" (a Binding
 * cannot delete), and so is every other key under cosched.io/ that the pod has and that is no
 * request. The older form is filled when the pod uses one card. dev_gib: GiB of that card. Returned
 * labels live in a. */
void grant_encode(const struct grant *c, const struct pod *p, int64_t dev_gib, struct arena *a,
                  struct labels *out);
/* Whether the sums equal the requests of each container: the part of the rule that needs no
 * inventory. ERROR_INVALID: "container 'a': grant has 2 GiB, request is 3". r: read from p. */
int grant_adds_up(const struct grant *c, const struct pod *p, const struct gpu_request *r,
                  struct error *err);
/* grant_adds_up, and the cards exist in inv. */
int grant_check(const struct grant *c, const struct pod *p, const struct gpu_inventory *inv,
                struct error *err);

/* Whether this annotation (or label) is a result key of the contract, never input. */
bool grant_is_result_key(const char *key);
/* The result keys without the cosched.io/ prefix rule; NULL-terminated. */
extern const char *const grant_result_keys[];
