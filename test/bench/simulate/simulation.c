// SPDX-License-Identifier: Apache-2.0
#include "test/bench/simulate/simulation.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/kube/decode.h"
#include "lib/model/names.h"
#include "scheduler/cache/gangs.h"
#include "scheduler/cycle/reservation.h"

/* The simulation begins at this time: 0 would be "not known" to the model. */
enum { NODE_PODS = 1000, NS_PER_MS = 1000000, MS_PER_S = 1000 };
#define BEGIN_MS INT64_C(1000000000000)
static const char card[] = "nvidia.com/gpu";

static int64_t wall_ms(const struct simulation *s)
{
    return BEGIN_MS + s->now_ms;
}

/* ---- objects ---- */

static void put_int_text(struct json_writer *w, const char *key, int64_t n)
{
    char text[32];
    (void)str_format(text, sizeof text, "%lld", (long long)n);
    json_kv_str(w, key, text);
}

static int put_node(struct simulation *s, int64_t number, int64_t cards, struct error *err)
{
    AUTO_STRBUF text = {0};
    AUTO_JSON *doc = NULL;
    struct node *n = NULL;
    struct json_writer w;
    char name[32];
    (void)str_format(name, sizeof name, "node-%05lld", (long long)number);
    json_writer_init(&w, &text);
    json_object_begin(&w);
    json_key(&w, "metadata");
    json_object_begin(&w);
    json_kv_str(&w, "name", name);
    json_object_end(&w);
    json_key(&w, "status");
    json_object_begin(&w);
    json_key(&w, "allocatable");
    json_object_begin(&w);
    put_int_text(&w, "cpu", NODE_PODS);
    put_int_text(&w, "pods", NODE_PODS);
    put_int_text(&w, card, cards);
    json_object_end(&w);
    json_object_end(&w);
    json_object_end(&w);
    if (json_parse(&doc, strbuf_str(&text), text.len, err) < 0 ||
        decode_node(json_root(doc), &n, err) < 0)
        return -1;
    (void)cluster_put_node(&s->cluster, n);
    return 0;
}

static void write_spec(struct json_writer *w, const struct simulation_job *job)
{
    json_key(w, "spec");
    json_object_begin(w);
    json_kv_str(w, "schedulerName", NAME_SCHEDULER);
    json_kv_int(w, "priority", job->priority);
    if (job->tells_time)
        json_kv_int(w, "activeDeadlineSeconds",
                    num_max((job->run_ms + MS_PER_S - 1) / MS_PER_S, 1));
    json_key(w, "containers");
    json_array_begin(w);
    json_object_begin(w);
    json_kv_str(w, "name", "c");
    json_key(w, "resources");
    json_object_begin(w);
    json_key(w, "requests");
    json_object_begin(w);
    put_int_text(w, card, 1);
    json_object_end(w);
    json_key(w, "limits");
    json_object_begin(w);
    put_int_text(w, card, 1);
    json_object_end(w);
    json_object_end(w);
    json_object_end(w);
    json_array_end(w);
    json_object_end(w);
}

static void pod_name(const struct simulation_job *job, int32_t i, struct strbuf *out)
{
    strbuf_addf(out, "%s-%d", job->name, (int)i);
}

static int put_pod(struct simulation *s, const struct simulation_job *job, int32_t i,
                   const struct cluster_hooks *hooks, struct error *err)
{
    AUTO_STRBUF text = {0};
    AUTO_STRBUF name = {0};
    AUTO_JSON *doc = NULL;
    struct pod *p = NULL;
    struct json_writer w;
    char created[CLOCK_RFC3339_SIZE];
    pod_name(job, i, &name);
    clock_rfc3339(wall_ms(s) * NS_PER_MS, 0, created);
    json_writer_init(&w, &text);
    json_object_begin(&w);
    json_key(&w, "metadata");
    json_object_begin(&w);
    json_kv_str(&w, "namespace", "trace");
    json_kv_str(&w, "name", strbuf_str(&name));
    json_kv_str(&w, "uid", strbuf_str(&name));
    json_kv_str(&w, "creationTimestamp", created);
    json_key(&w, "labels");
    json_object_begin(&w);
    json_kv_str(&w, NAME_LABEL_GANG_NAME, job->name);
    put_int_text(&w, NAME_LABEL_GANG_MIN, job->pods);
    json_object_end(&w);
    json_object_end(&w);
    write_spec(&w, job);
    json_object_end(&w);
    if (json_parse(&doc, strbuf_str(&text), text.len, err) < 0 ||
        decode_pod(json_root(doc), &p, err) < 0)
        return -1;
    (void)cluster_put_pod(&s->cluster, p, hooks);
    return 0;
}

/* ---- the queue's side ---- */

static void gang_changed(void *arg, struct gang *g)
{
    struct simulation *s = arg;
    queue_touch(&s->queue, g, s->now_ms);
}

static void gang_vanishing(void *arg, struct gang *g)
{
    struct simulation *s = arg;
    queue_drop(&s->queue, g);
}

static struct cluster_hooks hooks_of(struct simulation *s)
{
    return (struct cluster_hooks){
        .gang_changed = gang_changed, .gang_vanishing = gang_vanishing, .arg = s};
}

static int64_t end_of(const struct simulation_job *job)
{
    return num_add_sat(job->start_ms, job->run_ms);
}

static bool ends_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct simulation_job *x = container_of_const(a, struct simulation_job, heap);
    const struct simulation_job *y = container_of_const(b, struct simulation_job, heap);
    return end_of(x) != end_of(y) ? end_of(x) < end_of(y) : strcmp(x->name, y->name) < 0;
}

void simulation_deinit(struct simulation *s)
{
    queue_deinit(&s->queue);
    attempt_deinit(&s->attempt);
    pipeline_deinit(&s->pipeline);
    cluster_deinit(&s->cluster);
    heap_deinit(&s->running);
    vec_deinit(&s->waiting);
    map_deinit(&s->jobs);
    arena_deinit(&s->keys);
    arena_deinit(&s->arena);
}

/* ---- what happens ---- */

static void started(void *arg, struct gang *g, const struct plan *plan,
                    const struct cycle_result *r)
{
    struct simulation *s = arg;
    struct simulation_job *job = map_get(&s->jobs, g->key);
    (void)r;
    for (size_t i = 0; i < plan->steps.len; i++)
        plan->steps.items[i].pod->grant.assume_time_ns = wall_ms(s) * NS_PER_MS;
    s->free_cards -= (int64_t)plan->steps.len;
    int32_t placed = gangs_count_placed(g), in_vain = placed < job->pods ? placed : 0;
    s->held += in_vain - job->held;
    job->held = in_vain;
    if (placed < job->pods || job->start_ms >= 0)
        return;
    job->start_ms = s->now_ms;
    heap_push(&s->running, &job->heap);
}

int simulation_init(struct simulation *s, int64_t nodes, int64_t cards_per_node,
                    const struct reservation_options *o, struct error *err)
{
    *s = (struct simulation){0};
    cluster_init(&s->cluster, NAME_SCHEDULER);
    pipeline_init(&s->pipeline, &s->cluster);
    s->cluster.reservations->options = *o;
    queue_init(&s->queue, &s->cluster);
    arena_init(&s->arena, 64 * 1024);
    arena_init(&s->keys, 0);
    map_init(&s->jobs);
    heap_init(&s->running, ends_before);
    /* No preemption: an evicted job would have to be submitted again. */
    attempt_init(&s->attempt, &s->pipeline, &s->queue, &s->arena,
                 &(struct attempt_hooks){.bind = started, .arg = s});
    s->attempt.all_stay = true;
    s->free_cards = nodes * cards_per_node;
    for (int64_t i = 0; i < nodes; i++)
        if (put_node(s, i, cards_per_node, err) < 0)
            return -1;
    return 0;
}

static int submit(struct simulation *s, struct simulation_job *job, struct error *err)
{
    struct cluster_hooks hooks = hooks_of(s);
    job->start_ms = -1;
    AUTO_STRBUF key = {0};
    strbuf_addf(&key, "gang trace/%s", job->name);
    map_put(&s->jobs, arena_printf(&s->keys, "%s", strbuf_str(&key)), job);
    for (int32_t i = 0; i < job->pods; i++)
        if (put_pod(s, job, i, &hooks, err) < 0)
            return error_wrap(err, "job %s", job->name);
    job->gang = map_get(&s->cluster.gangs, strbuf_str(&key));
    vec_push(&s->waiting, job);
    return 0;
}

/* Cards are free. A job that wants more than there are cannot go, since cards are all that it
 * wants: it is not tried, which decides nothing and saves most of the time. */
static void wake(struct simulation *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->waiting.len; i++) {
        struct simulation_job *job = s->waiting.items[i];
        if (job->start_ms >= 0)
            continue;
        s->waiting.items[kept++] = job;
        if (job->pods - job->held <= s->free_cards)
            queue_touch(&s->queue, job->gang, s->now_ms);
    }
    s->waiting.len = kept;
}

static void end_one(struct simulation *s)
{
    struct simulation_job *job = container_of(heap_pop(&s->running), struct simulation_job, heap);
    struct cluster_hooks hooks = hooks_of(s);
    reservations_set_now(&s->cluster, wall_ms(s));
    for (int32_t i = 0; i < job->pods; i++) {
        AUTO_STRBUF key = {0};
        strbuf_adds(&key, "trace/");
        pod_name(job, i, &key);
        (void)cluster_remove_pod(&s->cluster, strbuf_str(&key), NULL, &hooks);
    }
    s->ended++;
    s->free_cards += job->pods;
}

static void look(struct simulation *s)
{
    int64_t due_ms = reservation_next(&s->cluster);
    if (due_ms < 0 || due_ms > wall_ms(s))
        return;
    arena_reset(&s->arena);
    struct reservation_news news = reservation_reconcile(&s->pipeline, wall_ms(s), &s->arena);
    s->reservations += news.made;
    if (news.events != 0)
        wake(s);
}

/* When a gang used its reservation the next one has its turn before younger ones go on, as in the
 * program (reservation_timer_follow). */
static void try_all(struct simulation *s)
{
    const struct attempt_time now = {
        .now_ms = s->now_ms, .wall_ms = wall_ms(s), .wall_ns = wall_ms(s) * NS_PER_MS};
    struct attempt_result tried;
    for (size_t kept = s->cluster.reservations->items.len; attempt_next(&s->attempt, now, &tried);
         kept = s->cluster.reservations->items.len) {
        s->cycles++;
        if (s->cluster.reservations->items.len < kept)
            look(s);
    }
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < 0 ? b : b < 0 ? a : num_min(a, b);
}

/* -1: never. */
static int64_t next_event(const struct simulation *s, const struct simulation_job *next)
{
    int64_t at = next != NULL ? next->submit_ms : -1, kept = reservation_next(&s->cluster);
    const struct heap_node *top = heap_top(&s->running);
    if (top != NULL)
        at = earlier(at, end_of(container_of_const(top, struct simulation_job, heap)));
    at = earlier(at, queue_next_due(&s->queue, s->now_ms));
    if (at >= 0 && kept >= 0) /* where nothing can come or end, nothing is worth keeping */
        at = num_min(at, kept - BEGIN_MS);
    return at >= 0 ? num_max(at, s->now_ms) : -1;
}

int simulation_run(struct simulation *s, struct simulation_job *jobs, size_t len, int64_t until_ms,
                   struct error *err)
{
    size_t next = 0;
    for (;;) {
        int64_t at = next_event(s, next < len ? &jobs[next] : NULL);
        if (at < 0 || at > until_ms)
            return 0;
        s->incomplete_ms += s->held * (at - s->now_ms);
        s->now_ms = at;
        const struct heap_node *top;
        bool ends = false;
        while ((top = heap_top(&s->running)) != NULL &&
               end_of(container_of_const(top, struct simulation_job, heap)) <= at)
            ends = true, end_one(s);
        for (; next < len && jobs[next].submit_ms <= at; next++)
            if (submit(s, &jobs[next], err) < 0)
                return -1;
        if (ends)
            wake(s);
        look(s);
        try_all(s);
    }
}
