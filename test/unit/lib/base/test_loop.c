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

static struct loop *loop;
static struct strbuf seen; /* what happened, in order */

static int begin(void **state)
{
    (void)state;
    strbuf_init(&seen);
    return loop_new(&loop, NULL);
}

static int end(void **state)
{
    (void)state;
    loop_free(loop);
    loop = NULL;
    strbuf_deinit(&seen);
    return 0;
}

static void note(void *arg)
{
    strbuf_adds(&seen, arg);
}

static void stop(void *arg)
{
    (void)arg;
    loop_stop(loop);
}

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

/* Whichever runs first takes the other one off, closes it, and opens a new descriptor under its number. */
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

/* --- mailboxes --- */

enum { WRITERS = 4, LETTERS = 5000 };

struct letter {
    int writer, number;
};

struct post_office {
    struct mailbox *box;
    int next[WRITERS];
    int delivered;
    int wrong;
    int stop_at;
};

static _Atomic int disposed;

static void dispose(void *msg)
{
    disposed++;
    free(msg);
}

static void deliver(void *arg, void *msg)
{
    struct post_office *office = arg;
    struct letter *letter = msg;
    if (letter->number != office->next[letter->writer]++)
        office->wrong++;
    free(letter);
    if (++office->delivered == office->stop_at)
        loop_stop(loop);
}

static struct letter *new_letter(int writer, int number)
{
    struct letter *letter = malloc(sizeof *letter);
    assert_non_null(letter);
    *letter = (struct letter){writer, number};
    return letter;
}

struct writer {
    struct post_office *office;
    int number;
    int refused;
};

static void *write_letters(void *arg)
{
    struct writer *w = arg;
    for (int i = 0; i < LETTERS; i++)
        if (!mailbox_post(w->office->box, new_letter(w->number, i)))
            w->refused++;
    return NULL;
}

static void letters_of_many_writers_arrive_in_their_order(void **state)
{
    (void)state;
    static const size_t capacities[] = {1, 2, 64, 65, 1000000};
    for (size_t c = 0; c < sizeof capacities / sizeof *capacities; c++) {
        struct post_office office = {.stop_at = WRITERS * LETTERS};
        assert_int_equal(
            0, mailbox_new(&office.box, loop, capacities[c], deliver, dispose, &office, NULL));
        struct writer writers[WRITERS];
        pthread_t threads[WRITERS];
        for (int i = 0; i < WRITERS; i++) {
            writers[i] = (struct writer){.office = &office, .number = i};
            assert_int_equal(0, pthread_create(&threads[i], NULL, write_letters, &writers[i]));
        }
        loop_run(loop);
        for (int i = 0; i < WRITERS; i++)
            pthread_join(threads[i], NULL);
        expect_int("all delivered", WRITERS * LETTERS, office.delivered);
        expect_int("each writer's letters in order", 0, office.wrong);
        mailbox_free(office.box);
    }
    expect_done();
}

static void closing_frees_the_writers_that_wait(void **state)
{
    (void)state;
    struct post_office office = {0};
    disposed = 0;
    assert_int_equal(0, mailbox_new(&office.box, loop, 10, deliver, dispose, &office, NULL));
    struct writer writers[WRITERS];
    pthread_t threads[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.office = &office, .number = i};
        assert_int_equal(0, pthread_create(&threads[i], NULL, write_letters, &writers[i]));
    }
    while (office.delivered < 100)
        loop_once(loop, 1000);
    mailbox_close(office.box);
    int refused = 0;
    for (int i = 0; i < WRITERS; i++) {
        pthread_join(threads[i], NULL);
        refused += writers[i].refused;
    }
    expect_true("some were refused", refused > 0);
    expect_int("each refused letter was disposed of", refused, disposed);
    expect_int("a post after the close", false, mailbox_post(office.box, new_letter(0, 0)));
    loop_once(loop, 0);
    mailbox_free(office.box);
    expect_int("every letter was delivered or disposed of", WRITERS * LETTERS + 1,
               office.delivered + disposed);
    expect_int("order", 0, office.wrong);
    expect_done();
}

static void what_is_inside_is_delivered_after_the_close(void **state)
{
    (void)state;
    struct post_office office = {0};
    assert_int_equal(0, mailbox_new(&office.box, loop, 10, deliver, dispose, &office, NULL));
    for (int i = 0; i < 3; i++)
        expect_true("post", mailbox_post(office.box, new_letter(0, i)));
    mailbox_close(office.box);
    loop_once(loop, 1000);
    expect_int("delivered", 3, office.delivered);
    mailbox_free(office.box);
    expect_done();
}

static void freeing_disposes_of_what_is_inside(void **state)
{
    (void)state;
    struct post_office office = {0};
    disposed = 0;
    assert_int_equal(0, mailbox_new(&office.box, loop, 200, deliver, dispose, &office, NULL));
    for (int i = 0; i < 100; i++)
        mailbox_post(office.box, new_letter(0, i));
    mailbox_free(office.box);
    mailbox_free(NULL);
    loop_free(NULL);
    expect_int("disposed of", 100, disposed);
    loop_once(loop, 0);
    expect_int("not delivered", 0, office.delivered);
    expect_done();
}

static void a_capacity_of_none_is_refused(void **state)
{
    (void)state;
    struct mailbox *box = NULL;
    struct error err = ERROR_INIT;
    expect_int("refused", -1, mailbox_new(&box, loop, 0, deliver, dispose, NULL, &err));
    expect_int("code", ERROR_INVALID, err.code);
    expect_done();
}

/* A letter with number n > 0 posts n - 1 twice, from inside deliver. */
static struct mailbox *nested_box;
static int nested_delivered;

static void deliver_nested(void *arg, void *msg)
{
    (void)arg;
    struct letter *letter = msg;
    nested_delivered++;
    for (int i = 0; i < 2 && letter->number > 0; i++)
        mailbox_post(nested_box, new_letter(0, letter->number - 1));
    free(letter);
}

static void the_loop_itself_may_post_over_the_capacity(void **state)
{
    (void)state;
    nested_delivered = 0;
    assert_int_equal(0, mailbox_new(&nested_box, loop, 1, deliver_nested, dispose, NULL, NULL));
    expect_true("post", mailbox_post(nested_box, new_letter(0, 9)));
    for (int i = 0; i < 100; i++)
        loop_once(loop, 0);
    expect_int("2^10 - 1 letters, and no deadlock", 1023, nested_delivered);
    mailbox_free(nested_box);
    expect_done();
}

/* Letters that never end: each one posts itself again. */
static void deliver_forever(void *arg, void *msg)
{
    (*(int *)arg)++;
    mailbox_post(nested_box, msg);
}

static void an_endless_stream_of_letters_does_not_starve_timers(void **state)
{
    (void)state;
    int delivered = 0;
    static char letter[] = "letter";
    assert_int_equal(0, mailbox_new(&nested_box, loop, 1, deliver_forever, NULL, &delivered, NULL));
    mailbox_post(nested_box, letter);
    loop_once(loop, 1000);
    expect_int("a round has its bound", MAILBOX_ROUND, delivered);
    struct loop_timer t = {0};
    loop_timer_set(loop, &t, 5, stop, NULL);
    loop_run(loop); /* ends only if the timer has its turn */
    expect_true("more rounds went by", delivered > MAILBOX_ROUND);
    mailbox_close(nested_box);
    loop_once(loop, 0);
    expect_int("a post on the loop after the close", false, mailbox_post(nested_box, letter));
    mailbox_free(nested_box);
    expect_done();
}

static void note_letter(void *arg, void *msg)
{
    strbuf_addf(&seen, "%s%s", (const char *)arg, (const char *)msg);
}

static void mailboxes_are_read_in_the_order_they_were_made(void **state)
{
    (void)state;
    struct mailbox *a, *b, *c;
    assert_int_equal(0, mailbox_new(&a, loop, 5, note_letter, NULL, (char[]){"a"}, NULL));
    assert_int_equal(0, mailbox_new(&b, loop, 5, note_letter, NULL, (char[]){"b"}, NULL));
    assert_int_equal(0, mailbox_new(&c, loop, 5, note_letter, NULL, (char[]){"c"}, NULL));
    mailbox_post(c, (char[]){"1"});
    mailbox_post(b, (char[]){"2"});
    mailbox_post(a, (char[]){"3"});
    mailbox_free(b);
    loop_once(loop, 1000);
    expect_str("a before c, b is gone", "a3c1", strbuf_str(&seen));
    mailbox_free(a);
    mailbox_free(c);
    expect_done();
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
        cmocka_unit_test_setup_teardown(letters_of_many_writers_arrive_in_their_order, begin, end),
        cmocka_unit_test_setup_teardown(closing_frees_the_writers_that_wait, begin, end),
        cmocka_unit_test_setup_teardown(what_is_inside_is_delivered_after_the_close, begin, end),
        cmocka_unit_test_setup_teardown(freeing_disposes_of_what_is_inside, begin, end),
        cmocka_unit_test_setup_teardown(a_capacity_of_none_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(the_loop_itself_may_post_over_the_capacity, begin, end),
        cmocka_unit_test_setup_teardown(an_endless_stream_of_letters_does_not_starve_timers, begin,
                                        end),
        cmocka_unit_test_setup_teardown(mailboxes_are_read_in_the_order_they_were_made, begin, end),
    };
    return cmocka_run_group_tests_name("loop", tests, NULL, NULL);
}
