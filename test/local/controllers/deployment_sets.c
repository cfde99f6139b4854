// SPDX-License-Identifier: Apache-2.0
/*
 * deployment_sets - the ReplicaSets of a Deployment. A set belongs to a template if the two are
 * equal but for the label pod-template-hash. The hash is only a name and our own; the real one
 * hashes Go's in-memory form of the template.
 */
#include "test/local/controllers/deployment.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/num.h"

#define HASH "pod-template-hash"
#define DESIRED "deployment.kubernetes.io/desired-replicas"
#define MAX_REPLICAS "deployment.kubernetes.io/max-replicas"

/* The number in an annotation. */
static int64_t noted(const struct jsonnode *root, const char *key, int64_t fallback)
{
    const char *s = jsonnode_str(jsonnode_path(root, "metadata", "annotations", key, NULL));
    int64_t n;
    return s && num_parse_range(s, 0, INT32_MAX, &n, NULL) == 0 ? n : fallback;
}

static void set_free(struct deployment_set *s)
{
    jsontree_free(s->t);
    object_unref(s->o);
    free(s);
}

void deployment_sets_deinit(struct deployment *d)
{
    for (size_t i = 0; i < d->sets.len; i++)
        set_free(d->sets.items[i]);
    vec_deinit(&d->sets);
}

static struct deployment_set *set_read(struct object *o, int64_t created_ns, struct error *err)
{
    struct jsontree *t = NULL;
    if (jsontree_parse(&t, o->text, o->text_len, err) < 0)
        return NULL;
    struct deployment_set *s = mem_new(struct deployment_set, 1);
    s->o = object_ref(o);
    s->t = t;
    s->root = jsontree_root(t);
    const struct jsonnode *status = jsonnode_get(s->root, "status");
    s->replicas = controllers_int(jsonnode_path(s->root, "spec", "replicas", NULL), 1);
    s->has = controllers_int(jsonnode_get(status, "replicas"), 0);
    s->ready = controllers_int(jsonnode_get(status, "readyReplicas"), 0);
    s->available = controllers_int(jsonnode_get(status, "availableReplicas"), 0);
    s->terminating = controllers_int(jsonnode_get(status, "terminatingReplicas"), 0);
    s->revision = noted(s->root, DEPLOYMENT_REVISION, 0);
    s->desired = noted(s->root, DESIRED, -1);
    s->max_size = noted(s->root, MAX_REPLICAS, -1);
    s->created_ns = created_ns;
    return s;
}

static int by_age(const void *a, const void *b)
{
    const struct deployment_set *const *pa = a, *const *pb = b;
    const struct deployment_set *x = *pa, *y = *pb;
    if (x->created_ns != y->created_ns)
        return x->created_ns < y->created_ns ? -1 : 1;
    return strcmp(x->o->name, y->o->name);
}

/* Is it the set of that template? */
static bool same_template(const struct deployment_set *s, const struct jsonnode *template)
{
    AUTO_JSONTREE *t = jsontree_new();
    struct jsonnode *its = jsonnode_clone(t, jsonnode_path(s->root, "spec", "template", NULL));
    struct jsonnode *labels = jsonnode_path(its, "metadata", "labels", NULL);
    jsonnode_remove(labels, HASH);
    if (labels && jsonnode_len(labels) == 0 && !jsonnode_path(template, "metadata", "labels", NULL))
        jsonnode_remove(jsonnode_get(its, "metadata"), "labels");
    return jsonnode_equal(its, template);
}

int deployment_sets_read(struct deployment *d, struct error *err)
{
    struct controllers_pods list = {0};
    int rc = 0;
    controllers_pods_of(d->c, d->o->uid, &kind_replicasets, &list);
    for (size_t i = 0; i < list.len && rc == 0; i++) {
        const struct controllers_child *ch = list.items[i];
        struct object *o = store_get(d->c->store, ch->kind, ch->ns, ch->name);
        if (!o || ch->deleting)
            continue;
        struct deployment_set *s = set_read(o, ch->created_ns, err);
        if (!s)
            rc = -1;
        else
            vec_push(&d->sets, s);
    }
    vec_deinit(&list);
    if (d->sets.len > 1)
        qsort(d->sets.items, d->sets.len, sizeof *d->sets.items, by_age);
    const struct jsonnode *template = jsonnode_get(d->spec, "template");
    for (size_t i = 0; i < d->sets.len && !d->current; i++)
        if (same_template(d->sets.items[i], template))
            d->current = d->sets.items[i];
    return rc;
}

int64_t deployment_sets_old(const struct deployment *d)
{
    int64_t n = 0;
    for (size_t i = 0; i < d->sets.len; i++)
        if (d->sets.items[i] != d->current)
            n += d->sets.items[i]->replicas;
    return n;
}

static int64_t highest_revision(const struct deployment *d, const struct deployment_set *but)
{
    int64_t highest = 0;
    for (size_t i = 0; i < d->sets.len; i++)
        if (d->sets.items[i] != but)
            highest = num_max(highest, d->sets.items[i]->revision);
    return highest;
}

/* ---- changing one ---- */

struct edit {
    const struct deployment *d;
    int64_t replicas; /* -1: as it is */
    int64_t revision; /* of the current set; 0: it is another */
};

static void note(struct jsontree *t, struct jsonnode *notes, const char *key, int64_t n,
                 bool *changed)
{
    char text[24];
    str_format(text, sizeof text, "%lld", (long long)n);
    if (str_eq(jsonnode_get_str(notes, key), text))
        return;
    jsonnode_set_str(t, notes, key, text);
    *changed = true;
}

/* What the current set takes over from the Deployment, whenever that changes. */
static void follow(const struct deployment *d, struct jsontree *t, struct jsonnode *spec,
                   struct jsonnode *notes, bool *changed)
{
    struct jsonnode *from = jsonnode_path(d->root, "metadata", "annotations", NULL);
    for (struct jsonnode_iter it = jsonnode_iter(from); jsonnode_next(&it);) {
        const char *text = jsonnode_str(it.value);
        if (!text || str_eq(it.key, "kubectl.kubernetes.io/last-applied-configuration") ||
            str_starts(it.key, "deployment.kubernetes.io/") ||
            str_eq(jsonnode_get_str(notes, it.key), text))
            continue;
        jsonnode_set_str(t, notes, it.key, text);
        *changed = true;
    }
    int64_t min_ready_s = controllers_int(jsonnode_get(d->spec, "minReadySeconds"), 0);
    if (controllers_int(jsonnode_get(spec, "minReadySeconds"), 0) != min_ready_s) {
        jsonnode_set_int(t, spec, "minReadySeconds", min_ready_s);
        *changed = true;
    }
}

static bool edit_set(void *arg, struct jsontree *t, struct jsonnode *object)
{
    const struct edit *e = arg;
    bool changed = false;
    struct jsonnode *spec = jsonnode_need_object(t, object, "spec");
    struct jsonnode *notes = jsonnode_need_path(t, object, "metadata", "annotations", NULL);
    if (e->replicas >= 0) {
        if (controllers_int(jsonnode_get(spec, "replicas"), -1) != e->replicas) {
            jsonnode_set_int(t, spec, "replicas", e->replicas);
            changed = true;
        }
        note(t, notes, DESIRED, e->d->replicas, &changed);
        note(t, notes, MAX_REPLICAS, e->d->replicas + e->d->max_surge, &changed);
    }
    if (e->revision > 0) {
        note(t, notes, DEPLOYMENT_REVISION, e->revision, &changed);
        follow(e->d, t, spec, notes, &changed);
    }
    return changed;
}

static bool edit_revision(void *arg, struct jsontree *t, struct jsonnode *object)
{
    const int64_t *revision = arg;
    bool changed = false;
    note(t, jsonnode_need_path(t, object, "metadata", "annotations", NULL), DEPLOYMENT_REVISION,
         *revision, &changed);
    return changed;
}

int deployment_set_scale(struct deployment *d, struct deployment_set *s, int64_t replicas,
                         struct error *err)
{
    struct edit e = {.d = d, .replicas = replicas};
    if (api_modify(d->c->api, &kind_replicasets, s->o->ns, s->o->name, NULL, edit_set, &e, err) < 0)
        return -1;
    if (replicas != s->replicas)
        controllers_event(d->c, d->o, DEPLOYMENT_COMPONENT, false, "ScalingReplicaSet",
                          "Scaled %s replica set %s from %lld to %lld",
                          replicas > s->replicas ? "up" : "down", s->o->name,
                          (long long)s->replicas, (long long)replicas);
    s->replicas = replicas;
    s->desired = d->replicas;
    s->max_size = d->replicas + d->max_surge;
    return 0;
}

int deployment_set_revise(struct deployment *d, struct error *err)
{
    int64_t revision = num_max(d->current->revision, highest_revision(d, d->current) + 1);
    struct edit e = {.d = d, .replicas = -1, .revision = revision};
    if (api_modify(d->c->api, &kind_replicasets, d->o->ns, d->current->o->name, NULL, edit_set, &e,
                   err) < 0)
        return -1;
    d->current->revision = revision;
    return api_modify(d->c->api, &kind_deployments, d->o->ns, d->o->name, NULL, edit_revision,
                      &revision, err);
}

/* ---- making one ---- */

static void hash_template(const struct deployment *d, int64_t collisions, char out[16])
{
    static const char messages[] = "bcdfghjklmnpqrstvwxz2456789";
    struct strbuf text = {0};
    jsonnode_print(jsonnode_get(d->spec, "template"), &text);
    strbuf_addf(&text, "%lld", (long long)collisions);
    uint64_t h = str_hash(strbuf_str(&text), text.len);
    strbuf_deinit(&text);
    size_t n = 0;
    for (; n < 10; n++, h /= 27)
        out[n] = messages[h % 27];
    out[n] = '\0';
}

static struct jsontree *make_set(const struct deployment *d, const char *name, const char *hash,
                                 int64_t replicas)
{
    struct jsontree *t = jsontree_new();
    struct jsonnode *set = jsonnode_object(t);
    jsontree_set_root(t, set);
    jsonnode_set_str(t, set, "apiVersion", "apps/v1");
    jsonnode_set_str(t, set, "kind", "ReplicaSet");
    struct jsonnode *meta = jsonnode_need_object(t, set, "metadata");
    jsonnode_set_str(t, meta, "name", name);
    jsonnode_set_str(t, meta, "namespace", d->o->ns);
    const struct jsonnode *labels = jsonnode_path(d->spec, "template", "metadata", "labels", NULL);
    if (labels)
        jsonnode_set(t, meta, "labels", jsonnode_clone(t, labels));
    jsonnode_set_str(t, jsonnode_need_object(t, meta, "labels"), HASH, hash);
    jsonnode_set(t, meta, "ownerReferences", controllers_owned_by(t, d->o));
    struct jsonnode *spec = jsonnode_need_object(t, set, "spec");
    jsonnode_set_int(t, spec, "replicas", replicas);
    const struct jsonnode *selector = jsonnode_get(d->spec, "selector");
    jsonnode_set(t, spec, "selector", selector ? jsonnode_clone(t, selector) : jsonnode_object(t));
    jsonnode_set_str(t, jsonnode_need_path(t, spec, "selector", "matchLabels", NULL), HASH, hash);
    jsonnode_set(t, spec, "template", jsonnode_clone(t, jsonnode_get(d->spec, "template")));
    jsonnode_set_str(t, jsonnode_need_path(t, spec, "template", "metadata", "labels", NULL), HASH,
                     hash);
    int64_t revision = highest_revision(d, NULL) + 1;
    struct edit e = {.d = d, .replicas = replicas, .revision = revision};
    edit_set(&e, t, set);
    return t;
}

int deployment_set_create(struct deployment *d, int64_t replicas, struct error *err)
{
    /* A name that is taken by something else's set: another hash. */
    for (int64_t collisions = 0;; collisions++) {
        char hash[16], name[280];
        hash_template(d, collisions, hash);
        str_format(name, sizeof name, "%s-%s", d->o->name, hash);
        AUTO_JSONTREE *t = make_set(d, name, hash, replicas);
        struct object *o = NULL;
        struct error e = ERROR_INIT;
        if (api_create(d->c->api, &kind_replicasets, d->o->ns, t, &o, &e) < 0) {
            if (e.code == ERROR_CONFLICT && collisions < 8)
                continue;
            *err = e;
            return -1;
        }
        struct deployment_set *s = set_read(o, INT64_MAX, err);
        if (!s)
            return -1;
        vec_push(&d->sets, s);
        d->current = s;
        d->made = true;
        if (replicas > 0)
            controllers_event(d->c, d->o, DEPLOYMENT_COMPONENT, false, "ScalingReplicaSet",
                              "Scaled up replica set %s from 0 to %lld", name, (long long)replicas);
        return deployment_set_revise(d, err);
    }
}

/* ---- forgetting ---- */

static int by_revision(const void *a, const void *b)
{
    const struct deployment_set *const *pa = a, *const *pb = b;
    return (*pa)->revision < (*pb)->revision ? -1 : (*pa)->revision > (*pb)->revision;
}

/* Of those beyond the limit, oldest first, the ones without pods. */
int deployment_sets_forget(struct deployment *d, struct error *err)
{
    int64_t limit = controllers_int(jsonnode_get(d->spec, "revisionHistoryLimit"), 10);
    struct VEC(struct deployment_set *) old = {0};
    int rc = 0;
    for (size_t i = 0; i < d->sets.len; i++)
        if (d->sets.items[i] != d->current)
            vec_push(&old, d->sets.items[i]);
    if (old.len > 1)
        qsort(old.items, old.len, sizeof *old.items, by_revision);
    for (size_t i = 0; rc == 0 && i < old.len && (int64_t)(old.len - i) > limit; i++) {
        struct error e = ERROR_INIT;
        const struct object *o = old.items[i]->o;
        if (old.items[i]->replicas > 0 || old.items[i]->has > 0)
            continue;
        if (api_delete(d->c->api, &kind_replicasets, o->ns, o->name, o->uid, -1, API_BACKGROUND,
                       &e) < 0 &&
            e.code != ERROR_NOT_FOUND) {
            *err = e;
            rc = -1;
        }
    }
    vec_deinit(&old);
    return rc;
}
