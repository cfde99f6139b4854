// SPDX-License-Identifier: Apache-2.0
/* Claims, volumes, their classes, and the CSI objects of nodes and drivers. An in-tree volume
 * (awsElasticBlockStore...) is read as a volume of the CSI driver that serves it today. */
#include "lib/base/str.h"
#include "lib/kube/decode.h"
#include "lib/kube/decode_field.h"
#include "lib/kube/decode_object.h"
#include "lib/kube/decode_volume.h"

/* Unknown modes are ignored: no claim that we could match requests them. */
static int decode_access_modes(json *j, unsigned *out, struct error *err)
{
    static const char *const names[] = {"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany",
                                        "ReadWriteOncePod"};
    size_t len;
    if (decode_field_array(j, "spec.accessModes", DECODE_LIST_MAX, &len, err) < 0)
        return -1;
    for (struct json_iter it = json_iter(j); json_next(&it);)
        for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
            if (str_eq(json_str(it.value), names[i]))
                *out |= 1U << i;
    return 0;
}

/* One amount of a resource list: {"storage": "1Gi"}. */
static int decode_storage(json *list, const char *name, enum quantity_round round, int64_t *out,
                          struct error *err)
{
    bool have;
    if (decode_field_object(list, name, &have, err) < 0)
        return -1;
    if (decode_field_quantity(json_get(list, "storage"), "storage", round, out, err) < 0)
        return error_wrap(err, "%s", name);
    return 0;
}

/* The index of the word in `names`, or `otherwise`. */
static unsigned word_of(json *v, const char *const *names, unsigned len, unsigned otherwise)
{
    for (unsigned i = 0; i < len; i++)
        if (str_eq(json_str(v), names[i]))
            return i;
    return otherwise;
}

static const char *not_empty(const char *s)
{
    return s && s[0] ? s : NULL;
}

static int fill_pvc(json *j, struct object *o, struct arena *a, struct error *err)
{
    static const char *const phases[] = {"Pending", "Bound", "Lost"};
    struct pvc *c = (struct pvc *)o;
    json *spec = json_get(j, "spec"), *status = json_get(j, "status");
    json *resources = json_get(spec, "resources"), *selector = json_get(spec, "selector");
    bool have;
    if (decode_field_object(spec, "spec", &have, err) < 0 ||
        decode_field_object(status, "status", &have, err) < 0 ||
        decode_field_object(resources, "spec.resources", &have, err) < 0 ||
        decode_field_str(json_get(spec, "volumeName"), "spec.volumeName", a, &c->volume, err) < 0 ||
        decode_field_str(json_get(spec, "storageClassName"), "spec.storageClassName", a,
                         &c->storage_class, err) < 0 ||
        decode_field_str(json_get(spec, "volumeAttributesClassName"),
                         "spec.volumeAttributesClassName", a, &c->attributes_class, err) < 0 ||
        decode_access_modes(json_get(spec, "accessModes"), &c->access_modes, err) < 0 ||
        decode_storage(json_get(resources, "requests"), "spec.resources.requests", QUANTITY_UP,
                       &c->request_bytes, err) < 0)
        return -1;
    if (selector_decode(selector, a, &c->selector, err) < 0)
        return error_wrap(err, "spec.selector");
    c->has_selector = !c->selector.nothing;
    c->volume = not_empty(c->volume);
    c->attributes_class = not_empty(c->attributes_class);
    const char *old = labels_get(&o->annotations, "volume.beta.kubernetes.io/storage-class");
    if (old) /* the old annotation takes precedence over the field */
        c->storage_class = old;
    c->block = str_eq(json_get_str(spec, "volumeMode"), "Block");
    c->phase = (enum pvc_phase)word_of(json_get(status, "phase"), phases, 3, PVC_PENDING);
    c->bind_completed = labels_get(&o->annotations, "pv.kubernetes.io/bind-completed") != NULL;
    c->selected_node = not_empty(labels_get(&o->annotations, "volume.kubernetes.io/selected-node"));
    return 0;
}

DECODE_KIND(decode_pvc, struct pvc, "persistentvolumeclaim", true, fill_pvc)

static int decode_claim_ref(json *j, struct pv *v, struct arena *a, struct error *err)
{
    bool have;
    if (decode_field_object(j, "spec.claimRef", &have, err) < 0)
        return -1;
    if (!have)
        return 0;
    v->claim_ns = v->claim_name = v->claim_uid = "";
    if (decode_field_str(json_get(j, "namespace"), "spec.claimRef.namespace", a, &v->claim_ns,
                         err) < 0 ||
        decode_field_str(json_get(j, "name"), "spec.claimRef.name", a, &v->claim_name, err) < 0)
        return -1;
    return decode_field_str(json_get(j, "uid"), "spec.claimRef.uid", a, &v->claim_uid, err);
}

static int decode_node_affinity(json *j, struct pv *v, struct arena *a, struct error *err)
{
    bool have;
    json *required = json_get(j, "required");
    if (decode_field_object(j, "spec.nodeAffinity", &have, err) < 0)
        return -1;
    if (!required || json_is_null(required))
        return 0;
    if (node_selector_decode(required, a, &v->node_affinity, err) < 0)
        return error_wrap(err, "spec.nodeAffinity.required");
    v->has_node_affinity = true;
    return 0;
}

static int decode_pv_source(json *spec, struct pv *v, struct arena *a, struct error *err)
{
    for (struct json_iter it = json_iter(spec); json_next(&it);) {
        const struct volume_migration *m = volume_migration_of(it.key, it.key_len);
        int rc = 0;
        if (json_is_null(it.value))
            continue;
        if (FIELD(it, "csi")) {
            if (decode_field_str(json_get(it.value, "driver"), "spec.csi.driver", a, &v->driver,
                                 err) < 0)
                return -1;
            rc = decode_field_str(json_get(it.value, "volumeHandle"), "spec.csi.volumeHandle", a,
                                  &v->handle, err);
        } else if (m) {
            v->driver = m->driver;
            v->in_tree = true;
            if (decode_volume_handle(it.value, m, a, &v->handle, err) < 0)
                return error_wrap(err, "spec");
        }
        if (rc < 0)
            return -1;
    }
    return 0;
}

static int fill_pv(json *j, struct object *o, struct arena *a, struct error *err)
{
    static const char *const phases[] = {"Pending", "Available", "Bound", "Released", "Failed"};
    struct pv *v = (struct pv *)o;
    json *spec = json_get(j, "spec"), *status = json_get(j, "status");
    bool have;
    v->storage_class = "";
    if (decode_field_object(spec, "spec", &have, err) < 0 ||
        decode_field_object(status, "status", &have, err) < 0 ||
        decode_field_str(json_get(spec, "storageClassName"), "spec.storageClassName", a,
                         &v->storage_class, err) < 0 ||
        decode_field_str(json_get(spec, "volumeAttributesClassName"),
                         "spec.volumeAttributesClassName", a, &v->attributes_class, err) < 0 ||
        decode_access_modes(json_get(spec, "accessModes"), &v->access_modes, err) < 0 ||
        decode_storage(json_get(spec, "capacity"), "spec.capacity", QUANTITY_DOWN,
                       &v->capacity_bytes, err) < 0 ||
        decode_claim_ref(json_get(spec, "claimRef"), v, a, err) < 0 ||
        decode_node_affinity(json_get(spec, "nodeAffinity"), v, a, err) < 0 ||
        decode_pv_source(spec, v, a, err) < 0)
        return -1;
    v->attributes_class = not_empty(v->attributes_class);
    const char *old = labels_get(&o->annotations, "volume.beta.kubernetes.io/storage-class");
    if (old)
        v->storage_class = old;
    v->block = str_eq(json_get_str(spec, "volumeMode"), "Block");
    v->phase = (enum pv_phase)word_of(json_get(status, "phase"), phases, 5, PV_PENDING);
    return 0;
}

DECODE_KIND(decode_pv, struct pv, "persistentvolume", false, fill_pv)

/* matchLabelExpressions: {key, values}, which means `key In values`. */
static int decode_topology(json *j, struct arena *a, struct node_term *t, struct error *err)
{
    json *expressions = json_get(j, "matchLabelExpressions");
    size_t len, i = 0;
    if (decode_field_array(expressions, "matchLabelExpressions", DECODE_LIST_MAX, &len, err) < 0)
        return -1;
    t->labels.reqs = arena_new(a, struct requirement, len);
    for (struct json_iter it = json_iter(expressions); json_next(&it); i++) {
        struct requirement *r = &t->labels.reqs[i];
        r->op = SELECTOR_IN;
        r->key = "";
        if (decode_field_str(json_get(it.value, "key"), "key", a, &r->key, err) < 0 ||
            decode_field_strings(json_get(it.value, "values"), "values", a, &r->values,
                                 &r->values_len, err) < 0)
            return error_wrap(err, "matchLabelExpressions[%zu]", i);
    }
    t->labels.len = i;
    return 0;
}

static int fill_storage_class(json *j, struct object *o, struct arena *a, struct error *err)
{
    struct storage_class *c = (struct storage_class *)o;
    json *topologies = json_get(j, "allowedTopologies");
    size_t i = 0;
    c->provisioner = "";
    if (decode_field_str(json_get(j, "provisioner"), "provisioner", a, &c->provisioner, err) < 0 ||
        decode_field_array(topologies, "allowedTopologies", DECODE_LIST_MAX, &c->topologies.len,
                           err) < 0)
        return -1;
    c->wait_for_consumer = str_eq(json_get_str(j, "volumeBindingMode"), "WaitForFirstConsumer");
    c->topologies.terms = arena_new(a, struct node_term, c->topologies.len);
    c->has_topologies = c->topologies.len > 0;
    for (struct json_iter it = json_iter(topologies); json_next(&it); i++)
        if (decode_topology(it.value, a, &c->topologies.terms[i], err) < 0)
            return error_wrap(err, "allowedTopologies[%zu]", i);
    return 0;
}

DECODE_KIND(decode_storage_class, struct storage_class, "storageclass", false, fill_storage_class)

static int decode_driver(json *j, struct arena *a, struct csi_driver_on_node *d, struct error *err)
{
    int64_t limit = -1;
    json *allocatable = json_get(j, "allocatable");
    bool have;
    d->name = "";
    if (decode_field_str(json_get(j, "name"), "name", a, &d->name, err) < 0 ||
        decode_field_object(allocatable, "allocatable", &have, err) < 0 ||
        decode_field_int(json_get(allocatable, "count"), "allocatable.count", 0, INT32_MAX, &limit,
                         err) < 0)
        return -1;
    d->limit = (int32_t)limit;
    return decode_field_strings(json_get(j, "topologyKeys"), "topologyKeys", a, &d->topology_keys,
                                &d->topology_keys_len, err);
}

static int fill_csi_node(json *j, struct object *o, struct arena *a, struct error *err)
{
    struct csi_node *n = (struct csi_node *)o;
    json *spec = json_get(j, "spec"), *drivers = json_get(spec, "drivers");
    bool have;
    size_t i = 0;
    if (decode_field_object(spec, "spec", &have, err) < 0 ||
        decode_field_array(drivers, "spec.drivers", DECODE_LIST_MAX, &n->drivers_len, err) < 0)
        return -1;
    n->drivers = arena_new(a, struct csi_driver_on_node, n->drivers_len);
    for (struct json_iter it = json_iter(drivers); json_next(&it); i++)
        if (decode_driver(it.value, a, &n->drivers[i], err) < 0)
            return error_wrap(err, "spec.drivers[%zu]", i);
    return 0;
}

DECODE_KIND(decode_csi_node, struct csi_node, "csinode", false, fill_csi_node)

static int fill_csi_driver(json *j, struct object *o, struct arena *a, struct error *err)
{
    struct csi_driver *d = (struct csi_driver *)o;
    json *spec = json_get(j, "spec");
    bool have;
    (void)a;
    if (decode_field_object(spec, "spec", &have, err) < 0 ||
        decode_field_bool(json_get(spec, "storageCapacity"), "spec.storageCapacity",
                          &d->storage_capacity, err) < 0)
        return -1;
    return decode_field_bool(json_get(spec, "preventPodSchedulingIfMissing"),
                             "spec.preventPodSchedulingIfMissing", &d->needed_on_node, err);
}

DECODE_KIND(decode_csi_driver, struct csi_driver, "csidriver", false, fill_csi_driver)

static int fill_csi_capacity(json *j, struct object *o, struct arena *a, struct error *err)
{
    struct csi_capacity *c = (struct csi_capacity *)o;
    c->storage_class = "";
    c->capacity_bytes = c->maximum_bytes = -1;
    if (decode_field_str(json_get(j, "storageClassName"), "storageClassName", a, &c->storage_class,
                         err) < 0 ||
        decode_field_quantity(json_get(j, "capacity"), "capacity", QUANTITY_DOWN,
                              &c->capacity_bytes, err) < 0 ||
        decode_field_quantity(json_get(j, "maximumVolumeSize"), "maximumVolumeSize", QUANTITY_DOWN,
                              &c->maximum_bytes, err) < 0)
        return -1;
    return selector_decode(json_get(j, "nodeTopology"), a, &c->nodes, err) < 0
               ? error_wrap(err, "nodeTopology")
               : 0;
}

DECODE_KIND(decode_csi_capacity, struct csi_capacity, "csistoragecapacity", true, fill_csi_capacity)

static int fill_attachment(json *j, struct object *o, struct arena *a, struct error *err)
{
    struct volume_attachment *v = (struct volume_attachment *)o;
    json *spec = json_get(j, "spec"), *source = json_get(spec, "source");
    bool have;
    v->attacher = v->node = "";
    if (decode_field_object(spec, "spec", &have, err) < 0 ||
        decode_field_object(source, "spec.source", &have, err) < 0 ||
        decode_field_str(json_get(spec, "attacher"), "spec.attacher", a, &v->attacher, err) < 0 ||
        decode_field_str(json_get(spec, "nodeName"), "spec.nodeName", a, &v->node, err) < 0)
        return -1;
    return decode_field_str(json_get(source, "persistentVolumeName"),
                            "spec.source.persistentVolumeName", a, &v->volume, err);
}

DECODE_KIND(decode_volume_attachment, struct volume_attachment, "volumeattachment", false,
            fill_attachment)
