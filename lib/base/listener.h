// SPDX-License-Identifier: Apache-2.0
/* listener - a listening TCP socket. */
#pragma once

#include <stdint.h>

#include "lib/base/error.h"

/* Returns a close-on-exec descriptor, non-blocking since several threads may accept from it, or -1.
 * address: numeric IPv4 or IPv6; "::" takes both. port 0 takes a free one; *taken: the actual
 * port. */
int listener_open(const char *address, uint16_t port, uint16_t *taken, struct error *err);
