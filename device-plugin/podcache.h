// SPDX-License-Identifier: Apache-2.0
/*
 * podcache - the pods of this node as the watch has brought them, and what the kubelet's list does not show of them.
 * No lock of its own.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "device-plugin/match.h"
#include "lib/base/map.h"
#include "lib/model/pod.h"

struct podcache {
    struct map pods;  /* key → struct pod *, owned */
    struct map given; /* uid → struct given *, owned */
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

/* The subject's container has been given its ids of r. Only ordinary init containers need it (match_listed.init_given);
 * forgotten with the pod. */
void podcache_note_given(struct podcache *c, const struct match_subject *s, enum mode_resource r);
/* Fills init_given for the pod. */
void podcache_init_given(const struct podcache *c, const struct pod *p, struct match_listed *l);
/* Pods, not finished, that ask for one of the resources (a bit set) in an ordinary init container. */
size_t podcache_init_holders(const struct podcache *c, uint32_t resources);
