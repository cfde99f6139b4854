// SPDX-License-Identifier: Apache-2.0
/*
 * controllers - see controllers.h. The store's changes update the index of owners and mark objects
 * dirty; a timer syncs those that are due, a bounded number in each round.
 *
 *   changed ──► controllers_add ──► queue, by time ──► work: sync ──► done
 *                                      ▲                   │
 *                                      └── later each time ┘ it failed
 *
 * One thread and one store: whatever a sync creates is in the index before it returns, so there are
 * no "expectations" as in the real thing, except for pods that wait for a webhook (pending).
 */
#include "test/local/controllers/controllers.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "test/local/controllers/controllers_internal.h"

enum {
    ROUND = 256,            /* syncs in one round of the loop */
    ROUND_MS = 20,          /* and how long they may take */
    BACKOFF_FIRST_MS = 250, /* doubled by each failure */
    BACKOFF_MAX_MS = 15000,
};

/* ---- the queue ---- */

static bool before(const struct heap_node *a, const struct heap_node *b)
{
    const struct controllers_work *x = container_of_const(a, struct controllers_work, node),
                                  *y = container_of_const(b, struct controllers_work, node);
    return x->due_ms != y->due_ms ? x->due_ms < y->due_ms : x->seq < y->seq;
}

static void work(void *arg);

static void arm(struct controllers *c)
{
    struct heap_node *top = heap_top(&c->queue);
    if (!top || c->stopping) {
        loop_timer_cancel(c->loop, &c->timer);
        return;
    }
    const struct controllers_work *w = container_of(top, struct controllers_work, node);
    loop_timer_set(c->loop, &c->timer, num_max(0, w->due_ms - clock_mono_ms()), work, c);
}

static void work_free(struct controllers_work *w)
{
    free(w->ns);
    free(w->name);
    free(w->key);
    free(w);
}

static struct controllers_work *work_of(struct controllers *c, controllers_sync sync,
                                        const struct kind *k, const char *ns, const char *name)
{
    struct strbuf key = {0};
    char which = sync == gc_sync ? 'g' : sync == podgc_sync ? 'p' : 's';
    strbuf_addf(&key, "%c %s.%s %s/%s", which, k->resource, k->group, str_or_empty(ns), name);
    struct controllers_work *w = map_get(&c->works, strbuf_str(&key));
    if (w) {
        strbuf_deinit(&key);
        return w;
    }
    w = mem_new(struct controllers_work, 1);
    w->sync = sync;
    w->kind = k;
    w->ns = mem_strdup(str_or_empty(ns));
    w->name = mem_strdup(name);
    w->key = strbuf_take(&key);
    map_put(&c->works, w->key, w);
    return w;
}

static void enqueue(struct controllers *c, struct controllers_work *w, int64_t delay_ms)
{
    int64_t due = num_add_sat(clock_mono_ms(), num_max(delay_ms, 0));
    if (heap_has(&w->node) && w->due_ms <= due)
        return;
    heap_remove(&c->queue, &w->node);
    w->due_ms = due;
    w->seq = ++c->seq;
    heap_push(&c->queue, &w->node);
    if (!c->running)
        arm(c);
}

void controllers_add(struct controllers *c, controllers_sync sync, const struct kind *k,
                     const char *ns, const char *name, int64_t delay_ms)
{
    if (!c->stopping)
        enqueue(c, work_of(c, sync, k, ns, name), delay_ms);
}

static int64_t backoff_ms(unsigned failures)
{
    int64_t ms = BACKOFF_FIRST_MS;
    for (unsigned i = 1; i < failures && ms < BACKOFF_MAX_MS; i++)
        ms *= 2;
    return num_min(ms, BACKOFF_MAX_MS);
}

void controllers_fail(struct controllers *c, controllers_sync sync, const struct kind *k,
                      const char *ns, const char *name)
{
    if (c->stopping)
        return;
    struct controllers_work *w = work_of(c, sync, k, ns, name);
    w->failures++;
    enqueue(c, w, backoff_ms(w->failures));
}

static void work_one(struct controllers *c, struct controllers_work *w)
{
    int64_t again_ms = -1;
    struct error err = ERROR_INIT;
    c->running = w;
    int rc = w->sync(c, w, &again_ms, &err);
    c->running = NULL;
    if (rc < 0) {
        log_debug("controller: tried again later", kv("what", w->kind->resource), kv("ns", w->ns),
                  kv("name", w->name), kv("error", err.text));
        w->failures++;
        enqueue(c, w, backoff_ms(w->failures));
        return;
    }
    const struct controllers_owner *pending = NULL;
    if (w->failures > 0) {
        /* A pod that still asks a webhook has not succeeded yet. */
        const struct object *o = store_get(c->store, w->kind, w->ns, w->name);
        pending = o ? controllers_index_owner(&c->index, o->uid) : NULL;
    }
    if (!pending || pending->pending == 0)
        w->failures = 0;
    if (again_ms >= 0)
        enqueue(c, w, again_ms);
    else if (!heap_has(&w->node) && w->failures == 0) {
        map_remove(&c->works, w->key);
        work_free(w);
    }
}

static void work(void *arg)
{
    struct controllers *c = arg;
    int64_t start = clock_mono_ms();
    for (int i = 0; i < ROUND; i++) {
        struct heap_node *top = heap_top(&c->queue);
        if (!top)
            break;
        struct controllers_work *w = container_of(top, struct controllers_work, node);
        int64_t now = clock_mono_ms();
        if (w->due_ms > now || now - start > ROUND_MS)
            break;
        heap_pop(&c->queue);
        work_one(c, w);
    }
    arm(c);
}

/* Controllers that were refused in this namespace try again. */
static void wake_refused(struct controllers *c, const char *ns)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&c->works, &i, &key, &value);) {
        struct controllers_work *w = value;
        if (w->failures > 0 && str_eq(w->ns, ns))
            enqueue(c, w, 0);
    }
}

/* ---- changes ---- */

static controllers_sync sync_of(const struct kind *k)
{
    return k == &kind_jobs          ? job_sync
           : k == &kind_replicasets ? replicaset_sync
           : k == &kind_deployments ? deployment_sync
           : k == &kind_tfjobs      ? tfjob_sync
           : k == &kind_namespaces  ? namespace_sync
                                    : NULL;
}

static void tell_owners(struct controllers *c, const struct controllers_child *ch)
{
    for (size_t i = 0; ch && i < ch->edges_len; i++) {
        const struct controllers_edge *e = &ch->edges[i];
        controllers_sync sync = e->controller && e->kind ? sync_of(e->kind) : NULL;
        if (sync)
            controllers_add(c, sync, e->kind, e->kind->namespaced ? ch->ns : "", e->name, 0);
    }
}

static void changed(void *arg, const struct store_event *e)
{
    struct controllers *c = arg;
    const struct object *o = e->object;
    if (o->kind == &kind_events)
        return;
    const struct controllers_child *child = NULL;
    if (e->change == STORE_DELETED) {
        tell_owners(c, map_get(&c->index.children, o->uid));
        gc_changed(c, e, map_get(&c->index.children, o->uid));
        controllers_index_remove(&c->index, o->uid);
        struct controllers_owner *owner = controllers_index_owner(&c->index, o->uid);
        if (owner) {
            owner->failures_in_row = 0;
            controllers_index_release(&c->index, owner);
        }
    } else {
        tell_owners(c, map_get(&c->index.children, o->uid)); /* those it had before */
        child = controllers_index_put(&c->index, o);
        tell_owners(c, child);
        gc_changed(c, e, child);
    }
    controllers_sync sync = e->change == STORE_DELETED ? NULL : sync_of(o->kind);
    if (sync)
        controllers_add(c, sync, o->kind, o->ns, o->name, 0);
    if (e->change == STORE_DELETED && *o->ns && map_get(&c->leaving, o->ns))
        controllers_add(c, namespace_sync, &kind_namespaces, "", o->ns, 0);
    if (o->kind == &kind_resource_quotas)
        wake_refused(c, o->ns);
    podgc_changed(c, e);
    pdb_changed(c, e);
}

static bool found(void *arg, struct object *o)
{
    const struct store_event e = {
        .change = STORE_ADDED, .version = o->version, .object = o, .before = NULL};
    changed(arg, &e);
    return true;
}

/* ---- beginning and end ---- */

int controllers_start(struct controllers **out, struct loop *l, struct api *a, struct store *s,
                      struct error *err)
{
    struct controllers *c = mem_new(struct controllers, 1);
    c->loop = l;
    c->api = a;
    c->store = s;
    controllers_index_init(&c->index);
    map_init(&c->works);
    map_init(&c->leaving);
    map_init(&c->budgets);
    map_init(&c->recorded);
    heap_init(&c->queue, before);
    c->listener = (struct store_listener){.kind = NULL, .fn = changed, .arg = c};
    for (size_t i = 0; kinds_all[i]; i++)
        store_each(s, kinds_all[i], NULL, NULL, found, c);
    store_listen(s, &c->listener);
    if (namespace_bootstrap(c, err) < 0) {
        controllers_stop(c);
        return error_wrap(err, "controllers");
    }
    *out = c;
    return 0;
}

void controllers_use_admission(struct controllers *c, struct admission *a)
{
    c->admission = a;
}

void controllers_stop(struct controllers *c)
{
    if (!c)
        return;
    c->stopping = true;
    store_unlisten(c->store, &c->listener);
    loop_timer_cancel(c->loop, &c->timer);
    const char *key;
    void *value;
    heap_deinit(&c->queue);
    for (size_t i = 0; map_next(&c->works, &i, &key, &value);)
        work_free(value);
    map_deinit(&c->works);
    for (size_t i = 0; map_next(&c->leaving, &i, &key, &value);)
        free(value);
    map_deinit(&c->leaving);
    pdb_deinit(c);
    controllers_pending_deinit(c);
    controllers_events_deinit(c);
    controllers_index_deinit(&c->index);
    free(c);
}
