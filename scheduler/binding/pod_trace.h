// SPDX-License-Identifier: Apache-2.0
/* pod_trace - when a pod was first seen waiting, and its last Binding. The loop's thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/ids.h"
#include "scheduler/model/model.h"

struct pod_trace {
    struct ids_table pods;
    uint64_t tickets; /* given so far */
};

void pod_trace_init(struct pod_trace *t);
void pod_trace_deinit(struct pod_trace *t);

/* The pod waits; only the first call counts. */
void pod_trace_see(struct pod_trace *t, const struct cluster_pod *cp, int64_t now_us);
/* 0: never. */
int64_t pod_trace_seen_us(const struct pod_trace *t, const struct cluster_pod *cp);
/* For a Binding about to be sent: results of earlier ones are ignored from now on. */
uint64_t pod_trace_give_ticket(struct pod_trace *t, const struct cluster_pod *cp);
/* Of its last Binding; 0: none. */
uint64_t pod_trace_ticket(const struct pod_trace *t, const struct cluster_pod *cp);
