// SPDX-License-Identifier: Apache-2.0
/*
 * devices - the device manager of a simulated kubelet: Registration and PodResources on real
 * sockets in the node's kubelet directory, a client of whatever registers there, and the checkpoint
 * that outlives a restart.
 *
 * One thread calls the functions (the node's); the transport's threads come in by the sockets.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"
#include "test/local/nodes/podview.h"

struct devices;

struct devices_config {
    const char *kubelet_dir; /* device-plugins/ and pod-resources/ are in it */
    /* The amounts may have changed. Any thread. */
    void (*changed)(void *arg);
    void *arg;
};
int devices_new(struct devices **out, const struct devices_config *c, struct error *err);
void devices_free(struct devices *d); /* stops; the checkpoint stays */

/* As the kubelet starts: every socket in device-plugins/ is deleted, kubelet.sock is made, the
 * checkpoint is read. */
int devices_start(struct devices *d, struct error *err);
/* As it ends: connections are gone, what was allocated is known to the checkpoint alone. */
void devices_stop(struct devices *d);
/* devices_start found no checkpoint: extended resources in node status are to be zeroed. */
bool devices_is_fresh(const struct devices *d);

/* The pod exists on this node (PodResources lists it). */
void devices_add_pod(struct devices *d, const struct podview *v);
/* For every container and resource in turn: GetPreferredAllocation, Allocate. The error is the
 * kubelet's message. What is already allocated (also before a restart) is not requested again. */
int devices_allocate(struct devices *d, const struct podview *v, struct error *err);
/* The pod has ended or gone: its ids are free, it is not listed. */
void devices_remove_pod(struct devices *d, const char *uid);
/* Frees what the checkpoint holds for pods that are not known: the kubelet's first look at all its
 * pods after a restart. */
void devices_keep_only(struct devices *d, bool (*known)(void *arg, const char *uid), void *arg);
/* Before each start of a container. */
int devices_pre_start(struct devices *d, const char *uid, const char *container, struct error *err);
/* KEY=VALUE lines that Allocate gave the container. */
void devices_print_env(struct devices *d, const char *uid, const char *container,
                       struct strbuf *out);
/* What else Allocate gave it, as kwire_print_rest prints it. */
void devices_print_rest(struct devices *d, const char *uid, const char *container,
                        struct strbuf *out);
/* Calls fn for each resource that was ever registered. */
void devices_amounts(struct devices *d,
                     void (*fn)(void *arg, const char *resource, int64_t capacity,
                                int64_t allocatable),
                     void *arg);
