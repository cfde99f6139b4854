// SPDX-License-Identifier: Apache-2.0
/*
 * discovery - /api, /apis, /version, /openapi, /healthz, /livez, /readyz: what kubectl reads
 * first.
 */
#pragma once

#include <stdbool.h>

#include "test/local/admission/call.h"

/* true: the path was one of discovery's and has been answered. Comes after authentication. */
bool discovery_handle(struct call *c);
