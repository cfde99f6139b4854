// SPDX-License-Identifier: Apache-2.0
/* gpu_accounts_shape - a pod's request of one node's cards as text for messages. Pure. */
#pragma once

#include "lib/base/arena.h"
#include "lib/model/gpu_request.h"

/* "no card with 12 GiB", "no 2 cards with 4 GiB each", "no cards with 8 GiB + 4 GiB"; in a. NULL:
 * it requests no shares. */
const char *gpu_accounts_shape(const struct gpu_request *r, struct arena *a);
