// SPDX-License-Identifier: Apache-2.0
/*
 * store - see store.h. A kind has a hash map (get), the order of its keys (list), a ring of its
 * last changes (resumed watches) and its listeners (live watches).
 *
 *   store_create ─┐
 *   store_update ─┼─► commit: number it, remember it in the ring, tell
 *   store_delete ─┘                                                 │
 *                              a listener changes the store ──► waiting, told after this one
 *
 * Versions are assigned in the order of changes and listeners are called in that order, also for
 * changes that a listener makes: otherwise a watch could send version 8 before 7, and its client
 * would resume from 8 and never see 7.
 */
#include "test/local/store/store.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "test/local/store/store_internal.h"
#include "test/local/store/store_object.h"

struct object *object_ref(struct object *o)
{
    o->refs++;
    return o;
}

void object_unref(struct object *o)
{
    if (o && --o->refs == 0)
        free(o);
}

/* ---- kinds ---- */

static struct store_table *find_table(const struct store *s, const struct kind *k, size_t *slot)
{
    size_t i = (size_t)(((uintptr_t)k >> 4) * 0x9E3779B97F4A7C15u >> 56) & (STORE_KINDS - 1);
    while (s->hashed[i] && s->hashed[i]->kind != k)
        i = (i + 1) & (STORE_KINDS - 1);
    *slot = i;
    return s->hashed[i];
}

struct store_table *store_table(struct store *s, const struct kind *k)
{
    size_t slot;
    struct store_table *t = find_table(s, k, &slot);
    if (t)
        return t;
    if (s->tables.len >= STORE_KINDS / 2)
        abort(); /* kinds are rows of our own table */
    t = mem_new(struct store_table, 1);
    t->kind = k;
    t->listeners_end = &t->listeners;
    t->past.forgotten = s->compacted;
    map_init(&t->by_key);
    s->hashed[slot] = t;
    vec_push(&s->tables, t);
    return t;
}

/* ---- the past ---- */

static struct store_event *past_at(const struct store_past *p, size_t i)
{
    return &p->ring[(p->head + i) & (p->cap - 1)];
}

static void forget_oldest(struct store_past *p)
{
    struct store_event *e = past_at(p, 0);
    p->forgotten = e->version;
    object_unref(e->object);
    object_unref(e->before);
    p->head = (p->head + 1) & (p->cap - 1);
    p->len--;
}

/* Takes the event's references. */
static void remember(struct store_past *p, size_t history, struct store_event e)
{
    if (p->len == history)
        forget_oldest(p);
    if (p->len == p->cap) {
        size_t cap = p->cap == 0 ? 16 : p->cap * 2;
        struct store_event *ring = mem_new(struct store_event, cap);
        for (size_t i = 0; i < p->len; i++)
            ring[i] = *past_at(p, i);
        free(p->ring);
        p->ring = ring;
        p->cap = cap;
        p->head = 0;
    }
    p->len++;
    *past_at(p, p->len - 1) = e;
}

bool store_replay(struct store *s, const struct kind *k, uint64_t since,
                  void (*fn)(void *arg, const struct store_event *e), void *arg)
{
    const struct store_past *p = &store_table(s, k)->past;
    if (since < p->forgotten)
        return false;
    size_t low = 0, high = p->len; /* the first event after since */
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (past_at(p, mid)->version <= since)
            low = mid + 1;
        else
            high = mid;
    }
    for (; low < p->len; low++)
        fn(arg, past_at(p, low));
    return true;
}

uint64_t store_oldest(const struct store *s)
{
    uint64_t oldest = s->compacted;
    for (size_t i = 0; i < s->tables.len; i++)
        if (s->tables.items[i]->past.forgotten > oldest)
            oldest = s->tables.items[i]->past.forgotten;
    return oldest;
}

void store_compact(struct store *s)
{
    s->compacted = s->version;
    for (size_t i = 0; i < s->tables.len; i++) {
        struct store_past *p = &s->tables.items[i]->past;
        while (p->len > 0)
            forget_oldest(p);
        p->forgotten = s->version;
    }
}

/* ---- telling ---- */

void store_listen(struct store *s, struct store_listener *l)
{
    struct store_listener ***end =
        l->kind ? &store_table(s, l->kind)->listeners_end : &s->listeners_end;
    l->since_ = s->version;
    l->next_ = NULL;
    l->prev_ = *end;
    **end = l;
    *end = &l->next_;
}

void store_unlisten(struct store *s, struct store_listener *l)
{
    struct store_listener ***end =
        l->kind ? &store_table(s, l->kind)->listeners_end : &s->listeners_end;
    if (s->cursor == l)
        s->cursor = l->next_;
    *l->prev_ = l->next_;
    if (l->next_)
        l->next_->prev_ = l->prev_;
    else
        *end = l->prev_;
    l->next_ = NULL;
    l->prev_ = NULL;
}

static void tell_list(struct store *s, struct store_listener *first, const struct store_event *e)
{
    s->cursor = first;
    for (struct store_listener *l; (l = s->cursor);) {
        s->cursor = l->next_;
        if (l->since_ < e->version)
            l->fn(l->arg, e);
    }
}

static void tell(struct store *s, struct store_event e)
{
    if (s->telling) {
        object_ref(e.object);
        if (e.before)
            object_ref(e.before);
        vec_push(&s->waiting, e);
        return;
    }
    s->telling = true;
    object_ref(e.object);
    if (e.before)
        object_ref(e.before);
    for (size_t i = 0;; i++) {
        tell_list(s, store_table(s, e.object->kind)->listeners, &e);
        tell_list(s, s->listeners, &e);
        object_unref(e.object);
        object_unref(e.before);
        if (i == s->waiting.len)
            break;
        e = s->waiting.items[i];
    }
    s->waiting.len = 0;
    s->telling = false;
}

/* ---- changing ---- */

/* What was handed out before is no longer promised. */
static void begin_change(struct store *s)
{
    if (s->telling)
        return;
    for (size_t i = 0; i < s->replaced.len; i++)
        object_unref(s->replaced.items[i]);
    s->replaced.len = 0;
}

/* Takes the references of object and before. */
static void commit(struct store *s, struct store_table *t, enum store_change change,
                   struct object *object, struct object *before)
{
    s->version = object->version;
    struct store_event e = {
        .change = change, .version = object->version, .object = object, .before = before};
    if (before)
        vec_push(&s->replaced, object_ref(before));
    remember(&t->past, s->history, e);
    tell(s, e);
}

/* `pods "web"`, `deployments.apps "web"`: as the API server says it. */
static void name_of(const struct kind *k, const char *name, char *out, size_t size)
{
    str_format(out, size, "%s%s%s \"%s\"", k->resource, *k->group ? "." : "", k->group, name);
}

static int refuse(struct error *err, enum error_code code, int status, const struct kind *k,
                  const char *name, const char *fmt_before, const char *after)
{
    char what[400];
    name_of(k, name, what, sizeof what);
    error_set(err, code, "%s%s%s", fmt_before, what, after);
    if (err)
        err->http_status = status;
    return -1;
}

static int conflict(struct error *err, const struct kind *k, const char *name)
{
    return refuse(err, ERROR_CONFLICT, 409, k, name, "Operation cannot be fulfilled on ",
                  ": the object has been modified; please apply your changes to the latest version "
                  "and try again");
}

int store_create(struct store *s, const struct kind *k, const char *text, size_t n,
                 struct object **out, struct error *err)
{
    struct store_draft d;
    if (store_draft_read(&d, k, text, n, err) < 0)
        return -1;
    struct store_table *t = store_table(s, k);
    store_draft_key(&d, &s->key);
    struct object *o = NULL;
    int rc = 0;
    if (map_get(&t->by_key, strbuf_str(&s->key)))
        rc = refuse(err, ERROR_CONFLICT, 409, k, d.name, "", " already exists");
    else
        rc = store_draft_make(&d, k, s->version + 1, &o, err);
    store_draft_deinit(&d);
    if (rc < 0)
        return -1;
    begin_change(s);
    struct store_slot *slot = mem_new(struct store_slot, 1);
    slot->now = o;
    map_put(&t->by_key, o->key, slot);
    store_order_insert(&t->order, slot);
    if (out)
        *out = o;
    commit(s, t, STORE_ADDED, object_ref(o), NULL);
    return 0;
}

int store_update(struct store *s, const struct kind *k, const char *text, size_t n,
                 uint64_t expected, struct object **out, struct error *err)
{
    struct store_draft d;
    if (store_draft_read(&d, k, text, n, err) < 0)
        return -1;
    struct store_table *t = store_table(s, k);
    store_draft_key(&d, &s->key);
    struct store_slot *slot = map_get(&t->by_key, strbuf_str(&s->key));
    struct object *o = NULL, *old = slot ? slot->now : NULL;
    int rc = 0;
    if (!old)
        rc = refuse(err, ERROR_NOT_FOUND, 404, k, d.name, "", " not found");
    else if (expected != 0 && expected != old->version)
        rc = conflict(err, k, d.name);
    else if (store_draft_equals(&d, old))
        o = old;
    else
        rc = store_draft_make(&d, k, s->version + 1, &o, err);
    store_draft_deinit(&d);
    if (rc < 0)
        return -1;
    if (out)
        *out = o;
    if (o == old)
        return 0;
    begin_change(s);
    slot->now = o;
    map_put(&t->by_key, o->key, slot);
    commit(s, t, STORE_MODIFIED, object_ref(o), old);
    return 0;
}

int store_delete(struct store *s, const struct kind *k, const char *ns, const char *name,
                 uint64_t expected, struct error *err)
{
    struct store_table *t = store_table(s, k);
    struct object *old = store_get(s, k, ns, name);
    if (!old)
        return refuse(err, ERROR_NOT_FOUND, 404, k, name, "", " not found");
    if (expected != 0 && expected != old->version)
        return conflict(err, k, name);
    struct store_draft d;
    struct object *last;
    if (store_draft_read(&d, k, old->text, old->text_len, err) < 0)
        return -1;
    int rc = store_draft_make(&d, k, s->version + 1, &last, err);
    store_draft_deinit(&d);
    if (rc < 0)
        return -1;
    begin_change(s);
    store_order_remove(&t->order, old->key);
    free(map_remove(&t->by_key, old->key));
    commit(s, t, STORE_DELETED, last, old);
    return 0;
}

/* ---- reading ---- */

struct object *store_get(const struct store *s, const struct kind *k, const char *ns,
                         const char *name)
{
    size_t place;
    struct store_table *t = find_table(s, k, &place);
    if (!t || !name)
        return NULL;
    char key[600]; /* names and namespaces are at most 253 bytes */
    size_t ns_len = k->namespaced && ns ? strlen(ns) : 0, name_len = strlen(name), at = 0;
    if (ns_len + name_len + 2 > sizeof key)
        return NULL;
    if (k->namespaced) {
        memcpy(key, str_or_empty(ns), ns_len);
        key[ns_len] = '/';
        at = ns_len + 1;
    }
    memcpy(key + at, name, name_len + 1);
    struct store_slot *slot = map_get(&t->by_key, key);
    return slot ? slot->now : NULL;
}

size_t store_count(const struct store *s, const struct kind *k)
{
    size_t at;
    struct store_table *t = find_table(s, k, &at);
    return t ? map_count(&t->by_key) : 0;
}

void store_each(struct store *s, const struct kind *k, const char *ns, const char *after,
                bool (*fn)(void *arg, struct object *o), void *arg)
{
    struct store_table *t = store_table(s, k);
    struct strbuf prefix = {0};
    if (ns && k->namespaced)
        strbuf_addf(&prefix, "%s/", ns);
    const char *first = strbuf_str(&prefix);
    if (after && strcmp(after, first) > 0)
        first = after;
    struct store_place at = store_order_seek(&t->order, first);
    for (struct store_slot *slot; (slot = store_order_next(&t->order, &at));) {
        struct object *o = slot->now;
        if (after && strcmp(o->key, after) <= 0)
            continue;
        after = NULL;
        if (prefix.len > 0 && strncmp(o->key, prefix.ptr, prefix.len) != 0)
            break;
        if (!fn(arg, o))
            break;
    }
    strbuf_deinit(&prefix);
}

/* ---- beginning and end ---- */

struct store *store_new(size_t history)
{
    struct store *s = mem_new(struct store, 1);
    s->history = history > 0 ? history : 1;
    s->listeners_end = &s->listeners;
    return s;
}

static void free_table(struct store_table *t)
{
    while (t->past.len > 0)
        forget_oldest(&t->past);
    free(t->past.ring);
    store_order_deinit(&t->order);
    void *value;
    for (size_t i = 0; map_next(&t->by_key, &i, NULL, &value);) {
        struct store_slot *slot = value;
        object_unref(slot->now);
        free(slot);
    }
    map_deinit(&t->by_key);
    free(t);
}

void store_free(struct store *s)
{
    if (!s)
        return;
    begin_change(s);
    for (size_t i = 0; i < s->tables.len; i++)
        free_table(s->tables.items[i]);
    vec_deinit(&s->tables);
    vec_deinit(&s->waiting);
    vec_deinit(&s->replaced);
    strbuf_deinit(&s->key);
    free(s);
}

uint64_t store_version(const struct store *s)
{
    return s->version;
}
