// SPDX-License-Identifier: Apache-2.0
#include "scheduler/queue/queue_turns.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "scheduler/queue/queue.h"

enum { FLOWS_KEPT = 64 }; /* idle namespaces of a line before they are looked for */

struct queue_flow {
    struct queue_line *line;
    struct heap fresh, retried;        /* entries */
    struct heap_node in_all, in_fresh; /* of the line; in_fresh: while it has a fresh entry */
    int64_t spent;                     /* the virtual time at which its next attempt starts */
    char ns[];
};

struct queue_line {
    int32_t priority, lapses;
    struct map flows; /* by namespace */
    size_t sweep_at;  /* number of flows at which idle ones are freed */
    struct heap all, fresh;
    int64_t now;  /* virtual: where the namespace began that was served last */
    int64_t owed; /* to fresh gangs, by retries in vain */
};

static bool entry_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct queue_entry *x = container_of_const(a, struct queue_entry, heap);
    const struct queue_entry *y = container_of_const(b, struct queue_entry, heap);
    if (x->queued_priority != y->queued_priority)
        return x->queued_priority > y->queued_priority;
    if (x->queued_lapses != y->queued_lapses)
        return x->queued_lapses < y->queued_lapses;
    if (x->queued_since_ns != y->queued_since_ns)
        return x->queued_since_ns < y->queued_since_ns;
    return strcmp(x->gang->key, y->gang->key) < 0;
}

/* The older of its two first entries. */
static struct heap_node *head_of(const struct queue_flow *f)
{
    struct heap_node *a = heap_top(&f->fresh), *b = heap_top(&f->retried);
    if (a == NULL || b == NULL)
        return a != NULL ? a : b;
    return entry_before(a, b) ? a : b;
}

static bool all_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct queue_flow *x = container_of_const(a, struct queue_flow, in_all);
    const struct queue_flow *y = container_of_const(b, struct queue_flow, in_all);
    return x->spent != y->spent ? x->spent < y->spent : entry_before(head_of(x), head_of(y));
}

static bool fresh_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct queue_flow *x = container_of_const(a, struct queue_flow, in_fresh);
    const struct queue_flow *y = container_of_const(b, struct queue_flow, in_fresh);
    return x->spent != y->spent ? x->spent < y->spent
                                : entry_before(heap_top(&x->fresh), heap_top(&y->fresh));
}

void queue_turns_init(struct queue_turns *t)
{
    *t = (struct queue_turns){0};
    heap_init(&t->first, entry_before);
}

static void flow_free(struct queue_flow *f)
{
    (void)map_remove(&f->line->flows, f->ns);
    heap_deinit(&f->fresh);
    heap_deinit(&f->retried);
    free(f);
}

void queue_turns_deinit(struct queue_turns *t)
{
    void *value;
    for (size_t i = 0; i < t->lines.len; i++) {
        struct queue_line *l = t->lines.items[i];
        for (size_t k = 0; map_next(&l->flows, &k, NULL, &value);)
            flow_free(value);
        map_deinit(&l->flows);
        heap_deinit(&l->all);
        heap_deinit(&l->fresh);
        free(l);
    }
    vec_deinit(&t->lines);
    heap_deinit(&t->first);
}

/* A cluster has a handful of priorities. */
static struct queue_line *line_of(struct queue_turns *t, int32_t priority, int32_t lapses)
{
    size_t i = 0;
    while (i < t->lines.len &&
           (t->lines.items[i]->priority > priority ||
            (t->lines.items[i]->priority == priority && t->lines.items[i]->lapses < lapses)))
        i++;
    struct queue_line *l = i < t->lines.len ? t->lines.items[i] : NULL;
    if (l != NULL && l->priority == priority && l->lapses == lapses)
        return l;
    l = mem_new(struct queue_line, 1);
    *l = (struct queue_line){.priority = priority, .lapses = lapses, .sweep_at = FLOWS_KEPT};
    map_init(&l->flows);
    heap_init(&l->all, all_before);
    heap_init(&l->fresh, fresh_before);
    vec_push(&t->lines, NULL);
    memmove(&t->lines.items[i + 1], &t->lines.items[i],
            (t->lines.len - 1 - i) * sizeof t->lines.items[0]);
    t->lines.items[i] = l;
    return l;
}

/* Frees the flows that have no entry, and (closing: any; else) no debt. */
static void sweep(struct queue_turns *t, struct queue_line *l, bool closing)
{
    void *value;
    for (size_t i = 0; map_next(&l->flows, &i, NULL, &value);) {
        struct queue_flow *f = value;
        if (f != t->serving && !heap_has(&f->in_all) && (closing || f->spent <= l->now))
            flow_free(f);
    }
    l->sweep_at = 2 * map_count(&l->flows) + FLOWS_KEPT;
}

/* "pod ns/name", "gang ns/name" */
static struct queue_flow *flow_of(struct queue_turns *t, const struct queue_entry *e)
{
    struct queue_line *l = line_of(t, e->queued_priority, e->queued_lapses);
    const char *blank = strchr(e->gang->key, ' '), *ns = blank != NULL ? blank + 1 : e->gang->key;
    AUTO_STRBUF name = {0};
    strbuf_add(&name, ns, strcspn(ns, "/"));
    struct queue_flow *f = map_get(&l->flows, strbuf_str(&name));
    if (f != NULL)
        return f;
    if (map_count(&l->flows) >= l->sweep_at)
        sweep(t, l, false);
    f = mem_array_(1, sizeof *f + name.len + 1);
    f->line = l;
    memcpy(f->ns, strbuf_str(&name), name.len + 1);
    heap_init(&f->fresh, entry_before);
    heap_init(&f->retried, entry_before);
    map_put(&l->flows, f->ns, f);
    return f;
}

/* Its entries or its account changed. */
static void place(struct queue_flow *f)
{
    struct queue_line *l = f->line;
    heap_remove(&l->all, &f->in_all);
    heap_remove(&l->fresh, &f->in_fresh);
    if (f->fresh.len + f->retried.len > 0)
        heap_push(&l->all, &f->in_all);
    if (f->fresh.len > 0)
        heap_push(&l->fresh, &f->in_fresh);
}

/* The heaps compare by the first entries, so the flow is out of them while these change. */
static void lift(struct queue_flow *f)
{
    heap_remove(&f->line->all, &f->in_all);
    heap_remove(&f->line->fresh, &f->in_fresh);
}

void queue_turns_add(struct queue_turns *t, struct queue_entry *e)
{
    t->len++;
    if (e->queued_first) {
        heap_push(&t->first, &e->heap);
        return;
    }
    struct queue_flow *f = flow_of(t, e);
    if (!heap_has(&f->in_all))
        f->spent = num_max(f->spent, f->line->now);
    lift(f);
    e->flow = f;
    heap_push(e->queued_retry ? &f->retried : &f->fresh, &e->heap);
    place(f);
}

void queue_turns_remove(struct queue_turns *t, struct queue_entry *e)
{
    struct queue_flow *f = e->flow;
    t->len--;
    e->flow = NULL;
    if (f == NULL) {
        heap_remove(&t->first, &e->heap);
        return;
    }
    lift(f);
    heap_remove(e->queued_retry ? &f->retried : &f->fresh, &e->heap);
    place(f);
}

static struct queue_entry *first_fresh(const struct queue_line *l)
{
    struct heap_node *n = heap_top(&l->fresh);
    struct queue_flow *f = n != NULL ? container_of(n, struct queue_flow, in_fresh) : NULL;
    return f != NULL ? container_of(heap_top(&f->fresh), struct queue_entry, heap) : NULL;
}

static struct queue_entry *next(struct queue_turns *t)
{
    size_t i = 0;
    while (i < t->lines.len && t->lines.items[i]->all.len == 0)
        i++;
    if (i == t->lines.len)
        return NULL;
    struct queue_line *l = t->lines.items[i];
    const struct queue_flow *f = container_of(heap_top(&l->all), struct queue_flow, in_all);
    struct queue_entry *e = container_of(head_of(f), struct queue_entry, heap);
    struct queue_entry *fresh = l->owed > 0 ? first_fresh(l) : NULL;
    if (!e->queued_retry || fresh != NULL)
        return fresh != NULL ? fresh : e;
    for (size_t k = i + 1; k < t->lines.len && t->in_vain >= QUEUE_TURNS_PATIENCE && fresh == NULL;
         k++)
        fresh = first_fresh(t->lines.items[k]);
    if (fresh == NULL)
        return e;
    t->in_vain = 0;
    return fresh;
}

struct queue_entry *queue_turns_pop(struct queue_turns *t)
{
    struct heap_node *begun = heap_top(&t->first);
    struct queue_entry *e = begun != NULL ? container_of(begun, struct queue_entry, heap) : next(t);
    if (e == NULL)
        return NULL;
    t->served = e;
    t->serving = e->flow;
    if (e->flow != NULL)
        e->flow->line->now = e->flow->spent;
    queue_turns_remove(t, e);
    return e;
}

void queue_turns_charge(struct queue_turns *t, const struct queue_entry *e, int64_t cost,
                        bool refused)
{
    struct queue_flow *f = t->serving;
    if (e != t->served)
        return;
    t->served = NULL;
    t->serving = NULL;
    if (f == NULL)
        return;
    struct queue_line *l = f->line;
    lift(f);
    f->spent = num_add_sat(f->spent, cost);
    place(f);
    if (e->queued_retry) {
        l->owed = refused ? cost : 0;
        t->in_vain = refused ? num_add_sat(t->in_vain, cost) : 0;
    } else {
        l->owed = num_max(l->owed - cost, 0);
    }
    if (l->all.len > 0)
        return;
    sweep(t, l, true);
    l->now = l->owed = 0;
}
