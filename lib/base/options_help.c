// SPDX-License-Identifier: Apache-2.0
/* Generates --help from the rows, laid out like a man page in 80 columns: headings at the margin,
 * text at column 7, an option's help at column 14, ending with default, bounds and variable. */
#include <string.h>

#include "lib/base/options.h"

enum { WIDTH = 80, TEXT_COLUMN = 7, HELP_COLUMN = 14, AS_WRITTEN = 4 };

static void indent(struct strbuf *out, size_t n)
{
    while (n-- > 0)
        strbuf_addc(out, ' ');
}

/* Output position of a paragraph's words. */
struct flow {
    struct strbuf *out;
    size_t column;
    size_t at; /* 0: new line */
};

static void end_line(struct flow *f)
{
    if (f->at > 0)
        strbuf_addc(f->out, '\n');
    f->at = 0;
}

static void add_words(struct flow *f, const char *line, size_t n)
{
    for (size_t i = 0; i < n;) {
        if (line[i] == ' ') {
            i++;
            continue;
        }
        size_t word = 0;
        while (i + word < n && line[i + word] != ' ')
            word++;
        if (f->at > 0 && f->at + 1 + word > WIDTH)
            end_line(f);
        if (f->at == 0) {
            indent(f->out, f->column);
            f->at = f->column;
        } else {
            strbuf_addc(f->out, ' ');
            f->at++;
        }
        strbuf_add(f->out, line + i, word);
        f->at += word;
        i += word;
    }
}

/* Fills paragraphs to WIDTH columns; an empty line ends one. A line that begins with AS_WRITTEN
 * blanks or more (a table row, an example) is kept. */
static void add_wrapped(struct strbuf *out, const char *text, size_t column)
{
    struct flow f = {.out = out, .column = column};
    for (const char *line = text; *line != '\0';) {
        size_t n = strcspn(line, "\n"), blanks = strspn(line, " ");
        if (blanks == n || blanks >= AS_WRITTEN)
            end_line(&f);
        if (blanks == n) {
            strbuf_addc(out, '\n');
        } else if (blanks >= AS_WRITTEN) {
            indent(out, column);
            strbuf_add(out, line, n);
            strbuf_addc(out, '\n');
        } else {
            add_words(&f, line, n);
        }
        line += n + (line[n] == '\n');
    }
    end_line(&f);
}

static void add_section(struct strbuf *out, const char *heading, const char *text)
{
    strbuf_addf(out, "\n%s\n", heading);
    add_wrapped(out, text, TEXT_COLUMN);
}

static void add_option(struct strbuf *out, const struct option_row *row, bool first)
{
    if (!first)
        strbuf_addc(out, '\n');
    indent(out, TEXT_COLUMN);
    if (row->kind == OPTION_BOOL)
        strbuf_addf(out, "--%s, --no-%s\n", row->name, row->name);
    else
        strbuf_addf(out, "--%s=%s\n", row->name, row->meta != NULL ? row->meta : "VALUE");

    AUTO_STRBUF text = {0};
    strbuf_adds(&text, str_or_empty(row->help));
    if (row->choices != NULL)
        strbuf_addf(&text, " One of %s.", row->choices);
    if (row->min != 0 || row->max != 0) {
        strbuf_adds(&text, " Between ");
        options_add_bounds(row, &text);
        strbuf_addc(&text, '.');
    }
    if (row->required)
        strbuf_adds(&text, " Required.");
    else if (row->kind == OPTION_BOOL)
        strbuf_addf(&text, " Default: %s.", row->fallback != NULL ? row->fallback : "false");
    else if (row->fallback != NULL && row->fallback[0] != '\0')
        strbuf_addf(&text, " Default: %s.", row->fallback);
    add_wrapped(out, strbuf_str(&text), HELP_COLUMN);
}

/* Rows before a table's first heading go under OPTIONS, others under their own headings. */
static void add_options(struct strbuf *out, const struct option_table *tables)
{
    strbuf_adds(out, "\nOPTIONS\n"
                     "       --help\n              Prints this text.\n\n"
                     "       --version\n              Prints the version.\n");
    for (const struct option_table *t = tables; t->rows != NULL; t++)
        for (const struct option_row *row = t->rows; row->name != NULL; row++)
            add_option(out, row, false);
    for (const struct option_table *t = tables; t->rows != NULL; t++) {
        const struct option_row *row = t->rows;
        while (row->name != NULL)
            row++;
        for (; row->name != NULL || row->section != NULL; row++) {
            if (row->name == NULL)
                strbuf_addf(out, "\n%s\n", row->section);
            else
                add_option(out, row, row[-1].name == NULL);
        }
    }
}

void options_help(const struct option_program *program, const struct option_table *tables,
                  struct strbuf *out)
{
    strbuf_adds(out, "NAME\n");
    AUTO_STRBUF line = {0};
    strbuf_addf(&line, "%s - %s", program->name, program->summary);
    add_wrapped(out, strbuf_str(&line), TEXT_COLUMN);
    strbuf_reset(&line);
    strbuf_addf(&line, "%s %s", program->name, str_or_empty(program->synopsis));
    add_section(out, "SYNOPSIS", strbuf_str(&line));
    if (program->description != NULL)
        add_section(out, "DESCRIPTION", program->description);
    add_options(out, tables);
    add_section(
        out, "ENVIRONMENT",
        "Each option can also be given by a variable: COSCHED_ and the option's name in capitals, with _ for -, so --log-level is "
        "COSCHED_LOG_LEVEL. A flag wins over a variable; an empty variable counts as not set.");
    if (program->trailer == NULL || strstr(program->trailer, "EXIT STATUS") == NULL)
        add_section(out, "EXIT STATUS",
                    "0 when it ended as asked, 1 after a failure, 2 when an option is wrong.");
    if (program->trailer != NULL) {
        strbuf_addf(out, "\n%s", program->trailer);
        if (!str_ends(program->trailer, "\n"))
            strbuf_addc(out, '\n');
    }
}
