// SPDX-License-Identifier: Apache-2.0
#include "lib/model/cpu_grant.h"

#include "test/unit/lib/model/build.h"

static struct container containers[] = {{.name = "nginx"}, {.name = "log"}};
static struct container inits[] = {{.name = "first"}};
static const struct pod pod = {.containers = containers,
                               .containers_len = 2,
                               .init_containers = inits,
                               .init_containers_len = 1};

static void grants_are_read_and_written(void **state)
{
    (void)state;
    static const struct {
        const char *row, *text, *written;
    } rows[] = {
        {"absent", "", "{}"},
        {"empty", "{}", "{}"},
        {"one container on one NUMA node",
         "{'nginx':{'0':{'elems':{'0':{},'1':{},'2':{},'3':{}}}}}",
         "{'nginx':{'0':{'elems':{'0':{},'1':{},'2':{},'3':{}}}}}"},
        {"numbers and NUMA nodes in any order, written in theirs",
         "{'nginx':{'1':{'elems':{'1023':{},'64':{}}},'0':{'elems':{'10':{},'9':{}}}}}",
         "{'nginx':{'0':{'elems':{'9':{},'10':{}}},'1':{'elems':{'64':{},'1023':{}}}}}"},
        {"containers in the order of the pod, init containers behind",
         "{'first':{'0':{'elems':{'0':{}}}},'log':{'0':{'elems':{'1':{}}}},"
         "'nginx':{'0':{'elems':{'0':{}}}}}",
         "{'nginx':{'0':{'elems':{'0':{}}}},'log':{'0':{'elems':{'1':{}}}},"
         "'first':{'0':{'elems':{'0':{}}}}}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cpu_grant c;
        struct error err = ERROR_INIT;
        AUTO_STRBUF out = {0};
        if (cpu_grant_decode(quoted(rows[i].text), &pod, &arena, &c, &err) < 0)
            fail_msg("%s: %s", rows[i].row, err.text);
        cpu_grant_encode(&c, &pod, &out);
        expect_str(rows[i].row, quoted(rows[i].written), strbuf_str(&out));
    }
    expect_done();
}

static void bad_grants_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"[]", "must be an object of containers, not array"},
        {"{'x':{'0':{'elems':{'0':{}}}}}", "the pod has no container 'x'"},
        {"{'nginx':{}}", "container 'nginx': must be an object of NUMA nodes"},
        {"{'nginx':{'-1':{'elems':{'0':{}}}}}", "container 'nginx': not a NUMA node: '-1'"},
        {"{'nginx':{'1024':{'elems':{'0':{}}}}}", "container 'nginx': not a NUMA node: '1024'"},
        {"{'nginx':{'0':{'elems':{}}}}", "container 'nginx': NUMA node 0: elems: is empty"},
        {"{'nginx':{'0':{'elems':[0]}}}",
         "container 'nginx': NUMA node 0: must be {\"elems\":{...}}"},
        {"{'nginx':{'0':{'elems':{'0':{}},'more':1}}}",
         "container 'nginx': NUMA node 0: must be {\"elems\":{...}}"},
        {"{'nginx':{'0':{'elems':{'1024':{}}}}}",
         "container 'nginx': NUMA node 0: elems: not a CPU from 0 to 1023: '1024'"},
        {"{'nginx':{'0':{'elems':{'01':{}}}}}",
         "container 'nginx': NUMA node 0: elems: not a CPU from 0 to 1023: '01'"},
        {"{'nginx':{'0':{'elems':{'1':1}}}}",
         "container 'nginx': NUMA node 0: elems: CPU 1: must be {}"},
        {"{'nginx':{'0':{'elems':{'1':{},'1':{}}}}}",
         "container 'nginx': NUMA node 0: elems: CPU 1 is there twice"},
        {"{'nginx':{'0':{'elems':{'1':{}}},'1':{'elems':{'1':{}}}}}",
         "container 'nginx': NUMA node 1: elems: CPU 1 is there twice"},
        {"{'nginx':{'0':{'elems':{'1':{}}},'0':{'elems':{'2':{}}}}}",
         "container 'nginx': NUMA node 0 is there twice"},
        {"{'nginx':{'0':{'elems':{'1':{}}}},'nginx':{'0':{'elems':{'1':{}}}}}",
         "container 'nginx' is there twice"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cpu_grant c;
        struct error err = ERROR_INIT;
        int failed = cpu_grant_decode(quoted(rows[i].text), &pod, &arena, &c, &err);
        expect_int(rows[i].text, -1, failed);
        expect_int(rows[i].text, ERROR_INVALID, err.code);
        expect_int(rows[i].text, 0, (int64_t)c.len);
        expect_str(rows[i].text, rows[i].why, err.text);
    }
    expect_done();
}

static void sizes_are_bounded(void **state)
{
    (void)state;
    struct cpu_grant c;
    struct error err = ERROR_INIT;
    AUTO_STRBUF text = {0};
    for (int i = 0; i < CPU_GRANT_BYTES_MAX; i++)
        strbuf_addc(&text, ' ');
    strbuf_adds(&text, "{}");
    expect_int("too long", -1, cpu_grant_decode(strbuf_str(&text), &pod, &arena, &c, &err));
    expect_str("too long", "longer than 131072 bytes", err.text);
    strbuf_reset(&text);
    strbuf_adds(&text, "{\"nginx\":{\"0\":{\"elems\":{\"0\":{}}}");
    for (int i = 1; i <= CPU_GRANT_PARTS_MAX; i++)
        strbuf_addf(&text, ",\"%d\":{\"elems\":{\"%d\":{}}}", i, i);
    strbuf_adds(&text, "}}");
    expect_int("too many NUMA nodes", -1,
               cpu_grant_decode(strbuf_str(&text), &pod, &arena, &c, &err));
    expect_str("too many NUMA nodes", "container 'nginx': more than 64 NUMA nodes", err.text);
    expect_done();
}

static void grants_are_compared(void **state)
{
    (void)state;
    static const struct {
        const char *row, *part, *whole;
        bool within, equal;
    } rows[] = {
        {"the same", "{'log':{'0':{'elems':{'1':{}}}}}", "{'log':{'0':{'elems':{'1':{}}}}}", true,
         true},
        {"fewer CPUs", "{'log':{'0':{'elems':{'1':{}}}}}",
         "{'log':{'0':{'elems':{'1':{},'2':{}}}}}", true, false},
        {"another CPU", "{'log':{'0':{'elems':{'3':{}}}}}",
         "{'log':{'0':{'elems':{'1':{},'2':{}}}}}", false, false},
        {"another container", "{'nginx':{'0':{'elems':{'1':{}}}}}",
         "{'log':{'0':{'elems':{'1':{}}}}}", false, false},
        {"nothing", "{}", "{'log':{'0':{'elems':{'1':{}}}}}", true, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cpu_grant part, whole, copy;
        assert_int_equal(cpu_grant_decode(quoted(rows[i].part), &pod, &arena, &part, NULL), 0);
        assert_int_equal(cpu_grant_decode(quoted(rows[i].whole), &pod, &arena, &whole, NULL), 0);
        cpu_grant_copy(&copy, &part, &arena);
        expect_int(rows[i].row, rows[i].within, cpu_grant_is_within(&copy, &whole));
        expect_int(rows[i].row, rows[i].equal, cpu_grant_equal(&copy, &whole));
    }
    expect_done();
}

static void grants_are_united(void **state)
{
    (void)state;
    static const struct {
        const char *row, *one, *other, *both;
    } rows[] = {
        {"the same", "{'log':{'0':{'elems':{'1':{}}}}}", "{'log':{'0':{'elems':{'1':{}}}}}",
         "{'log':{'0':{'elems':{'1':{}}}}}"},
        {"another CPU", "{'log':{'0':{'elems':{'3':{}}}}}", "{'log':{'0':{'elems':{'1':{}}}}}",
         "{'log':{'0':{'elems':{'1':{},'3':{}}}}}"},
        {"another NUMA node, before and after", "{'log':{'1':{'elems':{'8':{}}}}}",
         "{'log':{'0':{'elems':{'1':{}}},'2':{'elems':{'16':{}}}}}",
         "{'log':{'0':{'elems':{'1':{}}},'1':{'elems':{'8':{}}},'2':{'elems':{'16':{}}}}}"},
        {"a CPU that they put on different NUMA nodes stays once",
         "{'log':{'1':{'elems':{'8':{}}}}}", "{'log':{'0':{'elems':{'8':{}}}}}",
         "{'log':{'1':{'elems':{'8':{}}}}}"},
        {"another container", "{'nginx':{'0':{'elems':{'1':{}}}}}",
         "{'log':{'0':{'elems':{'1':{}}}}}",
         "{'nginx':{'0':{'elems':{'1':{}}}},'log':{'0':{'elems':{'1':{}}}}}"},
        {"with nothing", "{'log':{'0':{'elems':{'1':{}}}}}", "{}",
         "{'log':{'0':{'elems':{'1':{}}}}}"},
        {"nothing with some", "{}", "{'log':{'0':{'elems':{'1':{}}}}}",
         "{'log':{'0':{'elems':{'1':{}}}}}"},
        {"nothing with nothing", "{}", "{}", "{}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cpu_grant one, other, both;
        assert_int_equal(cpu_grant_decode(quoted(rows[i].one), &pod, &arena, &one, NULL), 0);
        assert_int_equal(cpu_grant_decode(quoted(rows[i].other), &pod, &arena, &other, NULL), 0);
        assert_int_equal(cpu_grant_decode(quoted(rows[i].both), &pod, &arena, &both, NULL), 0);
        cpu_grant_union(&one, &other, &arena);
        expect_true(rows[i].row, cpu_grant_equal(&one, &both));
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(grants_are_read_and_written, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_grants_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(sizes_are_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(grants_are_compared, setup, teardown),
        cmocka_unit_test_setup_teardown(grants_are_united, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
