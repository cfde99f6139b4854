// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/kubelet/rpc.h"

#include "test/unit/lib/base/expect.h"
#include "test/unit/lib/base/scratch.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "lib/base/clock.h"
#include "lib/base/str.h"
#include "test/fake/kubelet/stream.h"

static char dir[SCRATCH_PATH], path[128];
static _Atomic uint64_t generation;
static _Atomic int ended, slow_calls;

static int echo(void *arg, const void *request, size_t n, struct strbuf *reply, struct error *err)
{
    (void)arg;
    if (n == 4 && memcmp(request, "fail", 4) == 0)
        return error_set(err, ERROR_UNSUPPORTED, "a sentence for the user");
    if (n == 5 && memcmp(request, "crash", 5) == 0)
        return error_set(err, ERROR_INTERNAL, "broken");
    strbuf_adds(reply, "echo:");
    strbuf_add(reply, request, n);
    return 0;
}

static int slow(void *arg, const void *request, size_t n, struct strbuf *reply, struct error *err)
{
    (void)arg, (void)request, (void)n, (void)reply, (void)err;
    atomic_fetch_add(&slow_calls, 1);
    clock_sleep_ms(400);
    return 0;
}

static uint64_t newest(void *arg, struct strbuf *message)
{
    (void)arg;
    uint64_t g = atomic_load(&generation);
    strbuf_addf(message, "%llu", (unsigned long long)g);
    return g;
}

static void on_ended(void *arg)
{
    (void)arg;
    atomic_fetch_add(&ended, 1);
}

static const struct rpc_method methods[] = {{.path = "/t.T/Echo", .unary = echo},
                                            {.path = "/t.T/Slow", .unary = slow},
                                            {.path = "/t.T/Watch", .newest = newest}};

static int setup(void **state)
{
    (void)state;
    scratch_folder(dir, "rpc");
    assert_true(str_format(path, sizeof path, "%s/s.sock", dir));
    atomic_store(&generation, 1);
    atomic_store(&ended, 0);
    atomic_store(&slow_calls, 0);
    rpc_init();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    rpc_shutdown();
    unlink(path);
    rmdir(dir);
    return 0;
}

static struct rpc_server *start(void)
{
    struct rpc_server *s = NULL;
    struct error err = ERROR_INIT;
    struct rpc_server_config c = {
        .path = path, .methods = methods, .methods_len = 3, .stream_ended = on_ended};
    if (rpc_server_start(&s, &c, &err) < 0)
        fail_msg("%s", err.text);
    return s;
}

static int call(const char *method, const char *request, int64_t timeout_ms, bool wait,
                struct strbuf *reply, struct error *err)
{
    struct rpc_channel *c;
    assert_int_equal(0, rpc_channel_new(&c, path, err));
    int result =
        rpc_channel_call(c, method, request, strlen(request), timeout_ms, wait, reply, err);
    rpc_channel_free(c);
    return result;
}

static void unary_calls(void **state)
{
    (void)state;
    struct rpc_server *s = start();
    static const struct {
        const char *row, *method, *request;
        const char *reply; /* NULL: an error */
        enum error_code code;
        const char *error;
    } rows[] = {
        {"an answer", "/t.T/Echo", "x", "echo:x", ERROR_NONE, NULL},
        {"an empty request", "/t.T/Echo", "", "echo:", ERROR_NONE, NULL},
        /* Only FailedPrecondition is read as ERROR_UNSUPPORTED: Unimplemented would be INTERNAL. */
        {"a refusal is its sentence, as FailedPrecondition", "/t.T/Echo", "fail", NULL,
         ERROR_UNSUPPORTED, "/t.T/Echo: a sentence for the user"},
        {"a fault of ours", "/t.T/Echo", "crash", NULL, ERROR_INTERNAL, "/t.T/Echo: broken"},
        {"a method we do not have", "/t.T/Other", "", NULL, ERROR_INTERNAL,
         "/t.T/Other: cosched-device-plugin does not serve this method"},
        {"no answer in time", "/t.T/Slow", "", NULL, ERROR_TIMEOUT, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct error err = ERROR_INIT;
        AUTO_STRBUF reply;
        strbuf_init(&reply);
        bool timeout = rows[i].code == ERROR_TIMEOUT;
        int result = call(rows[i].method, rows[i].request, timeout ? 50 : 5000, true, &reply, &err);
        expect_int(rows[i].row, rows[i].reply != NULL ? 0 : -1, result);
        expect_int(rows[i].row, rows[i].code, err.code);
        if (rows[i].reply != NULL)
            expect_str(rows[i].row, rows[i].reply, strbuf_str(&reply));
        if (rows[i].error != NULL)
            expect_str(rows[i].row, rows[i].error, err.text);
    }
    rpc_server_stop(s, 1000);
    struct stat st;
    expect_int("the socket is gone with the server", -1, stat(path, &st));
    struct error err = ERROR_INIT;
    AUTO_STRBUF reply;
    strbuf_init(&reply);
    expect_int("nobody there", -1, call("/t.T/Echo", "x", 5000, false, &reply, &err));
    expect_int("is told at once", ERROR_UNAVAILABLE, err.code);
    error_clear(&err);
    expect_int("nobody comes", -1, call("/t.T/Echo", "x", 100, true, &reply, &err));
    expect_int("is told at the deadline", ERROR_TIMEOUT, err.code);
    expect_done();
}

static void paths_that_do_not_do(void **state)
{
    (void)state;
    char longest[RPC_PATH_MAX + 2];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    longest[0] = '/';
    const struct {
        const char *row, *path;
    } rows[] = {{"relative", "x.sock"},
                {"too long", longest},
                {"no such directory", "/nonexistent/x.sock"}};
    for (size_t i = 0; i < 3; i++) {
        struct rpc_server *s = NULL;
        struct error err = ERROR_INIT;
        struct rpc_server_config c = {.path = rows[i].path, .methods = methods, .methods_len = 3};
        expect_int(rows[i].row, -1, rpc_server_start(&s, &c, &err));
        expect_true(rows[i].row, str_starts(err.text, "socket "));
    }
    struct rpc_channel *c;
    struct error err = ERROR_INIT;
    expect_int("a channel to a relative path", -1, rpc_channel_new(&c, "x.sock", &err));
    expect_done();
}

struct watcher {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    char last[32];
    int messages;
    bool end;
};

static void on_message(void *arg, const void *bytes, size_t n)
{
    struct watcher *w = arg;
    pthread_mutex_lock(&w->lock);
    if (bytes == NULL) {
        w->end = true;
    } else {
        w->messages++;
        (void)str_format(w->last, sizeof w->last, "%.*s", (int)n, (const char *)bytes);
    }
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

/* Until the last message is text, or (text NULL) the stream has ended; false after 10 s. */
static bool await(struct watcher *w, const char *text)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 10;
    int e = 0;
    pthread_mutex_lock(&w->lock);
    while (e == 0 && !(text == NULL ? w->end : strcmp(w->last, text) == 0))
        e = pthread_cond_timedwait(&w->changed, &w->lock, &until);
    pthread_mutex_unlock(&w->lock);
    return e == 0;
}

#define WATCHER                                                                \
    {                                                                          \
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER \
    }

static void until_streams(struct rpc_server *s, size_t n)
{
    for (int64_t end = clock_mono_ms() + 10000;
         rpc_server_streams(s) != n && clock_mono_ms() < end;)
        clock_sleep_ms(1);
    expect_int("open streams", (int64_t)n, (int64_t)rpc_server_streams(s));
}

static void streams(void **state)
{
    (void)state;
    struct rpc_server *s = start();
    struct watcher one = WATCHER, two = WATCHER;
    struct stream *a = stream_open(path, "/t.T/Watch", on_message, &one);
    expect_true("the first message comes by itself", await(&one, "1"));
    rpc_server_notify(s);
    for (uint64_t g = 2; g <= 500; g++) {
        atomic_store(&generation, g);
        rpc_server_notify(s);
    }
    expect_true("the newest arrives", await(&one, "500"));
    expect_true("changes in quick succession become fewer messages", one.messages <= 500);
    struct stream *b = stream_open(path, "/t.T/Watch", on_message, &two);
    expect_true("a second stream starts with the newest", await(&two, "500"));
    expect_int("in one message", 1, two.messages);
    until_streams(s, 2);
    stream_close(a);
    until_streams(s, 1);
    expect_int("the end of a stream is told", 1, atomic_load(&ended));
    atomic_store(&generation, 501);
    rpc_server_notify(s);
    expect_true("the other goes on", await(&two, "501"));
    rpc_server_stop(s, 1000);
    expect_true("stopping ends it", await(&two, NULL));
    expect_int("and is not told as a loss", 1, atomic_load(&ended));
    stream_close(b);
    expect_done();
}

static void *call_slow(void *arg)
{
    struct error err = ERROR_INIT;
    AUTO_STRBUF reply;
    strbuf_init(&reply);
    *(int *)arg = call("/t.T/Slow", "", 10000, true, &reply, &err);
    return NULL;
}

static void a_running_call_is_finished(void **state)
{
    (void)state;
    struct rpc_server *s = start();
    struct watcher w = WATCHER;
    struct stream *watch = stream_open(path, "/t.T/Watch", on_message, &w);
    expect_true("stream", await(&w, "1"));
    pthread_t t;
    int result = 1;
    assert_int_equal(0, pthread_create(&t, NULL, call_slow, &result));
    for (int64_t end = clock_mono_ms() + 10000;
         atomic_load(&slow_calls) == 0 && clock_mono_ms() < end;)
        clock_sleep_ms(1);
    atomic_store(&generation, 2);
    rpc_server_notify(s);
    expect_true("a slow call does not hold up the streams", await(&w, "2"));
    rpc_server_stop(s, 10000);
    pthread_join(t, NULL);
    expect_int("the call was answered", 0, result);
    stream_close(watch);
    expect_done();
}

/* ---- a server that is stopped in the middle of everything ---- */

static _Atomic bool busy;

static void nothing(void *arg, const void *bytes, size_t n)
{
    (void)arg, (void)bytes, (void)n;
}

static void *call_and_watch(void *arg)
{
    const char *method = arg;
    while (atomic_load(&busy)) {
        struct error err = ERROR_INIT;
        AUTO_STRBUF reply;
        strbuf_init(&reply);
        struct stream *w = stream_open(path, "/t.T/Watch", nothing, NULL);
        (void)call(method, "x", 30, false, &reply, &err);
        stream_close(w);
    }
    return NULL;
}

static void stopped_in_the_middle(void **state)
{
    (void)state;
    static char echo_path[] = "/t.T/Echo", slow_path[] = "/t.T/Slow", other_path[] = "/t.T/Other";
    char *const methods_called[] = {echo_path, slow_path, other_path};
    pthread_t threads[3];
    atomic_store(&busy, true);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(0, pthread_create(&threads[i], NULL, call_and_watch, methods_called[i]));
    for (int round = 0; round < 20; round++) {
        struct rpc_server *s = start();
        for (int64_t end = clock_mono_ms() + 5 * (round % 8); clock_mono_ms() < end;) {
            atomic_fetch_add(&generation, 1);
            rpc_server_notify(s);
            (void)rpc_server_streams(s);
        }
        rpc_server_stop(s, round % 3 * 5);
    }
    atomic_store(&busy, false);
    for (size_t i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    struct stat st;
    expect_int("nothing is left of it", -1, stat(path, &st));
    expect_done();
}

/* ---- a peer that takes its time: a proxy in front of the server that greets late ---- */

enum { LATE_MS = 250 };

struct proxy {
    char path[128];
    int listening;
    pthread_t thread;
};

static void pump(int from, int to)
{
    char bytes[4096];
    ssize_t n = recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
    for (ssize_t done = 0; n > 0 && done < n;) {
        ssize_t sent = send(to, bytes + done, (size_t)(n - done), MSG_NOSIGNAL);
        if (sent < 0)
            return;
        done += sent;
    }
    if (n == 0)
        shutdown(to, SHUT_WR);
}

static int connect_to(const char *where)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)str_format(at.sun_path, sizeof at.sun_path, "%s", where);
    (void)connect(fd, (const struct sockaddr *)&at, sizeof at); /* refused: the first use says so */
    return fd;
}

/* One connection after the other, each greeted late, until the listening socket is shut. */
static void *run_proxy(void *arg)
{
    struct proxy *p = arg;
    for (int peer; (peer = accept(p->listening, NULL, NULL)) >= 0;) {
        clock_sleep_ms(LATE_MS);
        int server = connect_to(path);
        struct pollfd both[2] = {{.fd = peer, .events = POLLIN}, {.fd = server, .events = POLLIN}};
        while (poll(both, 2, 10000) > 0 && !((both[0].revents | both[1].revents) & POLLHUP)) {
            pump(peer, server);
            pump(server, peer);
        }
        close(peer);
        close(server);
    }
    return NULL;
}

static void a_peer_that_greets_late(void **state)
{
    (void)state;
    struct rpc_server *s = start();
    struct proxy p = {.listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    assert_true(str_format(p.path, sizeof p.path, "%s/late.sock", dir));
    assert_true(str_format(at.sun_path, sizeof at.sun_path, "%s", p.path));
    assert_int_equal(0, bind(p.listening, (const struct sockaddr *)&at, sizeof at));
    assert_int_equal(0, listen(p.listening, 8));
    assert_int_equal(0, pthread_create(&p.thread, NULL, run_proxy, &p));
    struct rpc_channel *c;
    struct error err = ERROR_INIT;
    AUTO_STRBUF reply;
    strbuf_init(&reply);
    assert_int_equal(0, rpc_channel_new(&c, p.path, &err));
    expect_int("is waited for", 0,
               rpc_channel_call(c, "/t.T/Echo", "x", 1, 10000, false, &reply, &err));
    expect_str("no error", "", err.text);
    rpc_channel_free(c);
    rpc_server_stop(s, 1000);
    shutdown(p.listening, SHUT_RDWR);
    pthread_join(p.thread, NULL);
    close(p.listening);
    unlink(p.path);
    expect_done();
}

/* --- whoever wants to end does not wait for a peer --- */

static _Atomic int asked;

/* Yes from the third time on: the first two see a call under way. */
static bool third_time(void *arg)
{
    (void)arg;
    return atomic_fetch_add(&asked, 1) >= 2;
}

static void a_call_is_abandoned(void **state)
{
    (void)state;
    enum { NEVER_MS = 3600 * 1000 };
    int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    assert_true(str_format(at.sun_path, sizeof at.sun_path, "%s", path));
    assert_int_equal(0, bind(listening, (const struct sockaddr *)&at, sizeof at));
    assert_int_equal(0, listen(listening, 8)); /* and nobody accepts */
    for (int wait = 0; wait <= 1; wait++) {
        struct error err = ERROR_INIT;
        AUTO_STRBUF reply;
        strbuf_init(&reply);
        atomic_store(&asked, 0);
        rpc_abandon_when(third_time, NULL);
        expect_int("abandoned under way", -1,
                   call("/t.T/Echo", "x", NEVER_MS, wait == 1, &reply, &err));
        expect_int("as cancelled", ERROR_CANCELLED, err.code);
        expect_int("and so is the next", -1,
                   call("/t.T/Echo", "x", NEVER_MS, wait == 1, &reply, &err));
        expect_int("as cancelled too", ERROR_CANCELLED, err.code);
    }
    rpc_abandon_when(NULL, NULL);
    close(listening);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(unary_calls, setup, teardown),
        cmocka_unit_test_setup_teardown(paths_that_do_not_do, setup, teardown),
        cmocka_unit_test_setup_teardown(streams, setup, teardown),
        cmocka_unit_test_setup_teardown(a_running_call_is_finished, setup, teardown),
        cmocka_unit_test_setup_teardown(stopped_in_the_middle, setup, teardown),
        cmocka_unit_test_setup_teardown(a_peer_that_greets_late, setup, teardown),
        cmocka_unit_test_setup_teardown(a_call_is_abandoned, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
