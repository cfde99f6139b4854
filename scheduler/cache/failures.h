// SPDX-License-Identifier: Apache-2.0
/*
 * failures - which members of gangs have failed, for the count in a PodGroup's status. Pure.
 *
 * A Failed pod holds nothing and counts for nothing, so the model does not have it. Of those that name a gang two names are kept here until the pod is deleted.
 */
#pragma once

#include <stdint.h>

#include "lib/base/map.h"
#include "lib/model/pod.h"

struct failures {
    struct map pods;  /* "ns/name" -> struct failures_pod */
    struct map gangs; /* "ns/gang" -> struct failures_gang */
};

void failures_init(struct failures *f);
void failures_deinit(struct failures *f);
/* A pod that is in no gang, or not Failed: does nothing. Noted twice it counts once. */
void failures_note(struct failures *f, const struct pod *p);
/* The pod was deleted. uid NULL: whatever has that key. */
void failures_drop(struct failures *f, const char *key, const char *uid);
/* Of the gang "ns/name". */
int32_t failures_count(const struct failures *f, const char *gang);
