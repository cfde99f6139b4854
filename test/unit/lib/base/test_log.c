// SPDX-License-Identifier: Apache-2.0
#include "lib/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>

#include "lib/base/json.h"
#include "test/unit/lib/base/expect.h"

static struct strbuf lines;
static unsigned calls;

static void keep(void *arg, const char *line, size_t n)
{
    (void)arg;
    strbuf_add(&lines, line, n);
    calls++;
}

static int begin(void **state)
{
    (void)state;
    strbuf_init(&lines);
    calls = 0;
    log_setup(LOG_INFO, LOG_TEXT, NULL);
    log_set_sink(keep, NULL);
    return 0;
}

static int end(void **state)
{
    (void)state;
    log_set_sink(NULL, NULL);
    log_setup(LOG_INFO, LOG_TEXT, NULL);
    strbuf_deinit(&lines);
    return 0;
}

/* What stands after the time stamp. */
static const char *after_time(void)
{
    const char *s = strstr(strbuf_str(&lines), " level=");
    return s == NULL ? "(no level)" : s + 1;
}

static void values_are_quoted_only_when_they_must_be(void **state)
{
    (void)state;
    static const struct {
        const char *row, *value, *shown;
    } rows[] = {
        {"a name", "default/a-1.b_c:d", "default/a-1.b_c:d"},
        {"the last plain character", "~", "~"},
        {"nothing", "", "\"\""},
        {"no string at all", NULL, "\"\""},
        {"a blank", "a b", "\"a b\""},
        {"an equals sign could be taken for a key", "a=b", "\"a=b\""},
        {"a quote", "a\"b", "\"a\\\"b\""},
        {"a backslash", "a\\b", "\"a\\\\b\""},
        {"a newline cannot forge a line", "a\nlevel=error", "\"a\\nlevel=error\""},
        {"tab and carriage return", "\t\r", "\"\\t\\r\""},
        {"an escape sequence of a terminal", "\x1b[2J", "\"\\u001b[2J\""},
        {"delete", "\x7f", "\"\\u007f\""},
        {"a C1 control in UTF-8",
         "\xc2\x9b"
         "2J",
         "\"\\u009b2J\""},
        {"the character after the C1 controls", "\xc2\xa0", "\"\xc2\xa0\""},
        {"umlauts", "\xc3\xbc", "\"\xc3\xbc\""},
        {"four bytes", "\xf0\x9f\x90\xb3", "\"\xf0\x9f\x90\xb3\""},
        {"a byte that is no UTF-8", "\xff", "\"\\ufffd\""},
        {"half a character", "\xe2\x82", "\"\\ufffd\\ufffd\""},
        {"an overlong slash", "\xc0\xaf", "\"\\ufffd\\ufffd\""},
        {"an overlong three-byte form", "\xe0\x9f\xbf", "\"\\ufffd\\ufffd\\ufffd\""},
        {"a surrogate", "\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""},
        {"an overlong four-byte form", "\xf0\x8f\xbf\xbf", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""},
        {"beyond the last code point", "\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        strbuf_reset(&lines);
        log_info("m", kv("k", rows[i].value));
        AUTO_STRBUF expected = {0};
        strbuf_addf(&expected, "level=info msg=m k=%s\n", rows[i].shown);
        expect_str(rows[i].row, strbuf_str(&expected), after_time());
    }
    expect_done();
}

static void numbers_and_truth_are_shown_plainly(void **state)
{
    (void)state;
    bool yes = true, no = false;
    uint16_t port = 65535;
    unsigned char byte = 255;
    log_warn("pod bound", kv("min", INT64_MIN), kv("max", UINT64_MAX), kv("yes", yes), kv("no", no),
             kv("short", (short)-1), kv("port", port), kv("byte", byte), kv("int", -5));
    expect_str("one line with all kinds",
               "level=warn msg=\"pod bound\" min=-9223372036854775808 max=18446744073709551615 "
               "yes=true no=false short=-1 port=65535 byte=255 int=-5\n",
               after_time());
    expect_done();
}

static void the_time_has_milliseconds(void **state)
{
    (void)state;
    log_info("m");
    static const char pattern[] = "ts=dddd-dd-ddTdd:dd:dd.dddZ level=info msg=m\n";
    expect_int("length of the line", (int64_t)strlen(pattern), (int64_t)lines.len);
    for (size_t i = 0; i < lines.len && i < strlen(pattern) && expect_failures == 0; i++) {
        bool fits = pattern[i] == 'd' && i > 2 && i < 27
                        ? lines.ptr[i] >= '0' && lines.ptr[i] <= '9'
                        : lines.ptr[i] == pattern[i];
        if (!fits)
            expect_str("the line follows the pattern", pattern, lines.ptr);
    }
    expect_done();
}

static void lines_below_the_level_are_not_written(void **state)
{
    (void)state;
    static const enum log_level all[] = {LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR};
    for (size_t set = 0; set < 4; set++) {
        log_setup(all[set], LOG_TEXT, NULL);
        calls = 0;
        log_debug("d");
        log_info("i");
        log_warn("w");
        log_error("e");
        expect_int("so many levels pass", (int64_t)(4 - set), calls);
        for (size_t i = 0; i < 4; i++)
            expect_int("log_enabled agrees", i >= set, log_enabled(all[i]));
    }
    expect_done();
}

static void json_lines_are_json(void **state)
{
    (void)state;
    log_setup(LOG_DEBUG, LOG_JSON, "cosched-test");
    bool yes = true;
    log_error("it \"broke\"\n", kv("bytes", "\xff\x01\xc3\xbc"), kv("n", INT64_MIN), kv("yes", yes),
              kv("none", (const char *)NULL));
    expect_int("ends with a newline", '\n', lines.ptr[lines.len - 1]);
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    expect_int("parses", 0, json_parse(&doc, lines.ptr, lines.len, &err));
    expect_str("no error", "", err.text);
    json *root = json_root(doc);
    expect_str("level", "error", json_get_str(root, "level"));
    expect_str("program", "cosched-test", json_get_str(root, "program"));
    expect_str("msg", "it \"broke\"\n", json_get_str(root, "msg"));
    expect_str("what is no UTF-8 is replaced", "\xef\xbf\xbd\x01\xc3\xbc",
               json_get_str(root, "bytes"));
    expect_str("numbers are exact", "-9223372036854775808", json_number_text(json_get(root, "n")));
    expect_true("truth", json_is_bool(json_get(root, "yes")));
    expect_true("no string is null", json_is_null(json_get(root, "none")));
    expect_done();
}

static void the_program_is_a_field(void **state)
{
    (void)state;
    log_setup(LOG_INFO, LOG_TEXT, "cosched-test");
    log_info("m");
    expect_str("text", "level=info program=cosched-test msg=m\n", after_time());
    expect_done();
}

/* A value of each length around the bounds, of one-byte and six-byte (escaped) characters. */
static void long_values_are_cut_and_later_ones_survive(void **state)
{
    (void)state;
    static const size_t lengths[] = {100, 4000, 4050, 4070, 4080, 8191, 8192, 8193, 100000};
    static const char fillers[] = {'x', ' ', '\x01'};
    for (int format = LOG_TEXT; format <= LOG_JSON; format++) {
        log_setup(LOG_INFO, (enum log_format)format, NULL);
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            for (size_t f = 0; f < sizeof fillers; f++) {
                char *value = malloc(lengths[i] + 1);
                assert_non_null(value);
                memset(value, fillers[f], lengths[i]);
                value[lengths[i]] = '\0';
                strbuf_reset(&lines);
                log_info("m", kv("a", value), kv("last", "end"));
                free(value);
                expect_true("not longer than the bound", lines.len <= LOG_LINE_MAX);
                expect_int("a whole line", '\n', lines.ptr[lines.len - 1]);
                expect_true(
                    "the last field is there",
                    strstr(lines.ptr, format == LOG_TEXT ? " last=end\n" : ",\"last\":\"end\"}\n"));
                size_t shown = lengths[i] * (fillers[f] == '\x01' ? 6 : 1);
                bool cut = strstr(lines.ptr, "...\"") != NULL;
                if (shown <= 4000 || shown > LOG_LINE_MAX / 2)
                    expect_int("the dots say that it was cut", shown > 4000, cut);
                expect_true("what was not cut is whole", cut || lines.len > shown);
            }
        }
    }
    expect_done();
}

static void fields_that_find_no_room_are_left_out(void **state)
{
    (void)state;
    char big[LOG_LINE_MAX];
    memset(big, 'y', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    for (int format = LOG_TEXT; format <= LOG_JSON; format++) {
        log_setup(LOG_INFO, (enum log_format)format, NULL);
        strbuf_reset(&lines);
        log_info(big, kv("a", big), kv("b", big), kv("c", big), kv("d", big), kv("e", big),
                 kv("f", big), kv("g", big), kv("h", big), kv("i", big), kv("j", big), kv("k", 1));
        expect_true("not longer than the bound", lines.len <= LOG_LINE_MAX);
        expect_int("a whole line", '\n', lines.ptr[lines.len - 1]);
        if (format == LOG_JSON) {
            AUTO_JSON *doc = NULL;
            expect_int("still JSON", 0, json_parse(&doc, lines.ptr, lines.len, NULL));
        }
        expect_true("the first fields are there",
                    strstr(lines.ptr, format == LOG_TEXT ? " c=" : ",\"c\":"));
        expect_true("the last one is not",
                    !strstr(lines.ptr, format == LOG_TEXT ? " k=" : ",\"k\":"));
    }
    expect_done();
}

static void errno_is_left_alone(void **state)
{
    (void)state;
    errno = EXDEV;
    log_info("m", kv("a", "b"));
    expect_int("errno", EXDEV, errno);
    expect_done();
}

/* --- standard error itself --- */

static int saved_stdin, saved_stderr;

/* Descriptor 2 becomes fd; -1 closes it. No check may print until restore_stderr. */
static void replace_stderr(int fd)
{
    log_set_sink(NULL, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    saved_stdin = dup(STDIN_FILENO);
    saved_stderr = dup(STDERR_FILENO);
    assert_true(saved_stdin > STDERR_FILENO && saved_stderr > STDERR_FILENO);
    if (fd >= 0)
        dup2(fd, STDERR_FILENO);
    else
        close(STDERR_FILENO);
}

static void restore_stderr(void)
{
    dup2(saved_stdin, STDIN_FILENO);
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stdin);
    close(saved_stderr);
}

/* How many of two lines are lost with descriptor 2 = fd. */
static int64_t lost_of_two(int fd)
{
    uint64_t before = log_lost();
    replace_stderr(fd);
    log_info("one");
    log_info("two");
    restore_stderr();
    return (int64_t)(log_lost() - before);
}

static void nothing_that_happens_to_standard_error_hurts(void **state)
{
    (void)state;
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC),
        null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    assert_true(full > STDERR_FILENO && null > STDERR_FILENO);
    expect_int("full disk", 2, lost_of_two(full));
    expect_int("closed", 2, lost_of_two(-1));
    expect_int("all is well", 0, lost_of_two(null));
    close(full);
    close(null);
    int ends[2];
    assert_int_equal(0, pipe2(ends, O_CLOEXEC));
    close(ends[0]);
    expect_int("the reader is gone", 2, lost_of_two(ends[1]));
    close(ends[1]);
    expect_done();
}

static void setup_fills_the_standard_descriptors(void **state)
{
    (void)state;
    uint64_t before = log_lost();
    replace_stderr(-1);
    close(STDIN_FILENO);
    log_setup(LOG_INFO, LOG_TEXT, NULL);
    int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    log_info("one");
    restore_stderr();
    expect_true("a new file gets none of their numbers", next > STDERR_FILENO);
    expect_int("the line went to /dev/null", 0, (int64_t)(log_lost() - before));
    close(next);
    expect_done();
}

static void a_full_pipe_that_does_not_block_drops_the_line(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(0, pipe2(ends, O_CLOEXEC | O_NONBLOCK));
    char block[4096] = {0};
    while (write(ends[1], block, sizeof block) > 0)
        ;
    expect_int("both lines are lost", 2, lost_of_two(ends[1]));
    close(ends[0]);
    close(ends[1]);
    expect_done();
}

static void *log_many(void *arg)
{
    (void)arg;
    char value[3000];
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    for (int i = 0; i < 200; i++)
        log_info("m", kv("i", i), kv("v", value));
    close(STDERR_FILENO);
    return NULL;
}

/* 600 KB through a pipe of 4 KB that does not block: EAGAIN and short writes on the way. */
static void a_slow_reader_gets_every_byte(void **state)
{
    (void)state;
    int ends[2];
    uint64_t before = log_lost();
    assert_int_equal(0, pipe2(ends, O_CLOEXEC));
    assert_true(fcntl(ends[1], F_SETPIPE_SZ, 4096) >= 4096);
    assert_int_equal(0, fcntl(ends[1], F_SETFL, O_NONBLOCK));
    replace_stderr(ends[1]);
    close(ends[1]);
    pthread_t writer;
    int rc = pthread_create(&writer, NULL, log_many, NULL);
    AUTO_STRBUF all = {0};
    char buf[100];
    for (ssize_t n; rc == 0 && (n = read(ends[0], buf, sizeof buf)) > 0;)
        strbuf_add(&all, buf, (size_t)n);
    if (rc == 0)
        pthread_join(writer, NULL);
    restore_stderr();
    close(ends[0]);
    expect_int("no line was lost", 0, (int64_t)(log_lost() - before));
    int i = 0;
    for (const char *line = strbuf_str(&all), *next; i < 200 && (next = strchr(line, '\n')) != NULL;
         line = next + 1, i++) {
        char number[16];
        str_format(number, sizeof number, " i=%d v=", i);
        const char *at = strstr(line, number);
        if (at == NULL || next - at != (ptrdiff_t)strlen(number) + 2999)
            expect_str("each line is whole and in its place", number, line);
    }
    expect_int("all lines came", 200, i);
    expect_done();
}

static void *write_lines(void *arg)
{
    for (int i = 0; i < 500; i++)
        log_info("m", kv("thread", (const char *)arg), kv("i", i));
    return NULL;
}

static void threads_do_not_mix_their_lines(void **state)
{
    (void)state;
    static char names[4][2] = {"a", "b", "c", "d"};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(0, pthread_create(&threads[i], NULL, write_lines, names[i]));
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    expect_int("every line came", 2000, calls);
    size_t whole = 0;
    for (const char *line = strbuf_str(&lines), *next; (next = strchr(line, '\n')) != NULL;
         line = next + 1)
        whole += str_starts(line, "ts=") && memchr(line, '\n', 70) == next;
    expect_int("every line is whole", 2000, (int64_t)whole);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(values_are_quoted_only_when_they_must_be, begin, end),
        cmocka_unit_test_setup_teardown(numbers_and_truth_are_shown_plainly, begin, end),
        cmocka_unit_test_setup_teardown(the_time_has_milliseconds, begin, end),
        cmocka_unit_test_setup_teardown(lines_below_the_level_are_not_written, begin, end),
        cmocka_unit_test_setup_teardown(json_lines_are_json, begin, end),
        cmocka_unit_test_setup_teardown(the_program_is_a_field, begin, end),
        cmocka_unit_test_setup_teardown(long_values_are_cut_and_later_ones_survive, begin, end),
        cmocka_unit_test_setup_teardown(fields_that_find_no_room_are_left_out, begin, end),
        cmocka_unit_test_setup_teardown(errno_is_left_alone, begin, end),
        cmocka_unit_test_setup_teardown(nothing_that_happens_to_standard_error_hurts, begin, end),
        cmocka_unit_test_setup_teardown(setup_fills_the_standard_descriptors, begin, end),
        cmocka_unit_test_setup_teardown(a_full_pipe_that_does_not_block_drops_the_line, begin, end),
        cmocka_unit_test_setup_teardown(a_slow_reader_gets_every_byte, begin, end),
        cmocka_unit_test_setup_teardown(threads_do_not_mix_their_lines, begin, end),
    };
    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
