// SPDX-License-Identifier: Apache-2.0
/*
 * replay_trace - a trace of GPU jobs (CSV) replayed in simulated time, three times on the same cards: with the scheduler's core, and with two simple schedulers to compare it with.
 *
 *     strict FIFO          the oldest job goes first, and until it fits nobody goes
 *     reserve and wait     pods take cards one by one; a job that has some of its cards and not all keeps them until a timeout, then gives them all back and is tried again after a pause
 *
 * What is compared: how long jobs wait, and how many cards are held, and for how long, by jobs that cannot run yet because they do not have all of theirs.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/str.h"
#include "scheduler/replay/replay_load.h"
#include "scheduler/replay/replay_simulate.h"

enum {
    REPLAY_TRACE_NODES_MAX = 10000,
    REPLAY_TRACE_CARDS_MAX = 64,
    REPLAY_TRACE_PODS_MAX = 100000
};

struct replay_trace_options {
    int64_t nodes, cards; /* nodes, and cards of each */
    int64_t timeout_ms;   /* of reserve and wait */
    bool tells_time;      /* pods have activeDeadlineSeconds */
    struct reservation_options reservation;
};

/* Waiting times of one scheduler. */
struct replay_trace_outcome {
    const char *name;
    size_t started;
    int64_t mean_ms, p50_ms, p99_ms, longest_ms;
    int64_t incomplete_ms; /* card-milliseconds */
    int64_t last_end_ms;
};

struct replay_trace {
    struct replay_trace_options options;
    struct replay_simulate_job *jobs; /* by submit_ms */
    size_t len, cap;
    size_t too_large; /* left out: they want more cards than there are */
    int64_t reservations, cycles;
    struct replay_trace_outcome cosched, fifo, wait;
};

/* Columns job_id, num_gpu, submit_time and duration, in milliseconds. l is for warnings and memory. */
int replay_trace_read(struct replay_trace *t, struct replay_load *l, const char *path,
                      struct error *err);
/* All three; results in t. */
int replay_trace_run(struct replay_trace *t, struct error *err);
void replay_trace_print(const struct replay_trace *t, struct strbuf *out);
void replay_trace_print_json(const struct replay_trace *t, struct strbuf *out);
void replay_trace_deinit(struct replay_trace *t);
