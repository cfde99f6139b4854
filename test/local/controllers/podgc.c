// SPDX-License-Identifier: Apache-2.0
/*
 * podgc - deletes pods that no other controller would:
 *
 *   its node is gone (for QUARANTINE_MS: nodes may come back)   deleted at once
 *   terminating on a hollow node (CONTROLLERS_HOLLOW)           deleted after its grace period
 *   held by a Job's finalizer, and the Job is gone              the finalizer goes
 *
 * The real one waits 40 s for a node to come back; here a user is waiting.
 */
#include "test/local/controllers/controllers_internal.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/num.h"

enum { QUARANTINE_MS = 2000 };

static const char *node_of(const struct object *pod)
{
    const char *node = labels_get(&pod->fields, "spec.nodeName");
    return node && *node ? node : NULL;
}

static bool is_hollow(const struct object *node)
{
    if (!controllers_mentions(node, "\"" CONTROLLERS_HOLLOW "\""))
        return false;
    AUTO_JSON *doc = NULL;
    if (json_parse(&doc, node->text, node->text_len, NULL) < 0)
        return false;
    json *notes = json_get(json_get(json_root(doc), "metadata"), "annotations");
    return str_eq(json_get_str(notes, CONTROLLERS_HOLLOW), "true");
}

void podgc_changed(struct controllers *c, const struct store_event *e)
{
    const struct object *o = e->object;
    if (o->kind == &kind_nodes) {
        if (e->change == STORE_DELETED)
            controllers_add(c, podgc_node_sync, &kind_nodes, "", o->name, QUARANTINE_MS);
        return;
    }
    if (o->kind != &kind_pods || e->change == STORE_DELETED)
        return;
    const char *node = node_of(o);
    if (node && (!e->before || !node_of(e->before)) &&
        !store_get(c->store, &kind_nodes, NULL, node))
        controllers_add(c, podgc_sync, &kind_pods, o->ns, o->name, QUARANTINE_MS);
    if (controllers_mentions(o, "\"deletionTimestamp\"") ||
        (!e->before && controllers_mentions(o, CONTROLLERS_JOB_FINALIZER)))
        controllers_add(c, podgc_sync, &kind_pods, o->ns, o->name, 0);
}

/* ---- a node that is gone ---- */

struct search {
    struct controllers *c;
    const char *node;
};

static bool check_pod(void *arg, struct object *o)
{
    const struct search *s = arg;
    if (str_eq(node_of(o), s->node))
        controllers_add(s->c, podgc_sync, &kind_pods, o->ns, o->name, 0);
    return true;
}

int podgc_node_sync(struct controllers *c, const struct controllers_work *w, int64_t *again_ms,
                    struct error *err)
{
    (void)again_ms;
    (void)err;
    struct search s = {c, w->name};
    if (!store_get(c->store, &kind_nodes, NULL, w->name))
        store_each(c->store, &kind_pods, NULL, NULL, check_pod, &s);
    return 0;
}

/* ---- one pod ---- */

static bool job_is_gone(const struct controllers *c, const struct object *pod, json *meta)
{
    bool held = false;
    for (struct json_iter it = json_iter(json_get(meta, "finalizers")); json_next(&it);)
        held |= str_eq(json_str(it.value), CONTROLLERS_JOB_FINALIZER);
    if (!held)
        return false;
    for (struct json_iter it = json_iter(json_get(meta, "ownerReferences")); json_next(&it);) {
        if (!str_eq(json_get_str(it.value, "kind"), "Job"))
            continue;
        const struct object *job =
            store_get(c->store, &kind_jobs, pod->ns, json_get_str(it.value, "name"));
        if (job && str_eq(job->uid, json_get_str(it.value, "uid")))
            return false;
    }
    return true;
}

static int look_at(struct controllers *c, const struct object *pod, json *meta, int64_t *again_ms,
                   struct error *err)
{
    if (job_is_gone(c, pod, meta))
        return controllers_remove_finalizer(c, &kind_pods, pod->ns, pod->name,
                                            CONTROLLERS_JOB_FINALIZER, err);
    const char *name = node_of(pod), *deleted = json_get_str(meta, "deletionTimestamp");
    if (!name)
        return 0;
    const struct object *node = store_get(c->store, &kind_nodes, NULL, name);
    if (node && (!deleted || !is_hollow(node)))
        return 0;
    if (node) {
        int64_t end = clock_parse_rfc3339(deleted);
        int64_t left_ms = end < 0 ? 0 : (end - clock_wall_ns()) / 1000000;
        if (left_ms > 0) {
            *again_ms = left_ms;
            return 0;
        }
    }
    struct error e = ERROR_INIT;
    if (api_delete(c->api, &kind_pods, pod->ns, pod->name, pod->uid, 0, API_BACKGROUND, &e) == 0 ||
        e.code == ERROR_NOT_FOUND || e.code == ERROR_CONFLICT)
        return 0;
    *err = e;
    return -1;
}

int podgc_sync(struct controllers *c, const struct controllers_work *w, int64_t *again_ms,
               struct error *err)
{
    struct object *pod = store_get(c->store, &kind_pods, w->ns, w->name);
    AUTO_JSON *doc = NULL;
    if (!pod)
        return 0;
    if (json_parse(&doc, pod->text, pod->text_len, err) < 0)
        return -1;
    object_ref(pod);
    int rc = look_at(c, pod, json_get(json_root(doc), "metadata"), again_ms, err);
    object_unref(pod);
    return rc;
}
