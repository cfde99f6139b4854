// SPDX-License-Identifier: Apache-2.0
/*
 * shares - the plugin's part of libcosched-gpu.so: a folder for each container with its limits and
 * region, what Allocate mounts from it, and the usage read from regions. A container can write
 * anything into its region, so its content is never used for other containers.
 *
 *     BASE/ld.so.preload                   names the library
 *     BASE/unknown-<ids>.0/                mounted read-only at SHARES_INSIDE:
 *         libcosched-gpu.so  limits  owner
 *         region                           empty; the region is mounted over it, writable
 *     BASE/regions/unknown-<ids>.0         the region, in a file system of its own (regionfs)
 *
 * Without that file system, and in folders of older plugins, the region is in the folder, mounted
 * over itself. Only looks bound it then: they cut what is too large.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device-plugin/isolation/limits.h"
#include "lib/base/arena.h"
#include "lib/base/error.h"

#define SHARES_INSIDE "/usr/local/cosched-gpu"
#define SHARES_LIBRARY "libcosched-gpu.so"
#define SHARES_PRELOAD "/etc/ld.so.preload"
#define SHARES_REGIONS "regions"
/* Prefix of a folder named by ids: when it is made, it is not known whose they are. Older plugins
 * also made BASE/<pod uid>.<container>/. */
#define SHARES_UNKNOWN "unknown-"
#define SHARES_INSTALLED "/usr/local/lib/cosched/" SHARES_LIBRARY

enum {
    SHARES_FOLDER_SIZE = 64,    /* of a folder's name */
    SHARES_TEXT = 448,          /* ns, name, container and uid together fit */
    SHARES_KEEP_MS = 60 * 1000, /* every folder is kept this long */
    SHARES_CONTAINERS_MAX = 1024,
};
/* A container that an older plugin started: the pod's uid is not known, and its cgroup cannot be
 * asked. */
#define SHARES_KEEP_UNKNOWN_MS (INT64_C(30) * 24 * 3600 * 1000)

/* What must exist before a container starts. */
struct shares_plan {
    const char *base, *folder;
    const char *ns, *pod, *container; /* "": unknown */
    struct limits limits;
    bool complete; /* every card of the container is in limits */
    bool apart;    /* the region goes to SHARES_REGIONS, not into the folder */
};

/* Is the engine available? Does not block. */
int shares_check(const char *library, const char *base, struct error *err);
/* Creates the folder with an empty region; copies a changed library to where containers can use
 * it. */
int shares_prepare(const char *library, const struct shares_plan *plan, struct error *err);

/* At the start: makes the regions again that a reboot has removed. */
void shares_restore(const char *base);

struct shares_owner {
    const char *folder;
    const char *uid;                  /* of its pod; "": not known */
    const char *ns, *pod, *container; /* "": not known */
};
/* Writes whose folder it is and its part of the cards' time, of which it had all until now. No such
 * folder: an older plugin made it, with a name of its own. Call before the container starts. */
int shares_complete(const char *base, const struct shares_owner *owner, uint32_t percent,
                    struct error *err);

/* One card of one container, read from its region. */
struct shares_scan {
    const char *folder, *ns, *pod, *container;
    const char *uid; /* of the pod, as recorded when the container started; "": unknown */
    const struct limits_card *limit;
    uint32_t card;
    int64_t used_mib, peak_mib, denied, throttled_ms;
    int64_t processes; /* living processes of the container with the library */
    int64_t device_ms; /* of the card's time, as measured by the node */
    /* it launches without measured device time: launches are counted instead */
    bool unmeasured;
    const char *broken; /* why the region cannot be read: no figures, no processes. NULL: it was */
    bool changed; /* broken, and only on purpose: it was larger than we made it, or a program */
};
/* Every card of every container. Skips invalid folders. budget_us: of each region, see
 * shares_region. Not on the main loop: shares_worker. */
void shares_each(const char *base, int64_t budget_us,
                 void (*report)(void *arg, const struct shares_scan *l), void *arg);

struct shares_folder {
    const char *name;
    const char *uid, *ns, *pod; /* as recorded before the container started; "": unknown */
    struct limits limits;
};
/* Allocates in a; returns the number. */
size_t shares_list(const char *base, struct arena *a, struct shares_folder **out);
/* Is it a folder of the pod? */
bool shares_is_of(const char *folder, const char *uid);
/* See shares_region_measure. */
bool shares_measure(const char *base, const char *folder, uint32_t card, uint64_t ns,
                    uint64_t now_ns);
/* Removes folders that are older than keep_ms, if in_use returns false; returns how many. A folder
 * that an older plugin made for a pod without recording its uid is also kept for
 * SHARES_KEEP_UNKNOWN_MS. Safe beside shares_prepare of the same name. */
size_t shares_sweep(const char *base, int64_t keep_ms,
                    bool (*in_use)(void *arg, const struct shares_owner *o), void *arg);
