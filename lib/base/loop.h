// SPDX-License-Identifier: Apache-2.0
/*
 * loop - one thread with its file descriptors, timers, signals, and messages from other threads.
 *
 * All functions belong to the loop's thread, except mailbox_post, mailbox_close and loop_stop.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/heap.h"

struct loop;

/* Blocks SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGPIPE for this thread and its children. Call first
 * in main(). */
void loop_block_signals(void);

int loop_new(struct loop **out, struct error *err);
void loop_free(struct loop *l); /* NULL is fine; free mailboxes first */
/* Runs until loop_stop. One stop ends one run; a stop before the run ends it at once. */
void loop_run(struct loop *l);
/* One round: waits at most max_wait_ms for events and handles them. For tests. */
void loop_once(struct loop *l, int64_t max_wait_ms);
/* Any thread. The current round is finished. */
void loop_stop(struct loop *l);
/* Monotonic, as of the start of this round. */
int64_t loop_now_ms(const struct loop *l);

/* fn is called while fd is ready (level-triggered). events: EPOLLIN|EPOLLOUT; fn sees EPOLLERR and
 * EPOLLHUP as well. Watching an fd again replaces events, fn and arg. Callbacks may watch and
 * unwatch anything, also themselves; unwatch before close. */
int loop_watch_fd(struct loop *l, int fd, uint32_t events, void (*fn)(void *arg, uint32_t events),
                  void *arg, struct error *err);
void loop_unwatch_fd(struct loop *l, int fd);
/* Requires loop_block_signals. A second call for the same signal replaces the first. */
int loop_on_signal(struct loop *l, int signo, void (*fn)(void *arg, int signo), void *arg,
                   struct error *err);
/* Whether a signal is pending that the busy loop has not yet handled. Any thread. */
bool loop_signal_waits(const struct loop *l);

struct loop_timer {
    struct heap_node node;
    int64_t due_ms;
    uint64_t seq; /* equal times fire in the order set */
    void (*fn)(void *arg);
    void *arg;
};
/* Sets or moves a timer (zero-initialised before first use). It fires once, delay_ms after this
 * call; set from a timer it fires in the next round at the earliest. A negative delay is 0. */
void loop_timer_set(struct loop *l, struct loop_timer *t, int64_t delay_ms, void (*fn)(void *arg),
                    void *arg);
/* For periodic work that need not be exact: fires once, at the next multiple of period_ms. So
 * timers of one period share a round, and an idle program wakes once for all of them. */
void loop_timer_beat(struct loop *l, struct loop_timer *t, int64_t period_ms, void (*fn)(void *arg),
                     void *arg);
void loop_timer_cancel(struct loop *l, struct loop_timer *t);

/*
 * mailbox - a bounded queue with many writers, read by the loop in order. A full mailbox blocks the
 * writer: this is the back-pressure on watches.
 */
struct mailbox;
enum { MAILBOX_ROUND = 1024 };
/* deliver is called on the loop with each message; dispose frees messages left when the mailbox is
 * freed or a post is refused. */
int mailbox_new(struct mailbox **out, struct loop *l, size_t capacity,
                void (*deliver)(void *arg, void *msg), void (*dispose)(void *msg), void *arg,
                struct error *err);
/* Any thread. Takes msg. false: closed, msg was disposed of. Blocks while the mailbox is full,
 * except on the loop's own thread inside a callback, where a post exceeds the capacity instead of
 * deadlocking. A round delivers at most MAILBOX_ROUND messages of each mailbox before timers and
 * descriptors. */
bool mailbox_post(struct mailbox *mb, void *msg);
/* Any thread. Later posts are refused and blocked writers return; queued messages are still
 * delivered. NULL is fine. */
void mailbox_close(struct mailbox *mb);
/* After every writer has ended, before loop_free, not from deliver. NULL is fine. */
void mailbox_free(struct mailbox *mb);
