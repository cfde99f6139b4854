// SPDX-License-Identifier: Apache-2.0
/*
 * volumes_held - what placed pods have of the storage, beside what the API server says: which claims they use, and what an assumed pod was promised for claims that
 * waited for it. Pure.
 *
 * A promise is a claim with its node, and the volume that it will be bound to or none (then one is made for it). It is given when a pod is assumed, so that the next pod
 * cannot be given the same volume, and a pod with the same claim goes where that claim goes. It ends when the pod is forgotten, or is seen bound: the shell posts a Binding
 * only after the watch has shown the claims as bound (volumes.h), so by then the objects say the same.
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
struct volumes_cache;
struct volumes_index;

struct volumes_promise {
    char *claim; /* "ns/name" */
    char *node;
    char *volume; /* NULL: to be provisioned */
    size_t pods;  /* that it was given to */
};

/* Of one assumed pod. */
struct volumes_promises {
    size_t len;
    struct volumes_promise *items[];
};

struct volumes_held {
    struct map by_claim;  /* "ns/name" -> struct volumes_promise */
    struct map by_volume; /* name -> struct volumes_promise */
    struct map users;     /* "ns/name" -> how many placed pods use the claim */
    uint64_t version;     /* changes with every change that may alter a verdict */
};

void volumes_held_init(struct volumes_held *h);
/* After the pods are gone. */
void volumes_held_deinit(struct volumes_held *h);

/* A pod with volumes is on a node from now on, or not any more. */
void volumes_held_use(struct cluster *c, const struct pod *p);
void volumes_held_leave(struct cluster *c, const struct pod *p);
bool volumes_held_is_used(const struct volumes_held *h, const char *claim);
/* A claim that waited, and the volume that it gets; NULL: a new one. */
struct volumes_choice {
    const char *claim, *volume;
};
/* They are promised to the pod, which is assumed on the node. */
void volumes_held_give(struct cluster *c, struct cluster_pod *cp, const struct cluster_node *on,
                       const struct volumes_choice *choices, size_t len);

/* The promise is void, or kept. Does nothing where there is none. */
void volumes_held_withdraw(struct cluster *c, struct cluster_pod *cp);

/* Changes when anything may have changed that the volumes' plugins read beside nodes and pods. */
uint64_t volumes_held_version(const struct cluster *c);
uint64_t volumes_held_digest(const struct volumes_held *h);
