// SPDX-License-Identifier: Apache-2.0
/*
 * kwire - protobuf-c knows no const: what is packed is pointed to from its structs and not changed.
 */
#include "test/local/nodes/kwire.h"

#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "proto/deviceplugin.pb-c.h"
#include "proto/podresources.pb-c.h"

static void pack(const ProtobufCMessage *m, struct strbuf *out)
{
    size_t n = protobuf_c_message_get_packed_size(m);
    uint8_t *bytes = mem_new(uint8_t, n + 1);
    strbuf_add(out, bytes, protobuf_c_message_pack(m, bytes));
    free(bytes);
}

/* The list as protobuf-c wants it; free() it. */
static char **unconst(const struct kwire_ids *ids)
{
    char **p = mem_new(char *, ids->len + 1);
    if (ids->len > 0)
        memcpy(p, ids->items, ids->len * sizeof *p);
    return p;
}

static char *unconst_str(const char *s)
{
    char *p;
    memcpy(&p, &s, sizeof p);
    return p;
}

int kwire_decode_register(const void *bytes, size_t n, struct arena *a, struct kwire_register *out,
                          struct error *err)
{
    V1beta1__RegisterRequest *m = v1beta1__register_request__unpack(NULL, n, bytes);
    if (m == NULL)
        return error_set(err, ERROR_INVALID, "not a RegisterRequest");
    *out = (struct kwire_register){.version = arena_strdup(a, m->version),
                                   .endpoint = arena_strdup(a, m->endpoint),
                                   .resource = arena_strdup(a, m->resource_name)};
    v1beta1__register_request__free_unpacked(m, NULL);
    return 0;
}

int kwire_decode_options(const void *bytes, size_t n, struct kwire_options *out, struct error *err)
{
    V1beta1__DevicePluginOptions *m = v1beta1__device_plugin_options__unpack(NULL, n, bytes);
    if (m == NULL)
        return error_set(err, ERROR_INVALID, "not DevicePluginOptions");
    *out = (struct kwire_options){.pre_start = m->pre_start_required,
                                  .preferred = m->get_preferred_allocation_available};
    v1beta1__device_plugin_options__free_unpacked(m, NULL);
    return 0;
}

int kwire_decode_devices(const void *bytes, size_t n, struct arena *a, struct kwire_devices *out,
                         struct error *err)
{
    V1beta1__ListAndWatchResponse *m = v1beta1__list_and_watch_response__unpack(NULL, n, bytes);
    *out = (struct kwire_devices){0};
    if (m == NULL)
        return error_set(err, ERROR_INVALID, "not a ListAndWatchResponse");
    int result = 0;
    if (m->n_devices > KWIRE_IDS_MAX) {
        result = error_set(err, ERROR_TOO_LARGE, "over %d devices", KWIRE_IDS_MAX);
    } else {
        out->items = arena_new(a, struct kwire_device, m->n_devices);
        for (size_t i = 0; i < m->n_devices; i++) {
            const V1beta1__Device *d = m->devices[i];
            bool at = d->topology != NULL && d->topology->n_nodes > 0;
            out->items[out->len++] =
                (struct kwire_device){.id = arena_strdup(a, d->id),
                                      .healthy = strcmp(d->health, "Healthy") == 0,
                                      .numa = at ? d->topology->nodes[0]->id : -1};
        }
    }
    v1beta1__list_and_watch_response__free_unpacked(m, NULL);
    return result;
}

void kwire_encode_preferred(const struct kwire_ids *available, const struct kwire_ids *must,
                            size_t count, struct strbuf *out)
{
    V1beta1__ContainerPreferredAllocationRequest one, *all = &one;
    v1beta1__container_preferred_allocation_request__init(&one);
    one.available_deviceids = unconst(available);
    one.n_available_deviceids = available->len;
    one.must_include_deviceids = unconst(must);
    one.n_must_include_deviceids = must->len;
    one.allocation_size = (int32_t)count;
    V1beta1__PreferredAllocationRequest m;
    v1beta1__preferred_allocation_request__init(&m);
    m.container_requests = &all;
    m.n_container_requests = 1;
    pack(&m.base, out);
    free(one.available_deviceids);
    free(one.must_include_deviceids);
}

int kwire_decode_preferred(const void *bytes, size_t n, struct arena *a, struct kwire_ids *out,
                           struct error *err)
{
    V1beta1__PreferredAllocationResponse *m =
        v1beta1__preferred_allocation_response__unpack(NULL, n, bytes);
    *out = (struct kwire_ids){0};
    if (m == NULL)
        return error_set(err, ERROR_INVALID, "not a PreferredAllocationResponse");
    if (m->n_container_responses > 0) {
        const V1beta1__ContainerPreferredAllocationResponse *c = m->container_responses[0];
        size_t len = c->n_deviceids < KWIRE_IDS_MAX ? c->n_deviceids : KWIRE_IDS_MAX;
        out->items = arena_new(a, const char *, len);
        for (; out->len < len; out->len++)
            out->items[out->len] = arena_strdup(a, c->deviceids[out->len]);
    }
    v1beta1__preferred_allocation_response__free_unpacked(m, NULL);
    return 0;
}

void kwire_encode_allocate(const struct kwire_ids *ids, struct strbuf *out)
{
    V1beta1__ContainerAllocateRequest one, *all = &one;
    v1beta1__container_allocate_request__init(&one);
    one.devices_ids = unconst(ids);
    one.n_devices_ids = ids->len;
    V1beta1__AllocateRequest m;
    v1beta1__allocate_request__init(&m);
    m.container_requests = &all;
    m.n_container_requests = 1;
    pack(&m.base, out);
    free(one.devices_ids);
}

static void copy_answer(const V1beta1__ContainerAllocateResponse *c, struct arena *a,
                        struct kwire_answer *out)
{
    AUTO_STRBUF bytes;
    strbuf_init(&bytes);
    pack(&c->base, &bytes);
    char *kept = arena_alloc(a, bytes.len + 1);
    memcpy(kept, strbuf_str(&bytes), bytes.len);
    *out = (struct kwire_answer){.bytes = kept, .bytes_len = bytes.len};
    out->envs = arena_new(a, struct kwire_env, c->n_envs);
    for (; out->envs_len < c->n_envs; out->envs_len++)
        out->envs[out->envs_len] =
            (struct kwire_env){.key = arena_strdup(a, c->envs[out->envs_len]->key),
                               .value = arena_strdup(a, c->envs[out->envs_len]->value)};
}

int kwire_decode_allocate(const void *bytes, size_t n, struct arena *a, struct kwire_answer *out,
                          struct error *err)
{
    V1beta1__AllocateResponse *m = v1beta1__allocate_response__unpack(NULL, n, bytes);
    *out = (struct kwire_answer){0};
    if (m == NULL)
        return error_set(err, ERROR_INVALID, "not an AllocateResponse");
    int result = 0;
    if (m->n_container_responses == 0)
        result = error_set(err, ERROR_INVALID, "no containers return in allocation response");
    else
        copy_answer(m->container_responses[0], a, out);
    v1beta1__allocate_response__free_unpacked(m, NULL);
    return result;
}

static void add_line(struct strbuf *out, const struct strbuf *line)
{
    if (strstr(strbuf_str(out), strbuf_str(line)) == NULL)
        strbuf_add(out, line->ptr, line->len);
}

void kwire_print_rest(const struct kwire_answer *answer, struct strbuf *out)
{
    V1beta1__ContainerAllocateResponse *c = v1beta1__container_allocate_response__unpack(
        NULL, answer->bytes_len, (const uint8_t *)answer->bytes);
    AUTO_STRBUF line;
    strbuf_init(&line);
    for (size_t i = 0; c != NULL && i < c->n_mounts; i++) {
        strbuf_reset(&line);
        strbuf_addf(&line, "mount %s %s %s\n", c->mounts[i]->host_path,
                    c->mounts[i]->container_path, c->mounts[i]->read_only ? "ro" : "rw");
        add_line(out, &line);
    }
    for (size_t i = 0; c != NULL && i < c->n_devices; i++) {
        strbuf_reset(&line);
        strbuf_addf(&line, "device %s %s %s\n", c->devices[i]->host_path,
                    c->devices[i]->container_path, c->devices[i]->permissions);
        add_line(out, &line);
    }
    for (size_t i = 0; c != NULL && i < c->n_cdi_devices; i++) {
        strbuf_reset(&line);
        strbuf_addf(&line, "cdi %s\n", c->cdi_devices[i]->name);
        add_line(out, &line);
    }
    if (c != NULL)
        v1beta1__container_allocate_response__free_unpacked(c, NULL);
}

int kwire_decode_answer(const void *bytes, size_t n, struct arena *a, struct kwire_answer *out,
                        struct error *err)
{
    V1beta1__ContainerAllocateResponse *m =
        v1beta1__container_allocate_response__unpack(NULL, n, bytes);
    *out = (struct kwire_answer){0};
    if (m == NULL)
        return error_set(err, ERROR_INVALID, "not a ContainerAllocateResponse");
    copy_answer(m, a, out);
    v1beta1__container_allocate_response__free_unpacked(m, NULL);
    return 0;
}

void kwire_encode_pre_start(const struct kwire_ids *ids, struct strbuf *out)
{
    V1beta1__PreStartContainerRequest m;
    v1beta1__pre_start_container_request__init(&m);
    m.devices_ids = unconst(ids);
    m.n_devices_ids = ids->len;
    pack(&m.base, out);
    free(m.devices_ids);
}

/* ---- pod resources ---- */

static V1__ContainerResources *make_container(const struct kwire_container *from, struct arena *a)
{
    V1__ContainerResources *to = arena_new(a, V1__ContainerResources, 1);
    v1__container_resources__init(to);
    to->name = unconst_str(from->name);
    to->devices = arena_new(a, V1__ContainerDevices *, from->held_len);
    for (; to->n_devices < from->held_len; to->n_devices++) {
        const struct kwire_held *h = &from->held[to->n_devices];
        V1__ContainerDevices *d = arena_new(a, V1__ContainerDevices, 1);
        v1__container_devices__init(d);
        d->resource_name = unconst_str(h->resource);
        d->n_device_ids = h->ids.len;
        d->device_ids = arena_new(a, char *, h->ids.len);
        if (h->ids.len > 0)
            memcpy(d->device_ids, h->ids.items, h->ids.len * sizeof *d->device_ids);
        to->devices[to->n_devices] = d;
    }
    return to;
}

void kwire_encode_pods(const struct kwire_pod *pods, size_t n, struct strbuf *out)
{
    struct arena a;
    arena_init(&a, 16 * 1024);
    V1__ListPodResourcesResponse m;
    v1__list_pod_resources_response__init(&m);
    m.pod_resources = arena_new(&a, V1__PodResources *, n);
    for (; m.n_pod_resources < n; m.n_pod_resources++) {
        const struct kwire_pod *from = &pods[m.n_pod_resources];
        V1__PodResources *p = arena_new(&a, V1__PodResources, 1);
        v1__pod_resources__init(p);
        p->name = unconst_str(from->name);
        p->namespace_ = unconst_str(from->ns);
        p->containers = arena_new(&a, V1__ContainerResources *, from->containers_len);
        for (; p->n_containers < from->containers_len; p->n_containers++)
            p->containers[p->n_containers] = make_container(&from->containers[p->n_containers], &a);
        m.pod_resources[m.n_pod_resources] = p;
    }
    pack(&m.base, out);
    arena_deinit(&a);
}
