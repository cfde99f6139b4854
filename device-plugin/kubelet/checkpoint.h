// SPDX-License-Identifier: Apache-2.0
/* checkpoint - reads the kubelet's record of allocated ids,
 * device-plugins/kubelet_internal_checkpoint. It has what the pod resources list omits: pod uids
 * and ordinary init containers. */
#pragma once

#include <stddef.h>

#include "device-plugin/cards/inventory.h"
#include "device-plugin/cards/mode.h"
#include "lib/base/arena.h"
#include "lib/base/error.h"

#define CHECKPOINT_FILE "kubelet_internal_checkpoint"
enum { CHECKPOINT_BYTES_MAX = 16 * 1024 * 1024, CHECKPOINT_ENTRIES_MAX = 16 * 1024 };

struct checkpoint_entry {
    const char *uid, *container;
    enum mode_resource resource;
    struct inventory_ids ids;
};

struct checkpoint {
    struct checkpoint_entry *items;
    size_t len;
    size_t unread; /* entries of our resources in an unknown form: somebody holds something */
};

/* Entries of our resources; the strings live in a. A missing file yields no entries. */
int checkpoint_read(const char *path, struct arena *a, struct checkpoint *out, struct error *err);
/* The same from text. */
int checkpoint_decode(const char *text, size_t n, struct arena *a, struct checkpoint *out,
                      struct error *err);
/* The entry with exactly these ids, in any order, or NULL. Later containers of a pod reuse its init
 * containers' ids; the first entry is returned. */
const struct checkpoint_entry *checkpoint_find(const struct checkpoint *c, enum mode_resource r,
                                               const struct inventory_ids *ids);
