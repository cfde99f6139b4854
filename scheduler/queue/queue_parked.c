// SPDX-License-Identifier: Apache-2.0
#include "scheduler/queue/queue_parked.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "scheduler/queue/queue.h"

struct queue_bucket {
    uint32_t wake;
    bool lucky; /* those that were parked by lucky_ms may fit in another order */
    int64_t lucky_ms;
    bool short_of; /* a node was freed that is too small: it may grow */
    struct queue_need need;
    struct VEC(struct queue_entry *) items;
    size_t place; /* in buckets */
    char text[];
};

void queue_parked_init(struct queue_parked *p)
{
    *p = (struct queue_parked){0};
    map_init(&p->by_text);
}

static void bucket_free(struct queue_parked *p, struct queue_bucket *b)
{
    (void)map_remove(&p->by_text, b->text);
    p->buckets.items[b->place] = p->buckets.items[--p->buckets.len];
    p->buckets.items[b->place]->place = b->place;
    vec_deinit(&b->items);
    free(b);
}

void queue_parked_deinit(struct queue_parked *p)
{
    while (p->buckets.len > 0)
        bucket_free(p, p->buckets.items[p->buckets.len - 1]);
    vec_deinit(&p->buckets);
    vec_deinit(&p->items);
    map_deinit(&p->by_text);
    strbuf_deinit(&p->text);
}

static void print_key(struct strbuf *out, uint32_t wake, const struct queue_need *n)
{
    strbuf_reset(out);
    strbuf_addf(out, "%x", (unsigned)wake);
    if (n->set)
        strbuf_addf(out, " %d %d %llx %llx %llx %llx %llx", n->preempts, n->priority,
                    (unsigned long long)n->cpu_milli, (unsigned long long)n->memory_bytes,
                    (unsigned long long)n->ephemeral_bytes, (unsigned long long)n->card_gib,
                    (unsigned long long)n->cards);
}

static struct queue_bucket *bucket_of(struct queue_parked *p, uint32_t wake,
                                      const struct queue_need *need)
{
    struct queue_need n = *need;
    queue_need_round(&n);
    print_key(&p->text, wake, &n);
    struct queue_bucket *b = map_get(&p->by_text, strbuf_str(&p->text));
    if (b != NULL)
        return b;
    b = mem_array_(1, sizeof *b + p->text.len + 1);
    b->wake = wake;
    b->need = n;
    b->place = p->buckets.len;
    memcpy(b->text, strbuf_str(&p->text), p->text.len + 1);
    vec_push(&p->buckets, b);
    map_put(&p->by_text, b->text, b);
    return b;
}

void queue_parked_add(struct queue_parked *p, struct queue_entry *e)
{
    struct queue_bucket *b = bucket_of(p, e->wake, &e->need);
    e->bucket = b;
    e->bucket_place = b->items.len;
    vec_push(&b->items, e);
    e->parked_place = p->items.len;
    vec_push(&p->items, e);
}

static void take_from_list(struct queue_parked *p, struct queue_entry *e)
{
    p->items.items[e->parked_place] = p->items.items[--p->items.len];
    p->items.items[e->parked_place]->parked_place = e->parked_place;
}

void queue_parked_remove(struct queue_parked *p, struct queue_entry *e)
{
    struct queue_bucket *b = e->bucket;
    take_from_list(p, e);
    b->items.items[e->bucket_place] = b->items.items[--b->items.len];
    b->items.items[e->bucket_place]->bucket_place = e->bucket_place;
    e->bucket = NULL;
    if (b->items.len == 0)
        bucket_free(p, b);
}

bool queue_parked_is_lucky(const struct queue_entry *e)
{
    return e->bucket != NULL && e->bucket->lucky && e->parked_ms <= e->bucket->lucky_ms;
}

/* Backwards: it may remove the last one, and the bucket with it. */
static size_t wake_all(struct queue_bucket *b, void (*wake)(void *arg, struct queue_entry *e),
                       void *arg)
{
    size_t n = b->items.len;
    for (size_t i = n; i-- > 0;)
        wake(arg, b->items.items[i]);
    return n;
}

static bool may_fit(const struct queue_need *n, const struct cluster *c)
{
    bool may = c->freed_anywhere || c->freed.len == 0;
    for (size_t i = 0; i < c->freed.len && !may; i++)
        may = queue_need_may_fit(n, c->freed.items[i]);
    return may;
}

size_t queue_parked_wake(struct queue_parked *p, struct cluster *c, uint32_t events, int64_t now_ms,
                         void (*wake)(void *arg, struct queue_entry *e), void *arg)
{
    enum {
        OF_NODE = EVENT_POD_GONE | EVENT_POD_LEAVING,
        GROWTH = EVENT_NODE_CAPACITY | EVENT_NODE_GPU
    };
    size_t woken = 0;
    if (events & EVENT_POD_GONE)
        events |= EVENT_POD_LEFT;
    for (size_t i = p->buckets.len; events != 0 && i-- > 0;) {
        struct queue_bucket *b = p->buckets.items[i];
        uint32_t hit = (b->short_of ? b->wake | GROWTH : b->wake) & events;
        if ((hit & ~(uint32_t)(OF_NODE | EVENT_POD_PLACED)) != 0 ||
            ((hit & OF_NODE) != 0 && may_fit(&b->need, c))) {
            woken += wake_all(b, wake, arg);
            continue;
        }
        b->short_of |= (hit & OF_NODE) != 0;
        if (hit != 0 && (b->wake & EVENT_POD_PLACED) != 0) {
            b->lucky = true;
            b->lucky_ms = now_ms;
            int64_t due_ms = now_ms + QUEUE_PARKED_LUCK_MS; /* others may be due much later */
            p->luck_ms = p->luck_ms != 0 ? num_min(p->luck_ms, due_ms) : due_ms;
        }
    }
    if (events & EVENT_POD_GONE) { /* what left is kept until all that it can help were asked */
        c->freed.len = 0;
        c->freed_anywhere = false;
    }
    return woken;
}

static int64_t due_of(const struct queue_entry *e)
{
    return num_add_sat(e->parked_ms, e->wait_ms * QUEUE_PARKED_LUCK_WAITS);
}

/* When the next one is due. May free the bucket. */
static int64_t try_luck(struct queue_bucket *b, int64_t now_ms,
                        void (*wake)(void *arg, struct queue_entry *e), void *arg)
{
    int64_t next_ms = INT64_MAX;
    size_t kept = 0;
    for (size_t i = 0; i < b->items.len; i++) {
        const struct queue_entry *e = b->items.items[i];
        bool lucky = queue_parked_is_lucky(e);
        if (lucky && due_of(e) > now_ms)
            next_ms = num_min(next_ms, due_of(e));
        kept += !lucky || due_of(e) > now_ms;
    }
    b->lucky = next_ms < INT64_MAX;
    if (kept == 0) {
        (void)wake_all(b, wake, arg);
        return next_ms;
    }
    for (size_t i = b->items.len; i-- > 0;)
        if (b->items.items[i]->parked_ms <= b->lucky_ms && due_of(b->items.items[i]) <= now_ms)
            wake(arg, b->items.items[i]);
    return next_ms;
}

void queue_parked_luck(struct queue_parked *p, int64_t now_ms,
                       void (*wake)(void *arg, struct queue_entry *e), void *arg)
{
    if (p->luck_ms == 0 || p->luck_ms > now_ms)
        return;
    int64_t next_ms = INT64_MAX;
    for (size_t i = p->buckets.len; i-- > 0;)
        if (p->buckets.items[i]->lucky)
            next_ms = num_min(next_ms, try_luck(p->buckets.items[i], now_ms, wake, arg));
    p->luck_ms = next_ms < INT64_MAX ? num_max(next_ms, now_ms + QUEUE_PARKED_LUCK_MS) : 0;
}
