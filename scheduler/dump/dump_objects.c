// SPDX-License-Identifier: Apache-2.0
/* One function per kind of api_objects.h prints what follows its metadata, as dump_pod.c does. */
#include "scheduler/dump/dump_objects.h"

#include "lib/base/str.h"
#include "lib/model/names.h"
#include "scheduler/dump/dump_parts.h"

static void put_access_modes(struct json_writer *w, unsigned modes)
{
    static const char *const names[] = {"ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany",
                                        "ReadWriteOncePod"};
    if (modes == 0)
        return;
    dump_parts_array(w, "accessModes");
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (modes & 1u << i)
            json_put_str(w, names[i]);
    json_array_end(w);
}

static void put_phase(struct json_writer *w, const char *phase)
{
    dump_parts_object(w, "status");
    json_kv_str(w, "phase", phase);
    json_object_end(w);
}

static void put_claim(const struct object *o, struct json_writer *w)
{
    static const char *const phases[] = {
        [PVC_PENDING] = "Pending", [PVC_BOUND] = "Bound", [PVC_LOST] = "Lost"};
    const struct pvc *c = (const struct pvc *)o;
    dump_parts_object(w, "spec");
    dump_parts_text(w, "volumeName", c->volume);
    if (c->storage_class != NULL) /* "" is not the same as none */
        json_kv_str(w, "storageClassName", c->storage_class);
    dump_parts_text(w, "volumeAttributesClassName", c->attributes_class);
    put_access_modes(w, c->access_modes);
    if (c->block)
        json_kv_str(w, "volumeMode", "Block");
    if (c->has_selector)
        dump_parts_selector(w, "selector", &c->selector);
    dump_parts_object(w, "resources");
    dump_parts_object(w, "requests");
    dump_parts_bytes(w, "storage", c->request_bytes);
    json_object_end(w);
    json_object_end(w);
    json_object_end(w);
    put_phase(w, phases[c->phase]);
}

/* Goes into metadata. */
static void put_claim_annotations(const struct pvc *c, struct json_writer *w)
{
    if (!c->bind_completed && c->selected_node == NULL)
        return;
    dump_parts_object(w, "annotations");
    if (c->bind_completed)
        json_kv_str(w, "pv.kubernetes.io/bind-completed", "yes");
    dump_parts_text(w, "volume.kubernetes.io/selected-node", c->selected_node);
    json_object_end(w);
}

static void put_volume_source(const struct pv *v, struct json_writer *w)
{
    static const char *const fields[] = {"awsElasticBlockStore", "gcePersistentDisk", "azureDisk",
                                         "cinder", "portworxVolume"};
    const struct volume_migration *m = NULL;
    if (v->driver == NULL)
        return;
    for (size_t i = 0; v->in_tree && i < sizeof fields / sizeof *fields; i++) {
        m = volume_migration_of(fields[i], strlen(fields[i]));
        if (m != NULL && str_eq(m->driver, v->driver))
            break;
        m = NULL;
    }
    dump_parts_object(w, m != NULL ? m->field : "csi");
    if (m == NULL)
        json_kv_str(w, "driver", v->driver);
    dump_parts_text(w, m != NULL ? m->id : "volumeHandle", v->handle);
    json_object_end(w);
}

static void put_volume(const struct object *o, struct json_writer *w)
{
    static const char *const phases[] = {[PV_PENDING] = "Pending",
                                         [PV_AVAILABLE] = "Available",
                                         [PV_BOUND] = "Bound",
                                         [PV_RELEASED] = "Released",
                                         [PV_FAILED] = "Failed"};
    const struct pv *v = (const struct pv *)o;
    dump_parts_object(w, "spec");
    dump_parts_text(w, "storageClassName", v->storage_class);
    dump_parts_text(w, "volumeAttributesClassName", v->attributes_class);
    put_access_modes(w, v->access_modes);
    if (v->block)
        json_kv_str(w, "volumeMode", "Block");
    dump_parts_object(w, "capacity");
    dump_parts_bytes(w, "storage", v->capacity_bytes);
    json_object_end(w);
    if (v->claim_name != NULL) {
        dump_parts_object(w, "claimRef");
        dump_parts_text(w, "namespace", v->claim_ns);
        json_kv_str(w, "name", v->claim_name);
        dump_parts_text(w, "uid", v->claim_uid);
        json_object_end(w);
    }
    if (v->has_node_affinity) {
        dump_parts_object(w, "nodeAffinity");
        dump_parts_node_selector(w, "required", &v->node_affinity);
        json_object_end(w);
    }
    put_volume_source(v, w);
    json_object_end(w);
    put_phase(w, phases[v->phase]);
}

static void put_topologies(const struct storage_class *c, struct json_writer *w)
{
    if (!c->has_topologies)
        return;
    dump_parts_array(w, "allowedTopologies");
    for (size_t i = 0; i < c->topologies.len; i++) {
        const struct selector *s = &c->topologies.terms[i].labels;
        json_object_begin(w);
        dump_parts_array(w, "matchLabelExpressions");
        for (size_t k = 0; k < s->len; k++) {
            json_object_begin(w);
            json_kv_str(w, "key", s->reqs[k].key);
            dump_parts_strings(w, "values", s->reqs[k].values, s->reqs[k].values_len);
            json_object_end(w);
        }
        json_array_end(w);
        json_object_end(w);
    }
    json_array_end(w);
}

static void put_storage_class(const struct object *o, struct json_writer *w)
{
    const struct storage_class *c = (const struct storage_class *)o;
    json_kv_str(w, "provisioner", c->provisioner);
    json_kv_str(w, "volumeBindingMode",
                c->wait_for_consumer ? "WaitForFirstConsumer" : "Immediate");
    put_topologies(c, w);
}

static void put_csi_node(const struct object *o, struct json_writer *w)
{
    const struct csi_node *n = (const struct csi_node *)o;
    dump_parts_object(w, "spec");
    dump_parts_array(w, "drivers");
    for (size_t i = 0; i < n->drivers_len; i++) {
        const struct csi_driver_on_node *d = &n->drivers[i];
        json_object_begin(w);
        json_kv_str(w, "name", d->name);
        dump_parts_strings(w, "topologyKeys", d->topology_keys, d->topology_keys_len);
        if (d->limit >= 0) {
            dump_parts_object(w, "allocatable");
            json_kv_int(w, "count", d->limit);
            json_object_end(w);
        }
        json_object_end(w);
    }
    json_array_end(w);
    json_object_end(w);
}

static void put_csi_driver(const struct object *o, struct json_writer *w)
{
    const struct csi_driver *d = (const struct csi_driver *)o;
    dump_parts_object(w, "spec");
    dump_parts_true(w, "storageCapacity", d->storage_capacity);
    dump_parts_true(w, "preventPodSchedulingIfMissing", d->needed_on_node);
    json_object_end(w);
}

static void put_csi_capacity(const struct object *o, struct json_writer *w)
{
    const struct csi_capacity *c = (const struct csi_capacity *)o;
    json_kv_str(w, "storageClassName", c->storage_class);
    dump_parts_selector(w, "nodeTopology", &c->nodes);
    if (c->capacity_bytes >= 0)
        dump_parts_bytes(w, "capacity", c->capacity_bytes);
    if (c->maximum_bytes >= 0)
        dump_parts_bytes(w, "maximumVolumeSize", c->maximum_bytes);
}

static void put_attachment(const struct object *o, struct json_writer *w)
{
    const struct volume_attachment *a = (const struct volume_attachment *)o;
    dump_parts_object(w, "spec");
    json_kv_str(w, "attacher", a->attacher);
    json_kv_str(w, "nodeName", a->node);
    dump_parts_object(w, "source");
    dump_parts_text(w, "persistentVolumeName", a->volume);
    json_object_end(w);
    json_object_end(w);
}

static void put_budget(const struct object *o, struct json_writer *w)
{
    const struct pdb *b = (const struct pdb *)o;
    dump_parts_object(w, "spec");
    dump_parts_selector(w, "selector", &b->selector);
    json_object_end(w);
    dump_parts_object(w, "status");
    json_kv_int(w, "disruptionsAllowed", b->disruptions_allowed);
    if (b->disrupted_len > 0) {
        dump_parts_object(w, "disruptedPods");
        for (size_t i = 0; i < b->disrupted_len; i++)
            dump_parts_time(w, b->disrupted[i], 0); /* the model has no time */
        json_object_end(w);
    }
    json_object_end(w);
}

static void put_device_class(const struct object *o, struct json_writer *w)
{
    const struct device_class *c = (const struct device_class *)o;
    dump_parts_object(w, "spec");
    dump_parts_text(w, "extendedResourceName", c->extended_resource);
    json_object_end(w);
}

static void put_unit(const struct policy_unit *u, struct json_writer *w)
{
    json_object_begin(w);
    json_kv_str(w, "resource", policy_resource_name(u->resource));
    dump_parts_labels(w, "nodeSelector", &u->node_selector);
    if (u->max >= 0)
        json_kv_int(w, "max", u->max);
    if (u->has_max_resources)
        dump_parts_resources_even_none(w, "maxResources", &u->max_resources);
    if (u->awaited && u->resource != POLICY_ELASTIC) {
        dump_parts_object(w, "podLabels");
        for (size_t i = 0; i < u->pod_labels.len; i++)
            json_kv_str(w, u->pod_labels.items[i].key, u->pod_labels.items[i].value);
        json_kv_str(w, NAME_LABEL_WAIT_SCALING, "true");
        json_object_end(w);
    } else {
        dump_parts_labels(w, "podLabels", &u->pod_labels);
    }
    dump_parts_labels(w, "podAnnotations", &u->pod_annotations);
    json_object_end(w);
}

/* Valid policies only. */
static void put_policy(const struct object *o, struct json_writer *w)
{
    const struct policy *p = (const struct policy *)o;
    dump_parts_object(w, "spec");
    dump_parts_labels(w, "selector", &p->selector);
    dump_parts_array(w, "units");
    for (size_t i = 0; i < p->units_len; i++)
        put_unit(&p->units[i], w);
    json_array_end(w);
    if (p->preempt_before_next)
        json_kv_str(w, "preemptPolicy", "BeforeNextUnit");
    dump_parts_true(w, "ignorePreviousPod", p->ignore_previous);
    if (!p->ignore_terminating)
        json_kv_bool(w, "ignoreTerminatingPod", false);
    dump_parts_strings(w, "matchLabelKeys", p->match_keys, p->match_keys_len);
    dump_parts_object(w, "whenTryNextUnits");
    json_kv_str(w, "policy", policy_when_name(p->when));
    if (p->when == POLICY_TIMEOUT_OR_MAX) {
        char text[32];
        (void)str_format(text, sizeof text, "%lldms", (long long)p->timeout_ms);
        json_kv_str(w, "timeout", text);
    }
    json_object_end(w);
    json_object_end(w);
}

static void put_metadata(enum api_objects_kind kind, const struct object *o, struct json_writer *w)
{
    dump_parts_object(w, "metadata");
    dump_parts_text(w, "namespace", o->ns);
    json_kv_str(w, "name", o->name);
    dump_parts_text(w, "uid", o->uid);
    dump_parts_text(w, "resourceVersion", o->resource_version);
    if (kind == API_OBJECTS_POLICIES)
        dump_parts_time(w, "creationTimestamp", ((const struct policy *)o)->created_ns);
    dump_parts_terminating(w, o->terminating);
    dump_parts_labels(w, "labels", &o->labels);
    if (kind == API_OBJECTS_CLAIMS)
        put_claim_annotations((const struct pvc *)o, w);
    if (o->owner_uid != NULL) {
        dump_parts_array(w, "ownerReferences");
        json_object_begin(w);
        json_kv_str(w, "uid", o->owner_uid);
        json_kv_bool(w, "controller", true);
        json_object_end(w);
        json_array_end(w);
    }
    json_object_end(w);
}

void dump_objects_print(enum api_objects_kind kind, const struct object *o, struct json_writer *w)
{
    static const struct {
        const char *api, *name;
        void (*put)(const struct object *o, struct json_writer *w);
    } kinds[API_OBJECTS_KINDS] = {
        [API_OBJECTS_NAMESPACES] = {"v1", "Namespace", NULL},
        [API_OBJECTS_CLAIMS] = {"v1", "PersistentVolumeClaim", put_claim},
        [API_OBJECTS_VOLUMES] = {"v1", "PersistentVolume", put_volume},
        [API_OBJECTS_STORAGE_CLASSES] = {"storage.k8s.io/v1", "StorageClass", put_storage_class},
        [API_OBJECTS_CSI_NODES] = {"storage.k8s.io/v1", "CSINode", put_csi_node},
        [API_OBJECTS_CSI_DRIVERS] = {"storage.k8s.io/v1", "CSIDriver", put_csi_driver},
        [API_OBJECTS_CSI_CAPACITIES] = {"storage.k8s.io/v1", "CSIStorageCapacity",
                                        put_csi_capacity},
        [API_OBJECTS_VOLUME_ATTACHMENTS] = {"storage.k8s.io/v1", "VolumeAttachment",
                                            put_attachment},
        [API_OBJECTS_BUDGETS] = {"policy/v1", "PodDisruptionBudget", put_budget},
        [API_OBJECTS_POLICIES] = {NAME_API_POLICY, NAME_KIND_POLICY, put_policy},
        [API_OBJECTS_DEVICE_CLASSES] = {"resource.k8s.io/v1", "DeviceClass", put_device_class},
    };
    json_object_begin(w);
    json_kv_str(w, "apiVersion", kinds[kind].api);
    json_kv_str(w, "kind", kinds[kind].name);
    put_metadata(kind, o, w);
    if (kinds[kind].put != NULL)
        kinds[kind].put(o, w);
    json_object_end(w);
}
