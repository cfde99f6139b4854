// SPDX-License-Identifier: Apache-2.0
/*
 * controllers_tools - events, statuses, conditions and pods: what every controller does.
 */
#include "test/local/controllers/controllers_internal.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "test/local/admission/admission.h"

enum { EVENTS_REMEMBERED = 4096, MESSAGE_MAX = 1024, PERCENT_MAX = 100000 };

void controllers_now(char out[32])
{
    clock_rfc3339(clock_wall_ns(), 0, out);
}

int64_t controllers_int(const struct jsonnode *v, int64_t fallback)
{
    int64_t n;
    return jsonnode_int(v, &n) ? n : fallback;
}

int64_t controllers_scaled(const struct jsonnode *v, int64_t total, bool up, int64_t fallback)
{
    const char *text = jsonnode_str(v);
    int64_t n, product;
    if (!text)
        return controllers_int(v, fallback);
    size_t len = strlen(text);
    if (len < 2 || text[len - 1] != '%' || num_parse(text, len - 1, &n, NULL) < 0 || n < 0 ||
        n > PERCENT_MAX || !num_mul(n, total, &product))
        return fallback;
    return (product + (up ? 99 : 0)) / 100;
}

/* ---- events ---- */

struct sent {
    char *key;
    char *ns, *name; /* of the Event */
};

static void sent_free(struct sent *s)
{
    free(s->key);
    free(s->ns);
    free(s->name);
    free(s);
}

void controllers_events_deinit(struct controllers *c)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&c->recorded, &i, &key, &value);)
        sent_free(value);
    map_deinit(&c->recorded);
}

static bool count_event(void *arg, struct jsontree *t, struct jsonnode *object)
{
    (void)arg;
    char now[32];
    controllers_now(now);
    jsonnode_set_int(t, object, "count", controllers_int(jsonnode_get(object, "count"), 1) + 1);
    jsonnode_set_str(t, object, "lastTimestamp", now);
    return true;
}

static struct jsontree *make_event(const struct object *o, const char *component, bool warning,
                                   const char *reason, const char *message, const char *name,
                                   const char *ns)
{
    struct jsontree *t = jsontree_new();
    struct jsonnode *e = jsonnode_object(t), *on = jsonnode_object(t);
    char now[32], version[32];
    controllers_now(now);
    str_format(version, sizeof version, "%llu", (unsigned long long)o->version);
    jsontree_set_root(t, e);
    jsonnode_set_str(t, e, "apiVersion", "v1");
    jsonnode_set_str(t, e, "kind", "Event");
    struct jsonnode *meta = jsonnode_need_object(t, e, "metadata");
    jsonnode_set_str(t, meta, "name", name);
    jsonnode_set_str(t, meta, "namespace", ns);
    jsonnode_set_str(t, on, "kind", o->kind->kind);
    if (*o->ns)
        jsonnode_set_str(t, on, "namespace", o->ns);
    jsonnode_set_str(t, on, "name", o->name);
    jsonnode_set_str(t, on, "uid", o->uid);
    jsonnode_set_str(t, on, "apiVersion", o->kind->api_version);
    jsonnode_set_str(t, on, "resourceVersion", version);
    jsonnode_set(t, e, "involvedObject", on);
    jsonnode_set_str(t, e, "reason", reason);
    jsonnode_set_str(t, e, "message", message);
    jsonnode_set_str(t, jsonnode_need_object(t, e, "source"), "component", component);
    jsonnode_set_str(t, e, "firstTimestamp", now);
    jsonnode_set_str(t, e, "lastTimestamp", now);
    jsonnode_set_int(t, e, "count", 1);
    jsonnode_set_str(t, e, "type", warning ? "Warning" : "Normal");
    jsonnode_set(t, e, "eventTime", jsonnode_null(t));
    jsonnode_set_str(t, e, "reportingComponent", component);
    jsonnode_set_str(t, e, "reportingInstance", "");
    return t;
}

void controllers_event(struct controllers *c, const struct object *o, const char *component,
                       bool warning, const char *reason, const char *fmt, ...)
{
    char message[MESSAGE_MAX];
    struct strbuf b = {0};
    va_list ap;
    va_start(ap, fmt);
    strbuf_vaddf(&b, fmt, ap);
    va_end(ap);
    str_format(message, sizeof message, "%s", strbuf_str(&b));
    strbuf_reset(&b);
    strbuf_addf(&b, "%s %s %s", o->uid, reason, message);
    const char *ns = *o->ns ? o->ns : "default";
    struct error err = ERROR_INIT;
    struct sent *s = map_get(&c->recorded, strbuf_str(&b));
    if (s && api_modify(c->api, &kind_events, s->ns, s->name, NULL, count_event, NULL, &err) == 0) {
        strbuf_deinit(&b);
        return;
    }
    if (map_count(&c->recorded) >= EVENTS_REMEMBERED) {
        controllers_events_deinit(c);
        map_init(&c->recorded);
        s = NULL;
    }
    char name[300];
    str_format(name, sizeof name, "%.230s.%016llx", o->name,
               (unsigned long long)(uint64_t)clock_wall_ns() ^ (++c->seq << 48));
    struct jsontree *t = make_event(o, component, warning, reason, message, name, ns);
    if (api_create(c->api, &kind_events, ns, t, NULL, &err) < 0)
        log_debug("controllers: event", kv("about", o->key), kv("error", err.text));
    else {
        if (!s) {
            s = mem_new(struct sent, 1);
            s->key = mem_strdup(strbuf_str(&b));
            map_put(&c->recorded, s->key, s);
        }
        free(s->ns);
        free(s->name);
        s->ns = mem_strdup(ns);
        s->name = mem_strdup(name);
    }
    jsontree_free(t);
    strbuf_deinit(&b);
}

/* ---- status ---- */

static bool replace_status(void *arg, struct jsontree *t, struct jsonnode *object)
{
    const struct jsonnode *status = arg;
    if (jsonnode_equal(jsonnode_get(object, "status"), status))
        return false;
    jsonnode_set(t, object, "status", jsonnode_clone(t, status));
    return true;
}

static bool is_missing(const struct error *err)
{
    return err->code == ERROR_NOT_FOUND;
}

int controllers_set_status(struct controllers *c, const struct object *o,
                           const struct jsonnode *status, struct error *err)
{
    void *arg;
    memcpy(&arg, &status, sizeof arg);
    struct error e = ERROR_INIT;
    if (api_modify(c->api, o->kind, o->ns, o->name, o->kind->has_status ? "status" : NULL,
                   replace_status, arg, &e) == 0 ||
        is_missing(&e))
        return 0;
    if (err)
        *err = e;
    return -1;
}

const struct jsonnode *controllers_condition(const struct jsonnode *list, const char *type)
{
    for (size_t i = 0; i < jsonnode_len(list); i++)
        if (str_eq(jsonnode_get_str(jsonnode_at(list, i), "type"), type))
            return jsonnode_at(list, i);
    return NULL;
}

bool controllers_condition_is(const struct jsonnode *list, const char *type, const char *status)
{
    return str_eq(jsonnode_get_str(controllers_condition(list, type), "status"), status);
}

bool controllers_set_condition(struct jsontree *t, struct jsonnode *list, const char *type,
                               bool status, const char *reason, const char *message,
                               const char *second_time)
{
    return controllers_set_condition_text(t, list, type, status ? "True" : "False", reason, message,
                                          second_time);
}

bool controllers_set_condition_text(struct jsontree *t, struct jsonnode *list, const char *type,
                                    const char *text, const char *reason, const char *message,
                                    const char *second_time)
{
    char now[32];
    controllers_now(now);
    struct jsonnode *found = NULL;
    for (size_t i = 0; i < jsonnode_len(list) && !found; i++)
        if (str_eq(jsonnode_get_str(jsonnode_at(list, i), "type"), type))
            found = jsonnode_at(list, i);
    if (found && str_eq(jsonnode_get_str(found, "status"), text) &&
        str_eq(jsonnode_get_str(found, "reason"), reason) &&
        str_eq(str_or_empty(jsonnode_get_str(found, "message")), message))
        return false;
    bool turned = !found || !str_eq(jsonnode_get_str(found, "status"), text);
    if (!found) {
        found = jsonnode_object(t);
        jsonnode_set_str(t, found, "type", type);
        jsonnode_append(list, found);
    }
    jsonnode_set_str(t, found, "status", text);
    if (second_time)
        jsonnode_set_str(t, found, second_time, now);
    if (turned)
        jsonnode_set_str(t, found, "lastTransitionTime", now);
    jsonnode_set_str(t, found, "reason", reason);
    jsonnode_set_str(t, found, "message", message);
    return true;
}

/* ---- metadata ---- */

/* Where the metadata of an object ends; the whole text when that is not clear. */
static size_t metadata_end(const struct object *o)
{
    static const char word[] = "\"metadata\":{";
    size_t head = o->text_len < 200 ? o->text_len : 200; /* apiVersion and kind come before it */
    const char *at = memmem(o->text, head, word, sizeof word - 1);
    if (!at)
        return o->text_len;
    int depth = 0;
    bool quoted = false;
    for (size_t i = (size_t)(at - o->text) + sizeof word - 2; i < o->text_len; i++) {
        char ch = o->text[i];
        if (quoted) {
            if (ch == '\\')
                i++;
            else if (ch == '"')
                quoted = false;
        } else if (ch == '"')
            quoted = true;
        else if (ch == '{')
            depth++;
        else if (ch == '}' && --depth == 0)
            return i + 1;
    }
    return o->text_len;
}

bool controllers_mentions(const struct object *o, const char *word)
{
    return memmem(o->text, metadata_end(o), word, strlen(word)) != NULL;
}

/* ---- finalizers ---- */

static bool drop_finalizer(void *arg, struct jsontree *t, struct jsonnode *object)
{
    (void)t;
    struct jsonnode *list = jsonnode_path(object, "metadata", "finalizers", NULL);
    for (size_t i = 0; i < jsonnode_len(list); i++)
        if (str_eq(jsonnode_str(jsonnode_at(list, i)), arg)) {
            jsonnode_remove_at(list, i);
            if (jsonnode_len(list) == 0)
                jsonnode_remove(jsonnode_get(object, "metadata"), "finalizers");
            return true;
        }
    return false;
}

int controllers_remove_finalizer(struct controllers *c, const struct kind *k, const char *ns,
                                 const char *name, const char *finalizer, struct error *err)
{
    void *arg;
    memcpy(&arg, &finalizer, sizeof arg);
    struct error e = ERROR_INIT;
    if (api_modify(c->api, k, ns, name, NULL, drop_finalizer, arg, &e) == 0 || is_missing(&e))
        return 0;
    if (err)
        *err = e;
    return -1;
}

/* ---- pods ---- */

struct jsonnode *controllers_owned_by(struct jsontree *t, const struct object *o)
{
    struct jsonnode *list = jsonnode_array(t), *ref = jsonnode_object(t);
    jsonnode_set_str(t, ref, "apiVersion", o->kind->api_version);
    jsonnode_set_str(t, ref, "kind", o->kind->kind);
    jsonnode_set_str(t, ref, "name", o->name);
    jsonnode_set_str(t, ref, "uid", o->uid);
    jsonnode_set(t, ref, "controller", jsonnode_boolean(t, true));
    jsonnode_set(t, ref, "blockOwnerDeletion", jsonnode_boolean(t, true));
    jsonnode_append(list, ref);
    return list;
}

struct jsonnode *controllers_pod(struct jsontree *t, const struct object *o,
                                 const struct jsonnode *template)
{
    static const char *const taken[] = {"labels", "annotations", "finalizers"};
    struct jsonnode *pod = jsonnode_object(t);
    jsontree_set_root(t, pod);
    jsonnode_set_str(t, pod, "apiVersion", "v1");
    jsonnode_set_str(t, pod, "kind", "Pod");
    struct jsonnode *meta = jsonnode_need_object(t, pod, "metadata");
    jsonnode_set_str(t, meta, "namespace", o->ns);
    const struct jsonnode *from = jsonnode_get(template, "metadata");
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        const struct jsonnode *v = jsonnode_get(from, taken[i]);
        if (v && !jsonnode_is_null(v))
            jsonnode_set(t, meta, taken[i], jsonnode_clone(t, v));
    }
    jsonnode_set(t, meta, "ownerReferences", controllers_owned_by(t, o));
    const struct jsonnode *spec = jsonnode_get(template, "spec");
    jsonnode_set(t, pod, "spec", spec ? jsonnode_clone(t, spec) : jsonnode_object(t));
    return pod;
}

/* A pod that asks webhooks. */
struct controllers_pending {
    struct controllers *c; /* NULL: stopped meanwhile */
    struct controllers_pending *next, **prev;
    struct object *owner;
    const char *component;
    controllers_sync sync;
    struct jsontree *pod;
    bool inside; /* of controllers_create_pod */
    int *result; /* there, while inside */
    struct error *err;
};

static int store_pod(struct controllers *c, struct object *o, const char *component,
                     struct jsontree *pod, struct error *err)
{
    struct object *made = NULL;
    struct error e = ERROR_INIT;
    if (api_create(c->api, &kind_pods, o->ns, pod, &made, &e) < 0) {
        controllers_event(c, o, component, true, "FailedCreate", "Error creating: %s", e.text);
        if (err)
            *err = e;
        return -1;
    }
    /* The event changes the store, after which the pod may be another version: copy its name. */
    char name[260];
    str_format(name, sizeof name, "%s", made ? made->name : "");
    controllers_event(c, o, component, false, "SuccessfulCreate", "Created pod: %s", name);
    return 0;
}

static void admitted(void *arg, const struct error *err, const char *const *warnings)
{
    (void)warnings;
    struct controllers_pending *p = arg;
    struct controllers *c = p->c;
    int rc = -1;
    if (c) {
        struct controllers_owner *owner = controllers_index_need(&c->index, p->owner->uid);
        owner->pending--;
        controllers_index_release(&c->index, owner);
        if (err) {
            controllers_event(c, p->owner, p->component, true, "FailedCreate", "Error creating: %s",
                              err->text);
            if (p->inside && p->err)
                *p->err = *err;
        } else
            rc = store_pod(c, p->owner, p->component, p->pod, p->inside ? p->err : NULL);
        if (p->inside)
            *p->result = rc;
        else if (rc < 0)
            controllers_fail(c, p->sync, p->owner->kind, p->owner->ns, p->owner->name);
        else
            controllers_add(c, p->sync, p->owner->kind, p->owner->ns, p->owner->name, 0);
        *p->prev = p->next;
        if (p->next)
            p->next->prev = p->prev;
    }
    object_unref(p->owner);
    jsontree_free(p->pod);
    free(p);
}

int controllers_create_pod(struct controllers *c, struct object *o, const char *component,
                           controllers_sync sync, struct jsontree *take_pod, struct error *err)
{
    if (!c->admission) {
        int rc = store_pod(c, o, component, take_pod, err);
        jsontree_free(take_pod);
        return rc;
    }
    int result = 0;
    struct controllers_pending *p = mem_new(struct controllers_pending, 1);
    p->c = c;
    p->owner = object_ref(o);
    p->component = component;
    p->sync = sync;
    p->pod = take_pod;
    p->inside = true;
    p->result = &result;
    p->err = err;
    p->next = c->pending;
    p->prev = &c->pending;
    if (p->next)
        p->next->prev = &p->next;
    c->pending = p;
    controllers_index_need(&c->index, o->uid)->pending++;
    if (kind_pods.fill_defaults)
        kind_pods.fill_defaults(take_pod, jsontree_root(take_pod));
    char user[64];
    str_format(user, sizeof user, "system:serviceaccount:kube-system:%s", component);
    const struct admission_request r = {
        .kind = &kind_pods,
        .operation = "CREATE",
        .ns = o->ns,
        .name = jsonnode_get_str(jsonnode_get(jsontree_root(take_pod), "metadata"), "name"),
        .user = user};
    admission_run(c->admission, &r, take_pod, admitted, p);
    /* If it is still under way, it may not use this stack frame any more. */
    for (struct controllers_pending *i = c->pending; i; i = i->next)
        if (i == p) {
            p->inside = false;
            p->result = NULL;
            p->err = NULL;
            break;
        }
    return result;
}

void controllers_pending_deinit(struct controllers *c)
{
    for (struct controllers_pending *p = c->pending; p; p = p->next)
        p->c = NULL; /* admission answers yet */
    c->pending = NULL;
}

int controllers_delete_pod(struct controllers *c, const struct object *o, const char *component,
                           const char *ns, const char *name, const char *uid, struct error *err)
{
    char copy[260];
    str_format(copy, sizeof copy, "%s", name); /* the index forgets it with the pod */
    struct error e = ERROR_INIT;
    if (api_delete(c->api, &kind_pods, ns, name, uid, -1, API_BACKGROUND, &e) < 0) {
        if (is_missing(&e))
            return 0;
        controllers_event(c, o, component, true, "FailedDelete", "Error deleting: %s", e.text);
        if (err)
            *err = e;
        return -1;
    }
    controllers_event(c, o, component, false, "SuccessfulDelete", "Deleted pod: %s", copy);
    return 0;
}

void controllers_pods_of(const struct controllers *c, const char *uid, const struct kind *k,
                         struct controllers_pods *out)
{
    const struct controllers_owner *o = controllers_index_owner(&c->index, uid);
    for (struct controllers_edge *e = o ? o->first : NULL; e; e = e->next)
        if (e->controller && e->child->kind == k)
            vec_push(out, e->child);
}

static int rank(const void *a, const void *b)
{
    const struct controllers_child *const *pa = a, *const *pb = b;
    const struct controllers_child *x = *pa, *y = *pb;
    if (x->bound != y->bound)
        return x->bound ? 1 : -1;
    if (x->phase != y->phase)
        return x->phase < y->phase ? -1 : 1;
    if (x->ready != y->ready)
        return x->ready ? 1 : -1;
    if (x->cost != y->cost)
        return x->cost < y->cost ? -1 : 1;
    if (x->ready && x->ready_ns != y->ready_ns)
        return x->ready_ns > y->ready_ns ? -1 : 1;
    if (x->restarts != y->restarts)
        return x->restarts > y->restarts ? -1 : 1;
    if (x->created_ns != y->created_ns)
        return x->created_ns > y->created_ns ? -1 : 1;
    return strcmp(x->name, y->name);
}

void controllers_pods_rank(struct controllers_pods *pods)
{
    if (pods->len > 1)
        qsort(pods->items, pods->len, sizeof *pods->items, rank);
}
