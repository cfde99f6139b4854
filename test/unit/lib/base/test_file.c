// SPDX-License-Identifier: Apache-2.0
#include "lib/base/file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/unit/lib/base/expect.h"
#include "test/unit/lib/base/scratch.h"

static char directory[SCRATCH_PATH];

static const char *path_of(const char *name, struct strbuf *b)
{
    strbuf_reset(b);
    strbuf_addf(b, "%s/%s", directory, name);
    return strbuf_str(b);
}

static void write_bytes(const char *path, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(1, write(fd, &"0123456789"[i % 10], 1));
    assert_int_equal(0, close(fd));
}

static void sizes(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        size_t bytes, max;
        bool fits;
    } rows[] = {
        {"an empty file", 0, 10, true},
        {"an empty file, and nothing is allowed", 0, 0, true},
        {"one byte too many", 1, 0, false},
        {"as many as allowed", 10, 10, true},
        {"one more than allowed", 11, 10, false},
        {"more than one piece", 20001, 20001, true},
        {"more than one piece, one too many", 20001, 20000, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        AUTO_STRBUF path = {0}, out = {0};
        struct error err = ERROR_INIT;
        write_bytes(path_of("f", &path), rows[i].bytes);
        strbuf_adds(&out, "before:");
        int rc = file_read(strbuf_str(&path), rows[i].max, &out, &err);
        expect_int(rows[i].row, rows[i].fits ? 0 : -1, rc);
        expect_int(rows[i].row,
                   (int64_t)strlen("before:") + (rows[i].fits ? (int64_t)rows[i].bytes : 0),
                   (int64_t)out.len);
        expect_true(rows[i].row, strncmp(strbuf_str(&out), "before:0123456789",
                                         out.len < 17 ? out.len : 17) == 0);
        expect_true(rows[i].row, strlen(strbuf_str(&out)) == out.len);
        if (!rows[i].fits) {
            expect_int(rows[i].row, ERROR_TOO_LARGE, err.code);
            expect_true(rows[i].row, strstr(err.text, "larger than") != NULL);
        }
    }
    expect_done();
}

static void what_is_no_file(void **state)
{
    (void)state;
    AUTO_STRBUF path = {0}, out = {0};
    struct error err = ERROR_INIT;
    expect_int("nothing there", -1, file_read(path_of("none", &path), 10, &out, &err));
    expect_int("says so", ERROR_NOT_FOUND, err.code);
    expect_true("names it", str_starts(err.text, strbuf_str(&path)));
    error_clear(&err);
    expect_int("a directory", -1, file_read(directory, 10, &out, &err));
    expect_true("names it", str_starts(err.text, directory));
    error_clear(&err);
    assert_int_equal(0, mkfifo(path_of("fifo", &path), 0600));
    expect_int("a fifo that nobody writes is not waited for", 0,
               file_read(strbuf_str(&path), 10, &out, &err));
    int fd = open(strbuf_str(&path), O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    expect_int("nor one that somebody has open", -1, file_read(strbuf_str(&path), 10, &out, &err));
    assert_int_equal(0, close(fd));
    expect_int("nothing was read", 0, (int64_t)out.len);
    expect_int("a device that never ends", -1, file_read("/dev/zero", 100000, &out, &err));
    expect_int("says so", ERROR_TOO_LARGE, err.code);
    expect_done();
}

static int make(void **state)
{
    (void)state;
    scratch_folder(directory, "file");
    return 0;
}

static int clean(void **state)
{
    (void)state;
    AUTO_STRBUF path = {0};
    (void)unlink(path_of("f", &path));
    (void)unlink(path_of("fifo", &path));
    return rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sizes), cmocka_unit_test(what_is_no_file)};
    return cmocka_run_group_tests(tests, make, clean);
}
