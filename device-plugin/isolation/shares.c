// SPDX-License-Identifier: Apache-2.0
/* A running container's mounts keep their inodes: files are replaced by rename, and each folder has
 * its own link to the library, so a newer plugin changes nothing under a running container. */
#include "device-plugin/isolation/shares.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "device-plugin/isolation/budget.h"
#include "device-plugin/isolation/regionfs.h"
#include "device-plugin/isolation/shares_region.h"
#include "lib/base/statefile.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
#include "lib/base/str.h"

enum { LIBRARY_BYTES_MAX = 16 << 20 };

/* Folders are named by ids, so the sweep may find one that an Allocate is making again. */
static pthread_mutex_t folders = PTHREAD_MUTEX_INITIALIZER;

int shares_check(const char *library, const char *base, struct error *err)
{
    struct stat st;
    if (stat(library, &st) < 0 || !S_ISREG(st.st_mode))
        return error_set(err, ERROR_UNAVAILABLE, "there is no library %s: install it", library);
    /* Files that containers write are below it: nobody else on the node comes near. */
    if ((mkdir(base, 0700) < 0 && errno != EEXIST) || stat(base, &st) < 0 ||
        ((st.st_mode & 07777) != 0700 && chmod(base, 0700) < 0))
        return error_errno(err, errno, "%s", base);
    return 0;
}

/* Makes dir/name hold these bytes; writes only if it differs. */
static int keep_file(const char *dir, const char *name, const char *bytes, size_t n,
                     struct error *err)
{
    char path[PATH_MAX];
    AUTO_STRBUF there;
    strbuf_init(&there);
    if (!str_format(path, sizeof path, "%s/%s", dir, name))
        return error_set(err, ERROR_INVALID, "%s/%s: too long", dir, name);
    if (file_read(path, LIBRARY_BYTES_MAX, &there, NULL) == 0 && there.len == n &&
        memcmp(strbuf_str(&there), bytes, n) == 0)
        return 0;
    return statefile_write(dir, name, bytes, n, err);
}

static int keep_common(const char *library, const char *base, struct error *err)
{
    static const char line[] = SHARES_INSIDE "/" SHARES_LIBRARY "\n";
    AUTO_STRBUF bytes;
    strbuf_init(&bytes);
    if (shares_check(library, base, err) < 0 ||
        file_read(library, LIBRARY_BYTES_MAX, &bytes, err) < 0 ||
        keep_file(base, SHARES_LIBRARY, strbuf_str(&bytes), bytes.len, err) < 0)
        return -1;
    return keep_file(base, "ld.so.preload", line, sizeof line - 1, err);
}

static bool read_limits(const char *dir, struct limits *out)
{
    char path[PATH_MAX];
    AUTO_STRBUF text;
    strbuf_init(&text);
    return str_format(path, sizeof path, "%s/limits", dir) &&
           file_read(path, LIMITS_BYTES_MAX, &text, NULL) == 0 &&
           limits_parse(strbuf_str(&text), text.len, out);
}

static int write_region(const char *dir, const char *name, uint32_t cards, struct error *err)
{
    size_t n = region_bytes(REGION_SLOTS, cards);
    char *empty = calloc(1, n);
    if (empty == NULL)
        abort();
    region_format(empty, REGION_SLOTS, cards);
    int result = regionfs_put(dir, name, empty, n, err);
    free(empty);
    return result;
}

/* Also what a crash left of one. */
static void remove_region(const char *base, const char *folder)
{
    char path[PATH_MAX];
    if (str_format(path, sizeof path, "%s/" SHARES_REGIONS "/%s", base, folder))
        (void)unlink(path);
    if (str_format(path, sizeof path, "%s/" SHARES_REGIONS "/%s.new", base, folder))
        (void)unlink(path);
}

/* Beside the limits is the file that the region is mounted over, or the region itself. */
static int put_region(const char *base, const char *folder, bool apart, uint32_t cards,
                      struct error *err)
{
    char dir[PATH_MAX], regions[PATH_MAX];
    if (!str_format(dir, sizeof dir, "%s/%s", base, folder) ||
        !str_format(regions, sizeof regions, "%s/" SHARES_REGIONS, base))
        return error_set(err, ERROR_INVALID, "%s: too long", base);
    if (!apart) {
        remove_region(base, folder); /* region_path would prefer it */
        return write_region(dir, "region", cards, err);
    }
    if (mkdir(regions, 0700) < 0 && errno != EEXIST)
        return error_errno(err, errno, "%s", regions);
    if (write_region(regions, folder, cards, err) < 0)
        return -1;
    return statefile_write(dir, "region", "", 0, err);
}

/* Where the container's region is. */
static bool region_path(const char *base, const char *folder, char path[PATH_MAX])
{
    struct stat st;
    if (str_format(path, PATH_MAX, "%s/" SHARES_REGIONS "/%s", base, folder) &&
        lstat(path, &st) == 0)
        return true;
    return str_format(path, PATH_MAX, "%s/%s/region", base, folder);
}

static int link_library(const char *base, const char *dir, struct error *err)
{
    char from[PATH_MAX], to[PATH_MAX];
    if (!str_format(from, sizeof from, "%s/" SHARES_LIBRARY, base) ||
        !str_format(to, sizeof to, "%s/" SHARES_LIBRARY, dir))
        return error_set(err, ERROR_INVALID, "%s: too long", dir);
    (void)unlink(to);
    return link(from, to) == 0 ? 0 : error_errno(err, errno, "%s", to);
}

static int write_limits(const char *dir, const struct limits *l, const struct shares_owner *o,
                        struct error *err)
{
    char text[LIMITS_BYTES_MAX], owner[SHARES_TEXT];
    size_t n = limits_print(l, text, sizeof text);
    if (!str_format(owner, sizeof owner, "%s %s %s %s", o->ns, o->pod, o->container, o->uid))
        owner[0] = '\0'; /* impossibly long names: the metrics get none */
    if (keep_file(dir, "limits", text, n, err) < 0)
        return -1;
    return keep_file(dir, "owner", owner, strlen(owner), err);
}

int shares_complete(const char *base, const struct shares_owner *owner, uint32_t percent,
                    struct error *err)
{
    char dir[PATH_MAX];
    struct limits l;
    struct stat st;
    if (!str_format(dir, sizeof dir, "%s/%s", base, owner->folder) || stat(dir, &st) < 0)
        return 0;
    if (!read_limits(dir, &l))
        return error_set(err, ERROR_INVALID, "isolation of GPU time: %s/limits cannot be read",
                         dir);
    for (uint32_t i = 0; i < l.len; i++)
        l.cards[i].percent = percent > 0 && percent < 100 ? percent : 100;
    return write_limits(dir, &l, owner, err) < 0 ? error_wrap(err, "isolation of GPU time") : 0;
}

static int prepare(const char *library, const struct shares_plan *plan, struct error *err)
{
    char dir[PATH_MAX];
    if (!str_format(dir, sizeof dir, "%s/%s", plan->base, plan->folder))
        return error_set(err, ERROR_INVALID, "%s: too long", plan->base);
    if (keep_common(library, plan->base, err) < 0)
        return error_wrap(err, "isolation of GPU memory");
    if (mkdir(dir, 0755) < 0 && errno != EEXIST)
        return error_errno(err, errno, "isolation of GPU memory: %s", dir);
    struct shares_owner owner = {
        .uid = "", .ns = plan->ns, .pod = plan->pod, .container = plan->container};
    if (write_limits(dir, &plan->limits, &owner, err) < 0 ||
        put_region(plan->base, plan->folder, plan->apart, plan->limits.len, err) < 0 ||
        link_library(plan->base, dir, err) < 0) /* renews the folder's time */
        return error_wrap(err, "isolation of GPU memory");
    return 0;
}

int shares_prepare(const char *library, const struct shares_plan *plan, struct error *err)
{
    pthread_mutex_lock(&folders);
    int result = prepare(library, plan, err);
    pthread_mutex_unlock(&folders);
    return result;
}

static int64_t bounded(uint64_t n)
{
    return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

static bool read_owner(const char *dir, struct strbuf *out)
{
    char path[PATH_MAX];
    return str_format(path, sizeof path, "%s/owner", dir) &&
           file_read(path, SHARES_TEXT, out, NULL) == 0;
}

/* "ns pod container uid" in place. Returns the uid; "": not known, or an older plugin's. */
static const char *split_owner(char *text, const char **ns, const char **pod,
                               const char **container)
{
    char *second = strchr(text, ' ');
    char *third = second != NULL ? strchr(second + 1, ' ') : NULL;
    char *fourth = third != NULL ? strchr(third + 1, ' ') : NULL;
    *ns = *pod = *container = "";
    if (third == NULL)
        return "";
    *second = *third = '\0';
    *ns = text;
    *pod = second + 1;
    *container = third + 1;
    if (fourth == NULL)
        return "";
    *fourth = '\0';
    return fourth + 1;
}

/* Launches set and clear the flag: for an idle container it may be stale. */
static bool is_unmeasured(const struct region_card *c, uint64_t now_ns)
{
    uint64_t at = c->measured_at_ns;
    return (c->flags & REGION_UNMEASURED) != 0 && c->launches > 0 &&
           !(at <= now_ns && now_ns - at < BUDGET_STALE_MS * UINT64_C(1000000));
}

static void read_card(const struct shares_region *r, struct shares_scan *l)
{
    const struct region_card *c = region_card(&r->region, l->card);
    l->processes = r->processes;
    l->used_mib = shares_region_used_mib(r, l->card);
    l->peak_mib = bounded(c->peak >> 20);
    l->denied = bounded(c->denied);
    l->throttled_ms = bounded(c->throttled_ns / 1000000);
    l->device_ms = bounded(c->measured_ns / 1000000);
    l->unmeasured = l->limit->percent < 100 && is_unmeasured(c, (uint64_t)clock_mono_us() * 1000);
}

static void read_folder(const char *base, const char *folder, int64_t budget_us,
                        void (*report)(void *arg, const struct shares_scan *l), void *arg)
{
    char dir[PATH_MAX], path[PATH_MAX];
    struct limits limits;
    struct shares_region r;
    AUTO_STRBUF owner;
    strbuf_init(&owner);
    if (!str_format(dir, sizeof dir, "%s/%s", base, folder) || !read_limits(dir, &limits) ||
        !read_owner(dir, &owner) || !region_path(base, folder, path))
        return;
    AUTO_FREE char *names = strbuf_take(&owner);
    struct shares_scan l = {.folder = folder};
    l.uid = split_owner(names, &l.ns, &l.pod, &l.container);
    l.broken = shares_region_read(&r, path, limits.len, budget_us);
    l.changed = r.changed;
    for (uint32_t i = 0; i < limits.len; i++) {
        l.card = i;
        l.limit = &limits.cards[i];
        if (l.broken == NULL && i < r.region.cards)
            read_card(&r, &l);
        report(arg, &l);
    }
    shares_region_free(&r);
}

static const char *next_folder(DIR *d)
{
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        if (e->d_type == DT_DIR && e->d_name[0] != '.')
            return e->d_name;
    return NULL;
}

void shares_each(const char *base, int64_t budget_us,
                 void (*report)(void *arg, const struct shares_scan *l), void *arg)
{
    DIR *d = opendir(base);
    const char *name;
    for (size_t n = 0; n < SHARES_CONTAINERS_MAX && (name = next_folder(d)) != NULL; n++)
        read_folder(base, name, budget_us, report, arg);
    if (d != NULL)
        closedir(d);
}

size_t shares_list(const char *base, struct arena *a, struct shares_folder **out)
{
    char dir[PATH_MAX];
    DIR *d = opendir(base);
    size_t n = 0, max = 0;
    AUTO_STRBUF owner;
    strbuf_init(&owner);
    while (max < SHARES_CONTAINERS_MAX && next_folder(d) != NULL)
        max++;
    if (d != NULL)
        rewinddir(d);
    struct shares_folder *list = arena_new(a, struct shares_folder, max);
    for (const char *name, *container; n < max && (name = next_folder(d)) != NULL;) {
        struct shares_folder *f = &list[n];
        strbuf_reset(&owner);
        if (!str_format(dir, sizeof dir, "%s/%s", base, name) || !read_limits(dir, &f->limits) ||
            !read_owner(dir, &owner))
            continue;
        f->name = arena_strdup(a, name);
        f->uid = split_owner(arena_strdup(a, strbuf_str(&owner)), &f->ns, &f->pod, &container);
        n++;
    }
    if (d != NULL)
        closedir(d);
    *out = list;
    return n;
}

bool shares_is_of(const char *folder, const char *uid)
{
    size_t n = strlen(uid);
    return n > 0 && strncmp(folder, uid, n) == 0 && folder[n] == '.';
}

bool shares_measure(const char *base, const char *folder, uint32_t card, uint64_t ns,
                    uint64_t now_ns)
{
    char path[PATH_MAX];
    return region_path(base, folder, path) && shares_region_measure(path, card, ns, now_ns);
}

static bool is_old(const char *dir, int64_t keep_ms)
{
    struct stat st;
    struct timespec now;
    return lstat(dir, &st) == 0 && clock_gettime(CLOCK_REALTIME, &now) == 0 &&
           ((int64_t)now.tv_sec - (int64_t)st.st_mtim.tv_sec) * 1000 >= keep_ms;
}

static bool remove_folder(const char *base, const char *folder)
{
    static const char *const names[] = {"limits", "limits.new", "owner",       "owner.new",
                                        "region", "region.new", SHARES_LIBRARY};
    char path[PATH_MAX], dir[PATH_MAX];
    if (!str_format(dir, sizeof dir, "%s/%s", base, folder))
        return false;
    remove_region(base, folder);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (str_format(path, sizeof path, "%s/%s", dir, names[i]))
            (void)unlink(path);
    return rmdir(dir) == 0;
}

size_t shares_sweep(const char *base, int64_t keep_ms,
                    bool (*in_use)(void *arg, const struct shares_owner *o), void *arg)
{
    DIR *d = opendir(base);
    size_t n = 0;
    for (const char *name; (name = next_folder(d)) != NULL;) {
        char uid[NAME_MAX + 1], dir[PATH_MAX];
        const char *dot = strrchr(name, '.');
        AUTO_STRBUF owner;
        strbuf_init(&owner);
        if (dot == NULL || !str_format(uid, sizeof uid, "%.*s", (int)(dot - name), name) ||
            !str_format(dir, sizeof dir, "%s/%s", base, name))
            continue;
        (void)read_owner(dir, &owner);
        char *names = strbuf_take(&owner);
        struct shares_owner o = {.folder = name};
        o.uid = split_owner(names, &o.ns, &o.pod, &o.container);
        if (!str_starts(name, SHARES_UNKNOWN))
            o.uid = uid;
        /* Nobody's: its container never started, and its ids tell whether it still may. */
        bool older = o.uid[0] == '\0' && o.ns[0] != '\0';
        int64_t age_ms = older ? SHARES_KEEP_UNKNOWN_MS : keep_ms;
        if (is_old(dir, age_ms) && !in_use(arg, &o)) {
            pthread_mutex_lock(&folders);
            n += is_old(dir, age_ms) && remove_folder(base, name);
            pthread_mutex_unlock(&folders);
        }
        free(names);
    }
    if (d != NULL)
        closedir(d);
    return n;
}

/* A reboot empties the file system of regions, but the kubelet remembers what it mounts. */
void shares_restore(const char *base)
{
    struct arena a;
    struct shares_folder *list;
    arena_init(&a, 0);
    size_t len = shares_list(base, &a, &list);
    for (size_t i = 0; i < len; i++) {
        char path[PATH_MAX];
        struct stat st;
        struct error err = ERROR_INIT;
        if (region_path(base, list[i].name, path) && lstat(path, &st) == 0 && st.st_size == 0 &&
            S_ISREG(st.st_mode) &&
            put_region(base, list[i].name, true, list[i].limits.len, &err) < 0)
            log_error("a container's region cannot be made again", kv("folder", list[i].name),
                      kv("error", err.text));
    }
    arena_deinit(&a);
}
