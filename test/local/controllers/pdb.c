// SPDX-License-Identifier: Apache-2.0
/*
 * pdb - the status of PodDisruptionBudgets, which decides about evictions. A pod's change marks
 * only the budgets of its namespace whose selector matches it.
 *
 * expectedPods is the number of pods that match, or, for percentages and maxUnavailable, the sum of
 * what their ReplicaSets want; a pod without a ReplicaSet counts as one (the real controller
 * refuses such budgets unless minAvailable is a number).
 */
#include "test/local/controllers/controllers_internal.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/model/selector.h"

struct pdb_budget {
    char *ns, *name, *key;
    struct arena arena;
    struct selector selector;
};

static void budget_free(struct pdb_budget *b)
{
    arena_deinit(&b->arena);
    free(b->ns);
    free(b->name);
    free(b->key);
    free(b);
}

void pdb_deinit(struct controllers *c)
{
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&c->budgets, &i, &key, &value);)
        budget_free(value);
    map_deinit(&c->budgets);
}

static void remember(struct controllers *c, const struct object *o, bool deleted)
{
    struct pdb_budget *old = map_remove(&c->budgets, o->key);
    if (old)
        budget_free(old);
    AUTO_JSON *doc = NULL;
    if (deleted || json_parse(&doc, o->text, o->text_len, NULL) < 0)
        return;
    struct pdb_budget *b = mem_new(struct pdb_budget, 1);
    arena_init(&b->arena, 0);
    b->ns = mem_strdup(o->ns);
    b->name = mem_strdup(o->name);
    b->key = mem_strdup(o->key);
    json *selector = json_get(json_get(json_root(doc), "spec"), "selector");
    if (selector_decode(selector, &b->arena, &b->selector, NULL) < 0)
        b->selector = (struct selector){.nothing = true};
    map_put(&c->budgets, b->key, b);
    controllers_add(c, pdb_sync, &kind_pdbs, o->ns, o->name, 0);
}

void pdb_changed(struct controllers *c, const struct store_event *e)
{
    const struct object *o = e->object;
    if (o->kind == &kind_pdbs)
        remember(c, o, e->change == STORE_DELETED);
    if (map_count(&c->budgets) == 0)
        return;
    bool pod = o->kind == &kind_pods;
    if (!pod && o->kind != &kind_replicasets)
        return;
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&c->budgets, &i, &key, &value);) {
        const struct pdb_budget *b = value;
        if (str_eq(b->ns, o->ns) &&
            (selector_matches(&b->selector, &o->labels) ||
             (e->before && selector_matches(&b->selector, &e->before->labels))))
            controllers_add(c, pdb_sync, &kind_pdbs, b->ns, b->name, 0);
    }
}

/* ---- counting ---- */

struct tally {
    struct controllers *c;
    const struct selector *selector;
    int64_t pods, healthy, lone;
    struct map owners; /* uid to itself */
    int64_t wanted;    /* by the owners */
};

static bool is_ready(json *root)
{
    for (struct json_iter it = json_iter(json_get(json_get(root, "status"), "conditions"));
         json_next(&it);)
        if (str_eq(json_get_str(it.value, "type"), "Ready"))
            return str_eq(json_get_str(it.value, "status"), "True");
    return false;
}

static void add_owner(struct tally *t, const struct object *pod)
{
    const struct controllers_child *child = map_get(&t->c->index.children, pod->uid);
    for (size_t i = 0; child && i < child->edges_len; i++) {
        const struct controllers_edge *e = &child->edges[i];
        if (!e->controller || e->kind != &kind_replicasets)
            continue;
        if (map_get(&t->owners, e->owner->uid))
            return;
        const struct object *o = store_get(t->c->store, e->kind, pod->ns, e->name);
        AUTO_JSON *doc = NULL;
        int64_t n = 1;
        if (o && json_parse(&doc, o->text, o->text_len, NULL) == 0)
            json_get_int(json_get(json_root(doc), "spec"), "replicas", &n);
        t->wanted += n;
        map_put(&t->owners, e->owner->uid, e->owner);
        return;
    }
    t->lone++;
}

static bool tally_pod(void *arg, struct object *o)
{
    struct tally *t = arg;
    if (!selector_matches(t->selector, &o->labels))
        return true;
    const char *phase = labels_get(&o->fields, "status.phase");
    AUTO_JSON *doc = NULL;
    if (str_eq(phase, "Succeeded") || str_eq(phase, "Failed") ||
        json_parse(&doc, o->text, o->text_len, NULL) < 0)
        return true;
    json *root = json_root(doc);
    t->pods++;
    if (!json_get_str(json_get(root, "metadata"), "deletionTimestamp") && is_ready(root))
        t->healthy++;
    add_owner(t, o);
    return true;
}

static void judge(const struct jsonnode *spec, const struct tally *t, int64_t *expected,
                  int64_t *desired)
{
    const struct jsonnode *min = jsonnode_get(spec, "minAvailable"),
                          *max = jsonnode_get(spec, "maxUnavailable");
    *expected = t->wanted + t->lone;
    if (max)
        *desired = num_max(0, *expected - controllers_scaled(max, *expected, true, 0));
    else if (jsonnode_str(min))
        *desired = controllers_scaled(min, *expected, true, 0);
    else {
        *expected = t->pods;
        *desired = controllers_int(min, 1);
    }
}

int pdb_sync(struct controllers *c, const struct controllers_work *w, int64_t *again_ms,
             struct error *err)
{
    (void)again_ms;
    char key[600];
    str_format(key, sizeof key, "%s/%s", w->ns, w->name);
    const struct pdb_budget *b = map_get(&c->budgets, key);
    struct object *o = store_get(c->store, &kind_pdbs, w->ns, w->name);
    AUTO_JSONTREE *t = NULL;
    if (!b || !o)
        return 0;
    if (jsontree_parse(&t, o->text, o->text_len, err) < 0)
        return -1;
    object_ref(o);
    struct tally n = {.c = c, .selector = &b->selector};
    map_init(&n.owners);
    store_each(c->store, &kind_pods, w->ns, NULL, tally_pod, &n);
    map_deinit(&n.owners);
    struct jsonnode *root = jsontree_root(t), *status = jsonnode_need_object(t, root, "status");
    int64_t expected, desired;
    judge(jsonnode_get(root, "spec"), &n, &expected, &desired);
    int64_t allowed = expected <= 0 ? 0 : num_max(0, n.healthy - desired);
    int64_t generation = controllers_int(jsonnode_path(root, "metadata", "generation", NULL), 0);
    jsonnode_set_int(t, status, "observedGeneration", generation);
    jsonnode_set_int(t, status, "disruptionsAllowed", allowed);
    jsonnode_set_int(t, status, "currentHealthy", n.healthy);
    jsonnode_set_int(t, status, "desiredHealthy", desired);
    jsonnode_set_int(t, status, "expectedPods", expected);
    jsonnode_remove(status, "disruptedPods"); /* those are terminating by now */
    struct jsonnode *list = jsonnode_get(status, "conditions");
    if (!jsonnode_is_array(list)) {
        list = jsonnode_array(t);
        jsonnode_set(t, status, "conditions", list);
    }
    controllers_set_condition(t, list, "DisruptionAllowed", allowed > 0,
                              allowed > 0 ? "SufficientPods" : "InsufficientPods", "", NULL);
    struct jsonnode *condition = jsonnode_at(list, 0);
    if (str_eq(jsonnode_get_str(condition, "type"), "DisruptionAllowed"))
        jsonnode_set_int(t, condition, "observedGeneration", generation);
    if (n.pods == 0)
        controllers_event(c, o, "controllermanager", false, "NoPods", "No matching pods found");
    int rc = controllers_set_status(c, o, status, err);
    object_unref(o);
    return rc;
}
