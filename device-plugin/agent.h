// SPDX-License-Identifier: Apache-2.0
/* agent - turns cards, the node's label and the held ids into device lists, registrations and the
 * published inventory. On the loop. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device-plugin/isolation/isolation.h"
#include "device-plugin/node/publish.h"
#include "device-plugin/kubelet/register.h"
#include "device-plugin/kubelet/service.h"
#include "lib/base/error.h"
#include "lib/base/loop.h"
#include "lib/model/gpu.h"
#include "lib/model/node.h"

enum {
    AGENT_HELD_MS = 1000,         /* polls the held ids during a switch */
    AGENT_SAVE_MS = 1000,         /* retries a failed write of the state file */
    AGENT_ENGINE_MS = 2000,       /* checks for the isolation engine */
    AGENT_FOREIGN_MS = 60 * 1000, /* the kubelet reports changes within a few times 10 s */
};

enum agent_list { AGENT_AUTO, AGENT_ENVVAR, AGENT_CDI, AGENT_DEVICE_SPECS };

struct agent_config {
    struct loop *loop;
    struct service *service;
    const char *plugin_dir; /* the kubelet's device-plugins directory */
    const char *state_dir;
    struct isolation_config isolation;
    const char *mps_control,
        *mps_log;         /* --mps-control: the daemon that we run; NULL: run by others */
    enum agent_list list; /* --device-list */
    const char *cdi_dir;  /* where the CDI spec goes */
    bool cdi_nvidia;      /* NVIDIA's spec names the cards: we write none */
    bool exclusive;       /* --exclusive-resource: nvidia.com/gpu is ours in mode default */
    int64_t foreign_ms;   /* 0: AGENT_FOREIGN_MS */
    /* Each may be NULL. */
    void (*publish)(void *arg, const struct publish_wanted *w);
    /* The mode and its engine (NULL: none), at every offer. */
    void (*in_force)(void *arg, enum gpu_mode mode, const struct isolation_engine *engine);
    /* After in_force, at every offer: the list of the resource. */
    void (*offered)(void *arg, enum mode_resource r, const struct inventory_devices *d);
    void (*event)(void *arg, bool warning, const char *reason,
                  const char *message); /* on our node */
    void (*ready)(void *arg, bool cards, bool mode, bool registered);
    void *arg;
};

struct agent;

/* Reads the state file and takes the kubelet's directory. Registers nothing before cards and mode
 * are known. */
int agent_new(struct agent **out, const struct agent_config *c, struct error *err);
void agent_free(struct agent *g);
/* The cards of a scan. Those that cannot be offered (see inventory_pick) are logged and left
 * out. */
void agent_cards(struct agent *g, const struct gpu_inventory *scan);
/* Our node, at every change. Borrowed. */
void agent_node(struct agent *g, const struct node *node);
