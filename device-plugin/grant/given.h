// SPDX-License-Identifier: Apache-2.0
/*
 * given - what this node has given its pods, by uid: answers that the kubelet's list does not show,
 * and grants that were made or corrected here. Pure; no lock of its own.
 *
 * A pod may be known here before the watch has brought it, as the kubelet's watch may be faster.
 */
#pragma once

#include "device-plugin/grant/match.h"
#include "lib/base/map.h"

struct given {
    struct map pods; /* uid → struct given_pod *, owned */
};

void given_init(struct given *g);
void given_deinit(struct given *g);
/* The pod is gone. */
void given_forget(struct given *g, const char *uid);
/* Forgets all pods but those that are there. */
void given_sweep(struct given *g, bool (*is_there)(void *arg, const char *uid), void *arg);

/* The subject's container has been given its ids of r (match_listed.init_given, .answered). */
void given_note(struct given *g, const struct match_subject *s, enum mode_resource r);
/* The pod was refused: the kubelet does not ask again for it. */
void given_note_refused(struct given *g, const struct pod *p);
/* Fills init_given and answered for the pod. */
void given_fill(const struct given *g, const char *uid, struct match_listed *l);
/* The grant that was made for the pod on this node, or NULL. Borrowed until the next change. */
const struct grant *given_grant(const struct given *g, const char *uid);
/* Copies it and returns the copy. */
const struct grant *given_keep_grant(struct given *g, const char *uid, const struct grant *grant);
