// SPDX-License-Identifier: Apache-2.0
/*
 * regionfile - the region of a container as a file that every process maps: a slot for this
 * process, and the slots of dead ones. Depends only on libc calls of every glibc since 2.17: it
 * runs in users' processes.
 */
#pragma once

#include "device-plugin/isolation/region.h"

struct regionfile {
    struct region region;
    void *map;
    size_t size;
    uint32_t slot;
};

/* Maps the file and takes a slot for this process, until it dies or calls exec; a child of fork
 * does not have the mapping and attaches for itself. -1: errno says why (EPROTO: not a region that
 * we understand; EAGAIN: no slot is free). */
int regionfile_attach(struct regionfile *f, const char *path);
/* Releases the slot, with all that it holds. */
void regionfile_detach(struct regionfile *f);
/* Returns what dead processes hold; the result is their number. */
unsigned regionfile_reap(const struct regionfile *f, const char *path);

/* What the kernel says of a process. */
struct regionfile_process {
    uint32_t pid;
    uint64_t start;
    bool leaving; /* it is exiting and has not released everything */
};
/* pid 0: this one, as /proc counts it. false: no such process, or no /proc. */
bool regionfile_process(uint32_t pid, struct regionfile_process *out);
/* The same from the text of /proc/PID/stat. */
bool regionfile_parse(const char *stat, struct regionfile_process *out);
