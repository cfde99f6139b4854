// SPDX-License-Identifier: Apache-2.0
/*
 * decode_container - a pod's containers, with what their statuses say of them.
 *
 * Every container is read whatever its neighbours hold, or its resources would be given away again.
 * A value that cannot be read is left out: an image, an address, an amount. -1 says that of an
 * amount or a host port, or that there are more containers or host ports than we judge: then no
 * node may take the pod, but what it holds is known.
 */
#pragma once

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/model/pod.h"

/* spec.containers or spec.initContainers. */
int decode_container_list(json *j, const char *name, bool init, struct arena *a,
                          struct container **out, size_t *len, uint8_t *features,
                          struct error *err);
/* status.containerStatuses or initContainerStatuses, for the containers of the list. */
void decode_container_statuses(json *j, struct container *list, size_t len, struct arena *a);
/* status.allocatedResources or status.resources, of a container or of the pod. */
void decode_container_resized(const struct json_iter *at, struct resized *r, struct arena *a);
