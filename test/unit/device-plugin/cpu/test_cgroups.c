// SPDX-License-Identifier: Apache-2.0
/* Names of groups, and what is written into them. */
#include "device-plugin/cpu/cgroups.h"

#include "test/unit/device-plugin/tree.h"

#define UID "8a2e3f10-0c4d-4b6e-9f00-1234567890ab"
#define UID_ "8a2e3f10_0c4d_4b6e_9f00_1234567890ab"
#define ID "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static struct tree tree;
static struct cgroups g;

static int setup(void **state)
{
    (void)state;
    tree_make(&tree);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tree_remove(&tree, "");
    return 0;
}

static void places_of_pods(void **state)
{
    (void)state;
    static const struct {
        unsigned place;
        const char *root, *class, *pod;
    } rows[] = {
        {0, "", "kubepods", "kubepods/pod" UID},
        {1, "/", "kubepods/burstable", "kubepods/burstable/pod" UID},
        {2, NULL, "kubepods/besteffort", "kubepods/besteffort/pod" UID},
        {3, "", "kubepods.slice", "kubepods.slice/kubepods-pod" UID_ ".slice"},
        {4, "", "kubepods.slice/kubepods-burstable.slice",
         "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice"},
        {5, "", "kubepods.slice/kubepods-besteffort.slice",
         "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_ ".slice"},
        {0, "/a-b/c/", "a-b/c/kubepods", "a-b/c/kubepods/pod" UID},
        {4, "/kubelet", "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice",
         "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod" UID_
         ".slice"},
        {3, "/a-b", "a_b.slice/a_b-kubepods.slice",
         "a_b.slice/a_b-kubepods.slice/a_b-kubepods-pod" UID_ ".slice"},
    };
    char out[CGROUPS_PATH_SIZE], deep[2 * CGROUPS_PATH_SIZE];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        expect_true(rows[i].class, cgroups_path_class(rows[i].place, rows[i].root, out));
        expect_str(rows[i].class, rows[i].class, out);
        expect_true(rows[i].pod, cgroups_path_pod(rows[i].place, rows[i].root, UID, out));
        expect_str(rows[i].pod, rows[i].pod, out);
    }
    memset(deep, 'x', sizeof deep);
    deep[sizeof deep - 1] = '\0';
    expect_true("too long a root", !cgroups_path_class(0, deep, out));
    expect_true("too long a uid", !cgroups_path_pod(3, "", deep, out));
    expect_true("too deep",
                !cgroups_path_class(
                    0, "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/a", out));
    expect_done();
}

static void names_of_containers(void **state)
{
    (void)state;
    static const struct {
        const char *name, *id;
    } rows[] = {
        {ID, ID},
        {"cri-containerd-" ID ".scope", ID},
        {"crio-" ID ".scope", ID},
        {"crio-" ID, ID},
        {"docker-" ID ".scope", ID},
        {"crio-conmon-" ID ".scope", NULL},
        {"crio-conmon-" ID, NULL},
        {"init.scope", NULL},
        {".scope", NULL},
        {"", NULL},
        {"..", NULL},
        {"cpuset.cpus", NULL},
        {"kubepods-pod" UID_ ".slice", NULL},
        {"0011223344AA", NULL},
        {"00112233445", NULL},
        {"001122334455", "001122334455"},
        {ID ID "00", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char id[CGROUPS_ID_SIZE] = "";
        expect_int(rows[i].name, rows[i].id != NULL, cgroups_path_container(rows[i].name, id));
        expect_str(rows[i].name, str_or_empty(rows[i].id), id);
    }
    expect_str("containerd", ID, cgroups_path_id("containerd://" ID));
    expect_str("CRI-O", ID, cgroups_path_id("cri-o://" ID));
    expect_str("none", "", cgroups_path_id(NULL));
    expect_str("no scheme", "", cgroups_path_id(ID));
    expect_done();
}

static void versions(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    expect_int("an empty directory", -1, cgroups_open(&g, tree.top, "", &err));
    expect_true("says what it looked for", strstr(err.text, "neither cgroup.controllers") != NULL);
    tree_dir(&tree, "cpuset");
    expect_int("v1", 0, cgroups_open(&g, tree.top, "", &err));
    expect_true("v1", !g.v2);
    tree_put(&tree, "", "cgroup.controllers", "cpuset cpu\n");
    expect_int("v2", 0, cgroups_open(&g, tree.top, "", &err));
    expect_true("v2", g.v2);
    expect_done();
}

static int pin(const char *path, const char *cpus, const char *mems, bool *wrote, struct error *err)
{
    struct cpuset c, m;
    assert_int_equal(0, cpuset_parse(cpus, &c, NULL));
    assert_int_equal(0, cpuset_parse(mems != NULL ? mems : "", &m, NULL));
    *err = (struct error)ERROR_INIT;
    return cgroups_pin(&g, path, &c, mems != NULL ? &m : NULL, wrote, err);
}

#define SLICE "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_ ".slice"
#define SCOPE SLICE "/cri-containerd-" ID ".scope"

static void version_2_with_systemd(void **state)
{
    (void)state;
    static const char *const above[] = {"", "kubepods.slice",
                                        "kubepods.slice/kubepods-burstable.slice", SLICE};
    struct error err = ERROR_INIT;
    char dir[CGROUPS_PATH_SIZE];
    bool wrote;
    tree_dir(&tree, SCOPE);
    tree_put(&tree, "", "cgroup.controllers", "cpuset cpu memory\n");
    for (size_t i = 0; i < 4; i++)
        tree_put(&tree, above[i], "cgroup.subtree_control",
                 i < 1 ? "cpuset cpu\n" : "cpu memory\n");
    tree_put(&tree, SCOPE, "cgroup.controllers", "cpu memory\n");
    assert_int_equal(0, cgroups_open(&g, tree.top, "", &err));
    expect_true("the pod is found", cgroups_find_pod(&g, UID, dir));
    expect_str("there", SLICE, dir);
    expect_true("another is not", !cgroups_find_pod(&g, "no-such-pod", dir));

    expect_int("the kernel has not made the files yet", -1, pin(SCOPE, "1-2", NULL, &wrote, &err));
    expect_int("so it is too early", ERROR_NOT_FOUND, err.code);
    expect_str("enabled already: not written", "cpuset cpu\n",
               tree_get(&tree, "", "cgroup.subtree_control"));
    for (size_t i = 1; i < 4; i++)
        expect_str(above[i], "+cpuset", tree_get(&tree, above[i], "cgroup.subtree_control"));

    tree_put(&tree, SCOPE, "cpuset.cpus", "\n");
    tree_put(&tree, SCOPE, "cpuset.mems", "\n");
    expect_int("pinned", 0, pin(SCOPE, "1-2,5", "1", &wrote, &err));
    expect_str("no complaint", "", err.text);
    expect_true("written", wrote);
    expect_str("byte for byte", "1-2,5", tree_get(&tree, SCOPE, "cpuset.cpus"));
    expect_str("memory", "1", tree_get(&tree, SCOPE, "cpuset.mems"));
    expect_int("again", 0, pin(SCOPE, "1-2,5", "1", &wrote, &err));
    expect_true("nothing to write", !wrote);

    tree_put(&tree, SCOPE, "cpuset.cpus.effective", "1-2\n");
    expect_int("the groups above take one away", -1, pin(SCOPE, "1-2,5", NULL, &wrote, &err));
    expect_str("and it is told", SCOPE ": the groups above leave it 1-2", err.text);
    tree_put(&tree, SCOPE, "cpuset.cpus.effective", "1-2,5\n");
    expect_int("the kernel agrees", 0, pin(SCOPE, "1-2,5", NULL, &wrote, &err));

    expect_int("released", 0, cgroups_release(&g, SCOPE, true, &wrote, &err));
    expect_str("an empty line: all that the groups above have", "\n",
               tree_get(&tree, SCOPE, "cpuset.cpus"));
    expect_str("memory too", "\n", tree_get(&tree, SCOPE, "cpuset.mems"));
    expect_int("again", 0, cgroups_release(&g, SCOPE, true, &wrote, &err));
    expect_true("nothing to write", !wrote);
    expect_int("a group that is gone", -1, pin(SLICE "/" ID, "1", NULL, &wrote, &err));
    expect_int("a group that is gone", ERROR_NOT_FOUND, err.code);
    expect_done();
}

#define POD "kubepods/besteffort/pod" UID
#define BOX POD "/" ID

static void version_1_with_cgroupfs(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    char dir[CGROUPS_PATH_SIZE];
    bool wrote;
    tree_group(&tree, "cpuset", "0-3\n");
    tree_group(&tree, "cpuset/cosched", "0-3\n");
    tree_group(&tree, "cpuset/cosched/kubepods", "0-3\n");
    tree_group(&tree, "cpuset/cosched/kubepods/besteffort", "0-3\n");
    tree_group(&tree, "cpuset/cosched/" POD, "0-3\n");
    tree_group(&tree, "cpuset/cosched/" BOX, "0-3\n");
    assert_int_equal(0, cgroups_open(&g, tree.top, "/cosched", &err));
    expect_true("the pod is found", cgroups_find_pod(&g, UID, dir));
    expect_str("below the kubelet's root", "cosched/" POD, dir);
    expect_int("pinned", 0, pin("cosched/" BOX, "2", NULL, &wrote, &err));
    expect_str("byte for byte", "2", tree_get(&tree, "cpuset/cosched/" BOX, "cpuset.cpus"));
    expect_str("memory is left alone", "0\n",
               tree_get(&tree, "cpuset/cosched/" BOX, "cpuset.mems"));
    expect_int("released", 0, cgroups_release(&g, "cosched/" BOX, false, &wrote, &err));
    expect_str("what the pod has", "0-3", tree_get(&tree, "cpuset/cosched/" BOX, "cpuset.cpus"));
    tree_put(&tree, "cpuset/cosched/" BOX, "cpuset.cpus", "many\n");
    expect_int("what is there is no list", -1, pin("cosched/" BOX, "2", NULL, &wrote, &err));
    expect_done();
}

/* What a container has made below its own: on v1 the kernel takes no CPU from a group while one
 * below it has it. */
static void groups_within_a_container(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    bool wrote;
    static const char *const below[] = {"cpuset/a", "cpuset/a/all", "cpuset/a/all/deep",
                                        "cpuset/a/some", "cpuset/a/none"};
    static const struct {
        const char *row, *cpus;
        const char *expected[5];
    } rows[] = {
        {"fewer", "1-2", {"1-2", "1-2", "1-2", "1", "\n"}},
        {"none of them", "3", {"3", "3", "3", "3", "\n"}},
        {"more: those that had all have all again", "2-3", {"2-3", "2-3", "2-3", "2-3", "\n"}},
        {"others", "0-1", {"0-1", "0-1", "0-1", "0-1", "\n"}},
        {"all that the pod has", NULL, {"0-3", "0-3", "0-3", "0-3", "\n"}},
    };
    tree_group(&tree, "cpuset", "0-3\n");
    tree_group(&tree, below[0], "0-3\n");
    tree_group(&tree, below[1], "0-3\n");
    tree_group(&tree, below[2], "0-3\n");
    tree_group(&tree, below[3], "0-1\n");
    tree_group(&tree, below[4], "\n"); /* nobody has written any yet */
    tree_dir(&tree, "cpuset/a/.hidden");
    assert_int_equal(0, cgroups_open(&g, tree.top, "", &err));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int result = rows[i].cpus != NULL ? pin("a", rows[i].cpus, NULL, &wrote, &err)
                                          : cgroups_release(&g, "a", false, &wrote, &err);
        expect_int(rows[i].row, 0, result);
        for (size_t k = 0; k < 5; k++)
            expect_str(rows[i].row, rows[i].expected[k], tree_get(&tree, below[k], "cpuset.cpus"));
    }
    expect_done();
}

static void usage(void **state)
{
    (void)state;
    struct cgroups_usage u;
    tree_dir(&tree, "cpuset/a");
    tree_dir(&tree, "cpu/a");
    tree_dir(&tree, "cpuacct/a");
    tree_put(&tree, "cpu/a", "cpu.stat", "nr_periods 100\nnr_throttled 7\nthrottled_time 12345\n");
    tree_put(&tree, "cpuacct/a", "cpuacct.usage", "5000999\n");
    assert_int_equal(0, cgroups_open(&g, tree.top, "", NULL));
    cgroups_usage(&g, "a", &u);
    expect_int("v1, throttled", 7, u.throttled);
    expect_int("v1, nanoseconds", 5000, u.used_us);
    cgroups_usage(&g, "b", &u);
    expect_int("gone", 0, u.throttled + u.used_us);
    tree_dir(&tree, "a");
    tree_put(&tree, "", "cgroup.controllers", "cpuset\n");
    tree_put(&tree, "a", "cpu.stat", "usage_usec 42\nuser_usec 1\nnr_throttled 9\n");
    assert_int_equal(0, cgroups_open(&g, tree.top, "", NULL));
    cgroups_usage(&g, "a", &u);
    expect_int("v2, throttled", 9, u.throttled);
    expect_int("v2, microseconds", 42, u.used_us);
    expect_done();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(places_of_pods),
        TEST(names_of_containers),
        TEST(versions),
        TEST(version_2_with_systemd),
        TEST(version_1_with_cgroupfs),
        TEST(groups_within_a_container),
        TEST(usage),
    };
    return cmocka_run_group_tests_name("cgroups", tests, NULL, NULL);
}
