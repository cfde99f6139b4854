// SPDX-License-Identifier: Apache-2.0
/*
 * regionfs - a file system for nothing but regions, which containers can write: a tmpfs of
 * REGIONFS_BYTES, mounted nosuid, nodev and noexec (a container's mount inherits that) and always
 * full. What regions do not need a file of our own occupies, so that no container can make its
 * region larger, neither at the node's cost nor at that of other containers.
 *
 * It is mounted below DIR of the isolation folders and outlives this process. The plugin of the
 * chart may not mount; an init container does it (--mount-only). What containers share with MPS is
 * mounted in the same way, without being kept full: its clients create files there.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"

enum { REGIONFS_BYTES = 16 << 20 };

/* Is it mounted there? */
bool regionfs_is(const char *dir);
/* Makes and mounts a tmpfs of that size and mode, unless it is there. Needs CAP_SYS_ADMIN. */
int regionfs_mount_tmpfs(const char *dir, int64_t bytes, unsigned mode, struct error *err);
/* Writes a file that every user may write, and replaces one of that name. */
int regionfs_put(const char *dir, const char *name, const char *bytes, size_t n, struct error *err);
/* Occupies what is free. Nothing is done elsewhere than in such a file system. */
void regionfs_fill(const char *dir);
