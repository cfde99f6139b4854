// SPDX-License-Identifier: Apache-2.0
#include "lib/kube/connector.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "lib/base/mem.h"
#include "lib/base/vec.h"

struct connector {
    struct connector_config config;
    struct kube_config *kube;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work;
    unsigned wanted;
    bool stopping;
    bool failed; /* with the reason in error */
    struct error error;
    struct conn *making;
    struct connector_made VEC(struct conn *) made;
};

static int make_one(struct connector *c, struct conn **out, struct error *err)
{
    struct conn *d = NULL;
    if (conn_new(&d, c->kube, c->config.user_agent, err) < 0)
        return -1;
    pthread_mutex_lock(&c->lock);
    c->making = d;
    if (c->stopping)
        conn_cancel(d);
    pthread_mutex_unlock(&c->lock);
    int rc = conn_connect(d, c->config.timeout_ms, err);
    pthread_mutex_lock(&c->lock);
    c->making = NULL;
    pthread_mutex_unlock(&c->lock);
    if (rc < 0)
        conn_free(d);
    else
        *out = d;
    return rc;
}

static void *connector_main(void *arg)
{
    struct connector *c = arg;
    (void)pthread_setname_np(pthread_self(), "connector");
    pthread_mutex_lock(&c->lock);
    for (;;) {
        while (c->wanted == 0 && !c->stopping)
            pthread_cond_wait(&c->work, &c->lock);
        if (c->stopping)
            break;
        pthread_mutex_unlock(&c->lock);

        struct error err = ERROR_INIT;
        struct conn *d = NULL;
        int rc = make_one(c, &d, &err);

        pthread_mutex_lock(&c->lock);
        if (rc == 0) {
            vec_push(&c->made, d);
            c->wanted--;
        } else {
            c->wanted = 0;
            c->failed = true;
            c->error = err;
        }
        pthread_mutex_unlock(&c->lock);
        c->config.notify(c->config.arg);
        pthread_mutex_lock(&c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

int connector_start(struct connector **out, struct kube_config *kube,
                    const struct connector_config *config, struct error *err)
{
    struct connector *c = mem_new(struct connector, 1);
    *c = (struct connector){.config = *config, .kube = kube};
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->work, NULL);
    int rc = pthread_create(&c->thread, NULL, connector_main, c);
    if (rc != 0) {
        pthread_cond_destroy(&c->work);
        pthread_mutex_destroy(&c->lock);
        free(c);
        return error_errno(err, rc, "start the connector's thread");
    }
    *out = c;
    return 0;
}

void connector_want(struct connector *c, unsigned n)
{
    pthread_mutex_lock(&c->lock);
    c->wanted += n;
    pthread_cond_signal(&c->work);
    pthread_mutex_unlock(&c->lock);
}

int connector_take(struct connector *c, struct conn **out, struct error *err)
{
    int rc = 0;
    pthread_mutex_lock(&c->lock);
    if (c->made.len > 0) {
        *out = c->made.items[--c->made.len];
        rc = 1;
    } else if (c->failed) {
        c->failed = false;
        *err = c->error;
        rc = -1;
    }
    pthread_mutex_unlock(&c->lock);
    return rc;
}

void connector_stop(struct connector *c)
{
    if (c == NULL)
        return;
    pthread_mutex_lock(&c->lock);
    c->stopping = true;
    if (c->making != NULL)
        conn_cancel(c->making);
    pthread_cond_signal(&c->work);
    pthread_mutex_unlock(&c->lock);
    pthread_join(c->thread, NULL);
    for (size_t i = 0; i < c->made.len; i++)
        conn_free(c->made.items[i]);
    vec_deinit(&c->made);
    pthread_cond_destroy(&c->work);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
