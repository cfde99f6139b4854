// SPDX-License-Identifier: Apache-2.0
/*
 * devices - registered plugins and allocated devices.
 *
 *   a resource:
 *     Register ─► dial back (GetDevicePluginOptions) ─► ListAndWatch is opened ─► first list:
 *     connected ─► stream ends: not connected: nothing allocatable, the capacity stays for five
 *     minutes and then becomes 0; only another Register opens the stream again
 *
 * Registration and the list of pods are answered on threads of the transport, and a plugin requests
 * the list while we wait for its Allocate: so no call is made with the lock held.
 */
#include "test/local/nodes/devices.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device-plugin/kubelet/wire.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "test/local/nodes/devices_internal.h"

enum { STOPPED_GRACE_MS = 5 * 60 * 1000, DIAL_MS = 5000 };

/* ---- what is known; the lock is held ---- */

struct devices_plugin *devices_plugin_of(struct devices *d, const char *resource, bool make)
{
    for (size_t i = 0; i < d->plugins.len; i++)
        if (str_eq(d->plugins.items[i]->name, resource))
            return d->plugins.items[i];
    if (!make)
        return NULL;
    struct devices_plugin *p = mem_new(struct devices_plugin, 1);
    p->devices = d;
    p->name = mem_strdup(resource);
    arena_init(&p->arena, 0);
    vec_push(&d->plugins, p);
    return p;
}

static void plugin_free(struct devices_plugin *p)
{
    arena_deinit(&p->arena);
    free(p->name);
    free(p->socket);
    free(p);
}

struct devices_holding *devices_holding_of(struct devices *d, const char *uid,
                                           const char *container, const char *resource)
{
    for (size_t i = 0; i < d->holdings.len; i++) {
        struct devices_holding *h = d->holdings.items[i];
        if (str_eq(h->uid, uid) && str_eq(h->container, container) && str_eq(h->resource, resource))
            return h;
    }
    return NULL;
}

void devices_hold(struct devices *d, const char *uid, const char *container, const char *resource,
                  const struct kwire_ids *ids, const struct kwire_answer *answer)
{
    struct devices_holding *h = mem_new(struct devices_holding, 1);
    arena_init(&h->arena, 0);
    h->uid = arena_strdup(&h->arena, uid);
    h->container = arena_strdup(&h->arena, container);
    h->resource = arena_strdup(&h->arena, resource);
    h->ids.items = arena_new(&h->arena, const char *, ids->len);
    for (; h->ids.len < ids->len; h->ids.len++)
        h->ids.items[h->ids.len] = arena_strdup(&h->arena, ids->items[h->ids.len]);
    struct error err = ERROR_INIT;
    if (kwire_decode_answer(answer->bytes, answer->bytes_len, &h->arena, &h->answer, &err) < 0)
        log_warn("an answer of Allocate cannot be kept", kv("error", err.text));
    vec_push(&d->holdings, h);
}

void devices_holding_free(struct devices_holding *h)
{
    arena_deinit(&h->arena);
    free(h);
}

static void pod_entry_free(struct devices_pod *p)
{
    arena_deinit(&p->arena);
    free(p);
}

/* ---- ListAndWatch: the stream's thread ---- */

struct listener { /* belongs to the stream; freed with its last message */
    struct devices *devices;
    char *resource;
    uint64_t epoch;
};

static void on_list(void *arg, const void *bytes, size_t n)
{
    struct listener *l = arg;
    struct devices *d = l->devices;
    struct error err = ERROR_INIT;
    pthread_mutex_lock(&d->lock);
    struct devices_plugin *p = devices_plugin_of(d, l->resource, false);
    bool current = p != NULL && p->epoch == l->epoch;
    if (current && bytes != NULL) {
        arena_reset(&p->arena);
        p->list = (struct kwire_devices){0};
        if (kwire_decode_devices(bytes, n, &p->arena, &p->list, &err) < 0)
            log_warn("a list of devices cannot be read", kv("resource", p->name),
                     kv("error", err.text));
        p->connected = p->was_listed = true;
    } else if (current) {
        p->connected = false;
        p->lost_ms = clock_mono_ms();
    }
    pthread_mutex_unlock(&d->lock);
    if (current) {
        devices_checkpoint_write(d);
        d->config.changed(d->config.arg);
    }
    if (bytes == NULL) {
        free(l->resource);
        free(l);
    }
}

/* ---- Registration: a thread of its server ---- */

static int dial_back(const char *socket, struct kwire_options *options, struct error *err)
{
    struct rpc_channel *c;
    AUTO_STRBUF reply;
    strbuf_init(&reply);
    if (rpc_channel_new(&c, socket, err) < 0)
        return -1;
    int result = rpc_channel_call(c, WIRE_OPTIONS, "", 0, DIAL_MS, true, &reply, err);
    rpc_channel_free(c);
    return result < 0 ? -1 : kwire_decode_options(strbuf_str(&reply), reply.len, options, err);
}

static int open_stream(struct devices *d, const struct kwire_register *r, const char *socket,
                       const struct kwire_options *options)
{
    struct listener *l = mem_new(struct listener, 1);
    l->devices = d;
    l->resource = mem_strdup(r->resource);
    pthread_mutex_lock(&d->lock);
    struct devices_plugin *p = devices_plugin_of(d, r->resource, true);
    struct stream *old = p->stream;
    p->stream = NULL;
    uint64_t epoch = ++d->epochs;
    p->epoch = l->epoch = epoch;
    p->connected = p->was_listed = false;
    p->options = *options;
    free(p->socket);
    p->socket = mem_strdup(socket);
    pthread_mutex_unlock(&d->lock);
    stream_close(old);
    struct stream *s = stream_open(socket, WIRE_LIST_AND_WATCH, on_list, l);
    /* If another plugin has registered the same resource meanwhile, its stream counts. */
    pthread_mutex_lock(&d->lock);
    struct stream *late = p->epoch == epoch ? NULL : s;
    if (late == NULL)
        p->stream = s;
    pthread_mutex_unlock(&d->lock);
    stream_close(late);
    devices_checkpoint_write(d);
    return 0;
}

static int on_register(void *arg, const void *bytes, size_t n, struct strbuf *reply,
                       struct error *err)
{
    struct devices *d = arg;
    struct arena a;
    struct kwire_register r;
    struct kwire_options options = {0};
    char socket[DEVICES_PATH];
    (void)reply; /* Empty */
    arena_init(&a, 0);
    int result = kwire_decode_register(bytes, n, &a, &r, err);
    if (result == 0 && !str_eq(r.version, WIRE_VERSION))
        result = error_set(err, ERROR_INVALID,
                           "requested API version \"%s\" is not supported by kubelet. Supported "
                           "version is [\"" WIRE_VERSION "\"]",
                           r.version);
    else if (result == 0 && strchr(r.resource, '/') == NULL)
        result = error_set(err, ERROR_INVALID,
                           "the ResourceName \"%s\" is not an extended resource", r.resource);
    else if (result == 0 &&
             (strchr(r.endpoint, '/') != NULL ||
              !str_format(socket, sizeof socket, "%s/%s", d->plugin_dir, r.endpoint)))
        result = error_set(err, ERROR_INVALID, "not an endpoint: '%s'", r.endpoint);
    if (result == 0)
        result = dial_back(socket, &options, err);
    if (result == 0)
        result = open_stream(d, &r, socket, &options);
    arena_deinit(&a);
    return result;
}

/* ---- PodResources: a thread of its server ---- */

static void fill_container(struct devices *d, const struct devices_pod *p, const char *name,
                           struct kwire_container *out, struct arena *a)
{
    out->name = name;
    out->held = arena_new(a, struct kwire_held, d->holdings.len);
    for (size_t i = 0; i < d->holdings.len; i++) {
        const struct devices_holding *h = d->holdings.items[i];
        if (str_eq(h->uid, p->uid) && str_eq(h->container, name))
            out->held[out->held_len++] =
                (struct kwire_held){.resource = h->resource, .ids = h->ids};
    }
}

static int on_pods(void *arg, const void *bytes, size_t n, struct strbuf *reply, struct error *err)
{
    struct devices *d = arg;
    struct arena a;
    (void)bytes, (void)n, (void)err;
    arena_init(&a, 4096);
    pthread_mutex_lock(&d->lock);
    struct kwire_pod *pods = arena_new(&a, struct kwire_pod, d->pods.len);
    for (size_t i = 0; i < d->pods.len; i++) {
        const struct devices_pod *p = d->pods.items[i];
        pods[i].ns = p->ns;
        pods[i].name = p->name;
        pods[i].containers = arena_new(&a, struct kwire_container, p->containers_len);
        for (; pods[i].containers_len < p->containers_len; pods[i].containers_len++)
            fill_container(d, p, p->containers[pods[i].containers_len],
                           &pods[i].containers[pods[i].containers_len], &a);
    }
    kwire_encode_pods(pods, d->pods.len, reply);
    pthread_mutex_unlock(&d->lock);
    arena_deinit(&a);
    return 0;
}

static const struct rpc_method registry_methods[] = {{.path = WIRE_REGISTER, .unary = on_register}};
static const struct rpc_method lister_methods[] = {{.path = WIRE_LIST_PODS, .unary = on_pods}};

/* ---- life: the node's thread ---- */

int devices_new(struct devices **out, const struct devices_config *c, struct error *err)
{
    struct devices *d = mem_new(struct devices, 1);
    d->config = *c;
    pthread_mutex_init(&d->lock, NULL);
    bool fits =
        str_format(d->plugin_dir, sizeof d->plugin_dir, "%s/device-plugins", c->kubelet_dir) &&
        str_format(d->registration, RPC_PATH_MAX + 1, "%s/kubelet.sock", d->plugin_dir) &&
        str_format(d->pod_resources, RPC_PATH_MAX + 1, "%s/pod-resources/kubelet.sock",
                   c->kubelet_dir) &&
        str_format(d->checkpoint, sizeof d->checkpoint, "%s/kubelet_internal_checkpoint",
                   d->plugin_dir);
    if (!fits) {
        devices_free(d);
        return error_set(err, ERROR_INVALID, "%s: sockets in it would have names over %d bytes",
                         c->kubelet_dir, RPC_PATH_MAX);
    }
    *out = d;
    return 0;
}

static void sweep(const char *dir)
{
    DIR *list = opendir(dir);
    if (list == NULL)
        return;
    for (const struct dirent *e; (e = readdir(list)) != NULL;) {
        char path[2 * DEVICES_PATH + 256];
        struct stat st;
        if (str_format(path, sizeof path, "%s/%s", dir, e->d_name) && lstat(path, &st) == 0 &&
            S_ISSOCK(st.st_mode))
            (void)unlink(path);
    }
    (void)closedir(list);
}

int devices_start(struct devices *d, struct error *err)
{
    struct rpc_server_config lister = {
        .path = d->pod_resources, .methods = lister_methods, .methods_len = 1, .arg = d};
    struct rpc_server_config registry = {
        .path = d->registration, .methods = registry_methods, .methods_len = 1, .arg = d};
    pthread_mutex_lock(&d->lock);
    int read = devices_checkpoint_read(d, err);
    pthread_mutex_unlock(&d->lock);
    d->fresh = read < 0 && err->code == ERROR_NOT_FOUND;
    if (read < 0 && !d->fresh)
        return -1;
    sweep(d->plugin_dir);
    if (rpc_server_start(&d->lister, &lister, err) < 0)
        return -1;
    return rpc_server_start(&d->registry, &registry, err);
}

void devices_stop(struct devices *d)
{
    if (d->registry != NULL)
        rpc_server_stop(d->registry, 0);
    if (d->lister != NULL)
        rpc_server_stop(d->lister, 0);
    d->registry = d->lister = NULL;
    for (size_t i = 0; i < d->plugins.len; i++)
        stream_close(d->plugins.items[i]->stream);
    pthread_mutex_lock(&d->lock);
    for (size_t i = 0; i < d->plugins.len; i++)
        plugin_free(d->plugins.items[i]);
    for (size_t i = 0; i < d->holdings.len; i++)
        devices_holding_free(d->holdings.items[i]);
    d->plugins.len = d->holdings.len = 0;
    pthread_mutex_unlock(&d->lock);
}

void devices_free(struct devices *d)
{
    if (d == NULL)
        return;
    devices_stop(d);
    for (size_t i = 0; i < d->pods.len; i++)
        pod_entry_free(d->pods.items[i]);
    vec_deinit(&d->pods);
    vec_deinit(&d->holdings);
    vec_deinit(&d->plugins);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

bool devices_is_fresh(const struct devices *d)
{
    return d->fresh;
}

void devices_add_pod(struct devices *d, const struct podview *v)
{
    struct devices_pod *p = mem_new(struct devices_pod, 1);
    arena_init(&p->arena, 0);
    p->uid = arena_strdup(&p->arena, v->model->uid);
    p->ns = arena_strdup(&p->arena, v->model->ns);
    p->name = arena_strdup(&p->arena, v->model->name);
    p->containers = arena_new(&p->arena, const char *, v->containers_len);
    for (size_t i = 0; i < v->containers_len; i++)
        if (!v->containers[i].init || v->containers[i].model->sidecar)
            p->containers[p->containers_len++] =
                arena_strdup(&p->arena, v->containers[i].model->name);
    pthread_mutex_lock(&d->lock);
    vec_push(&d->pods, p);
    pthread_mutex_unlock(&d->lock);
}

/* The lock is held. */
static bool drop_holdings(struct devices *d, const char *uid)
{
    bool any = false;
    for (size_t i = 0; i < d->holdings.len;) {
        if (!str_eq(d->holdings.items[i]->uid, uid)) {
            i++;
            continue;
        }
        devices_holding_free(d->holdings.items[i]);
        vec_remove_swap(&d->holdings, i);
        any = true;
    }
    return any;
}

void devices_remove_pod(struct devices *d, const char *uid)
{
    pthread_mutex_lock(&d->lock);
    for (size_t i = 0; i < d->pods.len; i++)
        if (str_eq(d->pods.items[i]->uid, uid)) {
            pod_entry_free(d->pods.items[i]);
            for (; i + 1 < d->pods.len; i++) /* the order of arrival stays */
                d->pods.items[i] = d->pods.items[i + 1];
            d->pods.len--;
            break;
        }
    bool any = drop_holdings(d, uid);
    pthread_mutex_unlock(&d->lock);
    if (any)
        devices_checkpoint_write(d);
}

void devices_keep_only(struct devices *d, bool (*known)(void *arg, const char *uid), void *arg)
{
    bool any = false;
    pthread_mutex_lock(&d->lock);
    for (size_t i = 0; i < d->holdings.len;) {
        if (known(arg, d->holdings.items[i]->uid)) {
            i++;
            continue;
        }
        devices_holding_free(d->holdings.items[i]);
        vec_remove_swap(&d->holdings, i);
        any = true;
    }
    pthread_mutex_unlock(&d->lock);
    if (any)
        devices_checkpoint_write(d);
}

void devices_print_env(struct devices *d, const char *uid, const char *container,
                       struct strbuf *out)
{
    struct map seen; /* two resources of one container answer the same: once is enough */
    map_init(&seen);
    pthread_mutex_lock(&d->lock);
    for (size_t i = 0; i < d->holdings.len; i++) {
        const struct devices_holding *h = d->holdings.items[i];
        if (!str_eq(h->uid, uid) || !str_eq(h->container, container))
            continue;
        for (size_t e = 0; e < h->answer.envs_len; e++)
            if (map_put(&seen, h->answer.envs[e].key, &h->answer.envs[e]) == NULL)
                strbuf_addf(out, "%s=%s\n", h->answer.envs[e].key, h->answer.envs[e].value);
    }
    pthread_mutex_unlock(&d->lock);
    map_deinit(&seen);
}

void devices_print_rest(struct devices *d, const char *uid, const char *container,
                        struct strbuf *out)
{
    pthread_mutex_lock(&d->lock);
    for (size_t i = 0; i < d->holdings.len; i++) {
        const struct devices_holding *h = d->holdings.items[i];
        if (str_eq(h->uid, uid) && str_eq(h->container, container))
            kwire_print_rest(&h->answer, out);
    }
    pthread_mutex_unlock(&d->lock);
}

void devices_amounts(struct devices *d,
                     void (*fn)(void *arg, const char *resource, int64_t capacity,
                                int64_t allocatable),
                     void *arg)
{
    pthread_mutex_lock(&d->lock);
    for (size_t i = 0; i < d->plugins.len; i++) {
        const struct devices_plugin *p = d->plugins.items[i];
        int64_t healthy = 0, all = (int64_t)p->list.len;
        for (size_t k = 0; k < p->list.len; k++)
            healthy += p->list.items[k].healthy;
        if (!p->connected)
            healthy = 0;
        if (!p->connected && clock_mono_ms() - p->lost_ms > STOPPED_GRACE_MS)
            all = 0;
        fn(arg, p->name, all, healthy);
    }
    pthread_mutex_unlock(&d->lock);
}
