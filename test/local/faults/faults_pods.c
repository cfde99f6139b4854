// SPDX-License-Identifier: Apache-2.0
#include "test/local/faults/faults_pods.h"

#include <string.h>

#include "lib/base/arena.h"
#include "lib/base/vec.h"
#include "test/local/api/selector_parse.h"

struct search {
    struct selector selector;
    int64_t left;
    struct VEC(struct object *) found;
};

static bool collect(void *arg, struct object *o)
{
    struct search *s = arg;
    if (selector_matches(&s->selector, &o->labels)) {
        vec_push(&s->found, object_ref(o));
        s->left--;
    }
    return s->left > 0;
}

/* A pod with a finalizer cannot be created again yet: it is only deleted, and its controller (a
 * Job) creates another. */
static bool is_held(const struct faults_pods *p, const struct object *o)
{
    const struct object *now = store_get(p->store, &kind_pods, o->ns, o->name);
    return now && strcmp(now->uid, o->uid) == 0;
}

static int recreate(const struct faults_pods *p, const struct object *o, struct error *err)
{
    AUTO_JSONTREE *t = NULL;
    if (jsontree_parse(&t, o->text, o->text_len, err) < 0)
        return -1;
    struct jsonnode *pod = jsontree_root(t), *metadata = jsonnode_get(pod, "metadata");
    static const char *const given[] = {
        "uid",          "resourceVersion",   "creationTimestamp",
        "generation",   "deletionTimestamp", "deletionGracePeriodSeconds",
        "managedFields"};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        jsonnode_remove(metadata, given[i]);
    jsonnode_remove(jsonnode_get(pod, "spec"), "nodeName");
    jsonnode_remove(pod, "status");
    if (api_delete(p->api, &kind_pods, o->ns, o->name, o->uid, 0, API_BACKGROUND, err) < 0)
        return -1;
    return is_held(p, o) ? 0 : api_create(p->api, &kind_pods, o->ns, t, NULL, err);
}

int faults_pods_recreate(void *arg, const char *ns, const char *selector, int64_t count,
                         int64_t *done, struct error *err)
{
    const struct faults_pods *p = arg;
    struct arena arena;
    arena_init(&arena, 0);
    struct search s = {.left = count};
    int rc = selector_parse(str_or_empty(selector), &arena, &s.selector, err);
    if (rc == 0)
        store_each(p->store, &kind_pods, ns, NULL, collect, &s);
    *done = 0;
    for (size_t i = 0; i < s.found.len; i++) {
        if (rc == 0 && (rc = recreate(p, s.found.items[i], err)) == 0)
            ++*done;
        object_unref(s.found.items[i]);
    }
    vec_deinit(&s.found);
    arena_deinit(&arena);
    return rc;
}
