// SPDX-License-Identifier: Apache-2.0
/*
 * cgroups - the CPUs of a container's group: found, read, written, and read again. cgroup v1 and
 * v2.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device-plugin/cpu/cgroups_path.h"
#include "lib/base/error.h"
#include "lib/base/str.h"
#include "lib/model/cpuset.h"

struct cgroups {
    bool v2;
    char top[CGROUPS_PATH_SIZE]; /* of the hierarchy that has cpuset */
    char cpu[CGROUPS_PATH_SIZE]; /* v1: those of cpu and cpuacct */
    char cpuacct[CGROUPS_PATH_SIZE];
    char root[CGROUPS_PATH_SIZE]; /* the kubelet's cgroupRoot */
};

/* mount: "/sys/fs/cgroup". v2 where it has cgroup.controllers, v1 where it has cpuset; else an
 * error. */
int cgroups_open(struct cgroups *g, const char *mount, const char *root, struct error *err);
/* The pod's group, as a path below top. false: there is none (yet). */
bool cgroups_find_pod(const struct cgroups *g, const char *uid, char out[CGROUPS_PATH_SIZE]);
/* "top/path[/name]". false: too long. */
bool cgroups_full(const struct cgroups *g, const char *path, const char *name,
                  char out[CGROUPS_PATH_SIZE]);

/* What is in a file of the group, and putting something there. A group that is gone is
 * ERROR_NOT_FOUND. */
int cgroups_text(const struct cgroups *g, const char *path, const char *file, struct strbuf *out,
                 struct error *err);
int cgroups_put(const struct cgroups *g, const char *path, const char *file, const char *text,
                struct error *err);
/* v2: every group above path has the controller for those below. */
int cgroups_enable(const struct cgroups *g, const char *path, const char *controller,
                   struct error *err);

/* What is in path's cpuset.cpus, or in "cpuset.mems" and the like. */
int cgroups_read(const struct cgroups *g, const char *path, const char *file, struct cpuset *out,
                 struct error *err);
/* Makes path have these CPUs (never none), and these memory nodes unless mems is NULL; verified by
 * reading. *wrote: they were others before. A group that is gone, or whose files are not there yet,
 * is ERROR_NOT_FOUND. On v2 the controller is enabled along the path; on v1 groups above that lack
 * one of the CPUs get it. */
int cgroups_pin(const struct cgroups *g, const char *path, const struct cpuset *cpus,
                const struct cpuset *mems, bool *wrote, struct error *err);
/* Back to whatever the pod's group has. */
int cgroups_release(const struct cgroups *g, const char *path, bool mems, bool *wrote,
                    struct error *err);

struct cgroups_usage {
    int64_t throttled; /* periods in which it was held back */
    int64_t used_us;
};
/* What cannot be read is 0. */
void cgroups_usage(const struct cgroups *g, const char *path, struct cgroups_usage *out);
