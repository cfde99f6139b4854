// SPDX-License-Identifier: Apache-2.0
/* pinner - keeps the containers of this node on the CPUs that the scheduler granted. On the loop.
 * It only changes pods that ask for it (annotation cpuset-scheduler) and were granted CPUs
 * (cpuset), and answers in cosched.io/cpuset-applied. pinner_plan decides the CPUs, pinner_groups
 * says when they are written into which cgroup. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device-plugin/node/podcache.h"
#include "lib/base/error.h"
#include "lib/base/loop.h"
#include "lib/model/topology.h"

enum {
    PINNER_TICK_MS = 1000,         /* checks everything, with or without events */
    PINNER_REST_MS = 10 * 1000,    /* the same while no pod is pinned */
    PINNER_HURRY_MS = 20,          /* a group's files do not exist yet */
    PINNER_MISSING_MS = 10 * 1000, /* then a running container without a group is reported */
    PINNER_ANSWER_MS = 5 * 1000,   /* then an answer missing in the watch is repeated */
};

struct pinner_config {
    struct loop *loop;
    struct podcache *pods;         /* of this node; the pinner subscribes to it */
    const char *cgroup_mount;      /* "/sys/fs/cgroup" */
    const char *cgroup_root;       /* the kubelet's cgroupRoot, "" for none */
    const char *cpu_manager_state; /* of the kubelet; NULL: not read */
    const char *state_dir;         /* stores what was confirmed; NULL: not stored */
    const char *proc;              /* "/proc" of the host; NULL: not read */
    int64_t tick_ms;               /* 0: PINNER_TICK_MS */
    bool memory;                   /* sets cpuset.mems too, for a pod on one NUMA node */
    bool shared_pool;              /* keeps all other containers off the CPUs of pinned ones */
    void (*pod_event)(void *arg, const struct pod *pod, bool warning, const char *reason,
                      const char *message);
    /* The answer to the pod's annotation cpuset; "": released. */
    void (*applied)(void *arg, const struct pod *pod, const char *cpuset);
    void *arg;
};

struct pinner;

/* Strings are borrowed. */
int pinner_start(struct pinner **out, const struct pinner_config *c, struct error *err);
/* After the metrics are no longer served. Containers stay pinned. NULL is allowed. */
void pinner_stop(struct pinner *p);
/* Why this node pins no pods, as of the last check; NULL: it does. Borrowed until the next
 * check. */
const char *pinner_closed(const struct pinner *p);
/* Nothing is pinned before the topology is known. Copies. */
void pinner_machine(struct pinner *p, const struct cpu_topology *machine);
