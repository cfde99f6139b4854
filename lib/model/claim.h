// SPDX-License-Identifier: Apache-2.0
/*
 * claim - what a pod was given: the one contract between the scheduler, the device plugin and the
 * webhook.
 *
 * The scheduler writes a claim into the Binding (claim_encode), the plugin and a restarted
 * scheduler read it back from the pod (claim_decode). Both annotation forms are read; the newer
 * wins when both are there. A claim counts only if its sums equal the requests and the cards exist
 * (claim_check).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/model/cpuclaim.h"
#include "lib/model/gpu.h"
#include "lib/model/pod.h"
#include "lib/model/selector.h"

enum { CLAIM_ANNOTATION_MAX = 16 * 1024, CLAIM_GIB_MAX = 1024 * 1024 };

/*
 * One container's share of one card.
 *
 * The shares of a pod add up to its effective request, so a ledger may simply sum them.
 * spec.containers and sidecars have exactly what they ask for. Ordinary init containers run before
 * the others and use the same card; only what the largest of them needs beyond that is a share of
 * its own.
 */
struct claim_share {
    uint32_t container; /* index in spec.containers; init container i is containers_len + i */
    int32_t card;
    int64_t gib;     /* 0 when only compute */
    int64_t percent; /* 0 when only memory */
};

struct claim {
    struct claim_share *shares; /* sorted by container, then card */
    size_t shares_len;
    int32_t *group; /* whole cards (topology, exclusive), ascending */
    size_t group_len;
    int32_t *visible;
    size_t visible_len;
    int64_t assume_time_ns;
    bool assigned;
    struct cpuclaim cpus; /* annotation cpuset: claim_encode writes it, cpuclaim_decode reads it */
};

/* The claim of the whole pod on one card, by what its containers ask for (gpu-mem and
 * gpu-core.percentage); empty if that is nothing. */
void claim_one_card(const struct pod *p, int32_t card, struct arena *a, struct claim *out);
/* Of cards: CPUs do not count. */
bool claim_is_empty(const struct claim *c);
/* GiB of the pod on one card; of the whole pod; of one container. */
int64_t claim_card_gib(const struct claim *c, int32_t card);
int64_t claim_total_gib(const struct claim *c);
int64_t claim_container_gib(const struct claim *c, uint32_t container);

/* From a pod's annotations. Empty values count as absent. 0 with an empty claim when there is none;
 * ERROR_INVALID names the annotation. For the older form the container is the only one with a
 * gpu-mem limit (an error when several have one). visible is group where it is absent. */
int claim_decode(const struct pod *p, struct arena *a, struct claim *out, struct error *err);
/* The annotations of a Binding: every result key of the contract; those not used are "" (a Binding
 * cannot delete), and so is every other key under cosched.io/ that the pod carries and that is no
 * request. The older form is filled when the pod uses one card. dev_gib: GiB of that card. Returned
 * labels live in a. */
void claim_encode(const struct claim *c, const struct pod *p, int64_t dev_gib, struct arena *a,
                  struct labels *out);
/* Sums equal the requests of each container, and the cards exist in inv. ERROR_INVALID: "container
 * 'a': claim has 2 GiB, request is 3". */
int claim_check(const struct claim *c, const struct pod *p, const struct gpu_inventory *inv,
                struct error *err);

/* Is this annotation (or label) a result key of the contract, never input? */
bool claim_is_result_key(const char *key);
/* The result keys without the cosched.io/ prefix rule; NULL-terminated. */
extern const char *const claim_result_keys[];
