// SPDX-License-Identifier: Apache-2.0
#include "device-plugin/kubelet/checkpoint.h"

#include "test/unit/lib/base/expect.h"

#include "lib/base/str.h"
#include "test/unit/device-plugin/cards.h"

static void the_kubelets_form(void **state)
{
    (void)state;
    static const char text[] =
        "{\"Data\":{\"PodDeviceEntries\":["
        "{\"PodUID\":\"u1\",\"ContainerName\":\"i\",\"ResourceName\":\"aliyun.com/gpu-mem\","
        "\"DeviceIDs\":{\"-1\":[\"GPU-a-_-0\",\"GPU-a-_-1\"]},\"AllocResp\":\"Cg==\"},"
        "{\"PodUID\":\"u1\",\"ContainerName\":\"c\",\"ResourceName\":\"aliyun.com/gpu\","
        "\"DeviceIDs\":{\"0\":[\"GPU-a\"],\"1\":[\"GPU-b\"]},\"AllocResp\":\"\"},"
        "{\"PodUID\":\"u2\",\"ContainerName\":\"c\",\"ResourceName\":\"example.com/fpga\","
        "\"DeviceIDs\":{\"-1\":[\"f0\"]}},"
        "{\"PodUID\":\"u3\",\"ContainerName\":\"c\",\"ResourceName\":\"aliyun.com/gpu-mem\","
        "\"DeviceIDs\":[\"an older form\"]},"
        "{\"PodUID\":7}],"
        "\"RegisteredDevices\":{\"aliyun.com/gpu-mem\":[\"GPU-a-_-0\"]}},\"Checksum\":1}";
    struct arena a;
    struct checkpoint c;
    struct error err = ERROR_INIT;
    arena_init(&a, 0);
    expect_int("read", 0, checkpoint_decode(text, sizeof text - 1, &a, &c, &err));
    expect_int("entries of ours, in a form that we know", 2, (int64_t)c.len);
    expect_int("of ours, in a form that we do not know", 1, (int64_t)c.unread);
    struct inventory_ids ids = cards_ids(&a, "GPU-a:1-1 GPU-a:0-0");
    const struct checkpoint_entry *e = checkpoint_find(&c, MODE_GPU_MEM, &ids);
    expect_str("by ids in any order", "u1", e != NULL ? e->uid : "(none)");
    expect_str("an init container as well", "i", e != NULL ? e->container : "(none)");
    ids = cards_ids(&a, "GPU-b GPU-a");
    expect_true("over NUMA nodes", checkpoint_find(&c, MODE_GPU, &ids) != NULL);
    ids = cards_ids(&a, "GPU-a");
    expect_true("some of them are not all", checkpoint_find(&c, MODE_GPU, &ids) == NULL);
    ids = (struct inventory_ids){0};
    expect_true("nobody holds nothing", checkpoint_find(&c, MODE_GPU, &ids) == NULL);
    static const char *const bad[] = {"", "{", "{\"Data\":", "nul"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        expect_int(bad[i], -1, checkpoint_decode(bad[i], strlen(bad[i]), &a, &c, &err));
    expect_int("a kubelet without devices", 0, checkpoint_decode("{}", 2, &a, &c, &err));
    expect_int("has no entries", 0, (int64_t)c.len);
    expect_int("no file is no entries", 0,
               checkpoint_read("/nonexistent/checkpoint", &a, &c, &err));
    arena_deinit(&a);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_kubelets_form)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
