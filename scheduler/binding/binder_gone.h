// SPDX-License-Identifier: Apache-2.0
/* binder_gone - nodes that left while Bindings were queued, and when. Free while none did. */
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
/* No Binding placed before now is queued. */
void binder_gone_forget(struct binder_gone *g);
