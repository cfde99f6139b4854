// SPDX-License-Identifier: Apache-2.0
/* rfc3339 - formats a time without a clock, for pure files. lib/base/clock.h parses. */
#pragma once

#include <stdint.h>

enum { RFC3339_SIZE = sizeof "2026-01-01T00:00:00.000000000Z" };

/* Nanoseconds since the epoch, >= 0. Prints a fraction only if there is one. */
void rfc3339_text(int64_t ns, char out[RFC3339_SIZE]);
