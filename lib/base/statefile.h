// SPDX-License-Identifier: Apache-2.0
/*
 * statefile - a small file that is there whole or not at all: what must survive a restart.
 */
#pragma once

#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/json.h"

/* DIR/NAME holds these bytes when it returns 0; otherwise what it held before. */
int statefile_write(const char *dir, const char *name, const char *bytes, size_t n,
                    struct error *err);

/* A file {"v":1,"LIST":[…]}, and how large it may be. */
struct statefile_list {
    const char *dir, *name, *list;
    size_t bytes_max, max;
};
/* One element. -1: it is left out, and the log says why. */
typedef int statefile_take(json *element, void *user, struct error *err);
/* How many were taken: 0 without a file. -1: the file cannot be used, err names it. */
int statefile_read(const struct statefile_list *f, statefile_take *take, void *user,
                   struct error *err);
