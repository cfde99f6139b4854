// SPDX-License-Identifier: Apache-2.0
/* isolation - what limits a container to its share of a card: a table of engines by mode. Modes
 * cgpu, core_mem and mps promise a limit. Without an engine the mode is not served, and the reason
 * names the choices. `none` is also an engine, for mode share or an explicit --isolation=none. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device-plugin/grant/match.h"
#include "device-plugin/grant/response.h"
#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/model/grant.h"
#include "lib/model/gpu.h"
#include "lib/model/pod.h"

#define ISOLATION_MPS_PIPE "/tmp/nvidia-mps"
#define ISOLATION_MPS_SHM "/dev/shm"
#define ISOLATION_CGPU_DIR "/proc/cgpu_km"
#define ISOLATION_LIBRARY "library"
#define ISOLATION_MPS "mps"
#define ISOLATION_KERNEL "kernel"

struct isolation_config {
    bool none;            /* --isolation=none: served without enforcement */
    const char *mps_pipe; /* directory of the MPS control daemon */
    const char *mps_shm;  /* the shared memory that it uses */
    const char *cgpu_dir; /* exists while the cGPU module is loaded */
    /* the host's cgroups, and the kubelet's cgroupRoot in them; NULL: unknown */
    const char *cgroup_mount, *cgroup_root;
    bool mps_own; /* we start the daemon: --mps-control */
    /* --isolation=NAME: this engine only; NULL: the first available one */
    const char *only;
    const char *library; /* path of our own, if installed; NULL: none */
    /* measured context size of each card, by index; 0: unknown. NULL: none is known */
    const _Atomic int32_t *contexts;
    int64_t context_mib; /* what the driver takes per context; 0: not charged */
    /* the folder of containers' limits and regions, the same path here and on the host */
    const char *shares;
    bool regions_apart; /* the file system of regions is there: regionfs */
};

struct isolation_engine {
    const char *name; /* as published in the inventory */
    uint32_t modes;   /* bit set (1u << mode) of the modes it can enforce */
    /* Is it available for these cards? -1: err has the reason and the remedy. Does not block. */
    int (*check)(const struct isolation_config *c, const struct gpu_inventory *inv,
                 struct error *err);
    /* Adds what the engine needs to the response for a container. Pure. */
    void (*dress)(const struct isolation_config *c, const struct gpu_inventory *inv,
                  const struct match_grant *grant, struct arena *a, struct response *out);
    /* Creates what out->share describes, before the container starts. May write files. May be
     * NULL. */
    int (*prepare)(const struct isolation_config *c, const struct shares_plan *share,
                   struct error *err);
    /* Right before a container starts, when it is known whose it is, with all ids it holds. May be
     * NULL. */
    int (*complete)(const struct isolation_config *c, const struct match_listed *l,
                    const struct match_listed_container *held, struct arena *a, struct error *err);
    /* Right before a container of the pod starts. -1: it must not start. May be NULL. */
    int (*start)(const struct isolation_config *c, const struct gpu_inventory *inv,
                 const struct pod *p, const struct grant *grant, struct error *err);
    /* Periodically while the pod exists: repeats start, and does what needs the container ids of
     * the pod's status. May be NULL. */
    int (*keep)(const struct isolation_config *c, const struct gpu_inventory *inv,
                const struct pod *p, const struct grant *grant, struct error *err);
};

/* The mode's active engine. NULL with err: it needs one and has none. NULL without: whole cards
 * need none. */
const struct isolation_engine *isolation_find(const struct isolation_config *c, enum gpu_mode mode,
                                              const struct gpu_inventory *inv, struct error *err);
