// SPDX-License-Identifier: Apache-2.0
/*
 * watchline - cuts the bytes of a watch into lines: pieces may end anywhere, also inside a UTF-8
 * sequence. Pure.
 */
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
/* Forgets a half line (a new connection begins). */
void watchline_reset(struct watchline *w);
/* Calls on_line for each full line (without '\n'; empty lines are skipped; line has JSON_PADDING
 * writable bytes behind it). ERROR_TOO_LARGE when a line passes max_bytes. on_line's -1 is passed
 * on. */
int watchline_feed(struct watchline *w, const char *bytes, size_t n,
                   int (*on_line)(void *arg, char *line, size_t n, struct error *err), void *arg,
                   struct error *err);
