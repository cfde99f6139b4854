// SPDX-License-Identifier: Apache-2.0
/* given - what this node has given its pods, by uid: answers that the kubelet's list does not show,
 * and grants made or corrected here. Pure; no lock of its own. A pod may be here before our watch
 * delivers it, because the kubelet's watch may be faster.
 *
 * Answers are also kept by their ids, until the container starts: on kubelets before 1.34 another
 * pod may hold them than the one that was answered. They stay when that pod goes. */
#pragma once

#include "device-plugin/grant/match.h"
#include "lib/base/map.h"
#include "lib/base/vec.h"

enum { GIVEN_ANSWERS_MAX = 4096 }; /* the oldest go first */

struct given_answer {
    enum mode_resource resource;
    char *ids; /* match_digest */
    /* Whom the ids were chosen for. */
    char *uid, *key;
    size_t container;
    char *said; /* match_describe */
};

struct given {
    struct map pods; /* uid → struct given_pod *, owned */
    struct VEC(struct given_answer) answers;
};

void given_init(struct given *g);
void given_deinit(struct given *g);
/* Removes a deleted pod. */
void given_forget(struct given *g, const char *uid);
/* Removes all pods for which is_there returns false. */
void given_sweep(struct given *g, bool (*is_there)(void *arg, const char *uid), void *arg);

/* The subject's container got its ids of r (match_listed.init_given, .answered). */
void given_note(struct given *g, const struct match_subject *s, enum mode_resource r);
/* These ids (a digest) were answered for the subject in these words; NULL: for an unknown pod. */
void given_answered(struct given *g, enum mode_resource r, const char *ids,
                    const struct match_subject *s, const char *said);
/* The last answer for these ids; NULL: none, or for an unknown pod. Borrowed until the next
 * change. */
const struct given_answer *given_answer(const struct given *g, enum mode_resource r,
                                        const char *ids);
/* The container with these ids starts. */
void given_started(struct given *g, enum mode_resource r, const char *ids);
/* The pod was refused; the kubelet will not ask for it again. */
void given_note_refused(struct given *g, const struct pod *p);
/* Fills in the pod's init_given and answered. */
void given_fill(const struct given *g, const char *uid, struct match_listed *l);
/* The grant made for the pod on this node, or NULL. Borrowed until the next change. */
const struct grant *given_grant(const struct given *g, const char *uid);
/* Stores a copy and returns it. */
const struct grant *given_keep_grant(struct given *g, const char *uid, const struct grant *grant);
