// SPDX-License-Identifier: Apache-2.0
/* What the kubelet asks, and what containers get. */
#include "device-plugin/kubelet/service.h"

#include "test/unit/device-plugin/plugin.h"

static const char *const one[] = {"c0", NULL};

static void registers_and_serves(void **state)
{
    struct plugin_fixture *f = *state;
    struct kubelet_answer env;
    struct error err = ERROR_INIT;
    expect_int("nothing is registered before the mode is known", 0,
               kubelet_registrations(f->kubelet, MEM));
    plugin_node(f, MODE("cgpu"), "");
    expect_list(f, "two cards of 16,160 MiB are 30 GiB", MEM, 30, 30);
    expect_true("ready", f->ready);
    expect_int("only the mode's resource is registered", 0,
               kubelet_registrations(f->kubelet, NVIDIA));
    expect_int("gpu-count", 2, f->gpu_count);
    expect_true("the inventory is published", strstr(f->inventory, "\"mode\":\"cgpu\"") != NULL);

    plugin_arrive(f, "a", "c0=gpu-mem:3", GRANT("{\\\"0\\\":{\\\"1\\\":3}}"));
    expect_int("admitted", 0, kubelet_admit(f->kubelet, "default", "a", "c0", MEM, 3, &env, &err));
    expect_str("no error", "", err.text);
    expect_str("on the claimed card", "GPU-b", kubelet_env(&env, "NVIDIA_VISIBLE_DEVICES"));
    expect_str("index", "1", kubelet_env(&env, "ALIYUN_COM_GPU_MEM_IDX"));
    expect_str("of the pod", "3", kubelet_env(&env, "ALIYUN_COM_GPU_MEM_POD"));
    expect_str("of the container", "3", kubelet_env(&env, "ALIYUN_COM_GPU_MEM_CONTAINER"));
    expect_str("of the card", "15", kubelet_env(&env, "ALIYUN_COM_GPU_MEM_DEV"));
    expect_int("the start was told", 1, f->starting);
    expect_int("without asking the API server", 0, f->gets);

    expect_int("and nothing has to be recorded", 0, f->records);
    expect_done();
}

static void the_kubelet_is_faster_than_the_watch(void **state)
{
    struct plugin_fixture *f = *state;
    struct kubelet_answer env;
    struct error err = ERROR_INIT;
    plugin_node(f, MODE("share"), "");
    expect_list(f, "list", MEM, 30, 30);
    plugin_remote(f, "late", "c0=gpu-mem:2", GRANT("{\\\"0\\\":{\\\"0\\\":2}}"));
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
    expect_int("an API server that is away: what nobody knows has room", 0,
               kubelet_admit(f->kubelet, "default", "later", "c0", MEM, 2, &env, &err));
    plugin_arrive(f, "known", "c0=gpu-mem:1", GRANT("{\\\"0\\\":{\\\"1\\\":1}}"));
    error_clear(&err);
    expect_int("but not what the watch has brought", 0,
               kubelet_admit(f->kubelet, "default", "known", "c0", MEM, 1, &env, &err));
    expect_str("no error", "", err.text);
    expect_done();
}

static void a_namesake_from_before_is_not_served(void **state)
{
    struct plugin_fixture *f = *state;
    struct kubelet_answer env;
    struct error err = ERROR_INIT;
    static const struct {
        const char *row;
        enum pod_phase phase;
        bool terminating;
        bool has_id;
    } rows[] = {
        {"it runs", POD_RUNNING, false, false},
        {"it has ended", POD_SUCCEEDED, false, false},
        {"it is ending", POD_PENDING, true, false},
        {"it has begun", POD_PENDING, false, true},
    };
    plugin_node(f, MODE("cgpu"), "");
    expect_list(f, "list", MEM, 30, 30);
    plugin_remote(f, "web-0", "c0=gpu-mem:2", GRANT("{\\\"0\\\":{\\\"1\\\":2}}"));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct pod *before = cards_pod("web-0", "c0=gpu-mem:2", GRANT("{\\\"0\\\":{\\\"0\\\":2}}"));
        before->phase = rows[i].phase;
        before->terminating = rows[i].terminating;
        before->containers[0].has_id = rows[i].has_id;
        podcache_put(&f->pods, before);
        kubelet_add_pod(f->kubelet, "default", "web-0", one);
        expect_str(rows[i].row, "GPU-b", plugin_allocate(f, MEM, 2, &env, &err));
        kubelet_remove_pod(f->kubelet, "default", "web-0");
    }
    expect_done();
}

static void leave_the_mode(struct plugin_fixture *f)
{
    service_set_mode(f->service, GPU_MODE_CGPU, "this node is leaving GPU mode cgpu");
}

static void nothing_is_given_out_after_the_mode_was_left(void **state)
{
    struct plugin_fixture *f = *state;
    struct kubelet_answer env;
    struct kubelet_ids ids = {.len = 1};
    struct error err = ERROR_INIT;
    plugin_node(f, MODE("cgpu"), "");
    expect_list(f, "list", MEM, 30, 30);
    f->meanwhile = leave_the_mode;
    plugin_remote(f, "late", "c0=gpu-mem:1", GRANT("{\\\"0\\\":{\\\"0\\\":1}}"));
    kubelet_add_pod(f->kubelet, "default", "late", one);
    (void)str_format(ids.items[0], KUBELET_ID, "GPU-a-_-0");
    expect_int("the mode is left while the API server is asked", -1,
               kubelet_allocate(f->kubelet, MEM, &ids, &env, &err));
    expect_true("that is what counts", strstr(err.text, "leaving GPU mode cgpu") != NULL);
    expect_done();
}

static void a_burst_is_not_lost_to_the_rate_limit(void **state)
{
    struct plugin_fixture *f = *state;
    struct kubelet_answer env;
    struct error err = ERROR_INIT;
    plugin_node(f, MODE("cgpu"), "");
    expect_list(f, "list", MEM, 30, 30);
    plugin_arrive(f, "a", "c0=gpu-mem:3", GRANT("{\\\"0\\\":{\\\"1\\\":3}}"));
    kubelet_limit_lists(f->kubelet, 5);
    expect_int("the kubelet wants fewer calls, and gets them", 0,
               kubelet_admit(f->kubelet, "default", "a", "c0", MEM, 3, &env, &err));
    expect_str("no error", "", err.text);
    expect_int("the start was told", 1, f->starting);
    kubelet_limit_lists(f->kubelet, 1000000);
    plugin_arrive(f, "b", "c0=gpu-mem:3", GRANT("{\\\"0\\\":{\\\"1\\\":3}}"));
    expect_int("one that never answers", -1,
               kubelet_admit(f->kubelet, "default", "b", "c0", MEM, 3, &env, &err));
    /* On a busy machine the last call may be out of time before it is refused. */
    const char *called = "pod resources: /v1.PodResourcesLister/List: ";
    const char *at = strstr(err.text, called);
    expect_str("is not waited for forever", called,
               at != NULL ? arena_strndup(&f->arena, at, strlen(called)) : err.text);
    expect_done();
}

static void the_list_is_asked_once_for_a_container(void **state)
{
    struct plugin_fixture *f = *state;
    struct kubelet_answer env;
    struct kubelet_ids available, chosen, others;
    struct error err = ERROR_INIT;
    plugin_node(f, MODE("cgpu"), "");
    expect_list(f, "list", MEM, 30, 30);
    plugin_arrive(f, "a", "c0=gpu-mem:3", GRANT("{\\\"0\\\":{\\\"1\\\":3}}"));
    kubelet_free_ids(f->kubelet, MEM, &available);
    expect_int("preferred", 0, kubelet_prefer(f->kubelet, MEM, &available, 3, &chosen, &err));
    kubelet_limit_lists(f->kubelet, 1000000);
    expect_int("Allocate with those ids needs no list", 0,
               kubelet_allocate(f->kubelet, MEM, &chosen, &env, &err));
    expect_str("and is the claim's", "GPU-b", kubelet_env(&env, "NVIDIA_VISIBLE_DEVICES"));
    expect_int("once", -1, kubelet_allocate(f->kubelet, MEM, &chosen, &env, &err));
    kubelet_limit_lists(f->kubelet, 0);
    expect_int("preferred again", 0, kubelet_prefer(f->kubelet, MEM, &available, 3, &chosen, &err));
    others = chosen;
    (void)str_format(others.items[0], KUBELET_ID, "GPU-b-_-14");
    kubelet_limit_lists(f->kubelet, 1000000);
    expect_int("other ids need it", -1, kubelet_allocate(f->kubelet, MEM, &others, &env, &err));
    kubelet_limit_lists(f->kubelet, 0);
    error_clear(&err);
    expect_int("and with it they are served", 0,
               kubelet_allocate(f->kubelet, MEM, &others, &env, &err));
    expect_int("preferred for the last time", 0,
               kubelet_prefer(f->kubelet, MEM, &available, 3, &chosen, &err));
    service_set_mode(f->service, GPU_MODE_CGPU, "this node is leaving GPU mode cgpu");
    expect_int("nothing is given after the mode was left", -1,
               kubelet_allocate(f->kubelet, MEM, &chosen, &env, &err));
    expect_true("in its sentence", strstr(err.text, "leaving GPU mode cgpu") != NULL);
    expect_done();
}

static void init_containers(void **state)
{
    struct plugin_fixture *f = *state;
    struct kubelet_answer env;
    struct error err = ERROR_INIT;
    plugin_node(f, MODE("core_mem"), "");
    expect_list(f, "memory", MEM, 30, 30);
    expect_list(f, "compute", CORE, 200, 200);
    plugin_arrive(f, "a", "init:i=gpu-mem:2 c0=cpu:1", GRANT("{\\\"1\\\":{\\\"1\\\":2}}"));
    expect_str("only the init container asks", "GPU-b", plugin_allocate(f, MEM, 2, &env, &err));
    plugin_arrive(f, "b", "init:i=gpu-mem:2 c0=cpu:1", GRANT("{\\\"1\\\":{\\\"0\\\":2}}"));
    expect_str("an equal pod is not confused with it", "GPU-a",
               plugin_allocate(f, MEM, 2, &env, &err));
    expect_true("and nobody else waits", strstr(plugin_allocate(f, MEM, 2, &env, &err),
                                                "no pod on this node waits") != NULL);

    plugin_arrive(
        f, "c",
        "init:i=gpu-mem:3,gpu-core.percentage:10 init:k=gpu-mem:3,gpu-core.percentage:20 "
        "c0=gpu-mem:3,gpu-core.percentage:15",
        GRANT(
            "{\\\"0\\\":{\\\"1\\\":3}}") ",\"gpushare.alibabacloud.com/core-percentage\":"
                                         "\"{\\\"0\\\":{\\\"1\\\":15},\\\"2\\\":{\\\"1\\\":5}}\"");
    static const struct {
        const char *row, *resource;
        size_t count;
        const char *percent;
    } steps[] = {
        {"memory of the first", MEM, 3, "10"},
        {"compute of the first", CORE, 10, "10"},
        {"memory of the second, equal to the first", MEM, 3, "20"},
        {"compute of the second", CORE, 20, "20"},
    };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        expect_str(steps[i].row, "GPU-b",
                   plugin_allocate(f, steps[i].resource, steps[i].count, &env, &err));
        expect_str(steps[i].row, "3", kubelet_env(&env, "ALIYUN_COM_GPU_MEM_CONTAINER"));
        expect_str(steps[i].row, steps[i].percent,
                   kubelet_env(&env, "COSCHED_GPU_CORE_PERCENTAGE"));
    }
    expect_int("the container, equal to them", 0,
               kubelet_admit(f->kubelet, "default", "c", "c0", MEM, 3, &env, &err));
    expect_str("its own compute", "15", kubelet_env(&env, "COSCHED_GPU_CORE_PERCENTAGE"));

    kubelet_remove_pod(f->kubelet, "default", "c");
    podcache_remove(&f->pods, "default/c");
    plugin_node(f, MODE("topology"), "");
    expect_list(f, "no container holds anything that the kubelet lists", MEM, 0, 0);
    expect_true("but the mode is not left under the init containers",
                strstr(f->inventory, "\"switchingTo\":\"topology\"") != NULL);
    podcache_remove(&f->pods, "default/a");
    podcache_remove(&f->pods, "default/b");
    expect_list(f, "when they are gone it is", GPU, 2, 2);
    expect_done();
}

static bool holds;

static int hold(const struct isolation_config *c, const struct gpu_inventory *inv,
                const struct pod *p, const struct grant *grant, struct error *err)
{
    (void)c, (void)inv, (void)grant;
    return holds ? 0 : error_set(err, ERROR_DENIED, "group of %s: not allowed", p->name);
}

static void pods_that_are_not_held_are_told_once(void **state)
{
    static const struct isolation_engine engine = {.name = "kernel", .keep = hold};
    struct plugin_fixture *f = *state;
    plugin_node(f, MODE("cgpu"), "");
    expect_list(f, "list", MEM, 30, 30);
    plugin_arrive(f, "a", "c0=gpu-mem:2", GRANT("{\\\"0\\\":{\\\"1\\\":2}}"));
    plugin_arrive(f, "b", "c0=gpu-mem:2", GRANT("{\\\"0\\\":{\\\"0\\\":2}}"));
    service_set_answer(f->service, &(struct service_answer){.engine = &engine});
    holds = false;
    for (int i = 0; i < 3; i++)
        service_keep(f->service);
    expect_int("each of the two once", 2, f->unheld);
    holds = true;
    service_keep(f->service);
    holds = false;
    service_keep(f->service);
    expect_int("and again after it was well", 4, f->unheld);
    expect_done();
}

static void ids_on_another_card_are_refused(void **state)
{
    struct plugin_fixture *f = *state;
    struct kubelet_answer env;
    struct kubelet_ids ids = {.len = 2}, none = {.len = 0};
    struct error err = ERROR_INIT;
    plugin_node(f, MODE("cgpu"), "");
    expect_list(f, "list", MEM, 30, 30);
    plugin_arrive(f, "a", "c0=gpu-mem:2", GRANT("{\\\"0\\\":{\\\"1\\\":2}}"));
    (void)str_format(ids.items[0], KUBELET_ID, "GPU-a-_-0");
    (void)str_format(ids.items[1], KUBELET_ID, "GPU-a-_-1");
    expect_int("a kubelet that did not ask", -1,
               kubelet_allocate(f->kubelet, MEM, &ids, &env, &err));
    expect_true("is refused (I5)",
                strstr(err.text, "on card 0 than the scheduler chose there") != NULL);
    kubelet_hold(f->kubelet, "default", "a", "c0", MEM, &ids);
    expect_int("a kubelet that took them all the same is the truth", 0,
               kubelet_pre_start(f->kubelet, MEM, &ids, &err));
    expect_int("so the container starts", 1, f->starting);
    expect_int("and the claim is corrected", 1, f->records);
    expect_true("first it says both, the promise and where the ids are",
                strstr(f->record, "allocation\":\"{\\\"0\\\":{\\\"0\\\":2,\\\"1\\\":2}}\"") !=
                    NULL);
    expect_true("which we confirm",
                strstr(f->record, "gpu-confirmed\":\"{\\\"0\\\":{\\\"0\\\":2,\\\"1\\\":2}}\"") !=
                    NULL);
    podcache_put(&f->pods,
                 cards_pod("a", "c0=gpu-mem:2", GRANT("{\\\"0\\\":{\\\"0\\\":2,\\\"1\\\":2}}")));
    expect_int("when that has come back", 0, service_reconcile(f->service, 1000, &err));
    expect_true("the promise is taken back",
                strstr(f->record, "allocation\":\"{\\\"0\\\":{\\\"0\\\":2}}\"") != NULL);
    expect_true("which we confirm, too",
                strstr(f->record, "gpu-confirmed\":\"{\\\"0\\\":{\\\"0\\\":2}}\"") != NULL);
    kubelet_hold(f->kubelet, "default", "a", "c0", MEM, &none);
    error_clear(&err);
    expect_int("ids of nobody do not start", -1, kubelet_pre_start(f->kubelet, MEM, &ids, &err));
    expect_int("nobody waits for four", -1, kubelet_prefer(f->kubelet, MEM, &ids, 4, &none, &err));
    expect_done();
}

static void one_that_was_turned_away_is_still_listed(void **state)
{
    struct plugin_fixture *f = *state;
    struct kubelet_answer env;
    struct kubelet_ids none = {.len = 0};
    struct error err = ERROR_INIT;
    plugin_node(f, MODE("cgpu"), "");
    expect_list(f, "list", MEM, 30, 30);
    plugin_arrive(f, "a", "c0=gpu-mem:2", GRANT("{\\\"0\\\":{\\\"0\\\":2}}"));
    expect_int("admitted by us", 0,
               kubelet_admit(f->kubelet, "default", "a", "c0", MEM, 2, &env, &err));
    kubelet_hold(f->kubelet, "default", "a", "c0", MEM,
                 &none); /* and not by the kubelet: OutOfcpu */
    plugin_arrive(f, "b", "c0=gpu-mem:2", GRANT("{\\\"0\\\":{\\\"1\\\":2}}"));
    expect_str("an equal pod that comes after it", "GPU-b", plugin_allocate(f, MEM, 2, &env, &err));
    expect_str("with its own claim", "1", kubelet_env(&env, "ALIYUN_COM_GPU_MEM_IDX"));

    plugin_arrive(f, "c", "c0=gpu-mem:40", GRANT("{\\\"0\\\":{\\\"0\\\":40}}"));
    plugin_arrive(f, "d", "c0=gpu-mem:4", GRANT("{\\\"0\\\":{\\\"0\\\":4}}"));
    plugin_arrive(f, "e", "c0=gpu-mem:4", GRANT("{\\\"0\\\":{\\\"1\\\":4}}"));
    expect_str("two that wait, in the order of their arrival", "GPU-a",
               plugin_allocate(f, MEM, 4, &env, &err));
    expect_done();
}

static void one_that_runs_and_is_not_marked_is_caught_up_with(void **state)
{
    struct plugin_fixture *f = *state;
    struct kubelet_ids ids = {.len = 2};
    struct error err = ERROR_INIT;
    plugin_node(f, MODE("cgpu"), "");
    expect_list(f, "list", MEM, 30, 30);
    plugin_arrive(f, "a", "c0=gpu-mem:2", GRANT("{\\\"0\\\":{\\\"0\\\":2}}"));
    for (size_t k = 0; k < ids.len; k++)
        (void)str_format(ids.items[k], KUBELET_ID, "GPU-a-_-%zu", k);
    kubelet_hold(f->kubelet, "default", "a", "c0", MEM, &ids); /* no PreStartContainer */
    while (service_reconcile(f->service, 1000, &err) == 0)
        ;
    expect_int("it has not started", 0, f->starting);
    struct pod *p = cards_pod("a", "c0=gpu-mem:2", GRANT("{\\\"0\\\":{\\\"0\\\":2}}"));
    p->phase = POD_RUNNING;
    podcache_put(&f->pods, p);
    expect_int("it runs: compared", 0, service_reconcile(f->service, 1000, &err));
    expect_int("and marked", 1, f->starting);
    expect_int("nothing else is to be done", 1, service_reconcile(f->service, 1000, &err));
    expect_done();
}

#define PERCENT(x) "\"gpushare.alibabacloud.com/core-percentage\":\"" x "\""

/* Neither the webhook nor the scheduler has judged these: they opted out, or were bound by hand. */
static void what_the_contract_forbids_is_refused(void **state)
{
    struct plugin_fixture *f = *state;
    struct kubelet_answer env;
    struct kubelet_ids available, chosen, ids = {.len = 30};
    struct error err = ERROR_INIT;
    static const struct {
        const char *row, *containers, *annotations, *resource;
        size_t count;
        const char *why;
    } rows[] = {
        {"compute without memory", "c0=gpu-core.percentage:30", "", CORE, 30,
         "30 percent of a card without memory of it"},
        {"with a grant", "c0=gpu-core.percentage:30", PERCENT("{\\\"0\\\":{\\\"1\\\":30}}"), CORE,
         30, "30 percent of a card without memory of it"},
        {"in one of two containers", "c0=gpu-core.percentage:30 c1=gpu-mem:1",
         GRANT("{\\\"1\\\":{\\\"1\\\":1}}") "," PERCENT("{\\\"0\\\":{\\\"1\\\":30}}"), MEM, 1,
         "30 percent of a card without memory of it"},
        {"not a multiple of 5", "c0=gpu-mem:1,gpu-core.percentage:7",
         GRANT("{\\\"0\\\":{\\\"1\\\":1}}") "," PERCENT("{\\\"0\\\":{\\\"1\\\":7}}"), CORE, 7,
         "7 is not a multiple of 5; write 5 or 10"},
        {"two kinds of cards", "c0=gpu-mem:1 c1=gpu:1", GRANT("{\\\"0\\\":{\\\"1\\\":1}}"), MEM, 1,
         "aliyun.com/gpu]: does not go together with aliyun.com/gpu-mem in one pod"},
    };
    plugin_node(f, MODE("core_mem"), "");
    expect_list(f, "memory", MEM, 30, 30);
    expect_list(f, "compute", CORE, 200, 200);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int refused = f->refused;
        plugin_arrive(f, "a", rows[i].containers, rows[i].annotations);
        const char *said = plugin_allocate(f, rows[i].resource, rows[i].count, &env, &err);
        expect_true(rows[i].row, strstr(said, rows[i].why) != NULL);
        expect_int(rows[i].row, refused + 1, f->refused);
        kubelet_remove_pod(f->kubelet, "default", "a");
        podcache_remove(&f->pods, "default/a");
    }

    /* A pod that the API server cannot tell us about. Its memory may be asked for after its
     * compute, so it is its start that is refused. */
    f->remote_error = ERROR_UNAVAILABLE;
    kubelet_add_pod(f->kubelet, "default", "x", one);
    kubelet_free_ids(f->kubelet, CORE, &available);
    expect_int("7 percent", -1, kubelet_prefer(f->kubelet, CORE, &available, 7, &chosen, &err));
    expect_true("are refused", strstr(err.text, "7 is not a multiple of 5") != NULL);
    for (size_t k = 0; k < ids.len; k++)
        (void)str_format(ids.items[k], KUBELET_ID, "GPU-a-_-%zu", k);
    expect_int("30 percent", 0, kubelet_allocate(f->kubelet, CORE, &ids, &env, &err));
    kubelet_hold(f->kubelet, "default", "x", "c0", CORE, &ids);
    expect_int("without memory do not start", -1, kubelet_pre_start(f->kubelet, CORE, &ids, &err));
    expect_true("in words", strstr(err.text, "30 percent of a card without memory of it") != NULL);
    expect_int("nothing has started", 0, f->starting);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(registers_and_serves, plugin_setup, plugin_teardown),
        cmocka_unit_test_setup_teardown(the_kubelet_is_faster_than_the_watch, plugin_setup,
                                        plugin_teardown),
        cmocka_unit_test_setup_teardown(a_namesake_from_before_is_not_served, plugin_setup,
                                        plugin_teardown),
        cmocka_unit_test_setup_teardown(nothing_is_given_out_after_the_mode_was_left, plugin_setup,
                                        plugin_teardown),
        cmocka_unit_test_setup_teardown(a_burst_is_not_lost_to_the_rate_limit, plugin_setup,
                                        plugin_teardown),
        cmocka_unit_test_setup_teardown(the_list_is_asked_once_for_a_container, plugin_setup,
                                        plugin_teardown),
        cmocka_unit_test_setup_teardown(init_containers, plugin_setup, plugin_teardown),
        cmocka_unit_test_setup_teardown(one_that_was_turned_away_is_still_listed, plugin_setup,
                                        plugin_teardown),
        cmocka_unit_test_setup_teardown(one_that_runs_and_is_not_marked_is_caught_up_with,
                                        plugin_setup, plugin_teardown),
        cmocka_unit_test_setup_teardown(pods_that_are_not_held_are_told_once, plugin_setup,
                                        plugin_teardown),
        cmocka_unit_test_setup_teardown(what_the_contract_forbids_is_refused, plugin_setup,
                                        plugin_teardown),
        cmocka_unit_test_setup_teardown(ids_on_another_card_are_refused, plugin_setup,
                                        plugin_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
