// SPDX-License-Identifier: Apache-2.0
/*
 * A round: epoll (until the first timer is due; no wait while messages are left), then descriptors
 * and signals, messages, timers. Each part is bounded so that none starves another: one epoll
 * batch, MAILBOX_ROUND messages per mailbox, and timers set before the round fires them.
 *
 * Descriptors are in a table by number. An epoll event carries the number and the entry's
 * generation. Unwatching changes the generation, so a stale event of the same batch is skipped.
 *
 * Each mailbox has a lock and a ring that grows to the capacity. A post writes the eventfd only if
 * the loop is not yet notified (wake_sent), so many posts cost one system call. Blocked writers are
 * woken when the mailbox is half empty, which avoids a context switch per message.
 *
 * Frequent rounds are spaced (wake_coalesce): under load a round finds several messages, at most
 * half a millisecond later. A thread-local pointer, set during a round, identifies the loop's
 * thread.
 */
#include "lib/base/loop.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/wake_coalesce.h"
#include "lib/base/mem.h"
#include "lib/base/num.h"
#include "lib/base/vec.h"

enum { EVENTS_PER_ROUND = 64, MESSAGES_PER_LOCK = 64, SIGNALS = 65 };

struct watch {
    void (*fn)(void *arg, uint32_t events);
    void *arg;
    uint32_t generation;
    bool active;
};

struct signal_handler {
    void (*fn)(void *arg, int signo);
    void *arg;
};

struct loop {
    int epoll_fd;
    int wake_fd;
    int signal_fd; /* -1 until the first loop_on_signal */
    sigset_t signals;
    struct signal_handler handlers[SIGNALS];
    struct VEC(struct watch) watches; /* by descriptor */
    struct heap timers;
    uint64_t timer_seq;
    int64_t now_ms;
    struct mailbox *mailboxes;
    bool messages_left;
    struct wake_coalesce coalesce;
    _Atomic bool stop;
    _Atomic bool wake_sent;
};

struct mailbox {
    struct loop *loop;
    struct mailbox *next;
    size_t capacity;
    void (*deliver)(void *arg, void *msg);
    void (*dispose)(void *msg);
    void *arg;

    pthread_mutex_t lock;
    pthread_cond_t space;
    void **ring;
    size_t ring_size; /* power of two */
    size_t head;
    size_t len;
    size_t waiting;
    bool closed;
};

static _Thread_local const struct loop *running;

void loop_block_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    static const int blocked[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGPIPE};
    for (size_t i = 0; i < sizeof blocked / sizeof *blocked; i++)
        sigaddset(&set, blocked[i]);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static bool timer_before(const struct heap_node *a, const struct heap_node *b)
{
    const struct loop_timer *x =
        (const struct loop_timer *)(const void *)((const char *)a -
                                                  offsetof(struct loop_timer, node));
    const struct loop_timer *y =
        (const struct loop_timer *)(const void *)((const char *)b -
                                                  offsetof(struct loop_timer, node));
    return x->due_ms != y->due_ms ? x->due_ms < y->due_ms : x->seq < y->seq;
}

static void wake(struct loop *l)
{
    if (atomic_exchange(&l->wake_sent, true))
        return;
    uint64_t one = 1;
    /* Fails only with EINTR, or with EAGAIN when the counter is full; then the loop is awake. */
    while (write(l->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

static void on_wake(void *arg, uint32_t events)
{
    struct loop *l = arg;
    (void)events;
    uint64_t count;
    while (read(l->wake_fd, &count, sizeof count) < 0 && errno == EINTR)
        ;
    /* Reset before the mailboxes are read, so that a later message wakes the loop again. */
    atomic_store(&l->wake_sent, false);
    l->messages_left = true;
}

static void on_signals(void *arg, uint32_t events)
{
    struct loop *l = arg;
    (void)events;
    struct signalfd_siginfo info;
    while (read(l->signal_fd, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo >= SIGNALS)
            continue;
        struct signal_handler h = l->handlers[info.ssi_signo];
        if (h.fn != NULL)
            h.fn(h.arg, (int)info.ssi_signo);
    }
}

int loop_new(struct loop **out, struct error *err)
{
    struct loop *l = mem_new(struct loop, 1);
    l->signal_fd = -1;
    sigemptyset(&l->signals);
    heap_init(&l->timers, timer_before);
    l->now_ms = clock_mono_ms();
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    l->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->epoll_fd < 0 || l->wake_fd < 0) {
        error_errno(err, errno, "event loop");
        goto fail;
    }
    if (loop_watch_fd(l, l->wake_fd, EPOLLIN, on_wake, l, err) < 0)
        goto fail;
    *out = l;
    return 0;
fail:
    loop_free(l);
    return -1;
}

void loop_free(struct loop *l)
{
    if (l == NULL)
        return;
    assert(l->mailboxes == NULL);
    if (l->epoll_fd >= 0)
        close(l->epoll_fd);
    if (l->wake_fd >= 0)
        close(l->wake_fd);
    if (l->signal_fd >= 0)
        close(l->signal_fd);
    vec_deinit(&l->watches);
    heap_deinit(&l->timers);
    free(l);
}

void loop_stop(struct loop *l)
{
    atomic_store(&l->stop, true);
    wake(l);
}

int64_t loop_now_ms(const struct loop *l)
{
    return l->now_ms;
}

int loop_watch_fd(struct loop *l, int fd, uint32_t events, void (*fn)(void *arg, uint32_t events),
                  void *arg, struct error *err)
{
    if (fd < 0)
        return error_set(err, ERROR_INVALID, "watch descriptor %d: not open", fd);
    size_t i = (size_t)fd;
    while (l->watches.len <= i)
        vec_push(&l->watches, (struct watch){0});
    struct watch *w = &l->watches.items[i];
    uint32_t generation = w->generation + 1;
    struct epoll_event ev = {.events = events,
                             .data.u64 = (uint64_t)generation << 32 | (uint32_t)fd};
    int op = w->active ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    int rc = epoll_ctl(l->epoll_fd, op, fd, &ev);
    /* The fd was closed without unwatch and its number reused: epoll has forgotten it. */
    if (rc < 0 && errno == ENOENT && op == EPOLL_CTL_MOD)
        rc = epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &ev);
    if (rc < 0)
        return error_errno(err, errno, "watch descriptor %d", fd);
    *w = (struct watch){.fn = fn, .arg = arg, .generation = generation, .active = true};
    return 0;
}

void loop_unwatch_fd(struct loop *l, int fd)
{
    if (fd < 0 || (size_t)fd >= l->watches.len || !l->watches.items[fd].active)
        return;
    l->watches.items[fd].active = false;
    l->watches.items[fd].generation++;
    epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, fd, NULL); /* fails only if fd is closed and thus gone */
}

int loop_on_signal(struct loop *l, int signo, void (*fn)(void *arg, int signo), void *arg,
                   struct error *err)
{
    if (signo <= 0 || signo >= SIGNALS)
        return error_set(err, ERROR_INVALID, "signal %d: no such signal", signo);
    sigset_t set = l->signals;
    if (sigaddset(&set, signo) < 0)
        return error_errno(err, errno, "signal %d", signo);
    int fd = signalfd(l->signal_fd, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return error_errno(err, errno, "signal %d", signo);
    if (l->signal_fd < 0) {
        l->signal_fd = fd;
        if (loop_watch_fd(l, fd, EPOLLIN, on_signals, l, err) < 0)
            return error_wrap(err, "signal %d", signo);
    }
    l->signals = set;
    l->handlers[signo] = (struct signal_handler){.fn = fn, .arg = arg};
    return 0;
}

bool loop_signal_waits(const struct loop *l)
{
    struct pollfd p = {.fd = l->signal_fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1; /* a negative descriptor is never ready */
}

void loop_timer_set(struct loop *l, struct loop_timer *t, int64_t delay_ms, void (*fn)(void *arg),
                    void *arg)
{
    heap_remove(&l->timers, &t->node);
    t->due_ms = num_add_sat(clock_mono_ms(), num_max(delay_ms, 0));
    t->seq = l->timer_seq++;
    t->fn = fn;
    t->arg = arg;
    heap_push(&l->timers, &t->node);
}

void loop_timer_beat(struct loop *l, struct loop_timer *t, int64_t period_ms, void (*fn)(void *arg),
                     void *arg)
{
    assert(period_ms > 0);
    loop_timer_set(l, t, period_ms - clock_mono_ms() % period_ms, fn, arg);
}

void loop_timer_cancel(struct loop *l, struct loop_timer *t)
{
    heap_remove(&l->timers, &t->node);
}

static struct loop_timer *first_timer(const struct loop *l)
{
    struct heap_node *n = heap_top(&l->timers);
    return n == NULL ? NULL : container_of(n, struct loop_timer, node);
}

static void run_timers(struct loop *l)
{
    uint64_t limit = l->timer_seq;
    struct loop_timer *t;
    /* A timer set in this loop is due now at the earliest, so it sorts after all older due ones. */
    while ((t = first_timer(l)) != NULL && t->due_ms <= l->now_ms && t->seq < limit) {
        heap_pop(&l->timers);
        t->fn(t->arg);
    }
}

/* Takes up to n messages and wakes writers when there is space again. */
static size_t take_messages(struct mailbox *mb, void **out, size_t n)
{
    pthread_mutex_lock(&mb->lock);
    if (n > mb->len)
        n = mb->len;
    for (size_t i = 0; i < n; i++)
        out[i] = mb->ring[(mb->head + i) & (mb->ring_size - 1)];
    mb->head += n;
    mb->len -= n;
    if (mb->waiting > 0 && mb->len <= mb->capacity / 2)
        pthread_cond_broadcast(&mb->space);
    pthread_mutex_unlock(&mb->lock);
    return n;
}

static void run_messages(struct loop *l)
{
    if (!l->messages_left)
        return;
    l->messages_left = false;
    for (struct mailbox *mb = l->mailboxes, *next; mb != NULL; mb = next) {
        next = mb->next;
        size_t done = 0;
        while (done < MAILBOX_ROUND) {
            void *messages[MESSAGES_PER_LOCK];
            size_t n = take_messages(mb, messages, MESSAGES_PER_LOCK);
            if (n == 0)
                break;
            for (size_t i = 0; i < n; i++)
                mb->deliver(mb->arg, messages[i]);
            done += n;
        }
        if (done >= MAILBOX_ROUND)
            l->messages_left = true;
    }
}

static int wait_ms(const struct loop *l, int64_t max_wait_ms)
{
    if (l->messages_left || atomic_load(&l->stop))
        return 0;
    int64_t wait = max_wait_ms;
    const struct loop_timer *t = first_timer(l);
    if (t != NULL) {
        int64_t until = num_max(num_sub_sat(t->due_ms, clock_mono_ms()), 0);
        wait = wait < 0 ? until : num_min(wait, until);
    }
    return wait < 0 ? -1 : (int)num_min(wait, INT_MAX);
}

/* max_wait_ms -1: no limit. */
static void run_round(struct loop *l, int64_t max_wait_ms)
{
    struct epoll_event events[EVENTS_PER_ROUND];
    int n = epoll_wait(l->epoll_fd, events, EVENTS_PER_ROUND, wait_ms(l, max_wait_ms));
    const struct loop *outer = running;
    running = l;
    l->now_ms = clock_mono_ms();
    for (int i = 0; i < n; i++) {
        size_t fd = (size_t)(events[i].data.u64 & UINT32_MAX);
        if (fd >= l->watches.len)
            continue;
        struct watch w = l->watches.items[fd]; /* copied, since the table may move */
        if (w.active && w.generation == (uint32_t)(events[i].data.u64 >> 32))
            w.fn(w.arg, events[i].events);
    }
    run_messages(l);
    run_timers(l);
    running = outer;
}

void loop_once(struct loop *l, int64_t max_wait_ms)
{
    run_round(l, num_max(max_wait_ms, 0));
}

void loop_run(struct loop *l)
{
    while (!atomic_load(&l->stop)) {
        int64_t nap_us = wake_coalesce_round(&l->coalesce, clock_mono_us());
        if (!l->messages_left)
            clock_sleep_us(nap_us);
        run_round(l, -1);
    }
    atomic_store(&l->stop, false);
}

int mailbox_new(struct mailbox **out, struct loop *l, size_t capacity,
                void (*deliver)(void *arg, void *msg), void (*dispose)(void *msg), void *arg,
                struct error *err)
{
    if (capacity == 0)
        return error_set(err, ERROR_INVALID, "mailbox: a capacity of 0 would never deliver");
    struct mailbox *mb = mem_new(struct mailbox, 1);
    *mb = (struct mailbox){
        .loop = l, .capacity = capacity, .deliver = deliver, .dispose = dispose, .arg = arg};
    pthread_mutex_init(&mb->lock, NULL);
    pthread_cond_init(&mb->space, NULL);
    /* Appended, since mailboxes are read in order of creation. */
    struct mailbox **at = &l->mailboxes;
    while (*at != NULL)
        at = &(*at)->next;
    *at = mb;
    *out = mb;
    return 0;
}

static void grow_ring(struct mailbox *mb)
{
    size_t size = mb->ring_size == 0 ? 64 : mb->ring_size * 2;
    void **ring = mem_new(void *, size);
    for (size_t i = 0; i < mb->len; i++)
        ring[i] = mb->ring[(mb->head + i) & (mb->ring_size - 1)];
    free(mb->ring);
    mb->ring = ring;
    mb->ring_size = size;
    mb->head = 0;
}

bool mailbox_post(struct mailbox *mb, void *msg)
{
    pthread_mutex_lock(&mb->lock);
    if (running != mb->loop) {
        while (mb->len >= mb->capacity && !mb->closed) {
            mb->waiting++;
            pthread_cond_wait(&mb->space, &mb->lock);
            mb->waiting--;
        }
    }
    bool refused = mb->closed;
    if (!refused) {
        if (mb->len == mb->ring_size)
            grow_ring(mb);
        mb->ring[(mb->head + mb->len) & (mb->ring_size - 1)] = msg;
        mb->len++;
    }
    pthread_mutex_unlock(&mb->lock);
    if (refused) {
        if (mb->dispose != NULL)
            mb->dispose(msg);
        return false;
    }
    wake(mb->loop);
    return true;
}

void mailbox_close(struct mailbox *mb)
{
    if (mb == NULL)
        return;
    pthread_mutex_lock(&mb->lock);
    mb->closed = true;
    pthread_cond_broadcast(&mb->space);
    pthread_mutex_unlock(&mb->lock);
}

void mailbox_free(struct mailbox *mb)
{
    if (mb == NULL)
        return;
    struct mailbox **at = &mb->loop->mailboxes;
    while (*at != mb)
        at = &(*at)->next;
    *at = mb->next;
    for (size_t i = 0; i < mb->len; i++)
        if (mb->dispose != NULL)
            mb->dispose(mb->ring[(mb->head + i) & (mb->ring_size - 1)]);
    pthread_cond_destroy(&mb->space);
    pthread_mutex_destroy(&mb->lock);
    free(mb->ring);
    free(mb);
}
