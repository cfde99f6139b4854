// SPDX-License-Identifier: Apache-2.0
/*
 * expected_end - when a pod is expected to be gone. Pure.
 */
#pragma once

#include <stdint.h>

#include "scheduler/cache/model.h"

/* When the placed pod is expected to be gone, seen from then_ms: its start plus
 * activeDeadlineSeconds; without that, after options.assume_ms, and once that is over, after as
 * long as it has run so far: a pod that has run for hours will not end right now. INT64_MAX:
 * never. */
int64_t expected_end_of(const struct cluster *c, const struct cluster_pod *cp, int64_t then_ms);
/* The expected run time of a pod placed now. */
int64_t expected_end_runtime(const struct cluster *c, const struct cluster_pod *cp);
