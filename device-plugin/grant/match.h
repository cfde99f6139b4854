// SPDX-License-Identifier: Apache-2.0
/*
 * match - whose ids are these? From the kubelet's list of pods and the pods bound here to the one
 * container that is being admitted, and from its grant to the cards it gets; or a refusal in a
 * sentence. Pure.
 *
 * "No" is an error here, not a bool: it travels to the user as the gRPC error that rejects the pod.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device-plugin/cards/inventory.h"
#include "device-plugin/cards/mode.h"
#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/model/grant.h"
#include "lib/model/gpu.h"
#include "lib/model/gpu_request.h"
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
    /* Filled by the caller. */
    const struct pod *pod; /* as the API server knows it; NULL while unknown */
    /* Ordinary init containers, in order, that have been given ids of the resource: the list does
     * not show them. */
    size_t init_given[MODE_RESOURCES];
    uint64_t arrival; /* when it came to this node, counted; 0: not known, after all others */
    /* Containers (bits, the first 64) that were answered for before, or refused. Without ids now,
     * the kubelet has turned the pod away since. */
    uint64_t answered[MODE_RESOURCES];
};

struct match_listing {
    struct match_listed *pods;
    size_t len;
};

/* Could this pod be the one under admission, as far as the list alone tells? Then its object is
 * needed. */
bool match_may_wait(const struct match_listed *l, enum mode_resource r);

struct match_subject {
    const struct pod *pod;
    size_t container;          /* as grants count: spec.containers, then spec.initContainers */
    const struct grant *grant; /* made on this node; NULL: the pod's annotations say it */
};

const struct container *match_container(const struct match_subject *s);
/* The container of that name; false: the pod has none. */
bool match_named(const struct pod *p, const char *name, struct match_subject *out);

/* Would any container of the pod wait for ids of r, if it were the listed one? */
bool match_asks(const struct match_listed *l, const struct pod *p, enum mode_resource r);
/* The container that waits for `count` ids of r: in the one listed pod that asks for r and has a
 * container without it, the next in the kubelet's order (init containers, then containers). Where
 * several could be the one (kubelets before 1.34 also list pods that wait for admission or were
 * turned away) it is the first to arrive of those that were not answered before. ERROR_NOT_FOUND:
 * none of the known pods is the one. */
int match_waiting(const struct match_listing *l, enum mode_resource r, size_t count,
                  struct match_subject *out, struct error *err);
/* A name for these ids, in any order. In a. */
const char *match_digest(const struct inventory_ids *ids, struct arena *a);
/* The same ids, in any order? */
bool match_same_ids(const struct inventory_ids *x, const struct inventory_ids *y);
/* Does an ordinary init container of the pod ask for one of the resources (a bit set)? */
bool match_init_asks(const struct pod *p, uint32_t resources);
/* What init_given of r is once the subject has its ids; 0: it is no ordinary init container. */
size_t match_init_rank(const struct match_subject *s, enum mode_resource r);
/* The container that holds exactly these ids, in any order (PreStartContainer), and its pod. */
int match_holder(const struct match_listing *l, enum mode_resource r,
                 const struct inventory_ids *ids, const struct match_listed **out,
                 const char **container, struct error *err);

struct match_share {
    size_t card; /* position in the inventory */
    int64_t gib, percent;
};

/* What one container gets. */
struct match_grant {
    struct match_subject subject;
    bool whole;
    bool partial;               /* of a pod that is not known: only what these ids say */
    const char *ids_digest;     /* then: names the ids */
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
/* The same for a pod that is not known: ids of one card (its position). Whole cards: none that is
 * taken, by position. */
int match_prefer_on(const struct gpu_inventory *inv, enum mode_resource r, const bool *cards,
                    const struct inventory_ids *available, const struct inventory_ids *must,
                    size_t count, struct arena *a, struct inventory_ids *out, struct error *err);
/* The grant for these ids by themselves: a share of one card, or whole cards. */
int match_grant_ids(const struct gpu_inventory *inv, enum mode_resource r,
                    const struct inventory_ids *ids, struct arena *a, struct match_grant *out,
                    struct error *err);
/* The grant for these ids, if they lie where the grant says (I5). */
int match_grant(const struct gpu_inventory *inv, enum mode_resource r,
                const struct match_subject *s, const struct inventory_ids *ids, struct arena *a,
                struct match_grant *out, struct error *err);
