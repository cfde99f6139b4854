// SPDX-License-Identifier: Apache-2.0
/*
 * options - one table row per option: flag, environment variable, default, bounds, help.
 *
 *     struct opts { int64_t port; const char *node; bool lead; } o;
 *     static const struct option_row rows[] = {
 *         {.name = "port", .kind = OPTION_INT, .offset = offsetof(struct opts, port),
 *          .fallback = "8080", .min = 0, .max = 65535, .meta = "N",
 *          .help = "Port of /metrics, /healthz and /readyz; 0 takes a free one."},
 *         {.section = "LEADER ELECTION"},       // a heading of its own in --help
 *         ...
 *         {0}};
 *
 * The environment variable of --lease-name is COSCHED_LEASE_NAME; a flag overrides it, and an empty
 * variable counts as unset. Forms: --name=value, --name value; booleans --name, --no-name,
 * --name=true|false. "--" ends the flags; the last of repeated flags wins. Unknown flags,
 * unexpected operands and values out of bounds are errors. A program may have several tables (its
 * own and its libraries'), each with its own target struct.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/arena.h"
#include "lib/base/error.h"
#include "lib/base/str.h"

enum option_kind {
    OPTION_STRING,   /* const char *, from fallback, argv or environment; NULL without any */
    OPTION_INT,      /* int64_t, within min..max */
    OPTION_BOOL,     /* bool */
    OPTION_DURATION, /* int64_t milliseconds: "500ms", "10s", "15m", "2h"; min..max in ms */
    OPTION_SIZE,     /* int64_t bytes: "4096", "64KiB", "16MiB", "1GiB"; min..max in bytes */
    OPTION_CHOICE,   /* int: index in choices ("a|b|c") */
};

struct option_row {
    const char *name; /* NULL: heading (section set) or end of the table */
    const char *section;
    enum option_kind kind;
    size_t offset;
    const char *fallback; /* parsed like a value; NULL: unset/0/false */
    int64_t min, max;     /* both 0: no bounds */
    const char *choices;
    const char *meta; /* placeholder in --help: "FILE" */
    const char *help;
    bool required;
};

struct option_table {
    const struct option_row *rows;
    void *target;
};

struct option_program {
    const char *name;        /* "cosched-scheduler" */
    const char *summary;     /* one line, for NAME */
    const char *synopsis;    /* after the name: "[OPTION]..." */
    const char *description; /* paragraphs, filled; lines that begin with 4 blanks are kept */
    /* more sections, kept verbatim (SIGNALS, EXAMPLES, FILES), or NULL */
    const char *trailer;
    size_t max_operands;
};

enum options_result { OPTIONS_ERROR = -1, OPTIONS_RUN = 0, OPTIONS_EXIT = 1 };

struct options_operands {
    const char *const *items; /* borrowed from argv */
    size_t len;
};

/* Fills the targets. OPTIONS_EXIT: --help or --version was printed; exit with 0. OPTIONS_ERROR: err
 * names the option; print it with "try --help" and exit with 2. tables ends with rows == NULL. argv
 * is reordered: operands first, in their order. operands may be NULL if max_operands is 0. */
enum options_result options_parse(const struct option_program *program,
                                  const struct option_table *tables, int argc, char **argv,
                                  struct options_operands *operands, struct error *err);
/* The text of --help, like a man page. */
void options_help(const struct option_program *program, const struct option_table *tables,
                  struct strbuf *out);

/* The row's environment variable, "COSCHED_LEASE_NAME". */
enum { OPTIONS_VARIABLE_SIZE = 80 };
void options_variable(const struct option_row *row, char out[OPTIONS_VARIABLE_SIZE]);
/* The row's bounds in its own unit, "1s and 15m". */
void options_add_bounds(const struct option_row *row, struct strbuf *out);

/* "1.2.3 (abcdef0)", set by the build. */
const char *options_version(void);

/* Rows of every program (--log-level, --log-format); options_apply_log applies them. */
struct log_options {
    int level;
    int format;
};
extern const struct option_row log_option_rows[];
void options_apply_log(const struct log_options *o, const char *program);

/* Both reject signs, blanks, fractions, unknown units and overflow. A duration needs a unit, except
 * "0". */
int options_parse_duration(const char *s, int64_t *ms, struct error *err);
int options_parse_size(const char *s, int64_t *bytes, struct error *err);
