// SPDX-License-Identifier: Apache-2.0
/*
 * register - our sockets in the kubelet's directory, and the kubelet's knowledge of them. On the
 * loop.
 */
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
    REGISTER_NO_STREAM_MS =
        5000, /* registered, and the kubelet has not called ListAndWatch: again */
    REGISTER_GRACE_MS = 300,
    REGISTER_CHECK_MS = 5000, /* what no event tells of: the directory was replaced */
};

struct registrar;

/* Takes the directory for this process (a second plugin there is refused: two would steal each
 * other's sockets). changed is called on the loop whenever register_done may have changed. */
int register_new(struct registrar **out, struct loop *loop, const char *dir,
                 struct service *service, void (*changed)(void *arg), void *arg, struct error *err);
/* Stops every server; the kubelet then shows 0 of each resource. */
void register_free(struct registrar *g);
/* The resources to serve, as a bit set. Those that are not in it any more are stopped. Registers at
 * once. */
void register_want(struct registrar *g, uint32_t resources);
/* There is a new device list. */
void register_notify(struct registrar *g, enum mode_resource r);
/* Every wanted resource is known to the kubelet. */
bool register_done(const struct registrar *g);
