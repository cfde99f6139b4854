// SPDX-License-Identifier: Apache-2.0
/*
 * shares - the node's side of libcosched-gpu.so: a folder for each container with its limits and its region, what Allocate mounts
 * from it, and what the regions tell.
 *
 *     BASE/ld.so.preload                   names the library
 *     BASE/<pod uid>.<container>/          mounted read-only at SHARES_INSIDE:
 *         libcosched-gpu.so  limits  owner
 *         region                           mounted over itself, writable
 *
 * A container can write anything into its region, so nothing that is read from one is believed about anybody else.
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
#define SHARES_UNKNOWN "unknown-" /* begins the folder of a container whose pod is not known yet */
#define SHARES_INSTALLED "/usr/local/lib/cosched/" SHARES_LIBRARY

enum {
    SHARES_TEXT = 320,               /* ns, name and container together fit */
    SHARES_KEEP_MS = 10 * 60 * 1000, /* a folder whose pod is not known is left alone so long */
    SHARES_CONTAINERS_MAX = 1024,
};
/* The folder of a container whose pod was not known when it was admitted has no name by which its end could be seen; taken away too early it would leave the container
 * without limits, and without a start when it begins again. */
#define SHARES_KEEP_UNKNOWN_MS (INT64_C(30) * 24 * 3600 * 1000)

/* What must be there before a container starts. */
struct shares_plan {
    const char *base, *folder;
    const char *ns, *pod, *container; /* "": not known */
    struct limits limits;
    bool complete; /* every card of the container is in limits */
};

/* Is the engine there? Does not wait. */
int shares_check(const char *library, const char *base, struct error *err);
/* Makes the folder, its region empty; the library is copied to where containers can have it, if it is another than before. */
int shares_prepare(const char *library, const struct shares_plan *plan, struct error *err);

/* A container that was admitted before its pod was known has its folder by the ids of its memory, and was given all of the card's time: now that all is known it is written down. There may
 * be no such folder: then its pod was known. Before it starts. */
int shares_complete(const char *base, const char *folder, const char *ns, const char *pod,
                    const char *container, uint32_t percent, struct error *err);

/* One card of one container, as its region tells. */
struct shares_look {
    const char *folder, *ns, *pod, *container;
    const struct limits_card *limit;
    uint32_t card;
    int64_t used_mib, peak_mib, denied, throttled_ms;
    int64_t processes; /* of the container, alive, that the library is in */
    int64_t device_ms; /* of the card's time, as the node measured it */
    bool
        unmeasured; /* it launches, and nobody measures what that takes: launches are counted instead */
};
/* Every card of every container. Folders that make no sense are passed over. */
void shares_each(const char *base, void (*tell)(void *arg, const struct shares_look *l), void *arg);

struct shares_folder {
    const char *name;
    const char *ns, *pod; /* as written down before the container started; "": not known */
    struct limits limits;
};
/* All of them; returns how many. Allocates in a. */
size_t shares_list(const char *base, struct arena *a, struct shares_folder **out);
/* Is it a folder of the pod? */
bool shares_is_of(const char *folder, const char *uid);
/* Processes of the container have used so much more of the card's time, as of now (CLOCK_MONOTONIC); the library corrects its budget by it. false: it has no region that
 * we understand. */
bool shares_measure(const char *base, const char *folder, uint32_t card, uint64_t ns,
                    uint64_t now_ns);
/* Removes folders of pods for which alive says no and that are older than keep_ms; returns how many. */
size_t shares_sweep(const char *base, int64_t keep_ms, bool (*alive)(void *arg, const char *uid),
                    void *arg);
