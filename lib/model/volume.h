// SPDX-License-Identifier: Apache-2.0
/* volume - a pod's volumes, and the storage objects behind them, as far as they affect
 * placement. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/model/object.h"
#include "lib/model/selector.h"

enum pod_volume_kind {
    POD_VOLUME_CLAIM, /* persistentVolumeClaim */
    /* a claim created for the pod: "<pod>-<volume>", controlled by the pod */
    POD_VOLUME_EPHEMERAL,
    POD_VOLUME_CSI,        /* inline CSI: never attached, so unlimited; driver is set */
    POD_VOLUME_GCE_PD,     /* id: pdName */
    POD_VOLUME_AWS_EBS,    /* id: volumeID */
    POD_VOLUME_AZURE_DISK, /* id: diskURI */
    POD_VOLUME_CINDER,     /* id: volumeID */
    POD_VOLUME_PORTWORX,   /* id: volumeID */
    POD_VOLUME_ISCSI,      /* id: iqn */
    POD_VOLUME_RBD,        /* id: "pool/image"; monitors */
};

/* Only volumes of these kinds are kept: others do not affect placement. */
struct pod_volume {
    enum pod_volume_kind kind;
    bool read_only;
    const char *name;
    const char *claim;     /* CLAIM and EPHEMERAL: name of the PersistentVolumeClaim */
    const char *driver;    /* CSI, or the CSI driver of a migrated in-tree kind; NULL: none */
    const char *id;        /* the disk's id for kinds that have one, or NULL */
    const char **monitors; /* RBD */
    size_t monitors_len;
};

/* In-tree kinds that are migrated to a CSI driver, and their names. */
struct volume_migration {
    enum pod_volume_kind kind;
    const char *field;       /* of a pod's volume or a PersistentVolume: "awsElasticBlockStore" */
    const char *id;          /* the field in it that names the disk: "volumeID" */
    const char *provisioner; /* "kubernetes.io/aws-ebs" */
    const char *driver;      /* "ebs.csi.aws.com" */
};
/* By the field's name, or NULL. */
const struct volume_migration *volume_migration_of(const char *field, size_t len);
/* The CSI driver behind a provisioner: its own name, unless it is an in-tree one. */
const char *volume_driver_of(const char *provisioner);

/* Whether two pods that mount these must not share a node (kube-scheduler's VolumeRestrictions). */
bool pod_volume_conflicts(const struct pod_volume *a, const struct pod_volume *b);

enum access_mode {
    ACCESS_READ_WRITE_ONCE = 1,
    ACCESS_READ_ONLY_MANY = 2,
    ACCESS_READ_WRITE_MANY = 4,
    ACCESS_READ_WRITE_ONCE_POD = 8
};

enum pvc_phase { PVC_PENDING, PVC_BOUND, PVC_LOST };
struct pvc {
    struct object object;
    enum pvc_phase phase;
    const char *volume; /* spec.volumeName, or NULL */
    /* spec.storageClassName or the old annotation; NULL: absent ("" means none) */
    const char *storage_class;
    const char *attributes_class; /* spec.volumeAttributesClassName, or NULL */
    unsigned access_modes;        /* ACCESS_* */
    int64_t request_bytes;
    bool block;               /* volumeMode: Block */
    struct selector selector; /* of volumes, if has_selector */
    bool has_selector;
    /* annotation pv.kubernetes.io/bind-completed: the controller has finished */
    bool bind_completed;
    const char *selected_node; /* annotation volume.kubernetes.io/selected-node, or NULL */
};

enum pv_phase { PV_PENDING, PV_AVAILABLE, PV_BOUND, PV_RELEASED, PV_FAILED };
struct pv {
    struct object object;
    enum pv_phase phase;
    const char *storage_class;    /* "" when it has none */
    const char *attributes_class; /* or NULL */
    unsigned access_modes;
    int64_t capacity_bytes;
    bool block;
    /* spec.claimRef; NULL without one; the uid is "" when it is reserved by name only */
    const char *claim_ns, *claim_name, *claim_uid;
    bool has_node_affinity;
    struct node_selector node_affinity; /* spec.nodeAffinity.required */
    /* csi.driver, or the CSI driver of a migrated in-tree kind; NULL: neither */
    const char *driver;
    const char *handle; /* csi.volumeHandle, or the in-tree id */
    /* driver and handle come from an in-tree source (gcePersistentDisk, awsElasticBlockStore,
     * azureDisk, cinder) */
    bool in_tree;
};

struct storage_class {
    struct object object;
    const char *provisioner;
    bool wait_for_consumer; /* volumeBindingMode: WaitForFirstConsumer */
    bool has_topologies;    /* allowedTopologies is not empty */
    /* as a node selector: terms are ORed, `key In values` in each ANDed */
    struct node_selector topologies;
};
/* "kubernetes.io/no-provisioner": its claims wait for a volume made by an administrator. */
bool storage_class_is_static(const struct storage_class *c);

struct csi_driver_on_node {
    const char *name;
    int32_t limit; /* allocatable.count; -1: no limit */
    const char **topology_keys;
    size_t topology_keys_len;
};
struct csi_node { /* object.name is the node's */
    struct object object;
    struct csi_driver_on_node *drivers;
    size_t drivers_len;
};
const struct csi_driver_on_node *csi_node_find(const struct csi_node *n, const char *driver);

struct csi_driver { /* object.name is the driver's */
    struct object object;
    bool storage_capacity; /* spec.storageCapacity: check CSIStorageCapacity */
    bool needed_on_node;   /* spec.preventPodSchedulingIfMissing */
};

struct csi_capacity {
    struct object object;
    const char *storage_class;
    struct selector nodes;  /* nodeTopology; .nothing when absent */
    int64_t capacity_bytes; /* -1: not given */
    int64_t maximum_bytes;  /* maximumVolumeSize; -1: not given */
};

struct volume_attachment {
    struct object object;
    const char *attacher; /* driver */
    const char *node;
    const char *volume; /* spec.source.persistentVolumeName, or NULL */
};
