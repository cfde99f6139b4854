// SPDX-License-Identifier: Apache-2.0
/* Whose ids are these? Kubelets before 1.34 list pods that they have turned away beside the one
 * that waits, so Allocate may take one for the other. What a container gets must be its own all the
 * same, or it does not start. */
#include "device-plugin/kubelet/service.h"

#include "test/unit/device-plugin/library_kit.h"

#define UID(x) "0a0a0a0a-0000-4000-8000-00000000000" x
#define PERCENT(x) ",\"gpushare.alibabacloud.com/core-percentage\":\"" x "\""
#define ON(card, gib, percent)                      \
    GRANT("{\\\"0\\\":{\\\"" card "\\\":" gib "}}") \
    PERCENT("{\\\"0\\\":{\\\"" card "\\\":" percent "}}")

#define CARDS(group, visible)                             \
    "\"topology.kubernetes.io/gpu-group\":\"" group "\"," \
    "\"topology.kubernetes.io/gpu-visible\":\"" visible "\""

static const char *const one[] = {"c0", NULL};

static void arrive(struct library_fixture *f, const char *name, const char *uid,
                   const char *containers, const char *annotations)
{
    struct pod *p = cards_pod(name, containers, annotations);
    p->uid = uid;
    podcache_put(&f->plugin->pods, p);
    kubelet_add_pod(f->plugin->kubelet, "default", name, one);
}

/* A file of the only folder. */
static const char *written(const struct library_fixture *f, const char *file)
{
    static char text[512];
    char name[64], path[PATH_MAX];
    AUTO_STRBUF got;
    strbuf_init(&got);
    expect_int("one folder", 1, library_folders(f, name));
    (void)str_format(path, sizeof path, "%s/%s/%s", f->shares, name, file);
    if (file_read(path, sizeof text - 1, &got, NULL) < 0)
        return "(none)";
    (void)str_format(text, sizeof text, "%s", strbuf_str(&got));
    return text;
}

/* The kubelet writes an entry for each resource of the pod's container. */
static void record(const struct library_fixture *f, const char *uid, const char *container,
                   const struct kubelet_ids *memory, const struct kubelet_ids *compute)
{
    AUTO_STRBUF text;
    strbuf_init(&text);
    for (int i = 0; i < 2; i++) {
        const struct kubelet_ids *ids = i == 0 ? memory : compute;
        strbuf_addf(&text,
                    "%s{\"PodUID\":\"%s\",\"ContainerName\":\"%s\",\"ResourceName\":\"%s\","
                    "\"DeviceIDs\":{\"-1\":[",
                    i > 0 ? "," : "", uid, container, i == 0 ? MEM : CORE);
        for (size_t k = 0; k < ids->len; k++)
            strbuf_addf(&text, "%s\"%s\"", k > 0 ? "," : "", ids->items[k]);
        strbuf_adds(&text, "]}}");
    }
    library_checkpoint(f, strbuf_str(&text));
}

/* The victim is admitted: 3 GiB and 20 percent. */
static void admit_victim(const struct library_fixture *f, struct kubelet_ids *memory,
                         struct kubelet_ids *compute, struct kubelet_answer *env)
{
    struct kubelet *k = f->plugin->kubelet;
    struct error err = ERROR_INIT;
    expect_list(f->plugin, "compute", CORE, 200, 200);
    expect_int("its memory", 0,
               kubelet_give(k, "default", "victim", "c0", MEM, 3, memory, env, &err));
    expect_str("no error", "", err.text);
    expect_int("its compute", 0,
               kubelet_give(k, "default", "victim", "c0", CORE, 20, compute, env, &err));
    expect_str("no error", "", err.text);
}

static void a_folder_is_its_holders(void **state)
{
    struct library_fixture f = {.plugin = *state};
    struct kubelet *k = f.plugin->kubelet;
    struct kubelet_ids memory, compute;
    struct kubelet_answer env;
    struct error err = ERROR_INIT;
    library_begin(&f, MODE("core_mem"));
    arrive(&f, "away", UID("a"), "c0=gpu-mem:3,gpu-core.percentage:20", ON("1", "3", "20"));
    arrive(&f, "victim", UID("b"), "c0=gpu-mem:3,gpu-core.percentage:20", ON("1", "3", "20"));
    admit_victim(&f, &memory, &compute, &env);
    expect_int("memory", 0, kubelet_pre_start(k, MEM, &memory, &err));
    expect_str("no error", "", err.text);
    expect_int("compute", 0, kubelet_pre_start(k, CORE, &compute, &err));
    expect_str("whose it is", "default victim c0 " UID("b"), written(&f, "owner"));
    expect_true("its part of the time", strstr(written(&f, "limits"), " percent=20 ") != NULL);

    /* The one that was turned away is deleted. */
    podcache_remove(&f.plugin->pods, "default/away");
    kubelet_remove_pod(k, "default", "away");
    podcache_remove(&f.plugin->pods, "default/victim");
    record(&f, UID("b"), "c0", &memory, &compute);
    expect_int("the victim's folder stays, whoever has seen it", 0,
               (int64_t)sweeper_run(f.sweeper, 0));
    kubelet_remove_pod(k, "default", "victim");
    expect_int("by the checkpoint alone", 0, (int64_t)sweeper_run(f.sweeper, 0));
    library_checkpoint(&f, "");
    tree_dir(&f.cgroups, PODS "/kubepods-pod0a0a0a0a_0000_4000_8000_00000000000b.slice");
    expect_int("by the cgroup alone", 0, (int64_t)sweeper_run(f.sweeper, 0));
    tree_remove(&f.cgroups, PODS "/kubepods-pod0a0a0a0a_0000_4000_8000_00000000000b.slice");
    kubelet_add_pod(k, "default", "renamed", one);
    kubelet_hold(k, "default", "renamed", "c0", MEM, &memory);
    expect_int("by the list alone", 0, (int64_t)sweeper_run(f.sweeper, 0));
    kubelet_remove_pod(k, "default", "renamed");
    expect_int("then it goes", 1, (int64_t)sweeper_run(f.sweeper, 0));
    library_end(&f);
}

static void anothers_card_is_not_started_on(void **state)
{
    struct library_fixture f = {.plugin = *state};
    struct kubelet *k = f.plugin->kubelet;
    struct kubelet_ids memory, compute;
    struct kubelet_answer env;
    struct error err = ERROR_INIT;
    library_begin(&f, MODE("core_mem"));
    arrive(&f, "away", UID("a"), "c0=gpu-mem:3,gpu-core.percentage:20", ON("0", "3", "20"));
    arrive(&f, "victim", UID("b"), "c0=gpu-mem:3,gpu-core.percentage:20", ON("1", "3", "20"));
    admit_victim(&f, &memory, &compute, &env);
    expect_str("the other's card", "0", kubelet_env(&env, "ALIYUN_COM_GPU_MEM_IDX"));
    int refused = f.plugin->refused;
    expect_int("it does not start", -1, kubelet_pre_start(k, MEM, &memory, &err));
    expect_true("what happened",
                strstr(err.text, "pod default/victim, container c0: its ids were chosen for pod "
                                 "default/away") != NULL);
    expect_true("on which card", strstr(err.text, "on card 0 than the scheduler chose") != NULL);
    expect_int("its pod is told", refused + 1, f.plugin->refused);
    expect_int("nothing has started", 0, f.plugin->starting);
    expect_true("the grant is to be corrected", service_owes(f.plugin->service));
    expect_int("compared", 0, service_reconcile(f.plugin->service, 1000, &err));
    expect_true("it says where the ids are",
                strstr(f.plugin->record, "{\\\"0\\\":{\\\"0\\\":3,\\\"1\\\":3}}") != NULL);
    error_clear(&err);
    expect_int("then the kubelet's next try succeeds", 0, kubelet_pre_start(k, MEM, &memory, &err));
    expect_str("no error", "", err.text);
    expect_int("once", 1, f.plugin->starting);
    library_end(&f);
}

static void anothers_amount_is_not_started_with(void **state)
{
    struct library_fixture f = {.plugin = *state};
    struct kubelet *k = f.plugin->kubelet;
    struct kubelet_ids memory, compute;
    struct kubelet_answer env;
    struct error err = ERROR_INIT;
    library_begin(&f, MODE("core_mem"));
    arrive(&f, "away", UID("a"), "c0=gpu-mem:3,gpu-core.percentage:100", ON("1", "3", "100"));
    arrive(&f, "victim", UID("b"), "c0=gpu-mem:3,gpu-core.percentage:20", ON("1", "3", "20"));
    admit_victim(&f, &memory, &compute, &env);
    for (int i = 0; i < 2; i++) {
        expect_int("it does not start", -1, kubelet_pre_start(k, MEM, &memory, &err));
        expect_true("what happened",
                    strstr(err.text, "its ids were chosen for pod default/away") != NULL);
        expect_true("what to do", strstr(err.text, "Delete the pod") != NULL);
        (void)service_reconcile(f.plugin->service, 1000, &err);
    }
    expect_int("nothing has started", 0, f.plugin->starting);
    /* The one that was turned away cannot hide it by going. */
    podcache_remove(&f.plugin->pods, "default/away");
    expect_int("nor later", -1, kubelet_pre_start(k, MEM, &memory, &err));
    library_end(&f);
}

/* Pods of a topology job see the cards of the job's other pods. */
static void anothers_cards_are_not_seen(void **state)
{
    struct plugin_fixture *f = *state;
    struct kubelet_ids ids;
    struct kubelet_answer env;
    struct error err = ERROR_INIT;
    plugin_node(f, MODE("topology"), "");
    expect_list(f, "list", GPU, 2, 2);
    plugin_arrive(f, "away", "c0=gpu:1", CARDS("0", "0,1"));
    plugin_arrive(f, "own", "c0=gpu:1", CARDS("0", "0"));
    expect_int("admitted", 0,
               kubelet_give(f->kubelet, "default", "own", "c0", GPU, 1, &ids, &env, &err));
    expect_str("with the job's cards", "GPU-a,GPU-b", kubelet_env(&env, "NVIDIA_VISIBLE_DEVICES"));
    expect_int("it does not start", -1, kubelet_pre_start(f->kubelet, GPU, &ids, &err));
    expect_true("what happened",
                strstr(err.text, "Allocate gave it card 0, card 1, but its own grant is card 0") !=
                    NULL);
    expect_done();
}

static void a_holder_that_is_not_known_does_not_start(void **state)
{
    struct library_fixture f = {.plugin = *state};
    struct kubelet *k = f.plugin->kubelet;
    struct kubelet_ids memory, compute, available;
    struct kubelet_answer env;
    struct error err = ERROR_INIT;
    library_begin(&f, MODE("core_mem"));
    arrive(&f, "away", UID("a"), "c0=gpu-mem:3,gpu-core.percentage:20", ON("1", "3", "20"));
    kubelet_add_pod(k, "default", "victim", one); /* the watch has not brought it */
    f.plugin->remote_error = ERROR_UNAVAILABLE;
    admit_victim(&f, &memory, &compute, &env);
    expect_int("nobody knows what it was promised", -1, kubelet_pre_start(k, MEM, &memory, &err));
    arrive(&f, "victim", UID("b"), "c0=gpu-mem:3,gpu-core.percentage:20", ON("1", "3", "20"));
    kubelet_hold(k, "default", "victim", "c0", MEM, &memory);
    kubelet_hold(k, "default", "victim", "c0", CORE, &compute);
    error_clear(&err);
    expect_int("the watch has brought it", 0, kubelet_pre_start(k, MEM, &memory, &err));
    expect_str("no error", "", err.text);

    kubelet_free_ids(k, MEM, &available);
    available.len = 3;
    expect_int("ids of nobody", -1, kubelet_pre_start(k, MEM, &available, &err));
    expect_true("in words",
                strstr(err.text, "no container on this node holds these 3 ids") != NULL);
    library_end(&f);
}

#define INIT_ALONE "init:i=gpu-mem:3,gpu-core.percentage:10 c0=cpu:1"
#define INIT_GRANT GRANT("{\\\"1\\\":{\\\"1\\\":3}}") PERCENT("{\\\"1\\\":{\\\"1\\\":10}}")

static void an_init_container_is_known_by_the_checkpoint(void **state)
{
    struct library_fixture f = {.plugin = *state};
    struct kubelet *k = f.plugin->kubelet;
    struct kubelet_ids available, memory, compute;
    struct kubelet_answer env;
    struct error err = ERROR_INIT;
    library_begin(&f, MODE("core_mem"));
    expect_list(f.plugin, "compute", CORE, 200, 200);
    arrive(&f, "p", UID("c"), INIT_ALONE, INIT_GRANT);
    kubelet_free_ids(k, MEM, &available);
    expect_int("preferred", 0, kubelet_prefer(k, MEM, &available, 3, &memory, &err));
    expect_int("memory", 0, kubelet_allocate(k, MEM, &memory, &env, &err));
    kubelet_free_ids(k, CORE, &available);
    expect_int("preferred", 0, kubelet_prefer(k, CORE, &available, 10, &compute, &err));
    expect_int("compute", 0, kubelet_allocate(k, CORE, &compute, &env, &err));
    record(&f, UID("c"), "i", &memory, &compute);
    expect_int("it starts", 0, kubelet_pre_start(k, MEM, &memory, &err));
    expect_str("no error", "", err.text);
    expect_str("whose it is", "default p i " UID("c"), written(&f, "owner"));
    expect_true("its part of the time", strstr(written(&f, "limits"), " percent=10 ") != NULL);

    /* No list shows what it held; the checkpoint does when "assigned" was not written. */
    int before = f.plugin->starting;
    struct pod *p = cards_pod("p", INIT_ALONE, INIT_GRANT);
    p->uid = UID("c");
    p->phase = POD_RUNNING;
    podcache_put(&f.plugin->pods, p);
    expect_int("compared", 0, service_reconcile(f.plugin->service, 1000, &err));
    expect_true("it is marked", f.plugin->starting > before);
    library_end(&f);
}

#define TWO_INITS                              \
    "init:i=gpu-mem:3,gpu-core.percentage:40 " \
    "init:j=gpu-mem:3,gpu-core.percentage:20 " \
    "c0=gpu-mem:3,gpu-core.percentage:40"

/* The kubelet gives what an ordinary init container held to the next one: the answer for the second
 * is the last about these ids when the first starts. */
static void init_containers_get_the_same_ids(void **state)
{
    struct library_fixture f = {.plugin = *state};
    struct kubelet *k = f.plugin->kubelet;
    struct kubelet_ids available, memory, compute, part;
    struct kubelet_answer env;
    struct error err = ERROR_INIT;
    library_begin(&f, MODE("core_mem"));
    expect_list(f.plugin, "compute", CORE, 200, 200);
    arrive(&f, "p", UID("c"), TWO_INITS, ON("1", "3", "40"));
    kubelet_free_ids(k, MEM, &available);
    expect_int("preferred", 0, kubelet_prefer(k, MEM, &available, 3, &memory, &err));
    expect_int("memory of i", 0, kubelet_allocate(k, MEM, &memory, &env, &err));
    kubelet_free_ids(k, CORE, &available);
    expect_int("preferred", 0, kubelet_prefer(k, CORE, &available, 40, &compute, &err));
    expect_int("compute of i", 0, kubelet_allocate(k, CORE, &compute, &env, &err));
    expect_int("memory of j", 0, kubelet_allocate(k, MEM, &memory, &env, &err));
    part = compute;
    part.len = 20;
    expect_int("compute of j", 0, kubelet_allocate(k, CORE, &part, &env, &err));
    record(&f, UID("c"), "i", &memory, &compute);
    expect_int("i starts", 0, kubelet_pre_start(k, MEM, &memory, &err));
    expect_str("no error", "", err.text);
    expect_str("whose it is", "default p i " UID("c"), written(&f, "owner"));
    expect_true("its part of the time", strstr(written(&f, "limits"), " percent=40 ") != NULL);
    library_end(&f);
}

int main(void)
{
#define CASE(f) cmocka_unit_test_setup_teardown(f, plugin_setup, plugin_teardown)
    const struct CMUnitTest tests[] = {
        CASE(a_folder_is_its_holders),
        CASE(anothers_card_is_not_started_on),
        CASE(anothers_amount_is_not_started_with),
        CASE(anothers_cards_are_not_seen),
        CASE(a_holder_that_is_not_known_does_not_start),
        CASE(an_init_container_is_known_by_the_checkpoint),
        CASE(init_containers_get_the_same_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
