// SPDX-License-Identifier: Apache-2.0
/* cards - inventories and pods for the device plugin's tests. */
#pragma once

#include "device-plugin/cards/inventory.h"
#include "lib/base/arena.h"
#include "lib/model/gpu.h"
#include "lib/model/node.h"
#include "lib/model/pod.h"

/* Cards "GPU-a", "GPU-b", ... with these sizes, ended by 0; indexes from 0, healthy, no links. */
void cards_make(struct gpu_inventory *out, struct arena *a, const int64_t *mib);
/* Words separated by blanks; "GPU-a:0-2" is GPU-a-_-0, -_-1, -_-2. */
struct inventory_ids cards_ids(struct arena *a, const char *words);
/* The ids in one line. */
char *cards_print(struct arena *a, const struct inventory_ids *ids);

/* containers: JSON of each, "c0=gpu-mem:3,gpu-core.percentage:30 c1=gpu-mem:2"; "init:" before a
 * name makes it an init container, "side:" a sidecar. annotations: JSON members. Fails the test
 * when it cannot be decoded. */
struct pod *cards_pod(const char *name, const char *containers, const char *annotations);
/* The node with these labels and allocatable amounts, as JSON members. */
struct node *cards_node(const char *labels, const char *allocatable);
