// SPDX-License-Identifier: Apache-2.0
/*
 * The first two bytes say how to cut the rest into pieces; however it is cut, the same lines come
 * out, in the same order, and none is longer than the bound.
 */
#include "lib/base/json.h"
#include "lib/kube/watchline.h"
#include "test/fuzz/fuzz_kit.h"

enum { MAX_BYTES = 200 };

static int keep(void *arg, char *line, size_t n, struct error *err)
{
    (void)err;
    if (n == 0 || n > MAX_BYTES || memchr(line, '\n', n))
        abort();
    strbuf_add(arg, line, n);
    strbuf_addc(arg, '\n');
    memset(line, 'x', n + JSON_PADDING); /* parsing in place overwrites it */
    return 0;
}

static int cut(const char *bytes, size_t n, size_t first, size_t step, struct strbuf *out)
{
    struct watchline w;
    int rc = 0;
    watchline_init(&w, MAX_BYTES);
    for (size_t at = 0; at < n && rc == 0;) {
        size_t piece = at == 0 ? first : step;
        piece = piece > n - at ? n - at : piece;
        rc = watchline_feed(&w, bytes + at, piece, keep, out, NULL);
        at += piece;
    }
    watchline_deinit(&w);
    return rc;
}

/* What must come out: the text itself, read without cleverness. */
static int expected(const char *bytes, size_t n, struct strbuf *out)
{
    size_t at = 0;
    while (at < n) {
        const char *end = memchr(bytes + at, '\n', n - at);
        size_t len = end ? (size_t)(end - (bytes + at)) : n - at;
        if (len > MAX_BYTES)
            return -1;
        if (!end)
            return 0;
        if (len > 0)
            strbuf_add(out, bytes + at, len + 1);
        at += len + 1;
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    size_t first = 1 + data[0], step = 1 + data[1];
    const char *bytes = (const char *)data + 2;
    struct strbuf want = {0}, got = {0};
    int want_rc = expected(bytes, size - 2, &want);
    int got_rc = cut(bytes, size - 2, first, step, &got);
    if (want_rc != got_rc || want.len != got.len ||
        (want.len && memcmp(want.ptr, got.ptr, want.len) != 0))
        abort();
    strbuf_deinit(&want);
    strbuf_deinit(&got);
    return 0;
}
