// SPDX-License-Identifier: Apache-2.0
/* decode_volume - a pod's volumes. decode_storage.c has the storage objects themselves. */
#pragma once

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/model/pod.h"

/* spec.volumes: images, and volumes that decide where the pod may run. The pod's names must be set.
 * After an error the pod has the volumes that can be read. */
int decode_volume_list(json *j, struct pod *p, struct arena *a, struct error *err);
/* The disk's name in an in-tree source, as its CSI driver calls it. NULL and 0: none. */
int decode_volume_handle(json *source, const struct volume_migration *m, struct arena *a,
                         const char **out, struct error *err);
