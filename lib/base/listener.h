// SPDX-License-Identifier: Apache-2.0
/*
 * listener - a listening TCP socket.
 */
#pragma once

#include <stdint.h>

#include "lib/base/error.h"

/* Returns the descriptor (close-on-exec, non-blocking as several threads may accept from it), or
 * -1. address: IPv4 or IPv6 in digits; "::" takes both. port 0 takes a free one; *taken is the port
 * it is. */
int listener_open(const char *address, uint16_t port, uint16_t *taken, struct error *err);
