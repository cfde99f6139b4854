// SPDX-License-Identifier: Apache-2.0
/*
 *   ask ─► asked ───────┐
 *                       ├─► the thread ─► rows (swapped under the lock) ─► looked
 *   measure ─► queue ───┘
 *
 * The lock guards pointers and lists in memory; no file is touched under it.
 */
#include "device-plugin/isolation/shares_worker.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "device-plugin/isolation/regionfs.h"
#include "device-plugin/isolation/shares_region.h"
#include "lib/base/arena.h"
#include "lib/base/mem.h"
#include "lib/base/str.h"
#include "lib/base/vec.h"

struct measure {
    char folder[SHARES_FOLDER_SIZE];
    uint32_t card;
    uint64_t ns, now_ns;
};

struct look {
    struct arena arena;
    struct VEC(struct shares_scan) rows;
};

struct shares_worker {
    struct shares_worker_config config;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    bool stop, busy, asked;
    struct VEC(struct measure) queue;
    struct look last;
};

static void look_free(struct look *l)
{
    arena_deinit(&l->arena);
    vec_deinit(&l->rows);
}

static void keep(void *arg, const struct shares_scan *l)
{
    struct look *look = arg;
    struct arena *a = &look->arena;
    struct shares_scan copy = *l;
    struct limits_card *limit = arena_new(a, struct limits_card, 1);
    *limit = *l->limit;
    copy.limit = limit;
    copy.folder = arena_strdup(a, l->folder);
    copy.uid = arena_strdup(a, l->uid);
    copy.ns = arena_strdup(a, l->ns);
    copy.pod = arena_strdup(a, l->pod);
    copy.container = arena_strdup(a, l->container);
    vec_push(&look->rows, copy);
}

static void look(struct shares_worker *w)
{
    struct look fresh = {0};
    arena_init(&fresh.arena, 0);
    shares_each(w->config.base, SHARES_REGION_BUDGET_US, keep, &fresh);
    char regions[PATH_MAX];
    if (str_format(regions, sizeof regions, "%s/" SHARES_REGIONS, w->config.base))
        regionfs_fill(regions); /* with what was cut */
    pthread_mutex_lock(&w->lock);
    struct look old = w->last;
    w->last = fresh;
    w->asked = false;
    pthread_mutex_unlock(&w->lock);
    look_free(&old);
    w->config.looked(w->config.arg);
}

static void *worker_shares(void *arg)
{
    struct shares_worker *w = arg;
    struct VEC(struct measure) mine = {0};
    pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        w->busy = w->asked || w->queue.len > 0;
        if (!w->busy) {
            pthread_cond_broadcast(&w->changed);
            pthread_cond_wait(&w->changed, &w->lock);
            continue;
        }
        bool asked = w->asked;
        mine.len = 0;
        for (size_t i = 0; i < w->queue.len; i++)
            vec_push(&mine, w->queue.items[i]);
        w->queue.len = 0;
        pthread_mutex_unlock(&w->lock);
        for (size_t i = 0; i < mine.len; i++)
            (void)shares_measure(w->config.base, mine.items[i].folder, mine.items[i].card,
                                 mine.items[i].ns, mine.items[i].now_ns);
        if (asked)
            look(w);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    vec_deinit(&mine);
    return NULL;
}

int shares_worker_start(struct shares_worker **out, const struct shares_worker_config *c,
                        struct error *err)
{
    struct shares_worker *w = mem_new(struct shares_worker, 1);
    w->config = *c;
    shares_restore(c->base); /* before containers start */
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    arena_init(&w->last.arena, 0);
    int e = pthread_create(&w->thread, NULL, worker_shares, w);
    if (e != 0) {
        shares_worker_free(w);
        return error_errno(err, e, "thread for the containers' regions");
    }
    *out = w;
    return 0;
}

bool shares_worker_stop(struct shares_worker *w, int64_t wait_ms)
{
    struct timespec until;
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)((wait_ms + 999) / 1000);
    return pthread_clockjoin_np(w->thread, NULL, CLOCK_MONOTONIC, &until) == 0;
}

void shares_worker_free(struct shares_worker *w)
{
    if (w == NULL)
        return;
    vec_deinit(&w->queue);
    look_free(&w->last);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

bool shares_worker_ask(struct shares_worker *w)
{
    pthread_mutex_lock(&w->lock);
    bool free_to = !w->asked;
    if (free_to) {
        w->asked = true;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return free_to;
}

void shares_worker_measure(struct shares_worker *w, const char *folder, uint32_t card, uint64_t ns,
                           uint64_t now_ns)
{
    struct measure m = {.card = card, .ns = ns, .now_ns = now_ns};
    if (!str_format(m.folder, sizeof m.folder, "%s", folder))
        return; /* not a name of ours */
    pthread_mutex_lock(&w->lock);
    if (w->queue.len < SHARES_WORKER_MEASURES) {
        vec_push(&w->queue, m);
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
}

void shares_worker_each(struct shares_worker *w,
                        void (*report)(void *arg, const struct shares_scan *l), void *arg)
{
    pthread_mutex_lock(&w->lock);
    for (size_t i = 0; i < w->last.rows.len; i++)
        report(arg, &w->last.rows.items[i]);
    pthread_mutex_unlock(&w->lock);
}

void shares_worker_settle(struct shares_worker *w)
{
    pthread_mutex_lock(&w->lock);
    while (w->busy || w->asked || w->queue.len > 0)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
}
