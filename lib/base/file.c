// SPDX-License-Identifier: Apache-2.0
#include "lib/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/mem.h"

enum { PIECE = 8192 };

/* Reads one byte more than max, to detect the end of a file of exactly max bytes. */
static int read_all(int fd, const char *path, size_t max, size_t begin, struct strbuf *out,
                    struct error *err)
{
    for (;;) {
        if (out->cap - out->len < 2) /* one for the NUL */
            strbuf_reserve(out, PIECE);
        ssize_t n = read(fd, out->ptr + out->len, out->cap - out->len - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return error_errno(err, errno, "%s", path);
        out->len += (size_t)n;
        out->ptr[out->len] = '\0';
        if (out->len - begin > max)
            return error_set(err, ERROR_TOO_LARGE, "%s: larger than %zu bytes", path, max);
        if (n == 0)
            return 0;
    }
}

int file_read(const char *path, size_t max, struct strbuf *out, struct error *err)
{
    struct stat st;
    AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* do not block on a FIFO */
    if (fd < 0 || fstat(fd, &st) < 0)
        return error_errno(err, errno, "%s", path);
    size_t begin = out->len, size = S_ISREG(st.st_mode) && st.st_size > 0 ? (size_t)st.st_size : 0;
    if (size > max)
        return error_set(err, ERROR_TOO_LARGE, "%s: larger than %zu bytes", path, max);
    strbuf_reserve(out, size + 2);
    if (read_all(fd, path, max, begin, out, err) == 0)
        return 0;
    mem_wipe(out->ptr + begin, out->len - begin);
    out->len = begin;
    out->ptr[begin] = '\0';
    return -1;
}
