// SPDX-License-Identifier: Apache-2.0
/*
 * replay_add - "would this job fit?": objects that do not exist yet, and the pods that their
 * controllers would make.
 */
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
    struct map keys; /* "ns/name" of each pod that was added -> itself */
    struct VEC(
        struct replay_add_later) later; /* makers of pods, until all that they may need was read */
    struct error err;
    bool failed; /* err says why */
};

void replay_add_init(struct replay_add *a, struct replay_load *l);
void replay_add_deinit(struct replay_add *a);
/* Pods, and kinds with a pod template: Deployment, ReplicaSet, StatefulSet, ReplicationController,
 * Job, and the *ReplicaSpecs of TFJob and its like. Other kinds that the scheduler knows (PodGroup,
 * PersistentVolumeClaim, PriorityClass...) are taken as they are. The pods are ours whatever their
 * schedulerName, and the youngest. -1: nothing may be concluded from the rest. */
int replay_add_file(struct replay_add *a, const char *path, struct error *err);
/* After the last file: makes the pods. -1 also when there are none. */
int replay_add_finish(struct replay_add *a, struct error *err);
