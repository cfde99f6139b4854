// SPDX-License-Identifier: Apache-2.0
/*
 * shares - the plugin's part of libcosched-gpu.so: a folder for each container with its limits and
 * region, what Allocate mounts from it, and the usage read from regions. A container can write
 * anything into its region, so its content is never used for other containers.
 *
 *     BASE/ld.so.preload                   names the library
 *     BASE/<pod uid>.<container>/          mounted read-only at SHARES_INSIDE:
 *         libcosched-gpu.so  limits  owner
 *         region                           mounted over itself, writable
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
#define SHARES_UNKNOWN "unknown-" /* prefix of the folder of a container with an unknown pod */
#define SHARES_INSTALLED "/usr/local/lib/cosched/" SHARES_LIBRARY

enum {
    SHARES_TEXT = 320,               /* ns, name and container together fit */
    SHARES_KEEP_MS = 10 * 60 * 1000, /* a folder of an unknown pod is kept this long */
    SHARES_CONTAINERS_MAX = 1024,
};
/* The name of an unknown pod's folder does not tell when the pod is gone. Removed too early, it
 * would leave the container without limits and unable to restart. */
#define SHARES_KEEP_UNKNOWN_MS (INT64_C(30) * 24 * 3600 * 1000)

/* What must exist before a container starts. */
struct shares_plan {
    const char *base, *folder;
    const char *ns, *pod, *container; /* "": unknown */
    struct limits limits;
    bool complete; /* every card of the container is in limits */
};

/* Is the engine available? Does not block. */
int shares_check(const char *library, const char *base, struct error *err);
/* Creates the folder with an empty region; copies a changed library to where containers can use
 * it. */
int shares_prepare(const char *library, const struct shares_plan *plan, struct error *err);

/* A container admitted before its pod was known has a folder named by its memory ids, and all of
 * the card's time. Writes its limits now that the pod is known. No such folder: its pod was known.
 * Call before the container starts. */
int shares_complete(const char *base, const char *folder, const char *ns, const char *pod,
                    const char *container, uint32_t percent, struct error *err);

/* One card of one container, read from its region. */
struct shares_scan {
    const char *folder, *ns, *pod, *container;
    const struct limits_card *limit;
    uint32_t card;
    int64_t used_mib, peak_mib, denied, throttled_ms;
    int64_t processes; /* living processes of the container with the library */
    int64_t device_ms; /* of the card's time, as measured by the node */
    /* it launches without measured device time: launches are counted instead */
    bool unmeasured;
};
/* Every card of every container. Skips invalid folders. */
void shares_each(const char *base, void (*report)(void *arg, const struct shares_scan *l),
                 void *arg);

struct shares_folder {
    const char *name;
    const char *ns, *pod; /* as recorded before the container started; "": unknown */
    struct limits limits;
};
/* Allocates in a; returns the number. */
size_t shares_list(const char *base, struct arena *a, struct shares_folder **out);
/* Is it a folder of the pod? */
bool shares_is_of(const char *folder, const char *uid);
/* Adds device time used by the container's processes, as of now (CLOCK_MONOTONIC); the library
 * corrects its budget by it. false: no region that we understand. */
bool shares_measure(const char *base, const char *folder, uint32_t card, uint64_t ns,
                    uint64_t now_ns);
/* Removes folders that are older than keep_ms and whose pods are not alive; returns how many. */
size_t shares_sweep(const char *base, int64_t keep_ms, bool (*alive)(void *arg, const char *uid),
                    void *arg);
