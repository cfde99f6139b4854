// SPDX-License-Identifier: Apache-2.0
/*
 * server_out - see server_out.h.
 */
#include "test/local/server/server_out.h"

#include <stdlib.h>

#include "lib/base/mem.h"

static struct server_piece *piece_at(const struct server_out *o, size_t i)
{
    return &o->pieces[(o->head + i) & (o->cap - 1)];
}

static void release(struct server_piece *p)
{
    if (p->shared)
        shared_bytes_unref(p->shared);
    free(p->owned);
}

void server_out_clear(struct server_out *o)
{
    for (size_t i = 0; i < o->len; i++)
        release(piece_at(o, i));
    o->head = o->len = o->done = o->unsent = 0;
}

void server_out_deinit(struct server_out *o)
{
    server_out_clear(o);
    free(o->pieces);
    *o = (struct server_out){0};
}

static void push(struct server_out *o, struct server_piece p)
{
    if (o->len == o->cap) {
        size_t cap = o->cap == 0 ? 8 : o->cap * 2;
        struct server_piece *pieces = mem_new(struct server_piece, cap);
        for (size_t i = 0; i < o->len; i++)
            pieces[i] = *piece_at(o, i);
        free(o->pieces);
        o->pieces = pieces;
        o->cap = cap;
        o->head = 0;
    }
    o->len++;
    *piece_at(o, o->len - 1) = p;
    o->unsent += p.len;
}

void server_out_take(struct server_out *o, struct strbuf *take)
{
    size_t n = take->len;
    if (n == 0) {
        strbuf_deinit(take);
        return;
    }
    char *bytes = strbuf_take(take);
    push(o, (struct server_piece){.owned = bytes, .bytes = bytes, .len = n});
}

void server_out_text(struct server_out *o, const char *static_text)
{
    push(o, (struct server_piece){.bytes = static_text, .len = strlen(static_text)});
}

void server_out_share(struct server_out *o, struct shared_bytes *b, bool framed)
{
    push(o, (struct server_piece){.shared = shared_bytes_ref(b),
                                  .bytes = framed ? b->frame_ : b->bytes,
                                  .len = framed ? b->frame_len_ : b->len});
}

int server_out_gather(const struct server_out *o, struct iovec *iov, int max)
{
    int n = 0;
    for (; n < max && (size_t)n < o->len; n++) {
        const struct server_piece *p = piece_at(o, (size_t)n);
        size_t skip = n == 0 ? o->done : 0;
        iov[n] = (struct iovec){.iov_base = (void *)(uintptr_t)(p->bytes + skip),
                                .iov_len = p->len - skip};
    }
    return n;
}

size_t server_out_copy(const struct server_out *o, char *to, size_t n)
{
    size_t copied = 0;
    for (size_t i = 0; i < o->len && copied < n; i++) {
        const struct server_piece *p = piece_at(o, i);
        size_t skip = i == 0 ? o->done : 0, len = p->len - skip;
        if (len > n - copied)
            len = n - copied;
        memcpy(to + copied, p->bytes + skip, len);
        copied += len;
    }
    return copied;
}

void server_out_sent(struct server_out *o, size_t n)
{
    o->unsent -= n;
    while (o->len > 0 && n >= piece_at(o, 0)->len - o->done) {
        n -= piece_at(o, 0)->len - o->done;
        release(piece_at(o, 0));
        o->head = (o->head + 1) & (o->cap - 1);
        o->len--;
        o->done = 0;
    }
    o->done += n;
}
