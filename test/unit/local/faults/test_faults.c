// SPDX-License-Identifier: Apache-2.0
/* Faults through a real server on loopback: what a client sees, and what was carried out. */
#include "test/local/faults/faults.h"

#include "test/unit/lib/base/expect.h"

#include "lib/base/cleanup.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "test/unit/local/client.h"

struct site {
    struct loop *loop;
    struct server *server;
    struct store *store;
    struct faults *faults;
    struct call *stream;
    int handled, closed, restarts;
    struct strbuf nodes;
    int64_t recreated;
};

static void on_close(void *arg)
{
    struct site *s = arg;
    s->closed++;
    s->stream = NULL;
}

static void handle(void *arg, struct call *c)
{
    struct site *s = arg;
    s->handled++;
    if (call_query(c, "watch")) {
        call_stream_begin(c, 200, "application/json", on_close, s);
        s->stream = c;
        return;
    }
    struct strbuf body = {0};
    strbuf_addf(&body, "done %d", s->handled);
    call_reply(c, 200, "text/plain", NULL, &body);
}

static void on_call(void *arg, struct call *c)
{
    struct site *s = arg;
    faults_handle(s->faults, c);
}

static void on_restart(void *arg)
{
    struct site *s = arg;
    s->restarts++;
}

static int on_node(void *arg, const struct faults_node *what, struct error *err)
{
    struct site *s = arg;
    if (str_eq(what->node, "nobody"))
        return error_set(err, ERROR_NOT_FOUND, "there is no node nobody");
    strbuf_addf(&s->nodes, "%d:%s:%d:%d ", (int)what->kind, what->node, what->card, what->bad);
    return 0;
}

static int on_recreate(void *arg, const char *ns, const char *selector, int64_t count,
                       int64_t *done, struct error *err)
{
    struct site *s = arg;
    (void)err;
    assert_string_equal("n", ns);
    assert_string_equal("a=b", selector);
    s->recreated += count;
    *done = count;
    return 0;
}

static void ignore_line(void *arg, const char *line, size_t n)
{
    (void)arg;
    (void)line;
    (void)n;
}

static void start(struct site *s)
{
    struct error err = ERROR_INIT;
    *s = (struct site){0};
    log_set_sink(ignore_line, NULL);
    assert_int_equal(0, loop_new(&s->loop, &err));
    s->store = store_new(10);
    struct faults_config c = {.loop = s->loop,
                              .store = s->store,
                              .handle = handle,
                              .handle_arg = s,
                              .restarting = on_restart,
                              .restarting_arg = s,
                              .node = on_node,
                              .node_arg = s,
                              .recreate = on_recreate,
                              .recreate_arg = s};
    s->faults = faults_new(&c);
    struct server_config sc = {.address = "127.0.0.1",
                               .max_body_bytes = 10000,
                               .max_unsent_bytes = 1000000,
                               .handle = on_call,
                               .arg = s};
    if (server_start(&s->server, s->loop, &sc, &err) < 0)
        fail_msg("%s", err.text);
    faults_set_server(s->faults, s->server);
}

static void stop(struct site *s)
{
    faults_free(s->faults);
    server_stop(s->server);
    store_free(s->store);
    loop_free(s->loop);
    strbuf_deinit(&s->nodes);
    log_set_sink(NULL, NULL);
}

static int add(struct site *s, const char *text, struct error *err)
{
    AUTO_JSON *doc = NULL;
    int64_t id = -1;
    if (json_parse(&doc, text, strlen(text), err) < 0)
        return -1;
    return faults_add(s->faults, json_root(doc), &id, err) < 0 ? -1 : (int)id;
}

static int must_add(struct site *s, const char *text)
{
    struct error err = ERROR_INIT;
    int id = add(s, text, &err);
    if (id < 0)
        fail_msg("%s: %s", text, err.text);
    return id;
}

/* What becomes of one request: '.' done, 'R' reset, or the status' last digit. */
static char ask(struct site *s, const char *method, const char *target)
{
    struct client c = dial(s->loop, server_port(s->server));
    char text[200];
    str_format(text, sizeof text, "%s %s HTTP/1.1\r\n" HOST "User-Agent: tester/1\r\n\r\n", method,
               target);
    say(&c, text);
    char got = await(&c, "\r\n\r\n") ? '?' : c.reset ? 'R' : 'E';
    if (got == '?')
        got = str_starts(c.in.ptr, "HTTP/1.1 200") ? '.' : c.in.ptr[11];
    hang_up(&c);
    return got;
}

static void rules_strike_what_they_match(void **state)
{
    (void)state;
    static const struct {
        const char *row, *rule, *requests, *expected;
        int handled;
    } rows[] = {
        {"everything", "{\"fault\":\"drop\"}", "g p b w", "RRRR", 0},
        {"a method", "{\"fault\":\"drop\",\"match\":{\"method\":\"POST\"}}", "g p b w", ".RR.", 2},
        {"a path", "{\"fault\":\"drop\",\"match\":{\"path\":\"/binding\"}}", "g p b w", "..R.", 3},
        {"a watch", "{\"fault\":\"reply\",\"code\":410,\"match\":{\"watch\":true}}", "g p b w",
         "...0", 3},
        {"no watch", "{\"fault\":\"reply\",\"code\":503,\"match\":{\"watch\":false}}", "g w", "3.",
         1},
        {"an agent", "{\"fault\":\"drop\",\"match\":{\"agent\":\"tester\"}}", "g", "R", 0},
        {"another agent", "{\"fault\":\"drop\",\"match\":{\"agent\":\"curl\"}}", "g", ".", 1},
        {"every third bind",
         "{\"fault\":\"reply\",\"code\":409,\"every\":3,\"match\":{\"path\":\"/binding\"}}",
         "b b g b b b b", "...9..9", 5},
        {"twice", "{\"fault\":\"reply\",\"code\":500,\"count\":2}", "g g g", "00.", 1},
        {"never", "{\"fault\":\"reply\",\"code\":500,\"percent\":0}", "g g", "..", 2},
        {"done, but the reply is lost", "{\"fault\":\"lose-reply\",\"count\":1}", "g g", "R.", 2},
        {"delayed, and then done", "{\"fault\":\"delay\",\"ms\":3}", "g g", "..", 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct site s;
        start(&s);
        must_add(&s, rows[i].rule);
        char got[32] = "";
        size_t n = 0;
        for (const char *r = rows[i].requests; *r; r++) {
            if (*r == ' ')
                continue;
            got[n++] = *r == 'g'   ? ask(&s, "GET", "/api/v1/pods")
                       : *r == 'p' ? ask(&s, "POST", "/api/v1/pods")
                       : *r == 'b' ? ask(&s, "POST", "/api/v1/pods/a/binding")
                                   : ask(&s, "GET", "/api/v1/pods?watch=1");
        }
        expect_str(rows[i].row, rows[i].expected, got);
        expect_int(rows[i].row, rows[i].handled, s.handled);
        stop(&s);
    }
    expect_done();
}

static void several_rules_meet(void **state)
{
    (void)state;
    struct site s;
    start(&s);
    must_add(&s, "{\"fault\":\"delay\",\"ms\":2}");
    must_add(&s, "{\"fault\":\"delay\",\"ms\":3}");
    must_add(
        &s,
        "{\"fault\":\"reply\",\"code\":429,\"retryAfterSeconds\":7,\"message\":\"\\\"slow\\\"\"}");
    must_add(&s, "{\"fault\":\"drop\"}");
    struct client c = dial(s.loop, server_port(s.server));
    int64_t before = clock_mono_ms();
    say(&c, "GET /x HTTP/1.1\r\n" HOST "\r\n");
    expect_true("the first end counts", await(&c, "\"code\":429"));
    expect_true("both delays came before it", clock_mono_ms() - before >= 5);
    expect_true("the header", strstr(c.in.ptr, "Retry-After: 7\r\n") != NULL);
    expect_true("the Status",
                strstr(c.in.ptr,
                       "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":"
                       "\"Failure\",\"message\":\"\\\"slow\\\"\",\"reason\":\"TooManyRequests\","
                       "\"details\":{\"retryAfterSeconds\":7},\"code\":429}") != NULL);
    expect_int("counted", 2, faults_count(s.faults, "delay"));
    expect_int("counted", 1, faults_count(s.faults, "reply"));
    expect_int("not counted", 0, faults_count(s.faults, "drop"));
    hang_up(&c);

    must_add(&s, "{\"fault\":\"delay\",\"ms\":3600000}"); /* a call that is held at the end */
    c = dial(s.loop, server_port(s.server));
    say(&c, "GET /x HTTP/1.1\r\n" HOST "\r\n");
    for (int i = 0; i < ROUNDS && faults_count(s.faults, "delay") < 5; i++)
        turn(&c);
    expect_int("three more delays", 5, faults_count(s.faults, "delay"));
    hang_up(&c);
    stop(&s);
    expect_done();
}

static void time_ends_a_rule(void **state)
{
    (void)state;
    struct site s;
    start(&s);
    must_add(&s, "{\"fault\":\"drop\",\"seconds\":1}");
    expect_int("at first", 'R', ask(&s, "GET", "/"));
    char got = 'R';
    for (int i = 0; i < ROUNDS && got == 'R'; i++) {
        loop_once(s.loop, 1);
        got = ask(&s, "GET", "/");
    }
    expect_int("in the end", '.', got);
    stop(&s);
    expect_done();
}

static void wrong_faults_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *row, *text, *error;
    } rows[] = {
        {"no fault", "{}", "fault: there is no fault ''"},
        {"an unknown one", "{\"fault\":\"x\"}", "fault: there is no fault 'x'"},
        {"no object", "[]", "fault: there is no fault ''"},
        {"a misspelt member", "{\"fault\":\"drop\",\"mach\":{}}",
         "mach: the fault 'drop' has no such member"},
        {"another fault's member", "{\"fault\":\"drop\",\"ms\":5}",
         "ms: the fault 'drop' has no such member"},
        {"a missing member", "{\"fault\":\"delay\"}", "ms: Required value"},
        {"a number below its bound", "{\"fault\":\"delay\",\"ms\":0}",
         "ms: must be a number between 1 and 3600000"},
        {"a number above it", "{\"fault\":\"reply\",\"code\":600}",
         "code: must be a number between 400 and 599"},
        {"a string for a number", "{\"fault\":\"delay\",\"ms\":\"5\"}",
         "ms: must be a number between 1 and 3600000"},
        {"a number for a string", "{\"fault\":\"restart-kubelet\",\"node\":5}",
         "node: must be a string"},
        {"a string for a truth", "{\"fault\":\"cut-watches\",\"midLine\":\"yes\"}",
         "midLine: must be true or false"},
        {"a match that is none", "{\"fault\":\"drop\",\"match\":[]}", "match: must be an object"},
        {"a misspelt match", "{\"fault\":\"drop\",\"match\":{\"Path\":\"x\"}}",
         "match.Path: unknown, or of the wrong type"},
        {"an unknown node", "{\"fault\":\"restart-kubelet\",\"node\":\"nobody\"}",
         "there is no node nobody"},
    };
    struct site s;
    start(&s);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct error err = ERROR_INIT;
        expect_int(rows[i].row, -1, add(&s, rows[i].text, &err));
        expect_str(rows[i].row, rows[i].error, err.text);
    }
    struct faults *bare = faults_new(&(struct faults_config){.loop = s.loop});
    static const char *const needy[] = {"{\"fault\":\"restart\",\"ms\":1}",
                                        "{\"fault\":\"compact\"}", "{\"fault\":\"recreate-pods\"}",
                                        ("{\"fault\":\"garble\",\"resource\":\"pods\","
                                         "\"name\":\"a\",\"member\":\"b\"}"),
                                        "{\"fault\":\"restart-kubelet\",\"node\":\"n\"}"};
    for (size_t i = 0; i < sizeof needy / sizeof *needy; i++) {
        struct error err = ERROR_INIT;
        AUTO_JSON *doc = NULL;
        assert_int_equal(0, json_parse(&doc, needy[i], strlen(needy[i]), &err));
        expect_int(needy[i], -1, faults_add(bare, json_root(doc), NULL, &err));
        expect_int(needy[i], ERROR_UNSUPPORTED, err.code);
    }
    faults_free(bare);
    for (int i = 0; i < 256; i++)
        must_add(&s, "{\"fault\":\"drop\",\"percent\":0}");
    struct error err = ERROR_INIT;
    expect_int("a rule too many", -1, add(&s, "{\"fault\":\"drop\"}", &err));
    stop(&s);
    expect_done();
}

static void deeds_are_done(void **state)
{
    (void)state;
    struct site s;
    start(&s);
    must_add(&s, "{\"fault\":\"partition-node\",\"node\":\"n1\"}");
    must_add(&s, "{\"fault\":\"partition-node\",\"node\":\"n1\",\"bad\":false}");
    must_add(&s, "{\"fault\":\"restart-kubelet\",\"node\":\"n2\"}");
    must_add(&s, "{\"fault\":\"card\",\"node\":\"n3\",\"card\":2}");
    expect_str("nodes", "0:n1:0:1 0:n1:0:0 1:n2:0:1 2:n3:2:1 ", strbuf_str(&s.nodes));
    must_add(&s,
             "{\"fault\":\"recreate-pods\",\"namespace\":\"n\",\"selector\":\"a=b\",\"count\":4}");
    expect_int("pods", 4, s.recreated);

    static const struct kind things = {.group = "", .resource = "things"};
    const char *text = "{\"metadata\":{\"name\":\"a\"}}";
    assert_int_equal(0, store_create(s.store, &things, text, strlen(text), NULL, NULL));
    expect_int("a past", 0, (int64_t)store_oldest(s.store));
    must_add(&s, "{\"fault\":\"compact\"}");
    expect_int("is forgotten", 1, (int64_t)store_oldest(s.store));

    struct client c = dial(s.loop, server_port(s.server));
    say(&c, "GET /x?watch=1 HTTP/1.1\r\n" HOST "\r\n");
    expect_true("a watch", await(&c, "\r\n\r\n"));
    must_add(&s, "{\"fault\":\"cut-watches\",\"midLine\":true}");
    expect_true("is cut", await_end(&c));
    expect_int("its owner knows", 1, s.closed);
    hang_up(&c);

    must_add(&s, "{\"fault\":\"hold-connections\",\"ms\":1}");
    expect_int("a connection that had to wait", '.', ask(&s, "GET", "/"));
    static const char pod[] = "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\"}}";
    assert_int_equal(0, store_create(s.store, &kind_pods, pod, strlen(pod), NULL, NULL));
    must_add(&s, "{\"fault\":\"garble\",\"resource\":\"pods\",\"namespace\":\"n\","
                 "\"name\":\"a\",\"member\":\"b\"}");
    expect_true("garbled", strstr(store_get(s.store, &kind_pods, "n", "a")->text,
                                  "\"spec\":{\"b\":5}") != NULL);
    struct error none = ERROR_INIT;
    expect_int("what is not there", -1,
               add(&s,
                   "{\"fault\":\"garble\",\"resource\":\"pods\",\"name\":\"b\",\"member\":\"b\"}",
                   &none));
    stop(&s);
    expect_done();
}

/* POST /cosched/faults; the reply is left in c. */
static void post(struct client *c, const char *text)
{
    char request[600];
    str_format(request, sizeof request,
               "POST /cosched/faults HTTP/1.1\r\n" HOST "Content-Length: %zu\r\n\r\n%s",
               strlen(text), text);
    strbuf_reset(&c->in);
    say(c, request);
}

static bool can_connect(uint16_t port)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    AUTO_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return connect(fd, (struct sockaddr *)&to, sizeof to) == 0;
}

static void the_endpoint_adds_lists_and_removes(void **state)
{
    (void)state;
    struct site s;
    start(&s);
    struct client c = dial(s.loop, server_port(s.server));
    post(&c, "{\"fault\":\"drop\",\"match\":{\"path\":\"/x\"}}");
    expect_true("added", await(&c, "201 Created") && await(&c, "{\"id\":1}\n"));
    post(&c, "{\"fault\":\"drop\", \"match\": {\"path\":\"/y\"}}");
    expect_true("added", await(&c, "{\"id\":2}\n"));
    post(&c, "{\"fault\":");
    expect_true("no JSON", await(&c, "400 Bad Request") && await(&c, "not JSON"));
    post(&c, "{\"fault\":\"nothing\"}");
    expect_true("no fault", await(&c, "there is no fault 'nothing'"));
    strbuf_reset(&c.in);
    expect_int("strikes", 'R', ask(&s, "GET", "/x"));
    say(&c, "GET /cosched/faults HTTP/1.1\r\n" HOST "\r\n");
    expect_true("listed",
                await(&c,
                      "{\"id\":1,\"matched\":1,\"fired\":1,\"rule\":{\"fault\":\"drop\",\"match\":"
                      "{\"path\":\"/x\"}}},{\"id\":2,\"matched\":0,\"fired\":0,") &&
                    await(&c, "\"drop\":1,"));
    say(&c, "DELETE /cosched/faults/1 HTTP/1.1\r\n" HOST "\r\n");
    expect_true("one is removed", await(&c, "{\"removed\":1}"));
    expect_int("and strikes no more", '.', ask(&s, "GET", "/x"));
    expect_int("the other does", 'R', ask(&s, "GET", "/y"));
    say(&c, "DELETE /cosched/faults/77 HTTP/1.1\r\n" HOST "\r\n");
    expect_true("there is no such", await(&c, "404 Not Found"));
    strbuf_reset(&c.in);
    say(&c, "DELETE /cosched/faults/x HTTP/1.1\r\n" HOST "\r\n");
    expect_true("nor such", await(&c, "404 Not Found"));
    strbuf_reset(&c.in);
    say(&c, "DELETE /cosched/faults HTTP/1.1\r\n" HOST "\r\n");
    expect_true("all are removed", await(&c, "{\"removed\":1}"));
    say(&c, "PUT /cosched/faults HTTP/1.1\r\n" HOST "\r\n");
    expect_true("no such method", await(&c, "405 Method Not Allowed"));

    post(&c, "{\"fault\":\"restart\",\"ms\":5}");
    expect_true("whoever asks for a restart is answered", await(&c, "{\"id\":0}\n"));
    expect_true("and then reset like everyone", await_end(&c));
    expect_int("the rest is told", 1, s.restarts);
    hang_up(&c);
    for (int i = 0; i < ROUNDS && !can_connect(server_port(s.server)); i++)
        loop_once(s.loop, 1);
    expect_int("it serves again", '.', ask(&s, "GET", "/"));
    stop(&s);
    expect_done();
}

static void a_script_keeps_its_times(void **state)
{
    (void)state;
    struct site s;
    struct error err = ERROR_INIT;
    start(&s);
    static const char script[] = "# trouble\n"
                                 "\n"
                                 "  20ms {\"fault\":\"restart-kubelet\",\"node\":\"late\"}  \r\n"
                                 "0 {\"fault\":\"restart-kubelet\",\"node\":\"first\"}\n"
                                 "5ms\t{\"fault\":\"restart-kubelet\",\"node\":\"nobody\"}\n"
                                 "1s500ms {\"fault\":\"restart-kubelet\",\"node\":\"never\"}\n"
                                 "0 {\"fault\":\"restart-kubelet\",\"node\":\"second\"}";
    if (faults_script(s.faults, script, strlen(script), &err) < 0)
        fail_msg("%s", err.text);
    expect_int("only one script", -1, faults_script(s.faults, script, strlen(script), &err));
    for (int i = 0; i < ROUNDS && !strstr(strbuf_str(&s.nodes), "late"); i++)
        loop_once(s.loop, 1);
    expect_str("in order of time", "1:first:0:1 1:second:0:1 1:late:0:1 ", strbuf_str(&s.nodes));
    stop(&s);

    static const struct {
        const char *row, *text, *error;
    } rows[] = {
        {"no time", "{\"fault\":\"compact\"}", "line 1: not a time: '{\"fault\":\"compact\"}'"},
        {"no unit", "\n5 {\"fault\":\"compact\"}", "line 2: not a time: '5'"},
        {"no fault", "5s", "line 1: not JSON: it is empty"},
        {"a wrong fault", "0 {\"fault\":\"compact\"}\n5s {\"fault\":\"x\"}",
         "line 2: fault: there is no fault 'x'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        start(&s);
        expect_int(rows[i].row, -1,
                   faults_script(s.faults, rows[i].text, strlen(rows[i].text), &err));
        expect_str(rows[i].row, rows[i].error, err.text);
        stop(&s);
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_strike_what_they_match),
        cmocka_unit_test(several_rules_meet),
        cmocka_unit_test(time_ends_a_rule),
        cmocka_unit_test(wrong_faults_are_refused),
        cmocka_unit_test(deeds_are_done),
        cmocka_unit_test(the_endpoint_adds_lists_and_removes),
        cmocka_unit_test(a_script_keeps_its_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
