// SPDX-License-Identifier: Apache-2.0
/* The folder with a container's limits, from its admission to its end: who must say that the
 * container has gone before the folder goes. */
#include "device-plugin/kubelet/sweeper.h"

#include "test/unit/device-plugin/library_kit.h"

#define UID "0a0a0a0a-0000-4000-8000-00000000000a"
#define GROUP PODS "/kubepods-pod0a0a0a0a_0000_4000_8000_00000000000a.slice"
#define ENTRY(uid, ids)                                 \
    "{\"PodUID\":\"" uid "\",\"ContainerName\":\"c0\"," \
    "\"ResourceName\":\"" MEM "\",\"DeviceIDs\":{\"-1\":[" ids "]}}"
#define OF_IT(i) "\"GPU-00000000-0000-4000-8000-000000000001-_-" #i "\""
#define ITS ENTRY(UID, OF_IT(0) "," OF_IT(1) "," OF_IT(2))
#define ANOTHERS ENTRY("another", "\"GPU-0-_-0\"")

static struct pod *pod_a(void)
{
    struct pod *p = cards_pod("a", "c0=gpu-mem:3", GRANT("{\\\"0\\\":{\\\"1\\\":3}}"));
    p->uid = UID;
    return p;
}

/* The watch brings the pod in a form that cannot be decoded, alone in a list. */
static void relist_unreadable(struct library_fixture *f)
{
    struct pod *p = pod_a();
    p->unreadable = "of no form that is known";
    podcache_reset(&f->plugin->pods, &p, 1);
    expect_true("what nobody has read is not cached",
                podcache_find(&f->plugin->pods, "default/a") == NULL);
}

/* The kubelet gives the container of pod a its ids, and has this checkpoint. */
static void admit(struct library_fixture *f, const char *checkpoint, struct kubelet_ids *ids)
{
    struct plugin_fixture *p = f->plugin;
    struct kubelet_answer env;
    struct error err = ERROR_INIT;
    library_begin(f, MODE("cgpu"));
    podcache_put(&p->pods, pod_a());
    kubelet_add_pod(p->kubelet, "default", "a", (const char *const[]){"c0", NULL});
    library_checkpoint(f, checkpoint);
    expect_int("admitted", 0,
               kubelet_give(p->kubelet, "default", "a", "c0", MEM, 3, ids, &env, &err));
}

static void a_folder_goes_when_all_say_so(void **state)
{
    struct library_fixture f = {.plugin = *state};
    struct plugin_fixture *p = f.plugin;
    struct kubelet_ids ids;
    struct error err = ERROR_INIT;
    char name[64];
    admit(&f, ITS, &ids);
    expect_int("started", 0, kubelet_pre_start(p->kubelet, MEM, &ids, &err));
    expect_str("no error", "", err.text);
    tree_dir(&f.cgroups, GROUP);
    expect_int("it has a folder", 1, library_folders(&f, name));

    /* A restart, after which no version of the pod can be decoded. */
    sweeper_free(f.sweeper);
    plugin_stop(p);
    plugin_start(p);
    library_sweeper(&f);
    relist_unreadable(&f);
    expect_int("an unreadable pod keeps its folder", 0, (int64_t)sweeper_run(f.sweeper, 0));

    /* Each source alone. */
    podcache_reset(&p->pods, NULL, 0);
    expect_int("deleted, but the kubelet and the cgroup have it", 0,
               (int64_t)sweeper_run(f.sweeper, 0));
    kubelet_remove_pod(p->kubelet, "default", "a");
    library_checkpoint(&f, ANOTHERS);
    expect_int("its cgroup is there", 0, (int64_t)sweeper_run(f.sweeper, 0));
    tree_remove(&f.cgroups, GROUP);
    library_checkpoint(&f, ITS);
    expect_int("the checkpoint has it", 0, (int64_t)sweeper_run(f.sweeper, 0));
    library_checkpoint(&f, ANOTHERS);
    kubelet_add_pod(p->kubelet, "default", "a", (const char *const[]){"c0", NULL});
    kubelet_hold(p->kubelet, "default", "a", "c0", MEM, &ids);
    expect_int("the kubelet lists its ids", 0, (int64_t)sweeper_run(f.sweeper, 0));
    kubelet_remove_pod(p->kubelet, "default", "a");
    podcache_put(&p->pods, pod_a());
    expect_int("the API server has it", 0, (int64_t)sweeper_run(f.sweeper, 0));
    podcache_reset(&p->pods, NULL, 0);

    /* One that cannot be asked. */
    library_checkpoint(&f, NULL);
    expect_int("no checkpoint", 0, (int64_t)sweeper_run(f.sweeper, 0));
    library_checkpoint(&f, "not JSON");
    expect_int("a checkpoint that cannot be read", 0, (int64_t)sweeper_run(f.sweeper, 0));
    library_checkpoint(&f, ANOTHERS);
    tree_remove(&f.cgroups, PODS);
    expect_int("not the kubelet's cgroups", 0, (int64_t)sweeper_run(f.sweeper, 0));
    tree_dir(&f.cgroups, PODS);
    kubelet_stop(p->kubelet);
    expect_int("no kubelet", 0, (int64_t)sweeper_run(f.sweeper, 0));
    kubelet_start(p->kubelet);
    library_checkpoint(&f, ANOTHERS);

    expect_int("all were kept so far", 1, library_folders(&f, name));
    expect_int("young ones are kept", 0, (int64_t)sweeper_run(f.sweeper, 60 * 1000));
    expect_int("all say that it has gone", 1, (int64_t)sweeper_run(f.sweeper, 0));
    expect_int("so has its folder", 0, library_folders(&f, name));
    library_end(&f);
}

/* An image that nobody can pull: the folder has no owner, and its ids tell that nobody has it. */
static void a_folder_of_a_container_that_never_started_goes(void **state)
{
    struct library_fixture f = {.plugin = *state};
    struct plugin_fixture *p = f.plugin;
    struct kubelet_ids ids;
    char name[64];
    admit(&f, ANOTHERS, &ids);
    expect_int("it has a folder", 1, library_folders(&f, name));
    expect_int("while the kubelet lists its ids it stays", 0, (int64_t)sweeper_run(f.sweeper, 0));
    kubelet_remove_pod(p->kubelet, "default", "a");
    podcache_reset(&p->pods, NULL, 0);
    expect_int("then it goes, and not in a month", 1, (int64_t)sweeper_run(f.sweeper, 0));
    expect_int("no folder is left", 0, library_folders(&f, name));
    library_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_folder_of_a_container_that_never_started_goes,
                                        plugin_setup, plugin_teardown),
        cmocka_unit_test_setup_teardown(a_folder_goes_when_all_say_so, plugin_setup,
                                        plugin_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
