// SPDX-License-Identifier: Apache-2.0
#include "test/bench/simulate/gang_trace.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "scheduler/queue/queue.h"

enum { MS_PER_S = 1000, PERCENT = 100 };
#define LONGEST_MS (INT64_C(1000) * 366 * 86400 * 1000)

/* ---- reading ---- */

static void add(struct gang_trace *t, const struct simulation_job *job)
{
    if (t->len == t->cap)
        t->jobs = vec_grow_(t->jobs, &t->cap, t->len + 1, sizeof *t->jobs);
    t->jobs[t->len++] = *job;
}

static int take_row(struct csv *c, struct error *err)
{
    struct gang_trace *t = c->arg;
    int64_t pods = 0;
    struct simulation_job job = {.start_ms = -1, .tells_time = t->options.tells_time};
    if (csv_number(c, "num_gpu", GANG_TRACE_PODS_MAX, &pods, err) < 0 ||
        csv_number(c, "submit_time", LONGEST_MS, &job.submit_ms, err) < 0 ||
        csv_number(c, "duration", LONGEST_MS, &job.run_ms, err) < 0)
        return -1;
    if (pods == 0)
        return error_set(err, ERROR_INVALID, "num_gpu: must not be 0");
    if (pods > t->options.nodes * t->options.cards) {
        t->too_large++;
        return 0;
    }
    job.pods = (int32_t)pods;
    /* By line, not by job_id, which may be repeated or not be a legal name. */
    job.name = arena_printf(&t->names, "job-%06zu", c->number);
    add(t, &job);
    return 0;
}

static int by_submit(const void *a, const void *b)
{
    const struct simulation_job *x = a, *y = b;
    if (x->submit_ms != y->submit_ms)
        return x->submit_ms < y->submit_ms ? -1 : 1;
    return strcmp(x->name, y->name);
}

int gang_trace_read(struct gang_trace *t, const char *path, struct csv_warn warn, struct error *err)
{
    static const char *const needed[] = {"job_id", "num_gpu", "submit_time", "duration", NULL};
    arena_init(&t->names, 0);
    if (csv_read(path, needed, take_row, t, warn, err) < 0)
        return -1;
    if (t->len == 0)
        return error_set(err, ERROR_INVALID, "%s: no job that could run", path);
    qsort(t->jobs, t->len, sizeof *t->jobs, by_submit);
    return 0;
}

void gang_trace_deinit(struct gang_trace *t)
{
    free(t->jobs);
    arena_deinit(&t->names);
}

/* ---- what came of it ---- */

static int by_value(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void conclude(const struct gang_trace *t, struct gang_trace_outcome *out)
{
    int64_t *waits = mem_new(int64_t, t->len), sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < t->len; i++) {
        const struct simulation_job *job = &t->jobs[i];
        if (job->start_ms < 0)
            continue;
        waits[n] = job->start_ms - job->submit_ms;
        sum = num_add_sat(sum, waits[n++]);
        out->last_end_ms = num_max(out->last_end_ms, job->start_ms + job->run_ms);
    }
    out->started = n;
    if (n > 0) {
        qsort(waits, n, sizeof *waits, by_value);
        out->mean_ms = sum / (int64_t)n;
        out->p50_ms = waits[(n - 1) / 2];
        out->p99_ms = waits[(n - 1) * 99 / PERCENT];
        out->longest_ms = waits[n - 1];
    }
    free(waits);
}

/* ---- the two to compare with: cards are all alike, so they are only counted ---- */

static int64_t end_of(const struct simulation_job *job)
{
    return job->start_ms + job->run_ms;
}

static bool ends_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct simulation_job *x = container_of_const(a, struct simulation_job, heap);
    const struct simulation_job *y = container_of_const(b, struct simulation_job, heap);
    return end_of(x) != end_of(y) ? end_of(x) < end_of(y) : strcmp(x->name, y->name) < 0;
}

static void start_anew(struct gang_trace *t)
{
    for (size_t i = 0; i < t->len; i++) {
        t->jobs[i].start_ms = -1;
        t->jobs[i].heap = (struct heap_node){0};
    }
}

static void run_fifo(struct gang_trace *t)
{
    struct heap running;
    int64_t free_cards = t->options.nodes * t->options.cards, now_ms = 0;
    heap_init(&running, ends_before);
    start_anew(t);
    for (size_t i = 0; i < t->len; i++) {
        struct simulation_job *job = &t->jobs[i];
        now_ms = num_max(now_ms, job->submit_ms);
        while (free_cards < job->pods) {
            const struct simulation_job *over =
                container_of(heap_pop(&running), struct simulation_job, heap);
            now_ms = num_max(now_ms, end_of(over));
            free_cards += over->pods;
        }
        job->start_ms = now_ms;
        free_cards -= job->pods;
        heap_push(&running, &job->heap);
    }
    heap_deinit(&running);
    t->fifo = (struct gang_trace_outcome){.name = "strict FIFO"};
    conclude(t, &t->fifo);
}

/* ---- EASY backfill, told all run times ---- */

struct easy {
    int64_t free_cards, now_ms;
    struct heap running;
    struct VEC(struct simulation_job *) waiting; /* oldest first */
};

static int by_end(const void *a, const void *b)
{
    struct simulation_job *const *x = a, *const *y = b;
    return end_of(*x) < end_of(*y) ? -1 : end_of(*x) > end_of(*y);
}

/* When the oldest one can start, and how many cards are left beside it then. */
static int64_t easy_shadow(const struct easy *e, const struct simulation_job *oldest,
                           int64_t *beside)
{
    size_t n = e->running.len, i = 0;
    int64_t cards = e->free_cards, start_ms = e->now_ms;
    const struct simulation_job **all = mem_new(const struct simulation_job *, n + 1);
    for (size_t k = 0; k < n; k++)
        all[k] = container_of_const(e->running.nodes[k], struct simulation_job, heap);
    qsort(all, n, sizeof *all, by_end);
    for (; i < n && (cards < oldest->pods || end_of(all[i]) <= start_ms); i++) {
        cards += all[i]->pods;
        start_ms = end_of(all[i]);
    }
    free(all);
    *beside = cards - oldest->pods;
    return start_ms;
}

static void easy_start(struct easy *e)
{
    const struct simulation_job *oldest = NULL;
    int64_t start_ms = 0, beside = 0;
    size_t kept = 0, i = 0;
    for (; i < e->waiting.len && (oldest == NULL || e->free_cards > 0); i++) {
        struct simulation_job *job = e->waiting.items[i];
        bool fits = job->pods <= e->free_cards;
        if (!fits && oldest == NULL) {
            oldest = job;
            start_ms = easy_shadow(e, job, &beside);
        }
        if (fits && oldest != NULL && e->now_ms + job->run_ms > start_ms) {
            fits = job->pods <= beside;
            beside -= fits ? job->pods : 0;
        }
        if (!fits) {
            e->waiting.items[kept++] = job;
            continue;
        }
        job->start_ms = e->now_ms;
        e->free_cards -= job->pods;
        heap_push(&e->running, &job->heap);
    }
    for (; i < e->waiting.len; i++)
        e->waiting.items[kept++] = e->waiting.items[i];
    e->waiting.len = kept;
}

static void run_easy(struct gang_trace *t)
{
    struct easy e = {.free_cards = t->options.nodes * t->options.cards};
    size_t next = 0;
    heap_init(&e.running, ends_before);
    start_anew(t);
    for (;;) {
        const struct heap_node *top = heap_top(&e.running);
        int64_t at = next < t->len ? t->jobs[next].submit_ms : INT64_MAX;
        if (top != NULL)
            at = num_min(at, end_of(container_of_const(top, struct simulation_job, heap)));
        if (at == INT64_MAX)
            break;
        e.now_ms = at;
        for (; (top = heap_top(&e.running)) != NULL &&
               end_of(container_of_const(top, struct simulation_job, heap)) <= at;)
            e.free_cards += container_of(heap_pop(&e.running), struct simulation_job, heap)->pods;
        for (; next < t->len && t->jobs[next].submit_ms <= at; next++)
            vec_push(&e.waiting, &t->jobs[next]);
        easy_start(&e);
    }
    vec_deinit(&e.waiting);
    heap_deinit(&e.running);
    t->easy = (struct gang_trace_outcome){.name = "EASY, times known"};
    conclude(t, &t->easy);
}

/* A job of reserve and wait that has not started. */
struct waiter {
    struct simulation_job *job;
    int64_t held;   /* cards */
    int64_t due_ms; /* held > 0: when it gives them back; else when it may take some */
};

struct waiters {
    const struct gang_trace *trace;
    struct VEC(struct waiter) list; /* oldest first */
    struct heap running;
    int64_t free_cards, held, now_ms;
};

static void give_back(struct waiters *w)
{
    for (size_t i = 0; i < w->list.len; i++) {
        struct waiter *one = &w->list.items[i];
        if (one->held == 0 || one->due_ms > w->now_ms)
            continue;
        w->free_cards += one->held;
        w->held -= one->held;
        one->held = 0;
        one->due_ms = w->now_ms + QUEUE_BACKOFF_MAX_MS;
    }
}

static void take_cards(struct waiters *w)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->list.len; i++) {
        struct waiter one = w->list.items[i];
        int64_t more = num_min(w->free_cards, one.job->pods - one.held);
        if (more > 0 && (one.held > 0 || one.due_ms <= w->now_ms)) {
            one.due_ms = one.held > 0 ? one.due_ms : w->now_ms + w->trace->options.timeout_ms;
            one.held += more;
            w->held += more;
            w->free_cards -= more;
        }
        if (one.held == one.job->pods) {
            w->held -= one.held;
            one.job->start_ms = w->now_ms;
            heap_push(&w->running, &one.job->heap);
        } else {
            w->list.items[kept++] = one;
        }
    }
    w->list.len = kept;
}

/* -1: nothing will happen any more. */
static int64_t next_moment(const struct waiters *w, const struct simulation_job *coming)
{
    const struct heap_node *top = heap_top(&w->running);
    int64_t at = coming != NULL ? coming->submit_ms : INT64_MAX;
    if (top != NULL)
        at = num_min(at, end_of(container_of_const(top, struct simulation_job, heap)));
    for (size_t i = 0; i < w->list.len; i++)
        if (w->list.items[i].due_ms > w->now_ms)
            at = num_min(at, w->list.items[i].due_ms);
    return at < INT64_MAX ? at : -1;
}

static void run_wait(struct gang_trace *t)
{
    struct waiters w = {.trace = t, .free_cards = t->options.nodes * t->options.cards};
    size_t next = 0;
    int64_t at;
    t->wait = (struct gang_trace_outcome){.name = "reserve and wait"};
    heap_init(&w.running, ends_before);
    start_anew(t);
    while ((at = next_moment(&w, next < t->len ? &t->jobs[next] : NULL)) >= 0) {
        t->wait.incomplete_ms += w.held * (at - w.now_ms);
        w.now_ms = at;
        const struct heap_node *top;
        while ((top = heap_top(&w.running)) != NULL &&
               end_of(container_of_const(top, struct simulation_job, heap)) <= at)
            w.free_cards += container_of(heap_pop(&w.running), struct simulation_job, heap)->pods;
        for (; next < t->len && t->jobs[next].submit_ms <= at; next++) {
            struct waiter one = {.job = &t->jobs[next], .due_ms = at};
            vec_push(&w.list, one);
        }
        give_back(&w);
        take_cards(&w);
    }
    vec_deinit(&w.list);
    heap_deinit(&w.running);
    conclude(t, &t->wait);
}

static int run_core(struct gang_trace *t, struct error *err)
{
    struct simulation s;
    start_anew(t);
    int rc = simulation_init(&s, t->options.nodes, t->options.cards, &t->options.reservation, err);
    if (rc == 0)
        rc = simulation_run(&s, t->jobs, t->len, INT64_MAX / 4, err);
    t->cosched = (struct gang_trace_outcome){.name = "cosched", .incomplete_ms = s.incomplete_ms};
    t->reservations = s.reservations;
    t->cycles = s.cycles;
    simulation_deinit(&s);
    conclude(t, &t->cosched);
    return rc;
}

int gang_trace_run(struct gang_trace *t, struct error *err)
{
    run_fifo(t);
    run_easy(t);
    run_wait(t);
    return run_core(t, err);
}

/* ---- printing ---- */

static void print_row(const struct gang_trace_outcome *o, struct strbuf *out)
{
    strbuf_addf(out, "%-18s %9zu %11lld %11lld %11lld %11lld %20lld %13lld\n", o->name, o->started,
                (long long)(o->mean_ms / MS_PER_S), (long long)(o->p50_ms / MS_PER_S),
                (long long)(o->p99_ms / MS_PER_S), (long long)(o->longest_ms / MS_PER_S),
                (long long)(o->incomplete_ms / MS_PER_S), (long long)(o->last_end_ms / MS_PER_S));
}

static int64_t percent(int64_t part, int64_t whole)
{
    return whole > 0 ? part * PERCENT / whole : 0;
}

void gang_trace_print(const struct gang_trace *t, struct strbuf *out)
{
    strbuf_addf(out, "%zu jobs on %lld nodes with %lld cards each", t->len,
                (long long)t->options.nodes, (long long)t->options.cards);
    if (t->too_large > 0)
        strbuf_addf(out, "; %zu left out that want more cards than there are", t->too_large);
    strbuf_addf(out, "\ntimes in seconds\n\n%-18s %9s %11s %11s %11s %11s %20s %13s\n", "",
                "started", "mean wait", "p50 wait", "p99 wait", "longest", "incomplete, card-s",
                "last end");
    print_row(&t->cosched, out);
    print_row(&t->fifo, out);
    print_row(&t->easy, out);
    print_row(&t->wait, out);
    strbuf_addf(out,
                "\nmean wait of cosched: %lld %% of strict FIFO's, %lld %% of reserve and wait's; "
                "room was kept %lld times\n",
                (long long)percent(t->cosched.mean_ms, t->fifo.mean_ms),
                (long long)percent(t->cosched.mean_ms, t->wait.mean_ms),
                (long long)t->reservations);
}
