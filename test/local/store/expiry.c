// SPDX-License-Identifier: Apache-2.0
/*
 * expiry - see expiry.h. Kubernetes gives each Event a lease of etcd, by default of an hour: every
 * write takes a new one, and when it ends etcd deletes the key, without asking admission or
 * finalizers, and watchers see DELETED like any other. Here the store's own changes keep a list in
 * the order of the last write; all live equally long, so its head is always the next to go.
 *
 *   ADDED, MODIFIED ──► renew: to the tail ── ttl_ms later ──► expiry_run: store_delete
 *   DELETED, by any client ──► drop                                        │
 *      ▲───────────────────────────────────────────────────────────────────┘
 *
 * An update without a change is no write, here and there: the object's time is not extended. After
 * a restart with the state kept the time starts anew, as with etcd, which extends its leases then.
 */
#include "test/local/store/expiry.h"

#include <stdlib.h>

#include "lib/base/log.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"

enum { ROUND = 256 }; /* deletions in one round of the loop, about 5 ms */

struct entry {
    struct object *o; /* a reference */
    int64_t due_ms;
    struct entry *next, **prev;
};

struct expiry {
    struct expiry_config config;
    struct map by_key; /* to entries; the keys are the objects' */
    struct entry *first, **end;
    struct loop_timer timer;
    struct store_listener listener;
};

static void on_timer(void *arg);

static void arm(struct expiry *e)
{
    if (!e->first)
        loop_timer_cancel(e->config.loop, &e->timer);
    else
        loop_timer_set(e->config.loop, &e->timer, e->first->due_ms - e->config.now_ms(), on_timer,
                       e);
}

static void on_timer(void *arg)
{
    expiry_run(arg);
}

static void unlink_entry(struct expiry *e, struct entry *n)
{
    *n->prev = n->next;
    if (n->next)
        n->next->prev = n->prev;
    else
        e->end = n->prev;
}

static void append(struct expiry *e, struct entry *n)
{
    n->due_ms = num_add_sat(e->config.now_ms(), e->config.ttl_ms);
    n->next = NULL;
    n->prev = e->end;
    *e->end = n;
    e->end = &n->next;
}

static void renew(struct expiry *e, struct object *o)
{
    struct entry *n = map_get(&e->by_key, o->key);
    struct object *before = n ? n->o : NULL;
    if (n)
        unlink_entry(e, n);
    else
        n = mem_new(struct entry, 1);
    n->o = object_ref(o);
    map_put(&e->by_key, o->key, n);
    object_unref(before);
    append(e, n);
}

static void drop(struct expiry *e, struct entry *n)
{
    map_remove(&e->by_key, n->o->key);
    unlink_entry(e, n);
    object_unref(n->o);
    free(n);
}

static void changed(void *arg, const struct store_event *event)
{
    struct expiry *e = arg;
    const struct entry *first = e->first;
    if (event->change != STORE_DELETED)
        renew(e, event->object);
    else {
        struct entry *n = map_get(&e->by_key, event->object->key);
        if (n)
            drop(e, n);
    }
    if (e->first != first)
        arm(e);
}

void expiry_run(struct expiry *e)
{
    int64_t now = e->config.now_ms();
    for (int i = 0; i < ROUND && e->first && e->first->due_ms <= now; i++) {
        struct entry *n = e->first;
        struct object *o = object_ref(n->o);
        struct error err = ERROR_INIT;
        /* That tells `changed`, which drops the entry. */
        if (store_delete(e->config.store, e->config.kind, o->ns, o->name, 0, &err) < 0) {
            log_error("expiry", kv("object", o->key), kv("error", err.text));
            drop(e, n);
        }
        object_unref(o);
    }
    arm(e);
}

static bool found(void *arg, struct object *o)
{
    renew(arg, o);
    return true;
}

struct expiry *expiry_start(const struct expiry_config *c)
{
    struct expiry *e = mem_new(struct expiry, 1);
    e->config = *c;
    e->end = &e->first;
    map_init(&e->by_key);
    store_each(c->store, c->kind, NULL, NULL, found, e);
    e->listener = (struct store_listener){.kind = c->kind, .fn = changed, .arg = e};
    store_listen(c->store, &e->listener);
    arm(e);
    return e;
}

void expiry_stop(struct expiry *e)
{
    if (!e)
        return;
    store_unlisten(e->config.store, &e->listener);
    loop_timer_cancel(e->config.loop, &e->timer);
    while (e->first)
        drop(e, e->first);
    map_deinit(&e->by_key);
    free(e);
}
