// SPDX-License-Identifier: Apache-2.0
/* loop - one thread with its file descriptors, timers, signals, and messages from other threads.
 * All functions belong to the loop's thread except where stated: mailbox_post, mailbox_close,
 * loop_stop, loop_signal_waits. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/heap.h"

struct loop;

/* Blocks SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGPIPE in this thread and later ones. Call first in
 * main(). */
void loop_block_signals(void);

int loop_new(struct loop **out, struct error *err);
void loop_free(struct loop *l); /* NULL is fine; free mailboxes first */
/* Runs until loop_stop. One stop ends one run; a stop before the run ends it at once. */
void loop_run(struct loop *l);
/* For tests: one round, waiting at most max_wait_ms for events. */
void loop_once(struct loop *l, int64_t max_wait_ms);
/* Any thread. The current round is completed. */
void loop_stop(struct loop *l);
/* Monotonic, taken at the start of this round. */
int64_t loop_now_ms(const struct loop *l);

/* Calls fn while fd is ready (level-triggered). events: EPOLLIN|EPOLLOUT; fn also sees EPOLLERR and
 * EPOLLHUP. Watching an fd again replaces events, fn and arg. Callbacks may watch and unwatch
 * anything, even themselves. Unwatch before close. */
int loop_watch_fd(struct loop *l, int fd, uint32_t events, void (*fn)(void *arg, uint32_t events),
                  void *arg, struct error *err);
void loop_unwatch_fd(struct loop *l, int fd);
/* Requires loop_block_signals. A second call for a signal replaces the first. */
int loop_on_signal(struct loop *l, int signo, void (*fn)(void *arg, int signo), void *arg,
                   struct error *err);
/* Whether a signal is pending that the busy loop has not handled. Any thread. */
bool loop_signal_waits(const struct loop *l);

struct loop_timer {
    struct heap_node node;
    int64_t due_ms;
    uint64_t seq; /* equal times fire in the order set */
    void (*fn)(void *arg);
    void *arg;
};
/* Sets or moves a timer (zero-initialised before first use). It fires once, delay_ms after this
 * call; set from a timer, in the next round at the earliest. A negative delay is 0. */
void loop_timer_set(struct loop *l, struct loop_timer *t, int64_t delay_ms, void (*fn)(void *arg),
                    void *arg);
/* Fires once, at the next multiple of period_ms, for periodic work that need not be exact: timers
 * of one period share a round, so an idle program wakes once for all. */
void loop_timer_beat(struct loop *l, struct loop_timer *t, int64_t period_ms, void (*fn)(void *arg),
                     void *arg);
void loop_timer_cancel(struct loop *l, struct loop_timer *t);

/* mailbox - a bounded queue with many writers, read by the loop in order. A full mailbox blocks the
 * writer, which is the back-pressure on watches. */
struct mailbox;
enum { MAILBOX_ROUND = 1024 };
/* The loop calls deliver with each message. dispose frees messages left when the mailbox is freed
 * or a post is refused. */
int mailbox_new(struct mailbox **out, struct loop *l, size_t capacity,
                void (*deliver)(void *arg, void *msg), void (*dispose)(void *msg), void *arg,
                struct error *err);
/* Any thread. Takes msg. False: closed, and msg is disposed of. Blocks while the mailbox is full,
 * except in a callback on the loop's thread, where it exceeds the capacity instead of deadlocking.
 * A round delivers at most MAILBOX_ROUND messages per mailbox before timers and descriptors. */
bool mailbox_post(struct mailbox *mb, void *msg);
/* Any thread. Refuses later posts and releases blocked writers; queued messages are still
 * delivered. NULL is fine. */
void mailbox_close(struct mailbox *mb);
/* Call after every writer has ended, before loop_free, not from deliver. NULL is fine. */
void mailbox_free(struct mailbox *mb);
