// SPDX-License-Identifier: Apache-2.0
/*
 * What got past the library: the driver's list of processes against the slots of the pod's regions,
 * and the driver's memory against the limits; and device time: from the driver's measurements into
 * the regions, and what is said where there are none.
 */
#include "device-plugin/monitor/monitor.h"

#include "test/unit/device-plugin/isolation/crew.h"

#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "device-plugin/isolation/budget.h"
#include "device-plugin/isolation/isolation.h"
#include "device-plugin/isolation/shares.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/metrics.h"
#include "test/unit/device-plugin/cards.h"

/* Every question about a lock that this program asks. */
static _Atomic int queries;

int fcntl(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    void *arg = va_arg(args, void *);
    va_end(args);
    queries += command == F_OFD_GETLK || command == F_GETLK;
    return (int)syscall(SYS_fcntl, fd, command, arg);
}

#define GRANT(x) "\"scheduler.framework.gpushare.allocation\":\"" x "\""

static int events, evictions;
static char reason[64], message[512];

static void on_cards(void *arg, const struct gpu_inventory *inv)
{
    (void)arg, (void)inv;
}

static void on_event(void *arg, bool warning, const char *why, const char *text)
{
    (void)arg, (void)warning, (void)why, (void)text;
}

static void on_pod_event(void *arg, const struct pod *pod, bool warning, const char *why,
                         const char *text)
{
    (void)arg, (void)pod, (void)warning;
    events++;
    (void)str_format(reason, sizeof reason, "%s", why);
    (void)str_format(message, sizeof message, "%s", text);
}

static void on_pod_used(void *arg, const struct pod *pod, const struct gpuuse *use)
{
    (void)arg, (void)pod, (void)use;
}

static void on_evict(void *arg, const struct pod *pod)
{
    (void)arg;
    expect_str("namespace", "default", pod->ns);
    expect_str("name", "trainer", pod->name);
    expect_str("uid", "uid-trainer", pod->uid);
    evictions++;
}

static void ignore(void *arg, const char *line, size_t n)
{
    (void)arg, (void)line, (void)n;
}

struct fixture {
    struct arena a;
    struct gpu_inventory cards;
    struct backend_card conditions[GPU_CARDS_MAX];
    struct monitor *monitor;
    struct loop *loop;
    struct podcache pods;
    char base[SCRATCH_PATH], region[CREW_PATH];
};

static struct pod *trainer(const char *unreadable)
{
    struct pod *p = cards_pod("trainer", "c0=gpu-mem:3", GRANT("{\\\"0\\\":{\\\"1\\\":3}}"));
    p->unreadable = unreadable;
    return p;
}

static void begin(struct fixture *f, bool evict)
{
    struct error err = ERROR_INIT;
    *f = (struct fixture){0};
    events = evictions = 0;
    scratch_folder(f->base, "audit");
    (void)str_format(f->region, sizeof f->region, "%s/uid-trainer.0/region", f->base);
    log_set_sink(ignore, NULL);
    arena_init(&f->a, 0);
    cards_make(&f->cards, &f->a, (const int64_t[]){16160, 24576, 0});
    f->cards.cards[1].uuid = "GPU-00000000-0000-4000-8000-000000000001";
    for (int i = 0; i < GPU_CARDS_MAX; i++)
        f->conditions[i] = (struct backend_card){.ecc = -1, .processes_known = true};
    assert_int_equal(0, loop_new(&f->loop, &err));
    struct monitor_config config = {.loop = f->loop,
                                    .interval_ms = 1000,
                                    .deadline_ms = 5000,
                                    .hooks = {.cards = on_cards,
                                              .event = on_event,
                                              .pod_event = on_pod_event,
                                              .pod_used = on_pod_used,
                                              .evict = evict ? on_evict : NULL,
                                              .pods = &f->pods,
                                              .shares = f->base}};
    podcache_init(&f->pods);
    assert_int_equal(0, monitor_new(&f->monitor, &config, &err));
    monitor_mode(f->monitor, GPU_MODE_CGPU, ISOLATION_LIBRARY);
    struct pod *pod = trainer(NULL);
    podcache_reset(&f->pods, &pod, 1);
}

static void end(struct fixture *f)
{
    char command[2 * SCRATCH_PATH];
    metrics_reset();
    monitor_free(f->monitor);
    loop_free(f->loop);
    podcache_deinit(&f->pods);
    log_set_sink(NULL, NULL);
    arena_deinit(&f->a);
    (void)str_format(command, sizeof command, "rm -r '%s'", f->base);
    assert_int_equal(0, system(command));
    expect_done();
}

static void give_folder(struct fixture *f, const char *folder, uint32_t percent,
                        uint64_t context_mib)
{
    struct error err = ERROR_INIT;
    char library[CREW_PATH];
    struct shares_plan plan = {
        .base = f->base, .folder = folder, .ns = "default", .pod = "trainer", .container = "c0"};
    plan.limits.len = 1;
    plan.limits.cards[0] = (struct limits_card){.uuid = {0, 0, 0, 0, 0, 0, 0x40, 0, 0x80, [15] = 1},
                                                .bytes = 3072 * MIB,
                                                .percent = percent,
                                                .context_bytes = context_mib * MIB};
    (void)str_format(library, sizeof library, "%s/lib/libcosched-gpu.so", crew_build());
    if (shares_prepare(library, &plan, &err) < 0)
        fail_msg("%s", err.text);
}

static struct usage_process process(int64_t pid, int64_t mib, const char *folder)
{
    struct usage_process p = {.card = 1, .pid = pid, .mib = mib, .uid = "uid-trainer"};
    (void)str_format(p.folder, sizeof p.folder, "%s", folder);
    return p;
}

static void messages(struct fixture *f, int times, struct usage_process *list, size_t len)
{
    struct scan_message l = {.kind = SCAN_CARDS,
                             .sight = {.inventory = f->cards, .cards = f->conditions},
                             .processes = list,
                             .processes_len = len};
    for (int i = 0; i < times; i++) {
        monitor_message(f->monitor, &l);
        monitor_settle(f->monitor);
        loop_once(f->loop, 0);
    }
}

static void looks(struct fixture *f, int times, size_t processes)
{
    struct usage_process list[8];
    for (size_t i = 0; i < processes; i++)
        list[i] = process(100 + (int64_t)i, 500, "");
    messages(f, times, list, processes);
}

static bool metric(const char *line)
{
    AUTO_STRBUF text;
    strbuf_init(&text);
    metrics_render(&text);
    return strstr(strbuf_str(&text), line) != NULL;
}

static void loose_processes(void **state)
{
    struct fixture f;
    struct regionfile one, two;
    (void)state;
    begin(&f, false);
    looks(&f, 2, 2);
    expect_int("for a moment", 0, events);
    looks(&f, 1, 2);
    expect_int("a pod that should have our library and has no folder is not held", 1, events);
    monitor_mode(f.monitor, GPU_MODE_CGPU, ISOLATION_KERNEL);
    looks(&f, 1, 2);
    events = 0;
    looks(&f, 5, 2);
    expect_int("one of another engine needs none", 0, events);
    monitor_mode(f.monitor, GPU_MODE_CGPU, ISOLATION_LIBRARY);
    give_folder(&f, "uid-trainer.0", 100, 0);
    assert_int_equal(0, regionfile_attach(&one, f.region));
    assert_int_equal(0, regionfile_attach(&two, f.region));
    looks(&f, 5, 2);
    expect_int("each has its slot", 0, events);
    looks(&f, 2, 3);
    expect_int("one more, for a moment", 0, events);
    looks(&f, 1, 2);
    looks(&f, 2, 3);
    expect_int("and once more", 0, events);
    looks(&f, 1, 3);
    expect_int("it stays", 1, events);
    expect_str("what it is", "GpuIsolationBypassed", reason);
    expect_true(
        "how many, and of what",
        strstr(message, "1 of its 3 processes on the GPU are not held to its share of 3072 MiB") !=
            NULL);
    expect_true("counted",
                metric("pod_loose_processes{namespace=\"default\",pod=\"trainer\"} 1\n"));
    looks(&f, 5, 3);
    expect_int("said once", 1, events);
    looks(&f, 1, 2);
    looks(&f, 3, 4);
    expect_int("and again after it was well", 2, events);
    expect_int("nobody is evicted unless asked for", 0, evictions);
    struct pod *unreadable = trainer("a field of tomorrow");
    podcache_put(&f.pods, trainer("a field of tomorrow"));
    expect_true("a version that cannot be read changes nothing",
                metric("pod_loose_processes{namespace=\"default\",pod=\"trainer\"} 2\n"));
    podcache_reset(&f.pods, &unreadable, 1);
    looks(&f, 1, 4);
    expect_true("nor in a list of all",
                metric("pod_loose_processes{namespace=\"default\",pod=\"trainer\"} 2\n"));
    podcache_reset(&f.pods, NULL, 0);
    expect_true("one that is not there any more is forgotten", !metric("pod_loose_processes{"));
    regionfile_detach(&one);
    regionfile_detach(&two);
    end(&f);
}

static void memory_beyond_the_limit(void **state)
{
    struct fixture f;
    struct regionfile one;
    (void)state;
    begin(&f, true);
    static const struct {
        const char *row;
        uint64_t context_mib;
        int64_t mib;
        const char *folder;
        bool over;
    } rows[] = {
        {"all of it, and what the driver takes", 0, 3072 + 512, "uid-trainer.0", false},
        {"one MiB more", 0, 3072 + 513, "uid-trainer.0", true},
        {"a charged context is in the limit, a module is not", 300, 3072 + 212, "uid-trainer.0",
         false},
        {"one MiB more", 300, 3072 + 213, "uid-trainer.0", true},
        {"a context larger than what is allowed", 600, 3072, "uid-trainer.0", false},
        {"one MiB more", 600, 3073, "uid-trainer.0", true},
        {"mounts that do not tell: the pod has one container", 300, 3072 + 213, "", true},
        {"another container of the pod, which has no limits", 300, 9000, "uid-trainer.7", true},
        {"the driver does not tell", 300, -1, "uid-trainer.0", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        give_folder(&f, "uid-trainer.0", 100, rows[i].context_mib);
        assert_int_equal(0, regionfile_attach(&one, f.region));
        struct usage_process p = process(100, rows[i].mib, rows[i].folder);
        messages(&f, 1, NULL, 0);
        events = evictions = 0;
        messages(&f, 2, &p, 1);
        expect_int(rows[i].row, 0, events + evictions);
        messages(&f, 1, &p, 1);
        expect_int(rows[i].row, rows[i].over, events);
        expect_int(rows[i].row, rows[i].over, evictions);
        if (rows[i].over) {
            char line[CREW_LINE];
            (void)str_format(line, sizeof line,
                             "the driver counts %lld MiB of card 1 for a pod that may have 3072",
                             (long long)rows[i].mib);
            expect_true(rows[i].row, strstr(message, line) != NULL);
            expect_true("what happens", strstr(message, "The pod is evicted") != NULL);
            (void)str_format(line, sizeof line,
                             "pod_over_mib{namespace=\"default\",pod=\"trainer\"} %lld\n",
                             (long long)rows[i].mib - 3072);
            expect_true("counted", metric(line));
            messages(&f, 2, &p, 1);
            expect_int("the eviction is under way", 1, evictions);
            messages(&f, 1, &p, 1);
            expect_int("it is still there", 2, evictions);
            expect_int("said once", 1, events);
        }
        regionfile_detach(&one);
    }
    end(&f);
}

/* A process can have a folder of any name mounted where ours is; that of a container whose pod was
 * not known has no uid in it. */
static void another_pods_folder(void **state)
{
    struct fixture f;
    struct regionfile one;
    (void)state;
    begin(&f, true);
    give_folder(&f, "unknown-0123.0", 100, 300);
    (void)str_format(f.region, sizeof f.region, "%s/unknown-0123.0/region", f.base);
    assert_int_equal(0, regionfile_attach(&one, f.region));
    struct usage_process list[] = {process(100, 3000, "unknown-0123.0"),
                                   process(200, 9000, "unknown-0123.0")};
    (void)str_format(list[1].uid, sizeof list[1].uid, "uid-intruder");
    messages(&f, 5, list, 2);
    expect_int("what another pod says is not its doing", 0, events + evictions);
    list[0].mib = 3072 + 213;
    messages(&f, 3, list, 1);
    expect_int("its own memory is", 1, evictions);
    list[0] = process(100, 500, "unknown-0123.0");
    list[1] = process(101, 500, "unknown-0123.0");
    messages(&f, 1, NULL, 0);
    events = 0;
    messages(&f, 3, list, 2);
    expect_true("and so are its processes", strstr(message, "1 of its 2 processes") != NULL);
    regionfile_detach(&one);
    end(&f);
}

/* What an earlier pod of the same name left is not this pod's doing. */
static void an_earlier_pods_folder(void **state)
{
    struct fixture f;
    struct error err = ERROR_INIT;
    (void)state;
    begin(&f, true);
    give_folder(&f, "unknown-0123.0", 100, 0);
    (void)str_format(f.region, sizeof f.region, "%s/unknown-0123.0/region", f.base);
    struct shares_owner earlier = {.folder = "unknown-0123.0",
                                   .uid = "uid-earlier",
                                   .ns = "default",
                                   .pod = "trainer",
                                   .container = "c0"};
    assert_int_equal(0, shares_complete(f.base, &earlier, 100, &err));
    assert_int_equal(0, truncate(f.region, 0));
    looks(&f, 5, 0);
    expect_int("another uid", 0, events + evictions);
    earlier.uid = "uid-trainer";
    assert_int_equal(0, shares_complete(f.base, &earlier, 100, &err));
    looks(&f, 3, 0);
    expect_int("its own", 1, evictions);
    end(&f);
}

/* ---- what a container may do to its region ---- */

static void lock_byte(int fd, off_t at)
{
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1};
    assert_int_equal(0, fcntl(fd, F_OFD_SETLK, &l));
}

/* Every slot has an owner and holds memory, and the file has thousands of locks. */
static int crowd(const char *path, int locks)
{
    struct regionfile r;
    assert_int_equal(0, regionfile_attach(&r, path));
    for (uint32_t slot = 0; slot < r.region.slots; slot++) {
        atomic_store(&region_slot(&r.region, slot)->owner, 4711 + slot);
        assert_true(slot == r.slot || region_take(&r.region, slot, 0, 1, UINT64_MAX));
    }
    munmap(r.map, r.size);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    for (int i = 0; i < locks; i++)
        lock_byte(fd, 2 * i);
    return fd;
}

static void keep_broken(void *arg, const struct shares_scan *l)
{
    *(const char **)arg = l->broken;
}

/* A question costs what the container wants it to cost: it may hold any number of locks. */
static void locks_on_the_region(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, false);
    give_folder(&f, "uid-trainer.0", 100, 0);
    int fd = crowd(f.region, 3000);
    queries = 0;
    looks(&f, 1, 1);
    expect_true("a look asks once for each slot at most", queries <= REGION_SLOTS);
    queries = 0;
    (void)metric("");
    expect_int("a scrape asks nothing", 0, queries);
    queries = 0;
    const char *broken = NULL;
    shares_each(f.base, 0, keep_broken, &broken);
    expect_int("no more after the time is over", 1, queries);
    expect_str("then it cannot be read", "it has so many locks that they cannot be counted",
               broken);
    close(fd);
    end(&f);
}

/* Its clients say themselves what they are limited to: the driver's figures decide. */
static void clients_of_mps(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, true);
    monitor_mode(f.monitor, GPU_MODE_MPS, ISOLATION_MPS);
    looks(&f, 5, 6);
    expect_int("six processes within the share, and what the driver takes", 0, events);
    struct usage_process list[] = {process(100, 3000, ""), process(101, 1097, "")};
    messages(&f, 5, list, 2);
    expect_int("they need no folder", 1, events);
    expect_str("too much", "GpuIsolationBypassed", reason);
    expect_true("how much, and why",
                strstr(message,
                       "the driver counts 4097 MiB of card 1 for a pod that may have 3072."
                       " Not held are clients of MPS that change their own limits") != NULL);
    expect_int("evicted", 1, evictions);
    list[0].card = 0; /* which it was not given */
    messages(&f, 1, NULL, 0);
    events = 0;
    messages(&f, 3, list, 2);
    expect_true("another card",
                strstr(message, "3000 MiB of card 0 for a pod that may have 0") != NULL);
    monitor_mode(f.monitor, GPU_MODE_MPS, "none");
    messages(&f, 1, NULL, 0);
    events = 0;
    messages(&f, 5, list, 2);
    expect_int("without an engine nothing was promised", 0, events);
    end(&f);
}

/* What nobody does by chance is told at once, though it was undone. */
static void a_larger_region(void **state)
{
    struct fixture f;
    (void)state;
    begin(&f, true);
    give_folder(&f, "uid-trainer.0", 100, 0);
    looks(&f, 5, 0);
    expect_int("as it was made", 0, events);
    assert_int_equal(0, truncate(f.region, 200 << 20));
    looks(&f, 1, 0);
    expect_int("larger", 1, events);
    expect_str("what it is", "GpuIsolationBypassed", reason);
    expect_true("why", strstr(message, "the region that container c0 shares with the node does not "
                                       "count: it was made larger") != NULL);
    expect_int("evicted", 1, evictions);
    looks(&f, 5, 0);
    expect_int("it is well again", 1, events);
    struct regionfile one;
    assert_int_equal(0, regionfile_attach(&one, f.region));
    memset(one.map, 0xff, one.size);
    looks(&f, 2, 0);
    expect_int("unreadable, for a moment", 1, events);
    looks(&f, 1, 0);
    expect_int("it stays", 2, events);
    munmap(one.map, one.size);
    end(&f);
}

/* What a container writes, mounts or breaks does not hide what the driver counts. */
static void nothing_hides_memory(void **state)
{
    static const struct {
        const char *row, *folder; /* what is mounted where its folder should be */
        bool unreadable;
    } rows[] = {
        {"a volume of a name like ours", "unknown-0badc0de.0", false},
        {"another container's folder", "uid-trainer.7", false},
        {"another pod's folder", "uid-other.0", false},
        {"no mounts at all", "", false},
        {"a region that is none", "uid-trainer.0", true},
        {"both", "unknown-0badc0de.0", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct fixture f;
        begin(&f, true);
        give_folder(&f, "uid-trainer.0", 100, 300);
        give_folder(&f, "uid-trainer.1", 100, 300); /* a second container */
        struct regionfile one;
        assert_int_equal(0, regionfile_attach(&one, f.region));
        if (rows[i].unreadable)
            memset(one.map, 0xff, one.size);
        struct usage_process list[] = {process(100, 15000, rows[i].folder), process(200, 300, "")};
        list[1].uid[0] = '\0'; /* a process that has ended, or whose cgroup cannot be read */
        messages(&f, 50, list, 2);
        expect_int(rows[i].row, 1, events);
        expect_str(rows[i].row, "GpuIsolationBypassed", reason);
        expect_true(rows[i].row, strstr(message, "15000 MiB of card 1") != NULL);
        expect_true(rows[i].row, evictions > 0);
        munmap(one.map, one.size);
        end(&f);
    }
}

/* ---- time ---- */

static void measured(struct fixture *f, struct scan_busy *busy, size_t len, bool known, uint64_t at)
{
    struct scan_message l = {
        .kind = SCAN_TIME, .busy = busy, .busy_len = len, .at_ns = (int64_t)at};
    l.timed[1] = known;
    monitor_message(f->monitor, &l);
    monitor_settle(f->monitor);
}

static struct region_card read_card(const char *path)
{
    struct regionfile r;
    assert_int_equal(0, regionfile_attach(&r, path));
    struct region_card c = *region_card(&r.region, 0);
    regionfile_detach(&r);
    return c;
}

static void time_is_measured(void **state)
{
    struct fixture f;
    char second[CREW_PATH];
    (void)state;
    begin(&f, false);
    messages(&f, 1, NULL, 0); /* the cards are known */
    give_folder(&f, "uid-trainer.0", 30, 0);
    (void)str_format(second, sizeof second, "%s/uid-trainer.1/region", f.base);
    struct scan_busy busy[] = {{process(100, -1, "uid-trainer.0"), 5000},
                               {process(101, -1, "uid-trainer.0"), 700},
                               {process(102, -1, ""), 11},
                               {process(103, -1, "uid-other.0"), 100000},
                               {process(104, -1, "uid-trainer.0"), 1000000}};
    busy[3].process.uid[4] = 'o';
    busy[4].process.card = 0;
    uint64_t now = (uint64_t)clock_mono_us() * 1000;
    measured(&f, busy, 5, true, now);
    struct region_card c = read_card(f.region);
    expect_int("its processes together, on this card", 5711, (int64_t)c.measured_ns);
    expect_int("when", (int64_t)now, (int64_t)c.measured_at_ns);
    expect_true("whole", c.measured_check == budget_check(c.measured_ns, c.measured_at_ns));
    measured(&f, NULL, 0, true, now + 1000);
    c = read_card(f.region);
    expect_int("nothing more", 5711, (int64_t)c.measured_ns);
    expect_int("but looked at", (int64_t)now + 1000, (int64_t)c.measured_at_ns);
    measured(&f, busy, 5, false, now + 2000);
    c = read_card(f.region);
    expect_int("a card that does not tell is not written to", (int64_t)now + 1000,
               (int64_t)c.measured_at_ns);
    give_folder(&f, "uid-trainer.1", 100, 0);
    measured(&f, busy, 5, true, now + 3000);
    c = read_card(f.region);
    expect_int("of two containers the mounts choose; what names none counts for each", 2 * 5711,
               (int64_t)c.measured_ns);
    c = read_card(second);
    expect_int("a container that may have all is left alone", 0, (int64_t)c.measured_at_ns);
    expect_int("nothing to say", 0, events);
    give_folder(&f, "unknown-0123.0", 30, 0);
    (void)str_format(second, sizeof second, "%s/unknown-0123.0/region", f.base);
    struct scan_busy two[] = {{process(100, -1, "unknown-0123.0"), 5000},
                              {process(200, -1, "unknown-0123.0"), 100000}};
    (void)str_format(two[1].process.uid, sizeof two[1].process.uid, "uid-intruder");
    measured(&f, two, 2, true, now + 4000);
    c = read_card(second);
    expect_int("without the time of another pod's process", 5000, (int64_t)c.measured_ns);
    end(&f);
}

static void time_is_not_measured(void **state)
{
    struct fixture f;
    struct regionfile one;
    (void)state;
    begin(&f, false);
    give_folder(&f, "uid-trainer.0", 30, 0);
    assert_int_equal(0, regionfile_attach(&one, f.region));
    struct region_card *c = region_card(&one.region, 0);
    messages(&f, 5, NULL, 0);
    expect_int("it has launched nothing", 0, events);
    (void)budget_charge(c, 30, 1, (uint64_t)clock_mono_us() * 1000);
    f.conditions[0].processes_known = f.conditions[1].processes_known = false;
    messages(&f, 2, NULL, 0);
    expect_int("for a moment", 0, events);
    messages(&f, 4, NULL, 0);
    expect_int("it stays, and is said once", 1, events);
    expect_str("what it is", "GpuTimeUnmeasured", reason);
    expect_true("counted",
                metric("container_time_unmeasured{namespace=\"default\",pod=\"trainer\",container="
                       "\"c0\",card=\"0\"} 1\n"));
    measured(&f, NULL, 0, true, (uint64_t)clock_mono_us() * 1000);
    messages(&f, 1, NULL, 0);
    expect_true("then it is",
                metric("container_time_unmeasured{namespace=\"default\",pod=\"trainer\",container="
                       "\"c0\",card=\"0\"} 0\n"));
    regionfile_detach(&one);
    end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loose_processes),     cmocka_unit_test(memory_beyond_the_limit),
        cmocka_unit_test(another_pods_folder), cmocka_unit_test(an_earlier_pods_folder),
        cmocka_unit_test(locks_on_the_region), cmocka_unit_test(nothing_hides_memory),
        cmocka_unit_test(a_larger_region),     cmocka_unit_test(clients_of_mps),
        cmocka_unit_test(time_is_measured),    cmocka_unit_test(time_is_not_measured)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
