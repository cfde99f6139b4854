// SPDX-License-Identifier: Apache-2.0
/*
 * expiry - deletes objects of one kind some time after their last write: Events, as
 * kube-apiserver does by --event-ttl. Loop thread only.
 */
#pragma once

#include <stdint.h>

#include "lib/base/loop.h"
#include "test/local/store/store.h"

struct expiry_config {
    struct loop *loop;
    struct store *store;
    const struct kind *kind;
    int64_t ttl_ms;          /* at least 1 */
    int64_t (*now_ms)(void); /* never goes back */
};

struct expiry;
/* Objects that are in the store already have the whole time before them. */
struct expiry *expiry_start(const struct expiry_config *c);
void expiry_stop(struct expiry *e); /* NULL is fine */
/* Deletes what is due, oldest first, at most so many that the loop has its turn; the timer calls
 * it. */
void expiry_run(struct expiry *e);
