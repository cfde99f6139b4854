// SPDX-License-Identifier: Apache-2.0
/*
 * statefile - a small file that is there whole or not at all: what must survive a restart.
 */
#pragma once

#include <stddef.h>

#include "lib/base/error.h"

/* DIR/NAME holds these bytes when it returns 0; otherwise what it held before. */
int statefile_write(const char *dir, const char *name, const char *bytes, size_t n,
                    struct error *err);
