// SPDX-License-Identifier: Apache-2.0
/*
 * simnode - one simulated node: its Node object, its pods, and for nodes with a kubelet the device
 * manager, the device plugin's process and the files. Functions run on the crew's thread
 * unless they say otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/loop.h"
#include "lib/kube/api.h"
#include "lib/kube/events.h"
#include "test/local/nodes/podview.h"
#include "test/local/nodes/nodes_file.h"

struct simnode;

struct simnode_config {
    struct nodes_spec *spec;
    struct loop *loop;
    struct kube_client *client;
    struct events *events; /* or NULL */
    const char *directory; /* its parent */
    const char *plugin_binary;
    const char *kubeconfig_path; /* of the plugin, or NULL */
    /* Device amounts have changed: simnode_on_devices is to be called on the crew's thread. Any
     * thread. */
    void (*poke)(void *arg, struct simnode *n);
    void *arg;
};

/* Makes directories and cards; starts nothing and makes no request. Any thread. */
int simnode_new(struct simnode **out, const struct simnode_config *c, struct error *err);
void simnode_free(struct simnode *n);
const char *simnode_name(const struct simnode *n);

/* Registers as soon as the API server answers; then the kubelet, then the plugin. */
void simnode_begin(struct simnode *n);
/* Ends the plugin and the sockets; the Node object stays, as a kubelet's does. */
void simnode_end(struct simnode *n);
/* So that simnode_end need not wait for a call to the plugin that hangs. Any thread. */
void simnode_kill_plugin(struct simnode *n);

/* All pods of the node; takes the views, puts NULL in their places. */
void simnode_reset(struct simnode *n, struct podview **views, size_t len);
void simnode_put(struct simnode *n, struct podview *v); /* takes it */
void simnode_gone(struct simnode *n, const char *uid);
void simnode_on_devices(struct simnode *n);

void simnode_restart_kubelet(struct simnode *n);
void simnode_cut(struct simnode *n, bool cut);
/* Any thread. ERROR_NOT_FOUND: the node has no such card, or no kubelet. */
int simnode_check_card(const struct simnode *n, int card, struct error *err);
/* Any thread, one at a time. */
int simnode_fail_card(struct simnode *n, int card, bool sick, struct error *err);
