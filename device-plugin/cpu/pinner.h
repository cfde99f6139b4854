// SPDX-License-Identifier: Apache-2.0
/*
 * pinner - keeps the containers of this node on the CPUs that the scheduler gave them. On the loop.
 *
 * Only pods that ask for it (annotation cpuset-scheduler) and have been given CPUs (cpuset) are
 * touched. What was done is answered in cosched.io/cpuset-applied.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device-plugin/node/podcache.h"
#include "lib/base/error.h"
#include "lib/base/loop.h"
#include "lib/model/topology.h"

enum {
    PINNER_TICK_MS = 1000, /* everything is looked at again, whether anything was heard or not */
    PINNER_REST_MS = 10 * 1000,    /* the same while no pod of the node has to do with it */
    PINNER_HURRY_MS = 20,          /* a group whose files are not there yet */
    PINNER_MISSING_MS = 10 * 1000, /* a container that runs and has no group is told */
    PINNER_ANSWER_MS = 5 * 1000,   /* an answer that the watch does not show is given again */
};

struct pinner_config {
    struct loop *loop;
    struct podcache *pods;         /* of this node; the pinner subscribes to it */
    const char *cgroup_mount;      /* "/sys/fs/cgroup" */
    const char *cgroup_root;       /* the kubelet's cgroupRoot, "" for none */
    const char *cpu_manager_state; /* of the kubelet; NULL: not looked at */
    const char *state_dir;         /* remembers what was confirmed; NULL: nothing is remembered */
    const char *proc;              /* "/proc", of the host's processes; NULL: not looked at */
    int64_t tick_ms;               /* 0: PINNER_TICK_MS */
    bool memory;                   /* cpuset.mems as well, for a pod on one NUMA node */
    bool shared_pool;              /* all other containers stay off the CPUs of pinned ones */
    void (*pod_event)(void *arg, const struct pod *pod, bool warning, const char *reason,
                      const char *message);
    /* The answer to the pod's annotation cpuset; "": it was let go. */
    void (*applied)(void *arg, const struct pod *pod, const char *cpuset);
    void *arg;
};

struct pinner;

/* Texts are borrowed. */
int pinner_start(struct pinner **out, const struct pinner_config *c, struct error *err);
/* After the metrics are no longer served. The containers stay where they are. NULL is fine. */
void pinner_stop(struct pinner *p);
/* Why nobody is pinned on this node, as of the last look; NULL: they are. Borrowed until then. */
const char *pinner_closed(const struct pinner *p);
/* Nothing is pinned before the machine is known. Copies. */
void pinner_machine(struct pinner *p, const struct cpu_topology *machine);
