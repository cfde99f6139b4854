// SPDX-License-Identifier: Apache-2.0
/* What is not released here is seen by the leak checker of the asan variant; descriptors are asked
 * for directly. */
#include "lib/base/cleanup.h"

#include <errno.h>
#include <fcntl.h>

#include "test/unit/lib/base/expect.h"

static int open_null(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0 || errno != EBADF;
}

static void a_descriptor_is_closed_at_the_end_of_the_scope(void **state)
{
    (void)state;
    int number;
    {
        AUTO_CLOSE int fd = open_null();
        number = fd;
        expect_true("open inside", is_open(number));
    }
    expect_int("closed outside", false, is_open(number));
    {
        AUTO_CLOSE int none = -1;
        errno = 0;
        (void)none;
    }
    expect_int("-1 is not closed", 0, errno);
    expect_done();
}

static int keep(int *number)
{
    AUTO_CLOSE int fd = open_null();
    *number = fd;
    return take_fd(&fd);
}

static void a_taken_descriptor_stays_open(void **state)
{
    (void)state;
    int number = -1;
    int fd = keep(&number);
    expect_int("the same number", number, fd);
    expect_true("still open", is_open(fd));
    close(fd);
    expect_done();
}

static char *keep_text(void)
{
    AUTO_FREE char *text = strdup("kept");
    return take_ptr(&text);
}

/* clang 14's analyzer does not know the attribute: make it believe the memory is kept */
static const void *seen;

static void memory_is_freed_or_taken(void **state)
{
    (void)state;
    {
        AUTO_FREE char *lost = strdup("freed at the end of the scope");
        AUTO_FREE char *none = NULL;
        seen = lost;
        assert_non_null(lost);
        assert_null(none);
    }
    char *text = keep_text();
    expect_str("what was taken is alive", "kept", text);
    char *moved = take_ptr(&text);
    expect_true("the old place is empty", text == NULL);
    expect_str("the new one has it", "kept", moved);
    free(moved);
    expect_done();
}

static int released;

static void note(const int *what)
{
    released = released * 10 + *what;
}

static void the_last_one_goes_first(void **state)
{
    (void)state;
    {
        AUTO(note) int a = 1;
        AUTO(note) int b = 2;
        (void)a;
        (void)b;
    }
    expect_int("in reverse order", 21, released);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_descriptor_is_closed_at_the_end_of_the_scope),
        cmocka_unit_test(a_taken_descriptor_stays_open),
        cmocka_unit_test(memory_is_freed_or_taken),
        cmocka_unit_test(the_last_one_goes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
