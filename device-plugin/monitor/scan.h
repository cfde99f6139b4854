// SPDX-License-Identifier: Apache-2.0
/*
 * scan - asks the backend for its cards, on a thread of its own: a driver may hang, the loop may
 * not.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device-plugin/cards/backend.h"
#include "device-plugin/cards/usage.h"
#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/loop.h"

enum {
    SCAN_SLICE_MS = 5000, /* how long one wait for an event may keep the thread from ending */
    SCAN_PROCESSES_MAX = 4096,
    SCAN_TIME_MS =
        250, /* between two looks at how busy processes are, where somebody wants to know */
};

enum scan_kind {
    SCAN_CARDS,  /* sight, processes */
    SCAN_EVENT,  /* event */
    SCAN_TIME,   /* busy, timed */
    SCAN_FAILED, /* err: the cards cannot be read; it is tried again */
    SCAN_FATAL,  /* err: the backend could not be opened, no more letters will come */
};

struct scan_letter {
    enum scan_kind kind;
    struct arena arena;
    struct backend_sight sight;
    struct usage_process *processes; /* on all cards, with their pods */
    size_t processes_len;
    struct backend_event event;
    /* Device time since the last such letter, and the cards of which it is known. */
    struct scan_busy {
        struct usage_process process; /* mib -1 */
        int64_t ns;
    } * busy;
    size_t busy_len;
    bool timed[GPU_CARDS_MAX]; /* by index */
    int64_t at_ns;             /* CLOCK_MONOTONIC */
    struct error err;
};
void scan_letter_free(void *message);

struct scan_config {
    const struct backend_type *type;
    struct backend_config backend; /* texts are borrowed; `asking` is ours */
    const char *proc;              /* "/proc", of the host's processes */
    int64_t interval_ms;
    int64_t slice_ms; /* less than SCAN_SLICE_MS; 0: that */
    struct mailbox *mailbox;
};

struct scan;

/* Opens the backend and scans at once, then every interval_ms; each result, and each event between
 * two scans, is a letter in the mailbox. */
int scan_start(struct scan **out, const struct scan_config *c, struct error *err);
/* Letters of SCAN_TIME from now on, or none any more. Any thread. */
void scan_want_time(struct scan *s, bool wanted);
/* For how long the backend has not returned from one call, in ms (0: it is not asked anything), and
 * the card that it is being asked for, or BACKEND_NO_CARD. Any thread. */
int64_t scan_busy_ms(const struct scan *s, int64_t now_ms, int32_t *card);
/* Is it waiting for an event? Then the backend returns within a slice. Any thread. */
bool scan_is_listening(const struct scan *s);
/* false: the backend does not return; the thread is left behind and the mailbox must not be
 * freed. */
bool scan_stop(struct scan *s, int64_t wait_ms);
