// SPDX-License-Identifier: Apache-2.0
/*
 * rehearsal - posts a Binding with dryRun=All: the API server and everybody that it asks (quota, admission) say what they would say, and nothing is done. Threads of its
 * own. For gangs (--gang-dry-run): a member that would be refused is found out before the first one is bound.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/loop.h"
#include "lib/kube/api.h"
#include "lib/kube/config.h"

struct rehearsal_result {
    uint64_t ticket; /* as given */
    bool refused;    /* by the server, with this error; one that did not answer has not refused */
    struct error error;
};
void rehearsal_result_free(void *result);

struct rehearsal;

struct rehearsal_config {
    unsigned threads;
    struct mailbox *results; /* gets each struct rehearsal_result */
};
int rehearsal_start(struct rehearsal **out, struct kube_config *kube, const struct kube_options *o,
                    const struct rehearsal_config *c, struct error *err);
/* Copies everything. */
void rehearsal_submit(struct rehearsal *r, const struct kube_binding *binding, uint64_t ticket);
/* NULL is fine. */
void rehearsal_stop(struct rehearsal *r);
