// SPDX-License-Identifier: Apache-2.0
#include "scheduler/accounts/cpu_request.h"

#include "lib/model/names.h"
#include "test/unit/lib/base/expect.h"
#include "test/unit/scheduler/fixture.h"

#define PIN "cpuset-scheduler", "true"
#define MUST_PIN "cpuset-scheduler", "required"

static void what_is_asked_for(void **state)
{
    (void)state;
    const struct {
        const char *row;
        struct fixture_pod pod;
        bool asks;
        uint32_t cpus;
        enum cpu_request_numa numa;
        enum cpu_request_apart apart;
        bool burst, shared;
    } rows[] = {
        {"nothing", {.name = "p", .c = {{.cpu_milli = 4000}}}, .asks = false},
        {"false means nothing",
         {.name = "p", .annotations = PAIRS("cpuset-scheduler", "false"), .c = {{.cpu_milli = 1}}},
         .asks = false},
        {"limits.cpu",
         {.name = "p", .annotations = PAIRS(PIN), .c = {{.cpu_milli = 4000}}},
         .asks = true,
         .cpus = 4},
        {"the sum of the containers",
         {.name = "p",
          .annotations = PAIRS(PIN),
          .containers = 3,
          .c = {{.cpu_milli = 4000}, {.cpu_milli = 1000}, {.cpu_milli = 2000}}},
         .asks = true,
         .cpus = 7},
        {"an init container uses what the containers have later",
         {.name = "p",
          .annotations = PAIRS(PIN),
          .c = {{.cpu_milli = 4000}},
          .has_init = true,
          .init = {.cpu_milli = 3000}},
         .asks = true,
         .cpus = 4},
        {"and may be the largest",
         {.name = "p",
          .annotations = PAIRS(PIN),
          .c = {{.cpu_milli = 4000}},
          .has_init = true,
          .init = {.cpu_milli = 6000}},
         .asks = true,
         .cpus = 6},
        {"a sidecar runs beside them",
         {.name = "p",
          .annotations = PAIRS(PIN),
          .c = {{.cpu_milli = 4000}},
          .has_init = true,
          .init = {.cpu_milli = 3000, .sidecar = true}},
         .asks = true,
         .cpus = 7},
        {"an init container without a limit is not bound",
         {.name = "p", .annotations = PAIRS(PIN), .c = {{.cpu_milli = 4000}}, .has_init = true},
         .asks = true,
         .cpus = 4},
        {"nor is one with a part of a CPU",
         {.name = "p",
          .annotations = PAIRS(PIN),
          .c = {{.cpu_milli = 4000}},
          .has_init = true,
          .init = {.cpu_milli = 4500}},
         .asks = true,
         .cpus = 4},
        {"a bound pod that the node agent has answered for, without the request",
         {.name = "p",
          .node = "n",
          .annotations = PAIRS(NAME_ANN_CPUSET_APPLIED, "{}", "cpu-policy", "static-burst"),
          .c = {{.cpu_milli = 1000}}},
         .asks = true,
         .cpus = 1,
         .burst = true},
        {"the same before it is bound: somebody has made that up",
         {.name = "p",
          .annotations = PAIRS(NAME_ANN_CPUSET_APPLIED, "{}"),
          .c = {{.cpu_milli = 1000}}},
         .asks = false},
        {"a policy is only wished for with true",
         {.name = "p",
          .annotations = PAIRS(PIN, NAME_ANN_NUMA_SPEC,
                               "{\"numaTopologyPolicy\":\"SingleNUMANode\","
                               "\"singleNUMANodeExclusive\":\"Required\"}"),
          .c = {{.cpu_milli = 1000}}},
         .asks = true,
         .cpus = 1},
        {"and insisted on with required",
         {.name = "p",
          .annotations = PAIRS(MUST_PIN, NAME_ANN_NUMA_SPEC,
                               "{\"numaTopologyPolicy\":\"SingleNUMANode\","
                               "\"singleNUMANodeExclusive\":\"Required\"}"),
          .c = {{.cpu_milli = 1000}}},
         .asks = true,
         .cpus = 1,
         .numa = CPU_REQUEST_SINGLE,
         .apart = CPU_REQUEST_APART},
        {"Restricted",
         {.name = "p",
          .annotations = PAIRS(MUST_PIN, NAME_ANN_NUMA_SPEC,
                               "{\"numaTopologyPolicy\":\"Restricted\","
                               "\"singleNUMANodeExclusive\":\"Preferred\"}"),
          .c = {{.cpu_milli = 1000}}},
         .asks = true,
         .cpus = 1,
         .numa = CPU_REQUEST_RESTRICTED,
         .apart = CPU_REQUEST_APART_PREFERRED},
        {"static-burst, shared",
         {.name = "p",
          .annotations =
              PAIRS(PIN, "cpu-policy", "static-burst", "cosched.io/cpuset-shared", "true"),
          .c = {{.cpu_milli = 1000}}},
         .asks = true,
         .cpus = 1,
         .burst = true,
         .shared = true},
    };
    struct arena a;
    arena_init(&a, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pod *p = fixture_make_pod(&rows[i].pod);
        const struct cpu_request *r = cpu_request_of(p, &a);
        expect_int(rows[i].row, rows[i].asks, r != NULL);
        if (r != NULL) {
            expect_str(rows[i].row, NULL, r->illegal);
            expect_int(rows[i].row, rows[i].cpus, r->cpus);
            expect_int(rows[i].row, rows[i].numa, r->numa);
            expect_int(rows[i].row, rows[i].apart, r->apart);
            expect_int(rows[i].row, rows[i].burst, r->burst);
            expect_int(rows[i].row, rows[i].shared, r->shared);
        }
        pod_free(p);
    }
    arena_deinit(&a);
    expect_done();
}

static void what_nobody_can_serve(void **state)
{
    (void)state;
    const struct {
        const char *row;
        struct fixture_pod pod;
        const char *why;
    } rows[] = {
        {"no limit",
         {.name = "p", .annotations = PAIRS(PIN)},
         "container c0 has no limits.cpu, and cpuset-scheduler pins as many CPUs"},
        {"half a CPU",
         {.name = "p", .annotations = PAIRS(PIN), .c = {{.cpu_milli = 1500}}},
         "container c0: limits.cpu must be a whole number of CPUs for cpuset-scheduler"},
        {"half a CPU in a sidecar",
         {.name = "p",
          .annotations = PAIRS(PIN),
          .c = {{.cpu_milli = 1000}},
          .has_init = true,
          .init = {.cpu_milli = 500, .sidecar = true}},
         "container init: limits.cpu must be a whole number of CPUs for cpuset-scheduler"},
        {"another word",
         {.name = "p", .annotations = PAIRS("cpuset-scheduler", "yes"), .c = {{.cpu_milli = 1000}}},
         "annotation cpuset-scheduler: must be true, required or false: 'yes'"},
        {"another policy",
         {.name = "p", .annotations = PAIRS(PIN, "cpu-policy", "all"), .c = {{.cpu_milli = 1000}}},
         "annotation cpu-policy: only static-burst is known: 'all'"},
        {"another NUMA policy",
         {.name = "p",
          .annotations = PAIRS(MUST_PIN, NAME_ANN_NUMA_SPEC, "{\"numaTopologyPolicy\":\"One\"}"),
          .c = {{.cpu_milli = 1000}}},
         "annotation scheduling.alibabacloud.com/numa-topology-spec: numaTopologyPolicy must be "
         "SingleNUMANode, Restricted or BestEffort"},
        {"another word for apart",
         {.name = "p",
          .annotations =
              PAIRS(MUST_PIN, NAME_ANN_NUMA_SPEC, "{\"singleNUMANodeExclusive\":\"Yes\"}"),
          .c = {{.cpu_milli = 1000}}},
         "annotation scheduling.alibabacloud.com/numa-topology-spec: singleNUMANodeExclusive must "
         "be Required or Preferred"},
    };
    struct arena a;
    arena_init(&a, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct pod *p = fixture_make_pod(&rows[i].pod);
        const struct cpu_request *r = cpu_request_of(p, &a);
        expect_str(rows[i].row, rows[i].why, r != NULL ? r->illegal : "it asks for nothing");
        pod_free(p);
    }
    arena_deinit(&a);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_asked_for),
        cmocka_unit_test(what_nobody_can_serve),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
