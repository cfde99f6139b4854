// SPDX-License-Identifier: Apache-2.0
/*
 * nodes_host - see nodes_host.h.
 *
 *   nodes_host_start ──► thread: nodes_start ──► "started" ──► orders, one by one ──► nodes_stop
 *
 * Messages to the loop ("started", "stopped") go through a mailbox.
 */
#include "test/local/nodes/nodes_host.h"

#include <pthread.h>
#include <stdlib.h>

#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/vec.h"

struct order {
    struct faults_node what; /* node is its own copy */
};

struct message {
    bool stopped;
    bool failed;
    struct error err;
};

struct nodes_host {
    struct nodes_config config;
    struct nodes_host_events events;
    struct mailbox *mailbox;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct VEC(struct order) orders;
    struct nodes *nodes; /* from when they have begun until they end */
    bool stop;
};

static void post(struct nodes_host *h, bool stopped, const struct error *err)
{
    struct message *l = mem_new(struct message, 1);
    l->stopped = stopped;
    l->failed = err != NULL;
    if (err)
        l->err = *err;
    mailbox_post(h->mailbox, l);
}

static void deliver(void *arg, void *msg)
{
    struct nodes_host *h = arg;
    struct message *l = msg;
    if (l->stopped)
        h->events.stopped(h->events.arg);
    else
        h->events.started(h->events.arg, l->failed ? &l->err : NULL);
    free(l);
}

static void carry_out(struct nodes *nodes, const struct faults_node *what)
{
    struct error err = ERROR_INIT;
    int rc = 0;
    switch (what->kind) {
    case FAULTS_PARTITION:
        rc = nodes_partition(nodes, what->node, what->bad, &err);
        break;
    case FAULTS_RESTART_KUBELET:
        rc = nodes_restart_kubelet(nodes, what->node, &err);
        break;
    case FAULTS_CARD:
        rc = nodes_fail_card(nodes, what->node, what->card, what->bad, &err);
        break;
    }
    if (rc < 0)
        log_warn("fault of a node", kv("node", what->node), kv("error", err.text));
}

/* The next order; false: stop. */
static bool next_order(struct nodes_host *h, struct order *out)
{
    pthread_mutex_lock(&h->lock);
    while (!h->stop && h->orders.len == 0)
        pthread_cond_wait(&h->changed, &h->lock);
    bool got = !h->stop;
    if (got) {
        *out = h->orders.items[0];
        h->orders.len--;
        for (size_t i = 0; i < h->orders.len; i++)
            h->orders.items[i] = h->orders.items[i + 1];
    }
    pthread_mutex_unlock(&h->lock);
    return got;
}

static void set_nodes(struct nodes_host *h, struct nodes *nodes)
{
    pthread_mutex_lock(&h->lock);
    h->nodes = nodes;
    pthread_mutex_unlock(&h->lock);
}

static void *run(void *arg)
{
    struct nodes_host *h = arg;
    struct nodes *nodes = NULL;
    struct error err = ERROR_INIT;
    int rc = nodes_start(&nodes, &h->config, &err);
    set_nodes(h, nodes);
    post(h, false, rc < 0 ? &err : NULL);
    struct order order;
    while (next_order(h, &order)) {
        if (nodes)
            carry_out(nodes, &order.what);
        free((void *)(uintptr_t)order.what.node);
    }
    set_nodes(h, NULL);
    nodes_stop(nodes);
    post(h, true, NULL);
    return NULL;
}

int nodes_host_start(struct nodes_host **out, struct loop *l, const struct nodes_config *c,
                     const struct nodes_host_events *events, struct error *err)
{
    struct nodes_host *h = mem_new(struct nodes_host, 1);
    h->config = *c;
    h->events = *events;
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->changed, NULL);
    if (mailbox_new(&h->mailbox, l, 16, deliver, free, h, err) < 0) {
        free(h);
        return -1;
    }
    int rc = pthread_create(&h->thread, NULL, run, h);
    if (rc != 0) {
        mailbox_free(h->mailbox);
        free(h);
        return error_errno(err, rc, "thread of the nodes");
    }
    *out = h;
    return 0;
}

int nodes_host_fault(void *arg, const struct faults_node *what, struct error *err)
{
    struct nodes_host *h = arg;
    int card = what->kind == FAULTS_CARD ? what->card : -1;
    int rc = 0;
    pthread_mutex_lock(&h->lock);
    if (h->nodes)
        rc = nodes_check(h->nodes, what->node, card, err);
    if (rc == 0) {
        struct order order = {.what = *what};
        order.what.node = mem_strdup(what->node);
        vec_push(&h->orders, order);
        pthread_cond_signal(&h->changed);
    }
    pthread_mutex_unlock(&h->lock);
    return rc;
}

void nodes_host_ask_stop(struct nodes_host *h)
{
    pthread_mutex_lock(&h->lock);
    h->stop = true;
    pthread_cond_signal(&h->changed);
    pthread_mutex_unlock(&h->lock);
}

void nodes_host_free(struct nodes_host *h)
{
    if (!h)
        return;
    pthread_join(h->thread, NULL);
    mailbox_free(h->mailbox);
    for (size_t i = 0; i < h->orders.len; i++)
        free((void *)(uintptr_t)h->orders.items[i].what.node);
    vec_deinit(&h->orders);
    pthread_cond_destroy(&h->changed);
    pthread_mutex_destroy(&h->lock);
    free(h);
}
