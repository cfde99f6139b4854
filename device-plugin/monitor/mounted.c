// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/monitor/mounted.h"

#include "device-plugin/isolation/regionfile.h"
#include "device-plugin/isolation/shares.h"
#include "lib/base/file.h"

enum { STAT_BYTES_MAX = 4096 };

static bool read_proc(const char *proc, int64_t pid, const char *file, size_t most,
                      struct strbuf *text)
{
    char path[256];
    strbuf_reset(text);
    return str_format(path, sizeof path, "%s/%lld/%s", proc, (long long)pid, file) &&
           file_read(path, most, text, NULL) == 0;
}

const char *mounted_folder(struct mounted *m, const char *proc, int64_t pid, struct strbuf *text)
{
    struct regionfile_process process;
    size_t at = (size_t)pid % MOUNTED_SLOTS;
    if (!read_proc(proc, pid, "stat", STAT_BYTES_MAX, text) ||
        !regionfile_parse(strbuf_str(text), &process))
        return "";
    if (m->slots[at].pid == pid && m->slots[at].start == process.start)
        return m->slots[at].folder;
    m->slots[at].pid = pid;
    m->slots[at].start = process.start;
    m->slots[at].folder[0] = '\0';
    if (read_proc(proc, pid, "mountinfo", PODMOUNTS_BYTES_MAX, text))
        (void)podmounts_at(strbuf_str(text), text->len, SHARES_INSIDE, m->slots[at].folder);
    return m->slots[at].folder;
}
