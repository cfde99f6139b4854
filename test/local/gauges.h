// SPDX-License-Identifier: Apache-2.0
/*
 * gauges - what /metrics shows of cosched-local. Asked for on the loop's thread.
 */
#pragma once

#include "test/local/server/server.h"
#include "test/local/store/store.h"

/* Once; both live until metrics_reset. *server may be NULL for a while. */
void gauges_register(struct server *const *server, const struct store *store);
