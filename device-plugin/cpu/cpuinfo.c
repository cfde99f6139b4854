// SPDX-License-Identifier: Apache-2.0
/*
 * cpuinfo - turns hwloc's topology into levels for the scheduler: each online CPU is in exactly one
 * socket, NUMA node, L3 group and core.
 *
 *   - NUMA nodes are at the kernel's index, because the annotation cpuset uses that number. A node
 *     without CPUs, or whose CPUs already belong to another (a second kind of memory), is empty.
 *   - Without an L3 cache, as in many virtual machines, each NUMA node of a socket is an L3 group.
 *   - hwloc knows only the numbers of offline CPUs; on the live machine they are those that the
 *     kernel has and does not run.
 *   - The CPU limits of this process's own container are ignored.
 */
#include "device-plugin/cpu/cpuinfo.h"

#include <errno.h>
#include <hwloc.h>
#include <limits.h>
#include <string.h>

#include "lib/base/file.h"

#define XML "xml:"
#define SYNTHETIC "synthetic:"

int cpuinfo_check_source(const char *source, struct error *err)
{
    if (str_eq(source, "live") || (str_starts(source, XML) && source[strlen(XML)] != '\0') ||
        (str_starts(source, SYNTHETIC) && source[strlen(SYNTHETIC)] != '\0'))
        return 0;
    return error_set(err, ERROR_INVALID,
                     "'%.64s' is not known; write live, xml:FILE or synthetic:TEXT", source);
}

int cpuinfo_list(const char *sysfs, const char *name, struct cpuset *out, struct error *err)
{
    char path[PATH_MAX];
    AUTO_STRBUF text;
    strbuf_init(&text);
    if (!str_format(path, sizeof path, "%s/devices/system/cpu/%s", sysfs, name))
        return error_set(err, ERROR_INVALID, "%s: too long", sysfs);
    if (file_read(path, CPUINFO_LIST_MAX, &text, err) < 0)
        return -1;
    return cpuset_parse(strbuf_str(&text), out, err) < 0 ? error_wrap(err, "%s", path) : 0;
}

static int set_source(hwloc_topology_t t, const char *source, struct error *err)
{
    if (str_starts(source, XML) && hwloc_topology_set_xml(t, source + strlen(XML)) < 0)
        return error_errno(err, errno, "%s", source + strlen(XML));
    if (str_starts(source, SYNTHETIC) &&
        hwloc_topology_set_synthetic(t, source + strlen(SYNTHETIC)) < 0)
        return error_set(err, ERROR_INVALID, "'%.200s' is not hwloc's description of a machine",
                         source + strlen(SYNTHETIC));
    if (hwloc_topology_set_flags(t, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) < 0)
        return error_errno(err, errno, "hwloc");
    if (hwloc_topology_load(t) < 0)
        return error_errno(err, errno, "hwloc cannot load %.200s", source);
    return 0;
}

static int to_cpuset(hwloc_const_bitmap_t from, struct cpuset *out, struct error *err)
{
    int cpu;
    cpuset_clear(out);
    if (hwloc_bitmap_weight(from) < 0)
        return error_set(err, ERROR_INVALID, "a set of CPUs without end");
    for (cpu = hwloc_bitmap_first(from); cpu >= 0; cpu = hwloc_bitmap_next(from, cpu)) {
        if (cpu >= CPUSET_MAX)
            return error_set(err, ERROR_INVALID, "CPU %d; CPUs beyond %d are not supported", cpu,
                             CPUSET_MAX - 1);
        cpuset_add(out, (unsigned)cpu);
    }
    return 0;
}

/* The CPU sets of all objects of the type, in hwloc's order. A CPU is only in the first set. */
static int read_groups(hwloc_topology_t t, hwloc_obj_type_t type, struct arena *a,
                       struct cpuset **out, size_t *out_len, struct error *err)
{
    struct cpuset seen = {{0}};
    size_t len = 0, n = 0;
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(t, type, o)) != NULL; n++)
        if (type == HWLOC_OBJ_NUMANODE && o->os_index >= len)
            len = (size_t)o->os_index + 1;
    len = type == HWLOC_OBJ_NUMANODE ? len : n;
    if (len >= TOPOLOGY_GROUPS_MAX)
        return error_set(err, ERROR_INVALID, "%s: number %zu is not supported",
                         hwloc_obj_type_string(type), len - 1);
    *out = arena_new(a, struct cpuset, len + 1);
    *out_len = len;
    n = 0;
    for (hwloc_obj_t o = NULL; (o = hwloc_get_next_obj_by_type(t, type, o)) != NULL; n++) {
        struct cpuset *set = &(*out)[type == HWLOC_OBJ_NUMANODE ? o->os_index : n];
        if (to_cpuset(o->cpuset, set, err) < 0)
            return -1;
        cpuset_subtract(set, &seen);
        cpuset_union(&seen, set);
    }
    return 0;
}

/* Puts CPUs that are in no group into one more; the array has space for it. */
static void add_rest(struct cpuset *groups, size_t *len, const struct cpuset *all)
{
    struct cpuset rest = *all;
    for (size_t i = 0; i < *len; i++)
        cpuset_subtract(&rest, &groups[i]);
    if (!cpuset_is_empty(&rest))
        groups[(*len)++] = rest;
}

/* Adds an L3 group for each NUMA node of a socket, of the CPUs without an L3 cache. */
static int add_l3(struct cpu_topology *out, const struct cpuset *all, struct arena *a,
                  struct error *err)
{
    struct cpuset *found = out->l3, rest = *all;
    for (size_t i = 0; i < out->l3_len; i++)
        cpuset_subtract(&rest, &found[i]);
    if (cpuset_is_empty(&rest))
        return 0;
    out->l3 = arena_new(a, struct cpuset, TOPOLOGY_GROUPS_MAX);
    for (size_t i = 0; i < out->l3_len; i++)
        out->l3[i] = found[i];
    for (size_t s = 0; s < out->sockets_len; s++)
        for (size_t n = 0; n < out->numa_len; n++) {
            struct cpuset both = out->sockets[s];
            cpuset_intersect(&both, &out->numa[n]);
            cpuset_intersect(&both, &rest);
            if (cpuset_is_empty(&both))
                continue;
            if (out->l3_len == TOPOLOGY_GROUPS_MAX)
                return error_set(err, ERROR_INVALID, "more than %d L3 groups", TOPOLOGY_GROUPS_MAX);
            out->l3[out->l3_len++] = both;
        }
    return 0;
}

static int read_cores(hwloc_topology_t t, struct arena *a, struct cpu_topology *out,
                      struct error *err)
{
    uint16_t core_of[CPUSET_MAX];
    unsigned next = 0;
    hwloc_obj_t last = NULL;
    for (size_t i = 0; i < CPUSET_MAX; i++)
        core_of[i] = TOPOLOGY_NO_CORE;
    /* PUs come in hwloc's order, so those of a core are adjacent; each has at most one core. */
    for (hwloc_obj_t pu = NULL; (pu = hwloc_get_next_obj_by_type(t, HWLOC_OBJ_PU, pu)) != NULL;) {
        hwloc_obj_t core = hwloc_get_ancestor_obj_by_type(t, HWLOC_OBJ_CORE, pu);
        if (core == NULL || core != last)
            next++;
        last = core;
        core_of[pu->os_index] = (uint16_t)(next - 1);
    }
    if (!cpu_topology_number(out, core_of, a))
        return error_set(err, ERROR_INVALID, "no CPU, or a core of more than %d threads",
                         TOPOLOGY_THREADS_MAX);
    return 0;
}

static int read_offline(hwloc_topology_t t, const char *source, const char *sysfs,
                        const struct cpuset *all, struct cpuset *out, struct error *err)
{
    if (str_eq(source, "live")) {
        if (cpuinfo_list(sysfs, "present", out, err) < 0)
            return -1;
    } else if (to_cpuset(hwloc_topology_get_complete_cpuset(t), out, err) < 0) {
        return -1;
    }
    cpuset_subtract(out, all);
    return 0;
}

static int read_machine(hwloc_topology_t t, const char *source, const char *sysfs, struct arena *a,
                        struct cpu_topology *out, struct error *err)
{
    struct cpuset all;
    if (set_source(t, source, err) < 0 ||
        to_cpuset(hwloc_topology_get_topology_cpuset(t), &all, err) < 0 ||
        read_groups(t, HWLOC_OBJ_PACKAGE, a, &out->sockets, &out->sockets_len, err) < 0 ||
        read_groups(t, HWLOC_OBJ_NUMANODE, a, &out->numa, &out->numa_len, err) < 0 ||
        read_groups(t, HWLOC_OBJ_L3CACHE, a, &out->l3, &out->l3_len, err) < 0 ||
        read_offline(t, source, sysfs, &all, &out->offline, err) < 0)
        return -1;
    add_rest(out->sockets, &out->sockets_len, &all);
    add_rest(out->numa, &out->numa_len, &all);
    return add_l3(out, &all, a, err) < 0 ? -1 : read_cores(t, a, out, err);
}

int cpuinfo_read(const char *source, const char *sysfs, struct arena *a, struct cpu_topology *out,
                 struct error *err)
{
    hwloc_topology_t t;
    *out = (struct cpu_topology){0};
    if (cpuinfo_check_source(source, err) < 0)
        return error_wrap(err, "CPU topology");
    if (hwloc_topology_init(&t) < 0)
        return error_errno(err, errno, "hwloc");
    int result = read_machine(t, source, sysfs, a, out, err);
    hwloc_topology_destroy(t);
    return result < 0 ? error_wrap(err, "CPU topology") : 0;
}
