// SPDX-License-Identifier: Apache-2.0
/*
 * backend - where cards come from: NVML, or a file. The vtable, and nothing else.
 *
 * All functions of one backend are called by one thread (device-plugin/scan), and any of them may block for as long as
 * the driver likes.
 */
#pragma once

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/model/gpu.h"

struct backend; /* each file has its own */

struct backend_config {
    const char *nvml_library; /* "libnvidia-ml.so.1", or a path */
    const char *sysfs;        /* "/sys": NUMA nodes of PCI devices */
    const char *sim_file;
};

struct backend_type {
    const char *name;
    int (*open)(struct backend **out, const struct backend_config *c, struct error *err);
    /* The cards that are there now, with their links; mode and isolation are left alone. A card that cannot be asked is
     * left out or sick, it does not fail the scan. Allocates in a. */
    int (*scan)(struct backend *b, struct arena *a, struct gpu_inventory *out, struct error *err);
    void (*close)(struct backend *b);
};

extern const struct backend_type backend_nvml;
extern const struct backend_type backend_sim;
