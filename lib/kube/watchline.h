// SPDX-License-Identifier: Apache-2.0
/* watchline - splits the bytes of a watch into lines; pieces may end anywhere, even inside a UTF-8
 * sequence. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/error.h"
#include "lib/base/str.h"

struct watchline {
    struct strbuf buf;
    size_t max_bytes;
};
void watchline_init(struct watchline *w, size_t max_bytes);
void watchline_deinit(struct watchline *w);
/* Discards a partial line (for a new connection). */
void watchline_reset(struct watchline *w);
/* Calls on_line for each full line (without '\n'; empty lines are skipped; JSON_PADDING writable
 * bytes follow it). ERROR_TOO_LARGE when a line exceeds max_bytes. Returns on_line's -1. */
int watchline_feed(struct watchline *w, const char *bytes, size_t n,
                   int (*on_line)(void *arg, char *line, size_t n, struct error *err), void *arg,
                   struct error *err);
