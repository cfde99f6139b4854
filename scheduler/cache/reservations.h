// SPDX-License-Identifier: Apache-2.0
/*
 * reservations - the book of what is kept for gangs that have waited long: for whom, on which
 * nodes, until when; and who waits how long for it. How it is filled: cycle/reservation.h. Pure.
 *
 * Times are in milliseconds since the epoch, as those of pods are.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/ids.h"
#include "lib/base/map.h"
#include "lib/base/vec.h"
#include "scheduler/cache/model.h"

struct reservation_options {
    int64_t after_ms;  /* so long must a gang have waited for room; 0: nothing is ever kept */
    int64_t for_ms;    /* so long room is kept at most */
    int64_t assume_ms; /* so long runs a pod without activeDeadlineSeconds */
};

/* The members that are to go to one node. */
struct reservation_node {
    char *name;
    struct VEC(char *) members; /* keys of pods */
};

struct reservation {
    struct gang *gang;               /* whose turn it was */
    struct VEC(struct gang *) gangs; /* those that are placed as one with it, and itself; by key */
    int32_t priority;
    int64_t made_ms;
    int64_t start_ms; /* by then the pods in its way should be gone */
    int64_t until_ms;
    struct map nodes; /* name -> struct reservation_node */
    char *what; /* "gang ns/x until 2026-11-16T09:30:00Z", "gang ns/x and its group until ..." */
};

/* What was found out when the gang was last looked at. */
enum reservation_verdict {
    RESERVATION_NONE,
    RESERVATION_KEPT,
    RESERVATION_HOPELESS, /* does not fit even when the cluster is empty */
    RESERVATION_FAR,      /* the pods in its way end too late */
};

/* Of a gang; all zero when it never waited for room. */
struct reservation_wait {
    int64_t since_ms;      /* it waits for room since then; 0: it does not */
    int64_t look_again_ms; /* not before */
    enum reservation_verdict verdict;
    struct reservation *kept; /* for it, or for the gangs that it goes with; NULL: none */
    int32_t lapses;           /* how often room was kept in vain since it last started */
};

/* Part of the cluster. */
struct reservations {
    struct reservation_options options;
    int64_t clock_ms; /* the end of the present step */
    struct VEC(struct reservation *) items;
    struct VEC(struct gang *) aging; /* those that wait for room */
    struct ids_table waits;          /* by gang */
};

struct reservation_place {
    const struct cluster_pod *member;
    const struct cluster_node *node;
};

void reservations_init(struct cluster *c);
/* Good until the gang is freed. reservations_at is for whoever changes it. */
const struct reservation_wait *reservations_of(const struct cluster *c, const struct gang *g);
struct reservation_wait *reservations_at(struct cluster *c, const struct gang *g);
/* Room is kept for g and for the gangs that are placed as one with it, by key, from now on. */
void reservations_keep(struct cluster *c, struct gang *g, struct gang *const *gangs, size_t len,
                       const struct reservation_place *places, size_t places_len, int64_t made_ms,
                       int64_t start_ms, int64_t until_ms);
/* Returns the events: room that is kept no more. */
uint32_t reservations_drop(struct cluster *c, struct reservation *r);
/* The gang waits for room since then. */
void reservations_start_aging(struct cluster *c, struct gang *g, int64_t since_ms);
/* It does not any more, or is about to be freed. Returns the events. */
uint32_t reservations_end(struct cluster *c, struct gang *g);
/* What is kept for them is not kept from them: members are of a class of their own while it is. */
void reservations_set_verdict(struct cluster *c, struct gang *g, enum reservation_verdict verdict);
/* The answers about the nodes on which it keeps room may be others now. */
void reservations_touch_nodes(struct cluster *c, const struct reservation *r);
/* How many keep room on the node. */
uint32_t reservations_count(const struct cluster *c, const char *node);
/* The least important of the gangs. */
int32_t reservations_priority(struct gang *const *gangs, size_t len);
void reservations_deinit(struct cluster *c);
