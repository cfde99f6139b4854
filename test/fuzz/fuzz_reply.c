// SPDX-License-Identifier: Apache-2.0
/*
 * The first two bytes say how to cut the rest into pieces. However an answer is cut, the same comes of it as when it is read byte by byte, it is within its
 * bounds, and what is DONE has a status and is followed by nothing of its own.
 */
#include "lib/kube/reply.h"
#include "test/fuzz/fuzz_kit.h"

enum { MAX_BODY = 300 };

/* *taken: of all bytes, when DONE. */
static enum reply_progress cut(struct reply *r, const char *bytes, size_t n, size_t first,
                               size_t step, size_t *taken, struct error *err)
{
    enum reply_progress how = REPLY_MORE;
    *taken = 0;
    for (size_t at = 0, piece = first; at < n && how == REPLY_MORE; at += piece, piece = step) {
        size_t used = 0;
        piece = piece > n - at ? n - at : piece;
        how = reply_take(r, bytes + at, piece, &used, err);
        if (used > piece || (how == REPLY_MORE && used != piece))
            abort();
        *taken = at + used;
    }
    return how == REPLY_MORE ? reply_closed(r, err) : how;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    size_t first = 1 + data[0], step = 1 + data[1], taken[2];
    const char *bytes = (const char *)data + 2;
    struct error err[2] = {ERROR_INIT, ERROR_INIT};
    struct reply r[2];
    enum reply_progress how[2];
    for (int i = 0; i < 2; i++) {
        reply_init(&r[i], MAX_BODY);
        how[i] = cut(&r[i], bytes, size - 2, i ? first : 1, i ? step : 1, &taken[i], &err[i]);
        if (how[i] == REPLY_MORE || r[i].body.len > MAX_BODY || r[i].line.len > REPLY_HEAD_MAX ||
            (how[i] == REPLY_BAD) != (err[i].code != ERROR_NONE))
            abort();
        if (how[i] == REPLY_DONE && (r[i].status < 200 || r[i].status > 599))
            abort();
    }
    /* Where a bound is met depends on the piece, what is said about it does not. */
    if (how[0] != how[1] || err[0].code != err[1].code || r[0].status != r[1].status)
        abort();
    if (how[0] == REPLY_DONE &&
        (taken[0] != taken[1] || r[0].keep != r[1].keep || r[0].body.len != r[1].body.len ||
         r[0].retry_after_s != r[1].retry_after_s ||
         memcmp(strbuf_str(&r[0].body), strbuf_str(&r[1].body), r[0].body.len) != 0))
        abort();
    reply_deinit(&r[0]);
    reply_deinit(&r[1]);
    return 0;
}
