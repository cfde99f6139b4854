// SPDX-License-Identifier: Apache-2.0
#include "scheduler/binding/workers.h"

#include <pthread.h>
#include <stdlib.h>

#include "lib/base/mem.h"

struct workers_job {
    struct workers_job *next;
    void *job;
};

struct workers_thread {
    struct workers *pool;
    unsigned number;
    pthread_t id;
};

struct workers {
    struct workers_config config;
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct workers_job *first, **last; /* FIFO */
    size_t waiting, running;
    bool stopping;
    struct workers_thread *threads;
    unsigned started;
};

static void *worker_main(void *arg)
{
    struct workers_thread *t = arg;
    struct workers *w = t->pool;
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (w->first == NULL && !w->stopping)
            pthread_cond_wait(&w->work, &w->lock);
        if (w->stopping)
            break;
        struct workers_job *node = w->first;
        w->first = node->next;
        if (w->first == NULL)
            w->last = &w->first;
        w->waiting--;
        w->running++;
        pthread_mutex_unlock(&w->lock);

        void *job = node->job;
        free(node);
        w->config.run(w->config.arg, t->number, job);

        pthread_mutex_lock(&w->lock);
        w->running--;
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

int workers_start(struct workers **out, const struct workers_config *c, struct error *err)
{
    struct workers *w = mem_new(struct workers, 1);
    *w = (struct workers){.config = *c};
    w->last = &w->first;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->work, NULL);
    w->threads = mem_new(struct workers_thread, c->threads);
    for (unsigned i = 0; i < c->threads; i++) {
        w->threads[i] = (struct workers_thread){.pool = w, .number = i};
        int rc = pthread_create(&w->threads[i].id, NULL, worker_main, &w->threads[i]);
        if (rc != 0) {
            workers_stop(w);
            return error_errno(err, rc, "start worker thread %u", i);
        }
        w->started++;
    }
    *out = w;
    return 0;
}

bool workers_submit(struct workers *w, void *job)
{
    pthread_mutex_lock(&w->lock);
    bool refused = w->stopping || (w->config.capacity > 0 && w->waiting >= w->config.capacity);
    if (!refused) {
        struct workers_job *node = mem_new(struct workers_job, 1);
        *node = (struct workers_job){.job = job};
        *w->last = node;
        w->last = &node->next;
        w->waiting++;
        pthread_cond_signal(&w->work);
    }
    pthread_mutex_unlock(&w->lock);
    if (refused)
        w->config.dispose(job);
    return !refused;
}

size_t workers_pending(struct workers *w)
{
    pthread_mutex_lock(&w->lock);
    size_t n = w->waiting + w->running;
    pthread_mutex_unlock(&w->lock);
    return n;
}

void workers_stop(struct workers *w)
{
    if (w == NULL)
        return;
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_broadcast(&w->work);
    pthread_mutex_unlock(&w->lock);
    for (unsigned i = 0; i < w->started; i++)
        pthread_join(w->threads[i].id, NULL);
    for (struct workers_job *node = w->first, *next; node != NULL; node = next) {
        next = node->next;
        w->config.dispose(node->job);
        free(node);
    }
    pthread_cond_destroy(&w->work);
    pthread_mutex_destroy(&w->lock);
    free(w->threads);
    free(w);
}
