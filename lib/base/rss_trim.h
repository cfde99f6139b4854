// SPDX-License-Identifier: Apache-2.0
/* rss_trim - returns memory that only startup needed. */
#pragma once

#include "lib/base/loop.h"

enum { RSS_TRIM_FIRST_MS = 10 * 1000, RSS_TRIM_MS = 5 * 60 * 1000 };

/* Call before the first thread. Sets one heap instead of one per gRPC thread, maps large blocks
 * separately, and records the libraries loaded at start. */
void rss_trim_init(void);
/* Any thread. */
void rss_trim_now(void);

struct rss_trim {
    struct loop *loop;
    struct loop_timer timer;
};
/* Trims RSS_TRIM_FIRST_MS from now, after startup, then every RSS_TRIM_MS. */
void rss_trim_start(struct rss_trim *s, struct loop *loop);
void rss_trim_stop(struct rss_trim *s);
