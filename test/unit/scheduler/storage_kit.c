// SPDX-License-Identifier: Apache-2.0
#include "test/unit/scheduler/storage_kit.h"

#include "test/unit/lib/kube/decode_kit.h"
#include "test/unit/scheduler/shell_kit.h"

#define DECODER(function, type)                                       \
    static int any_##function(json *j, void **out, struct error *err) \
    {                                                                 \
        type *object = NULL;                                          \
        int rc = decode_##function(j, &object, err);                  \
        *out = object;                                                \
        return rc;                                                    \
    }
DECODER(pvc, struct pvc)
DECODER(pv, struct pv)
DECODER(storage_class, struct storage_class)
DECODER(csi_node, struct csi_node)
DECODER(csi_driver, struct csi_driver)
DECODER(csi_capacity, struct csi_capacity)
DECODER(volume_attachment, struct volume_attachment)

static const struct {
    const char *kind;
    enum api_objects_kind store;
    enum intake_kind message;
    int (*decode)(json *j, void **out, struct error *err);
} kinds[] = {
    {"PersistentVolumeClaim", API_OBJECTS_CLAIMS, INTAKE_CLAIMS, any_pvc},
    {"PersistentVolume", API_OBJECTS_VOLUMES, INTAKE_VOLUMES, any_pv},
    {"StorageClass", API_OBJECTS_STORAGE_CLASSES, INTAKE_STORAGE_CLASSES, any_storage_class},
    {"CSINode", API_OBJECTS_CSI_NODES, INTAKE_CSI_NODES, any_csi_node},
    {"CSIDriver", API_OBJECTS_CSI_DRIVERS, INTAKE_CSI_DRIVERS, any_csi_driver},
    {"CSIStorageCapacity", API_OBJECTS_CSI_CAPACITIES, INTAKE_CSI_CAPACITIES, any_csi_capacity},
    {"VolumeAttachment", API_OBJECTS_VOLUME_ATTACHMENTS, INTAKE_VOLUME_ATTACHMENTS,
     any_volume_attachment},
};

static void *make(const char *text, size_t *at)
{
    struct error err = ERROR_INIT;
    AUTO_JSON *doc = decode_kit_parse(text);
    json *j = json_root(doc);
    void *out = NULL;
    for (*at = 0; *at < sizeof kinds / sizeof *kinds; ++*at)
        if (str_eq(json_get_str(j, "kind"), kinds[*at].kind)) {
            if (kinds[*at].decode(j, &out, &err) < 0)
                fail_msg("%s: %s", text, err.text);
            return out;
        }
    fail_msg("%s: no such kind", text);
    return NULL;
}

struct object *storage_kit_make(const char *text, enum api_objects_kind *kind)
{
    size_t at;
    struct object *o = make(text, &at);
    *kind = kinds[at].store;
    return o;
}

void storage_kit_put(struct cluster *c, const char *text)
{
    enum api_objects_kind kind;
    struct object *o = storage_kit_make(text, &kind);
    (void)api_objects_put(c->objects, kind, o);
}

void storage_kit_send(struct intake *in, const char *text)
{
    size_t at;
    void *o = make(text, &at);
    shell_message(in, kinds[at].message, REFLECTOR_PUT, 1, &o);
}
