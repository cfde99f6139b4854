// SPDX-License-Identifier: Apache-2.0
/*
 * podcache - the decoded pods of this node and their annotated grants, shared by the whole program.
 * Users read them here or subscribe to changes, and store only their own findings, by uid.
 *
 * Threads: only the loop changes the cache, and it reads without the lock. Other threads hold the
 * lock while they use a pod. Subscribers are called on the loop, without the lock. A replaced or
 * removed pod is freed after the last subscriber has returned. So a subscriber may keep a pointer
 * to a pod until it is told of the change, and may share it with another thread if it replaces the
 * pointer under its own lock.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/map.h"
#include "lib/kube/reflector.h"
#include "lib/model/grant.h"
#include "lib/model/pod.h"

enum { PODCACHE_SUBSCRIBERS_MAX = 4 };

struct podcache_pod {
    struct pod *pod;    /* owned by the cache */
    struct grant grant; /* from its annotations; empty: none, or undecodable */
    uint64_t arrival;   /* sequence number from 1 in order of arrival; same for all versions */
    bool remembered; /* from a state file: reduced to what a grant needs, perhaps already deleted */
    uint64_t list;   /* private: the last list that had it */
};

struct podcache_subscriber {
    /* A pod is new or has a new version. The previous version is still valid. */
    void (*put)(void *arg, const struct podcache_pod *p);
    /* A pod is gone. A pod of the same name with another uid follows as a put. */
    void (*gone)(void *arg, const struct podcache_pod *p);
    /* The change is complete. all: it was a list of all pods of the node. */
    void (*told)(void *arg, bool all);
    void *arg;
};

struct podcache {
    pthread_mutex_t lock;
    struct map by_key, by_uid; /* → struct podcache_pod *, which lives in the pod's arena */
    uint64_t arrivals, lists;
    struct podcache_subscriber subscribers[PODCACHE_SUBSCRIBERS_MAX];
    size_t subscribers_len;
};

void podcache_init(struct podcache *c);
/* Does not call subscribers. */
void podcache_deinit(struct podcache *c);
/* Copies s. Its functions may be NULL; its owner outlives the last change. */
void podcache_subscribe(struct podcache *c, const struct podcache_subscriber *s);

/* An unreadable version (pod.unreadable) is ignored, so that an unknown field does not make us
 * forget what a pod holds; but if it is finished, the pod is removed. A pod of a state file stays
 * marked as remembered. */
void podcache_put(struct podcache *c, struct pod *take);
void podcache_remove(struct podcache *c, const char *key);
/* All pods of this node. Takes the pods, and sorts the array. */
void podcache_reset(struct podcache *c, struct pod **pods, size_t len);
/* Puts a pod from a state file, unless the cache already has it. */
void podcache_restore(struct podcache *c, struct pod *take);

/* Borrowed until the next change; NULL: unknown. */
const struct podcache_pod *podcache_find(const struct podcache *c, const char *key);
const struct podcache_pod *podcache_find_uid(const struct podcache *c, const char *uid);
/* for (size_t i = 0; (p = podcache_next(c, &i)) != NULL;) */
const struct podcache_pod *podcache_next(const struct podcache *c, size_t *i);

/* For the watch of pods: its decoder, and the receiver of its messages. */
extern const struct reflector_type podcache_type;
void podcache_message(void *cache, void *message);
