// SPDX-License-Identifier: Apache-2.0
/* Events live for a while after they were written last. */
#include "test/local/store/expiry.h"

#include "test/unit/lib/base/expect.h"

#include "lib/base/clock.h"
#include "lib/base/str.h"

enum { TTL = 1000, MANY = 3000 };

static int64_t now;
static int64_t manual(void)
{
    return now;
}

struct world {
    struct loop *loop;
    struct store *store;
    struct expiry *expiry;
    struct store_listener listener;
    char told[400]; /* "+a ~a -a": what a watcher saw */
    uint64_t last;
};

static void hear(void *arg, const struct store_event *e)
{
    struct world *w = arg;
    size_t at = strlen(w->told);
    if (at + 64 < sizeof w->told)
        str_format(w->told + at, sizeof w->told - at, "%s%c%s", at ? " " : "", "+~-"[e->change],
                   e -> object -> name);
    if (e->version <= w->last || e->object->version != e->version)
        fail_msg("%s: version %llu of %llu after %llu", e->object->key,
                 (unsigned long long)e->object->version, (unsigned long long)e->version,
                 (unsigned long long)w->last);
    w->last = e->version;
}

static void begin(struct world *w, int64_t ttl_ms, int64_t (*clock)(void))
{
    const struct expiry_config c = {.loop = w->loop,
                                    .store = w->store,
                                    .kind = &kind_events,
                                    .ttl_ms = ttl_ms,
                                    .now_ms = clock};
    w->expiry = expiry_start(&c);
}

static int up(void **state)
{
    static struct world w;
    struct error err = ERROR_INIT;
    w = (struct world){.store = store_new(10000)};
    now = 5000;
    if (loop_new(&w.loop, &err) < 0)
        fail_msg("loop: %s", err.text);
    w.listener = (struct store_listener){.kind = NULL, .fn = hear, .arg = &w};
    store_listen(w.store, &w.listener);
    *state = &w;
    return 0;
}

static int down(void **state)
{
    struct world *w = *state;
    expiry_stop(w->expiry);
    store_free(w->store);
    loop_free(w->loop);
    return 0;
}

static void put(struct world *w, const struct kind *k, const char *name, int count)
{
    char text[200];
    struct error err = ERROR_INIT;
    str_format(
        text, sizeof text,
        "{\"apiVersion\":\"v1\",\"kind\":\"%s\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"default\"},\"count\":%d}",
        k->kind, name, count);
    int rc = store_get(w->store, k, "default", name)
                 ? store_update(w->store, k, text, strlen(text), 0, NULL, &err)
                 : store_create(w->store, k, text, strlen(text), NULL, &err);
    if (rc < 0)
        fail_msg("%s: %s", name, err.text);
}

static void expect_told(struct world *w, const char *row, const char *want)
{
    expect_str(row, want, w->told);
    w->told[0] = '\0';
}

static void at(struct world *w, int64_t ms)
{
    now = 5000 + ms;
    expiry_run(w->expiry);
}

static void each_goes_when_its_time_is_over(void **state)
{
    struct world *w = *state;
    begin(w, TTL, manual);
    put(w, &kind_events, "a", 1);
    now += 300;
    put(w, &kind_events, "b", 1);
    at(w, TTL - 1);
    expect_told(w, "a millisecond before both are there", "+a +b");
    at(w, TTL);
    expect_told(w, "a is deleted, as any watcher sees", "-a");
    expect_int("b is left", 1, (int64_t)store_count(w->store, &kind_events));
    at(w, TTL + 299);
    expect_told(w, "b has its own time", "");
    at(w, TTL + 300);
    expect_told(w, "then it goes too", "-b");
    at(w, 100 * TTL);
    expect_told(w, "nothing goes twice", "");
    expect_done();
}

static void a_write_renews_the_time_and_a_write_that_changes_nothing_does_not(void **state)
{
    struct world *w = *state;
    begin(w, TTL, manual);
    put(w, &kind_events, "a", 1);
    put(w, &kind_events, "b", 1);
    put(w, &kind_events, "c", 1);
    at(w, 600);
    put(w, &kind_events, "a", 2);
    put(w, &kind_events, "b", 1); /* as it is */
    expect_told(w, "a is changed", "+a +b +c ~a");
    at(w, TTL);
    expect_told(w, "the others go", "-b -c");
    at(w, TTL + 599);
    expect_told(w, "a lives on", "");
    at(w, TTL + 600);
    expect_told(w, "until its new time", "-a");
    expect_done();
}

static void who_was_deleted_and_made_again_begins_anew(void **state)
{
    struct world *w = *state;
    struct error err = ERROR_INIT;
    begin(w, TTL, manual);
    put(w, &kind_events, "a", 1);
    at(w, 500);
    assert_int_equal(store_delete(w->store, &kind_events, "default", "a", 0, &err), 0);
    at(w, 700);
    put(w, &kind_events, "a", 1);
    at(w, TTL + 699);
    expect_told(w, "the first one's time does not count", "+a -a +a");
    at(w, TTL + 700);
    expect_told(w, "the second one's does", "-a");
    expect_done();
}

static void other_kinds_stay(void **state)
{
    struct world *w = *state;
    begin(w, TTL, manual);
    put(w, &kind_pods, "m", 1);
    put(w, &kind_events, "a", 1);
    at(w, 100 * TTL);
    expect_told(w, "only the Event goes", "+m +a -a");
    expect_done();
}

static void what_was_there_before_has_the_whole_time(void **state)
{
    struct world *w = *state;
    put(w, &kind_events, "a", 1);
    now += 10 * TTL;
    begin(w, TTL, manual);
    at(w, 11 * TTL - 1);
    expect_told(w, "not yet", "+a");
    at(w, 11 * TTL);
    expect_told(w, "now", "-a");
    expect_done();
}

/* One that is told of a deletion and writes the same name again, at once, inside the telling. */
static void write_again(void *arg, const struct store_event *e)
{
    struct world *w = arg;
    if (e->change == STORE_DELETED && str_eq(e->object->name, "a"))
        put(w, &kind_events, "b", (int)e->version);
}

static void listeners_that_write_in_the_middle_of_it(void **state)
{
    struct world *w = *state;
    struct store_listener l = {.kind = &kind_events, .fn = write_again, .arg = w};
    store_listen(w->store, &l); /* before the expiry hears of it */
    begin(w, TTL, manual);
    put(w, &kind_events, "a", 1);
    put(w, &kind_events, "b", 1);
    put(w, &kind_events, "c", 1);
    at(w, TTL);
    expect_told(w, "b was due as well, but is written when a goes", "+a +b +c -a ~b -c");
    at(w, 2 * TTL);
    expect_told(w, "b has a new time", "-b");
    store_unlisten(w->store, &l);
    expect_done();
}

static void many_go_in_several_rounds(void **state)
{
    struct world *w = *state;
    begin(w, TTL, manual);
    for (int i = 0; i < MANY; i++) {
        char name[32];
        str_format(name, sizeof name, "e%d", i);
        put(w, &kind_events, name, i);
    }
    now += TTL;
    int rounds = 0;
    for (; store_count(w->store, &kind_events) > 0 && rounds < MANY; rounds++)
        expiry_run(w->expiry);
    expect_int("none is left", 0, (int64_t)store_count(w->store, &kind_events));
    if (rounds < 2)
        fail_msg("expected several rounds, got %d", rounds);
    expect_done();
}

static void the_timer_does_it(void **state)
{
    struct world *w = *state;
    begin(w, 2, clock_mono_ms);
    for (int i = 0; i < 3; i++) {
        put(w, &kind_events, "a", i);
        put(w, &kind_events, "b", i);
        for (int k = 0; k < 5000 && store_count(w->store, &kind_events) > 0; k++)
            loop_once(w->loop, 10);
        expect_int("both are gone", 0, (int64_t)store_count(w->store, &kind_events));
    }
    expect_done();
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, up, down)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(each_goes_when_its_time_is_over),
        T(a_write_renews_the_time_and_a_write_that_changes_nothing_does_not),
        T(who_was_deleted_and_made_again_begins_anew),
        T(other_kinds_stay),
        T(what_was_there_before_has_the_whole_time),
        T(listeners_that_write_in_the_middle_of_it),
        T(many_go_in_several_rounds),
        T(the_timer_does_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
