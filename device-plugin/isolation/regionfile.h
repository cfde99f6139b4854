// SPDX-License-Identifier: Apache-2.0
/* regionfile - a container's region as a file that every process maps: a slot for this process, and
 * the slots of dead ones. Uses only calls that every glibc since 2.17 has: it runs in users'
 * processes. */
#pragma once

#include "device-plugin/isolation/region.h"

struct regionfile {
    struct region region;
    void *map;
    size_t size;
    uint32_t slot;
};

/* Maps the file and takes a slot until the process dies or calls exec. A forked child does not have
 * the mapping and attaches itself. -1: see errno (EPROTO: not a region we understand; EAGAIN: no
 * free slot). */
int regionfile_attach(struct regionfile *f, const char *path);
/* Releases the slot, with all that it holds. */
void regionfile_detach(struct regionfile *f);
/* Returns what dead processes hold; the result is their number. */
unsigned regionfile_reap(const struct regionfile *f, const char *path);

struct regionfile_process {
    uint32_t pid;
    uint64_t start;
    bool leaving; /* it is exiting and has not released everything */
};
/* pid 0: this one, as /proc counts it. false: no such process, or no /proc. */
bool regionfile_process(uint32_t pid, struct regionfile_process *out);
/* The same from the text of /proc/PID/stat. */
bool regionfile_parse(const char *stat, struct regionfile_process *out);
