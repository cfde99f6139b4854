// SPDX-License-Identifier: Apache-2.0
/* Most volumes of most pods (tokens, config maps, empty directories) do not affect where the pod
 * may run. For those only the member names are checked; memory is allocated for the first volume
 * that matters. */
#include "lib/kube/decode_volume.h"

#include "lib/base/str.h"
#include "lib/kube/decode.h"
#include "lib/kube/decode_field.h"

int decode_volume_handle(json *source, const struct volume_migration *m, struct arena *a,
                         const char **out, struct error *err)
{
    if (decode_field_str(json_get(source, m->id), m->id, a, out, err) < 0)
        return error_wrap(err, "%s", m->field);
    /* "aws://eu-west-1a/vol-1" and "vol-1" are one volume. */
    if (m->kind == POD_VOLUME_AWS_EBS && *out && strrchr(*out, '/'))
        *out = strrchr(*out, '/') + 1;
    return 0;
}

static int decode_rbd(json *j, struct arena *a, struct pod_volume *v, struct error *err)
{
    const char *pool = "rbd", *image = "";
    if (decode_field_str(json_get(j, "pool"), "rbd.pool", a, &pool, err) < 0 ||
        decode_field_str(json_get(j, "image"), "rbd.image", a, &image, err) < 0 ||
        decode_field_strings(json_get(j, "monitors"), "rbd.monitors", a, &v->monitors,
                             &v->monitors_len, err) < 0)
        return -1;
    v->id = arena_printf(a, "%s/%s", pool, image);
    return 0;
}

static bool source_matters(const struct json_iter *at)
{
    const struct json_iter it = *at;
    if (FIELD(it, "name") || FIELD(it, "emptyDir") || FIELD(it, "projected") ||
        FIELD(it, "configMap") || FIELD(it, "secret") || FIELD(it, "hostPath"))
        return false; /* most volumes */
    return FIELD(it, "persistentVolumeClaim") || FIELD(it, "ephemeral") || FIELD(it, "csi") ||
           FIELD(it, "image") || FIELD(it, "iscsi") || FIELD(it, "rbd") ||
           volume_migration_of(it.key, it.key_len) != NULL;
}

static int decode_source(const struct json_iter *at, const struct pod *p, struct arena *a,
                         struct pod_volume *v, struct error *err)
{
    const struct json_iter it = *at;
    bool have;
    if (decode_field_object(it.value, it.key, &have, err) < 0 ||
        decode_field_bool(json_get(it.value, "readOnly"), "readOnly", &v->read_only, err) < 0)
        return -1;
    if (FIELD(it, "persistentVolumeClaim")) {
        v->kind = POD_VOLUME_CLAIM;
        v->claim = "";
        return decode_field_str(json_get(it.value, "claimName"), "persistentVolumeClaim.claimName",
                                a, &v->claim, err);
    }
    if (FIELD(it, "ephemeral")) {
        v->kind = POD_VOLUME_EPHEMERAL;
        v->claim = arena_printf(a, "%s-%s", p->name, v->name);
        return 0;
    }
    if (FIELD(it, "csi")) {
        v->kind = POD_VOLUME_CSI;
        return decode_field_str(json_get(it.value, "driver"), "csi.driver", a, &v->driver, err);
    }
    if (FIELD(it, "iscsi")) {
        v->kind = POD_VOLUME_ISCSI;
        return decode_field_str(json_get(it.value, "iqn"), "iscsi.iqn", a, &v->id, err);
    }
    if (FIELD(it, "rbd")) {
        v->kind = POD_VOLUME_RBD;
        return decode_rbd(it.value, a, v, err);
    }
    const struct volume_migration *m = volume_migration_of(it.key, it.key_len);
    v->kind = m->kind;
    v->driver = m->driver;
    return decode_volume_handle(it.value, m, a, &v->id, err);
}

static int keep(json *volume, const struct json_iter *source, size_t room, struct pod *p,
                struct arena *a, struct error *err)
{
    const struct json_iter it = *source;
    if (FIELD(it, "image")) {
        const char *reference = NULL; /* for scores only */
        (void)decode_field_str(json_get(it.value, "reference"), "image.reference", a, &reference,
                               NULL);
        if (!reference || !reference[0])
            return 0;
        if (!p->image_volumes)
            p->image_volumes = arena_new(a, const char *, room);
        p->image_volumes[p->image_volumes_len++] = reference;
        return 0;
    }
    if (p->volumes_len == DECODE_VOLUMES_MAX)
        return error_set(err, ERROR_INVALID, "more than %d volumes with a disk or a claim",
                         DECODE_VOLUMES_MAX);
    if (!p->volumes)
        p->volumes =
            arena_new(a, struct pod_volume, room < DECODE_VOLUMES_MAX ? room : DECODE_VOLUMES_MAX);
    struct pod_volume *v = &p->volumes[p->volumes_len];
    *v = (struct pod_volume){.name = ""};
    if (decode_field_str(json_get(volume, "name"), "name", a, &v->name, err) < 0 ||
        decode_source(source, p, a, v, err) < 0)
        return -1;
    p->volumes_len++;
    return 0;
}

int decode_volume_list(json *j, struct pod *p, struct arena *a, struct error *err)
{
    size_t len, i = 0;
    p->volumes = NULL; /* a repeated member of the same name may be longer */
    p->image_volumes = NULL;
    p->volumes_len = p->image_volumes_len = 0;
    int rc = decode_field_array(j, "spec.volumes", DECODE_LIST_MAX, &len, err);
    for (struct json_iter at = json_iter(j); len > 0 && json_next(&at); i++) {
        for (struct json_iter it = json_iter(at.value); json_next(&it);) {
            if (!it.key || !source_matters(&it) || json_is_null(it.value))
                continue;
            if (keep(at.value, &it, len, p, a, rc < 0 ? NULL : err) < 0)
                rc = rc < 0 ? rc : error_wrap(err, "spec.volumes[%zu]", i);
            break; /* a volume has one source */
        }
    }
    return rc;
}
