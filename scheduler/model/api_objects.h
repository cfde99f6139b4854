// SPDX-License-Identifier: Apache-2.0
/*
 * api_objects - the other API objects that affect where a pod may run: namespaces, storage,
 * disruption budgets, device classes. Pure.
 *
 * One map per kind, by key ("ns/name", or the name). Put and remove return the EVENT_* bits they
 * caused; 0: nothing changed for a waiting pod. A kind's generation changes with every change that
 * may alter a verdict, so readers can detect stale derived data.
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

enum api_objects_kind {
    API_OBJECTS_NAMESPACES,         /* struct object */
    API_OBJECTS_CLAIMS,             /* struct pvc */
    API_OBJECTS_VOLUMES,            /* struct pv */
    API_OBJECTS_STORAGE_CLASSES,    /* struct storage_class */
    API_OBJECTS_CSI_NODES,          /* struct csi_node */
    API_OBJECTS_CSI_DRIVERS,        /* struct csi_driver */
    API_OBJECTS_CSI_CAPACITIES,     /* struct csi_capacity */
    API_OBJECTS_VOLUME_ATTACHMENTS, /* struct volume_attachment */
    API_OBJECTS_BUDGETS,            /* struct pdb */
    API_OBJECTS_DEVICE_CLASSES,     /* struct device_class */
    API_OBJECTS_POLICIES,           /* struct policy: by policies_put and policies_remove only */
    API_OBJECTS_KINDS
};

struct api_objects {
    /* -> struct object; map_next iterates in order of arrival */
    struct map by_key[API_OBJECTS_KINDS];
    uint64_t generation[API_OBJECTS_KINDS];
    /* counts every version, also those without an event: each one invalidates borrowed pointers */
    uint64_t changes[API_OBJECTS_KINDS];
};

void api_objects_init(struct api_objects *o);
void api_objects_deinit(struct api_objects *o);

/* Takes the object. Returns EVENT_* bits. */
uint32_t api_objects_put(struct api_objects *o, enum api_objects_kind kind, struct object *object);
/* uid NULL: any object with that key; else an object of another uid stays. Returns EVENT_* bits. */
uint32_t api_objects_remove(struct api_objects *o, enum api_objects_kind kind, const char *key,
                            const char *uid);

/* Borrowed until the next change; NULL: not found. */
const struct object *api_objects_find(const struct api_objects *o, enum api_objects_kind kind,
                                      const char *key);
/* Labels of a namespace; NULL: unknown (then only the namespaceSelector {} selects it). */
const struct labels *api_objects_namespace_labels(const struct api_objects *o, const char *ns);
const struct pvc *api_objects_find_pvc(const struct api_objects *o, const char *ns,
                                       const char *name);
/* The claim behind a pod's volume of kind CLAIM or EPHEMERAL. */
const struct pvc *api_objects_find_claim(const struct api_objects *o, const struct pod *p,
                                         const struct pod_volume *v);
const struct pv *api_objects_find_pv(const struct api_objects *o, const char *name);
const struct storage_class *api_objects_find_storage_class(const struct api_objects *o,
                                                           const char *name);
const struct csi_node *api_objects_find_csi_node(const struct api_objects *o, const char *node);
const struct csi_driver *api_objects_find_csi_driver(const struct api_objects *o,
                                                     const char *driver);
/* The first DeviceClass, by name, that offers this extended resource. */
const struct device_class *api_objects_find_offer(const struct api_objects *o,
                                                  const char *resource);
