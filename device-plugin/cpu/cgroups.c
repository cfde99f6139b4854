// SPDX-License-Identifier: Apache-2.0
/*
 * cgroup v1 and v2 differ in what a write means. On v1 a group may only have CPUs of its parent,
 * and a new group has none until they are written (the container runtime copies the parent's). CPUs
 * that were offline once are missing in the parents for good; they are restored where a container
 * needs them. On v2 a group requests CPUs in cpuset.cpus and gets those that its ancestors leave
 * it, cpuset.cpus.effective. The file exists only if every ancestor enables the controller for its
 * children, which neither the kubelet nor systemd does by default.
 *
 * Groups that a container created below its own (a nested init system or runtime) follow on v2. On
 * v1 the kernel refuses to take a CPU from a group while a child has it, and gives none to
 * children: so children are shrunk first, and those that had all of their container's CPUs get all
 * of them again.
 *
 * A value is written only if it differs, and then read back: the kernel's value counts.
 */
#include "device-plugin/cpu/cgroups.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/num.h"
#include "lib/base/str.h"

enum { FILE_BYTES_MAX = 64 * 1024, DEPTH_MAX = 8, BELOW_MAX = 1024 };

static bool is_there(const char *dir, const char *name, char out[CGROUPS_PATH_SIZE])
{
    struct stat st;
    return str_format(out, CGROUPS_PATH_SIZE, "%s/%s", dir, name) && stat(out, &st) == 0;
}

int cgroups_open(struct cgroups *g, const char *mount, const char *root, struct error *err)
{
    char path[CGROUPS_PATH_SIZE];
    *g = (struct cgroups){.v2 = is_there(mount, "cgroup.controllers", path)};
    if (!str_format(g->root, sizeof g->root, "%s", str_or_empty(root)) ||
        !str_format(g->top, sizeof g->top, "%s%s", mount, g->v2 ? "" : "/cpuset"))
        return error_set(err, ERROR_INVALID, "%s: too long", mount);
    if (!g->v2 && !is_there(mount, "cpuset", path))
        return error_set(err, ERROR_NOT_FOUND,
                         "%s: neither cgroup.controllers (v2) nor cpuset (v1) is there", mount);
    (void)is_there(mount, "cpu", g->cpu);
    (void)is_there(mount, "cpuacct", g->cpuacct);
    return 0;
}

bool cgroups_full(const struct cgroups *g, const char *path, const char *name,
                  char out[CGROUPS_PATH_SIZE])
{
    return str_format(out, CGROUPS_PATH_SIZE, "%s/%s%s%s", g->top, path, name != NULL ? "/" : "",
                      str_or_empty(name));
}

bool cgroups_find_pod(const struct cgroups *g, const char *uid, char out[CGROUPS_PATH_SIZE])
{
    char full[CGROUPS_PATH_SIZE];
    for (unsigned i = 0; i < CGROUPS_PLACES; i++)
        if (cgroups_path_pod(i, g->root, uid, out) && is_there(g->top, out, full))
            return true;
    return false;
}

int cgroups_text(const struct cgroups *g, const char *path, const char *file, struct strbuf *out,
                 struct error *err)
{
    char full[CGROUPS_PATH_SIZE];
    if (!cgroups_full(g, path, file, full))
        return error_set(err, ERROR_INVALID, "%s: too long", path);
    return file_read(full, FILE_BYTES_MAX, out, err);
}

int cgroups_read(const struct cgroups *g, const char *path, const char *file, struct cpuset *out,
                 struct error *err)
{
    AUTO_STRBUF text;
    strbuf_init(&text);
    if (cgroups_text(g, path, file, &text, err) < 0)
        return -1;
    return cpuset_parse(strbuf_str(&text), out, err) < 0 ? error_wrap(err, "%s/%s", path, file) : 0;
}

int cgroups_put(const struct cgroups *g, const char *path, const char *file, const char *text,
                struct error *err)
{
    char full[CGROUPS_PATH_SIZE];
    if (!cgroups_full(g, path, file, full))
        return error_set(err, ERROR_INVALID, "%s: too long", path);
    AUTO_CLOSE int fd = open(full, O_WRONLY | O_TRUNC | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));
    if (n < 0 && (errno == ENODEV || errno == ENOENT)) /* the group is being removed */
        return error_set(err, ERROR_NOT_FOUND, "%s: gone", full);
    if (n < 0)
        return error_errno(err, errno, "%s: '%s'", full, text);
    return 0;
}

static int write_set(const struct cgroups *g, const char *path, const char *file,
                     const struct cpuset *set, struct error *err)
{
    AUTO_STRBUF text;
    strbuf_init(&text);
    cpuset_print(set, &text);
    return cgroups_put(g, path, file, strbuf_str(&text), err);
}

/* Calls fn for each ancestor of path, from the top ("") down. */
static int for_above(const struct cgroups *g, const char *path,
                     int (*fn)(const struct cgroups *g, const char *above, const void *arg,
                               struct error *err),
                     const void *arg, struct error *err)
{
    char above[CGROUPS_PATH_SIZE];
    if (fn(g, "", arg, err) < 0)
        return -1;
    for (const char *slash = path; (slash = strchr(slash, '/')) != NULL; slash++)
        if (!str_format(above, sizeof above, "%.*s", (int)(slash - path), path) ||
            fn(g, above, arg, err) < 0)
            return -1;
    return 0;
}

static bool has_word(const char *text, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = text; (at = strstr(at, word)) != NULL; at += n)
        if ((at == text || at[-1] == ' ') && (at[n] == '\0' || at[n] == ' ' || at[n] == '\n'))
            return true;
    return false;
}

static int enable(const struct cgroups *g, const char *above, const void *arg, struct error *err)
{
    const char *controller = arg;
    char plus[64];
    AUTO_STRBUF text;
    strbuf_init(&text);
    if (cgroups_text(g, above, "cgroup.subtree_control", &text, err) < 0)
        return -1;
    if (!str_format(plus, sizeof plus, "+%s", controller) ||
        has_word(strbuf_str(&text), controller))
        return 0;
    return cgroups_put(g, above, "cgroup.subtree_control", plus, err);
}

int cgroups_enable(const struct cgroups *g, const char *path, const char *controller,
                   struct error *err)
{
    return for_above(g, path, enable, controller, err);
}

static int widen(const struct cgroups *g, const char *above, const void *arg, struct error *err)
{
    const struct cpuset *needed = arg;
    struct cpuset has;
    if (above[0] == '\0') /* the top has all online CPUs and is read-only */
        return 0;
    if (cgroups_read(g, above, "cpuset.cpus", &has, err) < 0)
        return -1;
    if (cpuset_is_subset(needed, &has))
        return 0;
    cpuset_union(&has, needed);
    return write_set(g, above, "cpuset.cpus", &has, err);
}

/* Changes children from `from` to `to`; without `from`, restricts them to `to`. */
struct turn {
    const char *file;
    const struct cpuset *from, *to;
};

static int turn_below(const struct cgroups *g, const char *path, const struct turn *t,
                      unsigned depth, struct error *err);

static int turn_one(const struct cgroups *g, const char *path, const struct turn *t, unsigned depth,
                    struct error *err)
{
    struct cpuset has, next = *t->to;
    if (cgroups_read(g, path, t->file, &has, err) < 0)
        return -1;
    if (t->from != NULL)
        return !cpuset_equal(&has, t->from) || write_set(g, path, t->file, &next, err) == 0
                   ? turn_below(g, path, t, depth, err)
                   : -1;
    if (cpuset_is_subset(&has, t->to))
        return 0;
    cpuset_intersect(&next, &has);
    if (cpuset_is_empty(&next))
        next = *t->to;
    struct turn lower = {.file = t->file, .to = &next};
    return turn_below(g, path, &lower, depth, err) < 0 ? -1
                                                       : write_set(g, path, t->file, &next, err);
}

static int turn_below(const struct cgroups *g, const char *path, const struct turn *t,
                      unsigned depth, struct error *err)
{
    char full[CGROUPS_PATH_SIZE], below[CGROUPS_PATH_SIZE];
    int result = 0, n = 0;
    if (g->v2 || depth == DEPTH_MAX || !cgroups_full(g, path, NULL, full))
        return 0;
    DIR *d = opendir(full);
    for (struct dirent *e; d != NULL && result == 0 && (e = readdir(d)) != NULL && n < BELOW_MAX;) {
        struct error why = ERROR_INIT;
        if ((e->d_type != DT_DIR && e->d_type != DT_UNKNOWN) || e->d_name[0] == '.' ||
            !str_format(below, sizeof below, "%s/%s", path, e->d_name))
            continue;
        n++;
        result = turn_one(g, below, t, depth + 1, &why);
        if (result < 0 && why.code == ERROR_NOT_FOUND) /* being removed, or not a group */
            result = 0;
        else if (result < 0 && err != NULL)
            *err = why;
    }
    if (d != NULL)
        closedir(d);
    return result;
}

static bool has_file(const struct cgroups *g, const char *path, const char *file)
{
    char full[CGROUPS_PATH_SIZE];
    struct stat st;
    return cgroups_full(g, path, file, full) && stat(full, &st) == 0;
}

/* Ensures that the files exist, on v2 by enabling the controller. */
static int prepare(const struct cgroups *g, const char *path, struct error *err)
{
    if (has_file(g, path, "cpuset.cpus"))
        return 0;
    if (g->v2 && has_file(g, path, "cgroup.controllers") &&
        cgroups_enable(g, path, "cpuset", err) < 0)
        return -1;
    if (has_file(g, path, "cpuset.cpus"))
        return 0;
    return error_set(err, ERROR_NOT_FOUND, "%s: cpuset.cpus is not there", path);
}

/* v2: the CPUs requested are not always the CPUs granted. */
static int check_effective(const struct cgroups *g, const char *path, const char *file,
                           const struct cpuset *want, struct error *err)
{
    struct cpuset gets;
    AUTO_STRBUF text;
    strbuf_init(&text);
    if (!g->v2 || !has_file(g, path, file))
        return 0;
    if (cgroups_read(g, path, file, &gets, err) < 0)
        return -1;
    if (cpuset_equal(&gets, want))
        return 0;
    cpuset_print(&gets, &text);
    return error_set(err, ERROR_CONFLICT, "%s: the groups above leave it %s", path,
                     strbuf_str(&text));
}

static int set_list(const struct cgroups *g, const char *path, const char *file,
                    const struct cpuset *want, bool *wrote, struct error *err)
{
    struct cpuset has;
    struct error first = ERROR_INIT;
    char effective[64];
    if (cgroups_read(g, path, file, &has, err) < 0)
        return -1;
    if (!cpuset_equal(&has, want)) {
        const struct cpuset had = has;
        *wrote = true;
        if (turn_below(g, path, &(struct turn){.file = file, .to = want}, 0, err) < 0)
            return -1;
        if (write_set(g, path, file, want, &first) < 0) {
            bool cpus = !g->v2 && str_eq(file, "cpuset.cpus");
            if (first.code == ERROR_NOT_FOUND || !cpus ||
                for_above(g, path, widen, want, err) < 0 ||
                write_set(g, path, file, want, err) < 0) {
                if (err != NULL)
                    *err = first;
                return -1;
            }
        }
        if (cgroups_read(g, path, file, &has, err) < 0)
            return -1;
        if (!cpuset_equal(&has, want))
            return error_set(err, ERROR_CONFLICT, "%s: %s does not hold what was written", path,
                             file);
        if (cpuset_is_subset(&had, want) && !cpuset_is_empty(&had) &&
            turn_below(g, path, &(struct turn){file, &had, want}, 0, err) < 0)
            return -1;
    }
    (void)str_format(effective, sizeof effective, "%s.effective", file);
    return check_effective(g, path, effective, want, err);
}

int cgroups_pin(const struct cgroups *g, const char *path, const struct cpuset *cpus,
                const struct cpuset *mems, bool *wrote, struct error *err)
{
    *wrote = false;
    if (prepare(g, path, err) < 0)
        return -1;
    if (mems != NULL && set_list(g, path, "cpuset.mems", mems, wrote, err) < 0)
        return -1;
    return set_list(g, path, "cpuset.cpus", cpus, wrote, err);
}

static int give_back(const struct cgroups *g, const char *path, const char *file, bool *wrote,
                     struct error *err)
{
    struct cpuset has, all;
    char above[CGROUPS_PATH_SIZE];
    const char *slash = strrchr(path, '/');
    if (cgroups_read(g, path, file, &has, err) < 0)
        return -1;
    if (g->v2) {
        *wrote = *wrote || !cpuset_is_empty(&has);
        return cpuset_is_empty(&has) ? 0 : cgroups_put(g, path, file, "\n", err);
    }
    if (!str_format(above, sizeof above, "%.*s", slash != NULL ? (int)(slash - path) : 0, path) ||
        cgroups_read(g, above, file, &all, err) < 0)
        return -1;
    if (cpuset_equal(&has, &all))
        return 0;
    *wrote = true;
    if (write_set(g, path, file, &all, err) < 0)
        return -1;
    return turn_below(g, path, &(struct turn){file, &has, &all}, 0, err);
}

int cgroups_release(const struct cgroups *g, const char *path, bool mems, bool *wrote,
                    struct error *err)
{
    *wrote = false;
    if (!has_file(g, path, "cpuset.cpus")) /* without the controller it has all CPUs */
        return 0;
    if (give_back(g, path, "cpuset.cpus", wrote, err) < 0)
        return -1;
    return mems ? give_back(g, path, "cpuset.mems", wrote, err) : 0;
}

/* "nr_throttled 12" in a file of such lines; word NULL: a file with one number. */
static int64_t number_of(const char *dir, const char *path, const char *file, const char *word)
{
    char full[CGROUPS_PATH_SIZE];
    AUTO_STRBUF text;
    int64_t n;
    strbuf_init(&text);
    if (!str_format(full, sizeof full, "%s/%s/%s", dir, path, file) ||
        file_read(full, FILE_BYTES_MAX, &text, NULL) < 0)
        return 0;
    const char *at = strbuf_str(&text);
    if (word != NULL) {
        for (; at != NULL && !(str_starts(at, word) && at[strlen(word)] == ' ');
             at = at != NULL ? strchr(at, '\n') : NULL, at = at != NULL ? at + 1 : NULL)
            ;
        if (at == NULL)
            return 0;
        at += strlen(word) + 1;
    }
    return num_parse(at, strcspn(at, "\n"), &n, NULL) == 0 ? n : 0;
}

void cgroups_usage(const struct cgroups *g, const char *path, struct cgroups_usage *out)
{
    out->throttled = number_of(g->v2 ? g->top : g->cpu, path, "cpu.stat", "nr_throttled");
    out->used_us = g->v2 ? number_of(g->top, path, "cpu.stat", "usage_usec")
                         : number_of(g->cpuacct, path, "cpuacct.usage", NULL) / 1000;
}
