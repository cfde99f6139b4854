// SPDX-License-Identifier: Apache-2.0
/* Writes a temporary file, fsyncs and renames it, then fsyncs the directory, without which a power
 * failure could undo the rename. */
#include "lib/base/statefile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/cleanup.h"
#include "lib/base/file.h"
#include "lib/base/log.h"
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
        (void)unlink(beside); /* a partial file is useless and may fill the disk */
        return -1;
    }
    AUTO_CLOSE int parent = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (parent < 0 || fsync(parent) < 0)
        return error_errno(err, errno, "state directory %s", dir);
    return 0;
}

static int take_all(const struct statefile_list *f, const struct strbuf *text, statefile_take *take,
                    void *user, struct error *err)
{
    AUTO_JSON *doc = NULL;
    int64_t version = 0;
    if (json_parse(&doc, strbuf_str(text), text->len, err) < 0)
        return -1;
    if (!json_get_int(json_root(doc), "v", &version) || version != 1)
        return error_set(err, ERROR_INVALID, "v: must be 1");
    json *list = json_get(json_root(doc), f->list);
    if (!json_is_array(list) || json_len(list) > f->max)
        return error_set(err, ERROR_INVALID, "%s: must be an array of at most %zu", f->list,
                         f->max);
    if (f->root != NULL)
        f->root(json_root(doc), user);
    int taken = 0;
    size_t at = 0;
    for (struct json_iter it = json_iter(list); json_next(&it); at++) {
        struct error why = ERROR_INIT;
        if (take(it.value, user, &why) == 0)
            taken++;
        else
            log_warn("a part of the state file is left out", kv("file", f->name),
                     kv("list", f->list), kv("at", at), kv("error", why.text));
    }
    return taken;
}

int statefile_read(const struct statefile_list *f, statefile_take *take, void *user,
                   struct error *err)
{
    AUTO_STRBUF path;
    AUTO_STRBUF text;
    strbuf_init(&path);
    strbuf_init(&text);
    strbuf_addf(&path, "%s/%s", f->dir, f->name);
    if (access(strbuf_str(&path), F_OK) < 0)
        return 0;
    struct error why = ERROR_INIT;
    int taken = file_read(strbuf_str(&path), f->bytes_max, &text, &why);
    if (taken == 0)
        taken = take_all(f, &text, take, user, &why);
    if (taken < 0)
        return error_set(err, ERROR_INVALID, "state file %s: %s", strbuf_str(&path), why.text);
    return taken;
}
