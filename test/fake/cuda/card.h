// SPDX-License-Identifier: Apache-2.0
/*
 * card - simulated cards that processes share, the reference of the isolation tests: a file that
 * the fake driver maps, with the actual memory and device time of each process on each card.
 *
 * Processes belong to a group (a simulated container). The cards have no limits: they count, and
 * record the peak of each group. Groups with waiting kernels share the card's time evenly, as a
 * driver slices it between processes.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { CARD_AHEAD_NS = 2000000 };
enum { CARD_COUNT = 2, CARD_PROCESSES = 512, CARD_GROUPS = 8 };

struct card_process {
    int64_t pid; /* 0: free */
    int group;
    uint64_t used[CARD_COUNT];
};

struct card_group {
    uint64_t used[CARD_COUNT], peak[CARD_COUNT];
    uint64_t busy_ns[CARD_COUNT], kernels[CARD_COUNT]; /* what ran until now */
    uint64_t backlog_ns[CARD_COUNT];                   /* what was launched and has not run */
};

struct card_world {
    uint32_t ready;
    pthread_mutex_t lock; /* robust */
    uint64_t total, context_bytes;
    uint64_t now_ns[CARD_COUNT]; /* up to here the card has run */
    struct card_group groups[CARD_GROUPS];
    struct card_process processes[CARD_PROCESSES];
};

struct card {
    struct card_world *world;
    char path[256];
    int slot; /* -1: only looks */
    int group;
};

/* Makes the file, or makes it anew. */
bool card_create(const char *path, uint64_t total, uint64_t context_bytes);
/* group -1: only looks. */
bool card_open(struct card *c, const char *path, int group);
void card_close(struct card *c);
/* false: the card is full. */
bool card_take(struct card *c, int card, uint64_t bytes);
void card_give(struct card *c, int card, uint64_t bytes);
uint64_t card_free_bytes(struct card *c, int card);
/* What the group has now, without those that died. */
uint64_t card_used(struct card *c, int group, int card);
/* Puts a kernel on the card; waits while the group is too far ahead of it. */
void card_run(struct card *c, int card, uint64_t ns);
/* Lets the card run until now; returns how many groups have kernels left. */
int card_advance(struct card_world *w, int card, uint64_t now_ns);
/* Device time of the group, until now. */
uint64_t card_busy_ns(struct card *c, int group, int card);
/* Waits for the kernels of this group. */
void card_wait(struct card *c, int card);
uint64_t card_now_ns(void);
