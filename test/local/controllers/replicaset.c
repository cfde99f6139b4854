// SPDX-License-Identifier: Apache-2.0
/*
 * replicaset - keeps spec.replicas pods. Surplus pods are deleted in the order of
 * controllers_pods_rank. A create that is refused (by a quota) is retried and reported in the
 * condition ReplicaFailure.
 *
 * Left out: adopting pods that match the selector and have no owner.
 */
#include "test/local/controllers/controllers_internal.h"

#include <string.h>

#include "lib/base/clock.h"
#include "lib/base/num.h"

enum { BURST = 100 }; /* pods in one sync, about 10 ms; the rest in the next round */
static const char COMPONENT[] = "replicaset-controller";

struct counts {
    int64_t active, ready, available, terminating, labelled;
};

/* How long until a ready pod counts as available; 0: it does. -1: it is not ready. */
static int64_t available_in_ms(const struct controllers_child *pod, int64_t min_ready_s)
{
    if (!pod->ready)
        return -1;
    if (min_ready_s <= 0 || pod->ready_ns < 0)
        return 0;
    return num_max(0, (pod->ready_ns - clock_wall_ns()) / 1000000 + min_ready_s * 1000);
}

static int write_status(struct controllers *c, struct object *o, struct jsonnode *root,
                        const struct counts *n, const struct error *failure, bool creating,
                        struct error *err)
{
    AUTO_JSONTREE *t = jsontree_new();
    const struct jsonnode *old = jsonnode_get(root, "status");
    struct jsonnode *status = jsonnode_object(t);
    jsontree_set_root(t, status);
    jsonnode_set_int(t, status, "replicas", n->active);
    if (n->active > 0)
        jsonnode_set_int(t, status, "fullyLabeledReplicas", n->active);
    if (n->ready > 0)
        jsonnode_set_int(t, status, "readyReplicas", n->ready);
    if (n->available > 0)
        jsonnode_set_int(t, status, "availableReplicas", n->available);
    jsonnode_set_int(t, status, "terminatingReplicas", n->terminating);
    jsonnode_set_int(t, status, "observedGeneration",
                     controllers_int(jsonnode_path(root, "metadata", "generation", NULL), 0));
    if (failure) {
        const struct jsonnode *before = jsonnode_get(old, "conditions");
        struct jsonnode *list =
            jsonnode_is_array(before) ? jsonnode_clone(t, before) : jsonnode_array(t);
        /* The name of the pod that was not made differs each time: the first failure stays. */
        const struct jsonnode *there = controllers_condition(list, "ReplicaFailure");
        if (!there)
            controllers_set_condition(t, list, "ReplicaFailure", true,
                                      creating ? "FailedCreate" : "FailedDelete", failure->text,
                                      NULL);
        jsonnode_set(t, status, "conditions", list);
    }
    return controllers_set_status(c, o, status, err);
}

static int create(struct controllers *c, struct object *o, struct jsonnode *root, int64_t n,
                  struct error *err)
{
    const struct jsonnode *template = jsonnode_path(root, "spec", "template", NULL);
    for (int64_t i = 0; i < n && i < BURST; i++) {
        struct jsontree *t = jsontree_new();
        struct jsonnode *pod = controllers_pod(t, o, template);
        char base[260];
        str_format(base, sizeof base, "%s-", o->name);
        jsonnode_set_str(t, jsonnode_get(pod, "metadata"), "generateName", base);
        if (controllers_create_pod(c, o, COMPONENT, replicaset_sync, t, err) < 0)
            return -1;
    }
    return 0;
}

static int delete (struct controllers *c, const struct object *o, struct controllers_pods *active,
                   int64_t n, struct error *err)
{
    controllers_pods_rank(active);
    /* Deleting changes the index: names are kept apart. */
    struct arena names;
    arena_init(&names, 0);
    int64_t len = num_min(n, (int64_t)active->len);
    const char **list = arena_new(&names, const char *, (size_t)len * 2);
    for (int64_t i = 0; i < len; i++) {
        list[i * 2] = arena_strdup(&names, active->items[i]->name);
        list[i * 2 + 1] = arena_strdup(&names, active->items[i]->uid);
    }
    int rc = 0;
    for (int64_t i = 0; i < len && rc == 0; i++)
        rc = controllers_delete_pod(c, o, COMPONENT, o->ns, list[i * 2], list[i * 2 + 1], err);
    arena_deinit(&names);
    return rc;
}

static void count(struct controllers *c, const char *uid, int64_t min_ready_s,
                  struct controllers_pods *active, struct counts *n, int64_t *again_ms)
{
    struct controllers_pods all = {0};
    *n = (struct counts){0};
    controllers_pods_of(c, uid, &kind_pods, &all);
    for (size_t i = 0; i < all.len; i++) {
        struct controllers_child *pod = all.items[i];
        if (pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED)
            continue;
        if (pod->deleting) {
            n->terminating++;
            continue;
        }
        n->active++;
        n->ready += pod->ready;
        int64_t wait = available_in_ms(pod, min_ready_s);
        n->available += wait == 0;
        if (wait > 0 && (*again_ms < 0 || wait < *again_ms))
            *again_ms = wait;
        if (active)
            vec_push(active, pod);
    }
    vec_deinit(&all);
}

int replicaset_sync(struct controllers *c, const struct controllers_work *w, int64_t *again_ms,
                    struct error *err)
{
    struct object *o = store_get(c->store, w->kind, w->ns, w->name);
    AUTO_JSONTREE *t = NULL;
    if (!o)
        return 0;
    if (jsontree_parse(&t, o->text, o->text_len, err) < 0)
        return -1;
    object_ref(o);
    struct jsonnode *root = jsontree_root(t);
    int64_t want = controllers_int(jsonnode_path(root, "spec", "replicas", NULL), 1);
    int64_t min_ready_s = controllers_int(jsonnode_path(root, "spec", "minReadySeconds", NULL), 0);
    struct counts n;
    struct controllers_pods active = {0};
    count(c, o->uid, min_ready_s, &active, &n, again_ms);
    const struct controllers_owner *owner = controllers_index_owner(&c->index, o->uid);
    int64_t missing = want - n.active - (owner ? (int64_t)owner->pending : 0);
    int rc = 0;
    if (!jsonnode_path(root, "metadata", "deletionTimestamp", NULL)) {
        if (missing > 0)
            rc = create(c, o, root, missing, err);
        else if (missing < 0)
            rc = delete (c, o, &active, -missing, err);
        if (missing > BURST)
            *again_ms = 0;
    }
    vec_deinit(&active);
    count(c, o->uid, min_ready_s, NULL, &n, again_ms);
    struct error failure = err ? *err : (struct error)ERROR_INIT;
    struct error ignored = ERROR_INIT;
    if (write_status(c, o, root, &n, rc < 0 ? &failure : NULL, missing > 0,
                     rc < 0 ? &ignored : err) < 0)
        rc = -1;
    object_unref(o);
    return rc;
}
