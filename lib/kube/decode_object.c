// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/decode_object.h"

#include "lib/base/str.h"
#include "lib/kube/decode.h"
#include "lib/kube/decode_field.h"
#include "lib/model/device.h"
#include "lib/model/pdb.h"

/* The uid of the controlling owner. */
static void decode_owner(json *j, struct arena *a, const char **out)
{
    for (struct json_iter it = json_iter(j); !*out && json_next(&it);)
        if (json_get_bool(it.value, "controller", false))
            (void)decode_field_str(json_get(it.value, "uid"), "uid", a, out, NULL);
}

static int fill_object(json *j, const struct decode_kind *k, struct object *o, struct arena *a,
                       struct error *err)
{
    struct decode_metadata m;
    if (decode_field_metadata(json_get(j, "metadata"), NULL, a, &m, err) < 0)
        return -1;
    if (!m.name[0] || (k->namespaced && !m.ns[0]))
        return error_set(err, ERROR_INVALID,
                         k->namespaced ? "metadata: name or namespace missing"
                                       : "metadata.name: missing");
    o->ns = k->namespaced ? m.ns : "";
    o->name = m.name;
    o->key = k->namespaced ? arena_printf(a, "%s/%s", m.ns, m.name) : m.name;
    o->uid = m.uid;
    o->resource_version = m.resource_version;
    o->labels = m.labels;
    o->annotations = m.annotations;
    o->terminating = m.terminating;
    decode_owner(m.owners, a, &o->owner_uid);
    return k->fill ? k->fill(j, o, a, err) : 0;
}

int decode_object(json *j, const struct decode_kind *k, struct object **out, struct error *err)
{
    struct arena a;
    if (!json_is_object(j))
        return error_set(err, ERROR_INVALID, "%s: must be an object, not %s", k->what,
                         json_kind_name(j));
    arena_init(&a, 1024);
    struct object *o = arena_alloc(&a, k->size);
    if (fill_object(j, k, o, &a, err) < 0) {
        struct object_meta m;
        decode_meta(j, &m);
        arena_deinit(&a);
        return error_wrap(err, "%s %s%s%s", k->what, m.ns, m.ns[0] ? "/" : "", m.name);
    }
    o->arena = a;
    *out = o;
    return 0;
}

DECODE_KIND(decode_namespace, struct object, "namespace", false, NULL)

static int fill_pdb(json *j, struct object *o, struct arena *a, struct error *err)
{
    struct pdb *b = (struct pdb *)o;
    json *spec = json_get(j, "spec"), *status = json_get(j, "status");
    json *disrupted = json_get(status, "disruptedPods");
    bool have;
    int64_t allowed = 0;
    if (decode_field_object(spec, "spec", &have, err) < 0 ||
        decode_field_object(status, "status", &have, err) < 0 ||
        decode_field_object(disrupted, "status.disruptedPods", &have, err) < 0 ||
        decode_field_int(json_get(status, "disruptionsAllowed"), "status.disruptionsAllowed",
                         INT32_MIN, INT32_MAX, &allowed, err) < 0)
        return -1;
    if (selector_decode(json_get(spec, "selector"), a, &b->selector, err) < 0)
        return error_wrap(err, "spec.selector");
    b->disruptions_allowed = (int32_t)allowed;
    b->disrupted = arena_new(a, const char *, json_len(disrupted));
    for (struct json_iter it = json_iter(disrupted); json_next(&it);)
        b->disrupted[b->disrupted_len++] = arena_strndup(a, it.key, it.key_len);
    decode_field_sort(b->disrupted, &b->disrupted_len);
    return 0;
}

DECODE_KIND(decode_pdb, struct pdb, "poddisruptionbudget", true, fill_pdb)

static int fill_device_class(json *j, struct object *o, struct arena *a, struct error *err)
{
    json *spec = json_get(j, "spec");
    bool have;
    if (decode_field_object(spec, "spec", &have, err) < 0)
        return -1;
    return decode_field_str(json_get(spec, "extendedResourceName"), "spec.extendedResourceName", a,
                            &((struct device_class *)o)->extended_resource, err);
}

DECODE_KIND(decode_device_class, struct device_class, "deviceclass", false, fill_device_class)
