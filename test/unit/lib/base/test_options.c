// SPDX-License-Identifier: Apache-2.0
#include "lib/base/options.h"

#include <fcntl.h>
#include <stdio.h>

#include "lib/base/log.h"
#include "test/unit/lib/base/expect.h"

struct target {
    int64_t port;
    const char *node;
    const char *file;
    bool lead;
    bool quiet;
    int64_t wait_ms;
    int64_t buffer_bytes;
    int policy;
    int64_t offset;
};

static struct target o;
static struct log_options lo;
static struct {
    const char *must;
} second;

static const struct option_row rows[] = {
    {.name = "port",
     .kind = OPTION_INT,
     .offset = offsetof(struct target, port),
     .fallback = "8080",
     .min = 0,
     .max = 65535,
     .meta = "N",
     .help =
         "Port of the things; this help is long enough that it has to go over more than one line."},
    {.name = "offset",
     .kind = OPTION_INT,
     .offset = offsetof(struct target, offset),
     .help = "Unbounded."},
    {.name = "node",
     .kind = OPTION_STRING,
     .offset = offsetof(struct target, node),
     .fallback = "n1"},
    {.section = "LEADER ELECTION"},
    {.name = "lease-file",
     .kind = OPTION_STRING,
     .offset = offsetof(struct target, file),
     .meta = "FILE",
     .help = "A file."},
    {.name = "lead",
     .kind = OPTION_BOOL,
     .offset = offsetof(struct target, lead),
     .fallback = "true",
     .help = "Take the lead."},
    {.name = "quiet",
     .kind = OPTION_BOOL,
     .offset = offsetof(struct target, quiet),
     .help = "Be quiet."},
    {.section = "LIMITS"},
    {.name = "wait",
     .kind = OPTION_DURATION,
     .offset = offsetof(struct target, wait_ms),
     .fallback = "10s",
     .min = 500,
     .max = 7200000,
     .help = "How long."},
    {.name = "buffer",
     .kind = OPTION_SIZE,
     .offset = offsetof(struct target, buffer_bytes),
     .fallback = "64KiB",
     .min = 1,
     .max = 1073741824,
     .help = "How much."},
    {.name = "policy",
     .kind = OPTION_CHOICE,
     .offset = offsetof(struct target, policy),
     .choices = "none|spread|pack",
     .fallback = "spread",
     .help = "Which."},
    {0},
};
static const struct option_row second_rows[] = {
    {.name = "must", .kind = OPTION_STRING, .required = true, .help = "Needed."},
    {0},
};
static const struct option_table tables[] = {{rows, &o}, {log_option_rows, &lo}, {0}};
static const struct option_table tables_with_required[] = {{second_rows, &second}, {rows, &o}, {0}};

static const struct option_program program = {
    .name = "cosched-test",
    .summary = "tests the options",
    .synopsis = "[OPTION]... [FILE]...",
    .description =
        "One paragraph that is longer than a line of the terminal, and therefore has to be "
        "wrapped.\n\nAnother.\n    indented as written",
    .trailer = "SIGNALS\n       SIGTERM ends it.",
    .max_operands = 3,
};

static int clean(void **state)
{
    (void)state;
    for (const struct option_table *t = tables_with_required; t->rows != NULL; t++)
        for (const struct option_row *r = t->rows; r->name != NULL || r->section != NULL; r++) {
            char variable[OPTIONS_VARIABLE_SIZE];
            if (r->name != NULL) {
                options_variable(r, variable);
                unsetenv(variable);
            }
        }
    memset(&o, 0xff, sizeof o);
    return 0;
}

/* Parses a line of blank-separated arguments. */
static enum options_result parse(const struct option_table *t, const char *line, char **argv,
                                 struct options_operands *operands, struct error *err)
{
    static char copy[1024];
    str_format(copy, sizeof copy, "%s", line);
    int argc = 0;
    static char self[] = "cosched-test";
    argv[argc++] = self;
    for (char *s = copy; *s != '\0';) {
        argv[argc++] = s;
        s += strcspn(s, " ");
        if (*s != '\0')
            *s++ = '\0';
    }
    argv[argc] = NULL;
    return options_parse(&program, t, argc, argv, operands, err);
}

static void without_flags_the_fallbacks_count(void **state)
{
    (void)state;
    char *argv[32];
    struct error err = ERROR_INIT;
    expect_int("runs", OPTIONS_RUN, parse(tables, "", argv, NULL, &err));
    expect_str("no error", "", err.text);
    expect_int("port", 8080, o.port);
    expect_int("no fallback: 0", 0, o.offset);
    expect_str("node", "n1", o.node);
    expect_str("no fallback: NULL", NULL, o.file);
    expect_int("lead", true, o.lead);
    expect_int("no fallback: false", false, o.quiet);
    expect_int("wait", 10000, o.wait_ms);
    expect_int("buffer", 65536, o.buffer_bytes);
    expect_int("policy", 1, o.policy);
    expect_int("log level", LOG_INFO, lo.level);
    expect_int("log format", LOG_TEXT, lo.format);
    expect_done();
}

static void flags_take_their_values_in_all_forms(void **state)
{
    (void)state;
    static const struct {
        const char *row, *line;
        int64_t port;
        const char *node;
        bool lead;
        int64_t wait_ms, buffer_bytes;
        int policy;
    } cases[] = {
        {"with =", "--port=1", 1, "n1", true, 10000, 65536, 1},
        {"with a blank", "--port 1", 1, "n1", true, 10000, 65536, 1},
        {"the last one counts", "--port 1 --port=2", 2, "n1", true, 10000, 65536, 1},
        {"the smallest", "--port=0", 0, "n1", true, 10000, 65536, 1},
        {"the largest", "--port=65535", 65535, "n1", true, 10000, 65536, 1},
        {"an empty string", "--node=", 8080, "", true, 10000, 65536, 1},
        {"a string with =", "--node=a=b", 8080, "a=b", true, 10000, 65536, 1},
        {"a value that looks like a flag", "--node --port", 8080, "--port", true, 10000, 65536, 1},
        {"a boolean off", "--no-lead", 8080, "n1", false, 10000, 65536, 1},
        {"a boolean on again", "--no-lead --lead", 8080, "n1", true, 10000, 65536, 1},
        {"a boolean by value", "--lead=false", 8080, "n1", false, 10000, 65536, 1},
        {"the other value", "--lead=false --lead=true", 8080, "n1", true, 10000, 65536, 1},
        {"the shortest wait", "--wait 500ms", 8080, "n1", true, 500, 65536, 1},
        {"the longest wait", "--wait 2h", 8080, "n1", true, 7200000, 65536, 1},
        {"the largest buffer", "--buffer=1GiB", 8080, "n1", true, 10000, 1073741824, 1},
        {"the first choice", "--policy=none", 8080, "n1", true, 10000, 65536, 0},
        {"the last choice", "--policy pack", 8080, "n1", true, 10000, 65536, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *argv[32];
        struct error err = ERROR_INIT;
        expect_int(cases[i].row, OPTIONS_RUN, parse(tables, cases[i].line, argv, NULL, &err));
        expect_str(cases[i].row, "", err.text);
        expect_int(cases[i].row, cases[i].port, o.port);
        expect_str(cases[i].row, cases[i].node, o.node);
        expect_int(cases[i].row, cases[i].lead, o.lead);
        expect_int(cases[i].row, cases[i].wait_ms, o.wait_ms);
        expect_int(cases[i].row, cases[i].buffer_bytes, o.buffer_bytes);
        expect_int(cases[i].row, cases[i].policy, o.policy);
    }
    expect_done();
}

static void what_is_wrong_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *row, *line, *error;
    } cases[] = {
        {"one letter off", "--prot=1", "unknown option --prot (did you mean --port?)"},
        {"a letter too many", "--policyy", "unknown option --policyy (did you mean --policy?)"},
        {"nearly help", "--hepl", "unknown option --hepl (did you mean --help?)"},
        {"nearly version", "--versoin", "unknown option --versoin (did you mean --version?)"},
        {"far from everything", "--xyzzyx", "unknown option --xyzzyx"},
        {"only = after the dashes", "--=5", "unknown option --"},
        {"an abbreviation is not accepted", "--pol=none",
         "unknown option --pol (did you mean --policy?)"},
        {"a short name that is far", "--a", "unknown option --a"},
        {"a name that only begins like one", "--portable=1", "unknown option --portable"},
        {"no- for what is no boolean", "--no-port", "unknown option --no-port"},
        {"a short option", "-p", "unknown option -p (options begin with --)"},
        {"no value at the end", "--port", "--port needs a value"},
        {"a value for no-", "--no-lead=true", "--no-lead takes no value"},
        {"a boolean that is none", "--lead=yes", "--lead: must be true or false: 'yes'"},
        {"below", "--port=-1", "--port: must be between 0 and 65535: '-1'"},
        {"above", "--port=65536", "--port: must be between 0 and 65535: '65536'"},
        {"no number", "--port=4x", "--port: not an integer: '4x'"},
        {"no number at all", "--port=", "--port: not an integer: ''"},
        {"too short", "--wait=499ms", "--wait: must be between 500ms and 2h: '499ms'"},
        {"too long", "--wait=121m", "--wait: must be between 500ms and 2h: '121m'"},
        {"no unit", "--wait=5", "--wait: not a duration (500ms, 10s, 15m, 2h): '5'"},
        {"nothing", "--buffer=0", "--buffer: must be between 1 and 1GiB: '0'"},
        {"a wrong unit", "--buffer=1kb", "--buffer: not a size (4096, 64KiB, 16MiB, 1GiB): '1kb'"},
        {"no choice", "--policy=sprea", "--policy: must be one of none|spread|pack: 'sprea'"},
        {"two choices", "--policy=none|spread",
         "--policy: must be one of none|spread|pack: 'none|spread'"},
        {"no choice at all", "--policy=", "--policy: must be one of none|spread|pack: ''"},
        {"too many operands", "a b c d", "unexpected operand 'd'"},
        {"after --, too", "a b -- --port d", "unexpected operand 'd'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *argv[32];
        struct error err = ERROR_INIT;
        struct options_operands operands;
        expect_int(cases[i].row, OPTIONS_ERROR,
                   parse(tables, cases[i].line, argv, &operands, &err));
        expect_str(cases[i].row, cases[i].error, err.text);
    }
    char long_name[300] = "--";
    memset(long_name + 2, 'z', sizeof long_name - 3);
    char *argv[32];
    expect_int("a very long name", OPTIONS_ERROR, parse(tables, long_name, argv, NULL, NULL));
    expect_done();
}

static void operands_keep_their_order(void **state)
{
    (void)state;
    static const struct {
        const char *row, *line;
        size_t n;
        const char *items[3];
        int64_t port;
    } cases[] = {
        {"none", "--port 1", 0, {NULL}, 1},
        {"between flags", "a --port 1 b --lead c", 3, {"a", "b", "c"}, 1},
        {"a single dash is an operand", "-", 1, {"-"}, 8080},
        {"after --", "--port 1 -- --port -x", 2, {"--port", "-x"}, 1},
        {"-- alone", "--", 0, {NULL}, 8080},
        {"-- after --", "-- --", 1, {"--"}, 8080},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *argv[32];
        struct error err = ERROR_INIT;
        struct options_operands operands = {0};
        expect_int(cases[i].row, OPTIONS_RUN, parse(tables, cases[i].line, argv, &operands, &err));
        expect_str(cases[i].row, "", err.text);
        expect_int(cases[i].row, (int64_t)cases[i].n, (int64_t)operands.len);
        for (size_t k = 0; k < operands.len && k < cases[i].n; k++)
            expect_str(cases[i].row, cases[i].items[k], operands.items[k]);
        expect_int(cases[i].row, cases[i].port, o.port);
    }
    expect_done();
}

static void the_environment_counts_where_no_flag_does(void **state)
{
    (void)state;
    char *argv[32];
    struct error err = ERROR_INIT;
    setenv("COSCHED_PORT", "99", 1);
    setenv("COSCHED_LEASE_FILE", "f", 1);
    setenv("COSCHED_LEAD", "false", 1);
    setenv("COSCHED_NODE", "", 1);
    expect_int("runs", OPTIONS_RUN, parse(tables, "", argv, NULL, &err));
    expect_int("port", 99, o.port);
    expect_str("a name with a dash", "f", o.file);
    expect_int("a boolean", false, o.lead);
    expect_str("an empty variable is no variable", "n1", o.node);
    expect_int("runs", OPTIONS_RUN, parse(tables, "--port=5 --lead", argv, NULL, &err));
    expect_int("the flag wins", 5, o.port);
    expect_int("the flag wins", true, o.lead);
    setenv("COSCHED_PORT", "many", 1);
    expect_int("a bad one", OPTIONS_ERROR, parse(tables, "", argv, NULL, &err));
    expect_str("is named", "environment variable COSCHED_PORT: not an integer: 'many'", err.text);
    error_clear(&err);
    expect_int("unless a flag wins", OPTIONS_RUN, parse(tables, "--port=6", argv, NULL, &err));
    expect_int("the flag", 6, o.port);
    expect_done();
}

static void what_is_required_must_come(void **state)
{
    (void)state;
    char *argv[32];
    struct error err = ERROR_INIT;
    expect_int("missing", OPTIONS_ERROR, parse(tables_with_required, "", argv, NULL, &err));
    expect_str("is named", "--must is required (or environment variable COSCHED_MUST)", err.text);
    expect_int("given", OPTIONS_RUN,
               parse(tables_with_required, "--must x --port 3", argv, NULL, &err));
    expect_str("by flag", "x", second.must);
    expect_int("the second table is filled, too", 3, o.port);
    setenv("COSCHED_MUST", "y", 1);
    expect_int("given", OPTIONS_RUN, parse(tables_with_required, "", argv, NULL, &err));
    expect_str("by variable", "y", second.must);
    expect_done();
}

static void a_wrong_fallback_is_our_own_mistake(void **state)
{
    (void)state;
    static const struct option_row wrong[] = {
        {.name = "n", .kind = OPTION_INT, .offset = offsetof(struct target, port), .fallback = "x"},
        {0}};
    const struct option_table t[] = {{wrong, &o}, {0}};
    char *argv[32];
    struct error err = ERROR_INIT;
    expect_int("an error", OPTIONS_ERROR, parse(t, "", argv, NULL, &err));
    expect_str("is named", "default of --n: not an integer: 'x'", err.text);
    expect_done();
}

static void durations_and_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int (*fn)(const char *, int64_t *, struct error *);
        int rc;
        int64_t value;
    } cases[] = {
        {"0", options_parse_duration, 0, 0},
        {"0s", options_parse_duration, 0, 0},
        {"1ms", options_parse_duration, 0, 1},
        {"10s", options_parse_duration, 0, 10000},
        {"15m", options_parse_duration, 0, 900000},
        {"2h", options_parse_duration, 0, 7200000},
        {"9223372036854775807ms", options_parse_duration, 0, INT64_MAX},
        {"9223372036854775808ms", options_parse_duration, -1, 0},
        {"9223372036854775807s", options_parse_duration, -1, 0},
        {"1", options_parse_duration, -1, 0},
        {"", options_parse_duration, -1, 0},
        {"s", options_parse_duration, -1, 0},
        {"-1s", options_parse_duration, -1, 0},
        {"+1s", options_parse_duration, -1, 0},
        {" 1s", options_parse_duration, -1, 0},
        {"1 s", options_parse_duration, -1, 0},
        {"1.5s", options_parse_duration, -1, 0},
        {"1m30s", options_parse_duration, -1, 0},
        {"1S", options_parse_duration, -1, 0},
        {"0", options_parse_size, 0, 0},
        {"4096", options_parse_size, 0, 4096},
        {"64KiB", options_parse_size, 0, 65536},
        {"16MiB", options_parse_size, 0, 16777216},
        {"1GiB", options_parse_size, 0, 1073741824},
        {"8589934591GiB", options_parse_size, 0, INT64_C(8589934591) * 1073741824},
        {"8589934592GiB", options_parse_size, -1, 0},
        {"64kib", options_parse_size, -1, 0},
        {"64K", options_parse_size, -1, 0},
        {"-1", options_parse_size, -1, 0},
        {"0x10", options_parse_size, -1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t value = 0;
        struct error err = ERROR_INIT;
        expect_int(cases[i].text, cases[i].rc, cases[i].fn(cases[i].text, &value, &err));
        expect_int(cases[i].text, cases[i].value, value);
        expect_int(cases[i].text, cases[i].rc != 0, err.text[0] != '\0');
    }
    expect_done();
}

static void help_is_a_manual_page(void **state)
{
    (void)state;
    AUTO_STRBUF out = {0};
    options_help(&program, tables, &out);
    static const char expected[] =
        "NAME\n"
        "       cosched-test - tests the options\n"
        "\n"
        "SYNOPSIS\n"
        "       cosched-test [OPTION]... [FILE]...\n"
        "\n"
        "DESCRIPTION\n"
        "       One paragraph that is longer than a line of the terminal, and therefore\n"
        "       has to be wrapped.\n"
        "\n"
        "       Another.\n"
        "           indented as written\n"
        "\n"
        "OPTIONS\n"
        "       --help\n"
        "              Prints this text.\n"
        "\n"
        "       --version\n"
        "              Prints the version.\n"
        "\n"
        "       --port=N\n"
        "              Port of the things; this help is long enough that it has to go\n"
        "              over more than one line. Between 0 and 65535. Default: 8080.\n"
        "\n"
        "       --offset=VALUE\n"
        "              Unbounded.\n"
        "\n"
        "       --node=VALUE\n"
        "              Default: n1.\n"
        "\n"
        "LEADER ELECTION\n"
        "       --lease-file=FILE\n"
        "              A file.\n"
        "\n"
        "       --lead, --no-lead\n"
        "              Take the lead. Default: true.\n"
        "\n"
        "       --quiet, --no-quiet\n"
        "              Be quiet. Default: false.\n"
        "\n"
        "LIMITS\n"
        "       --wait=VALUE\n"
        "              How long. Between 500ms and 2h. Default: 10s.\n"
        "\n"
        "       --buffer=VALUE\n"
        "              How much. Between 1 and 1GiB. Default: 64KiB.\n"
        "\n"
        "       --policy=VALUE\n"
        "              Which. One of none|spread|pack. Default: spread.\n"
        "\n"
        "LOGGING\n"
        "       --log-level=LEVEL\n"
        "              The least important lines that are written. One of\n"
        "              debug|info|warn|error. Default: info.\n"
        "\n"
        "       --log-format=FORMAT\n"
        "              key=value pairs, or one JSON object per line. One of text|json.\n"
        "              Default: text.\n"
        "\n"
        "ENVIRONMENT\n"
        "       Each option can also be given by a variable: COSCHED_ and the option's\n"
        "       name in capitals, with _ for -, so --log-level is COSCHED_LOG_LEVEL. A\n"
        "       flag wins over a variable; an empty variable counts as not set.\n"
        "\n"
        "EXIT STATUS\n"
        "       0 when it ended as asked, 1 after a failure, 2 when an option is wrong.\n"
        "\n"
        "SIGNALS\n"
        "       SIGTERM ends it.\n";
    expect_str("the page", expected, strbuf_str(&out));
    AUTO_STRBUF other = {0};
    struct option_program own = {
        .name = "x", .summary = "y", .trailer = "EXIT STATUS\n       3 always.\n"};
    options_help(&own, tables_with_required, &other);
    expect_true("required is said", strstr(other.ptr, "Needed. Required.\n"));
    expect_true("an own exit status replaces ours", strstr(other.ptr, "2 when an option") == NULL);
    expect_true("and stands at the end",
                str_ends(other.ptr, "\n\nEXIT STATUS\n       3 always.\n"));
    expect_true("no description, no heading", strstr(other.ptr, "DESCRIPTION") == NULL);
    expect_done();
}

static void paragraphs_are_filled_and_tables_are_not(void **state)
{
    (void)state;
    static const struct {
        const char *row, *text, *expected;
    } texts[] = {
        {"a line that ends in the source goes on on the page", "one\ntwo  three\n",
         "       one two three\n"},
        {"an empty line ends a paragraph", "one\n\ntwo", "       one\n\n       two\n"},
        {"a line of blanks is an empty one", "one\n   \ntwo", "       one\n\n       two\n"},
        {"four blanks: as written", "modes:\n    a, b    x\n    long  y\nend",
         "       modes:\n           a, b    x\n           long  y\n       end\n"},
        {"also beyond the width",
         "        0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789",
         "               0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789\n"},
        {"three blanks: part of the paragraph", "one\n   two", "       one two\n"},
        {"80 columns, and not one more",
         "0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456\nx 0123456789 0123456789 0123456789 0123456789 "
         "0123456789 0123456789 0123456",
         "       0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456\n"
         "       x 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789\n"
         "       0123456\n"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        AUTO_STRBUF out = {0}, expected = {0};
        struct option_program own = {.name = "x", .summary = "y", .description = texts[i].text};
        options_help(&own, tables, &out);
        strbuf_addf(&expected, "\n\nDESCRIPTION\n%s\nOPTIONS\n", texts[i].expected);
        if (strstr(strbuf_str(&out), strbuf_str(&expected)) == NULL)
            expect_str(texts[i].row, strbuf_str(&expected), strbuf_str(&out));
    }
    expect_done();
}

/* Standard output of a child that parses line; its status is 10 + the result. */
static int output_of(const char *line, int out_fd, struct strbuf *out)
{
    int ends[2];
    assert_int_equal(0, pipe2(ends, O_CLOEXEC));
    (void)fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(out_fd >= 0 ? out_fd : ends[1], STDOUT_FILENO);
        char *argv[32];
        _exit(10 + (int)parse(tables, line, argv, NULL, NULL));
    }
    close(ends[1]);
    char buf[512];
    for (ssize_t n; (n = read(ends[0], buf, sizeof buf)) > 0;)
        strbuf_add(out, buf, (size_t)n);
    close(ends[0]);
    int status = 0;
    assert_int_equal(child, waitpid(child, &status, 0));
    return WIFEXITED(status) ? WEXITSTATUS(status) - 10 : -100;
}

static void help_and_version_are_printed(void **state)
{
    (void)state;
    setenv("COSCHED_PORT", "broken", 1);
    AUTO_STRBUF help = {0}, version = {0}, nothing = {0}, expected = {0};
    expect_int("--help, whatever the environment", OPTIONS_EXIT,
               output_of("--help --unknown", -1, &help));
    options_help(&program, tables, &expected);
    expect_str("the page", strbuf_str(&expected), strbuf_str(&help));
    expect_int("--version", OPTIONS_EXIT, output_of("--version", -1, &version));
    strbuf_reset(&expected);
    strbuf_addf(&expected, "cosched-test %s\n", options_version());
    expect_str("name and version", strbuf_str(&expected), strbuf_str(&version));
    expect_true("there is a version", options_version()[0] >= '0' && options_version()[0] <= '9');
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    expect_int("a full disk is an error", OPTIONS_ERROR, output_of("--version", full, &nothing));
    close(full);
    expect_done();
}

static void the_log_is_set_up_from_its_options(void **state)
{
    (void)state;
    char *argv[32];
    expect_int("runs", OPTIONS_RUN,
               parse(tables, "--log-level=warn --log-format=json", argv, NULL, NULL));
    options_apply_log(&lo, "x");
    expect_int("info is off", false, log_enabled(LOG_INFO));
    expect_int("warn is on", true, log_enabled(LOG_WARN));
    log_setup(LOG_INFO, LOG_TEXT, NULL);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_flags_the_fallbacks_count, clean, clean),
        cmocka_unit_test_setup_teardown(flags_take_their_values_in_all_forms, clean, clean),
        cmocka_unit_test_setup_teardown(what_is_wrong_is_named, clean, clean),
        cmocka_unit_test_setup_teardown(operands_keep_their_order, clean, clean),
        cmocka_unit_test_setup_teardown(the_environment_counts_where_no_flag_does, clean, clean),
        cmocka_unit_test_setup_teardown(what_is_required_must_come, clean, clean),
        cmocka_unit_test_setup_teardown(a_wrong_fallback_is_our_own_mistake, clean, clean),
        cmocka_unit_test_setup_teardown(durations_and_sizes, clean, clean),
        cmocka_unit_test_setup_teardown(help_is_a_manual_page, clean, clean),
        cmocka_unit_test_setup_teardown(paragraphs_are_filled_and_tables_are_not, clean, clean),
        cmocka_unit_test_setup_teardown(help_and_version_are_printed, clean, clean),
        cmocka_unit_test_setup_teardown(the_log_is_set_up_from_its_options, clean, clean),
    };
    return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
