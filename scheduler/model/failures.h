// SPDX-License-Identifier: Apache-2.0
/*
 * failures - failed members of gangs, for the count in a PodGroup's status. Pure.
 *
 * The model drops a Failed pod because it holds nothing. If the pod names a gang, this keeps both
 * names until the pod is deleted.
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
/* Idempotent. Ignores a pod that is in no gang, or not Failed. */
void failures_note(struct failures *f, const struct pod *p);
/* The pod was deleted. uid NULL: any pod with that key. */
void failures_drop(struct failures *f, const char *key, const char *uid);
/* gang: "ns/name". */
int32_t failures_count(const struct failures *f, const char *gang);
