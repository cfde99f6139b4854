// SPDX-License-Identifier: Apache-2.0
/* From hwloc's view of a machine to the layout that is published. */
#include "device-plugin/cpu/cpuinfo.h"

#include "test/unit/lib/base/expect.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/unit/lib/base/scratch.h"

static struct arena arena;

static int setup(void **state)
{
    (void)state;
    /* By these hwloc takes another machine for this one. */
    static const char *const others[] = {"HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_FSROOT",
                                         "HWLOC_THISSYSTEM", "HWLOC_COMPONENTS"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        (void)unsetenv(others[i]);
    arena_init(&arena, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_deinit(&arena);
    return 0;
}

/* "sockets | numa | l3 | cores | offline" */
static const char *told(const struct cpu_topology *t)
{
    const struct {
        const struct cpuset *sets;
        size_t n;
    } levels[] = {{t->sockets, t->sockets_len}, {t->numa, t->numa_len}, {t->l3, t->l3_len}};
    static struct strbuf b;
    AUTO_STRBUF text;
    AUTO_JSON *doc = NULL;
    strbuf_deinit(&b);
    strbuf_init(&b);
    strbuf_init(&text);
    for (size_t k = 0; k < 3; k++) {
        for (size_t i = 0; i < levels[k].n; i++) {
            strbuf_adds(&b, i > 0 ? " " : "");
            if (cpuset_is_empty(&levels[k].sets[i]))
                strbuf_addc(&b, '-');
            cpuset_print(&levels[k].sets[i], &b);
        }
        strbuf_adds(&b, " | ");
    }
    cpu_topology_encode(t, &text);
    assert_int_equal(0, json_parse(&doc, strbuf_str(&text), text.len, NULL));
    strbuf_addf(&b, "%s | %s", json_get_str(json_root(doc), "cores"),
                json_get_str(json_root(doc), "offline"));
    struct cpu_topology again;
    expect_int("what is published can be read", 0,
               cpu_topology_decode(strbuf_str(&text), text.len, &arena, &again, NULL));
    const char *kept = arena_strdup(&arena, strbuf_str(&b));
    strbuf_deinit(&b);
    strbuf_init(&b);
    return kept;
}

static void described_machines(void **state)
{
    (void)state;
    static const struct {
        const char *row, *source, *told;
    } rows[] = {
        {"two sockets of eight CCXs without threads", "synthetic:pack:2 [numa] l3:2 core:2 pu:1",
         "0-3 4-7 | 0-3 4-7 | 0-1 2-3 4-5 6-7 | smt1:8 | "},
        {"threads side by side, as in a virtual machine",
         "synthetic:pack:1 [numa] l3:1 core:4 pu:2", "0-7 | 0-7 | 0-7 | near2:4 | "},
        {"threads numbered round by round, as on bare metal",
         /* The numbers are listed: hwloc 2.9 reads uninitialized memory in indexes=core:pu. */
         "synthetic:pack:2 [numa] l3:1 core:2 pu:2(indexes=0,4,1,5,2,6,3,7)",
         "0-1,4-5 2-3,6-7 | 0-1,4-5 2-3,6-7 | 0-1,4-5 2-3,6-7 | smt2:4 | "},
        {"no L3 cache: a group for each NUMA node", "synthetic:pack:1 numa:2 core:2 pu:1",
         "0-3 | 0-1 2-3 | 0-1 2-3 | smt1:4 | "},
        {"no socket: all CPUs are in one", "synthetic:numa:2 core:2 pu:1",
         "0-3 | 0-1 2-3 | 0-1 2-3 | smt1:4 | "},
        {"memory of a second kind is a NUMA node without CPUs",
         "synthetic:pack:1 [numa] [numa] l3:1 core:2 pu:1", "0-1 | 0-1 - | 0-1 | smt1:2 | "},
        {"NUMA nodes stand at the kernel's numbers",
         "synthetic:pack:2 [numa(indexes=3,1)] core:1 pu:2",
         "0-1 2-3 | - 2-3 - 0-1 | 0-1 2-3 | near2:2 | "},
        {"numbers with holes are listed", "synthetic:pack:1 [numa] core:2 pu:2(indexes=0,8,1,5)",
         "0-1,5,8 | 0-1,5,8 | 0-1,5,8 | 0,8;1,5 | "},
        {"one CPU", "synthetic:[numa] pu:1", "0 | 0 | 0 | smt1:1 | "},
        {"as many as there may be", "synthetic:pack:4 [numa] l3:16 core:8 pu:2", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cpu_topology t;
        struct error err = ERROR_INIT;
        expect_int(rows[i].row, 0, cpuinfo_read(rows[i].source, "", &arena, &t, &err));
        expect_str(rows[i].row, "", err.text);
        const char *text = err.text[0] == '\0' ? told(&t) : "";
        if (rows[i].told != NULL)
            expect_str(rows[i].row, rows[i].told, text);
    }
    expect_done();
}

static void sources_that_cannot_be_used(void **state)
{
    (void)state;
    static const struct {
        const char *source, *message;
    } rows[] = {
        {"", "CPU topology: '' is not known; write live, xml:FILE or synthetic:TEXT"},
        {"xml:", "CPU topology: 'xml:' is not known; write live, xml:FILE or synthetic:TEXT"},
        {"synthetic:",
         "CPU topology: 'synthetic:' is not known; write live, xml:FILE or synthetic:TEXT"},
        {"xml:/nonexistent/x.xml", "CPU topology: /nonexistent/x.xml: No such file or directory"},
        {"synthetic:blah:2", "CPU topology: 'blah:2' is not hwloc's description of a machine"},
        {"synthetic:pu:1025", "CPU topology: CPU 1024; CPUs beyond 1023 are not supported"},
        {"synthetic:core:1 pu:16", "CPU topology: no CPU, or a core of more than 8 threads"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cpu_topology t;
        struct error err = ERROR_INIT;
        expect_int(rows[i].source, -1, cpuinfo_read(rows[i].source, "", &arena, &t, &err));
        expect_str(rows[i].source, rows[i].message, err.text);
    }
    expect_done();
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(0, fclose(f));
}

static void a_saved_machine(void **state)
{
    (void)state;
    /* Two cores of two threads; CPU 3 is known by its number only. */
    static const char xml[] =
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n"
        "<object type=\"Machine\" os_index=\"0\" cpuset=\"0x7\" complete_cpuset=\"0xf\" allowed_cpuset=\"0x7\" nodeset=\"0x1\" complete_nodeset=\"0x1\" allowed_nodeset=\"0x1\" gp_index=\"1\">\n"
        "<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0x7\" complete_cpuset=\"0xf\" nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"9\" local_memory=\"1000000\"/>\n"
        "<object type=\"Core\" os_index=\"0\" cpuset=\"0x5\" complete_cpuset=\"0x5\" nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"2\">\n"
        "<object type=\"PU\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\" nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"3\"/>\n"
        "<object type=\"PU\" os_index=\"2\" cpuset=\"0x4\" complete_cpuset=\"0x4\" nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"4\"/>\n</object>\n"
        "<object type=\"Core\" os_index=\"1\" cpuset=\"0x2\" complete_cpuset=\"0xa\" nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"5\">\n"
        "<object type=\"PU\" os_index=\"1\" cpuset=\"0x2\" complete_cpuset=\"0x2\" nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"6\"/>\n</object>\n"
        "</object>\n</topology>\n";
    char path[SCRATCH_PATH];
    struct cpu_topology t;
    struct error err = ERROR_INIT;
    close(scratch_file(path, "cpus"));
    put(path, xml);
    expect_int("read", 0, cpuinfo_read(arena_printf(&arena, "xml:%s", path), "", &arena, &t, &err));
    expect_str("no complaint", "", err.text);
    expect_str("with the CPU that is offline", "0-2 | 0-2 | 0-2 | smt2:2 | 3", told(&t));
    put(path, "<topology");
    expect_int("broken", -1,
               cpuinfo_read(arena_printf(&arena, "xml:%s", path), "", &arena, &t, &err));
    (void)unlink(path);
    expect_done();
}

static void this_machine(void **state)
{
    (void)state;
    struct cpu_topology t;
    struct cpuset online, told_online = {{0}};
    struct error err = ERROR_INIT;
    char sysfs[SCRATCH_PATH];
    if (access("/sys/devices/system/cpu/present", R_OK) < 0)
        skip(); /* a chroot without /sys: nothing says which CPUs this machine has */
    expect_int("read", 0, cpuinfo_read("live", "/sys", &arena, &t, &err));
    expect_str("no complaint", "", err.text);
    expect_int("online", 0, cpuinfo_list("/sys", "online", &online, &err));
    for (size_t i = 0; i < t.l3_len; i++)
        cpuset_union(&told_online, &t.l3[i]);
    expect_true("every CPU that is online is in an L3 group", cpuset_equal(&online, &told_online));
    (void)told(&t);

    scratch_folder(sysfs, "sysfs");
    expect_int("no such list", -1, cpuinfo_read("live", sysfs, &arena, &t, &err));
    const char *folder = sysfs;
    static const char *const below[] = {"devices", "system", "cpu"};
    for (size_t i = 0; i < 3; i++) {
        folder = arena_printf(&arena, "%s/%s", folder, below[i]);
        assert_int_equal(0, mkdir(folder, 0700));
    }
    const char *present = arena_printf(&arena, "%s/present", folder);
    put(present, "0-1023\n");
    expect_int("read", 0, cpuinfo_read("live", sysfs, &arena, &t, &err));
    expect_int("what is there and not online is offline", 1024 - (int64_t)cpuset_count(&online),
               cpuset_count(&t.offline));
    put(present, "many\n");
    expect_int("not a list", -1, cpuinfo_read("live", sysfs, &arena, &t, &err));
    (void)unlink(present);
    for (const char *at = folder; at != NULL;) {
        (void)rmdir(at);
        const char *slash = strrchr(at, '/');
        at =
            strlen(at) > strlen(sysfs) ? arena_printf(&arena, "%.*s", (int)(slash - at), at) : NULL;
    }
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(described_machines, setup, teardown),
        cmocka_unit_test_setup_teardown(sources_that_cannot_be_used, setup, teardown),
        cmocka_unit_test_setup_teardown(a_saved_machine, setup, teardown),
        cmocka_unit_test_setup_teardown(this_machine, setup, teardown),
    };
    return cmocka_run_group_tests_name("cpuinfo", tests, NULL, NULL);
}
