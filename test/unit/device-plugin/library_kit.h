// SPDX-License-Identifier: Apache-2.0
/*
 * library_kit - the plugin of plugin.h with our own library as its engine: containers have folders.
 * A directory stands for /sys/fs/cgroup, and the test writes the kubelet's checkpoint.
 */
#pragma once

#include <dirent.h>

#include "device-plugin/kubelet/checkpoint.h"
#include "device-plugin/kubelet/sweeper.h"
#include "test/unit/device-plugin/plugin.h"
#include "test/unit/device-plugin/tree.h"

#define PODS "kubepods.slice"

struct library_fixture {
    struct plugin_fixture *plugin;
    struct tree cgroups;
    char shares[SCRATCH_PATH + 32], library[SCRATCH_PATH + 32];
    struct sweeper *sweeper;
};

static inline void library_write(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    (void)fputs(text, file);
    (void)fclose(file);
}

/* The kubelet's checkpoint with these entries. NULL: no file. */
static inline void library_checkpoint(const struct library_fixture *f, const char *entries)
{
    char path[PATH_MAX];
    AUTO_STRBUF text;
    strbuf_init(&text);
    (void)str_format(path, sizeof path, "%s/" CHECKPOINT_FILE,
                     kubelet_plugin_dir(f->plugin->kubelet));
    (void)unlink(path);
    if (entries == NULL)
        return;
    strbuf_addf(&text, "{\"Data\":{\"PodDeviceEntries\":[%s]}}", entries);
    library_write(path, strbuf_str(&text));
}

static inline void library_sweeper(struct library_fixture *f)
{
    struct sweeper_config c = {.loop = f->plugin->loop,
                               .service = f->plugin->service,
                               .shares = f->shares,
                               .cgroup_mount = f->cgroups.top};
    f->sweeper = sweeper_new(&c);
}

static inline void library_begin(struct library_fixture *f, const char *mode)
{
    static const char *const uuids[] = {"GPU-00000000-0000-4000-8000-000000000000",
                                        "GPU-00000000-0000-4000-8000-000000000001"};
    tree_make(&f->cgroups);
    tree_put(&f->cgroups, "", "cgroup.controllers", "cpuset\n");
    tree_dir(&f->cgroups, PODS);
    (void)str_format(f->shares, sizeof f->shares, "%s/shares", f->cgroups.top);
    (void)str_format(f->library, sizeof f->library, "%s/library", f->cgroups.top);
    library_write(f->library, "a library");
    plugin_stop(f->plugin);
    for (size_t i = 0; i < 2; i++)
        f->plugin->cards.cards[i].uuid = uuids[i];
    f->plugin->config.isolation.none = false;
    f->plugin->config.isolation.shares = f->shares;
    f->plugin->config.isolation.library = f->library;
    plugin_start(f->plugin);
    plugin_node(f->plugin, mode, "");
    expect_list(f->plugin, "list", MEM, 30, 30);
    library_sweeper(f);
}

static inline void library_end(struct library_fixture *f)
{
    library_checkpoint(f, NULL);
    sweeper_free(f->sweeper);
    tree_remove(&f->cgroups, "");
    expect_done();
}

/* How many folders there are; the last one's name. */
static inline int library_folders(const struct library_fixture *f, char name[64])
{
    int n = 0;
    DIR *d = opendir(f->shares);
    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;)
        if (e->d_type == DT_DIR && strchr(e->d_name, '.') != NULL && e->d_name[0] != '.') {
            (void)str_format(name, 64, "%s", e->d_name);
            n++;
        }
    closedir(d);
    return n;
}
