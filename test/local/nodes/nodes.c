// SPDX-License-Identifier: Apache-2.0
/*
 * nodes - the simulated nodes of one file, as clients of an API server:
 *
 *   one reflector of all pods ──by spec.nodeName──► mailbox of a crew ─► simnode ─► API server
 *                                                                       └─► device plugin (child)
 *
 * A field selector names one node only, so one watch of everything is cheaper than one for each.
 * Nothing here asks the API server on the caller's thread: in `cosched-local serve` that thread is
 * the API server's.
 */
#include "test/local/nodes/nodes.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "device-plugin/kubelet/rpc.h"
#include "lib/base/log.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "lib/kube/events.h"
#include "lib/kube/reflector.h"
#include "test/local/nodes/crew.h"
#include "test/local/nodes/podfiles.h"
#include "test/local/nodes/nodes_file.h"

enum { SHARED_CREWS = 4, NODES_PER_SHARED = 16, EVENTS_DRAIN_MS = 200 };

struct place { /* of one node */
    struct crew *crew;
    struct simnode *node;
};

struct nodes {
    struct nodes_file file;
    char *directory;
    struct events *events;
    struct VEC(struct crew *) crews;
    struct place *places; /* as in the file */
    struct map by_name;   /* struct place */
    struct reflector *pods;
    pthread_mutex_t cards; /* nodes_fail_card: one at a time */
};

/* ---- pods, on the reflector's thread ---- */

static int decode(json *j, void **out, struct error *err)
{
    struct podview *v;
    if (podview_decode(j, &v, err) < 0)
        return -1;
    *out = v;
    return 0;
}

static void free_view(void *v)
{
    podview_free(v);
}

static struct place *place_of(const struct nodes *n, const struct podview *v)
{
    return v->model->node != NULL ? map_get(&n->by_name, v->model->node) : NULL;
}

static bool deliver_reset(struct nodes *n, struct reflector_message *l)
{
    bool open = true;
    for (size_t c = 0; c < n->crews.len; c++) {
        struct VEC(struct podview *) own = {0};
        for (size_t i = 0; i < l->len; i++) {
            struct podview *v = l->objects[i];
            const struct place *p = v != NULL ? place_of(n, v) : NULL;
            if (p == NULL || p->crew != n->crews.items[c])
                continue;
            vec_push(&own, v);
            l->objects[i] = NULL;
        }
        open = crew_reset(n->crews.items[c], own.items, own.len) && open;
    }
    return open;
}

static bool deliver(void *arg, struct reflector_message *l)
{
    struct nodes *n = arg;
    bool open = true;
    if (l->event == REFLECTOR_RESET) {
        open = deliver_reset(n, l);
    } else {
        struct podview *v = l->objects[0];
        const struct place *p = place_of(n, v);
        if (p != NULL && l->event == REFLECTOR_PUT) {
            l->objects[0] = NULL;
            open = crew_put(p->crew, p->node, v);
        } else if (p != NULL) {
            open = crew_gone(p->crew, p->node, v->model->uid);
        } else if (l->event == REFLECTOR_DELETE && v->model->containers_len == 0) {
            /* It could not be decoded, so its node is unknown. */
            for (size_t i = 0; i < n->crews.len; i++)
                open = crew_gone(n->crews.items[i], NULL, v->model->uid) && open;
        }
    }
    reflector_message_free(l);
    return open;
}

/* ---- life ---- */

static int make_crew(struct nodes *n, const struct crew_config *c, struct crew **out,
                     struct error *err)
{
    if (crew_new(out, c, err) < 0)
        return -1;
    vec_push(&n->crews, *out);
    return 0;
}

static int man(struct nodes *n, const struct crew_config *config, struct error *err)
{
    struct crew *shared[SHARED_CREWS] = {NULL};
    size_t turn = 0;
    for (size_t i = 0; i < n->file.len; i++) {
        struct nodes_spec *s = &n->file.items[i];
        struct crew *own = NULL, **crew = &own;
        if (s->role != NODES_FILE_KUBELET)
            crew = &shared[turn++ / NODES_PER_SHARED % SHARED_CREWS];
        if (*crew == NULL && make_crew(n, config, crew, err) < 0)
            return -1;
        n->places[i].crew = *crew;
        if (crew_add(*crew, s, &n->places[i].node, err) < 0)
            return -1;
        map_put(&n->by_name, s->name, &n->places[i]);
    }
    for (size_t i = 0; i < n->crews.len; i++)
        if (crew_start(n->crews.items[i], err) < 0)
            return -1;
    return 0;
}

static int absolute(const char *path, char **out, struct error *err)
{
    char *real = realpath(path, NULL);
    if (real == NULL)
        return error_errno(err, errno, "%s", path);
    *out = real;
    return 0;
}

static int start(struct nodes *n, const struct nodes_config *c, struct error *err)
{
    static const struct events_options event_options = {.queue = 1000, .qps = 50};
    struct reflector_config pods = {.kind = &kube_pods,
                                    .type = {.decode = decode, .free = free_view},
                                    .deliver = deliver,
                                    .arg = n,
                                    .backoff_max_ms = 2000};
    if (nodes_file_load(&n->file, c->file, err) < 0 || podfiles_mkdir(c->directory, err) < 0 ||
        absolute(c->directory, &n->directory, err) < 0)
        return -1;
    for (size_t i = 0; i < n->file.len; i++)
        if (n->file.items[i].plugin && access(str_or_empty(c->plugin_binary), X_OK) < 0)
            return error_errno(err, errno, "device plugin %s", str_or_empty(c->plugin_binary));
    n->places = mem_new(struct place, n->file.len + 1);
    if (events_start(&n->events, c->kube, c->kube_options, &event_options, "kubelet", err) < 0)
        return -1;
    struct crew_config crew = {.kube = c->kube,
                               .kube_options = c->kube_options,
                               .events = n->events,
                               .directory = n->directory,
                               .plugin_binary = c->plugin_binary,
                               .kubeconfig_path = c->kubeconfig_path};
    if (man(n, &crew, err) < 0)
        return -1;
    log_info("simulated nodes", kv("nodes", n->file.len), kv("threads", n->crews.len),
             kv("directory", n->directory));
    return reflector_start(&n->pods, c->kube, c->kube_options, &pods, err);
}

int nodes_start(struct nodes **out, const struct nodes_config *c, struct error *err)
{
    struct nodes *n = mem_new(struct nodes, 1);
    map_init(&n->by_name);
    pthread_mutex_init(&n->cards, NULL);
    rpc_init();
    if (start(n, c, err) < 0) {
        nodes_stop(n);
        return -1;
    }
    *out = n;
    return 0;
}

void nodes_stop(struct nodes *n)
{
    if (n == NULL)
        return;
    for (size_t i = 0; i < n->crews.len; i++)
        crew_close(n->crews.items[i]);
    if (n->pods != NULL)
        reflector_stop(n->pods);
    for (size_t i = 0; i < n->crews.len; i++)
        crew_free(n->crews.items[i]);
    if (n->events != NULL)
        events_stop(n->events, EVENTS_DRAIN_MS);
    vec_deinit(&n->crews);
    map_deinit(&n->by_name);
    free(n->places);
    free(n->directory);
    nodes_file_deinit(&n->file);
    pthread_mutex_destroy(&n->cards);
    free(n);
    rpc_shutdown();
}

/* ---- faults ---- */

static const struct place *place_by_name(const struct nodes *n, const char *node, struct error *err)
{
    const struct place *p = map_get(&n->by_name, node);
    if (p == NULL)
        (void)error_set(err, ERROR_NOT_FOUND, "there is no simulated node %s", node);
    return p;
}

int nodes_check(struct nodes *n, const char *node, int card, struct error *err)
{
    const struct place *p = place_by_name(n, node, err);
    if (p == NULL)
        return -1;
    return card < 0 ? 0 : simnode_check_card(p->node, card, err);
}

int nodes_restart_kubelet(struct nodes *n, const char *node, struct error *err)
{
    const struct place *p = place_by_name(n, node, err);
    if (p == NULL)
        return -1;
    (void)crew_restart_kubelet(p->crew, p->node);
    return 0;
}

int nodes_fail_card(struct nodes *n, const char *node, int card, bool sick, struct error *err)
{
    const struct place *p = place_by_name(n, node, err);
    if (p == NULL)
        return -1;
    pthread_mutex_lock(&n->cards);
    int result = simnode_fail_card(p->node, card, sick, err);
    pthread_mutex_unlock(&n->cards);
    return result;
}

int nodes_partition(struct nodes *n, const char *node, bool cut, struct error *err)
{
    const struct place *p = place_by_name(n, node, err);
    if (p == NULL)
        return -1;
    (void)crew_cut(p->crew, p->node, cut);
    return 0;
}
