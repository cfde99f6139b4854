// SPDX-License-Identifier: Apache-2.0
/*
 * slim - lets go of memory that only starting up has needed.
 */
#pragma once

#include "lib/base/loop.h"

enum { SLIM_FIRST_MS = 10 * 1000, SLIM_MS = 5 * 60 * 1000 };

/* Before the first thread: one heap instead of one for each of gRPC's threads, and large blocks beside it; notes which libraries
 * are there from the start. */
void slim_init(void);
/* Now. Any thread. */
void slim_now(void);

struct slim {
    struct loop *loop;
    struct loop_timer timer;
};
/* SLIM_FIRST_MS after this, when the program has started, and from then on every SLIM_MS. */
void slim_start(struct slim *s, struct loop *loop);
void slim_stop(struct slim *s);
