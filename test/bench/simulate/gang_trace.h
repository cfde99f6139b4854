// SPDX-License-Identifier: Apache-2.0
/*
 * gang_trace - a trace of GPU jobs (CSV) replayed in simulated time, four times on the same cards:
 * with the scheduler's core, and with three simple schedulers to compare it with.
 *
 *     strict FIFO        the oldest job goes first, and until it fits no other job starts
 *     EASY               knows all run times: others start only if the oldest job that does not
 *                        fit can still start as early as without them
 *     reserve and wait   pods take cards one by one; a job that has some of its cards and not all
 *                        keeps them until a timeout, then gives them all back and is tried again
 *                        after a pause
 *
 * What is compared: how long jobs wait, and how many cards are held, and for how long, by jobs that
 * cannot run yet because they do not have all of theirs.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/str.h"
#include "test/bench/simulate/csv.h"
#include "test/bench/simulate/simulation.h"

enum { GANG_TRACE_NODES_MAX = 10000, GANG_TRACE_CARDS_MAX = 64, GANG_TRACE_PODS_MAX = 100000 };

struct gang_trace_options {
    int64_t nodes, cards; /* nodes, and cards of each */
    int64_t timeout_ms;   /* of reserve and wait */
    bool tells_time;      /* pods have activeDeadlineSeconds */
    struct reservation_options reservation;
};

/* Waiting times of one scheduler. */
struct gang_trace_outcome {
    const char *name;
    size_t started;
    int64_t mean_ms, p50_ms, p99_ms, longest_ms;
    int64_t incomplete_ms; /* card-milliseconds */
    int64_t last_end_ms;
};

struct gang_trace {
    struct gang_trace_options options;
    struct simulation_job *jobs; /* by submit_ms */
    size_t len, cap;
    struct arena names; /* of the jobs */
    size_t too_large;   /* left out: they want more cards than there are */
    int64_t reservations, cycles;
    struct gang_trace_outcome cosched, fifo, easy, wait;
};

/* Columns job_id, num_gpu, submit_time and duration, in milliseconds. t->options are set. */
int gang_trace_read(struct gang_trace *t, const char *path, struct csv_warn warn,
                    struct error *err);
/* All four; results in t. */
int gang_trace_run(struct gang_trace *t, struct error *err);
void gang_trace_print(const struct gang_trace *t, struct strbuf *out);
void gang_trace_deinit(struct gang_trace *t);
