// SPDX-License-Identifier: Apache-2.0
#include "test/local/nodes/cpucount.h"

#include <hwloc.h>

#include "lib/model/cpuset.h"

int cpucount_of(const char *text, bool xml, struct cpucount *out, struct error *err)
{
    hwloc_topology_t t;
    if (hwloc_topology_init(&t) < 0)
        return error_set(err, ERROR_INTERNAL, "hwloc does not start");
    int set = xml ? hwloc_topology_set_xml(t, text) : hwloc_topology_set_synthetic(t, text);
    int result = 0;
    if (set < 0 || hwloc_topology_load(t) < 0) {
        result = error_set(err, ERROR_INVALID,
                           xml ? "hwloc cannot read the file %s" : "hwloc does not understand '%s'",
                           text);
    } else {
        int cpus = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PU);
        int numa = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_NUMANODE);
        if (cpus < 1 || cpus > CPUSET_MAX)
            result =
                error_set(err, ERROR_INVALID, "%d CPUs; there must be 1 to %d", cpus, CPUSET_MAX);
        *out = (struct cpucount){.cpus = (unsigned)(cpus > 0 ? cpus : 0),
                                 .numa = (unsigned)(numa > 0 ? numa : 1)};
    }
    hwloc_topology_destroy(t);
    return result;
}
