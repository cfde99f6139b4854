// SPDX-License-Identifier: Apache-2.0
/* reservations - capacity reserved for gangs that have waited long: for which gangs, on which
 * nodes, until when; and how long each gang has waited. cycle/reservation.h makes them. Pure. Times
 * are in milliseconds since the epoch, like those of pods. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/ids.h"
#include "lib/base/map.h"
#include "lib/base/vec.h"
#include "scheduler/accounts/run_times.h"
#include "scheduler/model/model.h"

enum { RESERVATIONS_STEP_MS = 10000 };

struct reservation_options {
    int64_t after_ms; /* how long a gang must wait for capacity first; 0: no reservations */
};

/* The members planned for one node. */
struct reservation_node {
    char *name;
    struct VEC(char *) members; /* keys of pods */
};

struct reservation {
    struct gang *gang;               /* the gang that it was made for */
    struct VEC(struct gang *) gangs; /* all gangs placed as one with it, including itself; by key */
    int32_t priority;
    int64_t made_ms;           /* the first plan */
    int64_t planned_ms;        /* the last one */
    int64_t start_ms;          /* when the pods that occupy the capacity should be gone */
    int64_t until_ms;          /* when it lapses, unless there is progress before */
    size_t to_go;              /* the fewest pods that had to go in any plan: fewer are progress */
    uint64_t departures, seen; /* reservations.departures and the node table's log, at last look */
    struct map nodes;          /* name -> struct reservation_node */
    /* "gang ns/x until it starts, about 2026-11-16T09:30:00Z", "gang ns/x and its group ..." */
    char *what;
};

/* The result of the gang's last evaluation. */
enum reservation_verdict {
    RESERVATION_NONE,
    RESERVATION_KEPT,
    RESERVATION_HOPELESS, /* does not fit even an empty cluster */
    RESERVATION_FAR,      /* the pods in its way end too late */
    RESERVATION_EARLY,    /* nobody knows when the pods in its way end: it has to wait longer */
};

/* State of a gang; all zero if it never waited for capacity. */
struct reservation_wait {
    int64_t since_ms;      /* waits for capacity since then; 0: it does not */
    int64_t look_again_ms; /* not to be evaluated before */
    enum reservation_verdict verdict;
    struct reservation *kept; /* of the gang or of its bundle; NULL: none */
    int32_t lapses;           /* reservations that lapsed unused since it last started */
};

/* Part of the cluster. */
struct reservations {
    struct reservation_options options;
    int64_t now_ms;      /* as last told; 0: never */
    int64_t clock_ms;    /* the end of the current step */
    uint64_t departures; /* pods that left their nodes */
    struct run_times run_times;
    int64_t mean_ms; /* mean run time, as of the last plan: reservation_plan.h */
    struct VEC(struct reservation *) items;
    struct VEC(struct gang *) aging; /* gangs that wait for capacity */
    struct ids_table waits;          /* by gang */
};

struct reservation_term {
    int64_t made_ms, planned_ms, start_ms, until_ms;
};

struct reservation_place {
    const struct cluster_pod *member;
    const struct cluster_node *node;
};

void reservations_init(struct cluster *c);
/* Valid until the gang is freed. reservations_at is for writers. */
const struct reservation_wait *reservations_of(const struct cluster *c, const struct gang *g);
struct reservation_wait *reservations_at(struct cluster *c, const struct gang *g);
/* Reserves capacity for g and the gangs that are placed as one with it, sorted by key. */
void reservations_keep(struct cluster *c, struct gang *g, struct gang *const *gangs, size_t len,
                       const struct reservation_place *places, size_t places_len,
                       const struct reservation_term *term);
/* Returns the events: freed capacity. */
uint32_t reservations_drop(struct cluster *c, struct reservation *r);
/* The gang waits for capacity since then. */
void reservations_start_aging(struct cluster *c, struct gang *g, int64_t since_ms);
/* The gang no longer waits, or is about to be freed. Returns the events. */
uint32_t reservations_end(struct cluster *c, struct gang *g);
/* A reservation does not block its own gangs: while it exists their members are a class of their
 * own. */
void reservations_set_verdict(struct cluster *c, struct gang *g, enum reservation_verdict verdict);
/* Time passes: in steps, which keeps verdicts about nodes cacheable. */
void reservations_set_now(struct cluster *c, int64_t now_ms);
/* Marks cached verdicts about the reserved nodes as stale. */
void reservations_touch_nodes(struct cluster *c, const struct reservation *r);
/* Number of reservations on the node. */
uint32_t reservations_count(const struct cluster *c, const char *node);
/* The lowest priority of the gangs. */
int32_t reservations_priority(struct gang *const *gangs, size_t len);
void reservations_deinit(struct cluster *c);
