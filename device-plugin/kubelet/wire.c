// SPDX-License-Identifier: Apache-2.0
/* protobuf-c's structs hold plain char *; strings are copied into a scratch arena to avoid casting
 * const away. */
#include "device-plugin/kubelet/wire.h"

#include "proto/deviceplugin.pb-c.h"
#include "proto/podresources.pb-c.h"

static void pack(const ProtobufCMessage *m, struct strbuf *out)
{
    size_t n = protobuf_c_message_get_packed_size(m);
    strbuf_reserve(out, n + 1);
    protobuf_c_message_pack(m, (uint8_t *)out->ptr + out->len);
    out->len += n;
    out->ptr[out->len] = '\0';
}

static int malformed(struct error *err, const char *what)
{
    return error_set(err, ERROR_INVALID, "%s: not a message of this kind", what);
}

static int copy_ids(char **items, size_t n, struct arena *a, struct inventory_ids *out,
                    struct error *err)
{
    if (n > WIRE_IDS_MAX)
        return error_set(err, ERROR_TOO_LARGE, "%zu device ids; at most %d are read", n,
                         WIRE_IDS_MAX);
    out->items = arena_new(a, const char *, n);
    out->len = n;
    for (size_t i = 0; i < n; i++)
        out->items[i] = arena_strdup(a, items[i]);
    return 0;
}

static int check_containers(size_t n, struct error *err)
{
    if (n > WIRE_CONTAINERS_MAX)
        return error_set(err, ERROR_TOO_LARGE, "%zu container requests; at most %d are read", n,
                         WIRE_CONTAINERS_MAX);
    return 0;
}

void wire_encode_options(struct strbuf *out)
{
    V1beta1__DevicePluginOptions m = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
    m.pre_start_required = 1;
    m.get_preferred_allocation_available = 1;
    pack(&m.base, out);
}

void wire_encode_register(const char *endpoint, const char *resource, struct strbuf *out)
{
    struct arena a;
    arena_init(&a, 0);
    V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
    options.pre_start_required = 1;
    options.get_preferred_allocation_available = 1;
    V1beta1__RegisterRequest m;
    v1beta1__register_request__init(&m);
    m.version = arena_strdup(&a, WIRE_VERSION);
    m.endpoint = arena_strdup(&a, endpoint);
    m.resource_name = arena_strdup(&a, resource);
    m.options = &options;
    pack(&m.base, out);
    arena_deinit(&a);
}

void wire_encode_devices(const struct inventory_devices *d, struct strbuf *out)
{
    struct arena a;
    arena_init(&a, 0);
    V1beta1__ListAndWatchResponse m = V1BETA1__LIST_AND_WATCH_RESPONSE__INIT;
    m.devices = arena_new(&a, V1beta1__Device *, d->len);
    m.n_devices = d->len;
    for (size_t i = 0; i < d->len; i++) {
        V1beta1__Device *x = arena_new(&a, V1beta1__Device, 1);
        v1beta1__device__init(x);
        x->id = arena_strdup(&a, d->items[i].id);
        x->health = arena_strdup(&a, d->items[i].healthy ? "Healthy" : "Unhealthy");
        if (d->items[i].numa >= 0) {
            V1beta1__NUMANode *node = arena_new(&a, V1beta1__NUMANode, 1);
            v1beta1__numanode__init(node);
            node->id = d->items[i].numa;
            x->topology = arena_new(&a, V1beta1__TopologyInfo, 1);
            v1beta1__topology_info__init(x->topology);
            x->topology->nodes = arena_new(&a, V1beta1__NUMANode *, 1);
            x->topology->nodes[0] = node;
            x->topology->n_nodes = 1;
        }
        m.devices[i] = x;
    }
    pack(&m.base, out);
    arena_deinit(&a);
}

int wire_decode_preferred(const void *bytes, size_t n, struct arena *a,
                          struct wire_preference **out, size_t *len, struct error *err)
{
    V1beta1__PreferredAllocationRequest *m =
        v1beta1__preferred_allocation_request__unpack(NULL, n, bytes);
    if (m == NULL)
        return malformed(err, "GetPreferredAllocation");
    int result = check_containers(m->n_container_requests, err);
    if (result == 0) {
        *len = m->n_container_requests;
        *out = arena_new(a, struct wire_preference, *len);
    }
    for (size_t i = 0; i < m->n_container_requests && result == 0; i++) {
        const V1beta1__ContainerPreferredAllocationRequest *c = m->container_requests[i];
        if (c->allocation_size < 0)
            result = error_set(err, ERROR_INVALID, "allocation_size: must not be negative: %d",
                               c->allocation_size);
        else if (copy_ids(c->available_deviceids, c->n_available_deviceids, a, &(*out)[i].available,
                          err) < 0 ||
                 copy_ids(c->must_include_deviceids, c->n_must_include_deviceids, a,
                          &(*out)[i].must, err) < 0)
            result = -1;
        else
            (*out)[i].count = (size_t)c->allocation_size;
    }
    v1beta1__preferred_allocation_request__free_unpacked(m, NULL);
    return result;
}

void wire_encode_preferred(const struct inventory_ids *answers, size_t len, struct strbuf *out)
{
    struct arena a;
    arena_init(&a, 0);
    V1beta1__PreferredAllocationResponse m = V1BETA1__PREFERRED_ALLOCATION_RESPONSE__INIT;
    m.container_responses = arena_new(&a, V1beta1__ContainerPreferredAllocationResponse *, len);
    m.n_container_responses = len;
    for (size_t i = 0; i < len; i++) {
        V1beta1__ContainerPreferredAllocationResponse *c =
            arena_new(&a, V1beta1__ContainerPreferredAllocationResponse, 1);
        v1beta1__container_preferred_allocation_response__init(c);
        c->deviceids = arena_new(&a, char *, answers[i].len);
        c->n_deviceids = answers[i].len;
        for (size_t k = 0; k < answers[i].len; k++)
            c->deviceids[k] = arena_strdup(&a, answers[i].items[k]);
        m.container_responses[i] = c;
    }
    pack(&m.base, out);
    arena_deinit(&a);
}

int wire_decode_allocate(const void *bytes, size_t n, struct arena *a, struct inventory_ids **out,
                         size_t *len, struct error *err)
{
    V1beta1__AllocateRequest *m = v1beta1__allocate_request__unpack(NULL, n, bytes);
    if (m == NULL)
        return malformed(err, "Allocate");
    int result = check_containers(m->n_container_requests, err);
    if (result == 0) {
        *len = m->n_container_requests;
        *out = arena_new(a, struct inventory_ids, *len);
    }
    for (size_t i = 0; i < m->n_container_requests && result == 0; i++)
        result = copy_ids(m->container_requests[i]->devices_ids,
                          m->container_requests[i]->n_devices_ids, a, &(*out)[i], err);
    v1beta1__allocate_request__free_unpacked(m, NULL);
    return result;
}

void wire_encode_allocate(const struct response *answers, size_t len, struct strbuf *out)
{
    struct arena a;
    arena_init(&a, 0);
    V1beta1__AllocateResponse m = V1BETA1__ALLOCATE_RESPONSE__INIT;
    m.container_responses = arena_new(&a, V1beta1__ContainerAllocateResponse *, len);
    m.n_container_responses = len;
    for (size_t i = 0; i < len; i++) {
        const struct response *r = &answers[i];
        V1beta1__ContainerAllocateResponse *c =
            arena_new(&a, V1beta1__ContainerAllocateResponse, 1);
        v1beta1__container_allocate_response__init(c);
        c->envs = arena_new(&a, V1beta1__ContainerAllocateResponse__EnvsEntry *, r->envs_len);
        c->n_envs = r->envs_len;
        for (size_t k = 0; k < r->envs_len; k++) {
            c->envs[k] = arena_new(&a, V1beta1__ContainerAllocateResponse__EnvsEntry, 1);
            v1beta1__container_allocate_response__envs_entry__init(c->envs[k]);
            c->envs[k]->key = arena_strdup(&a, r->envs[k].key);
            c->envs[k]->value = arena_strdup(&a, r->envs[k].value);
        }
        c->mounts = arena_new(&a, V1beta1__Mount *, r->mounts_len);
        c->n_mounts = r->mounts_len;
        for (size_t k = 0; k < r->mounts_len; k++) {
            c->mounts[k] = arena_new(&a, V1beta1__Mount, 1);
            v1beta1__mount__init(c->mounts[k]);
            c->mounts[k]->container_path = arena_strdup(&a, r->mounts[k].container_path);
            c->mounts[k]->host_path = arena_strdup(&a, r->mounts[k].host_path);
            c->mounts[k]->read_only = r->mounts[k].read_only;
        }
        c->devices = arena_new(&a, V1beta1__DeviceSpec *, r->devices_len);
        c->n_devices = r->devices_len;
        for (size_t k = 0; k < r->devices_len; k++) {
            c->devices[k] = arena_new(&a, V1beta1__DeviceSpec, 1);
            v1beta1__device_spec__init(c->devices[k]);
            c->devices[k]->container_path = c->devices[k]->host_path =
                arena_strdup(&a, r->devices[k]);
            c->devices[k]->permissions = arena_strdup(&a, "rw");
        }
        c->cdi_devices = arena_new(&a, V1beta1__CDIDevice *, r->cdi_len);
        c->n_cdi_devices = r->cdi_len;
        for (size_t k = 0; k < r->cdi_len; k++) {
            c->cdi_devices[k] = arena_new(&a, V1beta1__CDIDevice, 1);
            v1beta1__cdidevice__init(c->cdi_devices[k]);
            c->cdi_devices[k]->name = arena_strdup(&a, r->cdi[k]);
        }
        m.container_responses[i] = c;
    }
    pack(&m.base, out);
    arena_deinit(&a);
}

int wire_decode_pre_start(const void *bytes, size_t n, struct arena *a, struct inventory_ids *out,
                          struct error *err)
{
    V1beta1__PreStartContainerRequest *m =
        v1beta1__pre_start_container_request__unpack(NULL, n, bytes);
    if (m == NULL)
        return malformed(err, "PreStartContainer");
    int result = copy_ids(m->devices_ids, m->n_devices_ids, a, out, err);
    v1beta1__pre_start_container_request__free_unpacked(m, NULL);
    return result;
}

/* A resource may have several entries, one per NUMA node. */
static int copy_container(const V1__ContainerResources *from, struct arena *a,
                          struct match_listed_container *to, struct error *err)
{
    size_t totals[MODE_RESOURCES] = {0};
    enum mode_resource r;
    to->name = arena_strdup(a, from->name);
    for (size_t i = 0; i < from->n_devices; i++)
        if (mode_resource_parse(from->devices[i]->resource_name, &r))
            totals[r] += from->devices[i]->n_device_ids;
    for (int k = 0; k < MODE_RESOURCES; k++) {
        if (totals[k] > WIRE_IDS_MAX)
            return error_set(err, ERROR_TOO_LARGE,
                             "container %s: %zu device ids of %s; at most %d are read", to->name,
                             totals[k], mode_resource_name((enum mode_resource)k), WIRE_IDS_MAX);
        to->held[k].items = arena_new(a, const char *, totals[k]);
    }
    for (size_t i = 0; i < from->n_devices; i++) {
        const V1__ContainerDevices *d = from->devices[i];
        if (!mode_resource_parse(d->resource_name, &r))
            continue;
        for (size_t k = 0; k < d->n_device_ids; k++)
            to->held[r].items[to->held[r].len++] = arena_strdup(a, d->device_ids[k]);
    }
    return 0;
}

int wire_decode_pods(const void *bytes, size_t n, struct arena *a, struct match_listing *out,
                     struct error *err)
{
    V1__ListPodResourcesResponse *m = v1__list_pod_resources_response__unpack(NULL, n, bytes);
    if (m == NULL)
        return malformed(err, "pod resources");
    int result = 0;
    if (m->n_pod_resources > WIRE_PODS_MAX)
        result = error_set(err, ERROR_TOO_LARGE, "%zu pods; at most %d are read",
                           m->n_pod_resources, WIRE_PODS_MAX);
    else
        out->pods = arena_new(a, struct match_listed, m->n_pod_resources);
    out->len = 0;
    for (size_t i = 0; i < m->n_pod_resources && result == 0; i++) {
        const V1__PodResources *p = m->pod_resources[i];
        struct match_listed *to = &out->pods[out->len++];
        to->ns = arena_strdup(a, p->namespace_);
        to->name = arena_strdup(a, p->name);
        to->key = arena_printf(a, "%s/%s", to->ns, to->name);
        to->containers = arena_new(a, struct match_listed_container, p->n_containers);
        to->containers_len = p->n_containers;
        for (size_t k = 0; k < p->n_containers && result == 0; k++)
            if (copy_container(p->containers[k], a, &to->containers[k], err) < 0)
                result = error_wrap(err, "pod %s", to->key);
    }
    v1__list_pod_resources_response__free_unpacked(m, NULL);
    return result;
}
