// SPDX-License-Identifier: Apache-2.0
/*
 * cpuinfo - the layout of a machine's CPUs, asked from hwloc. The only file that knows hwloc.
 */
#pragma once

#include <stddef.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/model/topology.h"

enum { CPUINFO_LIST_MAX = 16 * 1024 };

/* source: "live" (this machine; sysfs says which CPUs are offline), "xml:FILE" (as hwloc's lstopo
 * saves it) or "synthetic:TEXT" (hwloc's description, such as "pack:2 [numa] l3:8 core:8 pu:1").
 * Everything but out->reserved is set, in a. */
int cpuinfo_read(const char *source, const char *sysfs, struct arena *a, struct cpu_topology *out,
                 struct error *err);
/* Whether cpuinfo_read knows such a source; the error names what it knows. */
int cpuinfo_check_source(const char *source, struct error *err);
/* SYSFS/devices/system/cpu/NAME: a list of CPUs ("online", "present"). */
int cpuinfo_list(const char *sysfs, const char *name, struct cpuset *out, struct error *err);
