// SPDX-License-Identifier: Apache-2.0
/* Whose process is it? */
#include "device-plugin/cpu/podcgroup.h"

#include <string.h>

#include "test/unit/lib/base/expect.h"

#define UID "1f2e3d4c-5b6a-7988-a7b6-c5d4e3f2a1b0"
#define OTHER "00000000-5b6a-7988-a7b6-c5d4e3f2a1b0"
#define UID_ "1f2e3d4c_5b6a_7988_a7b6_c5d4e3f2a1b0"
#define HASH "0123456789abcdef0123456789abcdef"
#define ID "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

static void paths(void **state)
{
    (void)state;
    static const struct {
        const char *row, *text, *uid, *container; /* uid NULL: nobody's */
    } rows[] = {
        {"v2, systemd, burstable",
         "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_
         ".slice/cri-containerd-" ID ".scope\n",
         UID, ID},
        {"v2, systemd, guaranteed, CRI-O",
         "0::/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" ID ".scope\n", UID, ID},
        {"a group that the container made below its own",
         "0::/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" ID ".scope/container/pod1", UID, ID},
        {"v2, cgroupfs", "0::/kubepods/besteffort/pod" UID "/" ID "\n", UID, ID},
        {"v1: the line that names it is not the first",
         "12:freezer:/\n11:cpuset:/kubepods/burstable/pod" UID "/" ID
         "\n4:cpu,cpuacct:/kubepods/burstable/pod" UID "/" ID "\n1:name=systemd:/system.slice\n",
         UID, ID},
        {"v1, systemd, docker",
         "3:memory:/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_
         ".slice/docker-" ID ".scope\n",
         UID, ID},
        {"a kubelet with a root of its own",
         "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod" UID_
         ".slice/cri-containerd-" ID ".scope",
         UID, ID},
        {"the same with cgroupfs", "0::/box/7/kubepods/pod" UID "/" ID, UID, ID},
        {"seen from inside a cgroup namespace", "0::/../../../kubepods/pod" UID "/" ID, UID, ID},
        {"from the group of a pod of the same class",
         "0::/../../kubepods-burstable-pod" UID_ ".slice/cri-containerd-" ID ".scope", UID, ID},
        {"the same with cgroupfs", "0::/../../pod" UID "/" ID, UID, ID},
        {"of another class, with cgroupfs", "0::/../../../besteffort/pod" UID "/" ID, UID, ID},
        {"a group inside a container that names another pod",
         "0::/../../../besteffort/pod" UID "/" ID "/kubepods/pod" OTHER "/" ID, UID, ID},
        {"a user's group called pod, from there", "0::/../../../../user.slice/pod" UID "/" ID, NULL,
         ""},
        {"a static pod", "0::/kubepods/burstable/pod" HASH "/" ID, HASH, ID},
        {"the sandbox's own group, without a container", "0::/kubepods/pod" UID, UID, ""},
        {"an id that is none", "0::/kubepods/pod" UID "/abc", UID, ""},
        {"an id without its '-'", "0::/kubepods/pod" UID "/x" ID, UID, ""},
        {"without the end of line", "0::/kubepods/pod" UID "/" ID, UID, ID},
        {"a process of the system", "0::/system.slice/nvidia-persistenced.service\n", NULL, ""},
        {"the root", "0::/\n", NULL, ""},
        {"a user's group called pod", "0::/user.slice/pod" UID "/" ID "\n", NULL, ""},
        {"a uid that is too short", "0::/kubepods/pod1f2e3d4c-5b6a/" ID, NULL, ""},
        {"a uid with its dashes elsewhere",
         "0::/kubepods/pod1f2e3d4c5-b6a-7988-a7b6-c5d4e3f2a1b0/" ID, NULL, ""},
        {"a uid with other letters", "0::/kubepods/podXf2e3d4c-5b6a-7988-a7b6-c5d4e3f2a1b0/" ID,
         NULL, ""},
        {"no path", "0:", NULL, ""},
        {"no colon", "kubepods", NULL, ""},
        {"nothing", "", NULL, ""},
        {"a slice that names no pod", "0::/kubepods.slice/.slice/x", NULL, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct podcgroup got;
        expect_int(rows[i].row, rows[i].uid != NULL,
                   podcgroup_parse(rows[i].text, strlen(rows[i].text), &got));
        expect_str(rows[i].row, rows[i].uid != NULL ? rows[i].uid : "", got.uid);
        expect_str(rows[i].row, rows[i].container, got.container);
    }
    expect_done();
}

/* Every prefix of a line is answered, and none is read beyond its end (ASan). */
static void cut_short(void **state)
{
    (void)state;
    static const char line[] = "0::/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" ID ".scope";
    for (size_t n = 0; n < sizeof line; n++) {
        struct podcgroup got;
        char *exact = malloc(n > 0 ? n : 1);
        assert_non_null(exact);
        memcpy(exact, line, n);
        bool pod = podcgroup_parse(exact, n, &got);
        free(exact);
        if (n < strlen("0::/kubepods.slice/kubepods-pod" UID_ ".slice"))
            expect_int("not yet a pod", false, pod);
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(paths), cmocka_unit_test(cut_short)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
