// SPDX-License-Identifier: Apache-2.0
/*
 * expected_end - when a pod is expected to be gone. Pure.
 *
 * activeDeadlineSeconds says how long it runs at most. Without that, what earlier pods of the same
 * template took (accounts/run_times.h), which are learned here as they end. Without that only its
 * age is known, and it is expected to run as long again as it already has: so is a pod that
 * outlives what was learned.
 *
 * A template is the namespace, the controlling owner (without the number that a CronJob appends to
 * the name of each Job) and the images. It is kept as a hash: whoever forges one with the hash of
 * another one's gains nothing but wrong estimates about running times.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/model/model.h"

/* Of a running pod of unknown run time, however young it is. */
enum { EXPECTED_END_LEAST_MS = 60000 };

/* When the placed pod is expected to be gone, as of then_ms; INT64_MAX: never. */
int64_t expected_end_of(const struct cluster *c, const struct cluster_pod *cp, int64_t then_ms);
/* The run time by its deadline or its template; INT64_MAX: unknown. */
int64_t expected_end_runtime(const struct cluster *c, const struct cluster_pod *cp);
/* When it was placed or began to run; 0: that is unknown. */
int64_t expected_end_start(const struct cluster_pod *cp);
/* It is said or learned when it ends, and it has not outlived that by then_ms. */
bool expected_end_is_known(const struct cluster *c, const struct cluster_pod *cp, int64_t then_ms);
/* A DaemonSet's, or static. */
bool expected_end_is_never(const struct cluster_pod *cp);
/* Kept up by a controller for as long as that wishes, or for ever: no job. */
bool expected_end_is_service(const struct cluster_pod *cp);
/* 0: it has no owner. */
uint64_t expected_end_template(const struct pod *p);
/* What the pod counts in the mean of run times: members of a gang together as much as a lone
 * pod. */
int64_t expected_end_weight(const struct cluster_pod *cp);
/* The placed pod ends by itself, now (reservations.now_ms). */
void expected_end_learn(struct cluster *c, const struct cluster_pod *cp);
