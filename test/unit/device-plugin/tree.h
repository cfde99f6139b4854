// SPDX-License-Identifier: Apache-2.0
/*
 * tree - a directory that stands for /sys/fs/cgroup: what a test puts there is what the program
 * finds, and what it writes is compared byte for byte.
 */
#pragma once

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/str.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/lib/base/scratch.h"

struct tree {
    char top[SCRATCH_PATH];
};

static inline void tree_make(struct tree *t)
{
    scratch_folder(t->top, "cgroup");
}

static inline int tree_remove_one(const char *path, const struct stat *st, int kind,
                                  struct FTW *where)
{
    (void)st, (void)kind, (void)where;
    return remove(path);
}

static inline void tree_remove(struct tree *t, const char *below)
{
    char path[PATH_MAX];
    assert_true(str_format(path, sizeof path, "%s/%s", t->top, below));
    (void)nftw(path, tree_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Makes every directory of the path. */
static inline void tree_dir(struct tree *t, const char *below)
{
    char path[PATH_MAX];
    assert_true(str_format(path, sizeof path, "%s/%s", t->top, below));
    for (char *at = path + strlen(t->top) + 1; (at = strchr(at, '/')) != NULL; at++) {
        *at = '\0';
        (void)mkdir(path, 0700);
        *at = '/';
    }
    (void)mkdir(path, 0700);
}

/* The file, in a directory that is there. */
static inline void tree_put(struct tree *t, const char *below, const char *file, const char *text)
{
    char path[PATH_MAX];
    assert_true(str_format(path, sizeof path, "%s/%s/%s", t->top, below, file));
    FILE *f = fopen(path, "we");
    if (f == NULL)
        fail_msg("%s: cannot be written", path);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(0, fclose(f));
}

/* A group with a cpuset. */
static inline void tree_group(struct tree *t, const char *below, const char *cpus)
{
    tree_dir(t, below);
    tree_put(t, below, "cpuset.mems", "0\n");
    tree_put(t, below, "cpuset.cpus", cpus);
}

/* What the file holds; "(none)" if there is none. In a buffer of its own until the next call. */
static inline const char *tree_get(struct tree *t, const char *below, const char *file)
{
    static char held[4096];
    char path[PATH_MAX];
    AUTO_STRBUF text;
    strbuf_init(&text);
    assert_true(str_format(path, sizeof path, "%s/%s/%s", t->top, below, file));
    (void)str_format(held, sizeof held, "%s",
                     file_read(path, sizeof held - 1, &text, NULL) == 0 ? strbuf_str(&text)
                                                                        : "(none)");
    return held;
}
