// SPDX-License-Identifier: Apache-2.0
/* bind_dryrun - posts a Binding with dryRun=All: the API server runs quota and admission but stores
 * nothing. Own threads. Lets --gang-dry-run find refused members before the first one is bound. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/loop.h"
#include "lib/kube/api.h"
#include "lib/kube/config.h"

struct bind_dryrun_result {
    uint64_t ticket; /* as given */
    bool refused;    /* explicitly, with this error; no answer is no refusal */
    struct error error;
};
void bind_dryrun_result_free(void *result);

struct bind_dryrun;

struct bind_dryrun_config {
    unsigned threads;
    struct mailbox *results; /* receives each struct bind_dryrun_result */
};
int bind_dryrun_start(struct bind_dryrun **out, struct kube_config *kube,
                      const struct kube_options *o, const struct bind_dryrun_config *c,
                      struct error *err);
/* Copies everything. */
void bind_dryrun_submit(struct bind_dryrun *r, const struct kube_binding *binding, uint64_t ticket);
/* NULL-safe. */
void bind_dryrun_stop(struct bind_dryrun *r);
