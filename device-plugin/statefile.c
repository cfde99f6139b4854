// SPDX-License-Identifier: Apache-2.0
/* statefile - written beside, flushed, renamed; the directory is flushed too, or a power cut could undo the rename. */
#include "device-plugin/statefile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/str.h"

static int write_all(int fd, const char *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t written = write(fd, bytes + done, n - done);
        if (written < 0 && errno != EINTR)
            return -1;
        if (written > 0)
            done += (size_t)written;
    }
    return 0;
}

int statefile_write(const char *dir, const char *name, const char *bytes, size_t n,
                    struct error *err)
{
    char path[PATH_MAX], beside[PATH_MAX];
    if (!str_format(path, sizeof path, "%s/%s", dir, name) ||
        !str_format(beside, sizeof beside, "%s/%s.new", dir, name))
        return error_set(err, ERROR_INVALID, "state file %s/%s: the name is too long", dir, name);
    AUTO_CLOSE int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || write_all(fd, bytes, n) < 0 || fsync(fd) < 0 || rename(beside, path) < 0) {
        (void)error_errno(err, errno, "state file %s", path);
        (void)unlink(beside); /* half a file helps nobody, least of all on a full disk */
        return -1;
    }
    AUTO_CLOSE int parent = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0 || fsync(parent) < 0)
        return error_errno(err, errno, "state directory %s", dir);
    return 0;
}
