// SPDX-License-Identifier: Apache-2.0
/* Pods that did not come through the scheduler, pods that nobody knows, and what is remembered when
 * the API server is away. */
#include "device-plugin/kubelet/service.h"
#include "device-plugin/kubelet/reconciler.h"

#include <stdio.h>
#include <sys/stat.h>

#include "lib/base/clock.h"
#include "lib/base/file.h"
#include "test/unit/device-plugin/plugin.h"

static const char *const one[] = {"c0", NULL};

/* The grant that was recorded last, or "(none)". */
static const char *recorded(struct plugin_fixture *f)
{
    static char text[256];
    const char *key = "allocation\":\"", *at = strstr(f->record, key);
    if (at == NULL)
        return "(none)";
    at += strlen(key);
    size_t n = 0;
    for (const char *p = at; *p != '\0' && !(p[0] == '"' && p[-1] != '\\') && n < 255; p++)
        if (*p != '\\')
            text[n++] = *p;
    text[n] = '\0';
    return text;
}

static void a_pod_without_a_grant_gets_one_here(void **state)
{
    struct plugin_fixture *f = *state;
    struct kubelet_answer env;
    struct error err = ERROR_INIT;
    plugin_node(f, MODE("cgpu"), "");
    expect_list(f, "list", MEM, 30, 30);
    /* Promised, and not admitted yet: 10 GiB of card 0. */
    podcache_put(&f->pods,
                 cards_pod("coming", "c0=gpu-mem:10", GRANT("{\\\"0\\\":{\\\"0\\\":10}}")));
    plugin_arrive(f, "a", "c0=gpu-mem:6", "");
    expect_int("admitted", 0, kubelet_admit(f->kubelet, "default", "a", "c0", MEM, 6, &env, &err));
    expect_str("no error", "", err.text);
    expect_str("not on what was promised to another", "GPU-b",
               kubelet_env(&env, "NVIDIA_VISIBLE_DEVICES"));
    expect_str("its size", "6", kubelet_env(&env, "ALIYUN_COM_GPU_MEM_POD"));
    expect_str("is recorded", "{\"0\":{\"1\":6}}", recorded(f));
    expect_true("with the time", strstr(f->record, "assume-time\":\"1") != NULL);
    expect_true("and without touching \"assigned\"", strstr(f->record, "assigned") == NULL);
    expect_int("its start is told", 1, f->starting);

    plugin_arrive(f, "b", "c0=gpu-mem:5", "");
    expect_str("binpack: the card with 5 GiB left", "GPU-a",
               plugin_allocate(f, MEM, 5, &env, &err));
    kubelet_remove_pod(f->kubelet, "default", "b");
    podcache_remove(&f->pods, "default/b");
    plugin_node(f, MODE("cgpu") ",\"ack.node.gpu.placement\":\"spread\"", "");
    plugin_arrive(f, "s", "c0=gpu-mem:5", "");
    expect_str("spread: the emptier one", "GPU-b", plugin_allocate(f, MEM, 5, &env, &err));
    kubelet_remove_pod(f->kubelet, "default", "s");
    podcache_remove(&f->pods, "default/s");

    plugin_arrive(f, "large", "c0=gpu-mem:10", "");
    int refused = f->refused;
    expect_true("no room is a sentence",
                strstr(plugin_allocate(f, MEM, 10, &env, &err),
                       "default/large: no card has 10 GiB free beside what others were promised "
                       "(largest free: 9 GiB on card 1)") != NULL);
    expect_int("which is told", refused + 1, f->refused);
    expect_done();
}

static void both_resources_end_on_one_card(void **state)
{
    struct plugin_fixture *f = *state;
    struct kubelet_ids ids;
    struct kubelet_answer env;
    struct error err = ERROR_INIT;
    plugin_node(f, MODE("core_mem") ",\"ack.node.gpu.placement\":\"spread\"", "");
    expect_list(f, "memory", MEM, 30, 30);
    expect_list(f, "compute", CORE, 200, 200);
    plugin_arrive(f, "a", "c0=gpu-mem:3,gpu-core.percentage:60", "");
    expect_int("compute first", 0,
               kubelet_give(f->kubelet, "default", "a", "c0", CORE, 60, &ids, &env, &err));
    expect_str("on a card", "GPU-a", kubelet_env(&env, "NVIDIA_VISIBLE_DEVICES"));
    expect_int("then memory", 0,
               kubelet_admit(f->kubelet, "default", "a", "c0", MEM, 3, &env, &err));
    expect_str("on the same", "GPU-a", kubelet_env(&env, "NVIDIA_VISIBLE_DEVICES"));

    /* The same with a pod that nobody knows. */
    f->remote_error = ERROR_UNAVAILABLE;
    kubelet_add_pod(f->kubelet, "default", "x", one);
    expect_int("a stranger's memory", 0,
               kubelet_admit(f->kubelet, "default", "x", "c0", MEM, 2, &env, &err));
    expect_str("on the emptier card", "GPU-b", kubelet_env(&env, "NVIDIA_VISIBLE_DEVICES"));
    expect_true("of its compute nothing is known",
                kubelet_env(&env, "COSCHED_GPU_CORE_PERCENTAGE") == NULL);
    expect_int("its compute", 0,
               kubelet_admit(f->kubelet, "default", "x", "c0", CORE, 30, &env, &err));
    expect_str("on the same card", "GPU-b", kubelet_env(&env, "NVIDIA_VISIBLE_DEVICES"));
    expect_str("as much as it has", "30", kubelet_env(&env, "COSCHED_GPU_CORE_PERCENTAGE"));
    expect_true("and nothing is said of its memory, which was said before",
                kubelet_env(&env, "ALIYUN_COM_GPU_MEM_CONTAINER") == NULL);
    expect_done();
}

static void the_api_server_is_away(void **state)
{
    struct plugin_fixture *f = *state;
    struct kubelet_answer env;
    struct error err = ERROR_INIT;
    plugin_node(f, MODE("cgpu"), "");
    expect_list(f, "list", MEM, 30, 30);
    plugin_arrive(f, "seen", "c0=gpu-mem:8", GRANT("{\\\"0\\\":{\\\"1\\\":8}}"));
    kubelet_remove_pod(f->kubelet, "default", "seen"); /* it will come */
    f->remote_error = ERROR_UNAVAILABLE;

    kubelet_add_pod(f->kubelet, "default", "unseen", one);
    expect_int("a pod that nobody has seen", 0,
               kubelet_admit(f->kubelet, "default", "unseen", "c0", MEM, 8, &env, &err));
    expect_str("gets a card with room beside all promises", "GPU-a",
               kubelet_env(&env, "NVIDIA_VISIBLE_DEVICES"));
    kubelet_add_pod(f->kubelet, "default", "another", one);
    expect_true("the next one does not fit, although the kubelet has 22 ids",
                strstr(plugin_allocate(f, MEM, 8, &env, &err),
                       "a pod that is not known here: no card has 8 GiB free beside what others "
                       "were promised") != NULL);
    kubelet_remove_pod(f->kubelet, "default", "another");
    kubelet_add_pod(f->kubelet, "default", "seen", one);
    expect_int("the one that was seen", 0,
               kubelet_admit(f->kubelet, "default", "seen", "c0", MEM, 8, &env, &err));
    expect_str("is on the scheduler's card", "GPU-b", kubelet_env(&env, "NVIDIA_VISIBLE_DEVICES"));
    expect_int("nothing was recorded yet", 0, f->records);

    /* It is back: the scheduler had chosen another card for the unseen pod. */
    f->remote_error = ERROR_NONE;
    struct pod *all[] = {
        cards_pod("seen", "c0=gpu-mem:8", GRANT("{\\\"0\\\":{\\\"1\\\":8}}")),
        cards_pod("unseen", "c0=gpu-mem:8", GRANT("{\\\"0\\\":{\\\"1\\\":8}}")),
    };
    podcache_reset(&f->pods, all, 2);
    expect_int("compared", 0, service_reconcile(f->service, 1000, &err));
    expect_int("one claim is corrected", 1, f->records);
    expect_str("it says both first", "{\"0\":{\"0\":8,\"1\":8}}", recorded(f));
    expect_int("the annotation has not come back", 0, service_reconcile(f->service, 1000, &err));
    expect_str("nothing is taken back", "{\"0\":{\"0\":8,\"1\":8}}", recorded(f));
    podcache_put(&f->pods, cards_pod("unseen", "c0=gpu-mem:8",
                                     GRANT("{\\\"0\\\":{\\\"0\\\":8,\\\"1\\\":8}}")));
    expect_int("it has", 0, service_reconcile(f->service, 1000, &err));
    expect_str("the promise is taken back", "{\"0\":{\"0\":8}}", recorded(f));
    podcache_put(&f->pods, cards_pod("unseen", "c0=gpu-mem:8", GRANT("{\\\"0\\\":{\\\"0\\\":8}}")));
    expect_int("all is said", 0, service_reconcile(f->service, 1000, &err));
    expect_int("then there is nothing to do", 1, service_reconcile(f->service, 1000, &err));
    /* An older write whose answer was lost comes through after all. */
    podcache_put(&f->pods, cards_pod("unseen", "c0=gpu-mem:8", GRANT("{\\\"0\\\":{\\\"1\\\":8}}")));
    expect_int("what differs from the truth is compared", 0,
               service_reconcile(f->service, 1000, &err));
    expect_str("and written again", "{\"0\":{\"0\":8,\"1\":8}}", recorded(f));
    expect_done();
}

/* Two pods hold each other's cards. Corrected one after the other, each in one write, the second
 * card would look empty between the writes, with a pod on it. */
static void two_that_were_swapped_are_widened_before_either_is_narrowed(void **state)
{
    struct plugin_fixture *f = *state;
    struct kubelet_ids ids = {.len = 8};
    struct error err = ERROR_INIT;
    plugin_node(f, MODE("cgpu"), "");
    expect_list(f, "list", MEM, 30, 30);
    for (int i = 0; i < 2; i++) {
        kubelet_add_pod(f->kubelet, "default", i == 0 ? "p" : "q", one);
        for (size_t k = 0; k < ids.len; k++)
            (void)str_format(ids.items[k], KUBELET_ID, "GPU-%s-_-%zu", i == 0 ? "b" : "a", k);
        kubelet_hold(f->kubelet, "default", i == 0 ? "p" : "q", "c0", MEM, &ids);
    }
    struct pod *all[] = {
        cards_pod("p", "c0=gpu-mem:8", GRANT("{\\\"0\\\":{\\\"0\\\":8}}")),
        cards_pod("q", "c0=gpu-mem:8", GRANT("{\\\"0\\\":{\\\"1\\\":8}}")),
    };
    podcache_reset(&f->pods, all, 2);
    expect_int("compared", 0, service_reconcile(f->service, 1000, &err));
    expect_int("both are widened", 2, f->records);
    expect_str("to both cards", "{\"0\":{\"0\":8,\"1\":8}}", recorded(f));
    podcache_put(&f->pods,
                 cards_pod("p", "c0=gpu-mem:8", GRANT("{\\\"0\\\":{\\\"0\\\":8,\\\"1\\\":8}}")));
    expect_int("one of them has come back", 0, service_reconcile(f->service, 1000, &err));
    expect_int("the other is written again", 3, f->records);
    expect_str("and nobody is narrowed", "{\"0\":{\"0\":8,\"1\":8}}", recorded(f));
    podcache_put(&f->pods,
                 cards_pod("q", "c0=gpu-mem:8", GRANT("{\\\"0\\\":{\\\"0\\\":8,\\\"1\\\":8}}")));
    kubelet_add_pod(f->kubelet, "default", "r", one);
    (void)str_format(ids.items[0], KUBELET_ID, "GPU-a-_-9");
    ids.len = 1;
    kubelet_hold(f->kubelet, "default", "r", "c0", MEM, &ids);
    expect_int("both have, but one is there whom nobody knows", 0,
               service_reconcile(f->service, 1000, &err));
    expect_int("its annotation may speak of another card: nobody is narrowed", 3, f->records);
    podcache_put(&f->pods, cards_pod("r", "c0=gpu-mem:1", GRANT("{\\\"0\\\":{\\\"0\\\":1}}")));
    expect_int("it is known, and as promised", 0, service_reconcile(f->service, 1000, &err));
    expect_int("both are narrowed", 5, f->records);
    expect_true("each to one card", strstr(f->record, "8,") == NULL);
    expect_done();
}

static void an_init_container_is_verified_by_the_checkpoint(void **state)
{
    struct plugin_fixture *f = *state;
    struct kubelet_ids ids = {.len = 1};
    struct error err = ERROR_INIT;
    char path[256];
    plugin_node(f, MODE("cgpu"), "");
    expect_list(f, "list", MEM, 30, 30);
    plugin_arrive(f, "a", "init:i=gpu-mem:1 c0=cpu:1", GRANT("{\\\"1\\\":{\\\"1\\\":1}}"));
    struct pod *p = cards_pod("a", "init:i=gpu-mem:1 c0=cpu:1", "");
    (void)str_format(path, sizeof path, "%s/kubelet_internal_checkpoint",
                     kubelet_plugin_dir(f->kubelet));
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fprintf(
        file,
        "{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"%s\",\"ContainerName\":\"i\","
        "\"ResourceName\":\"aliyun.com/gpu-mem\",\"DeviceIDs\":{\"-1\":[\"GPU-b-_-4\"]}}]}}",
        p->uid);
    (void)fclose(file);
    (void)str_format(ids.items[0], KUBELET_ID, "GPU-b-_-4");
    expect_int("it may start", 0, kubelet_pre_start(f->kubelet, MEM, &ids, &err));
    expect_int("and its pod is told to be in use", 1, f->starting);
    /* After a restart of ours: which of its init containers have their ids is in the checkpoint,
     * too. */
    struct pod *all[] = {
        cards_pod("a", "init:i=gpu-mem:1 c0=cpu:1", GRANT("{\\\"1\\\":{\\\"1\\\":1}}")),
        cards_pod("b", "init:i=gpu-mem:1 c0=cpu:1", GRANT("{\\\"1\\\":{\\\"0\\\":1}}"))};
    podcache_reset(&f->pods, all, 2);
    expect_int("read", 0, service_reconcile(f->service, 1000, &err));
    kubelet_add_pod(f->kubelet, "default", "b", one);
    struct kubelet_answer env;
    expect_str("so an equal pod is not confused with it", "GPU-a",
               plugin_allocate(f, MEM, 1, &env, &err));
    (void)unlink(path);
    pod_free(p);
    expect_done();
}

static void new_tend(struct plugin_fixture *f, struct reconciler **t)
{
    struct error err = ERROR_INIT;
    if (reconciler_new(t, f->loop, f->service, &f->pods, f->state_dir, &err) < 0)
        fail_msg("%s", err.text);
}

static void save_now(struct plugin_fixture *f)
{
    struct reconciler *t;
    new_tend(f, &t);
    reconciler_free(t);
}

static void write_file(const struct plugin_fixture *f, const char *text)
{
    char path[160];
    (void)str_format(path, sizeof path, "%s/" RECONCILER_FILE, f->state_dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    (void)fputs(text, file);
    (void)fclose(file);
}

static void pods_are_remembered(void **state)
{
    struct plugin_fixture *f = *state;
    struct kubelet_answer env;
    struct error err = ERROR_INIT;
    plugin_node(f, MODE("core_mem"), "");
    expect_list(f, "list", MEM, 30, 30);
    podcache_put(&f->pods, cards_pod("seen", "init:i=gpu-mem:1 side:s=gpu-mem:1 c0=gpu-mem:8",
                                     GRANT("{\\\"0\\\":{\\\"1\\\":8},\\\"2\\\":{\\\"1\\\":1}}")));
    podcache_put(&f->pods, cards_pod("other", "c0=cpu:1", ""));
    plugin_arrive(f, "foreign", "c0=gpu-mem:12", "");
    expect_int("a pod gets its claim here", 0,
               kubelet_admit(f->kubelet, "default", "foreign", "c0", MEM, 12, &env, &err));
    expect_str("on card 0", "GPU-a", kubelet_env(&env, "NVIDIA_VISIBLE_DEVICES"));
    save_now(f);
    plugin_stop(f);
    plugin_start(f);
    f->remote_error = ERROR_UNAVAILABLE;
    struct reconciler *t;
    new_tend(f, &t);
    plugin_node(f, MODE("core_mem"), "");
    expect_list(f, "list", MEM, 30, 30);
    AUTO_STRBUF text;
    strbuf_init(&text);
    service_print_pods(f->service, &text);
    expect_true("a pod that asks for nothing is none of ours",
                strstr(strbuf_str(&text), "\"other\"") == NULL);
    static const char *const two[] = {"s", "c0", NULL};
    kubelet_add_pod(f->kubelet, "default", "seen", two);
    expect_str("after a restart without the API server: its init container", "GPU-b",
               plugin_allocate(f, MEM, 1, &env, &err));
    kubelet_add_pod(f->kubelet, "default", "unseen", one);
    expect_true("no room is given away that was promised before",
                strstr(plugin_allocate(f, MEM, 7, &env, &err), "no card has 7 GiB free") != NULL);
    reconciler_free(t);
    expect_done();
}

static void a_bad_state_file_stops_nothing(void **state)
{
    struct plugin_fixture *f = *state;
    struct kubelet_answer env;
    struct error err = ERROR_INIT;
    static const char *const rows[] = {"", "{", "{\"v\":2,\"pods\":[]}", "{\"v\":1}",
                                       "{\"v\":1,\"pods\":[7,{\"metadata\":3}]}"};
    plugin_node(f, MODE("cgpu"), "");
    expect_list(f, "list", MEM, 30, 30);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct reconciler *t;
        char name[8] = {'p', (char)('0' + i), '\0'};
        write_file(f, rows[i]);
        new_tend(f, &t);
        plugin_arrive(f, name, "c0=gpu-mem:1", GRANT("{\\\"0\\\":{\\\"1\\\":1}}"));
        expect_int(rows[i], 0,
                   kubelet_admit(f->kubelet, "default", name, "c0", MEM, 1, &env, &err));
        reconciler_free(t);
    }
    AUTO_STRBUF path;
    strbuf_init(&path);
    strbuf_addf(&path, "%s/" RECONCILER_FILE ".new", f->state_dir);
    assert_int_equal(0, mkdir(strbuf_str(&path), 0700)); /* nothing can be written there */
    plugin_arrive(f, "last", "c0=gpu-mem:1", GRANT("{\\\"0\\\":{\\\"1\\\":1}}"));
    save_now(f);
    expect_int("nor does one that cannot be written", 0,
               kubelet_admit(f->kubelet, "default", "last", "c0", MEM, 1, &env, &err));
    assert_int_equal(0, rmdir(strbuf_str(&path)));
    expect_done();
}

static void every_change_is_told(void **state)
{
    struct plugin_fixture *f = *state;
    struct kubelet_answer env;
    struct error err = ERROR_INIT;
    plugin_node(f, MODE("cgpu"), "");
    expect_list(f, "list", MEM, 30, 30);
    f->changes = 0;
    podcache_put(&f->pods, cards_pod("a", "c0=gpu-mem:1", ""));
    expect_int("a pod has come", 1, f->changes);
    podcache_remove(&f->pods, "default/a");
    expect_int("it has gone", 2, f->changes);
    podcache_reset(&f->pods, NULL, 0);
    expect_int("all were listed", 3, f->changes);
    expect_true("and are to be compared", service_owes(f->service));
    expect_int("compared", 0, service_reconcile(f->service, 1000, &err));
    expect_true("once", !service_owes(f->service));
    f->changes = 0;
    f->remote_error = ERROR_UNAVAILABLE;
    kubelet_add_pod(f->kubelet, "default", "stranger", one);
    expect_int("a stranger is served", 0,
               kubelet_admit(f->kubelet, "default", "stranger", "c0", MEM, 1, &env, &err));
    expect_int("which is told as well", 1, f->changes);
    expect_int("compared", 0, service_reconcile(f->service, 1000, &err));
    expect_true("and owed until the watch brings it", service_owes(f->service));
    expect_done();
}

/* Does the state file name the pod? */
static bool remembers(const struct plugin_fixture *f, const char *name)
{
    char path[160], key[64];
    AUTO_STRBUF text = {0};
    (void)str_format(path, sizeof path, "%s/" RECONCILER_FILE, f->state_dir);
    (void)str_format(key, sizeof key, "\"name\":\"%s\"", name);
    return file_read(path, RECONCILER_BYTES_MAX, &text, NULL) == 0 &&
           strstr(strbuf_str(&text), key) != NULL;
}

static void a_poke_is_enough(void **state)
{
    struct plugin_fixture *f = *state;
    struct reconciler *t;
    enum { LIMIT_MS = 20000 };
    plugin_node(f, MODE("cgpu"), "");
    expect_list(f, "list", MEM, 30, 30);
    new_tend(f, &t);
    for (int i = 0; i < 3; i++) {
        char name[8] = {'p', (char)('0' + i), '\0'};
        podcache_put(&f->pods, cards_pod(name, "c0=gpu-mem:1", ""));
        reconciler_poke(t);
        reconciler_poke(t); /* several become one */
        for (int64_t end_ms = clock_mono_ms() + LIMIT_MS;
             !remembers(f, name) && clock_mono_ms() < end_ms;)
            loop_once(f->loop, 100);
        expect_true(name, remembers(f, name));
    }
    reconciler_free(t);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_pod_without_a_grant_gets_one_here, plugin_setup,
                                        plugin_teardown),
        cmocka_unit_test_setup_teardown(both_resources_end_on_one_card, plugin_setup,
                                        plugin_teardown),
        cmocka_unit_test_setup_teardown(the_api_server_is_away, plugin_setup, plugin_teardown),
        cmocka_unit_test_setup_teardown(two_that_were_swapped_are_widened_before_either_is_narrowed,
                                        plugin_setup, plugin_teardown),
        cmocka_unit_test_setup_teardown(an_init_container_is_verified_by_the_checkpoint,
                                        plugin_setup, plugin_teardown),
        cmocka_unit_test_setup_teardown(pods_are_remembered, plugin_setup, plugin_teardown),
        cmocka_unit_test_setup_teardown(a_bad_state_file_stops_nothing, plugin_setup,
                                        plugin_teardown),
        cmocka_unit_test_setup_teardown(every_change_is_told, plugin_setup, plugin_teardown),
        cmocka_unit_test_setup_teardown(a_poke_is_enough, plugin_setup, plugin_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
