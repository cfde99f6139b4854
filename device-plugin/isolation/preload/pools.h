// SPDX-License-Identifier: Apache-2.0
/* pools - how the charge of a pool follows what the driver's pool has. All between share_pools_begin and end. */
#pragma once

#include "device-plugin/isolation/preload/share.h"

/* Takes what the pool may grow by when it is asked for so many bytes, if need be after pools have let go of what nobody uses;
 * taken is 0 where it has enough and cannot grow. false: there is no room. */
bool pools_grow(const struct share_pool *p, uint64_t size, uint64_t *taken);
/* After the driver was asked: charged is what the pool has, or where the driver does not say it, what was taken if it `gave`. false: it has
 * more than there was room for. */
bool pools_settle(struct share_pool *p, uint64_t taken, bool gave);
