// SPDX-License-Identifier: Apache-2.0
/*
 * grid - prints cells in columns and makes untrusted text safe for a terminal. Pure.
 *
 * Many clients can write the annotations and conditions that names and messages come from. Invalid
 * UTF-8 and whatever a terminal could interpret (control characters, C1 controls, direction
 * overrides) become '?'.
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
/* Adds the next cell, cleaned; cells fill rows. */
void grid_add(struct grid *g, enum grid_colour colour, const char *text);
void grid_addf(struct grid *g, enum grid_colour colour, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Left-aligned, two blanks between columns, no trailing blanks. Returns the longest line's
 * length. */
size_t grid_print(const struct grid *g, bool colours, struct strbuf *out);

/* Copies s into a, replacing unsafe characters. NULL becomes "". */
const char *grid_clean(const char *s, struct arena *a);
