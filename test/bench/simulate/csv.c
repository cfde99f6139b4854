// SPDX-License-Identifier: Apache-2.0
#include "test/bench/simulate/csv.h"

#include <string.h>

#include "lib/base/num.h"
#include "lib/base/str.h"

static int split(struct csv *c, struct error *err)
{
    char *at = c->line;
    at[strcspn(at, "\r\n")] = '\0';
    if (strchr(at, '"') != NULL)
        return error_set(err, ERROR_INVALID, "quoted fields are not read");
    for (c->len = 0; at != NULL; c->len++) {
        if (c->len == CSV_COLUMNS)
            return error_set(err, ERROR_TOO_LARGE, "more than %d columns", CSV_COLUMNS);
        c->cells[c->len] = at;
        if ((at = strchr(at, ',')) != NULL)
            *at++ = '\0';
    }
    return 0;
}

/* 1: a row, 0: the end, -1: nothing more can be read. */
static int next_row(struct csv *c, struct error *err)
{
    if (fgets(c->line, sizeof c->line, c->file) == NULL)
        return ferror(c->file) ? error_set(err, ERROR_IO, "cannot be read") : 0;
    c->number++;
    if (strchr(c->line, '\n') == NULL && !feof(c->file))
        return error_set(err, ERROR_TOO_LARGE, "line %zu: longer than %d bytes", c->number,
                         CSV_LINE);
    if (c->number > CSV_ROWS_MAX)
        return error_set(err, ERROR_TOO_LARGE, "more than %d lines", CSV_ROWS_MAX);
    if (split(c, err) < 0)
        return error_wrap(err, "line %zu", c->number);
    return 1;
}

const char *csv_cell(const struct csv *c, const char *name)
{
    for (size_t i = 0; i < c->names_len; i++)
        if (str_eq(c->names[i], name))
            return i < c->len ? c->cells[i] : NULL;
    return NULL;
}

int csv_number(const struct csv *c, const char *name, int64_t max, int64_t *out, struct error *err)
{
    const char *text = csv_cell(c, name);
    if (text == NULL)
        return error_set(err, ERROR_INVALID, "%s: missing", name);
    if (num_parse_range(text, 0, max, out, err) < 0)
        return error_wrap(err, "%s", name);
    return 0;
}

static int check_columns(const struct csv *c, const char *const *needed, struct error *err)
{
    for (; *needed != NULL; needed++) {
        size_t i = 0;
        while (i < c->names_len && !str_eq(c->names[i], *needed))
            i++;
        if (i == c->names_len)
            return error_set(err, ERROR_INVALID, "line 1: there is no column %s", *needed);
    }
    return 0;
}

static int read_rows(struct csv *c, const char *const *needed,
                     int (*take)(struct csv *c, struct error *err), struct csv_warn warn,
                     struct error *err)
{
    int rc = next_row(c, err);
    if (rc <= 0)
        return rc < 0 ? rc : error_set(err, ERROR_INVALID, "is empty");
    memcpy(c->head, c->line, sizeof c->head);
    for (c->names_len = 0; c->names_len < c->len; c->names_len++)
        c->names[c->names_len] = c->head + (c->cells[c->names_len] - c->line);
    if (check_columns(c, needed, err) < 0)
        return -1;
    while ((rc = next_row(c, err)) > 0) {
        struct error row = ERROR_INIT;
        if (c->len == 1 && c->cells[0][0] == '\0')
            continue;
        if (take(c, &row) < 0) {
            AUTO_STRBUF b = {0};
            strbuf_addf(&b, "%s: line %zu: %s", c->path, c->number, row.text);
            warn.fn(warn.arg, strbuf_str(&b));
        }
    }
    return rc;
}

int csv_read(const char *path, const char *const *needed,
             int (*take)(struct csv *c, struct error *err), void *arg, struct csv_warn warn,
             struct error *err)
{
    struct csv c = {.path = path, .arg = arg};
    c.file = fopen(path, "re");
    if (c.file == NULL)
        return error_set(err, ERROR_NOT_FOUND, "%s: cannot be opened", path);
    int rc = read_rows(&c, needed, take, warn, err);
    (void)fclose(c.file);
    return rc < 0 ? error_wrap(err, "%s", path) : 0;
}
