// SPDX-License-Identifier: Apache-2.0
/* What the node offers, over restarts and changes. */
#include "device-plugin/agent.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "test/unit/device-plugin/plugin.h"

static bool is_switching(const struct plugin_fixture *f)
{
    return strstr(f->inventory, "\"switchingTo\":\"topology\"") != NULL;
}

static void health_of_a_card(void **state)
{
    struct plugin_fixture *f = *state;
    struct gpu_inventory half = f->cards;
    plugin_node(f, MODE("core_mem"), "");
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
    half.cards[0] = f->cards.cards[0];
    half.cards[1] = f->cards.cards[1];
    half.cards[1].mib = 0;
    half.cards[0].model = "Tesla T40";
    agent_cards(f->agent, &half);
    expect_list(f, "a card that makes no sense is as good as lost", MEM, 30, 15);
    expect_true("the others go on", strstr(f->inventory, "Tesla T40") != NULL);
    expect_done();
}

static void cards_in_mig_mode(void **state)
{
    struct plugin_fixture *f = *state;
    plugin_node(f, MODE("share"), "");
    expect_list(f, "two cards", MEM, 30, 30);
    f->cards.cards[1].mig = true;
    agent_cards(f->agent, &f->cards);
    expect_list(f, "one that is cut into instances is not shared", MEM, 30, 15);
    expect_true("and published as sick", strstr(f->inventory, "\"health\":\"sick\"") != NULL);
    expect_str("an Event", "GpuMig", f->reason);
    expect_true("names it",
                strstr(f->message, "1 of the node's 2 cards, which are in MIG mode: 1.") != NULL);
    f->reason[0] = '\0';
    f->cards.cards[0].model = "Tesla T40";
    agent_cards(f->agent, &f->cards);
    expect_true("published", strstr(f->inventory, "Tesla T40") != NULL);
    expect_str("said once", "", f->reason);
    plugin_node(f, MODE("default"), "");
    expect_list(f, "as a whole card it is offered", NVIDIA, 2, 2);
    plugin_node(f, MODE("share"), "");
    expect_list(f, "and left out again", MEM, 30, 15);
    f->cards.cards[1].mig = false;
    agent_cards(f->agent, &f->cards);
    expect_list(f, "until MIG is off", MEM, 30, 30);
    expect_done();
}

static void the_kubelet_restarts(void **state)
{
    struct plugin_fixture *f = *state;
    plugin_node(f, MODE("core_mem"), "");
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

    kubelet_lose_answers(f->kubelet, 1);
    f->ready = false;
    kubelet_drop_stream(f->kubelet, MEM);
    expect_registered(f, "one whose answer was lost was made all the same", MEM, before + 2);
    for (int i = 0; i < 200 && !f->ready; i++)
        loop_once(f->loop, 20);
    expect_true("the kubelet's stream tells", f->ready);
    expect_int("and is not cut by another", before + 2, kubelet_registrations(f->kubelet, MEM));
    expect_done();
}

static void the_directory_is_replaced(void **state)
{
    struct plugin_fixture *f = *state;
    char socket[256], aside[256];
    struct stat st;
    (void)str_format(socket, sizeof socket, "%s/cosched-gpu-mem.sock",
                     kubelet_plugin_dir(f->kubelet));
    assert_int_equal(0, mkdir(socket, 0755)); /* its socket cannot be made */
    plugin_node(f, MODE("core_mem"), "");
    expect_list(f, "a socket that cannot be made does not keep the others", CORE, 200, 200);
    expect_int("it is not registered", 0, kubelet_registrations(f->kubelet, MEM));
    assert_int_equal(0, rmdir(socket));
    expect_list(f, "until it can", MEM, 30, 30);

    /* Everything in it, then the directory; a while later a new one with a new kubelet in it. */
    kubelet_stop(f->kubelet);
    (void)str_format(aside, sizeof aside, "%s/aside", f->dir);
    assert_int_equal(0, rename(kubelet_plugin_dir(f->kubelet), aside));
    expect_int("removed", 0, plugin_remove_dir(aside));
    for (int i = 0; i < 10; i++)
        loop_once(f->loop, 30);
    assert_int_equal(0, mkdir(kubelet_plugin_dir(f->kubelet), 0755));
    kubelet_start(f->kubelet);
    expect_list(f, "the new directory is found", MEM, 30, 30);
    expect_list(f, "for all resources", CORE, 200, 200);
    int before = kubelet_registrations(f->kubelet, CORE);
    (void)str_format(socket, sizeof socket, "%s/cosched-gpu-core.sock",
                     kubelet_plugin_dir(f->kubelet));
    assert_int_equal(0, unlink(socket));
    expect_registered(f, "and watched", CORE, before + 1);
    expect_int("the socket is there", 0, stat(socket, &st));
    struct agent *second = NULL;
    struct error err = ERROR_INIT;
    expect_int("and ours alone", -1, agent_new(&second, &f->config, &err));
    expect_done();
}

static bool state_says(struct plugin_fixture *f, const char *text)
{
    char path[160], have[512] = "";
    (void)str_format(path, sizeof path, "%s/mode.json", f->state_dir);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, have, sizeof have - 1) : 0;
    if (fd >= 0)
        close(fd);
    return n > 0 && strstr(have, text) != NULL;
}

static void the_mode_is_remembered(void **state)
{
    struct plugin_fixture *f = *state;
    struct kubelet_answer env;
    struct error err = ERROR_INIT;
    char temp[160];
    (void)str_format(temp, sizeof temp, "%s/mode.json.new", f->state_dir);
    assert_int_equal(0, mkdir(temp, 0755)); /* the state file cannot be written */
    plugin_node(f, MODE("cgpu"), "");
    expect_list(f, "the mode is served all the same", MEM, 30, 30);
    expect_true("but not remembered", !state_says(f, "cgpu"));
    assert_int_equal(0, rmdir(temp));
    for (int64_t end = clock_mono_ms() + 10000; !state_says(f, "cgpu") && clock_mono_ms() < end;)
        loop_once(f->loop, 20);
    expect_true("until it can be", state_says(f, "\"mode\":\"cgpu\""));

    plugin_arrive(f, "a", "c0=gpu-mem:3", GRANT("{\\\"0\\\":{\\\"1\\\":3}}"));
    expect_int("a pod", 0, kubelet_admit(f->kubelet, "default", "a", "c0", MEM, 3, &env, &err));
    plugin_node(f, MODE("topology"), "");
    plugin_node(f, "", "");
    plugin_stop(f);
    plugin_start(f);
    plugin_node(f, "", "");
    expect_true("a switch goes on after a restart, without the label", is_switching(f));
    expect_list(f, "exactly the held ids stay", MEM, 3, 3);
    kubelet_remove_pod(f->kubelet, "default", "a");
    expect_list(f, "and is finished", GPU, 2, 2);
    expect_true("the last mode that was set", state_says(f, "\"mode\":\"topology\""));
    expect_done();
}

static void modes_change(void **state)
{
    struct plugin_fixture *f = *state;
    struct kubelet_answer env;
    struct error err = ERROR_INIT;
    plugin_node(f, "", "");
    expect_list(f, "without a label whole cards", NVIDIA, 2, 2);
    expect_int("no gpu-count", 0, f->gpu_count);
    plugin_node(f, MODE("cgpu"), "");
    expect_list(f, "shares", MEM, 30, 30);
    expect_list(f, "the mode that was left shows 0", NVIDIA, 0, 0);
    plugin_arrive(f, "a", "c0=gpu-mem:3", GRANT("{\\\"0\\\":{\\\"1\\\":3}}"));
    expect_int("a pod", 0, kubelet_admit(f->kubelet, "default", "a", "c0", MEM, 3, &env, &err));
    plugin_node(f, MODE("topology"), "");
    expect_str("an Event says that the switch waits", "GpuModeSwitch", f->reason);
    expect_list(f, "exactly the held ids stay", MEM, 3, 3);
    expect_int("nothing new yet", 0, kubelet_registrations(f->kubelet, GPU));
    expect_true("the inventory says so", is_switching(f));
    plugin_arrive(f, "b", "c0=gpu-mem:3", GRANT("{\\\"0\\\":{\\\"1\\\":3}}"));
    struct kubelet_ids ids = {.len = 3};
    for (int i = 0; i < 3; i++)
        (void)str_format(ids.items[i], KUBELET_ID, "GPU-b-_-%d", 5 + i);
    expect_int("a new pod is refused", -1, kubelet_allocate(f->kubelet, MEM, &ids, &env, &err));
    expect_true("in a sentence", strstr(err.text, "leaving GPU mode cgpu for topology") != NULL);
    kubelet_remove_pod(f->kubelet, "default", "b");
    kubelet_remove_pod(f->kubelet, "default", "a");
    expect_list(f, "when the last is gone the switch is done", GPU, 2, 2);
    expect_list(f, "and shares show 0", MEM, 0, 0);
    expect_true("mode", state_says(f, "\"mode\":\"topology\""));
    plugin_node(f, "", "");
    expect_true("a removed label changes nothing", state_says(f, "\"mode\":\"topology\""));
    plugin_node(f, MODE("vgpu"), "");
    expect_str("an unknown one is said", "GpuModeUnknown", f->reason);
    expect_true("with the legal values",
                strstr(f->message, "default, cgpu, core_mem, share, mps, topology") != NULL);

    plugin_stop(f);
    plugin_start(f);
    expect_list(f, "after a restart the mode is known without the node", GPU, 2, 2);
    expect_list(f, "and so are the resources that show 0", MEM, 0, 0);
    expect_list(f, "all of them", NVIDIA, 0, 0);
    expect_done();
}

static void isolation_and_neighbours(void **state)
{
    struct plugin_fixture *f = *state;
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
        {"which is there: nothing to complain about", MODE("default"), "\"nvidia.com/gpu\":\"2\"",
         NVIDIA, true, false, -1, "GpuMode"},
    };
    char path[160];
    (void)str_format(path, sizeof path, "%s/mode.json", f->state_dir);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        plugin_stop(f);
        unlink(path);
        f->reason[0] = '\0';
        f->config.isolation.none = rows[i].none;
        f->config.exclusive = rows[i].exclusive;
        int before = kubelet_registrations(f->kubelet, rows[i].resource);
        plugin_start(f);
        plugin_node(f, rows[i].mode, rows[i].allocatable);
        if (rows[i].ids >= 0)
            expect_list(f, rows[i].row, rows[i].resource, rows[i].ids, rows[i].ids);
        else
            expect_int(rows[i].row, before, kubelet_registrations(f->kubelet, rows[i].resource));
        expect_str(rows[i].row, rows[i].reason, f->reason);
    }
    f->config.isolation.none = false;
    plugin_stop(f);
    unlink(path);
    plugin_start(f);
    plugin_node(f, MODE("cgpu"), "");
    plugin_stop(f);
    f->reason[0] = '\0';
    plugin_start(f);
    expect_list(f, "after a restart", MEM, 0, 0);
    expect_str("no Event about a node that was not seen yet", "", f->reason);
    plugin_node(f, MODE("cgpu"), "");
    expect_str("but when it is", "IsolationMissing", f->reason);
    expect_done();
}

static void another_plugin_comes_later(void **state)
{
    struct plugin_fixture *f = *state;
    static const char two[] = "\"nvidia.com/gpu\":\"2\"";
    char path[160];
    (void)str_format(path, sizeof path, "%s/mode.json", f->state_dir);
    for (int later = 0; later < 2; later++) {
        plugin_stop(f);
        unlink(path);
        f->config.foreign_ms = later ? 50 : 60 * 1000;
        f->reason[0] = '\0';
        plugin_start(f);
        plugin_node(f, MODE("default"), "");
        expect_list(f, "we have served it ourselves", NVIDIA, 2, 2);
        plugin_node(f, MODE("share"), two);
        expect_list(f, "shares", MEM, 30, 30);
        if (!later) {
            expect_list(f, "what is left from before is not another's yet", MEM, 30, 30);
            plugin_node(f, MODE("share"), "\"nvidia.com/gpu\":\"0\"");
            continue;
        }
        expect_list(f, "but what stays is", MEM, 0, 0);
        expect_str("and an Event says so", "ForeignDevicePlugin", f->reason);
        plugin_node(f, MODE("share"), "\"nvidia.com/gpu\":\"0\"");
        expect_list(f, "until it has gone", MEM, 30, 30);
        plugin_node(f, MODE("default"), "\"nvidia.com/gpu\":\"0\"");
        expect_list(f, "and the resource is ours again", NVIDIA, 2, 2);
    }
    expect_done();
}

static void what_keeps_it_from_starting(void **state)
{
    struct plugin_fixture *f = *state;
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

    plugin_stop(f);
    (void)str_format(path, sizeof path, "%s/mode.json", f->state_dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_int_equal(5, write(fd, "{\"v\":", 5));
    close(fd);
    plugin_start(f);
    expect_int("a state file cut short is ignored: nothing is registered yet", 0,
               kubelet_registrations(f->kubelet, MEM));
    plugin_node(f, MODE("share"), "");
    expect_list(f, "and the label decides", MEM, 30, 30);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(health_of_a_card, plugin_setup, plugin_teardown),
        cmocka_unit_test_setup_teardown(cards_in_mig_mode, plugin_setup, plugin_teardown),
        cmocka_unit_test_setup_teardown(the_kubelet_restarts, plugin_setup, plugin_teardown),
        cmocka_unit_test_setup_teardown(the_directory_is_replaced, plugin_setup, plugin_teardown),
        cmocka_unit_test_setup_teardown(the_mode_is_remembered, plugin_setup, plugin_teardown),
        cmocka_unit_test_setup_teardown(modes_change, plugin_setup, plugin_teardown),
        cmocka_unit_test_setup_teardown(isolation_and_neighbours, plugin_setup, plugin_teardown),
        cmocka_unit_test_setup_teardown(another_plugin_comes_later, plugin_setup, plugin_teardown),
        cmocka_unit_test_setup_teardown(what_keeps_it_from_starting, plugin_setup, plugin_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
