// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/base/file.h"
#include "test/local/nodes/podfiles.h"

struct bench {
    char dir[64];
    struct podfiles files;
    struct pod model;
    struct podview view;
};

static int set_up(void **state)
{
    static struct bench b;
    struct error err = ERROR_INIT;
    b = (struct bench){.dir = "/tmp/cosched-podfiles-XXXXXX"};
    assert_non_null(mkdtemp(b.dir));
    b.files = (struct podfiles){.node_dir = b.dir, .cpus = 32, .numa = 2};
    b.model = (struct pod){.uid = "u-1"};
    b.view = (struct podview){.model = &b.model, .qos = "Burstable"};
    assert_int_equal(podfiles_prepare(&b.files, &err), 0);
    *state = &b;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *b = *state;
    podfiles_remove(b->dir);
    return 0;
}

static void read_file(const struct bench *b, const char *name, struct strbuf *out)
{
    char path[PODFILES_PATH];
    struct error err = ERROR_INIT;
    assert_true(str_format(path, sizeof path, "%s/cgroup/cpuset/kubepods/%s", b->dir, name));
    out->len = 0;
    if (file_read(path, 4096, out, &err) < 0)
        fail_msg("%s", err.text);
}

/* A node agent that hears of a new group writes to it at once: an empty file that is filled later
 * would have both texts in it. */
static void test_complete(void **state)
{
    struct bench *b = *state;
    struct error err = ERROR_INIT;
    char dir[PODFILES_PATH];
    AUTO_STRBUF text = {0};
    union {
        struct inotify_event event;
        char bytes[4096];
    } got;
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(podfiles_cgroup(&b->files, &b->view, "c-1", &err), 0);
    assert_true(str_format(dir, sizeof dir, "%s/cgroup/cpuset/kubepods/burstable/podu-1", b->dir));
    assert_true(inotify_add_watch(fd, dir, IN_CREATE | IN_MOVED_TO) >= 0);
    assert_int_equal(podfiles_cgroup(&b->files, &b->view, "c-2", &err), 0);
    ssize_t n = read(fd, got.bytes, sizeof got.bytes);
    close(fd);
    assert_true(n > 0);
    assert_int_equal(got.event.mask, IN_MOVED_TO | IN_ISDIR);
    assert_string_equal(got.event.name, "c-2");
    assert_int_equal((size_t)n, sizeof got.event + got.event.len); /* and nothing more */
    read_file(b, "burstable/podu-1/c-2/cpuset.cpus", &text);
    assert_string_equal(strbuf_str(&text), "0-31\n");
    read_file(b, "burstable/podu-1/c-2/cpuset.mems", &text);
    assert_string_equal(strbuf_str(&text), "0-1\n");
}

static void test_kept(void **state)
{
    struct bench *b = *state;
    struct error err = ERROR_INIT;
    char path[PODFILES_PATH];
    AUTO_STRBUF text = {0};
    assert_int_equal(podfiles_cgroup(&b->files, &b->view, "c-1", &err), 0);
    assert_true(str_format(path, sizeof path,
                           "%s/cgroup/cpuset/kubepods/burstable/podu-1/c-1/cpuset.cpus", b->dir));
    assert_int_equal(podfiles_write(path, "3\n", 2, &err), 0);
    assert_int_equal(podfiles_cgroup(&b->files, &b->view, "c-1", &err), 0);
    assert_int_equal(podfiles_prepare(&b->files, &err), 0); /* the node starts again */
    read_file(b, "burstable/podu-1/c-1/cpuset.cpus", &text);
    assert_string_equal(strbuf_str(&text), "3\n");
    podfiles_end_container(&b->files, &b->view, "c-1");
    assert_int_not_equal(access(path, F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_complete, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_kept, set_up, tear_down),
    };
    return cmocka_run_group_tests_name(
        "a new cgroup of a simulated node is there with all its files", tests, NULL, NULL);
}
