// SPDX-License-Identifier: Apache-2.0
/*
 * intake_latest - which versions of objects wait to be applied. Of several versions of one object
 * only the newest is applied, so edits that come faster than they are applied do not add up.
 *
 * The order of what is applied is that of the watch: an older version is left out, and the newer
 * one is applied in its own place. Versions with different uids are different objects. Deletions
 * are not noted: they are always applied.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "lib/base/map.h"

struct intake_latest {
    pthread_mutex_t lock;
    struct map waiting; /* "kind key" -> struct version */
};

void intake_latest_init(struct intake_latest *t);
void intake_latest_deinit(struct intake_latest *t);
/* This version is about to be posted. Any thread. */
void intake_latest_posted(struct intake_latest *t, int kind, const char *key, const char *uid);
/* This version has arrived, in the order in which they were posted. False: a newer version of the
 * object was posted. A version that was never noted is the newest. Any thread. */
bool intake_latest_arrived(struct intake_latest *t, int kind, const char *key, const char *uid);
