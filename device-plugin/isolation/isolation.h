// SPDX-License-Identifier: Apache-2.0
/*
 * isolation - what keeps a container to its share of a card: one engine for each mode, as a table.
 *
 * Modes cgpu, core_mem and mps promise it. Where the engine is not there the mode is not served, and the reason names the
 * choices; `none` is an engine as well, chosen by mode share or explicitly by --isolation=none.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device-plugin/grant/match.h"
#include "device-plugin/grant/response.h"
#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/model/claim.h"
#include "lib/model/gpu.h"
#include "lib/model/pod.h"

#define ISOLATION_MPS_PIPE "/tmp/nvidia-mps"
#define ISOLATION_MPS_SHM "/dev/shm"
#define ISOLATION_CGPU_DIR "/proc/cgpu_km"
#define ISOLATION_LIBRARY "library"
#define ISOLATION_KERNEL "kernel"

struct isolation_config {
    bool none;            /* --isolation=none: served without enforcement */
    const char *mps_pipe; /* directory of the MPS control daemon */
    const char *mps_shm;  /* the shared memory that it uses */
    const char *cgpu_dir; /* there while the cGPU module is loaded */
    const char *cgroup_mount,
        *cgroup_root; /* the host's cgroups, and the kubelet's cgroupRoot in them; NULL: not known */
    bool mps_own;     /* we start the daemon: --mps-control */
    const char
        *only; /* --isolation=NAME: this engine and no other; NULL: the first that is there */
    const char *library; /* our own, where it is installed; NULL: none */
    const _Atomic int32_t *
        contexts; /* what was found out about each card's, by index; 0: not known. NULL: nothing is */
    int64_t context_mib; /* what the driver takes for each context; 0: it is not charged */
    const char
        *shares; /* the folder of containers' limits and regions, the same here and on the host */
};

struct isolation_engine {
    const char *name; /* as published in the inventory */
    uint32_t modes;   /* bit set (1u << mode) of what it can enforce */
    /* Is it there, for these cards? -1: err says why not, and what to do about it. Does not wait. */
    int (*check)(const struct isolation_config *c, const struct gpu_inventory *inv,
                 struct error *err);
    /* Adds what the engine needs to the answer for a container. Pure. */
    void (*dress)(const struct isolation_config *c, const struct gpu_inventory *inv,
                  const struct match_grant *grant, struct arena *a, struct response *out);
    /* Makes what out->share says, before the container starts. May write files. NULL: there is nothing to make. */
    int (*prepare)(const struct isolation_config *c, const struct shares_plan *share,
                   struct error *err);
    /* Right before a container starts that may have been answered for before its pod was known: what it holds in all. NULL: nothing. */
    int (*complete)(const struct isolation_config *c, const struct match_listed *l,
                    const struct match_listed_container *held, struct arena *a, struct error *err);
    /* Right before a container of the pod starts. -1: it must not. NULL: there is nothing to do. */
    int (*start)(const struct isolation_config *c, const struct gpu_inventory *inv,
                 const struct pod *p, const struct claim *claim, struct error *err);
    /* Now and then while the pod is there: what start did, and what can be done only once its status names its containers. NULL: nothing. */
    int (*keep)(const struct isolation_config *c, const struct gpu_inventory *inv,
                const struct pod *p, const struct claim *claim, struct error *err);
};

/* The engine of the mode, in force now. NULL with err: it needs one and has none. NULL without: whole cards need none. */
const struct isolation_engine *isolation_find(const struct isolation_config *c, enum gpu_mode mode,
                                              const struct gpu_inventory *inv, struct error *err);
