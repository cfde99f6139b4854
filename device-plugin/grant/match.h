// SPDX-License-Identifier: Apache-2.0
/* match - identifies the container being admitted, from the kubelet's list and the pods bound here,
 * and determines its cards from its grant. Refusals are errors, not bools, because their text
 * reaches the user as the gRPC error that rejects the pod. Pure. */
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

/* An entry of the kubelet's pod resources list. */
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
    const struct pod *pod; /* as the API server knows it; NULL: unknown */
    const char *uid;       /* NULL: unknown */
    /* How many ordinary init containers, in order, got ids of the resource: the list omits them. */
    size_t init_given[MODE_RESOURCES];
    uint64_t arrival; /* sequence number of its arrival on this node; 0: unknown, sorts last */
    /* Containers (bits, the first 64) already answered or refused. If one has no ids now, the
     * kubelet has rejected the pod since. */
    uint64_t answered[MODE_RESOURCES];
};

struct match_listing {
    struct match_listed *pods;
    size_t len;
};

/* Could this be the pod under admission, by the list alone? Then its object is needed. */
bool match_may_wait(const struct match_listed *l, enum mode_resource r);

struct match_subject {
    const struct pod *pod;
    size_t container;          /* as grants count: spec.containers, then spec.initContainers */
    const struct grant *grant; /* made on this node; NULL: see the pod's annotations */
};

const struct container *match_container(const struct match_subject *s);
/* The container with this name; false: none. */
bool match_named(const struct pod *p, const char *name, struct match_subject *out);

/* Would a container of the pod wait for ids of r, if it were the listed pod? */
bool match_asks(const struct match_listed *l, const struct pod *p, enum mode_resource r);
/* The container that waits for `count` ids of r: in the one listed pod that asks for r and has a
 * container without it, the next in the kubelet's order (init containers, then containers).
 * Kubelets before 1.34 also list pods that wait for admission or were rejected; among several
 * candidates the first to arrive that was not answered before wins. ERROR_NOT_FOUND: no known pod
 * matches. */
int match_waiting(const struct match_listing *l, enum mode_resource r, size_t count,
                  struct match_subject *out, struct error *err);
/* A digest of the ids, independent of their order. In a. */
const char *match_digest(const struct inventory_ids *ids, struct arena *a);
/* The same ids, in any order? */
bool match_same_ids(const struct inventory_ids *x, const struct inventory_ids *y);
/* Does an ordinary init container of the pod ask for one of the resources (a bit set)? */
bool match_init_asks(const struct pod *p, uint32_t resources);
/* The value of init_given of r once the subject has its ids; 0: not an ordinary init container. */
size_t match_init_rank(const struct match_subject *s, enum mode_resource r);
/* PreStartContainer: the container that holds exactly these ids, in any order, and its pod. */
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
    bool partial;               /* of an unknown pod: only what these ids tell */
    const char *ids_digest;     /* of its memory ids; NULL: the ids are of another resource */
    struct match_share *shares; /* shared modes: its cards */
    size_t shares_len;
    int64_t pod_gib, container_gib, container_percent;
    size_t *visible; /* whole cards: positions of the cards the container sees */
    size_t visible_len;
};

/* Chooses count ids for the subject from available, including must. */
int match_prefer(const struct gpu_inventory *inv, enum mode_resource r,
                 const struct match_subject *s, const struct inventory_ids *available,
                 const struct inventory_ids *must, size_t count, struct arena *a,
                 struct inventory_ids *out, struct error *err);
/* The same for an unknown pod, restricted to these cards (by position). */
int match_prefer_on(const struct gpu_inventory *inv, enum mode_resource r, const bool *cards,
                    const struct inventory_ids *available, const struct inventory_ids *must,
                    size_t count, struct arena *a, struct inventory_ids *out, struct error *err);
/* The grant for these ids alone: a share of one card, or whole cards. */
int match_grant_ids(const struct gpu_inventory *inv, enum mode_resource r,
                    const struct inventory_ids *ids, struct arena *a, struct match_grant *out,
                    struct error *err);
/* The grant for these ids, if they are on the granted cards (I5). */
int match_grant(const struct gpu_inventory *inv, enum mode_resource r,
                const struct match_subject *s, const struct inventory_ids *ids, struct arena *a,
                struct match_grant *out, struct error *err);
/* What a container is told of its cards, to compare two grants for the same ids. In a. */
const char *match_describe(const struct match_grant *g, struct arena *a);
