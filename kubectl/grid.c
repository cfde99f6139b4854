// SPDX-License-Identifier: Apache-2.0
#include "kubectl/grid.h"

#include <stdarg.h>
#include <stdint.h>
#include <string.h>

static uint32_t code_of(const char *s, size_t n)
{
    const unsigned char *u = (const unsigned char *)s;
    uint32_t code = n == 1 ? u[0] : u[0] & (0xffU >> (n + 1));
    for (size_t i = 1; i < n; i++)
        code = code << 6 | (u[i] & 0x3fU);
    return code;
}

static bool is_harmless(uint32_t code)
{
    if (code < 0x20 || (code >= 0x7f && code < 0xa0))
        return false;
    /* Direction marks and overrides, line separators, invisible operators, byte order marks. */
    return !(code >= 0x200b && code <= 0x200f) && !(code >= 0x2028 && code <= 0x202e) &&
           !(code >= 0x2060 && code <= 0x206f) && code != 0x061c && code != 0xfeff;
}

const char *grid_clean(const char *s, struct arena *a)
{
    size_t n = s != NULL ? strlen(s) : 0, len = 0;
    char *out = arena_new(a, char, n + 1);
    for (size_t i = 0; i < n;) {
        size_t bytes = str_utf8_len(s + i, n - i);
        if (bytes == 0 || !is_harmless(code_of(s + i, bytes))) {
            out[len++] = '?';
            i += bytes == 0 ? 1 : bytes;
            continue;
        }
        memcpy(out + len, s + i, bytes);
        len += bytes;
        i += bytes;
    }
    return out;
}

void grid_init(struct grid *g, size_t columns, struct arena *a)
{
    *g = (struct grid){.arena = a, .columns = columns};
}

/* Counts characters; a double-width one counts as one, which only affects alignment. */
static size_t width_of(const char *s)
{
    size_t n = 0;
    for (; *s != '\0'; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

void grid_add(struct grid *g, enum grid_colour colour, const char *text)
{
    if (g->len == g->cap) {
        struct grid_cell *old = g->cells;
        g->cap = g->cap > 0 ? 2 * g->cap : 64;
        g->cells = arena_new(g->arena, struct grid_cell, g->cap);
        if (g->len > 0)
            memcpy(g->cells, old, g->len * sizeof *old);
    }
    const char *clean = grid_clean(text, g->arena);
    g->cells[g->len++] =
        (struct grid_cell){.text = clean, .width = width_of(clean), .colour = colour};
}

void grid_addf(struct grid *g, enum grid_colour colour, const char *fmt, ...)
{
    AUTO_STRBUF b = {0};
    va_list ap;
    va_start(ap, fmt);
    strbuf_vaddf(&b, fmt, ap);
    va_end(ap);
    grid_add(g, colour, strbuf_str(&b));
}

static const char *const codes[] = {[GRID_PLAIN] = "",
                                    [GRID_BOLD] = "\033[1m",
                                    [GRID_GREEN] = "\033[32m",
                                    [GRID_YELLOW] = "\033[33m",
                                    [GRID_RED] = "\033[31m"};

static void pad(struct strbuf *out, size_t n)
{
    while (n-- > 0)
        strbuf_addc(out, ' ');
}

static size_t print_row(const struct grid *g, size_t from, const size_t *widths, bool colours,
                        struct strbuf *out)
{
    size_t last = g->columns, line = 0, due = 0;
    while (last > 0 && (from + last > g->len || g->cells[from + last - 1].width == 0))
        last--;
    for (size_t i = 0; i < last; i++) {
        const struct grid_cell *c = &g->cells[from + i];
        bool coloured = colours && c->colour != GRID_PLAIN;
        pad(out, due);
        strbuf_adds(out, coloured ? codes[c->colour] : "");
        strbuf_adds(out, c->text);
        strbuf_adds(out, coloured ? "\033[0m" : "");
        line += due + c->width;
        due = widths[i] - c->width + 2;
    }
    strbuf_addc(out, '\n');
    return line;
}

size_t grid_print(const struct grid *g, bool colours, struct strbuf *out)
{
    size_t *widths = arena_new(g->arena, size_t, g->columns), longest = 0;
    for (size_t i = 0; i < g->len; i++)
        if (g->cells[i].width > widths[i % g->columns])
            widths[i % g->columns] = g->cells[i].width;
    for (size_t i = 0; i < g->len; i += g->columns) {
        size_t line = print_row(g, i, widths, colours, out);
        longest = line > longest ? line : longest;
    }
    return longest;
}
