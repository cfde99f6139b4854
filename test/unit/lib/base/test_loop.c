// SPDX-License-Identifier: Apache-2.0
#include "lib/base/loop.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>

#include "lib/base/clock.h"
#include "lib/base/str.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/lib/base/looped.h"

/* --- timers --- */

static void timers_fire_by_time_then_in_the_order_set(void **state)
{
    (void)state;
    struct loop_timer t[6] = {0};
    static char names[6][2] = {"a", "b", "c", "d", "e", "f"};
    static const int64_t delays[6] = {3, 1, 0, 2, -5, 1};
    for (int i = 0; i < 6; i++)
        loop_timer_set(loop, &t[i], delays[i] * 20, note, names[i]);
    struct loop_timer last = {0};
    loop_timer_set(loop, &last, 70, stop, NULL);
    loop_run(loop);
    expect_str("order", "cebfda", strbuf_str(&seen));
    expect_done();
}

static void timers_of_one_beat_fire_in_one_round(void **state)
{
    (void)state;
    enum { PERIOD_MS = 200 };
    struct loop_timer a = {0}, b = {0};
    int64_t set_ms = clock_mono_ms();
    loop_timer_beat(loop, &a, PERIOD_MS, note, (char[]){"a"});
    int64_t meanwhile_ms = clock_mono_ms();
    while (clock_mono_ms() < meanwhile_ms + 2)
        ;
    loop_timer_beat(loop, &b, PERIOD_MS, note, (char[]){"b"});
    expect_int("on the beat", 0, a.due_ms % PERIOD_MS);
    expect_true("after now", a.due_ms > set_ms);
    expect_true("within a period", a.due_ms <= meanwhile_ms + PERIOD_MS);
    /* Unless the beat was between the two. */
    if (clock_mono_ms() < a.due_ms)
        expect_int("both at once", a.due_ms, b.due_ms);
    while (seen.len < 2)
        loop_once(loop, 1000);
    expect_str("both", "ab", strbuf_str(&seen));
    expect_done();
}

static void a_timer_fires_once_and_not_early(void **state)
{
    (void)state;
    struct loop_timer t = {0};
    int64_t before = clock_mono_ms();
    loop_timer_set(loop, &t, 30, note, (char[]){"x"});
    while (seen.len == 0)
        loop_once(loop, 1000);
    expect_true("not early", clock_mono_ms() - before >= 30);
    expect_true("now is the time of the round", loop_now_ms(loop) - before >= 30);
    loop_once(loop, 0);
    expect_str("once", "x", strbuf_str(&seen));
    expect_done();
}

static void a_timer_can_be_moved_and_cancelled(void **state)
{
    (void)state;
    struct loop_timer a = {0}, b = {0}, c = {0};
    loop_timer_set(loop, &a, 0, note, (char[]){"a"});
    loop_timer_set(loop, &b, 0, note, (char[]){"b"});
    loop_timer_set(loop, &c, 3600000, note, (char[]){"c"});
    loop_timer_cancel(loop, &a);
    loop_timer_cancel(loop, &a); /* a second time is nothing */
    loop_timer_set(loop, &c, 0, note, (char[]){"C"});
    loop_once(loop, 1000);
    expect_str("a is cancelled, c came forward", "bC", strbuf_str(&seen));
    struct loop_timer never = {0};
    loop_timer_set(loop, &never, INT64_MAX, note, (char[]){"n"});
    loop_once(loop, 0);
    expect_str("the end of time does not wrap", "bC", strbuf_str(&seen));
    expect_done();
}

static struct loop_timer again;
static struct loop_timer victim;
static int rounds;

static void repeat(void *arg)
{
    rounds++;
    loop_timer_set(loop, &again, 0, repeat, arg);
}

static void a_timer_that_sets_itself_does_not_hold_the_round(void **state)
{
    (void)state;
    rounds = 0;
    again = (struct loop_timer){0};
    loop_timer_set(loop, &again, 0, repeat, NULL);
    for (int i = 0; i < 50; i++)
        loop_once(loop, 1000);
    expect_true("at most once in each round", rounds > 0 && rounds <= 50);
    loop_timer_cancel(loop, &again);
    expect_done();
}

static void cancel_victim(void *arg)
{
    note(arg);
    loop_timer_cancel(loop, &victim);
}

static void a_timer_can_cancel_one_that_is_due(void **state)
{
    (void)state;
    victim = (struct loop_timer){0};
    struct loop_timer first = {0};
    loop_timer_set(loop, &first, 0, cancel_victim, (char[]){"f"});
    loop_timer_set(loop, &victim, 0, note, (char[]){"v"});
    loop_once(loop, 1000);
    loop_once(loop, 0);
    expect_str("only the first", "f", strbuf_str(&seen));
    expect_done();
}

/* --- descriptors --- */

static int ends[2];

static void read_byte(void *arg, uint32_t events)
{
    char c;
    if ((events & EPOLLIN) != 0 && read(*(int *)arg, &c, 1) == 1)
        strbuf_addc(&seen, c);
    if ((events & EPOLLHUP) != 0)
        strbuf_addc(&seen, '.');
}

static void a_descriptor_calls_while_it_is_ready(void **state)
{
    (void)state;
    assert_int_equal(0, pipe2(ends, O_CLOEXEC | O_NONBLOCK));
    expect_int("watch", 0, loop_watch_fd(loop, ends[0], EPOLLIN, read_byte, &ends[0], NULL));
    loop_once(loop, 0);
    expect_str("nothing yet", "", strbuf_str(&seen));
    assert_int_equal(2, write(ends[1], "xy", 2));
    loop_once(loop, 1000);
    loop_once(loop, 1000);
    expect_str("level-triggered: again for what is left", "xy", strbuf_str(&seen));
    close(ends[1]);
    loop_once(loop, 1000);
    expect_str("the other end hung up", "xy.", strbuf_str(&seen));
    loop_unwatch_fd(loop, ends[0]);
    loop_unwatch_fd(loop, ends[0]);
    loop_unwatch_fd(loop, -1);
    loop_unwatch_fd(loop, 1 << 20);
    loop_once(loop, 0);
    expect_str("no longer watched", "xy.", strbuf_str(&seen));
    close(ends[0]);
    expect_done();
}

static void write_ready(void *arg, uint32_t events)
{
    (void)arg;
    if ((events & EPOLLOUT) != 0)
        strbuf_addc(&seen, 'w');
}

static void watching_again_replaces(void **state)
{
    (void)state;
    int fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    assert_true(fd >= 0);
    expect_int("first", 0, loop_watch_fd(loop, fd, EPOLLIN, read_byte, &fd, NULL));
    expect_int("again", 0, loop_watch_fd(loop, fd, EPOLLOUT, write_ready, NULL, NULL));
    loop_once(loop, 1000);
    expect_str("the second counts", "w", strbuf_str(&seen));
    close(fd); /* without unwatch: epoll forgets it, the number comes back with the next open */
    int same = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    expect_int("the kernel gives the same number", fd, same);
    expect_int("watch a forgotten number", 0,
               loop_watch_fd(loop, same, EPOLLOUT, write_ready, NULL, NULL));
    loop_once(loop, 1000);
    expect_str("it works", "ww", strbuf_str(&seen));
    loop_unwatch_fd(loop, same);
    close(same);
    expect_done();
}

static void what_cannot_be_watched_is_an_error(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    expect_int("negative", -1, loop_watch_fd(loop, -1, EPOLLIN, read_byte, NULL, &err));
    expect_str("says so", "watch descriptor -1: not open", err.text);
    expect_int("closed", -1, loop_watch_fd(loop, 1000, EPOLLIN, read_byte, NULL, &err));
    expect_str("says so", "watch descriptor 1000: Bad file descriptor", err.text);
    int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    int dir = open("/", O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    expect_int("a directory", -1, loop_watch_fd(loop, dir, EPOLLIN, read_byte, NULL, &err));
    close(dir);
    close(file);
    expect_done();
}

static int pair[2];

static void note_event(void *arg, uint32_t events)
{
    (void)arg;
    (void)events;
    strbuf_addc(&seen, 's');
}

/* Whichever runs first takes the other one off, closes it, and opens a new descriptor under its
 * number. */
static void take_other(void *arg, uint32_t events)
{
    (void)events;
    int mine = *(int *)arg;
    int other = pair[0] == mine ? pair[1] : pair[0];
    strbuf_addc(&seen, 'x');
    loop_unwatch_fd(loop, other);
    close(other);
    int fresh = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fresh != other || loop_watch_fd(loop, fresh, EPOLLIN, note_event, NULL, NULL) < 0)
        strbuf_adds(&seen, "(setup failed)");
    loop_unwatch_fd(loop, mine);
}

static void a_stale_event_is_skipped(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        pair[i] = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
        assert_int_equal(0, loop_watch_fd(loop, pair[i], EPOLLIN, take_other, &pair[i], NULL));
    }
    loop_once(loop, 1000);
    loop_once(loop, 0);
    expect_str("one ran, the other's event was dropped", "x", strbuf_str(&seen));
    for (int i = 0; i < 2; i++) {
        loop_unwatch_fd(loop, pair[i]);
        close(pair[i]);
    }
    expect_done();
}

/* --- signals --- */

static void on_signal(void *arg, int signo)
{
    strbuf_addf(&seen, "%s%s", (const char *)arg,
                signo == SIGHUP    ? "hup"
                : signo == SIGUSR1 ? "usr1"
                                   : "other");
}

static void signals_come_through_the_loop(void **state)
{
    (void)state;
    loop_block_signals();
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    static const int blocked[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGPIPE};
    for (size_t i = 0; i < sizeof blocked / sizeof *blocked; i++)
        expect_true("blocked", sigismember(&now, blocked[i]));
    expect_true("no signal waits before one is asked for", !loop_signal_waits(loop));
    expect_int("hup", 0, loop_on_signal(loop, SIGHUP, on_signal, (char[]){"1"}, NULL));
    expect_int("usr1", 0, loop_on_signal(loop, SIGUSR1, on_signal, (char[]){"2"}, NULL));
    kill(getpid(), SIGHUP);
    kill(getpid(), SIGUSR1);
    kill(getpid(), SIGUSR1); /* already pending: one */
    expect_true("they wait", loop_signal_waits(loop));
    loop_once(loop, 1000);
    expect_true("they wait no longer", !loop_signal_waits(loop));
    expect_str("both", "1hup2usr1", strbuf_str(&seen));
    strbuf_reset(&seen);
    expect_int("replaced", 0, loop_on_signal(loop, SIGHUP, on_signal, (char[]){"3"}, NULL));
    kill(getpid(), SIGHUP);
    loop_once(loop, 1000);
    expect_str("the second handler", "3hup", strbuf_str(&seen));
    struct error err = ERROR_INIT;
    expect_int("no signal 0", -1, loop_on_signal(loop, 0, on_signal, NULL, &err));
    expect_str("says so", "signal 0: no such signal", err.text);
    expect_int("no signal 65", -1, loop_on_signal(loop, 65, on_signal, NULL, &err));
    expect_int("signal 64 is the last", 0, loop_on_signal(loop, 64, on_signal, (char[]){""}, &err));
    expect_done();
}

/* --- stop --- */

static void a_stop_before_the_run_ends_it_at_once(void **state)
{
    (void)state;
    loop_stop(loop);
    loop_stop(loop);
    loop_run(loop);
    struct loop_timer t = {0};
    loop_timer_set(loop, &t, 0, stop, NULL);
    loop_run(loop); /* one stop (or two) ended one run: this one goes on to the timer */
    expect_true("the timer has fired", !heap_has(&t.node));
    expect_done();
}

static void *stop_from_thread(void *arg)
{
    loop_stop(arg);
    return NULL;
}

static void another_thread_stops_the_loop(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        pthread_t thread;
        assert_int_equal(0, pthread_create(&thread, NULL, stop_from_thread, loop));
        loop_run(loop);
        pthread_join(thread, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(timers_fire_by_time_then_in_the_order_set, begin, end),
        cmocka_unit_test_setup_teardown(timers_of_one_beat_fire_in_one_round, begin, end),
        cmocka_unit_test_setup_teardown(a_timer_fires_once_and_not_early, begin, end),
        cmocka_unit_test_setup_teardown(a_timer_can_be_moved_and_cancelled, begin, end),
        cmocka_unit_test_setup_teardown(a_timer_that_sets_itself_does_not_hold_the_round, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_timer_can_cancel_one_that_is_due, begin, end),
        cmocka_unit_test_setup_teardown(a_descriptor_calls_while_it_is_ready, begin, end),
        cmocka_unit_test_setup_teardown(watching_again_replaces, begin, end),
        cmocka_unit_test_setup_teardown(what_cannot_be_watched_is_an_error, begin, end),
        cmocka_unit_test_setup_teardown(a_stale_event_is_skipped, begin, end),
        cmocka_unit_test_setup_teardown(signals_come_through_the_loop, begin, end),
        cmocka_unit_test_setup_teardown(a_stop_before_the_run_ends_it_at_once, begin, end),
        cmocka_unit_test_setup_teardown(another_thread_stops_the_loop, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
