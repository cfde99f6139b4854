// SPDX-License-Identifier: Apache-2.0
#include "test/fake/kubelet/kubelet.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device-plugin/kubelet/rpc.h"
#include "device-plugin/kubelet/wire.h"
#include "lib/base/clock.h"
#include "proto/deviceplugin.pb-c.h"
#include "proto/podresources.pb-c.h"
#include "test/fake/kubelet/stream.h"

enum { PODS = 64, CONTAINERS = 4, RESOURCES = 4, CALL_MS = 5000, PATH = 256 };

struct fake_container {
    char name[64];
    struct kubelet_ids held[RESOURCES]; /* by resource slot */
};

struct fake_pod {
    char ns[64], name[64];
    struct fake_container containers[CONTAINERS];
    size_t containers_len;
};

struct plugin { /* one registered resource */
    struct kubelet *kubelet;
    char resource[64];
    char socket[PATH];
    struct stream *stream;
    struct kubelet_ids ids;
    bool healthy[KUBELET_IDS];
    bool listed;
    int registrations;
};

struct kubelet {
    char dir[PATH], plugin_dir[PATH], registration[PATH], pod_resources[PATH];
    struct rpc_server *registry, *lister;
    pthread_mutex_t lock; /* everything below */
    int refuse, lose, limit;
    struct plugin plugins[RESOURCES];
    size_t plugins_len;
    struct fake_pod *pods[PODS];
    size_t pods_len;
};

/* What does not fit is a mistake of the test. */
#define put(...)                      \
    do {                              \
        if (!str_format(__VA_ARGS__)) \
            abort();                  \
    } while (0)

static struct plugin *plugin_of(struct kubelet *k, const char *resource, bool make)
{
    for (size_t i = 0; i < k->plugins_len; i++)
        if (str_eq(k->plugins[i].resource, resource))
            return &k->plugins[i];
    if (!make || k->plugins_len == RESOURCES)
        return NULL;
    struct plugin *p = &k->plugins[k->plugins_len++];
    p->kubelet = k;
    put(p->resource, sizeof p->resource, "%s", resource);
    return p;
}

static size_t slot(const struct kubelet *k, const struct plugin *p)
{
    return (size_t)(p - k->plugins);
}

/* ---- Registration ---- */

static void on_list(void *arg, const void *bytes, size_t n)
{
    struct plugin *p = arg;
    if (bytes == NULL)
        return;
    V1beta1__ListAndWatchResponse *m = v1beta1__list_and_watch_response__unpack(NULL, n, bytes);
    if (m == NULL)
        return;
    pthread_mutex_lock(&p->kubelet->lock);
    p->ids.len = 0;
    for (size_t i = 0; i < m->n_devices && i < KUBELET_IDS; i++) {
        put(p->ids.items[i], KUBELET_ID, "%s", m->devices[i]->id);
        p->healthy[i] = str_eq(m->devices[i]->health, "Healthy");
        p->ids.len++;
    }
    p->listed = true;
    pthread_mutex_unlock(&p->kubelet->lock);
    v1beta1__list_and_watch_response__free_unpacked(m, NULL);
}

static int dial_back(const char *socket, struct error *err)
{
    struct rpc_channel *c;
    AUTO_STRBUF reply;
    strbuf_init(&reply);
    if (rpc_channel_new(&c, socket, err) < 0)
        return -1;
    int result = rpc_channel_call(c, WIRE_OPTIONS, "", 0, CALL_MS, true, &reply, err);
    rpc_channel_free(c);
    return result;
}

static int on_register(void *arg, const void *bytes, size_t n, struct strbuf *reply,
                       struct error *err)
{
    struct kubelet *k = arg;
    (void)reply;
    V1beta1__RegisterRequest *m = v1beta1__register_request__unpack(NULL, n, bytes);
    if (m == NULL)
        return error_set(err, ERROR_INVALID, "not a RegisterRequest");
    char socket[PATH];
    int result = 0;
    put(socket, sizeof socket, "%s/%s", k->plugin_dir, m->endpoint);
    pthread_mutex_lock(&k->lock);
    if (k->refuse > 0) {
        k->refuse--;
        result = error_set(err, ERROR_UNSUPPORTED, "told to refuse");
    } else if (!str_eq(m->version, "v1beta1") || m->options == NULL ||
               !m->options->pre_start_required || !m->options->get_preferred_allocation_available) {
        result = error_set(err, ERROR_INVALID, "version or options");
    }
    pthread_mutex_unlock(&k->lock);
    if (result == 0)
        result = dial_back(socket, err);
    if (result == 0) {
        pthread_mutex_lock(&k->lock);
        struct plugin *p = plugin_of(k, m->resource_name, true);
        struct stream *old = p->stream;
        p->stream = NULL;
        p->listed = false;
        p->registrations++;
        put(p->socket, sizeof p->socket, "%s", socket);
        pthread_mutex_unlock(&k->lock);
        stream_close(old);
        struct stream *s = stream_open(socket, WIRE_LIST_AND_WATCH, on_list, p);
        pthread_mutex_lock(&k->lock);
        p->stream = s;
        bool lost = k->lose > 0;
        k->lose -= lost;
        for (int64_t end = clock_mono_ms() + CALL_MS;
             lost && !p->listed && clock_mono_ms() < end;) {
            pthread_mutex_unlock(&k->lock);
            clock_sleep_ms(5);
            pthread_mutex_lock(&k->lock);
        }
        pthread_mutex_unlock(&k->lock);
        if (lost)
            result = error_set(err, ERROR_UNAVAILABLE, "told to lose the answer");
    }
    v1beta1__register_request__free_unpacked(m, NULL);
    return result;
}

/* ---- pod resources ---- */

static void pack_container(V1__ContainerResources *to, struct kubelet *k,
                           struct fake_container *from)
{
    v1__container_resources__init(to);
    to->name = from->name;
    to->devices = calloc(RESOURCES, sizeof *to->devices);
    for (size_t r = 0; r < k->plugins_len; r++) {
        struct kubelet_ids *held = &from->held[r];
        if (held->len == 0)
            continue;
        V1__ContainerDevices *d = calloc(1, sizeof *d);
        v1__container_devices__init(d);
        d->resource_name = k->plugins[r].resource;
        d->device_ids = calloc(held->len, sizeof *d->device_ids);
        for (size_t i = 0; i < held->len; i++)
            d->device_ids[i] = held->items[held->len - 1 - i]; /* the real order is random */
        d->n_device_ids = held->len;
        to->devices[to->n_devices++] = d;
    }
}

static int on_pods(void *arg, const void *bytes, size_t n, struct strbuf *reply, struct error *err)
{
    struct kubelet *k = arg;
    (void)bytes, (void)n;
    pthread_mutex_lock(&k->lock);
    if (k->limit > 0) {
        k->limit--;
        pthread_mutex_unlock(&k->lock);
        return error_set(err, ERROR_THROTTLED, "rejected by rate limit");
    }
    V1__ListPodResourcesResponse m;
    v1__list_pod_resources_response__init(&m);
    V1__PodResources pods[PODS], *pointers[PODS];
    V1__ContainerResources containers[PODS][CONTAINERS], *container_pointers[PODS][CONTAINERS];
    m.pod_resources = pointers;
    m.n_pod_resources = k->pods_len;
    for (size_t i = 0; i < k->pods_len; i++) {
        struct fake_pod *p = k->pods[i];
        v1__pod_resources__init(&pods[i]);
        pods[i].name = p->name;
        pods[i].namespace_ = p->ns;
        pods[i].containers = container_pointers[i];
        pods[i].n_containers = p->containers_len;
        for (size_t c = 0; c < p->containers_len; c++) {
            pack_container(&containers[i][c], k, &p->containers[c]);
            container_pointers[i][c] = &containers[i][c];
        }
        pointers[i] = &pods[i];
    }
    size_t size = v1__list_pod_resources_response__get_packed_size(&m);
    uint8_t *out = malloc(size + 1);
    strbuf_add(reply, out, v1__list_pod_resources_response__pack(&m, out));
    free(out);
    for (size_t i = 0; i < k->pods_len; i++) {
        for (size_t c = 0; c < k->pods[i]->containers_len; c++) {
            for (size_t d = 0; d < containers[i][c].n_devices; d++) {
                free(containers[i][c].devices[d]->device_ids);
                free(containers[i][c].devices[d]);
            }
            free(containers[i][c].devices);
        }
    }
    pthread_mutex_unlock(&k->lock);
    return 0;
}

static const struct rpc_method registry_methods[] = {{.path = WIRE_REGISTER, .unary = on_register}};
static const struct rpc_method lister_methods[] = {{.path = WIRE_LIST_PODS, .unary = on_pods}};

/* ---- life ---- */

struct kubelet *kubelet_new(const char *dir)
{
    struct kubelet *k = calloc(1, sizeof *k);
    if (k == NULL)
        abort();
    pthread_mutex_init(&k->lock, NULL);
    char path[PATH];
    put(k->dir, sizeof k->dir, "%s", dir);
    put(k->plugin_dir, sizeof k->plugin_dir, "%s/device-plugins", dir);
    put(k->registration, sizeof k->registration, "%s/device-plugins/kubelet.sock", dir);
    put(path, sizeof path, "%s/pod-resources", dir);
    put(k->pod_resources, sizeof k->pod_resources, "%s/pod-resources/kubelet.sock", dir);
    if (mkdir(k->plugin_dir, 0755) < 0 || mkdir(path, 0755) < 0)
        abort();
    return k;
}

static void sweep(const char *dir)
{
    DIR *d = opendir(dir);
    if (d == NULL)
        return;
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        char path[2 * PATH];
        struct stat st;
        put(path, sizeof path, "%s/%s", dir, e->d_name);
        if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
            unlink(path);
    }
    closedir(d);
}

void kubelet_start(struct kubelet *k)
{
    struct error err = ERROR_INIT;
    struct rpc_server_config lister = {
        .path = k->pod_resources, .methods = lister_methods, .methods_len = 1, .arg = k};
    struct rpc_server_config registry = {
        .path = k->registration, .methods = registry_methods, .methods_len = 1, .arg = k};
    sweep(k->plugin_dir);
    if (rpc_server_start(&k->lister, &lister, &err) < 0 ||
        rpc_server_start(&k->registry, &registry, &err) < 0) {
        fprintf(stderr, "kubelet twin: %s\n", err.text);
        abort();
    }
}

/* A socket file without a listener, as a killed process leaves it. */
static void leave_socket(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    put(at.sun_path, sizeof at.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof at) < 0)
        abort();
    close(fd);
}

void kubelet_stop(struct kubelet *k)
{
    rpc_server_stop(k->registry, 0);
    rpc_server_stop(k->lister, 0);
    if (k->registry != NULL)
        leave_socket(k->registration);
    k->registry = k->lister = NULL;
    for (size_t i = 0; i < k->plugins_len; i++) {
        stream_close(k->plugins[i].stream);
        k->plugins[i].stream = NULL;
        k->plugins[i].listed = false;
    }
}

void kubelet_free(struct kubelet *k)
{
    kubelet_stop(k);
    char path[PATH];
    sweep(k->plugin_dir);
    rmdir(k->plugin_dir);
    unlink(k->pod_resources);
    put(path, sizeof path, "%s/pod-resources", k->dir);
    rmdir(path);
    for (size_t i = 0; i < k->pods_len; i++)
        free(k->pods[i]);
    pthread_mutex_destroy(&k->lock);
    free(k);
}

const char *kubelet_plugin_dir(const struct kubelet *k)
{
    return k->plugin_dir;
}

const char *kubelet_pod_resources(const struct kubelet *k)
{
    return k->pod_resources;
}

void kubelet_refuse_registrations(struct kubelet *k, int n)
{
    pthread_mutex_lock(&k->lock);
    k->refuse = n;
    pthread_mutex_unlock(&k->lock);
}

void kubelet_lose_answers(struct kubelet *k, int n)
{
    pthread_mutex_lock(&k->lock);
    k->lose = n;
    pthread_mutex_unlock(&k->lock);
}

void kubelet_limit_lists(struct kubelet *k, int n)
{
    pthread_mutex_lock(&k->lock);
    k->limit = n;
    pthread_mutex_unlock(&k->lock);
}

void kubelet_drop_stream(struct kubelet *k, const char *resource)
{
    pthread_mutex_lock(&k->lock);
    struct plugin *p = plugin_of(k, resource, false);
    struct stream *s = p != NULL ? p->stream : NULL;
    if (p != NULL)
        p->stream = NULL;
    pthread_mutex_unlock(&k->lock);
    stream_close(s);
}

/* ---- what it knows ---- */

int kubelet_registrations(struct kubelet *k, const char *resource)
{
    pthread_mutex_lock(&k->lock);
    const struct plugin *p = plugin_of(k, resource, false);
    int n = p != NULL ? p->registrations : 0;
    pthread_mutex_unlock(&k->lock);
    return n;
}

int kubelet_devices(struct kubelet *k, const char *resource, int *healthy)
{
    pthread_mutex_lock(&k->lock);
    const struct plugin *p = plugin_of(k, resource, false);
    int n = p != NULL && p->listed ? (int)p->ids.len : -1, ok = 0;
    for (size_t i = 0; p != NULL && p->listed && i < p->ids.len; i++)
        ok += p->healthy[i];
    pthread_mutex_unlock(&k->lock);
    if (healthy != NULL)
        *healthy = ok;
    return n;
}

static bool held_by_any(const struct kubelet *k, size_t r, const char *id)
{
    for (size_t i = 0; i < k->pods_len; i++)
        for (size_t c = 0; c < k->pods[i]->containers_len; c++)
            for (size_t n = 0; n < k->pods[i]->containers[c].held[r].len; n++)
                if (str_eq(k->pods[i]->containers[c].held[r].items[n], id))
                    return true;
    return false;
}

void kubelet_free_ids(struct kubelet *k, const char *resource, struct kubelet_ids *out)
{
    out->len = 0;
    pthread_mutex_lock(&k->lock);
    const struct plugin *p = plugin_of(k, resource, false);
    for (size_t i = 0; p != NULL && i < p->ids.len; i++)
        if (p->healthy[i] && !held_by_any(k, slot(k, p), p->ids.items[i]))
            memcpy(out->items[out->len++], p->ids.items[i], KUBELET_ID);
    pthread_mutex_unlock(&k->lock);
}

void kubelet_add_pod(struct kubelet *k, const char *ns, const char *name,
                     const char *const *containers)
{
    struct fake_pod *p = calloc(1, sizeof *p);
    if (p == NULL || k->pods_len == PODS)
        abort();
    put(p->ns, sizeof p->ns, "%s", ns);
    put(p->name, sizeof p->name, "%s", name);
    for (; *containers != NULL && p->containers_len < CONTAINERS; containers++)
        put(p->containers[p->containers_len++].name, sizeof p->containers[0].name, "%s",
            *containers);
    pthread_mutex_lock(&k->lock);
    k->pods[k->pods_len++] = p;
    pthread_mutex_unlock(&k->lock);
}

static struct fake_pod **pod_of(struct kubelet *k, const char *ns, const char *name)
{
    for (size_t i = 0; i < k->pods_len; i++)
        if (str_eq(k->pods[i]->ns, ns) && str_eq(k->pods[i]->name, name))
            return &k->pods[i];
    abort();
}

void kubelet_remove_pod(struct kubelet *k, const char *ns, const char *name)
{
    pthread_mutex_lock(&k->lock);
    struct fake_pod **at = pod_of(k, ns, name);
    free(*at);
    *at = k->pods[--k->pods_len];
    pthread_mutex_unlock(&k->lock);
}

void kubelet_hold(struct kubelet *k, const char *ns, const char *name, const char *container,
                  const char *resource, const struct kubelet_ids *ids)
{
    pthread_mutex_lock(&k->lock);
    struct fake_pod *p = *pod_of(k, ns, name);
    for (size_t c = 0; c < p->containers_len; c++)
        if (str_eq(p->containers[c].name, container))
            p->containers[c].held[slot(k, plugin_of(k, resource, true))] = *ids;
    pthread_mutex_unlock(&k->lock);
}

/* ---- what it asks ---- */

static int call(struct kubelet *k, const char *resource, const char *method,
                const ProtobufCMessage *m, struct strbuf *reply, struct error *err)
{
    char socket[PATH] = "";
    struct rpc_channel *c;
    pthread_mutex_lock(&k->lock);
    const struct plugin *p = plugin_of(k, resource, false);
    if (p != NULL)
        put(socket, sizeof socket, "%s", p->socket);
    pthread_mutex_unlock(&k->lock);
    if (rpc_channel_new(&c, socket, err) < 0)
        return -1;
    size_t n = protobuf_c_message_get_packed_size(m);
    uint8_t *bytes = malloc(n + 1);
    protobuf_c_message_pack(m, bytes);
    int result = rpc_channel_call(c, method, bytes, n, CALL_MS, true, reply, err);
    free(bytes);
    rpc_channel_free(c);
    return result;
}

/* protobuf-c has no const: pointers into a copy that outlives the call. */
static char **pointers(struct kubelet_ids *ids)
{
    char **p = calloc(ids->len + 1, sizeof *p);
    if (p == NULL)
        abort();
    for (size_t i = 0; i < ids->len; i++)
        p[i] = ids->items[i];
    return p;
}

int kubelet_prefer(struct kubelet *k, const char *resource, const struct kubelet_ids *available,
                   size_t count, struct kubelet_ids *out, struct error *err)
{
    struct kubelet_ids ids = *available;
    AUTO_STRBUF reply;
    strbuf_init(&reply);
    V1beta1__ContainerPreferredAllocationRequest one, *all = &one;
    v1beta1__container_preferred_allocation_request__init(&one);
    one.available_deviceids = pointers(&ids);
    one.n_available_deviceids = ids.len;
    one.allocation_size = (int32_t)count;
    V1beta1__PreferredAllocationRequest m;
    v1beta1__preferred_allocation_request__init(&m);
    m.container_requests = &all;
    m.n_container_requests = 1;
    int result = call(k, resource, WIRE_PREFERRED, &m.base, &reply, err);
    free(one.available_deviceids);
    out->len = 0;
    if (result < 0)
        return -1;
    V1beta1__PreferredAllocationResponse *r = v1beta1__preferred_allocation_response__unpack(
        NULL, reply.len, (const uint8_t *)strbuf_str(&reply));
    if (r == NULL || r->n_container_responses != 1)
        return error_set(err, ERROR_INTERNAL, "preferred: bad answer");
    for (size_t i = 0; i < r->container_responses[0]->n_deviceids && i < KUBELET_IDS; i++)
        put(out->items[out->len++], KUBELET_ID, "%s", r->container_responses[0]->deviceids[i]);
    v1beta1__preferred_allocation_response__free_unpacked(r, NULL);
    return 0;
}

int kubelet_allocate(struct kubelet *k, const char *resource, const struct kubelet_ids *ids,
                     struct kubelet_answer *out, struct error *err)
{
    struct kubelet_ids copy = *ids;
    AUTO_STRBUF reply;
    strbuf_init(&reply);
    V1beta1__ContainerAllocateRequest one, *all = &one;
    v1beta1__container_allocate_request__init(&one);
    one.devices_ids = pointers(&copy);
    one.n_devices_ids = copy.len;
    V1beta1__AllocateRequest m;
    v1beta1__allocate_request__init(&m);
    m.container_requests = &all;
    m.n_container_requests = 1;
    int result = call(k, resource, WIRE_ALLOCATE, &m.base, &reply, err);
    free(one.devices_ids);
    out->envs_len = 0;
    if (result < 0)
        return -1;
    V1beta1__AllocateResponse *r =
        v1beta1__allocate_response__unpack(NULL, reply.len, (const uint8_t *)strbuf_str(&reply));
    if (r == NULL || r->n_container_responses != 1)
        return error_set(err, ERROR_INTERNAL, "allocate: bad answer");
    const V1beta1__ContainerAllocateResponse *c = r->container_responses[0];
    for (size_t i = 0; i < c->n_envs && i < KUBELET_ENVS; i++) {
        struct kubelet_env *e = &out->envs[out->envs_len++];
        put(e->key, sizeof e->key, "%s", c->envs[i]->key);
        put(e->value, sizeof e->value, "%s", c->envs[i]->value);
    }
    v1beta1__allocate_response__free_unpacked(r, NULL);
    return 0;
}

int kubelet_pre_start(struct kubelet *k, const char *resource, const struct kubelet_ids *ids,
                      struct error *err)
{
    struct kubelet_ids copy = *ids;
    AUTO_STRBUF reply;
    strbuf_init(&reply);
    V1beta1__PreStartContainerRequest m;
    v1beta1__pre_start_container_request__init(&m);
    m.devices_ids = pointers(&copy);
    m.n_devices_ids = copy.len;
    int result = call(k, resource, WIRE_PRE_START, &m.base, &reply, err);
    free(m.devices_ids);
    return result;
}

int kubelet_give(struct kubelet *k, const char *ns, const char *name, const char *container,
                 const char *resource, size_t count, struct kubelet_ids *ids,
                 struct kubelet_answer *out, struct error *err)
{
    struct kubelet_ids available;
    kubelet_free_ids(k, resource, &available);
    if (available.len < count)
        return error_set(err, ERROR_RANGE, "requested: %zu, available: %zu", count, available.len);
    if (kubelet_prefer(k, resource, &available, count, ids, err) < 0 ||
        kubelet_allocate(k, resource, ids, out, err) < 0)
        return -1;
    kubelet_hold(k, ns, name, container, resource, ids);
    return 0;
}

int kubelet_admit(struct kubelet *k, const char *ns, const char *name, const char *container,
                  const char *resource, size_t count, struct kubelet_answer *out, struct error *err)
{
    struct kubelet_ids ids;
    if (kubelet_give(k, ns, name, container, resource, count, &ids, out, err) < 0)
        return -1;
    return kubelet_pre_start(k, resource, &ids, err);
}

const char *kubelet_env(const struct kubelet_answer *a, const char *key)
{
    for (size_t i = 0; i < a->envs_len; i++)
        if (str_eq(a->envs[i].key, key))
            return a->envs[i].value;
    return NULL;
}
