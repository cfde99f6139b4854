// SPDX-License-Identifier: Apache-2.0
/*
 * volumes_held - storage that placed pods use beyond the API objects: their claims, and what an
 * assumed pod was promised for its waiting claims. Pure.
 *
 * A promise is a claim with its node and the volume that it will be bound to, or no volume if one
 * is provisioned. It is made when a pod is assumed, so that no other pod gets the same volume, and
 * a pod with the same claim goes to the same node. It ends when the pod is forgotten or seen bound:
 * the loop posts a Binding only after the watch has shown the claims as bound, so by then the
 * objects agree.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/map.h"
#include "lib/model/pod.h"

struct cluster;
struct cluster_node;
struct cluster_pod;

struct volumes_promise {
    char *claim; /* "ns/name" */
    char *node;
    char *volume; /* NULL: to be provisioned */
    size_t pods;  /* that share it */
};

/* Of one assumed pod. */
struct volumes_promises {
    size_t len;
    struct volumes_promise *items[];
};

struct volumes_held {
    struct map by_claim;  /* "ns/name" -> struct volumes_promise */
    struct map by_volume; /* name -> struct volumes_promise */
    struct map users;     /* "ns/name" -> number of placed pods that use the claim */
    uint64_t version;     /* changes with every change that may alter a verdict */
};

void volumes_held_init(struct volumes_held *h);
/* After the pods are gone. */
void volumes_held_deinit(struct volumes_held *h);

/* A pod with volumes is placed on a node, or leaves it. */
void volumes_held_use(struct cluster *c, const struct pod *p);
void volumes_held_leave(struct cluster *c, const struct pod *p);
bool volumes_held_is_used(const struct volumes_held *h, const char *claim);
/* A waiting claim and its volume; NULL: a new one is provisioned. */
struct volumes_choice {
    const char *claim, *volume;
};
/* Promises the volumes to the pod, which is assumed on the node. */
void volumes_held_give(struct cluster *c, struct cluster_pod *cp, const struct cluster_node *on,
                       const struct volumes_choice *choices, size_t len);

/* Ends the pod's promises, if any: fulfilled or void. */
void volumes_held_withdraw(struct cluster *c, struct cluster_pod *cp);

/* Changes with everything that the volume plugins read besides nodes and pods. */
uint64_t volumes_held_version(const struct cluster *c);
uint64_t volumes_held_digest(const struct volumes_held *h);
