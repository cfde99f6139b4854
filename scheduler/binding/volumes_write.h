// SPDX-License-Identifier: Apache-2.0
/*
 * volumes_write - what is written to a claim or a volume so that the volume controller binds them,
 * and how it is taken back. Worker threads.
 *
 * A volume that exists is reserved for the claim (spec.claimRef); for a volume that is to be made
 * the claim gets its node (annotation volume.kubernetes.io/selected-node). Each write is made to
 * the very version that was looked at, so nobody else's is lost; written twice it is the same.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/kube/api.h"
#include "lib/kube/lease.h"

struct volumes_item {
    const char *ns, *claim, *claim_uid;
    const char *volume, *volume_uid; /* NULL: to be made */
    const char *node;
    bool written;      /* may have been */
    bool by_name;      /* somebody had reserved the volume for the claim, by name */
    int64_t version;   /* of what was written; -1: not known */
    bool others_count; /* another pod relies on it: not taken back */
};

/* 0: done, or done before. ERROR_CONFLICT: somebody else has it, or it is not what it was. */
int volumes_write_do(struct kube_client *client, const struct lease *lease, struct volumes_item *it,
                     struct error *err);
/* 0: taken back, or there is nothing to take back, as after the controller has begun to bind. */
int volumes_write_undo(struct kube_client *client, const struct lease *lease,
                       const struct volumes_item *it, struct error *err);
