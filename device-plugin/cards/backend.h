// SPDX-License-Identifier: Apache-2.0
/* backend - the source of cards: NVML, or a file. Only the vtable. One thread
 * (device-plugin/monitor/scan) makes all calls, and any of them may block for as long as the driver
 * does. */
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
    /* The card being queried, or BACKEND_NO_CARD, to tell which card a hanging call is about.
     * Written by the backend. May be NULL. */
    _Atomic int32_t *asking;
};

struct backend_process {
    int64_t pid; /* as the host counts */
    int64_t mib; /* -1: the driver does not report it */
};

/* What is known of a card beyond the inventory. */
struct backend_card {
    int64_t ecc;        /* uncorrected memory errors since the driver was loaded; -1: not counted */
    const char *repair; /* what the card needs before it is usable again, or NULL */
    bool processes_known;
    struct backend_process *processes; /* by pid, each once */
    size_t processes_len;
};

/* A card that exists but cannot be queried. */
struct backend_failure {
    int32_t index;
    bool gone; /* permanently; otherwise perhaps temporarily */
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
    char uuid[BACKEND_UUID_SIZE]; /* "": the driver does not name the card */
    int64_t xid;
};

/* Device time of a process since the last query. */
struct backend_busy {
    int64_t pid; /* as the host counts */
    int64_t ns;
};

struct backend_time {
    int32_t index;
    bool known;                     /* the driver reports it */
    struct backend_busy *processes; /* those that used some */
    size_t processes_len;
};

struct backend_type {
    const char *name;
    int (*open)(struct backend **out, const struct backend_config *c, struct error *err);
    /* The current cards and their links. A card that cannot be queried is listed as a failure and
     * does not fail the scan. Allocates in a. */
    int (*scan)(struct backend *b, struct arena *a, struct backend_sight *out, struct error *err);
    /* Waits up to ms for an error event. 1: got one; 0: none; -1: cannot wait, returned at once.
     * May be NULL. */
    int (*wait)(struct backend *b, int64_t ms, struct backend_event *out);
    /* Device time of processes on each card since the last call. Returns the number of cards.
     * Allocates in a. NULL: unknown. */
    size_t (*busy)(struct backend *b, struct arena *a, struct backend_time **out);
    void (*close)(struct backend *b);
};

extern const struct backend_type backend_nvml;
extern const struct backend_type backend_sim;
