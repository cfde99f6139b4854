// SPDX-License-Identifier: Apache-2.0
/* replay_add - "would this job fit?": adds new objects, and the pods of their controllers. */
#pragma once

#include "lib/base/error.h"
#include "lib/base/map.h"
#include "lib/base/vec.h"
#include "scheduler/replay/replay_load.h"

enum { REPLAY_ADD_MAX = 100000 }; /* pods of one --add */

struct replay_add_later {
    json *maker; /* in its document */
    const char *where;
};

struct replay_add {
    struct replay_load *load;
    struct map keys; /* "ns/name" of each added pod -> itself */
    struct VEC(
        struct replay_add_later) later; /* makers of pods, until all they may need has been read */
    struct error err;
    bool failed; /* err says why */
};

void replay_add_init(struct replay_add *a, struct replay_load *l);
void replay_add_deinit(struct replay_add *a);
/* Takes pods and kinds with a pod template: Deployment, ReplicaSet, StatefulSet,
 * ReplicationController, Job, and the *ReplicaSpecs of TFJob and the like. Other kinds that the
 * scheduler knows (PodGroup, PersistentVolumeClaim, PriorityClass...) are stored as they are. The
 * pods are ours whatever their schedulerName, and the youngest. -1: the results are invalid. */
int replay_add_file(struct replay_add *a, const char *path, struct error *err);
/* After the last file: makes the pods. -1 also if there are none. */
int replay_add_finish(struct replay_add *a, struct error *err);
