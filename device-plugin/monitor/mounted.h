// SPDX-License-Identifier: Apache-2.0
/*
 * mounted - which folder of limits is mounted in a process. Its mountinfo is as long as the process
 * makes it (9,000 mounts in a user namespace: 1 MiB, 19 ms of the kernel's time for each reading),
 * so it is read once for each process, and only if it is short. Our mount is there before the
 * process starts. One thread.
 */
#pragma once

#include <stdint.h>

#include "device-plugin/cpu/podmounts.h"
#include "lib/base/str.h"

enum { MOUNTED_SLOTS = 1024 };

/* Begins as {0}. */
struct mounted {
    struct {
        int64_t pid;
        uint64_t start; /* as in /proc/PID/stat */
        char folder[PODMOUNTS_NAME_SIZE];
    } slots[MOUNTED_SLOTS]; /* by pid; of two that meet, the last */
};

/* "": none, or it cannot be read. text: space for a file's content. */
const char *mounted_folder(struct mounted *m, const char *proc, int64_t pid, struct strbuf *text);
