// SPDX-License-Identifier: Apache-2.0
/*
 * decode_volume - what a pod mounts. The storage objects themselves are in decode_storage.c.
 */
#pragma once

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/model/pod.h"

/* spec.volumes: those that decide where the pod may run, and images. The names of the pod are there
 * already. */
int decode_volume_list(json *j, struct pod *p, struct arena *a, struct error *err);
/* The disk's name in an in-tree source, as its CSI driver calls it. NULL and 0: it has none. */
int decode_volume_handle(json *source, const struct volume_migration *m, struct arena *a,
                         const char **out, struct error *err);
