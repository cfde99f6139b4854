// SPDX-License-Identifier: Apache-2.0
/*
 * grid - cells in columns, and untrusted text made safe for a terminal. Pure.
 *
 * Names and messages come from annotations and conditions that many clients may write. What a
 * terminal could interpret (control characters, C1 controls, overrides of the writing direction)
 * and invalid UTF-8 is shown as '?'.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/base/arena.h"
#include "lib/base/str.h"

enum grid_colour { GRID_PLAIN, GRID_BOLD, GRID_GREEN, GRID_YELLOW, GRID_RED };

struct grid_cell {
    const char *text;
    size_t width;
    enum grid_colour colour;
};

struct grid {
    struct arena *arena;
    size_t columns, len, cap;
    struct grid_cell *cells; /* row by row */
};

void grid_init(struct grid *g, size_t columns, struct arena *a);
/* The next cell, row by row. Cleaned. */
void grid_add(struct grid *g, enum grid_colour colour, const char *text);
void grid_addf(struct grid *g, enum grid_colour colour, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Left-aligned, two blanks between columns, no trailing blanks. Returns the length of the longest
 * line. */
size_t grid_print(const struct grid *g, bool colours, struct strbuf *out);

/* s with printable characters only, in a. NULL is "". */
const char *grid_clean(const char *s, struct arena *a);
