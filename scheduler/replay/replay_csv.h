// SPDX-License-Identifier: Apache-2.0
/*
 * replay_csv - rows of a trace: columns are found by their names in the first line. A row that cannot be read is a warning with its line, and the rest goes on. Quoted fields are not read:
 * no trace that we know has them.
 */
#pragma once

#include <stdio.h>

#include "lib/base/error.h"
#include "scheduler/replay/replay_load.h"

enum { REPLAY_CSV_COLUMNS = 64, REPLAY_CSV_LINE = 16 * 1024, REPLAY_CSV_ROWS_MAX = 1000000 };

struct replay_csv {
    struct replay_load *load;
    const char *path;
    void *arg; /* the caller's */
    FILE *file;
    char line[REPLAY_CSV_LINE];
    size_t number; /* of the line */
    char *cells[REPLAY_CSV_COLUMNS];
    size_t len;
    char *names[REPLAY_CSV_COLUMNS]; /* of the first line, in the load's arena */
    size_t names_len;
};

/* take is called for each row and says what is wrong with it. -1: the file as a whole is of no use; ERROR_NOT_FOUND when it is not there. */
int replay_csv_read(struct replay_load *l, const char *path, const char *const *needed,
                    int (*take)(struct replay_csv *c, struct error *err), void *arg,
                    struct error *err);
/* The cell of a column in the present row, or NULL. */
const char *replay_csv_cell(const struct replay_csv *c, const char *name);
/* A whole number from 0 to max. */
int replay_csv_number(const struct replay_csv *c, const char *name, int64_t max, int64_t *out,
                      struct error *err);
