// SPDX-License-Identifier: Apache-2.0
/* Both backends: NVML through the real loading path with the fake library, and the simulated one
 * from files. */
#include "device-plugin/cards/backend.h"

#include "test/unit/lib/base/expect.h"
#include "test/unit/lib/base/scratch.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "device-plugin/monitor/scan.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/str.h"

static char dir[SCRATCH_PATH], library[4096], file[128];
static struct arena a;

static int warnings;

static void ignore(void *arg, const char *line, size_t n)
{
    (void)arg;
    warnings += memmem(line, n, "card is not offered", 19) != NULL;
}

static int setup(void **state)
{
    (void)state;
    const char *build = getenv("BUILD_DIR");
    assert_true(str_format(library, sizeof library, "%s/lib/libnvidia-ml.so.1",
                           build != NULL ? build : "build/release"));
    scratch_folder(dir, "backend");
    assert_true(str_format(file, sizeof file, "%s/cards", dir));
    arena_init(&a, 0);
    warnings = 0;
    log_set_sink(ignore, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    log_set_sink(NULL, NULL);
    unsetenv("COSCHED_FAKE_NVML");
    arena_deinit(&a);
    unlink(file);
    rmdir(dir);
    return 0;
}

static void write_file(const char *path, const void *bytes, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal((ssize_t)n, write(fd, bytes, n));
    close(fd);
}

static void script(const char *text)
{
    write_file(file, text, strlen(text));
    setenv("COSCHED_FAKE_NVML", file, 1);
}

/* Opens, scans once, closes. */
static int scan(const struct backend_type *type, const char *lib, struct gpu_inventory *out,
                struct error *err)
{
    struct backend *b = NULL;
    struct backend_config c = {.nvml_library = lib, .sim_file = file, .sysfs = dir};
    if (type->open(&b, &c, err) < 0)
        return -1;
    struct backend_sight sight = {0};
    int result = type->scan(b, &a, &sight, err);
    *out = sight.inventory;
    type->close(b);
    return result;
}

static void two_cards_without_a_script(void **state)
{
    (void)state;
    struct gpu_inventory inv;
    struct error err = ERROR_INIT;
    expect_int("scan", 0, scan(&backend_nvml, library, &inv, &err));
    expect_str("no error", "", err.text);
    expect_int("two cards", 2, (int64_t)inv.cards_len);
    expect_int("of 16,160 MiB", 16160, inv.cards[1].mib);
    expect_int("together 30 GiB", 30, gpu_inventory_gib(&inv));
    expect_str("model", "Tesla T4", inv.cards[0].model);
    expect_str("uuid", "GPU-00000000-0000-4000-8000-000000000001", inv.cards[1].uuid);
    expect_str("PCI address as the kernel writes it", "0000:3c:00.0", inv.cards[1].pci);
    expect_int("NUMA node unknown without sysfs", -1, inv.cards[0].numa);
    expect_str("linked through the system", "SYS", inv.links[1]);
    expect_done();
}

static void mixed_cards_with_links(void **state)
{
    (void)state;
    struct gpu_inventory inv;
    struct error err = ERROR_INIT;
    char path[256];
    script(
        "# three cards\ncount=3\ncard.1.mib=24576\ncard.1.name=A10\xff\xC2\xAE\ncard.2.mib=81559\ncard.2.mig=1\n"
        "link.0.1=NV2\nlink.0.2=PIX\nlink.1.2=NODE\n");
    const char *const parts[] = {"bus", "bus/pci", "bus/pci/devices",
                                 "bus/pci/devices/0000:3c:00.0"};
    for (size_t i = 0; i < 4; i++) {
        assert_true(str_format(path, sizeof path, "%s/%s", dir, parts[i]));
        assert_int_equal(0, mkdir(path, 0755));
    }
    assert_true(str_format(path, sizeof path, "%s/%s/numa_node", dir, parts[3]));
    write_file(path, "1\n", 2);
    expect_int("scan", 0, scan(&backend_nvml, library, &inv, &err));
    expect_int("three cards", 3, (int64_t)inv.cards_len);
    expect_str("bytes that are no text", "A10?\xC2\xAE", inv.cards[1].model);
    expect_int("each by its own size", 24576, inv.cards[1].mib);
    expect_int("NUMA node by sysfs", 1, inv.cards[1].numa);
    expect_int("a card in MIG mode is seen as such", true, inv.cards[2].mig);
    expect_int("and only that one", false, inv.cards[1].mig);
    static const char *const links[] = {"X", "NV2", "PIX", "NV2", "X", "NODE", "PIX", "NODE", "X"};
    for (size_t i = 0; i < 9; i++)
        expect_str("link", links[i], inv.links[i]);
    unlink(path);
    for (size_t i = 4; i-- > 0;) {
        assert_true(str_format(path, sizeof path, "%s/%s", dir, parts[i]));
        rmdir(path);
    }
    expect_done();
}

static void a_card_that_falls_off_the_bus(void **state)
{
    (void)state;
    struct backend_sight sight;
    struct error err = ERROR_INIT;
    struct backend *b = NULL;
    struct backend_config c = {.nvml_library = library, .sysfs = dir};
    script("count=3\n");
    assert_int_equal(0, backend_nvml.open(&b, &c, &err));
    expect_int("scan", 0, backend_nvml.scan(b, &a, &sight, &err));
    expect_int("three cards", 3, (int64_t)sight.inventory.cards_len);
    script("count=3\ncard.1.lost=1\n");
    expect_int("scan", 0, backend_nvml.scan(b, &a, &sight, &err));
    expect_int("the other two are still found", 2, (int64_t)sight.inventory.cards_len);
    expect_int("under their own index", 2, sight.inventory.cards[1].index);
    expect_int("and one failure", 1, (int64_t)sight.failures_len);
    expect_int("of the lost card", 1, sight.failures[0].index);
    expect_int("for certain", true, sight.failures[0].gone);
    expect_str("in NVML's words", "NVML: nvmlDeviceGetHandleByIndex_v2: GPU is lost (15)",
               sight.failures[0].why);
    expect_int("scan", 0, backend_nvml.scan(b, &a, &sight, &err));
    expect_int("the lost one is said once, not at every scan", 1, warnings);
    script("count=3\n");
    expect_int("scan", 0, backend_nvml.scan(b, &a, &sight, &err));
    script("count=3\ncard.1.lost=1\n");
    expect_int("scan", 0, backend_nvml.scan(b, &a, &sight, &err));
    expect_int("and again when it is lost again", 2, warnings);
    script("count=3\ncard.2.fail=999\n");
    expect_int("scan", 0, backend_nvml.scan(b, &a, &sight, &err));
    expect_int("a card that fails otherwise", 2, sight.failures[0].index);
    expect_int("may be well again in a moment", false, sight.failures[0].gone);
    script("count=3\nfail.nvmlDeviceGetCount_v2=999\n");
    expect_int("a scan that fails", -1, backend_nvml.scan(b, &a, &sight, &err));
    expect_str("says why", "NVML: nvmlDeviceGetCount_v2: Unknown Error (999)", err.text);
    backend_nvml.close(b);
    expect_done();
}

static void what_happens_on_a_card(void **state)
{
    (void)state;
    struct backend_sight sight;
    struct error err = ERROR_INIT;
    struct backend *b = NULL;
    struct backend_event event;
    struct backend_config c = {.nvml_library = library, .sysfs = dir};
    script(
        "count=4\ncard.1.ecc=3\ncard.1.remap=1\ncard.2.remap=2\ncard.3.deaf=1\nevent.1=xid 0 79\n"
        "process.0=12 100\nprocess.0=10 -1\ngraphics.0=12 300\ngraphics.0=11 7\n");
    assert_int_equal(0, backend_nvml.open(&b, &c, &err));
    expect_int("nobody is heard before the first scan", -1, backend_nvml.wait(b, 20, &event));
    expect_int("scan", 0, backend_nvml.scan(b, &a, &sight, &err));
    expect_int("a card that counts no errors says so", -1, sight.cards[0].ecc);
    expect_true("and waits for nothing", sight.cards[0].repair == NULL);
    expect_int("uncorrected errors", 3, sight.cards[1].ecc);
    expect_str("and a repair", "a reset, to replace memory rows", sight.cards[1].repair);
    expect_str("that cannot be", "a replacement: no spare memory rows are left",
               sight.cards[2].repair);
    expect_int("each process once", 3, (int64_t)sight.cards[0].processes_len);
    expect_int("by pid", 10, sight.cards[0].processes[0].pid);
    expect_int("memory that is not told", -1, sight.cards[0].processes[0].mib);
    expect_int("of two lists the larger", 300, sight.cards[0].processes[2].mib);
    expect_int("no processes are known as none", true, sight.cards[1].processes_known);

    expect_int("an event from before is nobody's", 0, backend_nvml.wait(b, 20, &event));
    script(
        "count=4\ncard.3.deaf=1\nevent.1=xid 0 79\nevent.2=xid 2 48\nevent.3=xid 3 13\nevent.4=ecc 1\n");
    expect_int("an XID", 1, backend_nvml.wait(b, 10000, &event));
    expect_int("is one", BACKEND_XID, event.kind);
    expect_int("by its number", 48, event.xid);
    expect_str("and its card", "GPU-00000000-0000-4000-8000-000000000002", event.uuid);
    expect_int("that of a deaf card is not heard, a memory error is", 1,
               backend_nvml.wait(b, 10000, &event));
    expect_int("as what it is", BACKEND_ECC, event.kind);
    expect_str("on its card", "GPU-00000000-0000-4000-8000-000000000001", event.uuid);
    expect_int("and no more", 0, backend_nvml.wait(b, 20, &event));
    script("count=4\nfail.nvmlEventSetWait_v2=15\n");
    expect_int("scan", 0, backend_nvml.scan(b, &a, &sight, &err));
    expect_int("a wait that fails", -1, backend_nvml.wait(b, 20, &event));
    backend_nvml.close(b);
    expect_done();
}

static void cards_that_were_reset(void **state)
{
    (void)state;
    struct backend_sight sight = {0};
    struct error err = ERROR_INIT;
    struct backend *b = NULL;
    struct backend_event event;
    struct backend_config c = {.nvml_library = library, .sysfs = dir};
    script("count=2\n");
    assert_int_equal(0, backend_nvml.open(&b, &c, &err));
    expect_int("scan", 0, backend_nvml.scan(b, &a, &sight, &err));
    script("count=2\nreset=1\n");
    expect_int("scan", 0, backend_nvml.scan(b, &a, &sight, &err));
    expect_int("what NVML knew is lost", 2, (int64_t)sight.failures_len);
    int scans = 0;
    while (sight.inventory.cards_len == 0 && ++scans < 20)
        expect_int("scan", 0, backend_nvml.scan(b, &a, &sight, &err));
    expect_int("it is begun again, and they are found", 2, (int64_t)sight.inventory.cards_len);
    expect_true("but not at every scan", scans > 2);
    script("count=2\nreset=1\nevent.1=xid 0 79\n");
    expect_int("and heard", 1, backend_nvml.wait(b, 10000, &event));
    script("count=2\nreset=1\nfail.nvmlDeviceGetCount_v2=9\nfail.nvmlInit_v2=9\n");
    for (int i = 0; i < 20; i++)
        expect_int("a driver that is unloaded", -1, backend_nvml.scan(b, &a, &sight, &err));
    expect_str("says so", "NVML: nvmlInit_v2: Driver Not Loaded (9)", err.text);
    script("count=3\n");
    expect_int("and loaded again", 0, backend_nvml.scan(b, &a, &sight, &err));
    expect_int("is found at once", 3, (int64_t)sight.inventory.cards_len);
    backend_nvml.close(b);
    expect_done();
}

static void links_through_switches(void **state)
{
    (void)state;
    struct gpu_inventory inv;
    struct error err = ERROR_INIT;
    script("count=3\ncard.0.switched=12\ncard.1.switched=12\ncard.2.switched=6\nlink.0.1=PIX\n");
    expect_int("scan", 0, scan(&backend_nvml, library, &inv, &err));
    static const char *const links[] = {"X", "NV12", "NV6", "NV12", "X", "NV6", "NV6", "NV6", "X"};
    for (size_t i = 0; i < 9; i++)
        expect_str("as many as the poorer of the two has", links[i], inv.links[i]);
    expect_done();
}

/* A copy of the fake whose name for one function is spoilt: the library of another driver. */
static void without_symbol(const char *path, const char *symbol)
{
    FILE *f = fopen(library, "re");
    assert_non_null(f);
    AUTO_STRBUF bytes;
    strbuf_init(&bytes);
    char piece[4096];
    for (size_t n; (n = fread(piece, 1, sizeof piece, f)) > 0;)
        strbuf_add(&bytes, piece, n);
    fclose(f);
    bool spoilt = false;
    size_t len = strlen(symbol) + 1;
    for (size_t i = 0; i + len <= bytes.len; i++) {
        if (memcmp(bytes.ptr + i, symbol, len) == 0) {
            bytes.ptr[i] = 'x';
            spoilt = true;
        }
    }
    assert_true(spoilt);
    write_file(path, bytes.ptr, bytes.len);
}

static void libraries_that_do_not_do(void **state)
{
    (void)state;
    char path[256];
    struct gpu_inventory inv;
    struct error err = ERROR_INIT;
    assert_true(str_format(path, sizeof path, "%s/libother.so", dir));
    expect_int("no library", -1, scan(&backend_nvml, "/nonexistent/libnvidia-ml.so.1", &inv, &err));
    expect_int("is not found", ERROR_NOT_FOUND, err.code);
    expect_true("and says what to look at", strstr(err.text, "--nvml-library") != NULL);

    error_clear(&err);
    without_symbol(path, "nvmlDeviceGetPciInfo_v3");
    expect_int("an old driver", -1, scan(&backend_nvml, path, &inv, &err));
    expect_true("names the function",
                strstr(err.text, "has no nvmlDeviceGetPciInfo_v3: the driver is too old") != NULL);

    error_clear(&err);
    without_symbol(path, "nvmlDeviceGetMigMode");
    expect_int("an optional function may be missing", 0, scan(&backend_nvml, path, &inv, &err));
    expect_int("and the cards are found", 2, (int64_t)inv.cards_len);

    error_clear(&err);
    without_symbol(path, "nvmlDeviceGetTopologyCommonAncestor");
    expect_int("links too", 0, scan(&backend_nvml, path, &inv, &err));
    expect_str("count as far", "SYS", inv.links[1]);
    static const char *const optional[] = {"nvmlDeviceGetNvLinkState",
                                           "nvmlDeviceGetTotalEccErrors",
                                           "nvmlDeviceGetRemappedRows",
                                           "nvmlDeviceGetComputeRunningProcesses_v3",
                                           "nvmlDeviceGetGraphicsRunningProcesses_v3",
                                           "nvmlEventSetCreate",
                                           "nvmlDeviceRegisterEvents",
                                           "nvmlEventSetWait_v2",
                                           "nvmlDeviceGetNvLinkRemoteDeviceType"};
    for (size_t i = 0; i < sizeof optional / sizeof optional[0]; i++) {
        error_clear(&err);
        without_symbol(path, optional[i]);
        expect_int(optional[i], 0, scan(&backend_nvml, path, &inv, &err));
        expect_int(optional[i], 2, (int64_t)inv.cards_len);
    }
    unlink(path);

    error_clear(&err);
    script("fail.nvmlInit_v2=9\n");
    expect_int("a library without its driver", -1, scan(&backend_nvml, library, &inv, &err));
    expect_str("in NVML's words", "NVML: nvmlInit_v2: Driver Not Loaded (9)", err.text);
    expect_done();
}

static void simulated(void **state)
{
    (void)state;
    struct gpu_inventory inv;
    static const struct {
        const char *row, *text;
        int result;
        size_t cards;
    } rows[] = {
        {"one card",
         "{\"cards\":[{\"i\":0,\"uuid\":\"GPU-a\",\"model\":\"T4\",\"mib\":16160,\"numa\":0,\"pci\":\"\",\"health\":\"ok\"}],\"links\":[[\"X\"]]}",
         0, 1},
        {"no cards", "{\"cards\":[],\"links\":[]}", 0, 0},
        {"not JSON", "cards", -1, 0},
        {"empty", "", -1, 0},
        {"a card without memory",
         "{\"cards\":[{\"i\":0,\"uuid\":\"GPU-a\",\"model\":\"T4\",\"mib\":0,\"numa\":0,\"pci\":\"\",\"health\":\"ok\"}]}",
         -1, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct error err = ERROR_INIT;
        write_file(file, rows[i].text, strlen(rows[i].text));
        expect_int(rows[i].row, rows[i].result, scan(&backend_sim, NULL, &inv, &err));
        if (rows[i].result == 0)
            expect_int(rows[i].row, (int64_t)rows[i].cards, (int64_t)inv.cards_len);
        else
            expect_true(rows[i].row,
                        str_starts(err.text, arena_printf(&a, "simulated cards %s", file)));
    }
    struct error err = ERROR_INIT;
    unlink(file);
    expect_int("no file", -1, scan(&backend_sim, NULL, &inv, &err));
    struct backend *b;
    struct backend_config none = {0};
    expect_int("no --sim-file", -1, backend_sim.open(&b, &none, &err));
    AUTO_STRBUF deep;
    strbuf_init(&deep);
    strbuf_adds(&deep, "{\"cards\":");
    for (int i = 0; i < 30000; i++)
        strbuf_addc(&deep, '[');
    for (int i = 0; i < 30000; i++)
        strbuf_addc(&deep, ']');
    strbuf_addc(&deep, '}');
    write_file(file, deep.ptr, deep.len);
    expect_int("lists in lists in lists", -1, scan(&backend_sim, NULL, &inv, &err));
    AUTO_STRBUF big;
    strbuf_init(&big);
    while (big.len <= GPU_INVENTORY_BYTES_MAX)
        strbuf_adds(&big, "          ");
    write_file(file, big.ptr, big.len);
    expect_int("a file over the bound", -1, scan(&backend_sim, NULL, &inv, &err));
    expect_done();
}

/* ---- the thread ---- */

struct inbox {
    int messages, failed, fatal, events;
    size_t cards;
    char pod[64];
    char error[ERROR_TEXT_SIZE];
};

static void deliver(void *arg, void *msg)
{
    struct inbox *in = arg;
    struct scan_message *l = msg;
    in->messages++;
    in->failed += l->kind == SCAN_FAILED;
    in->fatal += l->kind == SCAN_FATAL;
    in->events += l->kind == SCAN_EVENT;
    if (l->kind == SCAN_CARDS)
        in->cards = l->sight.inventory.cards_len;
    for (size_t i = 0; i < l->processes_len; i++)
        if (l->processes[i].pid == 77)
            (void)str_format(in->pod, sizeof in->pod, "%s", l->processes[i].uid);
    (void)str_format(in->error, sizeof in->error, "%s", l->err.text);
    scan_message_free(l);
}

static void drive(struct loop *l, const int *n, int until)
{
    for (int64_t end = clock_mono_ms() + 10000; *n < until && clock_mono_ms() < end;)
        loop_once(l, 20);
}

static void scanning(void **state)
{
    (void)state;
    struct error err = ERROR_INIT;
    struct inbox in = {0};
    struct loop *l;
    struct mailbox *mb;
    struct scan *s;
    assert_int_equal(0, loop_new(&l, &err));
    assert_int_equal(0, mailbox_new(&mb, l, 4, deliver, scan_message_free, &in, &err));
    struct scan_config c = {.type = &backend_nvml,
                            .backend = {.nvml_library = library, .sysfs = dir},
                            .proc = dir,
                            .interval_ms = 5,
                            .mailbox = mb};
    char proc[128], cgroup[160];
    assert_true(str_format(proc, sizeof proc, "%s/77", dir));
    assert_true(str_format(cgroup, sizeof cgroup, "%s/cgroup", proc));
    assert_int_equal(0, mkdir(proc, 0755));
    static const char path[] = "0::/kubepods/pod1f2e3d4c-5b6a-7988-a7b6-c5d4e3f2a1b0/x\n";
    write_file(cgroup, path, strlen(path));
    script("count=2\nprocess.1=77 10\nprocess.1=78 10\n");
    assert_int_equal(0, scan_start(&s, &c, &err));
    drive(l, &in.messages, 2);
    expect_int("two cards", 2, (int64_t)in.cards);
    expect_str("a process is known by its pod", "1f2e3d4c-5b6a-7988-a7b6-c5d4e3f2a1b0", in.pod);
    unlink(cgroup);
    rmdir(proc);
    script("count=3\nevent.1=xid 0 13\n");
    drive(l, &in.events, 1);
    expect_int("an event between two scans is a letter", 1, in.events);
    for (int64_t end = clock_mono_ms() + 10000; in.cards != 3 && clock_mono_ms() < end;)
        loop_once(l, 20);
    expect_int("a new card is seen", 3, (int64_t)in.cards);
    script("fail.nvmlDeviceGetCount_v2=10\n");
    drive(l, &in.failed, 1);
    expect_int("a failing scan is told, and goes on", true, in.failed >= 1 && in.fatal == 0);
    int32_t card = 0;
    (void)scan_busy_ms(s, clock_mono_ms(), &card);
    script("count=3\nhang=nvmlDeviceGetName 1\n");
    for (int64_t end = clock_mono_ms() + 10000;
         scan_busy_ms(s, clock_mono_ms(), &card) < 100 && clock_mono_ms() < end;)
        loop_once(l, 20);
    expect_int("it is seen which card a call hangs on", 1, card);
    script("hang=nvmlDeviceGetCount_v2\n");
    for (int64_t end = clock_mono_ms() + 10000;
         (scan_busy_ms(s, clock_mono_ms(), &card) < 100 || card != BACKEND_NO_CARD) &&
         clock_mono_ms() < end;)
        loop_once(l, 20);
    expect_int("or that it hangs on none", BACKEND_NO_CARD, card);
    int before = in.messages;
    for (int i = 0; i < 5; i++)
        loop_once(l, 20);
    expect_true("a driver that hangs stops the letters, not the loop", in.messages <= before + 4);
    expect_int("and does not let the thread end", false, scan_stop(s, 50));
    script("count=1\n");
    /* Left behind on purpose above; once the driver answers it ends after all, and can be waited
     * for. */
    expect_int("once it answers, it ends", true, scan_stop(s, 10000));
    mailbox_free(mb);

    in = (struct inbox){0};
    c.backend.nvml_library = "/nonexistent/libnvidia-ml.so.1";
    assert_int_equal(0, mailbox_new(&mb, l, 4, deliver, scan_message_free, &in, &err));
    c.mailbox = mb;
    assert_int_equal(0, scan_start(&s, &c, &err));
    drive(l, &in.messages, 1);
    expect_int("a backend that cannot be opened is fatal", 1, in.fatal);
    expect_true("with a sentence", in.error[0] != '\0');
    expect_int("and its thread has ended", true, scan_stop(s, 10000));
    mailbox_free(mb);
    loop_free(l);
    expect_done();
}

/* What the backend says now: "card: pid ns, pid ns; …", "?" where it is not known. */
static const char *busy(struct backend *b)
{
    static char out[256];
    struct backend_time *cards;
    size_t len = backend_nvml.busy(b, &a, &cards), at = 0;
    out[0] = '\0';
    for (size_t i = 0; i < len; i++) {
        at += (size_t)snprintf(out + at, sizeof out - at, "%s%d:%s", i > 0 ? "; " : "",
                               cards[i].index, cards[i].known ? "" : " ?");
        for (size_t k = 0; k < cards[i].processes_len; k++)
            at += (size_t)snprintf(out + at, sizeof out - at, " %lld %lld",
                                   (long long)cards[i].processes[k].pid,
                                   (long long)cards[i].processes[k].ns);
    }
    return out;
}

static void device_time(void **state)
{
    (void)state;
    struct backend *b = NULL;
    struct error err = ERROR_INIT;
    struct backend_config c = {.nvml_library = library, .sysfs = dir};
    script("count=2\n");
    assert_int_equal(0, backend_nvml.open(&b, &c, &err));
    static const struct {
        const char *row, *lines, *expected;
    } rows[] = {
        {"nobody is busy", "", "0:; 1:"},
        {"the first sample covers a time that nobody knows", "busy.0=77 50 1000000\n", "0:; 1:"},
        {"no new one", "busy.0=77 50 1000000\n", "0:; 1:"},
        {"half of 200 ms", "busy.0=77 50 1200000\n", "0: 77 100000000; 1:"},
        {"two, one of them on the other card for the first time",
         "busy.0=77 20 1400000\nbusy.0=78 81 1400000\nbusy.1=77 99 1400000\n",
         "0: 77 40000000 78 162000000; 1:"},
        {"told twice it counts once", "busy.0=77 10 1500000\nbusy.0=77 30 1600000\n",
         "0: 77 60000000; 1:"},
        {"more than all there is", "busy.0=77 250 1700000\n", "0: 77 100000000; 1:"},
        {"a clock that was set", "busy.0=77 100 99990000000000000\n", "0: 77 2000000000; 1:"},
        {"and set back", "busy.0=77 100 1800000\n", "0:; 1:"},
        {"is believed from then on", "busy.0=77 100 1900000\n", "0: 77 100000000; 1:"},
        {"a card that does not tell", "card.1.fail=3\nbusy.0=77 100 2000000\n",
         "0: 77 100000000; 1: ?"},
        {"a driver that cannot", "fail.nvmlDeviceGetProcessUtilization=3\n", "0: ?; 1: ?"},
        {"it begins anew then", "busy.0=77 100 2100000\n", "0:; 1:"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[512];
        (void)snprintf(text, sizeof text, "count=2\n%s", rows[i].lines);
        script(text);
        expect_str(rows[i].row, rows[i].expected, busy(b));
    }
    backend_nvml.close(b);
    expect_true("the simulated one never knows", backend_sim.busy == NULL);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(two_cards_without_a_script, setup, teardown),
        cmocka_unit_test_setup_teardown(mixed_cards_with_links, setup, teardown),
        cmocka_unit_test_setup_teardown(a_card_that_falls_off_the_bus, setup, teardown),
        cmocka_unit_test_setup_teardown(what_happens_on_a_card, setup, teardown),
        cmocka_unit_test_setup_teardown(cards_that_were_reset, setup, teardown),
        cmocka_unit_test_setup_teardown(device_time, setup, teardown),
        cmocka_unit_test_setup_teardown(links_through_switches, setup, teardown),
        cmocka_unit_test_setup_teardown(libraries_that_do_not_do, setup, teardown),
        cmocka_unit_test_setup_teardown(simulated, setup, teardown),
        cmocka_unit_test_setup_teardown(scanning, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
