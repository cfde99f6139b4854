// SPDX-License-Identifier: Apache-2.0
/*
 * progress - a gang's progress as the phase of a PodGroup's status. Pure.
 *
 *      phase           | when
 *      Pending         | fewer members than minMember exist, and none has failed
 *      Failed          | fewer than minMember exist since some have failed; a replacement ends it
 *      PreScheduling   | enough exist, none is bound
 *      Scheduling      | some are bound, fewer than minMember
 *      Scheduled       | minMember are bound
 *      Running         | minMember run or have succeeded
 *      Finished        | minMember have succeeded, and none other waits or runs
 *
 * The phase is always recomputed from the pods, so none is final; only a group that lost all its
 * pods after Finished or Failed keeps its phase. Terminating and merely assumed pods do not count.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "scheduler/model/model.h"

enum { PROGRESS_TIMEOUT_MS = 60000 }; /* of a gang without a PodGroup */

/* How long an attempt of the gang may take, and a replacement hold lasts. NULL: no PodGroup. */
int64_t progress_timeout_ms(const struct pod_group *group);

struct progress {
    const char *phase;
    int32_t scheduled, running, succeeded, failed;
    int64_t schedule_start_ns; /* 0: none */
};

/* g NULL: no pod names the group. failed_pods: failures.h */
void progress_of(const struct pod_group *group, const struct gang *g, int32_t failed_pods,
                 struct progress *out);
/* scheduleStartTime: of the current attempt, or of the one that succeeded; 0: none. since_ns is the
 * last known attempt (0: none, if pods were placed before our start or by another leader);
 * has_pods: whether any pod names the group. In whole seconds, as written. */
int64_t progress_start_ns(const struct pod_group *group, const char *phase, bool has_pods,
                          int64_t since_ns, int64_t now_ns);
/* Whether the PodGroup's status equals p. */
bool progress_is_written(const struct progress *p, const struct pod_group *group);
/* Equal for equal progress of the same object. */
uint64_t progress_digest(const struct progress *p, const struct pod_group *group);
