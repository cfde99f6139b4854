// SPDX-License-Identifier: Apache-2.0
/*
 * scratch - a place for a test's files: new, below $TMPDIR, or below /tmp where that is not set or
 * too long. Paths are short because sockets are bound in some of these places, whose names have at
 * most 107 bytes. The test removes what it put there.
 */
#pragma once

#include <stdlib.h>

#include "lib/base/str.h"
#include "test/unit/lib/base/expect.h"

enum { SCRATCH_PATH = 96, SCRATCH_BELOW_MAX = 32 };

static inline void scratch_name(char path[SCRATCH_PATH], const char *name)
{
    const char *below = getenv("TMPDIR");
    if (below == NULL || below[0] == '\0' || strlen(below) > SCRATCH_BELOW_MAX)
        below = "/tmp";
    if (!str_format(path, SCRATCH_PATH, "%s/cosched-%s-XXXXXX", below, name))
        fail_msg("%s is too long for the sockets of tests", name);
}

static inline void scratch_folder(char path[SCRATCH_PATH], const char *name)
{
    scratch_name(path, name);
    if (mkdtemp(path) == NULL)
        fail_msg("%s: cannot be made", path);
}

/* The file, open for reading and writing. */
static inline int scratch_file(char path[SCRATCH_PATH], const char *name)
{
    scratch_name(path, name);
    int fd = mkstemp(path);
    if (fd < 0)
        fail_msg("%s: cannot be made", path);
    return fd;
}
