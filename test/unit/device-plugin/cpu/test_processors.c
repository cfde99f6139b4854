// SPDX-License-Identifier: Apache-2.0
/* What is published of the CPUs, and when again. */
#include "device-plugin/cpu/processors.h"

#include "test/unit/lib/base/expect.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device-plugin/monitor/hardware.h"
#include "lib/base/json.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "lib/base/str.h"
#include "test/unit/lib/base/scratch.h"

struct fixture {
    struct loop *loop;
    struct processors_options options;
    struct podcache pods;
    struct processors *processors;
    char dir[SCRATCH_PATH], config[SCRATCH_PATH + 32];
    int published;
    char text[4096];
};

static void on_publish(void *arg, const char *topology)
{
    struct fixture *f = arg;
    f->published++;
    (void)str_format(f->text, sizeof f->text, "%s", topology);
}

static void ignore(void *arg, const char *line, size_t n)
{
    (void)arg, (void)line, (void)n;
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(0, fclose(f));
}

static int setup(void **state)
{
    static struct fixture f;
    f = (struct fixture){
        .options = {.topology = "synthetic:core:4 pu:2", .cgroup_mount = "/nonexistent"}};
    *state = &f;
    log_set_sink(ignore, NULL);
    scratch_folder(f.dir, "cpus");
    assert_true(str_format(f.config, sizeof f.config, "%s/config.yaml", f.dir));
    assert_int_equal(0, loop_new(&f.loop, NULL));
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    processors_stop(f->processors);
    podcache_deinit(&f->pods);
    loop_free(f->loop);
    metrics_reset();
    (void)unlink(f->config);
    (void)rmdir(f->dir);
    log_set_sink(NULL, NULL);
    return 0;
}

static int start(struct fixture *f, const char *sysfs, struct error *err)
{
    podcache_init(&f->pods); /* a new process: nobody has subscribed */
    struct processors_config c = {.options = &f->options,
                                  .kubelet_dir = f->dir,
                                  .sysfs = sysfs,
                                  .look_ms = 5,
                                  .publish = on_publish,
                                  .pinner = {.loop = f->loop, .pods = &f->pods, .arg = f}};
    return processors_start(&f->processors, &c, err);
}

/* Until n were published, or a second has gone by. */
static void turn(struct fixture *f, int n)
{
    for (int i = 0; f->published < n && i < 200; i++)
        loop_once(f->loop, 5);
}

static void expect_reserved(struct fixture *f, const char *row, const char *list)
{
    AUTO_JSON *doc = NULL;
    assert_int_equal(0, json_parse(&doc, f->text, strlen(f->text), NULL));
    expect_str(row, list, json_get_str(json_root(doc), "reserved"));
}

static void reserved_cpus(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *row, *option, *config, *reserved;
    } rows[] = {
        {"nobody says any", NULL, NULL, ""},
        {"the option", "0-1,4", "reservedSystemCPUs: '2'\n", "0-1,4"},
        {"the kubelet's", NULL, "kind: KubeletConfiguration\nreservedSystemCPUs: 0,6-7\n", "0,6-7"},
        {"an empty option is none", "", "reservedSystemCPUs: 3-3\n", "3"},
        {"the kubelet has none", NULL, "kind: KubeletConfiguration\n", ""},
        {"the kubelet's are no list: none, and the CPUs are published all the same", NULL,
         "reservedSystemCPUs: some\n", ""},
        {"no YAML", NULL, "a: [\n", ""},
        {"those that the machine does not have are left out", "7-9", NULL, "7"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct error err = ERROR_INIT;
        (void)unlink(f->config);
        if (rows[i].config != NULL)
            put(f->config, rows[i].config);
        f->options.reserved = rows[i].option;
        expect_int(rows[i].row, 0, start(f, "", &err));
        expect_str(rows[i].row, "", err.text);
        expect_reserved(f, rows[i].row, rows[i].reserved);
        processors_stop(f->processors);
        f->processors = NULL;
    }
    expect_done();
}

static void published_again_only_when_it_changed(void **state)
{
    struct fixture *f = *state;
    expect_int("started", 0, start(f, "", NULL));
    expect_int("at once", 1, f->published);
    put(f->config, "reservedSystemCPUs: '0'\n");
    turn(f, 2);
    expect_int("once more", 2, f->published);
    expect_reserved(f, "the kubelet was configured anew", "0");
    put(f->config, "reservedSystemCPUs: 'x'\n");
    for (int i = 0; i < 5; i++)
        loop_once(f->loop, 5);
    expect_int("what cannot be read changes nothing", 2, f->published);
    expect_done();
}

static void expect_closed(struct fixture *f, const char *row, const char *why)
{
    AUTO_JSON *doc = NULL;
    assert_int_equal(0, json_parse(&doc, f->text, strlen(f->text), NULL));
    expect_str(row, why, json_get_str(json_root(doc), "closed"));
}

/* No pod is sent to a node where nobody would pin it. */
static void nodes_that_pin_nobody(void **state)
{
    struct fixture *f = *state;
    char path[SCRATCH_PATH + 32];
    expect_int("started", 0, start(f, "", NULL));
    expect_closed(f, "no cgroups",
                  "/nonexistent: neither cgroup.controllers (v2) nor cpuset (v1) is there");
    processors_stop(f->processors);
    f->processors = NULL;
    assert_true(str_format(path, sizeof path, "%s/cpuset", f->dir));
    assert_int_equal(0, mkdir(path, 0700));
    f->options.cgroup_mount = f->dir;
    expect_int("started", 0, start(f, "", NULL));
    expect_closed(f, "all is well", NULL);
    processors_stop(f->processors);
    f->processors = NULL;
    (void)rmdir(path);
    assert_true(str_format(path, sizeof path, "%s/cgroup.controllers", f->dir));
    put(path, "cpuset\n");
    expect_int("started", 0, start(f, "", NULL));
    expect_closed(f, "cgroup v2", NULL);
    processors_stop(f->processors);
    f->processors = NULL;
    char state_file[SCRATCH_PATH + 32];
    assert_true(str_format(state_file, sizeof state_file, "%s/cpu_manager_state", f->dir));
    put(state_file, "{\"policyName\":\"static\"}");
    expect_int("started", 0, start(f, "", NULL));
    expect_closed(f, "the kubelet pins by itself", "the kubelet's cpuManagerPolicy is static");
    (void)unlink(state_file);
    (void)unlink(path);
    expect_done();
}

static void cpus_go_offline(void **state)
{
    struct fixture *f = *state;
    static const char *const below[] = {"/devices", "/devices/system", "/devices/system/cpu"};
    char path[SCRATCH_PATH + 64], online[SCRATCH_PATH + 64];
    for (size_t i = 0; i < 3; i++) {
        assert_true(str_format(path, sizeof path, "%s%s", f->dir, below[i]));
        assert_int_equal(0, mkdir(path, 0700));
    }
    assert_true(str_format(online, sizeof online, "%s/devices/system/cpu/online", f->dir));
    assert_true(str_format(path, sizeof path, "%s/devices/system/cpu/present", f->dir));
    f->options.topology = "live";
    expect_int("a machine that cannot be read stops nothing", 0, start(f, f->dir, NULL));
    expect_int("and nothing is said of it", 0, f->published);
    put(path, "0-1\n");
    put(online, "0-1\n");
    turn(f, 1);
    expect_int("read later", 1, f->published);
    put(online, "0\n");
    turn(f, 2);
    expect_int("again when one went offline", 2, f->published);
    (void)unlink(online);
    (void)unlink(path);
    for (size_t i = 3; i-- > 0;) {
        assert_true(str_format(path, sizeof path, "%s%s", f->dir, below[i]));
        (void)rmdir(path);
    }
    expect_done();
}

static void off_and_wrong(void **state)
{
    struct fixture *f = *state;
    struct error err = ERROR_INIT;
    f->options.topology = "off";
    expect_int("off is known", 0, processors_check(&f->options, &err));
    expect_int("off", 0, start(f, "", NULL));
    expect_true("there is nothing to stop", f->processors == NULL && f->published == 0);
    f->options.topology = "xml:/nonexistent";
    expect_int("a file that is not there", -1, start(f, "", &err));
    processors_stop(f->processors);
    f->processors = NULL;
    f->options.topology = "dead";
    expect_int("another word", -1, processors_check(&f->options, &err));
    expect_str("another word",
               "--cpu-topology: 'dead' is not known; write live, xml:FILE or synthetic:TEXT",
               err.text);
    f->options = (struct processors_options){
        .topology = "live", .reserved = "1-", .cgroup_mount = "/nonexistent"};
    err = (struct error)ERROR_INIT;
    expect_int("no list", -1, processors_check(&f->options, &err));
    expect_true("names the option", str_starts(err.text, "--reserved-cpus: "));
    expect_done();
}

static void nodes_without_cards(void **state)
{
    struct fixture *f = *state;
    static const char *const below[] = {"/bus", "/bus/pci", "/bus/pci/devices",
                                        "/bus/pci/devices/0"};
    static const struct {
        const char *row, *vendor, *class, *name;
    } rows[] = {{"no PCI bus", NULL, NULL, "none"},
                {"somebody else's card", "0x1002\n", "0x030000\n", "none"},
                {"NVIDIA's bridge", "0x10de\n", "0x060400\n", "none"},
                {"NVIDIA's card", "0x10de\n", "0x030200\n", "nvml"}};
    char path[SCRATCH_PATH + 64];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hardware_options o = {.backend = 3, .sysfs = f->dir};
        for (size_t k = 0; k < 4 && rows[i].vendor != NULL; k++) {
            assert_true(str_format(path, sizeof path, "%s%s", f->dir, below[k]));
            (void)mkdir(path, 0700);
        }
        if (rows[i].vendor != NULL) {
            assert_true(str_format(path, sizeof path, "%s%s/vendor", f->dir, below[3]));
            put(path, rows[i].vendor);
            assert_true(str_format(path, sizeof path, "%s%s/class", f->dir, below[3]));
            put(path, rows[i].class);
        }
        hardware_settle(&o);
        expect_str(rows[i].row, rows[i].name, hardware_backend_name(&o));
        expect_int(rows[i].row, str_eq(rows[i].name, "nvml"), hardware_has_cards(&o));
    }
    assert_true(str_format(path, sizeof path, "%s%s/vendor", f->dir, below[3]));
    (void)unlink(path);
    assert_true(str_format(path, sizeof path, "%s%s/class", f->dir, below[3]));
    (void)unlink(path);
    for (size_t k = 4; k-- > 0;) {
        assert_true(str_format(path, sizeof path, "%s%s", f->dir, below[k]));
        (void)rmdir(path);
    }
    expect_done();
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(reserved_cpus),       TEST(published_again_only_when_it_changed),
        TEST(cpus_go_offline),     TEST(off_and_wrong),
        TEST(nodes_without_cards), TEST(nodes_that_pin_nobody),
    };
    return cmocka_run_group_tests_name("processors", tests, NULL, NULL);
}
