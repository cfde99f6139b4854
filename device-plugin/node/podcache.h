// SPDX-License-Identifier: Apache-2.0
/*
 * podcache - the pods of this node, kept once for the whole program: decoded, with what their
 * annotations say they were given. Whatever needs pods reads them here or subscribes to changes,
 * and keeps of its own only what it found out itself, by uid.
 *
 * Threads: only the loop changes the cache, and the loop reads it without the lock. Every other
 * thread holds the lock for as long as it looks at a pod. Subscribers are called on the loop,
 * without the lock; a pod that was replaced or removed is freed after the last of them has
 * returned. So a subscriber may keep a pointer to a pod until it is told of the change, and may
 * show it to another thread if it replaces the pointer under a lock of its own.
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
    struct grant grant; /* as its annotations say; empty: nothing, or nothing that can be decoded */
    uint64_t arrival;   /* counts from 1 in the order in which pods came; kept over versions */
    bool remembered; /* from a state file: reduced to what a grant needs, and perhaps gone by now */
    uint64_t list;   /* podcache's own: the last list that had it */
};

struct podcache_subscriber {
    /* A pod is new, or has another version. The version before is still there. */
    void (*put)(void *arg, const struct podcache_pod *p);
    /* A pod is gone. A namesake with another uid comes as a put after this. */
    void (*gone)(void *arg, const struct podcache_pod *p);
    /* The change has been told in full. all: it was a list of all pods of the node. */
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
/* Subscribers are not told. */
void podcache_deinit(struct podcache *c);
/* Copies it. Each of its functions may be NULL; its owner outlives the last change. */
void podcache_subscribe(struct podcache *c, const struct podcache_subscriber *s);

/* A version that cannot be read (pod.unreadable) changes nothing of a pod that is known, and is
 * ignored otherwise: what a pod holds is not forgotten because of a field that we do not know. One
 * that has finished holds nothing: then the pod is gone. A pod of a state file stays remembered. */
void podcache_put(struct podcache *c, struct pod *take);
void podcache_remove(struct podcache *c, const char *key);
/* All pods of this node. Takes every pod, and sorts the array. */
void podcache_reset(struct podcache *c, struct pod **pods, size_t len);
/* A put of a pod from a state file; one that is known by now is newer, and stays. */
void podcache_restore(struct podcache *c, struct pod *take);

/* Borrowed until the next change; NULL: unknown. */
const struct podcache_pod *podcache_find(const struct podcache *c, const char *key);
const struct podcache_pod *podcache_find_uid(const struct podcache *c, const char *uid);
/* for (size_t i = 0; (p = podcache_next(c, &i)) != NULL;) */
const struct podcache_pod *podcache_next(const struct podcache *c, size_t *i);

/* What the watch of pods needs: how they are decoded, and the receiver of its letters. */
extern const struct reflector_type podcache_type;
void podcache_letter(void *cache, void *message);
