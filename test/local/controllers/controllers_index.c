// SPDX-License-Identifier: Apache-2.0
/*
 * controllers_index - owners and dependents by uid, maintained from the store's changes, so that no
 * controller scans all pods. An object without ownerReferences costs one text search: a hundred
 * thousand pods that were loaded directly are not indexed.
 */
#include "test/local/controllers/controllers_internal.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"

enum { OWNERS_MAX = 64 }; /* of one object */

void controllers_index_init(struct controllers_index *x)
{
    map_init(&x->owners);
    map_init(&x->children);
}

struct controllers_owner *controllers_index_owner(const struct controllers_index *x,
                                                  const char *uid)
{
    return map_get(&x->owners, uid);
}

struct controllers_owner *controllers_index_need(struct controllers_index *x, const char *uid)
{
    struct controllers_owner *o = map_get(&x->owners, uid);
    if (o)
        return o;
    o = mem_new(struct controllers_owner, 1);
    o->uid = mem_strdup(uid);
    map_put(&x->owners, o->uid, o);
    return o;
}

static void owner_free(struct controllers_owner *o)
{
    free(o->uid);
    free(o);
}

void controllers_index_release(struct controllers_index *x, struct controllers_owner *o)
{
    if (o->first || o->pending > 0 || o->failures_in_row > 0)
        return;
    map_remove(&x->owners, o->uid);
    owner_free(o);
}

static void unlink_edges(struct controllers_index *x, struct controllers_child *ch)
{
    for (size_t i = 0; i < ch->edges_len; i++) {
        struct controllers_edge *e = &ch->edges[i];
        *e->prev = e->next;
        if (e->next)
            e->next->prev = e->prev;
        free(e->name);
        controllers_index_release(x, e->owner);
    }
    free(ch->edges);
    ch->edges = NULL;
    ch->edges_len = 0;
}

static void child_free(struct controllers_index *x, struct controllers_child *ch)
{
    unlink_edges(x, ch);
    free(ch->ns);
    free(ch->name);
    free(ch->uid);
    free(ch);
}

void controllers_index_deinit(struct controllers_index *x)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&x->children, &i, &key, &value);)
        child_free(x, value);
    for (size_t i = 0; map_next(&x->owners, &i, &key, &value);)
        owner_free(value); /* pending or failing ones */
    map_deinit(&x->children);
    map_deinit(&x->owners);
}

void controllers_index_remove(struct controllers_index *x, const char *uid)
{
    struct controllers_child *ch = map_remove(&x->children, uid);
    if (ch)
        child_free(x, ch);
}

static int64_t text_int(const char *s, int64_t fallback)
{
    int64_t n;
    return s && num_parse(s, strlen(s), &n, NULL) == 0 ? n : fallback;
}

static void read_containers(struct controllers_child *ch, json *list)
{
    for (struct json_iter it = json_iter(list); json_next(&it);) {
        int64_t n;
        if (json_get_int(it.value, "restartCount", &n))
            ch->restarts += n;
        json *ended = json_get(json_get(it.value, "state"), "terminated");
        if (json_get_int(ended, "exitCode", &n) && (!ch->exited || n != 0)) {
            ch->exited = true;
            ch->exit_code = n;
        }
    }
}

static void read_pod(struct controllers_child *ch, json *root)
{
    json *meta = json_get(root, "metadata"), *status = json_get(root, "status");
    const char *phase = json_get_str(status, "phase");
    ch->phase = str_eq(phase, "Running")     ? POD_RUNNING
                : str_eq(phase, "Succeeded") ? POD_SUCCEEDED
                : str_eq(phase, "Failed")    ? POD_FAILED
                                             : POD_PENDING;
    const char *node = json_get_str(json_get(root, "spec"), "nodeName");
    ch->bound = node && *node;
    json *notes = json_get(meta, "annotations");
    ch->cost = text_int(json_get_str(notes, CONTROLLERS_COST), 0);
    ch->index = text_int(json_get_str(notes, CONTROLLERS_INDEX), -1);
    ch->index_known = ch->index >= 0;
    ch->tracked = false;
    for (struct json_iter it = json_iter(json_get(meta, "finalizers")); json_next(&it);)
        ch->tracked |= str_eq(json_str(it.value), CONTROLLERS_JOB_FINALIZER);
    ch->ready = false;
    for (struct json_iter it = json_iter(json_get(status, "conditions")); json_next(&it);) {
        if (!str_eq(json_get_str(it.value, "type"), "Ready"))
            continue;
        ch->ready = str_eq(json_get_str(it.value, "status"), "True");
        const char *since = json_get_str(it.value, "lastTransitionTime");
        ch->ready_ns = since ? clock_parse_rfc3339(since) : -1;
    }
    ch->restarts = 0;
    ch->exited = false;
    read_containers(ch, json_get(status, "containerStatuses"));
}

static void link_edges(struct controllers_index *x, struct controllers_child *ch, json *refs)
{
    size_t n = json_len(refs);
    if (n > OWNERS_MAX)
        n = OWNERS_MAX;
    ch->edges = mem_new(struct controllers_edge, n);
    for (struct json_iter it = json_iter(refs); json_next(&it) && ch->edges_len < n;) {
        const char *uid = json_get_str(it.value, "uid"),
                   *version = json_get_str(it.value, "apiVersion"),
                   *kind = json_get_str(it.value, "kind");
        if (!uid || !version || !kind)
            continue;
        struct controllers_edge *e = &ch->edges[ch->edges_len++];
        e->child = ch;
        e->owner = controllers_index_need(x, uid);
        e->kind = kinds_by_name(version, kind);
        e->name = mem_strdup(str_or_empty(json_get_str(it.value, "name")));
        e->controller = json_get_bool(it.value, "controller", false);
        e->blocks = json_get_bool(it.value, "blockOwnerDeletion", false);
        e->next = e->owner->first;
        e->prev = &e->owner->first;
        if (e->next)
            e->next->prev = &e->next;
        e->owner->first = e;
    }
}

/* The references that are indexed are those of the object. */
static bool same_refs(const struct controllers_child *ch, json *refs)
{
    if (ch->edges_len != json_len(refs))
        return false;
    size_t i = 0;
    for (struct json_iter it = json_iter(refs); json_next(&it); i++) {
        const struct controllers_edge *e = &ch->edges[i];
        if (!str_eq(json_get_str(it.value, "uid"), e->owner->uid) ||
            json_get_bool(it.value, "controller", false) != e->controller ||
            json_get_bool(it.value, "blockOwnerDeletion", false) != e->blocks)
            return false;
    }
    return true;
}

struct controllers_child *controllers_index_put(struct controllers_index *x, const struct object *o)
{
    struct controllers_child *ch = map_get(&x->children, o->uid);
    struct json_doc *doc = NULL;
    json *refs = NULL;
    if (controllers_mentions(o, "\"ownerReferences\"") &&
        json_parse(&doc, o->text, o->text_len, NULL) == 0)
        refs = json_get(json_get(json_root(doc), "metadata"), "ownerReferences");
    if (json_len(refs) == 0) {
        if (ch)
            controllers_index_remove(x, o->uid);
        json_free(doc);
        return NULL;
    }
    if (!ch) {
        ch = mem_new(struct controllers_child, 1);
        ch->kind = o->kind;
        ch->ns = mem_strdup(o->ns);
        ch->name = mem_strdup(o->name);
        ch->uid = mem_strdup(o->uid);
        map_put(&x->children, ch->uid, ch);
    }
    if (!same_refs(ch, refs)) {
        unlink_edges(x, ch);
        link_edges(x, ch, refs);
    }
    json *meta = json_get(json_root(doc), "metadata");
    const char *created = json_get_str(meta, "creationTimestamp");
    ch->created_ns = created ? clock_parse_rfc3339(created) : 0;
    ch->deleting = json_get_str(meta, "deletionTimestamp") != NULL;
    if (o->kind == &kind_pods)
        read_pod(ch, json_root(doc));
    json_free(doc);
    return ch;
}
