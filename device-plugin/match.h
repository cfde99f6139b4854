// SPDX-License-Identifier: Apache-2.0
/*
 * match - whose ids are these? From the kubelet's list of pods and the pods bound here to the one container that
 * is being admitted, and from its claim to the cards it gets; or a refusal in a sentence. Pure.
 *
 * "No" is an error here, not a bool: it travels to the user as the gRPC error that rejects the pod.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device-plugin/inventory.h"
#include "device-plugin/mode.h"
#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/model/claim.h"
#include "lib/model/gpu.h"
#include "lib/model/pod.h"

/* What the kubelet's pod resources service lists. */
struct match_listed_container {
    const char *name;
    struct inventory_ids held[MODE_RESOURCES];
};

struct match_listed {
    const char *ns, *name;
    const char *key; /* "ns/name" */
    struct match_listed_container *containers;
    size_t containers_len;
    const struct pod
        *pod; /* as the API server knows it; NULL while unknown. Filled by the caller. */
};

struct match_listing {
    struct match_listed *pods;
    size_t len;
};

/* Could this pod be the one under admission, as far as the list alone tells? Then its object is needed. */
bool match_may_wait(const struct match_listed *l, enum mode_resource r);

enum { MATCH_INIT = -1 }; /* an init container: claimed with the whole pod, on one card */

struct match_subject {
    const struct pod *pod;
    int32_t container; /* index in spec.containers, or MATCH_INIT */
};

/* The container that waits for `count` ids of r: in the one listed pod that asks for r and has a container
 * without it, the next in the kubelet's order (init containers, then containers). */
int match_waiting(const struct match_listing *l, enum mode_resource r, size_t count,
                  struct match_subject *out, struct error *err);
/* The container that holds exactly these ids (PreStartContainer). */
int match_holder(const struct match_listing *l, enum mode_resource r,
                 const struct inventory_ids *ids, const struct match_listed **out,
                 struct error *err);

struct match_share {
    size_t card; /* position in the inventory */
    int64_t gib, percent;
};

/* What one container gets. */
struct match_grant {
    struct match_subject subject;
    bool whole;
    struct match_share *shares; /* shared modes: its cards */
    size_t shares_len;
    int64_t pod_gib, container_gib, container_percent;
    size_t *visible; /* whole cards: positions of those that the container sees */
    size_t visible_len;
};

/* Which ids the kubelet should take for the subject, out of available, must among them. */
int match_prefer(const struct gpu_inventory *inv, enum mode_resource r,
                 const struct match_subject *s, const struct inventory_ids *available,
                 const struct inventory_ids *must, size_t count, struct arena *a,
                 struct inventory_ids *out, struct error *err);
/* The grant for these ids, if they lie where the claim says (I5). */
int match_grant(const struct gpu_inventory *inv, enum mode_resource r,
                const struct match_subject *s, const struct inventory_ids *ids, struct arena *a,
                struct match_grant *out, struct error *err);
