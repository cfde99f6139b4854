// SPDX-License-Identifier: Apache-2.0
/* pools - keeps a pool's charge equal to the driver's pool. Call under share_pools_begin. */
#pragma once

#include "device-plugin/isolation/preload/share.h"

/* Takes what the pool may grow by for size bytes, if need be after trimming pools; taken is 0 if it
 * has enough and cannot grow. false: over the limit. */
bool pools_grow(const struct share_pool *p, uint64_t size, uint64_t *taken);
/* After the driver's call: charged becomes what the pool has, or if the driver does not report it,
 * what was taken if it `gave`. false: it has more than the limit allows. */
bool pools_settle(struct share_pool *p, uint64_t taken, bool gave);
