// SPDX-License-Identifier: Apache-2.0
/*
 * nodes - simulated nodes from a JSON file, as clients of any API server: so the same code serves
 * cosched-local and, as `cosched-local nodes --kubeconfig F`, a real control plane.
 *
 * A node that is not virtual has its own kubelet directory and runs the real cosched-device-plugin
 * binary against it; its twin of the kubelet speaks the kubelet's side of the device plugin
 * protocol (Registration, ListAndWatch, GetPreferredAllocation, Allocate, PreStartContainer,
 * PodResources) with the real order of calls, checkpoint and restart behaviour, makes a directory
 * tree in the form of cgroups, and moves pods through Pending, Running, Succeeded, terminating.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/error.h"
#include "lib/kube/config.h"

struct nodes_config {
    struct kube_config *kube;
    const struct kube_options *kube_options;
    const char *kubeconfig_path; /* for the device plugins */
    const char *file;            /* JSON, see nodes_file.c for the form */
    const char *directory;       /* each node has a directory in it */
    const char *plugin_binary;   /* cosched-device-plugin */
};
struct nodes;
/* kube_http_global_init comes first, and signals are blocked (loop_block_signals): gRPC starts
 * threads. Only the file is read and directories are made before it returns; the API server is
 * asked on threads of its own, again and again until it answers, so it may start later. The
 * directory is made if need be; sockets in it have names of at most 107 bytes, so its own must be
 * short: about 30 bytes with node names of 25. */
int nodes_start(struct nodes **out, const struct nodes_config *c, struct error *err);
/* Ends the device plugins; Node objects and directories stay, and nodes_start with the same
 * directory goes on where this ended. The API server need not answer any more. NULL is fine. */
void nodes_stop(struct nodes *n);
/* Are there this node and, unless it is negative, this card of it? ERROR_NOT_FOUND as from the
 * faults below. Any thread, never waits. */
int nodes_check(struct nodes *n, const char *node, int card, struct error *err);
/* Faults; node by name (ERROR_NOT_FOUND). Any thread; never wait for the API server: what they do
 * is done soon after they return. */
int nodes_restart_kubelet(struct nodes *n, const char *node, struct error *err);
int nodes_fail_card(struct nodes *n, const char *node, int card, bool sick, struct error *err);
int nodes_partition(struct nodes *n, const char *node, bool cut, struct error *err);
