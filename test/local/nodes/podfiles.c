// SPDX-License-Identifier: Apache-2.0
#include "test/local/nodes/podfiles.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"

static int write_all(int fd, const char *text, size_t n)
{
    while (n > 0) {
        ssize_t done = write(fd, text, n);
        if (done < 0)
            return -1;
        text += done;
        n -= (size_t)done;
    }
    return 0;
}

int podfiles_write(const char *path, const char *text, size_t n, struct error *err)
{
    char beside[PODFILES_PATH];
    if (!str_format(beside, sizeof beside, "%s.new", path))
        return error_set(err, ERROR_INVALID, "%s: the name is too long", path);
    AUTO_CLOSE int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write_all(fd, text, n) < 0 || rename(beside, path) < 0)
        return error_errno(err, errno, "%s", path);
    return 0;
}

int podfiles_mkdir(const char *path, struct error *err)
{
    char part[PODFILES_PATH];
    if (!str_format(part, sizeof part, "%s", path))
        return error_set(err, ERROR_INVALID, "%s: the name is too long", path);
    for (char *p = part + 1;; p++) {
        if (*p != '/' && *p != '\0')
            continue;
        char kept = *p;
        *p = '\0';
        if (mkdir(part, 0755) < 0 && errno != EEXIST)
            return error_errno(err, errno, "%s", part);
        if (kept == '\0')
            return 0;
        *p = kept;
    }
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    (void)remove(path);
    return 0;
}

void podfiles_remove(const char *path)
{
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The files that a cpuset cgroup has, those that are not there. */
static int fill_cgroup(const struct podfiles *f, const char *path, struct error *err)
{
    char name[PODFILES_PATH], cpus[32], mems[32];
    (void)str_format(cpus, sizeof cpus, f->cpus > 1 ? "0-%u\n" : "%u\n",
                     f->cpus > 0 ? f->cpus - 1 : 0);
    (void)str_format(mems, sizeof mems, f->numa > 1 ? "0-%u\n" : "%u\n",
                     f->numa > 0 ? f->numa - 1 : 0);
    const struct {
        const char *name, *text;
    } files[] = {{"cpuset.cpus", cpus}, {"cpuset.mems", mems}, {"tasks", ""}};
    if (podfiles_mkdir(path, err) < 0)
        return -1;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (!str_format(name, sizeof name, "%s/%s", path, files[i].name))
            return error_set(err, ERROR_INVALID, "%s: the name is too long", path);
        if (access(name, F_OK) == 0)
            continue;
        AUTO_CLOSE int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (fd < 0 || write_all(fd, files[i].text, strlen(files[i].text)) < 0)
            return error_errno(err, errno, "%s", name);
    }
    return 0;
}

/* A cgroup must appear with all its files, since a node agent may write to it immediately and we
 * would overwrite that. So it is made elsewhere and renamed. */
static int make_cgroup(const struct podfiles *f, const char *path, struct error *err)
{
    char made[PODFILES_PATH], above[PODFILES_PATH];
    const char *slash = strrchr(path, '/');
    if (access(path, F_OK) == 0)
        return fill_cgroup(f, path, err);
    if (!str_format(made, sizeof made, "%s/cgroup-new", f->node_dir) || slash == NULL ||
        !str_format(above, sizeof above, "%.*s", (int)(slash - path), path))
        return error_set(err, ERROR_INVALID, "%s: the name is too long", path);
    podfiles_remove(made);
    if (podfiles_mkdir(above, err) < 0 || fill_cgroup(f, made, err) < 0)
        return -1;
    return rename(made, path) < 0 ? error_errno(err, errno, "%s", path) : 0;
}

static const char *qos_dir(const struct podview *v)
{
    return str_eq(v->qos, "BestEffort")  ? "/besteffort"
           : str_eq(v->qos, "Burstable") ? "/burstable"
                                         : "";
}

int podfiles_prepare(const struct podfiles *f, struct error *err)
{
    static const char *const parts[] = {"", "/kubepods", "/kubepods/besteffort",
                                        "/kubepods/burstable"};
    char path[PODFILES_PATH];
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (!str_format(path, sizeof path, "%s/cgroup/cpuset%s", f->node_dir, parts[i]))
            return error_set(err, ERROR_INVALID, "%s: the name is too long", f->node_dir);
        if (make_cgroup(f, path, err) < 0)
            return -1;
    }
    return 0;
}

int podfiles_container(const struct podfiles *f, const char *uid, const char *container,
                       const char *name, const char *text, struct error *err)
{
    char path[PODFILES_PATH], file[PODFILES_PATH];
    if (!str_format(path, sizeof path, "%s/pods/%s/%s", f->node_dir, uid, container) ||
        !str_format(file, sizeof file, "%s/%s", path, name))
        return error_set(err, ERROR_INVALID, "%s: the name is too long", f->node_dir);
    if (podfiles_mkdir(path, err) < 0)
        return -1;
    return podfiles_write(file, text, strlen(text), err);
}

int podfiles_cgroup(const struct podfiles *f, const struct podview *v, const char *container_id,
                    struct error *err)
{
    char path[PODFILES_PATH];
    if (!str_format(path, sizeof path, "%s/cgroup/cpuset/kubepods%s/pod%s", f->node_dir, qos_dir(v),
                    v->model->uid) ||
        make_cgroup(f, path, err) < 0)
        return -1;
    if (!str_format(path, sizeof path, "%s/cgroup/cpuset/kubepods%s/pod%s/%s", f->node_dir,
                    qos_dir(v), v->model->uid, container_id))
        return error_set(err, ERROR_INVALID, "%s: the name is too long", f->node_dir);
    return make_cgroup(f, path, err);
}

void podfiles_end_container(const struct podfiles *f, const struct podview *v,
                            const char *container_id)
{
    char path[PODFILES_PATH];
    if (container_id[0] != '\0' &&
        str_format(path, sizeof path, "%s/cgroup/cpuset/kubepods%s/pod%s/%s", f->node_dir,
                   qos_dir(v), v->model->uid, container_id))
        podfiles_remove(path);
}

void podfiles_end_pod(const struct podfiles *f, const struct podview *v)
{
    char path[PODFILES_PATH];
    if (str_format(path, sizeof path, "%s/cgroup/cpuset/kubepods%s/pod%s", f->node_dir, qos_dir(v),
                   v->model->uid))
        podfiles_remove(path);
    if (str_format(path, sizeof path, "%s/pods/%s", f->node_dir, v->model->uid))
        podfiles_remove(path);
}
