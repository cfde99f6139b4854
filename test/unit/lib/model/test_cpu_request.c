// SPDX-License-Identifier: Apache-2.0
/* What only bound pods say; the rest is in requests.json. */
#include "lib/model/cpu_request.h"

#include "lib/model/names.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/lib/model/requests_kit.h"
#include "test/unit/scheduler/fixture.h"

static void pods_that_are_bound_to_cpus(void **state)
{
    (void)state;
    const struct {
        const char *row;
        struct fixture_pod pod;
        const char *cpu;
    } rows[] = {
        {"the node agent has answered for it, and the request was removed",
         {.name = "p",
          .node = "n",
          .annotations = PAIRS(NAME_ANN_CPUSET_APPLIED, "{}", "cpu-policy", "static-burst"),
          .c = {{.cpu_milli = 1000}}},
         "1 = 1 burst"},
        {"or was set to false",
         {.name = "p",
          .node = "n",
          .annotations = PAIRS(NAME_ANN_CPUSET_APPLIED, "{}", "cpuset-scheduler", "false"),
          .c = {{.cpu_milli = 1000}}},
         "1 = 1"},
        {"what it insisted on counts on",
         {.name = "p",
          .node = "n",
          .annotations = PAIRS(NAME_ANN_CPUSET_APPLIED, "{}", NAME_ANN_NUMA_SPEC,
                               "{\"singleNUMANodeExclusive\":\"Required\"}"),
          .c = {{.cpu_milli = 1000}}},
         "1 = 1 apart"},
        {"an answer before it is bound: somebody has made that up",
         {.name = "p",
          .annotations = PAIRS(NAME_ANN_CPUSET_APPLIED, "{}"),
          .c = {{.cpu_milli = 1000}}},
         ""},
        {"an answer that was taken back",
         {.name = "p",
          .node = "n",
          .annotations = PAIRS(NAME_ANN_CPUSET_APPLIED, ""),
          .c = {{.cpu_milli = 1000}}},
         ""},
        {"more than any node has is held far beyond it",
         {.name = "p",
          .annotations = PAIRS("cpuset-scheduler", "true"),
          .containers = 2,
          .c = {{.cpu_milli = INT64_MAX / 2000 * 1000}, {.cpu_milli = 1000}}},
         "1048576 1 = 1048576"},
    };
    struct arena a;
    arena_init(&a, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pod *p = fixture_make_pod(&rows[i].pod);
        const struct cpu_request *r = cpu_request_read(p, &a, NULL);
        expect_str(rows[i].row, rows[i].cpu, requests_kit_cpu(r, &a));
        pod_free(p);
    }
    arena_deinit(&a);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pods_that_are_bound_to_cpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
