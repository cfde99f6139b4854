// SPDX-License-Identifier: Apache-2.0
#include "scheduler/binding/workers.h"

#include <pthread.h>

#include "lib/base/clock.h"
#include "test/unit/lib/base/expect.h"

enum { WAIT_MS = 30000, JOBS = 200 };

/* Jobs wait at a gate, so that the tests know what runs. */
struct shop {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool open;
    int begun, done, disposed;
    int order[JOBS];
    unsigned highest_thread;
};
static struct shop shop;
static int numbers[JOBS];

static int setup(void **state)
{
    (void)state;
    shop = (struct shop){.open = false};
    pthread_mutex_init(&shop.lock, NULL);
    pthread_cond_init(&shop.moved, NULL);
    for (int i = 0; i < JOBS; i++)
        numbers[i] = i;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    pthread_cond_destroy(&shop.moved);
    pthread_mutex_destroy(&shop.lock);
    return 0;
}

static void run(void *arg, unsigned thread, void *job)
{
    struct shop *s = arg;
    pthread_mutex_lock(&s->lock);
    s->order[s->begun++] = *(int *)job;
    s->highest_thread = thread > s->highest_thread ? thread : s->highest_thread;
    while (!s->open)
        pthread_cond_wait(&s->moved, &s->lock);
    s->done++;
    pthread_mutex_unlock(&s->lock);
}

static void dispose(void *job)
{
    (void)job;
    pthread_mutex_lock(&shop.lock);
    shop.disposed++;
    pthread_mutex_unlock(&shop.lock);
}

static void open_shop(void)
{
    pthread_mutex_lock(&shop.lock);
    shop.open = true;
    pthread_cond_broadcast(&shop.moved);
    pthread_mutex_unlock(&shop.lock);
}

static int read_int(const int *figure)
{
    pthread_mutex_lock(&shop.lock);
    int n = *figure;
    pthread_mutex_unlock(&shop.lock);
    return n;
}

static void await(const int *figure, int n)
{
    for (int64_t end = clock_mono_ms() + WAIT_MS; read_int(figure) < n; clock_sleep_ms(1))
        if (clock_mono_ms() >= end)
            fail_msg("expected %d, got %d after %d ms", n, read_int(figure), WAIT_MS);
}

static struct workers *start(unsigned threads, size_t capacity)
{
    struct workers *w = NULL;
    struct error err = ERROR_INIT;
    struct workers_config c = {
        .threads = threads, .capacity = capacity, .run = run, .dispose = dispose, .arg = &shop};
    if (workers_start(&w, &c, &err) < 0)
        fail_msg("%s", err.text);
    return w;
}

static void one_thread_takes_jobs_in_order(void **state)
{
    (void)state;
    struct workers *w = start(1, 0);
    open_shop();
    for (int i = 0; i < JOBS; i++)
        expect_true("taken", workers_submit(w, &numbers[i]));
    await(&shop.done, JOBS);
    for (int i = 0; i < JOBS; i++)
        expect_int("in order", i, shop.order[i]);
    workers_stop(w);
    expect_int("none disposed of", 0, shop.disposed);
    expect_done();
}

static void jobs_run_side_by_side_and_count_as_pending_until_done(void **state)
{
    (void)state;
    struct workers *w = start(3, 0);
    expect_int("nothing to do", 0, (int64_t)workers_pending(w));
    for (int i = 0; i < 5; i++)
        (void)workers_submit(w, &numbers[i]);
    await(&shop.begun, 3);
    expect_int("three run, two wait", 5, (int64_t)workers_pending(w));
    expect_int("three at a time", 3, read_int(&shop.begun));
    expect_int("threads are numbered from 0", 2, shop.highest_thread);
    open_shop();
    await(&shop.done, 5);
    for (int64_t end = clock_mono_ms() + WAIT_MS; workers_pending(w) > 0 && clock_mono_ms() < end;)
        clock_sleep_ms(1);
    expect_int("all done", 0, (int64_t)workers_pending(w));
    workers_stop(w);
    expect_done();
}

static void a_full_queue_refuses_and_disposes(void **state)
{
    (void)state;
    struct workers *w = start(1, 2);
    (void)workers_submit(w, &numbers[0]);
    await(&shop.begun, 1);
    expect_true("one waits", workers_submit(w, &numbers[1]));
    expect_true("two wait", workers_submit(w, &numbers[2]));
    expect_true("a third does not", !workers_submit(w, &numbers[3]));
    expect_int("it is disposed of", 1, read_int(&shop.disposed));
    open_shop();
    await(&shop.done, 3);
    workers_stop(w);
    expect_done();
}

static void *open_later(void *arg)
{
    struct workers *w = arg;
    /* workers_stop has begun when submitting is refused. */
    while (workers_submit(w, &numbers[0]))
        clock_sleep_ms(1);
    open_shop();
    return NULL;
}

static void stopping_finishes_what_runs_and_disposes_of_what_waits(void **state)
{
    (void)state;
    struct workers *w = start(2, 0);
    pthread_t opener;
    for (int i = 0; i < 10; i++)
        (void)workers_submit(w, &numbers[i]);
    await(&shop.begun, 2);
    assert_int_equal(0, pthread_create(&opener, NULL, open_later, w));
    workers_stop(w);
    pthread_join(opener, NULL);
    expect_int("those that ran are finished", 2, shop.done);
    expect_true("the others are disposed of, the refused one too", shop.disposed >= 9);
    workers_stop(NULL);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_thread_takes_jobs_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(jobs_run_side_by_side_and_count_as_pending_until_done,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_queue_refuses_and_disposes, setup, teardown),
        cmocka_unit_test_setup_teardown(stopping_finishes_what_runs_and_disposes_of_what_waits,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
