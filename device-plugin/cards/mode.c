// SPDX-License-Identifier: Apache-2.0
/*
 * mode - the node's one GPU mode.
 *
 *   unknown ──mode_decode (state file) or mode_label──► settled(m), or switching(m→t)
 *   settled(m) ──mode_label: another mode──► switching(m→t)    only held ids stay offered
 *   switching(m→t) ──mode_label: m──► settled(m)               the user changed their mind
 *   switching(m→t) ──mode_label: u──► switching(m→u)           the clock starts again
 *   switching(m→t) ──mode_held: 0, MODE_SETTLE_MS later──► settled(t)
 *   any ──mode_label: absent──► the same                       the last mode is sticky
 *   any ──mode_label: not one of ours──► the same              and the caller reports it
 *
 * Every switch passes through `switching`, even on an empty node: the kubelet may not have recorded
 * an Allocate that we just answered, so "nothing is held" counts only some time after the last
 * possible answer. The state file keeps the mode over restarts of the plugin and of the node.
 */
#include "device-plugin/cards/mode.h"

#include "lib/base/json.h"
#include "lib/model/names.h"

static const struct {
    const char *name, *slug;
    bool whole;
} resources[MODE_RESOURCES] = {
    [MODE_GPU_MEM] = {NAME_RES_GPU_MEM, "gpu-mem", false},
    [MODE_GPU_CORE] = {NAME_RES_GPU_CORE, "gpu-core", false},
    [MODE_GPU] = {NAME_RES_GPU, "gpu", true},
    [MODE_NVIDIA_GPU] = {NAME_RES_NVIDIA_GPU, "nvidia-gpu", true},
};

const char *mode_resource_name(enum mode_resource r)
{
    return resources[r].name;
}

const char *mode_resource_slug(enum mode_resource r)
{
    return resources[r].slug;
}

bool mode_resource_is_whole(enum mode_resource r)
{
    return resources[r].whole;
}

bool mode_resource_parse(const char *name, enum mode_resource *out)
{
    for (int r = 0; r < MODE_RESOURCES; r++) {
        if (str_eq(name, resources[r].name)) {
            *out = (enum mode_resource)r;
            return true;
        }
    }
    return false;
}

uint32_t mode_resources(enum gpu_mode m)
{
    switch (m) {
    case GPU_MODE_DEFAULT:
        return 1u << MODE_NVIDIA_GPU;
    case GPU_MODE_CGPU:
    case GPU_MODE_SHARE:
    case GPU_MODE_MPS:
        return 1u << MODE_GPU_MEM;
    case GPU_MODE_CORE_MEM:
        return 1u << MODE_GPU_MEM | 1u << MODE_GPU_CORE;
    case GPU_MODE_TOPOLOGY:
        return 1u << MODE_GPU;
    case GPU_MODES:
        break;
    }
    return 0;
}

bool mode_needs_isolation(enum gpu_mode m)
{
    return m == GPU_MODE_CGPU || m == GPU_MODE_CORE_MEM || m == GPU_MODE_MPS;
}

enum mode_change mode_label(struct mode *m, const char *label, int64_t now_ms)
{
    enum gpu_mode wanted = GPU_MODE_DEFAULT;
    if (label == NULL) {
        if (m->known)
            return MODE_SAME;
    } else if (!gpu_mode_parse(label, &wanted)) {
        if (m->known)
            return MODE_UNKNOWN_LABEL;
        m->known = true;
        m->current = GPU_MODE_DEFAULT;
        return MODE_UNKNOWN_LABEL;
    }
    if (!m->known) {
        m->known = true;
        m->current = wanted;
        return MODE_ENTERED;
    }
    if (m->switching && wanted == m->current) {
        m->switching = false;
        return MODE_RETURNED;
    }
    if (wanted == (m->switching ? m->to : m->current))
        return MODE_SAME;
    m->switching = true;
    m->to = wanted;
    m->since_ms = now_ms;
    return MODE_SWITCHING;
}

enum mode_change mode_held(struct mode *m, size_t held, int64_t now_ms)
{
    if (!m->switching || held > 0 || now_ms - m->since_ms < MODE_SETTLE_MS)
        return MODE_SAME;
    m->switching = false;
    m->current = m->to;
    return MODE_ENTERED;
}

void mode_encode(const struct mode *m, struct strbuf *out)
{
    struct json_writer w;
    json_writer_init(&w, out);
    json_object_begin(&w);
    json_kv_int(&w, "v", 1);
    json_kv_str(&w, "mode", gpu_mode_name(m->current));
    if (m->switching)
        json_kv_str(&w, "to", gpu_mode_name(m->to));
    json_key(&w, "served");
    json_array_begin(&w);
    for (int r = 0; r < MODE_RESOURCES; r++)
        if (m->served & 1u << r)
            json_put_str(&w, resources[r].name);
    json_array_end(&w);
    json_object_end(&w);
}

int mode_decode(struct mode *out, const char *text, size_t n, struct error *err)
{
    AUTO_JSON *doc = NULL;
    if (n > MODE_STATE_BYTES_MAX)
        return error_set(err, ERROR_TOO_LARGE, "over %d bytes", MODE_STATE_BYTES_MAX);
    if (json_parse(&doc, text, n, err) < 0)
        return -1;
    json *root = json_root(doc);
    int64_t version = 0;
    if (!json_get_int(root, "v", &version) || version != 1)
        return error_set(err, ERROR_INVALID, "v: must be 1");
    struct mode m = {.known = true};
    const char *name = json_get_str(root, "mode");
    if (name == NULL || !gpu_mode_parse(name, &m.current))
        return error_set(err, ERROR_INVALID, "mode: must be one of %s: '%s'", gpu_mode_names(),
                         str_or_empty(name));
    json *to = json_get(root, "to");
    m.switching = to != NULL;
    if (m.switching && (!gpu_mode_parse(json_str(to), &m.to) || m.to == m.current))
        return error_set(err, ERROR_INVALID, "to: must be another one of %s: '%s'",
                         gpu_mode_names(), str_or_empty(json_str(to)));
    json *served = json_get(root, "served");
    if (!json_is_array(served))
        return error_set(err, ERROR_INVALID, "served: must be an array");
    for (struct json_iter it = json_iter(served); json_next(&it);) {
        enum mode_resource r;
        if (!mode_resource_parse(json_str(it.value), &r))
            return error_set(err, ERROR_INVALID, "served: not a resource of ours: '%s'",
                             str_or_empty(json_str(it.value)));
        m.served |= 1u << r;
    }
    *out = m;
    return 0;
}
