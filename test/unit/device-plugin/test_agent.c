// SPDX-License-Identifier: Apache-2.0
/*
 * The plugin from the cards to the container, without an API server: agent, register and service against the kubelet twin,
 * over real sockets in a directory of its own. The test's thread is the loop.
 */
#include "device-plugin/agent.h"

#include "test/unit/lib/base/expect.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>

#include "device-plugin/rpc.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "lib/base/str.h"
#include "test/fake/kubelet/kubelet.h"
#include "test/unit/device-plugin/cards.h"

#define MEM "aliyun.com/gpu-mem"
#define CORE "aliyun.com/gpu-core.percentage"
#define GPU "aliyun.com/gpu"
#define NVIDIA "nvidia.com/gpu"
#define MODE(m) "\"ack.node.gpu.schedule\":\"" m "\""
#define CLAIM(x)                                       \
    "\"scheduler.framework.gpushare.allocation\":\"" x \
    "\",\"scheduler.framework.gpushare.assigned\":\"false\""

struct fixture {
    char dir[64], state_dir[96];
    struct arena arena;
    struct gpu_inventory cards;
    struct kubelet *kubelet;
    struct loop *loop;
    struct service *service;
    struct agent *agent;
    struct agent_config config;
    /* What came out. */
    char inventory[2048];
    int64_t gpu_count;
    char reason[64], message[512];
    bool ready;
    _Atomic int gets, starting, refused;
    char refusal[ERROR_TEXT_SIZE];
    /* The API server's word on pods that the watch has not brought. */
    const char *remote_name, *remote_containers, *remote_annotations;
    _Atomic int remote_error;
};

static void ignore(void *arg, const char *line, size_t n)
{
    (void)arg;
    if (getenv("SHOW_LOG") != NULL)
        (void)!write(2, line, n);
}

static int get_pod(void *arg, const char *ns, const char *name, struct pod **out, struct error *err)
{
    struct fixture *f = arg;
    (void)ns;
    f->gets++;
    if (f->remote_error != ERROR_NONE)
        return error_set(err, (enum error_code)f->remote_error, "the API server is away");
    if (!str_eq(name, f->remote_name))
        return error_set(err, ERROR_NOT_FOUND, "no such pod");
    *out = cards_pod(f->remote_name, f->remote_containers, f->remote_annotations);
    return 0;
}

static void on_starting(void *arg, const char *ns, const char *name, const struct pod *pod)
{
    struct fixture *f = arg;
    (void)ns, (void)name, (void)pod;
    f->starting++;
}

static void on_refused(void *arg, const struct pod *pod, const char *why)
{
    struct fixture *f = arg;
    (void)pod;
    (void)str_format(f->refusal, sizeof f->refusal, "%s", why);
    f->refused++;
}

static void on_publish(void *arg, const struct publish_wanted *w)
{
    struct fixture *f = arg;
    (void)str_format(f->inventory, sizeof f->inventory, "%s", w->inventory);
    f->gpu_count = w->gpu_count;
}

static void on_event(void *arg, bool warning, const char *reason, const char *message)
{
    struct fixture *f = arg;
    (void)warning;
    (void)str_format(f->reason, sizeof f->reason, "%s", reason);
    (void)str_format(f->message, sizeof f->message, "%s", message);
}

static void on_ready(void *arg, bool cards, bool mode, bool registered)
{
    struct fixture *f = arg;
    f->ready = cards && mode && registered;
}

static void start_agent(struct fixture *f)
{
    struct error err = ERROR_INIT;
    struct service_hooks hooks = {
        .get_pod = get_pod, .starting = on_starting, .refused = on_refused, .arg = f};
    if (service_new(&f->service, kubelet_pod_resources(f->kubelet), &hooks, &err) < 0)
        fail_msg("%s", err.text);
    f->config.service = f->service;
    if (agent_new(&f->agent, &f->config, &err) < 0)
        fail_msg("%s", err.text);
    agent_cards(f->agent, &f->cards);
}

static void stop_agent(struct fixture *f)
{
    agent_free(f->agent);
    service_free(f->service);
    f->agent = NULL;
    f->service = NULL;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct error err = ERROR_INIT;
    (void)str_format(f->dir, sizeof f->dir, "/tmp/cosched-agent-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    assert_true(str_format(f->state_dir, sizeof f->state_dir, "%s/state", f->dir));
    arena_init(&f->arena, 0);
    cards_make(&f->cards, &f->arena, (const int64_t[]){16160, 16160, 0});
    log_set_sink(ignore, NULL);
    rpc_init();
    f->kubelet = kubelet_new(f->dir);
    kubelet_start(f->kubelet);
    assert_int_equal(0, loop_new(&f->loop, &err));
    f->config = (struct agent_config){.loop = f->loop,
                                      .plugin_dir = kubelet_plugin_dir(f->kubelet),
                                      .state_dir = f->state_dir,
                                      .isolation_none = true,
                                      .exclusive = true,
                                      .publish = on_publish,
                                      .event = on_event,
                                      .ready = on_ready,
                                      .arg = f};
    start_agent(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    char path[160];
    stop_agent(f);
    kubelet_free(f->kubelet);
    loop_free(f->loop);
    rpc_shutdown();
    metrics_reset();
    log_set_sink(NULL, NULL);
    (void)str_format(path, sizeof path, "%s/mode.json", f->state_dir);
    unlink(path);
    rmdir(f->state_dir);
    assert_int_equal(0, rmdir(f->dir));
    arena_deinit(&f->arena);
    free(f);
    return 0;
}

static void node(struct fixture *f, const char *labels, const char *allocatable)
{
    struct node *n = cards_node(labels, allocatable);
    agent_node(f->agent, n);
    node_free(n);
}

/* Runs the loop until the kubelet's list of the resource has this many ids, healthy ones. */
static void expect_list(struct fixture *f, const char *row, const char *resource, int ids,
                        int healthy)
{
    int got = -2, well = 0;
    for (int64_t end = clock_mono_ms() + 10000; clock_mono_ms() < end;) {
        got = kubelet_devices(f->kubelet, resource, &well);
        if (got == ids && well == healthy)
            return;
        loop_once(f->loop, 5);
    }
    expect_int(row, ids, got);
    expect_int(row, healthy, well);
}

static void expect_registered(struct fixture *f, const char *row, const char *resource,
                              int at_least)
{
    for (int64_t end = clock_mono_ms() + 10000;
         kubelet_registrations(f->kubelet, resource) < at_least && clock_mono_ms() < end;)
        loop_once(f->loop, 5);
    expect_true(row, kubelet_registrations(f->kubelet, resource) >= at_least);
}

static const char *const one[] = {"c0", NULL};

/* A pod that the watch has brought and the kubelet is admitting. */
static void arrive(struct fixture *f, const char *name, const char *containers,
                   const char *annotations)
{
    service_put_pod(f->service, cards_pod(name, containers, annotations));
    kubelet_add_pod(f->kubelet, "default", name, one);
}

static void registers_and_serves(void **state)
{
    struct fixture *f = *state;
    struct kubelet_answer env;
    struct error err = ERROR_INIT;
    expect_int("nothing is registered before the mode is known", 0,
               kubelet_registrations(f->kubelet, MEM));
    node(f, MODE("cgpu"), "");
    expect_list(f, "two cards of 16,160 MiB are 30 GiB", MEM, 30, 30);
    expect_true("ready", f->ready);
    expect_int("only the mode's resource is registered", 0,
               kubelet_registrations(f->kubelet, NVIDIA));
    expect_int("gpu-count", 2, f->gpu_count);
    expect_true("the inventory is published", strstr(f->inventory, "\"mode\":\"cgpu\"") != NULL);

    arrive(f, "a", "c0=gpu-mem:3", CLAIM("{\\\"0\\\":{\\\"1\\\":3}}"));
    expect_int("admitted", 0, kubelet_admit(f->kubelet, "default", "a", "c0", MEM, 3, &env, &err));
    expect_str("no error", "", err.text);
    expect_str("on the claimed card", "GPU-b", kubelet_env(&env, "NVIDIA_VISIBLE_DEVICES"));
    expect_str("index", "1", kubelet_env(&env, "ALIYUN_COM_GPU_MEM_IDX"));
    expect_str("of the pod", "3", kubelet_env(&env, "ALIYUN_COM_GPU_MEM_POD"));
    expect_str("of the container", "3", kubelet_env(&env, "ALIYUN_COM_GPU_MEM_CONTAINER"));
    expect_str("of the card", "15", kubelet_env(&env, "ALIYUN_COM_GPU_MEM_DEV"));
    expect_int("the start was told", 1, f->starting);
    expect_int("without asking the API server", 0, f->gets);

    arrive(f, "b", "c0=gpu-mem:3", "");
    expect_int("a pod without a claim", -1,
               kubelet_admit(f->kubelet, "default", "b", "c0", MEM, 3, &env, &err));
    expect_true(
        "is refused in a sentence",
        strstr(err.text, "pod default/b asks for aliyun.com/gpu-mem but carries no claim") != NULL);
    expect_int("which is told", 1, f->refused);
    expect_done();
}

static void the_kubelet_is_faster_than_the_watch(void **state)
{
    struct fixture *f = *state;
    struct kubelet_answer env;
    struct error err = ERROR_INIT;
    node(f, MODE("share"), "");
    expect_list(f, "list", MEM, 30, 30);
    f->remote_name = "late";
    f->remote_containers = "c0=gpu-mem:2";
    f->remote_annotations = CLAIM("{\\\"0\\\":{\\\"0\\\":2}}");
    f->remote_error =
        ERROR_NONE; /* written last and read first: hands the others to the transport's threads */
    kubelet_add_pod(f->kubelet, "default", "static", one);
    kubelet_add_pod(f->kubelet, "default", "late", one);
    expect_int("the pod is asked for", 0,
               kubelet_admit(f->kubelet, "default", "late", "c0", MEM, 2, &env, &err));
    expect_str("no error", "", err.text);
    expect_str("and served", "GPU-a", kubelet_env(&env, "NVIDIA_VISIBLE_DEVICES"));
    expect_str("mode share", "true", kubelet_env(&env, "CGPU_DISABLE"));
    expect_true("by GET", f->gets > 0);

    f->remote_error = ERROR_UNAVAILABLE;
    kubelet_add_pod(f->kubelet, "default", "later", one);
    expect_int("an API server that is away", -1,
               kubelet_admit(f->kubelet, "default", "later", "c0", MEM, 2, &env, &err));
    expect_true("refuses what nobody knows",
                strstr(err.text, "is not known here yet: the API server is away") != NULL);
    arrive(f, "known", "c0=gpu-mem:1", CLAIM("{\\\"0\\\":{\\\"1\\\":1}}"));
    error_clear(&err);
    expect_int("but not what the watch has brought", 0,
               kubelet_admit(f->kubelet, "default", "known", "c0", MEM, 1, &env, &err));
    expect_str("no error", "", err.text);
    expect_done();
}

static void ids_on_another_card_are_refused(void **state)
{
    struct fixture *f = *state;
    struct kubelet_answer env;
    struct kubelet_ids ids = {.len = 2}, none = {.len = 0};
    struct error err = ERROR_INIT;
    node(f, MODE("cgpu"), "");
    expect_list(f, "list", MEM, 30, 30);
    arrive(f, "a", "c0=gpu-mem:2", CLAIM("{\\\"0\\\":{\\\"1\\\":2}}"));
    (void)str_format(ids.items[0], KUBELET_ID, "GPU-a-_-0");
    (void)str_format(ids.items[1], KUBELET_ID, "GPU-a-_-1");
    expect_int("a kubelet that did not ask", -1,
               kubelet_allocate(f->kubelet, MEM, &ids, &env, &err));
    expect_true("is refused (I5)",
                strstr(err.text, "on card 0 than the scheduler chose there") != NULL);
    kubelet_hold(f->kubelet, "default", "a", "c0", MEM, &ids);
    expect_int("and once more before the start", -1,
               kubelet_pre_start(f->kubelet, MEM, &ids, &err));
    expect_int("so nothing starts", 0, f->starting);
    kubelet_hold(f->kubelet, "default", "a", "c0", MEM, &none);
    error_clear(&err);
    expect_int("ids of nobody, as of an init container, may start", 0,
               kubelet_pre_start(f->kubelet, MEM, &ids, &err));
    expect_int("nobody waits for four", -1, kubelet_prefer(f->kubelet, MEM, &ids, 4, &none, &err));
    expect_done();
}

static void health_of_a_card(void **state)
{
    struct fixture *f = *state;
    struct gpu_inventory half = f->cards;
    node(f, MODE("core_mem"), "");
    expect_list(f, "memory", MEM, 30, 30);
    expect_list(f, "and compute", CORE, 200, 200);
    half.cards_len = 1;
    agent_cards(f->agent, &half);
    expect_list(f, "a card that vanished is unhealthy, not gone", MEM, 30, 15);
    expect_list(f, "in both", CORE, 200, 100);
    expect_true("and published as sick", strstr(f->inventory, "\"health\":\"sick\"") != NULL);
    agent_cards(f->agent, &f->cards);
    expect_list(f, "it comes back", MEM, 30, 30);
    half.cards_len = 2;
    half.cards = arena_new(&f->arena, struct gpu_card, 2);
    half.cards[0] = half.cards[1] = f->cards.cards[0];
    agent_cards(f->agent, &half);
    expect_list(f, "a scan that makes no sense changes nothing", MEM, 30, 30);
    expect_done();
}

static void the_kubelet_restarts(void **state)
{
    struct fixture *f = *state;
    node(f, MODE("core_mem"), "");
    expect_list(f, "memory", MEM, 30, 30);
    expect_list(f, "compute", CORE, 200, 200);
    for (int i = 0; i < 3; i++) {
        int before = kubelet_registrations(f->kubelet, MEM);
        kubelet_stop(f->kubelet);
        for (int k = 0; k < 4; k++)
            loop_once(f->loop, 20); /* it notices, and tries in vain */
        kubelet_start(f->kubelet);
        expect_registered(f, "registered again", MEM, before + 1);
        expect_list(f, "memory is back", MEM, 30, 30);
        expect_list(f, "compute is back", CORE, 200, 200);
    }
    expect_true("ready", f->ready);

    int before = kubelet_registrations(f->kubelet, MEM);
    kubelet_drop_stream(f->kubelet, MEM);
    expect_registered(f, "a lost stream is registered again", MEM, before + 1);
    expect_list(f, "and listed", MEM, 30, 30);

    before = kubelet_registrations(f->kubelet, CORE);
    char path[256];
    (void)str_format(path, sizeof path, "%s/cosched-gpu-core.sock", kubelet_plugin_dir(f->kubelet));
    assert_int_equal(0, unlink(path));
    expect_registered(f, "a deleted socket is made and registered again", CORE, before + 1);
    struct stat st;
    expect_int("it is there", 0, stat(path, &st));

    kubelet_refuse_registrations(f->kubelet, 2);
    before = kubelet_registrations(f->kubelet, MEM);
    kubelet_drop_stream(f->kubelet, MEM);
    expect_registered(f, "a refused registration is tried again", MEM, before + 1);
    expect_list(f, "until it works", MEM, 30, 30);
    expect_done();
}

static void modes_change(void **state)
{
    struct fixture *f = *state;
    struct kubelet_answer env;
    struct error err = ERROR_INIT;
    bool switching;
    node(f, "", "");
    expect_list(f, "without a label whole cards", NVIDIA, 2, 2);
    expect_int("no gpu-count", 0, f->gpu_count);
    node(f, MODE("cgpu"), "");
    expect_list(f, "shares", MEM, 30, 30);
    expect_list(f, "the mode that was left shows 0", NVIDIA, 0, 0);
    arrive(f, "a", "c0=gpu-mem:3", CLAIM("{\\\"0\\\":{\\\"1\\\":3}}"));
    expect_int("a pod", 0, kubelet_admit(f->kubelet, "default", "a", "c0", MEM, 3, &env, &err));
    node(f, MODE("topology"), "");
    expect_str("an Event says that the switch waits", "GpuModeSwitch", f->reason);
    expect_list(f, "exactly the held ids stay", MEM, 3, 3);
    expect_int("nothing new yet", 0, kubelet_registrations(f->kubelet, GPU));
    expect_true("the inventory says so",
                strstr(f->inventory, "\"switchingTo\":\"topology\"") != NULL);
    arrive(f, "b", "c0=gpu-mem:3", CLAIM("{\\\"0\\\":{\\\"1\\\":3}}"));
    struct kubelet_ids ids = {.len = 3};
    for (int i = 0; i < 3; i++)
        (void)str_format(ids.items[i], KUBELET_ID, "GPU-b-_-%d", 5 + i);
    expect_int("a new pod is refused", -1, kubelet_allocate(f->kubelet, MEM, &ids, &env, &err));
    expect_true("in a sentence", strstr(err.text, "leaving GPU mode cgpu for topology") != NULL);
    kubelet_remove_pod(f->kubelet, "default", "b");
    kubelet_remove_pod(f->kubelet, "default", "a");
    expect_list(f, "when the last is gone the switch is done", GPU, 2, 2);
    expect_list(f, "and shares show 0", MEM, 0, 0);
    expect_int("mode", GPU_MODE_TOPOLOGY, agent_mode(f->agent, &switching));
    node(f, "", "");
    expect_int("a removed label changes nothing", GPU_MODE_TOPOLOGY,
               agent_mode(f->agent, &switching));
    node(f, MODE("vgpu"), "");
    expect_str("an unknown one is said", "GpuModeUnknown", f->reason);
    expect_true("with the legal values",
                strstr(f->message, "default, cgpu, core_mem, share, mps, topology") != NULL);

    stop_agent(f);
    start_agent(f);
    expect_list(f, "after a restart the mode is known without the node", GPU, 2, 2);
    expect_list(f, "and so are the resources that show 0", MEM, 0, 0);
    expect_list(f, "all of them", NVIDIA, 0, 0);
    expect_done();
}

static void isolation_and_neighbours(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *row, *mode, *allocatable, *resource;
        bool none, exclusive;
        int ids; /* -1: not registered */
        const char *reason;
    } rows[] = {
        {"cgpu without an engine shows 0", MODE("cgpu"), "", MEM, false, true, 0,
         "IsolationMissing"},
        {"mps too", MODE("mps"), "", MEM, false, true, 0, "IsolationMissing"},
        {"share promises nothing", MODE("share"), "", MEM, false, true, 30, "GpuMode"},
        {"topology needs no engine", MODE("topology"), "", GPU, false, true, 2, "GpuMode"},
        {"accepted explicitly", MODE("mps"), "", MEM, true, true, 30, "GpuMode"},
        {"NVIDIA's plugin keeps its resource", MODE("default"), "\"nvidia.com/gpu\":\"2\"", NVIDIA,
         true, true, -1, "ForeignDevicePlugin"},
        {"and shares are refused beside it", MODE("share"), "\"nvidia.com/gpu\":\"2\"", MEM, true,
         true, 0, "ForeignDevicePlugin"},
        {"a resource that shows 0 is nobody's", MODE("default"), "\"nvidia.com/gpu\":\"0\"", NVIDIA,
         true, true, 2, "GpuMode"},
        {"left to another for good", MODE("default"), "", NVIDIA, true, false, -1, "GpuMode"},
    };
    char path[160];
    (void)str_format(path, sizeof path, "%s/mode.json", f->state_dir);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        stop_agent(f);
        unlink(path);
        f->reason[0] = '\0';
        f->config.isolation_none = rows[i].none;
        f->config.exclusive = rows[i].exclusive;
        int before = kubelet_registrations(f->kubelet, rows[i].resource);
        start_agent(f);
        node(f, rows[i].mode, rows[i].allocatable);
        if (rows[i].ids >= 0)
            expect_list(f, rows[i].row, rows[i].resource, rows[i].ids, rows[i].ids);
        else
            expect_int(rows[i].row, before, kubelet_registrations(f->kubelet, rows[i].resource));
        expect_str(rows[i].row, rows[i].reason, f->reason);
    }
    expect_done();
}

static void what_keeps_it_from_starting(void **state)
{
    struct fixture *f = *state;
    struct agent *second = NULL;
    struct agent_config c = f->config;
    struct error err = ERROR_INIT;
    char path[160];
    expect_int("a second plugin", -1, agent_new(&second, &c, &err));
    expect_true("is refused clearly",
                strstr(err.text, "another cosched-device-plugin serves this node") != NULL);
    c.plugin_dir = "/nonexistent";
    expect_int("no directory of the kubelet", -1, agent_new(&second, &c, &err));
    expect_str("by name", "device plugin directory /nonexistent: No such file or directory",
               err.text);
    char deep[200];
    memset(deep, 'x', sizeof deep - 1);
    deep[0] = '/';
    deep[sizeof deep - 1] = '\0';
    c.plugin_dir = deep;
    expect_int("a directory whose sockets have no name", -1, agent_new(&second, &c, &err));
    c = f->config;
    c.state_dir = "/nonexistent/state";
    expect_int("no state directory", -1, agent_new(&second, &c, &err));
    expect_true("by name", str_starts(err.text, "state directory /nonexistent/state"));

    stop_agent(f);
    (void)str_format(path, sizeof path, "%s/mode.json", f->state_dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_int_equal(5, write(fd, "{\"v\":", 5));
    close(fd);
    start_agent(f);
    expect_int("a state file cut short is ignored: nothing is registered yet", 0,
               kubelet_registrations(f->kubelet, MEM));
    node(f, MODE("share"), "");
    expect_list(f, "and the label decides", MEM, 30, 30);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(registers_and_serves, setup, teardown),
        cmocka_unit_test_setup_teardown(the_kubelet_is_faster_than_the_watch, setup, teardown),
        cmocka_unit_test_setup_teardown(ids_on_another_card_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(health_of_a_card, setup, teardown),
        cmocka_unit_test_setup_teardown(the_kubelet_restarts, setup, teardown),
        cmocka_unit_test_setup_teardown(modes_change, setup, teardown),
        cmocka_unit_test_setup_teardown(isolation_and_neighbours, setup, teardown),
        cmocka_unit_test_setup_teardown(what_keeps_it_from_starting, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
