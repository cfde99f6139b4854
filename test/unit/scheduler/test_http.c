// SPDX-License-Identifier: Apache-2.0
/*
 * http: the whole way of a request, from the socket to the loop and back, and what happens when the
 * loop or the reader is not there.
 */
#include "test/unit/lib/base/expect.h"

#include <pthread.h>
#include <stdlib.h>

#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "lib/base/log.h"
#include "lib/base/loop.h"
#include "lib/model/names.h"
#include "scheduler/dump/dump.h"
#include "scheduler/http.h"
#include "test/unit/lib/base/wire.h"
#include "test/unit/scheduler/fixture.h"

struct rig {
    struct loop *loop;
    struct cluster cluster;
    struct http http;
    struct httpd *httpd;
    pthread_t thread;
    bool running;
};

static void *run_loop(void *arg)
{
    struct rig *r = arg;
    loop_run(r->loop);
    return NULL;
}

static void rig_init(struct rig *r, bool running)
{
    struct error err = ERROR_INIT;
    *r = (struct rig){.running = running};
    cluster_init(&r->cluster, NAME_SCHEDULER);
    cluster_put_node(&r->cluster, NODE(.name = "n1"));
    cluster_put_pod(&r->cluster, POD(.name = "a", .node = "n1"), NULL);
    expect_int("a loop", 0, loop_new(&r->loop, &err));
    expect_int("http", 0, http_init(&r->http, r->loop, &r->cluster, &err));
    struct httpd_config config = {
        .address = "127.0.0.1", .threads = 2, .handler = http_answer, .arg = &r->http};
    expect_int("a server", 0, httpd_start(&r->httpd, &config, &err));
    if (running)
        pthread_create(&r->thread, NULL, run_loop, r);
}

static void rig_deinit(struct rig *r)
{
    if (r->running) {
        loop_stop(r->loop);
        pthread_join(r->thread, NULL);
    }
    http_close(&r->http);
    httpd_stop(r->httpd);
    http_deinit(&r->http);
    loop_free(r->loop);
    cluster_deinit(&r->cluster);
}

static int ask(struct rig *r, const char *method, const char *path, struct strbuf *reply)
{
    AUTO_STRBUF request = {0};
    strbuf_addf(&request, "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", method, path);
    strbuf_reset(reply);
    return wire_ask(httpd_port(r->httpd), strbuf_str(&request), reply) ? wire_status(reply) : -1;
}

static void the_dump_is_what_dump_prints(void **state)
{
    (void)state;
    struct rig r;
    AUTO_STRBUF reply = {0};
    AUTO_STRBUF expected = {0};
    rig_init(&r, true);
    expect_int("not complete yet", 503, ask(&r, "GET", "/debug/cluster", &reply));
    expect_str("says so",
               "this replica has no complete copy of the cluster: it stands by, or is still "
               "listing\n",
               wire_body(&reply));
    http_serve(&r.http, true);
    expect_int("complete", 200, ask(&r, "GET", "/debug/cluster", &reply));
    dump_cluster(&r.cluster, &expected);
    expect_str("the dump", strbuf_str(&expected), wire_body(&reply));
    expect_true("its kind", strstr(strbuf_str(&reply), "application/json") != NULL);
    expect_int("only GET", 405, ask(&r, "POST", "/debug/cluster", &reply));
    expect_int("another path", 404, ask(&r, "GET", "/debug/clusters", &reply));
    expect_str("which paths there are",
               "not found; there are /healthz, /readyz, /metrics and /debug/cluster\n",
               wire_body(&reply));
    rig_deinit(&r);
    expect_done();
}

static void dumps_leave_the_loop_its_time_and_memory_its_bound(void **state)
{
    (void)state;
    struct rig r;
    AUTO_STRBUF reply = {0};
    rig_init(&r, true);
    http_serve(&r.http, true);
    int64_t now = clock_mono_ms();
    pthread_mutex_lock(&r.http.lock);
    r.http.not_before = now + 100000;
    pthread_mutex_unlock(&r.http.lock);
    expect_int("the last one took long", 503, ask(&r, "GET", "/debug/cluster", &reply));
    expect_true("says when", strstr(wire_body(&reply), "again in ") != NULL);
    pthread_mutex_lock(&r.http.lock);
    r.http.not_before = 0;
    r.http.window_ms = now;
    r.http.window_bytes = HTTP_TEXT_MAX;
    pthread_mutex_unlock(&r.http.lock);
    expect_int("much is under way", 503, ask(&r, "GET", "/debug/cluster", &reply));
    pthread_mutex_lock(&r.http.lock);
    r.http.window_ms = now - HTTP_SENDING_MS;
    pthread_mutex_unlock(&r.http.lock);
    expect_int("all of that was sent by now", 200, ask(&r, "GET", "/debug/cluster", &reply));
    expect_true("counted", r.http.window_bytes > 0 && r.http.window_bytes < 10000);
    rig_deinit(&r);
    expect_done();
}

static void *ask_in_thread(void *arg)
{
    struct rig *r = arg;
    struct strbuf *reply = malloc(sizeof *reply);
    strbuf_init(reply);
    (void)ask(r, "GET", "/debug/cluster", reply);
    return reply;
}

/* The loop stands still; the program ends: the reader is told at once, and nothing leaks. */
static void a_reader_that_waits_is_told_when_the_program_ends(void **state)
{
    (void)state;
    struct rig r;
    pthread_t reader;
    void *got = NULL;
    rig_init(&r, false);
    http_serve(&r.http, true);
    pthread_create(&reader, NULL, ask_in_thread, &r);
    http_close(&r.http); /* before or after the request is there: both are in order */
    pthread_join(reader, &got);
    struct strbuf *reply = got;
    expect_int("unavailable", 503, wire_status(reply));
    strbuf_deinit(reply);
    free(reply);
    rig_deinit(&r);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_dump_is_what_dump_prints),
        cmocka_unit_test(dumps_leave_the_loop_its_time_and_memory_its_bound),
        cmocka_unit_test(a_reader_that_waits_is_told_when_the_program_ends),
    };
    loop_block_signals();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
