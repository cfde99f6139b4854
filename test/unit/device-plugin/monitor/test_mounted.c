// SPDX-License-Identifier: Apache-2.0
/* The attack: 9,000 mounts, so that each look at the process costs 19 ms. */
#include "device-plugin/monitor/mounted.h"

#include "device-plugin/isolation/shares.h"
#include "test/unit/device-plugin/tree.h"

static struct mounted mounted;

/* A process with this start time, and /lib/cosched/shares/FOLDER mounted; padding: other mounts. */
static void put(struct tree *t, int64_t pid, int start, const char *folder, size_t padding)
{
    AUTO_STRBUF text = {0};
    char below[64];
    (void)str_format(below, sizeof below, "%lld", (long long)pid);
    tree_dir(t, below);
    strbuf_addf(&text, "%lld (a b) S 1 1 1 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0\n",
                (long long)pid, start);
    tree_put(t, below, "stat", strbuf_str(&text));
    strbuf_reset(&text);
    while (text.len < padding)
        strbuf_adds(&text, "30 20 0:20 / /tmp/x rw,relatime - tmpfs tmpfs rw\n");
    strbuf_addf(&text, "31 20 8:1 /lib/cosched/shares/%s %s ro,relatime - ext4 /dev/sda1 rw\n",
                folder, SHARES_INSIDE);
    tree_put(t, below, "mountinfo", strbuf_str(&text));
}

static void read_once(void **state)
{
    struct tree t;
    AUTO_STRBUF text = {0};
    (void)state;
    tree_make(&t);
    put(&t, 77, 1000, "uid-a.0", 0);
    expect_str("its folder", "uid-a.0", mounted_folder(&mounted, t.top, 77, &text));
    put(&t, 77, 1000, "uid-b.0", 0);
    expect_str("the file is not read again", "uid-a.0", mounted_folder(&mounted, t.top, 77, &text));
    put(&t, 77, 1001, "uid-c.0", 0);
    expect_str("another process of this number", "uid-c.0",
               mounted_folder(&mounted, t.top, 77, &text));
    put(&t, 77 + MOUNTED_SLOTS, 1001, "uid-d.0", 0);
    expect_str("one that shares its place", "uid-d.0",
               mounted_folder(&mounted, t.top, 77 + MOUNTED_SLOTS, &text));
    expect_str("the first again", "uid-c.0", mounted_folder(&mounted, t.top, 77, &text));
    expect_str("no such process", "", mounted_folder(&mounted, t.top, 78, &text));
    put(&t, 79, 1000, "uid-e.0", 100 * 1024);
    expect_str("2,000 mounts", "uid-e.0", mounted_folder(&mounted, t.top, 79, &text));
    put(&t, 80, 1000, "uid-f.0", 512 * 1024);
    expect_str("10,000 mounts", "", mounted_folder(&mounted, t.top, 80, &text));
    tree_remove(&t, ".");
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(read_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
