// SPDX-License-Identifier: Apache-2.0
/*
 * loop - one thread, its file descriptors, timers, signals, and letters from other threads.
 *
 * All functions belong to the loop's thread, except mailbox_post, mailbox_close and loop_stop.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/error.h"
#include "lib/base/heap.h"

struct loop;

/* Blocks SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGPIPE for this thread and all it starts: first
 * thing in main(). */
void loop_block_signals(void);

int loop_new(struct loop **out, struct error *err);
void loop_free(struct loop *l); /* NULL is fine; mailboxes go first */
/* Runs until loop_stop. One stop ends one run; a stop that came before the run ends it at once. */
void loop_run(struct loop *l);
/* One round: waits at most max_wait_ms for something to do, does it. For tests. */
void loop_once(struct loop *l, int64_t max_wait_ms);
/* Any thread. The round in hand is finished. */
void loop_stop(struct loop *l);
/* Monotonic, as of the start of this round. */
int64_t loop_now_ms(const struct loop *l);

/* fn is called while fd is ready (level-triggered). events: EPOLLIN|EPOLLOUT; fn sees EPOLLERR and
 * EPOLLHUP as well. Watching an fd again replaces events, fn and arg. Callbacks may watch and
 * unwatch anything, also themselves; unwatch before close. */
int loop_watch_fd(struct loop *l, int fd, uint32_t events, void (*fn)(void *arg, uint32_t events),
                  void *arg, struct error *err);
void loop_unwatch_fd(struct loop *l, int fd);
/* The signal was blocked by loop_block_signals. A second call for the same signal replaces the
 * first. */
int loop_on_signal(struct loop *l, int signo, void (*fn)(void *arg, int signo), void *arg,
                   struct error *err);
/* Is there a signal that its handler has not been told of, because the loop is busy with something else? Any thread. */
bool loop_signal_waits(const struct loop *l);

struct loop_timer {
    struct heap_node node;
    int64_t due_ms;
    uint64_t seq; /* equal times fire in the order set */
    void (*fn)(void *arg);
    void *arg;
};
/* Sets or moves it (zero-initialised before its first use). Fires once, delay_ms after this call,
 * not after the start of the round; set by a timer it fires in the next round at the earliest. A
 * negative delay is 0. */
void loop_timer_set(struct loop *l, struct loop_timer *t, int64_t delay_ms, void (*fn)(void *arg),
                    void *arg);
/* For what has to be looked after every now and then, no matter when exactly: fires once, at the next
 * multiple of period_ms on the clock. So timers of one period fire in one round, and a program that
 * has nothing to do is woken once for all of them. */
void loop_timer_beat(struct loop *l, struct loop_timer *t, int64_t period_ms, void (*fn)(void *arg),
                     void *arg);
void loop_timer_cancel(struct loop *l, struct loop_timer *t);

/*
 * mailbox - bounded, many writers, read by the loop in order. A full mailbox makes the writer wait:
 * that is the back-pressure on watches.
 */
struct mailbox;
enum { MAILBOX_ROUND = 1024 };
/* deliver is called on the loop with each message; dispose frees what is still inside when the
 * mailbox is freed or a post is refused. */
int mailbox_new(struct mailbox **out, struct loop *l, size_t capacity,
                void (*deliver)(void *arg, void *msg), void (*dispose)(void *msg), void *arg,
                struct error *err);
/* Any thread. Takes msg. false: closed, msg was disposed of. Waits while the mailbox is full,
 * except on the loop's own thread inside a callback: waiting there would be for ever, so such a
 * post goes over the capacity. A round delivers at most MAILBOX_ROUND messages of each mailbox,
 * then timers and descriptors have their turn. */
bool mailbox_post(struct mailbox *mb, void *msg);
/* Any thread. Later posts are refused and waiting writers return; what is inside is still
 * delivered. NULL is fine. */
void mailbox_close(struct mailbox *mb);
/* After every writer has ended, before loop_free, not from deliver. NULL is fine. */
void mailbox_free(struct mailbox *mb);
