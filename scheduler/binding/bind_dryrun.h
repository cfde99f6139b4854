// SPDX-License-Identifier: Apache-2.0
/*
 * bind_dryrun - posts a Binding with dryRun=All: the API server and everybody that it asks (quota,
 * admission) say what they would say, and nothing is done. Threads of its own. For gangs
 * (--gang-dry-run): a member that would be refused is found out before the first one is bound.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/loop.h"
#include "lib/kube/api.h"
#include "lib/kube/config.h"

struct bind_dryrun_result {
    uint64_t ticket; /* as given */
    bool refused;    /* by the server, with this error; one that did not answer has not refused */
    struct error error;
};
void bind_dryrun_result_free(void *result);

struct bind_dryrun;

struct bind_dryrun_config {
    unsigned threads;
    struct mailbox *results; /* gets each struct bind_dryrun_result */
};
int bind_dryrun_start(struct bind_dryrun **out, struct kube_config *kube,
                      const struct kube_options *o, const struct bind_dryrun_config *c,
                      struct error *err);
/* Copies everything. */
void bind_dryrun_submit(struct bind_dryrun *r, const struct kube_binding *binding, uint64_t ticket);
/* NULL is fine. */
void bind_dryrun_stop(struct bind_dryrun *r);
