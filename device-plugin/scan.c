// SPDX-License-Identifier: Apache-2.0
/* scan - see the header. */
#include "device-plugin/scan.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct scan {
    const struct backend_type *type;
    struct backend_config config;
    int64_t interval_ms;
    struct mailbox *mailbox;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool stop;
};

void scan_letter_free(void *letter)
{
    struct scan_letter *l = letter;
    if (l == NULL)
        return;
    arena_deinit(&l->arena);
    free(l);
}

static struct timespec after_ms(clockid_t clock, int64_t ms)
{
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_sec += ms / 1000;
    t.tv_nsec += (long)(ms % 1000) * 1000000L;
    if (t.tv_nsec >= 1000000000L) {
        t.tv_sec++;
        t.tv_nsec -= 1000000000L;
    }
    return t;
}

static bool stopped_within(struct scan *s, int64_t ms)
{
    struct timespec until = after_ms(CLOCK_MONOTONIC, ms);
    pthread_mutex_lock(&s->lock);
    while (!s->stop && pthread_cond_timedwait(&s->wake, &s->lock, &until) == 0)
        ;
    bool stop = s->stop;
    pthread_mutex_unlock(&s->lock);
    return stop;
}

static struct scan_letter *letter_new(void)
{
    struct scan_letter *l = calloc(1, sizeof *l);
    if (l == NULL)
        abort();
    arena_init(&l->arena, 0);
    return l;
}

static void *worker_scan(void *arg)
{
    struct scan *s = arg;
    struct backend *b = NULL;
    struct scan_letter *l = letter_new();
    if (s->type->open(&b, &s->config, &l->err) < 0) {
        l->failed = l->fatal = true;
        (void)mailbox_post(s->mailbox, l);
        return NULL;
    }
    bool open = true;
    while (open) {
        if (s->type->scan(b, &l->arena, &l->inventory, &l->err) < 0) {
            l->failed = true;
            l->inventory = (struct gpu_inventory){0};
        }
        open = mailbox_post(s->mailbox, l);
        l = NULL;
        if (!open || stopped_within(s, s->interval_ms))
            break;
        l = letter_new();
    }
    s->type->close(b);
    return NULL;
}

int scan_start(struct scan **out, const struct backend_type *type,
               const struct backend_config *config, int64_t interval_ms, struct mailbox *mailbox,
               struct error *err)
{
    struct scan *s = calloc(1, sizeof *s);
    if (s == NULL)
        abort();
    *s = (struct scan){
        .type = type, .config = *config, .interval_ms = interval_ms, .mailbox = mailbox};
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&s->wake, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int e = pthread_create(&s->thread, NULL, worker_scan, s);
    if (e != 0) {
        free(s);
        return error_errno(err, e, "scan thread");
    }
    *out = s;
    return 0;
}

bool scan_stop(struct scan *s, int64_t wait_ms)
{
    if (s == NULL)
        return true;
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_broadcast(&s->wake);
    pthread_mutex_unlock(&s->lock);
    mailbox_close(s->mailbox);
    struct timespec until = after_ms(CLOCK_REALTIME, wait_ms);
    if (pthread_timedjoin_np(s->thread, NULL, &until) != 0)
        return false;
    pthread_cond_destroy(&s->wake);
    pthread_mutex_destroy(&s->lock);
    free(s);
    return true;
}
