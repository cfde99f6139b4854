// SPDX-License-Identifier: Apache-2.0
/* A running container's mounts keep their inodes: files are replaced by rename, and each folder has
 * its own link to the library, so a newer plugin changes nothing under a running container. Regions
 * are read into a copy, never mapped: a container can truncate its file, and a mapping would then
 * crash this process. */
#include "device-plugin/isolation/shares.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "device-plugin/isolation/budget.h"
#include "lib/base/statefile.h"
#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "lib/base/str.h"

enum { LIBRARY_BYTES_MAX = 16 << 20 };

int shares_check(const char *library, const char *base, struct error *err)
{
    struct stat st;
    if (stat(library, &st) < 0 || !S_ISREG(st.st_mode))
        return error_set(err, ERROR_UNAVAILABLE, "there is no library %s: install it", library);
    if (mkdir(base, 0755) < 0 && errno != EEXIST)
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

static int write_region(const char *dir, uint32_t cards, struct error *err)
{
    char path[PATH_MAX];
    size_t n = region_bytes(REGION_SLOTS, cards);
    char *empty = calloc(1, n);
    if (empty == NULL)
        abort();
    region_format(empty, REGION_SLOTS, cards);
    int result = statefile_write(dir, "region", empty, n, err);
    free(empty);
    /* Every user of the container may use its cards. */
    if (result == 0 && str_format(path, sizeof path, "%s/region", dir) && chmod(path, 0666) < 0)
        return error_errno(err, errno, "%s", path);
    return result;
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

static int write_limits(const char *dir, const struct limits *l, const char *ns, const char *pod,
                        const char *container, struct error *err)
{
    char text[LIMITS_BYTES_MAX], owner[SHARES_TEXT];
    size_t n = limits_print(l, text, sizeof text);
    if (!str_format(owner, sizeof owner, "%s %s %s", ns, pod, container))
        owner[0] = '\0'; /* impossibly long names: the metrics get none */
    if (statefile_write(dir, "limits", text, n, err) < 0)
        return -1;
    return statefile_write(dir, "owner", owner, strlen(owner), err);
}

int shares_complete(const char *base, const char *folder, const char *ns, const char *pod,
                    const char *container, uint32_t percent, struct error *err)
{
    char dir[PATH_MAX];
    struct limits l;
    struct stat st;
    if (!str_format(dir, sizeof dir, "%s/%s", base, folder) || stat(dir, &st) < 0)
        return 0;
    if (!read_limits(dir, &l))
        return error_set(err, ERROR_INVALID, "isolation of GPU time: %s/limits cannot be read",
                         dir);
    for (uint32_t i = 0; i < l.len; i++)
        l.cards[i].percent = percent > 0 && percent < 100 ? percent : 100;
    return write_limits(dir, &l, ns, pod, container, err) < 0
               ? error_wrap(err, "isolation of GPU time")
               : 0;
}

int shares_prepare(const char *library, const struct shares_plan *plan, struct error *err)
{
    char dir[PATH_MAX];
    if (!str_format(dir, sizeof dir, "%s/%s", plan->base, plan->folder))
        return error_set(err, ERROR_INVALID, "%s: too long", plan->base);
    if (keep_common(library, plan->base, err) < 0)
        return error_wrap(err, "isolation of GPU memory");
    if (mkdir(dir, 0755) < 0 && errno != EEXIST)
        return error_errno(err, errno, "isolation of GPU memory: %s", dir);
    if (write_limits(dir, &plan->limits, plan->ns, plan->pod, plan->container, err) < 0 ||
        write_region(dir, plan->limits.len, err) < 0 || link_library(plan->base, dir, err) < 0)
        return error_wrap(err, "isolation of GPU memory");
    return 0;
}

/* A copy of the file; NULL: not a region that we understand. */
static void *copy_region(int fd, struct region *r)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
        st.st_size > REGION_BYTES_MAX)
        return NULL;
    size_t size = (size_t)st.st_size, len = 0;
    char *copy = calloc(1, size);
    if (copy == NULL)
        abort();
    for (ssize_t n; len < size && (n = pread(fd, copy + len, size - len, (off_t)len)) > 0;)
        len += (size_t)n;
    if (region_open(r, copy, len))
        return copy;
    free(copy);
    return NULL;
}

/* Does a process hold the slot? */
static bool is_held(int fd, uint32_t slot)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1};
    return fcntl(fd, F_OFD_GETLK, &l) == 0 && l.l_type != F_UNLCK;
}

/* The sum over living processes: the word may include dead ones. */
static int64_t used_mib(int fd, const struct region *r, uint32_t card)
{
    uint64_t bytes = 0;
    if (region_used(r, card) == 0)
        return 0;
    for (uint32_t slot = 0; slot < r->slots; slot++) {
        uint64_t held = region_held(r, slot, card);
        if (held > 0 && held <= REGION_USED_MAX && is_held(fd, slot))
            bytes += held;
    }
    return (int64_t)(bytes >> 20);
}

static int64_t processes_in(int fd, const struct region *r)
{
    int64_t n = 0;
    for (uint32_t slot = 0; slot < r->slots; slot++)
        n += atomic_load(&region_slot(r, slot)->owner) != 0 && is_held(fd, slot);
    return n;
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

/* "ns pod container" in place. */
static void split_owner(char *text, const char **ns, const char **pod, const char **container)
{
    char *second = strchr(text, ' ');
    char *third = second != NULL ? strchr(second + 1, ' ') : NULL;
    *ns = *pod = *container = "";
    if (third == NULL)
        return;
    *second = *third = '\0';
    *ns = text;
    *pod = second + 1;
    *container = third + 1;
}

/* Launches set and clear the flag: for an idle container it may be stale. */
static bool is_unmeasured(const struct region_card *c, uint64_t now_ns)
{
    uint64_t at = c->measured_at_ns;
    return (c->flags & REGION_UNMEASURED) != 0 && c->launches > 0 &&
           !(at <= now_ns && now_ns - at < BUDGET_STALE_MS * UINT64_C(1000000));
}

static void read_folder(const char *base, const char *folder,
                        void (*report)(void *arg, const struct shares_scan *l), void *arg)
{
    char dir[PATH_MAX], path[PATH_MAX];
    struct limits limits;
    struct region r;
    AUTO_STRBUF owner;
    strbuf_init(&owner);
    if (!str_format(dir, sizeof dir, "%s/%s", base, folder) || !read_limits(dir, &limits) ||
        !read_owner(dir, &owner) || !str_format(path, sizeof path, "%s/region", dir))
        return;
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    void *copy = fd >= 0 ? copy_region(fd, &r) : NULL;
    char *names = strbuf_take(&owner);
    struct shares_scan l = {.folder = folder};
    split_owner(names, &l.ns, &l.pod, &l.container);
    l.processes = copy != NULL ? processes_in(fd, &r) : 0;
    for (uint32_t i = 0; copy != NULL && i < limits.len && i < r.cards; i++) {
        const struct region_card *c = region_card(&r, i);
        l.card = i;
        l.limit = &limits.cards[i];
        l.used_mib = used_mib(fd, &r, i);
        l.peak_mib = bounded(c->peak >> 20);
        l.denied = bounded(c->denied);
        l.throttled_ms = bounded(c->throttled_ns / 1000000);
        l.device_ms = bounded(c->measured_ns / 1000000);
        l.unmeasured =
            limits.cards[i].percent < 100 && is_unmeasured(c, (uint64_t)clock_mono_us() * 1000);
        report(arg, &l);
    }
    free(names);
    free(copy);
}

static const char *next_folder(DIR *d)
{
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;)
        if (e->d_type == DT_DIR && e->d_name[0] != '.')
            return e->d_name;
    return NULL;
}

void shares_each(const char *base, void (*report)(void *arg, const struct shares_scan *l),
                 void *arg)
{
    DIR *d = opendir(base);
    const char *name;
    for (size_t n = 0; n < SHARES_CONTAINERS_MAX && (name = next_folder(d)) != NULL; n++)
        read_folder(base, name, report, arg);
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
        split_owner(arena_strdup(a, strbuf_str(&owner)), &f->ns, &f->pod, &container);
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

/* Writes to the file, which the container has mapped. If the container overwrites it, that affects
 * only itself. */
bool shares_measure(const char *base, const char *folder, uint32_t card, uint64_t ns,
                    uint64_t now_ns)
{
    char path[PATH_MAX];
    struct region_header head;
    struct region r;
    struct stat st;
    uint64_t measured[2];
    if (!str_format(path, sizeof path, "%s/%s/region", base, folder))
        return false;
    AUTO_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > REGION_BYTES_MAX ||
        pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head ||
        !region_open(&r, &head, (size_t)st.st_size) || card >= r.cards)
        return false;
    off_t row = (off_t)(r.card_offset + (size_t)card * r.card_size);
    _Static_assert(offsetof(struct region_card, measured_at_ns) ==
                       offsetof(struct region_card, measured_ns) + sizeof measured[0],
                   "both in one write");
    off_t at = row + (off_t)offsetof(struct region_card, measured_ns);
    if (pread(fd, measured, sizeof measured, at) != (ssize_t)sizeof measured)
        return false;
    measured[0] += ns;
    measured[1] = now_ns;
    uint64_t check = budget_check(measured[0], measured[1]);
    return pwrite(fd, measured, sizeof measured, at) == (ssize_t)sizeof measured &&
           pwrite(fd, &check, sizeof check,
                  row + (off_t)offsetof(struct region_card, measured_check)) ==
               (ssize_t)sizeof check;
}

static bool is_old(const char *dir, int64_t keep_ms)
{
    struct stat st;
    struct timespec now;
    return lstat(dir, &st) == 0 && clock_gettime(CLOCK_REALTIME, &now) == 0 &&
           ((int64_t)now.tv_sec - (int64_t)st.st_mtim.tv_sec) * 1000 >= keep_ms;
}

static bool remove_folder(const char *dir)
{
    static const char *const names[] = {"limits", "limits.new", "owner",       "owner.new",
                                        "region", "region.new", SHARES_LIBRARY};
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (str_format(path, sizeof path, "%s/%s", dir, names[i]))
            (void)unlink(path);
    return rmdir(dir) == 0;
}

size_t shares_sweep(const char *base, int64_t keep_ms, bool (*alive)(void *arg, const char *uid),
                    void *arg)
{
    DIR *d = opendir(base);
    size_t n = 0;
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        char uid[NAME_MAX + 1], dir[PATH_MAX];
        const char *dot = strrchr(e->d_name, '.');
        if (e->d_type != DT_DIR || dot == NULL || dot == e->d_name || e->d_name[0] == '.' ||
            !str_format(uid, sizeof uid, "%.*s", (int)(dot - e->d_name), e->d_name) ||
            !str_format(dir, sizeof dir, "%s/%s", base, e->d_name))
            continue;
        bool unknown = str_starts(e->d_name, SHARES_UNKNOWN);
        if (!alive(arg, uid) && is_old(dir, unknown ? SHARES_KEEP_UNKNOWN_MS : keep_ms))
            n += remove_folder(dir);
    }
    if (d != NULL)
        closedir(d);
    return n;
}
