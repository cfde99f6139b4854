// SPDX-License-Identifier: Apache-2.0
/* expected_end - when a pod is expected to be gone. Pure. */
#pragma once

#include <stdint.h>

#include "scheduler/model/model.h"

/* When the placed pod is expected to be gone, as of then_ms: its start plus activeDeadlineSeconds;
 * without that its start plus options.assume_ms. A pod past that is expected to run as long again
 * as it already has. INT64_MAX: never. */
int64_t expected_end_of(const struct cluster *c, const struct cluster_pod *cp, int64_t then_ms);
/* The expected run time of a pod placed now. */
int64_t expected_end_runtime(const struct cluster *c, const struct cluster_pod *cp);
