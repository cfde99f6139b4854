// SPDX-License-Identifier: Apache-2.0
#include "test/local/nodes/crew.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/loop.h"
#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"
#include "lib/kube/api.h"

enum { MAILBOX = 4096 };

enum verb { RESET, PUT, GONE, RESTART, CUT };

struct message {
    enum verb verb;
    struct simnode *node;
    struct podview **views;
    size_t len;
    char *uid;
    bool on;
};

struct seat {
    struct simnode *node;
    struct VEC(struct podview *) views; /* during a reset */
};

struct crew {
    struct crew_config config;
    struct loop *loop;
    struct mailbox *mail;
    struct kube_client *client;
    pthread_t thread;
    bool running;
    int bell; /* devices have changed somewhere: never blocks the sender */
    struct VEC(struct seat *) seats;
    struct map by_name; /* struct seat */
};

static void letter_free(void *msg)
{
    struct message *l = msg;
    for (size_t i = 0; i < l->len; i++)
        podview_free(l->views[i]);
    free(l->views);
    free(l->uid);
    free(l);
}

/* ---- the crew's thread ---- */

static void reset_all(struct crew *c, struct message *l)
{
    for (size_t i = 0; i < l->len; i++) {
        struct seat *s = map_get(&c->by_name, l->views[i]->model->node);
        if (s == NULL)
            continue;
        vec_push(&s->views, l->views[i]);
        l->views[i] = NULL;
    }
    for (size_t k = 0; k < c->seats.len; k++) {
        struct seat *s = c->seats.items[k];
        simnode_reset(s->node, s->views.items, s->views.len);
        vec_deinit(&s->views);
    }
}

static void on_message(void *arg, void *msg)
{
    struct crew *c = arg;
    struct message *l = msg;
    switch (l->verb) {
    case RESET:
        reset_all(c, l);
        break;
    case PUT:
        simnode_put(l->node, l->views[0]);
        l->views[0] = NULL;
        break;
    case GONE:
        for (size_t i = 0; i < c->seats.len; i++)
            if (l->node == NULL || l->node == c->seats.items[i]->node)
                simnode_gone(c->seats.items[i]->node, l->uid);
        break;
    case RESTART:
        simnode_restart_kubelet(l->node);
        break;
    case CUT:
        simnode_cut(l->node, l->on);
        break;
    }
    letter_free(l);
}

static void on_bell(void *arg, uint32_t events)
{
    struct crew *c = arg;
    uint64_t count;
    (void)events;
    (void)!read(c->bell, &count, sizeof count);
    for (size_t i = 0; i < c->seats.len; i++)
        simnode_on_devices(c->seats.items[i]->node);
}

static void ring(void *arg, struct simnode *n)
{
    const struct crew *c = arg;
    uint64_t one = 1;
    (void)n; /* nodes with devices have a crew of their own */
    (void)!write(c->bell, &one, sizeof one);
}

static void *run(void *arg)
{
    struct crew *c = arg;
    for (size_t i = 0; i < c->seats.len; i++)
        simnode_begin(c->seats.items[i]->node);
    loop_run(c->loop);
    for (size_t i = 0; i < c->seats.len; i++)
        simnode_end(c->seats.items[i]->node);
    return NULL;
}

/* ---- everybody else ---- */

int crew_new(struct crew **out, const struct crew_config *config, struct error *err)
{
    struct crew *c = mem_new(struct crew, 1);
    c->config = *config;
    map_init(&c->by_name);
    c->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->bell < 0)
        (void)error_errno(err, errno, "eventfd");
    else if (loop_new(&c->loop, err) == 0 &&
             mailbox_new(&c->mail, c->loop, MAILBOX, on_message, letter_free, c, err) == 0 &&
             loop_watch_fd(c->loop, c->bell, EPOLLIN, on_bell, c, err) == 0 &&
             kube_client_new(&c->client, config->kube, config->kube_options, "cosched-local-node",
                             err) == 0) {
        *out = c;
        return 0;
    }
    crew_free(c);
    return -1;
}

int crew_add(struct crew *c, struct nodes_spec *spec, struct simnode **out, struct error *err)
{
    struct simnode_config config = {.spec = spec,
                                    .loop = c->loop,
                                    .client = c->client,
                                    .events = c->config.events,
                                    .directory = c->config.directory,
                                    .plugin_binary = c->config.plugin_binary,
                                    .kubeconfig_path = c->config.kubeconfig_path,
                                    .poke = ring,
                                    .arg = c};
    if (simnode_new(out, &config, err) < 0)
        return -1;
    struct seat *s = mem_new(struct seat, 1);
    s->node = *out;
    vec_push(&c->seats, s);
    map_put(&c->by_name, spec->name, s);
    return 0;
}

int crew_start(struct crew *c, struct error *err)
{
    int failed = pthread_create(&c->thread, NULL, run, c);
    if (failed != 0)
        return error_errno(err, failed, "pthread_create");
    c->running = true;
    return 0;
}

void crew_close(struct crew *c)
{
    mailbox_close(c->mail);
    kube_client_cancel(c->client);
    loop_stop(c->loop);
    for (size_t i = 0; i < c->seats.len; i++)
        simnode_kill_plugin(c->seats.items[i]->node);
}

void crew_free(struct crew *c)
{
    if (c->running)
        (void)pthread_join(c->thread, NULL);
    for (size_t i = 0; i < c->seats.len; i++) {
        simnode_free(c->seats.items[i]->node);
        free(c->seats.items[i]);
    }
    vec_deinit(&c->seats);
    map_deinit(&c->by_name);
    mailbox_free(c->mail);
    if (c->bell >= 0) {
        if (c->loop != NULL)
            loop_unwatch_fd(c->loop, c->bell);
        (void)close(c->bell);
    }
    loop_free(c->loop);
    kube_client_free(c->client);
    free(c);
}

static bool post(struct crew *c, enum verb verb, struct simnode *n, struct message with)
{
    struct message *l = mem_new(struct message, 1);
    *l = with;
    l->verb = verb;
    l->node = n;
    return mailbox_post(c->mail, l);
}

bool crew_reset(struct crew *c, struct podview **views, size_t len)
{
    return post(c, RESET, NULL, (struct message){.views = views, .len = len});
}

bool crew_put(struct crew *c, struct simnode *n, struct podview *v)
{
    struct podview **one = mem_new(struct podview *, 1);
    one[0] = v;
    return post(c, PUT, n, (struct message){.views = one, .len = 1});
}

bool crew_gone(struct crew *c, struct simnode *n, const char *uid)
{
    return post(c, GONE, n, (struct message){.uid = mem_strdup(uid)});
}

bool crew_restart_kubelet(struct crew *c, struct simnode *n)
{
    return post(c, RESTART, n, (struct message){0});
}

bool crew_cut(struct crew *c, struct simnode *n, bool cut)
{
    return post(c, CUT, n, (struct message){.on = cut});
}
