// SPDX-License-Identifier: Apache-2.0
#include "lib/model/topology.h"

#include "test/unit/lib/model/build.h"

static void links_are_ordered_from_near_to_far(void **state)
{
    (void)state;
    static const char *const order[] = {"X",   "NV18", "NV2",  "NV1", "PIX",
                                        "PXB", "PHB",  "NODE", "SYS", "?"};
    static const char *const unknown[] = {"",    "NV",  "NV0", "NV-1", "NV1000",
                                          "NVx", "nv2", "pix", "PIX ", "NV99999999999999999999"};

    for (size_t i = 1; i < sizeof order / sizeof order[0]; i++)
        expect_true(order[i], topology_link_score(order[i - 1]) > topology_link_score(order[i]));
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
        expect_int(unknown[i], 0, topology_link_score(unknown[i]));
    expect_int("none", 0, topology_link_score(NULL));
    expect_int("two NVLinks are worth twice one", 2 * topology_link_score("NV1"),
               topology_link_score("NV2"));
    expect_int("the card itself", INT32_MAX, topology_link_score("X"));
    expect_done();
}

static const char example[] =
    "{'v':1,'sockets':['0-63,128-191','64-127,192-255'],'numa':['0-63,128-191','64-127,192-255',''],"
    "'l3':['0-7,128-135','8-15,136-143'],'cores':'smt2:128','offline':'3','reserved':'0-1'}";

static void a_layout_is_read_and_survives_the_way_back(void **state)
{
    (void)state;
    static const char *const rows[] = {
        example,
        "{'v':1,'sockets':[],'numa':[],'l3':[],'cores':'smt1:1','offline':'','reserved':''}",
        "{'v':1,'sockets':['0-1023'],'numa':['0-1023'],'l3':[],'cores':'smt8:128','offline':'','reserved':''}",
        "{'v':1,'sockets':['0-1023'],'numa':[],'l3':[],'cores':'smt1:1024','offline':'','reserved':'1023'}",
        "{'v':1,'sockets':['0-7'],'numa':[],'l3':[],'cores':'smt4:2','offline':'','reserved':''}",
        "{'v':1,'sockets':['0-7'],'numa':[],'l3':[],'cores':'near2:4','offline':'','reserved':''}",
        "{'v':1,'sockets':['0-4,7'],'numa':['0-7'],'l3':[],'cores':'0-1;2;3,7;4','offline':'5-6,9','reserved':'5,7'}",
        "{'v':1,'sockets':[],'numa':[],'l3':[],'cores':'1016-1023','offline':'','reserved':''}",
        "{'v':1,'sockets':['0'],'numa':['0'],'l3':[],'cores':'smt1:1','offline':'','reserved':'','closed':'static'}",
    };
    struct cpu_topology t;
    struct error err = ERROR_INIT;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *text = quoted(rows[i]);
        AUTO_STRBUF out;
        strbuf_init(&out);
        expect_int(text, 0, cpu_topology_decode(text, strlen(text), &arena, &t, &err));
        expect_str(text, "", err.text);
        cpu_topology_encode(&t, &out);
        expect_str("written again", text, strbuf_str(&out));
    }
    char *text = quoted(example);
    assert_int_equal(0, cpu_topology_decode(text, strlen(text), &arena, &t, &err));
    expect_int("sockets", 2, (int64_t)t.sockets_len);
    expect_int("CPUs of the first", 128, cpuset_count(&t.sockets[0]));
    expect_int("a NUMA node may have no CPU", 0, cpuset_count(&t.numa[2]));
    expect_int("l3", 2, (int64_t)t.l3_len);
    expect_int("threads", 2, t.threads);
    expect_int("cores", 128, t.cores);
    expect_true("offline", cpuset_has(&t.offline, 3));
    expect_int("reserved", 2, cpuset_count(&t.reserved));
    text =
        quoted("{'v':1,'sockets':['0'],'numa':['0'],'l3':['0'],'cores':'smt1:1','reserved':null}");
    assert_int_equal(0, cpu_topology_decode(text, strlen(text), &arena, &t, &err));
    expect_true("offline may be absent", cpuset_is_empty(&t.offline));
    expect_true("reserved may be null", cpuset_is_empty(&t.reserved));
    expect_done();
}

static void bad_layouts_are_refused_with_the_field(void **state)
{
    (void)state;
#define LAYOUT(sockets, cores, more) \
    "{'v':1,'sockets':" sockets ",'numa':[],'l3':[],'cores':" cores more "}"
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"7", "must be an object, not number"},
        {"{'v':0}", "v: only version 1 is known"},
        {"{'v':1}", "sockets: must be an array, not nothing"},
        {"{'v':1,'sockets':[],'numa':'0'}", "numa: must be an array, not string"},
        {"{'v':1,'sockets':[],'numa':[],'l3':{}}", "l3: must be an array, not object"},
        {LAYOUT("[7]", "'smt1:1'", ""), "sockets[0]: must be a string, not number"},
        {LAYOUT("['x']", "'smt1:1'", ""), "sockets[0]: not a CPU list: 'x'"},
        {LAYOUT("['0-3','3-4']", "'smt1:8'", ""), "sockets[1]: CPU 3 is there twice"},
        {LAYOUT("[]", "7", ""), "cores: must be like smt2:128: ''"},
        {LAYOUT("[]", "'x128'", ""), "cores: must be like smt2:128: 'x128'"},
        {LAYOUT("[]", "'2:128'", ""), "cores[0]: not a CPU list: '2:128'"},
        {LAYOUT("[]", "'smt:128'", ""), "cores: must be like smt2:128: 'smt:128'"},
        {LAYOUT("[]", "'smt2:'", ""), "cores: must be like smt2:128: 'smt2:'"},
        {LAYOUT("[]", "'smt2:1:1'", ""), "cores: must be like smt2:128: 'smt2:1:1'"},
        {LAYOUT("[]", "'sm:2'", ""), "cores: must be like smt2:128: 'sm:2'"},
        {LAYOUT("[]", "'smt3:8'", ""), "cores: threads must be 1, 2, 4 or 8: 'smt3:8'"},
        {LAYOUT("[]", "'smt0:8'", ""), "cores: threads must be 1, 2, 4 or 8: 'smt0:8'"},
        {LAYOUT("[]", "'smt2:0'", ""), "cores: must be 1 to 1024 CPUs: 'smt2:0'"},
        {LAYOUT("[]", "'smt2:513'", ""), "cores: must be 1 to 1024 CPUs: 'smt2:513'"},
        {LAYOUT("[]", "'smt2:-1'", ""), "cores: must be 1 to 1024 CPUs: 'smt2:-1'"},
        {LAYOUT("[]", "'near3:8'", ""), "cores: threads must be 1, 2, 4 or 8: 'near3:8'"},
        {LAYOUT("[]", "'near2'", ""), "cores: must be like smt2:128: 'near2'"},
        {LAYOUT("['0-8']", "'near2:4'", ""), "sockets: CPU 8, but cores says there are 8"},
        {LAYOUT("[]", "'0-1;;3'", ""), "cores[1]: must have 1 to 8 CPUs: ''"},
        {LAYOUT("[]", "'0-1;'", ""), "cores[1]: must have 1 to 8 CPUs: ''"},
        {LAYOUT("[]", "'0-8'", ""), "cores[0]: must have 1 to 8 CPUs: '0-8'"},
        {LAYOUT("[]", "'0;1;0'", ""), "cores[2]: CPU 0 is there twice"},
        {LAYOUT("[]", "'0;1024'", ""), "cores[1]: CPU number above 1023: '1024'"},
        {LAYOUT("['0-2']", "'0;1'", ""), "sockets: CPU 2 is in no core, and not offline"},
        {LAYOUT("[]", "'0;1'", ",'reserved':'3'"),
         "reserved: CPU 3 is in no core, and not offline"},
        {LAYOUT("['0-8']", "'smt2:4'", ""), "sockets: CPU 8, but cores says there are 8"},
        {LAYOUT("['0-7']", "'smt2:4'", ",'offline':'8'"),
         "offline: CPU 8, but cores says there are 8"},
        {LAYOUT("['0-7']", "'smt2:4'", ",'reserved':'0,9'"),
         "reserved: CPU 9, but cores says there are 8"},
        {LAYOUT("[]", "'smt1:1'", ",'offline':[]"), "offline: must be a string, not array"},
        {LAYOUT("[]", "'smt1:1'", ",'closed':''"), "closed: must be a text of 1 to 200 bytes"},
        {LAYOUT("[]", "'smt1:1'", ",'closed':true"), "closed: must be a text of 1 to 200 bytes"},
        {LAYOUT("[]", "'smt1:1'", ",'reserved':'2-1'"),
         "reserved: CPU range runs backwards: '2-1'"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *text = quoted(rows[i].text);
        struct cpu_topology t;
        struct error err = ERROR_INIT;
        expect_int(text, -1, cpu_topology_decode(text, strlen(text), &arena, &t, &err));
        expect_str(text, arena_printf(&arena, "cpu topology: %s", rows[i].message), err.text);
        expect_int("nothing is left in it", 0, (int64_t)t.sockets_len);
    }
    expect_done();
}

static void sizes_are_bounded(void **state)
{
    (void)state;
    static const struct {
        const char *row;
        unsigned groups;
        size_t padding;
        const char *message;
    } rows[] = {
        {"512 groups", 512, 0, ""},
        {"513 groups", 513, 0, "cpu topology: numa: more than 512 groups"},
        {"16 KiB", 1, TOPOLOGY_BYTES_MAX, ""},
        {"one byte more", 1, TOPOLOGY_BYTES_MAX + 1, "cpu topology: longer than 16384 bytes"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        AUTO_STRBUF text;
        struct cpu_topology t;
        struct error err = ERROR_INIT;
        strbuf_init(&text);
        strbuf_adds(&text, "{\"v\":1,\"sockets\":[],\"l3\":[],\"cores\":\"smt1:1024\",\"numa\":[");
        for (unsigned k = 0; k < rows[i].groups; k++)
            strbuf_addf(&text, "%s\"%u\"", k ? "," : "", k);
        strbuf_adds(&text, "]}");
        while (text.len < rows[i].padding)
            strbuf_addc(&text, ' ');
        (void)cpu_topology_decode(text.ptr, text.len, &arena, &t, &err);
        expect_str(rows[i].row, rows[i].message, err.text);
    }
    expect_done();
}

static void three_hundred_cpus_stay_small(void **state)
{
    (void)state;
    struct cpu_topology t = {
        .threads = 2, .cores = 192, .sockets_len = 2, .numa_len = 8, .l3_len = 48};
    AUTO_STRBUF out;

    t.sockets = arena_new(&arena, struct cpuset, t.sockets_len);
    t.numa = arena_new(&arena, struct cpuset, t.numa_len);
    t.l3 = arena_new(&arena, struct cpuset, t.l3_len);
    for (unsigned cpu = 0; cpu < 384; cpu++) {
        cpuset_add(&t.sockets[cpu % 192 / 96], cpu);
        cpuset_add(&t.numa[cpu % 192 / 24], cpu);
        cpuset_add(&t.l3[cpu % 192 / 4], cpu);
    }
    strbuf_init(&out);
    cpu_topology_encode(&t, &out);
    expect_true("384 CPUs in at most 4 KiB", out.len <= 4096);
    expect_int("and they can be read", 0, cpu_topology_decode(out.ptr, out.len, &arena, &t, NULL));
    expect_done();
}

static void every_numbering_says_which_cpus_a_core_has(void **state)
{
    (void)state;
    static const struct {
        const char *cores, *third;
        unsigned cpu;
        uint32_t core;
    } rows[] = {{"smt2:4", "2,6", 6, 2},
                {"near2:4", "4-5", 5, 2},
                {"smt1:4", "2", 3, 3},
                {"0,4;1;2-3,7", "2-3,7", 7, 2},
                {"smt2:4", "2,6", 8, TOPOLOGY_NO_CORE},
                {"near2:4", "4-5", 8, TOPOLOGY_NO_CORE},
                {"0,4;1;2-3,7", "2-3,7", 5, TOPOLOGY_NO_CORE},
                {"0,4;1;2-3,7", "2-3,7", 5000, TOPOLOGY_NO_CORE}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *text = quoted(arena_printf(&arena, LAYOUT("[]", "'%s'", ""), rows[i].cores));
        struct cpu_topology t;
        AUTO_STRBUF third;
        strbuf_init(&third);
        expect_int(text, 0, cpu_topology_decode(text, strlen(text), &arena, &t, NULL));
        cpuset_print(&cpu_topology_cores(&t, &arena)[2], &third);
        expect_str(rows[i].cores, rows[i].third, strbuf_str(&third));
        expect_int(rows[i].cores, rows[i].core, cpu_topology_core_of(&t, rows[i].cpu));
    }
    expect_done();
}

static void cores_are_written_in_the_shortest_form(void **state)
{
    (void)state;
    static const struct {
        const char *row, *known, *offline, *form; /* known: one letter for each CPU; '.': no core */
    } rows[] = {
        {"threads far from each other", "abcdabcd", "", "smt2:4"},
        {"threads side by side", "aabbccdd", "", "near2:4"},
        {"one thread each", "abcd", "", "smt1:4"},
        {"one CPU", "a", "", "smt1:1"},
        {"both forms fit: the usual one", "aa", "", "smt2:1"},
        {"four threads side by side", "aaaabbbb", "", "near4:2"},
        {"the numbers of cores mean nothing", "zyxwzyxw", "", "smt2:4"},
        {"an offline thread, and the rest says how it would be", "abc.abcd", "3", "smt2:4"},
        {"an offline core side by side", "aa..ccdd", "2-3", "near2:4"},
        {"threads are off: those offline are cores for all we know", "abcd....", "4-7", "smt1:8"},
        {"a hole that is not even offline", "aab.b", "", "0-1;2,4"},
        {"large and small cores", "aabbcdef", "", "0-1;2-3;4;5;6;7"},
        {"three threads", "aaabbb", "", "0-2;3-5"},
        {"one pair near, one far", "aabcbc", "", "0-1;2,4;3,5"},
        {"an offline CPU beyond all others", "aabb", "9", "0-1;2-3"},
        {"no CPU", "....", "", NULL},
        {"nine threads", "aaaaaaaaa", "", NULL},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cpu_topology t = {0};
        uint16_t core_of[CPUSET_MAX];
        AUTO_STRBUF out;
        strbuf_init(&out);
        for (size_t k = 0; k < CPUSET_MAX; k++)
            core_of[k] = TOPOLOGY_NO_CORE;
        for (size_t k = 0; rows[i].known[k]; k++)
            if (rows[i].known[k] != '.')
                core_of[k] = (uint16_t)(rows[i].known[k] - 'a');
        assert_int_equal(0, cpuset_parse(rows[i].offline, &t.offline, NULL));
        bool done = cpu_topology_number(&t, core_of, &arena);
        expect_int(rows[i].row, rows[i].form != NULL, done);
        if (!done)
            continue;
        cpu_topology_encode(&t, &out);
        expect_str(rows[i].row,
                   arena_printf(&arena,
                                "{\"v\":1,\"sockets\":[],\"numa\":[],\"l3\":[],\"cores\":\"%s\","
                                "\"offline\":\"%s\",\"reserved\":\"\"}",
                                rows[i].form, rows[i].offline),
                   strbuf_str(&out));
        expect_int("and can be read", 0, cpu_topology_decode(out.ptr, out.len, &arena, &t, NULL));
    }
    expect_done();
}

static void a_list_of_cores_stays_small(void **state)
{
    (void)state;
    struct cpu_topology t = {0};
    uint16_t core_of[CPUSET_MAX];
    AUTO_STRBUF out;

    for (unsigned cpu = 0; cpu < CPUSET_MAX; cpu++)
        core_of[cpu] = cpu < 385 && cpu != 7 ? (uint16_t)(cpu % 192) : TOPOLOGY_NO_CORE;
    expect_true("numbered", cpu_topology_number(&t, core_of, &arena));
    expect_int("no counted form", TOPOLOGY_LISTED, t.numbering);
    expect_int("a core of three threads", 3, t.threads);
    strbuf_init(&out);
    cpu_topology_encode(&t, &out);
    expect_true("192 cores in at most 2 KiB", out.len <= 2048);
    expect_done();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(links_are_ordered_from_near_to_far),
        TEST(a_layout_is_read_and_survives_the_way_back),
        TEST(bad_layouts_are_refused_with_the_field),
        TEST(sizes_are_bounded),
        TEST(three_hundred_cpus_stay_small),
        TEST(every_numbering_says_which_cpus_a_core_has),
        TEST(cores_are_written_in_the_shortest_form),
        TEST(a_list_of_cores_stays_small),
    };
    return cmocka_run_group_tests_name("topology", tests, NULL, NULL);
}
