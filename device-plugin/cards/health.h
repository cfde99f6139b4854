// SPDX-License-Identifier: Apache-2.0
/*
 * health - is a card fit for new containers? Errors and probes in, one verdict for each card out. Pure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/model/gpu.h"

enum {
    HEALTH_PROBES = 3,                   /* good probes in a row before a card is back */
    HEALTH_MISSES = 2,                   /* scans in a row that a card may fail to answer */
    HEALTH_HOLD_MAX_MS = 10 * 60 * 1000, /* of a card that falls ill again and again */
    HEALTH_RELAPSE_MS =
        60 * 60 * 1000, /* falling ill within this time after a recovery is "again" */
    HEALTH_WHY_SIZE = 192,
    HEALTH_UUID_SIZE = 96,
};

/* Whose fault an XID is. */
enum health_class {
    HEALTH_APPLICATION, /* the program's on the card: the next one is not harmed */
    HEALTH_NOTICE,      /* the card's, and dealt with already */
    HEALTH_HARDWARE,    /* the card's */
};
struct health_xid {
    int64_t number;
    enum health_class class;
    const char *what;
};
/* Never NULL: a number that is not in the table is a hardware error (its row says so, with number 0). */
const struct health_xid *health_xid(int64_t number);

struct health_card {
    bool known;
    char uuid[HEALTH_UUID_SIZE];
    bool sick;
    char why[HEALTH_WHY_SIZE]; /* of the last change: "XID 79: the card has fallen off the bus" */
    int64_t bad_ms;            /* last bad sign */
    int64_t hold_ms;           /* how long after it the card stays away at least */
    int64_t recovered_ms;      /* -1: never */
    int64_t ecc;               /* uncorrected errors at the last look; -1: it does not count them */
    int good, misses;          /* in a row */
};

/* A sick card as the process before this one knew it. */
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

/* Before the first scan: this card was sick, and is when it is seen; it has to prove well like any other. What does not fit is
 * left out. */
void health_recall(struct health *h, const struct health_memory *m);
/* What is to be recalled by the next process: the cards that are sick, and those that were and have not been seen. */
size_t health_remember(const struct health *h, struct health_memory out[GPU_CARDS_MAX]);

/* What one scan saw of one card. */
struct health_sight {
    int32_t index;
    const char *uuid;   /* NULL: it did not even tell that */
    const char *sick;   /* what is wrong with it, or NULL */
    bool gone;          /* sick: for certain, no need to look again */
    int64_t ecc;        /* uncorrected errors since the driver was loaded; -1: not counted */
    const char *repair; /* what it waits for before it can be used again, or NULL */
};
/* Each returns true when the card has just become sick or well; why says the reason. Cards with an index outside
 * 0..GPU_CARDS_MAX-1 or that were never seen are passed over. */
bool health_seen(struct health *h, const struct health_sight *s, int64_t now_ms);
bool health_xid_seen(struct health *h, const char *uuid, int64_t number, int64_t now_ms);
bool health_ecc_seen(struct health *h, const char *uuid, int64_t now_ms);
/* The driver does not answer while it is asked for this card. */
bool health_hangs(struct health *h, int32_t index, int64_t now_ms);

/* Borrowed; NULL: never seen. */
const struct health_card *health_find(const struct health *h, const char *uuid);
