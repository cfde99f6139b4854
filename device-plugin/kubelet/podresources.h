// SPDX-License-Identifier: Apache-2.0
/* podresources - asks the kubelet which ids each container holds or still needs. Any thread. */
#pragma once

#include <stdint.h>

#include "device-plugin/grant/match.h"
#include "lib/base/arena.h"
#include "lib/base/error.h"

struct podresources;

int podresources_new(struct podresources **out, const char *socket, struct error *err);
void podresources_free(struct podresources *p);
/* Waits up to the timeout for an absent kubelet. */
int podresources_list(struct podresources *p, int64_t timeout_ms, struct arena *a,
                      struct match_listing *out, struct error *err);
