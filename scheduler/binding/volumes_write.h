// SPDX-License-Identifier: Apache-2.0
/* volumes_write - writes to a claim or a volume so that the volume controller binds them, and
 * undoes it. Worker threads. An existing volume is reserved for the claim (spec.claimRef); for a
 * volume to be provisioned the claim gets its node (annotation volume.kubernetes.io/selected-node).
 * Writes are idempotent, with the read resourceVersion as a precondition. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/kube/api.h"
#include "lib/kube/lease.h"

struct volumes_item {
    const char *ns, *claim, *claim_uid;
    const char *volume, *volume_uid; /* NULL: to be provisioned */
    const char *node;
    bool written;      /* possibly */
    bool by_name;      /* the volume was already reserved for the claim by name */
    int64_t version;   /* of the write; -1: unknown */
    bool others_count; /* another pod relies on it: not undone */
};

/* 0: done, now or before. ERROR_CONFLICT: taken by another, or replaced. */
int volumes_write_do(struct kube_client *client, const struct lease *lease, struct volumes_item *it,
                     struct error *err);
/* 0: undone, or nothing to undo, as once the controller has started binding. */
int volumes_write_undo(struct kube_client *client, const struct lease *lease,
                       const struct volumes_item *it, struct error *err);
