// SPDX-License-Identifier: Apache-2.0
/*
 * objects - the objects beside nodes, pods and PodGroups that decide where a pod may run: namespaces, storage, disruption budgets, device classes. Pure.
 *
 * One map for each kind, by key ("ns/name", or the name). Put replaces, remove forgets; each says which EVENT_* it caused, none when nothing changed that a
 * waiting pod may care for. A generation per kind changes with every change that may alter a verdict, so that whoever keeps derived data can see that it is old.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/map.h"
#include "lib/model/device.h"
#include "lib/model/object.h"
#include "lib/model/pdb.h"
#include "lib/model/pod.h"
#include "lib/model/policy.h"
#include "lib/model/volume.h"

enum objects_kind {
    OBJECTS_NAMESPACES,         /* struct object */
    OBJECTS_CLAIMS,             /* struct pvc */
    OBJECTS_VOLUMES,            /* struct pv */
    OBJECTS_STORAGE_CLASSES,    /* struct storage_class */
    OBJECTS_CSI_NODES,          /* struct csi_node */
    OBJECTS_CSI_DRIVERS,        /* struct csi_driver */
    OBJECTS_CSI_CAPACITIES,     /* struct csi_capacity */
    OBJECTS_VOLUME_ATTACHMENTS, /* struct volume_attachment */
    OBJECTS_BUDGETS,            /* struct pdb */
    OBJECTS_DEVICE_CLASSES,     /* struct device_class */
    OBJECTS_POLICIES,           /* struct policy: by policies_put and policies_remove only */
    OBJECTS_KINDS
};

struct objects {
    struct map
        by_key[OBJECTS_KINDS]; /* -> struct object; iterate with map_next, in order of arrival */
    uint64_t generation[OBJECTS_KINDS];
    uint64_t
        changes[OBJECTS_KINDS]; /* also those that say nothing new: what was borrowed is gone */
};

void objects_init(struct objects *o);
void objects_deinit(struct objects *o);

/* Takes the object. Returns EVENT_* bits. */
uint32_t objects_put(struct objects *o, enum objects_kind kind, struct object *object);
/* uid NULL: whatever has that key; else an object of another uid stays. Returns EVENT_* bits. */
uint32_t objects_remove(struct objects *o, enum objects_kind kind, const char *key,
                        const char *uid);

/* Borrowed until the next change; NULL: there is none. */
const struct object *objects_find(const struct objects *o, enum objects_kind kind, const char *key);
/* Labels of a namespace; NULL: it is not known (then no namespaceSelector but {} selects it). */
const struct labels *objects_namespace_labels(const struct objects *o, const char *ns);
const struct pvc *objects_find_pvc(const struct objects *o, const char *ns, const char *name);
/* The claim behind a pod's volume of kind CLAIM or EPHEMERAL. */
const struct pvc *objects_find_claim(const struct objects *o, const struct pod *p,
                                     const struct pod_volume *v);
const struct pv *objects_find_pv(const struct objects *o, const char *name);
const struct storage_class *objects_find_storage_class(const struct objects *o, const char *name);
const struct csi_node *objects_find_csi_node(const struct objects *o, const char *node);
const struct csi_driver *objects_find_csi_driver(const struct objects *o, const char *driver);
/* The first DeviceClass, by name, that offers this extended resource. */
const struct device_class *objects_find_offer(const struct objects *o, const char *resource);
