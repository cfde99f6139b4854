// SPDX-License-Identifier: Apache-2.0
/*
 * namespace - a new namespace gets its default service account; one that is deleted is emptied
 * first.
 *
 *   Active ── api_delete ──► Terminating: everything in it is deleted, again and again, until
 *                            nothing is left ──► spec.finalizers emptied, which is its end
 */
#include "test/local/controllers/controllers_internal.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/num.h"

enum { LOOK_AGAIN_MS = 2000 };

static int create(struct controllers *c, const struct kind *k, const char *ns, const char *text,
                  struct error *err)
{
    AUTO_JSONTREE *t = NULL;
    struct error e = ERROR_INIT;
    if (jsontree_parse(&t, text, strlen(text), err) < 0)
        return -1;
    if (api_create(c->api, k, ns, t, NULL, &e) == 0 || e.code == ERROR_CONFLICT)
        return 0;
    if (err)
        *err = e;
    return -1;
}

int namespace_bootstrap(struct controllers *c, struct error *err)
{
    static const char *const names[] = {"default", "kube-system", "kube-public", "kube-node-lease"};
    static const struct {
        const char *name, *text;
    } classes[] = {
        {"system-cluster-critical",
         "{\"apiVersion\":\"scheduling.k8s.io/v1\",\"kind\":\"PriorityClass\",\"metadata\":{"
         "\"name\":\"system-cluster-critical\"},\"value\":2000000000,\"description\":\"For system "
         "pods that must run somewhere in the cluster.\"}"},
        {"system-node-critical",
         "{\"apiVersion\":\"scheduling.k8s.io/v1\",\"kind\":\"PriorityClass\",\"metadata\":{"
         "\"name\":\"system-node-critical\"},\"value\":2000001000,\"description\":\"For system pods "
         "that must stay on their node.\"}"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char text[200];
        str_format(text, sizeof text,
                   "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"%s\"}}",
                   names[i]);
        if (!store_get(c->store, &kind_namespaces, NULL, names[i]) &&
            create(c, &kind_namespaces, NULL, text, err) < 0)
            return error_wrap(err, "namespace %s", names[i]);
    }
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (!store_get(c->store, &kind_priority_classes, NULL, classes[i].name) &&
            create(c, &kind_priority_classes, NULL, classes[i].text, err) < 0)
            return error_wrap(err, "priority class %s", classes[i].name);
    return 0;
}

/* ---- emptying ---- */

struct content VEC(struct object *);

static bool collect(void *arg, struct object *o)
{
    struct content *v = arg;
    vec_push(v, object_ref(o));
    return true;
}

static bool is_deleting(const struct object *o)
{
    if (!controllers_mentions(o, "\"deletionTimestamp\""))
        return false;
    AUTO_JSON *doc = NULL;
    if (json_parse(&doc, o->text, o->text_len, NULL) < 0)
        return false;
    return json_get_str(json_get(json_root(doc), "metadata"), "deletionTimestamp") != NULL;
}

/* Asks everything in it to go; returns how much there was. */
static size_t empty(struct controllers *c, const char *ns)
{
    struct content all = {0};
    for (size_t i = 0; kinds_all[i]; i++)
        if (kinds_all[i]->namespaced && kinds_has_verb(kinds_all[i], "delete"))
            store_each(c->store, kinds_all[i], ns, NULL, collect, &all);
    for (size_t i = 0; i < all.len; i++) {
        struct object *o = all.items[i];
        struct error err = ERROR_INIT;
        /* What is going already is not asked again. */
        if (!is_deleting(o))
            (void)api_delete(c->api, o->kind, o->ns, o->name, o->uid, -1, API_BACKGROUND, &err);
        object_unref(o);
    }
    size_t n = all.len;
    vec_deinit(&all);
    return n;
}

static bool set_terminating(void *arg, struct jsontree *t, struct jsonnode *object)
{
    (void)arg;
    struct jsonnode *status = jsonnode_need_object(t, object, "status");
    if (str_eq(jsonnode_get_str(status, "phase"), "Terminating"))
        return false;
    jsonnode_set_str(t, status, "phase", "Terminating");
    return true;
}

static bool drop_finalizers(void *arg, struct jsontree *t, struct jsonnode *object)
{
    (void)arg;
    (void)t;
    return jsonnode_remove(jsonnode_get(object, "spec"), "finalizers") != NULL;
}

static int ignore_missing(const struct error *e, struct error *err)
{
    if (e->code == ERROR_NOT_FOUND)
        return 0;
    if (err)
        *err = *e;
    return -1;
}

static int tear_down(struct controllers *c, const char *name, int64_t *again_ms, struct error *err)
{
    struct error e = ERROR_INIT;
    if (!map_get(&c->leaving, name)) {
        char *copy = mem_strdup(name);
        map_put(&c->leaving, copy, copy);
    }
    if (api_modify(c->api, &kind_namespaces, NULL, name, "status", set_terminating, NULL, &e) < 0)
        return ignore_missing(&e, err);
    if (empty(c, name) > 0) {
        *again_ms = LOOK_AGAIN_MS; /* and whenever something in it is gone */
        return 0;
    }
    if (api_modify(c->api, &kind_namespaces, NULL, name, "finalize", drop_finalizers, NULL, &e) < 0)
        return ignore_missing(&e, err);
    return 0;
}

int namespace_sync(struct controllers *c, const struct controllers_work *w, int64_t *again_ms,
                   struct error *err)
{
    struct object *o = store_get(c->store, &kind_namespaces, NULL, w->name);
    if (!o) {
        free(map_remove(&c->leaving, w->name));
        return 0;
    }
    if (is_deleting(o)) {
        int rc = tear_down(c, w->name, again_ms, err);
        if (!store_get(c->store, &kind_namespaces, NULL, w->name))
            free(map_remove(&c->leaving, w->name));
        return rc;
    }
    free(map_remove(&c->leaving, w->name)); /* one of the same name, made anew */
    if (store_get(c->store, &kind_service_accounts, w->name, "default"))
        return 0;
    return create(c, &kind_service_accounts, w->name,
                  "{\"apiVersion\":\"v1\",\"kind\":\"ServiceAccount\",\"metadata\":{\"name\":"
                  "\"default\"}}",
                  err);
}
