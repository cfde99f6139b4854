// SPDX-License-Identifier: Apache-2.0
/* A line may arrive in any number of pieces. Each is copied once, because the reader parses in
 * place and overwrites the bytes; the buffer is reused for every line. */
#include "lib/kube/watchline.h"

#include <string.h>

#include "lib/base/json.h"

void watchline_init(struct watchline *w, size_t max_bytes)
{
    strbuf_init(&w->buf);
    w->max_bytes = max_bytes;
}

void watchline_deinit(struct watchline *w)
{
    strbuf_deinit(&w->buf);
}

void watchline_reset(struct watchline *w)
{
    strbuf_reset(&w->buf);
}

int watchline_feed(struct watchline *w, const char *bytes, size_t n,
                   int (*on_line)(void *arg, char *line, size_t n, struct error *err), void *arg,
                   struct error *err)
{
    while (n > 0) {
        const char *end = memchr(bytes, '\n', n);
        size_t piece = end ? (size_t)(end - bytes) : n;
        if (piece > w->max_bytes - w->buf.len)
            return error_set(err, ERROR_TOO_LARGE, "watch event is larger than %zu bytes",
                             w->max_bytes);
        strbuf_add(&w->buf, bytes, piece);
        if (!end)
            return 0;
        bytes += piece + 1;
        n -= piece + 1;
        if (w->buf.len == 0)
            continue;
        strbuf_reserve(&w->buf, JSON_PADDING);
        int rc = on_line(arg, w->buf.ptr, w->buf.len, err);
        strbuf_reset(&w->buf);
        if (rc < 0)
            return rc;
    }
    return 0;
}
