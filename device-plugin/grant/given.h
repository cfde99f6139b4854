// SPDX-License-Identifier: Apache-2.0
/* given - what this node has given its pods, by uid: answers that the kubelet's list does not show,
 * and grants made or corrected here. Pure; no lock of its own. A pod may be here before our watch
 * delivers it, because the kubelet's watch may be faster. */
#pragma once

#include "device-plugin/grant/match.h"
#include "lib/base/map.h"

struct given {
    struct map pods; /* uid → struct given_pod *, owned */
};

void given_init(struct given *g);
void given_deinit(struct given *g);
/* Removes a deleted pod. */
void given_forget(struct given *g, const char *uid);
/* Removes all pods for which is_there returns false. */
void given_sweep(struct given *g, bool (*is_there)(void *arg, const char *uid), void *arg);

/* The subject's container got its ids of r (match_listed.init_given, .answered). */
void given_note(struct given *g, const struct match_subject *s, enum mode_resource r);
/* The pod was refused; the kubelet will not ask for it again. */
void given_note_refused(struct given *g, const struct pod *p);
/* Fills in the pod's init_given and answered. */
void given_fill(const struct given *g, const char *uid, struct match_listed *l);
/* The grant made for the pod on this node, or NULL. Borrowed until the next change. */
const struct grant *given_grant(const struct given *g, const char *uid);
/* Stores a copy and returns it. */
const struct grant *given_keep_grant(struct given *g, const char *uid, const struct grant *grant);
