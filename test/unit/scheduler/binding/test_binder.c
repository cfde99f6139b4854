// SPDX-License-Identifier: Apache-2.0
/*
 * The binder against the API server's twin. Each row of the table is what the server says to the
 * requests of one Binding, in turn, and what must come of it.
 */
#include "scheduler/binding/binder.h"

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/kube/http.h"
#include "test/fake/api/twin.h"
#include "test/unit/lib/base/expect.h"

enum { WAIT_MS = 60000, TIMEOUT_MS = 200, STEPS_MAX = 10 };

#define POD_OF(uid, node) \
    "{\"metadata\":{\"uid\":\"" uid "\"},\"spec\":{\"nodeName\":\"" node "\"}}"
#define OURS POD_OF("u1", "n1")
#define ELSEWHERE POD_OF("u1", "n2")
#define ANOTHER POD_OF("u2", "n1")
#define UNBOUND "{\"metadata\":{\"uid\":\"u1\"},\"spec\":{}}"

struct step {
    enum twin_fault fault; /* or an answer: */
    int status;
    const char *body;
};
#define SAYS(code)                     \
    {                                  \
        .status = (code), .body = "{}" \
    }
#define SHOWS(code, text)                \
    {                                    \
        .status = (code), .body = (text) \
    }
#define DOES(what)      \
    {                   \
        .fault = (what) \
    }

static struct twin *twin;
static struct kube_config *config;
static struct kube_options options;
static struct loop *loop;
static struct mailbox *results;
static struct binder_result *got;
static enum binder_outcome outcomes[64]; /* by ticket */
static int results_taken;

static void take(void *arg, void *msg)
{
    (void)arg;
    if (got != NULL)
        binder_result_free(got);
    got = msg;
    results_taken++;
    outcomes[got->ticket % 64] = got->outcome;
}

static int setup(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    twin = twin_start(NULL, false);
    config = twin_config(twin);
    options = twin_options();
    if (loop_new(&loop, &err) < 0 ||
        mailbox_new(&results, loop, 16, take, binder_result_free, NULL, &err) < 0)
        fail_msg("%s", err.text);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    if (got != NULL)
        binder_result_free(got);
    got = NULL;
    mailbox_free(results);
    loop_free(loop);
    kube_config_free(config);
    twin_stop(twin);
    return 0;
}

static struct binder *start_with(unsigned threads, int64_t timeout_ms, const struct lease *lease)
{
    struct binder *b = NULL;
    struct error err = ERROR_INIT;
    struct binder_config c = {
        .threads = threads, .lease = lease, .results = results, .timeout_ms = timeout_ms};
    if (binder_start(&b, config, &options, &c, &err) < 0)
        fail_msg("%s", err.text);
    return b;
}

static struct binder *start(int64_t timeout_ms, const struct lease *lease)
{
    return start_with(2, timeout_ms, lease);
}

static void submit(struct binder *b)
{
    static const struct label items[] = {{"scheduler.framework.gpushare.allocation", "{\"0\":1}"},
                                         {"cpuset", ""}};
    struct kube_binding binding = {.ns = "d", .pod = "p", .uid = "u1", .node = "n1"};
    struct label copy[2] = {items[0], items[1]};
    binding.annotations = (struct labels){.items = copy, .len = 2};
    binder_submit(b, &binding, 42);
}

static void await_result(const char *row)
{
    for (int64_t end = clock_mono_ms() + WAIT_MS; got == NULL; loop_once(loop, 100))
        if (clock_mono_ms() >= end)
            fail_msg("%s: no result after %d ms", row, WAIT_MS);
}

/* How many of the last `among` requests begin so. */
static int count(const char *beginning, size_t among)
{
    int n = 0;
    for (size_t i = 0; i < among; i++) {
        AUTO_STRBUF request = {0};
        if (!twin_request(twin, i, &request))
            break;
        n += str_starts(strbuf_str(&request), beginning);
    }
    return n;
}

static const struct row {
    const char *sentence;
    enum binder_outcome outcome;
    int posts;
    const char *error; /* begins so; NULL: not looked at */
    struct step steps[STEPS_MAX];
    int repeat; /* of the last step */
    int away;   /* resets after the first step */
} rows[] = {
    {"201: bound", BINDER_BOUND, 1, NULL, .steps = {SHOWS(201, "{}")}},
    {"404: the pod is gone", BINDER_LOST, 1, NULL, .steps = {SAYS(404)}},
    {"403: not allowed, tried again later", BINDER_FAILED, 1, NULL, .steps = {SAYS(403)}},
    {"422: refused, tried again later", BINDER_FAILED, 1, NULL, .steps = {SAYS(422)}},
    {"409, and it is bound where we wanted: an earlier POST of ours", BINDER_BOUND, 1, NULL,
     .steps = {SAYS(409), SHOWS(200, OURS)}},
    {"409, bound elsewhere", BINDER_LOST, 1, "the pod is bound elsewhere",
     .steps = {SAYS(409), SHOWS(200, ELSEWHERE)}},
    {"409, a pod of the same name that was made since, on our node of all", BINDER_LOST, 1,
     "the pod is another one by now", .steps = {SAYS(409), SHOWS(200, ANOTHER)}},
    {"409, and gone", BINDER_LOST, 1, NULL, .steps = {SAYS(409), SAYS(404)}},
    {"409 and not bound: deleting or gated", BINDER_FAILED, 1, "409",
     .steps = {SHOWS(409, "{\"reason\":\"Conflict\"}"), SHOWS(200, UNBOUND)}},
    {"no answer in time, and it was carried out", BINDER_BOUND, 1, NULL,
     .steps = {DOES(TWIN_HANG), SHOWS(200, OURS)}},
    {"connection lost, and it was carried out", BINDER_BOUND, 1, NULL,
     .steps = {DOES(TWIN_RESET), SHOWS(200, OURS)}},
    {"connection lost, and it was not carried out: again", BINDER_BOUND, 2, NULL,
     .steps = {DOES(TWIN_CLOSE), SHOWS(200, UNBOUND), SAYS(201)}},
    {"connection lost, somebody else was first", BINDER_LOST, 1, NULL,
     .steps = {DOES(TWIN_CLOSE), SHOWS(200, ELSEWHERE)}},
    {"connection lost, not carried out when asked, but after that: the 409 is our own",
     BINDER_BOUND, 2, NULL,
     .steps = {DOES(TWIN_CLOSE), SHOWS(200, UNBOUND), SAYS(409), SHOWS(200, OURS)}},
    {"connection lost, and 404 then: gone", BINDER_LOST, 2, NULL,
     .steps = {DOES(TWIN_CLOSE), SHOWS(200, UNBOUND), SAYS(404), SAYS(404)}},
    {"500 and not carried out: again", BINDER_BOUND, 2, NULL,
     .steps = {SAYS(500), SHOWS(200, UNBOUND), SAYS(201)}},
    {"500 and carried out", BINDER_BOUND, 1, NULL, .steps = {SAYS(500), SHOWS(200, OURS)}},
    {"504 and carried out", BINDER_BOUND, 1, NULL, .steps = {SAYS(504), SHOWS(200, OURS)}},
    {"half an answer", BINDER_BOUND, 1, NULL, .steps = {DOES(TWIN_CUT_CHUNK), SHOWS(200, OURS)}},
    {"500 each time: given up, once it is sure that none was carried out", BINDER_FAILED,
     BINDER_TRIES, "500",
     .steps = {SHOWS(500, "{\"reason\":\"InternalError\"}"), SHOWS(200, UNBOUND),
               SHOWS(500, "{\"reason\":\"InternalError\"}"), SHOWS(200, UNBOUND),
               SHOWS(500, "{\"reason\":\"InternalError\"}"), SHOWS(200, UNBOUND),
               SHOWS(500, "{\"reason\":\"InternalError\"}"), SHOWS(200, UNBOUND)},
     .repeat = 8},
    {"the server is away after a lost answer, longer than we try: never given up before it says",
     BINDER_BOUND, BINDER_TRIES, NULL, .steps = {DOES(TWIN_RESET), SHOWS(200, OURS)}, .away = 18},
    {"a lost answer, then 403: asked until the first POST is surely out of the world",
     BINDER_FAILED, 2, NULL,
     .steps = {DOES(TWIN_CLOSE), SHOWS(200, UNBOUND), SAYS(403), SHOWS(200, UNBOUND)}, .repeat = 8},
    {"429: as late as told, and the node is still there", BINDER_BOUND, 2, NULL,
     .steps = {DOES(TWIN_THROTTLE), SHOWS(200, "{}"), SAYS(201)}},
    {"429: as late as told, and the node is gone: nothing is posted to it", BINDER_LOST, 1, NULL,
     .steps = {DOES(TWIN_THROTTLE), SAYS(404)}},
};

static void play(const struct row *row)
{
    size_t before = twin_requests(twin, TWIN_OTHER);
    int steps = 0;
    while (steps < STEPS_MAX &&
           (row->steps[steps].fault != TWIN_NONE || row->steps[steps].status != 0))
        steps++;
    for (int i = 0; i < steps + row->repeat; i++) {
        const struct step *s = &row->steps[i < steps ? i : steps - 1];
        twin_fault(twin, TWIN_OTHER, s->fault);
        if (s->fault == TWIN_NONE)
            twin_script(twin, s->status, "", s->body);
        for (int n = 0; i == 0 && n < row->away; n++)
            twin_fault(twin, TWIN_OTHER, TWIN_RESET);
    }
    struct binder *b = start(TIMEOUT_MS, NULL);
    submit(b);
    await_result(row->sentence);
    size_t asked = twin_requests(twin, TWIN_OTHER) - before;
    binder_stop(b);
    expect_int(row->sentence, row->outcome, got->outcome);
    if (row->posts < BINDER_TRIES || row->outcome == BINDER_FAILED)
        expect_int(row->sentence, row->posts, count("POST ", asked));
    else
        expect_true(row->sentence, count("POST ", asked) <= BINDER_TRIES);
    if (row->repeat == 0)
        expect_int(row->sentence, 0, (int64_t)twin_faults_left(twin));
    if (row->error != NULL && !str_starts(strstr(got->error.text, row->error), row->error))
        expect_str(row->sentence, row->error, got->error.text);
    expect_int("the ticket comes back", 42, (int64_t)got->ticket);
    expect_str("so does the pod", "d/p", got->pod);
    expect_str("and the node", "n1", got->node);
}

static void whatever_the_answer_the_outcome_is_true(void **state)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        (void)setup(state);
        play(&rows[i]);
        (void)teardown(state);
    }
    expect_done();
}

static void a_server_that_is_not_there_is_tried_a_few_times(void **state)
{
    (void)state;
    twin_stop(twin); /* first: over a connection made ahead something may be sent */
    struct binder *b = start(TIMEOUT_MS, NULL);
    submit(b);
    await_result("nobody listens");
    binder_stop(b);
    twin = twin_start(NULL, false);
    expect_int("nothing was ever sent, so it is safe to take it back", BINDER_FAILED, got->outcome);
    expect_done();
}

static void a_binding_says_everything_in_one_request(void **state)
{
    (void)state;
    struct binder *b = start(0, NULL);
    twin_script(twin, 201, "", "{}");
    submit(b);
    await_result("posted");
    binder_stop(b);
    AUTO_STRBUF request = {0};
    assert_true(twin_request(twin, 0, &request));
    const char *text = strbuf_str(&request);
    static const char *const parts[] = {
        "POST /api/v1/namespaces/d/pods/p/binding?timeout=", "\"uid\":\"u1\"", "\"name\":\"n1\"",
        "\"scheduler.framework.gpushare.allocation\":\"{\\\"0\\\":1}\"", "\"cpuset\":\"\""};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strstr(text, parts[i]) == NULL)
            expect_str("is in the request", parts[i], text);
    int ms = 0;
    const char *timeout = strstr(text, "timeout=");
    for (const char *p = timeout + strlen("timeout="); *p >= '0' && *p <= '9'; p++)
        ms = ms * 10 + (*p - '0');
    expect_true("at most 4 s, and nearly all of it", ms > 0 && ms <= BINDER_TIMEOUT_MS);
    expect_done();
}

static void nothing(void *arg)
{
    (void)arg;
}

/* Another replica holds the Lease: a candidate may not write. */
static void with_the_fence_closed_nothing_is_posted(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct lease *lease = NULL;
    struct lease_options o = {.enabled = true,
                              .name = "l",
                              .ns = "kube-system",
                              .identity = "us",
                              .duration_ms = 60000,
                              .renew_deadline_ms = 30000,
                              .retry_ms = 20};
    struct lease_callbacks cb = {.started = nothing, .lost = nothing};
    twin_lease_set(twin, "them");
    if (lease_start(&lease, config, &options, &o, &cb, &err) < 0)
        fail_msg("%s", err.text);
    struct binder *b = start(TIMEOUT_MS, lease);
    submit(b);
    await_result("refused by ourselves");
    expect_int("not bound", BINDER_FAILED, got->outcome);
    expect_int("nothing was posted", 0, count("POST ", 64));
    binder_stop(b);
    lease_stop(lease, false);
    expect_done();
}

/* One connection: the second Binding waits behind the first, which hangs for so long and turns out
 * to have been done. */
static void wait_in_line(struct binder *b, bool node_goes)
{
    struct kube_binding second = {.ns = "d", .pod = "q", .uid = "u2", .node = "n2"};
    results_taken = 0;
    twin_fault(twin, TWIN_OTHER, TWIN_HANG);
    submit(b);
    for (int64_t end = clock_mono_ms() + WAIT_MS; twin_requests(twin, TWIN_OTHER) < 1;
         clock_sleep_ms(1))
        if (clock_mono_ms() >= end)
            fail_msg("the request did not come");
    binder_submit(b, &second, 43);
    binder_node_gone(b, "n3");
    if (node_goes)
        binder_node_gone(b, "n2");
    for (int64_t end = clock_mono_ms() + WAIT_MS; results_taken < 2; loop_once(loop, 100))
        if (clock_mono_ms() >= end)
            fail_msg("%d results after %d ms", results_taken, WAIT_MS);
    expect_int("the first was done", BINDER_BOUND, outcomes[42]);
}

static void a_node_that_leaves_while_its_binding_waits_is_looked_for(void **state)
{
    (void)state;
    struct binder *b = start_with(1, TIMEOUT_MS, NULL);
    twin_script(twin, 200, "", OURS);
    twin_script(twin, 404, "", "{}");
    wait_in_line(b, true);
    expect_int("the node is gone, so the second is void", BINDER_LOST, outcomes[43]);
    expect_int("it was not posted", 1, count("POST ", 64));
    expect_int("the server was asked", 1, count("GET /api/v1/nodes/n2", 64));
    binder_stop(b);
    binder_node_gone(NULL, "n2");
    expect_done();
}

/* Longer than a placement is taken to be fresh by itself. */
static void a_node_that_stays_need_not_be_looked_for(void **state)
{
    (void)state;
    struct binder *b = start_with(1, 1200, NULL);
    /* The first Binding's GET and the second's POST come in either order: one answer fits both. */
    twin_script(twin, 200, "", OURS);
    twin_script(twin, 200, "", OURS);
    wait_in_line(b, false);
    expect_int("posted", BINDER_BOUND, outcomes[43]);
    expect_int("both", 2, count("POST ", 64));
    expect_int("the server was not asked", 0, count("GET /api/v1/nodes", 64));
    binder_stop(b);
    expect_done();
}

/* Requests are limited: then the workers post, which keep the limit. */
static void with_a_limit_on_requests_bindings_are_posted_too(void **state)
{
    (void)state;
    options.qps = 1000;
    struct binder *b = start(TIMEOUT_MS, NULL);
    twin_script(twin, 201, "", "{}");
    submit(b);
    await_result("limited");
    expect_int("bound", BINDER_BOUND, got->outcome);
    binder_stop(b);
    expect_done();
}

/* The timeout is far away: stopping must not wait for it. */
static void stopping_ends_bindings_that_hang(void **state)
{
    (void)state;
    struct binder *b = start(2 * WAIT_MS, NULL);
    int64_t began_ms = clock_mono_ms();
    for (int i = 0; i < 5; i++) {
        twin_fault(twin, TWIN_OTHER, TWIN_HANG);
        submit(b);
    }
    for (int64_t end = began_ms + WAIT_MS; twin_requests(twin, TWIN_OTHER) < 2; clock_sleep_ms(1))
        if (clock_mono_ms() >= end)
            fail_msg("the requests did not come");
    expect_int("two hang, three wait", 5, (int64_t)binder_pending(b));
    mailbox_close(results);
    binder_stop(b);
    expect_true("long before its timeout", clock_mono_ms() - began_ms < WAIT_MS);
    binder_stop(NULL);
    expect_done();
}

static void stopping_ends_the_wait_between_two_tries(void **state)
{
    (void)state;
    struct binder *b = start(2 * WAIT_MS, NULL);
    int64_t began_ms = clock_mono_ms();
    twin_script(twin, 429, "Retry-After: 600\r\n", "{}");
    submit(b);
    for (int64_t end = began_ms + WAIT_MS; twin_requests(twin, TWIN_OTHER) < 1; clock_sleep_ms(1))
        if (clock_mono_ms() >= end)
            fail_msg("the request did not come");
    mailbox_close(results);
    binder_stop(b);
    expect_true("it does not sleep on", clock_mono_ms() - began_ms < WAIT_MS);
    expect_done();
}

int main(void)
{
    log_setup(LOG_ERROR, LOG_TEXT, "test");
    kube_http_global_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_the_answer_the_outcome_is_true),
        cmocka_unit_test_setup_teardown(a_server_that_is_not_there_is_tried_a_few_times, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_binding_says_everything_in_one_request, setup, teardown),
        cmocka_unit_test_setup_teardown(with_the_fence_closed_nothing_is_posted, setup, teardown),
        cmocka_unit_test_setup_teardown(a_node_that_leaves_while_its_binding_waits_is_looked_for,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_node_that_stays_need_not_be_looked_for, setup, teardown),
        cmocka_unit_test_setup_teardown(with_a_limit_on_requests_bindings_are_posted_too, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(stopping_ends_bindings_that_hang, setup, teardown),
        cmocka_unit_test_setup_teardown(stopping_ends_the_wait_between_two_tries, setup, teardown),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    kube_http_global_cleanup();
    return failed;
}
