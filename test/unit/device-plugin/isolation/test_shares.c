// SPDX-License-Identifier: Apache-2.0
/*
 * The folders of containers: made as Allocate makes them, used by processes with the library in
 * them, read for the metrics, whatever a container writes into its own; and swept away.
 */
#include "device-plugin/isolation/shares.h"

#include "test/unit/device-plugin/isolation/crew.h"

#include <dirent.h>

#include "device-plugin/isolation/budget.h"
#include "device-plugin/isolation/shares_region.h"

#define UID "0f0e0d0c-1111-2222-3333-444455556666"

struct fixture {
    char base[SCRATCH_PATH], library[CREW_PATH];
    struct shares_plan plan;
    /* what shares_each told last */
    int told;
    char text[CREW_LINE];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    scratch_folder(f->base, "shares");
    (void)str_format(f->library, sizeof f->library, "%s/lib/libcosched-gpu.so", crew_build());
    f->plan = (struct shares_plan){.base = f->base,
                                   .folder = UID ".0",
                                   .ns = "team",
                                   .pod = "train-1",
                                   .container = "main",
                                   .limits = {.len = 1},
                                   .complete = true};
    f->plan.limits.cards[0] = (struct limits_card){
        .uuid = {0, 0, 0, 0, 0, 0, 0x40, 0, 0x80}, .bytes = 64 * MIB, .percent = 100};
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char command[2 * SCRATCH_PATH];
    (void)str_format(command, sizeof command, "rm -r '%s'", f->base);
    assert_int_equal(0, system(command));
    free(f);
    return 0;
}

static void prepare(struct fixture *f)
{
    struct error err = ERROR_INIT;
    if (shares_prepare(f->library, &f->plan, &err) < 0)
        fail_msg("%s", err.text);
}

static void tell(void *arg, const struct shares_scan *l)
{
    struct fixture *f = arg;
    f->told++;
    if (l->broken != NULL)
        (void)str_format(f->text, sizeof f->text, "broken: %s", l->broken);
    else
        (void)str_format(
            f->text, sizeof f->text, "%s/%s/%s card %u: %lld of %lld MiB, peak %lld, denied %lld",
            l->ns, l->pod, l->container, l->card, (long long)l->used_mib,
            (long long)(l->limit->bytes >> 20), (long long)l->peak_mib, (long long)l->denied);
}

static const char *told(struct fixture *f)
{
    f->told = 0;
    f->text[0] = '\0';
    shares_each(f->base, SHARES_REGION_BUDGET_US, tell, f);
    return f->text;
}

/* A container that was given this folder; and the figures that the plugin reads meanwhile. */
static void a_container_in_its_folder(void **state)
{
    struct fixture *f = *state;
    struct crew c = {.group = 0};
    prepare(f);
    (void)str_format(c.dir, sizeof c.dir, "%s/" UID ".0", f->base);
    (void)str_format(c.cards, sizeof c.cards, "%s/cards", f->base);
    assert_true(card_create(c.cards, 1024 * MIB, 0));
    expect_str("before", "team/train-1/main card 0: 0 of 64 MiB, peak 0, denied 0", told(f));
    struct worker a = crew_begin(&c), b = crew_begin(&c);
    crew_expect("40", &a, "0", "alloc plain 41943040");
    crew_expect("and 24", &b, "0", "alloc create 25165824");
    crew_expect("and one byte", &b, "2 -1", "alloc plain 1");
    expect_str("at work", "team/train-1/main card 0: 64 of 64 MiB, peak 64, denied 1", told(f));
    kill(a.pid, SIGKILL);
    (void)crew_stop(&a);
    expect_str("one is dead, nobody has looked yet",
               "team/train-1/main card 0: 24 of 64 MiB, peak 64, denied 1", told(f));
    (void)crew_stop(&b);
    expect_str("after", "team/train-1/main card 0: 0 of 64 MiB, peak 64, denied 1", told(f));
    prepare(f);
    expect_str("given to a container again it begins from 0",
               "team/train-1/main card 0: 0 of 64 MiB, peak 0, denied 0", told(f));
    expect_done();
}

static void hostile_regions(void **state)
{
    struct fixture *f = *state;
    struct crew c = {0};
    (void)str_format(c.dir, sizeof c.dir, "%s/" UID ".0", f->base);
    size_t n = region_bytes(REGION_SLOTS, 1);
    unsigned char *bytes = malloc(n);
    prepare(f);
    for (int i = 0; i < 3; i++) {
        memset(bytes, i == 0 ? 0xff : i == 1 ? 0 : 0x5a, n);
        crew_write(&c, "region", bytes, n);
        expect_str("not a region", "broken: what it holds is not a region", told(f));
    }
    for (int fill = 0; fill < 256; fill += 51) {
        memset(bytes, fill, n);
        memset(bytes, 0, sizeof(struct region_header));
        region_format(bytes, REGION_SLOTS, 1);
        crew_write(&c, "region", bytes, n);
        (void)told(f);
        expect_int("its own figures, whatever they are", 1, f->told);
    }
    for (size_t cut = 0; cut < n; cut += cut < 200 ? 7 : n / 9) {
        region_format(bytes, REGION_SLOTS, 1);
        crew_write(&c, "region", bytes, cut);
        expect_str("cut short", "broken: what it holds is not a region", told(f));
    }
    ((struct region_header *)(void *)bytes)->version = 2;
    crew_write(&c, "region", bytes, n);
    expect_str("of a version to come", "broken: what it holds is not a region", told(f));
    free(bytes);
    char path[CREW_PATH];
    crew_path(&c, "region", path);
    unlink(path);
    assert_int_equal(0, mkfifo(path, 0600));
    expect_str("a pipe: nothing waits for it", "broken: what it holds is not a region", told(f));
    unlink(path);
    assert_int_equal(0, symlink("/dev/zero", path));
    expect_str("a link elsewhere", "broken: it cannot be opened", told(f));
    expect_done();
}

static ino_t inode(const struct fixture *f, const char *name)
{
    char path[CREW_PATH];
    struct stat st = {0};
    (void)str_format(path, sizeof path, "%s/%s", f->base, name);
    (void)stat(path, &st);
    return st.st_ino;
}

static void upgrades(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    prepare(f);
    ino_t shared = inode(f, SHARES_LIBRARY), own = inode(f, UID ".0/" SHARES_LIBRARY);
    expect_true("one file for all", shared == own && own != 0);
    f->plan.folder = UID ".1";
    prepare(f);
    expect_true("the same library is not written again", inode(f, SHARES_LIBRARY) == shared);
    (void)str_format(f->library, sizeof f->library, "%s/lib/libcuda.so.1", crew_build());
    f->plan.folder = UID ".2";
    prepare(f);
    expect_true("another one is", inode(f, SHARES_LIBRARY) != shared);
    expect_true("what runs keeps the one it has", inode(f, UID ".0/" SHARES_LIBRARY) == own);
    expect_true("what comes has the new one", inode(f, UID ".2/" SHARES_LIBRARY) != own);
    expect_int("no library", -1, shares_prepare("/nonexistent/l.so", &f->plan, &err));
    expect_str("it is said",
               "isolation of GPU memory: there is no library /nonexistent/l.so: install it",
               err.text);
    f->plan.base = "/nonexistent/base";
    expect_int("no place", -1, shares_prepare(f->library, &f->plan, &err));
    expect_done();
}

/* A plugin of tomorrow made the folder: rows have more fields, the file more words and lines. A
 * library of today in the container, and a plugin of today beside it. */
static void versions_together(void **state)
{
    struct fixture *f = *state;
    struct crew c = {.group = 0};
    static const char limits[] = "cosched-gpu-limits 1\nquota everything=7\n"
                                 "card GPU-00000000-0000-4000-8000-000000000000 colour=blue mib=64 "
                                 "percent=50 context=0 weight=3\n";
    enum { CARD = REGION_FIRST_CARD + 64, HELD = REGION_FIRST_HELD + 16, SLOTS = 8 };
    const size_t size = sizeof(struct region_header) + CARD + SLOTS * (REGION_FIRST_SLOT + HELD);
    unsigned char *bytes = calloc(1, size);
    region_format(bytes, SLOTS, 1);
    struct region_header *h = (void *)bytes;
    h->size = (uint32_t)size;
    h->card_size = CARD;
    h->held_size = HELD;
    h->slot_offset = (uint32_t)sizeof *h + CARD;
    h->slot_size = REGION_FIRST_SLOT + HELD;
    memset(bytes + sizeof *h + REGION_FIRST_CARD, 0xa5, 64); /* what we know nothing of */
    prepare(f);
    (void)str_format(c.dir, sizeof c.dir, "%s/" UID ".0", f->base);
    (void)str_format(c.cards, sizeof c.cards, "%s/cards", f->base);
    assert_true(card_create(c.cards, 1024 * MIB, 0));
    crew_write(&c, "limits", limits, sizeof limits - 1);
    crew_write(&c, "region", bytes, size);
    struct worker w = crew_begin(&c);
    crew_expect("all of it", &w, "0 0", "alloc plain 67108864");
    crew_expect("and no more", &w, "2 -1", "alloc plain 1");
    crew_expect("a launch", &w, "0", "launch 0 3");
    expect_str("the plugin reads it", "team/train-1/main card 0: 64 of 64 MiB, peak 64, denied 1",
               told(f));
    expect_true("and writes to it", shares_measure(f->base, UID ".0", 0, 4711, 99));
    expect_true("adding up", shares_measure(f->base, UID ".0", 0, 1, 100));
    expect_int("but not to a card that it does not have", false,
               shares_measure(f->base, UID ".0", 1, 1, 100));
    (void)crew_stop(&w);
    char path[CREW_PATH];
    crew_path(&c, "region", path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(size, read(fd, bytes, size));
    close(fd);
    const struct region_card *card = (void *)(bytes + sizeof *h);
    expect_int("what was measured", 4712, (int64_t)card->measured_ns);
    expect_int("when", 100, (int64_t)card->measured_at_ns);
    expect_true("whole", card->measured_check == budget_check(4712, 100));
    expect_int("launches", 3, (int64_t)card->launches);
    for (int i = 0; i < 64; i++)
        expect_int("the new fields are left alone", 0xa5,
                   bytes[sizeof *h + REGION_FIRST_CARD + (size_t)i]);
    free(bytes);
    expect_done();
}

/* What a container may do to its region while the plugin writes to it. */
static void hostile_measurements(void **state)
{
    struct fixture *f = *state;
    struct crew c = {.group = 0};
    char path[CREW_PATH];
    prepare(f);
    (void)str_format(c.dir, sizeof c.dir, "%s/" UID ".0", f->base);
    crew_path(&c, "region", path);
    expect_true("as it was made", shares_measure(f->base, UID ".0", 0, 1, 1));
    size_t n = region_bytes(REGION_SLOTS, 1);
    unsigned char *bytes = calloc(1, n);
    region_format(bytes, REGION_SLOTS, 1);
    ((struct region_header *)(void *)bytes)->card_offset = 0xfffffff8;
    crew_write(&c, "region", bytes, n);
    expect_int("rows elsewhere", false, shares_measure(f->base, UID ".0", 0, 1, 1));
    region_format(bytes, REGION_SLOTS, 1);
    crew_write(&c, "region", bytes, sizeof(struct region_header) + 8);
    expect_int("cut short", false, shares_measure(f->base, UID ".0", 0, 1, 1));
    crew_write(&c, "region", "", 0);
    expect_int("empty", false, shares_measure(f->base, UID ".0", 0, 1, 1));
    memset(bytes, 0xff, n);
    memset(bytes, 0, sizeof(struct region_header));
    region_format(bytes, REGION_SLOTS, 1);
    crew_write(&c, "region", bytes, n);
    expect_true("a figure that wraps around", shares_measure(f->base, UID ".0", 0, 2, 1));
    unlink(path);
    expect_int("gone", false, shares_measure(f->base, UID ".0", 0, 1, 1));
    assert_int_equal(0, symlink("/dev/null", path));
    expect_int("a link elsewhere", false, shares_measure(f->base, UID ".0", 0, 1, 1));
    unlink(path);
    assert_int_equal(0, mkfifo(path, 0600));
    expect_int("a pipe", false, shares_measure(f->base, UID ".0", 0, 1, 1));
    free(bytes);
    expect_done();
}

static struct stat stat_of(const char *path)
{
    struct stat st = {0};
    (void)lstat(path, &st);
    return st;
}

/* A container writes into its region beyond its end, reserves blocks behind it, and makes a program
 * of root's out of it. */
static void a_region_as_a_place_for_files(void **state)
{
    struct fixture *f = *state;
    char path[CREW_PATH];
    const off_t size = (off_t)region_bytes(REGION_SLOTS, 1);
    static const char more[64 << 10] = "#!/bin/sh";
    assert_int_equal(0, chmod(f->base, 0755)); /* as older plugins made it */
    prepare(f);
    (void)str_format(path, sizeof path, "%s/" UID ".0/region", f->base);
    expect_int("nobody but root comes near", 0700, stat_of(f->base).st_mode & 07777);
    expect_int("its size", size, stat_of(path).st_size);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    for (int i = 0; i < 320; i++) /* 20 MiB */
        assert_int_equal(sizeof more, pwrite(fd, more, sizeof more, size + i * (off_t)sizeof more));
    expect_str("found", "broken: it was made larger", told(f));
    expect_int("and cut", size, stat_of(path).st_size);
    expect_true("the blocks are free again", stat_of(path).st_blocks * 512 < size + (64 << 10));
    expect_str("then it is well", "team/train-1/main card 0: 0 of 64 MiB, peak 0, denied 0",
               told(f));
    if (fallocate(fd, FALLOC_FL_KEEP_SIZE, size, 20 << 20) == 0) {
        expect_str("blocks behind its end", "broken: it was made larger", told(f));
        expect_true("they are free again", stat_of(path).st_blocks * 512 < size + (64 << 10));
    }
    assert_int_equal(0, fchmod(fd, 06755));
    expect_str("a program", "broken: it was made a program", told(f));
    expect_int("no longer", 0666, stat_of(path).st_mode & 07777);
    expect_str("then it is well", "team/train-1/main card 0: 0 of 64 MiB, peak 0, denied 0",
               told(f));
    assert_int_equal(0, ftruncate(fd, size / 2));
    expect_str("made smaller", "broken: what it holds is not a region", told(f));
    close(fd);
    expect_done();
}

static bool is_first(void *arg, const struct shares_owner *o)
{
    (void)arg;
    return strcmp(o->uid, UID) == 0;
}

static void swept(void **state)
{
    struct fixture *f = *state;
    prepare(f);
    f->plan.folder = "aaaa.0";
    prepare(f);
    f->plan.folder = "unknown-0123.0";
    prepare(f);
    expect_int("all are young", 0, (int64_t)shares_sweep(f->base, 60 * 1000, is_first, NULL));
    expect_int("a pod is not here any more", 1, (int64_t)shares_sweep(f->base, 0, is_first, NULL));
    expect_true("one is", inode(f, UID ".0/limits") != 0);
    expect_true("of one nobody knows", inode(f, "unknown-0123.0/limits") != 0);
    char dir[CREW_PATH];
    (void)str_format(dir, sizeof dir, "%s/unknown-0123.0", f->base);
    assert_int_equal(0, utimensat(AT_FDCWD, dir, (const struct timespec[2]){{0}, {0}}, 0));
    expect_int("but not for ever", 1, (int64_t)shares_sweep(f->base, 0, is_first, NULL));
    expect_int("nothing is left to do", 0, (int64_t)shares_sweep(f->base, 0, is_first, NULL));
    expect_int("no folder at all", 0,
               (int64_t)shares_sweep("/nonexistent/shares", 0, is_first, NULL));
    expect_done();
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {CASE(a_container_in_its_folder),
                                       CASE(hostile_regions),
                                       CASE(upgrades),
                                       CASE(versions_together),
                                       CASE(hostile_measurements),
                                       CASE(a_region_as_a_place_for_files),
                                       CASE(swept)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
