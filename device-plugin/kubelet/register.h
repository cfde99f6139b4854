// SPDX-License-Identifier: Apache-2.0
/* register - serves our sockets in the kubelet's directory and registers them with the kubelet. On
 * the loop. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "device-plugin/cards/mode.h"
#include "device-plugin/kubelet/service.h"
#include "lib/base/error.h"
#include "lib/base/loop.h"

enum {
    REGISTER_RETRY_MS = 100,
    REGISTER_TIMEOUT_MS = 1000,
    REGISTER_NO_STREAM_MS = 5000, /* registered without a ListAndWatch call: register again */
    REGISTER_GRACE_MS = 300,
    REGISTER_CHECK_MS = 5000, /* detects a replaced directory, which causes no event */
};

struct registrar;

/* Locks the directory for this process; a second plugin is refused, because the two would replace
 * each other's sockets. changed is called on the loop whenever register_done may have changed. */
int register_new(struct registrar **out, struct loop *loop, const char *dir,
                 struct service *service, void (*changed)(void *arg), void *arg, struct error *err);
/* Stops every server; the kubelet then shows 0 of each resource. */
void register_free(struct registrar *g);
/* The resources to serve, as a bit set; registers them at once. Servers of other resources are
 * stopped. */
void register_want(struct registrar *g, uint32_t resources);
/* The device list changed. */
void register_notify(struct registrar *g, enum mode_resource r);
/* Has the kubelet accepted every wanted resource? */
bool register_done(const struct registrar *g);
