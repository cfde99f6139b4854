// SPDX-License-Identifier: Apache-2.0
/*
 * csv - rows of a trace: columns are found by their names in the first line. A row that cannot be
 * read is a warning with its line, and the rest goes on. Quoted fields are not read: no trace that
 * we know has them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/base/error.h"

enum { CSV_COLUMNS = 64, CSV_LINE = 16 * 1024, CSV_ROWS_MAX = 1000000 };

/* Called with rows that cannot be read. */
struct csv_warn {
    void (*fn)(void *arg, const char *text);
    void *arg;
};

struct csv {
    const char *path;
    void *arg; /* the caller's */
    FILE *file;
    char line[CSV_LINE], head[CSV_LINE]; /* the present line, and the first */
    size_t number;                       /* of the line */
    char *cells[CSV_COLUMNS];
    size_t len;
    char *names[CSV_COLUMNS]; /* in head */
    size_t names_len;
};

/* take is called for each row and says what is wrong with it. -1: the file as a whole is of no use;
 * ERROR_NOT_FOUND when it is not there. */
int csv_read(const char *path, const char *const *needed,
             int (*take)(struct csv *c, struct error *err), void *arg, struct csv_warn warn,
             struct error *err);
/* The cell of a column in the present row, or NULL. */
const char *csv_cell(const struct csv *c, const char *name);
/* A whole number from 0 to max. */
int csv_number(const struct csv *c, const char *name, int64_t max, int64_t *out, struct error *err);
