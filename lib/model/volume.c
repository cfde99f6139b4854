// SPDX-License-Identifier: Apache-2.0
#include "lib/model/volume.h"

#include "lib/base/str.h"

static bool share_monitor(const struct pod_volume *a, const struct pod_volume *b)
{
    for (size_t i = 0; i < a->monitors_len; i++)
        for (size_t k = 0; k < b->monitors_len; k++)
            if (str_eq(a->monitors[i], b->monitors[k]))
                return true;
    return false;
}

bool pod_volume_conflicts(const struct pod_volume *a, const struct pod_volume *b)
{
    if (a->kind != b->kind || !a->id || !str_eq(a->id, b->id))
        return false;
    bool readers = a->read_only && b->read_only;
    switch (a->kind) {
    case POD_VOLUME_AWS_EBS:
        return true; /* even if read-only */
    case POD_VOLUME_GCE_PD:
    case POD_VOLUME_ISCSI:
        return !readers;
    case POD_VOLUME_RBD:
        return !readers && share_monitor(a, b);
    case POD_VOLUME_CLAIM:
    case POD_VOLUME_EPHEMERAL:
    case POD_VOLUME_CSI:
    case POD_VOLUME_AZURE_DISK:
    case POD_VOLUME_CINDER:
    case POD_VOLUME_PORTWORX:
        break;
    }
    return false;
}

static const struct volume_migration migrations[] = {
    {POD_VOLUME_AWS_EBS, "awsElasticBlockStore", "volumeID", "kubernetes.io/aws-ebs",
     "ebs.csi.aws.com"},
    {POD_VOLUME_GCE_PD, "gcePersistentDisk", "pdName", "kubernetes.io/gce-pd",
     "pd.csi.storage.gke.io"},
    {POD_VOLUME_AZURE_DISK, "azureDisk", "diskURI", "kubernetes.io/azure-disk",
     "disk.csi.azure.com"},
    {POD_VOLUME_CINDER, "cinder", "volumeID", "kubernetes.io/cinder", "cinder.csi.openstack.org"},
    {POD_VOLUME_PORTWORX, "portworxVolume", "volumeID", "kubernetes.io/portworx-volume",
     "pxd.portworx.com"},
};

const struct volume_migration *volume_migration_of(const char *field, size_t len)
{
    for (size_t i = 0; i < sizeof migrations / sizeof *migrations; i++)
        if (strlen(migrations[i].field) == len && memcmp(migrations[i].field, field, len) == 0)
            return &migrations[i];
    return NULL;
}

const char *volume_driver_of(const char *provisioner)
{
    for (size_t i = 0; i < sizeof migrations / sizeof *migrations; i++)
        if (str_eq(migrations[i].provisioner, provisioner))
            return migrations[i].driver;
    return provisioner;
}

bool storage_class_is_static(const struct storage_class *c)
{
    return str_eq(c->provisioner, "kubernetes.io/no-provisioner");
}

const struct csi_driver_on_node *csi_node_find(const struct csi_node *n, const char *driver)
{
    for (size_t i = 0; i < n->drivers_len; i++)
        if (str_eq(n->drivers[i].name, driver))
            return &n->drivers[i];
    return NULL;
}
