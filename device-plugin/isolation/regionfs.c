// SPDX-License-Identifier: Apache-2.0
/*
 * The file RESERVE has all blocks that are free. A new region's blocks are taken from it; a
 * container that writes at that very moment may get some of them, so it is tried again. They come
 * back when the next look truncates that container's region.
 */
#include "device-plugin/isolation/regionfs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/num.h"
#include "lib/base/statefile.h"
#include "lib/base/str.h"

#define RESERVE ".reserve"

enum { TRIES = 8 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all reserves */

static bool is_tmpfs(const char *dir, int64_t bytes)
{
    struct statfs fs;
    struct statvfs v;
    const unsigned long flags = ST_NOSUID | ST_NODEV | ST_NOEXEC;
    return statfs(dir, &fs) == 0 && (unsigned long)fs.f_type == TMPFS_MAGIC &&
           statvfs(dir, &v) == 0 && (v.f_flag & flags) == flags &&
           v.f_blocks * v.f_frsize <= (uint64_t)bytes;
}

bool regionfs_is(const char *dir)
{
    return is_tmpfs(dir, REGIONFS_BYTES);
}

int regionfs_mount_tmpfs(const char *dir, int64_t bytes, unsigned mode, struct error *err)
{
    char options[64];
    if (is_tmpfs(dir, bytes))
        return 0;
    (void)str_format(options, sizeof options, "mode=%o,size=%lld,nr_inodes=8192", mode,
                     (long long)bytes);
    if ((mkdir(dir, 0700) < 0 && errno != EEXIST) ||
        mount("cosched", dir, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) < 0)
        return error_errno(err, errno, "%s: mount of a tmpfs", dir);
    return 0;
}

/* Changes the reserve by this many bytes. */
static void resize(const char *dir, int64_t by)
{
    char path[PATH_MAX];
    struct stat st;
    if (!str_format(path, sizeof path, "%s/" RESERVE, dir))
        return;
    AUTO_CLOSE int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || fstat(fd, &st) < 0)
        return;
    /* What fails here fails again, and is told, where the blocks are needed. */
    if (by > 0)
        (void)posix_fallocate(fd, st.st_size, by);
    else if (ftruncate(fd, num_max(st.st_size + by, 0)) < 0)
        return;
}

static void fill(const char *dir)
{
    struct statvfs v;
    if (regionfs_is(dir) && statvfs(dir, &v) == 0)
        resize(dir, (int64_t)(v.f_bavail * v.f_frsize));
}

static int put(const char *dir, const char *name, const char *bytes, size_t n, struct error *err)
{
    char path[PATH_MAX];
    if (statefile_write(dir, name, bytes, n, err) < 0)
        return -1;
    /* Every user of the container may use its cards. */
    return str_format(path, sizeof path, "%s/%s", dir, name) && chmod(path, 0666) == 0
               ? 0
               : error_errno(err, errno, "%s/%s", dir, name);
}

int regionfs_put(const char *dir, const char *name, const char *bytes, size_t n, struct error *err)
{
    pthread_mutex_lock(&lock);
    int64_t room = (int64_t)n + 4096;
    int result = put(dir, name, bytes, n, err);
    for (int i = 0; i < TRIES && result < 0 && regionfs_is(dir); i++, room *= 2) {
        resize(dir, -room);
        result = put(dir, name, bytes, n, err);
    }
    fill(dir);
    pthread_mutex_unlock(&lock);
    return result;
}

void regionfs_fill(const char *dir)
{
    pthread_mutex_lock(&lock);
    fill(dir);
    pthread_mutex_unlock(&lock);
}
