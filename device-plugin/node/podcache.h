// SPDX-License-Identifier: Apache-2.0
/*
 * podcache - the pods of this node as the watch has brought them, and what the kubelet's list does not show of them.
 * No lock of its own.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "device-plugin/grant/match.h"
#include "lib/base/map.h"
#include "lib/model/pod.h"

struct podcache {
    struct map pods;  /* key → struct pod *, owned */
    struct map given; /* uid → struct given *, owned */
    uint64_t arrivals;
};

void podcache_init(struct podcache *c);
void podcache_deinit(struct podcache *c);
/* Returns what it replaces, to be freed by the caller (outside its lock). */
struct pod *podcache_put(struct podcache *c, struct pod *take);
/* Returns the pod, to be freed by the caller, or NULL. */
struct pod *podcache_remove(struct podcache *c, const char *key);
/* All pods of this node; every pointer is taken. */
void podcache_reset(struct podcache *c, struct pod **pods, size_t len);
/* Borrowed until the next change; NULL: unknown. */
const struct pod *podcache_find(const struct podcache *c, const char *key);
const struct pod *podcache_find_uid(const struct podcache *c, const char *uid);
/* for (size_t i = 0; (p = podcache_next(c, &i)) != NULL;) */
const struct pod *podcache_next(const struct podcache *c, size_t *i);

/* The subject's container has been given its ids of r (match_listed.init_given, .answered); forgotten with the pod. */
void podcache_note_given(struct podcache *c, const struct match_subject *s, enum mode_resource r);
/* The pod was refused: the kubelet does not ask again for it. */
void podcache_note_refused(struct podcache *c, const struct pod *p);
/* The claim that was made for the pod on this node, or NULL. Borrowed until the next change; forgotten with the pod. */
const struct claim *podcache_claim(const struct podcache *c, const char *uid);
/* Copies it and gives the copy. */
const struct claim *podcache_keep_claim(struct podcache *c, const char *uid,
                                        const struct claim *claim);
/* What it was promised: by the claim made here, else by its annotations (in a), if they add up; NULL: nothing. */
const struct claim *podcache_promised(const struct podcache *c, const struct pod *p,
                                      const struct gpu_inventory *inv, struct arena *a);
/* Fills init_given, answered and arrival for the pod. */
void podcache_init_given(const struct podcache *c, const struct pod *p, struct match_listed *l);
/* Pods, not finished, that ask for one of the resources (a bit set) in an ordinary init container. */
size_t podcache_init_holders(const struct podcache *c, uint32_t resources);
