// SPDX-License-Identifier: Apache-2.0
/* The file system of regions, mounted in a mount namespace of this test's own: what containers
 * cannot do in it, and what is left of it after a reboot. */
#include "device-plugin/isolation/regionfs.h"

#include "test/unit/device-plugin/isolation/crew.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "device-plugin/isolation/shares.h"
#include "device-plugin/isolation/shares_region.h"

#define UID "0f0e0d0c-1111-2222-3333-444455556666"

struct fixture {
    char base[SCRATCH_PATH], library[CREW_PATH], regions[CREW_PATH];
    struct shares_plan plan;
    char text[CREW_LINE];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    scratch_folder(f->base, "regionfs");
    (void)str_format(f->library, sizeof f->library, "%s/lib/libcosched-gpu.so", crew_build());
    (void)str_format(f->regions, sizeof f->regions, "%s/regions", f->base);
    f->plan = (struct shares_plan){.base = f->base,
                                   .folder = UID ".0",
                                   .ns = "team",
                                   .pod = "train-1",
                                   .container = "main",
                                   .limits = {.len = 1},
                                   .complete = true,
                                   .apart = true};
    f->plan.limits.cards[0] = (struct limits_card){.uuid = {1}, .bytes = 64 * MIB, .percent = 100};
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[2 * SCRATCH_PATH];
    (void)umount2(f->regions, MNT_DETACH);
    (void)str_format(command, sizeof command, "rm -r '%s'", f->base);
    assert_int_equal(0, system(command));
    free(f);
    return 0;
}

static void prepare(struct fixture *f, const char *folder)
{
    struct error err = ERROR_INIT;
    f->plan.folder = folder;
    if (shares_prepare(f->library, &f->plan, &err) < 0)
        fail_msg("%s", err.text);
}

static void tell(void *arg, const struct shares_scan *l)
{
    struct fixture *f = arg;
    size_t n = strlen(f->text);
    (void)str_format(f->text + n, sizeof f->text - n, "%.4s %s; ", l->folder,
                     l->broken != NULL ? l->broken : "ok");
}

static const char *told(struct fixture *f)
{
    f->text[0] = '\0';
    shares_each(f->base, SHARES_REGION_BUDGET_US, tell, f);
    return f->text;
}

static int open_region(const struct fixture *f, const char *folder)
{
    char path[CREW_PATH];
    (void)str_format(path, sizeof path, "%s/%s", f->regions, folder);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static bool may_mount(const struct fixture *f)
{
    struct error err = ERROR_INIT;
    if (unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
        regionfs_mount_tmpfs(f->regions, REGIONFS_BYTES, 0700, &err) == 0)
        return true;
    print_message("SKIPPED: nothing can be mounted here: %s\n", err.text);
    return false;
}

static void a_file_system_of_regions(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    struct stat st;
    static const char program[64 << 10] = "#!/bin/sh\nexit 0\n";
    expect_true("a folder is none", !regionfs_is(f->base));
    if (!may_mount(f))
        skip();
    expect_true("it is there", regionfs_is(f->regions));
    assert_int_equal(0, regionfs_mount_tmpfs(f->regions, REGIONFS_BYTES, 0700, &err));
    expect_int("mounted once", 0, umount2(f->regions, 0));
    expect_true("not twice", !regionfs_is(f->regions));
    assert_int_equal(0, regionfs_mount_tmpfs(f->regions, REGIONFS_BYTES, 0700, &err));
    prepare(f, UID ".0");
    prepare(f, "aaaa.0");
    assert_int_equal(0, stat(f->regions, &st));
    expect_int("nobody but root comes near", 0700, st.st_mode & 07777);
    int mine = open_region(f, UID ".0"), other = open_region(f, "aaaa.0");
    off_t size = (off_t)region_bytes(REGION_SLOTS, 1);
    assert_int_equal(0, fstat(mine, &st));
    expect_int("its size", size, st.st_size);
    expect_int("for every user", 0666, st.st_mode & 07777);

    /* The rest of its last page is all that a container gets. */
    ssize_t n = pwrite(mine, program, sizeof program, (size / 4096 + 1) * 4096);
    expect_true("no more blocks", n < 0 && errno == ENOSPC);
    expect_true("nor by reserving them", fallocate(mine, 0, 0, 1 << 20) < 0 && errno == ENOSPC);
    assert_int_equal(0, ftruncate(mine, 1 << 20)); /* a hole costs nothing */
    expect_true("found", strstr(told(f), "0f0e it was made larger; ") != NULL);
    expect_true("of nobody else", strstr(f->text, "aaaa ok; ") != NULL);

    /* A container that gives blocks back, and takes them behind its end before we fill them. */
    assert_int_equal(0, fallocate(mine, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, size));
    expect_int("others are not touched", size, pwrite(other, program, (size_t)size, 0));
    for (int i = 0; i < 20; i++) {
        char folder[16];
        (void)str_format(folder, sizeof folder, "bbbb.%d", i);
        prepare(f, folder); /* there is room for new containers */
    }
    regionfs_fill(f->regions);
    expect_true("and none is left", pwrite(mine, program, sizeof program, 1 << 20) < 0);

    /* A program of root's. */
    char path[CREW_PATH];
    (void)str_format(path, sizeof path, "%s/" UID ".0", f->regions);
    close(mine);
    assert_int_equal(0, chmod(path, 04755));
    pid_t pid = fork();
    if (pid == 0) {
        execl(path, path, (char *)NULL);
        _exit(errno == EACCES ? 77 : 1);
    }
    int status = 0;
    assert_int_equal(pid, waitpid(pid, &status, 0));
    expect_int("is not run", 77, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    close(other);
    expect_done();
}

static void after_a_reboot(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    if (!may_mount(f))
        skip();
    prepare(f, UID ".0");
    f->plan.apart = false;
    prepare(f, "aaaa.0"); /* of an older plugin, or from before it was mounted */
    expect_true("both", strstr(told(f), "0f0e ok") != NULL && strstr(f->text, "aaaa ok") != NULL);
    assert_int_equal(0, umount2(f->regions, MNT_DETACH));
    assert_int_equal(0, regionfs_mount_tmpfs(f->regions, REGIONFS_BYTES, 0700, &err));
    expect_true("gone", strstr(told(f), "0f0e what it holds is not a region") != NULL);
    shares_restore(f->base);
    expect_true("made again", strstr(told(f), "0f0e ok") != NULL);
    expect_true("the older one is where it was", strstr(f->text, "aaaa ok") != NULL);
    int fd = open_region(f, UID ".0");
    expect_int("where the kubelet mounts it from", 0, close(fd));
    assert_int_equal(0, umount2(f->regions, MNT_DETACH));
    shares_restore(f->base);
    expect_true("also without the file system", strstr(told(f), "0f0e ok") != NULL);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_system_of_regions, setup, teardown),
        cmocka_unit_test_setup_teardown(after_a_reboot, setup, teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
