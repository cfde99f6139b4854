// SPDX-License-Identifier: Apache-2.0
#include "lib/base/statefile.h"

#include "test/unit/lib/base/expect.h"

#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "test/unit/lib/base/scratch.h"

#define NAME "numbers.json"

/* Takes integers, and adds them up. */
static int add(json *element, void *user, struct error *err)
{
    int64_t n = 0;
    if (!json_int(element, &n))
        return error_set(err, ERROR_INVALID, "must be an integer");
    *(int64_t *)user += n;
    return 0;
}

static int read_back(const char *dir, int64_t *sum, struct error *err)
{
    const struct statefile_list file = {
        .dir = dir, .name = NAME, .list = "n", .bytes_max = 64, .max = 3};
    *sum = 0;
    return statefile_read(&file, add, sum, err);
}

static void what_the_file_may_hold(void **state)
{
    (void)state;
    static const struct {
        const char *row, *text;
        int taken;
        int64_t sum;
        const char *error; /* a part of it */
    } rows[] = {
        {"all elements", "{\"v\":1,\"n\":[1,2,4]}", 3, 7, ""},
        {"none", "{\"v\":1,\"n\":[]}", 0, 0, ""},
        {"one that is not to be used is left out, the others stay", "{\"v\":1,\"n\":[1,\"x\",4]}",
         2, 5, ""},
        {"one more than it may hold", "{\"v\":1,\"n\":[1,2,3,4]}", -1, 0,
         NAME ": n: must be an array of at most 3"},
        {"not a list", "{\"v\":1,\"n\":7}", -1, 0, NAME ": n: must be an array of at most 3"},
        {"another version", "{\"v\":2,\"n\":[1]}", -1, 0, NAME ": v: must be 1"},
        {"no version", "{\"n\":[1]}", -1, 0, NAME ": v: must be 1"},
        {"half a file", "{\"v\":1,\"n\":[1", -1, 0, NAME ": "},
        {"an empty file", "", -1, 0, NAME ": "},
        {"64 bytes", "{\"v\":1,\"n\":[1]}                                                 ", 1, 1,
         ""},
        {"65 bytes", "{\"v\":1,\"n\":[1]}                                                  ", -1, 0,
         NAME ": "},
    };
    char dir[SCRATCH_PATH], path[SCRATCH_PATH + sizeof "/" NAME];
    scratch_folder(dir, "state");
    (void)str_format(path, sizeof path, "%s/%s", dir, NAME);
    int64_t sum = 0;
    struct error err = ERROR_INIT;
    expect_int("no file holds nothing", 0, read_back(dir, &sum, &err));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        expect_int(rows[i].row, 0,
                   statefile_write(dir, NAME, rows[i].text, strlen(rows[i].text), &err));
        err = (struct error)ERROR_INIT;
        expect_int(rows[i].row, rows[i].taken, read_back(dir, &sum, &err));
        expect_int(rows[i].row, rows[i].sum, sum);
        if (strstr(err.text, rows[i].error) == NULL)
            expect_str(rows[i].row, rows[i].error, err.text);
    }
    expect_int("removed", 0, unlink(path));
    expect_int("nothing is left beside it", 0, rmdir(dir));
    expect_done();
}

static void what_cannot_be_written_leaves_the_old(void **state)
{
    (void)state;
    char dir[SCRATCH_PATH], path[SCRATCH_PATH + sizeof "/" NAME],
        beside[SCRATCH_PATH + sizeof "/" NAME ".new"];
    scratch_folder(dir, "state");
    (void)str_format(path, sizeof path, "%s/%s", dir, NAME);
    (void)str_format(beside, sizeof beside, "%s/%s.new", dir, NAME);
    struct error err = ERROR_INIT;
    static const char old[] = "{\"v\":1,\"n\":[8]}";
    expect_int("written", 0, statefile_write(dir, NAME, old, sizeof old - 1, &err));
    expect_int("something lies in the way", 0, mkdir(beside, 0700));
    expect_int("not written", -1, statefile_write(dir, NAME, "{}", 2, &err));
    expect_true("the file is named", strstr(err.text, NAME) != NULL);
    int64_t sum = 0;
    err = (struct error)ERROR_INIT;
    expect_int("taken", 1, read_back(dir, &sum, &err));
    expect_int("the old one", 8, sum);
    expect_int("removed", 0, rmdir(beside) + unlink(path) + rmdir(dir));
    expect_int("no such folder", -1, statefile_write(dir, NAME, "{}", 2, &err));
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_the_file_may_hold),
                                       cmocka_unit_test(what_cannot_be_written_leaves_the_old)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
