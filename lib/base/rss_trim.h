// SPDX-License-Identifier: Apache-2.0
/*
 * rss_trim - returns memory that only startup needed.
 */
#pragma once

#include "lib/base/loop.h"

enum { RSS_TRIM_FIRST_MS = 10 * 1000, RSS_TRIM_MS = 5 * 60 * 1000 };

/* Before the first thread: one heap instead of one per gRPC thread, large blocks mapped separately;
 * records which libraries are loaded at start. */
void rss_trim_init(void);
/* Any thread. */
void rss_trim_now(void);

struct rss_trim {
    struct loop *loop;
    struct loop_timer timer;
};
/* First RSS_TRIM_FIRST_MS from now, after startup, then every RSS_TRIM_MS. */
void rss_trim_start(struct rss_trim *s, struct loop *loop);
void rss_trim_stop(struct rss_trim *s);
