// SPDX-License-Identifier: Apache-2.0
#include "lib/base/loop.h"

#include <pthread.h>
#include <time.h>

#include "lib/base/clock.h"
#include "test/unit/lib/base/looped.h"

enum { WRITERS = 4, MESSAGES = 5000 };

struct message {
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
    struct message *message = msg;
    if (message->number != office->next[message->writer]++)
        office->wrong++;
    free(message);
    if (++office->delivered == office->stop_at)
        loop_stop(loop);
}

static struct message *new_message(int writer, int number)
{
    struct message *message = malloc(sizeof *message);
    assert_non_null(message);
    *message = (struct message){writer, number};
    return message;
}

struct writer {
    struct post_office *office;
    int number;
    int refused;
};

static void *write_messages(void *arg)
{
    struct writer *w = arg;
    for (int i = 0; i < MESSAGES; i++)
        if (!mailbox_post(w->office->box, new_message(w->number, i)))
            w->refused++;
    return NULL;
}

static void messages_of_many_writers_arrive_in_their_order(void **state)
{
    (void)state;
    static const size_t capacities[] = {1, 2, 64, 65, 1000000};
    for (size_t c = 0; c < sizeof capacities / sizeof *capacities; c++) {
        struct post_office office = {.stop_at = WRITERS * MESSAGES};
        assert_int_equal(
            0, mailbox_new(&office.box, loop, capacities[c], deliver, dispose, &office, NULL));
        struct writer writers[WRITERS];
        pthread_t threads[WRITERS];
        for (int i = 0; i < WRITERS; i++) {
            writers[i] = (struct writer){.office = &office, .number = i};
            assert_int_equal(0, pthread_create(&threads[i], NULL, write_messages, &writers[i]));
        }
        loop_run(loop);
        for (int i = 0; i < WRITERS; i++)
            pthread_join(threads[i], NULL);
        expect_int("all delivered", WRITERS * MESSAGES, office.delivered);
        expect_int("each writer's messages in order", 0, office.wrong);
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
        assert_int_equal(0, pthread_create(&threads[i], NULL, write_messages, &writers[i]));
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
    expect_int("each refused message was disposed of", refused, disposed);
    expect_int("a post after the close", false, mailbox_post(office.box, new_message(0, 0)));
    loop_once(loop, 0);
    mailbox_free(office.box);
    expect_int("every message was delivered or disposed of", WRITERS * MESSAGES + 1,
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
        expect_true("post", mailbox_post(office.box, new_message(0, i)));
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
        mailbox_post(office.box, new_message(0, i));
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

/* A message with number n > 0 posts n - 1 twice, from inside deliver. */
static struct mailbox *nested_box;
static int nested_delivered;

static void deliver_nested(void *arg, void *msg)
{
    (void)arg;
    struct message *message = msg;
    nested_delivered++;
    for (int i = 0; i < 2 && message->number > 0; i++)
        mailbox_post(nested_box, new_message(0, message->number - 1));
    free(message);
}

static void the_loop_itself_may_post_over_the_capacity(void **state)
{
    (void)state;
    nested_delivered = 0;
    assert_int_equal(0, mailbox_new(&nested_box, loop, 1, deliver_nested, dispose, NULL, NULL));
    expect_true("post", mailbox_post(nested_box, new_message(0, 9)));
    for (int i = 0; i < 100; i++)
        loop_once(loop, 0);
    expect_int("2^10 - 1 messages, and no deadlock", 1023, nested_delivered);
    mailbox_free(nested_box);
    expect_done();
}

/* Messages that never end: each one posts itself again. */
static void deliver_forever(void *arg, void *msg)
{
    (*(int *)arg)++;
    mailbox_post(nested_box, msg);
}

static void an_endless_stream_of_messages_does_not_starve_timers(void **state)
{
    (void)state;
    int delivered = 0;
    static char message[] = "message";
    assert_int_equal(0, mailbox_new(&nested_box, loop, 1, deliver_forever, NULL, &delivered, NULL));
    mailbox_post(nested_box, message);
    loop_once(loop, 1000);
    expect_int("a round has its bound", MAILBOX_ROUND, delivered);
    struct loop_timer t = {0};
    loop_timer_set(loop, &t, 5, stop, NULL);
    loop_run(loop); /* ends only if the timer has its turn */
    expect_true("more rounds went by", delivered > MAILBOX_ROUND);
    mailbox_close(nested_box);
    loop_once(loop, 0);
    expect_int("a post on the loop after the close", false, mailbox_post(nested_box, message));
    mailbox_free(nested_box);
    expect_done();
}

static void note_message(void *arg, void *msg)
{
    strbuf_addf(&seen, "%s%s", (const char *)arg, (const char *)msg);
}

static void mailboxes_are_read_in_the_order_they_were_made(void **state)
{
    (void)state;
    struct mailbox *a, *b, *c;
    assert_int_equal(0, mailbox_new(&a, loop, 5, note_message, NULL, (char[]){"a"}, NULL));
    assert_int_equal(0, mailbox_new(&b, loop, 5, note_message, NULL, (char[]){"b"}, NULL));
    assert_int_equal(0, mailbox_new(&c, loop, 5, note_message, NULL, (char[]){"c"}, NULL));
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
        cmocka_unit_test_setup_teardown(messages_of_many_writers_arrive_in_their_order, begin, end),
        cmocka_unit_test_setup_teardown(closing_frees_the_writers_that_wait, begin, end),
        cmocka_unit_test_setup_teardown(what_is_inside_is_delivered_after_the_close, begin, end),
        cmocka_unit_test_setup_teardown(freeing_disposes_of_what_is_inside, begin, end),
        cmocka_unit_test_setup_teardown(a_capacity_of_none_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(the_loop_itself_may_post_over_the_capacity, begin, end),
        cmocka_unit_test_setup_teardown(an_endless_stream_of_messages_does_not_starve_timers, begin,
                                        end),
        cmocka_unit_test_setup_teardown(mailboxes_are_read_in_the_order_they_were_made, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
