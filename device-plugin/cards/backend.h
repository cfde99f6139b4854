// SPDX-License-Identifier: Apache-2.0
/*
 * backend - where cards come from: NVML, or a file. The vtable, and nothing else.
 *
 * All functions of one backend are called by one thread (device-plugin/scan), and any of them may block for as long as
 * the driver likes.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/model/gpu.h"

struct backend; /* each file has its own */

enum {
    BACKEND_PROCESSES_MAX = 1024, /* of one card */
    BACKEND_UUID_SIZE = 96,
    BACKEND_NO_CARD = -1,
};

struct backend_config {
    const char *nvml_library; /* "libnvidia-ml.so.1", or a path */
    const char *sysfs;        /* "/sys": NUMA nodes of PCI devices */
    const char *sim_file;
    /* The card that is asked for at this moment, or BACKEND_NO_CARD: whoever waits for a call that does not return learns
     * which card it hangs on. Written by the backend. May be NULL. */
    _Atomic int32_t *asking;
};

struct backend_process {
    int64_t pid; /* as the host counts */
    int64_t mib; /* -1: the driver does not tell */
};

/* What there is to say about a card beside its place in the inventory. */
struct backend_card {
    int64_t ecc;        /* uncorrected memory errors since the driver was loaded; -1: not counted */
    const char *repair; /* what the card waits for before it is fit again, or NULL */
    bool processes_known;
    struct backend_process *processes; /* by pid, each once */
    size_t processes_len;
};

/* A card that is there and cannot be asked. */
struct backend_failure {
    int32_t index;
    bool gone; /* for certain; otherwise perhaps for a moment */
    const char *why;
};

struct backend_sight {
    struct gpu_inventory inventory; /* mode and isolation are left alone */
    struct backend_card *cards;     /* of each card of the inventory */
    struct backend_failure *failures;
    size_t failures_len;
};

enum backend_event_kind { BACKEND_XID, BACKEND_ECC };
struct backend_event {
    enum backend_event_kind kind;
    char uuid[BACKEND_UUID_SIZE]; /* "": the driver does not say which card's */
    int64_t xid;
};

/* Device time of a process since the last time it was asked for. */
struct backend_busy {
    int64_t pid; /* as the host counts */
    int64_t ns;
};

/* Of one card. */
struct backend_time {
    int32_t index;
    bool known;                     /* the driver tells it */
    struct backend_busy *processes; /* those that used some */
    size_t processes_len;
};

struct backend_type {
    const char *name;
    int (*open)(struct backend **out, const struct backend_config *c, struct error *err);
    /* The cards that are there now, with their links. A card that cannot be asked is a failure in the list, it does not fail
     * the scan. Allocates in a. */
    int (*scan)(struct backend *b, struct arena *a, struct backend_sight *out, struct error *err);
    /* Waits up to ms for an error of a card. 1: there is one; 0: none; -1: there is nothing to wait for, it returned at once.
     * NULL: there never is. */
    int (*wait)(struct backend *b, int64_t ms, struct backend_event *out);
    /* Device time of processes, of each card that there is, since the last call. Returns how many cards. Allocates in a. NULL: it is never
     * known. */
    size_t (*busy)(struct backend *b, struct arena *a, struct backend_time **out);
    void (*close)(struct backend *b);
};

extern const struct backend_type backend_nvml;
extern const struct backend_type backend_sim;
