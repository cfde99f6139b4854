// SPDX-License-Identifier: Apache-2.0
/*
 * The simulated kubelet's device manager against a plugin made here, on real sockets: which calls
 * come in which order, what the list of pods says meanwhile, what outlives a restart.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "device-plugin/kubelet/rpc.h"
#include "device-plugin/kubelet/wire.h"
#include "lib/base/clock.h"
#include "lib/base/json.h"
#include "test/local/nodes/devices.h"
#include "test/local/nodes/podfiles.h"
#include "test/unit/lib/base/scratch.h"

enum { IDS = 6, WAIT_MS = 20000 };
#define RESOURCE "aliyun.com/gpu-mem"

struct bench {
    char dir[SCRATCH_PATH], plugin_socket[128], registration[128], pods_socket[128];
    struct devices *devices;
    struct rpc_server *plugin;
    pthread_mutex_t lock;
    struct strbuf calls; /* what the plugin was asked, in order */
    int changes;
    int healthy; /* the first so many of the ids */
    uint64_t generation;
    const char *refuse; /* Allocate fails with this */
    enum error_code refuse_code;
};

static void note(struct bench *b, const char *what)
{
    pthread_mutex_lock(&b->lock);
    strbuf_addf(&b->calls, "%s\n", what);
    pthread_mutex_unlock(&b->lock);
}

/* ---- the plugin ---- */

static int on_options(void *arg, const void *request, size_t n, struct strbuf *reply,
                      struct error *err)
{
    (void)arg, (void)request, (void)n, (void)err;
    wire_encode_options(reply);
    return 0;
}

static uint64_t on_list(void *arg, struct strbuf *message)
{
    struct bench *b = arg;
    struct inventory_device items[IDS];
    char names[IDS][8];
    pthread_mutex_lock(&b->lock);
    for (int i = 0; i < IDS; i++) {
        (void)str_format(names[i], sizeof names[i], "d%d", i);
        items[i] = (struct inventory_device){names[i], i < b->healthy, i % 2};
    }
    uint64_t generation = b->generation;
    pthread_mutex_unlock(&b->lock);
    struct inventory_devices all = {items, IDS};
    wire_encode_devices(&all, message);
    return generation;
}

/* The last ones of those that are free. */
static int on_preferred(void *arg, const void *request, size_t n, struct strbuf *reply,
                        struct error *err)
{
    struct arena a;
    struct wire_preference *p;
    size_t len;
    arena_init(&a, 0);
    int result = wire_decode_preferred(request, n, &a, &p, &len, err);
    if (result == 0) {
        AUTO_STRBUF what;
        strbuf_init(&what);
        strbuf_addf(&what, "prefer %zu of %zu, must %zu", p->count, p->available.len, p->must.len);
        note(arg, strbuf_str(&what));
        struct inventory_ids answer = {p->available.items + p->available.len - p->count, p->count};
        wire_encode_preferred(&answer, 1, reply);
    }
    arena_deinit(&a);
    return result;
}

static void ask_pods(struct bench *b, struct arena *a, struct match_listing *out)
{
    struct rpc_channel *c = NULL;
    struct error err = ERROR_INIT;
    AUTO_STRBUF reply;
    strbuf_init(&reply);
    if (rpc_channel_new(&c, b->pods_socket, &err) < 0 ||
        rpc_channel_call(c, WIRE_LIST_PODS, "", 0, WAIT_MS, true, &reply, &err) < 0 ||
        wire_decode_pods(strbuf_str(&reply), reply.len, a, out, &err) < 0)
        fail_msg("%s", err.text);
    rpc_channel_free(c);
}

static int on_allocate(void *arg, const void *request, size_t n, struct strbuf *reply,
                       struct error *err)
{
    struct bench *b = arg;
    struct arena a;
    struct inventory_ids *ids;
    struct match_listing pods = {0};
    size_t len;
    AUTO_STRBUF what;
    strbuf_init(&what);
    arena_init(&a, 0);
    int result = wire_decode_allocate(request, n, &a, &ids, &len, err);
    ask_pods(b, &a, &pods); /* inside the call: the pod under admission is there */
    strbuf_adds(&what, "allocate");
    for (size_t i = 0; result == 0 && i < ids[0].len; i++)
        strbuf_addf(&what, " %s", ids[0].items[i]);
    strbuf_addf(&what, ", %zu pods", pods.len);
    note(b, strbuf_str(&what));
    if (result == 0 && b->refuse != NULL)
        result = error_set(err, b->refuse_code, "%s", b->refuse);
    if (result == 0) {
        struct response answer = {.envs = {{"IDS", ids[0].items[0]}}, .envs_len = 1};
        wire_encode_allocate(&answer, 1, reply);
    }
    arena_deinit(&a);
    return result;
}

static int on_pre_start(void *arg, const void *request, size_t n, struct strbuf *reply,
                        struct error *err)
{
    (void)request, (void)n, (void)reply, (void)err;
    note(arg, "prestart");
    return 0;
}

static const struct rpc_method methods[] = {{.path = WIRE_OPTIONS, .unary = on_options},
                                            {.path = WIRE_LIST_AND_WATCH, .newest = on_list},
                                            {.path = WIRE_PREFERRED, .unary = on_preferred},
                                            {.path = WIRE_ALLOCATE, .unary = on_allocate},
                                            {.path = WIRE_PRE_START, .unary = on_pre_start}};

static void plugin_up(struct bench *b)
{
    struct rpc_server_config c = {.path = b->plugin_socket,
                                  .methods = methods,
                                  .methods_len = sizeof methods / sizeof methods[0],
                                  .arg = b};
    struct error err = ERROR_INIT;
    struct rpc_channel *ch = NULL;
    AUTO_STRBUF request;
    AUTO_STRBUF reply;
    strbuf_init(&request);
    strbuf_init(&reply);
    wire_encode_register("p.sock", RESOURCE, &request);
    if (rpc_server_start(&b->plugin, &c, &err) < 0 ||
        rpc_channel_new(&ch, b->registration, &err) < 0 ||
        rpc_channel_call(ch, WIRE_REGISTER, strbuf_str(&request), request.len, WAIT_MS, true,
                         &reply, &err) < 0)
        fail_msg("%s", err.text);
    rpc_channel_free(ch);
}

/* ---- the bench ---- */

static void on_changed(void *arg)
{
    struct bench *b = arg;
    pthread_mutex_lock(&b->lock);
    b->changes++;
    pthread_mutex_unlock(&b->lock);
}

struct amounts {
    int resources;
    int64_t capacity, allocatable;
};

static void add_amounts(void *arg, const char *resource, int64_t capacity, int64_t allocatable)
{
    struct amounts *a = arg;
    assert_string_equal(resource, RESOURCE);
    *a = (struct amounts){a->resources + 1, capacity, allocatable};
}

static void wait_for(struct bench *b, int64_t capacity, int64_t allocatable)
{
    struct amounts a = {0};
    for (int64_t until = clock_mono_ms() + WAIT_MS; clock_mono_ms() < until; clock_sleep_ms(2)) {
        a = (struct amounts){0};
        devices_amounts(b->devices, add_amounts, &a);
        if (a.resources == 1 && a.capacity == capacity && a.allocatable == allocatable)
            return;
    }
    fail_msg("expected %d/%d, got %d/%d", (int)allocatable, (int)capacity, (int)a.allocatable,
             (int)a.capacity);
}

static void expect_calls(struct bench *b, const char *calls)
{
    pthread_mutex_lock(&b->lock);
    AUTO_STRBUF got;
    strbuf_init(&got);
    strbuf_adds(&got, strbuf_str(&b->calls));
    strbuf_reset(&b->calls);
    pthread_mutex_unlock(&b->lock);
    if (strcmp(strbuf_str(&got), calls) != 0)
        fail_msg("expected:\n%sgot:\n%s", calls, strbuf_str(&got));
}

static int setup(void **state)
{
    struct bench *b = calloc(1, sizeof *b);
    struct error err = ERROR_INIT;
    assert_non_null(b);
    pthread_mutex_init(&b->lock, NULL);
    b->healthy = IDS;
    b->generation = 1;
    scratch_folder(b->dir, "devices");
    char part[128];
    (void)str_format(part, sizeof part, "%s/device-plugins", b->dir);
    assert_int_equal(mkdir(part, 0755), 0);
    (void)str_format(part, sizeof part, "%s/pod-resources", b->dir);
    assert_int_equal(mkdir(part, 0755), 0);
    (void)str_format(b->plugin_socket, 128, "%s/device-plugins/p.sock", b->dir);
    (void)str_format(b->registration, 128, "%s/device-plugins/kubelet.sock", b->dir);
    (void)str_format(b->pods_socket, 128, "%s/pod-resources/kubelet.sock", b->dir);
    struct devices_config c = {.kubelet_dir = b->dir, .changed = on_changed, .arg = b};
    if (devices_new(&b->devices, &c, &err) < 0 || devices_start(b->devices, &err) < 0)
        fail_msg("%s", err.text);
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    struct bench *b = *state;
    rpc_server_stop(b->plugin, 0);
    devices_free(b->devices);
    podfiles_remove(b->dir);
    strbuf_deinit(&b->calls);
    pthread_mutex_destroy(&b->lock);
    free(b);
    return 0;
}

static struct podview *make_pod(const char *uid, const char *containers)
{
    AUTO_STRBUF text;
    AUTO_JSON *doc = NULL;
    struct error err = ERROR_INIT;
    struct podview *v = NULL;
    strbuf_init(&text);
    strbuf_addf(&text,
                "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"d\",\"uid\":\"%s\"},\"spec\":{%s}}",
                uid, uid, containers);
    if (json_parse(&doc, strbuf_str(&text), text.len, &err) < 0 ||
        podview_decode(json_root(doc), &v, &err) < 0)
        fail_msg("%s", err.text);
    return v;
}

#define LIMIT(n) "\"resources\":{\"limits\":{\"" RESOURCE "\":" #n "}}"
#define ASKS(n) "\"containers\":[{\"name\":\"c\"," LIMIT(n) "}]"

static int admit(struct bench *b, const struct podview *v, struct error *err)
{
    devices_add_pod(b->devices, v);
    return devices_allocate(b->devices, v, err);
}

static void test_the_order_of_calls(void **state)
{
    struct bench *b = *state;
    struct error err = ERROR_INIT;
    AUTO_STRBUF env;
    strbuf_init(&env);
    assert_true(devices_is_fresh(b->devices));
    plugin_up(b);
    wait_for(b, IDS, IDS);
    struct podview *one = make_pod("one", ASKS(2)), *two = make_pod("two", ASKS(4)),
                   *three = make_pod("three", ASKS(1));
    assert_int_equal(admit(b, one, &err), 0);
    assert_int_equal(devices_pre_start(b->devices, "one", "c", &err), 0);
    assert_int_equal(admit(b, two, &err), 0); /* all that are free: preferred all the same */
    expect_calls(b, "prefer 2 of 6, must 0\nallocate d4 d5, 1 pods\nprestart\n"
                    "prefer 4 of 4, must 0\nallocate d0 d1 d2 d3, 2 pods\n");
    devices_print_env(b->devices, "one", "c", &env);
    assert_string_equal(strbuf_str(&env), "IDS=d4\n");
    assert_int_equal(admit(b, three, &err), -1);
    assert_string_equal(err.text, "requested number of devices unavailable for " RESOURCE
                                  ". Requested: 1, Available: 0");
    devices_remove_pod(b->devices, "three");
    devices_remove_pod(b->devices, "two");
    assert_int_equal(admit(b, three, &err), 0);
    expect_calls(b, "prefer 1 of 4, must 0\nallocate d3, 2 pods\n");
    podview_free(one);
    podview_free(two);
    podview_free(three);
}

static void test_a_refusal_is_told_as_the_kubelet_tells_it(void **state)
{
    struct bench *b = *state;
    static const struct {
        enum error_code code; /* of our plugin */
        const char *sentence; /* of the kubelet */
    } rows[] = {
        {ERROR_UNSUPPORTED, "rpc error: code = FailedPrecondition desc = no claim"},
        {ERROR_INVALID, "rpc error: code = InvalidArgument desc = no claim"},
        {ERROR_NOT_FOUND, "rpc error: code = NotFound desc = no claim"},
        {ERROR_CONFLICT, "rpc error: code = Aborted desc = no claim"},
        {ERROR_TOO_LARGE, "rpc error: code = ResourceExhausted desc = no claim"},
        {ERROR_INTERNAL, "rpc error: code = Internal desc = no claim"},
    };
    struct podview *v = make_pod("one", ASKS(1));
    plugin_up(b);
    wait_for(b, IDS, IDS);
    b->refuse = "no claim";
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct error err = ERROR_INIT;
        b->refuse_code = rows[i].code;
        assert_int_equal(admit(b, v, &err), -1);
        assert_string_equal(err.text, rows[i].sentence);
        devices_remove_pod(b->devices, "one");
    }
    podview_free(v);
}

static void test_init_containers_lend_their_ids(void **state)
{
    struct bench *b = *state;
    struct error err = ERROR_INIT;
    struct podview *v = make_pod(
        "one",
        "\"initContainers\":[{\"name\":\"i\"," LIMIT(2) "}],\"containers\":[{\"name\":\"c\"," LIMIT(
            3) "},{\"name\":\"e\"," LIMIT(1) "}]");
    plugin_up(b);
    wait_for(b, IDS, IDS);
    assert_int_equal(admit(b, v, &err), 0);
    expect_calls(b, "prefer 2 of 6, must 0\nallocate d4 d5, 1 pods\n"
                    "prefer 3 of 6, must 2\nallocate d4 d5 d3, 1 pods\n"
                    "prefer 1 of 3, must 0\nallocate d2, 1 pods\n");
    podview_free(v);
}

static void test_health_and_loss(void **state)
{
    struct bench *b = *state;
    struct error err = ERROR_INIT;
    struct podview *v = make_pod("one", ASKS(1));
    assert_int_equal(admit(b, v, &err), 0); /* never registered: no plugin is called */
    expect_calls(b, "");
    plugin_up(b);
    wait_for(b, IDS, IDS);
    pthread_mutex_lock(&b->lock);
    b->healthy = 4;
    b->generation++;
    pthread_mutex_unlock(&b->lock);
    rpc_server_notify(b->plugin);
    wait_for(b, IDS, 4);
    rpc_server_stop(b->plugin, 0);
    b->plugin = NULL;
    wait_for(b, IDS, 0);
    struct podview *late = make_pod("late", ASKS(1));
    assert_int_equal(admit(b, late, &err), -1);
    assert_string_equal(err.text,
                        "no healthy devices present; cannot allocate unhealthy devices " RESOURCE);
    podview_free(late);
    podview_free(v);
}

static bool only_one(void *arg, const char *uid)
{
    (void)arg;
    return str_eq(uid, "one");
}

static void test_a_restart_keeps_what_was_allocated(void **state)
{
    struct bench *b = *state;
    struct error err = ERROR_INIT;
    struct stat st;
    AUTO_STRBUF env;
    strbuf_init(&env);
    struct podview *one = make_pod("one", ASKS(2)), *two = make_pod("two", ASKS(4));
    plugin_up(b);
    wait_for(b, IDS, IDS);
    assert_int_equal(admit(b, one, &err), 0);
    assert_int_equal(admit(b, two, &err), 0);
    expect_calls(b, "prefer 2 of 6, must 0\nallocate d4 d5, 1 pods\n"
                    "prefer 4 of 4, must 0\nallocate d0 d1 d2 d3, 2 pods\n");
    devices_stop(b->devices);
    assert_int_equal(devices_start(b->devices, &err), 0);
    assert_false(devices_is_fresh(b->devices));
    assert_int_equal(stat(b->plugin_socket, &st), -1); /* swept away */
    assert_int_equal(stat(b->registration, &st), 0);
    wait_for(b, 0, 0);
    /* The plugin is away: what was allocated is not asked again, and nothing is called before a
     * start. */
    assert_int_equal(devices_allocate(b->devices, one, &err), 0);
    assert_int_equal(devices_pre_start(b->devices, "one", "c", &err), 0);
    expect_calls(b, "");
    devices_print_env(b->devices, "one", "c", &env);
    assert_string_equal(strbuf_str(&env), "IDS=d4\n");
    rpc_server_stop(b->plugin, 0);
    plugin_up(b);
    wait_for(b, IDS, IDS);
    devices_keep_only(b->devices, only_one, NULL); /* two was deleted meanwhile */
    struct podview *three = make_pod("three", ASKS(4));
    assert_int_equal(admit(b, three, &err), 0);
    assert_int_equal(devices_pre_start(b->devices, "one", "c", &err), 0);
    expect_calls(b, "prefer 4 of 4, must 0\nallocate d0 d1 d2 d3, 3 pods\nprestart\n");
    podview_free(one);
    podview_free(two);
    podview_free(three);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_order_of_calls, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_refusal_is_told_as_the_kubelet_tells_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_init_containers_lend_their_ids, setup, teardown),
        cmocka_unit_test_setup_teardown(test_health_and_loss, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_restart_keeps_what_was_allocated, setup, teardown),
    };
    rpc_init();
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rpc_shutdown();
    return failed;
}
