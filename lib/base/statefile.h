// SPDX-License-Identifier: Apache-2.0
/* statefile - a small file that survives a restart, replaced atomically. */
#pragma once

#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/json.h"

/* On 0 DIR/NAME holds these bytes, otherwise its previous content. */
int statefile_write(const char *dir, const char *name, const char *bytes, size_t n,
                    struct error *err);

/* A file {"v":1,"LIST":[…]} and its size limit. */
struct statefile_list {
    const char *dir, *name, *list;
    size_t bytes_max, max;
    /* Reads members beside the list, once the file is known to be usable. May be NULL. */
    void (*root)(json *root, void *user);
};
/* Takes one element. -1: skipped and logged. */
typedef int statefile_take(json *element, void *user, struct error *err);
/* Number of elements taken; 0 without a file. -1: the file is unusable; err names it. */
int statefile_read(const struct statefile_list *f, statefile_take *take, void *user,
                   struct error *err);
