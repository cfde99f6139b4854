// SPDX-License-Identifier: Apache-2.0
/* Values, environment and command line; options_help.c prints --help. Fallbacks are stored first,
 * then the command line, then the environment for rows the command line did not set. So --help
 * works with a broken environment, and an overridden variable is never parsed. */
#include "lib/base/options.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/log.h"
#include "lib/base/num.h"

/* The Makefile passes VERSION as a bare token, so no shell has to quote it. */
#define TEXT_OF(token) #token
#define TEXT(macro) TEXT_OF(macro)

enum { NAME_MAX_LEN = 64, ROWS_MAX = 256 };

struct unit {
    const char *name;
    int64_t factor;
};

const struct option_row log_option_rows[] = {
    {.section = "LOGGING"},
    {.name = "log-level",
     .kind = OPTION_CHOICE,
     .offset = offsetof(struct log_options, level),
     .fallback = "info",
     .choices = "debug|info|warn|error",
     .meta = "LEVEL",
     .help = "The least important lines that are written."},
    {.name = "log-format",
     .kind = OPTION_CHOICE,
     .offset = offsetof(struct log_options, format),
     .fallback = "text",
     .choices = "text|json",
     .meta = "FORMAT",
     .help = "key=value pairs, or one JSON object per line."},
    {0},
};

void options_apply_log(const struct log_options *o, const char *program)
{
    log_setup((enum log_level)o->level, (enum log_format)o->format, program);
}

const char *options_version(void)
{
    return TEXT(COSCHED_VERSION);
}

void options_variable(const struct option_row *row, char out[OPTIONS_VARIABLE_SIZE])
{
    str_format(out, OPTIONS_VARIABLE_SIZE, "COSCHED_%s", row->name);
    for (char *c = out; *c != '\0'; c++) {
        if (*c == '-')
            *c = '_';
        else if (*c >= 'a' && *c <= 'z')
            *c = (char)(*c - 'a' + 'A');
    }
}

/* Uses the largest unit that divides n. */
static void add_amount(const struct option_row *row, int64_t n, struct strbuf *out)
{
    static const struct {
        const char *name;
        int64_t factor;
    } units[2][4] = {{{"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}},
                     {{"GiB", 1024 * 1024 * 1024}, {"MiB", 1024 * 1024}, {"KiB", 1024}, {"", 1}}};
    if (n == 0 || (row->kind != OPTION_DURATION && row->kind != OPTION_SIZE)) {
        strbuf_addf(out, "%lld", (long long)n);
        return;
    }
    size_t i = 0;
    while (i < 3 && n % units[row->kind == OPTION_SIZE][i].factor != 0)
        i++;
    strbuf_addf(out, "%lld%s", (long long)(n / units[row->kind == OPTION_SIZE][i].factor),
                units[row->kind == OPTION_SIZE][i].name);
}

void options_add_bounds(const struct option_row *row, struct strbuf *out)
{
    add_amount(row, row->min, out);
    strbuf_adds(out, " and ");
    add_amount(row, row->max, out);
}

/* Digits, then one of the units, or none if the list has "". */
static int parse_with_unit(const char *s, const struct unit *units, const char *what, int64_t *out,
                           struct error *err)
{
    size_t digits = strspn(s, "0123456789");
    int64_t n;
    if (digits == 0)
        return error_set(err, ERROR_INVALID, "not %s: '%s'", what, s);
    if (num_parse(s, digits, &n, err) < 0)
        return -1;
    for (const struct unit *u = units; u->name != NULL; u++) {
        if (strcmp(s + digits, u->name) != 0)
            continue;
        if (!num_mul(n, u->factor, out))
            return error_set(err, ERROR_RANGE, "too large: '%s'", s);
        return 0;
    }
    if (n == 0 && s[digits] == '\0') {
        *out = 0;
        return 0;
    }
    return error_set(err, ERROR_INVALID, "not %s: '%s'", what, s);
}

int options_parse_duration(const char *s, int64_t *ms, struct error *err)
{
    static const struct unit units[] = {
        {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {NULL, 0}};
    return parse_with_unit(s, units, "a duration (500ms, 10s, 15m, 2h)", ms, err);
}

int options_parse_size(const char *s, int64_t *bytes, struct error *err)
{
    static const struct unit units[] = {
        {"", 1}, {"KiB", 1024}, {"MiB", 1024 * 1024}, {"GiB", 1024 * 1024 * 1024}, {NULL, 0}};
    return parse_with_unit(s, units, "a size (4096, 64KiB, 16MiB, 1GiB)", bytes, err);
}

static int parse_choice(const char *choices, const char *s, int *out, struct error *err)
{
    size_t n = strlen(s);
    int i = 0;
    for (const char *c = choices;; i++) {
        size_t len = strcspn(c, "|");
        if (len == n && memcmp(c, s, n) == 0) {
            *out = i;
            return 0;
        }
        c += len;
        if (*c++ == '\0')
            return error_set(err, ERROR_INVALID, "must be one of %s: '%s'", choices, s);
    }
}

static int parse_bool(const char *s, bool *out, struct error *err)
{
    *out = str_eq(s, "true");
    if (!*out && !str_eq(s, "false"))
        return error_set(err, ERROR_INVALID, "must be true or false: '%s'", s);
    return 0;
}

static int in_bounds(const struct option_row *row, int64_t n, const char *s, struct error *err)
{
    if ((row->min == 0 && row->max == 0) || (n >= row->min && n <= row->max))
        return 0;
    AUTO_STRBUF bounds = {0};
    options_add_bounds(row, &bounds);
    return error_set(err, ERROR_RANGE, "must be between %s: '%s'", strbuf_str(&bounds), s);
}

/* Parses s into the row's field in target. */
static int store(const struct option_row *row, void *target, const char *s, struct error *err)
{
    void *field = (char *)target + row->offset;
    int64_t n = 0;
    int rc;
    switch (row->kind) {
    case OPTION_STRING:
        *(const char **)field = s;
        return 0;
    case OPTION_BOOL:
        return parse_bool(s, field, err);
    case OPTION_CHOICE:
        return parse_choice(row->choices, s, field, err);
    case OPTION_DURATION:
        rc = options_parse_duration(s, &n, err);
        break;
    case OPTION_SIZE:
        rc = options_parse_size(s, &n, err);
        break;
    case OPTION_INT:
    default:
        rc = num_parse(s, strlen(s), &n, err);
        break;
    }
    if (rc < 0 || in_bounds(row, n, s, err) < 0)
        return -1;
    *(int64_t *)field = n;
    return 0;
}

static void store_nothing(const struct option_row *row, void *target)
{
    void *field = (char *)target + row->offset;
    switch (row->kind) {
    case OPTION_STRING:
        *(const char **)field = NULL;
        return;
    case OPTION_BOOL:
        *(bool *)field = false;
        return;
    case OPTION_CHOICE:
        *(int *)field = 0;
        return;
    case OPTION_INT:
    case OPTION_DURATION:
    case OPTION_SIZE:
        *(int64_t *)field = 0;
        return;
    }
}

/* A row of a table. number counts all rows of all tables, for the `seen` array. */
struct cursor {
    const struct option_table *table;
    const struct option_row *row;
    size_t number;
};

/* for (struct cursor c = {.table = tables}; next_row(&c);). Skips headings. */
static bool next_row(struct cursor *c)
{
    for (;;) {
        if (c->table->rows == NULL)
            return false;
        if (c->row == NULL) {
            c->row = c->table->rows;
        } else {
            c->row++;
            c->number++;
        }
        if (c->row->name != NULL)
            return true;
        if (c->row->section == NULL) {
            c->row = NULL;
            c->table++;
        }
    }
}

static bool find_row(const struct option_table *tables, const char *name, size_t n,
                     struct cursor *out)
{
    for (struct cursor c = {.table = tables}; next_row(&c);) {
        if (strlen(c.row->name) == n && memcmp(c.row->name, name, n) == 0) {
            *out = c;
            return true;
        }
    }
    return false;
}

/* Levenshtein distance; SIZE_MAX for names longer than NAME_MAX_LEN. */
static size_t distance(const char *a, size_t a_len, const char *b)
{
    size_t b_len = strlen(b);
    size_t row[NAME_MAX_LEN + 1];
    if (a_len > NAME_MAX_LEN || b_len > NAME_MAX_LEN)
        return SIZE_MAX;
    for (size_t j = 0; j <= b_len; j++)
        row[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[b_len];
}

/* Replaces *nearest if candidate is nearer. A prefix of a name counts like one wrong letter. */
static void consider(const char *name, size_t n, const char *candidate, const char **nearest,
                     size_t *best)
{
    size_t d = distance(name, n, candidate);
    if (n > 1 && d > 1 && strncmp(name, candidate, n) == 0)
        d = 1;
    if (d < *best) {
        *best = d;
        *nearest = candidate;
    }
}

static int unknown_flag(const struct option_table *tables, const char *name, size_t n,
                        struct error *err)
{
    const char *nearest = NULL;
    size_t best = 1 + (n <= 3 ? n / 2 : n < 9 ? 2 : n / 3);
    consider(name, n, "help", &nearest, &best);
    consider(name, n, "version", &nearest, &best);
    for (struct cursor c = {.table = tables}; next_row(&c);)
        consider(name, n, c.row->name, &nearest, &best);
    int shown = (int)num_min((int64_t)n, 2 * NAME_MAX_LEN);
    if (nearest != NULL)
        return error_set(err, ERROR_INVALID, "unknown option --%.*s (did you mean --%s?)", shown,
                         name, nearest);
    return error_set(err, ERROR_INVALID, "unknown option --%.*s", shown, name);
}

/* Parses argv[*i], "--...", and moves *i past its value. */
static int parse_flag(const struct option_table *tables, int argc, char **argv, int *i, bool *seen,
                      struct error *err)
{
    const char *name = argv[*i] + 2;
    size_t n = strcspn(name, "=");
    const char *value = name[n] == '=' ? name + n + 1 : NULL;
    struct cursor c = {0};
    bool negated = false;
    if (!find_row(tables, name, n, &c)) {
        if (!str_starts(name, "no-") || !find_row(tables, name + 3, n - 3, &c) ||
            c.row->kind != OPTION_BOOL)
            return unknown_flag(tables, name, n, err);
        negated = true;
    }
    seen[c.number] = true;
    if (negated && value != NULL)
        return error_set(err, ERROR_INVALID, "--no-%s takes no value", c.row->name);
    if (value == NULL && c.row->kind == OPTION_BOOL) {
        value = negated ? "false" : "true";
    } else if (value == NULL) {
        if (*i + 1 >= argc)
            return error_set(err, ERROR_INVALID, "--%s needs a value", c.row->name);
        value = argv[++*i];
    }
    if (store(c.row, c.table->target, value, err) < 0)
        return error_wrap(err, "--%s", c.row->name);
    return 0;
}

static int print(const struct strbuf *text, struct error *err)
{
    if (fwrite(text->ptr, 1, text->len, stdout) != text->len || fflush(stdout) != 0)
        return error_errno(err, errno, "standard output");
    return 0;
}

static int store_fallbacks(const struct option_table *tables, struct error *err)
{
    for (struct cursor c = {.table = tables}; next_row(&c);) {
        assert(c.number < ROWS_MAX);
        if (c.row->fallback == NULL)
            store_nothing(c.row, c.table->target);
        else if (store(c.row, c.table->target, c.row->fallback, err) < 0)
            return error_wrap(err, "default of --%s", c.row->name);
    }
    return 0;
}

static int store_environment(const struct option_table *tables, const bool *seen, struct error *err)
{
    for (struct cursor c = {.table = tables}; next_row(&c);) {
        if (seen[c.number])
            continue;
        char variable[OPTIONS_VARIABLE_SIZE];
        options_variable(c.row, variable);
        const char *value = getenv(variable);
        if (value != NULL && *value != '\0') {
            if (store(c.row, c.table->target, value, err) < 0)
                return error_wrap(err, "environment variable %s", variable);
        } else if (c.row->required) {
            return error_set(err, ERROR_INVALID, "--%s is required (or environment variable %s)",
                             c.row->name, variable);
        }
    }
    return 0;
}

/* Moves argv[i] to an earlier position; those between move up by one. */
static void move_forward(char **argv, int i, int to)
{
    char *moved = argv[i];
    memmove(&argv[to + 1], &argv[to], (size_t)(i - to) * sizeof *argv);
    argv[to] = moved;
}

enum options_result options_parse(const struct option_program *program,
                                  const struct option_table *tables, int argc, char **argv,
                                  struct options_operands *operands, struct error *err)
{
    bool seen[ROWS_MAX] = {false};
    if (store_fallbacks(tables, err) < 0)
        return OPTIONS_ERROR;

    int found = 0;
    bool flags = true;
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        if (flags && (str_eq(arg, "--help") || str_eq(arg, "--version"))) {
            AUTO_STRBUF text = {0};
            if (str_eq(arg, "--help"))
                options_help(program, tables, &text);
            else
                strbuf_addf(&text, "%s %s\n", program->name, options_version());
            return print(&text, err) < 0 ? OPTIONS_ERROR : OPTIONS_EXIT;
        }
        if (flags && str_eq(arg, "--")) {
            flags = false;
        } else if (flags && str_starts(arg, "--")) {
            if (parse_flag(tables, argc, argv, &i, seen, err) < 0)
                return OPTIONS_ERROR;
        } else if (flags && arg[0] == '-' && arg[1] != '\0') {
            error_set(err, ERROR_INVALID, "unknown option %s (options begin with --)", arg);
            return OPTIONS_ERROR;
        } else if ((size_t)found >= program->max_operands) {
            error_set(err, ERROR_INVALID, "unexpected operand '%s'", arg);
            return OPTIONS_ERROR;
        } else {
            move_forward(argv, i, 1 + found++);
        }
    }
    if (store_environment(tables, seen, err) < 0)
        return OPTIONS_ERROR;
    if (operands != NULL)
        *operands = (struct options_operands){.items = (const char *const *)&argv[argc > 0 ? 1 : 0],
                                              .len = (size_t)found};
    return OPTIONS_RUN;
}
