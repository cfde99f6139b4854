// SPDX-License-Identifier: Apache-2.0
/* cgroups - finds a container's cgroup, and reads, writes and verifies its CPUs. cgroup v1 and
 * v2. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device-plugin/cpu/cgroups_path.h"
#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/model/cpuset.h"

struct cgroups {
    bool v2;
    char top[CGROUPS_PATH_SIZE]; /* of the cpuset hierarchy */
    char cpu[CGROUPS_PATH_SIZE]; /* v1: of cpu and cpuacct */
    char cpuacct[CGROUPS_PATH_SIZE];
    char root[CGROUPS_PATH_SIZE]; /* the kubelet's cgroupRoot */
};

/* mount: "/sys/fs/cgroup". v2 if it has cgroup.controllers, v1 if it has cpuset, else an error. */
int cgroups_open(struct cgroups *g, const char *mount, const char *root, struct error *err);
/* The pod's group, as a path below top. false: none (yet). */
bool cgroups_find_pod(const struct cgroups *g, const char *uid, char out[CGROUPS_PATH_SIZE]);
/* "top/path[/name]". false: too long. */
bool cgroups_full(const struct cgroups *g, const char *path, const char *name,
                  char out[CGROUPS_PATH_SIZE]);

/* Read and write a file of the group. ERROR_NOT_FOUND: the group is gone. */
int cgroups_text(const struct cgroups *g, const char *path, const char *file, struct strbuf *out,
                 struct error *err);
int cgroups_put(const struct cgroups *g, const char *path, const char *file, const char *text,
                struct error *err);
/* v2: enables the controller in every ancestor of path. */
int cgroups_enable(const struct cgroups *g, const char *path, const char *controller,
                   struct error *err);

/* The content of path's cpuset.cpus, "cpuset.mems" or the like. */
int cgroups_read(const struct cgroups *g, const char *path, const char *file, struct cpuset *out,
                 struct error *err);
/* Gives path these CPUs (never none), and these memory nodes unless mems is NULL; verified by
 * reading. *wrote: they were different. ERROR_NOT_FOUND: the group or its files do not exist. On v2
 * enables the controller along the path; on v1 adds missing CPUs to the ancestors. */
int cgroups_pin(const struct cgroups *g, const char *path, const struct cpuset *cpus,
                const struct cpuset *mems, bool *wrote, struct error *err);
/* Resets path to the CPUs of the pod's group. */
int cgroups_release(const struct cgroups *g, const char *path, bool mems, bool *wrote,
                    struct error *err);

struct cgroups_usage {
    int64_t throttled; /* periods in which it was throttled */
    int64_t used_us;
};
/* Unreadable values are 0. */
void cgroups_usage(const struct cgroups *g, const char *path, struct cgroups_usage *out);
