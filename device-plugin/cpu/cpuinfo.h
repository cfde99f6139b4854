// SPDX-License-Identifier: Apache-2.0
/* cpuinfo - reads the CPU topology with hwloc. The only file that knows hwloc. */
#pragma once

#include <stddef.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/model/topology.h"

enum { CPUINFO_LIST_MAX = 16 * 1024 };

/* source: "live" (this machine; sysfs says which CPUs are offline), "xml:FILE" (saved by lstopo) or
 * "synthetic:TEXT" (hwloc's description, such as "pack:2 [numa] l3:8 core:8 pu:1"). Sets everything
 * but out->reserved, in a. */
int cpuinfo_read(const char *source, const char *sysfs, struct arena *a, struct cpu_topology *out,
                 struct error *err);
/* Is the source of a kind that cpuinfo_read knows? The error lists them. */
int cpuinfo_check_source(const char *source, struct error *err);
/* Reads the CPU list SYSFS/devices/system/cpu/NAME ("online", "present"). */
int cpuinfo_list(const char *sysfs, const char *name, struct cpuset *out, struct error *err);
