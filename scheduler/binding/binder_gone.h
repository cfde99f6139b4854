// SPDX-License-Identifier: Apache-2.0
/*
 * binder_gone - the nodes that left while Bindings waited, and when. Asking for each Binding costs
 * nothing as long as none did.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/base/map.h"

struct binder_gone {
    pthread_mutex_t lock;
    struct map nodes;
    _Atomic bool any;
};

void binder_gone_init(struct binder_gone *g);
void binder_gone_deinit(struct binder_gone *g);
/* The rest: any thread. */
void binder_gone_note(struct binder_gone *g, const char *node, int64_t now_ms);
bool binder_gone_since(struct binder_gone *g, const char *node, int64_t since_ms);
/* No Binding waits that was placed before now. */
void binder_gone_forget(struct binder_gone *g);
