// SPDX-License-Identifier: Apache-2.0
/* scan - queries the backend for its cards on its own thread, because a driver may hang. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device-plugin/cards/backend.h"
#include "device-plugin/cards/usage.h"
#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/loop.h"

enum {
    SCAN_SLICE_MS = 5000, /* longest wait for an event, and so for the thread's end */
    SCAN_PROCESSES_MAX = 4096,
    SCAN_TIME_MS = 250, /* between two measurements of device time, if wanted */
};

enum scan_kind {
    SCAN_CARDS,  /* sight, processes */
    SCAN_EVENT,  /* event */
    SCAN_TIME,   /* busy, timed */
    SCAN_FAILED, /* err: the cards cannot be read; will be retried */
    SCAN_FATAL,  /* err: the backend could not be opened; no more messages follow */
};

struct scan_message {
    enum scan_kind kind;
    struct arena arena;
    struct backend_sight sight;
    struct usage_process *processes; /* on all cards, with their pods; no folders */
    size_t processes_len;
    struct backend_event event;
    /* Device time since the last such message, and the cards for which it is known. */
    struct scan_busy {
        struct usage_process process; /* mib -1 */
        int64_t ns;
    } * busy;
    size_t busy_len;
    bool timed[GPU_CARDS_MAX]; /* by index */
    int64_t at_ns;             /* CLOCK_MONOTONIC */
    struct error err;
};
void scan_message_free(void *message);

struct scan_config {
    const struct backend_type *type;
    struct backend_config backend; /* strings are borrowed; `asking` is set by scan */
    const char *proc;              /* "/proc" of the host */
    int64_t interval_ms;
    int64_t slice_ms; /* 0: SCAN_SLICE_MS; else less than that */
    struct mailbox *mailbox;
};

struct scan;

/* Opens the backend and scans at once, then every interval_ms. Posts each result, and each event in
 * between, to the mailbox. */
int scan_start(struct scan **out, const struct scan_config *c, struct error *err);
/* Starts or stops SCAN_TIME messages. Any thread. */
void scan_want_time(struct scan *s, bool wanted);
/* How long the current backend call has lasted, in ms (0: no call), and the card it is about, or
 * BACKEND_NO_CARD. Any thread. */
int64_t scan_busy_ms(const struct scan *s, int64_t now_ms, int32_t *card);
/* Is it waiting for an event? Then the backend returns within a slice. Any thread. */
bool scan_is_listening(const struct scan *s);
/* false: the backend does not return; the thread is left behind and the mailbox must not be
 * freed. */
bool scan_stop(struct scan *s, int64_t wait_ms);
