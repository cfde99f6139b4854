// SPDX-License-Identifier: Apache-2.0
/*
 * admission_quota - ResourceQuota on object counts, and its status.
 *
 * Counts by namespace and kind are maintained from the store's changes, so a check is two lookups.
 * It is exact, since the object is stored in the same step. Supported names of spec.hard:
 *
 *   pods                     pods that are neither Succeeded nor Failed
 *   count/RESOURCE[.GROUP]   all objects of that kind (count/pods counts finished pods too)
 *   services, secrets, configmaps, persistentvolumeclaims, replicationcontrollers, resourcequotas
 *
 * Others (requests.cpu, ...), and quotas with scopes, are not enforced; a line in the log says so.
 * status.hard and status.used are written in the round of the loop after a change.
 */
#include "test/local/admission/admission_internal.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "lib/model/quantity.h"

enum { KINDS_MAX = 128 };

struct place { /* a namespace */
    char *ns;
    int64_t active_pods;
    bool dirty;
    int64_t counts[KINDS_MAX]; /* by the kind's place in kinds_all */
};

struct admission_quota {
    struct loop *loop;
    struct store *store;
    struct store_listener listener;
    struct loop_timer timer;
    struct map places;
    struct VEC(struct place *) dirty;
    struct map refused; /* names of spec.hard that were logged; keys owned */
};

static size_t kind_index(const struct kind *k)
{
    size_t i = 0;
    while (kinds_all[i] && kinds_all[i] != k)
        i++;
    return i < KINDS_MAX - 1 ? i : KINDS_MAX - 1;
}

static struct place *place_of(struct admission_quota *q, const char *ns)
{
    struct place *p = map_get(&q->places, ns);
    if (p)
        return p;
    p = mem_new(struct place, 1);
    p->ns = mem_strdup(ns);
    map_put(&q->places, p->ns, p);
    return p;
}

static bool is_active_pod(const struct object *o)
{
    const char *phase = labels_get(&o->fields, "status.phase");
    return !str_eq(phase, "Succeeded") && !str_eq(phase, "Failed");
}

static void count(struct place *p, const struct object *o, int64_t by)
{
    p->counts[kind_index(o->kind)] += by;
    if (o->kind == &kind_pods && is_active_pod(o))
        p->active_pods += by;
}

/* ---- names of spec.hard ---- */

struct resource {
    const struct kind *kind;
    bool active; /* pods that are not finished */
};

static bool resource_of(const char *name, struct resource *out)
{
    static const char *const plain[] = {"services",
                                        "secrets",
                                        "configmaps",
                                        "persistentvolumeclaims",
                                        "replicationcontrollers",
                                        "resourcequotas"};
    *out = (struct resource){0};
    if (str_eq(name, "pods")) {
        *out = (struct resource){.kind = &kind_pods, .active = true};
        return true;
    }
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (str_eq(name, plain[i]))
            out->kind = kinds_find("", "v1", name);
    if (str_starts(name, "count/")) {
        const char *what = name + strlen("count/");
        size_t n = strcspn(what, ".");
        const char *group = what[n] ? what + n + 1 : "";
        for (size_t i = 0; kinds_all[i] && !out->kind; i++)
            if (strlen(kinds_all[i]->resource) == n &&
                strncmp(kinds_all[i]->resource, what, n) == 0 && str_eq(kinds_all[i]->group, group))
                out->kind = kinds_all[i];
    }
    return out->kind != NULL;
}

static int64_t used_of(const struct place *p, const struct resource *r)
{
    if (!p)
        return 0;
    return r->active ? p->active_pods : p->counts[kind_index(r->kind)];
}

static void log_once(struct admission_quota *q, const struct object *quota, const char *what)
{
    if (map_get(&q->refused, what))
        return;
    map_put(&q->refused, mem_strdup(what), q);
    log_warn("resource quota: not enforced here", kv("quota", quota->key), kv("what", what));
}

static bool has_scopes(json *spec)
{
    return json_len(json_get(spec, "scopes")) > 0 || json_len(json_get(spec, "scopeSelector")) > 0;
}

/* ---- the check ---- */

struct check {
    struct admission_quota *q;
    const struct admission_request *r;
    const struct jsonnode *object;
    const struct place *place;
    struct error *err;
    bool refused;
};

struct excess {
    const char *name;
    int64_t used;
    const char *hard;
};

static int by_name(const void *a, const void *b)
{
    const struct excess *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static const char *hard_text(json *v)
{
    const char *s = json_str(v);
    return s ? s : json_number_text(v);
}

/* Checked after names, so that a refusal has the generated one. */
static void print_name(const struct check *c, char out[300])
{
    const char *own = jsonnode_str(jsonnode_path(c->object, "metadata", "name", NULL));
    bool named = (c->r->name && *c->r->name) || (own && *own);
    str_format(out, 300, "%.250s", admission_name(c->r, c->object));
    for (size_t n = strlen(out), i = 0; !named && i < 5; i++) {
        out[n + i] = "bcdfghjklmnpqrstvwxz2456789"[clock_jitter(27)];
        out[n + i + 1] = '\0';
    }
}

static bool check_quota(void *arg, struct object *o)
{
    struct check *c = arg;
    AUTO_JSON *doc = NULL;
    if (json_parse(&doc, o->text, o->text_len, NULL) < 0)
        return true;
    json *spec = json_get(json_root(doc), "spec");
    if (has_scopes(spec))
        return true;
    struct VEC(struct excess) over = {0};
    for (struct json_iter it = json_iter(json_get(spec, "hard")); json_next(&it);) {
        struct resource res;
        int64_t hard;
        const char *text = hard_text(it.value);
        if (!resource_of(it.key, &res) || res.kind != c->r->kind || !text ||
            quantity_parse(text, strlen(text), QUANTITY_UNITS, QUANTITY_DOWN, &hard, NULL) < 0)
            continue;
        int64_t used = used_of(c->place, &res);
        if (used >= hard) {
            struct excess e = {it.key, used, text};
            vec_push(&over, e);
        }
    }
    if (over.len > 0) {
        qsort(over.items, over.len, sizeof *over.items, by_name);
        struct strbuf asked = {0}, used = {0}, hard = {0};
        char name[300];
        print_name(c, name);
        for (size_t i = 0; i < over.len; i++) {
            const struct excess *e = &over.items[i];
            const char *comma = i ? "," : "";
            strbuf_addf(&asked, "%s%s=1", comma, e->name);
            strbuf_addf(&used, "%s%s=%lld", comma, e->name, (long long)e->used);
            strbuf_addf(&hard, "%s%s=%s", comma, e->name, e->hard);
        }
        admission_forbid(c->err, c->r->kind, name,
                         "exceeded quota: %s, requested: %s, used: %s, limited: %s", o->name,
                         strbuf_str(&asked), strbuf_str(&used), strbuf_str(&hard));
        strbuf_deinit(&asked);
        strbuf_deinit(&used);
        strbuf_deinit(&hard);
        c->refused = true;
    }
    vec_deinit(&over);
    return !c->refused;
}

int admission_quota_check(struct admission_quota *q, const struct admission_request *r,
                          const struct jsonnode *object, struct error *err)
{
    if (!str_eq(r->operation, "CREATE") || r->sub || !r->kind->namespaced)
        return 0;
    const char *ns = str_or_empty(r->ns);
    const struct place *p = map_get(&q->places, ns);
    if (!p || p->counts[kind_index(&kind_resource_quotas)] == 0)
        return 0;
    struct check c = {.q = q, .r = r, .object = object, .place = p, .err = err};
    store_each(q->store, &kind_resource_quotas, ns, NULL, check_quota, &c);
    return c.refused ? -1 : 0;
}

/* ---- status ---- */

static void write_status(struct admission_quota *q, const struct place *p, struct object *o)
{
    AUTO_JSONTREE *t = NULL;
    AUTO_JSON *doc = NULL;
    if (json_parse(&doc, o->text, o->text_len, NULL) < 0 ||
        jsontree_parse(&t, o->text, o->text_len, NULL) < 0)
        return;
    json *spec = json_get(json_root(doc), "spec");
    if (has_scopes(spec)) {
        log_once(q, o, "scopes");
        return;
    }
    struct jsonnode *status = jsonnode_object(t), *hard = jsonnode_object(t),
                    *used = jsonnode_object(t);
    for (struct json_iter it = json_iter(json_get(spec, "hard")); json_next(&it);) {
        struct resource res;
        jsonnode_set(t, hard, it.key, jsonnode_copy(t, it.value));
        if (!resource_of(it.key, &res)) {
            log_once(q, o, it.key);
            continue;
        }
        char text[32];
        str_format(text, sizeof text, "%lld", (long long)used_of(p, &res));
        jsonnode_set_str(t, used, it.key, text);
    }
    jsonnode_set(t, status, "hard", hard);
    jsonnode_set(t, status, "used", used);
    jsonnode_set(t, jsontree_root(t), "status", status);
    AUTO_STRBUF text = {0};
    jsontree_print(t, &text);
    struct error err = ERROR_INIT;
    if (store_update(q->store, o->kind, strbuf_str(&text), text.len, o->version, NULL, &err) < 0)
        log_warn("resource quota: status", kv("quota", o->key), kv("error", err.text));
}

struct VEC_objects VEC(struct object *);

static bool collect(void *arg, struct object *o)
{
    struct VEC_objects *v = arg;
    vec_push(v, object_ref(o));
    return true;
}

static void write_all(void *arg)
{
    struct admission_quota *q = arg;
    /* Writing marks the place again only through the quota's own change, which is told now. */
    size_t n = q->dirty.len;
    for (size_t i = 0; i < n; i++) {
        struct place *p = q->dirty.items[i];
        struct VEC_objects quotas = {0};
        store_each(q->store, &kind_resource_quotas, p->ns, NULL, collect, &quotas);
        for (size_t j = 0; j < quotas.len; j++) {
            write_status(q, p, quotas.items[j]);
            object_unref(quotas.items[j]);
        }
        vec_deinit(&quotas);
        p->dirty = false;
    }
    memmove(q->dirty.items, q->dirty.items + n, (q->dirty.len - n) * sizeof *q->dirty.items);
    q->dirty.len -= n;
}

static void changed(void *arg, const struct store_event *e)
{
    struct admission_quota *q = arg;
    const struct object *o = e->object;
    if (!o->kind->namespaced)
        return;
    bool quota = o->kind == &kind_resource_quotas;
    if (e->change == STORE_MODIFIED && !quota &&
        (o->kind != &kind_pods || is_active_pod(o) == is_active_pod(e->before)))
        return;
    struct place *p = place_of(q, o->ns);
    if (e->before)
        count(p, e->before, -1);
    if (e->change != STORE_DELETED)
        count(p, o, 1);
    if (p->counts[kind_index(&kind_resource_quotas)] > 0 && !p->dirty) {
        p->dirty = true;
        vec_push(&q->dirty, p);
        loop_timer_set(q->loop, &q->timer, 0, write_all, q);
    }
}

static bool count_existing(void *arg, struct object *o)
{
    struct admission_quota *q = arg;
    const struct store_event e = {
        .change = STORE_ADDED, .version = o->version, .object = o, .before = NULL};
    changed(q, &e);
    return true;
}

struct admission_quota *admission_quota_new(struct loop *l, struct store *s)
{
    struct admission_quota *q = mem_new(struct admission_quota, 1);
    q->loop = l;
    q->store = s;
    map_init(&q->places);
    map_init(&q->refused);
    for (size_t i = 0; kinds_all[i]; i++)
        if (kinds_all[i]->namespaced)
            store_each(s, kinds_all[i], NULL, NULL, count_existing, q);
    q->listener = (struct store_listener){.kind = NULL, .fn = changed, .arg = q};
    store_listen(s, &q->listener);
    return q;
}

void admission_quota_free(struct admission_quota *q)
{
    if (!q)
        return;
    store_unlisten(q->store, &q->listener);
    loop_timer_cancel(q->loop, &q->timer);
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&q->places, &i, &key, &value);) {
        struct place *p = value;
        free(p->ns);
        free(p);
    }
    map_deinit(&q->places);
    for (size_t i = 0; map_next(&q->refused, &i, &key, &value);) {
        void *owned;
        memcpy(&owned, &key, sizeof owned);
        free(owned);
    }
    map_deinit(&q->refused);
    vec_deinit(&q->dirty);
    free(q);
}
