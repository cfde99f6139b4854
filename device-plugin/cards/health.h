// SPDX-License-Identifier: Apache-2.0
/* health - is a card fit for new containers? XIDs (the table is in health.c) and probes in, a
 * verdict per card out. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/model/gpu.h"

enum {
    HEALTH_PROBES = 3,                   /* consecutive good probes for recovery */
    HEALTH_MISSES = 2,                   /* consecutive scans that a card may fail to answer */
    HEALTH_HOLD_MAX_MS = 10 * 60 * 1000, /* of a card that becomes sick repeatedly */
    HEALTH_RELAPSE_MS =
        60 * 60 * 1000, /* becoming sick this soon after a recovery counts as "again" */
    HEALTH_WHY_SIZE = 192,
    HEALTH_UUID_SIZE = 96,
};

/* The cause of an XID. */
enum health_class {
    HEALTH_APPLICATION, /* the program: the next one is not affected */
    HEALTH_NOTICE,      /* the card, and already handled */
    HEALTH_HARDWARE,    /* the card */
};
struct health_xid {
    int64_t number;
    enum health_class class;
    const char *what;
};
/* Never NULL: an unknown number is a hardware error (its row says so, with number 0). */
const struct health_xid *health_xid(int64_t number);

struct health_card {
    bool known;
    char uuid[HEALTH_UUID_SIZE];
    bool sick;
    char why[HEALTH_WHY_SIZE]; /* of the last change: "XID 79: the card has fallen off the bus" */
    int64_t bad_ms;            /* last bad sign */
    int64_t hold_ms;           /* minimum time from then until recovery */
    int64_t recovered_ms;      /* -1: never */
    int64_t ecc;               /* uncorrected errors at the last scan; -1: not counted */
    int good, misses;          /* in a row */
};

/* A sick card as recorded by the previous process. */
struct health_memory {
    char uuid[HEALTH_UUID_SIZE];
    char why[HEALTH_WHY_SIZE];
    int64_t hold_ms;
    int64_t ecc; /* as in health_card */
};

struct health {
    int64_t hold_ms;
    struct health_card cards[GPU_CARDS_MAX];      /* by card index */
    struct health_memory recalled[GPU_CARDS_MAX]; /* not seen yet */
    size_t recalled_len;
};

void health_init(struct health *h, int64_t hold_ms);

/* Before the first scan: this card was sick, and will be when seen; it recovers like any other.
 * Drops what does not fit. */
void health_recall(struct health *h, const struct health_memory *m);
/* What the next process should recall: the sick cards, and recalled ones not seen yet. */
size_t health_remember(const struct health *h, struct health_memory out[GPU_CARDS_MAX]);

struct health_sight {
    int32_t index;
    const char *uuid;   /* NULL: not even reported */
    const char *sick;   /* what is wrong with it, or NULL */
    bool gone;          /* with sick: permanently, no second check */
    int64_t ecc;        /* uncorrected errors since the driver was loaded; -1: not counted */
    const char *repair; /* what it needs before it is usable again, or NULL */
};
/* Each returns true when the card has just become sick or well, with the reason in why. Ignores
 * indexes outside 0..GPU_CARDS_MAX-1 and cards never seen. */
bool health_seen(struct health *h, const struct health_sight *s, int64_t now_ms);
bool health_xid_seen(struct health *h, const char *uuid, int64_t number, int64_t now_ms);
bool health_ecc_seen(struct health *h, const char *uuid, int64_t now_ms);
/* The driver hangs in a query of this card. */
bool health_hangs(struct health *h, int32_t index, int64_t now_ms);

/* Borrowed; NULL: never seen. */
const struct health_card *health_find(const struct health *h, const char *uuid);
