// SPDX-License-Identifier: Apache-2.0
/*
 * store - versions of JSON objects, in memory. It knows uid, resourceVersion, labels and selected
 * fields, nothing of what objects mean. One thread (the loop's).
 *
 * An object's version is immutable and counted by references: a list, a watch line and the store
 * may hold the same one. One counter numbers all changes of all kinds, as etcd does. The last
 * `history` changes of each kind are kept for watches that resume; older ones are 410.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/json.h"
#include "lib/model/selector.h"
#include "test/local/kinds/kinds.h"

/* One block of memory, strings and all. */
struct object {
    uint32_t refs;
    const struct kind *kind;
    uint64_t version;
    const char *key; /* "ns/name", or "name" for cluster objects */
    const char *ns;  /* "" for cluster objects */
    const char *name;
    const char *uid;  /* "" when it has none */
    const char *text; /* compact JSON, apiVersion and kind first; NUL-terminated */
    size_t text_len;
    struct labels labels;
    /* the kind's fields ("" where absent), metadata.name and metadata.namespace */
    struct labels fields;
};
struct object *object_ref(struct object *o);
void object_unref(struct object *o); /* NULL is fine */

enum store_change { STORE_ADDED, STORE_MODIFIED, STORE_DELETED };

struct store_event {
    enum store_change change;
    uint64_t version;
    struct object *object; /* DELETED: the last state, with the version of the deletion */
    struct object *before; /* NULL for ADDED: a selector may have matched before and not now (a
                              watch says DELETED then) */
};

struct store;
/* history 0 means 1. */
struct store *store_new(size_t history);
void store_free(struct store *s); /* NULL is fine */
uint64_t store_version(const struct store *s);
/* Oldest version that a watch of any kind can resume from; a quiet kind remembers longer. */
uint64_t store_oldest(const struct store *s);
/* Forgets the history up to now (fault injection: resumed watches get 410). */
void store_compact(struct store *s);

/* Objects that these hand out are borrowed until the next change made from outside a listener. */
struct object *store_get(const struct store *s, const struct kind *k, const char *ns,
                         const char *name);
/* text is complete but for metadata.resourceVersion, which the store writes. Copies. ERROR_CONFLICT
 * (AlreadyExists, 409) when it is there; ERROR_INVALID for a text that is no object with a name, or
 * whose labels are no strings. out may be NULL. */
int store_create(struct store *s, const struct kind *k, const char *text, size_t n,
                 struct object **out, struct error *err);
/* Replaces. expected: version that must be the current one; 0: any. ERROR_NOT_FOUND,
 * ERROR_CONFLICT. A text that is equal but for the version changes nothing and gives the old
 * object. */
int store_update(struct store *s, const struct kind *k, const char *text, size_t n,
                 uint64_t expected, struct object **out, struct error *err);
int store_delete(struct store *s, const struct kind *k, const char *ns, const char *name,
                 uint64_t expected, struct error *err);
size_t store_count(const struct store *s, const struct kind *k);

/* In order of key (bytes, as etcd). ns NULL: all. after: the key to continue behind, or NULL.
 * Visits until fn returns false. The store is not changed by fn. */
void store_each(struct store *s, const struct kind *k, const char *ns, const char *after,
                bool (*fn)(void *arg, struct object *o), void *arg);

/* Changes of one kind after `since`, oldest first; false: since is too old (410). The store is not
 * changed by fn. */
bool store_replay(struct store *s, const struct kind *k, uint64_t since,
                  void (*fn)(void *arg, const struct store_event *e), void *arg);
/* fn is called synchronously after every later change (kind NULL: all kinds). It may change the
 * store and the listeners: each event is delivered to all listeners before the next one, so changes
 * that fn makes are delivered afterwards, in order. */
struct store_listener {
    const struct kind *kind;
    void (*fn)(void *arg, const struct store_event *e);
    void *arg;
    struct store_listener *next_, **prev_;
    uint64_t since_;
};
void store_listen(struct store *s, struct store_listener *l);
void store_unlisten(struct store *s, struct store_listener *l);

/* The whole store as text (a line with the version, then a line per object), and back into an empty
 * one: an API server that restarts with its state kept. Loading calls no listener. */
void store_dump(struct store *s, struct strbuf *out);
int store_load(struct store *s, const char *text, size_t n, struct error *err);
