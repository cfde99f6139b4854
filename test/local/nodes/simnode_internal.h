// SPDX-License-Identifier: Apache-2.0
/* simnode_internal - what simnode.c, simnode_pods.c and simnode_object.c share. */
#pragma once

#include <stdatomic.h>

#include "lib/base/map.h"
#include "lib/base/vec.h"
#include "test/local/nodes/child.h"
#include "test/local/nodes/devices.h"
#include "test/local/nodes/life.h"
#include "test/local/nodes/podfiles.h"
#include "test/local/nodes/simnode.h"

struct simpod {
    struct podview *view;
    struct life life;
    char ip[16];
    bool unsent;      /* the status has changed and the API server does not know */
    bool terminating; /* deletionTimestamp was seen */
    bool deleted;     /* we have deleted it; the watch will say so */
    bool released;    /* devices and cgroups are free again */
    int64_t retry_ns; /* not before: a request failed */
};

/* What came while the node was cut off, or its kubelet was starting. */
struct simnode_held {
    struct podview *view; /* or */
    char *uid;            /* gone */
};

struct simnode {
    struct simnode_config c;
    char dir[PODFILES_PATH], kubelet_dir[PODFILES_PATH], cards[PODFILES_PATH], log[PODFILES_PATH];
    struct podfiles files;
    struct devices *devices; /* NULL: no kubelet */
    bool serving;            /* devices_start was done */
    struct child plugin;
    int64_t plugin_backoff_ms, plugin_started_ms;
    bool ending;
    bool cut;      /* partitioned */
    bool starting; /* the kubelet has just been restarted: no pods yet */
    struct VEC(struct simnode_held) held;
    struct VEC(struct podview *) arrivals; /* new pods that wait for their turn (reorderMs) */
    bool reset_seen;

    bool registered, status_unsent;
    bool deleted; /* the Node, by another writer */
    int64_t since_ns, status_ms;
    bool lease_made, lease_refused;

    struct map pods; /* by uid: struct simpod */
    uint32_t pods_made;
    int64_t work_due_ns;
    struct loop_timer work, register_, status, lease, plugin_again, started, turn;
};

/* simnode_object.c */
void simnode_register(void *arg);    /* timer */
void simnode_send_status(void *arg); /* timer */
void simnode_renew(void *arg);       /* timer */
/* simnode_pods.c */
void simnode_accept(struct simnode *n, struct podview *v); /* takes it */
void simnode_drop(struct simnode *n, const char *uid);
void simnode_work(void *arg); /* timer */
void simnode_pods_free(struct simnode *n);
/* simnode.c */
void simnode_start_kubelet(struct simnode *n);
