// SPDX-License-Identifier: Apache-2.0
/*
 * devices_allocate - admission's part of the device manager, in the kubelet's order: init
 * containers first, then the others; for each container its resources in no particular order; for
 * each resource ids of the pod's own init containers again, then those that the plugin prefers,
 * then any; then Allocate. The first failure ends it, and the pod with it.
 */
#include <stdlib.h>
#include <string.h>

#include "device-plugin/kubelet/wire.h"
#include "lib/base/clock.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "test/local/nodes/devices.h"
#include "test/local/nodes/devices_internal.h"

/* Ids of ordinary init containers, which those after them use again. */
struct reuse {
    const char *resource;
    struct kwire_ids ids;
};

struct admission_step {
    struct devices *devices;
    const struct podview *view;
    struct arena arena;
    struct reuse reuse[RESOURCES_EXTRA_MAX];
    size_t reuse_len;
};

/* As rpc.c reads the status of the plugin's answer; the kubelet prints its name. */
static const char *code_name(enum error_code code)
{
    switch (code) {
    case ERROR_INVALID:
        return "InvalidArgument";
    case ERROR_NOT_FOUND:
        return "NotFound";
    case ERROR_CONFLICT:
        return "Aborted";
    case ERROR_TOO_LARGE:
    case ERROR_THROTTLED:
        return "ResourceExhausted";
    case ERROR_TIMEOUT:
        return "DeadlineExceeded";
    case ERROR_UNAVAILABLE:
        return "Unavailable";
    case ERROR_CANCELLED:
        return "Canceled";
    case ERROR_UNSUPPORTED:
        return "FailedPrecondition";
    default:
        return "Internal";
    }
}

static int ask(const char *socket, const char *method, const struct strbuf *request,
               struct strbuf *reply, struct error *err)
{
    struct rpc_channel *c;
    struct error why = ERROR_INIT;
    if (rpc_channel_new(&c, socket, err) < 0)
        return -1;
    int result = rpc_channel_call(c, method, strbuf_str(request), request->len, DEVICES_CALL_MS,
                                  false, reply, &why);
    rpc_channel_free(c);
    if (result == 0)
        return 0;
    size_t skip = str_starts(why.text, method) ? strlen(method) + 2 : 0;
    return error_set(err, why.code, "rpc error: code = %s desc = %s", code_name(why.code),
                     why.text + skip);
}

static struct reuse *reuse_of(struct admission_step *s, const char *resource)
{
    for (size_t i = 0; i < s->reuse_len; i++)
        if (str_eq(s->reuse[i].resource, resource))
            return &s->reuse[i];
    return NULL;
}

static bool has_id(const struct kwire_ids *ids, const char *id)
{
    for (size_t i = 0; i < ids->len; i++)
        if (str_eq(ids->items[i], id))
            return true;
    return false;
}

/* What an init container took may be taken again after it; what another container took of that may
 * not. */
static void note_reuse(struct admission_step *s, const struct podview_container *c,
                       const char *resource, const struct kwire_ids *taken)
{
    struct reuse *r = reuse_of(s, resource);
    bool ordinary_init = c->init && !c->model->sidecar;
    if (r == NULL) {
        if (!ordinary_init || s->reuse_len == RESOURCES_EXTRA_MAX)
            return;
        r = &s->reuse[s->reuse_len++];
        *r = (struct reuse){.resource = arena_strdup(&s->arena, resource)};
    }
    const char **items = arena_new(&s->arena, const char *, r->ids.len + taken->len);
    size_t n = 0;
    for (size_t i = 0; i < r->ids.len; i++)
        if (ordinary_init || !has_id(taken, r->ids.items[i]))
            items[n++] = r->ids.items[i];
    for (size_t i = 0; ordinary_init && i < taken->len; i++)
        if (!has_id(&r->ids, taken->items[i]))
            items[n++] = arena_strdup(&s->arena, taken->items[i]);
    r->ids = (struct kwire_ids){items, n};
}

/* Everything one Allocate needs, copied while the lock was held. */
struct choice {
    char *socket;
    struct kwire_options options;
    struct kwire_ids free, chosen;
    bool done; /* the container has them already */
};

/* The lock is held. Healthy ids that are free, in the order of the plugin's list. */
static void list_free(struct admission_step *s, const struct devices_plugin *p,
                      struct kwire_ids *out)
{
    struct devices *d = s->devices;
    struct map used;
    map_init(&used);
    for (size_t i = 0; i < d->holdings.len; i++) {
        struct devices_holding *h = d->holdings.items[i];
        for (size_t k = 0; str_eq(h->resource, p->name) && k < h->ids.len; k++)
            map_put(&used, h->ids.items[k], h);
    }
    out->items = arena_new(&s->arena, const char *, p->list.len);
    for (size_t i = 0; i < p->list.len; i++)
        if (p->list.items[i].healthy && map_get(&used, p->list.items[i].id) == NULL)
            out->items[out->len++] = arena_strdup(&s->arena, p->list.items[i].id);
    map_deinit(&used);
}

/* The lock is held. */
static int look(struct admission_step *s, const struct podview_container *c, const char *resource,
                size_t count, struct choice *out, struct error *err)
{
    struct devices *d = s->devices;
    const char *uid = s->view->model->uid;
    const struct devices_holding *had = devices_holding_of(d, uid, c->model->name, resource);
    const struct devices_plugin *p = devices_plugin_of(d, resource, false);
    size_t healthy = 0;
    if (had != NULL && had->ids.len != count)
        return error_set(err, ERROR_INVALID,
                         "pod \"%s\" container \"%s\" changed request for resource \"%s\" from %zu "
                         "to %zu",
                         uid, c->model->name, resource, had->ids.len, count);
    if (had != NULL) {
        out->done = true;
        note_reuse(s, c, resource, &had->ids);
        return 0;
    }
    for (size_t i = 0; p != NULL && p->connected && i < p->list.len; i++)
        healthy += p->list.items[i].healthy;
    if (p == NULL || healthy == 0)
        return error_set(err, ERROR_UNAVAILABLE,
                         "no healthy devices present; cannot allocate unhealthy devices %s",
                         resource);
    out->socket = arena_strdup(&s->arena, p->socket);
    out->options = p->options;
    out->chosen.items = arena_new(&s->arena, const char *, count);
    const struct reuse *r = reuse_of(s, resource);
    for (size_t i = 0; r != NULL && i < r->ids.len && out->chosen.len < count; i++)
        out->chosen.items[out->chosen.len++] = r->ids.items[i];
    list_free(s, p, &out->free);
    if (out->free.len < count - out->chosen.len)
        return error_set(err, ERROR_RANGE,
                         "requested number of devices unavailable for %s. Requested: %zu, "
                         "Available: %zu",
                         resource, count - out->chosen.len, out->free.len);
    return 0;
}

static int ask_preferred(struct admission_step *s, struct choice *c, size_t count,
                         struct error *err)
{
    AUTO_STRBUF request;
    AUTO_STRBUF reply;
    strbuf_init(&request);
    strbuf_init(&reply);
    struct kwire_ids available = {arena_new(&s->arena, const char *, c->free.len + c->chosen.len),
                                  0},
                     preferred = {0};
    for (size_t i = 0; i < c->free.len; i++)
        available.items[available.len++] = c->free.items[i];
    for (size_t i = 0; i < c->chosen.len; i++)
        available.items[available.len++] = c->chosen.items[i];
    kwire_encode_preferred(&available, &c->chosen, count, &request);
    if (ask(c->socket, WIRE_PREFERRED, &request, &reply, err) < 0)
        return error_wrap(err, "device plugin GetPreferredAllocation rpc failed with err");
    if (kwire_decode_preferred(strbuf_str(&reply), reply.len, &s->arena, &preferred, err) < 0)
        return -1;
    for (size_t i = 0; i < preferred.len && c->chosen.len < count; i++)
        if (has_id(&c->free, preferred.items[i]) && !has_id(&c->chosen, preferred.items[i]))
            c->chosen.items[c->chosen.len++] = preferred.items[i];
    return 0;
}

static int allocate_one(struct admission_step *s, const struct podview_container *c,
                        const char *resource, size_t count, struct error *err)
{
    struct devices *d = s->devices;
    struct choice choice = {0};
    AUTO_STRBUF request;
    AUTO_STRBUF reply;
    strbuf_init(&request);
    strbuf_init(&reply);
    pthread_mutex_lock(&d->lock);
    int result = look(s, c, resource, count, &choice, err);
    pthread_mutex_unlock(&d->lock);
    if (result < 0 || choice.done)
        return result;
    if (choice.chosen.len < count && choice.options.preferred &&
        ask_preferred(s, &choice, count, err) < 0)
        return -1;
    for (size_t i = 0; i < choice.free.len && choice.chosen.len < count; i++)
        if (!has_id(&choice.chosen, choice.free.items[i]))
            choice.chosen.items[choice.chosen.len++] = choice.free.items[i];
    kwire_encode_allocate(&choice.chosen, &request);
    struct kwire_answer answer;
    if (ask(choice.socket, WIRE_ALLOCATE, &request, &reply, err) < 0 ||
        kwire_decode_allocate(strbuf_str(&reply), reply.len, &s->arena, &answer, err) < 0)
        return -1;
    pthread_mutex_lock(&d->lock);
    devices_hold(d, s->view->model->uid, c->model->name, resource, &choice.chosen, &answer);
    pthread_mutex_unlock(&d->lock);
    note_reuse(s, c, resource, &choice.chosen);
    devices_checkpoint_write(d);
    return 0;
}

static bool is_registered(struct devices *d, const char *resource)
{
    pthread_mutex_lock(&d->lock);
    bool known = devices_plugin_of(d, resource, false) != NULL;
    pthread_mutex_unlock(&d->lock);
    return known;
}

int devices_allocate(struct devices *d, const struct podview *v, struct error *err)
{
    struct admission_step *s = mem_new(struct admission_step, 1);
    int result = 0;
    s->devices = d;
    s->view = v;
    arena_init(&s->arena, 4096);
    for (size_t i = 0; i < v->containers_len && result == 0; i++) {
        const struct resources *limits = &v->containers[i].model->limits;
        /* The kubelet walks a Go map: either order of two resources occurs. */
        bool backwards = clock_jitter(2) == 1;
        for (size_t k = 0; k < limits->extra_len && result == 0; k++) {
            const struct resource_extra *x =
                &limits->extra[backwards ? limits->extra_len - 1 - k : k];
            if (x->value > 0 && x->value <= KWIRE_IDS_MAX && is_registered(d, x->name))
                result = allocate_one(s, &v->containers[i], x->name, (size_t)x->value, err);
        }
    }
    arena_deinit(&s->arena);
    free(s);
    return result;
}

int devices_pre_start(struct devices *d, const char *uid, const char *container, struct error *err)
{
    int result = 0;
    for (size_t i = 0; result == 0; i++) {
        AUTO_STRBUF request;
        AUTO_STRBUF reply;
        strbuf_init(&request);
        strbuf_init(&reply);
        char *socket = NULL;
        pthread_mutex_lock(&d->lock);
        const struct devices_holding *h = i < d->holdings.len ? d->holdings.items[i] : NULL;
        if (h != NULL && str_eq(h->uid, uid) && str_eq(h->container, container)) {
            const struct devices_plugin *p = devices_plugin_of(d, h->resource, false);
            if (p != NULL && p->connected && p->options.pre_start)
                socket = mem_strdup(p->socket);
            kwire_encode_pre_start(&h->ids, &request);
        }
        pthread_mutex_unlock(&d->lock);
        if (h == NULL)
            break;
        if (socket != NULL && ask(socket, WIRE_PRE_START, &request, &reply, err) < 0)
            result = error_wrap(err, "device plugin PreStartContainer rpc failed with err");
        free(socket);
    }
    return result;
}
