// SPDX-License-Identifier: Apache-2.0
/*
 * region - the memory that all processes of one container share: how much of each card each process
 * holds, and the container's budget of device time. Pure: layout and operations. regionfile.h maps
 * it into a process.
 *
 * Programs of different versions read and write it (a library that a container loaded last month,
 * today's plugin). The rules:
 *
 *   - rows are found by the offsets and sizes that the header states, never by sizeof;
 *   - a later version only appends fields to a row, and zero means "not there yet": a program uses
 *     the fields that lie inside the stated size and leaves others alone. The first layout's sizes
 *     (REGION_FIRST_*) are the least that a row has;
 *   - what exists never changes its meaning. Should it have to, `version` rises and the file gets
 *     another name, so that both can be there; a program refuses a version that it does not know;
 *   - nor does a file become larger than region_bytes(REGION_SLOTS, cards), where plugins cut it.
 *
 * There are no locks: a process may die between any two instructions without blocking others.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    REGION_VERSION = 1,
    REGION_SLOTS = 256, /* concurrent CUDA processes of a container */
    REGION_CARDS = 16,
    REGION_SLOTS_MAX = 1024, /* that a word can name */
    REGION_CARDS_MAX = 64,
    REGION_BYTES_MAX = 4 << 20,
    /* Sizes of rows in the first layout of version 1: never changed. */
    REGION_FIRST_CARD = 136,
    REGION_FIRST_SLOT = 64,
    REGION_FIRST_HELD = 32,
};
#define REGION_MAGIC UINT64_C(0x636f736368656447) /* "coschedG" */
#define REGION_USED_MAX ((UINT64_C(1) << 40) - 1) /* bytes of one card: 1 TiB */

struct region_header {
    uint64_t magic;
    uint32_t version;
    uint32_t size; /* of everything */
    uint32_t cards, card_offset, card_size;
    uint32_t slots, slot_offset, slot_size;
    uint32_t held_size; /* of one card in a slot */
    uint32_t reserved[5];
};

/* Flags of a card. */
enum { REGION_UNMEASURED = 1 /* device time is not measured: launches are estimated */ };

struct region_card {
    _Atomic uint64_t word; /* used bytes, and the change that led to it: see region.c */
    _Atomic uint64_t peak, denied;
    /* The budget of device time: budget.c. */
    _Atomic int64_t tokens_ns;
    _Atomic uint64_t refilled_ns; /* the time up to which tokens were given */
    _Atomic uint64_t cost_ns;     /* estimated cost of a launch */
    _Atomic uint64_t charged_ns, launches, throttled_ns;
    _Atomic uint64_t measured_ns, measured_at_ns; /* measured device time, by the node's plugin */
    _Atomic uint64_t settled_ns, settled_charged_ns,
        settled_launches; /* settled in tokens up to here */
    _Atomic uint64_t settling_ns;
    _Atomic uint64_t flags;
    _Atomic uint64_t measured_check; /* of the two measured values: budget_check */
};

/* What one process holds of one card. */
struct region_held {
    _Atomic uint64_t intent; /* number of the last change begun */
    _Atomic uint64_t done;   /* number of a change known to have happened */
    _Atomic uint64_t total[2];
};

struct region_slot {
    _Atomic uint64_t owner; /* region_owner, 0: none */
    uint64_t reserved[7];
    struct region_held held[]; /* one for each card */
};

/* A mapped region. */
struct region {
    unsigned char *base;
    uint32_t cards, card_offset, card_size;
    uint32_t slots, slot_offset, slot_size, held_size;
};

size_t region_bytes(uint32_t slots, uint32_t cards);
/* Formats size zeroed bytes as an empty region. */
void region_format(void *base, uint32_t slots, uint32_t cards);
/* false: not a region, another version, or its rows exceed size. The numbers are read once and
 * kept, so that later writes to the region cannot lead out of it. */
bool region_open(struct region *r, void *base, size_t size);

struct region_card *region_card(const struct region *r, uint32_t card);
struct region_slot *region_slot(const struct region *r, uint32_t slot);

/* pid and start time (the kernel's ticks since boot) as one number; never 0. */
uint64_t region_owner(uint32_t pid, uint64_t start);
uint32_t region_owner_pid(uint64_t owner);
bool region_owner_is(uint64_t owner, uint32_t pid, uint64_t start);

uint64_t region_used(const struct region *r, uint32_t card);
uint64_t region_held(const struct region *r, uint32_t slot, uint32_t card);
/* Takes bytes for the slot unless the card would exceed limit. Only the caller may change this
 * slot. */
bool region_take(const struct region *r, uint32_t slot, uint32_t card, uint64_t bytes,
                 uint64_t limit);
/* Returns bytes, at most what the slot holds. */
void region_give(const struct region *r, uint32_t slot, uint32_t card, uint64_t bytes);
/* Returns all that the slot holds, of every card. Safe to repeat after a crash. */
void region_clear(const struct region *r, uint32_t slot);
void region_note_denied(const struct region *r, uint32_t card);
