// SPDX-License-Identifier: Apache-2.0
/*
 * cpucount - how many CPUs and NUMA nodes a description of a machine has. Knows hwloc.
 */
#pragma once

#include <stdbool.h>

#include "lib/base/error.h"

struct cpucount {
    unsigned cpus, numa;
};
/* text: hwloc's synthetic form, or with xml the path of an XML file. */
int cpucount_of(const char *text, bool xml, struct cpucount *out, struct error *err);
