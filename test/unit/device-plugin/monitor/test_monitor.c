// SPDX-License-Identifier: Apache-2.0
/* From letters of the scan to cards, Events and metrics. */
#include "device-plugin/monitor/monitor.h"

#include "test/unit/lib/base/expect.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "lib/base/str.h"
#include "test/unit/device-plugin/cards.h"
#include "test/unit/lib/base/scratch.h"

#define GRANT(x) "\"scheduler.framework.gpushare.allocation\":\"" x "\""

struct fixture {
    struct loop *loop;
    struct podcache pods;
    struct monitor *monitor;
    struct arena arena;
    struct gpu_inventory cards; /* as a scan would show them */
    struct backend_card conditions[GPU_CARDS_MAX];
    char state[SCRATCH_PATH]; /* the CPU manager's */
    char dir[SCRATCH_PATH];   /* where sick cards are remembered */
    struct monitor_config config;
    /* What came out. */
    char health[GPU_CARDS_MAX + 1]; /* "ok": 'o' or 's' for each card */
    char why[256];                  /* of the last card that is sick */
    int events, pod_events, uses;
    char use[128];
    char reason[64], message[512], pod[128];
};

static void on_cards(void *arg, const struct gpu_inventory *inv)
{
    struct fixture *f = arg;
    for (size_t i = 0; i < inv->cards_len; i++)
        f->health[i] = inv->cards[i].health == GPU_HEALTH_OK ? 'o' : 's';
    f->why[0] = '\0';
    for (size_t i = 0; i < inv->cards_len; i++)
        if (str_or_empty(inv->cards[i].why)[0] != '\0')
            (void)str_format(f->why, sizeof f->why, "%d: %s", (int)inv->cards[i].index,
                             inv->cards[i].why);
    f->health[inv->cards_len] = '\0';
}

static void on_event(void *arg, bool warning, const char *reason, const char *message)
{
    struct fixture *f = arg;
    (void)warning;
    f->events++;
    (void)str_format(f->reason, sizeof f->reason, "%s", reason);
    (void)str_format(f->message, sizeof f->message, "%s", message);
}

static void on_pod_event(void *arg, const struct pod *pod, bool warning, const char *reason,
                         const char *message)
{
    struct fixture *f = arg;
    (void)warning;
    f->pod_events++;
    (void)str_format(f->pod, sizeof f->pod, "%s/%s/%s", pod->ns, pod->name, pod->uid);
    (void)str_format(f->reason, sizeof f->reason, "%s", reason);
    (void)str_format(f->message, sizeof f->message, "%s", message);
}

static void on_pod_used(void *arg, const struct pod *pod, const struct gpuuse *use)
{
    struct fixture *f = arg;
    f->uses++;
    (void)str_format(f->use, sizeof f->use, "%s %lld %lld", pod->key, (long long)use->mib,
                     (long long)use->processes);
}

static void ignore(void *arg, const char *line, size_t n)
{
    (void)arg, (void)line, (void)n;
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct error err = ERROR_INIT;
    assert_non_null(f);
    close(scratch_file(f->state, "cpu"));
    scratch_folder(f->dir, "sick");
    log_set_sink(ignore, NULL);
    arena_init(&f->arena, 0);
    cards_make(&f->cards, &f->arena, (const int64_t[]){16160, 24576, 81920, 0});
    for (int i = 0; i < GPU_CARDS_MAX; i++)
        f->conditions[i].ecc = -1;
    assert_int_equal(0, loop_new(&f->loop, &err));
    f->config = (struct monitor_config){.loop = f->loop,
                                        .interval_ms = 10,
                                        .deadline_ms = 50,
                                        .hold_ms = 0,
                                        .cpu_manager_state = f->state,
                                        .hooks = {.cards = on_cards,
                                                  .event = on_event,
                                                  .pod_event = on_pod_event,
                                                  .pod_used = on_pod_used,
                                                  .state_dir = f->dir,
                                                  .pods = &f->pods,
                                                  .arg = f}};
    podcache_init(&f->pods);
    assert_int_equal(0, monitor_new(&f->monitor, &f->config, NULL));
    monitor_mode(f->monitor, GPU_MODE_SHARE, NULL);
    *state = f;
    return 0;
}

static const char *sick_file(struct fixture *f)
{
    return arena_printf(&f->arena, "%s/health.json", f->dir);
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    metrics_reset();
    monitor_free(f->monitor);
    podcache_deinit(&f->pods);
    loop_free(f->loop);
    log_set_sink(NULL, NULL);
    unlink(f->state);
    unlink(sick_file(f));
    rmdir(f->dir);
    arena_deinit(&f->arena);
    free(f);
    return 0;
}

static void scan(struct fixture *f, const struct usage_process *processes, size_t len)
{
    struct scan_message l = {.kind = SCAN_CARDS,
                             .sight = {.inventory = f->cards, .cards = f->conditions},
                             .processes_len = len};
    l.processes = arena_new(&f->arena, struct usage_process, len);
    for (size_t i = 0; i < len; i++)
        l.processes[i] = processes[i];
    monitor_message(f->monitor, &l);
}

static void xid(struct fixture *f, const char *uuid, int64_t number)
{
    struct scan_message l = {.kind = SCAN_EVENT, .event = {.kind = BACKEND_XID, .xid = number}};
    (void)str_format(l.event.uuid, sizeof l.event.uuid, "%s", uuid);
    monitor_message(f->monitor, &l);
}

/* Does the metrics' text have this line? */
static void expect_metric(const char *row, const char *line, bool expected)
{
    AUTO_STRBUF text, whole;
    strbuf_init(&text);
    strbuf_init(&whole);
    metrics_render(&text);
    strbuf_addf(&whole, "\n%s\n", line);
    bool got = strstr(strbuf_str(&text), strbuf_str(&whole)) != NULL;
    if (got != expected)
        print_error("%s\n", strbuf_str(&text));
    expect_int(row, expected, got);
}

static void errors_of_one_card(void **state)
{
    struct fixture *f = *state;
    scan(f, NULL, 0);
    expect_str("three cards, all well", "ooo", f->health);
    static const int64_t application[] = {13, 31, 43, 45, 68, 109};
    for (size_t i = 0; i < sizeof application / sizeof application[0]; i++)
        xid(f, "GPU-b", application[i]);
    expect_str("programs' errors change nothing", "ooo", f->health);
    expect_int("and make no Event", 0, f->events);
    xid(f, "GPU-b", 79);
    expect_str("the card's own takes that card away", "oso", f->health);
    expect_str("and the inventory says why", "1: XID 79: the card has fallen off the bus", f->why);
    expect_str("with an Event", "GpuSick", f->reason);
    expect_str(
        "that says why",
        "card 1 (GPU-b) takes no new containers until it proves well: XID 79: the card has fallen off the bus",
        f->message);
    xid(f, "GPU-b", 48);
    expect_int("said once", 1, f->events);
    xid(f, "", 48);
    expect_str("an error of nobody takes nobody away", "oso", f->health);
    expect_metric("health", "cosched_device_plugin_card_healthy{card=\"1\",uuid=\"GPU-b\"} 0",
                  true);
    expect_metric(
        "counts",
        "cosched_device_plugin_card_xids_total{card=\"1\",uuid=\"GPU-b\",xid=\"13\",class=\"application\"} 1",
        true);
    expect_metric(
        "counts",
        "cosched_device_plugin_card_xids_total{card=\"1\",uuid=\"GPU-b\",xid=\"79\",class=\"hardware\"} 1",
        true);
    expect_metric(
        "nobody's",
        "cosched_device_plugin_card_xids_total{card=\"-1\",uuid=\"\",xid=\"48\",class=\"hardware\"} 1",
        true);
    scan(f, NULL, 0);
    scan(f, NULL, 0);
    expect_str("two good scans", "oso", f->health);
    scan(f, NULL, 0);
    expect_str("three bring it back", "ooo", f->health);
    expect_str("and nothing is wrong any more", "", f->why);
    expect_str("with an Event", "GpuRecovered", f->reason);
    expect_int("of its own", 2, f->events);
    expect_done();
}

static void cards_that_vanish(void **state)
{
    struct fixture *f = *state;
    struct gpu_inventory all = f->cards;
    struct backend_failure failure = {.index = 2, .why = "Unknown Error"};
    struct scan_message l = {
        .kind = SCAN_CARDS,
        .sight = {
            .inventory = all, .cards = f->conditions, .failures = &failure, .failures_len = 1}};
    scan(f, NULL, 0);
    l.sight.inventory.cards_len = 2;
    monitor_message(f->monitor, &l);
    expect_str("one scan in which a card fails", "ooo", f->health);
    monitor_message(f->monitor, &l);
    expect_str("two in a row", "oos", f->health);
    expect_true("say why", strstr(f->message, "Unknown Error") != NULL);
    for (int i = 0; i < 3; i++)
        scan(f, NULL, 0);
    expect_str("back", "ooo", f->health);
    failure.gone = true;
    monitor_message(f->monitor, &l);
    expect_str("a card that is lost for certain", "oos", f->health);
    l.sight.failures_len = 0;
    l.sight.inventory.cards_len = 1;
    monitor_message(f->monitor, &l);
    expect_str("cards that are not even listed", "oss", f->health);
    struct scan_message failed = {.kind = SCAN_FAILED};
    (void)error_set(&failed.err, ERROR_IO, "no answer");
    monitor_message(f->monitor, &failed);
    expect_str("a scan that fails says nothing about any card", "oss", f->health);
    expect_done();
}

static void restart(struct fixture *f)
{
    metrics_reset();
    monitor_free(f->monitor);
    podcache_deinit(&f->pods);
    podcache_init(&f->pods);
    f->events = 0;
    assert_int_equal(0, monitor_new(&f->monitor, &f->config, NULL));
    monitor_mode(f->monitor, GPU_MODE_SHARE, NULL);
}

static void a_sick_card_over_a_restart(void **state)
{
    struct fixture *f = *state;
    scan(f, NULL, 0);
    xid(f, "GPU-b", 48);
    expect_str("sick", "oso", f->health);
    restart(f);
    scan(f, NULL, 0);
    expect_str("the process that comes after has not heard the XID, and knows", "oso", f->health);
    expect_int("which is no news", 0, f->events);
    restart(f);
    scan(f, NULL, 0);
    scan(f, NULL, 0);
    expect_str("nor does the next", "oso", f->health);
    scan(f, NULL, 0);
    expect_str("until it has proved well", "ooo", f->health);
    expect_str("with an Event", "GpuRecovered", f->reason);
    restart(f);
    scan(f, NULL, 0);
    expect_str("then it is forgotten", "ooo", f->health);
    expect_done();
}

static void a_bad_file_of_sick_cards(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *row, *text, *health;
    } rows[] = {
        {"empty", "", "ooo"},
        {"no JSON", "{", "ooo"},
        {"another version", "{\"v\":2,\"sick\":[]}", "ooo"},
        {"no list", "{\"v\":1,\"sick\":{}}", "ooo"},
        {"an entry without a card, and one with",
         "{\"v\":1,\"sick\":[{\"why\":\"\",\"holdMs\":0,\"ecc\":-1},"
         "{\"uuid\":\"GPU-c\",\"why\":\"x\",\"holdMs\":0,\"ecc\":-1}]}",
         "oos"},
        {"a hold that cannot be",
         "{\"v\":1,\"sick\":[{\"uuid\":\"GPU-c\",\"why\":\"x\",\"holdMs\":-1,\"ecc\":-1}]}", "ooo"},
        {"a count that cannot be",
         "{\"v\":1,\"sick\":[{\"uuid\":\"GPU-c\",\"why\":\"x\",\"holdMs\":1,\"ecc\":-2}]}", "ooo"},
        {"a card that is not there",
         "{\"v\":1,\"sick\":[{\"uuid\":\"GPU-z\",\"why\":\"x\",\"holdMs\":1,\"ecc\":0}]}", "ooo"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        FILE *file = fopen(sick_file(f), "w");
        assert_non_null(file);
        (void)fputs(rows[i].text, file);
        (void)fclose(file);
        restart(f);
        scan(f, NULL, 0);
        expect_str(rows[i].row, rows[i].health, f->health);
    }
    expect_done();
}

/* ---- a driver that hangs ---- */

static _Atomic int released, scanned;
static _Atomic int32_t hang_card;
static struct gpu_inventory *hang_cards;

static int hang_open(struct backend **out, const struct backend_config *c, struct error *err)
{
    (void)err;
    static _Atomic int32_t *asking;
    asking = c->asking;
    *out = (struct backend *)(void *)&asking;
    return 0;
}

static int hang_scan(struct backend *b, struct arena *a, struct backend_sight *out,
                     struct error *err)
{
    (void)err;
    _Atomic int32_t *asking = *(_Atomic int32_t **)(void *)b;
    if (atomic_fetch_add(&scanned, 1) > 0) {
        while (!atomic_load(&released)) {
            atomic_store(asking, atomic_load(&hang_card));
            usleep(1000);
        }
    }
    *out =
        (struct backend_sight){.inventory = *hang_cards,
                               .cards = arena_new(a, struct backend_card, hang_cards->cards_len)};
    return 0;
}

static void hang_close(struct backend *b)
{
    (void)b;
}

static void deliver(void *arg, void *msg)
{
    struct fixture *f = arg;
    monitor_message(f->monitor, msg);
    scan_message_free(msg);
}

static void drive(struct fixture *f, const char *reason)
{
    for (int64_t end = clock_mono_ms() + 10000;
         !str_eq(f->reason, reason) && clock_mono_ms() < end;)
        loop_once(f->loop, 10);
    expect_str("Event", reason, f->reason);
}

static void a_driver_that_hangs(void **state)
{
    struct fixture *f = *state;
    static const struct backend_type type = {
        .name = "hang", .open = hang_open, .scan = hang_scan, .close = hang_close};
    static const struct {
        const char *row;
        int32_t card;
        const char *reason, *health, *message;
    } rows[] = {
        {"a question about no card changes nothing", BACKEND_NO_CARD, "GpuDriverHangs", "ooo",
         "all stay as they were"},
        {"one about a card takes that card away, and no other", 1, "GpuSick", "oso",
         "the driver does not answer when it is asked about the card"},
    };
    hang_cards = &f->cards;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct error err = ERROR_INIT;
        struct mailbox *mb;
        struct scan *s;
        atomic_store(&released, 0);
        atomic_store(&scanned, 0);
        atomic_store(&hang_card, rows[i].card);
        f->reason[0] = '\0';
        assert_int_equal(0, mailbox_new(&mb, f->loop, 4, deliver, scan_message_free, f, &err));
        struct scan_config c = {.type = &type, .proc = "/proc", .interval_ms = 5, .mailbox = mb};
        assert_int_equal(0, scan_start(&s, &c, &err));
        monitor_watch(f->monitor, s);
        drive(f, rows[i].reason);
        expect_str(rows[i].row, rows[i].health, f->health);
        expect_true(rows[i].row, strstr(f->message, rows[i].message) != NULL);
        expect_metric(rows[i].row, "cosched_device_plugin_driver_hung 1", true);
        if (rows[i].card == BACKEND_NO_CARD) {
            atomic_store(&hang_card, 2);
            drive(f, "GpuSick");
            expect_str("a hang that follows right after another is seen", "oos", f->health);
        }
        atomic_store(&released, 1);
        for (int64_t end = clock_mono_ms() + 10000;
             (!str_eq(f->health, "ooo") || atomic_load(&scanned) < 6) && clock_mono_ms() < end;)
            loop_once(f->loop, 10);
        expect_str("it answers, and the card comes back", "ooo", f->health);
        for (int64_t end = clock_mono_ms() + 10000; clock_mono_ms() < end;) {
            AUTO_STRBUF text;
            strbuf_init(&text);
            metrics_render(&text);
            if (strstr(strbuf_str(&text), "cosched_device_plugin_driver_hung 0") != NULL)
                break;
            loop_once(f->loop, 10);
        }
        expect_metric("the driver is no longer hung", "cosched_device_plugin_driver_hung 0", true);
        monitor_watch(f->monitor, NULL);
        expect_int("its thread ends", true, scan_stop(s, 10000));
        mailbox_free(mb);
    }
    expect_done();
}

/* ---- pods ---- */

static struct pod *greedy(void)
{
    return cards_pod("greedy", "c0=gpu-mem:3", GRANT("{\\\"0\\\":{\\\"1\\\":3}}"));
}

static void list_both(struct fixture *f)
{
    struct pod *all[] = {greedy(), cards_pod("modest", "c0=gpu-mem:5,gpu-core.percentage:30",
                                             GRANT("{\\\"0\\\":{\\\"1\\\":5}}"))};
    podcache_reset(&f->pods, all, 2);
}

static void use_against_share(void **state)
{
    struct fixture *f = *state;
    struct usage_process use[] = {{.card = 1, .pid = 10, .mib = 3072, .uid = "uid-greedy"},
                                  {.card = 1, .pid = 11, .mib = 1000, .uid = "uid-modest"},
                                  {.card = 1, .pid = 12, .mib = 500, .uid = ""},
                                  {.card = 0, .pid = 13, .mib = 200, .uid = "uid-gone"}};
    for (int i = 0; i < 3; i++)
        f->conditions[i].processes_known = true;
    podcache_restore(&f->pods, greedy());
    scan(f, use, 4);
    expect_int("a pod that is only remembered may be gone", 0, f->uses);
    list_both(f);
    scan(f, use, 4);
    expect_int("within its share", 0, f->pod_events);
    expect_int("what each uses is told", 2, f->uses);
    expect_metric("used",
                  "cosched_device_plugin_pod_used_mib{namespace=\"default\",pod=\"greedy\"} 3072",
                  true);
    expect_metric("asked",
                  "cosched_device_plugin_pod_asked_mib{namespace=\"default\",pod=\"greedy\"} 3072",
                  true);
    expect_metric("processes",
                  "cosched_device_plugin_pod_processes{namespace=\"default\",pod=\"modest\"} 1",
                  true);
    expect_metric("of no pod with a GPU", "cosched_device_plugin_outside_used_mib 700", true);
    use[0].mib = 3073;
    scan(f, use, 4);
    expect_int("a MiB more", 1, f->pod_events);
    expect_str("is told at once", "default/greedy 3073 1", f->use);
    expect_str("on the pod", "default/greedy/uid-greedy", f->pod);
    expect_str("as what it is", "GpuShareExceeded", f->reason);
    expect_true("with figures",
                strstr(f->message,
                       "uses 3073 MiB of GPU memory in 1 processes and asked for 3072") != NULL);
    scan(f, use, 4);
    podcache_put(&f->pods, greedy());
    scan(f, use, 4);
    list_both(f);
    scan(f, use, 4);
    expect_int("said once, also when the pod changes or the watch begins again", 1, f->pod_events);
    expect_int("and told once", 3, f->uses);
    use[0].mib = 10;
    for (int i = 0; i < 5; i++)
        scan(f, use, 4);
    expect_int("and once that it is over", 2, f->pod_events);
    expect_str("as that", "GpuShareKept", f->reason);
    monitor_mode(f->monitor, GPU_MODE_CGPU, "library");
    use[0].mib = 9000;
    scan(f, use, 4);
    expect_int("where an engine limits it, there is nothing to say", 2, f->pod_events);

    expect_metric(
        "GiB of the card",
        "cosched_device_plugin_card_allocated{card=\"1\",uuid=\"GPU-b\",resource=\"aliyun.com/gpu-mem\"} 8",
        true);
    expect_metric("containers",
                  "cosched_device_plugin_card_containers{card=\"1\",uuid=\"GPU-b\"} 2", true);
    expect_metric("none elsewhere",
                  "cosched_device_plugin_card_containers{card=\"0\",uuid=\"GPU-a\"} 0", true);
    podcache_remove(&f->pods, "default/greedy");
    expect_metric("a pod that is gone",
                  "cosched_device_plugin_pod_used_mib{namespace=\"default\",pod=\"greedy\"} 9000",
                  false);
    expect_metric(
        "holds nothing",
        "cosched_device_plugin_card_allocated{card=\"1\",uuid=\"GPU-b\",resource=\"aliyun.com/gpu-mem\"} 5",
        true);
    expect_done();
}

static void what_is_offered(void **state)
{
    struct fixture *f = *state;
    struct inventory_devices d;
    scan(f, NULL, 0);
    f->cards.cards[0].health = GPU_HEALTH_SICK;
    inventory_devices(&f->cards, MODE_GPU_MEM, NULL, &f->arena, &d);
    monitor_offered(f->monitor, MODE_GPU_MEM, &d);
    expect_metric(
        "memory of each card",
        "cosched_device_plugin_card_memory_mib{card=\"2\",uuid=\"GPU-c\",model=\"Tesla T4\"} 81920",
        true);
    expect_metric(
        "a card by its own size",
        "cosched_device_plugin_card_advertised{card=\"2\",uuid=\"GPU-c\",resource=\"aliyun.com/gpu-mem\"} 80",
        true);
    expect_metric(
        "another",
        "cosched_device_plugin_card_advertised{card=\"1\",uuid=\"GPU-b\",resource=\"aliyun.com/gpu-mem\"} 24",
        true);
    expect_metric(
        "a sick one",
        "cosched_device_plugin_card_advertised{card=\"0\",uuid=\"GPU-a\",resource=\"aliyun.com/gpu-mem\"} 0",
        true);
    expect_metric(
        "what the mode does not have",
        "cosched_device_plugin_card_advertised{card=\"1\",uuid=\"GPU-b\",resource=\"nvidia.com/gpu\"} 0",
        true);
    expect_done();
}

static void the_kubelets_cpu_manager(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *row, *text;
        enum gpu_mode mode;
        int events; /* so far */
        bool metric;
    } rows[] = {
        {"an empty file", "", GPU_MODE_SHARE, 0, false},
        {"policy none", "{\"policyName\":\"none\",\"checksum\":1}", GPU_MODE_SHARE, 0, false},
        {"static in mode default", "{\"policyName\":\"static\",\"checksum\":1}", GPU_MODE_DEFAULT,
         0, false},
        {"static in mode topology", "{\"policyName\":\"static\"}", GPU_MODE_TOPOLOGY, 0, false},
        {"static in a shared mode", "{\"policyName\":\"static\"}", GPU_MODE_CGPU, 1, true},
        {"said once", "{\"policyName\":\"static\"}", GPU_MODE_CGPU, 1, true},
        {"it ends", "{\"policyName\":\"none\"}", GPU_MODE_CGPU, 1, false},
        {"and begins again", "{\"policyName\":\"static\"}", GPU_MODE_SHARE, 2, true},
        {"a broken file", "{\"policyName\":", GPU_MODE_SHARE, 2, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int fd = open(f->state, O_WRONLY | O_TRUNC | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal((ssize_t)strlen(rows[i].text),
                         write(fd, rows[i].text, strlen(rows[i].text)));
        close(fd);
        monitor_mode(f->monitor, rows[i].mode, NULL);
        scan(f, NULL, 0);
        expect_int(rows[i].row, rows[i].events, f->events);
        expect_metric(rows[i].row, "cosched_device_plugin_cpu_manager_static 1", rows[i].metric);
    }
    expect_str("by its name", "CpuManagerStatic", f->reason);
    expect_done();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(errors_of_one_card, setup, teardown),
        cmocka_unit_test_setup_teardown(cards_that_vanish, setup, teardown),
        cmocka_unit_test_setup_teardown(a_sick_card_over_a_restart, setup, teardown),
        cmocka_unit_test_setup_teardown(a_bad_file_of_sick_cards, setup, teardown),
        cmocka_unit_test_setup_teardown(a_driver_that_hangs, setup, teardown),
        cmocka_unit_test_setup_teardown(use_against_share, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_offered, setup, teardown),
        cmocka_unit_test_setup_teardown(the_kubelets_cpu_manager, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
