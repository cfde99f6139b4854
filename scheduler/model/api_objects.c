// SPDX-License-Identifier: Apache-2.0
/*
 * One row per kind: the event of a new or changed object, the event of a removed one, and what
 * counts as a change.
 *
 * The API server also sends versions that do not matter here: a controller's annotation,
 * managedFields, a status that we do not read. A version that is equal in the fields that we read
 * replaces the last one without an event, a new generation, a recount or a wake-up.
 */
#include "scheduler/model/api_objects.h"

#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/model/model.h"

static bool words_equal(const char *const *a, size_t a_len, const char *const *b, size_t b_len)
{
    if (a_len != b_len)
        return false;
    for (size_t i = 0; i < a_len; i++)
        if (!str_eq(a[i], b[i]))
            return false;
    return true;
}

static bool selectors_equal(const struct selector *a, const struct selector *b)
{
    if (a->nothing != b->nothing || a->len != b->len)
        return false;
    for (size_t i = 0; i < a->len; i++) {
        const struct requirement *x = &a->reqs[i], *y = &b->reqs[i];
        if (x->op != y->op || x->number != y->number || !str_eq(x->key, y->key) ||
            !words_equal(x->values, x->values_len, y->values, y->values_len))
            return false;
    }
    return true;
}

static bool node_selectors_equal(const struct node_selector *a, const struct node_selector *b)
{
    if (a->len != b->len)
        return false;
    for (size_t i = 0; i < a->len; i++)
        if (!selectors_equal(&a->terms[i].labels, &b->terms[i].labels) ||
            !selectors_equal(&a->terms[i].fields, &b->terms[i].fields))
            return false;
    return true;
}

static bool same_namespace(const void *a, const void *b)
{
    return cluster_labels_equal(&((const struct object *)a)->labels,
                                &((const struct object *)b)->labels);
}

static bool same_claim(const void *a, const void *b)
{
    const struct pvc *x = a, *y = b;
    return x->phase == y->phase && str_eq(x->volume, y->volume) &&
           str_eq(x->storage_class, y->storage_class) &&
           str_eq(x->attributes_class, y->attributes_class) && x->access_modes == y->access_modes &&
           x->request_bytes == y->request_bytes && x->block == y->block &&
           x->has_selector == y->has_selector && selectors_equal(&x->selector, &y->selector) &&
           x->bind_completed == y->bind_completed && str_eq(x->selected_node, y->selected_node) &&
           str_eq(x->object.owner_uid, y->object.owner_uid);
}

static bool same_volume(const void *a, const void *b)
{
    const struct pv *x = a, *y = b;
    return x->phase == y->phase && str_eq(x->storage_class, y->storage_class) &&
           str_eq(x->attributes_class, y->attributes_class) && x->access_modes == y->access_modes &&
           x->capacity_bytes == y->capacity_bytes && x->block == y->block &&
           str_eq(x->claim_ns, y->claim_ns) && str_eq(x->claim_name, y->claim_name) &&
           str_eq(x->claim_uid, y->claim_uid) && x->has_node_affinity == y->has_node_affinity &&
           node_selectors_equal(&x->node_affinity, &y->node_affinity) &&
           str_eq(x->driver, y->driver) && str_eq(x->handle, y->handle) &&
           cluster_labels_equal(&x->object.labels, &y->object.labels);
}

static bool same_storage_class(const void *a, const void *b)
{
    const struct storage_class *x = a, *y = b;
    return str_eq(x->provisioner, y->provisioner) && x->wait_for_consumer == y->wait_for_consumer &&
           x->has_topologies == y->has_topologies &&
           node_selectors_equal(&x->topologies, &y->topologies);
}

static bool same_csi_node(const void *a, const void *b)
{
    const struct csi_node *x = a, *y = b;
    if (x->drivers_len != y->drivers_len)
        return false;
    for (size_t i = 0; i < x->drivers_len; i++) {
        const struct csi_driver_on_node *d = &x->drivers[i], *e = &y->drivers[i];
        if (d->limit != e->limit || !str_eq(d->name, e->name) ||
            !words_equal(d->topology_keys, d->topology_keys_len, e->topology_keys,
                         e->topology_keys_len))
            return false;
    }
    return true;
}

static bool same_csi_driver(const void *a, const void *b)
{
    const struct csi_driver *x = a, *y = b;
    return x->storage_capacity == y->storage_capacity && x->needed_on_node == y->needed_on_node;
}

static bool same_capacity(const void *a, const void *b)
{
    const struct csi_capacity *x = a, *y = b;
    return str_eq(x->storage_class, y->storage_class) && selectors_equal(&x->nodes, &y->nodes) &&
           x->capacity_bytes == y->capacity_bytes && x->maximum_bytes == y->maximum_bytes;
}

static bool same_attachment(const void *a, const void *b)
{
    const struct volume_attachment *x = a, *y = b;
    return str_eq(x->attacher, y->attacher) && str_eq(x->node, y->node) &&
           str_eq(x->volume, y->volume);
}

static bool same_budget(const void *a, const void *b)
{
    const struct pdb *x = a, *y = b;
    return x->disruptions_allowed == y->disruptions_allowed &&
           selectors_equal(&x->selector, &y->selector) &&
           words_equal(x->disrupted, x->disrupted_len, y->disrupted, y->disrupted_len);
}

static bool same_device_class(const void *a, const void *b)
{
    return str_eq(((const struct device_class *)a)->extended_resource,
                  ((const struct device_class *)b)->extended_resource);
}

static bool same_policy(const void *a, const void *b)
{
    return policy_equal(a, b);
}

static const struct {
    bool (*same)(const void *a, const void *b);
    uint32_t put;
    uint32_t removed;
} rows[API_OBJECTS_KINDS] = {
    [API_OBJECTS_NAMESPACES] = {same_namespace, EVENT_NAMESPACE, EVENT_NAMESPACE},
    [API_OBJECTS_CLAIMS] = {same_claim, EVENT_VOLUME, EVENT_VOLUME},
    [API_OBJECTS_VOLUMES] = {same_volume, EVENT_VOLUME, EVENT_VOLUME},
    [API_OBJECTS_STORAGE_CLASSES] = {same_storage_class, EVENT_VOLUME, EVENT_VOLUME},
    /* Without its CSINode a node has no limits. */
    [API_OBJECTS_CSI_NODES] = {same_csi_node, EVENT_VOLUME, EVENT_VOLUME},
    [API_OBJECTS_CSI_DRIVERS] = {same_csi_driver, EVENT_VOLUME, EVENT_VOLUME},
    [API_OBJECTS_CSI_CAPACITIES] = {same_capacity, EVENT_VOLUME, 0},
    /* A removed attachment may let a pod fit; a new one never does. */
    [API_OBJECTS_VOLUME_ATTACHMENTS] = {same_attachment, 0, EVENT_VOLUME},
    [API_OBJECTS_BUDGETS] = {same_budget, EVENT_BUDGET, EVENT_BUDGET},
    [API_OBJECTS_DEVICE_CLASSES] = {same_device_class, 0, 0},
    [API_OBJECTS_POLICIES] = {same_policy, EVENT_POLICY, EVENT_POLICY},
};

void api_objects_init(struct api_objects *o)
{
    *o = (struct api_objects){0};
    for (int k = 0; k < API_OBJECTS_KINDS; k++)
        map_init(&o->by_key[k]);
}

void api_objects_deinit(struct api_objects *o)
{
    for (int k = 0; k < API_OBJECTS_KINDS; k++) {
        const char *key;
        void *value;
        for (size_t i = 0; map_next(&o->by_key[k], &i, &key, &value);) {
            (void)map_remove(&o->by_key[k], key);
            object_free(value);
        }
        map_deinit(&o->by_key[k]);
    }
}

uint32_t api_objects_put(struct api_objects *o, enum api_objects_kind kind, struct object *object)
{
    struct object *old = map_put(&o->by_key[kind], object->key, object);
    bool same = old && str_eq(old->uid, object->uid) && old->terminating == object->terminating &&
                rows[kind].same(old, object);
    object_free(old);
    o->changes[kind]++;
    if (same)
        return 0;
    o->generation[kind]++;
    return rows[kind].put;
}

uint32_t api_objects_remove(struct api_objects *o, enum api_objects_kind kind, const char *key,
                            const char *uid)
{
    struct object *old = map_get(&o->by_key[kind], key);
    if (!old || (uid && uid[0] && !str_eq(old->uid, uid)))
        return 0;
    (void)map_remove(&o->by_key[kind], old->key);
    object_free(old);
    o->changes[kind]++;
    o->generation[kind]++;
    return rows[kind].removed;
}

const struct object *api_objects_find(const struct api_objects *o, enum api_objects_kind kind,
                                      const char *key)
{
    return key ? map_get(&o->by_key[kind], key) : NULL;
}

const struct labels *api_objects_namespace_labels(const struct api_objects *o, const char *ns)
{
    const struct object *found = api_objects_find(o, API_OBJECTS_NAMESPACES, ns);
    return found ? &found->labels : NULL;
}

const struct pvc *api_objects_find_pvc(const struct api_objects *o, const char *ns,
                                       const char *name)
{
    char key[2 * 253 + 2]; /* a name that does not fit cannot be that of an object */
    if (!ns || !name || !str_format(key, sizeof key, "%s/%s", ns, name))
        return NULL;
    return (const void *)api_objects_find(o, API_OBJECTS_CLAIMS, key);
}

const struct pvc *api_objects_find_claim(const struct api_objects *o, const struct pod *p,
                                         const struct pod_volume *v)
{
    return v->claim ? api_objects_find_pvc(o, p->ns, v->claim) : NULL;
}

const struct pv *api_objects_find_pv(const struct api_objects *o, const char *name)
{
    return (const void *)api_objects_find(o, API_OBJECTS_VOLUMES, name);
}

const struct storage_class *api_objects_find_storage_class(const struct api_objects *o,
                                                           const char *name)
{
    return (const void *)api_objects_find(o, API_OBJECTS_STORAGE_CLASSES, name);
}

const struct csi_node *api_objects_find_csi_node(const struct api_objects *o, const char *node)
{
    return (const void *)api_objects_find(o, API_OBJECTS_CSI_NODES, node);
}

const struct csi_driver *api_objects_find_csi_driver(const struct api_objects *o,
                                                     const char *driver)
{
    return (const void *)api_objects_find(o, API_OBJECTS_CSI_DRIVERS, driver);
}

/* Matches the name that the class declares, and the implicit name that every class has. */
static bool offers(const struct device_class *c, const char *resource)
{
    static const char every[] = NAME_RES_DEVICE_CLASS;
    if (c->extended_resource && str_eq(c->extended_resource, resource))
        return true;
    return str_starts(resource, every) && str_eq(resource + sizeof every - 1, c->object.name);
}

const struct device_class *api_objects_find_offer(const struct api_objects *o, const char *resource)
{
    const struct device_class *best = NULL;
    const char *key;
    void *value;
    for (size_t i = 0; map_next(&o->by_key[API_OBJECTS_DEVICE_CLASSES], &i, &key, &value);) {
        const struct device_class *c = value;
        if (offers(c, resource) && (!best || strcmp(c->object.name, best->object.name) < 0))
            best = c;
    }
    return best;
}
