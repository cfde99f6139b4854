// SPDX-License-Identifier: Apache-2.0
/* volumes_attached - volumes attached to a node, for its drivers' limits. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/model/pod.h"
#include "lib/model/volume.h"

struct cluster;
struct volumes_index;

/* A volume, as a driver knows it. */
struct volumes_attached {
    const char *driver, *handle;
    bool in_tree; /* served by this driver only where CSI is in use */
    bool made_up; /* handle is the claim's key: no volume exists yet */
};

/* How a pod's volume is attached to its node; false: it does not count towards a limit. */
bool volumes_attached_of(const struct cluster *c, const struct pod *p, const struct pod_volume *v,
                         struct volumes_attached *out);
/* Sorts by driver and handle, made-up ones last. */
int volumes_attached_compare(const void *a, const void *b);

/* The node's VolumeAttachments. Borrowed until one of them changes. */
const struct volume_attachment *const *volumes_attached_to(const struct cluster *c,
                                                           const char *node, size_t *len);

struct volumes_index *volumes_attached_index_new(void);
void volumes_attached_index_free(struct volumes_index *index);
