// SPDX-License-Identifier: Apache-2.0
/* What is done with an annotation, by what the pod holds and what the machine has. */
#include "device-plugin/cpu/pinner_plan.h"

#include "test/unit/lib/base/expect.h"

#include "test/unit/lib/kube/decode_kit.h"

/* Two NUMA nodes of four CPUs; CPU 7 is offline. */
static const char machine_text[] =
    "{\"v\":1,\"sockets\":[\"0-7\"],\"numa\":[\"0-3\",\"4-6\"],\"l3\":[\"0-7\"],\"cores\":\"smt1:8\",\"offline\":\"7\"}";

static struct arena arena;
static struct cpu_topology machine;
static struct pod *pod;

static int setup(void **state)
{
    (void)state;
    arena_init(&arena, 0);
    pod = decode_kit_pod(
        "{'metadata':{'name':'p','namespace':'ns'},'spec':{'containers':[{'name':'a'},{'name':'b'}]}}");
    return cpu_topology_decode(machine_text, sizeof machine_text - 1, &arena, &machine, NULL);
}

static int teardown(void **state)
{
    (void)state;
    pod_free(pod);
    arena_deinit(&arena);
    return 0;
}

/* "a0:1,2 b1:4": containers with their NUMA node and CPUs. */
static struct cpu_grant grant(const char *text)
{
    AUTO_STRBUF out;
    struct cpu_grant c = {0};
    struct error err = ERROR_INIT;
    char last = '\0';
    strbuf_init(&out);
    strbuf_adds(&out, "{");
    for (const char *at = text; *at != '\0';) {
        size_t n = strcspn(at, " ");
        if (at[0] == last)
            strbuf_addf(&out, ",\"%c\":{\"elems\":{", at[1]);
        else
            strbuf_addf(&out, "%s\"%c\":{\"%c\":{\"elems\":{", last ? "}," : "", at[0], at[1]);
        last = at[0];
        for (size_t i = 3; i < n; i += 2)
            strbuf_addf(&out, "%s\"%c\":{}", i > 3 ? "," : "", at[i]);
        strbuf_adds(&out, "}}");
        at += n + (at[n] == ' ');
    }
    strbuf_adds(&out, last ? "}}" : "}");
    if (text[0] != '\0' && cpu_grant_decode(strbuf_str(&out), pod, &arena, &c, &err) < 0)
        fail_msg("%s: %s", strbuf_str(&out), err.text);
    return c;
}

static void verdicts(void **state)
{
    (void)state;
#define BEYOND "it exceeds the CPUs that were first granted to the pod; somebody has edited it"
    static const struct {
        const char *row, *asked, *held;
        bool released;
        const char *taken;
        enum pinner_verdict verdict;
        const char *why;
    } rows[] = {
        {"asks for nothing", "", "", false, "", PINNER_NOTHING, ""},
        {"first claim", "a0:1,2", "", false, "0,3-7", PINNER_TAKE, ""},
        {"the same again", "a0:1,2", "a0:1,2", false, "0-7", PINNER_KEEP, ""},
        {"fewer: a loan is called back", "a0:1", "a0:1,2", false, "0-7", PINNER_TAKE, ""},
        {"other CPUs", "a0:1,3", "a0:1,2", false, "", PINNER_REFUSE, BEYOND},
        {"more CPUs", "a0:0,1,2", "a0:1,2", false, "", PINNER_REFUSE, BEYOND},
        {"another container", "b0:1", "a0:1,2", false, "", PINNER_REFUSE, BEYOND},
        {"one container less", "a0:1", "a0:1 b1:4", false, "", PINNER_TAKE, ""},
        {"the annotation is gone", "", "a0:1", false, "", PINNER_RELEASE, ""},
        {"and stays so", "", "a0:1", true, "", PINNER_NOTHING, ""},
        {"and is back", "a0:1", "a0:1", true, "", PINNER_TAKE, ""},
        {"back on CPUs that others have now", "a0:1", "a0:1", true, "1", PINNER_REFUSE,
         "CPUs 1 are bound to another pod"},
        {"back elsewhere", "a0:2", "a0:1", true, "", PINNER_REFUSE, BEYOND},
        {"a CPU that the node does not have", "a0:8", "", false, "", PINNER_REFUSE,
         "the node has no CPU 8"},
        {"a CPU of another NUMA node", "a0:1,4", "", false, "", PINNER_REFUSE,
         "CPU 4 is not on NUMA node 0"},
        {"a NUMA node that is not there", "a2:1", "", false, "", PINNER_REFUSE,
         "CPU 1 is not on NUMA node 2"},
        {"an offline CPU is the node's, and nobody knows where", "a1:6,7", "", false, "",
         PINNER_TAKE, ""},
        {"CPUs of another pod", "a0:1,2,3", "", false, "2-4", PINNER_REFUSE,
         "CPUs 2-3 are bound to another pod"},
        {"both containers count", "a0:1 b1:4", "", false, "4", PINNER_REFUSE,
         "CPUs 4 are bound to another pod"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cpu_grant asked = grant(rows[i].asked), held = grant(rows[i].held);
        struct cpuset taken;
        AUTO_STRBUF why;
        strbuf_init(&why);
        assert_int_equal(0, cpuset_parse(rows[i].taken, &taken, NULL));
        struct pinner_facts f = {.asked = &asked,
                                 .held = &held,
                                 .released = rows[i].released,
                                 .machine = &machine,
                                 .taken = &taken};
        expect_int(rows[i].row, rows[i].verdict, pinner_plan(&f, &why));
        expect_str(rows[i].row, rows[i].why, strbuf_str(&why));
        strbuf_reset(&why);
        f.is_static = true;
        expect_int("beside the static policy nothing is taken, or kept",
                   rows[i].asked[0] != '\0' ? PINNER_REFUSE : rows[i].verdict,
                   pinner_plan(&f, &why));
        f.unreadable = "no JSON";
        strbuf_reset(&why);
        expect_int("unreadable", PINNER_REFUSE, pinner_plan(&f, &why));
        expect_str("unreadable", "no JSON", strbuf_str(&why));
    }
    expect_done();
}

static void cpus_of_a_container(void **state)
{
    (void)state;
    static const struct {
        const char *row, *held;
        uint32_t container;
        const char *cpus;
        int numa;
    } rows[] = {
        {"the first", "a0:1,2 b1:4", 0, "1-2", -1},
        {"the second", "a0:1,2 b1:4", 1, "4", -1},
        {"which one is not known: all of the pod's", "a0:1,2 b1:4", PINNER_ANY, "1-2,4", -1},
        {"one that has none", "a0:1,2", 1, "", 0},
        {"an offline CPU is left out", "a1:6,7", 0, "6", 1},
        {"nothing but offline ones", "a1:7", 0, "", 1},
        {"all on one NUMA node", "a1:4 b1:5", 0, "4", 1},
        {"one container on two NUMA nodes", "a0:1 a1:4", 0, "1,4", -1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cpu_grant held = grant(rows[i].held);
        struct cpuset out;
        AUTO_STRBUF text;
        strbuf_init(&text);
        expect_int(rows[i].row, rows[i].cpus[0] != '\0',
                   pinner_plan_cpus(&held, rows[i].container, &machine, &out));
        cpuset_print(&out, &text);
        expect_str(rows[i].row, rows[i].cpus, strbuf_str(&text));
        expect_int(rows[i].row, rows[i].numa, pinner_plan_numa(&held));
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(verdicts, setup, teardown),
        cmocka_unit_test_setup_teardown(cpus_of_a_container, setup, teardown),
    };
    return cmocka_run_group_tests_name("pinner_plan", tests, NULL, NULL);
}
